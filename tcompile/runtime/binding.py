"""Binds a call's arguments to a function's parameters.

Input: a function.
Output: a callable that takes the call's arguments and returns the parameters' values in the order of the locals.
Why: Python's own binder does it, so defaults, keyword-only parameters and errors are exactly the function's.
"""

from __future__ import annotations

import types
from typing import Any

from tcompile.capture.guards.entry_protocol import local_names
from tcompile.graph.names import is_plain


def binder(function: types.FunctionType) -> types.FunctionType:
    """Returns a function with the parameters of ``function`` that returns their values.

    >>> def f(a, b=2, *c, d=4, **e): ...
    >>> binder(f)(1, d=5, z=6)
    (1, 2, 5, (), {'z': 6})
    """
    code = function.__code__
    names = local_names(code)
    # A comprehension's ``.0`` is not an identifier, and hand-made code objects may have any names: number those.
    names = tuple(
        name if is_plain(name) and name not in names[:i] else f"_tcompile_{i}" for i, name in enumerate(names)
    )
    kinds: list[str] = []
    count, keyword_only = code.co_argcount, code.co_kwonlyargcount
    for position, name in enumerate(names[:count]):
        kinds.append(name)
        if position + 1 == code.co_posonlyargcount:
            kinds.append("/")
    rest = count + keyword_only
    if code.co_flags & 0x04:
        kinds.append(f"*{names[rest]}")
        rest += 1
    elif keyword_only:
        kinds.append("*")
    kinds += names[count : count + keyword_only]
    if code.co_flags & 0x08:
        kinds.append(f"**{names[rest]}")
    values = ", ".join(names)
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(f"def bind({', '.join(kinds)}): return ({values}{',' if len(names) == 1 else ''})", namespace)
    made: types.FunctionType = namespace["bind"]
    made.__defaults__ = function.__defaults__
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made
