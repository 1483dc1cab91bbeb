"""Run-time support of generated host programs.

Input: status bits of kernels, library calls with their arguments.
Output: nothing, or results; ``Replay`` where plain NumPy would warn, raise, or do something that only NumPy does.
Why: generated programs stay short.

NumPy's error state is read only after a flag was raised. The underflow flag is an exception: vector functions do not
raise it as NumPy's do. So a program does not run at all where underflow is not ignored (``check_error_state``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.backends.replay import Replay
from tcompile.backends.status import DIVIDE, INTEGER_OVERFLOW, INVALID, ONLY_NUMPY, OVERFLOW
from tcompile.callers import raise_if_callers
from tcompile.graph import TensorType
from tcompile.graph.evaluate import conforms
from tcompile.graph.ops.writing import Path, shown
from tcompile.polls import Changed

_CATEGORIES = ((DIVIDE, "divide"), (OVERFLOW, "over"), (INVALID, "invalid"), (INTEGER_OVERFLOW, "over"))

# NumPy's error state is an immutable opaque object in a context variable: the same object means the same state.
_variable = np._core.umath._extobj_contextvar  # type: ignore[attr-defined]
_state: Callable[[], object] = _variable.get
_strict: tuple[object, object] = (None, None)  # a state, and the same with flags raising
_gentle: object = None  # a state that reports by warnings at most, and the filters of warnings, none of which raises
_filters: list[Any] = []
_ignoring: object = np._core.umath._make_extobj(all="ignore")  # type: ignore[attr-defined]
harmless: list[object] = [None]  # the state that was checked last; machine code reads it, too


def check_error_state() -> None:
    """Raises Replay where NumPy reports underflow."""
    state = _state()
    if state is not harmless[0] and state is not _ignoring:
        if np.geterr()["under"] != "ignore":
            raise Replay("underflow is reported, which vector functions do not do as NumPy does")
        harmless[0] = state


def check_rewriting() -> None:
    """Raises Replay where plain Python may end, by an exception, before it has written again what kernels write."""
    global _gentle, _filters
    state, filters = _state(), warnings.filters
    if state is _gentle and filters == _filters:  # these very objects were checked before
        return
    if any(how not in ("ignore", "warn") for how in np.geterr().values()):
        raise Replay("the error state asks for more than warnings")
    if any(action[0] == "error" for action in filters):
        raise Replay("warnings may be errors")
    _gentle, _filters = state, list(filters)


def copy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in the same memory order."""
    return np.copy(x, order="K")


def floating_point_report(status: int) -> None:
    """Raises Replay where a kernel's flags mean that NumPy would warn, raise or call a callback."""
    if status & ONLY_NUMPY:
        raise Replay("a value that only NumPy knows how to treat")
    state = dict(np.geterr())
    for bit, category in _CATEGORIES:
        if status & bit and state[category] != "ignore":
            raise Replay(f"floating-point flag: {category}")


def undoing(paths: Sequence[Path]) -> Callable[..., None]:
    """Returns ``floating_point_report`` for kernels that have written to arrays of the caller.

    It takes the status, and for each path the array that was written there and the elements that were there before.
    """

    def report(status: int, *arrays: np.ndarray[Any, Any]) -> None:
        try:
            floating_point_report(status)
        except Replay:
            written = list(zip(paths, arrays[::2], arrays[1::2], strict=True))
            for path, array, old in reversed(written):
                shown(array, path)[...] = old
            raise

    return report


def restore(*arrays: np.ndarray[Any, Any]) -> None:
    """Restores parts of the caller's arrays: takes pairs of a part and its copy."""
    for part, old in zip(arrays[::2], arrays[1::2], strict=True):
        part[...] = old


def library_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a library function; any exception or floating-point flag becomes Replay.

    Functions that emit warnings themselves, not through floating-point flags, must not become nodes of a graph.
    """
    token = raise_on_flags()
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise replay(error) from None
    finally:
        reset(token)


def raise_on_flags() -> Any:
    """Makes NumPy raise at floating-point flags, where any is reported; ``reset`` takes the result."""
    global _strict
    state, raising = _strict
    if _state() is not state:  # np.errstate makes such an object at every entry, which takes as long as ten calls
        state = _state()
        asked = np.geterr()
        raising = state
        if any(asked[category] != "ignore" for category in ("divide", "over", "invalid")):
            raising = np._core.umath._make_extobj(  # type: ignore[attr-defined]
                divide="raise", over="raise", invalid="raise"
            )
        _strict = state, raising
    return _variable.set(raising)


def ignore_flags() -> Any:
    """Makes NumPy ignore floating-point flags; ``reset`` takes the result and restores the state."""
    return _variable.set(_ignoring)


reset: Callable[[Any], None] = _variable.reset


def replay(error: Exception) -> Replay | Changed:
    """The exception that stands for ``error`` from a library call. Raises the error of a signal handler instead."""
    raise_if_callers(error)
    return error if isinstance(error, Replay | Changed) else Replay(f"{type(error).__name__}: {error}")


def checked(value: Any, type: TensorType, shape: tuple[int, ...], in_c_order: bool) -> None:
    """Raises Replay where a library call gave another dtype, shape or memory order than its frontend stated.

    ``in_c_order`` says whether the type is contiguous in C order, which is slow to compute.
    """
    usual = in_c_order and getattr(value, "dtype", None) is type.dtype and value.shape == shape
    if usual and (not shape or value.flags.c_contiguous):
        return
    if not conforms(value if hasattr(value, "strides") else np.asarray(value), type, shape):
        raise Replay(f"a library call gave something else than {type}")


def fit(*ints: int) -> None:
    """Raises OverflowError where an int has more than 64 bits, as launches of kernels do, before anything is written.

    >>> fit(-(2**63), 2**63 - 1)
    """
    if not -(1 << 63) <= min(ints) <= max(ints) < 1 << 63:
        raise OverflowError("an int of more than 64 bits")


def enough(x: Any, axis: tuple[int, ...], correction: float) -> None:
    """Raises Replay where there are too few elements for a mean or variance: NumPy emits a RuntimeWarning then.

    (Catching warnings would change the process's warning filters while other threads run.)
    """
    if math.prod(np.shape(x)[a] for a in axis) <= max(0, correction):
        raise Replay("too few elements for a mean or variance")


def discard_imaginary(x: Any) -> None:
    """Raises Replay for a cast from complex to real numbers, which emits a ComplexWarning in NumPy."""
    raise Replay("a cast discards imaginary parts")


def with_sizes(region: Callable[..., tuple[Any, ...]], sizes: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
    """Binds sizes of the enclosing graph as the last inputs of a region."""
    return lambda *args: region(*args, *sizes)


def settle(x: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: tuple[int, ...] | None) -> np.ndarray[Any, Any]:
    """Returns a library's result as a dense array with axes in this memory order (None: C), as kernels expect it.

    It copies only where the library chose another layout. Raises Replay where it is another kind of array.
    """
    usual = order is None and x.__class__ is np.ndarray and x.dtype is dtype and x.shape == shape
    if usual and x.flags.c_contiguous:
        return x  # type: ignore[no-any-return]
    array = np.asarray(x)
    if not shape and x.__class__ is dtype.type:  # a scalar of the library's
        return array
    if array.dtype != dtype or array.shape != shape:
        raise Replay(f"a library call gave {array.dtype}{list(array.shape)} where {dtype}{list(shape)} was expected")
    order = tuple(range(len(shape))) if order is None else order
    turned = array.transpose(order)
    if turned.flags.c_contiguous:
        return array
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return np.ascontiguousarray(turned).transpose(inverse)
