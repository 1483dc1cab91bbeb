"""Reports about exceptions: try, finally, raise, context managers."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from reports.programs import Table

TABLE = Table()
NUMBERS = lambda: (np.arange(3.0),)


@TABLE.calls("numba-2097", NUMBERS, lambda: (np.arange(3),))
def counted_in_finally(x):
    """An exception is caught, and finally changes a variable."""
    try:
        y = x * 2
        raise ValueError("no")
    except ValueError:
        pass
    finally:
        y = y + 1
    return y


@TABLE.calls("numba-7379", lambda: (np.ones(2), True), lambda: (np.ones(2), False))
def finally_alone(x, raises):
    """finally prints while an exception passes through it, if there is one."""
    try:
        print("work")
        if raises:
            raise ValueError("in the middle")
        x += 1
    finally:
        print("done")
    return x


@TABLE.calls("numba-8845", NUMBERS, lambda: (np.ones(3),))
def raised_while_handled(x):
    """An exception is raised while another one is handled, which it remembers."""
    try:
        try:
            raise TypeError(2)
        except Exception:
            raise ValueError(1)
    except ValueError as error:
        return x * 2, repr(error), repr(error.__context__)


@TABLE.calls("numba-764", lambda: (np.arange(3.0), 0), lambda: (np.arange(3.0), 2), lambda: (np.arange(3.0), 7))
def handled(x, i):
    """Errors of an index and of a division are caught apart."""
    try:
        return x / (1 // i) + x[i]
    except ZeroDivisionError:
        return -1
    except IndexError as error:
        return str(error)


@TABLE.calls("pytorch-103706", NUMBERS, lambda: (np.ones((2, 2)),))
def return_and_finally(x):
    """A value is returned out of try, and finally does something else."""
    log = []
    try:
        return x * 2, log
    finally:
        log.append("left")
        print(len(log))


class Watching:
    def __init__(self, swallows):
        self.swallows, self.log = swallows, []

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(kind and kind.__name__)
        return self.swallows


@TABLE.session("pytorch-147776")
def inside_a_manager(jit):
    """An exception leaves a context manager, which swallows it or does not."""

    @jit
    def f(x, manager):
        y = x + 1
        with manager:
            y = y * 2
            raise KeyError("lost")
        return y

    seen = []
    for swallows in (True, False, True, False, True):
        manager = Watching(swallows)
        try:
            seen.append(f(np.arange(3.0), manager))
        except KeyError as error:
            seen.append(str(error))
        seen.append(manager.log)
    return seen


@TABLE.session("pytorch-109309")
def exit_stack(jit):
    """Several managers are entered through an ExitStack."""

    @jit
    def f(x, managers):
        with contextlib.ExitStack() as stack:
            for manager in managers:
                stack.enter_context(manager)
            return x * len(managers)

    managers = [Watching(False) for _ in range(3)]
    return [f(np.arange(3.0), managers) for _ in range(3)], [m.log for m in managers]


@TABLE.session("pytorch-195488")
def state_after_error(jit):
    """An error in a block with another error state leaves the old state behind."""

    @jit
    def f(x, i):
        with np.errstate(divide="raise", invalid="ignore"):
            return 1 / x[i]

    seen = []
    for i in (1, 9, 0, 1, 9, 0):
        try:
            seen.append(f(np.arange(3.0), np.array([i])))
        except (IndexError, FloatingPointError) as error:
            seen.append(repr(error))
        seen.append(np.geterr())
    return seen


class Custom:
    pass


@TABLE.calls("pytorch-165385", NUMBERS, lambda: (np.ones(2),))
def forbidden_attribute(x):
    """An attribute that cannot be set is set, and the error caught."""
    obj = Custom()
    try:
        obj.__weakref__ = None
    except AttributeError as error:
        return x + 1, str(error)
    return x


@TABLE.calls("pytorch-198197", NUMBERS, lambda: (np.array([0.5]),))
def missing_attribute(x):
    """getattr of a built-in type without the attribute takes the way of except."""

    def has(obj, name):
        try:
            getattr(obj, name)
        except AttributeError:
            return None
        return 1

    found = [has(kind, "__nonexistent__") for kind in (int, str, list, dict, type)]
    return np.cos(x) if found == [None] * 5 else np.sin(x)


class Borrower:
    append = list.append


@TABLE.calls("pytorch-190755", NUMBERS, lambda: (np.ones(2, int),))
def borrowed_method(x):
    """A class borrows a method of list, which its objects cannot use."""
    try:
        Borrower().append(1)
    except TypeError:
        return x + 2
    return x + 1


@TABLE.calls("pytorch-152262", NUMBERS, lambda: (np.ones(2),))
def exhausted(t):
    """Iterators that a list has used up raise StopIteration."""
    left, back = iter([1, 2, 3]), reversed([1, 2, 3])
    found = [list(left), list(back)]
    for it in (left, back):
        try:
            found.append(next(it))
        except StopIteration:
            found.append(np.sin(t))
    return found


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
