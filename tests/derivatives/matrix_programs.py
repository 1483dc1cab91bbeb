"""Loops over matrices whose memory orders differ, as programs.

Input: a source of random numbers.
Output: the text of a function ``f(x, w)`` of two matrices of shape (3, 3).
Why: a loop carries what was transposed, reversed or made in Fortran order, and its derivative stores rows in C order.
"""

from __future__ import annotations

from random import Random

_STARTS = (
    "x", "x.T", "np.asfortranarray(x)", "np.zeros((3, 3), order='F')", "x[::-1]", "x[:, ::-1].T",
    "np.ones((3, 3, 3)).transpose(2, 0, 1)[1]",
)  # fmt: skip
_VALUES = (
    "y @ w", "w @ y.T", "(y @ w).T", "np.sin(y) * x", "y.T * 1.1", "np.asfortranarray(y * x)", "np.tanh(z) + y",
    "x.T + z * y.T", "y[::-1] * 0.5", "y - y.mean(axis=0)", "y.T.copy()", "np.where(y > 0.2, y, x.T)",
    "np.exp(-y).T", "y.sum(axis=1)[:, None] * x", "y + z.T",
)  # fmt: skip
_STATEMENTS = (
    "y = {}", "z = {}", "z = z + {}", "y[i % 3] = ({})[1]", "y[:, i % 3] += ({})[0]", "y[1:] *= 0.5", "y += {}",
    "z[0] = y[i % 3]",
)  # fmt: skip
_TESTS = ("y.sum() > 4.0", "np.abs(y).max() > 2.0", "i == 3", "z[0, 0] < -0.5", "y[i % 3, 0] > 1.0")


def program(random: Random) -> str:
    """A program."""

    def statement() -> str:
        return random.choice(_STATEMENTS).format(random.choice(_VALUES))

    lines = [f"def f(x, w):\n    y, z = {random.choice(_STARTS)} + 0.0, {random.choice(_STARTS)} * 1.0"]
    lines.append(f"    for i in range({random.choice([0, 1, 3, 5, 8])}):")
    for _ in range(random.randint(1, 4)):
        which = random.random()
        test = random.choice(_TESTS)
        if which < 0.7:
            lines.append(f"        {statement()}")
        elif which < 0.85:
            lines.append(f"        if {test}: {random.choice(['break', 'continue'])}")
        else:
            lines.append(f"        if {test}:\n            {statement()}")
    return "\n".join([*lines, "        z = z * 0.9", "    return y, z.T"])


__all__ = ["program"]
