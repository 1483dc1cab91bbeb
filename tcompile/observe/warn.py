"""tcompile's own warnings: shown at the user's line, and never raised into the user's program.

Input: a text.
Output: a warning; a line on standard error if the program's filters or its ``warnings.showwarning`` would raise it.
Why: a program may run under ``simplefilter("error")`` for its own warnings. A raised warning of tcompile's would differ
from plain Python.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
import warnings
from pathlib import Path

OURS = str(Path(__file__).parents[1]) + os.sep


def warn(text: str) -> None:
    """Warns with a ``UserWarning`` at the nearest line outside tcompile.

    >>> import contextlib, io, warnings
    >>> with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as shown:
    ...     warnings.simplefilter("error")
    ...     warn("tcompile: a limit was reached")
    >>> shown.getvalue()
    'UserWarning: tcompile: a limit was reached\\n'
    """
    frame: types.FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith((OURS, "<tcompile")):
        frame, level = frame.f_back, level + 1
    try:
        warnings.warn(text, stacklevel=level)
    except Exception:
        with contextlib.suppress(Exception):  # no standard error, or one that cannot be written to
            sys.stderr.write(f"UserWarning: {text}\n")


__all__ = ["warn"]
