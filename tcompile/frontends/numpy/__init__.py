"""The NumPy frontend: functions, methods, attributes and operators of NumPy as nodes of the graph.

Input: NumPy objects, and calls on traced values.
Output: ``frontend``, the object that capture calls.
Why: all knowledge of NumPy is in this package. Importing it fills the tables.

``registry`` holds the tables; ``values`` reads arguments; ``ufuncs``, ``ufunc_methods`` and ``operators`` promote and
compute. One file each holds ``reductions``, ``nan_reductions``, ``shape``, ``indexing``, ``joining``, ``creation``,
``elementwise``, ``closeness``, ``composed``, ``linear``, ``einsum``, ``medians``, ``padding``, ``polynomials``,
``scans``, ``opaque``, ``subscripts`` and ``plain`` (constants known at capture).

``forms`` is for functions that are inlined; ``writing``, ``scattering`` and ``outputs`` for writes to arrays, and
``masks`` for elements under a mask. ``library`` makes one call of every other function with a shape rule: those of
``statistics``, ``ordering``, ``arranging``, ``fourier`` and ``linear``. ``quiet`` holds calls that would warn in words,
``refusals`` the rest. ``coverage`` lists which is which.
"""

from tcompile.frontends.numpy import (
    arranging,
    closeness,
    composed,
    creation,
    einsum,
    elementwise,
    fourier,
    indexing,
    joining,
    linear,
    medians,
    nan_reductions,
    opaque,
    ordering,
    padding,
    plain,
    polynomials,
    reductions,
    scans,
    scattering,
    shape,
    statistics,
    writing,
)
from tcompile.frontends.numpy.coverage import coverage
from tcompile.frontends.numpy.frontend import NumPyFrontend

__all__ = [
    "NumPyFrontend", "arranging", "closeness", "composed", "coverage", "creation", "einsum", "elementwise", "fourier",
    "indexing", "joining", "linear", "medians", "nan_reductions", "opaque", "ordering", "padding", "plain",
    "polynomials", "reductions", "scans", "scattering", "shape", "statistics", "writing",
]  # fmt: skip
