"""Writes to arrays are captured: to arguments, to arrays made inside, through views and views of views."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from differential import BACKENDS, Run, assert_same_run, check

import tcompile
from tcompile.backends.llvm import compile_graph
from tcompile.observe.events import FellBack
from tcompile.observe.recorder import Recorder


class State:
    def __init__(self):
        self.u, self.v = ramp(5), 2 * ramp(5)


def arrays_in(value):
    """Every array that a result or an argument holds."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, State):
        return arrays_in(list(vars(value).values()))
    if isinstance(value, dict):
        return arrays_in(list(value.values()))
    if isinstance(value, list | tuple):
        return [array for item in value for array in arrays_in(item)]
    return []


def same(f, make, *, backend, breaks=0, calls=3):
    """Asserts that plain and compiled calls leave equal arguments and results, that share memory alike."""
    compiled = tcompile.compile(f, backend=backend)
    for _ in range(calls):
        want, got = make(), make()
        try:
            expected = f(*want)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(*got)
            expected = found = None
        else:
            found = compiled(*got)
        one, two = arrays_in([want, expected]), arrays_in([got, found])
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(b, a)
            assert (a.dtype, a.shape, a.strides, a.flags.writeable) == (b.dtype, b.shape, b.strides, b.flags.writeable)
        pairs = list(itertools.combinations(range(len(one)), 2))
        assert [np.shares_memory(one[i], one[j]) for i, j in pairs] == [
            np.shares_memory(two[i], two[j]) for i, j in pairs
        ]
        if not isinstance(expected, np.ndarray | list | tuple | dict | None):
            assert type(found) is type(expected) and found == expected
    assert breaks is None or len(compiled.breaks) == breaks, [str(b) for b in compiled.breaks]


def ramp(*shape, dtype="f8"):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def writes_in_place(a):
    a += 1
    return a * 2


def writes_an_item(a):
    a[0] = 5
    return a * 2


def writes_an_element(a):
    before = a[1, 2]
    a[1, 2] = 50
    return before, a[1, 2]


def writes_a_slice(a):
    a[1:] = a[:-1] * 2
    return a


def writes_a_slice_of_itself(a):
    a[1:, 1:] = a[:-1, :-1]
    a[:, ::-1] = a.copy()


def writes_through_a_view(a):
    v = a[1:]
    v *= 2
    return a + 1


def returns_the_view(a):
    v = a[1:, ::2]
    w = v.T
    w -= 3
    return w, v


def writes_through_reshape(a):
    v = a.reshape(-1)
    v[3:5] = -1
    return v[1:]


def writes_to_a_copy(a):
    v = a.T.reshape(-1)
    v += 1
    return v, a * 2


def writes_to_rows(a):
    for row in a:
        row -= row.mean()
    return a


def writes_to_a_made_array(a):
    c = a + 1
    c[0] = 0
    v = c[1:]
    v += 1
    c *= 2
    return c, v


def writes_to_zeros(a):
    out = np.zeros_like(a)
    out[1:-1] = a[:-2] + a[2:]
    out[0] = a[0]
    out[-1] = a[-1]
    return out


def fills(a):
    before = a[0].copy()
    a.fill(7)
    a[0] = before
    np.copyto(a[1], 2, where=before > 1)


def sorts(a):
    b = a[:, ::-1]
    b.sort(axis=0)
    a.sort()


def casts(a):
    i = np.zeros(a.shape, "i4")
    i[:] = a * 1.5
    i[0] = True
    i += i[1]
    a[:] = i


def steps(u):
    for _ in range(4):
        u[1:-1, 1:-1] += 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] - 2 * u[1:-1, 1:-1])
    return u.sum()


def broadcasts(a):
    a[...] = a[0]
    a[:, 0] = [9]
    a[0] = np.arange(a.shape[1])
    a[1:2] = np.ones((1, 1, a.shape[1]))


