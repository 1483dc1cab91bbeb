"""set_stance as a statement, a block and a decorator: what holds where, and until when."""

import asyncio
import code as code_module
import contextlib
import copy
import functools
import inspect
import io
import itertools
import pickle
import sys
import threading

import pytest

from tcompile import register_backend
from tcompile import stance as stance_module
from tcompile.errors import InvalidArgument, InvalidType, StanceError
from tcompile.observe import bus
from tcompile.observe.events import StanceChanged
from tcompile.observe.source_location import UserLine
from tcompile.stance import STANCES, Stance, current, refusal, set_stance


@pytest.fixture(autouse=True)
def _default():
    set_stance("default")
    yield
    block = stance_module.blocks.get()
    assert block is None or block.owner is None, "a test left a block open"
    set_stance("default")


def name():
    return current().name


def elsewhere(function=name):
    """The result of ``function`` in a new thread."""
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


# -- the three uses


@pytest.mark.parametrize("each", STANCES)
def test_statement_holds_for_the_process_until_the_next(each):
    set_stance(each)
    assert name() == each and elsewhere() == each
    set_stance("default")
    assert name() == "default" and elsewhere() == "default"


@pytest.mark.parametrize("each", STANCES)
def test_block_holds_for_this_thread_only(each):
    with set_stance(each):
        assert name() == each
        assert elsewhere() == "default"
    assert name() == "default"


def test_nested_blocks_are_restored_on_exceptions():
    with set_stance("force_eager"):
        with pytest.raises(ZeroDivisionError), set_stance("default"):
            assert name() == "default"
            with set_stance("fail_on_recompile"):
                assert name() == "fail_on_recompile"
                raise ZeroDivisionError
        assert name() == "force_eager"
    assert name() == "default"


def test_decorator_sets_per_call_and_keeps_every_argument():
    @set_stance("default", skip_guard_eval_unsafe=True, force_backend="eager")
    def f(a, *rest, b=2, **more):
        """Doc."""
        return current(), a, rest, b, more

    assert name() == "default" and current().force_backend is None
    expected = Stance("default", "eager", True)
    assert f(1, 3, b=4, c=5) == (expected, 1, (3,), 4, {"c": 5})
    assert f.__tcompile_stance__ == expected and f.__doc__ == "Doc." and f.__name__ == "f"
    assert str(inspect.signature(f)) == "(a, *rest, b=2, **more)"
    assert current() == Stance()


def test_decorator_on_methods():
    class C:
        @set_stance("force_eager")
        def method(self):
            return self, name()

        @classmethod
        @set_stance("force_eager")
        def under_class(cls):
            return cls, name()

        @set_stance("force_eager")
        @classmethod
        def over_class(cls):
            return cls, name()

        @set_stance("force_eager")
        @staticmethod
        def static():
            return name()

        @property
        @set_stance("force_eager")
        def prop(self):
            return name()

    c = C()
    assert c.method() == (c, "force_eager")
    assert C.under_class() == C.over_class() == (C, "force_eager")
    assert c.static() == c.prop == "force_eager"


def test_decorator_is_reentrant_reusable_and_restores_on_exceptions():
    eager = set_stance("force_eager")
    set_stance("default")

    @eager
    def f(depth):
        assert name() == "force_eager"
        if depth:
            with set_stance("default"):
                assert f(depth - 1) is None
                assert name() == "default"
            with eager, eager:
                assert name() == "force_eager"
            assert name() == "force_eager"
        else:
            innermost()

    innermost = lambda: None
    f(3)
    assert name() == "default"
    innermost = lambda: {}["missing"]
    with pytest.raises(KeyError):
        f(2)
    assert name() == "default"


def test_one_object_in_two_threads_at_once():
    shared = set_stance("force_eager")
    set_stance("default")
    inside, leave = threading.Event(), threading.Event()

    def other():
        with shared:
            inside.set()
            leave.wait()
            return name()

    result = []
    thread = threading.Thread(target=lambda: result.append((other(), name())))
    thread.start()
    inside.wait()
    assert name() == "default"
    with shared:
        leave.set()
        thread.join()
        assert name() == "force_eager"
    assert result == [("force_eager", "default")] and name() == "default"


def test_decorating_other_callables_and_refusing_classes():
    wrapped = set_stance("force_eager")(functools.partial(name))
    assert wrapped() == "force_eager"
    assert set_stance("force_eager")(len)([1]) == 1
    for wrong in (int, 3, property(name)):
        with pytest.raises(InvalidType, match="decorates functions"):
            set_stance("force_eager")(wrong)
    assert name() == "default"


