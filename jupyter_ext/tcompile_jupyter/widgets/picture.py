"""A picture in the page with clickable parts.

Input: HTML made by tcompile (SVG, as a rule), and the details of each part named in it (``data-node``).
Output: the name of the clicked part.
Why: its script and style are files of this package, and load nothing from elsewhere.
"""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

from tcompile_jupyter.widgets.shown import plain

_HERE = Path(__file__).parent

Detail = tuple[str, str]
"""A heading, and text, which is shown unformatted."""


class Picture(anywidget.AnyWidget):  # type: ignore[misc]
    """A picture that scrolls and zooms. ``selected`` is the name of the clicked part, or "".

    ``html`` is inserted unescaped, so its maker escapes user text. ``details`` are inserted as text, beside the picture
    or ``below`` it.
    """

    _esm = (_HERE / "picture.js").read_text(encoding="utf-8")
    _css = (_HERE / "picture.css").read_text(encoding="utf-8")
    html = traitlets.Unicode("").tag(sync=True)
    details = traitlets.Dict().tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    hint = traitlets.Unicode("").tag(sync=True)
    zooms = traitlets.Bool(False).tag(sync=True)
    below = traitlets.Bool(False).tag(sync=True)

    def show(self, html: str, details: dict[str, list[Detail]] | None = None) -> None:
        """Shows another picture; a part in both stays selected."""
        shown = {name: [[plain(h, 80), plain(t, 1500)] for h, t in rows] for name, rows in (details or {}).items()}
        with self.hold_sync():
            if self.selected not in shown:
                self.selected = ""
            self.details = shown
            self.html = html


__all__ = ["Detail", "Picture"]
