"""Reports of ``loops``: a line per program for the terminal, Markdown, JSON and a picture.

Input: the rows of one run.
Output: text, and files in a folder.
Why: results measured elsewhere can be drawn again: ``python -m benchmarks.loops_report results/NAME.json``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks import against_report
from benchmarks.report import COLOURS, figure

Data = dict[str, Any]
HEADS = (
    "program", "size", "iterations", "NumPy ms", "tcompile ms", "x NumPy", "Numba ms", "its loops ms", "parallel ms",
    "/ best Numba", "compile ms", "Numba's", "ratio", "compile CPU ms", "Numba's", "breaks",
)  # fmt: skip


def line(row: Data) -> str:
    """A row for the terminal."""
    ours, theirs = row["compile, ms"], row.get("numba compile, ms")
    told = f"{row['name']:24} numpy {row['numpy, ms']:10.2f}  tcompile {row['tcompile, ms']:10.3f}"
    best = best_numba(row)
    told += f"  numba {best:10.3f} ({row['tcompile, ms'] / best:.2f})" if best else " " * 25
    told += f"  compile {ours['wall']:6.1f}"
    return told + (f"  numba {theirs['wall']:7.1f} ({ours['wall'] / theirs['wall']:.3f})" if theirs else "")


def best_numba(row: Data) -> float | None:
    """The shortest of Numba's times."""
    times = [row[f"{who}, ms"] for who in ("numba", "numba loops", "numba loops, parallel") if f"{who}, ms" in row]
    return min(times, default=None)


def cells(row: Data) -> list[str]:
    """A row under ``HEADS``."""
    ours, theirs, best = row["compile, ms"], row.get("numba compile, ms"), best_numba(row)
    time = row["tcompile, ms"]
    return [
        row["name"], " x ".join(map(str, row["shape"])), str(row["steps"]), figure(row["numpy, ms"]), figure(time),
        figure(row["numpy, ms"] / time), *(
            figure(row.get(f"{who}, ms")) for who in ("numba", "numba loops", "numba loops, parallel")
        ),
        figure(time / best if best else None, 2), figure(ours["wall"]), figure(theirs and theirs["wall"]),
        figure(theirs and ours["wall"] / theirs["wall"]), figure(ours["cpu"]), figure(theirs and theirs["cpu"]),
        ", ".join(row["breaks"]),
    ]  # fmt: skip


def markdown(data: Data, picture: str | None) -> str:
    """The whole result as a Markdown page."""
    rows = [cells(row) for row in data["rows"]]
    return against_report.page("Loops: tcompile beside NumPy and Numba", data, picture, HEADS, rows, closing(data))


def closing(data: Data) -> list[str]:
    """The lines below the table."""
    both = [row for row in data["rows"] if row.get("numba compile, ms")]
    slower = [row["name"] for row in both if row["tcompile, ms"] > 1.2 * (best_numba(row) or 0)]
    longer = [row["name"] for row in both if row["compile, ms"]["wall"] > 0.1 * row["numba compile, ms"]["wall"]]
    return [
        "Numba: `njit` of the same source; its loops: loops written for it, on one thread and on all.",
        "Compile: the first call of a function that is new, less a later call, without a disk cache: by the clock, "
        "then in processor time: LLVM works beside Python.",
        f"Above 1.2 times the best of Numba's times: {', '.join(slower) or 'none'}.",
        f"Compiled in more than a tenth of Numba's time: {', '.join(longer) or 'none'}.",
    ]


def draw(data: Data, path: Path) -> None:
    """Bars: the run time and the compile time of each program. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = data["rows"][::-1]
    style = {"font.family": "DejaVu Sans", "font.size": 9.5, "figure.facecolor": "#fbfbf9", "axes.facecolor": "#fbfbf9"}
    with pyplot.rc_context(style):
        sizes = {"figsize": (11, 0.36 * max(3, len(rows)) + 1.4), "sharey": True}
        figure_, axes = pyplot.subplots(1, 2, **sizes)
        for place, row in enumerate(rows):
            runs = {"tcompile": row["numpy, ms"] / row["tcompile, ms"]}
            best = best_numba(row)
            if best:
                runs["numba"] = row["numpy, ms"] / best
            made = {"tcompile": row["compile, ms"]["wall"]}
            if row.get("numba compile, ms"):
                made["numba"] = row["numba compile, ms"]["wall"]
            for axis, found in zip(axes, (runs, made), strict=True):
                for shift, (who, value) in zip((0.19, -0.19), found.items(), strict=False):
                    value = max(value, 0.01)
                    axis.barh(place + shift, value, height=0.36, color=COLOURS[who], zorder=2)
                    axis.annotate(figure(value, 2), (value, place + shift), textcoords="offset points", va="center",
                                  xytext=(3, 0), fontsize=7)  # fmt: skip
        axes[0].set_ylim(-0.6, len(rows) - 0.4)
        axes[0].set_yticks(range(len(rows)), [row["name"] for row in rows])
        axes[0].set_xlabel("times faster than NumPy, log scale: tcompile (above), the best of Numba's", fontsize=8.5)
        axes[1].set_xlabel("cold compile, ms, log scale", fontsize=8.5)
        for axis in axes:
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            against_report.plain(axis)
        against_report.keep(figure_, axes[0], against_report.where(data), path)


def write(data: Data, folder: Path, name: str) -> list[str]:
    """Writes NAME.json, NAME.png and NAME.md; returns what to tell."""
    return against_report.write(data, folder, name, draw, markdown)


if __name__ == "__main__":
    sys.exit(against_report.main(write))
