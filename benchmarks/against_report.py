"""Reports of ``against_numpy``: a table for the terminal, Markdown, JSON and a picture.

Input: the data of one run.
Output: text, and files in a folder.
Why: results measured elsewhere can be drawn again: ``python -m benchmarks.against_report results/NAME.json``.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import COLOURS, figure

Data = dict[str, Any]
_TITLES = {
    "programs": "Whole programs", "everyday": "Programs of notebooks, at another size first",
    "draws": "Random numbers", "small": "Small functions, 1 to 10^7 elements",
}  # fmt: skip


# -- text --------------------------------------------------------------------------------------------------------------
def terminal(data: Data) -> str:
    """The whole result for a terminal."""
    heads, rows = table(data)
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = ["  ".join([f"{r[0]:{widths[0]}}", *(f"{c:>{w}}" for c, w in zip(r[1:], widths[1:], strict=True))])
             for r in [heads, *rows]]  # fmt: skip
    return "\n".join([*lines, "", *closing(data)])


def markdown(data: Data, picture: str | None) -> str:
    """The whole result as a Markdown page."""
    return page(f"{_TITLES[data['suite']]}: tcompile beside NumPy", data, picture, *table(data), closing(data))


def page(
    title: str, data: Data, picture: str | None, heads: Sequence[str], rows: Iterable[Sequence[str]], end: Iterable[str]
) -> str:
    """A Markdown page: the machine, the picture, the table, and the lines below it."""
    about = data["about"]
    lines = [
        f"# {title}", "",
        f"{about['date']} · {about['machine']['processor']}, {about['threads']} threads of "
        f"{about['machine']['processors']} · Python {about['machine']['python']} · "
        + " · ".join(f"{name} {version}" for name, version in about["versions"].items()), "",
        f"`{about['command']}`", "",
    ]  # fmt: skip
    if about.get("noise"):
        lines += [f"**{about['noise']}**", ""]
    if picture:
        lines += [f"![the same as a picture]({picture})", ""]
    lines += ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *end]) + "\n"


def table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Headings and rows as text."""
    return _small(data) if data["suite"] == "small" else _programs(data)


def _programs(data: Data) -> tuple[list[str], list[list[str]]]:
    other = ["another size ms"] if data["suite"] == "everyday" else []
    heads = ["program", "size", "NumPy ms", "tcompile ms", "quartiles", "times faster", "first call ms", *other]
    heads.append("breaks")
    rows = []
    for row in data["rows"]:
        if row["status"] != "ok":
            given = [row["name"], str(row["size"]), "", row["status"], row["detail"]]
            rows.append(given + [""] * (len(heads) - len(given)))
            continue
        middle, low, high = row["tcompile_ms"]
        rows.append(
            [row["name"], str(row["size"]), figure(row["numpy_ms"][0]), figure(middle),
             f"{figure(low)} - {figure(high)}", figure(row["speedup"]) + (" <" if row["speedup"] < 1 else ""),
             figure(row["first_call_ms"]), *([figure(row["other_size_ms"])] if other else []), ", ".join(row["breaks"])]
        )  # fmt: skip
    return heads, rows


def _small(data: Data) -> tuple[list[str], list[list[str]]]:
    sizes = sorted({row["size"] for row in data["rows"]})
    by_name: dict[str, dict[int, Data]] = {}
    for row in data["rows"]:
        by_name.setdefault(row["name"], {})[row["size"]] = row
    heads = ["tcompile / NumPy", *(f"{size:g}" for size in sizes)]
    return heads, [[name, *(_ratio(found.get(size)) for size in sizes)] for name, found in by_name.items()]


def _ratio(row: Data | None) -> str:
    if row is None:
        return ""
    if row["status"] != "ok":
        return row["status"]
    flag = (" ~" if row["within_noise"] else " <") if row["loses"] else ""
    return figure(1 / row["speedup"], 2) + flag


def closing(data: Data) -> list[str]:
    """The lines below the table."""
    if data["suite"] != "small":
        mean = data["geometric_mean"]
        slower = [row["name"] for row in data["rows"] if row["status"] == "ok" and row["speedup"] < 1]
        return [
            f"Geometric mean: {figure(mean)} times NumPy.",
            f"Slower than NumPy (<): {', '.join(slower) or 'none'}.",
        ]
    losers = [row for row in data["rows"] if row.get("loses") and not row["within_noise"]]
    named = "".join(
        f"\n- {row['name']}, {row['size']:g}: {figure(row['tcompile_ms'][0] * 1e3)} µs instead of "
        f"{figure(row['numpy_ms'][0] * 1e3)} µs" for row in losers
    )  # fmt: skip
    return [
        f"Allowed: NumPy's time, {round((data['allowed'] - 1) * 100)}% more, and the overhead of one call, "
        f"{figure(data['overhead_ms'] * 1e3)} µs.",
        "`<`: more than that. `~`: more by the medians, but the quartiles leave it open.",
        f"Losers: {len(losers)} of {len(data['rows'])}.{named}",
    ]