ON_MATRICES = (
    writes_in_place, writes_an_item, writes_an_element, writes_a_slice, writes_a_slice_of_itself, writes_through_a_view,
    returns_the_view, writes_to_a_copy, writes_to_rows, writes_to_a_made_array, writes_to_zeros, fills, sorts, casts,
    steps, broadcasts,
)  # fmt: skip
LAYOUTS = {
    "c": lambda: ramp(4, 5), "fortran": lambda: np.asfortranarray(ramp(4, 5)), "cut": lambda: ramp(8, 15)[1::2, ::3],
    "reversed": lambda: ramp(4, 5)[::-1, ::-1], "f4": lambda: ramp(4, 5, dtype="f4"),
    "f2": lambda: ramp(4, 5, dtype="f2"), "i2": lambda: ramp(4, 5, dtype="i2"), "large": lambda: ramp(90, 101),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", ON_MATRICES, ids=lambda f: f.__name__)
def test_writes(f, layout, backend):
    may_alias_input = f is writes_to_a_copy and layout in ("cut", "reversed")  # a reshape that may be a view or a copy
    raises = layout == "i2" and f in (writes_to_rows, steps)  # a float result does not go into integers
    same(f, lambda: (LAYOUTS[layout](),), backend=backend, breaks=None if raises else int(may_alias_input))


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_reshape_of_c_order_is_a_view(backend):
    same(writes_through_reshape, lambda: (ramp(4, 5),), backend=backend)


def shifts(a, b):
    a[1:] = b[:-1]
    b[0] = 3.0
    return a.copy(), b


def overlapping():
    base = ramp(7)
    return base[1:], base[:-1]


def one_twice():
    base = ramp(6)
    return base, base


def columns():
    base = ramp(6, 2)
    return base[:, 0], base[:, 1]


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("make", [overlapping, one_twice])
def test_arrays_that_share_memory_are_written_by_plain_python(make, backend):
    same(shifts, make, backend=backend, breaks=2)


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_columns_of_one_array_share_none(backend):
    same(shifts, columns, backend=backend)


def test_an_entry_for_arrays_apart_is_not_used_for_others():
    compiled = tcompile.compile(shifts, backend="eager")
    for make in (columns, lambda: (ramp(6), ramp(6)), overlapping, columns, one_twice):
        want, got = make(), make()
        shifts(*want)
        compiled(*got)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_single_element_is_written_in_numpy_too(backend):
    def f(a, m):
        a[0] = 5.0
        m[1, -1] = a[1]
        return a * 2

    with Recorder() as seen:
        same(f, lambda: (ramp(4), np.ones((2, 3))), backend=backend)
    assert not seen.of(FellBack)


MOVED = [
    ("[1:]", "[:-1]"), ("[:-1]", "[1:]"), ("[:]", "[::-1]"), ("[::-1]", "[:]"), ("[:3]", "[-3:]"), ("[2:5]", "[3:6]"),
    ("[0]", "[-1]"), ("[1:-1]", "[2:]"), ("[1:-1]", "[:-2]"), ("[::2]", "[1::2]"), ("[:, 1:]", "[:, :-1]"),
    ("[:]", ".T[:]"), ("[0]", "[:, 0]"), ("[:, 0]", "[0]"), ("[:3, :3]", "[1:4, 1:4]"), ("[:3, :3]", "[3:, 3:]"),
    ("[0]", "[0, ::-1]"), ("[:]", "[0]"),
]  # fmt: skip


@pytest.mark.parametrize("to, source", MOVED)
@pytest.mark.parametrize("form", ["x{a} = x{b}", "x{a} += x{b}", "x{a} = x{b} * 2 + y{b}", "y{a} = x{b}; x{b} = y{a}"])
def test_elements_go_to_other_places_of_their_array(to, source, form):
    names = {"np": np}
    exec(f"def f(x, y):\n    {form.format(a=to, b=source)}\n    return x", names)
    for order in "CF":
        check(names["f"], lambda order=order: [np.array(ramp(6, 6), order=order), ramp(6, 6) + 0.5])
    if "," not in to + source and "T" not in source:
        check(names["f"], lambda: [ramp(6), ramp(6) + 0.5])


def test_what_is_written_over_is_kept_alone():
    def f(x):
        x[1:] = x[:-1]
        x[0] = 7

    x = ramp(9)
    compiled = tcompile.compile(f)
    compiled(x)
    assert "copy" not in compile_graph(compiled.graphs[0]).source
    np.testing.assert_array_equal(x, [7, *ramp(9)[:-1]])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("number", [1.5, -0.0, np.inf, -np.inf, np.nan, 1e308, 5e-324])
def test_a_number_that_varies_is_written_as_it_is(number, dtype):
    def f(x, v):
        x[0] = v
        x[-1:] = v
        return np.float64(v), np.asarray(v)

    for compiled in check(f, lambda: [np.ones(4, dtype), number], ulp=0):
        mine, plain = np.ones(4, dtype), np.ones(4, dtype)
        with np.errstate(all="ignore"):
            compiled(mine, 2.5)
            compiled(mine, float(number))
            f(plain, float(number))
        assert mine.tobytes() == plain.tobytes()
        if dtype == "f8":
            assert not any(node.op.name == "call" for node in compiled.graphs[-1].nodes)


def test_read_only_arrays_raise():
    def f(a):
        a[0] = 1
        return a

    def frozen():
        a = ramp(4)
        a.flags.writeable = False
        return (a,)

    compiled = tcompile.compile(f, backend="eager")
    compiled(ramp(4))
    with pytest.raises(ValueError, match="read-only"):
        compiled(*frozen())
    same(f, frozen, backend="eager", breaks=1)


def test_elements_that_share_a_place():
    def f(a):
        a += 1
        return a

    def windows():
        return (np.lib.stride_tricks.as_strided(ramp(6), (4, 3), (8, 8)),)

    compiled = tcompile.compile(f, backend="eager")
    compiled(ramp(12)[::1].reshape(4, 3))
    want, got = windows(), windows()
    np.testing.assert_array_equal(compiled(*got), f(*want))


def test_effects_before_an_error_stand():
    def f(a, n):
        a[0] = 10
        a[1:] += 1
        return a / n

    same(f, lambda: (ramp(4), "x"), backend="llvm", breaks=1)

    def g(a, b):
        a[0] = 10
        a[:3] = b
        a[1] = 7

    same(g, lambda: (ramp(4), ramp(2)), backend="llvm", breaks=1)


def test_warnings_come_once_and_writes_happen_once():
    def f(a):
        a[1:] = np.log(a[:-1])
        a += 1
        return a

    with pytest.warns(RuntimeWarning, match="divide by zero") as seen:
        same(f, lambda: (np.array([0.0, 1.0, 2.0]),), backend="llvm", calls=1)
    assert len(seen) == 2  # one of the plain call, one of the compiled


def test_attributes_and_containers():
    def f(state, parts):
        state.u[1:] += state.v[1:]
        state.v[...] = state.u
        parts["a"][0] = state.u[-1]
        state.w = state.u[::2]
        parts["b"] = state.w
        state.w -= 1

    def make():
        return State(), {"a": ramp(3)}

    for backend in ("eager", "llvm"):
        same(f, make, backend=backend)


def test_a_break_between_writes(capsys):
    def f(a):
        a[0] = 1
        v = a[1:]
        v += 1
        print(a)
        v *= 2
        return v

    same(f, lambda: (ramp(4),), backend="llvm", breaks=1)
    plain, compiled = capsys.readouterr().out.splitlines()[:2]
    assert plain == compiled


def test_what_was_read_before_a_write_stays():
    def f(a):
        first, copy, item = a[0], a.copy(), a[1:2]
        number = float(a[2])
        a[:] = 0
        return first, copy, item, number

    for backend in ("eager", "llvm"):
        same(f, lambda: (ramp(4),), backend=backend)


def test_a_write_to_one_element_is_not_replayed():
    def f(x, y):
        x[0] = 1
        y[1, -1] *= 2

    same(f, lambda: (ramp(4), ramp(2, 3)), backend="eager")
    compiled = tcompile.compile(f, backend="eager")
    compiled(ramp(4), ramp(2, 3))
    assert not compiled.entries[0].replays


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (1, 1), (1, 3), (3, 1)])
def test_writes_to_parts_that_may_be_empty(shape, backend):
    def f(x, y):
        x[1:] = 7
        x[:0] = y[:0] + 1
        x[2:] += y[2:]
        z = x * 2
        z[1:] = y.sum()
        return z

    same(f, lambda: (ramp(*shape), -ramp(*shape)), backend=backend)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f4", "c8"])
