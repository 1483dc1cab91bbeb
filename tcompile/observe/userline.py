"""Shows the user's own lines, with a caret under the part that matters.

Enters: ``UserLine`` values. Leaves: text in the layout of Python's tracebacks, which editors and notebooks
turn into links. Exists so that every error and report points at user code in one and the same way.

Columns are those of the compiled code's positions: 0-based offsets in UTF-8 bytes of the whole line.
"""

from __future__ import annotations

import linecache
import unicodedata
from collections.abc import Callable, Sequence

from tcompile.observe.events import UserLine


def format_stack(stack: Sequence[UserLine], *, title: str = "from user code:", caret: bool = True) -> str:
    """``stack`` (outermost first) under ``title``, the innermost line with a caret.

    >>> line = UserLine(file="a.py", line=3, function="f", text="    return g(x)", column=11, end_column=15)
    >>> print(format_stack([line]))
    from user code:
      File "a.py", line 3, in f
        return g(x)
               ^^^^
    """
    parts = [title] if title else []
    for position, line in enumerate(stack):
        parts.append(format_line(line, caret=caret and position == len(stack) - 1))
    return "\n".join(parts)


def format_line(line: UserLine, *, caret: bool = True) -> str:
    """One place: its file and line, then its text where it can be had, then the caret."""
    label = file_label(line.file)
    file = f'File "{line.file}"' if label == line.file else label
    place = f"  {file}, line {line.line}" + (f", in {line.function}" if line.function else "")
    text = source_text(line)
    if not text.strip():
        return place
    shown = f"{place}\n    {text.strip()}"
    # Text that lost its indentation on the way can be marked only where the file gives it back.
    whole = text[:1].isspace() or text == _file_text(line)
    marks = caret_line(line, text) if caret and whole else ""
    return f"{shown}\n    {marks}" if marks else shown


_labels: tuple[Callable[[str], str | None], ...] = ()


def label_files(label: Callable[[str], str | None]) -> Callable[[], None]:
    """Lets ``label`` name files that the user knows otherwise, such as cells. Returns what undoes it.

    ``label(path)`` returns the name, or None where it has none.
    """
    global _labels
    _labels = (*_labels, label)

    def remove() -> None:
        global _labels
        _labels = tuple(other for other in _labels if other is not label)

    return remove


def file_label(file: str) -> str:
    """What the user knows a file by: its path, or a name that was given to it (``Cell In[3]``).

    >>> remove = label_files({"/tmp/1234.py": "Cell In[3]"}.get)
    >>> file_label("/tmp/1234.py"), file_label("a.py")
    ('Cell In[3]', 'a.py')
    >>> remove()
    """
    return next((name for label in _labels if (name := label(file)) is not None), file)


def source_text(line: UserLine) -> str:
    """The whole source line, indentation included where the file can be read."""
    full = _file_text(line)
    # A file may have changed since it was compiled: then the text that was kept counts.
    return full if full.strip() and (not line.text or full.strip() == line.text.strip()) else line.text


def _file_text(line: UserLine) -> str:
    return linecache.getline(line.file, line.line).rstrip("\n") if line.file and line.line else ""


def caret_line(line: UserLine, text: str) -> str:
    """Spaces and carets that mark ``line``'s columns under ``text.strip()``; "" where they mark nothing."""
    if line.column is None:
        return ""
    raw = text.rstrip().encode()
    start = len(raw[: line.column].decode(errors="ignore"))
    ends_here = line.end_column is not None and line.end_column > line.column
    end = len(raw[: line.end_column].decode(errors="ignore")) if ends_here else len(text.rstrip())
    indent = len(text) - len(text.lstrip())
    start, end = max(start, indent), max(end, indent)
    if start >= end:
        return ""
    lead = "".join("\t" if c == "\t" else " " * _width(c) for c in text[indent:start])
    return lead + "^" * sum(map(_width, text[start:end]))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


__all__ = ["caret_line", "format_line", "format_stack", "source_text"]
