"""Generated programs run plainly and compiled, and their reduction to a smaller failing program.

Input: a program's text and a ``Plan`` (arguments, backend, settings).
Output: nothing, or ``Difference``. ``shrink`` takes a text and a test that fails on it, and returns a shorter failing
text.
Why: a generated program is long. ``shrink`` knows only Python's syntax tree, so it serves any generator.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import gc
import inspect
import io
import itertools
import re
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from differential import STANCES, Picture, Run, assert_same_picture

import tcompile

from .language_programs import NAME, arguments, namespace, program, state
from .language_world import restore

SECONDS = 5  # a program that takes longer is not looked at
LONGEST = 30  # compiling it included


class Difference(AssertionError):
    """The two runs of a program can be told apart."""


class TooLong(BaseException):
    """A program ran for too long."""


@dataclass(frozen=True)
class Plan:
    """How a program is run."""

    seed: int
    backend: str = "eager"
    dynamic: bool | None = None
    stance: str = "default"
    settings: tuple[tuple[str, Any], ...] = ()

    def simpler(self) -> Iterator[Plan]:
        """Plans with less in them, the plainest first."""
        yield Plan(self.seed)
        yield Plan(self.seed, settings=(("stress_capture", True),))
        yield replace(self, settings=())
        for name in ("backend", "dynamic", "stance"):
            yield replace(self, **{name: getattr(Plan(self.seed), name)})

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> Plan:
        """A plan: mostly the eager backend and default settings."""
        backend = backend or random.choice(("eager",) * 8 + ("aot_eager", "llvm"))
        dynamic = random.choice((None,) * 8 + (True, False))
        stance = random.choice(("default",) * 16 + STANCES[1:])
        settings: list[tuple[str, Any]] = []
        if random.random() < 0.6:
            settings.append(("stress_capture", True))
        if stress or random.random() < 0.25:
            settings.append(("stress_breaks", random.randint(1, 20)))
        return cls(random.randrange(1 << 30), backend, dynamic, stance, tuple(settings))


def _consumed(function: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled function; one that runs to its end what a generator function or a coroutine gives."""
    if inspect.iscoroutinefunction(function):
        return lambda *args, **more: _awaited(compiled(*args, **more))
    if inspect.isgeneratorfunction(function):
        return lambda *args, **more: list(itertools.islice(compiled(*args, **more), 20))
    return compiled


def _awaited(coroutine: Any) -> Any:
    try:
        for _ in range(1000):
            coroutine.send(None)
    except StopIteration as stopped:
        return stopped.value
    raise AssertionError("it never ends")


@dataclass
class Call:
    """One call of a program: what it did, what could be reached afterwards, and what it cost."""

    seed: int  # of its arguments
    run: Run
    after: Picture
    before: Picture  # the program's globals
    kept: list[Any]  # what the last picture shows again
    compiles: int = 0  # so far
    replays: int = 0  # so far


def calls(source: str, plan: Plan, compiled: bool) -> list[Call]:
    """Runs a program's ``f`` several times."""
    restore()
    space = namespace(source)
    function = made = space["f"]
    if compiled:
        made = tcompile.compile(function, backend=plan.backend, dynamic=plan.dynamic)
    run = _consumed(function, made)
    random = Random(plan.seed)
    a, b = random.randrange(1 << 30), random.randrange(1 << 30)
    done: list[Call] = []
    for seed in random.choice(((a, a, b), (a, b, a), (a, b, b, a), (a, a))):
        args, more, names = arguments(seed)
        space.update(names)
        before = Picture(state(space), consume=False)
        got = Run(lambda args=args, more=more: run(*args, **more), ())
        gc.collect(1)  # what the call left in cycles ends now
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():  # generators are run
            warnings.simplefilter("ignore")
            picture = Picture([got.value, got.error, args, more, state(space)])
        done.append(Call(seed, got, picture, before, [args, more]))
        if hasattr(made, "cache"):
            entries = made.cache.entries
            done[-1].compiles, done[-1].replays = made.cache.compiles, sum(entry.replays for entry in entries)
    done[-1].kept = [done[-1].kept, [one.run.value for one in done], state(space)]
    if hasattr(made, "cache"):  # tests of rewritten bytecode have compilers of their own
        for broke in made.breaks:
            assert broke.reason.id != "internal-error", broke.detail
            assert broke.where.line, broke.full_text()
        assert_compiled_once(done, made, plan, source)
    return done