# -- coroutines and generators


def test_decorated_coroutine_holds_over_awaits_and_not_in_other_tasks():
    @set_stance("force_eager")
    async def f():
        first = name()
        await asyncio.sleep(0)
        return first, name()

    async def other():
        seen = []
        for _ in range(4):
            seen.append(name())
            await asyncio.sleep(0)
        return seen

    async def main():
        return await asyncio.gather(f(), other())

    assert inspect.iscoroutinefunction(f)
    assert asyncio.run(main()) == [("force_eager", "force_eager"), ["default"] * 4]


def test_decorated_generator_gives_the_stance_back_at_each_yield():
    log = []

    @set_stance("force_eager")
    def f(n):
        try:
            for i in range(n):
                try:
                    log.append((name(), (yield i)))
                except KeyError:
                    log.append((name(), "caught"))
        finally:
            log.append((name(), "closed"))
        return "done"

    def drive():
        return (yield from f(3))

    assert inspect.isgeneratorfunction(f)
    g = drive()
    assert next(g) == 0 and name() == "default"
    assert g.send("a") == 1 and name() == "default"
    assert g.throw(KeyError()) == 2 and name() == "default"
    with pytest.raises(StopIteration) as stop:
        g.send("b")
    assert stop.value.value == "done"
    assert log == [("force_eager", x) for x in ("a", "caught", "b", "closed")]
    log.clear()
    g = f(3)
    next(g)
    g.close()
    assert log == [("force_eager", "closed")] and name() == "default"


def test_decorated_async_generator():
    log = []

    @set_stance("force_eager")
    async def f(n):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                try:
                    log.append((name(), (yield i)))
                except KeyError:
                    log.append((name(), "caught"))
        finally:
            log.append((name(), "closed"))

    async def main():
        g = f(3)
        assert await anext(g) == 0 and name() == "default"
        assert await g.asend("a") == 1 and name() == "default"
        assert await g.athrow(KeyError()) == 2
        assert name() == "default"
        await g.aclose()
        assert name() == "default"
        return [i async for i in f(2)]

    assert inspect.isasyncgenfunction(f)
    assert asyncio.run(main()) == [0, 1]
    assert [text for _, text in log] == ["a", "caught", "closed", None, None, "closed"]
    assert {seen for seen, _ in log} == {"force_eager"}


# -- statements inside blocks


def test_statement_inside_a_block_acts_at_once_and_the_block_restores_its_thread():
    with set_stance("force_eager"):
        set_stance("fail_on_recompile")
        assert name() == "fail_on_recompile" and elsewhere() == "fail_on_recompile"
    assert name() == "default"
    assert elsewhere() == "fail_on_recompile"  # the statement was for the process
    with set_stance("eager_on_recompile"):
        assert name() == "eager_on_recompile"
    assert name() == "default"
    elsewhere(lambda: set_stance("force_eager"))  # a later statement anywhere is followed again
    assert name() == "force_eager"


def test_statement_inside_nested_blocks():
    with set_stance("force_eager"):
        with set_stance("eager_on_recompile"):
            set_stance("fail_on_recompile")
            assert name() == "fail_on_recompile"
        assert name() == "force_eager"
    assert name() == "default" and elsewhere() == "fail_on_recompile"
    set_stance("default")
    assert name() == elsewhere() == "default"


def test_statement_of_another_thread_waits_for_our_block_to_end():
    with set_stance("force_eager"):
        elsewhere(lambda: set_stance("fail_on_recompile"))
        assert name() == "force_eager"
    assert name() == "fail_on_recompile"


def test_blocks_that_end_out_of_order():
    a, b = contextlib.ExitStack(), contextlib.ExitStack()
    a.enter_context(set_stance("force_eager"))
    b.enter_context(set_stance("fail_on_recompile"))
    a.close()
    assert name() == "fail_on_recompile"
    b.close()
    assert name() == "default"


# -- stored objects


def test_stored_object_acts_at_once_and_entering_it_takes_that_back():
    s = set_stance("force_eager")
    assert name() == "force_eager" and elsewhere() == "force_eager"
    with s:
        assert name() == "force_eager" and elsewhere() == "default"
    assert name() == "default"
    with s:
        assert name() == "force_eager" and elsewhere() == "default"
    assert name() == "default"


def test_stored_object_used_as_decorator_takes_its_statement_back():
    s = set_stance("force_eager")

    @s
    def f():
        return name()

    assert name() == "default" and f() == "force_eager"


def test_entering_a_stored_object_does_not_undo_a_later_statement():
    s = set_stance("force_eager")
    set_stance("fail_on_recompile")
    with s:
        assert name() == "force_eager"
    assert name() == "fail_on_recompile"


