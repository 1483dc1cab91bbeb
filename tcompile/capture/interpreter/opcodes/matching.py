"""Instructions of match statements.

Input: a frame with the subject on its stack.
Output: the values that the pattern binds, or None where it does not match.
Why: a pattern tests flags of the subject's type, which no other instruction does.
"""

from __future__ import annotations

from typing import Any

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.guards.sources import ConstantSource
from tcompile.capture.interpreter.frame import Frame, handler
from tcompile.capture.semantics.attributes import attribute, found_attribute, has_attribute
from tcompile.capture.semantics.builtins import is_instance
from tcompile.capture.values.base import Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue, hashable
from tcompile.capture.values.object import ObjectValue
from tcompile.frontends.base import CannotCapture

_SEQUENCE, _MAPPING, _MATCH_SELF = 1 << 5, 1 << 6, 1 << 22  # flags of a type


@handler("MATCH_SEQUENCE", "MATCH_MAPPING")
def _match_kind(f: Frame, i: Instruction) -> None:
    flag = _SEQUENCE if i.opname == "MATCH_SEQUENCE" else _MAPPING
    subject = f.peek(1)
    cls = subject.python_type
    found = bool(cls.__flags__ & flag)
    if isinstance(subject, ObjectValue):  # its class may be registered as a sequence or mapping
        where, text = ConstantSource.of(cls.__qualname__, cls), f"{cls.__qualname__} is a {i.opname[6:].lower()}"
        f.tx.prologue.guard(where, f"bool({{}}.__flags__ & {flag}) is {found}", text, str(found))
    f.push(Constant(found))


@handler("MATCH_KEYS")
def _match_keys(f: Frame, i: Instruction) -> None:
    subject, keys = f.peek(2), f.peek(1)
    if not isinstance(subject, DictValue):
        raise CannotCapture("unsupported-object", f"{subject.describe()} is matched with a mapping.")
    plain = [hashable(key, "a key") for key in keys.iterate(f.tx)]
    if len(set(plain)) != len(plain):
        raise CannotCapture("operation-raises", "mapping pattern checks duplicate key")
    matches = all(subject.has(key) for key in plain)
    f.push(SequenceValue([subject.at(key) for key in plain], tuple) if matches else Constant(None))


@handler("MATCH_CLASS")
def _match_class(f: Frame, i: Instruction) -> None:
    subject, cls, names = f.pop_many(3)
    f.push(_class_pattern(f, subject, cls, i.arg or 0, constant_of(names, "names")))


def _class_pattern(f: Frame, subject: Value, cls: Value, count: int, names: tuple[str, ...]) -> Value:
    plain: Any = constant_of(cls, "the class of a pattern")
    if not isinstance(plain, type):
        raise CannotCapture("operation-raises", "called match pattern must be a class")
    if not is_instance(f.tx, subject, plain):
        return Constant(None)
    found: list[Value] = []
    wanted: list[str] = []
    if count:
        if has_attribute(f.tx, cls, "__match_args__"):
            args = attribute(f.tx, cls, "__match_args__")
            if args.python_type is not tuple:
                raise CannotCapture("operation-raises", f"{plain.__name__}.__match_args__ must be a tuple")
            wanted += [constant_of(name, "a name") for name in args.iterate(f.tx)][:count]
            if any(type(name) is not str for name in wanted):
                raise CannotCapture("operation-raises", f"{plain.__name__}.__match_args__ elements must be strings")
        elif plain.__flags__ & _MATCH_SELF and count == 1:
            found.append(subject)
        if len(found) + len(wanted) != count:
            raise CannotCapture("operation-raises", f"{plain.__name__}() accepts fewer positional sub-patterns")
    if len({*wanted, *names}) != len(wanted) + len(names):
        raise CannotCapture("operation-raises", f"{plain.__name__}() got multiple sub-patterns for one attribute")
    for name in [*wanted, *names]:
        held = found_attribute(f.tx, subject, name)
        if held is None:
            return Constant(None)
        found.append(held)
    return SequenceValue(found, tuple)
