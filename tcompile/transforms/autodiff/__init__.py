"""Derivatives of graphs: reverse mode, rule by rule.

Input: a graph, or the part of one that a captured function has added.
Output: nodes for the cotangents.
Why: gradients are graphs like all others. ``table`` says which operation has which rule, ``reverse`` walks through a
graph.
"""

from tcompile.transforms.autodiff import (
    calls,
    complex_functions,
    control,
    exit_loops,
    fourier,
    loops,
    pointwise,
    reductions,
    scalar_loops,
    structure,
)
from tcompile.transforms.autodiff.reverse import backward
from tcompile.transforms.autodiff.table import NO_VJP, VJPS

__all__ = [
    "NO_VJP",
    "VJPS",
    "backward",
    "calls",
    "complex_functions",
    "control",
    "exit_loops",
    "fourier",
    "loops",
    "pointwise",
    "reductions",
    "scalar_loops",
    "structure",
]
