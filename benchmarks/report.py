"""Reports of the comparison: a table for the terminal, Markdown, JSON and a picture.

Input: a ``BenchmarkReport``.
Output: text, and files in a folder.
Why: results measured elsewhere can be drawn again: ``python -m benchmarks.report results/NAME.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Data = dict[str, Any]  # BenchmarkReport.as_dict()

COLOURS = {
    "tcompile": "#c8102e", "numpy": "#8a94a6", "torch": "#e39b3f", "torch_numpy": "#c98a3a", "jax": "#5fae9b",
    "numba": "#5b86c0", "numexpr": "#a98bc4", "copy": "#3d4450",
}  # fmt: skip
HEADINGS = ("", "median ms", "quartiles", "x NumPy", "/ best peer", "/ copy", "compile ms", "max diff")


# -- text ------------------------------------------------------------------------------------------------------------
def figure(value: float | None, digits: int = 3) -> str:
    """A number to so many significant digits, without exponent where it can be avoided; empty for None."""
    if value is None:
        return ""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < 1e-3 or abs(value) >= 1e6:
        return f"{value:.{digits - 1}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def cells(table: Data) -> list[list[str]]:
    """One kernel's rows as text, under ``HEADINGS``."""
    rows = []
    for row in table["rows"]:
        if row["median"] is None:
            rows.append([row["title"], row["status"], row["detail"]])
            continue
        unit = 1e3 if _short(table) else 1.0
        spread = f"{figure(row['lower'] * unit)} - {figure(row['upper'] * unit)}"
        ratios = [figure(row[name]) for name in ("speedup", "to_best_peer", "to_copy")]
        rows.append(
            [row["title"] + (" *" if row["detail"] else ""), figure(row["median"] * unit), spread, *ratios,
             figure(row["compile_ms"]), figure(row["difference"], 2)]
        )  # fmt: skip
    return rows


def terminal(data: Data) -> str:
    """The whole report for a terminal."""
    lines: list[str] = []
    for table in data["tables"]:
        unit = "µs" if _short(table) else "ms"
        lines += ["", f"{table['title']}   ({_case(table)}, {table['rounds']} rounds, {unit})"]
        rows = cells(table)
        headings = [f"median {unit}" if text == "median ms" else text for text in HEADINGS]
        full = [headings, *(row for row in rows if len(row) == len(HEADINGS))]
        widths = [max(len(row[column]) for row in full) for column in range(len(HEADINGS))]
        widths[0] = max(len(row[0]) for row in [headings, *rows])
        for row in [headings, *rows]:
            if len(row) == 3:
                lines.append(f"  {row[0]:{widths[0]}}  {row[1]}: {row[2]}")
            else:
                right = [f"{text:>{width}}" for text, width in zip(row[1:], widths[1:], strict=True)]
                lines.append("  " + "  ".join([f"{row[0]:{widths[0]}}", *right]).rstrip())
        lines += [f"  * {note}" for note in _notes(table)]
        lines += [f"  {line}" for line in _phases(table)]
    lines += ["", *(line for case, tables in cases(data).items() for line in means(case, tables))]
    lines += ["", "one call on 8 elements, µs: " + _overhead_text(data)]
    lines += [f"  {line}" for line in _calls_text(data)]
    lines += ["first compile in the process, ms: " + _first_text(data)]
    if data["startup"]:
        lines += ["in fresh processes, median ms: " + _startup_text(data)]
    if data["memory"]:
        lines += ["peak memory of a call, MB, NumPy / tcompile: " + _memory_text(data)]
    lines += data["skipped"]
    return "\n".join(lines)


