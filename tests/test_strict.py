"""What is tried out while compiling leaves warnings as they are: of other threads, and those that were shown."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import tcompile
from tcompile.strict import silent, strict


def in_a_thread(function):
    found = []

    def run():
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def warned():
    warnings.warn("a word", UserWarning, stacklevel=1)
    return "was warned"


@pytest.mark.filterwarnings("ignore")
def test_warnings_raise_in_this_thread_alone():
    with strict():
        with pytest.raises(UserWarning):
            warnings.warn("a word", UserWarning, stacklevel=1)
        assert in_a_thread(warned) == "was warned"
        with silent():
            warnings.warn("a word", UserWarning, stacklevel=1)
        with pytest.raises(RuntimeWarning):
            warnings.warn("a word", RuntimeWarning, stacklevel=1)
        with pytest.raises(FloatingPointError):
            np.ones(1) / np.zeros(1)


@pytest.mark.parametrize("kth", range(1, 7))
def test_an_interrupt_in_a_context_leaves_nothing(kth, monkeypatch):
    """One that comes when NumPy's error state has been set, and before the block begins whose end sets it back."""
    count, enter = iter(range(1, 1000)), np.errstate.__enter__

    def interrupted(self):
        enter(self)
        if next(count) == kth:
            raise KeyboardInterrupt

    f = tcompile.compile(lambda x: np.clip(x, 0, 2).sum(axis=(0,)) + np.arange(3.0).astype("f4") * np.float32(2))
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        filters, state = warnings.filters, np.geterr()
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(np.errstate, "__enter__", interrupted)
            f(np.ones((4, 3)))
        assert np.geterr() == state and warnings.filters is filters
        assert warned() == "was warned" and len(shown) == 1
        np.testing.assert_array_equal(f(np.ones((4, 3))), [4.0, 6.0, 8.0])


def test_filters_are_as_they_were():
    with warnings.catch_warnings():
        before, entries = warnings.filters, list(warnings.filters)
        with strict(), strict("ignore"):
            assert list(warnings.filters[2:]) == entries
        assert warnings.filters is before and list(before) == entries
        with strict():
            in_a_thread(lambda: warnings.simplefilter("always", BytesWarning))
        assert warnings.filters is before
        assert len(before) == len(entries) + 1 and before[0][0] == "always"


def test_other_filters_that_are_put_in_place_stay():
    with warnings.catch_warnings():
        with strict():
            warnings.filters = [("ignore", None, UserWarning, None, 0)]
        assert warnings.filters == [("ignore", None, UserWarning, None, 0)]
        with strict(), pytest.raises(UserWarning):
            warnings.warn("a word", UserWarning, stacklevel=1)


@pytest.mark.parametrize("action", ["default", "module", "once"])
def test_compiling_shows_no_warning_again(action):
    def function(x):
        y = 1 / x
        return f"{y.max():.2f}", y * np.float64(3) * np.arange(2.0)

    counts = []
    for called in (function, tcompile.compile(function)):
        with np.errstate(all="warn"), warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter(action)
            for dtype in ("f8", "f4", "f2"):
                for _ in range(2):
                    called(np.array([1, 0], dtype))
        counts.append(len(shown))
    assert counts == [1, 1]


def test_compiling_makes_no_errors_of_other_threads_warnings():
    done, raised = threading.Event(), []

    def divides():
        zeros = np.zeros(3)
        while not done.is_set():
            try:
                1 / zeros
            except RuntimeWarning as error:
                raised.append(error)

    def function(x):
        return f"{x:.3f} {x!r}", np.round(np.float64(0.3), 1) * np.ones(3).sum() * np.arange(5.0)[:4]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=divides)
        thread.start()
        for _ in range(12):
            tcompile.compile(function)(np.float64(2))
            tcompile.reset()
        done.set()
        thread.join()
    assert not raised
