"""The way into capture: one call of a function becomes an outcome.

Enters: a function, the values of its parameters in one call, and what earlier compiles saw. Leaves: an ``Outcome``: the
program for this kind of call, and the ``GraphBreak`` that says where and why capture stopped, if it did.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcompile.capture.breaks import GraphBreak
from tcompile.capture.dynamic import Profile
from tcompile.capture.entries import local_names
from tcompile.capture.interpreter import Frame
from tcompile.capture.program import Captured, finish, plain
from tcompile.capture.sources import FunctionSource, LocalSource
from tcompile.capture.state import Capture, CaptureOptions
from tcompile.capture.values.base import Unread, Value
from tcompile.capture.values.callable import FunctionValue
from tcompile.errors import StanceError
from tcompile.frontends.base import CannotCapture, Frontend
from tcompile.graph import Graph


@dataclass(frozen=True, slots=True)
class Outcome:
    """The program of one kind of call, and the break that ended capture where there was one."""

    captured: Captured
    graph_break: GraphBreak | None = None


def capture(
    function: types.FunctionType,
    values: Sequence[Any],
    *,
    name: str,
    frontends: Sequence[Frontend],
    options: CaptureOptions,
    profile: Profile,
) -> Outcome:
    """Captures one call of ``function`` whose parameters hold ``values`` (in the order of ``local_names``).

    Raises StanceError where the function changes the stance; everything else that stops capture is in the Outcome.
    """
    outcome, used_floats = _attempt(function, values, name, frontends, options, profile)
    if outcome.graph_break is not None and used_floats:
        profile.floats_open = False  # a float's value may be what was missing: fix them by guards and try again
        fixed, _ = _attempt(function, values, name, frontends, options, profile)
        if fixed.graph_break is None:
            return fixed
        profile.floats_open = True  # it was not
    return outcome


def _attempt(
    function: types.FunctionType, values: Sequence[Any], name: str, frontends: Sequence[Frontend],
    options: CaptureOptions, profile: Profile,
) -> tuple[Outcome, bool]:  # fmt: skip
    """One walk through the function, and whether a float that varies took part in it."""
    code = function.__code__
    names = local_names(code)
    tx = Capture(frontends, options, profile, Graph(name), code)
    try:
        if code.co_flags & 0x2A0:  # generator, coroutine, asynchronous generator
            raise CannotCapture("generator", f"`{function.__qualname__}`")
        root = FunctionValue.of(tx, function, FunctionSource())
        arguments: dict[str, Value] = {
            local: Unread(value, LocalSource(i, local))
            for i, (local, value) in enumerate(zip(names, values, strict=True))
        }
        result = Frame(tx, root, arguments).run()
        return Outcome(finish(tx, result, len(names))), tx.used_floats
    except CannotCapture as stopped:
        broke = GraphBreak(stopped.reason, stopped.detail, tx.user_stack())
    except StanceError:
        raise
    except RecursionError:
        broke = GraphBreak("recursion", "Python's own recursion limit was reached.", tx.user_stack()[:1])
    return Outcome(plain(tx, len(names), broke.reason.id), broke), tx.used_floats

