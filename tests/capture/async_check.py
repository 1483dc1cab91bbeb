"""Generated programs that others change while they run, in plain Python and compiled.

Input: a program's text and a ``Plan``.
Output: nothing, or ``Difference``.
Why: the time at which a running loop sees a change is random. So a compiled run reports the iteration at which it saw
it. A twin of the program, in which the flag changes at that iteration, must give the same values, bit for bit.

Each program runs in a worker process, which is killed if it hangs. The delay of the loop is measured, and whether
iterations before the change were repeated.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import io
import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import CompileStarted

from .async_programs import NEVER, program
from .language_check import Difference, checks

HANGS = 60.0  # seconds for one try: a compiled twin that breaks in each iteration takes long
LATER = 0.05  # seconds by which a compiled loop may see a change later than plain Python
MOST_APPENDING = 12_000_000  # iterations of a loop whose bound is a constant
ITEM = 1e-7  # seconds for each item of a list that the loop appended to, which is made after the loop
AFTERWARDS = 0.3  # seconds that a loop goes on after the change, where it never sees it
SMALL = 300  # iterations of the calls around the one that is looked at
REPLAY = 1.5  # seconds for which a twin may run in plain Python; a longer one is compiled
TRIES = 3  # a machine that is busy makes a run late
OFTEN = 60  # programs for one worker process
COMPILES = [0]  # so many in this process
INNER = {"range(1000)": 1000, "in w:": 500, "in enumerate(w):": 500}  # iterations of inner loops, by their texts
PARTS = ("loop", "place", "setter", "reader", "kind", "body")


@dataclass(frozen=True)
class Plan:
    """How a program is run: by which backend, and how often before the run that is looked at."""

    backend: str = "llvm"
    before: int = 4
    native: bool = True
    runs: int = 1

    def simpler(self) -> Iterator[Plan]:
        """Plans with less in them."""
        yield Plan()
        yield replace(self, runs=1)
        yield replace(self, backend="llvm")

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> Plan:
        """Some plan; ``stress`` adds nothing to it."""
        backend = backend or random.choice(("llvm",) * 7 + ("eager",))
        return cls(backend, random.choice((1, 2, 4, 4)), random.random() < 0.8, random.choice((1, 1, 2)))


# -- one run -----------------------------------------------------------------------------------------------------------
@dataclass
class Moment:
    """The time, the main thread's own time, which does not run while others have the processor, and compilations."""

    time: float
    own: float
    compiles: int


@dataclass
class Run:
    """One run of a program: what it returned, and when the flag was set (None: not before it ended).

    ``first`` is the first change, of several to which the program answers.
    """

    result: Any
    began: Moment
    first: Moment | None
    set: Moment | None
    ended: Moment

    @property
    def until_first(self) -> float:
        """Seconds from the call to the first change, of which ``progress`` tells."""
        return min(self.first.time - self.began.time, self.first.own - self.began.own)

    @property
    def iteration(self) -> Any:
        """The iteration at which the change was seen, or several."""
        return self.result[1]

    @property
    def before(self) -> float:
        """Seconds from the call to the change, as far as the machine was there for it."""
        return min(self.set.time - self.began.time, self.set.own - self.began.own)

    @property
    def delay(self) -> float:
        """Seconds from the change to the end, likewise."""
        return min(self.ended.time - self.set.time, self.ended.own - self.set.own)

    @property
    def compiled_before(self) -> bool:
        """Whether something was compiled before the change, which takes its time."""
        return self.set.compiles > self.began.compiles

    @property
    def compiled_after(self) -> bool:
        """The same between the change and the end."""
        return self.ended.compiles > self.set.compiles