@pytest.mark.parametrize("number", [True, 1, 2.5, 1j])
def test_numbers_are_cast_as_copyto_allows(number, dtype):
    def f(a):
        np.copyto(a, number)
        return a

    same(f, lambda: (ramp(3).astype(dtype),), backend="eager", breaks=None)


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_a_rolled_array_that_is_written_stays_a_view(backend):
    def f(a):
        v = np.roll(a, 1)
        v *= 2
        w = np.roll(a[0], 2)
        np.copyto(w, a[1])
        return v, w

    def owns(result):
        return [v.flags.owndata for v in result]

    same(f, lambda: (ramp(3, 4),), backend=backend)
    assert owns(tcompile.compile(f, backend=backend)(ramp(3, 4))) == owns(f(ramp(3, 4))) == [False, False]


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_equal_arrays_that_are_written_are_two(backend):
    def f(a):
        u, v = np.zeros((3, 4)), np.zeros((3, 4))
        s = np.sort(u)
        u[:, 1:] = a[:, 1:] + s[:, 1:]
        v[:, 1:] = a[:, :-1] + s[:, 1:]
        return u, v

    same(f, lambda: (ramp(3, 4),), backend=backend)


@pytest.mark.parametrize("write", ["pass", "v[0] = 1", "v += 1", "v.fill(1)", "v.sort()", "v[v > 0] = 1"])
@pytest.mark.parametrize("made", ["np.linspace(0, 1, 5)", "np.iscomplex(x)", "np.resize(x, (2, 3))", "np.roll(x, 1)"])
def test_what_the_library_makes_as_a_view_stays_one(made, write):
    space = {"np": np}
    exec(f"def f(x):\n    v = {made}\n    {write}\n    return v, v[1:]", space)
    check(space["f"], lambda: [ramp(5)])


