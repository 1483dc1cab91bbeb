"""The NumPy frontend: what NumPy's functions, methods, attributes and operators mean in the graph.

``frontend`` is the object that capture asks; ``registry`` holds the tables; ``values`` reads arguments; ``ufuncs``,
``ufunc_methods`` and ``operators`` promote and compute; one file each for ``reductions``, ``nan_reductions``,
``shape``, ``indexing``, ``joining``, ``creation``, ``elementwise``, ``closeness``, ``composed``, ``linear``,
``einsum``, ``medians``, ``padding``, ``polynomials``, ``scans``, ``opaque``, ``subscripts`` and ``plain`` (what is
known without running); ``forms`` for functions that are followed; ``writing``, ``scattering`` and ``outputs`` for what
stores into arrays, and ``masks`` for elements under a mask. ``library`` makes one call of everything else that has a
shape rule: those of ``statistics``, ``ordering``, ``arranging``, ``fourier`` and ``linear``. ``quiet`` holds calls that
would warn in words, ``refusals`` what is left. ``coverage`` says which is which. Importing this package fills the
tables.
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
