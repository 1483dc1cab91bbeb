"""Stencils of ``loops.py`` as written for Numba: explicit scalar loops, parallel over rows by ``prange``.

Input: the arguments of the NumPy forms.
Output: their results.
Why: NumPy's notation is not the best source for Numba. Without ``parallel=True`` ``prange`` is ``range``. Importing
this module imports Numba.
"""

from __future__ import annotations

from numba import prange  # type: ignore[import-not-found]


def jacobi(u, steps):
    n, m = u.shape
    v = u.copy()
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1])
        u, v = v, u
    return u


def heat(u, steps):
    n, m, d = u.shape
    v = u.copy()
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                for k in range(1, d - 1):
                    c = u[i, j, k]
                    v[i, j, k] = c + 0.1 * (
                        u[i + 1, j, k] + u[i - 1, j, k] + u[i, j + 1, k] + u[i, j - 1, k]
                        + u[i, j, k + 1] + u[i, j, k - 1] - 6 * c
                    )  # fmt: skip
        u, v = v, u
    return u


def fdtd(h, steps):
    n, m = h.shape
    ex, ey = h * 0, h * 0
    for _ in range(steps):
        for i in prange(n):
            for j in range(m):
                if i > 0:
                    ey[i, j] = ey[i, j] - 0.5 * (h[i, j] - h[i - 1, j])
                if j > 0:
                    ex[i, j] = ex[i, j] - 0.5 * (h[i, j] - h[i, j - 1])
        for i in prange(n - 1):
            for j in range(m - 1):
                h[i, j] = h[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return h


def wave(u, steps):
    n, m = u.shape
    p, q = u.copy(), u.copy()
    for _ in range(steps):
        for i in prange(n):
            for j in range(m):
                q[i, j] = 2 * u[i, j] - p[i, j]
                if 0 < i < n - 1 and 0 < j < m - 1:
                    q[i, j] += 0.1 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j])
        p, u, q = u, q, p
    return u


def cavity(a, steps):
    u, v, p = a[0] * 0, a[1] * 0, a[2] * 0
    x, y, q, b = u.copy(), v.copy(), p.copy(), p.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                s = u[i, j + 1] - u[i, j - 1]
                b[i, j] = 10 * (s + (v[i + 1, j] - v[i - 1, j])) - s**2
        for _ in range(10):
            p, q = q, p
            for i in prange(1, n - 1):
                for j in range(1, m - 1):
                    p[i, j] = 0.25 * (q[i, j + 1] + q[i, j - 1] + q[i + 1, j] + q[i - 1, j]) - 0.01 * b[i, j]
            for i in range(n):
                p[i, m - 1] = p[i, m - 2]
            for j in range(m):
                p[0, j] = p[1, j]
            for i in range(n):
                p[i, 0] = p[i, 1]
            for j in range(m):
                p[n - 1, j] = 0
        for i in prange(n):
            for j in range(m):
                x[i, j] = u[i, j]
                y[i, j] = v[i, j]
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                cx, cy = 0.01 * x[i, j], 0.01 * y[i, j]
                along = cx * (x[i, j] - x[i, j - 1]) + cy * (x[i, j] - x[i - 1, j])
                across = cx * (y[i, j] - y[i, j - 1]) + cy * (y[i, j] - y[i - 1, j])
                u[i, j] = x[i, j] - along - 0.01 * (p[i, j + 1] - p[i, j - 1])
                v[i, j] = y[i, j] - across - 0.01 * (p[i + 1, j] - p[i - 1, j])
        u[0, :], u[:, 0], u[-1, :] = 0, 0, 1
        v[0, :], v[:, 0] = 0, 0
    return u
