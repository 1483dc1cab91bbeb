"""Drawings of graphs as SVG.

Input: a ``Graph``, and perhaps the nodes of each kernel.
Output: the text of an SVG picture.
Why: a notebook shows a graph without installing anything and without scripts.

A value is a box coloured by its kind of operation, with the operation and its numbers above, the type and the number of
the user's line below; its tooltip has the whole text and that line. Sub-graphs are drawn inside their operation,
kernels as tinted frames around their nodes. Colours follow the theme of JupyterLab or VS Code where there is one, and
else the system's.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from html import escape
from itertools import pairwise

from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node
from tcompile.graph.layout import LayeredDrawing, Point, layered
from tcompile.graph.ops.control import FOREVER, is_branch
from tcompile.graph.printer import attribute_texts, call_text, key_text, literal, short_place, title, type_text
from tcompile.observe.display.html import GROUNDS, INKS, theme
from tcompile.records import dataclass

_EM = 7.23  # the width of a character of 12 px monospace, in pixels
_LINE = 16.0
_PAD = 11.0
_LONGEST = 34  # characters in a box
_MARGIN = 14.0

KINDS = {
    "input": "#64748b", "output": "#64748b", "pointwise": "#3b82f6", "reduction": "#d97706",
    "view": "#0d9488", "creation": "#8b5cf6", "opaque": "#e11d48", "control": "#16a34a",
}  # fmt: skip
_TINTS = ("#f59e0b", "#06b6d4", "#a855f7", "#84cc16", "#ec4899", "#6366f1")
CAPTIONS = {
    ops.INVOKE: ("region",), ops.COND: ("if true", "if false"), ops.WHILE_LOOP: ("while", "do"),
    ops.FORI_LOOP: ("each step",), ops.EXIT_LOOP: ("each step", *["goes on with"] * 15), ops.SCAN: ("each step",),
    ops.MAP: ("each slice",),
}  # fmt: skip

_SIDE = ("left out if", *["what it does"] * 15)  # of a branch
_LOOPS = (ops.FORI_LOOP, ops.EXIT_LOOP)

_LIGHT, _DARK = map(theme, GROUNDS, INKS)
_STYLE = (
    f".tc-graph{{{_LIGHT};font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}}"
    f"@media(prefers-color-scheme:dark){{.tc-graph{{{_DARK}}}}}"
    ".tc-graph text{fill:var(--tc-fg);white-space:pre}.tc-graph .d{opacity:.62}.tc-graph .o{font-weight:600}"
    ".tc-graph .bg{fill:var(--tc-bg)}.tc-graph .e{stroke:var(--tc-fg);fill:var(--tc-fg)}"
    ".tc-graph .b{fill-opacity:.13}"
    ".tc-graph g:hover>.b{fill-opacity:.28}.tc-graph .c{font-size:10.5px}"
    ".tc-graph .l{paint-order:stroke;stroke:var(--tc-bg);stroke-width:4px;stroke-linejoin:round}"
)


_Place = tuple[float, float, float, float]  # left, top, right, bottom
_Groups = Mapping[str, Sequence[str]]


@dataclass
class _Box:
    """One box to draw: a node, or an output."""

    kind: str
    title: str
    detail: str
    type: str
    tip: str
    width: float
    height: float
    name: str = ""
    inner: tuple[_Drawing, ...] = ()


@dataclass
class _Drawing:
    """A graph with positions: its boxes and edges, and its heading."""

    boxes: list[_Box]
    placed: LayeredDrawing
    caption: str = ""
    groups: _Groups = field(default_factory=dict)

    @property
    def lead(self) -> float:
        """The height of the heading above the boxes."""
        return (_LINE if self.caption else 0.0) + (_LINE if self.groups else 0.0)

    @property
    def height(self) -> float:
        return self.placed.height + self.lead

    @property
    def width(self) -> float:
        return max(self.placed.width, len(self.caption) * _EM)


def svg(graph: Graph, groups: _Groups | None = None, inner: Mapping[Graph, _Groups] | None = None) -> str:
    """The drawing of ``graph``. ``groups`` maps names, say of kernels, to the names of the nodes in them.

    ``inner`` has such groups for sub-graphs.
    """
    drawing = _place(graph, {graph: groups or {}, **(inner or {})})
    top = _MARGIN + drawing.lead
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    label = _text(f"graph {graph.name}: {_counts(graph)}")
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" class="tc-graph" role="img" font-family="monospace"'
        f' font-size="12" fill="#1f2937" preserveAspectRatio="xMinYMin meet"'
        f' {size} aria-label="{label}">',
        f"<style>{_STYLE}</style>",
        _rect(0.0, 0.0, width, height, 8.0, 'class="bg" fill="#ffffff"'),
        f'<g transform="translate({_n(_MARGIN)} {_n(top)})">',
        *_body(drawing),
        "</g></svg>",
    ]
    return "".join(parts)


# -- boxes and edges ------------------------------------------------------------------------------------


def _place(graph: Graph, groups: Mapping[Graph, _Groups], caption: str = "") -> _Drawing:
    number = {node: i for i, node in enumerate([*graph.inputs, *graph.nodes])}
    boxes = [*map(_input_box, graph.inputs), *(_node_box(node, groups) for node in graph.nodes)]
    here = groups.get(graph, {})
    edges = [(number[o], number[node]) for node in graph.nodes for o in node.inputs if o in number]
    for position, node in enumerate(graph.outputs):
        label = "output" if len(graph.outputs) == 1 else f"output {position}"
        boxes.append(_box("output", label, "", "", f"returns {node.name}: {type_text(node.type)}"))
        if node in number:
            edges.append((number[node], len(boxes) - 1))
    sizes = [(box.width, box.height) for box in boxes]
    return _Drawing(boxes, layered(sizes, edges, rise=46.0 if here else 26.0), caption, here)


def _input_box(node: Node) -> _Box:
    type, place = type_text(node.type), short_place(node.location)
    tip = f"{node.name}: {type}" + (f"\n{place}" if place else "")
    return _box("input", node.name, "", type, tip, name=node.name)


def _node_box(node: Node, groups: Mapping[Graph, _Groups]) -> _Box:
    kind = kind_of(node)
    place, type = short_place(node.location), type_text(node.type)
    tip = f"{node.name}: {type}\n{_call(node)}" + (f"\n{place}" if place else "")
    numbers = [_literal(operand) for operand in node.operands if not isinstance(operand, Node)]
    if node.op is ops.INDEX and "key" in node.attrs:  # as the user wrote it
        attrs = [f"[{', '.join(map(key_text, node.attrs['key']))}]"]
    else:
        attrs = _attributes(node)
    if node.op in _LOOPS:
        numbers, attrs = [], [_iterations(node)]
    name = title(node)
    shown = type if node.name == name else f"{node.name}: {type}"
    if node.location is not None and node.location.line:
        line = f" · line {node.location.line}"
        shown = _short(shown, _LONGEST - len(line)) + line
    captions = _SIDE if is_branch(node) else CAPTIONS.get(node.op, ())
    inner = tuple(
        _place(region, groups, captions[i] if i < len(captions) else region.name)
        for i, region in enumerate(node.regions)
    )
    return _box(kind, name, " ".join(numbers + attrs), shown, tip, node.name, inner)


def _box(
    kind: str, title: str, detail: str, type: str, tip: str, name: str = "", inner: tuple[_Drawing, ...] = ()
) -> _Box:
    title = _short(title, _LONGEST)
    detail = _short(detail, max(8, _LONGEST - _columns(title)))
    type = _short(type, _LONGEST)
    first = _columns(title) + (1 + _columns(detail) if detail else 0)
    width = max(first, _columns(type), 4) * _EM + 2 * _PAD
    height = _LINE * (2 if type else 1) + 12
    if inner:
        width = max(width, sum(part.width for part in inner) + 2 * _PAD * (len(inner) + 1))
        height += max(part.height for part in inner) + 2 * _PAD
    return _Box(kind, title, detail, type, tip, width, height, name, inner)


def _iterations(node: Node) -> str:
    """The trip count of a loop, as text."""
    start, stop = (*node.operands, 0, 0)[:2]
    if isinstance(stop, int) and stop == FOREVER:
        return "until a test leaves it"
    if is_branch(node):
        return "one side of a branch"
    last = _literal(stop)
    iterations = (
        f"{last} iterations" if isinstance(start, int) and not start else f"iterations {_literal(start)} to {last}"
    )
    return f"at most {iterations}" if node.op is ops.EXIT_LOOP else iterations


def kind_of(node: Node) -> str:
    """The member of ``KINDS`` for a node."""
    return node.op.kind


def _call(node: Node) -> str:
    try:
        return call_text(node)
    except TypeError:  # drawings are also made of malformed graphs
        return node.op.name


def _attributes(node: Node) -> list[str]:
    try:
        return attribute_texts(node, most=True)
    except TypeError:
        return [f"{key}={value!r}" for key, value in node.attrs.items()]


def _literal(value: object) -> str:
    try:
        return literal(value)
    except TypeError:
        return repr(value)


def _counts(graph: Graph) -> str:
    counts = ((graph.op_count, "op"), (len(graph.inputs), "input"), (len(graph.outputs), "output"))
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)


# -- pieces of SVG ---------------------------------------------------------------------------------


def _body(drawing: _Drawing) -> Iterator[str]:
    yield from _frames(drawing, drawing.groups)
    yield '<g class="e" opacity=".5" stroke="#1f2937" fill="#1f2937" stroke-width="1.2">'
    for route in drawing.placed.routes:
        x, y = route[-1]
        yield f'<path fill="none" d="{_curve(route)}"/>'
        yield f'<path stroke="none" d="M{_n(x)} {_n(y)}l-3.2 -6h6.4z"/>'
    yield "</g>"
    for box, (x, y) in zip(drawing.boxes, drawing.placed.corners, strict=True):
        yield from _drawn(box, x, y)
    yield from _labels(drawing, drawing.groups)


def _drawn(box: _Box, x: float, y: float) -> Iterator[str]:
    colour = KINDS[box.kind]
    radius = min(box.height, 40.0) / 2 if box.kind in ("input", "output") else 6.0
    size = (0.0, 0.0, box.width, box.height, radius)
    dashes = ' stroke-dasharray="4 2.5"' if box.kind == "output" else ""
    name = f' data-node="{_text(box.name)}"' if box.name else ""  # by which a front end identifies a clicked node
    yield f'<g{name} transform="translate({_n(x)} {_n(y)})"><title>{_text(box.tip)}</title>'
    yield _rect(*size, 'class="bg" fill="#ffffff"')
    yield _rect(*size, f'class="b" fill="{colour}" fill-opacity=".13" stroke="{colour}" stroke-width="1.2"{dashes}')
    detail = f'<tspan class="d" font-weight="400"> {_text(box.detail)}</tspan>' if box.detail else ""
    middle = f'x="{_n(box.width / 2)}" text-anchor="middle"'
    yield f'<text class="o" font-weight="600" {middle} y="{_n(_LINE + 2)}">{_text(box.title)}{detail}</text>'
    if box.type:
        yield f'<text class="d c" {middle} y="{_n(2 * _LINE + 1)}">{_text(box.type)}</text>'
    left = (box.width - sum(part.width for part in box.inner) - 2 * _PAD * (len(box.inner) - 1)) / 2
    top = 2 * _LINE + 12 + _PAD / 2
    for part in box.inner:
        frame = (left - 7, top - 4, part.width + 14, part.height + 11, 6.0)
        yield _rect(*frame, f'fill="none" stroke="{colour}" stroke-opacity=".45"')
        yield f'<text class="d c" x="{_n(left)}" y="{_n(top + 9)}">{_text(part.caption)}</text>'
        yield f'<g transform="translate({_n(left)} {_n(top + part.lead)})">'
        yield from _body(part)
        yield "</g>"
        left += part.width + 2 * _PAD
    yield "</g>"


def _frames(drawing: _Drawing, groups: _Groups) -> Iterator[str]:
    """Tinted frames of the groups: a rectangle where it holds no other box, else a band along its nodes."""
    where = _where(drawing)
    for number, (name, members) in enumerate(groups.items()):
        inside = [member for member in dict.fromkeys(members) if member in where]
        if not inside:
            continue
        tint = _TINTS[number % len(_TINTS)]
        yield f"<g><title>{_text(name)}: {_text(', '.join(members))}</title>"
        frame = _frame(where, inside)
        if frame is None:
            yield from _band(drawing, inside, where, tint)
        else:
            colours = f'fill="{tint}" fill-opacity=".14" stroke="{tint}" stroke-opacity=".6"'
            yield _rect(frame[0], frame[1], frame[2] - frame[0], frame[3] - frame[1], 11.0, colours)
        yield "</g>"


def _labels(drawing: _Drawing, groups: _Groups) -> Iterator[str]:
    """The groups' names, on top of the edges, above their frame or their first node."""
    where = _where(drawing)
    for name, members in groups.items():
        inside = [member for member in members if member in where]
        if inside:
            first = min((where[member] for member in inside), key=lambda place: (place[1], place[0]))
            frame = _frame(where, inside)
            corner = f'x="{_n(first[0] if frame is None else frame[0] + 5)}" y="{_n(first[1] - 13)}"'
            yield f'<text class="c l" {corner} font-size="10.5">{_text(_short(name, 40))}</text>'


