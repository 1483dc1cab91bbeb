"""The picklers that tests use.

Input: the name of a library.
Output: its module, or a skipped test.
Why: a version of Python is often newer than the picklers by value, which read code objects.
"""

from __future__ import annotations

import types

import pytest


def pickler(library: str) -> types.ModuleType:
    """The library; skips the test where it is not there, or pickles no plain function by value though it should."""
    module: types.ModuleType = pytest.importorskip(library)
    if library != "pickle":
        try:
            module.dumps(lambda: 0)
        except AttributeError as error:  # dill 0.4 asks for ``co_lnotab``, which CPython 3.15 has not
            pytest.skip(f"{library} knows nothing of this Python: {error}")
    return module
