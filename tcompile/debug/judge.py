"""Judging of one graph: whether a part of the compiler gives NumPy's result.

Input: a graph, inputs, and a ``Column``: the part of the compiler to run it through.
Output: a ``Verdict``.
Why: the minifier repeats this check, and a script makes it once.
"""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile import transforms
from tcompile.backends import find_backend
from tcompile.backends.replay import Interrupted, Replay
from tcompile.errors import InvalidArgument
from tcompile.graph import Graph, Layout, ScalarType, SymInt, TensorType
from tcompile.graph.evaluate import concrete
from tcompile.observe.context import compiling
from tcompile.records import dataclass

STAGES = ("capture", "transforms")
TOLERANCE = 1e-3  # relative; larger differences are wrong, and not due to rounding
_MOST = 1000  # characters of a detail


@dataclass(frozen=True)
class Column:
    """A part of the compiler.

    ``after`` is the stage that made its graphs: after "capture" they go through the transforms, if the backend takes
    graphs after these, and the backend; after "transforms" through the backend alone. ``backend`` is a name, or
    ``module:function`` for one that another process can find, or a callable; ``exact`` is the option of that name.
    """

    backend: str | Callable[..., Any] = "auto"
    after: str = "capture"
    exact: bool = False

    def __post_init__(self) -> None:
        if self.after not in STAGES:
            raise InvalidArgument(f"there is no stage {self.after!r}. Stages: {', '.join(STAGES)}")

    def compile(self, graph: Graph, inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        """The graph, compiled."""
        backend = find_backend(self.found())
        if backend.transformed and self.after == "capture":
            graph = transforms.run(graph)
        compile = backend.compiler({"exact": self.exact})
        return compile(graph, inputs)

    def found(self) -> str | Callable[..., Any]:
        """The backend, imported where it is given as ``module:function``."""
        if not isinstance(self.backend, str) or ":" not in self.backend:
            return self.backend
        module, _, name = self.backend.partition(":")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]

    def name(self) -> str | None:
        """The backend as text by which another process finds it; None where there is none."""
        backend = self.backend
        if isinstance(backend, str):
            return backend
        module, name = getattr(backend, "__module__", None), getattr(backend, "__qualname__", "<>")
        named = Column(f"{module}:{name}", self.after)
        if not module or module == "__main__" or "<" in name or sys.modules.get(module) is None:
            return None
        try:
            return str(named.backend) if named.found() is backend else None
        except (ImportError, AttributeError):
            return None


@dataclass(frozen=True)
class Verdict:
    """The result of judging a graph.

    ``kind`` is "same", "wrong", "compile error", "run error", "crash", "hang", or "invalid" where NumPy itself cannot
    run the graph. ``detail`` says more; for errors its first word is their class. ``off`` is the error of a wrong
    result, in tolerances.
    """

    kind: str
    detail: str = ""
    off: float = 0.0

    def __post_init__(self) -> None:
        if len(self.detail) > _MOST:
            object.__setattr__(self, "detail", self.detail[:_MOST] + " …")

    @property
    def failed(self) -> bool:
        """Whether the compiler is to blame."""
        return self.kind not in ("same", "invalid")

    def like(self, other: Verdict) -> bool:
        """Whether both are the same failure, as far as is known."""
        return self.failed and self.kind == other.kind and _class_of(self) == _class_of(other)

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


def _class_of(verdict: Verdict) -> str:
    return verdict.detail.partition(":")[0] if verdict.kind.endswith("error") else ""


def judge(graph: Graph, inputs: Sequence[Any], column: Column, tolerance: float | None = TOLERANCE) -> Verdict:
    """Compares the result of ``column`` for ``graph`` with NumPy's on copies of ``inputs``.

    ``tolerance`` is relative to the size of each result; None asks for the accuracy of a single operation (a few units
    in the last place), for graphs of one or two operations. A replay in plain Python is no failure.

    >>> from tcompile.graph.ops import apply
    >>> g = Graph("double")
    >>> x = g.input("x", TensorType(np.dtype("float64"), (3,)))
    >>> g.outputs = [apply(g, "multiply", x, 2.0)]
    >>> judge(g, [np.ones(3)], Column("llvm")).kind
    'same'
    >>> str(judge(g, [np.ones(3)], Column(lambda graph, inputs: lambda x: (x * 3,))))
    'wrong: output 0: 3 of 3 elements differ, at (0,) 3.0 where NumPy has 2.0'
    """
    # These compiles are not part of a compile that may be in progress: their events say so.
    with np.errstate(all="ignore"), warnings.catch_warnings(), compiling("", ""):
        warnings.simplefilter("ignore")
        try:
            expected = graph(*copies(inputs))
        except Exception as error:
            return Verdict("invalid", f"{type(error).__name__}: {error}")
        try:
            compiled = column.compile(graph, copies(inputs))
        except Exception as error:
            return Verdict("compile error", f"{type(error).__name__}: {error}")
        try:
            got = compiled(*copies(inputs))
        except Interrupted as error:
            raise error.error from None
        except Replay:
            return Verdict("same", "given back to plain Python")
        except Exception as error:
            return Verdict("run error", f"{type(error).__name__}: {error}")
        return compare(expected, got, tolerance, _slack(graph, inputs) if tolerance is None else 0.0)