def markdown(data: Data, pictures: Sequence[str] = ()) -> str:
    """The whole report as a Markdown page."""
    about, plan = data["about"], data["plan"]
    lines = [
        "# tcompile beside its peers",
        "",
        heading(data),
        "",
        f"`{about['command']}`",
        "",
        f"Medians of at most {plan['rounds']} rounds of {plan['calls']} calls, everybody in one process, in turn, on "
        "the same data; results checked against NumPy before timing. benchmarks/README.md says what the columns mean.",
        "",
    ]
    if about.get("noise"):
        lines += [f"**{about['noise']}**", ""]
    lines += [line for picture in pictures for line in (f"![the same as bars]({picture})", "")]
    lines += body(data)
    lines += ["", "## What is computed"]
    seen = set()
    for table in data["tables"]:
        if table["kernel"] not in seen:
            seen.add(table["kernel"])
            lines += ["", f"### `{table['title']}`", "", "```python", table["source"].rstrip(), "```", "",
                      f"Tolerance, {table['dtype']}: {table['tolerance']}."]  # fmt: skip
    notes = [f"{table['title']}, {_case(table)}: {note}" for table in data["tables"] for note in _remarks(table)]
    if notes or data["skipped"]:
        lines += ["", "## Not measured, and remarks", "", *(f"- {line}" for line in [*data["skipped"], *notes])]
    return "\n".join(lines) + "\n"


def heading(data: Data) -> str:
    """When, where and with what, in one line."""
    about = data["about"]
    return (
        f"{about['date']} · {about['machine']['processor']}, {data['plan']['threads']} threads of "
        f"{about['machine']['processors']} · Python {about['machine']['python']} · "
        + " · ".join(f"{name} {version}" for name, version in about["versions"].items())
    )


def body(data: Data) -> list[str]:
    """The tables of a page: a section for each shape and dtype, then compiling, calls, start and memory."""
    lines: list[str] = []
    for case, tables in cases(data).items():
        unit = "µs" if _short(tables[0]) else "ms"
        lines += ["", f"## {case}, {unit}", "", *summary(tables), "", *means(case, tables)]
    titles = _titles(data["tables"])
    lines += ["", "## Compile, call, start", "", "| | " + " | ".join(titles.values()) + " |",
              "|---|" + "---:|" * len(titles)]  # fmt: skip
    for table in next(iter(cases(data).values())):
        by_peer = {row["peer"]: row for row in table["rows"]}
        shown = [figure(by_peer[name]["compile_ms"]) if name in by_peer else "" for name in titles]
        lines.append(f"| compile `{table['title']}`, ms | " + " | ".join(shown) + " |")
    over = {row["peer"]: row for row in data["overheads"]}
    first = [figure(over[n]["first_compile_ms"]) if n in over else "" for n in titles]
    lines.append("| first compile in the process, ms | " + " | ".join(first) + " |")
    calls = [figure(over[n]["median"]) if n in over else "" for n in titles]
    lines.append("| call on 8 elements, µs | " + " | ".join(calls) + " |")
    if data["calls"]:
        lines += ["", "| a call on 8 elements, µs | NumPy | tcompile |", "|---|---:|---:|"]
        lines += [
            f"| `{row['title']}` | {figure(row['numpy_us'])} | {figure(row['tcompile_us'])} |" for row in data["calls"]
        ]
    if data["startup"]:
        lines += ["", f"In fresh processes, median ms: {_startup_text(data)}."]
    if data["memory"]:
        lines += ["", "| peak memory of a call, MB | NumPy | tcompile |", "|---|---:|---:|"]
        lines += [
            f"| {row['kernel']}, {row['dtype']} | {figure(row['numpy_mb'])} | {figure(row['tcompile_mb'])} |"
            for row in data["memory"]
        ]
    return lines


def cases(data: Data) -> dict[str, list[Data]]:
    """The tables of each shape and dtype."""
    found: dict[str, list[Data]] = {}
    for table in data["tables"]:
        found.setdefault(_case(table), []).append(table)
    return found


