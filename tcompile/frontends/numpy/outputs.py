"""The arguments ``out=`` and ``where=``: results that go into existing arrays.

Input: a call with ``out=``, or an output among its positional arguments.
Output: the call without it, and a write of its result; the call returns the given arrays themselves.
Why: handlers need not know of outputs.

A ufunc casts its result to the output's dtype, as ``casting=`` allows, and broadcasts it. For every other function,
outputs must have the result's own dtype and shape. Elements that ``where=`` excludes are not computed: they become a
number that is harmless to the operation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy.registry import NO_VALUE
from tcompile.frontends.numpy.values import BOOL, broadcast, cast, is_constant, sizes_equal
from tcompile.frontends.numpy.writing import chosen, fitted, target_of
from tcompile.graph.overlap import root
from tcompile.graph.sizes import always
from tcompile.strict import strict

Call = Callable[[Sequence[Any], Mapping[str, Any]], Any]

_HARMLESS = (1, 0, 2)  # for each operation, numbers that are harmless to it
_ONE_OF_BOTH = frozenset({"concatenate", "concat", "stack"})
# Functions whose output may be or overlap an argument: NumPy copies first.
_COPIES_FIRST = {
    "sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "any", "all", "cumsum", "cumprod", "clip",
    "take", "round", "around", "reduce", "accumulate",
}  # fmt: skip


_INTO_C_ORDER = frozenset({"dot", "multi_dot"})


def _ends_in_vectors(name: str, args: Sequence[Any]) -> bool:
    """Whether ``multi_dot`` reshapes what it writes to; it refuses such outputs."""
    arrays = args[0] if name == "multi_dot" and isinstance(args[0], list | tuple) else ()
    return len(arrays) > 2 and any(isinstance(x, Traced) and x.type.ndim == 1 for x in (arrays[0], arrays[-1]))


def _no_array(value: Any) -> bool:
    return value is None or value is NO_VALUE


# -- ufuncs --------------------------------------------------------------------------------------------------------


def has_output(ufunc: np.ufunc, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call of ``ufunc`` passes an output array."""
    out = kwargs.get("out")
    given = out if isinstance(out, tuple) else (out,)
    return len(args) > ufunc.nin or not all(map(_no_array, given))


