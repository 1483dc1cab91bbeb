"""Our own frames out of the sight of JupyterLab's debugger.

Input: IPython's shell in a kernel that ipykernel's debugger may attach to, or has attached to.
Output: its rules, which leave out files of ours as they leave out those of the kernel.
Why: without them a ``%%tcompile`` cell has our frames in its call stack, and a step at its end leads into our code.
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
    """Leaves our files out of what the kernel's debugger shows and steps through. Returns the undoing.

    ipykernel sends its rules when a debugger attaches; one that has attached is given ours here.
    """
    rules = getattr(getattr(getattr(shell, "kernel", None), "debugger", None), "kernel_modules", None)
    if not isinstance(rules, list):  # no kernel, no debugpy, or an ipykernel without rules
        return lambda: None
    added = [folder for folder in _OURS if folder not in rules]
    rules.extend(added)
    with contextlib.suppress(Exception):  # of pydevd's that is no public interface
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
