"""Differential testing: a function run plainly and compiled must be told apart by nothing.

``check(f, make_args)`` runs ``f`` on fresh arguments in plain Python and compiled, on every backend and under every
stance that compiles, several times over, and compares value, dtype, shape, scalar-or-array, memory order and flags,
exceptions (type and text), warnings, printed output, and what became of the arguments.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tcompile

BACKENDS = ("eager", "aot_eager", "llvm")
STANCES = (
    "default", "force_eager", "eager_on_recompile", "eager_then_compile", "aot_eager_then_compile",
)  # fmt: skip
ULP = 8  # of the result's own dtype, for float results of compiled math and sums


class Run:
    """What one call did."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        self.args = args
        self.value: Any = None
        self.error: BaseException | None = None
        out = io.StringIO()
        # verify: graphs are checked after every pass, and a bug of tcompile's raises instead of running plainly.
        checked = tcompile.config.patch(verify=True)
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out), checked:
            warnings.simplefilter("always")
            try:
                self.value = function(*args)
            except Exception as error:
                self.error = error
        self.printed = out.getvalue()
        self.warned = sorted({(w.category.__name__, str(w.message)) for w in caught})


def assert_same(got: Any, want: Any, where: str = "result", exact: bool = False) -> None:
    """Raises AssertionError where two values can be told apart."""
    assert type(got) is type(want), f"{where}: {type(got)} instead of {type(want)}: {got!r} / {want!r}"
    if isinstance(want, tuple | list):
        assert len(got) == len(want), f"{where}: length {len(got)} instead of {len(want)}"
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            assert_same(a, b, f"{where}[{i}]", exact)
    elif isinstance(want, dict):
        assert list(got) == list(want), f"{where}: keys {list(got)} instead of {list(want)}"
        for key in want:
            assert_same(got[key], want[key], f"{where}[{key!r}]", exact)
    elif isinstance(want, np.ndarray | np.generic):
        assert got.dtype == want.dtype, f"{where}: dtype {got.dtype} instead of {want.dtype}"
        assert got.shape == want.shape, f"{where}: shape {got.shape} instead of {want.shape}"
        if isinstance(want, np.ndarray):
            for flag in ("c_contiguous", "f_contiguous", "writeable", "aligned", "owndata"):
                a, b = getattr(got.flags, flag), getattr(want.flags, flag)
                assert a == b, f"{where}: flag {flag} is {a} instead of {b}"
            if want.size:
                # The stride of an axis of size one is NumPy's own business.
                keep = [i for i, n in enumerate(want.shape) if n != 1]
                a, b = [got.strides[i] for i in keep], [want.strides[i] for i in keep]
                assert a == b, f"{where}: strides {got.strides} instead of {want.strides}"
        _assert_values(np.asarray(got), np.asarray(want), where, exact)
    elif isinstance(want, float) and want != want:
        assert got != got, f"{where}: {got} instead of nan"
    else:
        assert got == want or got is want, f"{where}: {got!r} instead of {want!r}"


def _assert_values(got: np.ndarray, want: np.ndarray, where: str, exact: bool) -> None:
    if want.dtype.kind not in "fc" or exact:
        np.testing.assert_array_equal(got, want, err_msg=where, strict=True)
        return
    assert np.array_equal(np.isnan(got), np.isnan(want)), f"{where}: NaNs at other places: {got} / {want}"
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(want), np.finfo(want.dtype).tiny)
        largest = np.max(scale, initial=0, where=np.isfinite(scale))
        limit = ULP * np.finfo(want.dtype).eps * np.maximum(scale, largest * 1e-3)
        same = (got == want) | np.isnan(want) | (np.abs(got - want) <= limit)
        if want.dtype.kind == "f":
            same &= (got != 0) | (want != 0) | (np.signbit(got) == np.signbit(want))
    assert same.all(), f"{where}: {got[~same][:5]} instead of {want[~same][:5]}"


def assert_same_run(got: Run, want: Run, exact: bool = False) -> None:
    """Raises AssertionError where two runs can be told apart."""
    if want.error is not None:
        assert got.error is not None, f"returned {got.value!r} instead of raising {want.error!r}"
        assert type(got.error) is type(want.error), f"raised {got.error!r} instead of {want.error!r}"
        assert str(got.error) == str(want.error)
    else:
        assert got.error is None, f"raised {got.error!r} instead of returning {want.value!r}"
        assert_same(got.value, want.value, exact=exact)
    assert got.printed == want.printed
    assert got.warned == want.warned, f"warned {got.warned} instead of {want.warned}"
    for i, (a, b) in enumerate(zip(got.args, want.args, strict=True)):
        if isinstance(b, np.ndarray | np.generic | int | float | list | tuple | dict | str | None):
            assert_same(a, b, f"argument {i} after the call", exact=True)
    # A result that is an argument itself must be one for both.
    for i, b in enumerate(want.args):
        if isinstance(b, np.ndarray):
            assert (want.value is b) == (got.value is got.args[i]), f"identity of argument {i} and result"
            if isinstance(want.value, np.ndarray) and isinstance(got.value, np.ndarray):
                shares = np.shares_memory(got.value, got.args[i])
                assert shares == np.shares_memory(want.value, b), f"memory shared with argument {i}"


def check(
    function: Callable[..., Any],
    make_args: Callable[[], Sequence[Any]],
    *,
    backends: Sequence[Any] = BACKENDS,
    stances: Sequence[str] = ("default",),
    calls: int = 2,
    exact: bool = False,
    fullgraph: bool = False,
    **settings: Any,
) -> list[Any]:
    """Compares ``function`` plain and compiled; returns the compiled callables, one a backend."""
    compiled = []
    for backend in backends:
        tcompile.reset()
        made = tcompile.compile(function, backend=backend, fullgraph=fullgraph, **settings)
        for stance in stances:
            for _ in range(calls):
                want = Run(function, make_args())
                with tcompile.set_stance(stance):
                    got = Run(made, make_args())
                try:
                    assert_same_run(got, want, exact)
                except AssertionError as error:
                    raise AssertionError(f"backend {backend}, stance {stance}: {error}") from error
        compiled.append(made)
    return compiled
