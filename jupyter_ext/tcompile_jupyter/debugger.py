"""Hides tcompile's frames from JupyterLab's debugger.

Input: IPython's shell in a kernel that ipykernel's debugger may attach to, or has attached to.
Output: debugger rules that exclude tcompile's files, as they exclude the kernel's.
Why: without them a ``%%tcompile`` cell has tcompile's frames in its call stack, and a step at its end leads into them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tcompile

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_OURS = tuple(str(Path(str(file)).parent) for file in (tcompile.__file__, __file__))


def hide_from_debugger(shell: InteractiveShell) -> Callable[[], None]:
    """Excludes tcompile's files from the kernel's debugger. Returns a function that undoes it.

    ipykernel sends its rules when a debugger attaches; an attached one gets the rules here.
    """
    rules = getattr(getattr(getattr(shell, "kernel", None), "debugger", None), "kernel_modules", None)
    if not isinstance(rules, list):  # no kernel, no debugpy, or an ipykernel without rules
        return lambda: None
    added = [folder for folder in _OURS if folder not in rules]
    rules.extend(added)
    with contextlib.suppress(Exception):  # pydevd's, not a public interface
        _add_filters(sys.modules["_pydevd_bundle.pydevd_filtering"], added)

    def undo() -> None:
        for folder in added:
            with contextlib.suppress(ValueError):
                rules.remove(folder)

    return undo


def _add_filters(filtering: Any, folders: list[str]) -> None:
    debugger = sys.modules["_pydevd_bundle.pydevd_constants"].get_global_debugger()
    if debugger is not None:
        ours = [filtering.ExcludeFilter(f"{folder}/**", True, True) for folder in folders]
        debugger.set_exclude_filters([*debugger._files_filtering._exclude_filters, *ours])


__all__ = ["hide_from_debugger"]
