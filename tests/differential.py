"""Differential testing: plain and compiled runs of a function must not differ in anything observable.

Input: ``check(f, make_args)``.
Output: an assertion error at a difference.
Why: a compiled function must replace the plain one anywhere.

``check`` runs ``f`` on fresh arguments in plain Python and compiled, on every backend and under every stance that
compiles, several times. It compares value, dtype, shape, scalar-or-array, memory order and flags, exceptions (type and
text), warnings, printed output, and the arguments afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import re
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tcompile

BACKENDS: tuple[str, ...] = ("eager", "aot_eager", "llvm")
ON_TRITON = os.environ.get("TCOMPILE_TEST_TRITON")  # `make test-triton`; "gpu": on a real one
if ON_TRITON:
    BACKENDS = (*BACKENDS, "triton")
STANCES = (
    "default", "force_eager", "eager_on_recompile", "eager_then_compile", "aot_eager_then_compile",
)  # fmt: skip
ULP = 8  # of the result's own dtype, for float results of compiled math and sums


class Run:
    """What one call did."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], interpret: bool = ON_TRITON != "gpu") -> None:
        self.args = args
        self.value: Any = None
        self.error: BaseException | None = None
        out = io.StringIO()
        # verify: graphs are checked after every pass, and a bug of tcompile's raises instead of running plainly.
        # Kernels for GPUs run in Triton's interpreter, so that no GPU is needed.
        checked = tcompile.config.patch(verify=True, triton_interpret=interpret)
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out), checked:
            warnings.simplefilter("always")
            try:
                self.value = function(*args)
            except Exception as error:
                self.error = error
        self.printed = out.getvalue()
        told = {(w.category.__name__, str(w.message)) for w in caught}
        self.warned = sorted(warning for warning in told if "config.recompile_limit" not in warning[1])


def assert_same(got: Any, want: Any, where: str = "result", exact: bool = False, ulp: float = ULP) -> None:
    """Raises AssertionError where two values can be told apart; floats by more than ``ulp`` units, or at all."""
    assert type(got) is type(want), f"{where}: {type(got)} instead of {type(want)}: {got!r} / {want!r}"
    if isinstance(want, tuple | list):
        assert len(got) == len(want), f"{where}: length {len(got)} instead of {len(want)}"
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            assert_same(a, b, f"{where}[{i}]", exact, ulp)
    elif isinstance(want, dict):
        assert list(got) == list(want), f"{where}: keys {list(got)} instead of {list(want)}"
        for key in want:
            assert_same(got[key], want[key], f"{where}[{key!r}]", exact, ulp)
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
        _assert_values(np.asarray(got), np.asarray(want), where, exact, ulp)
    elif isinstance(want, float) and want != want:
        assert got != got, f"{where}: {got} instead of nan"
    else:
        assert got == want or got is want, f"{where}: {got!r} instead of {want!r}"


def _assert_values(got: np.ndarray, want: np.ndarray, where: str, exact: bool, ulp: float = ULP) -> None:
    if want.dtype.kind not in "fc" or exact:
        np.testing.assert_array_equal(got, want, err_msg=where, strict=True)
        return
    assert np.array_equal(np.isnan(got), np.isnan(want)), f"{where}: NaNs at other places: {got} / {want}"
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(want), np.finfo(want.dtype).tiny)
        largest = np.max(scale, initial=0, where=np.isfinite(scale))
        limit = ulp * np.finfo(want.dtype).eps * np.maximum(scale, largest * 1e-3)
        same = (got == want) | np.isnan(want) | (np.abs(got - want) <= limit)
        if want.dtype.kind == "f":
            same &= (got != 0) | (want != 0) | (np.signbit(got) == np.signbit(want))
    assert same.all(), f"{where}: {got[~same][:5]} instead of {want[~same][:5]}"


