"""Layered layout: positions of boxes and routes of edges in drawings of graphs.

Input: the sizes of boxes, in topological order, and the edges.
Output: a position for each box and a route for each edge.
Why: graphs can be drawn without installing anything.

The method is that of Sugiyama, Tagawa and Toda (1981): layers by longest path, long edges made of short ones through
dummy boxes, few crossings by barycentres, and then straight edges. The last step moves each layer's boxes as near as
possible, in least squares, to their neighbours: that is isotonic regression, which pooling adjacent violators solves
exactly.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import field

from tcompile.records import dataclass

Point = tuple[float, float]

_SWEEPS = 12
_LONGEST = 24  # edges over more layers than this reserve no path


@dataclass
class LayeredDrawing:
    """Positions: top left corners of the boxes, points of each edge's route, the size of it all."""

    corners: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


@dataclass
class _Item:
    """A box, or the dummy box of a long edge in a layer."""

    width: float
    height: float
    rank: int
    box: bool = True
    above: list[_Item] = field(default_factory=list)
    below: list[_Item] = field(default_factory=list)
    place: int = 0
    x: float = 0.0  # of its centre
    y: float = 0.0  # of its top


def layered(
    boxes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    *,
    gap: float = 22,
    rise: float = 26,
) -> LayeredDrawing:
    """Places ``boxes`` (widths and heights) so that every edge (from, to; from < to) leads down.

    ``gap`` is the distance between boxes of one layer, ``rise`` that between layers, in pixels.

    >>> placed = layered([(10, 10), (10, 10)], [(0, 1)])
    >>> placed.corners, placed.routes
    ([(0.0, 0.0), (0.0, 37.5)], [[(5.0, 10.0), (5.0, 37.5)]])
    """
    if not boxes:
        return LayeredDrawing([], [], 0.0, 0.0)
    ranks = _ranks(len(boxes), edges)
    items = [_Item(width, height, rank) for (width, height), rank in zip(boxes, ranks, strict=True)]
    layers: list[list[_Item]] = [[] for _ in range(max(ranks) + 1)]
    for item in items:
        layers[item.rank].append(item)
    ways = _connect(items, layers, edges)
    _order(layers)
    _straighten(layers, gap)
    y = 0.0
    tops, bottoms = [], []
    for layer in layers:
        height = max((item.height for item in layer), default=0.0)
        for item in layer:
            item.y = y + (height - item.height) / 2
        tops.append(y)
        bottoms.append(y + height)
        y += height + rise + min(40.0, 1.5 * len(layer))
    left = min(item.x - item.width / 2 for item in items)
    routes = _routes(items, edges, ways, tops, bottoms, left)
    right = max(item.x + item.width / 2 for item in items) - left
    right = max([right, *(x for route in routes for x, _ in route)])
    shift = -min([0.0, *(x for route in routes for x, _ in route)])
    corners = [(item.x - item.width / 2 - left + shift, item.y) for item in items]
    routes = [[(x + shift, y) for x, y in route] for route in routes]
    return LayeredDrawing(corners, routes, right + shift, bottoms[-1])


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: as high as its inputs allow, or near to its users where that is shorter."""
    ranks = [0] * count
    ins: list[list[int]] = [[] for _ in range(count)]
    outs: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        ins[target].append(source)
        outs[source].append(target)
    for target in range(count):
        ranks[target] = max((ranks[source] + 1 for source in ins[target]), default=0)
    for source in reversed(range(count)):
        if outs[source] and len(set(ins[source])) < len(set(outs[source])) + (not ins[source]):
            ranks[source] = min(ranks[target] for target in outs[source]) - 1
    return ranks


def _connect(
    items: list[_Item], layers: list[list[_Item]], edges: Sequence[tuple[int, int]]
) -> dict[int, dict[int, _Item]]:
    """Joins neighbours, through one chain of dummy boxes for all long edges of a box, by box and layer."""
    ways: dict[int, dict[int, _Item]] = {}
    for source, target in edges:
        a, b = items[source], items[target]
        if b.rank - a.rank > _LONGEST:
            continue
        way = ways.setdefault(source, {})
        last = a
        for rank in range(a.rank + 1, b.rank):
            if rank not in way:
                way[rank] = _Item(6.0, 0.0, rank, box=False)
                layers[rank].append(way[rank])
                last.below.append(way[rank])
                way[rank].above.append(last)
            last = way[rank]
        if b not in last.below:
            last.below.append(b)
        b.above.append(last)
    return ways


def _order(layers: list[list[_Item]]) -> None:
    """Sorts each layer by barycentres, alternately down and up, and keeps the order with the fewest crossings."""
    best, fewest = [list(layer) for layer in layers], None
    for sweep in range(_SWEEPS):
        for layer in layers:
            for place, item in enumerate(layer):
                item.place = place
        crossings = sum(_crossings(layer) for layer in layers)
        if fewest is None or crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
        if not fewest:
            break
        down = sweep % 2 == 0
        for layer in layers[1:] if down else layers[-2::-1]:
            weights = {}
            for item in layer:
                near = item.above if down else item.below
                weights[id(item)] = sum(other.place for other in near) / len(near) if near else item.place
            layer.sort(key=lambda item: weights[id(item)])
            for place, item in enumerate(layer):
                item.place = place
    for layer, kept in zip(layers, best, strict=True):
        layer[:] = kept


def _crossings(layer: list[_Item]) -> int:
    """Counts the crossings of edges from this layer to the next one."""
    seen: list[int] = []
    count = 0
    for item in layer:
        ends = sorted(other.place for other in item.below)
        count += sum(len(seen) - bisect_right(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return count


def _straighten(layers: list[list[_Item]], gap: float) -> None:
    """Sets each item's x: near its neighbours, in order, apart by ``gap``."""
    for layer in layers:
        x = -(sum(item.width + gap for item in layer)) / 2
        for item in layer:
            item.x = x + item.width / 2
            x += item.width + gap
    for sweep in range(_SWEEPS + 1):  # the last one goes down, so that chains hang straight
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            wanted, weights = [], []
            for item in layer:
                near = item.above if down else item.below
                # Boxes come before paths: a long edge that arrives must not pull a chain aside.
                near = [other for other in near if other.box] or near
                wanted.append(_middle([other.x for other in near]) if near else item.x)
                weights.append((2.0 if item.box else 1.0) if near else 0.05)
            _apart(layer, wanted, weights, gap)


