"""Shape rules of statistics, histograms and smooth functions of samples.

Input: arguments in which types replace arrays.
Output: shapes.
Why: these functions stay one call of NumPy; ``library`` makes a node of a rule.
"""

from __future__ import annotations

from typing import Any

from tcompile.frontends.numpy.library import (
    Shape,
    along,
    library,
    refuse,
    shape_of,
    together,
    total,
    without,
)
from tcompile.frontends.numpy.registry import NO_VALUE
from tcompile.frontends.numpy.values import axis_in
from tcompile.graph import TensorType
from tcompile.graph.sizes import Size

QUIET = "tcompile.frontends.numpy.quiet.{name}"  # NumPy's versions warn in words of a slice without numbers


@library("median", "nanmedian", target=QUIET)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Shape:
    """The reduced shape."""
    return without(shape_of(a), axis, keepdims)


@library("percentile", "quantile")
@library("nanpercentile", "nanquantile", target=QUIET)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    method: Any = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Shape:
    """The quantiles first, then the reduced shape."""
    return (*shape_of(q), *without(shape_of(a), axis, keepdims))


def _refuse_where(where: Any) -> None:
    """Whether NumPy warns of a slice without numbers depends on the values."""
    if where is not NO_VALUE and where is not True:
        raise refuse("where= in a function that warns of slices without numbers")


@library("nanmax", "nanmin", target=QUIET)
def nan_extremum(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NO_VALUE, where: Any = NO_VALUE
) -> Shape:
    """The reduced shape."""
    _refuse_where(where)
    return without(shape_of(a), axis, keepdims)


@library("nanvar", "nanstd", target=QUIET)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Shape:
    """The reduced shape."""
    _refuse_where(where)
    return without(shape_of(a), axis, keepdims)


@library("sum", "prod", "nansum", "nanprod", method=True)
def sums(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Shape:
    """The reduced shape."""
    return without(shape_of(a), axis, keepdims)


@library("max", "min", "amax", "amin", method=True)
def extremum(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NO_VALUE, where: Any = NO_VALUE
) -> Shape:
    """The reduced shape."""
    return without(shape_of(a), axis, keepdims)


@library("any", "all", method=True)
def logical(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = NO_VALUE) -> Shape:
    """The reduced shape."""
    return without(shape_of(a), axis, keepdims)


@library("nanargmax", "nanargmin")
@library("argmax", "argmin", method=True)
def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Shape:
    """The reduced shape."""
    return without(shape_of(a), axis, keepdims)


@library("ptp")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Shape:
    """The reduced shape."""
    return without(shape_of(a), axis, keepdims)


@library("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Shape:
    """The reduced shape."""
    return without(shape_of(a), axis, keepdims)


@library("nanmean", target=QUIET)
@library("mean", method=True)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = NO_VALUE
) -> Shape:
    """The reduced shape. With ``where=``, whether NumPy warns of an empty slice depends on the values."""
    _refuse_where(where)
    return without(shape_of(a), axis, keepdims)


@library("var", "std", method=True)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Shape:
    """The reduced shape. NumPy warns of too few degrees of freedom, which depend on the sizes."""
    _refuse_where(where)
    result = without(shape_of(a), axis, keepdims)
    freedom = ddof if correction is NO_VALUE else correction
    kept = without(shape_of(a), axis)
    if not isinstance(freedom, int | float) or not _counted(shape_of(a), kept, int(freedom)):
        raise refuse("too few degrees of freedom", "operation-raises")
    return result


def _counted(shape: Shape, kept: Shape, least: int) -> bool:
    """Whether more than ``least`` elements are reduced to one."""
    count, rest = total(shape), total(kept)
    return bool(count > 0 and count > rest * (least + 1) - 1 and count > rest * least)


@library("average")
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False
) -> Shape | list[Shape]:
    """Returns the reduced shape, and again for the sum of the weights."""
    shape = without(shape_of(a), axis, keepdims)
    return [shape, shape] if returned is True else shape


@library("cumsum", "cumprod", "nancumsum", "nancumprod", method=True)
def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Shape:
    """The same shape, or all elements in a row."""
    return (total(shape_of(a)),) if axis is None else shape_of(a)


@library("cumulative_sum", "cumulative_prod")
def cumulative(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False
) -> Shape:
    """The same shape, one longer with the initial value."""
    shape = shape_of(x)
    if not shape or (axis is None and len(shape) != 1):
        raise refuse("a scan without an axis", "operation-raises")
    place = axis_in(0 if axis is None else axis, len(shape))
    return along(shape, place, shape[place] + 1) if include_initial is True else shape