def assert_compiled_once(done: list[Call], made: Any, plan: Plan, source: str) -> None:
    """Raises AssertionError where a call like the one before was compiled again, or one was replayed for nothing."""
    if plan.stance != "default" or dict(plan.settings).get("stress_breaks") or made.breaks:
        return
    for last, call in itertools.pairwise(done):
        if call.seed == last.seed and _alike(call.before, last.before):
            assert call.compiles == last.compiles, f"compiled again: {made.recompiles}"
    replays = 0
    for call in done:
        if plan.backend == "eager" and call.run.error is None and not call.run.warned and not _CATCHES.search(source):
            assert call.replays == replays, "replayed for nothing"
        replays = call.replays


_CATCHES = re.compile(r"\b(try|with|suppress)\b")


def _alike(a: Picture, b: Picture) -> bool:
    with contextlib.suppress(AssertionError):
        assert_same_picture(a, b)
        return True
    return False


def _text(text: str) -> str:
    """A text without the addresses of objects."""
    return re.sub("0x[0-9a-f]+", "0x…", text)


def said(error: BaseException | None) -> str:
    """What an error says; what it holds may be in no state to be shown."""
    try:
        return _text(repr(error))
    except Exception as failure:
        return f"{type(error).__name__}, which cannot be shown: {failure}"


def raised_at(error: BaseException | None) -> list[tuple[str, int | None]]:
    """Functions and lines of the program through which an error went."""
    if error is None:
        return []
    return [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TooLong in the main thread's code after a while: a later one where the process had no processor."""
    began, more = time.process_time(), iter(range(20))

    def stop(*_: Any) -> None:
        if time.process_time() - began > 0.2 * seconds or next(more, None) is None:
            raise TooLong
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def compare(source: str, plan: Plan) -> bool:
    """Runs a program both ways; False where it takes too long to be looked at. Raises Difference."""
    tcompile.reset()
    sys.unraisablehook = lambda _: None  # generators that yield again while they are closed
    gc.disable()  # it comes at other moments in the two runs, and what dies may write to a log
    try:
        with time_limit(SECONDS):
            wanted = calls(source, plan, compiled=False)
    except TooLong:
        gc.enable()
        return False
    try:
        with time_limit(LONGEST), tcompile.set_stance(plan.stance), tcompile.config.patch(**dict(plan.settings)):
            found = calls(source, plan, compiled=True)
        for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
            got, want, about = ours.run, theirs.run, f"call {number}: "
            if want.error is None and got.error is not None:
                raise AssertionError(f"{about}raised {said(got.error)}") from got.error
            assert type(got.error) is type(want.error), f"{about}{said(got.error)} instead of {said(want.error)}"
            assert said(got.error) == said(want.error), f"{about}{said(got.error)} instead of {said(want.error)}"
            printed = _text(got.printed), _text(want.printed)
            assert printed[0] == printed[1], f"{about}printed {printed[0]!r} instead of {printed[1]!r}"
            warned = [one for one in got.warned if not one[1].startswith("tcompile: ")]  # a limit was reached
            assert warned == want.warned, f"{about}warned {warned} instead of {want.warned}"
            where = raised_at(got.error), raised_at(want.error)
            # 3.11 runs pairs of instructions as one in warm code, and then names the first one's line.
            warm = sys.version_info < (3, 12) and isinstance(want.error, UnboundLocalError)
            deep = isinstance(want.error, RecursionError)  # our frames count, too
            assert where[0] == where[1] or warm or deep, f"{about}raised at {where[0]} instead of {where[1]}"
            assert_same_picture(ours.after, theirs.after, about)
        assert_same_picture(Picture(ours.kept, False), Picture(theirs.kept, False), "in the end: ")
    except TooLong as error:
        raise Difference(f"took more than {LONGEST} seconds") from error
    except (Exception, RecursionError) as error:
        raise Difference(f"{type(error).__name__}: {error}"[:600]) from error
    finally:
        gc.enable()
    return True


def checks(
    program: Callable[[Random], str], plan_of: Callable[..., Any], compare: Callable[[str, Any], bool]
) -> tuple[Callable[..., bool], Callable[[str, Any], str | None]]:
    """``check(seed, backend, stress)`` and ``difference(source, plan)`` for one kind of generated programs."""

    def check(seed: int, backend: str | None = None, stress: bool = False) -> bool:
        """One random program under a random plan. Raises Difference with the program."""
        random = Random(seed)
        source = program(random)
        plan = plan_of(random, backend, stress)
        try:
            return compare(source, plan)
        except Difference as error:
            error.add_note(f"{plan}\n{source}")
            raise

    def difference(source: str, plan: Any) -> str | None:
        """What tells the runs of a program apart; None where nothing does, and where the text is no program."""
        try:
            compare(source, plan)
        except Difference as error:
            return str(error)
        except Exception:  # the module itself fails, or has no f
            pass
        return None

    return check, difference


check, difference = checks(program, Plan.random, compare)


# -- shrinking --------------------------------------------------------------------------------------------------------
def shrink(source: str, fails: Callable[[str], bool], seconds: float = 60.0) -> str:
    """A shorter program on which ``fails`` is still true: statements and parts of expressions go one after another."""
    end = time.monotonic() + seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return _shrunk(source, fails, end)


def _shrunk(source: str, fails: Callable[[str], bool], end: float) -> str:
    tree = ast.parse(source)
    tried = {ast.unparse(tree)}
    progress = True
    while progress:
        progress = False
        position = 0
        while time.monotonic() < end:
            smaller = _edited(tree, position)
            if smaller is None:
                break
            position += 1
            try:
                text = ast.unparse(ast.fix_missing_locations(smaller)) + "\n"
                if text in tried or len(text) > len(ast.unparse(tree)) + 4:
                    continue
                tried.add(text)
                compile(text, NAME, "exec")
            except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError):
                continue
            if fails(text):
                tree, progress = ast.parse(text), True
                position = max(0, position - 1)
    return ast.unparse(tree) + "\n"


