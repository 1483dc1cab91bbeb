"""Copies of arguments on which a call behaves as on the arguments themselves.

Input: the arguments of a call.
Output: deep copies that share nothing with them.
Why: a call can be repeated, whatever it writes.

Arrays keep their memory order and aliasing: views of one array become views of one copy, with strides and read-only
flags. An object that cannot be copied is shared.
"""

from __future__ import annotations

import copy
import types
from typing import Any

import numpy as np

from tcompile.runtime.dispatch import CompiledFunction

# Types that copies share: none of them has an argument's state.
_SHARED = type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, CompiledFunction


def copied(value: Any) -> Any:
    """A deep copy of ``value``.

    >>> base = np.arange(6.0)
    >>> one, other = copied((base[::2], base[1:]))
    >>> one.strides, np.shares_memory(one, other), np.shares_memory(one, base)
    ((16,), True, False)
    """
    memo: dict[int, Any] = {}
    _arrays(value, memo, {}, set())
    return _deep(value, memo)


def _deep(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # it contains an object that cannot be copied: a lock, a generator, a file
        if type(value) in (tuple, list):
            return type(value)(_deep(item, memo) for item in value)
        if type(value) is dict:
            return {key: _deep(item, memo) for key, item in value.items()}
        return value


def _arrays(value: Any, memo: dict[int, Any], owners: dict[int, Any], seen: set[int]) -> None:
    """Puts a copy of every array that ``value`` holds into ``memo``, where deepcopy looks first."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if type(value) is np.ndarray:
        memo[id(value)] = _array(value, owners)
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            _arrays(item, memo, owners, seen)
    elif isinstance(value, dict):
        for item in value.values():
            _arrays(item, memo, owners, seen)
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, _SHARED):
        _arrays(vars(value), memo, owners, seen)


def _array(value: Any, owners: dict[int, Any]) -> Any:
    owner = value
    while type(owner.base) is np.ndarray:
        owner = owner.base
    if value.dtype.hasobject or owner.dtype.hasobject or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return copy.deepcopy(value)
    if id(owner) not in owners:
        owners[id(owner)] = owner, np.array(owner, order="K", copy=True)  # the owner lives as long as its id is used
    made = owners[id(owner)][1]
    if value is owner or not value.size:
        made = made if value is owner else np.array(value, order="K", copy=True)
        made.flags.writeable = value.flags.writeable
        return made
    made.flags.writeable = True  # the owner itself may have been copied, and be read-only
    offset = value.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    view = np.ndarray(value.shape, value.dtype, made.ravel(order="K").data, offset, value.strides)
    view.flags.writeable = value.flags.writeable
    return view


__all__ = ["copied"]