def assert_same_run(got: Run, want: Run, exact: bool = False, ulp: float = ULP) -> None:
    """Raises AssertionError where two runs can be told apart."""
    if want.error is not None:
        assert got.error is not None, f"returned {got.value!r} instead of raising {want.error!r}"
        assert type(got.error) is type(want.error), f"raised {got.error!r} instead of {want.error!r}"
        assert str(got.error) == str(want.error)
    else:
        assert got.error is None, f"raised {got.error!r} instead of returning {want.value!r}"
        assert_same(got.value, want.value, exact=exact, ulp=ulp)
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
    ulp: float = ULP,
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
                # A call inside of a block of set_stance is Python's, the default stance outside of one machine code's.
                block = contextlib.nullcontext() if stance == "default" else tcompile.set_stance(stance)
                with block:
                    got = Run(made, make_args())
                try:
                    assert_same_run(got, want, exact, ulp)
                except AssertionError as error:
                    raise AssertionError(f"backend {backend}, stance {stance}: {error}") from error
        compiled.append(made)
    return compiled


# -- whole states ------------------------------------------------------------------------------------------------------
# What a program can reach after a call, as a flat list of rows. Two runs of a program in two namespaces give equal
# lists, although their classes and functions are not the same objects.

_ATOMS = (int, float, complex, bool, str, bytes, type(None), type(...), range, np.dtype)
_ITERATORS = (
    map, zip, enumerate, filter, itertools.chain, types.GeneratorType,
    *(type(iter(value)) for value in ([], (), {}, {}.items(), {}.values(), range(0), "")), type(reversed([])),
)  # fmt: skip


_ADDRESS = re.compile(" at 0x[0-9a-f]+")


class Picture:
    """The rows of everything reachable from ``value``: types, contents, and which mutable objects are one object.

    Arrays are copied, with where their memory lies relative to arrays met before. Iterators and generators are run.
    """

    def __init__(self, value: Any, consume: bool = True) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._seen: dict[int, int] = {}
        self._held: list[Any] = []
        self._arrays: list[tuple[int, int, int, int]] = []
        self._consume = consume
        self._add("", value)

    def _known(self, where: str, value: Any) -> bool:
        number = self._seen.setdefault(id(value), len(self._seen))
        if number < len(self._held):
            self.rows.append((where, "same as", number))
            return True
        self._held.append(value)
        return False

    def _add(self, where: str, value: Any) -> None:
        kind = type(value)
        if kind is str:  # a text may hold the address of an object, which differs from run to run
            self.rows.append((where, "str", _ADDRESS.sub(" at 0x…", value)))
        elif kind in _ATOMS or isinstance(value, np.dtype):
            self.rows.append((where, kind.__name__, value))
        elif kind is np.ndarray:
            if not self._known(where, value):
                self._array(where, value)
        elif isinstance(value, np.generic):
            self.rows.append((where, "scalar", value.dtype, value))
        elif isinstance(value, tuple):
            self.rows.append((where, kind.__qualname__, len(value)))
            self._items(where, value)
        elif isinstance(value, type):
            self.rows.append((where, "class", value.__qualname__))
        elif isinstance(value, types.ModuleType):
            self.rows.append((where, "module", value.__name__))
        elif isinstance(value, set | frozenset):
            if kind is frozenset or not self._known(where, value):
                self.rows.append((where, kind.__qualname__, len(value)))
                self._items(where, sorted(value, key=repr))
        elif not self._known(where, value):
            self._object(where, value)

    def _items(self, where: str, values: Any) -> None:
        for i, item in enumerate(values):
            self._add(f"{where}[{i}]", item)

    def _array(self, where: str, value: np.ndarray) -> None:
        flags = value.flags
        keep = [stride for stride, n in zip(value.strides, value.shape, strict=True) if n != 1] if value.size else []
        low, high = np.lib.array_utils.byte_bounds(value) if value.size else (0, 0)
        start = value.__array_interface__["data"][0]
        shares = [(other, start - first) for other, first, l, h in self._arrays if l < high and low < h][:2]
        number = len(self._arrays)
        self._arrays.append((number, start, low, high))
        self.rows.append(
            (
                where, "array", value.dtype, value.shape, keep, flags.writeable, flags.owndata,
                f"shares {shares}", np.array(value, subok=False),
            )
        )  # fmt: skip

    def _object(self, where: str, value: Any) -> None:
        kind = type(value)
        name = kind.__qualname__
        if isinstance(value, list):
            self.rows.append((where, name, len(value)))
            self._items(where, list(value))
        elif isinstance(value, dict):
            self.rows.append((where, name, len(value)))
            for i, (key, item) in enumerate(list(value.items())):  # what is met may change it
                self._add(f"{where}.key{i}", key)
                self._add(f"{where}[{key!r:.20}]", item)
        elif isinstance(value, types.FunctionType):
            self.rows.append((where, name, value.__qualname__, value.__code__.co_firstlineno, value.__module__))
            self._add(f"{where}.defaults", value.__defaults__)
            self._add(f"{where}.kwdefaults", value.__kwdefaults__)
            for i, cell in enumerate(value.__closure__ or ()):
                if not self._known(f"{where}.cell{i}", cell):
                    try:
                        self._add(f"{where}.cell{i}", cell.cell_contents)
                    except ValueError:
                        self.rows.append((f"{where}.cell{i}", "empty"))
            self._add(f"{where}.__dict__", {k: v for k, v in vars(value).items() if k != "__wrapped__"})
        elif isinstance(value, types.MethodType):
            self._add(f"{where}.__self__", value.__self__)
            self.rows.append((where, name, value.__name__))
        elif isinstance(value, functools.partial):
            self._add(f"{where}.partial", [value.func, value.args, value.keywords])
        elif isinstance(value, BaseException):
            self.rows.append((where, name, type(value.__cause__).__name__, type(value.__context__).__name__))
            self._add(f"{where}.args", value.args)
        elif isinstance(value, _ITERATORS) and self._consume:
            self.rows.append((where, name))
            self._add(f"{where}.rest", _rest(value))
        elif isinstance(value, slice):
            self._add(f"{where}.slice", (value.start, value.stop, value.step))
        elif isinstance(value, np.ndarray):
            self._array(f"{where}:{name}", value)
        else:
            self.rows.append((where, name))
            for slot in getattr(kind, "__slots__", ()):
                self._add(f"{where}.{slot}", getattr(value, slot, "unset"))
            for key, item in getattr(value, "__dict__", {}).items():
                self._add(f"{where}.{key}", item)


