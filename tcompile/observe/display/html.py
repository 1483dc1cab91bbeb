"""The stylesheet of all displays, and HTML fragments.

Input: text, which may come from anyone.
Output: HTML without scripts in which that text is escaped.
Why: one file decides how tcompile looks. Displays work in light and dark themes (colours are the page's own, or of
medium brightness), without stylesheets, and in saved files.

Front ends that do not trust a notebook drop ``<style>`` and ``<svg>`` but keep the text in them. So a drawing is
included twice: as elements, ``hidden`` until the stylesheet shows them, and as an image, which the stylesheet hides.
"""

from __future__ import annotations

import html
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence

from tcompile.observe.html_form import HIDDEN
from tcompile.observe.source_location import UserLine, file_label, source_text

ACCENT = "#4b8bbe"
_SAME = 0.05  # relative differences of times that do not count
_LONGEST = 120  # characters of a name or a line; the tooltip has the whole, up to
_TIP = 600
_FITS = 1_500.0, 1_000.0  # maximum width and height of drawings that stay readable when scaled to fit
_SIZE = re.compile(r'<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"')
_HIDDEN = ' hidden="hidden"'
_ANSI = re.compile(r"\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")

GROUNDS, INKS = ("#ffffff", "#111418"), ("#1f2937", "#e5e7eb")
"""The background and line colours of drawings, on light and dark pages, if a front end gives none."""


def theme(ground: str, ink: str) -> str:
    """Returns the colours of a drawing: those of JupyterLab or VS Code, else these."""
    return (
        f"--tc-bg:var(--jp-layout-color1,var(--vscode-editor-background,{ground}));"
        f"--tc-fg:var(--jp-content-font-color1,var(--vscode-editor-foreground,{ink}))"
    )


_CHECKED = ' checked="checked"'

# A page's declared scheme decides; without one, and in images, the system's preference.
_SCHEME = "light-dark({},{})"

