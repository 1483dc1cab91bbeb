"""The transforms: Graph to Graph, one pass a file, run as one column.

Input: a captured graph. Output: an equivalent graph of fewer and simpler operations. No pass edits a graph
in place, and each keeps every bit, every floating-point condition and which results share memory. ``rewrite`` is how
a pass is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tcompile.graph import Graph
from tcompile.observe import bus
from tcompile.observe.events import Lazy, PassFinished
from tcompile.transforms.cse import merge_common
from tcompile.transforms.dce import drop_dead
from tcompile.transforms.decompose import decompose
from tcompile.transforms.fold import fold
from tcompile.transforms.places import store_parts
from tcompile.transforms.rewrite import Pass, asks_sizes
from tcompile.transforms.rolls import merge_rolls
from tcompile.transforms.sinks import sink_views

PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("decompose", decompose),  # means, variances and clips into primitive rows
    ("fold", fold),  # constants, casts of casts, views of views
    ("cse", merge_common),  # equal nodes become one
    ("sinks", sink_views),  # in loops, views are made where they are read
    ("dce", drop_dead),  # what nobody can notice goes
    ("rolls", merge_rolls),  # rolls of one array become slices of one copy
    ("places", store_parts),  # in loops, parts of joined arrays are stored where they belong
)


def run(
    graph: Graph,
    verify: Callable[[Graph], None] | None = None,
    on_pass: Callable[[str, Graph], None] | None = None,
) -> Graph:
    """Runs the column on ``graph``, and returns the last graph.

    ``verify(graph)`` checks the result of every pass (it raises GraphError), ``on_pass(name, graph)`` sees
    it. Each pass is told to the event stream.
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
    "drop_dead",
    "fold",
    "merge_common",
    "merge_rolls",
    "run",
    "sink_views",
]
