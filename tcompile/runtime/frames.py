"""Finds functions that read the frames of their callers.

Input: a function.
Output: the first expression in it that reads a caller's frame, with its line; None if there is none.
Why: such a function is not compiled by itself, so that it finds its real caller. The search resolves names to objects:
``np.stack`` is not ``inspect.stack``. Names alone decide if they are unbound yet or attributes of locals, and only
distinctive ones.
"""

from __future__ import annotations

import builtins
import dis
import faulthandler
import inspect
import re
import sys
import traceback
import types
import warnings
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from tcompile.bytecode.dialect import COMMON_CONSTANTS, same_as
from tcompile.records import dataclass

REASON = "it reads its caller's frame, so it runs in plain Python"
_UNKNOWN = object()
_READERS: tuple[Any, ...] = tuple(
    found
    for module, names in (
        (sys, ("_getframe", "_getframemodulename", "_current_frames")),
        (inspect, ("currentframe", "stack", "getouterframes")),
        (traceback, ("extract_stack", "format_stack", "print_stack", "walk_stack")),
        (faulthandler, ("dump_traceback",)),
    )
    for name in names
    if (found := getattr(module, name, None)) is not None
)
# common names, which many other objects have
_TELLING_NAMES = frozenset(reader.__name__ for reader in _READERS) - {"stack"}
_KEYWORDS = frozenset({"stacklevel", "stack_info"})
_LEVEL = 2  # the position of ``stacklevel`` in the arguments of ``warnings.warn``
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST", "LOAD_FAST_CHECK"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_PAIR = re.compile("((?:LOAD|STORE)_FAST)_((?:LOAD|STORE)_FAST)")
_CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}


@dataclass(frozen=True)
class Look:
    """An expression that reads a caller's frame, as the user has written it, and its line."""

    what: str
    line: int

    def __str__(self) -> str:
        return f"{self.what} in line {self.line}" if self.line else self.what


_known: dict[int, tuple[weakref.ref[types.CodeType], Look | None]] = {}  # by the id of the code: calls ask repeatedly


def look_at_callers(function: types.FunctionType) -> Look | None:
    """Returns the expression in a function that reads the frames of its callers; None if there is none.

    >>> look_at_callers(look_at_callers)
    >>> str(look_at_callers(lambda: sys._getframe(1)))[:13]
    'sys._getframe'
    """
    code = function.__code__
    number = id(code)
    found = _known.get(number)
    if found is not None and found[0]() is code:
        return found[1]
    scan = _Scan(function)
    look = next(scan.looks(), None)
    if not scan.is_open:  # else a name may be bound later
        drop = _known.pop  # bound here: at exit the module's globals are cleared first
        _known[number] = weakref.ref(code, lambda _: drop(number, None)), look
    return look