STYLE = (
    """
div.tcompile{font-size:.88em;line-height:1.5;margin:.35em 0;padding:.1em 0 .1em .8em;border-left:3px solid #4b8bbe;
max-width:100%;overflow-wrap:break-word;overflow-x:auto}
div.tcompile .tcd-title{margin:.05em 0}div.tcompile .tcd-title b,div.tcompile th b{color:#4b8bbe;font-weight:600}
div.tcompile .tcd-dim,div.tcompile th,div.tcompile summary{opacity:.68}div.tcompile .tcd-note{margin:.15em 0}
div.tcompile .tcd-more{padding-left:1.2em}
div.tcompile .tcd-warn{color:#c77700;font-weight:600}div.tcompile .tcd-bad{color:#e04f4f;font-weight:600}
div.tcompile .tcd-good{color:#2e9e5b;font-weight:600}
div.tcompile table{border-collapse:collapse;margin:.2em 0;font-size:1em;width:auto;max-width:100%;display:table}
div.tcompile th,div.tcompile td{padding:.05em 1.4em .05em 0;text-align:left;border:none;background:none;
vertical-align:baseline;font-weight:normal;line-height:1.5;max-width:46em}
div.tcompile tr{background:none!important}div.tcompile thead{border-bottom:1px solid rgba(127,127,127,.35)}
div.tcompile .tcd-n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
div.tcompile summary{cursor:pointer;display:list-item}
div.tcompile th:has(b),div.tcompile summary:has(.tcd-title){opacity:1}
div.tcompile details{margin:.1em 0}
div.tcompile details>*:not(summary){margin-left:1.1em}
div.tcompile pre,div.tcompile code{
font:.93em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;
background:none;color:inherit;border:none;padding:0}
div.tcompile td code{background:none!important;padding:0}
div.tcompile pre{margin:.2em 0 .4em;overflow:auto;white-space:pre!important;
word-break:normal;overflow-wrap:normal}
div.tcompile pre.tcd-code{padding:.35em .7em;background:rgba(127,127,127,.09);border-radius:5px;width:fit-content;
max-width:100%;box-sizing:border-box}
div.tcompile u{text-decoration:underline wavy #e04f4f 1px;text-underline-offset:3px}
div.tcompile .tcd-no{opacity:.5;user-select:none}
div.tcompile .tcd-bar{display:flex;height:.55em;width:11em;margin:.3em 0;border-radius:3px;overflow:hidden;
background:rgba(127,127,127,.15)}div.tcompile .tcd-bar span{min-width:1px}
div.tcompile .tcd-key i{display:inline-block;width:.65em;height:.65em;border-radius:2px;margin:0 .35em 0 .9em}
div.tcompile .tcd-picture{margin:.3em 0 .5em}
div.tcompile .tcd-live[hidden]{display:block!important}
div.tcompile .tcd-still{display:none}
@supports(color:light-dark(red,red)){div.tcompile .tc-graph{THEME}}
div.tcompile .tcd-pane{overflow:auto;max-height:44em;border-radius:8px}div.tcompile .tcd-pane svg{display:block}
div.tcompile .tcd-live:has(input[value=fit]:checked) svg{max-width:100%;height:auto;max-height:43em}
div.tcompile .tcd-live:has(input[value="2"]:checked) svg{zoom:2}div.tcompile form{margin:0}
div.tcompile .tcd-zoom{font-size:.9em;display:flex;gap:.2em;margin:.15em 0}
div.tcompile .tcd-zoom label{cursor:pointer;opacity:.55;padding:0 .45em;border-radius:4px;display:inline}
div.tcompile .tcd-zoom label:has(:checked){opacity:1;background:rgba(127,127,127,.17)}
div.tcompile .tcd-zoom label:has(:focus-visible){outline:2px solid #4b8bbe}
div.tcompile .tcd-zoom input{position:absolute;opacity:0;pointer-events:none;width:0;height:0;margin:0}
div.tcompile .tcd-tab:not(.tcd-tab0){display:none}
div.tcompile .tcd-tabs:has(>form input:checked:not([value="0"]))>.tcd-tab0{display:none}
div.tcompile .tcd-tabs:has(>form input[value="1"]:checked)>.tcd-tab1{display:block}
div.tcompile .tcd-tabs:has(>form input[value="2"]:checked)>.tcd-tab2{display:block}
div.tcompile .tcd-tabs:has(>form input[value="3"]:checked)>.tcd-tab3{display:block}
div.tcompile .tcd-sides{display:flex;flex-wrap:wrap;gap:.4em .8em;margin:.4em 0}
div.tcompile .tcd-sides>div{min-width:0}
div.tcompile .tcd-sides>div>b{font-weight:600;opacity:.75}
div.tcompile .tcd-sides pre{padding:.35em .7em;background:rgba(127,127,127,.09);border-radius:5px;
margin:0 0 .5em}
""".replace("\n", " ")
    .replace("THEME", theme(_SCHEME.format(*GROUNDS), _SCHEME.format(*INKS)))
    .strip()
)

COLOURS = ("#3b82f6", "#0d9488", "#d97706", "#8b5cf6", "#e11d48", "#65a30d", "#0891b2", "#db2777")
"""Colours that are distinguishable on light and dark backgrounds."""


def printable(value: str) -> str:
    """Removes terminal codes from ``value``, and replaces other unprintable characters.

    >>> printable("a\\x1b[31mb\\x00")
    'ab�'
    """
    clean = _ANSI.sub("", value) if "\x1b" in value else value
    if clean.isprintable():
        return clean
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in clean)


def text(value: object) -> str:
    """Escapes text, which may come from anyone."""
    return html.escape(printable(str(value)))


def short(value: object, longest: int = _LONGEST) -> str:
    """Escapes a name or a line and shortens its middle; a tooltip then has more of it."""
    whole = " ".join(printable(str(value)).split("\n"))
    if len(whole) <= longest:
        return html.escape(whole)
    return f'<span title="{html.escape(whole[:_TIP])}">{html.escape(cut(whole, longest))}</span>'


def cut(value: str, longest: int = _LONGEST) -> str:
    """Shortens ``value`` to at most ``longest`` characters.

    >>> cut("abcdefghij", 7)
    'abcd…ij'
    """
    if len(value) <= longest:
        return value
    end = longest // 3
    return f"{value[: longest - end - 1]}…{value[-end:]}"


