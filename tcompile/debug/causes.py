"""Why a call is not faster: what takes its time, ranked, with cures.

Input: the timed steps of a profile, its lines, and the events of its first call.
Output: ``Cause`` after ``Cause``, the one that takes most first.
Why: a table of times says where, not why; a person wants to know what to change, and what that would bring.

What a cure brings is a bound: the call without the time of the cause. A kernel keeps at least the time that memory or
processor need for it (``machine_limits``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tcompile.debug.machine_limits import bytes_per_second, operations_per_second
from tcompile.debug.plain_causes import plain_causes
from tcompile.debug.step_timing import FUSED, LIBRARY, Laps, Place
from tcompile.graph.dtypes import FLOAT64
from tcompile.observe.display import html
from tcompile.observe.display.profiles import Cause, LineTime
from tcompile.observe.events import CompileFinished, FellBack, GraphBroke, RecompileStarted
from tcompile.observe.recorder import Recorder
from tcompile.records import dataclass

MOST = 5
"""Causes of each call's time that are listed."""

_LEAST = 0.05  # of the time of a call
_OVERHEAD = 0.2  # of it, spent on guards and calls, that is worth a word
_NEAR = 0.6  # of a limit, from which that limit is what holds a kernel back
_FAR, _FEW = 0.1, 10_000  # part of a limit, and elements, below which a kernel's start is what takes its time
_PRODUCTS = "matmul", "dot", "einsum"
_HALVES = "float32 has half the bytes of float64: about half the time"
_CURES = {
    "sort": "one sort outside of loops; `np.partition` where the smallest few are enough",
    "argsort": "one sort outside of loops; `np.argpartition` where the smallest few are enough",
    "matmul": "BLAS computes it",
    "dot": "BLAS computes it",
    "einsum": "`np.einsum(…, optimize=True)` chooses the order of products; matrix products run in BLAS",
    "inv": "`np.linalg.solve(a, b)` is faster than `np.linalg.inv(a) @ b`, and more exact",
    "unique": "one `np.unique` outside of loops; `np.bincount` for small ints",
}


@dataclass(frozen=True)
class Measured:
    """What a profile has measured: milliseconds of a call, compiled and plain, and of what belongs to no line.

    ``calls`` is the number of calls that ``laps`` hold, ``names`` are the functions of lines that ran in plain Python,
    ``recorder`` has the events of the first calls.
    """

    laps: Laps
    calls: int
    ms: float
    plain_ms: float
    unknown_ms: float
    lines: Sequence[LineTime]
    names: Mapping[tuple[str, int], str]
    recorder: Recorder


def causes(measured: Measured) -> tuple[Cause, ...]:
    """Returns why a call is not faster, the cause that takes most first; what is paid once comes last."""
    ms, recorder = measured.ms, measured.recorder
    found = [
        *_steps(measured),
        *plain_causes(measured.lines, measured.names, recorder.of(GraphBroke), recorder.of(FellBack)),
        *_compiling(measured),
    ]
    if measured.unknown_ms > _OVERHEAD * ms:
        text = "guards, and entering and leaving compiled code"
        found.append(Cause(kind="overhead", text=text, cure="larger arrays, or one compiled function around several "
                           "calls, do more for each of them", ms=measured.unknown_ms))  # fmt: skip
    if measured.plain_ms < 0.95 * ms:
        text = f"plain Python takes {html.time(measured.plain_ms)}; outside of profiles, tcompile changes over to it"
        found.append(Cause(kind="slower", text=text, ms=ms, left_ms=measured.plain_ms))
    found.sort(key=lambda cause: -cause.ms)
    each = [cause for cause in found if not cause.once and cause.ms > _LEAST * ms][:MOST]
    return (*each, *(cause for cause in found if cause.once and cause.ms > ms))


