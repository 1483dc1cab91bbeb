"""Whole programs in plain NumPy, as scientists write them: nothing is shaped for a compiler.

Input: nothing.
Output: ``PROGRAMS``, a table of name, function and inputs by size.
Why: ``tests/test_programs.py`` compares each, compiled on every backend, with plain Python at the small size;
``benchmarks/against_numpy.py`` times each at the large one.

Inputs are made anew for each run, since programs may write to their arguments or draw from a generator among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Program:
    """One program. ``function(*inputs(size))`` runs it; arrays differ from NumPy's by at most ``ulp`` units in the last
    place of each array's typical magnitude: 8 without iterations, more where steps accumulate errors.
    """

    name: str
    about: str
    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    small: int
    large: int
    ulp: float = 8


# -- physics -----------------------------------------------------------------------------------------------------------
def nbody(position, velocity, mass, steps):
    dt, softening = 0.01, 0.05
    for _ in range(steps):
        apart = position[None, :, :] - position[:, None, :]
        squared = (apart**2).sum(axis=2) + softening**2
        pull = (apart * (mass / (squared * np.sqrt(squared)))[:, :, None]).sum(axis=1)
        velocity = velocity + dt * pull
        position = position + dt * velocity
    kinetic = 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))
    return position, velocity, kinetic


def _nbody(n):
    rng = np.random.default_rng(1)
    return rng.standard_normal((n, 3)), 0.1 * rng.standard_normal((n, 3)), rng.uniform(0.5, 1.5, n) / n, 5


def heat(start, steps):
    u = start.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.2 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )  # fmt: skip
    return u


def _heat(n):
    u = np.zeros((n, n))
    u[n // 4 : n // 2, n // 4 : n // 2] = 100.0
    return u, 20


def wave(u, speed, steps):
    previous, courant = u, (speed * 0.4) ** 2
    for _ in range(steps):
        around = np.roll(u, 1, axis=0) + np.roll(u, -1, axis=0) + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1)
        u, previous = 2 * u - previous + courant * (around - 4 * u), u
    return u, np.abs(u).max()


def _wave(n):
    x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    return np.exp(-40 * (x**2 + y**2)), np.where(x > 0.2, 0.6, 1.0), 10


def cavity(n, steps, sweeps):
    """Flow in a square box under a moving lid: explicit momentum, Jacobi sweeps for the pressure."""
    h, dt, density, viscosity = 2 / (n - 1), 0.0005, 1.0, 0.1
    u, v, p = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    source = np.zeros((n, n))
    for _ in range(steps):
        du = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * h)
        dv = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
        cross = (u[2:, 1:-1] - u[:-2, 1:-1]) * (v[1:-1, 2:] - v[1:-1, :-2]) / (4 * h * h)
        source[1:-1, 1:-1] = density * ((du + dv) / dt - du**2 - 2 * cross - dv**2)
        for _ in range(sweeps):
            old = p.copy()
            p[1:-1, 1:-1] = (
                old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - h * h * source[1:-1, 1:-1]
            ) / 4
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        a, b = u.copy(), v.copy()
        u[1:-1, 1:-1] = (
            a[1:-1, 1:-1]
            - a[1:-1, 1:-1] * dt / h * (a[1:-1, 1:-1] - a[1:-1, :-2])
            - b[1:-1, 1:-1] * dt / h * (a[1:-1, 1:-1] - a[:-2, 1:-1])
            - dt / (2 * density * h) * (p[1:-1, 2:] - p[1:-1, :-2])
            + viscosity * dt / h**2 * (a[1:-1, 2:] + a[1:-1, :-2] + a[2:, 1:-1] + a[:-2, 1:-1] - 4 * a[1:-1, 1:-1])
        )
        v[1:-1, 1:-1] = (
            b[1:-1, 1:-1]
            - a[1:-1, 1:-1] * dt / h * (b[1:-1, 1:-1] - b[1:-1, :-2])
            - b[1:-1, 1:-1] * dt / h * (b[1:-1, 1:-1] - b[:-2, 1:-1])
            - dt / (2 * density * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + viscosity * dt / h**2 * (b[1:-1, 2:] + b[1:-1, :-2] + b[2:, 1:-1] + b[:-2, 1:-1] - 4 * b[1:-1, 1:-1])
        )
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
    return u, v, p


# -- fractals and cellular automata ------------------------------------------------------------------------------------
def mandelbrot(c, limit):
    z = np.zeros_like(c)
    count = np.zeros(c.shape, dtype=np.int32)
    for _ in range(limit):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        count[inside] += 1
    return count


def _mandelbrot(n):
    x, y = np.meshgrid(np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n))
    return x + 1j * y, 30


def julia(x, y, limit):
    """The same with two real arrays, and without masked indexing."""
    count = np.zeros(x.shape, dtype=np.int32)
    for _ in range(limit):
        inside = x * x + y * y <= 4.0
        x, y = np.where(inside, x * x - y * y - 0.8, x), np.where(inside, 2 * x * y + 0.156, y)
        count += inside
    return count


def _julia(n):
    return *np.meshgrid(np.linspace(-1.6, 1.6, n), np.linspace(-1.2, 1.2, n)), 30


def life(board, steps):
    for _ in range(steps):
        neighbours = sum(
            np.roll(np.roll(board, i, axis=0), j, axis=1)
            for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )  # fmt: skip
        board = ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(board.dtype)
    return board


def _life(n):
    return (np.random.default_rng(2).random((n, n)) < 0.3).astype(np.uint8), 5


# -- learning ----------------------------------------------------------------------------------------------------------
def kmeans(points, centres, rounds):
    for _ in range(rounds):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        label = distance.argmin(axis=1)
        centres = np.array([points[label == k].mean(axis=0) for k in range(len(centres))])
    return centres, label


def _kmeans(n):
    rng = np.random.default_rng(3)
    middles = 6 * np.arange(8)[:, None] * np.array([1.0, -1, 0.5, 2])
    points = middles[np.arange(n) % 8] + rng.standard_normal((n, 4))
    return points, points[:8].copy(), 5


def pca(data, count):
    centred = data - data.mean(axis=0)
    scaled = centred / centred.std(axis=0, ddof=1)
    values, vectors = np.linalg.eigh(scaled.T @ scaled / (len(data) - 1))
    order = np.argsort(values)[::-1][:count]
    return np.abs(scaled @ vectors[:, order]), values[order] / values.sum()


def _pca(n):
    rng = np.random.default_rng(4)
    return rng.standard_normal((n, 16)) * np.arange(1, 17) + rng.standard_normal((n, 1)) * np.arange(16), 4


def logistic(features, wanted, rounds):
    weights, bias = np.zeros(features.shape[1]), 0.0
    for _ in range(rounds):
        guess = 1 / (1 + np.exp(-(features @ weights + bias)))
        wrong = guess - wanted
        weights = weights - 0.1 * (features.T @ wrong / len(wanted) + 1e-3 * weights)
        bias = bias - 0.1 * wrong.mean()
    safe = np.clip(guess, 1e-12, 1 - 1e-12)
    return weights, -np.mean(wanted * np.log(safe) + (1 - wanted) * np.log(1 - safe))


def _logistic(n):
    rng = np.random.default_rng(5)
    features = rng.standard_normal((n, 8))
    return features, (features @ np.linspace(-1, 1, 8) + 0.3 * rng.standard_normal(n) > 0).astype(float), 10


def attention(q, k, v):
    """Causal softmax attention of one head in float32."""
    scores = q @ k.T / np.sqrt(np.float32(q.shape[1]))
    scores = np.where(np.tril(np.ones(scores.shape, dtype=bool)), scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ v


def _attention(n):
    rng = np.random.default_rng(6)
    return tuple(rng.standard_normal((n, 64), dtype=np.float32) for _ in range(3))


def mlp(x, wanted, w1, b1, w2, b2, rounds):
    """Two layers, tanh-GELU, softmax cross entropy, gradients by hand, plain gradient descent."""
    a = np.float32(0.7978845608)
    for _ in range(rounds):
        h = x @ w1 + b1
        t = np.tanh(a * (h + np.float32(0.044715) * h**3))
        act = 0.5 * h * (1 + t)
        logits = act @ w2 + b2
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        loss = -np.log(p[np.arange(len(x)), wanted]).mean()
        d = p.copy()
        d[np.arange(len(x)), wanted] -= 1
        d /= len(x)
        inner = a * (1 + np.float32(3 * 0.044715) * h**2)
        back = (d @ w2.T) * (0.5 * (1 + t) + 0.5 * h * (1 - t**2) * inner)
        w2, b2 = w2 - 0.5 * (act.T @ d), b2 - 0.5 * d.sum(axis=0)
        w1, b1 = w1 - 0.5 * (x.T @ back), b1 - 0.5 * back.sum(axis=0)
    return w1, b1, w2, b2, loss


def _mlp(n):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((n, 32), dtype=np.float32)
    w1, w2 = (rng.standard_normal(s, dtype=np.float32) / np.float32(8) for s in ((32, 128), (128, 10)))
    return x, rng.integers(0, 10, n), w1, np.zeros(128, np.float32), w2, np.zeros(10, np.float32), 3


def spectral(points, rounds):
    """Spectral clustering into two: affinities, normalised Laplacian, the second eigenvector's sign, then k-means."""
    squared = (points**2).sum(axis=1)
    distance = np.maximum(squared[:, None] + squared[None, :] - 2 * points @ points.T, 0)
    affinity = np.exp(-distance / 0.5)
    np.fill_diagonal(affinity, 0)
    scale = 1 / np.sqrt(affinity.sum(axis=1))
    values, vectors = np.linalg.eigh(np.eye(len(points)) - scale[:, None] * affinity * scale[None, :])
    rows = vectors[:, :2] / np.linalg.norm(vectors[:, :2], axis=1, keepdims=True)
    centres = rows[[0, -1]]
    for _ in range(rounds):
        label = np.linalg.norm(rows[:, None] - centres[None], axis=2).argmin(axis=1)
        centres = np.stack([rows[label == k].mean(axis=0) for k in (0, 1)])
    return label, values[:4].round(6) + 0.0