def code(value: str, longest: int = _LONGEST) -> str:
    """Escapes text and renders its `quoted` parts as code."""
    pieces = value.split("`")
    if len(pieces) % 2 == 0:  # an odd backquote is part of the text
        return short(value, longest)
    shown = (f"<code>{short(p, longest)}</code>" if n % 2 else short(p, 4 * longest) for n, p in enumerate(pieces))
    return "".join(shown)


def page(body: str, kind: str = "") -> str:
    """Returns a complete display: ``body`` with its stylesheet."""
    name = f"tcompile tcompile-{kind}" if kind else "tcompile"
    return f'<div class="{name}"><style>{STYLE}</style>{body}</div>'


def styled(html: str) -> str:
    """Returns a display for pages that keep stylesheets: some of them (marimo) never show hidden elements."""
    return html.replace(_HIDDEN, "")


def title(name: str, rest: str = "") -> str:
    """Returns the first line: the name and facts, both HTML already."""
    return f'<div class="tcd-title"><b>{name}</b>{" " + rest if rest else ""}</div>'


def facts(parts: Iterable[str]) -> str:
    """Joins facts in a line, HTML already; empty ones are omitted."""
    return " · ".join(part for part in parts if part)


def folded(summary: str, body: str, *, opened: bool = False) -> str:
    """Returns ``body`` under a line that opens and closes it; both are HTML already."""
    mark = ' open="open"' if opened else ""
    return f"<details{mark}><summary>{summary}</summary>{body}</details>"


def pre(value: str) -> str:
    """Returns preformatted text."""
    return lines(text(value))


def lines(body: str) -> str:
    """Returns lines of HTML. Long ones scroll; the style is inline, for front ends without the stylesheet."""
    scrolls = ' style="max-height:27em;overflow:auto"' if body.count("\n") >= 20 else ""
    return f"<pre{scrolls}>{body}</pre>"


def note(kind: str, body: str, more: Iterable[str] = (), tone: str = "warn") -> str:
    """Returns one remark: its kind, its text, and further lines; HTML already, except ``kind``."""
    lines = "".join(f'<div class="tcd-more tcd-dim">{line}</div>' for line in more if line)
    return f'<div class="tcd-note"><b class="tcd-{tone}">{text(kind)}</b> {body}{lines}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Returns a table of HTML cells, the head's too; the columns ``left`` hold words, the others numbers."""

    def row(cells: Sequence[str], tag: str) -> str:
        words, numbers = ' style="text-align:left"', ' class="tcd-n"'  # front ends align tables to the right
        shown = (f"<{tag}{words if n in left else numbers}>{cell}</{tag}>" for n, cell in enumerate(cells))
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def place(line: UserLine) -> str:
    """Returns ``line 3``, with its file or cell; "" if unknown."""
    if not line.line:
        return ""
    label = file_label(line.file)
    label = label if len(label) < 60 else f"…{label[-58:]}"
    return f"{short(label)}, line {line.line}" if label else f"line {line.line}"


def source(lines: Sequence[UserLine]) -> str:
    """Returns the user's numbered lines, the relevant part underlined; each with its place if in another file."""
    parts = []
    for line in lines:
        number = f'<span class="tcd-no">{line.line:>4}</span>  ' if line.line else ""
        parts.append(number + _marked(line))
    return f'<pre class="tcd-code">{chr(10).join(parts)}</pre>'


def _marked(line: UserLine) -> str:
    whole = source_text(line)
    raw = whole.encode()
    indent = len(raw) - len(raw.lstrip())
    start, end = line.column or 0, line.end_column or 0
    if not indent <= start < end or line.end_line > line.line:
        return short(whole.strip(), 400)
    parts = raw[indent:start], raw[start:end], raw[end:]
    before, meant, after = (part.decode(errors="replace") for part in parts)
    return f"{short(before, 200)}<u>{short(meant, 200)}</u>{short(after.rstrip(), 200)}"


def bar(parts: dict[str, float], unit: str = "ms") -> str:
    """Returns shares of a whole as one bar, with a key in its tooltip."""
    total = sum(parts.values()) or 1.0
    tooltip = ", ".join(f"{cut(name)} {value:.2f} {unit}" for name, value in parts.items())
    spans = "".join(
        f'<span style="width:{100 * value / total:.1f}%;background:{COLOURS[n % len(COLOURS)]}"></span>'
        for n, value in enumerate(parts.values())
    )
    return f'<div class="tcd-bar" title="{text(tooltip)}">{spans}</div>'


