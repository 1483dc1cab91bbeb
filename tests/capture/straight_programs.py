"""Generated scalar loops whose innermost range may be vectorised, or may not.

Input: a seed.
Output: a program's text, ``f(a, b, c, s, k)`` of arrays of four rows, a number and an int, and its arguments.
Why: rows, offsets, views and aliased arguments decide which iterations depend on which.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

WIDTHS = (5, 9, 12, 17, 20, 33)  # some iterations are left over, or there are too few


def program(random: Random) -> str:
    """The text."""

    def element(written: bool) -> str:
        array = random.choice("aabbccv" if not written else "abcv")
        row = random.choice(["i", "i", "i", "i + 1", "k", "0"] if written else ["i", "i", "k", "i - 1", "0", "2"])
        near = ["j"] * 8 + ["j + 1", "j - 1"]
        places = near if written else [*near, "j", "j", "j + 3", "j - 2", "k", "k", "0", "3", "-1", "7"]
        return f"{array}[{row}, {random.choice(places)}]"

    def value(depth: int = 0) -> str:
        kind = random.random()
        if depth > 2 or kind < 0.3:
            return element(False)
        a, b = value(depth + 1), value(depth + 1)
        if kind < 0.4:
            return random.choice(["0.5", "2", "s", "1e200", "-3.0", "0"])
        if kind < 0.75:
            return f"({a} {random.choice('+-*')} {b})"
        if kind < 0.93:
            return random.choice([f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"(-{a})", f"np.sqrt({a})"])
        return f"({a} if {value(2)} {random.choice(['<', '>', '<=', '==', '!='])} {value(2)} else {b})"

    view = random.choice(["b", "b", "a", "a[:, 1:]", "b[:, :-1]", "a[1:]", "c[::-1]", "b[:, 2:]"])
    rows, start = random.choice(["n", "n - 1", "2", "k + 2"]), random.choice([0, 0, 1, 3])
    end = random.choice(["m", "m", "m - 1", "m - 3", "9 * k + 8"])  # some are known when the loop begins, some are not
    lines = [f"{element(True)} = {value()}" for _ in range(random.choice([1, 1, 1, 2, 2, 3]))]
    return "\n".join([
        "def f(a, b, c, s, k):", "    n, m = a.shape", "    j = 5", f"    v = {view}", f"    for i in range({rows}):",
        f"        for j in range({start}, {end}):",
        *(f"            {line}" for line in lines), "    return a, b, c, j", "",
    ])  # fmt: skip


def arguments(seed: int) -> tuple[Any, ...]:
    """What the program of this seed is called with, made anew."""
    random, numbers = Random(seed), np.random.default_rng(seed)
    width, dtype = random.choice(WIDTHS), random.choice(["f8", "f8", "f4", "f4", "i8"])
    other = random.choice([dtype, dtype, "f8", "f4"])
    a, b, c = (
        (numbers.integers(-9, 9, (4, width)) / (1 if one == "i8" else 4)).astype(one) for one in (dtype, other, dtype)
    )
    if random.random() < 0.15:
        a = np.repeat(a, 2, 1)[:, ::2]
    if random.random() < 0.1:
        c = a
    return a, b, c, random.choice([2.5, np.float64(0.5), np.float32(3)]), random.choice([0, 1, 2, 3, -1])