def means(case: str, tables: Sequence[Data]) -> list[str]:
    """The speed-ups over the best peer and over NumPy: geometric means, and the kernels that are slower."""
    rows = [(table, row) for table in tables for row in table["rows"] if row["peer"] == "tcompile"]
    told = []
    for name, title in (("to_best_peer", "the best peer"), ("to_numpy", "NumPy")):
        gains = [
            (1 / row["to_best_peer"] if row["to_best_peer"] else None) if name == "to_best_peer" else row["speedup"]
            for _, row in rows
        ]
        known = [gain for gain in gains if gain]
        if known:
            told.append(f"{figure(math.exp(sum(map(math.log, known)) / len(known)))} times {title}")
    behind = [table["title"] for table, row in rows if (row["to_best_peer"] or 0) > 1]
    line = f"{case}: tcompile is at {', '.join(told)} in the geometric mean" if told else f"{case}: no comparison"
    return [line + (f"; after the best peer in {', '.join(behind)}." if behind else ".")]


def summary(tables: Sequence[Data]) -> list[str]:
    """Kernels down, contestants across, medians: the lines of a Markdown table."""
    titles = _titles(tables)
    lines = ["| | " + " | ".join(titles.values()) + " |", "|---|" + "---:|" * len(titles)]
    for table in tables:
        by_peer = {row["peer"]: row for row in table["rows"]}
        shown = [_cell(by_peer.get(name), 1e3 if _short(tables[0]) else 1.0) for name in titles]
        lines.append(f"| `{table['title']}` | " + " | ".join(shown) + " |")
    return lines


def _case(table: Data) -> str:
    return f"{table['shape'][0]} x {table['shape'][1]} {table['dtype']}"


def _short(table: Data) -> bool:
    """Whether times are better given in µs."""
    return bool(table["shape"][0] * table["shape"][1] < 100_000)


def _titles(tables: Sequence[Data]) -> dict[str, str]:
    """All contestants of all tables, in order: name and title; those that timed nothing left out."""
    found = {row["peer"]: row["title"] for table in tables for row in table["rows"] if row["median"] is not None}
    return {name: found[name] for name in sorted(found, key=lambda name: name == "copy")}


def _notes(table: Data) -> list[str]:
    """Notes on rows with figures."""
    return [f"{r['title']}: {r['detail']}" for r in table["rows"] if r["median"] is not None and r["detail"]]


def _remarks(table: Data) -> list[str]:
    """The same, and notes on rows without figures, except kernels that a library cannot express."""
    missing = [row for row in table["rows"] if row["status"] in ("differs", "failed")]
    return [*_notes(table), *(f"{row['title']} {row['status']}: {row['detail']}" for row in missing)]


def _phases(table: Data) -> list[str]:
    phases = [(r["title"], r["phases"].items()) for r in table["rows"] if r["phases"]]
    return [f"{title}, phases in ms: {', '.join(f'{k} {figure(v)}' for k, v in items)}" for title, items in phases]


def _cell(row: Data | None, unit: float = 1.0) -> str:
    if row is None:
        return ""
    if row["median"] is None:
        return str(row["status"])
    return figure(row["median"] * unit) + (" \\*" if row["detail"] else "")


def _calls_text(data: Data) -> list[str]:
    return [
        f"{row['title']}: NumPy {figure(row['numpy_us'])}, tcompile {figure(row['tcompile_us'])}"
        for row in data["calls"]
    ]


def _memory_text(data: Data) -> str:
    return ", ".join(
        f"{row['kernel']} {row['dtype']} {figure(row['numpy_mb'])} / {figure(row['tcompile_mb'])}"
        for row in data["memory"]
    )


def _overhead_text(data: Data) -> str:
    return ", ".join(f"{row['title']} {figure(row['median'])}" for row in data["overheads"])


def _first_text(data: Data) -> str:
    rows = [row for row in data["overheads"] if row["first_compile_ms"] is not None]
    return ", ".join(f"{row['title']} {figure(row['first_compile_ms'])}" for row in rows)


def _startup_text(data: Data) -> str:
    return ", ".join(
        f"{name} {figure(v['median'])} ({figure(v['least'])} - {figure(v['most'])})"
        for name, v in data["startup"].items()
    )


