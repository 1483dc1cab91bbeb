"""What of a graph's kernels is timed under ``mode="max-autotune"`` on a GPU, and how the winner is known again.

Enters: a graph, its kernels, and the inputs of the call that is being compiled. Leaves: the ``Config`` that was fastest
(``backends.tuning``) for kernels and sizes like these on a GPU of this name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile.backends import tuning
from tcompile.backends.disk import key_of
from tcompile.backends.schedule import Kernel, Schedule
from tcompile.backends.triton import cubins
from tcompile.backends.triton.configs import USUAL, Config
from tcompile.backends.triton.devices import Device
from tcompile.backends.triton.text import Function
from tcompile.graph import Graph
from tcompile.graph.sizes import hint

TRIED: dict[str, tuple[Any, ...]] = {
    "points": (512, 4096), "side": (16, 64), "elements": (1024, 16384), "columns": (64, 256), "warps": (0.5, 2.0),
    "stages": (1, 5),
}  # fmt: skip


def best(
    graph: Graph, inputs: Sequence[Any], plan: Schedule, functions: Sequence[Function], device: Device,
    make: Callable[[Config], Callable[..., Any]],
) -> Config:  # fmt: skip
    """The fastest configuration for ``inputs``, which are left as they are; the usual one where there is no GPU.

    ``functions`` are those of the usual one.
    """
    choices = _choices(plan.kernels)
    if device.name is None or not choices or not _repeatable(plan):
        return USUAL
    texts = [repr((function.text, function.blocks)) for function in functions]
    key = key_of("autotune", "triton", cubins.version(), device.name, *texts, tuning.sizes(inputs), repr(choices))
    return tuning.fastest(key, USUAL, TRIED, choices, make, graph, inputs, device.finish)


def _choices(kernels: Sequence[Kernel]) -> dict[str, tuple[Any, ...]]:
    """By property, what could be better than the usual, as far as these kernels know the difference."""
    rows = [hint(kernel.axes[kernel.reduced[-1]].size) for kernel in kernels if kernel.reduced]
    matters = {
        "points": any(kernel.form == "flat" for kernel in kernels),
        "side": any(kernel.form == "tiled" for kernel in kernels),
        "elements": bool(rows),
        "columns": any(row > USUAL.columns for row in rows),
        "warps": bool(kernels),
        "stages": any(row > USUAL.columns for row in rows),
    }
    return {name: values for name, values in TRIED.items() if matters[name]}


def _repeatable(plan: Schedule) -> bool:
    """Whether running the graph again has no effect but on its own arrays."""
    return all(
        step.kind in ("kernel", "view")
        or (step.node is not None and str(step.node.attrs.get("target", "")).startswith("cupy."))
        for step in plan.steps
    )


__all__ = ["TRIED", "best"]