def _spectral(n):
    rng = np.random.default_rng(8)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = np.where(np.arange(n) < n // 2, 0.5, 3.0) + 0.05 * rng.standard_normal(n)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), 3


# -- finance -----------------------------------------------------------------------------------------------------------
def normal_cdf(x):
    """Abramowitz and Stegun 26.2.17, as price sheets do it."""
    k = 1 / (1 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * poly
    return np.where(x >= 0, 1 - tail, tail)


def black_scholes(spot, strike, time, rate, volatility):
    root = volatility * np.sqrt(time)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / root
    d2 = d1 - root
    discounted = strike * np.exp(-rate * time)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    return call, call - spot + discounted


def _black_scholes(n):
    rng = np.random.default_rng(9)
    return rng.uniform(80, 120, n), rng.uniform(80, 120, n), rng.uniform(0.1, 2, n), 0.03, 0.2


def monte_carlo(rng, paths, steps):
    """An Asian call: the mean of simulated paths, from a generator that continues its stream."""
    dt = 1 / steps
    spot, total = np.full(paths, 100.0), np.zeros(paths)
    for _ in range(steps):
        spot = spot * np.exp((0.03 - 0.5 * 0.2**2) * dt + 0.2 * np.sqrt(dt) * rng.standard_normal(paths))
        total += spot
    payoff = np.exp(-0.03) * np.maximum(total / steps - 100, 0)
    return payoff.mean(), payoff.std(ddof=1) / np.sqrt(paths)


# -- images and signals ------------------------------------------------------------------------------------------------
def blur(image, kernel):
    """Convolution with a small kernel, edges repeated."""
    r = kernel.shape[0] // 2
    padded = np.pad(image, r, mode="edge")
    rows, columns = image.shape
    out = np.zeros_like(image)
    for i in range(kernel.shape[0]):
        for j in range(kernel.shape[1]):
            out += kernel[i, j] * padded[i : i + rows, j : j + columns]
    return out


def sobel(image):
    p = np.pad(image, 1, mode="edge")
    gx = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    gy = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    strength = np.hypot(gx, gy)
    return strength / strength.max(), np.arctan2(gy, gx)


def bilateral(image, radius, across, tone):
    padded = np.pad(image, radius, mode="edge")
    rows, columns = image.shape
    total, weights = np.zeros_like(image), np.zeros_like(image)
    for i in range(-radius, radius + 1):
        for j in range(-radius, radius + 1):
            shifted = padded[radius + i : radius + i + rows, radius + j : radius + j + columns]
            near = np.exp(-(i * i + j * j) / (2 * across**2))
            weight = near * np.exp(-((shifted - image) ** 2) / (2 * tone**2))
            total += weight * shifted
            weights += weight
    return total / weights


def equalise(image):
    """Histogram equalisation of an 8 bit image."""
    counts = np.bincount(image.ravel(), minlength=256)
    share = counts.cumsum()
    first = share[share > 0][0]
    table = np.round((share - first) / (share[-1] - first) * 255).astype(np.uint8)
    return table[image]


def _image(n):
    x, y = np.meshgrid(np.linspace(0, 6, n), np.linspace(0, 6, n))
    return np.sin(x) * np.cos(y) + 0.1 * np.random.default_rng(10).standard_normal((n, n))


def _picture(n):
    image = _image(n)
    return (((image - image.min()) / (image.max() - image.min())) ** 2 * 255).astype(np.uint8)


def _bell(n):
    line = np.exp(-(np.arange(-2.0, 3) ** 2) / 2)
    return np.outer(line, line) / line.sum() ** 2


def fft_filter(image, cutoff):
    spectrum = np.fft.fft2(image)
    fy, fx = np.meshgrid(np.fft.fftfreq(image.shape[0]), np.fft.fftfreq(image.shape[1]), indexing="ij")
    gain = np.exp(-(fx**2 + fy**2) / (2 * cutoff**2))
    smooth = np.fft.ifft2(spectrum * gain).real
    return smooth, image - smooth


def kalman(measured, q, r):
    """Position and velocity of one body from noisy positions."""
    f, h = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    noise = q * np.array([[0.1**4 / 4, 0.1**3 / 2], [0.1**3 / 2, 0.1**2]])
    x, p = np.zeros(2), np.eye(2)
    track = np.empty((len(measured), 2))
    for i in range(len(measured)):
        x, p = f @ x, f @ p @ f.T + noise
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x = x + gain @ (measured[i] - h @ x)
        p = (np.eye(2) - gain @ h) @ p
        track[i] = x
    return track, p


def _kalman(n):
    t = 0.1 * np.arange(n)
    return np.sin(t)[:, None] + 0.1 * np.random.default_rng(11).standard_normal((n, 1)), 1.0, np.array([[0.01]])


# -- graphs ------------------------------------------------------------------------------------------------------------
def floyd_warshall(distance):
    for k in range(distance.shape[0]):
        distance = np.minimum(distance, distance[:, k, None] + distance[None, k, :])
    return distance


def _floyd_warshall(n):
    rng = np.random.default_rng(12)
    distance = np.where(rng.random((n, n)) < 0.2, rng.uniform(1, 10, (n, n)), np.inf)
    np.fill_diagonal(distance, 0)
    return (distance,)


_TABLE = (
    Program("nbody", "pairwise gravity", nbody, _nbody, 12, 300, 64),
    Program("heat", "5-point stencil in place", heat, _heat, 16, 700, 64),
    Program("wave", "leapfrog, periodic by roll", wave, _wave, 16, 500, 64),
    Program("cavity", "Navier-Stokes in a lid-driven box", cavity, lambda n: (n, 4, 20), 12, 160, 512),
    Program("mandelbrot", "z[m] = z[m]**2 + c[m]", mandelbrot, _mandelbrot, 16, 250),
    Program("julia", "where instead of masks", julia, _julia, 16, 500),
    Program("life", "Game of Life by roll", life, _life, 16, 700),
    Program("kmeans", "distances, argmin, masked means", kmeans, _kmeans, 64, 20_000, 64),
    Program("pca", "standardise, eigh, project", pca, _pca, 40, 40_000, 2**14),
    Program("logistic", "regression by gradient descent", logistic, _logistic, 50, 50_000, 64),
    Program("attention", "causal softmax attention, float32", attention, _attention, 16, 700, 64),
    Program("mlp", "forward and backward by hand, float32", mlp, _mlp, 16, 2_000, 256),
    Program("spectral", "spectral clustering", spectral, _spectral, 40, 250, 64),
    Program("black_scholes", "calls and puts", black_scholes, _black_scholes, 50, 500_000, 4096),
    Program("monte_carlo", "Asian option", monte_carlo, lambda n: (np.random.default_rng(0), n, 16), 50, 100_000, 64),
    Program("blur", "5 x 5 convolution", blur, lambda n: (_image(n), _bell(n)), 16, 600, 64),
    Program("sobel", "gradient and its direction", sobel, lambda n: (_image(n),), 16, 700),
    Program("bilateral", "edge-preserving smoothing", bilateral, lambda n: (_image(n), 2, 1.5, 0.2), 16, 300, 64),
    Program("equalise", "histogram equalisation, 8 bit", equalise, lambda n: (_picture(n),), 16, 1500),
    Program("fft_filter", "low pass in frequency space", fft_filter, lambda n: (_image(n), 0.1), 16, 512, 64),
    Program("kalman", "tracking with 2 x 2 matrices", kalman, _kalman, 20, 1_000, 64),
    Program("floyd_warshall", "all shortest paths", floyd_warshall, _floyd_warshall, 12, 250),
)  # fmt: skip
PROGRAMS = {program.name: program for program in _TABLE}
