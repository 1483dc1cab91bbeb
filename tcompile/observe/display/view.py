"""The base class of views: data that displays itself.

Input: a frozen dataclass of facts.
Output: a MIME bundle with three forms: JSON under a type of tcompile's own, for front ends that draw by themselves;
HTML; text.
Why: every display is made of data alone, and can be rebuilt from a saved notebook.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from tcompile.observe.display import html
from tcompile.observe.html_form import html_form
from tcompile.records import dataclass

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class View:
    """A display. ``kind`` is its part of the MIME type ``application/vnd.tcompile.<kind>+json``.

    Fields whose names begin with ``draw_`` are drawings, and not part of the JSON.
    """

    kind: ClassVar[str] = "view"

    @classmethod
    def mime(cls) -> str:
        """Returns the MIME type of the JSON form."""
        return f"application/vnd.tcompile.{cls.kind}+json"

    def data(self) -> dict[str, Any]:
        """Returns the facts as JSON-able values, with ``kind`` and ``version``; ``schema.schema()`` states the form."""
        return {"kind": self.kind, "version": VERSION, **plain(self)}

    def body(self) -> str:
        """Returns the view as HTML, without its frame."""
        raise NotImplementedError

    def html(self) -> str:
        """Returns the view as HTML."""
        return html.page(self.body(), self.kind)

    def text(self) -> str:
        """Returns the view as text."""
        raise NotImplementedError

    def __str__(self) -> str:
        return html.printable(self.text())

    def bundle(self, **more: Any) -> dict[str, Any]:
        """Returns the MIME bundle; ``more`` are further forms."""
        return {self.mime(): self.data(), "text/html": self.html(), "text/plain": str(self), **more}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.bundle()

    _repr_html_ = html_form


def plain(value: Any) -> Any:
    """Returns ``value`` in JSON types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (f.name for f in dataclasses.fields(value) if not f.name.startswith("draw_"))
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such numbers
    return value if isinstance(value, str | int | float | bool | None) else str(value)


__all__ = ["VERSION", "View", "plain"]