# -- the picture -----------------------------------------------------------------------------------------------------
def draw(data: Data, case: str, path: Path) -> None:
    """Bars for every kernel of a case, for call overhead and compile time. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tables = cases(data)[case]
    panels: list[Data] = [_kernel_panel(table) for table in tables]
    panels += [_compile_panel(tables), _overhead_panel(data)]
    columns = min(4, len(panels))
    rows = math.ceil(len(panels) / columns)
    titles = {name: title for name, title in _titles(tables).items() if name != "copy"}
    style = {
        "font.family": "DejaVu Sans", "font.size": 9.5, "axes.edgecolor": "#c9ced6", "text.color": "#20242b",
        "axes.labelcolor": "#5a6270", "xtick.color": "#5a6270", "ytick.color": "#20242b",
        "figure.facecolor": "#fbfbf9", "axes.facecolor": "#fbfbf9",
    }  # fmt: skip
    with pyplot.rc_context(style):
        # All in inches: bars keep their thickness and texts their places, however many there are.
        wide, tall, top, bottom, across, down = 2.9, 0.3 * max(3, len(titles)), 1.25, 0.55, 0.45, 1.05
        left = 0.3 + 0.075 * max(map(len, titles.values()))  # the longest name
        width = left + columns * wide + (columns - 1) * across + 0.2
        height = top + rows * tall + (rows - 1) * down + bottom
        figure_, axes = pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False)
        figure_.subplots_adjust(
            left=left / width, right=1 - 0.2 / width, top=1 - top / height, bottom=bottom / height,
            wspace=across / wide, hspace=down / tall,
        )  # fmt: skip
        for index, axis in enumerate(axes.flat):
            if index < len(panels):
                _bars(axis, panels[index], titles, names=index % columns == 0)
            else:
                axis.set_axis_off()
        machine = data["about"]["machine"]
        below = (
            f"medians of {tables[0]['rounds']} x {data['plan']['calls']} calls with quartiles, shorter is better · "
            f"{machine['processor']}, {data['plan']['threads']} threads · {data['about']['date'][:10]}"
        )
        at, first, second = 0.15 / width, 1 - 0.28 / height, 1 - 0.56 / height
        figure_.text(at, first, f"tcompile beside its peers, {case}", fontsize=14, weight="bold", va="center")
        figure_.text(at, second, below, fontsize=9.5, color="#5a6270", va="center")
        figure_.savefig(path, dpi=110)
        pyplot.close(figure_)


def _kernel_panel(table: Data) -> Data:
    rows = {r["peer"]: r for r in table["rows"]}
    copy = rows.pop("copy", None)
    unit = 1e3 if _short(table) else 1.0
    return {
        "title": table["title"], "unit": "µs" if _short(table) else "ms", "log": False,
        "line": copy and copy["median"] * unit,
        "bars": {
            n: tuple(r[key] * unit for key in ("median", "lower", "upper"))
            for n, r in rows.items() if r["median"] is not None
        },
        "missing": {n: r["status"] for n, r in rows.items() if r["median"] is None},
    }  # fmt: skip


def _compile_panel(tables: Sequence[Data]) -> Data:
    seen: dict[str, list[float]] = {}
    for table in tables:
        for row in table["rows"]:
            if row["compile_ms"] is not None:
                seen.setdefault(row["peer"], []).append(row["compile_ms"])
    middle = {n: (sorted(v)[len(v) // 2], min(v), max(v)) for n, v in seen.items()}
    return {
        "title": "compile one of these, cold", "unit": "ms, log scale; from least to most", "log": True, "line": None,
        "bars": middle, "missing": {"numpy": "nothing to compile"},
    }  # fmt: skip


def _overhead_panel(data: Data) -> Data:
    bars = {row["peer"]: (row["median"], row["lower"], row["upper"]) for row in data["overheads"]}
    return {
        "title": "one call on 8 elements", "unit": "µs, log scale", "log": True, "line": None, "bars": bars,
        "missing": {},
    }  # fmt: skip


def _bars(axis: Any, panel: Data, titles: dict[str, str], names: bool) -> None:
    """One panel. Every contestant keeps its place; one that has no figure says why."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    bars = panel["bars"]
    # Whiskers end at twice the bar, so that one disturbed library does not press all others flat.
    ends = {name: max(bar[0], min(bar[2], 2 * bar[0])) for name, bar in bars.items()}
    most, least = max(ends.values(), default=1.0), min((bar[0] for bar in bars.values()), default=1.0)
    left = least / 4 if panel["log"] else 0.0
    if panel["log"]:
        axis.set_xscale("log")
        axis.set_xlim(left, most * (most / left) ** 0.24)
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axis.set_xlim(0, most * 1.24)
        axis.xaxis.set_major_locator(MaxNLocator(4))
    for place, name in enumerate(titles):
        if name not in bars:
            text = panel["missing"].get(name, "")
            where = axis.get_yaxis_transform()
            axis.text(0.015, place, text, transform=where, va="center", color="#9aa1ac", style="italic")
            continue
        middle, lower, _ = bars[name]
        ours = name == "tcompile"
        axis.barh(place, middle - left, left=left, height=0.68, color=COLOURS.get(name, "#777777"), zorder=2)
        axis.plot([lower, ends[name]], [place, place], color="#20242b", linewidth=1, alpha=0.5, zorder=3)
        axis.annotate(
            figure(middle), (ends[name], place), xytext=(4, 0), textcoords="offset points", va="center",
            weight="bold" if ours else "normal", zorder=4,
            bbox={"facecolor": "#fbfbf9", "edgecolor": "none", "pad": 1, "alpha": 0.85},
        )  # fmt: skip
    if panel["line"]:
        axis.axvline(panel["line"], color=COLOURS["copy"], linewidth=1.1, linestyle=(0, (4, 2)), zorder=3)
        axis.annotate(
            f"copy {figure(panel['line'])}", (panel["line"], 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
            textcoords="offset points", fontsize=8, color=COLOURS["copy"], va="bottom",
        )  # fmt: skip
    axis.set_ylim(len(titles) - 0.45, -0.55)
    axis.set_yticks(range(len(titles)), list(titles.values()) if names else [""] * len(titles))
    axis.tick_params(length=0)
    for label in axis.get_yticklabels():
        if label.get_text().startswith("tcompile"):
            label.set_weight("bold")
    axis.grid(axis="x", color="#e3e5e0", linewidth=0.8, zorder=0)
    axis.set_axisbelow(True)
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)
    axis.set_title(panel["title"], loc="left", fontsize=10.5, weight="bold", pad=16 if panel["line"] else 7)
    axis.set_xlabel(panel["unit"], fontsize=8.5)


