"""What a code generator makes of a graph: one callable, with its kernels.

Enters: a host program, the kernels that it starts, the schedule, and what the graph's regions were compiled to. Leaves:
``CompiledGraph``, which the code generators add their own to. Exists so that whoever shows kernels need not know which
of them wrote these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from tcompile.backends.schedule import Schedule
from tcompile.graph import Graph, Node


class CompiledKernel(Protocol):
    """A kernel: its name, and the nodes that it computes."""

    @property
    def name(self) -> str:
        """As the program calls it."""

    @property
    def computed(self) -> tuple[Node, ...]:
        """The nodes, in the graph's order."""


K = TypeVar("K", bound=CompiledKernel)


class CompiledGraph(Generic[K]):
    """A compiled graph: call it with the graph's inputs.

    ``source`` is the host program's text, ``kernels`` the compiled kernels, those of ``parts``, its regions, last.
    """

    def __init__(
        self, program: Callable[..., tuple[Any, ...]], source: str, kernels: list[K], plan: Schedule,
        regions: Mapping[Graph, Any],
    ) -> None:  # fmt: skip
        self.program = program
        self.source = source
        self.schedule = plan
        self.parts: dict[Graph, CompiledGraph[K]] = {
            region: made for region, made in regions.items() if isinstance(made, CompiledGraph)
        }
        self._own = kernels
        self.kernels: list[K] = [*kernels, *(k for part in self.parts.values() for k in part.kernels)]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the graph."""
        return self.program(*inputs)

    def groups(self) -> dict[Graph, dict[str, tuple[str, ...]]]:
        """By graph, this one and those of its regions, and by kernel, the names of the nodes that it computes."""
        found = {
            self.schedule.graph: {kernel.name: tuple(node.name for node in kernel.computed) for kernel in self._own}
        }
        for region, part in self.parts.items():
            inner = part.groups()
            found |= inner | {region: inner[part.schedule.graph]}
        return found


__all__ = ["CompiledGraph", "CompiledKernel"]