def test_stored_object_inside_a_block():
    with set_stance("eager_on_recompile"):
        s = set_stance("force_eager")
        assert name() == "force_eager"
        with s:
            assert name() == "force_eager" and elsewhere() == "default"
        assert name() == "eager_on_recompile"
    assert name() == "default"


# -- wherever the call stands: each source sets force_eager, and leaves the process in it or not

STATEMENTS = [
    "set_stance('force_eager')",
    "s = set_stance('force_eager')",
    "a = b = set_stance('force_eager')",
    "o.x = set_stance('force_eager')",
    "d['k'] = set_stance('force_eager')",
    "s: object = set_stance('force_eager')",
    "(s := set_stance('force_eager'))",
    "return set_stance('force_eager')",
    "try:\n        return set_stance('force_eager')\n    finally:\n        pass",
    "s = set_stance('force_eager') if o else None",
    "set_stance(*('force_eager',))",
    "set_stance(**{'stance': 'force_eager'})",
    "functools.partial(set_stance, 'force_eager')()",
    "(lambda: set_stance('force_eager'))()",
    "list(map(set_stance, ['force_eager']))",
    "[set_stance(s) for s in ('default', 'force_eager')]",
    "set_stance('force_eager') and None",
    "(set_stance('force_eager'), 1)",
    "stances = [set_stance('default'), set_stance('force_eager')]",
    "repr(set_stance('force_eager'))",
    "set_stance('force_eager').stance",
    "d[set_stance('force_eager')] = 1",
    "assert [set_stance('force_eager'), other() == name() == 'force_eager'][1]",
    "with contextlib.nullcontext(set_stance('force_eager')): assert other() == 'force_eager'",
    "with set_stance('fail_on_recompile') as s: set_stance('force_eager')",
]
TAKEN_BACK = [
    "with set_stance('force_eager'): assert other() == 'default'",
    "with set_stance('force_eager') as s: assert other() == 'default'",
    "with (s := set_stance('force_eager')): assert other() == 'default'",
    "with (set_stance('force_eager') if o else None): assert other() == 'default'",
    "with (set_stance('force_eager'), contextlib.nullcontext()): assert other() == 'default'",
    "with set_stance('force_eager'), set_stance('fail_on_recompile'): assert other() == 'default'",
    "with functools.partial(set_stance, 'force_eager')(): assert other() == 'default'",
    "with contextlib.ExitStack() as stack: stack.enter_context(set_stance('force_eager')); assert other() == 'default'",
    "s = set_stance('force_eager')\n    with s: assert other() == 'default'",
    "for s in [set_stance('force_eager'), set_stance('fail_on_recompile')]:\n        with s: pass",
    "for s in [set_stance('force_eager'), set_stance('fail_on_recompile')][::-1]:\n        with s: pass",
    "@set_stance('force_eager')\n    def g(): pass",
    "@functools.cache\n    @set_stance('force_eager')\n    def g(a=1, *, b=2) -> int: pass",
    "g = set_stance('force_eager')(print)",
]


def namespace():
    class Thing:
        key = "k"

    o = Thing()
    o.o = Thing()
    return {
        "set_stance": set_stance, "contextlib": contextlib, "functools": functools, "threading": threading,
        "o": o, "d": {}, "other": lambda: elsewhere(), "name": name,
    }  # fmt: skip


def in_function(source):
    scope = namespace()
    exec(f"def f():\n    {source}\n    return None", scope)
    return scope["f"]


def at_module_level(source, mode="exec"):
    code = compile(source.replace("\n    ", "\n") + "\n", "<cell>", mode)
    return lambda: exec(code, namespace())


@pytest.mark.parametrize("make", [in_function, at_module_level])
@pytest.mark.parametrize("source", STATEMENTS + TAKEN_BACK)
def test_wherever_the_call_stands(source, make):
    if make is at_module_level and "return" in source:
        pytest.skip("no function")
    run = make(source)
    for _ in range(3):
        set_stance("default")
        run()
        kept = "force_eager" if source in STATEMENTS else "default"
        assert elsewhere() == kept
        assert name() == ("default" if source.endswith("as s: set_stance('force_eager')") else kept)


def test_interactive_statements():
    assert repr(eval("set_stance('force_eager')", namespace())) == "set_stance('force_eager')"
    assert name() == "force_eager"
    set_stance("default")
    console = code_module.InteractiveConsole(namespace())
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        console.push("set_stance('force_eager')")
    assert name() == "force_eager" and shown.getvalue() == "set_stance('force_eager')\n"


