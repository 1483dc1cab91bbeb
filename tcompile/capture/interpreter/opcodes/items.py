"""Instructions that read and write attributes and items.

Input: a frame.
Output: the frame with the value read. A write is done where the value allows it, else it is a graph break.
Why: values have the meaning of items and attributes, and these handlers only move them to and from the stack.
"""

from __future__ import annotations

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.interpreter.frame import Frame, handler
from tcompile.capture.interpreter.opcodes.names import push_callable
from tcompile.capture.semantics.attributes import attribute
from tcompile.capture.values.base import settled
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.slices import SliceValue
from tcompile.capture.values.text import held


@handler("LOAD_ATTR")
def _load_attr(f: Frame, i: Instruction) -> None:
    value = attribute(f.tx, f.pop(), i.argval)
    if D.attributes_load_methods and (i.arg or 0) & 1:
        push_callable(f, value)
    else:
        f.push(value)


@handler("LOAD_METHOD")
def _load_method(f: Frame, i: Instruction) -> None:
    push_callable(f, attribute(f.tx, f.pop(), i.argval))


@handler("STORE_ATTR")
def _store_attr(f: Frame, i: Instruction) -> None:
    owner = f.pop()
    owner.store_attribute(f.tx, i.argval, held(f.tx, f.pop_unread()))


@handler("DELETE_ATTR")
def _delete_attr(f: Frame, i: Instruction) -> None:
    f.pop().store_attribute(f.tx, i.argval, None)


@handler("BINARY_SUBSCR")
def _binary_subscr(f: Frame, i: Instruction) -> None:
    key = f.pop_unread()
    owner = f.pop()
    f.push(owner.item(f.tx, (held if isinstance(owner, DictValue) else settled)(f.tx, key)))


@handler("BINARY_SLICE")
def _binary_slice(f: Frame, i: Instruction) -> None:
    owner, start, stop = f.pop_many(3)
    f.push(owner.item(f.tx, SliceValue(start, stop, Constant(None))))


@handler("STORE_SUBSCR")
def _store_subscr(f: Frame, i: Instruction) -> None:
    value, owner, key = f.pop_many_unread(3)
    owner = settled(f.tx, owner)
    if isinstance(owner, DictValue):
        owner.store_item(f.tx, held(f.tx, key), held(f.tx, value))
    else:
        owner.store_item(f.tx, settled(f.tx, key), settled(f.tx, value))


@handler("STORE_SLICE")
def _store_slice(f: Frame, i: Instruction) -> None:
    value, owner, start, stop = f.pop_many(4)
    owner.store_item(f.tx, SliceValue(start, stop, Constant(None)), value)


@handler("DELETE_SUBSCR")
def _delete_subscr(f: Frame, i: Instruction) -> None:
    owner, key = f.pop_many(2)
    owner.delete_item(f.tx, key)
