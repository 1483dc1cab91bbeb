"""The introduction's examples in NumPy: forms of compile, recursion, objects, speed-ups, branches, breaks, cond."""

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.errors import Unsupported


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()
    yield
    tcompile.set_logs(graph_code=False, graph_breaks=False)


def randn(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def foo(x, y):
    a = np.sin(x)
    b = np.cos(y)
    return a + b


def test_function_form():
    opt_foo1 = tcompile.compile(foo)
    x, y = randn(3, 3), randn(3, 3) + 1
    assert_same(opt_foo1(x, y), foo(x, y))
    (graph,) = opt_foo1.graphs
    assert [node.op.name for node in graph] == ["sin", "cos", "add"]
    assert [str(node.type) for node in graph.inputs] == ["f32[3, 3]", "f32[3, 3]"]
    assert opt_foo1.__name__ == "foo" and opt_foo1.__wrapped__ is foo


def test_decorator_form():
    @tcompile.compile
    def opt_foo2(x, y):
        a = np.sin(x)
        b = np.cos(y)
        return a + b

    x, y = randn(3, 3), randn(3, 3)
    assert_same(opt_foo2(x, y), foo(x, y))


def test_the_captured_graph_is_printed_with_the_users_lines(capsys):
    tcompile.set_logs(graph_code=True)
    tcompile.compile(foo)(randn(3, 3), randn(3, 3))
    text = capsys.readouterr().err
    assert "sin" in text and "f32[3, 3]" in text
    assert "a = np.sin(x)" in text and "return a + b" in text
    tcompile.set_logs(graph_code=False)
    tcompile.compile(foo)(randn(2, 2), randn(2, 2))
    assert capsys.readouterr().err == ""


def inner(x):
    return np.sin(x)


def test_called_functions_are_captured_in_the_same_graph():
    @tcompile.compile
    def outer(x, y):
        a = inner(x)
        b = np.cos(y)
        return a + b

    outer(randn(3, 3), randn(3, 3))
    (graph,) = outer.graphs
    assert [node.op.name for node in graph] == ["sin", "cos", "add"]
    assert [node.location.function for node in graph] == ["inner", "outer", "outer"]


class MyModule:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.weight = rng.standard_normal((3, 3)).astype(np.float32)
        self.bias = np.zeros(3, np.float32)

    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return np.maximum(x @ self.weight + self.bias, 0)


def test_objects_are_compiled_through_their_call():
    module = MyModule()
    compiled = tcompile.compile(module)
    x = randn(3, 3)
    assert_same(compiled(x), module(x))
    (graph,) = compiled.graphs
    assert sorted(node.name for node in graph.inputs) == ["self_bias", "self_weight", "x"]
    module.bias = module.bias + 10
    assert_same(compiled(x), module(x))
    assert len(compiled.graphs) == 1  # a parameter's new values need no new graph


def test_speed_up_example_gives_the_same_values():
    def foo3(x):
        y = x + 1
        z = np.maximum(y, 0)
        u = z * 2
        return u

    x = randn(64, 64)
    assert_same(tcompile.compile(foo3)(x), foo3(x))


def f1(x, y):
    if x.sum() < 0:
        return -y
    return y


def test_a_branch_on_data_takes_the_right_side_each_time():
    compiled = tcompile.compile(f1)
    a, b = np.abs(randn(5, 5)), randn(5, 5)
    assert_same(compiled(a, b), f1(a, b))
    assert_same(compiled(-a, b), f1(-a, b))


def test_arguments_need_no_types():
    def f2(x, y):
        return x + y

    compiled = tcompile.compile(f2)
    assert_same(compiled(randn(5, 5), 3), f2(randn(5, 5), 3))
    (graph,) = compiled.graphs
    assert len(graph.inputs) == 1 and graph.nodes[0].operands[1] == 3


def bar(a, b):
    x = a / (np.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def test_a_break_gives_right_answers_and_names_its_line(capsys):
    tcompile.set_logs(graph_breaks=True)
    compiled = tcompile.compile(bar)
    ones = np.ones(10)
    assert_same(compiled(ones, ones), bar(ones, ones))
    assert_same(compiled(ones, -ones), bar(ones, -ones))
    assert compiled.breaks[0].reason.id == "data-dependent-branch"
    text = capsys.readouterr().err
    assert "if b.sum() < 0:" in text and "in bar" in text


def test_fullgraph_raises_at_the_first_break():
    compiled = tcompile.compile(bar, fullgraph=True)
    with pytest.raises(Unsupported) as error:
        compiled(randn(10), randn(10))
    text = str(error.value)
    assert "data-dependent-branch" in text
    assert "Hint:" in text and "tcompile.cond" in text
    assert f'File "{__file__}"' in text and "if b.sum() < 0:" in text


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "llvm"])
def test_cond_captures_both_branches(backend):
    @tcompile.compile(fullgraph=True, backend=backend)
    def bar_fixed(a, b):
        x = a / (np.abs(a) + 1)

        def true_branch(y):
            return y * -1

        def false_branch(y):
            return y.copy()

        b = tcompile.cond(b.sum() < 0, true_branch, false_branch, (b,))
        return x * b

    ones = np.ones(10)
    assert_same(bar_fixed(ones, ones), bar(ones, ones))
    assert_same(bar_fixed(ones, -ones), bar(ones, -ones))
    (graph,) = bar_fixed.graphs
    (cond,) = [node for node in graph if node.op.name == "cond"]
    assert [region.name for region in cond.regions] == ["cond_true", "cond_false"]
    assert len(bar_fixed.entries) == 1


def test_reset_clears_the_cache():
    compiled = tcompile.compile(foo)
    compiled(randn(3, 3), randn(3, 3))
    assert compiled.entries
    tcompile.reset()
    assert not compiled.entries
    compiled(randn(3, 3), randn(3, 3))
    assert len(compiled.entries) == 1