def test_last_expression_of_a_notebook_cell():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.user_ns["set_stance"] = set_stance
    with contextlib.redirect_stdout(io.StringIO()):
        assert shell.run_cell("x = 1\nset_stance('force_eager')", store_history=False).success
    assert name() == "force_eager"
    assert shell.run_cell("with set_stance('default'): pass", store_history=False).success
    assert name() == "force_eager"


def test_statements_are_taken_back_in_any_order():
    for order in itertools.permutations(range(3)):
        made = [set_stance("force_eager"), set_stance("fail_on_recompile"), set_stance("eager_on_recompile")]
        left = ["default", *(one.stance.name for one in made)]
        for one in order:
            assert name() == elsewhere() == left[-1]
            with made[one]:
                left.remove(made[one].stance.name)
                assert name() == made[one].stance.name and elsewhere() == left[-1]
        assert name() == elsewhere() == "default"


def test_statements_are_taken_back_in_any_order_inside_a_block():
    with set_stance("aot_eager_then_compile"):
        made = [set_stance("force_eager"), set_stance("fail_on_recompile")]
        with contextlib.ExitStack() as stack:
            for one in made:
                stack.enter_context(one)
            assert name() == "fail_on_recompile" and elsewhere() == "default"
        assert name() == "aot_eager_then_compile" and elsewhere() == "default"
    assert name() == "default"


def test_a_statement_is_taken_back_by_another_thread():
    with set_stance("fail_on_recompile"):
        s = set_stance("force_eager")

        def use():
            with s:
                return name()

        assert elsewhere(use) == "force_eager"
        assert name() == "fail_on_recompile" and elsewhere() == "default"
    assert name() == "default"


def test_what_remains_of_a_block_is_back_when_a_later_statement_is_taken_back():
    with set_stance("force_eager"):
        set_stance("fail_on_recompile")
    assert name() == "default" and elsewhere() == "fail_on_recompile"
    s = set_stance("eager_on_recompile")
    assert name() == elsewhere() == "eager_on_recompile"
    with s:
        assert elsewhere() == "fail_on_recompile"
    assert name() == "default" and elsewhere() == "fail_on_recompile"
    set_stance("default")
    set_stance("default")
    assert stance_module.blocks.get() is None  # machine code calls only where it is None


def test_statements_do_not_pile_up():
    for each in STANCES:
        kept = set_stance(each)
    for _ in range(9):
        set_stance("default")
    assert len(stance_module._statements) <= 2
    with set_stance("force_eager"):
        for _ in range(9):
            set_stance("default")
        assert len(stance_module.blocks.get().inside) <= 2
    with kept:
        assert name() == kept.stance.name
    assert name() == elsewhere() == "default"


def test_copies_are_no_statements():
    s = set_stance("force_eager")
    for made in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        with made:
            assert name() == "force_eager"
        assert name() == elsewhere() == "force_eager"
    with s:
        pass
    assert name() == "default"


def test_a_block_that_is_no_statement():
    for stance in ("force_eager", Stance("force_eager")):
        block = set_stance.block(stance)
        assert name() == "default"
        with block:
            assert name() == "force_eager" and elsewhere() == "default"
        assert block(name)() == "force_eager"
    with pytest.raises(InvalidArgument, match="there is no stance 'eager'"):
        set_stance.block("eager")


def test_a_generator_that_is_left_inside_a_block():
    def f():
        with set_stance("force_eager"):
            yield name()
            yield name()

    g = f()
    assert next(g) == "force_eager"
    assert name() == "force_eager" and elsewhere() == "default"  # the caller stands in the block too
    with set_stance("fail_on_recompile"):
        assert next(g) == "fail_on_recompile"
        g.close()
        assert name() == "fail_on_recompile"
    assert name() == elsewhere() == "default"


def test_many_threads_leave_the_process_as_it_was():
    wrong = []

    @set_stance.block("eager_on_recompile")
    def f():
        return name()

    def use(each):
        for _ in range(300):
            with set_stance(each):
                if name() != each or f() != "eager_on_recompile":
                    wrong.append(each)

    threads = [threading.Thread(target=use, args=(each,)) for each in STANCES]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert name() == elsewhere() == "default" and not stance_module.departed[0]


def test_no_other_thread_ever_sees_a_block_that_is_no_statement():
    stop, seen = threading.Event(), set()

    def watch():
        while not stop.is_set():
            seen.add(current().name)

    thread = threading.Thread(target=watch)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        f = set_stance.block("fail_on_recompile")(lambda: None)
        for _ in range(300):
            with set_stance.block("force_eager"):
                f()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert seen == {"default"}


