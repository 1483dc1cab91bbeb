"""A picture in the page whose parts can be clicked.

Input: HTML made by tcompile (SVG, as a rule), and for each part that is named in it (``data-node``) what to say of it.
Output: the name of the part that was clicked. Exists as a front end of our own: its script and style are files of this
package, and load nothing from elsewhere.
"""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

from tcompile_jupyter.widgets.shown import plain

_HERE = Path(__file__).parent

Detail = tuple[str, str]
"""A heading, and text, which is shown as it is."""


class Picture(anywidget.AnyWidget):  # type: ignore[misc]
    """A picture that scrolls and zooms. ``selected`` is the name of the clicked part, "" where none is.

    ``html`` is put into the page as it is, so whoever makes it escapes what comes from the user; ``details`` are put
    there as text, beside the picture or ``below`` it.
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
        """Shows another picture; a part that both have stays selected."""
        told = {name: [[plain(h, 80), plain(t, 1500)] for h, t in rows] for name, rows in (details or {}).items()}
        with self.hold_sync():
            if self.selected not in told:
                self.selected = ""
            self.details = told
            self.html = html


__all__ = ["Detail", "Picture"]
