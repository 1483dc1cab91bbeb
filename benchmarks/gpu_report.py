"""Reports of ``gpu``: a line per kernel for the terminal, Markdown, JSON and a picture.

Input: the rows of one run.
Output: text, and files in a folder.
Why: results measured elsewhere can be drawn again: ``python -m benchmarks.gpu_report results/NAME.json``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import against_report, gpu_peers
from benchmarks.report import figure

Data = dict[str, Any]
OURS = "tcompile"
PEERS = ("torch.compile", "torch.compile, max-autotune", "jax.jit", "torch", "CuPy", "cupy.fuse")
COLOURS = {OURS: "#c8102e", "torch.compile": "#e39b3f", "jax.jit": "#5fae9b", "torch": "#8a94a6", "CuPy": "#5b86c0"}


def line(row: Data) -> str:
    """A row for the terminal."""
    own = row["ms"].get(OURS)
    if own is None:
        return f"{row['title']:28} {row['refused'].get(OURS)}"
    peers = "  ".join(f"{who} {ms / own:.2f}" for who, ms in row["ms"].items() if who != OURS)
    return f"{row['title']:28} {own * 1e3:8.1f} µs  {row['of copy']:4.0%} of a copy   {peers}"


def table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Headings and rows as text, of the peers that took part."""
    rows = data["rows"]
    peers = [peer for peer in PEERS if any(peer in (row["ms"] | row["refused"]) for row in rows)]
    heads = ["kernel", "tcompile µs", "of a copy", "max-autotune", *(f"{peer}, ratio" for peer in peers)]
    return heads, [_cells(row, [f"{OURS}, max-autotune", *peers]) for row in rows]


def _cells(row: Data, others: Sequence[str]) -> list[str]:
    own = row["ms"].get(OURS)
    ratios = [_ratio(row, who) for who in others]
    return [f"`{row['title']}`", figure(own and own * 1e3), f"{row['of copy']:.0%}", *ratios]


def _ratio(row: Data, who: str) -> str:
    """The time of a peer, as a multiple of tcompile's."""
    own, theirs = row["ms"].get(OURS), row["ms"].get(who)
    if own is None or theirs is None:
        return "wrong" if row["refused"].get(who) == "wrong" else "-"
    return f"{theirs / own:.2f}"


def geometric_mean(rows: Sequence[Data], peer: str) -> float | None:
    """The geometric mean of a peer's times as multiples of tcompile's, over the kernels that both have run.

    >>> geometric_mean([{"ms": {"tcompile": 1.0, "CuPy": 2.0}}, {"ms": {"tcompile": 1.0, "CuPy": 8.0}}], "CuPy")
    4.0
    """
    pairs = [(row["ms"][peer], row["ms"][OURS]) for row in rows if {peer, OURS} <= {*row["ms"]}]
    return math.exp(sum(math.log(theirs / ours) for theirs, ours in pairs) / len(pairs)) if pairs else None


def closing(data: Data) -> list[str]:
    """The lines below the table."""
    means = [(peer, geometric_mean(data["rows"], peer)) for peer in PEERS]
    lines = [
        f"A copy of {data['about']['shape'][0]} x {data['about']['shape'][1]} {data['about']['dtype']} moves"
        f" {data['copy GB/s']:.0f} GB/s, counting what is read and what is written. Times are the GPU's own, medians,"
        " with a cold cache; ratios are how many times as long others take.",
        "Geometric means: " + ", ".join(f"{peer} {mean:.2f}" for peer, mean in means if mean is not None) + ".",
    ]
    by_host_clock = [peer for peer in gpu_peers.FINISH if any(peer in row["ms"] for row in data["rows"])]
    lines += [f"{peer}, which has streams of its own, is timed by the host's clock in a row of calls: of small arrays"
              " that is what starting them takes." for peer in by_host_clock]  # fmt: skip
    lines += [f"max-autotune chose for `{row['title']}`: {'; '.join(row['tuned'])}." for row in data["rows"]
              if row.get("tuned")]  # fmt: skip
    for what, found in data["host"].items():
        lines.append(f"{what[0].upper()}{what[1:]}: " + "; ".join(f"{who} {us:.1f}" for who, us in found.items()) + ".")
    return lines


def markdown(data: Data, picture: str | None) -> str:
    """The whole result as a Markdown page."""
    title = f"Kernels on a GPU ({data['about']['device']}): tcompile beside its peers"
    end = [part for line in closing(data) for part in (line, "")]
    return against_report.page(title, data, picture, *table(data), end)


def draw(data: Data, path: Path) -> None:
    """Bars: the time of each kernel. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = data["rows"][::-1]
    style = {"font.family": "DejaVu Sans", "font.size": 9.5, "figure.facecolor": "#fbfbf9", "axes.facecolor": "#fbfbf9"}
    with pyplot.rc_context(style):
        figure_, axis = pyplot.subplots(figsize=(9, 0.72 * max(3, len(rows)) + 1.2))
        for place, row in enumerate(rows):
            own = row["ms"].get(OURS)
            found = [(who, row["ms"][who] / own) for who in COLOURS if own and who in row["ms"]]
            for number, (who, ratio) in enumerate(found):
                at = place + 0.34 - 0.17 * number
                axis.barh(at, ratio, height=0.15, color=COLOURS[who], zorder=2, label=who if not place else None)
                told = f"{own * 1e3:.0f} µs" if who == OURS else figure(ratio, 2)
                axis.annotate(told, (ratio, at), textcoords="offset points", va="center", xytext=(3, 0), fontsize=6.5)
        axis.axvline(1, color="#5a6270", linewidth=0.6, zorder=1)
        axis.set_yticks(range(len(rows)), [row["title"] for row in rows])
        axis.set_ylim(-0.6, len(rows) - 0.4)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.tick_params(axis="x", labelsize=8)
        axis.set_xlabel("time beside tcompile's, log scale: shorter is faster", fontsize=8.5)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.055), ncols=len(COLOURS), frameon=False, fontsize=8)
        against_report.plain(axis)
        about = data["about"]
        size = " x ".join(map(str, about["shape"]))
        title = f"{about['device']} · {about['dtype']}, {size} · {about['date'][:10]}"
        against_report.keep(figure_, axis, title, path)


def write(data: Data, folder: Path, name: str) -> list[str]:
    """Writes NAME.json, NAME.png and NAME.md; returns lines that say so."""
    return against_report.write(data, folder, name, draw, markdown)


if __name__ == "__main__":
    sys.exit(against_report.main(write))
