# ruff: noqa: E501, F821, F841, RUF043
"""What is not captured: the answer is plain Python's, and the report names the line and the reason."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from differential import assert_same, check

import tcompile
from tcompile.capture.guards.graph_breaks import CATALOGUE
from tcompile.errors import Unsupported
from tcompile.observe.source_location import source_text

from .helpers import X, broken, whole, x, xy

RNG = np.random.default_rng(0)


def prints(a):
    b = a + 1
    print("sum", b.sum())
    return b * 2


def opens_a_block(a):
    with np.errstate(all="ignore"):
        return a / 0.5


def raises(a):
    b = a + 1
    raise ValueError("as told")
    return b


def raises_where_wrong(a):
    if a.ndim != 3:
        raise ValueError(f"{a.ndim} axes")
    return a


def catches(a):
    try:
        raise KeyError("k")
    except KeyError:
        return a * 2


def draws(a):
    return a + np.random.rand(*a.shape) * 0


def draws_from_a_generator(a):
    return a + RNG.normal(size=a.shape) * 0


SOURCE = (
    "def asserts(a):\n    assert a.ndim == 3, 'three axes'\n    return a\n"  # pytest rewrites the asserts of this file
)
linecache.cache["<asserts>"] = (len(SOURCE), None, SOURCE.splitlines(True), "<asserts>")
exec(compile(SOURCE, "<asserts>", "exec"))


def asserts_on_values(a):
    assert (a < 100).all()
    return a * 2


def imports(a):
    import this_is_no_module as m

    return a * m.pi


def unknown_call(a):
    return a * np.float64(len(io.StringIO("abc").read()))


def deletes_and_reads(a):
    b = a
    del b
    return b


def sets(a):
    return a * len({1, 2, a.ndim})


def matches(a):
    match a.ndim:
        case 2:
            return a * 2
    return a


def asked_for(a):
    b = a + 1
    tcompile.graph_break("just so")
    return b


def too_long(a):
    for _ in range(100_000):
        pass
    return a


def reads_a_file(a):
    with open(__file__) as f:
        return a * len(f.name) * 0


def generator_inside_out(a):
    def g():
        yield a

    return list(g()), g


@tcompile.disable(reason="not now")
def left_alone(a):
    return a + 1


def calls_one_left_alone(a):
    return left_alone(a) * 2


@pytest.mark.parametrize("f, reason, line", [
    (prints, "input-output", 'print("sum", b.sum())'), (opens_a_block, "with-statement", "with np.errstate"),
    (raises, "raises", "raise ValueError"), (raises_where_wrong, "raises", "raise ValueError"), (catches, "raises", "raise KeyError"),
    (draws, "random-numbers", "np.random.rand"), (draws_from_a_generator, "random-numbers", "RNG.normal"),
    (globals()["asserts"], "raises", "assert a.ndim == 3"), (asserts_on_values, "data-dependent-branch", "assert (a < 100).all()"),
    (imports, "side-effect", "import this_is_no_module as m"), (unknown_call, "unknown-function", "io.StringIO"),
    (deletes_and_reads, "operation-raises", "return b"), (asked_for, "graph-break-call", "tcompile.graph_break"),
    (too_long, "too-long", ""), (reads_a_file, "input-output", "open(__file__)"),
    (calls_one_left_alone, "disabled-function", "left_alone(a)"),
], ids=lambda v: getattr(v, "__name__", ""))  # fmt: skip
def test_breaks(f, reason, line):
    broken(f, x, reason, line)


@pytest.mark.parametrize("f", [matches, sets])
def test_may_break(f):
    compiled = tcompile.compile(f, backend="eager")
    np.testing.assert_array_equal(compiled(X), f(X))


def test_the_break_names_the_innermost_line_and_the_way_there():
    def inner(a):
        b = a * 2
        print(end="")
        return b

    def outer(a):
        return inner(a) + 1

    event = broken(outer, x, "input-output", 'print(end="")')
    assert [line.text for line in event.stack] == ["return inner(a) + 1", 'print(end="")']
    assert event.where.function == "inner" and event.where.file == __file__


def test_fullgraph_raises_with_the_line():
    with pytest.raises(Unsupported, match='print\\("sum", b.sum\\(\\)\\)'):
        tcompile.compile(prints, fullgraph=True)(X)


def test_a_generator_function():
    def g(a):
        yield a + 1
        yield a * 2

    compiled = tcompile.compile(g, backend="eager")
    for got, want in zip(compiled(X), g(X), strict=True):
        np.testing.assert_array_equal(got, want)
    assert not compiled.breaks and len(compiled.graphs) == 2


def test_try_without_exception():
    def f(a, b):
        log = []
        try:
            c = a + b
        except ValueError:
            c = a
        else:
            c = c * 2
        finally:
            log.append(1)
        try:
            return c * len(log)
        finally:
            log.append(2)

    whole(f, xy)


def test_exceptions_are_python_s():
    def shapes(a):
        b = a + 1
        return b + a[:, :2]

    def inner(a):
        return a.reshape(7)

    def nested(a):
        return inner(a) * 2

    def missing(a):
        return a.no_such_thing

    def name(a):
        return a + undefined

    def types(a):
        return a + "s"

    def index(a):
        return a[5]

    def linalg(a):
        return np.linalg.inv(a[:3, :3] * 0)

    for f, line in [
        (shapes, "return b + a[:, :2]"), (nested, "return a.reshape(7)"), (missing, "return a.no_such_thing"),
        (name, "return a + undefined"), (types, 'return a + "s"'), (index, "return a[5]"), (linalg, "return np.linalg.inv(a[:3"),
    ]:  # fmt: skip
        for backend in ("eager", "llvm"):
            compiled = tcompile.compile(f, backend=backend)
            with pytest.raises(Exception) as plain:
                f(X)
            for _ in range(2):
                with pytest.raises(type(plain.value)) as caught:
                    compiled(X)
                assert str(caught.value) == str(plain.value)
                text = "".join(traceback.format_exception(caught.value))
                assert line in text, text
                assert caught.value.__cause__ is None and caught.value.__context__ is None, text


def test_exceptions_caught_inside():
    def f(a):
        try:
            return a + a[:, :2]
        except ValueError as error:
            return str(error)

    compiled = tcompile.compile(f, backend="eager")
    assert compiled(X) == f(X)


def test_warnings_are_numpy_s():
    def f(a):
        unused = np.log(a)
        return a / 0

    for backend in ("eager", "aot_eager", "llvm"):
        compiled = tcompile.compile(f, backend=backend)
        seen = []
        for function in (f, compiled, compiled):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                function(X)
            seen.append([(str(w.message), w.lineno, w.filename) for w in caught])
        assert seen[0] == seen[1] == seen[2], backend


def test_prints_once():
    out = io.StringIO()
    compiled = tcompile.compile(prints, backend="eager")
    with contextlib.redirect_stdout(out):
        compiled(X)
    assert out.getvalue().count("sum") == 1


def test_nothing_of_the_user_s_runs_while_capturing():
    ran = []

    class Loud:
        def __getattr__(self, name):
            ran.append(name)
            return 1

        def __eq__(self, other):
            ran.append("eq")
            return True

        __hash__ = object.__hash__

        def __bool__(self):
            ran.append("bool")
            return True

        @property
        def p(self):
            ran.append("p")
            return 2.0

    def f(a, loud):
        return a * 2, loud, loud.p

    plain = f(X, Loud())
    del plain
    count = len(ran)
    compiled = tcompile.compile(f, backend="eager")
    for n in range(1, 4):
        compiled(X, Loud())
        assert len(ran) == count * (n + 1)


def test_capture_leaves_no_trace_when_it_fails():
    def f(a, k, flag):
        total = a * k
        if flag:
            print(end="")
        return total * a.shape[0]

    compiled = tcompile.compile(f, backend="eager")
    for n, k, flag in [(3, 1, True), (4, 2, False), (5, 3, True), (6, 3, False), (7, 5, False)]:
        a = np.ones((n, 2))
        np.testing.assert_array_equal(compiled(a, k, flag), f(a, k, flag))
    assert len(compiled.entries) <= 5


def test_warnings_of_work_that_nobody_reads():
    def f(a):
        np.log(a)
        return 1

    check(f, x)


LONG = """\
def f(x):
    y = x * 2
    return y + max(  # a list
        x.tolist(),  # of numbers
        key=(
            lambda value: value
        ),
    )

