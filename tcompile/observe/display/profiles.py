"""The display of a profile: where the time of a call goes, by the user's lines.

Input: the facts that ``tcompile.debug.profile`` has measured.
Output: a ``ProfileView``.
Why: a profile is data that a notebook can save.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from tcompile.observe.display import html
from tcompile.observe.display.view import View
from tcompile.observe.source_location import file_label
from tcompile.observe.tables import table
from tcompile.records import dataclass

KINDS = "fused", "library", "plain"
"""Time in kernels, in functions of libraries, and in plain Python."""

COLOURS = {"fused": "#3d9a50", "library": "#4b8bbe", "plain": "#d98a1f", "guards, calls": "#8a8a8a"}


@dataclass(frozen=True, kw_only=True)
class LineTime:
    """The time of one line in a call, in milliseconds. ``why`` says what takes it where that is no kernel.

    ``cell`` is the id of the notebook's cell that the line is in, where there is one.
    """

    cell: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    fused: float = 0.0
    library: float = 0.0
    plain: float = 0.0
    why: str = ""

    @property
    def ms(self) -> float:
        """Milliseconds, all kinds together."""
        return self.fused + self.library + self.plain


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One reason why a call is not faster.

    ``kind`` is "library", "plain", "kernel", "overhead", "slower", "compile" or "recompile"; the last two are paid
    once, not in each call. ``ms`` is the time that it takes, ``left_ms`` the least of it that a cure can leave. The
    place is the user's line, where there is one.
    """

    kind: str = ""
    text: str = ""
    cure: str = ""
    ms: float = 0.0
    left_ms: float = 0.0
    file: str = ""
    line: int = 0
    code: str = ""

    @property
    def once(self) -> bool:
        """Whether later calls do not pay it."""
        return self.kind in ("compile", "recompile")


@dataclass(frozen=True, kw_only=True)
class ProfileView(View):
    """Where the time of a call goes. All times are milliseconds.

    ``ms`` is the median of a call, ``plain_ms`` that of one in plain Python, ``compile_ms`` what compiling took in the
    first one. ``unknown_ms`` is the part of ``ms`` that belongs to no line: guards, calls, copies. ``calls`` is the
    number of calls that were timed. ``causes`` say why it is not faster, the one that takes most first.
    """

    kind: ClassVar[str] = "profile"
    function: str = ""
    ms: float = 0.0
    plain_ms: float = 0.0
    compile_ms: float = 0.0
    unknown_ms: float = 0.0
    calls: int = 0
    lines: tuple[LineTime, ...] = ()
    causes: tuple[Cause, ...] = ()

    def sums(self) -> dict[str, float]:
        """Returns the milliseconds of each kind, and of what belongs to no line."""
        kinds = {kind: sum(getattr(line, kind) for line in self.lines) for kind in KINDS}
        return {**kinds, "guards, calls": self.unknown_ms}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the profile as a file that https://www.speedscope.app draws as a flame graph.

        The call is at the root, lines are above it, and what each line's time goes to above them. The widths are
        milliseconds of one call.

        Parameters
        ----------
        path : str or path
            The file, such as "profile.speedscope.json". One that exists is replaced.

        Raises
        ------
        OSError
            Where it cannot be written.
        """
        frames: dict[tuple[str, str, int], int] = {}

        def frame(name: str, file: str = "", line: int = 0) -> int:
            return frames.setdefault((name, file, line), len(frames))

        root, samples, weights = frame(self.function), [], []
        for line in self.lines:
            where = frame(line.text.strip() or f"line {line.line}", line.file, line.line)
            for kind in KINDS:
                if ms := getattr(line, kind):
                    samples.append([root, where, frame(kind)])
                    weights.append(ms)
        samples.append([root, frame("guards, calls")])
        weights.append(self.unknown_ms)
        data = {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": [{"name": name, "file": file, "line": line} for name, file, line in frames]},
            "profiles": [
                {
                    "type": "sampled", "name": self.function, "unit": "milliseconds", "startValue": 0,
                    "endValue": sum(weights), "samples": samples, "weights": weights,
                }
            ],
        }  # fmt: skip
        Path(path).write_text(json.dumps(data), encoding="utf-8")

    @property
    def headline(self) -> str:
        """Returns the time beside plain Python's."""
        plain = f"plain Python {html.time(self.plain_ms)}, {html.speed(self.plain_ms / self.ms if self.ms else 1.0)}"
        first = f"{html.time(self.compile_ms)} compiling" if self.compile_ms else ""
        return "; ".join(part for part in (f"{html.time(self.ms)} compiled", plain, first) if part)

    def body(self) -> str:
        """Returns the headline, and each line with a bar, its time and what takes it."""
        parts = [
            html.title(f"profile of {html.short(self.function, 80)}", f'<span class="tcd-dim">{self.headline}</span>')
        ]
        legend = ((COLOURS[name], f"{name} {_share(ms, self.ms)}") for name, ms in self.sums().items())
        parts.append("".join(f'<span style="color:{colour}">■</span> {words} &ensp;' for colour, words in legend))
        if self.causes:
            parts.append(causes_html(self.causes, self.ms))
        for file, lines in groupby(self.lines, key=lambda line: line.file):
            rows = [
                (
                    str(line.line), f'<code style="white-space:pre">{html.short(line.text, 70)}</code>',
                    self._bar(line), html.time(line.ms), _share(line.ms, self.ms), html.short(line.why, 60),
                )
                for line in lines
            ]  # fmt: skip
            heads = ("", html.short(file_label(file), 60), "", "time", "share", "")
            parts.append(html.table(heads, rows, left=(1, 2, 5)))
        return "".join(parts)

    def _bar(self, line: LineTime) -> str:
        widths = ((getattr(line, kind) / self.ms if self.ms else 0.0, COLOURS[kind]) for kind in KINDS)
        return "".join(
            f'<span style="display:inline-block;height:.7em;width:{12 * width:.2f}em;background:{colour}"></span>'
            for width, colour in widths
            if width > 0
        )

    def text(self) -> str:
        """Returns the same as text."""
        shares = ", ".join(f"{name} {_share(ms, self.ms)}" for name, ms in self.sums().items())
        parts = [f"{self.function}: {self.headline}", shares]
        if self.causes:
            parts.append(causes_text(self.causes, self.ms))
        for file, lines in groupby(self.lines, key=lambda line: line.file):
            rows = [
                (
                    str(line.line), html.cut(line.text, 60),
                    *(html.time(ms) if (ms := getattr(line, kind)) else "" for kind in KINDS),
                    _share(line.ms, self.ms), html.cut(line.why, 60),
                )
                for line in lines
            ]  # fmt: skip
            parts.append(table(("line", file_label(file), *KINDS, "share", "why"), rows, left=2))
        return "\n".join(parts)


