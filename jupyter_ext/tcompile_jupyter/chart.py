"""A chart of a few series as SVG.

Input: points with their spread.
Output: the text of a picture.
Why: a saved notebook keeps a plot as a picture that needs neither packages nor scripts. Its colours are visible on
light and dark backgrounds.

>>> plain = Series("plain", "#8b949e", [(1, 2.0, 1.5, 2.5), (10, 20.0, 19.0, 22.0)])
>>> chart([plain], x="size", y="ms")[:4]
'<svg'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tcompile.observe.display.html import cut
from tcompile.observe.display.html import text as escaped
from tcompile.records import dataclass

INK = "#808790"
_WIDTH, _HEIGHT = 640.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 14.0, 30.0, 44.0


@dataclass(frozen=True)
class Series:
    """Points ``(x, y, low, high)``, joined by a line or not."""

    name: str
    colour: str
    points: Sequence[tuple[float, float, float, float]]
    joined: bool = True


@dataclass(frozen=True)
class _Axis:
    """Returns the pixel position of a number."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(v) for v in (self.low, self.high, value)) if self.log else (
            self.low, self.high, value)  # fmt: skip
        part = (at - low) / (high - low) if high > low else 0.5
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Returns round numbers along the axis."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            factors = (1,) if self.high >= 100 * self.low else (1, 2, 5)
            found = [factor * 10.0**decade for decade in decades for factor in factors]
        else:
            step = 10.0 ** math.floor(math.log10((self.high - self.low) / 2 or 1))
            step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 6)
            found = [step * n for n in range(math.floor(self.low / step), math.ceil(self.high / step) + 1)]
        ticks = [tick for tick in found if self.low * 0.9999 <= tick <= self.high * 1.0001]
        return ticks[:: math.ceil(len(ticks) / 9)] if len(ticks) > 9 else ticks


def chart(
    series: Sequence[Series],
    *,
    x: str,
    y: str,
    log_x: bool = True,
    log_y: bool = True,
    marks: Sequence[tuple[float, str]] = (),
    tell: Callable[[float], str] = lambda value: f"{value:g}",
) -> str:
    """Draws the series in one picture. ``marks`` are vertical lines with a text; ``tell`` formats numbers beside the y
    axis.

    Points without a position on a logarithmic axis are left out.
    """
    shown = [
        Series(one.name, one.colour, [p for p in one.points if _fits(p[0], log_x) and _fits(p[1], log_y)], one.joined)
        for one in series
    ]
    across = _axis([p[0] for one in shown for p in one.points], _LEFT, _WIDTH - _RIGHT, log_x, 0.03)
    heights = [v for one in shown for p in one.points for v in p[1:] if _fits(v, log_y)]
    up = _axis(heights, _HEIGHT - _BOTTOM, _TOP, log_y, 0.06)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" width="{_WIDTH:.0f}" '
        f'height="{_HEIGHT:.0f}" font-family="system-ui,sans-serif" font-size="12" fill="{INK}">'
    ]
    for tick in across.ticks():
        at = across(tick)
        parts.append(f'<path d="M{at:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="{INK}" stroke-opacity=".18"/>')
        place = f'x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 16}"'
        parts.append(f'<text {place} text-anchor="middle">{_text(_short(tick))}</text>')
    for tick in up.ticks():
        at = up(tick)
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}" stroke="{INK}" stroke-opacity=".18"/>')
        parts.append(f'<text x="{_LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{_text(tell(tick))}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{_text(x)}</text>')
    parts.append(f'<text x="8" y="{_TOP - 14}">{_text(y)}</text>')
    for value, says in marks:
        if across.low <= value <= across.high:
            at = across(value)
            parts.append(f'<path d="M{at:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#d97706" stroke-dasharray="4 3"/>')
            side = "end" if at > _WIDTH * 0.7 else "start"
            shift = -5 if side == "end" else 5
            parts.append(
                f'<text x="{at + shift:.1f}" y="{_TOP + 10}" fill="#d97706" text-anchor="{side}">{_text(says)}</text>'
            )
    for one in shown:
        parts.extend(_drawn(one, across, up))
    right = _WIDTH - _RIGHT
    for one in reversed(shown):
        width = 7.0 * len(one.name) + 22
        right -= width
        parts.append(f'<rect x="{right:.1f}" y="9" width="10" height="10" rx="3" fill="{one.colour}"/>')
        parts.append(f'<text x="{right + 15:.1f}" y="18">{_text(one.name)}</text>')
    return "".join([*parts, "</svg>"])


def _drawn(one: Series, across: _Axis, up: _Axis) -> list[str]:
    points = [(across(a), up(b), up(max(low, up.low)), up(min(high, up.high))) for a, b, low, high in one.points]
    parts = []
    for a, b, low, high in points:
        if abs(low - high) > 1:
            parts.append(f'<path d="M{a:.1f} {low:.1f}V{high:.1f}" stroke="{one.colour}" stroke-opacity=".55" '
                         f'stroke-width="5"/>')  # fmt: skip
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{3.2 if one.joined else 2.2}" fill="{one.colour}"/>')
    if one.joined and len(points) > 1:
        line = "L".join(f"{a:.1f} {b:.1f}" for a, b, _, _ in points)
        parts.insert(0, f'<path d="M{line}" fill="none" stroke="{one.colour}" stroke-width="2"/>')
    return parts


def _axis(values: Sequence[float], start: float, end: float, log: bool, room: float) -> _Axis:
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
    if log:
        factor = (high / low) ** room
        return _Axis(low / factor, high * factor, start, end, True)
    return _Axis(low - room * (high - low), high + room * (high - low), start, end, False)


def _text(value: str) -> str:
    return escaped(cut(value, 80))


def _fits(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _short(value: float) -> str:
    """Formats a size, without many zeros.

    >>> _short(1000), _short(2e6), _short(5)
    ('1k', '2M', '5')
    """
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{sign}"
    return f"{value:g}"


__all__ = ["INK", "Series", "chart"]
