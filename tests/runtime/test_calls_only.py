"""A function that is NumPy's own routines alone runs plainly after its guards: capturing it would gain nothing."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile

CALLS = [
    lambda x: np.sort(x)[1:], lambda x: (np.concatenate([x, x]), 3, {"a": x.shape}),
    lambda x: np.fft.rfft(x, n=4), lambda x: np.convolve(x, x), lambda x: np.argsort(x)[::-1],
]  # fmt: skip


@pytest.mark.parametrize("function", CALLS)
def test_calls_alone_run_plainly(function):
    (*_, compiled) = check(function, lambda: (np.array([3.0, 1.0, 2.0]),), calls=3, exact=True)
    (entry,) = compiled.entries
    assert entry.graph is not None and entry.graph.nodes  # reports still show what was found
    assert entry.captured.graph is None
    assert entry.hits >= 2


def test_a_kernel_beside_the_call_is_kept():
    (*_, compiled) = check(lambda x: np.sort(x) + 1, lambda: (np.array([3.0, 1.0, 2.0]),))
    assert compiled.entries[0].captured.graph is not None


def test_what_the_user_replaced_stays_replaced():
    def slow(x):
        raise AssertionError("never called while compiled")

    @tcompile.substitute_in_graph(slow)
    def fast(x):
        return np.sort(x)

    def asks(x):
        return np.sort(x) if tcompile.is_compiling() else None

    x = np.array([3.0, 1.0])
    for function in (lambda x: slow(x), asks):
        compiled = tcompile.compile(function)
        for _ in range(3):
            assert compiled(x).tolist() == [1.0, 3.0]


def test_new_sizes_and_dtypes_are_new_entries():
    compiled = tcompile.compile(lambda x: x.argmax())
    for x in (np.arange(3.0), np.arange(4.0), np.arange(5.0), np.arange(5), np.zeros((2, 2)), np.arange(3.0)):
        assert compiled(x) == x.argmax()
        assert type(compiled(x)) is np.int64
    with pytest.raises(ValueError, match="empty"):
        compiled(np.zeros(0))