class _Scan:
    """One pass over the instructions of a function. ``is_open``: a global name was unbound."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self.code = function.__code__
        self.is_open = False
        self.names = dict(self._bound(function))

    def looks(self) -> Iterator[Look]:
        """Returns the expressions that read callers' frames, in the order of the instructions."""
        codes = [self.code, *(c for c in self.code.co_consts if isinstance(c, types.CodeType) and "<" in c.co_name)]
        for code in codes:
            yield from self._in(list(_simple(code)))

    def _in(self, steps: list[dis.Instruction]) -> Iterator[Look]:
        value, text, start = _UNKNOWN, "", None
        imported: Any = _UNKNOWN
        for at, step in enumerate(steps):
            if step.opname in _LOADS:
                text, start = str(step.argval), step
                value = self._value(step)
            elif step.opname in _ATTRIBUTES and value is not None:
                text = f"{text}.{step.argval}" if text else str(step.argval)
                value = _attribute(value, step.argval)
            elif step.opname == "IMPORT_NAME":
                imported = value = sys.modules.get(step.argval, _UNKNOWN)
                text, start = str(step.argval), step
            elif step.opname == "IMPORT_FROM":
                value, text, start = _attribute(imported, step.argval), str(step.argval), step
            elif step.opname == "STORE_FAST":
                self.names[step.argval] = value if step.argval not in self.names else _UNKNOWN
                value, text = _UNKNOWN, ""
                continue
            elif step.opname in ("PUSH_NULL", "CACHE", "EXTENDED_ARG", "NOP"):
                continue
            else:
                if _names_level(steps, at):
                    yield Look(f"the argument {_keyword(step.argval)}", _line(step))
                value, text = _UNKNOWN, ""
                continue
            by_name = value is _UNKNOWN and text.rpartition(".")[2] in _TELLING_NAMES
            if by_name or any(value is reader for reader in _READERS):
                yield Look(text, _line(step))
            elif value is warnings.warn and start is not None and _gives_level(steps, at, start):
                yield Look(f"{text} with a level", _line(step))

    def _value(self, step: dis.Instruction) -> Any:
        name = step.argval
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found = self.function.__globals__.get(name, getattr(builtins, name, _UNKNOWN))
            self.is_open = self.is_open or found is _UNKNOWN
            return found
        return self.names.get(name, _UNKNOWN)

    @staticmethod
    def _bound(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        """Returns the values of closure variables, and the defaults of parameters."""
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield name, cell.cell_contents
            except ValueError:  # not bound yet
                continue
        defaults = function.__defaults__ or ()
        first = code.co_argcount - len(defaults)
        yield from zip(code.co_varnames[first : code.co_argcount], defaults, strict=True)
        yield from (function.__kwdefaults__ or {}).items()


def _attribute(value: Any, name: str) -> Any:
    """Returns the attribute of a module, a class or an object, without running code of its own."""
    if value is _UNKNOWN:
        return _UNKNOWN
    found = inspect.getattr_static(value, name, _UNKNOWN)
    return found.__func__ if isinstance(found, staticmethod | classmethod) else found


def _keyword(names: Iterable[str] | str) -> str:
    return next(name for name in _KEYWORDS if name in ((names,) if isinstance(names, str) else names))


def _names_level(steps: list[dis.Instruction], at: int) -> bool:
    """Whether a constant names an argument that makes the callee read its callers, with a value that asks for it."""
    names = steps[at].argval
    if steps[at].opname not in ("LOAD_CONST", "KW_NAMES"):
        return False
    if type(names) is str:
        return names in _KEYWORDS
    if type(names) is not tuple or _KEYWORDS.isdisjoint(name for name in names if type(name) is str):
        return False
    return names[-1] not in _KEYWORDS or not _is_at_most_one(steps, at - 1)


def _gives_level(steps: list[dis.Instruction], at: int, start: dis.Instruction) -> bool:
    """Whether the call of ``warnings.warn`` that is loaded here passes ``stacklevel`` by position."""
    place = _place(start)
    for position in range(at + 1, len(steps)):
        step = steps[position]
        if step.opname in _CALLS and (place is None or _place(step) == place):
            if step.opname == "CALL_FUNCTION_EX":
                return True
            named = _given_by_name(steps, position)
            if (step.arg or 0) - named <= _LEVEL:
                return False
            last = position - 1 - (steps[position - 1].opname == "PRECALL")
            return bool(named) or not _is_at_most_one(steps, last)
    return any(type(step.argval) is int and step.argval > 1 for step in steps if "CONST" in step.opname)


def _given_by_name(steps: list[dis.Instruction], call: int) -> int:
    """Returns the number of keyword arguments of a call."""
    for step in reversed(steps[max(call - 2, 0) : call]):
        if step.opname == "KW_NAMES" or (steps[call].opname == "CALL_KW" and type(step.argval) is tuple):
            return len(step.argval)
    return 0


def _is_at_most_one(steps: list[dis.Instruction], at: int) -> bool:
    given = steps[at].argval
    return "CONST" in steps[at].opname and (given is None or given is False or (type(given) is int and given <= 1))


def _simple(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Returns the instructions in the vocabulary of all versions, pairs split in two.

    Includes the names of keyword arguments, which CPython 3.11's ``dis`` omits.
    """
    for step in dis.get_instructions(code):
        name = same_as(step.opname)
        if name == "KW_NAMES":
            yield step._replace(argval=code.co_consts[step.arg or 0])
        elif (parts := _PAIR.fullmatch(name)) is not None and type(step.argval) is tuple:
            for part, variable in zip(parts.groups(), step.argval, strict=True):
                yield step._replace(opname=part, argval=variable)
        elif step.opname == "LOAD_COMMON_CONSTANT":  # CPython 3.14 has the number only
            yield step._replace(opname=name, argval=COMMON_CONSTANTS[step.arg or 0])
        else:
            yield step._replace(opname=name)


def _line(step: dis.Instruction) -> int:
    return (step.positions.lineno if step.positions is not None else None) or 0


def _place(step: dis.Instruction) -> tuple[int | None, int | None] | None:
    at = step.positions
    return None if at is None or at.lineno is None else (at.lineno, at.col_offset)


__all__ = ["REASON", "Look", "look_at_callers"]
