"""Which functions look at their callers: asked of what names are bound to. Those that stay plain are announced."""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
import warnings

import numpy as np
import pytest

import tcompile
from tcompile.observe.events import FellBack
from tcompile.observe.recorder import Recorder
from tcompile.runtime.frames import REASON, look_at_callers

X = np.linspace(0, 1, 12)
stacked, told, log = inspect.stack, warnings.warn, logging.getLogger(__name__)


class Holder:
    stack = staticmethod(inspect.stack)


holder = Holder()


def by_module():
    return inspect.stack()[1]


def by_another_name():
    return stacked()


def by_an_object():
    return holder.stack()


def by_default(x, _frame=sys._getframe):
    return _frame(1)


def by_attribute_of_a_local(x):
    return x.f._getframe(1)


def in_a_comprehension(x):
    return [traceback.extract_stack() for _ in x]


def by_place(x):
    warnings.warn("a", UserWarning, 2)


def by_place_and_another_name(x):
    told("a", UserWarning, 3)


def by_a_variable(x, level):
    warnings.warn("a", UserWarning, level)


def by_keyword(x):
    warnings.warn("a", UserWarning, stacklevel=2)


def by_dict(x):
    warnings.warn("a", stacklevel=2)


def by_tuple(x, given):
    warnings.warn(*given)


def by_a_logger(x):
    log.warning("a", extra={}, stacklevel=2)


def by_a_logger_that_shows_it(x):
    log.info("a", stack_info=True)


def by_import():
    import inspect as i

    return i.stack()


def by_import_from():
    from inspect import stack

    return stack()


def by_a_variable_of_the_module():
    module = inspect
    return module.stack()


def on_several_lines(x):
    warnings.warn(
        f"a {x}" if x else "b",
        UserWarning,
        2,
    )


def by_closure():
    frame = sys._getframe
    return lambda: frame(1)


LOOKS = [
    by_module, by_another_name, by_an_object, by_default, by_attribute_of_a_local, in_a_comprehension, by_place,
    by_place_and_another_name, by_a_variable, by_keyword, by_dict, by_tuple, by_a_logger, by_a_logger_that_shows_it,
    by_import, by_import_from, by_a_variable_of_the_module, on_several_lines, by_closure(),
]  # fmt: skip


def numpys_stack(x):
    return np.stack([x, x]) * 3


def a_method_stack(x):
    return x.stack()


def a_method_warn(x):
    return x.warn(3)


def a_level_of_one(x):
    warnings.warn("a", UserWarning, 1)


def a_level_of_one_by_keyword(x):
    warnings.warn("a", stacklevel=1)


def a_log_without(x):
    log.info("a", stack_info=False)


def a_local_of_that_name(x, stacklevel):
    return max(x, stacklevel)


def an_unbound_name(x):
    return later(x)  # noqa: F821


def a_warning_and_an_int(x):
    warnings.warn("a", UserWarning)
    return np.maximum(x, 2) * 3


def an_old_logger_and_an_int(x):
    log.warn("a %d", 5)
    return x * 3


def a_list_of_that_name(x):
    stack = [x]
    stack.append(2)
    return np.stack(stack)


LOOKS_NOT = [
    numpys_stack, a_method_stack, a_method_warn, a_level_of_one, a_level_of_one_by_keyword, a_log_without,
    a_local_of_that_name, an_unbound_name, a_warning_and_an_int, an_old_logger_and_an_int, a_list_of_that_name,
]  # fmt: skip


@pytest.mark.parametrize("function", LOOKS)
def test_what_looks_at_callers(function):
    look = look_at_callers(function)
    first = function.__code__.co_firstlineno
    assert look is not None and first <= look.line <= first + 8


@pytest.mark.parametrize("function", LOOKS_NOT)
def test_what_does_not(function):
    assert look_at_callers(function) is None


def test_a_name_that_is_bound_later():
    names = {}
    exec("def f(): return stack()", names)
    assert look_at_callers(names["f"]) is None
    names["stack"] = inspect.stack
    assert str(look_at_callers(names["f"])) == "stack in line 1"


def test_a_callee_that_stacks_is_compiled_by_itself():
    def stacks(x):
        y = np.stack([x, x]) * 3
        print(end="")
        return y + 1

    def f(x):
        return stacks(x * 2) - 1

    compiled = tcompile.compile(f, backend="eager")
    with Recorder() as seen:
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X), f(X))
    assert not seen.of(FellBack)
    assert any("stacks" in cache.name and cache.graphs for cache in compiled.cache.called)


def test_a_callee_that_stays_plain_is_announced_once_and_explained():
    def who():
        return inspect.stack()[1].function

    def f(x):
        y = x * 2
        return y + len(who())

    compiled = tcompile.compile(f, backend="eager")
    with Recorder() as seen:
        for _ in range(3):
            np.testing.assert_array_equal(compiled(X), X * 2 + 1)
    (event,) = seen.of(FellBack)
    line = who.__code__.co_firstlineno + 1
    assert event.reason == REASON and event.function == who.__qualname__
    assert event.detail == f"{who.__qualname__}: inspect.stack in line {line}"
    for _ in range(2):
        assert f"inspect.stack in line {line}" in str(tcompile.explain(f)(X))
