"""The oldest supported versions of Python, NumPy, llvmlite and PyTorch.

Input: the running Python, and the versions of packages.
Output: a sentence if something is too old.
Why: each number stands in one place, and old installers get as far as the import. This file, and
``tcompile/__init__.py``, which reads it first, are valid Python 3.8.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache

PYTHON = (3, 11)
NUMPY = (2, 1)
LLVMLITE = (0, 45)
TORCH = (2, 13)


def dotted(version: Iterable[object]) -> str:
    """Returns a version as text.

    >>> dotted((3, 11))
    '3.11'
    """
    return ".".join(map(str, version))


def numbers(text: str) -> tuple[int, ...]:
    """Returns the leading two numbers of a version's text.

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
    """Returns the first cause of an error, in one line.

    >>> first_cause(ImportError("\\n\\nNumPy's C-extensions failed."))
    "ImportError: NumPy's C-extensions failed."
    """
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ": ".join([type(error).__name__, *lines[:1]])


@lru_cache(maxsize=1)  # a second attempt at a failed import raises another error
def refusal() -> str:
    """Returns the reason why tcompile cannot be imported, in one line; empty if it can."""
    if sys.version_info < PYTHON:
        return f"tcompile needs Python {dotted(PYTHON)} or newer, and this is Python {dotted(sys.version_info[:3])}"
    needed = dotted(NUMPY)
    try:
        from numpy import __version__ as version
    except Exception as error:  # an incomplete or mixed installation of NumPy can raise anything
        text = f"tcompile needs NumPy {needed} or newer, which cannot be imported ({first_cause(error)})"
        return f"{text}: pip install --force-reinstall 'numpy>={needed}'"
    if numbers(version) < NUMPY:
        return f"tcompile needs NumPy {needed} or newer, and this is NumPy {version}: pip install 'numpy>={needed}'"
    return ""


__all__ = ["LLVMLITE", "NUMPY", "PYTHON", "dotted", "first_cause", "numbers", "refusal"]
