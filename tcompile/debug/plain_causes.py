"""Lines that run in plain Python, as causes of a call's time.

Input: the times of lines, and the events of what was compiled.
Output: ``Cause`` after ``Cause``.
Why: they are known without the compiler, so that a notebook's extension loads in no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tcompile.observe.display.profiles import Cause, LineTime
from tcompile.observe.events import FellBack, GraphBroke


def plain_causes(
    lines: Iterable[LineTime],
    names: Mapping[tuple[str, int], str],
    breaks: Iterable[GraphBroke],
    fallbacks: Iterable[FellBack],
) -> Iterator[Cause]:
    """Lines that run in plain Python, with what stopped the capture there, and functions that all run in it.

    ``names`` are the functions of lines, by file and line.
    """
    broke = {(event.where.file, event.where.line): event for event in breaks}
    left = {event.function: event for event in fallbacks}
    whole: dict[str, list[LineTime]] = {}
    for line in lines:
        event, name = broke.get((line.file, line.line)), names.get((line.file, line.line), "")
        if event is None and name in left:
            whole.setdefault(name, []).append(line)
            continue
        reason = f"runs in plain Python: {event.headline}" if event is not None else "runs in plain Python"
        hint = event.hints[0] if event is not None and event.hints else ""
        yield _of_line(line, reason, hint, line.plain)
    for name, its_lines in whole.items():
        told = left[name]
        detail = f" ({told.detail})" if told.detail else ""
        text = f"all of `{name}` runs in plain Python: {told.reason}{detail}"
        yield _of_line(max(its_lines, key=lambda line: line.plain), text, "", sum(one.plain for one in its_lines))


def _of_line(line: LineTime, text: str, cure: str, ms: float) -> Cause:
    return Cause(kind="plain", text=text, cure=cure, ms=ms, file=line.file, line=line.line, code=line.text.strip())


__all__ = ["plain_causes"]
