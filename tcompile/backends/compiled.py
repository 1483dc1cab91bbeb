"""What a code generator makes of a graph: one callable, with its kernels.

Input: a host program, the kernels that it starts, the schedule, and what the graph's regions were compiled to. Leaves:
``CompiledGraph``, with a ``CompiledKernel`` for each kernel, which the code generators add their own to. Exists so that
whoever shows kernels need not know which of them wrote these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from tcompile.backends.schedule import Schedule
from tcompile.graph import Graph, Location, Node
from tcompile.graph.verify import user_line
from tcompile.observe import bus
from tcompile.observe.events import KernelCompiled, Lazy
from tcompile.observe.html_form import html_form
from tcompile.records import dataclass


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel as reports show it. ``nodes`` are its results, ``computed`` all that it computes.

    ``lines`` are the user's lines it came from. A code generator adds what it has made of it.
    """

    language: ClassVar[str] = ""  # what ``ir`` is written in

    name: str
    nodes: tuple[Node, ...]
    computed: tuple[Node, ...]
    lines: tuple[Location, ...]
    description: str

    @property
    def ir(self) -> str:
        """The text that was compiled."""
        raise NotImplementedError

    def assembly(self) -> str:
        """The machine code as assembly text, made anew."""
        raise NotImplementedError

    def listings(self) -> tuple[str, str]:
        """``ir`` and ``assembly`` of this kernel alone."""
        return self.ir, self.assembly()

    def view(self) -> Any:
        """The data of its display: a ``tcompile.observe.display.kernels.KernelView``."""
        from tcompile.graph.look import node_views
        from tcompile.observe.display.kernels import KernelView

        ir, assembly = self.listings()
        return KernelView(
            name=self.name, description=self.description, nodes=node_views(self.computed), language=self.language,
            ir=ir, assembly=assembly,
        )  # fmt: skip

    def tell(self, graph: Graph, ms: float) -> None:
        """Tells that it was compiled, in so many milliseconds."""
        if bus.active():
            bus.emit(
                KernelCompiled(
                    kernel=self.name, graph=graph.name, nodes=tuple(n.name for n in self.computed),
                    lines=tuple(map(user_line, self.lines)), ms=ms, description=self.description,
                    language=self.language, get_ir=Lazy(self, lambda kernel: kernel.ir),
                    get_assembly=Lazy(self, lambda kernel: kernel.assembly()),
                )
            )  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        made: dict[str, Any] = self.view().bundle()
        return made

    _repr_html_ = html_form

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {self.description}>"


K = TypeVar("K", bound=CompiledKernel)


class CompiledGraph(Generic[K]):
    """A compiled graph: call it with the graph's inputs.

    ``source`` is the host program's text, ``kernels`` the compiled kernels, those of ``parts``, its regions, last.
    """

    def __init__(
        self,
        program: Callable[..., tuple[Any, ...]],
        source: str,
        kernels: list[K],
        plan: Schedule,
        regions: Mapping[Graph, Any],
    ) -> None:
        self.program = program
        self.source = source
        self.schedule = plan
        self.parts: dict[Graph, CompiledGraph[K]] = {
            region: made for region, made in regions.items() if isinstance(made, CompiledGraph)
        }
        self.kernels: list[K] = []
        self._take(kernels)

    def _take(self, kernels: list[K]) -> None:
        """Notes its own kernels."""
        self._own = kernels
        self.kernels[:] = [*kernels, *(k for part in self.parts.values() for k in part.kernels)]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the graph."""
        return self.program(*inputs)

    @property
    def iterations(self) -> frozenset[str]:
        """Who runs the iterations of loops here and in regions: "machine code", "python iterations"."""
        return frozenset().union(*(part.iterations for part in self.parts.values()))

    def settle(self) -> None:
        """Waits for its machine code where that is still being made. Raises what went wrong with it."""

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
