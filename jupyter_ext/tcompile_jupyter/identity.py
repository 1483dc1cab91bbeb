"""Identifies the running cell, and the cell in which a function was written.

Input: IPython's events at the begin and end of a cell.
Output: ``bus.current_cell``, and the cell of a file of code.
Why: every event names its cells, plain cells included. A cell's name is JupyterLab's id, or its execution count
(``In[3]``) if the front end sends no id.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tcompile.observe.context import current_cell, name_cells

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_MOST = 4096  # number of cells whose ids are kept


def follow_cells(shell: InteractiveShell) -> Callable[[], None]:
    """Keeps ``bus.current_cell`` and the names of cells current for ``shell``. Returns a function that undoes it."""
    ids: OrderedDict[str, str] = OrderedDict()
    running: list[tuple[Any, int, str | None]] = []  # nested cells: the id, the count seen, the enclosing cell
    loading = shell.displayhook.exec_result
    # By how much IPython's count is ahead of the cell that begins: its versions differ. A silent cell does not tell.
    counted = loading is not None and loading.info is not None and loading.info.store_history
    ahead = shell.execution_count - (loading.execution_count or shell.execution_count) if counted else 1

    def begins(info: Any) -> None:
        seen = shell.execution_count
        count = f"In[{seen - (ahead if info.store_history else 0)}]"
        cell = getattr(info, "cell_id", None)
        if cell:
            ids[count] = cell
            if len(ids) > _MOST:
                ids.popitem(last=False)
        running.append((info, seen, current_cell.get()))
        current_cell.set(cell or count)

    def ends(result: Any) -> None:
        nonlocal ahead
        if running and running[-1][0] is result.info:  # an empty cell ends without having begun
            info, seen, outside = running.pop()
            current_cell.set(outside)
            if info.store_history and result.execution_count is not None:
                ahead = seen - result.execution_count

    def cell_of(file: str) -> str | None:
        named: tuple[str, str] | None = shell.compile.format_code_name(file)
        return None if named is None else ids.get(named[1], named[1])

    shell.events.register("pre_run_cell", begins)
    shell.events.register("post_run_cell", ends)
    forget = name_cells(cell_of)

    def undo() -> None:
        shell.events.unregister("pre_run_cell", begins)
        shell.events.unregister("post_run_cell", ends)
        forget()
        if running:
            current_cell.set(running[0][2])

    return undo


__all__ = ["follow_cells"]