class Program:
    """A program's module, and its function, plain or compiled."""

    def __init__(self, source: str, plan: Plan, compiled: bool) -> None:
        self.source, self.plan, self.compiled = source, plan, compiled
        self.constant = "range(LIMIT)" in source
        self.names: dict[str, Any] = {}
        self.function: Any = None
        self.limit = -1
        self.renew(SMALL)

    def renew(self, limit: int) -> None:
        """The module with this bound: a new one only where it is a constant of the code."""
        if limit == self.limit or (self.limit >= 0 and not self.constant):
            self.limit = limit
            return
        self.limit = limit
        self.names = {"__name__": "async_program"}
        exec(compile(self.source.replace("LIMIT", str(limit)), "<async>", "exec"), self.names)
        self.function = self.names["f"]
        if self.compiled:
            self.function = tcompile.compile(self.function, backend=self.plan.backend)

    def call(self) -> Any:
        """The result of a call, or what it raised to end, with what became of the arguments."""
        arguments = self.names["args"]()
        try:
            found = self.names["ending"](self.function(*arguments, self.limit), self.limit)
        except self.names["Stop"] as stop:
            found = (f"raised {stop.args[0]}", *stop.args[1:])
        return tuple(found) + arguments

    def quiet(self, limit: int, number: int = 0) -> tuple[Any, float]:
        """A call during which nothing is set, and how long it took."""
        self.renew(limit)
        self.names["put"](self.names["VALUES"][number])
        began = time.thread_time()
        return self.call(), time.thread_time() - began

    def run(self) -> Run:
        """A call during which the flag is set."""
        names = self.names
        values, put, gap = list(names["VALUES"][1:]), names["put"], names["GAP"]
        at: list[Moment] = []
        put(names["VALUES"][0])

        clock = time.pthread_getcpuclockid(threading.get_ident())

        def now() -> Moment:
            return Moment(time.perf_counter(), time.clock_gettime(clock), COMPILES[0])

        def change() -> None:
            put(values[len(at)])
            at.append(now())

        with setter(names["SETTER"], names["DELAY"], gap, len(values), change):
            began = now()
            result = self.call()
            ended = now()
        seen = names["SEEN"] - 1
        told = at[seen] if seen < len(at) and at[seen].time < ended.time else None
        return Run(result, began, at[0] if at else None, told, ended)


@contextlib.contextmanager
def setter(name: str, delay: float, gap: float, count: int, change: Callable[[], None]) -> Iterator[None]:
    """Calls ``change`` after a delay, by a signal's handler or a thread, and so often."""
    left = [count]
    ended = threading.Event()

    def step(*_: Any) -> None:
        if left[0]:
            left[0] -= 1
            change()

    def steps() -> None:
        time.sleep(delay)
        while left[0] and not ended.is_set():
            step()
            time.sleep(gap)

    if name.startswith("alarm"):
        before = signal.signal(signal.SIGALRM, step)
        signal.setitimer(signal.ITIMER_REAL, delay, gap if count > 1 else 0.0)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    thread = threading.Timer(delay, step) if name == "timer" else threading.Thread(target=steps)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# -- comparing ---------------------------------------------------------------------------------------------------------
def picture(value: Any) -> Any:
    """All that can be seen of a value."""
    if isinstance(value, np.ndarray | np.generic):
        return type(value), value.dtype, value.shape, value.tobytes()
    if isinstance(value, tuple | list):
        return type(value), [picture(item) for item in value]
    return type(value), value.hex() if isinstance(value, float) else value


def differs(source: str, plan: Plan) -> tuple[str, str] | None:
    """What is wrong with a program's compiled runs: the kind of fault, and a text."""
    tcompile.reset()
    plain, compiled = Program(source, plan, False), Program(source, plan, True)
    with tcompile.config.patch(native_calls=plan.native, rest_when_slower=False):
        for _ in range(plan.before):
            got, want = compiled.quiet(SMALL)[0], plain.quiet(SMALL)[0]
            if picture(got) != picture(want):
                return "values", f"nothing was set, and {got} instead of {want}"
        cost = seconds(compiled)
        least = max(cost / 4, min(cost, seconds(plain))) if plain.names["STOPS"] else cost
        for _ in range(plan.runs):
            found = compared(plain, compiled, cost, least)
            if found is not None:
                return found
        for number in (0, plain.names["SEEN"], 0):
            got, want = compiled.quiet(SMALL, number)[0], plain.quiet(SMALL, number)[0]
            if picture(got) != picture(want):
                return "afterwards", f"set to value {number} before the call, and {got} instead of {want}"
    return None


