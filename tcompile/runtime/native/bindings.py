"""Words that tell whether a namespace may have changed, so that a call need not look up every name in it.

Input: the dicts of libraries' modules. Output: for each the address of a word that is another one once the dict has
changed. Why: a function that calls six of NumPy's would look up six names in each call: CPython 3.11 counts
the changes of every dict, and 3.12 and later tell a function of ours about those of dicts that are watched.
"""

from __future__ import annotations

import array
import ctypes
import sys
from functools import cache
from typing import Any

from tcompile.backends.llvm.native import target

_TAG = 24  # where a dict of CPython 3.11 holds the number of its last change, in bytes
changes = target.immortal(array.array("Q", [0]))  # of all dicts that are watched: ``rebound`` in call.ll counts them


def version_at(namespace: dict[str, Any], rebound: int) -> int | None:
    """The address of the word; None where this CPython has none. ``rebound`` is the function to be told of changes."""
    if sys.version_info < (3, 12):
        return id(namespace) + _TAG if _has_tags() else None
    watcher = _watcher(rebound)
    if watcher is None:
        return None
    _function("PyDict_Watch", ctypes.c_int, ctypes.py_object)(watcher, namespace)
    return int(changes.buffer_info()[0])


def _function(name: str, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(ctypes.c_int, *arguments)((name, ctypes.pythonapi))


@cache
def _has_tags() -> bool:
    sample: dict[str, Any] = {"one": object(), "two": object()}
    word = ctypes.c_uint64.from_address(id(sample) + _TAG)
    seen = [word.value]
    for change in (lambda: sample.update(one=object()), lambda: sample.pop("two"), lambda: sample.update(two=object())):
        sample.get("one")
        if word.value != seen[-1]:  # by looking at it
            return False
        change()
        seen.append(word.value)
    return len(set(seen)) == len(seen)


@cache
def _watcher(rebound: int) -> int | None:
    """The number by which CPython knows our function; None where there is no place for another one."""
    try:
        number: int = _function("PyDict_AddWatcher", ctypes.c_void_p)(rebound)
        sample: dict[str, Any] = {}
        _function("PyDict_Watch", ctypes.c_int, ctypes.py_object)(number, sample)
    except (RuntimeError, ValueError, AttributeError):
        return None
    before = changes[0]
    sample["one"] = 1
    sample["one"] = object()
    del sample["one"]
    return number if changes[0] == before + 3 else None


__all__ = ["changes", "version_at"]