def picture(svg: str, label: str) -> str:
    """Returns a drawing that can be enlarged, and a still image of it for untrusted pages."""
    data = b64encode(svg.encode()).decode()
    size = _SIZE.search(svg)
    fits = size is None or (float(size[1]) <= _FITS[0] and float(size[2]) <= _FITS[1])
    labels = "".join(
        f'<label><input type="radio" name="zoom" value="{value}"{mark}/>{name}</label>'
        for value, name, mark in (
            ("fit", "fit", _CHECKED if fits else ""), ("1", "100 %", "" if fits else _CHECKED),
            ("2", "200 %", ""),
        )
    )  # fmt: skip
    # The form separates the choices of two drawings; with this method it can never be submitted.
    zoom = f'<form method="dialog"><div class="tcd-zoom">{labels}</div></form>'
    return (
        f'<div class="tcd-picture"><div class="tcd-live"{HIDDEN}>{zoom}<div class="tcd-pane">{svg}</div></div>'
        f'<img class="tcd-still" alt="{text(label)}" src="data:image/svg+xml;base64,{data}"/></div>'
    )


def tabs(parts: Sequence[tuple[str, str]]) -> str:
    """Returns named parts one at a time, the first at once; a single one as it is.

    There may be four. Where a page removes styles, they stand below each other.
    """
    if len(parts) < 2:
        return "".join(body for _, body in parts)
    labels = "".join(
        f'<label><input type="radio" name="tab" value="{n}"{"" if n else _CHECKED}/>{text(name)}</label>'
        for n, (name, _) in enumerate(parts)
    )
    form = f'<form method="dialog"><div class="tcd-zoom">{labels}</div></form>'
    shown = "".join(f'<div class="tcd-tab tcd-tab{n}">{body}</div>' for n, (_, body) in enumerate(parts))
    return f'<div class="tcd-tabs">{form}{shown}</div>'


def sides(columns: Sequence[tuple[Sequence[tuple[str, str]], float]]) -> str:
    """Returns columns side by side, or below each other on a narrow page.

    Each column has its parts from the top, title and HTML, and its share of the width.
    """
    cells = (
        f'<div style="flex:{share} 1 17em">{"".join(f"<b>{text(name)}</b>{body}" for name, body in column)}</div>'
        for column, share in columns
    )
    return f'<div class="tcd-sides">{"".join(cells)}</div>'


def count(number: int, noun: str) -> str:
    """Returns ``1 graph``, ``2 graphs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def speed(ratio: float, noise: float | None = None) -> str:
    """Returns how compiled code compares with plain Python, in words.

    Parameters
    ----------
    ratio : float
        The time of plain Python over the time of compiled code.
    noise : float, optional
        The relative error of the times. Ratios within it, or within 5%, are the same.

    >>> speed(6.04), speed(0.4), speed(123.4), speed(0.97), speed(1.15, noise=0.2)
    ('6.0x faster', '2.5x slower', '123x faster', 'same', 'same')
    """
    factor = max(ratio, 1 / ratio if ratio else math.inf)
    if factor <= 1 + max(_SAME, noise if noise is not None and math.isfinite(noise) else 0.0):
        return "same"
    figure = f"{factor:.0f}" if factor >= 100 else f"{factor:.1f}"
    return f"{figure}x {'faster' if ratio > 1 else 'slower'}"


def time(ms: float) -> str:
    """Formats milliseconds with three digits, in a suitable unit.

    >>> time(0.0123), time(0.9999), time(12.34), time(5432.1)
    ('12.3 µs', '1 ms', '12.3 ms', '5.43 s')
    """
    if ms < 0.9995:
        return f"{ms * 1e3:.3g} µs"
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1e3:.3g} s"


__all__ = [
    "ACCENT", "COLOURS", "GROUNDS", "INKS", "STYLE", "bar", "code", "count", "cut", "facts", "folded", "lines", "note",
    "page", "picture", "place", "pre", "printable", "short", "sides", "source", "table", "text", "theme",
    "time", "title",
]  # fmt: skip
