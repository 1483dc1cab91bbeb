"""Tuning of a graph's kernels under ``mode="max-autotune"``.

Input: a graph, the inputs of the call that is being compiled, and a function that builds a variant of it.
Output: the fastest variant (``backends.tuning``) for kernels and sizes like these on this machine with as many threads.
Why: variants give the same bits, so that a wrong choice costs time and nothing else.

Storing small results past the cache is not tried: their next readers would pay for it, and they are not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile.backends import tuning
from tcompile.backends.disk import key_of
from tcompile.backends.llvm import host, native
from tcompile.backends.llvm.kernels.variants import USUAL, KernelVariant
from tcompile.backends.schedule import Schedule
from tcompile.graph import Graph
from tcompile.records import dataclass

_TRIED: dict[str, tuple[Any, ...]] = {
    "chunk": (0.25, 4.0), "past_the_cache": (False,), "unroll": (2, 4), "strip_rows": (64, 128),
}  # fmt: skip


@dataclass
class Made:
    """A graph's kernels and program in one variant. ``text`` is the kernels' IR, from which LLVM makes ``code``.

    ``finish`` waits for that, passes it to the program, and returns the compile time of one kernel in milliseconds.
    """

    schedule: Schedule
    text: str
    host: host.LlvmProgram
    source: str
    program: Callable[..., tuple[Any, ...]]
    finish: Callable[[], float]
    code: native.MachineCode | None = None


def best(graph: Graph, inputs: Sequence[Any], make: Callable[[KernelVariant], Made]) -> KernelVariant:
    """The fastest variant of ``graph`` for ``inputs``, which are left unchanged."""
    usual = make(USUAL)
    choices = _choices(usual)
    if not choices or not _repeatable(usual.schedule):
        return USUAL
    key = key_of(
        "autotune", usual.text, tuning.sizes(inputs), str(native.num_threads()), repr(choices), *native.identity()
    )
    return tuning.fastest(key, USUAL, _TRIED, choices, lambda variant: make(variant).program, graph, inputs)


def _choices(usual: Made) -> dict[str, tuple[Any, ...]]:
    """By property, the alternatives to the default, as far as they change these kernels."""
    forms = {kernel.form for kernel in usual.schedule.kernels}
    matters = {
        "chunk": bool(forms) and native.num_threads() > 1,
        "past_the_cache": "!nontemporal" in usual.text,
        "unroll": "flat" in forms,
        "strip_rows": "tiled" in forms,
    }
    return {name: values for name, values in _TRIED.items() if matters[name]}


def _repeatable(plan: Schedule) -> bool:
    """Whether running the graph again affects only its own arrays: it consists of kernels and views."""
    return all(step.kind in ("kernel", "view") for step in plan.steps)


__all__ = ["Made", "best"]
