"""Formats the user's own lines, with a caret under the relevant part.

Input: ``UserLine`` values.
Output: text in the layout of Python's tracebacks, which editors and notebooks turn into links.
Why: every error and report points at user code in the same way.

Columns are those of the compiled code's positions: 0-based offsets in UTF-8 bytes of the whole line. If ``end_line`` is
set, ``end_column`` counts in that line.
"""

from __future__ import annotations

import io
import linecache
import re
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import replace

from tcompile.callers import raise_if_callers
from tcompile.records import dataclass

_MARIMO = re.compile(r"__marimo__cell_(\w+?)_(?:\.py)?$")
_MAX_BLOCK = 6  # lines of one expression
_MAX_TEXT = 100  # characters of one


@dataclass(frozen=True, kw_only=True)
class UserLine:
    """A place in the user's code; columns are 0-based. ``end_line`` is set if it spans several lines."""

    file: str = ""
    line: int = 0
    column: int | None = None
    end_column: int | None = None
    function: str = ""
    text: str = ""
    end_line: int = 0


def format_stack(stack: Sequence[UserLine], *, title: str = "from user code:", caret: bool = True) -> str:
    """Formats ``stack`` (outermost first) under ``title``, the innermost line with a caret.

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
    """Formats one place: its file and line, then its text if available, then the caret."""
    label = file_label(line.file)
    file = f'File "{line.file}"' if label == line.file else label
    place = f"  {file}, line {line.line}" + (f", in {line.function}" if line.function else "")
    text = source_text(line)
    if not text.strip():
        return place
    block = _block(line, text) if caret and line.end_line > line.line else []
    if block:
        return "\n".join([place, *(f"    {row}" for row in block)])
    shown = f"{place}\n    {text.strip()}"
    # Text that has lost its indentation can be marked only if the file still has it.
    whole = text[:1].isspace() or text == _file_text(line)
    marks = caret_line(line, text) if caret and whole else ""
    return f"{shown}\n    {marks}" if marks else shown


def _cell_of_marimo(file: str) -> str | None:
    """Returns the cell of a marimo file: marimo compiles each cell as a file of its own, named by the cell."""
    found = _MARIMO.search(file)
    return f"cell {found[1]}" if found else None


_labels: tuple[Callable[[str], str | None], ...] = (_cell_of_marimo,)


def label_files(label: Callable[[str], str | None]) -> Callable[[], None]:
    """Registers ``label``, which names files for the user, such as cells. Returns a function that undoes it.

    ``label(path)`` returns the name, or None if it has none.
    """
    global _labels
    _labels = (*_labels, label)

    def remove() -> None:
        global _labels
        _labels = tuple(other for other in _labels if other is not label)

    return remove


def file_label(file: str) -> str:
    """Returns the user's name of a file: its path, or a registered label (``Cell In[3]``).

    >>> remove = label_files({"/tmp/1234.py": "Cell In[3]"}.get)
    >>> file_label("/tmp/1234.py"), file_label("a.py")
    ('Cell In[3]', 'a.py')
    >>> remove()
    """
    return next((name for label in _labels if (name := label(file)) is not None), file)


def source_text(line: UserLine) -> str:
    """Returns the whole source line, with its indentation if the file can be read."""
    full = _file_text(line)
    # A file may have changed since it was compiled: then the recorded text counts.
    return full if full.strip() and (not line.text or full.strip() == line.text.strip()) else line.text


def file_line(file: str, number: int) -> str:
    """Returns a line of a file, without its end; "" if unavailable (code objects may name any file)."""
    try:
        return linecache.getline(file, number).rstrip("\n")
    except Exception as error:
        raise_if_callers(error)
        return ""


def _file_text(line: UserLine) -> str:
    return file_line(line.file, line.line) if line.file and line.line else ""


def expression_text(line: UserLine) -> str:
    """Returns the expression that ``line`` marks, in one line; the whole line if it marks none.

    >>> _ = linecache.cache.setdefault("b.py", (0, None, ["f(1)\\n"], "b.py"))
    >>> expression_text(UserLine(file="b.py", line=1, column=2, end_column=3))
    '1'
    """
    texts = [_file_text(replace(line, line=number)) for number in range(line.line, max(line.line, line.end_line) + 1)]
    if line.column is None or line.end_column is None or not texts[0].strip():
        return line.text
    parts = []
    for number, text in enumerate(texts):
        last = number == len(texts) - 1
        end = text.encode()[: line.end_column].decode(errors="ignore") if last else text[: _code_end(text)]
        parts.append(end.encode()[0 if number else line.column :].decode(errors="ignore").strip())
    found = " ".join(filter(None, parts))
    return found if len(found) <= _MAX_TEXT else found[: _MAX_TEXT - 3] + "..."


def caret_line(line: UserLine, text: str) -> str:
    """Returns spaces and carets that mark ``line``'s columns under ``text.strip()``; "" if they mark nothing."""
    if line.column is None:
        return ""
    here = line.end_column is not None and line.end_column > line.column and line.end_line <= line.line
    return _marks(text, len(text) - len(text.lstrip()), line.column, line.end_column if here else None)


def _block(line: UserLine, first: str) -> list[str]:
    """Returns the lines of an expression that spans several, each with carets; none if the file has changed.

    A long expression is reduced to its first lines and the last one.
    """
    texts = [first] + [_file_text(replace(line, line=number)) for number in range(line.line + 1, line.end_line + 1)]
    if line.column is None or line.end_column is None or first != _file_text(line) or not texts[-1].strip():
        return []
    indent = min(len(text) - len(text.lstrip()) for text in texts if text.strip())
    rows = []
    for number, text in enumerate(texts):
        if len(texts) > _MAX_BLOCK and _MAX_BLOCK - 1 <= number < len(texts) - 1:
            rows += ["..."] if number == _MAX_BLOCK - 1 else []
        elif text.strip():
            start = line.column if not number else len(text) - len(text.lstrip())
            marks = _marks(text, indent, start, line.end_column if number == len(texts) - 1 else None)
            rows += [text[indent:].rstrip(), marks] if marks else [text[indent:].rstrip()]
    return rows


def _marks(text: str, indent: int, start: int, end: int | None) -> str:
    """Returns carets under the bytes ``start`` to ``end`` (or to the end of the code) of ``text[indent:]``."""
    raw = text.rstrip().encode()
    first = max(len(raw[:start].decode(errors="ignore")), len(text) - len(text.lstrip()))
    last = len(raw[:end].decode(errors="ignore")) if end is not None else _code_end(text)
    if first >= last:
        return ""
    lead = "".join("\t" if c == "\t" else " " * _width(c) for c in text[indent:first])
    return lead + "^" * sum(map(_width, text[first:last]))


def _code_end(text: str) -> int:
    """Returns where a line's code ends and its comment, if any, begins."""
    end = len(text.rstrip())
    if "#" not in text:
        return end
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline):
            if token.type == tokenize.COMMENT:
                return len(text[: len(text) - len(text.lstrip()) + token.start[1]].rstrip())
    except (tokenize.TokenError, SyntaxError):  # a part of a statement, without a comment before its end
        pass
    return end


def _width(character: str) -> int:
    if character.isascii():
        return 1
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


__all__ = ["UserLine", "caret_line", "expression_text", "file_line", "format_line", "format_stack", "source_text"]
