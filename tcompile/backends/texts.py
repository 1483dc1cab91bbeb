"""Source texts of generated functions, for tracebacks and debuggers.

Input: a function made from a text, and a unique file name.
Output: nothing; ``linecache`` knows the text as long as the function lives.
Why: a notebook compiles thousands of functions, and ``linecache`` keeps entries until they are removed.

``linecache.checkcache`` iterates over the names, and fails where one disappears meanwhile. A function may die at any
time, also when the cycle collector runs inside that loop. So an entry is removed where no thread is in that loop, else
later.
"""

from __future__ import annotations

import linecache
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

_gone: list[str] = []  # files of dead functions, whose entries are still there


def keep_text(function: Callable[..., Any], file: str, text: str) -> None:
    """Lets ``linecache`` find the text of a function in this file, until the function dies."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    weakref.finalize(function, _forget, file).atexit = False


def _forget(file: str) -> None:
    _gone.append(file)
    if not any(map(_is_checking, sys._current_frames().values())):
        while _gone:
            linecache.cache.pop(_gone.pop(), None)


def _is_checking(frame: types.FrameType | None) -> bool:
    """Whether a thread with this frame iterates over the names of ``linecache``."""
    while frame is not None:
        if frame.f_code.co_name == "checkcache" and frame.f_code.co_filename == linecache.__file__:
            return True
        frame = frame.f_back
    return False


__all__ = ["keep_text"]
