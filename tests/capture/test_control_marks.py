"""``mark_dynamic``, ``maybe_mark_dynamic`` and ``mark_static``."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile import mark_dynamic, mark_static, maybe_mark_dynamic
from tcompile.annotations import marks
from tcompile.errors import InvalidArgument, InvalidType

from .helpers import guards


def double(x):
    return x * 2 + x.shape[0]


def marked(mark, *shape, axis=0, **bounds):
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    mark(x, axis, **bounds)
    return x


def run(compiled, f, arguments):
    for x in arguments:
        assert_same(compiled(x), f(x))
    return len(compiled.entries)


@pytest.mark.parametrize("mark", [mark_dynamic, maybe_mark_dynamic])
@pytest.mark.parametrize("dynamic", [None, True, False])
def test_a_marked_axis_is_open_at_once(mark, dynamic):
    compiled = tcompile.compile(double, dynamic=dynamic)
    assert run(compiled, double, [marked(mark, n, 3) for n in (4, 5, 9)]) == 1
    assert "x.shape[0] >= 2" in guards(compiled)


def test_sizes_outside_the_bounds_are_compiled_by_themselves():
    compiled = tcompile.compile(double)
    assert run(compiled, double, [marked(mark_dynamic, n, 3, min=4, max=8) for n in (4, 8, 5)]) == 1
    assert {"x.shape[0] >= 4", "x.shape[0] <= 8"} <= set(guards(compiled))
    assert run(compiled, double, [np.ones((9, 3))]) == 2
    assert "x.shape[0] <= 8" in compiled.recompiles[0][0]


def test_bounds_answer_questions():
    def f(x):
        return x * 2 if x.shape[0] > 3 else x * 3

    compiled = tcompile.compile(f)
    assert run(compiled, f, [marked(mark_dynamic, n, min=4) for n in (4, 7, 5)]) == 1
    assert not any("> 3" in text or "> 0" in text for text in guards(compiled))

    def g(x):
        return x * 2 if x.shape[0] * 2 < 20 else x * 3

    compiled = tcompile.compile(g)
    assert run(compiled, g, [marked(mark_dynamic, n, max=9) for n in (4, 9, 5)]) == 1
    assert not any("20" in text for text in guards(compiled))


def test_several_axes():
    compiled = tcompile.compile(double)
    shapes = [(3, 4, 2), (5, 4, 7), (9, 4, 8)]
    assert run(compiled, double, [marked(mark_dynamic, *shape, axis=(0, -1)) for shape in shapes]) == 1
    assert run(compiled, double, [marked(mark_dynamic, 3, 5, 2, axis=[0, 2])]) == 2


def test_static_axes_stay_static():
    for settings in ({}, {"dynamic": True}):
        tcompile.reset()
        compiled = tcompile.compile(double, **settings)
        arguments = [marked(mark_static, n, 3) for n in (4, 5, 6)]
        assert run(compiled, double, arguments) == 3
    x = np.ones((4, 3))
    mark_static(x)
    tcompile.reset()
    compiled = tcompile.compile(double, dynamic=True)
    compiled(x)
    assert "x.shape == (4, 3)" in guards(compiled)
    mark_dynamic(x, 0)
    tcompile.reset()
    compiled(x)
    assert "x.shape[0] >= 2" in guards(compiled)


def needs_five(x):
    return x + np.arange(5.0)


def asks(x):
    return x * (3 if x.shape[0] == 5 else 2)


def loops(x):
    return sum(x[i] for i in range(x.shape[0]))


@pytest.mark.parametrize(("f", "line"), [
    (needs_five, "x + np.arange"), (asks, "x.shape[0] == 5"), (loops, "for i in range"),
])  # fmt: skip
def test_a_marked_axis_that_is_fixed_is_an_error(f, line):
    compiled = tcompile.compile(f, backend="eager")
    with pytest.raises(InvalidArgument, match=r"x\.shape\[0\] is marked by mark_dynamic.*x\.shape\[0\] == 5") as caught:
        compiled(marked(mark_dynamic, 5))
    assert line in str(caught.value) and "maybe_mark_dynamic" in str(caught.value)
    assert_same(compiled(marked(maybe_mark_dynamic, 5)), f(np.arange(5.0)))
    assert not compiled.breaks
    tcompile.reset()
    with tcompile.config.patch(suppress_errors=True), pytest.warns(UserWarning, match="mark_dynamic"):
        assert_same(compiled(marked(mark_dynamic, 5)), f(np.arange(5.0)))


@pytest.mark.parametrize("size", [0, 1])
def test_sizes_zero_and_one_cannot_be_open(size):
    compiled = tcompile.compile(double)
    with pytest.raises(InvalidArgument, match=rf"x\.shape\[0\] == {size}"):
        compiled(marked(mark_dynamic, size, 3))
    assert_same(compiled(marked(maybe_mark_dynamic, size, 3)), double(np.arange(size * 3.0).reshape(size, 3)))


def test_questions_that_leave_many_sizes_are_no_error():
    def f(x):
        half = x.shape[0] // 2
        return x[:half] + x[half : 2 * half] if x.shape[0] % 2 == 0 and x.shape[0] > 3 else x

    compiled = tcompile.compile(f)
    assert run(compiled, f, [marked(mark_dynamic, n) for n in (4, 8, 6)]) == 1


def test_marks_belong_to_one_array_and_die_with_it():
    gc.collect()
    before = len(marks._table)
    x = marked(mark_dynamic, 4)
    assert marks.marks_of(x) and not marks.marks_of(x[:]) and not marks.marks_of(x.copy())
    assert len(marks._table) == before + 1
    del x
    gc.collect()
    assert len(marks._table) == before
    threads = [
        threading.Thread(target=lambda: [marked(mark_dynamic, 4, 4, axis=i % 2) for i in range(500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert len(marks._table) == before


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: mark_dynamic([1], 0), InvalidType, "array must be a NumPy array, got list"),
    (lambda x: mark_dynamic(np.float64(1), 0), InvalidType, "got float64"),
    (lambda x: mark_dynamic(x, 2), InvalidArgument, "axis 2 is out of bounds for an array of 2 dimensions"),
    (lambda x: mark_dynamic(x, 0.5), InvalidType, "an int or a sequence of ints, got float 0.5"),
    (lambda x: mark_dynamic(x, (0, None)), InvalidType, "got NoneType None"),
    (lambda x: mark_dynamic(x, 0, min="2"), InvalidType, "min must be an int or None, got str '2'"),
    (lambda x: mark_dynamic(x, 0, max=-1), InvalidArgument, "max must be at least 0, got -1"),
    (lambda x: mark_dynamic(x, 0, min=5, max=4), InvalidArgument, "min must be at most max"),
    (lambda x: mark_dynamic(x, 0, min=5), InvalidArgument, "axis 0 has size 4, outside of min=5"),
    (lambda x: maybe_mark_dynamic(x, -3), InvalidArgument, "axis -3 is out of bounds"),
    (lambda x: mark_static("x"), InvalidType, "mark_static: array must be"),
])  # fmt: skip
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call(np.ones((4, 3)))
