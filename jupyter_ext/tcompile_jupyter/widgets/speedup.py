"""Plots the times of plain Python and compiled code while they are measured.

Input: a function, and its arguments or a way to make them of any size.
Output: a ``SpeedupPlot``, which draws the medians and their spread as they become known.
Why: ``tcompile_jupyter.measure`` does the timing; here it runs in a thread of its own, and is drawn.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from tcompile.errors import InvalidArgument
from tcompile.observe.context import current_cell
from tcompile.observe.display.html import speed as speed_text
from tcompile.observe.display.html import time as format_ms
from tcompile.records import dataclass
from tcompile_jupyter.chart import INK, Series, chart
from tcompile_jupyter.feed import PERIOD
from tcompile_jupyter.measure import CONFIDENCE, TOLERANCE, Measured, Pair, crossings
from tcompile_jupyter.widgets.plot import Plot
from tcompile_jupyter.widgets.shown import Shown, image, text

EAGER, COMPILED, MARK = "#8b949e", "#2f81f7", "#d97706"
SIZES = tuple(10**n for n in range(1, 7))


@dataclass(frozen=True)
class SpeedupPoint:
    """The results for one size; ``size`` is None if the arguments were given."""

    size: int | None
    measured: Measured


class SpeedupPlot(Shown):
    """Times ``function(*args)``, call by call, or a sweep: ``function(make(size))`` for each of ``sizes``.

    ``make`` returns the argument, or a tuple of arguments. Measuring starts at once, in the background. It lasts until
    each median is known to within ``tolerance`` at 95% confidence, or ``budget`` seconds for each size. The button
    stops it, and ``wait()`` waits for it. Bars are the middle half of the samples. If results differ from plain
    Python's, it reports that and stops. ``settings`` are those of ``tcompile.compile``, for a function that is not
    compiled.

    Raises InvalidArgument for both arguments and ``make``, or sizes without ``make``.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *args: Any,
        make: Callable[[int], Any] | None = None,
        sizes: Sequence[int] | None = None,
        budget: float = 1.0,
        tolerance: float = TOLERANCE,
        start: bool = True,
        **settings: Any,
    ) -> None:
        if make is not None and args:
            raise InvalidArgument("SpeedupPlot takes arguments of the function, or make, which makes them; not both")
        if sizes is not None and make is None:
            raise InvalidArgument("SpeedupPlot: sizes are for make(size), which is missing")
        self.function = function
        self.name = str(getattr(function, "__name__", function))
        self._args, self._make = args, make
        self._sizes: tuple[int | None, ...] = (None,) if make is None else tuple(sizes or SIZES)
        self._budget, self._tolerance, self._settings = budget, tolerance, settings
        self.points: tuple[SpeedupPoint, ...] = ()
        self.status = "waiting"
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._progress = ipywidgets.FloatProgress(min=0.0, max=1.0, layout={"width": "180px"})
        # Two, of which one is visible: a late press of "Stop" must not start another measurement.
        shape = {"width": "auto", "min_width": "90px", "flex": "0 0 auto"}
        self._go = ipywidgets.Button(icon="play", layout=shape)
        self._halt = ipywidgets.Button(description="Stop", icon="stop", layout=shape)
        self._says = ipywidgets.HTML()
        self.plot = Plot()
        row = ipywidgets.HBox((self._go, self._halt, self._progress, self._says), layout={"align_items": "center"})
        super().__init__((row, self.plot))
        self.ends = (self.stop,)
        self._go.on_click(lambda _: self.start())
        self._halt.on_click(lambda _: self.stop())
        if start:
            self.start()
        else:
            self._draw()

    # -- measuring ---------------------------------------------------------------------------------
    @property
    def measuring(self) -> bool:
        """Whether it is measuring now."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Measures, again if it has before."""
        if self.measuring:
            return
        self._over.clear()
        self.points = ()
        self.status = "measuring"
        self._draw()
        # In a context of its own: later displays belong to the cell that runs then.
        cell = current_cell.get()
        self._thread = threading.Thread(target=self._measure, args=(cell,), name="tcompile plot", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops measuring after the current repeat; the results so far stay."""
        self._over.set()

    def wait(self, timeout: float | None = None) -> SpeedupPlot:
        """Waits until measuring has ended, or for so many seconds. An interrupt stops the measuring."""
        try:
            if self._thread is not None:
                self._thread.join(timeout)
        except KeyboardInterrupt:
            self.stop()
            raise
        return self

    def _measure(self, cell: str | None) -> None:
        current_cell.set(cell)
        try:
            for number, size in enumerate(self._sizes):
                self._measure_size(number, size)
                if self._over.is_set() or self.status != "measuring":
                    break
        except Exception as error:  # shown in place of the times
            self.status = f"{type(error).__name__}: {error}"
        if self.status == "measuring":
            self.status = "stopped" if self._over.is_set() else "done"
        self._draw()
        self.redraw(now=True)

    def _measure_size(self, number: int, size: int | None) -> None:
        args = self._args
        if self._make is not None:
            made = self._make(size)  # type: ignore[arg-type]  # with make, all sizes are numbers
            args = made if isinstance(made, tuple) else (made,)
        pair = Pair.of(self.function, args, {}, **self._settings)
        before, drawn = self.points, 0.0
        for known in pair.measure(self._budget, self._tolerance):
            if known.difference.wrong:
                where = "" if size is None else f" at size {size:,}"
                self.status = f"results differ{where}: {known.difference.wrong}"
                return
            self.points = (*before, SpeedupPoint(size, known))
            if self._over.is_set():
                return
            if time.monotonic() > drawn + PERIOD:
                self._draw((number + known.progress(self._tolerance)) / len(self._sizes))
                drawn = time.monotonic()
        self._draw((number + 1) / len(self._sizes))

    def settle(self) -> None:
        """Waits until measuring has ended."""
        self.wait()

    # -- showing -----------------------------------------------------------------------------------
    @property
    def crossings(self) -> list[float]:
        """Returns the sizes at which compiled code becomes faster, or slower, than plain Python.

        Points where the faster one is not certain are skipped.
        """
        known = [(p.size, p.measured.speed_up) for p in self.points if p.size is not None and p.measured.sure]
        return crossings([size for size, _ in known], [speed for _, speed in known])

    def title(self) -> str:
        """Returns the results so far, in a line."""
        return f"{self.name}: {self._summary()}"

    def _summary(self) -> str:
        if self.status not in ("measuring", "done", "stopped") or not self.points:
            return self.status
        last = self.points[-1]
        size = "" if last.size is None else f"{last.size:,} elements: " if self.status == "measuring" else ""
        if self.status != "measuring" and len(self.points) > 1:
            ups = [point.measured.speed_up for point in self.points]
            figures = f"{speed_text(min(ups))} to {speed_text(max(ups))}"
            worst = max(point.measured.uncertainty for point in self.points)
        else:
            known = last.measured
            figures = (f"plain {format_ms(known.eager.median)}, compiled {format_ms(known.compiled.median)}, "
                    f"{speed_text(known.speed_up, known.uncertainty)}")  # fmt: skip
            worst = known.uncertainty
        may_alias_input = "not sure yet" if self.status == "measuring" else "the times vary too much to be sure"
        sure = f"medians within {worst:.0%} at {CONFIDENCE:.0%} confidence" if worst < 1 else may_alias_input
        stopped = " (stopped)" if self.status == "stopped" else ""
        return f"{size}{figures}, {sure}{stopped}"

    def table(self) -> str:
        """Returns the figures as HTML."""
        heads = ("size", "plain", "compiled", "speed-up", "within", "samples")
        rows = [
            (
                "" if point.size is None else f"{point.size:,}",
                format_ms(point.measured.eager.median),
                format_ms(point.measured.compiled.median),
                speed_text(point.measured.speed_up, point.measured.uncertainty),
                f"{point.measured.uncertainty:.0%}" if point.measured.uncertainty < 10 else "",
                str(point.measured.repeats),
            )
            for point in self.points
        ]
        right = "style='text-align:right;padding:0 .6em'"
        head = "".join(f"<th {right}>{name}</th>" for name in heads)
        cells = ("".join(f"<td {right}>{cell}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def picture(self) -> str:
        """Returns the plot, and the figures as a table."""
        head = f"<div><b>{text(self.name, 80)}</b> {text(self._summary())}</div>"
        return f"{head}{image(self.svg(), self.title())}{self.table()}" if self.points else head

    def svg(self) -> str:
        """Returns the plot as a picture."""
        if self._make is None:
            series = [Series(name, colour, [(n, ms, ms, ms) for n, ms in enumerate(sample, 1)], joined=False)
                      for name, colour, sample in self._calls()]  # fmt: skip
            return chart(series, x="call", y="time of a call", log_x=False, tell=format_ms)
        series = [Series(name, colour, rows) for name, colour, rows in self._sweep()]
        return chart(series, x="size", y="time of a call", marks=self._marks(), tell=format_ms)

    def _calls(self) -> list[tuple[str, str, tuple[float, ...]]]:
        known = self.points[-1].measured if self.points else None
        samples = (known.eager.ms, known.compiled.ms) if known is not None else ((), ())
        return [("plain Python", EAGER, samples[0]), ("compiled", COMPILED, samples[1])]

    def _sweep(self) -> list[tuple[str, str, list[tuple[float, float, float, float]]]]:
        kinds = (("plain Python", EAGER, "eager"), ("compiled", COMPILED, "compiled"))
        found = []
        for name, colour, kind in kinds:
            samples = [(float(point.size or 0), getattr(point.measured, kind)) for point in self.points]
            found.append((name, colour, [(size, s.median, *s.spread()) for size, s in samples]))
        return found

    def _marks(self) -> list[tuple[float, str]]:
        return [(size, f"even at {size:,.0f}" if size < 1e4 else f"even at {size:.2g}") for size in self.crossings]

    def _draw(self, progress: float = 0.0) -> None:
        busy = self.status == "measuring"
        self._go.description = "Measure again" if self.points else "Measure"
        self._go.layout.display, self._halt.layout.display = ("none", "") if busy else ("", "none")
        self._progress.value = progress
        self._progress.layout.visibility = "visible" if busy else "hidden"
        self._progress.layout.width = "180px" if busy else "0px"
        mark = "color:#c62828" if self.status.startswith("results differ") else "opacity:.8"
        self._says.value = f"<b>{text(self.name, 80)}</b> <span style='{mark}'>{text(self._summary())}</span>"
        self.plot.show(self._traces(), self._layout())

    def _traces(self) -> list[dict[str, Any]]:
        """Returns the series in plotly's form; times are in seconds, so that it chooses their unit."""
        if self._make is None:
            return [
                {**_trace(name, colour, "markers", 5), "x": list(range(1, len(sample) + 1)),
                 "y": [ms / 1e3 for ms in sample], "hovertemplate": "%{y:.3s}s"}
                for name, colour, sample in self._calls()
            ]  # fmt: skip
        ups = [speed_text(point.measured.speed_up, point.measured.uncertainty) for point in self.points]
        return [
            {**_trace(name, colour, "lines+markers", 8), "x": [row[0] for row in rows],
             "y": [row[1] / 1e3 for row in rows], "customdata": ups, "hovertemplate": "%{y:.3s}s, %{customdata}",
             "error_y": {"type": "data", "symmetric": False, "thickness": 4, "width": 0,
                         "array": [(row[3] - row[1]) / 1e3 for row in rows],
                         "arrayminus": [(row[1] - row[2]) / 1e3 for row in rows]}}
            for name, colour, rows in self._sweep()
        ]  # fmt: skip

    def _layout(self) -> dict[str, Any]:
        axis = {"gridcolor": "rgba(128,135,144,.22)", "zeroline": False, "linecolor": "rgba(128,135,144,.5)"}
        sweep = self._make is not None
        times = [ms for point in self.points for sample in (point.measured.eager, point.measured.compiled)
                 for ms in sample.ms if ms > 0]  # fmt: skip
        wide = bool(times) and max(times) > 100 * min(times)
        return {
            "height": 320, "margin": {"l": 60, "r": 14, "t": 26, "b": 42}, "font": {"color": INK, "size": 12},
            "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
            "hovermode": "x unified" if sweep else "closest",
            "hoverlabel": {"bgcolor": "#1f2937", "font": {"color": "#e5e7eb"}},
            "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
            "xaxis": {**axis, "title": {"text": "size" if sweep else "call"}, "type": "log" if sweep else "linear",
                      **({"dtick": 1} if sweep else {})},
            "yaxis": {**axis, "title": {"text": "time of a call"}, "type": "log", "exponentformat": "SI",
                      "minexponent": 0, "ticksuffix": "s", "dtick": 1 if wide else "D2"},  # D2: 1, 2, 5, 10
            "shapes": self._lines(),
            "annotations": [
                {"x": math.log10(size), "y": 1, "yref": "paper", "text": says, "showarrow": False, "xanchor": "left",
                 "yanchor": "top", "xshift": 5, "font": {"color": MARK}} for size, says in self._marks()
            ],
        }  # fmt: skip

    def _lines(self) -> list[dict[str, Any]]:
        """Returns a vertical line at each crossing, or a horizontal one at each median."""
        across = {"type": "line", "xref": "paper", "x0": 0, "x1": 1}
        upright = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": {"color": MARK, "dash": "dash"}}
        if self._make is not None:
            return [{**upright, "x0": size, "x1": size} for size, _ in self._marks()]
        medians = [(colour, statistics.median(sample) / 1e3) for _, colour, sample in self._calls() if sample]
        return [
            {**across, "y0": median, "y1": median, "line": {"color": colour, "width": 1, "dash": "dot"}}
            for colour, median in medians
        ]


def _trace(name: str, colour: str, mode: str, size: int) -> dict[str, Any]:
    look = {"line": {"color": colour, "width": 2}, "marker": {"color": colour, "size": size}}
    return {"type": "scatter", "name": name, "mode": mode, **look}


__all__ = ["COMPILED", "EAGER", "SIZES", "SpeedupPlot", "SpeedupPoint"]