def _edited(tree: ast.Module, number: int) -> ast.Module | None:
    """A copy of ``tree`` with its edit of that number made; None after the last."""
    made = copy.deepcopy(tree)
    edit = next(itertools.islice(_edits(made), number, None), None)
    if edit is None:
        return None
    edit()
    return made


_LISTS = ("args", "elts", "values", "keywords", "keys", "comparators")
_OPTIONAL = (
    "handlers", "cases", "orelse", "finalbody", "decorator_list", "names", "items", "defaults", "kw_defaults",
    "kwonlyargs", "targets",
)  # fmt: skip


def _edits(tree: ast.AST) -> Iterator[Callable[[], None]]:
    """Ways to make a tree smaller, the large ones first."""
    statements: list[tuple[list[ast.stmt], int]] = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                statements += [(block, i) for i in range(len(block))]
    for block, i in statements:
        yield lambda b=block, i=i: _cut(b, i, [])
    for block, i in statements:
        inner: list[list[ast.stmt]] = [
            part for name in ("body", "orelse", "finalbody")
            if isinstance(part := getattr(block[i], name, None), list) and part
        ]  # fmt: skip
        inner += [handler.body for handler in getattr(block[i], "handlers", ())]
        inner += [case.body for case in getattr(block[i], "cases", ())]
        for part in inner:
            yield lambda b=block, i=i, p=part: _cut(b, i, p)
    for node in ast.walk(tree):
        for name in _OPTIONAL:
            parts = getattr(node, name, None)
            if isinstance(parts, list) and parts:
                for i in range(len(parts)):
                    yield lambda p=parts, i=i: p.__delitem__(i)
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(getattr(value, "ctx", ast.Load()), ast.Store | ast.Del):
                for smaller in _smaller(value):
                    yield lambda n=node, f=name, s=smaller: setattr(n, f, s)
            elif isinstance(value, list) and name not in ("targets", "ops"):
                for i, item in enumerate(value):
                    if isinstance(item, ast.expr | ast.keyword) and name in _LISTS:
                        yield lambda v=value, i=i: v.__delitem__(i)
                    if isinstance(item, ast.expr):
                        for smaller in _smaller(item):
                            yield lambda v=value, i=i, s=smaller: v.__setitem__(i, s)


def _cut(block: list[ast.stmt], i: int, new: list[ast.stmt]) -> None:
    block[i : i + 1] = new
    if not block:
        block.append(ast.Pass())


def _smaller(value: ast.expr) -> Iterator[ast.expr]:
    """Expressions that may stand in place of one."""
    if isinstance(value, ast.Constant | ast.Name):
        if isinstance(value, ast.Name) or value.value not in (None, 0, 1):
            yield ast.Constant(1)
        return
    yield ast.Constant(1)
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.expr):
            yield child
    yield ast.Name("x", ast.Load())


__all__ = ["Difference", "Plan", "check", "compare", "difference", "program", "shrink"]
