"""What derivatives do around the rules: loops, structures, kinds, nesting, stances, effects, errors."""

from __future__ import annotations

import collections
import functools
import inspect
import re
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import tcompile
from tcompile.errors import DerivativeError, InvalidArgument, InvalidType
from tcompile.observe import bus
from tcompile.observe.events import FellBack

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal(40)
U = RANDOM.random((12, 12))


# -- loops -------------------------------------------------------------------------------------------------------------
def heat(u0, n):
    u = u0.copy()
    for _ in range(n):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def fisher(u0, n):
    u = u0.copy()
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) + 0.01 * u[1:-1] * (1 - u[1:-1])
    return np.sum(u * u)


def swaps(u, n):
    v = u * 0.5
    for _ in range(n):
        u, v = v, 0.5 * (u + np.sin(v))
    return np.sum(u * v)


def accumulates(u, n):
    total = 0.0
    for i in range(n):
        total += np.sum(np.sin(u * i)) / (i + 1)
    return total


def carries_a_number(u, n):
    s = np.sum(u)
    for _ in range(n):
        s = np.sin(s) + 0.5 * s
    return s


def rows(u, n):
    out = np.zeros((n, 4))
    for i in range(n):
        out[i] = np.cos(u[:4] * i) * u[4:8]
    return np.sum(out**2)


def triangular(a, n):
    a = a.copy()
    for i in range(n):
        a[i + 1 :] = a[i + 1 :] * 0.9 + np.sin(a[i])
    return np.sum(a * a)


def nested(a, n):
    a = a.copy()
    for _ in range(n):
        for j in range(20):
            a[1:-1] = 0.5 * a[1:-1] + 0.25 * (a[2:] + a[:-2]) + 0.001 * j
    return np.sum(a**3)


def plain_steps(a, n):
    for _ in range(n):
        a = np.tanh(a @ np.eye(12) * 0.9 + 0.1)
    return np.mean(a)


