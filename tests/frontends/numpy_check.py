"""Generated programs of NumPy, run plainly and compiled.

Input: a program's text and a ``Plan`` (backend, settings).
Output: nothing, or ``Difference``.
Why: everything observable is compared: values, dtypes, shapes, scalar or array, strides and flags, aliasing, the
arguments after the call, errors with their texts and lines, and warnings.

Results must be equal bit for bit, or within the bounds of ``docs/numerics.md``. The propagation of an allowed error
through a program is measured. If results differ, the program runs plainly several more times, with the results of
inexact functions moved by some units in the last place. Values that then move may differ; others may not. A program is
skipped if it then takes another path or warns differently. It is also skipped if memory does not suffice (a compiled
one makes fewer arrays), or if it stores bytes other than 0 and 1 in bools, through a view of another dtype.
"""

from __future__ import annotations

import ast
import copy
import math
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from capture import language_check
from capture.language_check import Difference, TooLong, checks, time_limit
from differential import Picture

import tcompile
from tcompile.observe.events import FellBack
from tcompile.observe.recorder import Recorder

from .numpy_programs import NAME, namespace, program

SECONDS, LONGEST = 5, 60  # for a plain run, and for a compiled one
CALLS = (0, 0, 1, 2, 0)  # the inputs of the calls
MOVES = (8, 40, 320)  # plain runs with moved results: more and more of them before a difference is reported
ULP = 8  # maximum units by which a result is moved
# Unintended errors of a run. Python numbers of more than 64 bits are intended.
ERRORS = re.compile(r"(?!FloatingPoint|OverflowError: an int of more than 64 bits)\w+(Error|Exception): ")

# Functions whose results may differ in the last places, and those whose zeros may differ in sign.
MATH = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh",
    "cbrt", "hypot", "pow", "power", "logaddexp", "logaddexp2", "float_power", "sinc", "angle", "i0", "reduce", "prod",
    "nanprod",
}  # fmt: skip
SUMS = {
    "sum", "mean", "var", "std", "nansum", "nanmean", "nanvar", "nanstd", "trace", "trapezoid", "average", "norm",
    "vector_norm", "reduce", "einsum", "matrix_norm", "matmul", "dot", "vdot", "vecdot", "matvec", "vecmat", "inner",
    "inv", "solve",
}  # fmt: skip
# Those whose parts may overflow, depending on the order.
WIDE = {
    "sum", "mean", "var", "std", "nansum", "nanmean", "nanvar", "nanstd", "trace", "einsum", "prod", "nanprod",
}  # fmt: skip
ZEROS = {
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "max",
    "min",
    "nanmax",
    "nanmin",
    "clip",
    "ptp",
    "sort",
    "amax",
    "amin",
}


@dataclass(frozen=True)
class Plan:
    """How a program is run."""

    seed: int
    backend: str = "llvm"
    dynamic: bool | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    def simpler(self) -> Iterator[Plan]:
        """Returns smaller plans, the simplest first."""
        yield Plan(self.seed, "eager")
        yield Plan(self.seed)
        yield replace(self, settings=())
        yield replace(self, dynamic=None)

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> Plan:
        """A plan: mostly the llvm backend and default settings."""
        backend = backend or random.choice(("llvm",) * 6 + ("eager",) * 3 + ("aot_eager",))
        dynamic = random.choice((None,) * 8 + (True, False))
        settings: list[tuple[str, Any]] = []
        if random.random() < 0.2:
            settings.append(("stress_capture", True))
        if stress or random.random() < 0.1:
            settings.append(("stress_breaks", random.randint(1, 30)))
        seed = random.randrange(1 << 30)
        if random.random() < 0.3:  # graphs are checked after every pass, which takes a ninth of the time
            settings.append(("verify", True))
        return cls(seed, backend, dynamic, tuple(settings))


