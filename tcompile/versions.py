"""What tcompile needs: the oldest versions of Python, NumPy and llvmlite.

Input: the running Python, and versions of packages. Output: a sentence where something is too old. Why: each number
stands in one place, and old installers come as far as the import. This file, and ``tcompile/__init__.py``, which asks
it first, can be read by Python 3.8.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache

PYTHON = (3, 11)
NUMPY = (2, 1)
LLVMLITE = (0, 45)


def dotted(version: Iterable[object]) -> str:
    """A version as people write it.

    >>> dotted((3, 11))
    '3.11'
    """
    return ".".join(map(str, version))


def numbers(text: str) -> tuple[int, ...]:
    """The leading two numbers of a version's text.

    >>> numbers("2.4.0rc1"), numbers("0.45.1"), numbers("dev")
    ((2, 4), (0, 45), ())
    """
    found = []
    for part in text.split(".")[:2]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
    return tuple(found)


def first_cause(error: BaseException) -> str:
    """What went wrong first, in one line.

    >>> first_cause(ImportError("\\n\\nNumPy's C-extensions failed."))
    "ImportError: NumPy's C-extensions failed."
    """
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ": ".join([type(error).__name__, *lines[:1]])


@lru_cache(maxsize=1)  # what could not be imported says something else at the second attempt
def refusal() -> str:
    """Why tcompile cannot be imported here, in one line; empty where it can."""
    if sys.version_info < PYTHON:
        return f"tcompile needs Python {dotted(PYTHON)} or newer, and this is Python {dotted(sys.version_info[:3])}"
    needed = dotted(NUMPY)
    try:
        from numpy import __version__ as version
    except Exception as error:  # a NumPy of which files are missing, or come from another version, raises anything
        text = f"tcompile needs NumPy {needed} or newer, which cannot be imported ({first_cause(error)})"
        return f"{text}: pip install --force-reinstall 'numpy>={needed}'"
    if numbers(version) < NUMPY:
        return f"tcompile needs NumPy {needed} or newer, and this is NumPy {version}: pip install 'numpy>={needed}'"
    return ""


__all__ = ["LLVMLITE", "NUMPY", "PYTHON", "dotted", "first_cause", "numbers", "refusal"]