def _middle(places: list[float]) -> float:
    """The median."""
    places.sort()
    half = len(places) // 2
    return places[half] if len(places) % 2 else (places[half - 1] + places[half]) / 2


def _apart(layer: list[_Item], wanted: list[float], weights: list[float], gap: float) -> None:
    """The positions nearest to ``wanted``, in weighted least squares, that keep order and distance."""
    offset = 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, float, int]] = []  # mean, weight, items
    for position, item in enumerate(layer):
        if position:
            before = layer[position - 1]
            room = gap if before.box and item.box else gap / 2
            offset += (before.width + item.width) / 2 + room
        offsets.append(offset)
        mean, weight, count = wanted[position] - offset, weights[position], 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, other_count = blocks.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        blocks.append((mean, weight, count))
    position = 0
    for mean, _, count in blocks:
        for _ in range(count):
            layer[position].x = mean + offsets[position]
            position += 1


def _routes(
    items: list[_Item],
    edges: Sequence[tuple[int, int]],
    ways: dict[int, dict[int, _Item]],
    tops: list[float],
    bottoms: list[float],
    left: float,
) -> list[list[Point]]:
    """The points of each edge: out of the box, straight through the layers between, in at its own port."""
    arriving: dict[int, list[tuple[float, int]]] = {}
    for number, (source, target) in enumerate(edges):
        before = ways.get(source, {}).get(items[target].rank - 1, items[source])
        arriving.setdefault(target, []).append((before.x, number))
    routes = []
    for number, (source, target) in enumerate(edges):
        a, b = items[source], items[target]
        ports = [arrived for _, arrived in sorted(arriving[target])]
        spread = min(18.0, b.width / (len(ports) + 1))
        port = b.x + (ports.index(number) - (len(ports) - 1) / 2) * spread
        route = [(a.x - left, a.y + a.height), (a.x - left, bottoms[a.rank])]
        for rank in range(a.rank + 1, b.rank):
            between = ways.get(source, {}).get(rank)
            if between is not None:
                route += [(between.x - left, tops[rank]), (between.x - left, bottoms[rank])]
        route += [(port - left, tops[b.rank]), (port - left, b.y)]
        routes.append([point for i, point in enumerate(route) if not i or point != route[i - 1]])
    return routes


__all__ = ["LayeredDrawing", "layered"]
