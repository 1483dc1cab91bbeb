"""CPython's own tests under capture: the same tests run plainly and compiled, and must end the same way."""
