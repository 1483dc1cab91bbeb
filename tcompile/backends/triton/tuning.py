"""Tuning of a graph's kernels under ``mode="max-autotune"`` on a GPU.

Input: a graph, its kernels, and the inputs of the call that is being compiled.
Output: the fastest ``TilingConfig`` (``backends.tuning``) for kernels and sizes like these on a GPU of this name.
Why: the best tiling depends on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from tcompile.backends import tuning
from tcompile.backends.disk import key_of
from tcompile.backends.schedule import Kernel, Schedule
from tcompile.backends.triton import cubins, products
from tcompile.backends.triton.configs import USUAL, TilingConfig
from tcompile.backends.triton.devices import Device
from tcompile.backends.triton.small_reductions import has_small_rows
from tcompile.backends.triton.text import TritonFunction
from tcompile.graph import Graph
from tcompile.graph.sizes import hint

TRIED: dict[str, tuple[Any, ...]] = {
    "padded": (True,),
    "tile": ((32, 64, 32), (64, 32, 64), (64, 64, 32), (64, 128, 32), (128, 64, 32), (128, 128, 32), (128, 256, 32)),
    "points": (512, 4096), "side": (16, 32), "elements": (1024, 16384), "rows": (16, 64), "chunk": (1 << 13, 1 << 15),
    "warps": (0.5, 2.0), "stages": (1, 5),
}  # fmt: skip
DIVIDED = frozenset(TRIED) - {"tile", "padded"}  # properties that divide the existing kernels among programs
FUSED, FILLED_UP = frozenset({"tile"}), frozenset({"padded"})


def best(
    graph: Graph,
    inputs: Sequence[Any],
    usual: TilingConfig,
    tuned: Set[str],
    plan: Schedule,
    functions: Sequence[TritonFunction],
    device: Device,
    make: Callable[[TilingConfig], Callable[..., Any]],
) -> TilingConfig:
    """The fastest configuration for ``inputs``, which are left unchanged; the default where there is no GPU.

    ``tuned`` are the properties that may vary, ``functions`` those of the default.
    """
    choices = {
        name: tuple(value for value in values if value != getattr(usual, name))
        for name, values in _choices(graph, plan.kernels).items() if name in tuned
    }  # fmt: skip
    if device.name is None or not choices or not _repeatable(plan):
        return usual
    texts = [repr((function.text, function.blocks)) for function in functions]
    key = key_of("autotune", "triton", cubins.version(), device.name, *texts, tuning.sizes(inputs), repr(choices))
    return tuning.fastest(key, usual, TRIED, choices, make, graph, inputs, device.finish)


def _choices(graph: Graph, kernels: Sequence[Kernel]) -> dict[str, tuple[Any, ...]]:
    """By property, the alternatives to the default, as far as they change these kernels."""
    multiplied = any(map(products.is_product, graph.nodes))
    rows = [hint(kernel.axes[kernel.reduced[-1]].size) for kernel in kernels if kernel.reduced]
    matters = {
        "points": any(kernel.form == "flat" for kernel in kernels),
        "side": any(kernel.form == "tiled" or (kernel.reduced and has_small_rows(kernel)) for kernel in kernels),
        "elements": bool(rows),
        "rows": any(kernel.form in ("columns", "scan_columns") for kernel in kernels),
        "chunk": any(row > USUAL.elements // USUAL.rows for row in rows),
        "padded": any(map(products.is_ragged, graph.nodes)),
        "tile": multiplied,
        "warps": bool(kernels) or multiplied,
        "stages": any(row > USUAL.elements // USUAL.rows for row in rows) or multiplied,
    }
    return {name: values for name, values in TRIED.items() if matters[name]}


def _repeatable(plan: Schedule) -> bool:
    """Whether running the graph again affects only its own arrays."""
    return all(
        step.kind in ("kernel", "view")
        or (step.node is not None and str(step.node.attrs.get("target", "")).startswith("cupy."))
        for step in plan.steps
    )


__all__ = ["DIVIDED", "FILLED_UP", "FUSED", "TRIED", "best"]
