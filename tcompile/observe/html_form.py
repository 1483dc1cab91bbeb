"""The HTML form of an object that displays itself.

Input: an object with ``_repr_mimebundle_``.
Output: the ``text/html`` of its bundle.
Why: marimo shows a bundle as tabs, one for each form, and other pages take no bundles. All of them take
``_repr_html_``.
"""

from __future__ import annotations

from typing import Any, Protocol

HIDDEN = ' hidden="hidden"'
"""The attribute of elements that only a stylesheet shows."""


class Bundled(Protocol):
    """An object that displays itself as a MIME bundle."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]: ...


def html_form(shown: Bundled) -> str:
    """Returns ``shown`` as HTML; the ``_repr_html_`` of classes that have ``_repr_mimebundle_``.

    Drawings are not hidden: pages that use this form keep stylesheets, and some (marimo) never show hidden elements.
    """
    html: str = shown._repr_mimebundle_()["text/html"]
    return html.replace(HIDDEN, "")


__all__ = ["HIDDEN", "Bundled", "html_form"]
