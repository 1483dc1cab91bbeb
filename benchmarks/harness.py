"""Timing: all contestants in one process, in turn, on the same data, after the results were checked.

Input: kernels, peers, shapes and dtypes.
Output: a ``BenchmarkReport``: plain data that becomes JSON.
Why: comparisons are fair:

- A round runs every contestant once, in an order that shifts from round to round, so that a machine that slows down
  slows down all of them.
- A turn is one call that is not timed (it wakes the library's threads and settles its memory) and some that are. A
  short call is repeated until a millisecond is over.
- A timed call ends when the result is there and has been released again.
- A contestant whose result differs from NumPy's by more than the kernel's tolerance is not timed at all.
- In every round the same bytes are copied by two threads: the memory's limit.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
import os
import queue
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from benchmarks import calls, memory, startup
from benchmarks.kernels import KERNELS, Kernel
from benchmarks.peers import Contestant, Inputs, NotApplicable, Peer

COPY = "copy"
SHORT = 1e-3  # a timed call that takes less is repeated
SEVERAL_THREADS = 1 << 20  # bytes from which a second thread helps to copy
_COMPILES, _COMPILING_MS = 5, 250  # at most so many compiles of one kernel, and none more once they have taken so long
Tell = Callable[[str], None]


@dataclass(slots=True)
class Plan:
    """How much to measure: each kernel at each of ``shapes`` and ``dtypes``.

    ``rounds`` turns of ``calls`` timed calls each; fewer rounds, but three, where they would take more than
    ``seconds``.
    """

    shapes: tuple[tuple[int, int], ...] = ((4096, 4096), (64, 64), (1000, 3))
    dtypes: tuple[str, ...] = ("float32", "float64")
    rounds: int = 15
    calls: int = 3
    seconds: float = 3.0
    overhead_rounds: int = 25
    import_runs: int = 9
    threads: int = 2


@dataclass(slots=True)
class Row:
    """One contestant on one kernel. ``status``: ok, differs, failed or n/a; times in ms, over all timed calls."""

    peer: str
    title: str
    status: str
    detail: str = ""
    median: float | None = None
    lower: float | None = None  # first and third quartile
    upper: float | None = None
    round_medians: list[float] = field(default_factory=list)
    compile_ms: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    difference: float | None = None  # largest |result - numpy|
    allowed: float | None = None  # the largest used share of the tolerance
    speedup: float | None = None  # NumPy's time / this time
    to_best_peer: float | None = None  # this time / the fastest library's other than NumPy and tcompile
    to_copy: float | None = None  # this time / the copy's


@dataclass(slots=True)
class Table:
    """One kernel at one shape and dtype: its rows, the copy's among them. ``bytes`` are those of inputs and result."""

    kernel: str
    title: str
    source: str
    tolerance: str
    shape: tuple[int, int]
    dtype: str
    bytes: int
    rounds: int
    rows: list[Row]


@dataclass(slots=True)
class Overhead:
    """One call of an 8 element kernel in µs, and what the first compile in this process took in ms."""

    peer: str
    title: str
    median: float
    lower: float
    upper: float
    first_compile_ms: float | None


@dataclass(slots=True)
class BenchmarkReport:
    """All measurements."""

    plan: Plan
    tables: list[Table] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    startup: dict[str, dict[str, float]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def measure(
    kernels: Sequence[Kernel], peers: Sequence[Peer], plan: Plan, tell: Tell, startup_backend: str | None = "auto"
) -> BenchmarkReport:
    """Measures all. ``tell`` gets a line for each step; ``startup_backend`` None leaves the fresh processes out.

    The first peer is the one that results are checked against.
    """
    report = BenchmarkReport(plan)
    if startup_backend is not None:
        tell("imports and first calls, in fresh processes")
        largest = max(plan.shapes)
        try:
            report.startup = startup.measure(plan.import_runs, startup_backend)
            tell("peak memory, in fresh processes")
            report.memory = memory.measure([kernel.name for kernel in kernels], largest, startup_backend)
        except RuntimeError as error:
            report.skipped.append(f"fresh processes were not measured: {error}")
            tell(report.skipped[-1])
    starters: list[Contestant] = []
    loaded: list[Peer] = []
    small = (np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4),)
    for peer in peers:
        try:
            peer.load(plan.threads)
        except ImportError as error:
            report.skipped.append(f"{peer.title} is skipped: {error}")
            tell(report.skipped[-1])
            continue
        tell(f"{peer.title}: first compile")
        try:
            starters.append(peer.build(KERNELS["relu"], small))
        except NotApplicable:  # not to 8 elements: larger sizes follow
            pass
        except Exception as error:  # a peer that cannot start is reported, the others go on
            report.skipped.append(f"{peer.title} is skipped, its first compile failed: {_line(error)}")
            tell(report.skipped[-1])
            continue
        loaded.append(peer)
    report.about["versions"] = {k: v for peer in loaded for k, v in peer.versions().items()}
    tell("call overhead")
    report.overheads = overheads(starters, plan)
    report.calls = calls.measure(loaded, plan.overhead_rounds)
    for shape in plan.shapes:
        for dtype in plan.dtypes:
            for kernel in kernels:
                tell(f"{kernel.title}, {shape[0]} x {shape[1]} {dtype}")
                report.tables.append(table(kernel, loaded, shape, dtype, plan, tell))
    return report