LOOPS = [
    (heat, X), (fisher, X), (swaps, X), (accumulates, X[:6]), (carries_a_number, X[:6]), (rows, X), (triangular, X),
    (nested, X), (plain_steps, U),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x"), LOOPS, ids=lambda p: getattr(p, "__name__", ""))
@pytest.mark.parametrize("n", [0, 1, 3, 37])
def test_loops(f, x, n):
    tcompile.check_grads(lambda y: f(y, n), step=1e-5, tolerance=1e-6)(x)


@pytest.mark.parametrize("f", [fisher, swaps, carries_a_number])
def test_second_derivatives_of_loops(f):
    tcompile.check_grads(lambda y: f(y, 25), order=2, step=1e-5, tolerance=1e-5)(X[:8])


def test_the_graph_of_a_loops_gradient_does_not_grow_with_the_trip_count():
    sizes = []
    for n in (600, 6000):
        sizes.append(tcompile.explain(tcompile.grad(fisher))(np.abs(X) / 9, n).op_count)
    assert sizes[0] == sizes[1] < 150


def test_a_varying_trip_count_and_size_is_one_entry():
    gradient = tcompile.grad(heat)
    for n, size in ((30, 20), (40, 25), (50, 30), (60, 35), (70, 40)):
        x = X[:size]
        expected = (heat(x + 1e-6, n) - heat(x - 1e-6, n)) / 2e-6
        assert abs(gradient(x, n).sum() - expected) < 1e-6
    assert len(gradient.entries) <= 3


# -- arguments and results ---------------------------------------------------------------------------------------------
Point = collections.namedtuple("Point", "x y")


def test_kinds_and_structures():
    def f(p, q=1.0):
        return np.sum(p["w"] * p["b"][0]) + p["b"][1] ** 2 * q

    tree = {"w": np.arange(3.0), "b": [np.float64(2.0), 3.0]}
    found = tcompile.grad(f)(tree)
    assert list(found) == ["w", "b"] and type(found["b"]) is list
    np.testing.assert_array_equal(found["w"], [2.0, 2.0, 2.0])
    assert type(found["b"][0]) is np.float64 and found["b"][0] == 3.0
    assert type(found["b"][1]) is float and found["b"][1] == 6.0
    both = tcompile.grad(f, (0,), "q")(tree, q=2.0)
    assert type(both) is tuple and both[1] == 9.0 and both[0]["b"][1] == 12.0
    assert tcompile.grad(lambda x: x * x * 3)(2.0) == 12.0
    assert type(tcompile.grad(lambda x: x * x)(np.float32(2.0))) is np.float32
    assert tcompile.grad(lambda x: 5.0)(2.0) == 0.0
    np.testing.assert_array_equal(tcompile.grad(lambda x, y: np.sum(y))(X, X), np.zeros(40))


def test_a_value_has_the_bits_of_the_plain_call():
    def f(x):
        return np.sum(np.sin(x) * x) / x.size

    value, gradient = tcompile.value_and_grad(f)(X)
    with tcompile.set_stance("force_eager"):
        again, other = tcompile.value_and_grad(f)(X)
    assert value == tcompile.compile(f)(X) and again == f(X)
    np.testing.assert_allclose(gradient, other, rtol=1e-14)


def test_auxiliary_results():
    def f(x):
        y = x * 2
        return np.sum(y * y), {"y": y, "name": "aux"}

    gradient, aux = tcompile.grad(f, has_aux=True)(X)
    np.testing.assert_allclose(gradient, 8 * X)
    np.testing.assert_array_equal(aux["y"], X * 2)
    (value, aux), gradient = tcompile.value_and_grad(f, has_aux=True)(X)
    assert aux["name"] == "aux" and value == f(X)[0]


def test_gradients_are_arrays_of_their_own():
    y = np.ones(3)
    first, second = tcompile.grad(lambda a, b: np.sum(a * y + b * y), (0, 1))(np.ones(3), np.ones(3))
    first += 1
    np.testing.assert_array_equal(second, y)
    np.testing.assert_array_equal(y, np.ones(3))


# -- nesting -----------------------------------------------------------------------------------------------------------
def test_a_derivative_of_a_derivative_sees_its_own_variable_only():
    def inner(x):
        return x * tcompile.grad(lambda y: x * y)(x)

    assert tcompile.grad(inner)(3.0) == 6.0
    third = tcompile.grad(tcompile.grad(tcompile.grad(lambda x: x**4)))
    assert third(2.0) == 48.0


def test_gradients_inside_of_compiled_functions():
    loss = lambda w: np.sum((w * X - 1) ** 2)
    gradient = tcompile.grad(loss)

    @tcompile.compile
    def descend(w):
        for _ in range(5):
            w = w - 0.001 * gradient(w)
        return w

    @tcompile.compile
    def made_inside(w):
        return w - 0.001 * tcompile.grad(loss)(w)

    w = X * 0.5
    for _ in range(5):
        w = w - 0.001 * 2 * X * (w * X - 1)
    np.testing.assert_allclose(descend(X * 0.5), w, rtol=1e-12)
    np.testing.assert_allclose(made_inside(X), X - 0.001 * 2 * X * (X * X - 1), rtol=1e-12)


def test_forward_and_reverse_agree():
    def f(x, y):
        return np.sin(x) * y, np.sum(x / (1 + y * y))

    v = (RANDOM.standard_normal(40), RANDOM.standard_normal(40))
    value, tangent = tcompile.jvp(f, (X, X + 2), v)
    u = (RANDOM.standard_normal(40), 0.7)
    pulled = tcompile.vjp(f, X, X + 2)[1](u)
    left = np.sum(tangent[0] * u[0]) + tangent[1] * u[1]
    right = np.sum(pulled[0] * v[0]) + np.sum(pulled[1] * v[1])
    np.testing.assert_allclose(left, right, rtol=1e-12)
    np.testing.assert_allclose(value[0], f(X, X + 2)[0], rtol=1e-14)


def test_products_with_a_hessian():
    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    v = RANDOM.standard_normal(40)
    gradient = tcompile.grad(rosenbrock)
    numeric = (gradient(X + 1e-6 * v) - gradient(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(tcompile.hvp(rosenbrock)(X, v), numeric, rtol=1e-5, atol=1e-4)


def test_what_is_stopped_is_constant():
    np.testing.assert_allclose(tcompile.grad(lambda x: np.sum(x * tcompile.stop_gradient(x * 2)))(X), 2 * X)
    assert tcompile.grad(lambda x: tcompile.stop_gradient(x) ** 2)(3.0) == 0.0


# -- kinks and poles ---------------------------------------------------------------------------------------------------
def test_no_nan_from_the_side_that_a_where_did_not_take(recwarn):
    x = np.array([0.0, 4.0, -1.0])
    with np.errstate(all="ignore"):
        found = tcompile.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0)))(x)
        np.testing.assert_array_equal(found, [0.0, 0.25, 0.0])
        found = tcompile.grad(lambda x: np.sum(np.where(x > 0, np.log(x) / x, 1.0)))(x)
        np.testing.assert_allclose(found, [0.0, (1 - np.log(4)) / 16, 0.0])


