"""The source of a kernel as a Python function, which Triton reads.

Enters: a ``Function``, and the names that it may use. Leaves: the Python function. Exists because Triton, its compiler
and its interpreter alike, asks Python for a function's text.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tcompile.backends.triton.text import Function

_files = count()


def defined(function: Function, names: Mapping[str, Any]) -> Callable[..., Any]:
    """The Python function that a source defines, among these names; its text can be found."""
    file = f"<triton {function.name} {next(_files)}>"
    linecache.cache[file] = (len(function.text), None, function.text.splitlines(True), file)
    space = dict(names)
    exec(compile(function.text, file, "exec"), space)
    made: Callable[..., Any] = space[function.name]
    made.__module__ = __name__
    return made


__all__ = ["defined"]