# -- what is refused


@pytest.mark.parametrize(
    "wrong, meant",
    [
        ("fail_on_recompilation", "fail_on_recompile"),
        ("force-eager", "force_eager"),
        ("Eager_On_Recompile", "eager_on_recompile"),
        ("eager", "force_eager"),
        ("defualt", "default"),
    ],
)
def test_wrong_name(wrong, meant):
    with pytest.raises(InvalidArgument) as error:
        set_stance(wrong)
    text = str(error.value)
    assert f"Did you mean {meant!r}?" in text and all(each in text for each in STANCES)
    assert isinstance(error.value, ValueError) and name() == "default"


def test_wrong_name_without_a_neighbour():
    with pytest.raises(InvalidArgument) as error:
        set_stance("zzzz")
    assert "Did you mean" not in str(error.value) and "force_eager" in str(error.value)


@pytest.mark.parametrize(
    "arguments", [{"stance": 3}, {"stance": None}, {"skip_guard_eval_unsafe": 1}, {"force_backend": 3}]
)
def test_wrong_types(arguments):
    with pytest.raises(InvalidType) as error:
        set_stance(**arguments)
    assert isinstance(error.value, TypeError) and name() == "default"


def test_decorator_without_parentheses_is_explained():
    with pytest.raises(InvalidType, match=r'@set_stance\("force_eager"\)'):

        @set_stance
        def f():
            pass


@pytest.mark.parametrize("name", ["no_such", "eagr", ""])
def test_a_backend_that_does_not_exist_is_refused_at_once(name):
    expected = f"force_backend must be a callable or a backend's name, got '{name}'.*Backends: auto, llvm, eager"
    with pytest.raises(InvalidArgument, match=expected):
        set_stance("default", force_backend=name)
    assert current().force_backend is None


def test_a_backend_exists_once_it_is_registered():
    register_backend(lambda graph, example_inputs: graph, name="of_this_test")
    for name in ("of_this_test", "auto"):
        with set_stance(force_backend=name):
            assert current().force_backend == name


@pytest.mark.parametrize("each", [s for s in STANCES if s != "default"])
@pytest.mark.parametrize("backend", ["eager", print])
def test_force_backend_goes_with_default_only(each, backend):
    with pytest.raises(InvalidArgument, match="force_backend goes with the stance 'default' only"):
        set_stance(each, force_backend=backend)
    with set_stance("default", force_backend=backend):
        assert current().force_backend == backend


def test_keyword_only_arguments():
    with pytest.raises(TypeError):
        set_stance("default", True)


def test_repr():
    assert repr(set_stance()) == "set_stance('default')"
    s = set_stance(force_backend=print, skip_guard_eval_unsafe=True)
    assert repr(s) == "set_stance('default', force_backend=print, skip_guard_eval_unsafe=True)"
    assert str(s.stance) == "default, force_backend=print, skip_guard_eval_unsafe"


# -- what is told


def test_events():
    seen = []
    with bus.listening(lambda event: seen.append(event) if isinstance(event, StanceChanged) else None):
        set_stance("force_eager")
        with set_stance("default"):
            pass
        set_stance("force_eager")  # no change
    assert [(e.previous, e.stance, e.scope) for e in seen] == [
        ("default", "force_eager", "process"),
        ("force_eager", "default", "process"),
        ("default", "force_eager", "process"),
        ("force_eager", "default", "block"),
        ("default", "force_eager", "block"),
    ]


def test_refusal_shows_the_users_line_and_the_ways_out():
    stack = [
        UserLine(file="cell", line=9, function="outer", text="    return inner(x)"),
        UserLine(
            file="cell",
            line=3,
            function="baz",
            text='    with set_stance("force_eager"):',
            column=9,
            end_column=34,
        ),
    ]
    error = refusal("inner, which set_stance decorates", stack)
    assert isinstance(error, StanceError)
    assert str(error).splitlines() == [
        "tcompile cannot compile inner, which set_stance decorates: the stance can be changed only outside of"
        " compiled functions.",
        "",
        "from user code:",
        '  File "cell", line 9, in outer',
        "    return inner(x)",
        '  File "cell", line 3, in baz',
        '    with set_stance("force_eager"):',
        "         ^^^^^^^^^^^^^^^^^^^^^^^^^",
        "",
        "Put the change around the call of the compiled function instead.",
        "To see more of what led here, first call:",
        "    tcompile.set_logs(graph_breaks=True, compiles=True)",
        "To run such a function in plain Python instead of raising this error:",
        "    tcompile.config.suppress_errors = True",
    ]
