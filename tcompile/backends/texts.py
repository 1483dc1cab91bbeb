"""The texts of functions that backends write, where tracebacks and debuggers look for them.

Input: a function made of a text, and the name of its file, which no other has. Output: nothing; ``linecache`` knows
the text as long as the function lives. Why: a notebook compiles thousands of functions, and ``linecache`` keeps
its entries until they are removed.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from typing import Any


def keep_text(function: Callable[..., Any], file: str, text: str) -> None:
    """Lets ``linecache`` find the text of a function in this file, until the function is gone."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    weakref.finalize(function, linecache.cache.pop, file, None).atexit = False


__all__ = ["keep_text"]