def ufunc_into(b: Builder, ufunc: np.ufunc, run: Call, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``ufunc(*args, **kwargs)`` with an output among the arguments; ``run`` builds it without."""
    rest = {name: value for name, value in kwargs.items() if name not in ("out", "where", "casting")}
    if ufunc.signature is not None:  # of whole rows and matrices, not element by element
        if len(args) > ufunc.nin + 1 or (len(args) > ufunc.nin and "out" in kwargs) or len(rest) + 1 < len(kwargs):
            raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with out= and other arguments")
        out = args[ufunc.nin] if len(args) > ufunc.nin else unpacked(kwargs["out"])
        return call_into(b, ufunc.__name__, run, args[: ufunc.nin], rest, out)
    if ufunc in (np.maximum, np.minimum) and len(args) > ufunc.nin:
        raise CannotCapture("operation-raises", f"{ufunc.__name__} warns of an output among its arguments")
    casting, where = kwargs.get("casting", "same_kind"), kwargs.get("where", True)
    if casting not in ("same_kind", "unsafe") or rest.get("subok", True) is not True:
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with out= and other arguments")
    if len(args) > ufunc.nin:
        outs = (*args[ufunc.nin :], *(None,) * (ufunc.nargs - len(args)))
    else:
        outs = kwargs["out"] if isinstance(kwargs["out"], tuple) else (kwargs["out"],)
    if (len(args) > ufunc.nin and "out" in kwargs) or len(outs) != ufunc.nout:
        raise CannotCapture("operation-raises", f"{ufunc.__name__} with too many or too few outputs")
    if len(args) > ufunc.nin and _warns_of_places(ufunc):
        raise CannotCapture("operation-raises", f"{ufunc.__name__} warns of an output that is not called out=")
    if casting != "same_kind" and "dtype" in rest:
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with casting= and dtype=")
    roots = [root(target_of(out).node) for out in outs if not _no_array(out)]
    if len(set(roots)) < len(roots):  # NumPy computes into a temporary and copies it at the end
        raise CannotCapture("overlapping-views", f"Several outputs of np.{ufunc.__name__} may share memory.")
    operands = list(args[: ufunc.nin])
    if where is not True:
        if any(map(_no_array, outs)):
            raise CannotCapture("undefined-contents", f"{ufunc.__name__} with where= and no out=")
        operands = _within(b, ufunc, operands, where, rest)
    results = run(operands, rest)
    found = results if isinstance(results, tuple) else (results,)
    if any(map(_no_array, outs)) and not all(_no_array(out) or _same_shape(out, found[0]) for out in outs):
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with an output to which others are broadcast")
    made = [r if _no_array(out) else _into(b, out, r, casting, where) for r, out in zip(found, outs, strict=True)]
    return tuple(made) if ufunc.nout > 1 else made[0]


def _same_shape(out: Any, result: Any) -> bool:
    if not isinstance(result, Traced):
        return False
    shape, wanted = result.type.shape, target_of(out).type.shape
    return 0 < len(shape) == len(wanted) and all(map(sizes_equal, shape, wanted))


@cache
def _warns_of_places(ufunc: np.ufunc) -> bool:
    """Whether NumPy warns of a positional output; found by trying."""
    arrays = [np.ones(1, bool) for _ in range(ufunc.nargs)]
    try:
        with strict("ignore"):
            ufunc(*arrays, casting="unsafe")
    except DeprecationWarning:
        return True
    except Exception:  # these dtypes are not its own
        return False
    return False


def _into(b: Builder, out: Any, result: Any, casting: str, where: Any) -> Traced:
    """Writes one result of a ufunc."""
    target = target_of(out)
    dtype = result.type.dtype if isinstance(result, Traced) else np.asarray(result).dtype
    if where is not True and dtype != target.type.dtype:
        # NumPy casts what the output holds, too, and may warn of it.
        raise CannotCapture("writes-to-array", f"Writing {dtype} to {target.type.dtype} under where=")
    if isinstance(result, Traced) and result.type.ndim > target.type.ndim:  # not even axes of size one are dropped
        raise CannotCapture("operation-raises", f"a result of {result.type} for an output of {target.type}")
    if isinstance(result, Traced) and always(lambda: 0 in target.type.shape) and not _same_shape(out, result):
        # NumPy computes nothing, so it reports nothing
        raise CannotCapture("unsupported-argument", "an output without elements, to which others are broadcast")
    contents = fitted(b, target.type, result, casting)
    return b.write(target, contents if where is True else chosen(b, target, where, contents))


def _within(b: Builder, ufunc: np.ufunc, operands: Sequence[Any], where: Any, rest: Mapping[str, Any]) -> list[Any]:
    """Returns the operands with a harmless number at the elements that ``where=`` excludes."""
    if not isinstance(where, Traced) or where.type.dtype != BOOL:
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with this where=")
    number = next((n for n in _HARMLESS if _is_harmless(ufunc, operands, n, rest)), None)
    if number is None:  # NumPy raises if any element is selected: `np.power(integers, -1, where=m, out=y)`
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with where=, which signals whatever is computed")

    def guarded(value: Any) -> Any:
        if not isinstance(value, Traced):
            return value
        broadcast([value.type.shape, where.type.shape])
        item = value.type.dtype.type(number).item()
        return Traced(b.op("where", where.node, value.node, item), value.scalar and where.scalar)

    return [guarded(value) for value in operands]


def _is_harmless(ufunc: np.ufunc, operands: Sequence[Any], number: int, rest: Mapping[str, Any]) -> bool:
    values = [o.type.dtype.type(number) if isinstance(o, Traced) else o for o in operands]
    if not all(map(is_constant, values)):
        return number == 1
    try:
        with strict():
            ufunc(*values, **rest)
    except Exception:  # whatever it is, the operation is not harmless there
        return False
    return True


def unpacked(out: Any) -> Any:
    """Returns the array of ``out=``; ufuncs and their methods also accept a tuple, other functions do not."""
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


# -- other functions -----------------------------------------------------------------------------------------------


def split(
    signature: inspect.Signature | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any], Any] | None:
    """A call's arguments without the output, and the output; None where the call has none."""
    parameters = [] if signature is None else list(signature.parameters.values())
    places = [i for i, parameter in enumerate(parameters) if parameter.name == "out"]
    if not _no_array(kwargs.get("out")):
        if not places:
            raise CannotCapture("unsupported-argument", "out= of a function that is not known to have it")
        return args, {name: value for name, value in kwargs.items() if name != "out"}, kwargs["out"]
    if not places or parameters[places[0]].kind is inspect.Parameter.KEYWORD_ONLY or len(args) <= places[0]:
        return None
    (place,) = places
    if _no_array(args[place]):
        return None
    return (*args[:place], parameters[place].default, *args[place + 1 :]), kwargs, args[place]


def call_into(b: Builder, name: str, run: Call, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> Traced:
    """A function, called ``name``, with its result in ``out``; ``run`` builds it without."""
    target = target_of(out)
    of_array = name in _COPIES_FIRST and isinstance(args[0], Traced) and not args[0].scalar
    if not target.type.ndim and not of_array:  # some then return a scalar, not the output
        raise CannotCapture("unsupported-argument", f"np.{name} with an output of rank 0")
    if name in _ONE_OF_BOTH and kwargs.get("dtype") is not None:
        raise CannotCapture("operation-raises", f"np.{name} takes out= or dtype=, not both")
    if name not in _COPIES_FIRST and any(root(x.node) is root(target.node) for x in _arrays(args, kwargs)):
        raise CannotCapture("writes-to-array", f"np.{name} with an output that may share memory with its arguments")
    if name in _INTO_C_ORDER and (not target.type.c_contiguous or _ends_in_vectors(name, args)):
        raise CannotCapture("operation-raises", f"np.{name} with an output that is not in C order")
    result = run(args, kwargs)
    if not isinstance(result, Traced) or result.type.dtype != target.type.dtype or result.type.dtype.name == "float16":
        raise CannotCapture("unsupported-argument", f"np.{name} with an output of another dtype")
    shape = result.type.shape
    if len(shape) != target.type.ndim or not all(map(sizes_equal, shape, target.type.shape)):
        raise CannotCapture("operation-raises", f"np.{name} with an output of another shape")
    return b.write(target, cast(b, result, target.type.dtype))


def _arrays(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Traced]:
    """The arrays among the arguments, those in lists too."""
    found: list[Traced] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Traced):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _arrays(value, {})
    return found