def _steps(measured: Measured) -> Iterator[Cause]:
    """Functions of libraries, and kernels."""
    laps, per_call = measured.laps, 1e-6 / max(1, measured.calls)
    scale = measured.ms / max(1e-9, sum(laps.ns) * per_call)
    calls: dict[tuple[str, str, int], tuple[float, float, Place]] = {}
    for place, ns, runs in zip(laps.places, laps.ns, laps.runs, strict=True):
        ms, often = ns * per_call * scale, runs / max(1, measured.calls)
        if place.kind == LIBRARY:
            where = place.lines[0][0] if place.lines else None
            key = (place.name, where.file, where.line) if where is not None else (place.name, "", 0)
            before = calls.get(key, (0.0, 0.0, place))
            calls[key] = (before[0] + ms, before[1] + often, place)
        elif place.kind == FUSED and place.traffic and often:
            yield _kernel(place, ms, often)
    for (name, *_), (ms, often, place) in calls.items():
        times = f", {often:.0f} times" if often >= 1.5 else ""
        cure = _CURES.get(name, "it has no kernel: nothing is fused with it")
        if name in _PRODUCTS and place.widest >= FLOAT64.itemsize:
            cure += f"; {_HALVES}"
        yield _at(place, Cause(kind="library", text=f"`{name}` runs in NumPy{times}", cure=cure, ms=ms))


def _kernel(place: Place, ms: float, often: float) -> Cause:
    """A kernel beside what memory and processor allow."""
    moving = place.traffic / bytes_per_second(place.traffic) * 1e3 * often
    computing = place.work / operations_per_second(place.elements) * 1e3 * often
    least = min(ms, max(moving, computing))
    part, by_memory = least / ms if ms else 1.0, moving >= computing
    limit = "memory" if by_memory else "the processor"
    rate = f"{place.traffic * often / ms / 1e6:.1f} GB/s" if ms else ""
    if part < _FAR and place.elements < _FEW:
        text, cure = f"a kernel over {html.count(place.elements, 'element')}: starting it takes most of the time", ""
    elif part < _NEAR:
        text, cure = f"a kernel, at {part:.0%} of the speed that {limit} allows, {rate}", ""
    elif by_memory:
        text = f"a kernel that waits for memory: {rate}, {part:.0%} of what memory delivers"
        cure = "fewer or smaller arrays"
    else:
        text = f"a kernel that keeps the processor busy, at {part:.0%} of its speed by the cost model"
        cure = ""
    if part >= _NEAR and place.widest >= FLOAT64.itemsize:
        cure = f"{cure}; {_HALVES}" if cure else _HALVES
    return _at(place, Cause(kind="kernel", text=text, cure=cure, ms=ms, left_ms=least))


def _at(place: Place, cause: Cause) -> Cause:
    """A cause at the line that has most of a place."""
    if not place.lines:
        return cause
    where = max(place.lines, key=lambda line: line[1])[0]
    more = len({(line.file, line.line) for line, _ in place.lines}) - 1
    text = f"{cause.text}; with {html.count(more, 'other line')}" if more else cause.text
    return Cause(
        kind=cause.kind, text=text, cure=cause.cure, ms=cause.ms, left_ms=cause.left_ms, file=where.file,
        line=where.line, code=where.text.strip(),
    )  # fmt: skip


def _compiling(measured: Measured) -> Iterator[Cause]:
    """What was compiled in the first call, and what was compiled again."""
    again = {event.compile_id: event for event in measured.recorder.of(RecompileStarted)}
    first = later = 0.0
    for event in measured.recorder.of(CompileFinished):
        if event.compile_id in again:
            later += event.ms
        else:
            first += event.ms
    saved = measured.plain_ms - measured.ms
    needed = html.count(int(first / saved) + 1, "call") if saved > 0 else ""
    even = f"; regained after {needed}" if needed else ""
    yield Cause(kind="compile", text=f"compiling{even}", ms=first)
    if again:
        reason, _, hint = next((text for event in again.values() for text in event.reasons), "").partition("\n")
        text = f"compiled again, {html.count(len(again), 'time')}: {reason}"
        yield Cause(kind="recompile", text=text, cure=hint.strip().removeprefix("Hint: "), ms=later)


__all__ = ["MOST", "Measured", "causes"]
