"""tcompile in a notebook: magics, the report under a cell, and comparisons with plain Python.

Input: IPython's shell, when the user types ``%load_ext tcompile``.
Output: the magics ``%%tcompile`` and ``%tcompile``.
Why: tcompile itself must not import a Jupyter package. This package reads the event stream and calls the public API.

The files, in the order in which a cell goes through them: ``magics`` (options), ``cells`` (running the text like a
plain cell), ``record`` (the events of that run), ``report`` (the text under the cell). Beside them: ``identity`` (names
of cells), ``compare`` (the same work in plain Python and compiled) and ``measure`` (timing). ``widgets`` is a
subpackage, loaded with ipywidgets when one of its names is used.

>>> import tcompile_jupyter as tj
>>> tj.StanceToggle().value
'default'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tcompile.observe.source_location import label_files
from tcompile_jupyter.compare import Comparison, Comparisons, compare
from tcompile_jupyter.debugger import hide_from_debugger
from tcompile_jupyter.identity import follow_cells
from tcompile_jupyter.panel import open_pages

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_undo: list[Callable[[], None]] = []  # removes the names of cells from tcompile's texts and events

__all__ = [
    "BackendChooser", "Comparison", "Comparisons", "GradientCheck", "LiveGraph", "ModeChooser", "RecompileTimeline",
    "SpeedupPlot", "StanceToggle", "compare", "dashboard", "load_ipython_extension", "unload_ipython_extension",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tcompile_jupyter import widgets
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs {error.name}: pip install 'tcompile[jupyter]'") from error
    return getattr(widgets, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Adds ``%%tcompile`` and ``%tcompile`` to ``shell``; what ``%load_ext tcompile`` calls."""
    from tcompile_jupyter.completion import complete
    from tcompile_jupyter.magics import TcompileMagics
    from tcompile_jupyter.progress import show_progress

    magics = TcompileMagics(shell)
    shell.register_magics(magics)

    def label(file: str) -> str | None:
        named: tuple[str, str] | None = shell.compile.format_code_name(file)
        return " ".join(named) if named else None

    _forget_labels()
    _undo.append(label_files(label))
    _undo.append(follow_cells(shell))
    _undo.append(magics.unload)
    _undo.append(complete(shell))
    _undo.append(show_progress(shell))
    _undo.append(open_pages(shell))
    _undo.append(hide_from_debugger(shell))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Removes the magics; compiled functions stay compiled."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("tcompile", None)
    _forget_labels()


def _forget_labels() -> None:
    while _undo:
        _undo.pop()()
