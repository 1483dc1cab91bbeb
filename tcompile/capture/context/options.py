"""What the caller of one capture decides.

Input: nothing. Output: ``CaptureOptions``, and ``Resumable``, the rewritten code of a function that a continuation
resumes. Why: every layer of capture reads the options, and only the compiler sets them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from tcompile.bytecode.rewritten import Rewritten
from tcompile.records import dataclass


@dataclass(frozen=True)
class Resumable:
    """The rewritten code of a function that was followed, and ``resume(function, offset, answer, stays_plain)``.

    That gives a function of the rewritten code's code, whose frame is led to where the answer says as soon as it
    starts.
    """

    rewritten: Rewritten
    resume: Callable[[types.FunctionType, int, tuple[Any, ...], bool], types.FunctionType]


@dataclass(frozen=True)
class CaptureOptions:
    """What the caller decided: ``dynamic`` as in ``compile``, how many instructions are followed at most, whether
    functions that are already compiled are followed too, whether results must have NumPy's very bits, how many
    operations one loop may become when it is unrolled (None: any number), whether the frame that capture starts in runs
    in plain Python, so that only its calls are looked for, and whether the lines followed are noted. ``continues`` is
    the name of the loop's node where capture ends at the loop's next iteration (``continuation``), and ``arity`` then
    the number of the entry's own parameters; ``resumable`` makes the rewritten code of a function that is in the middle
    of that loop.
    """

    dynamic: bool | None = None
    max_instructions: int = 10_000
    enter_compiled: bool = True
    exact: bool = False
    max_unrolled: int | None = None
    plain_frame: bool = False
    notes_lines: bool = False
    continues: str = ""
    arity: int = 0
    resumable: Callable[[types.FunctionType], Resumable | None] | None = None


__all__ = ["CaptureOptions", "Resumable"]
