"""The old polynomial functions of ``numpy``: Horner's rule in the graph, and shape rules of calls.

Input: coefficients, highest power first.
Output: nodes and shapes.
Why: evaluation fuses; fits and roots stay calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import operators
from tcompile.frontends.numpy.creation import zeros_like
from tcompile.frontends.numpy.indexing import getitem
from tcompile.frontends.numpy.library import Shape, library, refuse, shape_of, total
from tcompile.frontends.numpy.registry import function
from tcompile.frontends.numpy.statistics import QUIET
from tcompile.frontends.numpy.values import array
from tcompile.graph.sizes import Size

_LONGEST = 32  # maximum number of coefficients for unrolling a polynomial


@function("polyval")
def polyval(b: Builder, p: Any, x: Any) -> Any:
    """``np.polyval``: Horner's rule, in the order in which NumPy multiplies and adds."""
    at = array(b, x)
    if isinstance(p, Traced):
        if p.type.ndim != 1 or not isinstance(p.type.shape[0], int) or p.type.shape[0] > _LONGEST:
            raise CannotCapture("unsupported-argument", "polyval with this many coefficients")
        coefficients: list[Any] = [getitem(b, p, i) for i in range(p.type.shape[0])]
    else:
        plain = isinstance(p, list | tuple) and all(type(c) in (bool, int, float, complex) for c in p)
        if not plain or not 0 < len(p) <= _LONGEST:
            raise CannotCapture("unsupported-argument", "polyval with these coefficients")
        coefficients = list(np.asarray(p))
    result: Any = zeros_like(b, at)
    for coefficient in coefficients:
        result = operators.binary(b, "+", operators.binary(b, "*", result, at), coefficient)
    return result


@library("polyval")
def _polyval(p: Any, x: Any) -> Shape:
    return shape_of(x)


def _length(p: Any) -> Size:
    return total(shape_of(p))


@library("polyadd", "polysub")
def polyadd(a1: Any, a2: Any) -> Shape:
    """As long as the longer one."""
    n, m = _length(a1), _length(a2)
    return (n if n > m else m,)


@library("polyder")
def polyder(p: Any, m: Any = 1) -> Shape:
    """Shorter by the order."""
    size = _length(p)
    return (size - m if size > m else 0,)


@library("polyint")
def polyint(p: Any, m: Any = 1, k: Any = None) -> Shape:
    """Longer by the order."""
    return (_length(p) + m,)


@library("polyfit", target=QUIET, values={"x": "range"})
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Shape:
    """The coefficients, for each column of ``y``."""
    if full is not False or cov is not False or type(deg) is not int:
        raise refuse("polyfit with full= or cov=")
    return (deg + 1, *shape_of(y)[1:])


@library("poly")
def poly(seq_of_zeros: Any) -> Shape:
    """Returns one more than the number of zeros. Complex zeros give real coefficients if they are conjugate pairs."""
    shape = shape_of(seq_of_zeros)
    dtype = getattr(seq_of_zeros, "dtype", None)
    if len(shape) != 1 or dtype is None or dtype.kind not in "iuf":
        raise refuse("poly of complex zeros, or of a matrix", "data-dependent-value")
    return (shape[0] + 1,)
