"""Call overhead beside NumPy's own: of functions, methods, and four arguments of mixed kinds.

Input: the peers that were loaded.
Output: for each kind of call, µs of the plain function and of the compiled one, on 8 elements; the same of a function
that returns an attribute: the call alone, and of one that is left to plain Python.
Why: on small arrays the call dominates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from benchmarks.peers import Peer, fresh


def shape(x):
    return x.shape


def add(x):
    return x + 1


def relu(x):
    return np.maximum(x + 1, 0) * 2


def mixed(x, scale, shift=0.5, *, other):
    return x * scale + shift * other


def at_rest(x):
    return x + 1


class Layer:
    """A class with a compiled method."""

    def __init__(self, weight: np.ndarray) -> None:
        self.weight = weight

    def plain(self, x):
        return x * self.weight


def measure(peers: Sequence[Peer], rounds: int) -> list[dict[str, Any]]:
    """For each kind of call its µs, NumPy and tcompile in turn; nothing where tcompile is not among the peers."""
    ours = next((peer for peer in peers if peer.name == "tcompile"), None)
    if ours is None:
        return []

    def compiled(function: Callable[..., Any]) -> Any:
        return ours.library.compile(fresh(function), backend=ours.backend)

    x = np.linspace(-1, 1, 8, dtype="float32")
    y = x + 1
    layer = Layer(y)
    Layer.method = compiled(Layer.plain)
    found = []
    pairs: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = []

    def pair(title: str, function: Callable[..., Any], *given: Any, **named: Any) -> None:
        fast = compiled(function)
        pairs.append((title, lambda: function(*given, **named), lambda: fast(*given, **named)))

    pair("nothing: x.shape", shape, x)
    pair("x + 1", add, x)
    pair("np.maximum(x + 1, 0) * 2", relu, x)
    pairs.append(("method: x * self.weight", lambda: layer.plain(x), lambda: layer.method(x)))
    pair("four arguments: x * scale + shift * other", mixed, x, 2.0, 0.25, other=y)
    pair("at rest: objects + 1", at_rest, np.array([1, 2.5, 3], dtype=object))
    for title, plain, fast in pairs:
        for run in (plain, fast):
            _batch(run, 200)
        times = [[_batch(run, 1000) for run in (plain, fast)] for _ in range(rounds)]
        numpy_us, ours_us = (float(np.median(column)) for column in zip(*times, strict=True))
        found.append({"title": title, "numpy_us": numpy_us, "tcompile_us": ours_us})
    return found


def _batch(run: Callable[[], Any], calls: int) -> float:
    """µs of a call; a loop around a lambda costs both the same."""
    start = time.perf_counter()
    for _ in repeat(None, calls):
        run()
    return (time.perf_counter() - start) / calls * 1e6
