"""Re-checks everything that an entry has read.

Input: an entry's prologue, and the variables of a running call.
Output: whether the same loads and guards still give the same.
Why: a signal handler or another thread may change a global, an attribute or an item while a captured loop runs. The
loop has read it once, before its first iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.callers import raise_if_callers
from tcompile.capture.guards.prologue import LoadStep, Prologue
from tcompile.capture.guards.sources import ComputedSource

_NUMBERS = (bool, int, float, complex, str, bytes)
_MISSING = object()


class Reread:
    """The loads and guards of one entry, to be done again.

    Attributes:
        arity: number of the entry's parameters.
        variables: names of what is loaded, in order.
    """

    def __init__(self, prologue: Prologue, arity: int, names: Mapping[str, Any]) -> None:
        self.arity = arity
        loads = [step for step in prologue.steps if isinstance(step, LoadStep)]
        self.variables = [step.variable for step in loads]
        self._made = {place for place, step in enumerate(loads) if isinstance(step.source, ComputedSource)}
        body = [
            f"{step.variable} = {step.code}" if isinstance(step, LoadStep) else f"if not ({step.code}): return None"
            for step in prologue.steps
        ]
        loaded = "".join(f"{variable}, " for variable in self.variables)
        given = ", ".join(f"p{number}" for number in range(arity))
        text = "\n".join([f"def again({given}):", *(f"    {line}" for line in body), f"    return ({loaded})", ""])
        made = dict(names)
        exec(compile(text, "<tcompile reread>", "exec"), made)
        self._again: Callable[..., tuple[Any, ...] | None] = made["again"]

    def load(self, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
        """What the entry would load now; None where a guard does not hold."""
        try:
            return self._again(*parameters)
        except Exception as error:
            raise_if_callers(error)
            return None

    def has_changed(self, parameters: Sequence[Any], known: Mapping[str, Any]) -> bool:
        """Whether a guard fails now, or a variable would hold another object or number than ``known`` says."""
        now = self.load(parameters)
        if now is None:
            return True
        held = [known.get(variable, _MISSING) for variable in self.variables]
        pairs = enumerate(zip(held, now, strict=True))
        others = [place for place, (one, two) in pairs if not (is_same(one, two) or self._is_equal(place, one, two))]
        if not others:
            return False
        again = self.load(parameters)  # an object that is made by each load tells nothing
        return again is None or any(
            is_same(now[place], again[place]) or self._is_equal(place, now[place], again[place]) for place in others
        )

    def _is_equal(self, place: int, one: Any, two: Any) -> bool:
        """Whether two arrays that the loads have made of other objects, as of a list, have the same bits."""
        if place not in self._made or not type(one) is type(two) is np.ndarray:
            return False
        bits = f"u{one.itemsize}"
        return one.dtype == two.dtype and np.array_equal(one.view(bits), two.view(bits))


def is_same(one: Any, two: Any) -> bool:
    """Whether two loads have given the same object, or equal numbers of one type.

    >>> is_same(1, True), is_same(0.0, -0.0), is_same(float("nan"), float("nan"))
    (False, False, True)
    """
    if one is two or one is _MISSING:
        return True
    return type(one) is type(two) and isinstance(one, _NUMBERS) and repr(one) == repr(two)


__all__ = ["Reread", "is_same"]
