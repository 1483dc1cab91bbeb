"""Shape rules of ``numpy.fft``.

Input: arguments in which types replace arrays.
Output: shapes.
Why: these functions stay one call of NumPy; ``library`` makes a node of a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile.frontends.numpy.library import Shape, along, library, refuse, shape_of
from tcompile.frontends.numpy.values import axis_in
from tcompile.graph.sizes import Size

_Length = Callable[[Size, Any], Size]


def _same(size: Size, n: Any) -> Size:
    return size if n is None else n


def _half(size: Size, n: Any) -> Size:
    return _same(size, n) // 2 + 1


def _doubled(size: Size, n: Any) -> Size:
    return (size - 1) * 2 if n is None else n


def _one_axis(name: str, length: _Length) -> None:
    @library(f"fft.{name}")
    def rule(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Shape:
        """One axis of another length."""
        shape = shape_of(a)
        return along(shape, axis, length(shape[axis_in(axis, len(shape))], n))


for _name, _length in {
    "fft": _same, "ifft": _same, "rfft": _half, "irfft": _doubled, "hfft": _doubled, "ihfft": _half,
}.items():  # fmt: skip
    _one_axis(_name, _length)


def _transformed(shape: Shape, s: Any, axes: Any, last: _Length) -> Shape:
    if s is None and axes is None:
        places = list(range(len(shape)))
    else:
        places = [axis_in(a, len(shape)) for a in (axes if axes is not None else range(-len(s), 0))]
    given: Sequence[Any] = [None] * len(places) if s is None else [None if n == -1 else n for n in s]
    if len(given) != len(places) or not places:
        raise refuse("s and axes of different lengths", "operation-raises")
    for place, n in zip(places[:-1], given[:-1], strict=True):
        shape = along(shape, place, _same(shape[place], n))
    return along(shape, places[-1], last(shape[places[-1]], given[-1]))


def _several_axes(name: str, last: _Length) -> None:
    @library(f"fft.{name}n")
    def rule(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Shape:
        """Several axes of other lengths."""
        return _transformed(shape_of(a), s, axes, last)

    @library(f"fft.{name}2")
    def rule2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Shape:
        """Two axes of other lengths."""
        return _transformed(shape_of(a), s, axes, last)


for _name, _length in {"fft": _same, "ifft": _same, "rfft": _half, "irfft": _doubled}.items():
    _several_axes(_name, _length)


@library("fft.fftshift", "fft.ifftshift")
def shifted(x: Any, axes: Any = None) -> Shape:
    """The same shape."""
    return shape_of(x)


@library("fft.fftfreq")
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Shape:
    """As many as there are samples."""
    return (n,)


@library("fft.rfftfreq")
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Shape:
    """One more than half of the samples."""
    return (n // 2 + 1,)