def g(x):
    if (x.sum()
            > 100):
        return x
    return x * (x.sum() > 0 and
                x.sum() > 1)
"""


@pytest.mark.parametrize(("name", "shown", "why"), [
    ("f", ["        x.tolist(),  # of numbers", "        ^^^^^^^^^^"], "values of an array"),
    ("g", ["    if (x.sum()", "        ^^^^^^^", "            > 100):", "            ^^^^^"], "`x.sum() > 100`"),
])  # fmt: skip
def test_carets_under_expressions_of_several_lines(name, shown, why):
    file = f"<long {name}>"
    linecache.cache[file] = (len(LONG), None, LONG.splitlines(True), file)
    names = {}
    exec(compile(LONG, file, "exec"), names)
    with pytest.raises(Unsupported) as raised:
        tcompile.compile(names[name], backend="eager", fullgraph=True)(np.arange(3.0))
    text = str(raised.value)
    indent = min(len(line) - len(line.lstrip()) for line in shown)
    assert "".join(f"    {line[indent:]}\n" for line in shown) in text, text
    assert why in text, text


# -- the catalogue: each reason has an example that breaks, and a rewrite that does not

PACKAGE = Path(tcompile.__file__).parent
OF_PYTORCH = {"mixed-libraries", "training-step"}
WITHOUT_EXAMPLE = {"internal-error", *OF_PYTORCH, *(reason.id for reason in CATALOGUE.values() if reason.silent)}


def reasons_raised():
    """The ids that the sources name where they stop capture."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                if getattr(node.func, "id", "") in ("CannotCapture", "GraphBreak"):
                    yield node.args[0].value


