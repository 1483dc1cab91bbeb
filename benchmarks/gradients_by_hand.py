"""The gradients of ``benchmarks.gradients``, written by hand in NumPy.

Input: the arguments of the function.
Output: its gradient by the arguments that the benchmark differentiates.
Why: the derivative of a program should cost no more than what its author would have written. Compiled by tcompile,
these say how close it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def logistic(w: Array, x: Array, y: Array) -> Array:
    sign = 2 * y - 1
    return x.T @ (-sign / (1 + np.exp(sign * (x @ w))) / len(y))


def mlp(w1: Array, w2: Array, x: Array, y: Array) -> Array:
    hidden = x @ w1
    active = np.maximum(hidden, 0)
    out = active @ w2
    p = np.exp(out - np.max(out, axis=1, keepdims=True))
    d_out = (p / np.sum(p, axis=1, keepdims=True) - y) / len(x)
    return x.T @ np.where(hidden > 0, d_out @ w2.T, 0.0), active.T @ d_out


def pairwise(p: Array) -> Array:
    k = np.exp(-np.sum((p[:, None] - p[None]) ** 2, axis=2))
    return -4 * (p * np.sum(k, axis=1)[:, None] - k @ p)


def rosenbrock(x: Array) -> Array:
    g = np.zeros(len(x))
    apart = x[1:] - x[:-1] ** 2
    g[:-1] = -400 * x[:-1] * apart - 2 * (1 - x[:-1])
    g[1:] += 200 * apart
    return g


def option_price(spot: Array, strike: Array, rate: Array, volatility: Array) -> Array:
    def normal(z: Array) -> tuple[Array, Array]:
        t = np.tanh(0.7978845608 * (z + 0.044715 * z**3))
        return 0.5 * (1 + t), 0.5 * (1 - t * t) * 0.7978845608 * (1 + 3 * 0.044715 * z * z)

    gain = np.log(spot / strike) + rate
    d1 = gain / volatility + volatility / 2
    (n1, slope1), (n2, slope2) = normal(d1), normal(d1 - volatility)
    paid = strike * np.exp(-rate)
    moved = spot * slope1 - paid * slope2  # by both d1 and d2
    by_spot = n1 + moved / (spot * volatility)
    by_strike = -np.sum(moved) / (strike * volatility) - np.exp(-rate) * np.sum(n2)
    by_rate = np.sum(moved) / volatility + paid * np.sum(n2)
    by_volatility = np.sum(moved * (0.5 - gain / volatility**2) + paid * slope2)
    return by_spot, by_strike, by_rate, by_volatility


def heat(start: Array, steps: int) -> Array:
    u = start.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    g = 2 * u
    around = np.zeros((u.shape[0] + 2, u.shape[1] + 2))
    for _ in range(steps):
        around[2:-2, 2:-2] = 0.1 * g[1:-1, 1:-1]
        centre = around[1:-1, 1:-1]
        g += around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2] - 4 * centre
    return g


def fisher(start: Array, steps: int) -> Array:
    u = start.copy()
    states = np.empty((steps, *start.shape))
    for t in range(steps):
        states[t] = u
        c = u[1:-1, 1:-1]
        diffused = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * c
        u[1:-1, 1:-1] = c + 0.1 * diffused + 0.01 * c * (1 - c)
    g = 2 * u
    around = np.zeros((u.shape[0] + 2, u.shape[1] + 2))
    for t in range(steps - 1, -1, -1):
        inner = g[1:-1, 1:-1]
        around[2:-2, 2:-2] = 0.1 * inner
        inner += 0.01 * inner * (1 - 2 * states[t, 1:-1, 1:-1])
        centre = around[1:-1, 1:-1]
        g += around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2] - 4 * centre
    return g


def mixture(logits: Array, means: Array, factors: Array, x: Array) -> Array:
    scales = np.exp(np.diagonal(factors, axis1=1, axis2=2))
    lower = np.tril(factors, -1) + np.eye(x.shape[1]) * scales[:, None, :]
    apart = x[:, None, :] - means
    z = np.einsum("kij,nkj->nki", lower, apart)
    each = logits + np.sum(np.log(scales), axis=1) - 0.5 * np.sum(z * z, axis=2)
    share = np.exp(each - np.max(each, axis=1, keepdims=True))
    share = share / np.sum(share, axis=1, keepdims=True)
    total = np.sum(share, axis=0)
    d_z = -share[:, :, None] * z
    d_lower = np.einsum("nki,nkj->kij", d_z, apart)
    d_diagonal = np.diagonal(d_lower, axis1=1, axis2=2) * scales + total[:, None]
    d_factors = np.tril(d_lower, -1) + np.eye(x.shape[1]) * d_diagonal[:, None, :]
    weights = np.exp(logits)
    return total - len(x) * weights / np.sum(weights), -np.einsum("kij,nki->kj", lower, d_z), d_factors


def attention(q: Array, k: Array, v: Array, w: Array) -> Array:
    scale = np.float32(0.125)
    scores = q @ np.swapaxes(k, 1, 2) * scale
    weights = np.exp(scores - np.max(scores, axis=2, keepdims=True))
    weights = weights / np.sum(weights, axis=2, keepdims=True)
    d_weights = w @ np.swapaxes(v, 1, 2)
    d_scores = weights * (d_weights - np.sum(d_weights * weights, axis=2, keepdims=True)) * scale
    return d_scores @ k, np.swapaxes(d_scores, 1, 2) @ q, np.swapaxes(weights, 1, 2) @ w


def rnn(u: Array, w: Array, b: Array, x: Array) -> Array:
    steps, batch, _ = x.shape
    states = np.zeros((steps + 1, batch, w.shape[0]))
    for t in range(steps):
        states[t + 1] = np.tanh(x[t] @ u + states[t] @ w + b)
    d_u, d_w, d_b = np.zeros(u.shape), np.zeros(w.shape), np.zeros(b.shape)
    d_h = 2 * states[steps]
    for t in range(steps - 1, -1, -1):
        d_z = d_h * (1 - states[t + 1] ** 2)
        d_u += x[t].T @ d_z
        d_w += states[t].T @ d_z
        d_b += np.sum(d_z, axis=0)
        d_h = d_z @ w.T
    return d_u, d_w, d_b


def garch(p: Array, e: Array) -> Array:
    n = len(e)
    h = np.empty(n)
    h[0] = 1.0
    for t in range(1, n):
        h[t] = p[0] + p[1] * e[t - 1] ** 2 + p[2] * h[t - 1]
    d_h = 1 / h - e * e / (h * h)
    g0 = g1 = g2 = carried = 0.0
    for t in range(n - 1, 0, -1):
        carried = carried * p[2] + d_h[t]
        g0 += carried
        g1 += carried * e[t - 1] ** 2
        g2 += carried * h[t - 1]
    return np.array([g0, g1, g2])


BY_HAND: dict[str, Callable[..., Array]] = {
    made.__name__: made
    for made in (logistic, mlp, pairwise, rosenbrock, option_price, heat, fisher, mixture, attention, rnn, garch)
}

__all__ = ["BY_HAND"]