class Told:
    """All observations of a program's calls: rows for each call, and for the final state."""

    def __init__(self, space: dict[str, Any], function: Callable[..., Any], leaving_out: str = "tcompile: ") -> None:
        self.rows: list[list[tuple[Any, ...]]] = []
        kept = []
        for k in CALLS:
            with np.errstate(all="ignore"):
                args = space["inputs"](k)
            value: Any = None
            raised: BaseException | None = None
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    value = function(*args)
                except Exception as error:
                    raised = error
            about = {
                (w.category.__name__, str(w.message), w.lineno if w.filename == NAME else w.filename.rpartition("/")[2])
                for w in caught if not str(w.message).startswith(("tcompile: ", leaving_out))
            }  # fmt: skip
            # 3.11 runs pairs of instructions as one in warm code, and then reports the first one's line.
            warm = sys.version_info < (3, 12) and isinstance(raised, UnboundLocalError)
            lines = () if warm else tuple(_lines(raised))
            rows: list[tuple[Any, ...]] = [("error", type(raised).__name__, str(raised), lines)]
            rows += [("warnings", *sorted(about, key=repr))]
            rows += Picture([value, args]).rows
            self.rows.append(rows)
            kept.append([value, args])
            self.error = raised
        self.rows.append(Picture(kept).rows)


def _lines(error: BaseException | None) -> Iterator[int]:
    """The lines of the program through which an error went."""
    trace = error.__traceback__ if error is not None else None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == NAME:
            yield trace.tb_lineno
        trace = trace.tb_next


@dataclass(frozen=True)
class Ways:
    """How the ``f`` of a program's text, which its namespace has, is run: plainly, and compiled."""

    plain: Callable[[ast.Module, dict[str, Any]], Callable[..., Any]]
    compiled: Callable[[ast.Module, dict[str, Any], Plan], Callable[..., Any]]


CALLED = Ways(
    lambda _, space: space["f"],
    lambda _, space, plan: tcompile.compile(space["f"], backend=plan.backend, dynamic=plan.dynamic),
)


def compare(source: str, plan: Plan, ways: Ways = CALLED) -> bool:
    """Runs a program both ways; False if it is skipped. Raises Difference."""
    tcompile.reset()
    tree = ast.parse(source)
    # Of infinities np.dot warns where the library has it so; without kernels that is another function of the library.
    leaving_out = "tcompile: " if plan.backend == "llvm" else "invalid value encountered in dot"
    try:
        with time_limit(SECONDS):
            space = namespace(source)
            want = Told(space, ways.plain(tree, space), leaving_out)
    except TooLong:
        return False
    if any(rows[0][1] == "MemoryError" or any(map(_is_odd, rows)) for rows in want.rows[: len(CALLS)]):
        return False
    try:
        with time_limit(LONGEST), tcompile.config.patch(**dict(plan.settings)), Recorder() as recorder:
            space = namespace(source)
            made = ways.compiled(tree, space, plan)
            got = Told(space, made, leaving_out)
            for broke in getattr(made, "breaks", ()):
                if broke.reason.id == "internal-error":
                    raise Difference(f"internal error: {broke.detail}"[:600])
    except TooLong as error:
        raise Difference(f"took more than {LONGEST} seconds") from error
    except Difference:
        raise
    except Exception as error:
        raise Difference(f"{type(error).__name__}: {error}"[:600]) from error
    for event in recorder.of(FellBack):
        # Plain Python gives the right results then, if nothing was written before.
        if ERRORS.match(event.detail) and not any(rows[0][1] != "NoneType" for rows in want.rows[: len(CALLS)]):
            raise Difference(f"{event.reason}: {event.detail}"[:600])
    if "'special'" in source:
        for ours, theirs in zip(got.rows, want.rows, strict=True):
            ours[:] = [_without_order(a, b) for a, b in zip(ours, theirs, strict=False)] + ours[len(theirs) :]
    moved: list[Told] = []
    for count in (0, *MOVES):
        while len(moved) < count:
            moved.append(_sharing(told_moved(source, len(moved), ways), want))
        about = first_difference(got, want, moved)
        if about is None:
            return True
        if any(steps(one) != steps(want) for one in moved):
            return False
    raise Difference(about) from got.error


def _is_odd(row: tuple[Any, ...]) -> bool:
    """Whether it shows a bool whose byte is neither 0 nor 1: what NumPy makes of it depends on the function."""
    value = row[-1]
    return isinstance(value, np.ndarray) and value.dtype.kind == "b" and bool((value.view(np.uint8) > 1).any())


def steps(told: Told) -> list[list[tuple[Any, ...]]]:
    """Returns the observations without values: the path of a program."""
    values = (np.ndarray, np.generic, bool, int, float, complex)
    return [[row[:-1] if isinstance(row[-1], values) else row for row in rows] for rows in told.rows]