def test_where_there_is_no_derivative():
    assert tcompile.grad(abs)(0.0) == 0.0
    assert tcompile.grad(lambda x: x**0)(0.0) == 0.0 and tcompile.grad(np.sqrt)(0.0) == np.inf
    assert tcompile.grad(lambda y: np.sum(np.zeros(2) ** y))(np.float64(2.0)) == 0.0
    assert np.isnan(tcompile.grad(np.linalg.norm)(np.zeros(2))).all()
    np.testing.assert_array_equal(tcompile.grad(lambda x: np.max(x))(np.array([1.0, 3.0, 3.0])), [0, 0.5, 0.5])
    np.testing.assert_array_equal(tcompile.grad(lambda x: np.sum(np.maximum(x, 1.0)))(np.array([1.0, 2.0])), [0.5, 1])
    np.testing.assert_array_equal(
        tcompile.grad(lambda x: np.sum(np.clip(x, 0, 1)))(np.array([0.0, 1.0, 2.0])), [1, 1, 0]
    )


def repeated_roots(x):
    for _ in range(100):
        x = np.sqrt(x) + 0.0 * x
    return np.sum(x)


@pytest.mark.parametrize("f", [lambda x: np.sum(np.sqrt(x)), lambda x: np.sum(np.sqrt(x) / (1 + x)), repeated_roots])
def test_derivatives_report_no_conditions_and_stay_compiled(f):
    """At 0 the formula of a root's derivative divides by zero, in a kernel of its own."""
    x, seen = np.array([0.0, 1.0, 4.0]), []
    gradient = tcompile.value_and_grad(f)

    def listen(event):
        if isinstance(event, FellBack):
            seen.append(event)

    with np.errstate(divide="raise", invalid="raise", over="raise"), bus.listening(listen):
        for _ in range(3):
            value, found = gradient(x)
    assert not seen and value == f(x) and not np.isfinite(found[0])
    exact = (f(x + np.array([0, 1e-6, 0])) - f(x - np.array([0, 1e-6, 0]))) / 2e-6
    np.testing.assert_allclose(found[1], exact, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_conditions_of_the_function_itself_are_reported(stance):
    gradient = tcompile.grad(lambda x: np.sum(np.sqrt(x)))
    with tcompile.set_stance(stance):
        for _ in range(3):
            with pytest.warns(RuntimeWarning, match="invalid value"):
                gradient(np.array([-1.0, 4.0]))
            with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="invalid value"):
                gradient(np.array([-1.0, 4.0]))
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(gradient(np.array([-1.0, 4.0])), [np.nan, 0.25])


# -- effects and breaks ------------------------------------------------------------------------------------------------
def test_effects_happen_once():
    log: list[int] = []
    kept = {}

    def f(x):
        log.append(1)
        kept["y"] = x * 2
        return np.sum(x * x)

    for n in (1, 2, 3):
        np.testing.assert_allclose(tcompile.grad(f)(X), 2 * X)
        assert log == [1] * n
        np.testing.assert_array_equal(kept["y"], X * 2)


def doubled_in_place(x):
    x *= 2
    x[0] = x[1] * 3
    return np.sum(x**2)


