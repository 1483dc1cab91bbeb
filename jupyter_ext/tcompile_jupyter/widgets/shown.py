"""The base class of tcompile's widgets: display, saving, and closing.

Input: a widget, and its state as a picture.
Output: two outputs under the cell: the widget, and the picture, which is hidden while the widget lives.
Why: a saved notebook holds no widgets: without a kernel the picture remains. It is plain HTML and an image, so it needs
no script, and survives the removal of styles from untrusted notebooks.

A style sheet in the page decides which of the two is visible. The picture is hidden if the live widget is in the same
document. JupyterLab's note about a missing widget is hidden if the picture is below it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets
from IPython.display import display, update_display

from tcompile.observe.display import html

REST = 2.0
"""Seconds between two pictures of a changing widget."""

# Separate rules: a browser drops a whole rule if it does not know a part of it.
_RULES = (
    "body:has(.{live}) .{saved}{{display:none}}"
    ".jp-OutputArea:has(.{live}) .jp-OutputArea-child:has(.{saved}){{display:none}}"
    ".jp-OutputArea-child:not(:has(.{live})):has(+.jp-OutputArea-child .{saved}){{display:none}}"
)


class Still:
    """The picture alone, for marimo, which has no Jupyter widgets."""

    def __init__(self, picture: str) -> None:
        self._picture = picture

    def _repr_html_(self) -> str:
        why = "marimo shows no Jupyter widgets, so this is a picture: run the cell again to renew it"
        return f'<div>{self._picture}<div style="opacity:.68;font-size:.88em">{why}</div></div>'


class Shown(ipywidgets.VBox):  # type: ignore[misc]
    """A box of widgets with a picture of itself. Subclasses define ``title`` and ``picture``.

    ``ends`` are called when the widget is closed.
    """

    ends: tuple[Callable[[], None], ...] = ()

    def __init__(self, children: tuple[Any, ...] = (), **settings: Any) -> None:
        super().__init__(children, **settings)
        self._places: list[str] = []  # ids of the displays that hold the picture
        self._drawn = 0.0
        self._last = ""
        self.live = f"tc-live-{self.model_id}"
        self.add_class(self.live)

    def title(self) -> str:
        """Returns the state in a line of text."""
        return type(self).__name__

    def picture(self) -> str:
        """Returns the state as HTML without scripts and style sheets."""
        return f"<div>{text(self.title())}</div>"

    def redraw(self, *, now: bool = False) -> None:
        """Updates the picture if it has changed: at once, or unless that happened a moment ago."""
        if not self._places or (not now and time.monotonic() < self._drawn + REST):
            return
        self._drawn = time.monotonic()
        data = self._saved()
        if data["text/html"] != self._last:
            self._last = data["text/html"]
            for place in self._places:
                update_display(data, raw=True, display_id=place)

    def _saved(self) -> dict[str, str]:
        saved = f"tc-saved-{self.model_id}"
        rules = _RULES.format(live=self.live, saved=saved)
        body = f'<style>{rules}</style><div class="{saved}">{self.picture()}</div>'
        return {"text/html": body, "text/plain": plain(self.title())}

    def _ipython_display_(self, **_: Any) -> None:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        said = {"text/plain": f"{type(self).__name__}:", "application/vnd.jupyter.widget-view+json": view}
        display(said, raw=True)
        data = self._saved()
        self._last = data["text/html"]
        handle = display(data, raw=True, display_id=True)
        if handle is not None:
            self._places.append(handle.display_id)

    def settle(self) -> None:
        """Waits until the picture has content."""

    def _display_(self) -> Still:  # marimo asks for it first
        self.settle()
        return Still(self.picture())

    def close(self) -> None:
        """Closes the widget and its children; its picture stays."""
        ends, self.ends = self.ends, ()
        for end in ends:
            end()
        if self.comm is not None and self.children:  # else closed before, or arguments were refused during construction
            self.redraw(now=True)
        _close_inside(self)
        super().close()


def _close_inside(box: Any) -> None:
    for child in box.children:
        if not isinstance(child, Shown) and hasattr(child, "children"):
            _close_inside(child)
        child.close()


def image(svg: str, about: str, width: float | None = None) -> str:
    """Returns an SVG picture as an image, which sanitised HTML keeps."""
    coded = base64.b64encode(svg.encode()).decode()
    size = f' width="{width:.0f}"' if width is not None else ""
    return f'<img alt="{text(about)}"{size} src="data:image/svg+xml;base64,{coded}">'


def plain(value: str, most: int = 300) -> str:
    """Returns shortened text without control characters."""
    return html.cut(html.printable(value[: 4 * most]), most)


def text(value: str, most: int = 300) -> str:
    """Returns the same, escaped for HTML."""
    return escape(plain(value, most))


__all__ = ["REST", "Shown", "Still", "image", "plain", "text"]
