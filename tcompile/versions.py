"""What tcompile needs: the oldest versions of Python, NumPy and llvmlite.

Input: the running Python, and versions of packages. Output: a sentence where something is too old. Why: each number
stands in one place, and old installers come as far as the import. This file, and ``tcompile/__init__.py``, which asks
it first, can be read by Python 3.8.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

PYTHON = (3, 11)
NUMPY = (2, 4)
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


def refusal() -> str:
    """Why tcompile cannot be imported here, in one line; empty where it can."""
    if sys.version_info < PYTHON:
        return f"tcompile needs Python {dotted(PYTHON)} or newer, and this is Python {dotted(sys.version_info[:3])}"
    needed = dotted(NUMPY)
    try:
        from numpy import __version__ as version
    except ImportError as error:
        return f"tcompile needs NumPy {needed} or newer, which cannot be imported: {error}".partition("\n")[0]
    if numbers(version) < NUMPY:
        return f"tcompile needs NumPy {needed} or newer, and this is NumPy {version}: pip install 'numpy>={needed}'"
    return ""


__all__ = ["LLVMLITE", "NUMPY", "PYTHON", "dotted", "numbers", "refusal"]
