"""A plotly plot in the page that takes a whole figure at a time.

Input: traces and a layout.
Output: the plot, redrawn in place when they change.
Why: plotly's own widget synchronises by differences, some of which are lost if a thread measures, and sends its library
with each plot. Here the figure is sent whole, and plotly.js, from the package plotly, once.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

_HERE = Path(__file__).parent


class Library(ipywidgets.Widget):  # type: ignore[misc]
    """plotly.js, as state shared by the plots of a page."""

    code = traitlets.Unicode("").tag(sync=True)


_library: list[Library] = []  # one for the kernel, made with the first plot


def library() -> Library:
    """Returns this kernel's only library, sent to the page on first use."""
    if not _library or _library[0].comm is None:  # all widgets may have been closed since
        _library[:] = [Library(code=(files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8"))]
    return _library[0]


class Plot(anywidget.AnyWidget):  # type: ignore[misc]
    """A figure: its ``data``, a list of plotly's traces, and its ``layout``, as plain values."""

    _esm = (_HERE / "plot.js").read_text(encoding="utf-8")
    library = traitlets.Any().tag(sync=True, **ipywidgets.widget_serialization)
    data = traitlets.List().tag(sync=True)
    layout_of_plot = traitlets.Dict().tag(sync=True)

    def __init__(self, **settings: Any) -> None:
        super().__init__(library=library(), **settings)

    def show(self, data: list[dict[str, Any]], layout: dict[str, Any]) -> None:
        """Shows another figure in place."""
        with self.hold_sync():
            self.data, self.layout_of_plot = data, layout


__all__ = ["Library", "Plot", "library"]