# -- the picture -------------------------------------------------------------------------------------------------------
def draw(data: Data, path: Path) -> None:
    """Bars for programs, a map of ratios for small functions. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    style = {"font.family": "DejaVu Sans", "font.size": 9.5, "figure.facecolor": "#fbfbf9", "axes.facecolor": "#fbfbf9"}
    with pyplot.rc_context(style):
        rows = [row for row in data["rows"] if row["status"] == "ok"]
        figure_, axis = _map(pyplot, rows) if data["suite"] == "small" else _bars(pyplot, rows, data)
        keep(figure_, axis, where(data), path)


def where(data: Data) -> str:
    """The machine and the date."""
    about = data["about"]
    return f"{about['machine']['processor']}, {about['threads']} threads · {about['date'][:10]}"


def keep(figure_: Any, axis: Any, title: str, path: Path) -> None:
    """Writes a picture with a title above an axis, and closes it."""
    from matplotlib import pyplot

    axis.set_title(title, loc="left", fontsize=8.5, color="#5a6270")
    figure_.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(figure_)


def _bars(pyplot: Any, rows: list[Data], data: Data) -> tuple[Any, Any]:
    rows = sorted(rows, key=lambda row: row["speedup"])
    figure_, axis = pyplot.subplots(figsize=(7.5, 0.3 * max(3, len(rows)) + 1.4))
    for place, row in enumerate(rows):
        gain = row["speedup"]
        axis.barh(place, gain - 1, left=1, height=0.7, color=COLOURS["tcompile" if gain >= 1 else "numpy"], zorder=2)
        side = {"ha": "left", "xytext": (4, 0)} if gain >= 1 else {"ha": "right", "xytext": (-4, 0)}
        axis.annotate(figure(gain, 2), (gain, place), textcoords="offset points", va="center", fontsize=8.5, **side)
    axis.set_xscale("log", base=2)
    gains = [row["speedup"] for row in rows] or [1.0]
    axis.set_xlim(min(0.45, min(gains) * 0.7), max(gains) * 1.6)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_yticks(range(len(rows)), [f"{row['name']}: {row['about']}" for row in rows])
    axis.axvline(1, color="#3d4450", linewidth=1)
    if data["geometric_mean"]:
        axis.axvline(data["geometric_mean"], color="#3d4450", linewidth=1, linestyle=(0, (4, 2)))
    axis.set_xlabel("times faster than NumPy, log scale; dashed: geometric mean", fontsize=8.5)
    plain(axis)
    return figure_, axis


def _map(pyplot: Any, rows: list[Data]) -> tuple[Any, Any]:
    names = list(dict.fromkeys(row["name"] for row in rows))
    sizes = sorted({row["size"] for row in rows})
    figure_, axis = pyplot.subplots(figsize=(0.75 * len(sizes) + 2.2, 0.26 * len(names) + 1.4))
    grid = [[math.nan] * len(sizes) for _ in names]
    for row in rows:
        at = names.index(row["name"]), sizes.index(row["size"])
        grid[at[0]][at[1]] = -math.log2(row["speedup"])
        flag = row["loses"] and not row["within_noise"]
        axis.text(at[1], at[0], figure(1 / row["speedup"], 2), ha="center", va="center", fontsize=7.5,
                  weight="bold" if flag else "normal")  # fmt: skip
    axis.imshow(grid, cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto", alpha=0.75)
    axis.set_yticks(range(len(names)), names)
    axis.set_xticks(range(len(sizes)), [f"$10^{{{round(math.log10(size))}}}$" for size in sizes])
    axis.set_xlabel("elements; tcompile's time / NumPy's, bold: more than allowed", fontsize=8.5)
    plain(axis)
    return figure_, axis


def draw_bars(
    path: Path, names: Sequence[str], series: Mapping[str, Sequence[float | None]], unit: str, log: bool = False
) -> None:
    """Draws a group of horizontal bars for each name: one of each series; None leaves a bar out."""
    from matplotlib import pyplot

    figure_, axis = pyplot.subplots(figsize=(8, 0.17 * len(names) * len(series) + 1.2))
    for number, (label, values) in enumerate(series.items()):
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        places = [place + 0.8 * number / len(series) for place, _ in known]
        axis.barh(places, [value for _, value in known], 0.8 / len(series), label=label)
    axis.set_yticks([place + 0.4 * (1 - 1 / len(series)) for place in range(len(names))], names)
    axis.invert_yaxis()
    axis.set_xscale("log" if log else "linear")
    axis.set_xlabel(unit)
    axis.legend()
    figure_.savefig(path, bbox_inches="tight")
    pyplot.close(figure_)


def plain(axis: Any) -> None:
    """Without frame and ticks."""
    for side in ("top", "right", "bottom", "left"):
        axis.spines[side].set_visible(False)
    axis.tick_params(length=0)


# -- files -------------------------------------------------------------------------------------------------------------
def write(
    data: Data,
    folder: Path,
    name: str,
    draw: Callable[[Data, Path], None] = draw,
    markdown: Callable[[Data, str | None], str] = markdown,
) -> list[str]:
    """Writes NAME.json, NAME.png and NAME.md. Returns lines that say what was written, or why something was not."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.json"]
    paths[0].write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    told = []
    picture: Path | None = folder / f"{name}.png"
    try:
        draw(data, picture)
        paths.append(picture)
    except ImportError as error:
        told.append(f"the picture is skipped: {error}")
        picture = None
    paths.append(folder / f"{name}.md")
    paths[-1].write_text(markdown(data, picture and picture.name), encoding="utf-8")
    return [*told, "wrote " + ", ".join(map(str, paths))]


def main(write: Callable[[Data, Path, str], list[str]] = write) -> int:
    """Writes the page and the picture of a JSON file again."""
    path = Path(sys.argv[1])
    print("\n".join(write(json.loads(path.read_text(encoding="utf-8")), path.parent, path.stem)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
