"""Coverage: how every public name of NumPy is treated.

Input: the tables of this package.
Output: rows: *fused* (computed by kernels, or known at capture), a *call* (one call of NumPy, fused around), or a
*break* (plain Python), and the reason.
Why: a test checks that no name is missing, and a document lists them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from tcompile.frontends.numpy import plain, refusals, subscripts, ufuncs
from tcompile.frontends.numpy.forms import FORMS
from tcompile.frontends.numpy.library import METHOD_RULES, RULES
from tcompile.frontends.numpy.registry import ATTRIBUTES, FUNCTIONS, METHODS, OPAQUE, lookup
from tcompile.frontends.numpy.values import takes_dtype
from tcompile.graph.ops.draws import method_of
from tcompile.records import dataclass
from tcompile.strict import strict

State = Literal["fused", "call", "break"]

SECTIONS = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.ndarray")


@dataclass(frozen=True)
class CoverageRow:
    """One name. ``reason`` is the break's, from the catalogue, and ``detail`` says more."""

    section: str
    name: str
    state: State
    reason: str = ""
    detail: str = ""


def coverage() -> list[CoverageRow]:
    """Every public function, class, method and attribute, section by section, in alphabetical order."""
    return [row for section in SECTIONS for row in _section(section)]


def _section(section: str) -> Iterator[CoverageRow]:
    if section == "numpy.ndarray":
        for name in sorted(n for n in dir(np.ndarray) if not n.startswith("_")):
            yield _of_arrays(section, name)
        return
    prefix = section.partition(".")[2]
    owner = lookup(prefix) if prefix else np
    for name in sorted(n for n in dir(owner) if not n.startswith("_")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated names warn
            found = getattr(owner, name)
        if any(found is owner for owner in subscripts.OWNERS):
            yield CoverageRow(section, name, "call" if found in subscripts.SUBSCRIPTED else "fused")
        elif callable(found):
            if prefix == "random":
                drawn = method_of(np.random.RandomState, name) is not None
                detail = "in loops machine code draws" if drawn else "NumPy's generator advances by NumPy alone"
                yield CoverageRow(section, name, "break", "random-numbers", detail)
            else:
                yield _of_functions(section, name, found)


def _of_functions(section: str, name: str, function: Any) -> CoverageRow:
    fused = function in FORMS or (function in FUNCTIONS and function not in OPAQUE)
    if fused or function in plain.OF_DTYPES:
        return CoverageRow(section, name, "fused")
    if isinstance(function, type) and issubclass(function, np.generic) and _is_taken(function):
        return CoverageRow(section, name, "fused")
    if isinstance(function, np.ufunc) and function in ufuncs.ROWS:
        return CoverageRow(section, name, "fused")
    called = function in FUNCTIONS or function in RULES
    if called or (isinstance(function, np.ufunc) and ufuncs.rule_of(function) is not None):
        return CoverageRow(section, name, "call")
    return CoverageRow(section, name, "break", *_why(refusals.FUNCTIONS.get(function)))


def _is_taken(scalar: type[np.generic]) -> bool:
    try:
        with strict():
            dtype = np.dtype(scalar)
    except (TypeError, Warning):  # of abstract classes
        return False
    return takes_dtype(dtype) and dtype.type is scalar


def _of_arrays(section: str, name: str) -> CoverageRow:
    if name in ATTRIBUTES:
        return CoverageRow(section, name, "fused")
    if name in METHODS or name in METHOD_RULES:
        function = lookup(name)
        call = name not in METHODS or (function is not None and function in OPAQUE)
        return CoverageRow(section, name, "call" if call else "fused")
    return CoverageRow(section, name, "break", *_why(refusals.METHODS.get(name) or refusals.ATTRIBUTES.get(name)))


def _why(refusal: refusals.Refusal | None) -> refusals.Refusal:
    return ("unknown-function", "not known") if refusal is None else refusal
