"""The NumPy frontend: what NumPy's functions, methods, attributes and operators mean in the graph.

``frontend`` is the object that capture asks; ``registry`` holds the tables; ``values`` reads arguments;
``ufuncs`` and ``operators`` promote and compute; one file each for ``reductions``, ``shape``, ``indexing``,
``joining``, ``creation``, ``elementwise``, ``linear``, ``opaque`` and ``plain`` (what is known without
running). Importing this package fills the tables.
"""

from tcompile.frontends.numpy import (
    creation,
    elementwise,
    indexing,
    joining,
    linear,
    opaque,
    plain,
    reductions,
    shape,
)
from tcompile.frontends.numpy.frontend import NumPyFrontend, coverage

__all__ = [
    "NumPyFrontend", "coverage", "creation", "elementwise", "indexing", "joining", "linear", "opaque",
    "plain",
    "reductions", "shape",
]  # fmt: skip