def first_difference(got: Told, want: Told, moved: list[Told]) -> str | None:
    """Returns the difference of two runs, unless the runs of ``moved`` explain it."""
    for place, (ours, theirs) in enumerate(zip(got.rows, want.rows, strict=True)):
        ours = [_owning(a, b) for a, b in zip(ours, theirs, strict=False)] + ours[len(theirs) :]
        about = f"call {place}: " if place < len(CALLS) else "in the end: "
        others = [one.rows[place] for one in moved if len(one.rows[place]) == len(theirs)]
        for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            if not isinstance(b[-1], np.ndarray | np.generic | float | complex):
                number = isinstance(b[-1], int) and type(a[-1]) is type(b[-1]) and a[:-1] == b[:-1]
                if not _same(a, b) and not (number and any(not _same(other[i], b) for other in others)):
                    return f"{about}{a} instead of {b}"
                continue
            if a[:-1] != b[:-1] or type(a[-1]) is not type(b[-1]):
                return f"{about}{a} instead of {b}"
            text = unequal(np.asarray(a[-1]), np.asarray(b[-1]), [np.asarray(other[i][-1]) for other in others])
            if text:
                return f"{about}{a[0]}: {text}"
        if len(ours) != len(theirs):
            return f"{about}{len(ours)} values instead of {len(theirs)}"
    return None


def _without_order(got: tuple[Any, ...], want: tuple[Any, ...]) -> tuple[Any, ...]:
    """If NaNs and infinities of both signs are added, the order decides whether infinities meet."""
    met = "invalid value encountered in reduce"
    told = [row for row in want[1:] if got[:1] == ("warnings",) and row[1] == met and row not in got]
    return (*got[:1], *sorted((*got[1:], *told), key=repr)) if told else got


def _owning(got: tuple[Any, ...], want: tuple[Any, ...]) -> tuple[Any, ...]:
    """Ignores whether a new array owns its memory, or is a view of one that does."""
    if want[1:2] == ("array",) and got[7:8] == want[7:8] and len(got) == len(want):
        return (*got[:6], want[6], *got[7:])
    return got


def _sharing(made: Told, want: Told) -> Told:
    """Keeps arrays that have not moved once: hundreds of runs with large ones would fill the memory."""
    for ours, theirs in zip(made.rows, want.rows, strict=True):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            if isinstance(a[-1], np.ndarray) and isinstance(b[-1], np.ndarray) and a[:-1] == b[:-1]:
                if a[-1].tobytes() == b[-1].tobytes():
                    ours[i] = b
    return made


def _same(a: Any, b: Any) -> bool:
    """Equality of rows, with NaN equal to itself."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(b, float | complex) and type(a) is type(b):
        return repr(a) == repr(b)
    return bool(a == b)


def _bits(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array's parts as floats whose NaNs and zeros' signs can be told: value and sign."""
    flat = np.ascontiguousarray(array).reshape(-1)
    parts = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    return parts, np.signbit(parts) & ~np.isnan(parts)


def unequal(got: np.ndarray, want: np.ndarray, moved: list[np.ndarray]) -> str:
    """Returns how two arrays of one dtype and shape differ, beyond the moves between runs; nothing if they do not."""
    moved = [one for one in moved if one.shape == want.shape and one.dtype == want.dtype]
    with np.errstate(all="ignore"):
        if want.dtype.kind not in "fc":
            bad = (got != want).reshape(-1)
            for one in moved:
                bad &= (one == want).reshape(-1)
            return _told(got, want, bad)
        a, sign_a = _bits(got)
        b, sign_b = _bits(want)
        same = ((a == b) & (sign_a == sign_b)) | (np.isnan(a) & np.isnan(b))
        if same.all() or not moved:
            return _told(a, b, ~same)
        deviation, excused = np.zeros(a.shape, np.longdouble), np.zeros(a.shape, bool)
        vague = np.zeros(a.shape, bool)  # zeros that are none in another run have either sign
        anything = False
        for one in moved:
            c, sign_c = _bits(one)
            far = np.abs(c.astype(np.longdouble) - b.astype(np.longdouble))
            odd = (np.isfinite(c) != np.isfinite(b)) | (np.isnan(c) != np.isnan(b)) | (sign_c != sign_b)
            excused |= odd | (~np.isfinite(far) & (c != b) & ~(np.isnan(c) & np.isnan(b)))
            vague |= (b == 0) & (c != 0)
            deviation = np.fmax(deviation, np.where(np.isfinite(far), far, 0))
            anything |= bool(((c != b) & ~(np.isnan(c) & np.isnan(b))).any())
        room = 16 * deviation
        if anything:
            room = room + 8 * np.finfo(want.dtype).eps * np.abs(np.where(np.isfinite(b), b, 0)).astype(np.longdouble)
        near = np.abs(a.astype(np.longdouble) - b.astype(np.longdouble)) <= room
        near &= (b != 0) | (a != 0) | (sign_a == sign_b) | vague
        return _told(a, b, ~(same | near | excused))