def _where(drawing: _Drawing) -> dict[str, _Place]:
    return {
        box.name: (x, y, x + box.width, y + box.height)
        for box, (x, y) in zip(drawing.boxes, drawing.placed.corners, strict=True)
        if box.name
    }


def _frame(where: Mapping[str, _Place], inside: Sequence[str]) -> _Place | None:
    """The rectangle around the boxes ``inside``; None where it would touch another box."""
    lefts, tops, rights, bottoms = zip(*(where[member] for member in inside), strict=True)
    x0, y0, x1, y1 = min(lefts) - 9, min(tops) - 9, max(rights) + 9, max(bottoms) + 9
    others = (place for box, place in where.items() if box not in inside)
    alone = not any(a < x1 and x0 < c and b < y1 and y0 < d for a, b, c, d in others)
    return (x0, y0, x1, y1) if alone else None


def _band(drawing: _Drawing, inside: Sequence[str], where: Mapping[str, _Place], tint: str) -> Iterator[str]:
    yield f'<g opacity=".2" fill="{tint}" stroke="{tint}">'
    for route in drawing.placed.routes:
        ends = [_at(where, route[0], bottom=True), _at(where, route[-1], bottom=False)]
        if all(end in inside for end in ends):
            yield f'<path d="{_curve(route)}" fill="none" stroke-width="22" stroke-linecap="round"/>'
    for member in inside:
        x0, y0, x1, y1 = where[member]
        yield _rect(x0 - 7, y0 - 7, x1 - x0 + 14, y1 - y0 + 14, 11.0, 'stroke="none"')
    yield "</g>"


