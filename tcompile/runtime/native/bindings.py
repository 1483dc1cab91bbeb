"""Version words of namespaces, so that a call need not look up every name.

Input: the dicts of libraries' modules.
Output: for each, the address of a word that changes when the dict changes.
Why: a function that calls six of NumPy's functions would look up six names in each call. CPython 3.11 has a version tag
in every dict; 3.12 and later call a watcher for watched dicts.
"""

from __future__ import annotations

import array
import ctypes
import sys
from functools import cache
from typing import Any

from tcompile.backends.llvm.native import target

_TAG = 24  # offset of the version tag in a dict of CPython 3.11, in bytes
changes = target.immortal(array.array("Q", [0]))  # of all watched dicts: ``rebound`` in call.ll counts them


def version_at(namespace: dict[str, Any], rebound: int) -> int | None:
    """Returns the address of the word; None if this CPython has none. ``rebound`` is the watcher."""
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
        if word.value != seen[-1]:  # by inspecting one
            return False
        change()
        seen.append(word.value)
    return len(set(seen)) == len(seen)


@cache
def _watcher(rebound: int) -> int | None:
    """Returns CPython's id of the watcher; None if all ids are taken."""
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