def table(kernel: Kernel, peers: Sequence[Peer], shape: tuple[int, int], dtype: str, plan: Plan, tell: Tell) -> Table:
    """Compiles, checks and times one kernel."""
    inputs = kernel.inputs(shape, dtype)
    expected = kernel.numpy(*inputs)
    moved = sum(x.nbytes for x in inputs) + expected.nbytes
    rows: list[Row] = []
    runners: dict[str, Callable[[], Any]] = {}
    for peer in peers:
        row = Row(peer.name, peer.title, "ok")
        rows.append(row)
        try:
            contestant = _built(peer, kernel, inputs)
            row.compile_ms, row.phases, row.detail = contestant.compile_ms, contestant.phases, contestant.note
            check(row, kernel, contestant(), expected)
        except NotApplicable as reason:
            row.status, row.detail = "n/a", str(reason)
        except Exception as error:  # one library's failure is a row of the table
            row.status, row.detail = "failed", _line(error)
        if row.status == "ok":
            runners[peer.name] = contestant
        if row.status != "ok" or row.detail:
            tell(f"    {peer.title}: {row.status}{': ' if row.detail else ''}{row.detail}")
    rows.append(Row(COPY, f"copy, {plan.threads} threads", "ok"))
    with Copier(np.ones(moved // 2, "uint8"), plan.threads) as copier:
        runners[COPY] = copier
        repeats, count = estimate(runners, plan)
        times = rounds(runners, count, plan.calls, repeats)
    for row in rows:
        if row.peer in times:
            summarise(row, times[row.peer])
    compare(rows)
    return Table(
        kernel.name, kernel.title, _source(kernel), _tolerance(kernel, dtype), shape, dtype, moved, count, rows
    )  # fmt: skip


def _built(peer: Peer, kernel: Kernel, inputs: Inputs) -> Contestant:
    """The kernel as ``peer`` compiles it; fast compiles are repeated, and their median is reported."""
    made = [peer.build(kernel, inputs)]
    while peer.cold and len(made) < _COMPILES and sum(one.compile_ms or 0 for one in made) < _COMPILING_MS:
        made.append(peer.build(kernel, inputs))
    ranked = sorted(made, key=lambda one: one.compile_ms or 0)
    return ranked[(len(ranked) - 1) // 2]


def estimate(runners: dict[str, Callable[[], Any]], plan: Plan) -> tuple[dict[str, int], int]:
    """How often a timed call of each is repeated, to take a millisecond; and how many rounds fit in the time."""
    repeats: dict[str, int] = {}
    turn = 0.0
    for name, run in runners.items():
        run()
        seconds = max(1e-7, min(_seconds(run) for _ in range(2)))
        repeats[name] = max(1, round(SHORT / seconds))
        turn += seconds * (1 + plan.calls * repeats[name])
    return repeats, max(min(3, plan.rounds), min(plan.rounds, round(plan.seconds / turn)))


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def check(row: Row, kernel: Kernel, raw: Any, expected: Any) -> None:
    """Fills in the distance of ``raw`` from NumPy's result, and the status ``differs`` where that is too large.

    The shape must be NumPy's; of tcompile, which promises them, also the type and the dtype.
    """
    result, wanted = np.asarray(raw), np.asarray(expected, dtype=np.float64)
    kind = (type(raw), result.dtype) if row.peer == "tcompile" else ()
    if (result.shape, *kind) != (wanted.shape, *((type(expected), expected.dtype) if kind else ())):
        row.status = "differs"
        row.detail = f"{type(raw).__name__} {result.dtype}{list(result.shape)} instead of NumPy's"
        return
    distance = np.abs(result - wanted)
    rtol, atol = kernel.limits(expected.dtype)
    limit = atol + rtol * np.abs(wanted)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.where(distance == 0, 0, distance / limit).max())
    largest = float(distance.max())
    row.difference, row.allowed = _finite(largest), _finite(share)
    if not (distance <= limit).all():  # so does NaN
        row.status = "differs"
        row.detail = f"by {largest:.3g}" + (f", {share:.3g} times the tolerance" if row.allowed else "")


def _finite(value: float) -> float | None:
    """For JSON, which has no infinity and no NaN."""
    return value if np.isfinite(value) else None


class Copier:
    """Copies the bytes of ``x`` into an existing array, in equal parts on ``threads`` threads, with ``np.copyto``.

    The calling thread copies one part itself, and all where they are few. A context manager: the threads end with its
    block.
    """

    def __init__(self, x: np.ndarray, threads: int) -> None:
        target = np.zeros_like(x)
        threads = threads if x.nbytes >= SEVERAL_THREADS else 1
        self._parts = list(zip(np.array_split(target, threads), np.array_split(x, threads), strict=True))
        self._orders: list[queue.SimpleQueue[bool]] = [queue.SimpleQueue() for _ in self._parts[1:]]
        self._done: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def __enter__(self) -> Copier:
        for order, part in zip(self._orders, self._parts[1:], strict=True):
            threading.Thread(target=self._work, args=(order, part), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        for order in self._orders:
            order.put(False)

    def _work(self, order: queue.SimpleQueue[bool], part: tuple[np.ndarray, np.ndarray]) -> None:
        while order.get():
            np.copyto(*part)
            self._done.put(True)

    def __call__(self) -> None:
        for order in self._orders:
            order.put(True)
        np.copyto(*self._parts[0])
        for _ in self._orders:
            self._done.get()


def rounds(
    runners: dict[str, Callable[[], Any]], count: int, calls: int, repeats: Mapping[str, int] | None = None
) -> dict[str, list[list[float]]]:
    """For each runner, for each round, the seconds of its timed calls, each the mean of so many ``repeats``."""
    times: dict[str, list[list[float]]] = {name: [] for name in runners}
    names = list(runners)
    clock = time.perf_counter
    with _no_garbage_collection():
        for number in range(count):
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                run = runners[name]
                times_each = (repeats or {}).get(name, 1)
                run()
                turn = []
                for _ in range(calls):
                    start = clock()
                    for _ in repeat(None, times_each):
                        run()  # its result is released before the clock is read again
                    turn.append((clock() - start) / times_each)
                times[name].append(turn)
    return times


def overheads(contestants: Sequence[Contestant], plan: Plan) -> list[Overhead]:
    """One call on 8 elements: in turn, in batches of about a millisecond, after a batch that is not timed."""

    def batch(contestant: Contestant, calls: int) -> float:
        function, (argument,), wait = contestant.function, contestant.arguments, contestant.wait
        start = time.perf_counter()
        if wait is None:
            for _ in repeat(None, calls):
                function(argument)
        else:
            for _ in repeat(None, calls):
                wait(function(argument))
        return (time.perf_counter() - start) / calls * 1e6

    sizes = {c.peer.name: max(1, round(1e3 / batch(c, 10))) for c in contestants}
    seen: dict[str, list[float]] = {c.peer.name: [] for c in contestants}
    with _no_garbage_collection():
        for _ in range(plan.overhead_rounds):
            for c in contestants:
                calls = sizes[c.peer.name]
                batch(c, calls)
                seen[c.peer.name].append(batch(c, calls))
    return [
        Overhead(c.peer.name, c.peer.title, *_quartiles(seen[c.peer.name]), first_compile_ms=c.compile_ms)
        for c in contestants
    ]


def summarise(row: Row, turns: list[list[float]]) -> None:
    """Fills in the figures of one row from its times in seconds."""
    row.median, row.lower, row.upper = _quartiles([t * 1e3 for turn in turns for t in turn])
    row.round_medians = [round(statistics.median(turn) * 1e3, 5) for turn in turns]


def compare(rows: Sequence[Row]) -> None:
    """Fills in the ratios."""
    times = {row.peer: row.median for row in rows if row.median is not None}
    others = [t for name, t in times.items() if name not in ("numpy", "tcompile", COPY)]
    for row in rows:
        if row.median is None:
            continue
        if "numpy" in times:
            row.speedup = times["numpy"] / row.median
        if others and row.peer != COPY:
            row.to_best_peer = row.median / min(others)
        row.to_copy = row.median / times[COPY]


def load_average() -> float | None:
    """The number of runnable threads during the last minute, where the system reports it."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


class _no_garbage_collection:
    """Turns the cycle collector off meanwhile."""

    def __enter__(self) -> None:
        gc.collect()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        gc.enable()


def _quartiles(values: list[float]) -> tuple[float, float, float]:
    """Median, first and third quartile."""
    lower, middle, upper = np.percentile(values, [25, 50, 75]).tolist()
    return middle, lower, upper


def _tolerance(kernel: Kernel, dtype: str) -> str:
    rtol, atol = kernel.limits(dtype)
    if not rtol and not atol:
        return f"exact ({kernel.tolerance})"
    return f"{atol:.2g} + {rtol:.2g} x |value| ({kernel.tolerance})"


def _source(kernel: Kernel) -> str:
    return inspect.getsource(kernel.numpy)


def _line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:400]
