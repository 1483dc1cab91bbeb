"""Questions about symbolic sizes: answered without a guard only where every value gives the same answer."""

import operator

import pytest

from tcompile.graph import Node, ops
from tcompile.graph.ops.control import is_branch
from tcompile.graph.sizes import ShapeEnv, SymInt, UnprovableSizeError

SIGNS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@pytest.mark.parametrize("minimum", [None, 0, 2])
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("factor", [1, -1, 2, -2])
def test_an_answer_without_a_guard_holds_for_every_value(minimum, sign, factor):
    compare = SIGNS[sign]
    for offset in range(-7, 8):
        for hint in (2, 3, 5):
            env = ShapeEnv()
            size = env.symbol(hint, minimum)
            answer = compare(size * factor + offset, 0)
            assert answer is compare(hint * factor + offset, 0)
            least = -20 if minimum is None else minimum
            values = [compare(value * factor + offset, 0) for value in range(least, 40)]
            if env.guards:
                # The guard must be one that separates the values by their answers.
                ((relation, holds),) = env.guards.items()
                seen = [eval(relation, {"s0": value}) is holds for value in range(least, 40)]
                assert seen == [value is answer for value in values]
            else:
                assert set(values) == {answer}


def test_what_follows_from_the_minimum_needs_no_guard():
    env = ShapeEnv()
    size = env.symbol(5, minimum=2)
    assert not (size == 0 or size == 1 or size < 2)
    assert size >= 2 and size > 1 and size * size >= 4
    assert not env.guards
    assert size == 5 and size != 7
    assert list(env.guards) == ["s0 - 5 == 0", "s0 - 7 == 0"]


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("factor", [1, -1, 2, -3])
def test_an_answer_bounds_the_symbol_as_long_as_its_guard_is_there(sign, factor):
    compare = SIGNS[sign]
    for offset in range(-7, 8):
        for hint in (-2, 1, 3):
            env = ShapeEnv()
            size = env.symbol(hint)
            answer = compare(size * factor + offset, 0)
            low, high = size.bounds()
            values = [value for value in range(-40, 40) if compare(value * factor + offset, 0) is answer]
            assert low in (None, values[0])
            assert high in (None, values[-1])
            assert (low is None and high is None) is (sign in ("==", "!="))
            env.guards.popitem()
            assert size.bounds() == (None, None)


def test_what_follows_from_an_answer_needs_no_guard():
    env = ShapeEnv()
    size = env.symbol(5)
    assert size >= 2
    assert not (size == 1 or size - 2 < 0)
    assert (size + 2) * size > 7
    assert list(env.guards) == ["s0 - 2 >= 0"]


def test_two_sizes():
    env = ShapeEnv()
    a, b = env.symbol(5, minimum=2), env.symbol(5, minimum=2)
    assert a == b and a + b == 10 and a * b == b * a
    assert len(env.guards) == 2
    env.frozen = True
    with pytest.raises(UnprovableSizeError):
        bool(a == 6)
    assert isinstance(a - b, SymInt)


def test_environments_that_share_names_call_what_stands_for_the_same_alike():
    first, second = ShapeEnv(), ShapeEnv()
    second.names = first.names
    n, k = first.symbol(4, stands_for="n"), first.symbol(5, stands_for="k")
    assert str(second.symbol(9, stands_for="k")) == str(k)
    other = second.symbol(9)
    assert str(other) not in (str(n), str(k))
    inner = second.counter(3, stands_for="loop")
    assert (2 * inner + second.symbol(4, stands_for="n")).counters() == [str(inner)]
    assert str(second.symbol(4, stands_for="n")) not in (str(n), str(k), str(other), str(inner))


@pytest.mark.parametrize(
    ("step", "iterations"),
    [
        (lambda k: k // 3 + 1, 60), (lambda k: k * k % 101, 60), (lambda k: k * k + 1, 9),
        (lambda k: (k * -1 + 2) // 5, 60), (lambda k: k % 7 + k, 60),
    ],
)  # fmt: skip
def test_sizes_that_grow_and_grow_are_fixed(step, iterations):
    env = ShapeEnv()
    size, number = env.symbol(5, minimum=0), 5
    for _ in range(iterations):
        size, number = step(size), step(number)
        assert isinstance(size, int) or len(str(size)) < 1000
    assert size == number
    assert env.guards
    assert all(eval(text, {"s0": 5}) is holds for text, holds in env.guards.items())


def test_frozen_environments_let_sizes_grow():
    env = ShapeEnv()
    size = env.symbol(5, minimum=0)
    env.frozen = True
    for _ in range(100):
        size = size // 3 + 1
    assert not isinstance(size, int)


def test_sizes_lie_between_those_of_the_first_and_the_last_iteration():
    env = ShapeEnv()
    n = env.symbol(9, minimum=2)
    i = env.counter(n - 2)
    j = env.counter(i)
    assert (n - 1 - i).bounds() == (1, None)
    assert (n - i + j).bounds() == (2, None)
    assert (i - j).bounds() == (0, None)
    assert (n - i - j).bounds() == (None, None)  # from 4 - n on
    assert (n * n - i).bounds() == (None, None)
    assert (i * j + 1).bounds() == (1, None)  # not linear
    assert (3 - i // 2).bounds() == (None, None)
    assert (10 - 2 * env.counter(4)).bounds() == (2, 10)
    assert not env.guards


def test_whether_a_loop_is_a_branch_is_asked_without_deciding_its_bounds():
    bound = ShapeEnv().symbol(5, minimum=0)
    for operands in ((0, bound), (bound, 1), (0, 2)):
        assert not is_branch(Node(ops.EXIT_LOOP, operands, {}, (), "loop"))
    assert is_branch(Node(ops.EXIT_LOOP, (0, 1), {}, (), "loop"))