def causes_html(causes: Iterable[Cause], ms: float) -> str:
    """Returns causes as a table; ``ms`` is the time of which they are parts."""
    rows = [(_about(cause), *_figures(cause, ms)) for cause in causes]
    return html.table(("why not faster?", "time", "share", "without it"), rows)


def causes_text(causes: Iterable[Cause], ms: float) -> str:
    """Returns the same as text."""
    parts = ["why not faster?"]
    for cause in causes:
        time, share, gain = _figures(cause, ms)
        where = f"line {cause.line}, `{html.cut(cause.code, 60)}`: " if cause.line else ""
        parts.append(f"  {time}, {share}: {where}{cause.text}{f' (at most {gain} without it)' if gain else ''}")
        parts += [f"      {cause.cure}"] if cause.cure else []
    return "\n".join(parts)


def _about(cause: Cause) -> str:
    """What a cause is; below it, its line and its cure."""
    where = f"line {cause.line} {html.code(f'`{cause.code}`')}" if cause.line else ""
    more = " · ".join(part for part in (where, html.code(cause.cure)) if part)
    return f'<div>{html.code(cause.text)}</div><div class="tcd-dim">{more}</div>'


def _figures(cause: Cause, ms: float) -> tuple[str, str, str]:
    """The time of a cause, its share, and how much faster the call would be at most."""
    if cause.once:
        return html.time(cause.ms), "once", ""
    left = ms - cause.ms + cause.left_ms
    gain = html.speed(ms / left) if left > 0.01 * ms else ""
    return html.time(cause.ms), _share(cause.ms, ms), "" if gain == "same" else gain


def _share(ms: float, all: float) -> str:
    return f"{ms / all:.0%}" if all else ""


__all__ = ["KINDS", "Cause", "LineTime", "ProfileView", "causes_html", "causes_text"]