def _rect(x: float, y: float, width: float, height: float, radius: float, rest: str) -> str:
    corner = f'x="{_n(x)}" y="{_n(y)}" ' if x or y else ""
    return f'<rect {corner}width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}" {rest}/>'


def _at(where: Mapping[str, _Place], point: Point, *, bottom: bool) -> str | None:
    for name, (x0, y0, x1, y1) in where.items():
        if x0 <= point[0] <= x1 and abs(point[1] - (y1 if bottom else y0)) < 0.01:
            return name
    return None


def _curve(route: Sequence[Point]) -> str:
    """A path through the points that leaves and arrives upright."""
    parts = [f"M{_n(route[0][0])} {_n(route[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(route):
        if abs(x0 - x1) < 0.5:
            parts.append(f"L{_n(x1)} {_n(y1)}")
        else:
            bend = (y1 - y0) * 0.55
            parts.append(f"C{_n(x0)} {_n(y0 + bend)} {_n(x1)} {_n(y1 - bend)} {_n(x1)} {_n(y1)}")
    return "".join(parts)


# -- text ------------------------------------------------------------------------------------------


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    """The text escaped for SVG, without characters that XML does not allow."""
    return escape("".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _short(text: str, most: int) -> str:
    if _columns(text) <= most:
        return text
    while _columns(text) > most - 1:
        text = text[:-1]
    return text + "…"


__all__ = ["KINDS", "kind_of", "svg"]
