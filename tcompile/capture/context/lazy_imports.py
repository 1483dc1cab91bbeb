"""Imports: which of them only look up a module that is already loaded.

Input: the path of a module, or the global variables in which a lazy import (PEP 810) stands for one.
Output: the answer, or the variable with the module in it.
Why: an import of a new module runs its code, which has its place in the program. A loaded module is only looked up.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from tcompile.frontends.base import CannotCapture

_LAZY: type | None = getattr(types, "LazyImportType", None)  # from CPython 3.15 on


def is_imported(path: str) -> bool:
    """Whether the module is loaded, and all its code has run.

    >>> is_imported("sys"), is_imported("no.such.module")
    (True, False)
    """
    module = sys.modules.get(path)
    return type(module) is types.ModuleType and not getattr(module.__spec__, "_initializing", False)


def settle(names: dict[str, Any], name: str) -> None:
    """Puts the module of a lazy import into its variable, as a read of the variable does.

    Raises CannotCapture where a module's code would run.
    """
    found = names.get(name)
    if _LAZY is None or type(found) is not _LAZY:
        return
    path = repr(found).partition("'")[2].rpartition("'")[0]  # only its repr has it: <lazy_import 'math.sin'>
    parent, _, last = path.rpartition(".")
    parts = path.split(".")
    is_module = all(is_imported(".".join(parts[: n + 1])) for n in range(len(parts)))
    if not is_module and not (is_imported(parent) and last in vars(sys.modules[parent])):
        raise CannotCapture("side-effect", f"Importing `{path}`")
    resolve: Any = getattr(found, "resolve")  # noqa: B009
    names[name] = resolve()


__all__ = ["is_imported", "settle"]
