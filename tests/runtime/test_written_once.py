"""What a call has written is not written again: ints that 64 bits do not hold are found before any kernel runs."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile


def divided(x, n, m):
    x += 1
    return x * 2, 3 // n, x.size % n


def by_a_negative_number(x, n, m):
    x += 1
    return x * 2, n // -3, [n % -2]


def multiplied(x, n, m):
    x += 1
    return x * 2, n * m, n**2 // 3


def listed(x, n, m):
    found = []
    x += 1
    found.append(n * m)
    return x * 2, found


def written_later(x, n, m):
    y = x * 2
    v = 3 // n
    x[1] = 7
    return y, v


def computed_with(x, n, m):
    x += 1
    return x.sum() * (n * m)


def stored(x, n, m):
    x += 1
    x[0] = n * m


def stored_and_returned(x, n, m):
    x += 1
    z = n - (n << min(m, 70))
    x[0] = z
    return x, z


def counted(x, n, m):
    s = 0
    x += 1
    for _ in range(3):
        s += n
    return x * 2, s * m


MILD, WILD = [(1, 1), (2, 3), (4, 2)], [(-1, 2), (4, 2**61), (2**40, 2**40), (-7, -3), (3, 65), (2, 1)]


def told(function, n, m):
    """What a call gives or raises, and what it leaves behind."""
    x = np.ones(3)
    try:
        return repr(function(x, n, m)), x.tolist()
    except Exception as error:  # negative shifts
        return repr(error), x.tolist()


@pytest.mark.parametrize(
    "f",
    [
        divided, by_a_negative_number, multiplied, listed, written_later, computed_with, stored, stored_and_returned,
        counted,
    ],
)  # fmt: skip
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dynamic", [None, True])
def test_ints_beyond_64_bits(f, native, dynamic):
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(f, dynamic=dynamic)
        for n, m in [*MILD, *WILD, *MILD]:
            assert told(compiled, n, m) == told(f, n, m), (n, m)


@pytest.mark.parametrize("f", [stored, computed_with])
def test_the_same_on_gpus(f):
    pytest.importorskip("triton")
    with tcompile.config.patch(triton_interpret=True):
        compiled = tcompile.compile(f, dynamic=True, backend="triton")
        for n, m in [*MILD, *WILD]:
            assert told(compiled, n, m) == told(f, n, m), (n, m)