def _told(got: np.ndarray, want: np.ndarray, bad: np.ndarray) -> str:
    if not bad.any():
        return ""
    got, want = np.asarray(got).reshape(-1), np.asarray(want).reshape(-1)
    where = np.flatnonzero(bad)
    return f"at {where[:4]} of {want.size}: {got[bad][:4]!r} instead of {want[bad][:4]!r}"


# -- moved results -----------------------------------------------------------------------------------------------------
class _Moving(ast.NodeTransformer):
    """Has results of inexact functions pass through ``_move``, and the arguments of sums, too."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        of = getattr(owner[0], "attr", "") if name == "reduce" and owner else ""
        if name in SUMS:
            node.args = [_through("_moved_copy", arg) for arg in node.args]
            if isinstance(node.func, ast.Attribute):
                node.func.value = owner[0] = _through("_moved_copy", node.func.value)
        if name in WIDE:
            node.func = _through("_wide", node.func)
        if name in SUMS:
            made = _through("_move_sum", node, *owner, *node.args[:1])
            return _through("_turn_zeros", made) if of in ZEROS else made
        if name in MATH:
            return _through("_move_logarithm" if name.startswith("logaddexp") else "_move", node)
        if name == "multiply" and any(keyword.arg == "out" for keyword in node.keywords):
            return _through("_move_one_product", node)
        if name in ("abs", "absolute"):
            return _through("_move_of_complex", node, *node.args)
        if name in ("square", "multiply"):
            made = _through("_move_one_square", node) if name == "square" else node
            return _through("_move_backwards", made, *node.args)
        if name == "view" and node.args and isinstance(node.func, ast.Attribute):
            node.func.value = _through("_turn_nans", node.func.value)
        if name in ("copysign", "signbit"):
            node.args = [_through("_turn_nans", arg) for arg in node.args]
        if name in ZEROS:
            in_place = name == "sort" and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "np"
            return _through("_turn_zeros", node, *([node.func.value] if in_place else []))  # type: ignore[attr-defined]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return _through("_turn_strides", node.value) if node.attr == "strides" else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            node.left, node.right = _through("_moved_copy", node.left), _through("_moved_copy", node.right)
        if isinstance(node.op, ast.Mult):
            return _through("_move_backwards", node, node.left, node.right)
        return _through("_move", node) if isinstance(node.op, ast.Pow | ast.MatMult) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        how = {ast.Pow: "_move", ast.Mult: "_move_one_product"}.get(type(node.op))
        if how is None:
            return node
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        if isinstance(target, ast.Subscript) and any(isinstance(x, ast.Compare | ast.Call) for x in ast.walk(target)):
            return [node, ast.Expr(_through(how, target.value))]  # now other elements may be meant
        return [node, ast.Assign([node.target], _through(how, target))]


def _through(name: str, *values: ast.expr) -> ast.Call:
    made = ast.Call(
        ast.Name(name, ast.Load()), [ast.Starred(v.value) if isinstance(v, ast.Starred) else v for v in values], []
    )
    return made


class _Mover:
    """Moves floats by some units in the last place."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = np.random.default_rng(seed)

    def _part(self, shape: Any, dtype: np.dtype) -> Any:
        """By which part of itself a number moves: less than one unit in its last place for each step.

        Every fourth time by one step alone: else no number reaches the largest of those that are next to it.
        """
        eps = np.finfo(dtype).eps
        most = 1 if self.seed % 4 == 2 else 2 if dtype == np.float16 else ULP
        return self.random.integers(-most, most + 1, shape) * (eps / 2)

    def move(self, value: Any) -> Any:
        """Arrays change in place, for they may be the program's own ``out``."""
        if isinstance(value, tuple):
            return tuple(self.move(item) for item in value)
        if type(value) in (float, complex):
            return type(value)(value * (1 + int(self.random.integers(-ULP, ULP + 1)) * 1e-16))
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
            return value
        with np.errstate(all="ignore"):
            if value.dtype.kind == "c":
                made = np.array(value)
                scale = np.abs(made)
                for part in (made.real, made.imag):  # a part's error is one of the whole number
                    part += self._part(value.shape, value.dtype) * np.where(np.isfinite(scale), scale, 0)
            else:  # added to it: one and half a unit are one, and some numbers would not be reached by factors
                steps = value * self._part(value.shape, value.dtype)
                moves = np.isfinite(value) & (value != 0)
                made = np.where(moves, value + steps, value).astype(value.dtype)
        if isinstance(value, np.generic):
            return made[()]
        if value.flags.writeable:
            value[...] = made
        return value

    def move_logarithm(self, value: Any) -> Any:
        """Sums of powers near one have logarithms near zero: their error is one of one."""
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f":
            made = (value + self._part(value.shape, value.dtype)).astype(value.dtype)
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value[...] = made
            else:
                value = made
        return self.move(value)

    def moved_copy(self, value: Any) -> Any:
        """For what a sum is taken of: its error is one of its parts."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            return self.move(value.copy(order="K")) if value.size else value
        return value

    def wide(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Every second time in wider numbers: where terms overflow, the result depends on their order."""
        wider = {"e": "f", "f": "d", "d": "g", "F": "D", "D": "G"}

        def call(*args: Any, **kwargs: Any) -> Any:
            owner = getattr(function, "__self__", None)
            arrays = [a for a in (*args, owner) if isinstance(a, np.ndarray)]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = function(*args, **kwargs)
            plain = kwargs.keys() <= {"axis", "keepdims"} and arrays and result.dtype.char in wider
            if not plain or any(a.dtype != result.dtype for a in arrays):
                for one in caught:
                    warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
                return result
            given = [a.astype(wider[a.dtype.char]) if isinstance(a, np.ndarray) else a for a in (owner, *args)]
            again = function if not isinstance(owner, np.ndarray) else getattr(given[0], function.__name__)
            return again(*given[1:], **kwargs).astype(result.dtype)

        return call if self.seed % 2 else function

    def move_of_complex(self, value: Any, of: Any) -> Any:
        """The absolute value of a complex number is computed like ``hypot``."""
        return self.move(value) if getattr(of, "dtype", np.dtype(float)).kind == "c" or type(of) is complex else value

    def move_backwards(self, value: Any, *of: Any) -> Any:
        """A product of complex64 arrays that NumPy reads backwards, every second time fused: there it does not."""
        arrays = [one for one in of if isinstance(one, np.ndarray) and one.dtype == np.complex64]
        backwards = any(stride < 0 for one in arrays for stride in one.strides)
        if self.seed % 2 or not backwards or value.dtype != np.complex64:
            return value
        with np.errstate(all="ignore"):
            value[...] = np.multiply(*(np.array(one, np.complex64) for one in (of * 2)[:2]))
        return value

    def turn_strides(self, array: Any) -> Any:
        """Strides of axes with one element are any: nothing is read along them."""
        if not isinstance(array, np.ndarray):
            return array.strides
        return tuple(
            stride if size > 1 else int(self.random.integers(1, 100)) * array.itemsize
            for size, stride in zip(array.shape, array.strides, strict=True)
        )

    def move_sum(self, value: Any, *among: Any) -> Any:
        """Sums of integers in floats move by more, for what they are taken of does not: by the root of its size, and by
        what is lost where large ones cancel. So do sums of many rows, which NumPy adds one to the other.
        """
        of = next((one for one in among if isinstance(one, np.ndarray)), None)
        if of is not None and of.ndim > 1 and max(of.shape) > 4000:
            for _ in range(math.isqrt(max(of.shape)) // 2):
                value = self.move(value)
            # The errors of adding one number again and again all have one sign.
            eps = np.finfo(of.dtype if of.dtype.kind in "fc" else np.float64).eps  # integers are added as float64
            part = self.random.uniform(-0.1, 0.1) * max(of.shape) * eps
            if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc":
                value = value * value.dtype.type(1 + part)
        if of is not None and of.dtype.kind not in "fc" and of.size:
            for _ in range(math.isqrt(of.size) // 4):
                value = self.move(value)
            if isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f":
                unit = np.finfo(value.dtype).eps / 2 * np.abs(of.astype(float)).max()
                lost = value.dtype.type(self.random.integers(-ULP, ULP + 1) * unit)
                if isinstance(value, np.generic):
                    value = value + lost
                elif value.flags.writeable:
                    value += lost
        if self.seed % 4 == 3 and of is not None and of.dtype.kind in "fc" and of.size:
            value = self._without_rounding_errors(value, np.finfo(of.dtype).eps * np.abs(of).max())
        return self.move(value)

    def _without_rounding_errors(self, value: Any, unit: float) -> Any:
        """What is nothing but rounding errors, as the deviation of equal numbers, is zero for who makes none."""
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
            return value
        kept = np.array(value)
        for part in (kept.real, kept.imag) if value.dtype.kind == "c" else (kept,):
            part[np.abs(part) <= 64 * unit] = 0
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = kept
            return value
        return kept[()]

    def move_one_product(self, value: Any) -> Any:
        """A product of complex numbers that takes one element's own place: NumPy does not fuse there."""
        one = isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind == "c"
        return self.move(value) if one else value

    def move_one_square(self, value: Any) -> Any:
        """The square of a complex scalar: sometimes NumPy fuses it, and sometimes it does not."""
        return self.move(value) if isinstance(value, np.complexfloating) else value

    def turn_zeros(self, value: Any, *sorted_: Any) -> Any:
        """Zeros get any sign, those of an array that was sorted in its own place, too."""
        if sorted_:
            self.turn_zeros(*sorted_)
        if isinstance(value, np.generic) and value.dtype.kind == "f" and value == 0:
            return value.dtype.type(self.random.choice([0.0, -0.0]))
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.flags.writeable:
            zeros = value == 0
            value[zeros] = self.random.choice(np.array([0.0, -0.0], value.dtype), int(zeros.sum()))
        return value

    def turn_nans(self, value: Any) -> Any:
        """NaNs get any sign, which `copysign`, `signbit` and a view of another dtype show."""
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc" or not np.isnan(value).any():
            return value
        parts = np.array(value).reshape(value.shape or 1)
        for part in (parts.real, parts.imag) if value.dtype.kind == "c" else (parts,):
            nans = np.isnan(part)
            part[nans] = np.copysign(part[nans], self.random.choice([1.0, -1.0], int(nans.sum())))
        if isinstance(value, np.generic):
            return parts[0]
        if value.flags.writeable:
            value[...] = parts.reshape(value.shape)
        return value


def told_moved(source: str, seed: int, ways: Ways = CALLED) -> Told:
    """A plain run with moved results."""
    tree = ast.parse(source)
    tree.body = [_Moving().visit(part) if getattr(part, "name", "") == "f" else part for part in tree.body]
    space = namespace(source)
    mover = _Mover(seed)
    space |= {
        "_move": mover.move, "_move_sum": mover.move_sum, "_move_one_product": mover.move_one_product,
        "_move_one_square": mover.move_one_square, "_move_logarithm": mover.move_logarithm,
        "_moved_copy": mover.moved_copy, "_move_backwards": mover.move_backwards,
        "_wide": mover.wide,
        "_move_of_complex": mover.move_of_complex, "_turn_zeros": mover.turn_zeros, "_turn_nans": mover.turn_nans,
        "_turn_strides": mover.turn_strides,
    }  # fmt: skip
    exec(compile(ast.fix_missing_locations(tree), NAME, "exec"), space)
    return Told(space, ways.plain(tree, space))


# -- one program -------------------------------------------------------------------------------------------------------
check, difference = checks(program, Plan.random, compare)


def shrink(source: str, fails: Callable[[str], bool], seconds: float = 60.0) -> str:
    """A shorter program on which ``fails`` is still true: ever smaller runs of statements go, then parts of them."""
    end = time.monotonic() + seconds
    tree = ast.parse(source)
    length = len(_body(tree)) // 2
    while length and time.monotonic() < end:
        start = max(0, len(_body(tree)) - length)
        while time.monotonic() < end:
            smaller = copy.deepcopy(tree)
            del _body(smaller)[start : start + length]
            if fails(text := ast.unparse(smaller) + "\n"):
                tree = ast.parse(text)
            if not start:
                break
            start = max(0, start - length)
        length //= 2
    seeded = lambda text: "default_rng()" not in text and fails(text)  # else both runs have inputs of their own
    return language_check.shrink(ast.unparse(tree) + "\n", seeded, max(0.0, end - time.monotonic()))


def _body(tree: ast.Module) -> list[ast.stmt]:
    """The statements of f, but for its return statement's."""
    function = next(part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name == "f")
    while len(function.body) == 1 and isinstance(function.body[0], ast.With):
        function = function.body[0]  # type: ignore[assignment]
    return function.body


__all__ = ["Difference", "Plan", "Ways", "check", "compare", "difference", "program", "shrink"]