@pytest.mark.parametrize("write", ["pass", "v[0] = 1", "v += 1", "v.fill(1)", "v.sort()", "v[v > 0] = 1"])
@pytest.mark.parametrize(
    "made", ["x.T.reshape(-1, 2)", "x.reshape(-1, order='F')", "(x + 1).T.reshape(8)", "x.T.reshape(2, 4)[1:]"]
)
def test_a_reshape_that_copies_stays_a_view_of_its_copy(made, write):
    space = {"np": np}
    exec(f"def f(x, n):\n    v = {made}\n    {write}\n    return v, v[1:]", space)
    check(space["f"], lambda: [ramp(4, 2), 3])
    exec(f"def f(x, n):\n    v = {made}\n    for i in range(n):\n        {write}\n    return v, v[1:]", space)
    check(space["f"], lambda: [ramp(4, 2), 40])


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_a_reshape_of_what_was_written_may_show_it(backend):
    def f(a):
        a[1] = 1
        v = a.reshape(-1)
        v[1] = 5
        return v

    def every_other_of_rows():  # a reshape without a copy, as its strides turn out
        return (ramp(2, 3, 16)[..., ::2],)

    def columns():
        return (ramp(6, 4)[:, :2],)

    same(f, every_other_of_rows, backend=backend, breaks=1)
    same(f, columns, backend=backend, breaks=1)


