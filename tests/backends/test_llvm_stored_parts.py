"""Arrays put together of parts, and reshaped ones, in the iterations of loops that run in machine code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.test_llvm_nested_loops import decided
from tests.differential import check

BODIES = {
    "concatenate": "x = np.concatenate([x[1:], x[:1]]) * 0.9",
    "three": "x = np.concatenate([x[4:6], 0.5 * x[:4], x[6:]])",
    "columns": "m = np.concatenate([m[:, 2:], m[:, :1] * 0.5, m[:, 1:2]], axis=1)",
    "of_nothing": "x = np.concatenate([x[3:3], x * 0.9])",
    "integers": "k = np.concatenate([k[1:], k[:1] + 1])",
    "complex": "z = np.concatenate([z[1:], z[:1]]) * (0.6 + 0.8j)",
    "appended": "x = np.append(x[1:], x[0] * 0.5)",
    "stacked": "s = np.stack([x, y])\n        x = s.sum(axis=0) * 0.4\n        y = s[1] * 0.9",
    "side_by_side": "m = np.hstack([m[:, 6:], m[:, :6] * 0.5])",
    "rolled": "x = np.roll(x, 2) * 0.9",
    "rolled_back": "m = np.roll(m, -3, axis=1) * 0.9",
    "rolled_both": "m = np.roll(m, (1, -2), axis=(0, 1)) * 0.9",
    "rolled_far": "x = np.roll(x, 12) * 0.9 + np.roll(x, -11)",
    "ring": "x = 0.5 * x + 0.2 * (np.roll(x, 1) + np.roll(x, -1))",
    "torus": "m = 0.2 * (m + np.roll(m, 1, 0) + np.roll(m, -1, 0) + np.roll(m, 1, 1) + np.roll(m, -1, 1))",
    "corners": "m = 0.3 * (m + np.roll(m, (1, 1), (0, 1)) + np.roll(m, (-1, -1), (0, 1)))",
    "meshgrid": "p, q = np.meshgrid(x, y)\n        x = (p * q).sum(axis=0) * 0.1",
    "merged": "x = (m * 0.5).reshape(-1)[:12] + x * 0.1",
    "split": "x = x * 0.9\n        x = x + (x.reshape(3, 4) * 0.5).sum(axis=0)[0]",
    "raveled": "x = (m * x).ravel()[5:17] * 0.1 + x",
}


@pytest.mark.parametrize("name", BODIES)
def test_parts_are_stored_by_kernels(name):
    lines = f"def f(x, y, m, k, z, n):\n    for t in range(n):\n        {BODIES[name]}\n    return x, y, m, k, z\n"
    names = {"np": np}
    exec(compile(lines, f"<{name}>", "exec"), names)
    f = names["f"]

    def make(n):
        r = np.random.default_rng(0)
        return r.random(12), r.random(12), r.random((12, 12)), r.integers(0, 9, 7), r.random(5) + 1j, n

    for n in (40, 1, 0):
        check(f, lambda n=n: make(n), backends=("aot_eager", "llvm"), calls=3)
    check(f, lambda: make(40), backends=("llvm",), dynamic=True)
    found = decided(f, *make(40))
    assert set(found) == {("machine code", "")}


def test_sizes_that_are_numbers_are_asked_whether_they_are_large_enough():
    def f(n, rule, rows):
        grid = np.zeros((rows, n), int)
        grid[0, n // 2] = 1
        table = np.array([rule >> k & 1 for k in range(8)])
        for i in range(1, rows):
            row = grid[i - 1]
            grid[i] = table[4 * np.roll(row, 1) + 2 * row + np.roll(row, -1)]
        return grid, np.roll(grid, 3, axis=1)

    for dynamic in (None, True):
        for n in (20, 30, 40, 2, 1, 3, 0):
            check(f, lambda n=n: (n, 30, 40) if n else (1, 2, 0), calls=2, dynamic=dynamic)
    assert set(decided(f, 20, 30, 40, dynamic=True)) == {("machine code", "")}