def relaxed_in_place(x):
    for i in range(12):
        x[1:] += 0.1 * np.sin(x[:-1])
        x[i % 3] *= 0.9
    return np.sum(x * x)


def by_slices(x):
    y = x[::2]
    y -= x[1]
    x[x > 0] = 0.5
    return np.sum(x**3) + np.sum(y)


@pytest.mark.parametrize("function", [doubled_in_place, relaxed_in_place, by_slices])
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_writes_to_the_argument(function, stance):
    """They reach the caller's array once, and the gradient is that at the elements from before."""
    written = X.copy()
    value = function(written)
    want = tcompile.grad(lambda x: function(x.copy()))(X)
    with tcompile.set_stance(stance):
        tcompile.check_grads(function, order=2)(X)
        for _ in range(2):
            for derivative in (tcompile.grad(function), tcompile.jacrev(function), tcompile.jacfwd(function)):
                x = X.copy()
                np.testing.assert_allclose(derivative(x), want)
                np.testing.assert_allclose(x, written)
        x = X.copy()
        found, pull = tcompile.vjp(function, x)
        np.testing.assert_allclose(found, value)
        for _ in range(2):
            np.testing.assert_allclose(pull(1.0)[0], want)
        np.testing.assert_allclose(x, written)
        x = X.copy()
        np.testing.assert_allclose(tcompile.jvp(function, (x,), (X,)), (value, want @ X))
        np.testing.assert_allclose(x, written)


@pytest.mark.parametrize("call", [
    lambda x: tcompile.grad(lambda a: [a.__setitem__(0, 1.0), np.sum(a * x)][1])(x),
    lambda x: tcompile.grad(lambda a, b: [a.__setitem__(0, 1.0), np.sum(a * b)][1], (0, 1))(x, x),
    lambda x: tcompile.grad(lambda a, b: [a.__setitem__(0, 1.0), np.sum(a * b)][1])(x, x[::-1]),
])  # fmt: skip
def test_writes_to_an_argument_with_two_names_are_refused(call):
    x = X.copy()
    with pytest.raises(DerivativeError):
        call(x)
    np.testing.assert_array_equal(x, X)


def test_an_operation_without_a_rule_is_named_with_its_line():
    def f(x):
        y = np.partition(x, 2)
        return np.sum(np.abs(y))

    with pytest.raises(DerivativeError, match=r"numpy\.partition has no derivative rule \(line \d+: y = np\.partition"):
        tcompile.grad(f)(X)


