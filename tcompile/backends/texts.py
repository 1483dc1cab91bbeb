"""The texts of functions that backends write, where tracebacks and debuggers look for them.

Input: a function made of a text, and the name of its file, which no other has. Output: nothing; ``linecache`` knows
the text as long as the function lives. Why: a notebook compiles thousands of functions, and ``linecache`` keeps
its entries until they are removed.

``linecache.checkcache`` goes through a list of the names, and fails where one is gone meanwhile. A function may end at
any time, as when the cycle collector runs there. So an entry is removed where no thread is in that loop, else later.
"""

from __future__ import annotations

import linecache
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

_gone: list[str] = []  # files of functions that are gone, whose entries are still there


def keep_text(function: Callable[..., Any], file: str, text: str) -> None:
    """Lets ``linecache`` find the text of a function in this file, until the function is gone."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    weakref.finalize(function, _forget, file).atexit = False


def _forget(file: str) -> None:
    _gone.append(file)
    if not any(map(_is_checking, sys._current_frames().values())):
        while _gone:
            linecache.cache.pop(_gone.pop(), None)


def _is_checking(frame: types.FrameType | None) -> bool:
    """Whether a thread with this frame goes through the names of ``linecache``."""
    while frame is not None:
        if frame.f_code.co_name == "checkcache" and frame.f_code.co_filename == linecache.__file__:
            return True
        frame = frame.f_back
    return False


__all__ = ["keep_text"]
