"""tcompile's own warnings: shown at the user's line, and never raised into the user's program.

Enters: a text. Leaves: a warning; a line on standard error where the program's filters, or what it has put in the
place of ``warnings.showwarning``, would raise it. Exists because a program may run under ``simplefilter("error")`` for
the sake of its own warnings: one of ours, raised, would be a difference to plain Python.
"""

from __future__ import annotations

import contextlib
import sys
import warnings


def warn(text: str, stacklevel: int) -> None:
    """Warns with a ``UserWarning`` that names the line ``stacklevel`` frames up, counted from the caller.

    >>> import contextlib, io, warnings
    >>> with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as shown:
    ...     warnings.simplefilter("error")
    ...     warn("tcompile: a limit was reached", 1)
    >>> shown.getvalue()
    'UserWarning: tcompile: a limit was reached\\n'
    """
    try:
        warnings.warn(text, stacklevel=stacklevel + 1)
    except Exception:
        with contextlib.suppress(Exception):  # no standard error, or one that cannot be written to
            sys.stderr.write(f"UserWarning: {text}\n")


__all__ = ["warn"]
