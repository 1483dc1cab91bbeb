"""Re-entry: calls of compiled functions from inside tcompile's own slow work, in the same thread.

Input: the functions that do slow work (``slow``): compiles, imports, code generation.
Output: whether a call comes from inside one of them. ``release_import_lock`` frees a lock that an interrupted import
has left held.
Why: signal handlers and finalizers run between any two lines, where modules are half imported and locks are held.
Functions that they call run in plain Python, unless compiled already.

The stack is the only state: no exception, fork or thread can leave it wrong.
"""

from __future__ import annotations

import _imp
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_codes: dict[int, types.CodeType] = {}  # by id: comparing code objects would cost more than the walk
_IMPORTS = "<frozen importlib._bootstrap>"
_LOCKING = frozenset({"_get_module_lock", "cb"})  # importlib's functions that hold the lock of all imports
_NEEDED = frozenset({"tcompile", "numpy", "llvmlite"}) | sys.stdlib_module_names


def slow(function: F) -> F:
    """Marks a function: calls from inside it compile nothing."""
    code = function.__code__
    _codes[id(code)] = code
    return function


def is_inside() -> bool:
    """Whether this thread is inside slow work, imports a module that such work needs, or holds the lock of all imports.

    >>> slow(lambda: is_inside())()
    True
    >>> is_inside()
    False
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if id(code) in _codes:
            return True
        if _is_locking(code):
            return True
        if code.co_filename == _IMPORTS and code.co_name == "_find_and_load":
            name = frame.f_locals.get("name")
            if isinstance(name, str) and name.partition(".")[0] in _NEEDED:
                return True
        frame = frame.f_back
    return False


def _is_locking(code: types.CodeType) -> bool:
    return code.co_name in _LOCKING and code.co_filename == _IMPORTS


def release_import_lock() -> None:
    """Releases the lock of all imports where this thread has kept it, as other threads could import nothing.

    It is kept where a signal handler raises an exception just after importlib has taken it.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_locking(frame.f_code):
            return
        frame = frame.f_back
    try:
        while _imp.lock_held():
            _imp.release_lock()
    except RuntimeError:  # another thread holds it, for a moment
        pass


__all__ = ["is_inside", "release_import_lock", "slow"]
