"""The source of a kernel as a Python function, which Triton reads.

Input: a ``TritonFunction``, and the names that it may use.
Output: the Python function.
Why: Triton's compiler and interpreter ask Python for a function's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tcompile.backends.texts import keep_text
from tcompile.backends.triton.text import TritonFunction

_files = count()


def defined(function: TritonFunction, names: Mapping[str, Any]) -> Callable[..., Any]:
    """The Python function that a source defines, among these names; its text can be found."""
    file = f"<triton {function.name} {next(_files)}>"
    space = dict(names)
    exec(compile(function.text, file, "exec"), space)
    made: Callable[..., Any] = space[function.name]
    made.__module__ = __name__
    keep_text(made, file, function.text)
    return made


__all__ = ["defined"]
