"""Python forms of operations in scalar code, which the translator inlines like functions of the user's.

Input: numbers, arrays, and slices of arrays.
Output: what the operation gives.
Why: loops over items are written as loops. The forms read no globals, which would be guarded.
"""

from __future__ import annotations

from typing import Any


def pairwise_sum(x: Any, n: int, zero: Any, divisor: Any, sizes: Any, sums: Any) -> Any:
    """The sum of ``n`` items, divided, added in NumPy's order: halves of more than 128 items are summed apart.

    A half ends at a multiple of 8 items. Up to 128 items are added to 8 sums in turn. ``sizes`` and ``sums`` hold the
    halves that are left, and the sums of those before them.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).random(1000)
    >>> pairwise_sum(x, 1000, np.float64(0.0), 1.0, np.zeros(64, np.int64), np.zeros(64)) == x.sum()
    np.True_
    """
    at = depth = 0
    left = n
    while True:
        while left > 128:
            half = left // 2
            half -= half % 8
            sizes[depth] = left - half
            depth += 1
            left = half
        end = at + left
        if left < 8:
            found = zero
        else:
            a, b, c, d = x[at], x[at + 1], x[at + 2], x[at + 3]
            e, f, g, h = x[at + 4], x[at + 5], x[at + 6], x[at + 7]
            at += 8
            while at + 8 <= end:
                a, b, c, d = a + x[at], b + x[at + 1], c + x[at + 2], d + x[at + 3]
                e, f, g, h = e + x[at + 4], f + x[at + 5], g + x[at + 6], h + x[at + 7]
                at += 8
            found = ((a + b) + (c + d)) + ((e + f) + (g + h))
        while at < end:
            found = found + x[at]
            at += 1
        while depth > 0 and sizes[depth - 1] == 0:
            depth -= 1
            found = sums[depth] + found
        if depth == 0:
            return (zero + found) / divisor
        sums[depth - 1] = found
        left = sizes[depth - 1]
        sizes[depth - 1] = 0


def indexed(found: Any, x: Any, key: Any, n: int) -> Any:
    """``found``, if ``key`` holds ``n`` indices of items of ``x``: NumPy looks at all of them at once.

    >>> indexed("x[key]", [5, 6, 7], [2, 0], 2)
    'x[key]'
    """
    k = 0
    while k < n:
        x[key[k]]
        k += 1
    return found


__all__ = ["indexed", "pairwise_sum"]
