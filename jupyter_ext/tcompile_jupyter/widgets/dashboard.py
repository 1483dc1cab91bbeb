"""Everything about the compiler of this process in one place.

Input: the names of the notebook.
Output: a ``Dashboard``: stance, backend and mode, the timeline, the graphs of a function, and a plot of any typed call.
Why: one display while experimenting.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from tcompile.observe.events import CompileFinished, Event
from tcompile_jupyter.feed import feed
from tcompile_jupyter.status import is_compiled
from tcompile_jupyter.widgets.controls import BackendChooser, ModeChooser, StanceToggle
from tcompile_jupyter.widgets.live_graph import LiveGraph
from tcompile_jupyter.widgets.shown import Shown, text
from tcompile_jupyter.widgets.speedup import SpeedupPlot
from tcompile_jupyter.widgets.timeline import RecompileTimeline

_NONE = "no compiled function yet"


class Dashboard(Shown):
    """The widgets of this package together. ``namespace`` is searched for functions, and calls are evaluated in it."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self.stance, self.backend, self.mode = StanceToggle(), BackendChooser(), ModeChooser()
        self.timeline = RecompileTimeline()
        self._functions = ipywidgets.Dropdown(options=[_NONE], description="function")
        self._graph_place = ipywidgets.VBox()
        self.graph: LiveGraph | None = None
        self._call = ipywidgets.Text(
            placeholder="a call to measure, such as f(x)", continuous_update=False, layout={"width": "380px"}
        )
        self._go = ipywidgets.Button(description="Measure", icon="play")
        self._error = ipywidgets.HTML()
        self._plot_place = ipywidgets.VBox()
        self.plot: SpeedupPlot | None = None
        choosers = ipywidgets.HBox((self.backend, self.mode), layout={"flex_flow": "row wrap"})
        calls = ipywidgets.HBox((self._call, self._go, self._error), layout={"flex_flow": "row wrap"})
        super().__init__((
            self.stance, choosers, _heading("Compiles"), self.timeline, _heading("Graphs"), self._functions,
            self._graph_place, _heading("Speed"), calls, self._plot_place,
        ))  # fmt: skip
        self._functions.observe(lambda change: self._look_at(change["new"]), "value")
        self._go.on_click(lambda _: self.measure(self._call.value))
        self.ends = (feed.open(self._follow),)
        self.refresh()

    def refresh(self) -> None:
        """Searches for the notebook's compiled functions again."""
        names = [name for name, value in list(self._namespace.items()) if _shown(name, value)]
        options = tuple(names) or (_NONE,)
        if tuple(self._functions.options) != options:
            value = self._functions.value
            self._functions.options = options
            self._functions.value = value if value in options else options[-1]
        self._look_at(self._functions.value)

    def measure(self, call: str) -> None:
        """Measures a call given as text, such as ``f(x)``, with the chosen mode."""
        try:
            function, args = _parsed(call, self._namespace)
            settings = {"mode": self.mode.value} if not is_compiled(function) else {}
            plot = SpeedupPlot(function, *args, **settings)
        except Exception as error:
            self._error.value = f"<span style='color:#c62828'>{text(f'{type(error).__name__}: {error}')}</span>"
            return
        self._error.value = ""
        before, self.plot = self.plot, plot
        self._plot_place.children = (plot,)
        if before is not None:
            before.close()

    def _look_at(self, name: str) -> None:
        function = self._namespace.get(name)
        if self.graph is not None and self.graph.function is function:
            return
        before, self.graph = self.graph, LiveGraph(function) if is_compiled(function) else None
        self._graph_place.children = (self.graph,) if self.graph is not None else ()
        if before is not None:
            before.close()

    def _follow(self, batch: tuple[Event, ...]) -> None:
        if any(isinstance(event, CompileFinished) for event in batch):
            self.refresh()
        self.redraw()

    def title(self) -> str:
        """Returns the stance, and how much was compiled."""
        return f"tcompile: {self.stance.title()}; {self.timeline.title()}"

    def picture(self) -> str:
        """Returns the pictures of its parts."""
        parts = (self.stance, self.timeline, self.graph, self.plot)
        return "".join(f"<div>{part.picture()}</div>" for part in parts if part is not None)


def dashboard(namespace: Mapping[str, Any] | None = None) -> Dashboard:
    """Shows stance, backend, mode, timeline, graphs and speed, for functions of the notebook or of ``namespace``."""
    if namespace is None:
        namespace = _notebook()
    return Dashboard(namespace)


def _notebook() -> Mapping[str, Any]:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return vars(sys.modules["__main__"]) if shell is None else shell.user_ns


def _shown(name: str, value: Any) -> bool:
    return not name.startswith("_") and is_compiled(value)


def _parsed(call: str, namespace: Mapping[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Returns the function and the arguments of a call; each is evaluated once."""
    tree = ast.parse(call.strip(), mode="eval").body
    if not isinstance(tree, ast.Call) or tree.keywords:
        raise ValueError("type a call with arguments by position, such as f(x)")

    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<dashboard>", "eval"), dict(namespace))

    return value(tree.func), [value(node) for node in tree.args]


def _heading(says: str) -> Any:
    return ipywidgets.HTML(f"<div style='margin-top:6px;font-weight:600;opacity:.75'>{says}</div>")


__all__ = ["Dashboard", "dashboard"]
