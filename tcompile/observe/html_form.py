"""The HTML form of an object that shows itself, alone.

Input: an object with ``_repr_mimebundle_``. Output: the ``text/html`` of its bundle. Why: marimo shows a bundle as
tabs, one for each form, and other pages take no bundles. All of them take ``_repr_html_``.
"""

from __future__ import annotations

from typing import Any, Protocol


class Bundled(Protocol):
    """An object that shows itself as a MIME bundle."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]: ...


def html_form(shown: Bundled) -> str:
    """What ``shown`` is as HTML; the ``_repr_html_`` of classes that have ``_repr_mimebundle_``."""
    from tcompile.observe.display import html

    return html.styled(shown._repr_mimebundle_()["text/html"])


__all__ = ["Bundled", "html_form"]
