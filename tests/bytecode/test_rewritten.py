"""Hosts behave as the code they are made of, whatever their resume points do."""

import contextlib
import dis
import io
import sys
import traceback
import types

import pytest

from bytecode.passing import MODES, Passing
from bytecode.programs import PROGRAMS, coroutines
from tcompile.bytecode.analysis import analyse
from tcompile.bytecode.decode import NotResumable
from tcompile.bytecode.rewritten import KEEP, UNBOUND, build


def outcome(function):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            result = repr(function())
        except Exception as error:
            frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.name != "region"]
            result = type(error), str(error), frames[1:]
    return result, out.getvalue()


@pytest.mark.parametrize("every", [False, True], ids=["default", "every"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function, mode, every):
    passing = Passing(mode, every)
    resumable = passing(function)
    want = outcome(function)
    for _ in range(3):
        assert outcome(resumable) == want
    assert passing.passes
    for rewritten in passing.rewrittens:  # closed again, nothing is called
        for resume_point in rewritten.resume_points.values():
            resume_point.clear()
    passed = passing.passes
    assert outcome(resumable) == want
    assert passing.passes == passed


def test_extended_arguments():
    """Long jumps, many locals, many constants, many cells: everything needs more than one byte."""
    lines = ["def f(a):", f"  def g(): return {', '.join(f'c{i}' for i in range(270))}"]
    lines += [f"  c{i} = {i} + a" for i in range(270)]
    lines += [f"  v{i} = a + {i + 1000}" for i in range(270)]
    lines += ["  for k in range(3):", "    try:"]
    lines += [f"      v{i} += len(str(v{i - 1 if i else 0} + c{i}))" for i in range(270)]
    lines += ["      if k == 2: v0 = v0 // 0", "      del v7", "      v7 = 1", "      continue"]
    lines += ["    except ZeroDivisionError:", "      v1 = 5"]
    lines += [f"  return [{', '.join(f'v{i}' for i in range(270))}], sum(g())"]
    space = {}
    exec("\n".join(lines), space)
    function = space["f"]
    want = function(1)
    for every, mode in ((False, "mixed"), (True, "same")):
        assert Passing(mode, every)(function)(1) == want


def test_loops_that_are_too_long():
    """CPython itself keeps the length of such a loop in 16 bits."""
    space = {}
    lines = [f"    a = (a + {i}) % (i + 7)" for i in range(5000)]
    exec("\n".join(["def f(a):", "  for i in range(2):", *lines, "  return a"]), space)
    with pytest.raises(NotResumable, match="too long"):
        build(analyse(space["f"].__code__), lambda offset: None, every=True)


def single(function, answer, **options):
    """The function with a region at every resume point that asks ``answer(host, point, values)``."""
    analysis = analyse(function.__code__)

    def call(offset):
        return lambda *values: answer(rewritten, analysis.points[offset], values)

    rewritten = build(analysis, call, **options)
    for resume_point in rewritten.resume_points.values():
        resume_point.append(True)
    made = types.FunctionType(
        rewritten.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    return made, rewritten


def test_returned():
    def function(x):
        for i in range(10):
            with contextlib.nullcontext():
                x += i
        return x

    def answer(rewritten, point, values):
        if point.depth and seen and seen.pop() is None:
            return (None, *rewritten.returned, ("left",))
        return None

    seen = []
    resumable, _ = single(function, answer)
    assert resumable(1) == function(1)
    seen = [None]
    assert resumable(1) == "left"


def test_returned_from_generators():
    def function():
        try:
            yield 1
            yield 2
        finally:
            pass

    def answer(rewritten, point, values):
        if stop:
            return (None, *rewritten.returned, ("done",))
        return None

    stop = []
    resumable, _ = single(function, answer)
    assert list(resumable()) == [1, 2]
    generator = resumable()
    assert next(generator) == 1
    stop.append(1)
    with pytest.raises(StopIteration) as stopped:
        next(generator)
    assert stopped.value.value == "done"
    with pytest.raises(StopIteration):
        next(generator)


def test_elsewhere():
    """A region may go on anywhere, with other locals and another stack."""

    def function(a):
        b = abs(a)
        c = abs(b + 1)
        d = [c, b, abs(c)]
        return a, b, c, d

    analysis = analyse(function.__code__)
    calls = [at for at in sorted(analysis.points) if analysis.points[at].slots.count(False)]
    last = max(calls)  # the call of abs inside the list

    def answer(rewritten, point, values):
        if point.offset != analysis.start:
            return None
        target = analysis.points[last]
        assert target.live == ("a", "b", "c")
        given = {"a": UNBOUND, "b": "B", "c": "C"}
        assert "a" not in target.maybe
        given["a"] = "A"
        stack = ["first", "second", max, [3, 4]][: sum(target.slots)]
        return (None, *rewritten.route(last), (*(given[name] for name in target.live), *stack))

    resumable, _ = single(function, answer, every=True)
    assert resumable(1) == ("A", "B", "C", ["first", "second", 4])


def test_unbound_and_extras():
    def function(a, b):
        print("before")
        if a:
            c = b
        print("here")
        a = b = None
        try:
            return c
        except UnboundLocalError:
            return "unbound"

    def answer(rewritten, point, values):
        if "c" in point.live:
            record.append(dict(zip(point.live, values, strict=False)))
        if change and point.line == function.__code__.co_firstlineno + 4 and not done:
            done.append(1)
            extras = {"a": KEEP, "b": UNBOUND, "c": KEEP}
            given = {**record[-1], "c": change[0]}
            route = rewritten.route(point.offset)
            return (tuple(extras.values()), *route, (*(given[n] for n in point.live), *values[len(point.live) :]))
        return None

    record, change, done = [], [], []
    resumable, rewritten = single(function, answer)
    with contextlib.redirect_stdout(io.StringIO()):
        assert resumable(1, 2) == 2
        assert resumable(0, 2) == "unbound"
        assert any(found.get("c") is UNBOUND for found in record)
        change = [UNBOUND]
        assert resumable(1, 2) == "unbound"
        change = ["changed"]
        done.clear()
        assert resumable(0, 2) == "changed"
    assert rewritten.analysis.extras == ("a", "b", "c")


def test_extras_reach_locals_that_are_not_live():
    def look(value):
        return dict(sys._getframe(1).f_locals)

    def plain(a, look):
        b = 1
        b = [b]
        return look(abs(a))

    def answer(rewritten, point, values):
        if not point.slots or values[0] is not look:
            return None
        assert rewritten.analysis.extras == ("a", "look", "b")
        return (("A", UNBOUND, KEEP), *rewritten.route(point.offset), values)

    resumable, _ = single(plain, answer, every=True)
    assert resumable(-1, look) == {"a": "A", "b": [1]}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # generators closed by the collector
@pytest.mark.parametrize("function", [f for f in PROGRAMS if f is not coroutines], ids=lambda f: f.__name__)
def test_interrupts(function):
    """An interrupt in any region is handled as if it came at its point."""

    class Interrupt(Exception):
        pass

    passing = Passing("on", True)
    passing.seen.clear()
    resumable = passing(function)
    outcome(resumable)
    total = passing.passes
    for at in range(0, total, max(1, total // 40)):
        passing.passes = 0

        def before(point, values, at=at):
            if passing.passes == at + 1:
                raise Interrupt

        passing.before = before
        outcome(resumable)
        assert sys.exc_info() == (None, None, None)
        passing.before = None


def test_interrupt_is_handled_where_it_comes():
    def function(log):
        for i in range(2):
            try:
                log.append(i + 1)
                log.append(len(log))
            except KeyboardInterrupt:
                log.append(("caught", i))
            finally:
                log.append("finally")
        return log

    lines = function.__code__.co_firstlineno
    resumable, rewritten = single(function, lambda rewritten, point, values: None, every=True)
    for target in sorted(rewritten.resume_points):
        analysis = rewritten.analysis

        def answer(rewritten, point, values, target=target):
            if point.offset == target and not done:
                done.append(1)
                raise KeyboardInterrupt
            return None

        done = []
        resumable, _ = single(function, answer, every=True)
        point = analysis.points[target]
        try:
            log = resumable([])
        except KeyboardInterrupt as error:
            assert done
            trace = [f for f in traceback.extract_tb(error.__traceback__) if f.name == "function"]
            assert trace[0].lineno == point.line
            assert not point.handlers or analysis.points[point.handlers[0]].line != lines + 5
        else:
            if done:
                assert any(type(entry) is tuple for entry in log), point
                assert log.count("finally") == 2


def test_locals_show_nothing_new():
    def function(a, *rest, **more):
        b = [x + 1 for x in rest]
        return print(a + 1, sorted(locals()), dir(), file=io.StringIO()) or sorted(locals()), len(b)

    for mode in MODES:
        assert Passing(mode, True)(function)(1, 2, z=3) == function(1, 2, z=3)


class Counted:
    alive = 0

    def __init__(self):
        Counted.alive += 1

    def __del__(self):
        Counted.alive -= 1

    def __add__(self, other):
        return Counted()


@pytest.mark.parametrize("every", [False, True], ids=["default", "every"])
@pytest.mark.parametrize("mode", MODES)
def test_nothing_leaks(mode, every):
    def function(x, n):
        kept = [x]
        for i in range(n):
            y = x + i
            if i % 2:
                z = y + x
            try:
                kept = [z + 1, len([k for k in kept if k])]
                del z
            except UnboundLocalError:
                continue
        return len(kept), sum(map(lambda: y, ())) if n < 0 else 0

    value = Counted()
    resumable = Passing(mode, every)(function)
    resumable(value, 3)
    references, alive = sys.getrefcount(value), Counted.alive
    for _ in range(20):
        resumable(value, 7)
    assert (sys.getrefcount(value), Counted.alive) == (references, alive)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_closed_resume_points_are_not_traced(function):
    """A debugger or a coverage tool sees the same lines."""

    def traced(run):
        events = []
        name = function.__code__.co_filename

        def trace(frame, event, arg):
            if frame.f_code.co_filename != name:
                return None
            events.append((frame.f_code.co_name, event, frame.f_lineno))
            return trace

        old = sys.gettrace()
        sys.settrace(trace)
        try:
            outcome(run)
        finally:
            sys.settrace(old)
        return events

    if function.__name__ == "recursion_error":
        pytest.skip("counts frames")
    passing = Passing("on", False)
    resumable = passing(function)
    for rewritten in passing.rewrittens:
        for resume_point in rewritten.resume_points.values():
            resume_point.clear()
    assert traced(resumable) == traced(function)


def test_ways_through_a_function():
    def function(a, b):
        c = abs(a)
        for i in range(b):
            c = c.bit_length(i, a)
        return c

    analysis = analyse(function.__code__)
    rewritten = build(analysis, lambda offset: None)
    assert analysis.cells == () and analysis.start in rewritten.resume_points
    opcodes = {i.offset: i.opname for i in dis.get_instructions(function)}
    start = {name: at for at, name in sorted(opcodes.items(), reverse=True)}
    loop = start["FOR_ITER"]
    body, after = analysis.successors(loop)
    assert opcodes[body] == "STORE_FAST" and opcodes[after].startswith("LOAD_FAST")
    assert set(rewritten.following(loop)) == {*rewritten.following(body), after}
    call = max(at for at, name in opcodes.items() if name == "CALL")
    assert call not in rewritten.targets
    with pytest.raises(KeyError):
        rewritten.route(call)
    assert analysis.points[after].live == ("c",)
    assert analysis.points[body].live == ("a", "c")
    assert not analysis.points[after].maybe


def test_resume_points_wait_for_what_a_comprehension_puts_back():
    def function(xs):
        x = 1
        ys = [x for x in xs if x]
        return len(ys) + x

    rewritten = build(analyse(function.__code__), lambda offset: None)
    assert any(
        rewritten.analysis.points[at].slots == () and "ys" in rewritten.analysis.points[at].live
        for at in rewritten.resume_points
    )
    resumable, _ = single(function, lambda rewritten, point, values: None)
    assert resumable([1, 2]) == 3


def test_frame_lookers_keep_all_locals():
    def function(numexpr, a, b):
        unused = a  # noqa: F841
        return numexpr.evaluate("a + b + unused")

    assert all(p.live == ("numexpr", "a", "b", "unused") for p in analyse(function.__code__).points.values())


def test_variables_that_are_named_like_frame_lookers():
    """What a function gives a value itself is an array, or a list; what others give it may look at the frame."""

    def own(a):
        unused = a  # noqa: F841
        stack, query = [a], a + 1
        return len(stack), query

    def given(query, a):
        unused = a  # noqa: F841
        return query(a)

    def free(a):
        unused = a  # noqa: F841
        return dir(a)

    dir = sorted
    lives = [{point.live for point in analyse(f.__code__).points.values()} for f in (own, given, free)]
    assert all("unused" not in live for live in lives[0])
    assert all("unused" in live for one in lives[1:] for live in one)


def test_the_first_argument_is_alive_for_super():
    class A(list):
        def method(self, x):
            self, old = x, self
            return super().__len__(), len(old)

    analysis = analyse(A.method.__code__)
    assert all("self" in point.live for point in analysis.points.values())


def test_unknown_bytecode(monkeypatch):
    monkeypatch.setattr("tcompile.bytecode.dialect.NEWEST", (3, 10))
    with pytest.raises(NotResumable, match="not known"):
        analyse(test_unknown_bytecode.__code__)


def test_exceptions_handled():
    """`handling` counts the exceptions in hand; no resume point where a raise would lose one."""

    def function(a):
        try:
            len(a)
        except TypeError:
            a = str(a)
            try:
                int(a)
            except ValueError as error:
                print(error)
            len(a)
        return a

    analysis = analyse(function.__code__)
    rewritten = build(analysis, lambda offset: None, every=True)
    assert max(analysis.points[at].handling for at in rewritten.resume_points) == 2
    for at in analysis.points.keys() - rewritten.resume_points.keys():
        assert analysis.points[at].handling
