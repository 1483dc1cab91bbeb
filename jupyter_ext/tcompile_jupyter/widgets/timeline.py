"""A timeline of compiles and recompiles.

Input: the compiler's events, past ones included.
Output: a ``RecompileTimeline``: a line for each function, a mark for each compile, and the reasons of the last
recompiles in words.
Why: shows when a notebook spends time on compiling, and for what reason.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from dataclasses import field

from tcompile.observe.display.html import time as format_ms
from tcompile.observe.events import CompileFinished, CompileStarted, Event, FellBack, GraphBroke
from tcompile.observe.history import history
from tcompile.observe.source_location import file_label
from tcompile.records import dataclass
from tcompile_jupyter.feed import feed
from tcompile_jupyter.widgets.picture import Detail, Picture
from tcompile_jupyter.widgets.shown import Shown, image, plain, text

MOST_COMPILES = 400
MOST_LANES = 8
_LISTED = 4
_WIDTH, _LEFT, _LANE, _TOP = 860.0, 150.0, 26.0, 12.0

COLOURS = {"first": "#3b82f6", "again": "#d97706", "plain": "#8b949e"}
_SAYS = {"first": "first compile", "again": "recompile", "plain": "left to plain Python"}


@dataclass
class CompileMark:
    """One compile. ``kind`` is a key of ``COLOURS``; ``ms`` is None while it runs."""

    id: str
    function: str
    started: float
    kind: str
    why: str
    place: str
    ms: float | None = None
    breaks: list[str] = field(default_factory=list)


class RecompileTimeline(Shown):
    """Every compile as a mark on its function's line, in time; a click shows the reason, the duration, and breaks.

    Compiles before the widget was made are included, as far as the history goes back.
    """

    def __init__(self) -> None:
        self._compiles: OrderedDict[str, CompileMark] = OrderedDict()
        self._dropped = 0
        self._fallbacks: deque[str] = deque(maxlen=_LISTED)
        self._lock = threading.Lock()
        self._picture = Picture(hint="Click a mark for its reason.", below=True)
        super().__init__((self._picture,))
        self.ends = (feed.open(self._follow),)
        self._follow(history.events)

    @property
    def compiles(self) -> tuple[CompileMark, ...]:
        """Returns the compiles shown, oldest first."""
        with self._lock:
            return tuple(self._compiles.values())

    def _follow(self, batch: tuple[Event, ...]) -> None:
        changed = False
        with self._lock:
            for event in batch:
                changed |= self._take(event)
        if changed or not self._picture.html:
            svg, details = self.drawing()
            self._picture.show(svg + self._words(), details)
        self.redraw()

    def _take(self, event: Event) -> bool:
        known = self._compiles.get(event.compile_id)
        match event:
            case CompileStarted():
                again = event.reason != "first call"
                place = f"{file_label(event.where.file)}, line {event.where.line}" if event.where.line else ""
                made = CompileMark(event.compile_id, event.function, event.time, "again" if again else "first",
                               event.reason, place)  # fmt: skip
                self._compiles[event.compile_id] = made
                while len(self._compiles) > MOST_COMPILES:
                    self._compiles.popitem(last=False)
                    self._dropped += 1
            case CompileFinished() if known is not None:
                known.ms = event.ms
                known.started = event.time - event.ms / 1e3  # the time includes loading the backend
                known.kind = known.kind if event.outcome == "compiled" else "plain"
            case GraphBroke() if known is not None:
                known.breaks.append(f"line {event.where.line}: {event.headline}")
            case FellBack():
                self._fallbacks.append(f"{event.function}: {event.reason}: {event.detail}")
            case _:
                return False
        return True

    # -- the drawing -------------------------------------------------------------------------------
    def drawing(self) -> tuple[str, dict[str, list[Detail]]]:
        """Returns the marks as SVG, and the details of each."""
        compiles = self.compiles
        lanes = self._lanes(compiles)
        if not lanes:
            return "", {}
        start = min(one.started for one in compiles)
        length = max(max(one.started + (one.ms or 0) / 1e3 for one in compiles) - start, 1e-3)
        scale = (_WIDTH - _LEFT - 30) / length
        height = _TOP + len(lanes) * _LANE + 26
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" width="{_WIDTH:.0f}" '
            f'height="{height:.0f}" font-family="system-ui,sans-serif" font-size="12" fill="#808790" role="img" '
            f'aria-label="compiles in time">'
        ]
        rows = {name: _TOP + (number + 0.5) * _LANE for number, name in enumerate(lanes)}
        for name, y in rows.items():
            parts.append(f'<path d="M{_LEFT} {y}H{_WIDTH - 12}" stroke="#80879055"/>')
            parts.append(f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{text(_short(name))}</text>')
        for seconds, label in _ticks(length):
            x = _LEFT + seconds * scale
            parts.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle" font-size="11">{label}</text>')
            parts.append(f'<path d="M{x:.1f} {_TOP}V{height - 20}" stroke="#80879030"/>')
        details: dict[str, list[Detail]] = {}
        for one in compiles:
            y = rows.get(one.function, rows.get(OTHERS, 0.0))
            x = _LEFT + (one.started - start) * scale
            width = max(7.0, (one.ms or 0.0) / 1e3 * scale)
            colour = COLOURS[one.kind]
            unfinished = ' stroke-dasharray="2 2"' if one.ms is None else ""
            details[one.id] = list(_details(one))
            # Marks are drawn from the oldest to the newest, so later ones are on top.
            parts.append(
                f'<g data-node="{text(one.id)}"><title>{text(_tip(one))}</title><rect class="b" x="{x - 3.5:.1f}" '
                f'y="{y - 8:.1f}" width="{width:.1f}" height="16" rx="3.5" fill="{colour}" fill-opacity=".75" '
                f'stroke="{colour}"{unfinished}/>'
            )
            if one.breaks:
                parts.append(f'<circle cx="{x:.1f}" cy="{y - 10:.1f}" r="3" fill="#e11d48"/>')
            parts.append("</g>")
        parts.append("</svg>")
        return "".join(parts), details

    def _lanes(self, compiles: tuple[CompileMark, ...]) -> list[str]:
        names = list(dict.fromkeys(one.function for one in compiles))
        if len(names) <= MOST_LANES:
            return names
        latest = dict.fromkeys(one.function for one in reversed(compiles))
        kept = set(list(latest)[: MOST_LANES - 1])
        return [*(name for name in names if name in kept), OTHERS]

    def _words(self) -> str:
        """Returns the legend, the counts, and the last recompiles, as HTML."""
        compiles = self.compiles
        if not compiles:
            return "<div style='opacity:.7'>nothing compiled yet</div>"
        swatch = "display:inline-block;width:.7em;height:.7em;border-radius:3px;margin:0 .35em 0 1em;background:"
        kinds = {one.kind for one in compiles}
        legend = "".join(
            f"<span style='{swatch}{colour}'></span>{_SAYS[kind]}" for kind, colour in COLOURS.items() if kind in kinds
        )
        if any(one.breaks for one in compiles):
            legend += f"<span style='{swatch}#e11d48;border-radius:1em'></span>graph break"
        again = [one for one in compiles if one.kind == "again"]
        rows = "".join(f"<div><b>{text(_short(one.function))}</b> {text(_first_line(one.why))}</div>"
                       for one in again[-_LISTED:][::-1])  # fmt: skip
        more = f"<div style='opacity:.7'>and {len(again) - _LISTED} recompiles before</div>" if again[_LISTED:] else ""
        return (
            f"<div style='line-height:1.6'><div style='opacity:.8'>{text(self.title())}{legend}</div>{rows}{more}</div>"
        )

    def title(self) -> str:
        """Returns how much was compiled, and in what time."""
        compiles = self.compiles
        again = sum(one.kind == "again" for one in compiles)
        summary = f"{_count(len(compiles), 'compile')}, {_count(again, 'recompile')}"
        spent = sum(one.ms or 0.0 for one in compiles)
        summary += f", {format_ms(spent)}" if compiles else ""
        return f"{summary}, and {self._dropped} before" if self._dropped else summary

    def picture(self) -> str:
        """The timeline."""
        svg, _ = self.drawing()
        return f"{image(svg, 'compiles in time') if svg else ''}{self._words()}"


OTHERS = "other functions"


def _details(one: CompileMark) -> list[Detail]:
    rows = [("function", one.function), (_SAYS[one.kind], time.strftime("%H:%M:%S", time.localtime(one.started)))]
    if one.ms is not None:
        rows.append(("took", format_ms(one.ms)))
    if one.place:
        rows.append(("where", one.place))
    rows.append(("why", one.why))
    return rows + [("graph break", summary) for summary in one.breaks]


def _tip(one: CompileMark) -> str:
    took = f", {format_ms(one.ms)}" if one.ms is not None else ""
    return f"{one.function}: {_SAYS[one.kind]}{took}\n{_first_line(one.why)}"


def _ticks(length: float) -> list[tuple[float, str]]:
    """Returns round times along so many seconds."""
    step = 10.0 ** math.floor(math.log10(length / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if length / (step * factor) <= 6)
    ticks = []
    for number in range(int(length / step) + 1):
        seconds = number * step
        label = f"{seconds * 1e3:g} ms" if length < 1 else f"{seconds:g} s"
        ticks.append((seconds, "0" if not number else label))
    return ticks


def _first_line(summary: str) -> str:
    return summary.partition("\n")[0]


def _short(name: str) -> str:
    name = plain(name, 300)
    return name if len(name) <= 22 else f"…{name[-21:]}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


__all__ = ["COLOURS", "MOST_COMPILES", "MOST_LANES", "OTHERS", "CompileMark", "RecompileTimeline"]
