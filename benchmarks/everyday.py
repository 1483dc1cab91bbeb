"""Programs as they stand in notebooks: loops over rows, early returns, steps that print, objects with state.

Input: nothing.
Output: ``EVERYDAY``, a table like that of ``programs.py``.
Why: a notebook calls its functions with a small array first, and with the whole one then.
``benchmarks/against_numpy.py`` does so, and times them at the second size, which is symbolic by then.

``tests/test_programs.py`` compares each with plain Python, at two sizes one after the other.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs import Program


# -- linear algebra by hand --------------------------------------------------------------------------------------------
def lu(a):
    """Elimination with the largest pivot of each column."""
    a = a.copy()
    n = len(a)
    order = np.arange(n)
    for k in range(n - 1):
        m = k + np.argmax(np.abs(a[k:, k]))
        if m != k:
            a[[k, m]] = a[[m, k]]
            order[[k, m]] = order[[m, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, order


def cholesky(a):
    n = len(a)
    c = np.zeros_like(a)
    for j in range(n):
        c[j, j] = np.sqrt(a[j, j] - np.sum(c[j, :j] ** 2))
        for i in range(j + 1, n):
            c[i, j] = (a[i, j] - np.sum(c[i, :j] * c[j, :j])) / c[j, j]
    return c


def gram_schmidt(a):
    q = np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j]
        for i in range(j):
            v = v - (q[:, i] @ a[:, j]) * q[:, i]
        q[:, j] = v / np.linalg.norm(v)
    return q


def householder(a):
    r = a.copy()
    n, m = r.shape
    for k in range(min(n - 1, m)):
        v = r[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
    return r


def largest_below(a):
    """Where the largest element below the diagonal is."""
    best, place = -1.0, (0, 0)
    for j in range(a.shape[1] - 1):
        column = np.abs(a[j + 1 :, j])
        i = int(np.argmax(column))
        if column[i] > best:
            best, place = column[i], (j + 1 + i, j)
    return best, place


# -- until convergence -----------------------------------------------------------------------------------------------
def relaxation(u, tolerance):
    u = u.copy()
    iterations = 0
    while True:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        iterations += 1
        if np.max(np.abs(new - u)) < tolerance or iterations == 300:
            return new, iterations
        u = new


def root(f, low, high):
    """Bisection."""
    if f(low) == 0:
        return low
    while high - low > 1e-9:
        middle = (low + high) / 2
        if f(low) * f(middle) <= 0:
            high = middle
        else:
            low = middle
    return low


def roots(a):
    found = np.empty(len(a))
    for i in range(len(a)):
        found[i] = root(lambda t, c=a[i]: t**3 + t - c, -10.0, 10.0)
    return found


def runge_kutta(y, steps, f=lambda t, y: np.sin(t) - 0.5 * y):
    t, h = 0.0, 0.01
    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += h
    return y


def printed_steps(u, until, every):
    """Time steps, every few of which are printed."""
    t, k = 0.0, 0
    while t < until:
        u = u + 0.01 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        t += 0.01
        k += 1
        if k % every == 0:
            print(f"t = {t:.2f}: {u.max():.3f}")
    return u


def training(x, y, epochs):
    """Gradient descent that prints its progress and stops when the loss grows."""
    w = np.zeros(x.shape[1])
    best, history = np.inf, []
    for epoch in range(epochs):
        error = x @ w - y
        loss = np.mean(error**2)
        history.append(loss)
        if epoch % 20 == 0:
            print(f"epoch {epoch}: {loss:.4f}")
        if loss > best:
            print("it gets worse")
            break
        best = loss
        w -= 0.05 * x.T @ error / len(y)
    return w, history


# -- row by row --------------------------------------------------------------------------------------------------------
def first_rise(row, step):
    """Where a row first rises by more than a step; -1 where it does not."""
    higher = np.diff(row) > step
    if not higher.any():
        return -1
    return int(np.argmax(higher))


def first_rises(a):
    return np.array([first_rise(a[i], 1.5) for i in range(len(a))])


def row_medians(a):
    return np.array([np.median(row) for row in a])


def moving_mean(x, width):
    out = np.empty(len(x) - width + 1)
    for i in range(len(out)):
        out[i] = x[i : i + width].mean()
    return out


def spectrum(x, width):
    """Welch's: means over the spectra of windows that overlap by half."""
    window = np.hanning(width)
    power, count = np.zeros(width // 2 + 1), 0
    for start in range(0, len(x) - width + 1, width // 2):
        part = x[start : start + width]
        power += np.abs(np.fft.rfft((part - part.mean()) * window)) ** 2
        count += 1
    return power / count


def distances(points):
    n = len(points)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            d[i, j] = d[j, i] = np.linalg.norm(points[i] - points[j])
    return d


def safe_ratios(a, b):
    out = []
    for x, y in zip(a, b, strict=True):
        try:
            if y == 0:
                raise ZeroDivisionError
            out.append(x / y)
        except ZeroDivisionError:
            out.append(np.nan)
    return np.array(out)


class Smoother:
    """A filter of first order."""

    def __init__(self, rate):
        self.rate, self.level = rate, 0.0

    def step(self, value):
        self.level += self.rate * (value - self.level)
        return self.level


def smoothed(x):
    smoother = Smoother(0.1)
    return np.array([smoother.step(value) for value in x])


# -- whole numbers -----------------------------------------------------------------------------------------------------
def collatz(limit):
    """The longest sequence that begins below a limit."""
    longest, start = 0, 0
    for n in range(1, limit):
        length, k = 1, n
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            length += 1
        if length > longest:
            longest, start = length, n
    return longest, start


def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, np.int64)
    for i in range(len(weights)):
        w = weights[i]
        best[w:] = np.maximum(best[w:], best[:-w] + values[i])
    return best


def common_subsequence(a, b):
    t = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            t[i, j] = t[i - 1, j - 1] + 1 if a[i - 1] == b[j - 1] else max(t[i - 1, j], t[i, j - 1])
    return t[-1, -1]


def automaton(n, rule):
    grid = np.zeros((n // 2, n), np.int64)
    grid[0, n // 2] = 1
    table = np.array([rule >> k & 1 for k in range(8)])
    for i in range(1, len(grid)):
        row = grid[i - 1]
        grid[i] = table[4 * np.roll(row, 1) + 2 * row + np.roll(row, -1)]
    return grid


def peaks(x):
    found = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] > x[i + 1]:
            found.append(i)
    return found


def groups(keys, values):
    """Means of the values with the same key."""
    by_key: dict[int, list[float]] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        by_key.setdefault(key, []).append(value)
    return {key: np.mean(found) for key, found in sorted(by_key.items())}


def dijkstra(lengths):
    n = len(lengths)
    distance = np.full(n, np.inf)
    distance[0] = 0.0
    queue = [(0.0, 0)]
    while queue:
        d, i = heapq.heappop(queue)
        if d > distance[i]:
            continue
        for j in np.flatnonzero(lengths[i] < np.inf):
            there = d + lengths[i, j]
            if there < distance[j]:
                distance[j] = there
                heapq.heappush(queue, (there, int(j)))
    return distance


# -- coordinates and colours -------------------------------------------------------------------------------------------
def tinted(image, shade, tint):
    return np.clip(image * shade[:, :, None] + tint, 0.0, 1.0)


def pulls(points, weights):
    return ((points[None] - points[:, None]) * weights[:, :, None]).sum(axis=1)


# -- objects in loops over elements ------------------------------------------------------------------------------------
class Chain:
    """Masses on springs."""

    stiffness = 2.0

    def __init__(self, x):
        self.x, self.v, self.dt, self.energy = x, np.zeros(len(x)), 0.01, 0.0

    def force(self, i):
        return self.stiffness * (self.x[i - 1] - 2.0 * self.x[i] + self.x[i + 1])

    def step(self):
        for i in range(1, len(self.x) - 1):
            self.v[i] += self.dt * self.force(i)
        for i in range(1, len(self.x) - 1):
            self.x[i] += self.dt * self.v[i]
            self.energy += 0.5 * float(self.v[i]) ** 2


def springs(chain, steps):
    for _ in range(steps):
        chain.step()
    return chain.x, chain.energy


class Rows:
    """A sparse matrix by its rows."""

    def __init__(self, n):
        rng = _rng()
        self.starts = np.arange(0, 8 * n + 1, 8)
        self.columns, self.values = rng.integers(0, n, 8 * n), rng.standard_normal(8 * n)


def sparse_product(rows, x):
    y = np.zeros(len(rows.starts) - 1)
    for i in range(len(y)):
        for k in range(rows.starts[i], rows.starts[i + 1]):
            y[i] += rows.values[k] * x[rows.columns[k]]
    return y


# -- sizes and paths that depend on data -------------------------------------------------------------------------------
def ragged_product(starts, columns, values, x):
    y = np.empty(len(starts) - 1)
    for i in range(len(y)):
        part = columns[starts[i] : starts[i + 1]]
        y[i] = values[starts[i] : starts[i + 1]] @ x[part]
    return y


def segment_means(starts, values):
    means = np.zeros(len(starts) - 1)
    for i in range(len(means)):
        part = values[starts[i] : starts[i + 1]]
        if len(part) > 0:
            means[i] = part.mean()
    return means


def visits(directions, n):
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    seen, x, y = np.zeros((n, n), np.int64), 0, 0
    for direction in directions:
        dx, dy = moves[direction]
        x, y = (x + dx) % n, (y + dy) % n
        seen[x, y] += 1
    return seen


def longest_calm(signal, limit):
    start, best = None, (0, None)
    for i in range(len(signal)):
        if abs(signal[i]) < limit:
            if start is None:
                start = i
            if i - start >= best[0]:
                best = (i - start + 1, start)
        else:
            start = None
    return best


def great_circles(places):
    """Distances in kilometres by the haversine formula."""
    n = len(places)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            up = math.sin((places[i, 0] - places[j, 0]) / 2) ** 2
            along = math.sin((places[i, 1] - places[j, 1]) / 2) ** 2
            chord = up + math.cos(places[i, 0]) * math.cos(places[j, 0]) * along
            found[i, j] = found[j, i] = 12742 * math.atan2(math.sqrt(chord), math.sqrt(1 - chord))
    return found


def state_space(a, inputs):
    x = np.zeros((len(a), inputs.shape[1] + 1))
    for t in range(inputs.shape[1]):
        x[:, t + 1] = a.dot(x[:, t]) + inputs[:, t]
    return x


# -- inputs ------------------------------------------------------------------------------------------------------------
def _rng():
    return np.random.default_rng(5)


def _normal(*shape):
    return _rng().standard_normal(shape)


def _definite(n):
    a = _normal(n, n)
    return (a @ a.T + n * np.eye(n),)


def _edges(n):
    rng = _rng()
    return (np.where(rng.random((n, n)) < 0.2, rng.uniform(1, 10, (n, n)), np.inf),)


def _training(n):
    x = _normal(n, 5)
    return x, x @ np.arange(5.0) + 0.1 * x[:, 0] ** 2, 100


def _starts(n):
    return np.concatenate([[0], np.cumsum(_rng().integers(0, 12, n))])


def _ragged(n):
    starts = _starts(n)
    return starts, _rng().integers(0, n, starts[-1]), _normal(starts[-1]), _normal(n)


def _knapsack(n):
    return _rng().integers(1, 50, n), _rng().integers(1, 100, n), 10 * n


def _program(
    function: Callable[..., Any],
    about: str,
    inputs: Callable[[int], tuple[Any, ...]],
    small: int,
    large: int,
    ulp: float = 8,
) -> Program:
    return Program(function.__name__, about, function, inputs, small, large, ulp)


_TABLE = (
    _program(lu, "elimination with pivots", lambda n: (_normal(n, n),), 12, 120, 2**14),
    _program(cholesky, "by columns", _definite, 12, 80, 64),
    _program(gram_schmidt, "columns made orthogonal", lambda n: (_normal(2 * n, n),), 8, 60, 2**14),
    _program(householder, "reflections", lambda n: (_normal(2 * n, n),), 8, 100, 2**14),
    _program(largest_below, "below the diagonal, argmax", lambda n: (_normal(n, n),), 12, 300),
    _program(relaxation, "stencil until nothing changes", lambda n: (np.eye(n), 1e-5), 8, 60, 64),
    _program(roots, "bisection by a function of a function", lambda n: (3 * _normal(n),), 5, 100),
    _program(runge_kutta, "steps of a function that is given", lambda n: (_normal(n), 500), 5, 200, 64),
    _program(printed_steps, "every hundredth step prints", lambda n: (_normal(n), 10.0, 100), 20, 200, 64),
    _program(training, "prints, and stops early", _training, 40, 1000, 2**14),
    _program(first_rises, "a function with an early return", lambda n: (_normal(n, 30),), 10, 500),
    _program(row_medians, "np.median of each row", lambda n: (_normal(n, 50),), 10, 300),
    _program(moving_mean, "the mean of each window", lambda n: (_normal(n), 20), 60, 5000, 2**10),
    _program(spectrum, "Fourier transforms of windows", lambda n: (_normal(n), 256), 600, 20_000, 64),
    _program(distances, "np.linalg.norm of each pair", lambda n: (_normal(n, 3),), 8, 60),
    _program(safe_ratios, "raises and handles", lambda n: (_normal(n), _normal(n) * (np.arange(n) % 7)), 20, 2000),
    _program(smoothed, "an object with a state", lambda n: (_normal(n),), 20, 5000, 64),
    _program(collatz, "the longest sequence", lambda n: (n,), 20, 2000),
    _program(knapsack, "dynamic programming by rows", _knapsack, 10, 100),
    _program(common_subsequence, "dynamic programming by elements",
             lambda n: (_rng().integers(0, 4, n), _rng().integers(0, 4, n + 3)[::-1]), 10, 200),
    _program(automaton, "rule 30", lambda n: (n, 30), 16, 400),
    _program(peaks, "a list of places", lambda n: (_normal(n),), 30, 10_000),
    _program(groups, "a dict of lists", lambda n: (_rng().integers(0, 20, n), _normal(n)), 50, 10_000, 64),
    _program(dijkstra, "a heap", _edges, 10, 100),
    _program(tinted, "a weight for each pixel, a tint for each colour",
             lambda n: (_rng().random((n, n, 3)), _rng().random((n, n)), _rng().random(3)), 20, 400),
    _program(pulls, "differences of all points, weighted", lambda n: (_normal(n, 3), _normal(n, n)), 20, 300, 2**10),
    _program(springs, "an object with methods", lambda n: (Chain(_normal(n)), 20), 30, 500, 64),
    _program(sparse_product, "an object that holds arrays", lambda n: (Rows(n), _normal(n)), 30, 1000, 64),
    _program(ragged_product, "slices of rows of any length", _ragged, 30, 2000, 2**10),
    _program(segment_means, "means of slices of any length", lambda n: (_starts(n), _normal(12 * n)), 30, 2000),
    _program(visits, "a list of steps to take", lambda n: (_rng().integers(0, 4, n), 50), 40, 10_000),
    _program(longest_calm, "None until something begins", lambda n: (_normal(n), 0.5), 40, 10_000),
    _program(great_circles, "Python's math of each pair", lambda n: (_rng().random((n, 2)),), 10, 100),
    _program(state_space, "a matrix times each column",
             lambda n: (_normal(4, 4) / 4, _normal(4, n)), 40, 10_000, 2**14),
)  # fmt: skip
EVERYDAY = {program.name: program for program in _TABLE}
