"""The binding of a call's arguments to a function's parameters.

Input: a captured function and the arguments of a call.
Output: the value of each parameter.
Why: a followed call fails as plain Python's call fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcompile.capture.values.base import Context, Value, settled
from tcompile.capture.values.callable import FunctionValue, value_of
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.frontends.base import CannotCapture


def bind_arguments(
    tx: Context, function: FunctionValue, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> dict[str, Value]:
    """Parameter names to values, as a call would bind them. Raises CannotCapture where the call would raise."""
    code = function.code
    names = code.co_varnames
    count, keyword_only = code.co_argcount, code.co_kwonlyargcount
    positional = names[:count]
    bound = dict(zip(positional, args, strict=False))
    rest = list(args[count:])
    extra: dict[str, Value] = {}
    takes_rest, takes_extra = bool(code.co_flags & 0x04), bool(code.co_flags & 0x08)
    allowed = set(positional[code.co_posonlyargcount :]) | set(names[count : count + keyword_only])
    for name, value in kwargs.items():
        if name in allowed:
            if name in bound:
                raise CannotCapture("operation-raises", f"{code.co_name}() got multiple values for argument {name!r}")
            bound[name] = value
        elif takes_extra:
            extra[name] = value
        else:
            raise CannotCapture("operation-raises", f"{code.co_name}() got an unexpected keyword argument {name!r}")
    if rest and not takes_rest:
        raise CannotCapture("operation-raises", f"{code.co_name}() takes {count} arguments but {len(args)} were given")
    for name, default in zip(reversed(positional), reversed(function.defaults), strict=False):
        if name not in bound:
            bound[name] = value_of(default)
    for name in names[count : count + keyword_only]:
        if name not in bound and name in function.kwdefaults:
            bound[name] = value_of(function.kwdefaults[name])
    missing = [name for name in names[: count + keyword_only] if name not in bound]
    if missing:
        raise CannotCapture("operation-raises", f"{code.co_name}() misses arguments {missing}")
    position = count + keyword_only
    if takes_rest:
        bound[names[position]] = SequenceValue([settled(tx, value) for value in rest], tuple)
        position += 1
    if takes_extra:
        bound[names[position]] = DictValue({name: settled(tx, value) for name, value in extra.items()})
    return bound


__all__ = ["bind_arguments"]
