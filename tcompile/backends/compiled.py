"""The compiled form of a graph: one callable, with its kernels.

Input: a host program, the kernels that it launches, the schedule, and the compiled regions.
Output: ``CompiledGraph``, with a ``CompiledKernel`` for each kernel.
Why: reports show kernels without knowing which code generator wrote them.

Code generators subclass both, and add their own fields.
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
    """One kernel as reports show it. ``nodes`` are its results, ``computed`` all nodes that it computes.

    ``lines`` are the user's lines it came from. Code generators add the generated code.
    """

    language: ClassVar[str] = ""  # the language of ``ir``

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
        """The machine code as assembly text, generated on demand."""
        raise NotImplementedError

    def listings(self) -> tuple[str, str]:
        """``ir`` and ``assembly`` of this kernel alone."""
        return self.ir, self.assembly()

    def view(self) -> Any:
        """The data of its display: a ``tcompile.observe.display.kernels.KernelView``."""
        from tcompile.graph.display import node_views
        from tcompile.observe.display.kernels import KernelView

        ir, assembly = self.listings()
        return KernelView(
            name=self.name, description=self.description, nodes=node_views(self.computed), language=self.language,
            ir=ir, assembly=assembly,
        )  # fmt: skip

    def report_compiled(self, graph: Graph, ms: float) -> None:
        """Emits the event that says that it was compiled, in so many milliseconds."""
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
        """Records its own kernels, and those of its regions."""
        self._own = kernels
        self.kernels[:] = [*kernels, *(k for part in self.parts.values() for k in part.kernels)]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the graph."""
        return self.program(*inputs)

    @property
    def iterations(self) -> frozenset[str]:
        """How iterations of loops run, here and in regions: "machine code", "python iterations"."""
        return frozenset().union(*(part.iterations for part in self.parts.values()))

    def settle(self) -> None:
        """Waits for machine code that is still being compiled. Raises the compiler's error."""

    def groups(self) -> dict[Graph, dict[str, tuple[str, ...]]]:
        """The names of nodes by graph (this one and those of its regions) and by kernel."""
        found = {
            self.schedule.graph: {kernel.name: tuple(node.name for node in kernel.computed) for kernel in self._own}
        }
        for region, part in self.parts.items():
            inner = part.groups()
            found |= inner | {region: inner[part.schedule.graph]}
        return found


__all__ = ["CompiledGraph", "CompiledKernel"]
