"""The options of one capture, set by its caller.

Input: nothing.
Output: ``CaptureOptions``, and ``Resumable``, the rewritten code of a function that a continuation resumes.
Why: every layer of capture reads the options, and only the compiler sets them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from tcompile.bytecode.rewritten import Rewritten
from tcompile.records import dataclass


@dataclass(frozen=True)
class Resumable:
    """The rewritten code of a function that was followed, and ``resume(function, offset, answer, stays_plain, cells)``.

    ``resume`` returns a function of the rewritten code. Its frame goes to the place in ``answer`` as soon as it starts.
    ``cells`` hold its closure variables meanwhile: it takes over their contents, and a function that it calls next has
    the frame's cells in their place.
    """

    rewritten: Rewritten
    resume: Callable[[types.FunctionType, int, tuple[Any, ...], bool, tuple[types.CellType, ...]], types.FunctionType]


@dataclass(frozen=True)
class CaptureOptions:
    """The options of one capture.

    ``dynamic`` is as in ``compile``. ``max_instructions`` limits the instructions that are followed.
    ``enter_compiled``: functions that are already compiled are followed too. ``exact``: results have NumPy's very bits.
    ``max_unrolled`` limits the operations of one unrolled loop (None: no limit). ``plain_frame``: the first frame runs
    in plain Python, and capture only looks for its calls. ``notes_lines``: the lines that are followed are noted.

    ``follows_path``: where control flow depends on values, capture follows the path that this call takes.
    ``splits_exit_loops``: derivatives split loops with exits into segments, where their rows may have no room.

    ``continues`` is the name of a loop's node, and the version of its iteration, where capture ends at the loop's next
    iteration (``continuation``).
    ``arity`` is then the number of the entry's own parameters, and ``resumable`` returns the rewritten code of a
    function in the middle of that loop.
    """

    dynamic: bool | None = None
    max_instructions: int = 10_000
    enter_compiled: bool = True
    exact: bool = False
    max_unrolled: int | None = None
    plain_frame: bool = False
    notes_lines: bool = False
    follows_path: bool = False
    splits_exit_loops: bool = False
    continues: tuple[str, int] | None = None
    arity: int = 0
    resumable: Callable[[types.FunctionType], Resumable | None] | None = None


__all__ = ["CaptureOptions", "Resumable"]