def copies(values: Sequence[Any]) -> list[Any]:
    """The same inputs in memory of their own, in the same memory order."""
    return [np.array(value, order="K", copy=True) if isinstance(value, np.ndarray) else value for value in values]


def compare(expected: Sequence[Any], got: Any, tolerance: float | None, slack: float = 0.0) -> Verdict:
    """Compares the results of a graph; ``slack`` is an absolute error that is allowed beside the tolerance."""
    try:
        results = list(got)
    except TypeError:
        return Verdict("wrong", f"returns {type(got).__name__}, not its results")
    if len(results) != len(expected):
        return Verdict("wrong", f"{len(results)} results where NumPy has {len(expected)}")
    worst = Verdict("same")
    for position, (one, other) in enumerate(zip(expected, results, strict=True)):
        with np.errstate(all="ignore"):
            verdict = _compare_arrays(np.asarray(one), np.asarray(other), tolerance, slack)
        if verdict.failed and (not worst.failed or verdict.off > worst.off):
            worst = Verdict(verdict.kind, f"output {position}: {verdict.detail}", verdict.off)
    return worst


def _compare_arrays(one: Any, other: Any, tolerance: float | None, slack: float) -> Verdict:
    if one.dtype != other.dtype:
        return Verdict("wrong", f"dtype {other.dtype} where NumPy has {one.dtype}", math.inf)
    if one.shape != other.shape:
        return Verdict("wrong", f"shape {other.shape} where NumPy has {one.shape}", math.inf)
    if one.dtype.kind not in "fc":
        differ, off = np.asarray(one != other), math.inf
    else:
        exact = (one == other) | ((one != one) & (other != other))
        wide = np.result_type(one.dtype, np.float64)
        a, b = one.astype(wide), other.astype(wide)
        finite = np.isfinite(a)
        size = np.abs(a)
        mean = float(size[finite].mean()) if finite.any() else 0.0
        unit = float(np.finfo(one.dtype).eps)
        relative = 64 * unit if tolerance is None else max(tolerance, 16 * unit)
        allowed = relative * (size + mean) + slack * unit
        distance = np.where(finite & np.isfinite(b), np.abs(a - b), np.where(exact, 0.0, np.inf))
        differ = np.asarray(~exact & ~(distance <= allowed))
        ratio: Any = distance[differ] / np.where(allowed[differ] > 0, allowed[differ], np.finfo(float).tiny)
        off = float(ratio.max()) if differ.any() else 0.0
    if not differ.any():
        return Verdict("same")
    count = int(np.count_nonzero(differ))
    place = tuple(int(i) for i in np.argwhere(differ)[0])
    text = (
        f"{count} of {one.size} elements differ, at {place} {other[place].item()!r} where NumPy has "
        f"{one[place].item()!r}"
    )
    return Verdict("wrong", text, off)


def _slack(graph: Graph, inputs: Sequence[Any]) -> float:
    """The rounding error that sums may add, in units of the last place: cancellation makes it visible."""
    if all(node.op.kind in ("pointwise", "view", "creation") for node in graph.nodes):
        return 0.0
    total = 0.0
    for value in inputs:
        array = np.asarray(value)
        if array.dtype.kind in "iufc" and array.size:
            size = np.abs(array[np.isfinite(array)].astype(np.result_type(array.dtype, np.float64)))
            total = max(total, float(size.sum()), float((size * size).sum()))
    return 64 * total


def random_inputs(graph: Graph, seed: int = 0) -> list[Any]:
    """Random inputs of the graph's types: floats around zero, small integers, sizes as at capture."""
    rng = np.random.default_rng(seed)
    hints = dict(graph.env.hints)
    return [_made_up(node.type, rng, hints) for node in graph.inputs]


def _made_up(type: Any, rng: np.random.Generator, hints: dict[str, int]) -> Any:
    if isinstance(type, ScalarType):
        if type.kind == "float":
            return float(rng.standard_normal())
        return concrete(type.symbol, hints) if type.symbol is not None else int(rng.integers(1, 9))
    shape = concrete(type.shape, hints)
    kind = type.dtype.kind
    if kind == "b":
        value: Any = rng.integers(0, 2, shape).astype(bool)
    elif kind in "iu":
        value = rng.integers(0, 9, shape).astype(type.dtype)
    elif kind == "c":
        value = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(type.dtype)
    elif kind == "f":
        value = rng.standard_normal(shape).astype(type.dtype)
    else:
        value = np.zeros(shape, type.dtype)
    return arranged(value, type.layout)


def arranged(value: Any, layout: Layout) -> Any:
    """An array with the elements of ``value`` in the memory order that ``layout`` says."""
    array = np.asarray(value)
    order = layout.order
    if len(order) != array.ndim:
        return array
    made = np.empty([array.shape[axis] for axis in order], array.dtype).transpose(np.argsort(order))
    made[...] = array
    return made


def is_symbolic(graph: Graph) -> bool:
    """Whether sizes of the graph are open."""
    return any(isinstance(size, SymInt) for node in graph.inputs for size in _sizes(node.type))


def _sizes(type: Any) -> Sequence[Any]:
    return type.shape if isinstance(type, TensorType) else (getattr(type, "symbol", None),)


__all__ = [
    "STAGES", "TOLERANCE", "Column", "Verdict", "arranged", "compare", "copies", "is_symbolic", "judge",
    "random_inputs",
]  # fmt: skip