def seconds(compiled: Program) -> float:
    """What one iteration costs, compiled, where nothing is set."""
    limit, took = 4000, 0.0
    while True:
        compiled.quiet(limit)
        took = min(compiled.quiet(limit)[1] for _ in range(2))
        if took > 0.004 or limit > 1 << 40:
            return took / limit
        limit *= 20 if took < 0.0005 else 6


def compared(plain: Program, compiled: Program, cost: float, least: float) -> tuple[str, str] | None:
    """What is wrong with one run in which the flag is set."""
    names = plain.names
    gap = names["GAP"] * len(names["VALUES"])
    for more in (1, 4, 16):
        limit = max(SMALL, int(more * (names["DELAY"] + gap + AFTERWARDS) / least))
        if compiled.constant and ".append(" in compiled.source and limit > MOST_APPENDING:
            return None  # whole runs come before the one that is looked at: plain Python's, once a list is full
        compiled.renew(limit)
        if compiled.constant:
            for _ in range(2):
                compiled.quiet(limit)  # compiles it
        run = compiled.run()
        if run.set is not None:
            break
    else:
        return "too short", f"{run.ended.time - run.began.time:.4f} s for {limit} iterations of {cost:.2e} s"
    how, k = run.result[0], run.iteration
    base = None
    if names["STOPS"]:
        plain.renew(limit)
        base = plain.run()
        base = base if base.set is not None else None  # it ends before, and has nothing to tell
    if base is not None:
        if not run.compiled_before and run.before > base.before + LATER:
            return "setter late", f"set after {run.before:.3f} s, in plain Python {base.before:.3f} s"
        if how == 0 and run.delay > base.delay + LATER:
            return "never seen", f"ended by itself {run.delay:.3f} s after it was set"
    elif how == 0 and run.delay > LATER:
        return "never seen", f"ended by itself {run.delay:.3f} s after it was set"
    found = explained(compiled, run, limit, base)
    if found is not None:
        return found
    if base is not None:
        if run.delay > base.delay + LATER + ITEM * items(run.result):
            fault = "compiles" if run.compiled_after else "late"  # compiling may take longer than that
            return fault, f"{run.delay:.3f} s after it was set, in plain Python {base.delay:.3f} s"
        ours, theirs = (progress(one.iteration, limit, names["STEP"]) / one.until_first for one in (run, base))
        if not run.compiled_before and 2 * ours < min(theirs, 1 / cost):
            done = (f"{progress(one.iteration, limit, names['STEP']):.0f}" for one in (run, base))
            return "restarted", "{} iterations were done, in plain Python {}".format(*done)
    elif how != 0 and not run.compiled_before:
        expected = run.before / cost
        # One iteration of the outer loop, which takes long there, may be done again.
        if compiled.plan.backend == "eager":
            expected -= next((n for inner, n in INNER.items() if inner in compiled.source), 0)
        if 8 * progress(k, limit, names["STEP"]) < expected:
            return "restarted", f"seen at iteration {k} instead of about {expected:.0f}"
    return None


def items(value: Any) -> int:
    """How many items the lists in a result have."""
    return sum(len(part) if isinstance(part, list) else 0 for part in value)


def progress(k: Any, limit: int, step: int) -> float:
    """How many iterations were done when the change was seen."""
    if isinstance(k, list):
        k = k[0]
    if abs(k) >= NEVER:
        return limit
    return limit - k if step < 0 else k / step


