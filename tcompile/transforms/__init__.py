"""Transforms: passes from Graph to Graph, one a file, in a fixed order.

Input: a captured graph.
Output: an equivalent graph of fewer and simpler operations.
Why: backends get canonical graphs.

No pass edits a graph in place, and each preserves every bit, every floating-point condition and the aliasing of
results. ``autodiff`` and ``batching``, which capture calls, add nodes to a graph. ``rewrite`` is the framework of
a pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tcompile.graph import Graph
from tcompile.observe import bus
from tcompile.observe.events import Lazy, PassFinished
from tcompile.transforms.cse import eliminate_common_subexpressions
from tcompile.transforms.dce import eliminate_dead_code
from tcompile.transforms.decompose import decompose
from tcompile.transforms.fold import fold
from tcompile.transforms.rewrite import Pass, asks_sizes
from tcompile.transforms.sinks import sink_views
from tcompile.transforms.store_parts import store_parts

PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("decompose", decompose),  # means, variances and clips into primitive rows
    ("fold", fold),  # constants, casts of casts, views of views
    ("cse", eliminate_common_subexpressions),  # common subexpression elimination
    ("sinks", sink_views),  # in loops, views are sunk to their uses
    ("dce", eliminate_dead_code),  # dead code elimination
    ("store_parts", store_parts),  # in loops, parts of joined arrays are stored in place
)


def run(
    graph: Graph,
    verify: Callable[[Graph], None] | None = None,
    on_pass: Callable[[str, Graph], None] | None = None,
) -> Graph:
    """Runs the passes on ``graph``, and returns the last graph.

    ``verify(graph)`` checks the result of every pass (it raises GraphError), ``on_pass(name, graph)`` is called with
    it. Each pass emits an event.
    """
    for name, transform in PIPELINE:
        before, started = graph.op_count, time.perf_counter()
        graph = transform(graph)
        milliseconds = (time.perf_counter() - started) * 1e3
        if bus.active():
            bus.emit(
                PassFinished(name=name, ms=milliseconds, before=before, after=graph.op_count, get_graph=Lazy(graph))
            )
        if verify is not None:
            verify(graph)
        if on_pass is not None:
            on_pass(name, graph)
    return graph


__all__ = [
    "PIPELINE",
    "Pass",
    "asks_sizes",
    "decompose",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "fold",
    "run",
    "sink_views",
]
