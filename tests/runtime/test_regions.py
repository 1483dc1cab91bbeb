"""Graph breaks: capture goes on right after them, in the same frame, and finds its entries again."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys

import numpy as np
import pytest

import tcompile
from tcompile.errors import Unsupported

X = np.linspace(-1.0, 2.0, 6)
ONE = sys.version_info >= (3, 13)  # there a comparison and the branch on it are one instruction


def ops(compiled):
    """The number of operations of each graph, oldest first."""
    return [graph.op_count for graph in compiled.graphs]


def reasons(compiled):
    """The reasons of the breaks, in order."""
    return [broke.reason.id for broke in compiled.breaks]


def toy_example(a, b):
    x = a / (np.abs(a) + 1)
    print("woo", end="")
    if b.sum() < 0:
        b = b * -1
    return x * b


def bar(a, b):
    x = a / (np.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def test_a_print_and_a_branch_on_values():
    compiled = tcompile.compile(toy_example, backend="eager")
    np.testing.assert_array_equal(compiled(X, X), toy_example(X, X))
    assert ops(compiled) == [3, 2 - ONE, 1] and reasons(compiled) == ["input-output", "data-dependent-branch"]


def test_the_graph_before_a_branch_serves_both_ways():
    compiled = tcompile.compile(bar, backend="eager")
    np.testing.assert_array_equal(compiled(X, X), bar(X, X))
    np.testing.assert_array_equal(compiled(X, X - 5), bar(X, X - 5))
    assert ops(compiled) == [5 - ONE, 1, 2] and reasons(compiled) == ["data-dependent-branch"]
    before = [entry.hits for entry in compiled.entries]
    compiled(X, X)
    compiled(X, X - 5)
    assert ops(compiled) == [5 - ONE, 1, 2] and sum(e.hits for e in compiled.entries) == sum(before) + 4


def test_a_break_in_a_loop_makes_no_graph_for_each_iteration():
    def f(x, n):
        for i in range(n):
            x = x * 2 + 1
            print(i, end="")
            x = x - i
        return x.sum()

    compiled = tcompile.compile(f, backend="eager")
    for n in (5, 50):
        assert compiled(X, n) == f(X, n)
    assert ops(compiled) == [2, 1, 1]  # before print, after it (for any i), and the sum
    assert reasons(compiled) == ["input-output"]


def test_breaks_inside_blocks():
    log = []

    @contextlib.contextmanager
    def noted(name):
        log.append(f"enter {name}")
        try:
            yield name
        finally:
            log.append(f"leave {name}")

    def f(x, fail):
        y = x + 1
        with noted("outer") as name:
            y = y * 2
            print(name, end="")
            y = y - x
            try:
                y = np.sqrt(np.abs(y)) + 1
                if fail:
                    raise ValueError(name)
                y = y * 3
            except ValueError as error:
                log.append(str(error))
                y = -y
            else:
                y = y + 5
            finally:
                log.append("finally")
                y = y / 2
        return y - 1

    compiled = tcompile.compile(f, backend="eager")
    for fail in (False, True, False, True):
        log.clear()
        want, wanted_log = f(X, fail), list(log)
        log.clear()
        np.testing.assert_array_equal(compiled(X, fail), want)
        assert log == wanted_log
    assert sum(ops(compiled)) >= 12


def test_breaks_in_the_middle_of_an_expression():
    def f(x):
        return np.stack([x + 1, [print(end=""), x * 2][1], x - float(x.sum())]).sum(axis=0) + len(str(x.max()))

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), f(X))


def test_breaks_in_comprehensions():
    def f(x, n):
        rows = [x * i + (print(end="") or 1) for i in range(n)]
        table = {str(i): row.sum() for i, row in enumerate(rows) if row[0] < 0 or i}
        return rows[-1] + 1, table

    compiled = tcompile.compile(f, backend="eager")
    for n in (2, 4):
        got, want = compiled(X, n), f(X, n)
        np.testing.assert_array_equal(got[0], want[0])
        assert got[1] == want[1]


def test_generators_are_captured_between_their_yields():
    def f(x):
        sent = yield x * 2 + 1
        with np.errstate(all="ignore"):
            got = yield from (x * i for i in range(2))
        yield (x + sent) * 3, got

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        results = []
        for function in (compiled, f):
            running = function(X)
            results.append([next(running), running.send(4), *running])
        for got, want in zip(*results, strict=True):
            np.testing.assert_array_equal(got[0], want[0])
    assert 2 in ops(compiled)


def test_coroutines_are_captured_between_their_awaits():
    async def f(x):
        y = x * 2 + 1
        await asyncio.sleep(0)
        async with contextlib.AsyncExitStack():
            y = y - x
        return y * 3

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        np.testing.assert_array_equal(asyncio.run(compiled(X)), asyncio.run(f(X)))
    assert ops(compiled)[0] == 2


def test_locals_that_a_break_finds():
    def f(x, flag):
        a = x + 1
        if flag:
            b = a * 2
        print(end="")
        del a
        try:
            return b - 1
        except UnboundLocalError as error:
            return str(error)
        finally:
            print(sorted(locals()), end="")

    compiled = tcompile.compile(f, backend="eager")
    for flag in (True, False, True):
        np.testing.assert_array_equal(compiled(X, flag), f(X, flag))


def test_an_error_after_a_break_has_the_users_lines():
    def f(x):
        y = x + 1
        print(end="")
        z = y.reshape(7, 7)  # here
        return z

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot reshape") as caught:
            compiled(X)
        frames = [entry for entry in caught.traceback if entry.path.name == "test_regions.py"]
        assert "# here" in str(frames[-1].statement)
        assert caught.value.__context__ is None


def test_fullgraph_raises_what_the_break_says():
    with pytest.raises(Unsupported, match="input-output"):
        tcompile.compile(toy_example, fullgraph=True)(X, X)

    def numbers(x):
        yield x + 1

    with pytest.raises(Unsupported):
        next(tcompile.compile(numbers, fullgraph=True)(X))


def test_a_helper_that_is_defined_again_is_seen_after_a_break():
    space = {"np": np}
    exec("def helper(x): return x + 1\ndef f(x):\n    print(end='')\n    return helper(x) * 2", space)
    compiled = tcompile.compile(space["f"], backend="eager")
    np.testing.assert_array_equal(compiled(X), (X + 1) * 2)
    exec("def helper(x): return x - 1", space)
    np.testing.assert_array_equal(compiled(X), (X - 1) * 2)


def test_effects_around_a_break_happen_once_and_in_order():
    events = []

    class Box:
        total = 0

    def f(x, box):
        box.total += 1
        events.append(("a", box.total))
        y = x * 2
        print(end="")
        events.append(("b", box.total))
        box.total += 10
        return y + box.total

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(3):
        want, got = Box(), Box()
        events.clear()
        value, told = f(X, want), list(events)
        events.clear()
        np.testing.assert_array_equal(compiled(X, got), value)
        assert events == told and got.total == want.total == 11


def test_rewritten_code_that_has_settled_opens_again():
    def f(x, n):
        print(end="")
        y = x * 2
        if n > 3:
            print(end="")
            y = y + 1
            print(end="")
        return y - n

    compiled = tcompile.compile(f, backend="eager")
    for n in [1] * 70 + [5] * 70 + [1, 5, 2]:
        np.testing.assert_array_equal(compiled(X, n), f(X, n))
    assert len(reasons(compiled)) == 3 and compiled.cache.rewritten is not compiled.cache.built
    assert set(compiled.cache.rewritten.resume_points) < set(compiled.cache.built.resume_points)


def test_rewritten_code_that_was_built_under_stress_settles_with_its_own_targets():
    def f(x, n):
        y = x * 2
        for i in range(n):
            y = (y + i) * x
        return y - n

    compiled = tcompile.compile(f, backend="eager")
    with tcompile.config.patch(stress_breaks=3):
        np.testing.assert_array_equal(compiled(X, 2), f(X, 2))
    for n in [2] * 70 + [3]:
        np.testing.assert_array_equal(compiled(X, n), f(X, n))
    assert compiled.cache.rewritten is not compiled.cache.built


def test_a_generator_that_a_loop_drops_ends_at_its_place():
    def guarded(log):
        try:
            yield 1
        finally:
            log.append("closed")

    def f(log):
        for _ in functools.partial(guarded, log)():
            _ = log + log
            break
        log.append("after")
        return log

    compiled = tcompile.compile(f, backend="eager")
    with tcompile.config.patch(stress_capture=True):
        for _ in range(3):
            assert compiled([]) == f([]) == ["closed", "after"]


def test_long_loops_without_arrays_are_given_up_early():
    def f(a, b):
        n = len(a)
        c = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += a[i][k] * b[k][j]
                c[i][j] = s
        return c

    a, b = ([[float(i * j % m) for j in range(20)] for i in range(20)] for m in (7, 5))
    compiled = tcompile.compile(f)
    for _ in range(3):
        assert compiled(a, b) == f(a, b)
    assert len(compiled.entries) < 10
    assert "A loop without arrays needs more than 500 loads and guards" in compiled.breaks[0].explanation


def test_long_loops_over_constants_are_folded():
    def f(x):
        words = []
        for i in range(20):
            for k in range(20):
                words.append(f"{i}-{k % 7}")
        return x * len("".join(words)) + (x - 1) * words.index("3-2")

    compiled = tcompile.compile(f)
    np.testing.assert_array_equal(compiled(X), f(X))
    assert not compiled.breaks and len(compiled.graphs) == 1


def test_a_region_that_never_captures_anything_is_closed():
    def f(n):
        memo, most = {1: 1}, 0
        for i in range(1, n):
            k, steps = i, 0
            while k not in memo:
                k, steps = k // 2 if k % 2 == 0 else 3 * k + 1, steps + 1
            memo[i] = memo[k] + steps
            most = max(most, memo[i])
        return most

    compiled = tcompile.compile(f)
    for _ in range(3):
        assert compiled(500) == f(500)
    assert len(compiled.entries) <= 12


def test_arrays_after_long_loops_without_them_are_captured():
    def f(x, n):
        table = {}
        for i in range(n):
            for k in range(5):
                table[i, k] = (i * k) % 7 + (i ^ k)
        return x * table[3, 2] + (x - 1) * len(table)

    compiled = tcompile.compile(f)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X, 300), f(X, 300))
    assert any(entry.graph is not None for entry in compiled.entries)