def explained(compiled: Program, run: Run, limit: int, base: Run | None) -> tuple[str, str] | None:
    """Whether the result is what a change at the iteration gives that it tells."""
    names = compiled.names
    k = run.iteration
    ks = k if isinstance(k, list) else [k]
    twin = names["twin"]
    if not all(type(one) is int for one in ks):
        return "values", f"the iteration is {k!r}"
    if base is not None:
        plain_cost = (base.ended.own - base.began.own) / max(1.0, progress(base.iteration, limit, names["STEP"]))
    else:
        began = time.thread_time()
        called(names, twin, SMALL, [SMALL // 2, *ks[1:]])
        plain_cost = (time.thread_time() - began) / (SMALL // 2)
    long = plain_cost * progress(ks[0], limit, names["STEP"]) > REPLAY
    if long:
        twin = tcompile.compile(twin)
        for size in () if compiled.constant else (SMALL, 2 * SMALL):  # where it is quick, plain Python says what it is
            half = [size // 2, *ks[1:]]
            got, want = (called(names, function, size, half) for function in (twin, names["twin"]))
            if picture(got) != picture(want):
                return "values", f"the twin, which nothing changes: {got} instead of {want}"
    want = called(names, twin, limit, ks)
    if picture(run.result) != picture(want):
        return "values", f"no change at iteration {k} explains it: {shown(run.result)} instead of {shown(want)}"
    return None


def called(names: dict[str, Any], twin: Callable[..., Any], limit: int, ks: list[int]) -> Any:
    """What a twin returns or raises to end, with what became of the arguments."""
    arguments = names["args"]()
    try:
        found = names["ending"](twin(*arguments, limit, *ks), limit)
    except names["Stop"] as stop:
        found = (f"raised {stop.args[0]}", *stop.args[1:])
    return tuple(found) + arguments


def shown(value: Any) -> str:
    """A value as a short text."""
    text = " ".join(repr(value).split())
    return text if len(text) < 300 else f"{text[:200]} … {text[-100:]}"


# -- worker processes --------------------------------------------------------------------------------------------------
def count(event: Any) -> None:
    """Counts what is compiled."""
    COMPILES[0] += isinstance(event, CompileStarted)


def work(pipe: Any) -> None:
    """What a worker does: it compares program after program."""
    sys.unraisablehook = lambda _: None
    gc.freeze()
    bus.subscribe(count, calls=False)
    while True:
        try:
            source, plan = pipe.recv()
        except EOFError:
            return
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                found = differs(source, plan)
            except BaseException as error:
                found = "raised", f"{type(error).__name__}: {error}"
        pipe.send(found)


class Worker:
    """A process that runs programs; a new one where it hung, died, or has run many."""

    def __init__(self) -> None:
        self.process: Any = None
        self.pipe: Any = None
        self.done = 0

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.done = 0

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None

    def differs(self, source: str, plan: Plan) -> tuple[str, str] | None:
        """``differs`` in the process."""
        if self.process is None or self.done >= OFTEN:
            self.end()
            self.start()
        first = self.done == 0
        self.done += 1
        try:
            self.pipe.send((source, plan))
            if self.pipe.poll(HANGS + 10 * first):
                return self.pipe.recv()
            self.end()
            return "hung", f"for more than {HANGS:.0f} s"
        except (EOFError, OSError):
            self.process.join()
            ended = self.process.exitcode
            self.end()
            return "died", f"the process ended with {ended}"


WORKER = Worker()


def compare(source: str, plan: Plan) -> bool:
    """Runs a program both ways. Raises Difference where it shows one in each of some tries."""
    for _ in range(TRIES):
        found = WORKER.differs(source, plan)
        if found is None:
            return True
        if found[0] in ("values", "afterwards", "raised", "died"):  # nothing that a busy machine would do
            break
    title = source.partition("\n")[0].removeprefix("# ")
    raise Difference(f"{found[0]}: {found[1]} [{title}]")


check, difference = checks(program, Plan.random, compare)


def shrink(source: str, fails: Callable[[str], bool], seconds: float = 60.0) -> str:
    """The program itself: its parts are few, and its twin has the same."""
    return source


# -- differences by kind -----------------------------------------------------------------------------------------------
def groups(differences: list[dict[str, Any]]) -> Iterator[str]:
    """Lines that tell how many of the differences there are of each kind of fault, loop, place, setter, and so on."""
    rows = [parts(one["program"]) | {"fault": one["difference"].partition(":")[0]} for one in differences]
    for name in PARTS:
        counts = collections.Counter((row["fault"], row.get(name, "")) for row in rows)
        for (fault, value), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
            yield f"{fault}; {name}: {value}: {count}"


def parts(source: str) -> dict[str, str]:
    """What a program is made of, by its first line."""
    return dict(part.split(": ") for part in source.partition("\n")[0].removeprefix("# ").split("; ") if ": " in part)


__all__ = ["Difference", "Plan", "check", "compare", "difference", "differs", "groups", "parts", "program", "shrink"]
