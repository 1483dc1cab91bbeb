"""What an entry program and its caller agree on: markers, and the order of the parameters.

Enters: code objects. Leaves: the names of a function's parameters in the order in which an entry takes them, and the
two results that are no result of the function. Exists apart from ``program`` so that a call needs nothing else of
capture.
"""

from __future__ import annotations

import types


class Marker:
    """A unique result of an entry program."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


MISS = Marker("MISS")
PLAIN = Marker("PLAIN")


def local_names(code: types.CodeType) -> tuple[str, ...]:
    """The parameters of a function in the order of its locals, ``*args`` and ``**kwargs`` last."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]