# -- files -----------------------------------------------------------------------------------------------------------
def write(data: Data, folder: Path, name: str) -> list[str]:
    """Writes NAME.json, NAME.md, and a picture for each case. Returns lines that say what was written, and why not."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.json"]
    written[0].write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    told = []
    pictures = []
    try:
        for case in cases(data):
            picture = folder / f"{name}-{case.replace(' x ', 'x').replace(' ', '-')}.png"
            draw(data, case, picture)
            pictures.append(picture)
    except ImportError as error:
        told.append(f"the pictures are skipped: {error}")
    page = folder / f"{name}.md"
    page.write_text(markdown(data, [picture.name for picture in pictures]), encoding="utf-8")
    written += [*pictures, page]
    return [*told, "wrote " + ", ".join(str(path) for path in written)]


BEGIN, END = "<!-- figures: written from benchmarks/results -->", "<!-- end of figures -->"


def inserted(data: Data, text: str) -> str:
    """A Markdown page with the summary between its two marks. Raises ValueError where a mark is missing."""
    if BEGIN not in text or END not in text.partition(BEGIN)[2]:
        raise ValueError(f"the page has no lines {BEGIN!r} and {END!r}")
    before, _, rest = text.partition(BEGIN)
    case, tables = next(iter(cases(data).items()))
    table = "\n".join([f"{case}, {'µs' if _short(tables[0]) else 'ms'}:", "", *summary(tables)])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page and the picture of a JSON file again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=main.__doc__)
    parser.add_argument("results", type=Path, help="a JSON file")
    options = parser.parse_args(arguments)
    data = json.loads(options.results.read_text(encoding="utf-8"))
    print("\n".join(write(data, options.results.parent, options.results.stem)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
