"""A script with compiled functions to be debugged, run with ``plain`` without compiling; ``KIND`` is what it calls."""

SCRIPT = """
import os, sys
import numpy as np

if "plain" in sys.argv:
    compile = lambda function: function
else:
    from tcompile import compile


def helper(x):
    y = x * 2
    return y + 1


@compile
def tail(x, at):
    y = np.sin(x) + 1
    if at:
        breakpoint()
    z = y * 2
    w = helper(z)
    return w + y


@compile
def loop(x, at):
    for i in range(4):
        x = np.sqrt(x) + i
        if i == at:
            breakpoint()
        x = x * 2
        x = x - 1
    return x.sum()


@compile
def blocks(x, at):
    try:
        with np.errstate(all="ignore"):
            y = x / 0
            if at:
                breakpoint()
            y = y + x
        raise ValueError("no")
    except ValueError as error:
        z = x * 3
        w = z + 1
    return w


@compile
def numbers(x, at):
    for i in range(3):
        x = x + i
        if i == at:
            breakpoint()
        yield x * 2
        x = x * 3


class Model:
    def __repr__(self):
        return "the model"

    @compile
    def step(self, x, at):
        y = x * self.scale
        if at:
            breakpoint()
        return y + 1

    scale = 3.0


def main():
    x = np.ones(3)
    for _ in range(int(os.environ.get("WARM", 0))):
        tail(x, 0), loop(x, -1), blocks(x, 0), list(numbers(x, -1)), Model().step(x, 0)
    KIND
    return x


main()
print("the end")
"""
LINES = {line.strip(): number for number, line in enumerate(SCRIPT.splitlines(), 1)}
