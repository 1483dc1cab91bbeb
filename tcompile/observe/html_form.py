"""The HTML form of an object that shows itself, alone.

Input: an object with ``_repr_mimebundle_``. Output: the ``text/html`` of its bundle. Why: marimo shows a bundle as
tabs, one for each form, and other pages take no bundles. All of them take ``_repr_html_``.
"""

from __future__ import annotations

from typing import Any, Protocol

HIDDEN = ' hidden="hidden"'
"""The attribute of what only a stylesheet shows."""


class Bundled(Protocol):
    """An object that shows itself as a MIME bundle."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]: ...


def html_form(shown: Bundled) -> str:
    """What ``shown`` is as HTML; the ``_repr_html_`` of classes that have ``_repr_mimebundle_``.

    Drawings are not hidden: the pages that take this form keep stylesheets, and some of them (marimo) leave hidden
    whatever says that it is.
    """
    html: str = shown._repr_mimebundle_()["text/html"]
    return html.replace(HIDDEN, "")


__all__ = ["HIDDEN", "Bundled", "html_form"]
