"""Predicts the loop-carried values from a loop's instructions, before an iteration is traced.

Input: a loop's instructions, and the values of variables at its start.
Output: the variables and arrays that the loop carries, or nothing where only a trial trace can show them; and the
induction variables.
Why: each trial trace costs another capture of the whole function. Each int that was taken for a constant costs another
compile.

A prediction may be wrong. An iteration that carries other values gets a trial trace after all.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.bytecode.instructions import Instruction, read
from tcompile.capture.loops.trip_count import is_int
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import settled
from tcompile.capture.values.constant import FloatValue
from tcompile.capture.values.scalar import ScalarValue

if TYPE_CHECKING:
    from tcompile.capture.interpreter.frame import Frame

_STORES = {"STORE_SUBSCR": 1, "STORE_SLICE": 2}  # how many stack items are above the container
_BINDS = ("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
_BINDS_ELSEWHERE = ("STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
_OPEN = ("POP_JUMP", "STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")  # a test, or an object that is changed
_ELSEWHERE = ("POP_JUMP", "JUMP", "FOR_ITER", "STORE", "RETURN")  # stack items below belong to another expression
_DEEPEST = 3  # calls in calls that are looked through
_MAKES = ("CALL", "CALL_KW", "BINARY_OP", "UNARY_NEGATIVE")


def foresee(f: Frame, inside: Iterable[int], needed: set[str]) -> tuple[set[str], set[str]] | None:
    """The variables that each iteration of a ``for`` loop binds for the next one, and those whose arrays it writes."""
    instructions = f.decoded.instructions
    made: dict[str, list[Instruction]] = {}  # the instructions before its bindings
    for at in sorted(inside):
        i = instructions[at]
        if i.opname.startswith(_OPEN):
            return None
        if i.opname in _BINDS:
            for name in _names(i):
                made.setdefault(name, []).append(instructions[at - 1])
    written = _written(instructions, inside, f.function.globals, _DEEPEST)
    if written is None:
        return None
    carried: set[str] = set()
    for name in needed & made.keys():
        value = f.locals.get(name)
        value = settled(f.tx, value) if value is not None else None
        in_place = {i.opname == "BINARY_OP" and i.argrepr.endswith("=") for i in made[name]}
        if any(i.opname not in _MAKES for i in made[name]) or name in written:
            return None
        if isinstance(value, ArrayValue) and not value.traced.scalar and in_place == {True}:
            written.add(name)
        elif isinstance(value, ArrayValue | ScalarValue | FloatValue) and not is_int(value) and in_place == {False}:
            carried.add(name)
        else:
            return None
    return carried, written


def targets(instructions: Sequence[Instruction]) -> frozenset[str]:
    """The variables that `for` loops bind in each iteration, whatever code they are in."""
    found: set[str] = set()
    for at, loop in enumerate(instructions):
        missing = int(loop.opname == "FOR_ITER")
        while missing:
            at += 1
            i = instructions[at]
            if i.opname == "UNPACK_SEQUENCE":
                missing += (i.arg or 0) - 1
            elif i.opname.startswith(_BINDS + _BINDS_ELSEWHERE):
                names = _names(i)[:1] if i.opname == "STORE_FAST_LOAD_FAST" else _names(i)
                found.update(names)
                missing -= len(names)
            else:
                break
    return frozenset(found)


def _written(
    instructions: Sequence[Instruction], inside: Iterable[int], names: Mapping[str, Any], deep: int
) -> set[str] | None:
    """The variables whose arrays instructions write, or called functions write; None: unknown."""
    found: set[str] = set()
    for at in inside:
        i = instructions[at]
        if i.opname in _STORES:
            beneath = _STORES[i.opname] + (instructions[at - 1].opname == "SWAP")  # of ``x[i] += y``
            name = _variable(instructions, at, beneath)
            if name is None:
                return None
            found.add(name)
        elif i.opname == "CALL" and i.arg and deep:
            before = at - (instructions[at - 1].opname == "PRECALL")
            function, _ = _pushed_by(instructions, before, i.arg)
            called = names.get(function.argval) if function is not None and function.opname == "LOAD_GLOBAL" else None
            if not isinstance(called, types.FunctionType) or called.__code__.co_argcount < i.arg:
                continue
            code = called.__code__
            body = read(code)
            parameters = _written(body, range(len(body)), called.__globals__, deep - 1) or set()
            for number in range(i.arg):
                if code.co_varnames[number] in parameters:
                    given = _variable(instructions, before, i.arg - 1 - number)
                    found |= {given} if given is not None else set()
    return found


def _variable(instructions: Sequence[Instruction], at: int, beneath: int) -> str | None:
    """The local variable ``beneath`` so many stack items before an instruction; None where it is no variable."""
    i, number = _pushed_by(instructions, at, beneath)
    return _names(i)[number] if i is not None and i.opname.startswith("LOAD_FAST") else None


def _pushed_by(instructions: Sequence[Instruction], at: int, beneath: int) -> tuple[Instruction | None, int]:
    """The instruction that pushed the item ``beneath`` so many others, and which of its items that is: 0, or -1.

    None where control may come from elsewhere.
    """
    missing = beneath + 1
    while missing > 0:
        at -= 1
        i = instructions[at]
        if not at or i.opname.startswith(_ELSEWHERE):
            return None, 0
        missing -= dis.stack_effect(i.opcode, i.arg if i.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    return i, missing


def _names(i: Instruction) -> tuple[str, ...]:
    return i.argval if isinstance(i.argval, tuple) else (i.argval,)


__all__ = ["foresee", "targets"]
