"""Methods of ufuncs: reduce, accumulate, reduceat and outer.

Input: a ufunc, a method's name and its arguments.
Output: reductions and pointwise nodes if the op table has them, else one ``call`` node.
Why: ``np.add.reduce`` is as fast as ``np.sum``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture
from tcompile.frontends.numpy import outputs, reductions, scans, scattering, ufuncs
from tcompile.frontends.numpy.library import Rule, Shape, along, library_call, shape_of, without
from tcompile.frontends.numpy.registry import NO_VALUE, invoke, lookup, refuse_unless
from tcompile.frontends.numpy.values import array, as_ndarray


def _reduce(
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Shape:
    return without(shape_of(array), axis, keepdims)


def _accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Shape:
    return shape_of(array)


def _reduceat(array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Shape:
    (count,) = shape_of(indices)
    return along(shape_of(array), axis, count)


def _outer(A: Any, B: Any, /, *, out: Any = None, dtype: Any = None, casting: Any = None, order: Any = None) -> Shape:
    return (*shape_of(A), *shape_of(B))


_SHAPES: dict[str, Callable[..., Shape]] = {
    "reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat, "outer": _outer,
}  # fmt: skip


@cache
def _rule(ufunc: np.ufunc, name: str) -> Rule | None:
    if name not in _SHAPES or lookup(ufunc.__name__) is not ufunc:
        return None
    return Rule(_SHAPES[name], f"numpy.{ufunc.__name__}.{name}", {"indices": "zeros"})


def outer(b: Builder, ufunc: np.ufunc, A: Any, B: Any, /) -> Any:
    """``ufunc.outer``: the ufunc on all pairs."""
    x, y = array(b, A), array(b, B)
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise CannotCapture("unknown-function", f"{ufunc.__name__}.outer")
    if not x.type.ndim and not y.type.ndim:
        return ufuncs.emit(b, ufunc, [x, y])
    spread = b.op("index", as_ndarray(b, x).node, key=(Ellipsis, *(None,) * y.type.ndim)) if y.type.ndim else x.node
    return ufuncs.emit(b, ufunc, [type(x)(spread), y])


def call_method(b: Builder, ufunc: np.ufunc, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The meaning of ``ufunc.name(*args, **kwargs)``."""
    text = f"{ufunc.__name__}.{name}"
    if name == "at":
        return scattering.combine_at(b, ufunc, args, kwargs)
    handler = {"reduce": reductions.reduce_method, "outer": outer, "accumulate": scans.accumulate}.get(name)
    rule = _rule(ufunc, name)
    if name in _SHAPES:
        found = outputs.split(inspect.signature(_SHAPES[name]), args, kwargs)
        if found is not None:
            inputs, named, out = found
            out = outputs.unpacked(out)
            return outputs.call_into(b, name, lambda a, k: call_method(b, ufunc, name, a, k), inputs, named, out)
    mark = len(b.graph.nodes)
    try:
        if handler is not None:
            return invoke(handler, text, b, [ufunc, *args], kwargs)
    except CannotCapture as refusal:
        if rule is None or refusal.reason not in ufuncs.NOT_FUSED:
            raise
        del b.graph.nodes[mark:]
    if rule is None:
        raise CannotCapture("unknown-function", text)
    refuse_unless(text, out=(kwargs.get("out"), (None,)))
    if name == "reduceat" and len(args) > 1 and isinstance(args[1], list | tuple):
        args = [args[0], array(b, args[1]), *args[2:]]  # an array, for which zeros stand: they fit into any other
    return library_call(b, rule, args, kwargs)