@library("cov")
def cov(
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Shape:
    """The variables in both directions. NumPy warns of too few observations, which depend on the sizes."""
    if fweights is not None or aweights is not None:
        raise refuse("cov with weights")
    if not isinstance(rowvar, int) or not isinstance(bias, int) or not isinstance(ddof, int | None):
        raise refuse("cov with arrays for flags")
    rows, observations = _variables(m, rowvar, None)
    if y is not None:
        more, observations = _variables(y, rowvar, observations)
        rows = rows + more
    if not observations > (ddof if ddof is not None else 0 if bias else 1):
        raise refuse("too few observations", "operation-raises")
    return () if rows == 1 else (rows, rows)


def _variables(m: Any, rowvar: Any, observations: Size | None) -> tuple[Size, Size]:
    """The numbers of variables and of observations."""
    shape = shape_of(m)
    if len(shape) > 2:
        raise refuse("more than two dimensions", "operation-raises")
    shape = (*(1,) * (2 - len(shape)), *shape)
    rows, found = shape if rowvar or len(shape_of(m)) < 2 else (shape[1], shape[0])
    if observations is not None and not found == observations:
        raise refuse("different numbers of observations", "operation-raises")
    return rows, found


@library("corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Shape:
    """The variables in both directions."""
    return cov(x, y, rowvar)


def _edges(bins: Any) -> Size:
    """The number of edges."""
    if type(bins) is int:
        return bins + 1
    shape = shape_of(bins)
    if isinstance(bins, str) or len(shape) != 1:
        raise refuse("bins whose number depends on the values", "data-dependent-shape")
    return shape[0]


@library("histogram")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> list[Shape]:
    """Counts and edges."""
    edges = _edges(bins)
    return [(edges - 1,), (edges,)]


@library("histogram_bin_edges")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Shape:
    """The edges."""
    return (_edges(bins),)


@library("histogram2d")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> list[Shape]:
    """Counts, and the edges of both."""
    both = isinstance(bins, list | tuple) and len(bins) == 2
    first, second = (_edges(b) for b in (bins if both else (bins, bins)))
    return [(first - 1, second - 1), (first,), (second,)]


@library("digitize")
def digitize(x: Any, bins: Any, right: Any = False) -> Shape:
    """The shape of the samples."""
    return shape_of(x)


@library("interp")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Shape:
    """The shape of the places."""
    return shape_of(x)


@library("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Shape:
    """The shape without the axis."""
    shape = shape_of(y)
    if isinstance(x, TensorType) and len(shape_of(x)) > 1:
        raise refuse("trapezoid along a grid of several dimensions")
    return without(shape, axis_in(axis, len(shape)))


@library("gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Shape | list[Shape]:
    """The shape of the samples, once for each axis."""
    shape = shape_of(f)
    count = len(shape) if axis is None else len(axis) if isinstance(axis, tuple | list) else 1
    return shape if count == 1 else [shape] * count


@library("diff")
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Shape:
    """Returns the shape; the axis loses an element at each step."""
    shape = shape_of(a)
    place = axis_in(axis, len(shape))
    size = shape[place]
    for more in (prepend, append):
        if more is not NO_VALUE:
            size = size + (shape_of(more)[place] if shape_of(more) else 1)
    if n < 0:
        raise refuse("diff of a negative order", "operation-raises")
    return along(shape, place, size - n if size > n else 0) if n else shape


@library("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Shape:
    """Returns one element less, plus the added ones."""
    size = total(shape_of(ary))
    more = [total(shape_of(part)) for part in (to_end, to_begin) if part is not None]
    count: Size = size - 1 if size > 0 else 0
    for n in more:
        count = count + n
    return (count,)


@library("convolve")
def convolve(a: Any, v: Any, mode: Any = "full") -> Shape:
    """Returns the length for the mode."""
    return _correlated(a, v, mode)


@library("correlate")
def correlate(a: Any, v: Any, mode: Any = "valid") -> Shape:
    """Returns the length for the mode."""
    return _correlated(a, v, mode)


def _correlated(a: Any, v: Any, mode: Any) -> Shape:
    n, m = total(shape_of(a)), total(shape_of(v))
    if not n > 0 or not m > 0 or mode not in ("full", "same", "valid"):
        raise refuse("convolve of an empty array, or of an unknown mode", "operation-raises")
    n, m = (m, n) if m > n else (n, m)
    return ({"full": n + m - 1, "same": n, "valid": n - m + 1}[mode],)


@library("unwrap")
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 6.283185307179586) -> Shape:
    """The same shape."""
    return shape_of(p)


@library("i0", "sinc")
def special(x: Any) -> Shape:
    """The same shape."""
    return shape_of(x)


@library("angle")
def angle(z: Any, deg: Any = False) -> Shape:
    """The same shape."""
    return shape_of(z)


@library("isneginf", "isposinf", "fix")
def one_with_out(x: Any, out: Any = None) -> Shape:
    """The same shape."""
    return shape_of(x)


@library("iscomplex", "isreal")
def predicate(x: Any) -> Shape:
    """The same shape."""
    return shape_of(x)


@library("nan_to_num")
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Shape:
    """The same shape."""
    if copy is not True:
        raise refuse("nan_to_num with copy=False writes to its argument", "writes-to-array")
    return shape_of(x)


@library("round", "around", method=True)
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Shape:
    """The same shape."""
    return shape_of(a)


@library("isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Shape:
    """The common shape."""
    return together(a, b, rtol, atol)


@library("isin")
def isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> Shape:
    """The shape of the elements."""
    return shape_of(element)


@library("where")
def where(condition: Any, x: Any, y: Any, /) -> Shape:
    """The common shape."""
    return together(condition, x, y)


@library("clip", method=True)
def clip(
    a: Any,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    out: Any = None,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    dtype: Any = None,
    casting: Any = "same_kind",
    order: Any = "K",
    where: Any = True,
) -> Shape:
    """The common shape."""
    if where is not True:
        raise refuse("clip with where= leaves elements undefined", "undefined-contents")
    return together(a, *(v for v in (a_min, a_max, min, max) if v is not NO_VALUE and v is not None))