@pytest.mark.parametrize("view", ["ravel(d)", "ascontiguousarray(d)"])
@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_an_axis_that_turns_out_to_be_one_element_long(view, backend):
    space = {"np": np}
    exec(f"def f(a):\n    d = np.diff(a[:, ::2].T, axis=0)\n    v = np.{view}\n    v[:] = 1\n    return d, v", space)
    compiled = tcompile.compile(space["f"], backend=backend, dynamic=True)
    for shape in ((3, 9), (5, 7), (3, 3), (4, 4)):
        for found, expected in zip(compiled(ramp(*shape)), space["f"](ramp(*shape)), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", ["v[v == 1]", "v[:1] + 1", "np.array([[7]])", "[7]", "v[v == 1].sum(keepdims=True)"])
@pytest.mark.parametrize("target", ["v[0]", "v[-1]", "v[..., 0]", "v[0:1]"])
def test_an_element_does_not_take_an_array(target, value):
    scope = {"np": np}
    exec(f"def f(v):\n    {target} = {value}\n    return v + 1", scope)
    for items in ([1, 3], [3, 3]):
        check(scope["f"], lambda items=items: [np.array(items)])


def written_before_a_loop(a, m, b, places):
    m[1:] += m[0]
    c = a * 2
    m[2, 1] = c[3]
    c[1:-1] = b
    total = 0.0
    for i in range(len(places)):
        total += c[places[i]]
    return total


def written_before_a_call(a, m, b, places):
    m[1:] += m[0]
    c = a * 2
    m[2, 1] = c[3]
    c[1:-1] = b
    return np.linalg.cholesky(c[:4].reshape(2, 2) * (10 - places[2])) / b


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [written_before_a_loop, written_before_a_call])
def test_arrays_are_put_back_where_a_temporary_one_waits_for_them(f, backend):
    """What is written to a copy in place waits for those who read it, and they may write to arguments."""
    tcompile.reset()
    compiled = tcompile.compile(f, backend=backend)
    for last in (3, 50, 3, 50):
        a, b = np.array([8.0, 1, 2, 9, 4, 5, 6, 7]), np.full(6, 8.0)

        def args():
            return a.copy(), np.arange(20.0).reshape(4, 5), b.copy(), np.array([1, 2, last] * 4)

        assert_same_run(Run(compiled, args()), Run(f, args()))


def raised_before_an_assignment(a, m, h, s):
    a[-1] = math.sqrt(h[2])
    m[:, 1] = np.sqrt(a[:4])
    a[0] = float(h[1]) / float(h[0])
    m[2] = a[:5]
    return a[0] * float(s) ** 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_of_pythons_numbers_come_before_what_is_written_after_them(backend):
    tcompile.reset()
    compiled = tcompile.compile(raised_before_an_assignment, backend=backend)
    for first, third in ((1.0, 4.0), (1.0, -4.0), (0.0, 4.0), (2.0, 9.0)):

        def args():
            numbers = np.array([first, 5.0, third])
            return np.arange(8.0), np.arange(20.0).reshape(4, 5), numbers, np.float64(3.0)

        assert_same_run(Run(compiled, args()), Run(raised_before_an_assignment, args()))


def test_ints_of_thousands_of_digits_break():
    def function(x, k):
        huge = 1 << 40**k
        x[0] = 1
        return huge <= abs(x[1]), x + 1

    assert_same_run(Run(tcompile.compile(function), (np.arange(3), 3)), Run(function, (np.arange(3), 3)))


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex128"])
def test_ints_beyond_all_floats_are_numpys_to_refuse(dtype):
    def function(x, y):
        x[0] = 1
        y[1] = 1 << 1600
        return x + 1

    def args():
        return np.zeros(3), np.zeros(3, dtype)

    tcompile.reset()
    with tcompile.config.patch(verify=True):
        assert_same_run(Run(tcompile.compile(function), args()), Run(function, args()))