def _rest(iterator: Iterator[Any]) -> list[Any]:
    """What an iterator would still give, and how it ends."""
    found: list[Any] = []
    try:
        found.extend(itertools.islice(iterator, 20))
    except Exception as error:
        found.append(error)
    return found


def assert_same_picture(got: Picture, want: Picture, about: str = "") -> None:
    """Raises AssertionError where two states can be told apart."""
    for a, b in zip(got.rows, want.rows, strict=False):
        assert a[:2] == b[:2], f"{about}{a[0]}: {a[1:]} instead of {b[0]} {b[1:]}"
        last = b[-1]
        assert len(a) == len(b) and a[2:-1] == b[2:-1], f"{about}{a[0]}: {a[1:]} instead of {b[1:]}"
        if isinstance(last, np.ndarray | np.generic):
            _assert_values(np.asarray(a[-1]), np.asarray(last), f"{about}{a[0]}", exact=False)
        elif isinstance(last, float | complex) and last != last:
            assert a[-1] != a[-1], f"{about}{a[0]}: {a[-1]} instead of nan"
        elif isinstance(last, float):
            same = a[-1] == last or abs(a[-1] - last) <= ULP * np.finfo(float).eps * abs(last)
            assert same, f"{about}{a[0]}: {a[-1]} instead of {last}"
        else:
            assert a[-1] == last, f"{about}{a[0]}: {a[1:]} instead of {b[1:]}"
    assert len(got.rows) == len(want.rows), f"{about}{len(got.rows)} values instead of {len(want.rows)}"