def test_the_catalogue_has_the_reasons_that_are_raised_and_no_other():
    assert set(reasons_raised()) == set(CATALOGUE)


@pytest.mark.parametrize("reason", CATALOGUE.values(), ids=lambda reason: reason.id)
def test_each_reason_is_explained(reason):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", reason.id)
    for text in (reason.headline, reason.explanation, *reason.hints):
        assert text and text == text.strip() and "  " not in text
    assert (reason.hints or reason.silent) and all(hint.endswith((".", "?")) for hint in reason.hints)
    assert not reason.headline.endswith(".")
    assert reason.explanation.count("{") == reason.explanation.count("{detail}")


@pytest.mark.parametrize("reason", [id for id in CATALOGUE if id not in WITHOUT_EXAMPLE])
def test_the_example_of_each_reason(load_tool, reason):
    tool = load_tool("write_graph_breaks")
    example = tool.EXAMPLES[reason]
    plain, _ = tool.run(example.program, example, compile=False)
    value, breaks = tool.run(example.program, example, compile=True)
    assert_same(value, plain)
    assert {broke.where.line for broke in breaks} == {example.line}  # what follows from it is told of its line too
    broke = breaks[0]
    assert broke.reason == reason, breaks
    assert source_text(broke.where).endswith(tool.HERE) and broke.where.column is not None

    value, breaks = tool.run(example.rewrite, example, compile="tcompile.compile(" not in example.rewrite)
    assert breaks == []
    np.testing.assert_allclose(value, plain)


def test_examples_are_of_reasons_that_exist(load_tool):
    assert set(load_tool("write_graph_breaks").EXAMPLES) == set(CATALOGUE) - WITHOUT_EXAMPLE


def test_a_warning_of_a_constant_is_given_once():
    def f():
        v = np.complex64(1)
        return np.float32(v)

    check(f, list)