def test_the_functions_own_exception():
    def f(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        tcompile.grad(f)(X)
    with pytest.raises(ValueError, match="matmul"):
        tcompile.grad(lambda x: np.sum(x @ np.ones((3, 3))))(X)


# -- many functions, and many kinds of arguments ---------------------------------------------------------------------
def _powers():
    return [eval(f"lambda x: np.sum(x ** {k})", {"np": np}) for k in range(2, 22)]


@pytest.mark.parametrize("stance", ["default", "force_eager"])
@pytest.mark.filterwarnings("error")
def test_functions_do_not_count_towards_each_others_limit(stance):
    x = np.arange(1.0, 4.0)
    with tcompile.set_stance(stance):
        for _ in range(2):
            gradients = [tcompile.grad(f) for f in _powers()]
            for k, gradient in enumerate(gradients, 2):
                np.testing.assert_allclose(gradient(x), k * x ** (k - 1))
                assert len(gradient.entries) == (stance == "default")
            for k, f in enumerate(_powers(), 2):
                np.testing.assert_allclose(tcompile.jvp(f, (x,), (np.ones(3),))[1], np.sum(k * x ** (k - 1)))
                tcompile.check_grads(f)(x)


@pytest.mark.filterwarnings("error")
def test_a_function_made_anew_shares_what_is_compiled():
    for k in range(20):
        y = X * k
        gradient = tcompile.grad(lambda x: np.sum((x - y) ** 2))
        np.testing.assert_allclose(gradient(X), 2 * (X - y))
        assert len(gradient.entries) == 1


@pytest.mark.parametrize("make", [
    lambda f: functools.partial(f, scale=2.0),
    lambda f: types.MethodType(lambda self, x: f(x, 2.0), object()),
    lambda f: type("Scaled", (), {"__call__": lambda self, x: f(x, 2.0)})(),
    lambda f: functools.wraps(f)(lambda x: f(x, 2.0)),
    lambda f: tcompile.compile(lambda x: f(x, 2.0)),
])  # fmt: skip
def test_callables_of_all_kinds(make):
    gradient = tcompile.grad(make(lambda x, scale=1.0: np.sum(x * x) * scale))
    np.testing.assert_allclose(gradient(X), 4 * X)


def test_an_object_that_has_every_attribute():
    class Anything:
        def __getattr__(self, name):
            if name.startswith("__") and name not in ("__func__", "__wrapped__"):
                raise AttributeError(name)
            return Anything()

        def __call__(self, x):
            return np.sum(x * x)

    np.testing.assert_allclose(tcompile.grad(Anything())(X), 2 * X)


@pytest.mark.at_recompile_limit
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_the_recompile_limit_changes_no_gradient(stance):
    gradient = tcompile.grad(lambda x: np.sum(x * x))
    with tcompile.set_stance(stance), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*was compiled .* times")
        for rank in range(12):
            for dtype in (np.float64, np.float32):
                x = np.full((2,) * rank, 3.0, dtype)
                np.testing.assert_array_equal(gradient(x), 2 * x)
                assert gradient(x).dtype == dtype


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_one_function_by_several_arguments(stance):
    def function(x, y=2.0, *, z=3.0):
        return x * y * z

    with tcompile.set_stance(stance):
        for _ in range(2):
            assert tcompile.grad(function, 1)(2.0, 5.0) == 6.0
            assert tcompile.grad(function)(2.0) == 6.0
            assert tcompile.grad(function)(2.0, y=5.0) == 15.0
            assert tcompile.grad(function, (0, 1))(2.0, 5.0) == (15.0, 6.0)
            assert tcompile.grad(function, (), "z")(2.0, z=1.0) == (4.0,)
            assert tcompile.grad(functools.partial(function, y=7.0))(2.0) == 21.0
            assert tcompile.value_and_grad(lambda x: (x * 2, x), has_aux=True)(2.0)[1] == 2.0


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_under_a_trace_function(stance):
    def trace(frame, event, arg):
        return trace

    def function(x):
        return x * x if x > 0 else x

    before = sys.gettrace()
    with tcompile.set_stance(stance):
        sys.settrace(trace)
        try:
            found = tcompile.grad(lambda x: x * x)(2.0), tcompile.grad(function)(2.0), tcompile.jacfwd(np.sin)(0.0)
            batch = tcompile.vmap(lambda x: x * 2)(X)
        finally:
            sys.settrace(before)
    assert found == (4.0, 4.0, 1.0)
    np.testing.assert_array_equal(batch, 2 * X)


def first_replaced(p):
    p[0] = p[1] * p[0]
    return p[0] ** 2


@pytest.mark.parametrize("function", [
    first_replaced,
    lambda p: [p.append(1.0), p[0] ** 2][1],
    lambda p: [p.pop(), p[0] ** 2][1],
])  # fmt: skip
@pytest.mark.parametrize("derive", [tcompile.grad, tcompile.jacfwd, tcompile.value_and_grad])
def test_changes_of_a_differentiated_list_are_refused(function, derive):
    given = [1.0, 2.0]
    with pytest.raises(DerivativeError, match="other items into a list or dict"):
        derive(function)(given)
    assert given == [1.0, 2.0]


def test_check_grads_of_trees():
    pair = collections.namedtuple("pair", "w b")
    tcompile.check_grads(lambda p: np.sum(np.sin(p.w) * p.b["x"]), order=2)(pair(X, {"x": X + 1}))


def test_signatures():
    def loss(w, x, scale=2.0):
        return np.sum(w * x) * scale

    gradient = tcompile.grad(loss)
    assert str(inspect.signature(gradient)) == "(w, x, scale=2.0)"
    for call in (lambda: gradient(X, X + 1), lambda: gradient(x=X + 1, w=X), lambda: gradient(X, X + 1, scale=2.0)):
        np.testing.assert_array_equal(call(), 2 * (X + 1))
    np.testing.assert_array_equal(tcompile.grad(loss, 1)(X, X, 3.0), 3 * X)
    np.testing.assert_array_equal(tcompile.grad(loss, (), "x")(X, x=X, scale=3.0)[0], 3 * X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        gradient(X, y=X)


def test_gradients_and_results_share_no_memory():
    a, b = tcompile.grad(lambda x, y: np.sum(x + y), (0, 1))(X, X + 1)
    assert not np.shares_memory(a, b)
    a[0] = 7
    assert b[0] == 1
    value, gradient = tcompile.value_and_grad(lambda x: (np.exp(x).sum(), np.exp(x)), has_aux=True)(X)
    assert not np.shares_memory(value[1], gradient)


# -- bad input ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: tcompile.grad(np.sum)(2), DerivativeError, r"argument 0 is the int 2, .*: pass 2\.0"),
    (lambda: tcompile.grad(np.sum)(True), DerivativeError, "argument 0 is the bool True"),
    (lambda: tcompile.grad(np.sum)(np.arange(3)), DerivativeError, r"has the dtype int64; .*astype\(float\)"),
    (lambda: tcompile.grad(np.sum)("text"), DerivativeError, "argument 0 is a str"),
    (lambda: tcompile.grad(lambda x, y: x * y, 2)(1.0, 2.0), DerivativeError, "no argument 2 .* passes 2 positional"),
    (lambda: tcompile.grad(lambda x: x, argnames="y")(1.0), DerivativeError, "no argument 'y'"),
    (lambda: tcompile.grad(lambda x: x)(), TypeError, r"grad\(<lambda>\)\(\) missing 1 required positional argument"),
    (lambda: tcompile.grad(lambda *x: x)(), DerivativeError, "no argument 0 .* passes 0 positional"),
    (lambda: tcompile.grad(lambda x: x * 2)(np.ones(3)), DerivativeError, "not a scalar; jacrev"),
    (lambda: tcompile.grad(lambda x: "no")(1.0), DerivativeError, "not a scalar"),
    (lambda: tcompile.grad(lambda x: x * x, has_aux=True)(1.0), DerivativeError, "has_aux asks for a pair"),
    (lambda: tcompile.grad(3), InvalidType, "fun must be callable, got int 3"),
    (lambda: tcompile.grad(np.sum, "x"), InvalidType, "argnums must be an int"),
    (lambda: tcompile.grad(np.sum, -1), InvalidArgument, "argnums must be positions from 0, got -1"),
    (lambda: tcompile.jvp(np.sin, (1.0,), (1.0, 2.0)), InvalidArgument, "1 primals and 2 tangents"),
    (lambda: tcompile.jvp(np.sin, 1.0, (1.0,)), InvalidType, "primals must be a tuple or list, got float"),
    (lambda: tcompile.jvp(np.sin, (np.ones(3),), (np.ones(4),)), DerivativeError, "Tangent 0 has the shape"),
    (lambda: tcompile.vjp(np.sin, np.ones(3))[1](np.ones(4)), DerivativeError, "A cotangent has the shape"),
    (lambda: tcompile.check_grads(np.sum, order=3), InvalidArgument, "order must be 1 or 2, got 3"),
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_wrong_gradient_is_found():
    with pytest.raises(AssertionError, match=r"the gradient is .* along a random direction"):
        tcompile.check_grads(lambda x: np.sum(tcompile.stop_gradient(x) * x))(X)


def test_the_examples_of_the_page_run():
    page = (Path(__file__).resolve().parents[2] / "docs" / "derivatives.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S)
    assert len(blocks) == 9
    exec("\n".join(blocks), {})


def test_all_of_them_inside_of_a_compiled_function():
    def f(x):
        return np.sum(np.sin(x) * x)

    @tcompile.compile(fullgraph=True)
    def everything(x, v):
        value, gradient = tcompile.value_and_grad(f)(x)
        product = tcompile.hvp(f)(x, v)
        pushed = tcompile.jvp(f, (x,), (v,))[1]
        pulled = tcompile.vjp(f, x)[1](2.0)[0]
        return value, gradient, product, pushed, pulled

    x, v = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.5, -0.2])
    value, gradient, product, pushed, pulled = everything(x, v)
    exact = np.cos(x) * x + np.sin(x)
    np.testing.assert_allclose(gradient, exact)
    np.testing.assert_allclose(product, (2 * np.cos(x) - x * np.sin(x)) * v)
    np.testing.assert_allclose([value, pushed], [f(x), exact @ v])
    np.testing.assert_allclose(pulled, 2 * exact)


PRINTING = {
    "arrays": lambda x: (print("y", np.sin(x), x.shape), np.sum(x * x))[1],
    "numbers": lambda x: (print(f"{x.max():.3f}", x[0], end="!\n"), np.sum(x * x))[1],
    "containers": lambda x: (print([x[0], 1], {"a": x[1]}), np.sum(x * x))[1],
}


def printing_loop(x):
    for i in range(60):
        x = x * 0.5
        if i % 20 == 0:
            print(i, x)
    return x.sum()


def printing_branch(x):
    if x[0] > 0:
        print("positive")
    else:
        print("negative")
    return (x * x).sum()


def printing_between_writes(x):
    y = x.copy()
    print(y)
    y[0] = 5.0
    print(y)
    return (y * y).sum()


@pytest.mark.parametrize(
    "function", [*PRINTING.values(), printing_loop, printing_branch, printing_between_writes],
    ids=[*PRINTING, "loop", "branch", "writes"],
)  # fmt: skip
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_prints_are_made_once(function, stance, capsys):
    """A differentiated function prints what the plain call prints, once, in its order."""
    function(X)
    want = capsys.readouterr().out
    gradient = tcompile.grad(function)
    with tcompile.set_stance(stance):
        for _ in range(3):
            gradient(X)
            assert capsys.readouterr().out == want
    tcompile.grad(lambda x: gradient(x).sum())(X)
    assert capsys.readouterr().out == want


def test_machine_code_answers_the_derivative_of_a_compiled_function():
    """It has the function's own parameters, as that of a plain one does."""
    compiled = tcompile.compile(lambda a, b=2.0: a * b)
    assert tcompile.grad(compiled).__code__.co_varnames[:2] == ("a", "b")
    assert tcompile.grad(compiled)(3.0) == 2.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_constant_cotangents(dtype):
    """The cotangent of a mean is one number; no array of it is made."""
    x = np.linspace(0.5, 2.0, 21, dtype=dtype).reshape(7, 3)
    gradient = tcompile.compile(lambda x: tcompile.grad(lambda x: np.mean(x * x) * 3.0)(x))
    expected = (np.full((), 3.0, dtype) / 21 * x) * 2
    np.testing.assert_allclose(gradient(x), expected, rtol=4 * np.finfo(dtype).eps)
    assert not {"full", "broadcast_to"} & {node.op for node in gradient.graphs[0].view().nodes}


def test_flags_of_a_derivative_do_not_reach_later_operations():
    """Kernels that report nothing leave the processor's flags as they are."""
    gradient = tcompile.grad(lambda x: np.sum(np.sqrt(x) * x))
    x = np.array([0.0, 1.0, np.inf, 4.0] * 9)
    with np.errstate(all="raise"):
        for _ in range(3):
            gradient(x)
            assert np.float64(3.0) * np.float64(2.0) == 6.0
            gradient(x)
            np.testing.assert_array_equal(np.arange(4.0) / 2, [0.0, 0.5, 1.0, 1.5])
            gradient(x)
            assert np.arange(4.0).astype(np.int8).tolist() == [0, 1, 2, 3]
            gradient(x)
            assert np.linalg.inv(np.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    text = "".join(kernel.ir for entry in gradient.entries for kernel in entry.compiled_graph._own)
    assert text.count("define i32 @kernel") > text.count("call i32 @tc_read_flags()")
