"""Instructions of control flow: jumps, loops, raising, ``with``.

Input: a frame.
Output: the frame at its next instruction.
Why: a loop over known values is unrolled by following its jumps; all other loops are in ``loops``.
"""

from __future__ import annotations

import sys

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.interpreter.frame import Frame, handler
from tcompile.capture.semantics.attributes import iterator
from tcompile.capture.semantics.operators import identical
from tcompile.capture.values.base import NULL, LazyValue, Value, settled
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.generator import GeneratorValue
from tcompile.capture.values.object import Exhausted, ObjectValue, advance
from tcompile.capture.values.tensor import BlockValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph import TensorType

_MOST_READ = 500  # loads and guards of an unrolled loop without arrays, which each call would repeat


@handler("GET_ITER")
def _get_iter(f: Frame, i: Instruction) -> None:
    value = f.pop_unread()
    is_text = isinstance(value, LazyValue) and type(value.value) is str
    _push_iterator(f, iterator(f.tx, value if is_text else settled(f.tx, value)))


def _push_iterator(f: Frame, items: Value) -> None:
    """Pushes an iterator, with the empty slot above it in versions that have one."""
    f.stack += [items, NULL][: D.iterator_items]


@handler("JUMP_FORWARD")
def _jump(f: Frame, i: Instruction) -> None:
    f.jump(i)


@handler("JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump_back(f: Frame, i: Instruction) -> None:
    """Jumps to another iteration, unless the unrolled loop has become too large."""
    tx, most = f.tx, f.tx.options.max_unrolled
    nodes = tx.builder.graph.nodes
    steps = len(tx.prologue.steps)
    began, read = f.first_iteration.setdefault(i.offset, (len(nodes), steps))
    if most is not None and len(nodes) - began > most:
        raise CannotCapture("too-long", f"A loop was unrolled into more than {most} operations.")
    if most is not None and steps - read > _MOST_READ:
        if not any(isinstance(node.type, TensorType) for node in nodes[began:]):
            raise CannotCapture("too-long", f"A loop without arrays needs more than {_MOST_READ} loads and guards.")
        f.first_iteration[i.offset] = began, sys.maxsize  # it is worth it
    f.jump(i)
    f.came_back = f.at


def jump_either_way(f: Frame, i: Instruction) -> None:
    """Jumps ahead, or to another iteration: 3.11 has tests that jump back."""
    if "BACKWARD" in i.opname:
        _jump_back(f, i)
    else:
        f.jump(i)
        f.came_back = -1


@handler(
    "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE",
    "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE",
)  # fmt: skip
def _pop_jump_none(f: Frame, i: Instruction) -> None:
    if identical(f.tx, f.pop(), Constant(None)) != i.opname.endswith("NOT_NONE"):
        jump_either_way(f, i)


@handler("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(f: Frame, i: Instruction) -> None:
    value = f.pop()
    if value.truth(f.tx) == (i.opname == "JUMP_IF_TRUE_OR_POP"):
        f.push(value)
        f.jump(i)


@handler("RAISE_VARARGS", "RERAISE", "PUSH_EXC_INFO", "LOAD_ASSERTION_ERROR")
def _raise(f: Frame, i: Instruction) -> None:
    stops = i.opname == "RAISE_VARARGS" and i.arg == 1 and not f.code.co_exceptiontable
    if stops and isinstance(f.stack[-1], Constant) and f.stack[-1].value is StopIteration:
        raise Exhausted("raises", f"`{f.tx.current_text()}`")
    raise CannotCapture("raises", f"`{f.tx.current_text()}`")


@handler("BEFORE_WITH")
def _with(f: Frame, i: Instruction) -> None:
    shown, manager = f.stack[-1].describe(), f.pop()
    if isinstance(manager, BlockValue):
        f.push(manager.way_out(f.tx))
        f.push(manager.way_in(f.tx).call(f.tx, [], {}))
        return
    if not isinstance(manager, ObjectValue) or not manager.defines("__enter__", "__exit__"):
        raise CannotCapture("with-statement", shown)
    enter, leave = manager.special(f.tx, "__enter__"), manager.special(f.tx, "__exit__")
    f.push(leave)
    f.push(enter.call(f.tx, [], {}))


@handler("LOAD_SPECIAL")
def _load_special(f: Frame, i: Instruction) -> None:
    """Loads a method that enters or leaves a ``with`` block; from 3.14 on each has an instruction, the exit first."""
    shown, manager = f.stack[-1].describe(), f.pop()
    if isinstance(manager, BlockValue):
        f.push(manager.way_out(f.tx) if i.argval == "__exit__" else manager.way_in(f.tx))
    elif isinstance(manager, ObjectValue) and manager.defines("__enter__", "__exit__"):
        f.push(manager.special(f.tx, i.argval))
    else:
        raise CannotCapture("with-statement", shown)
    f.push(NULL)


@handler("BEFORE_ASYNC_WITH")
def _async_with(f: Frame, i: Instruction) -> None:
    raise CannotCapture("with-statement", f.stack[-1].describe())


@handler("GET_YIELD_FROM_ITER")
def _get_yield_from_iter(f: Frame, i: Instruction) -> None:
    _push_iterator(f, iterator(f.tx, f.pop()))


@handler("SEND")
def _send(f: Frame, i: Instruction) -> None:
    sent, receiver = f.pop(), f.peek(D.iterator_items)
    if isinstance(receiver, GeneratorValue):
        value = receiver.send(sent)
    elif sent.is_none:
        value = advance(f.tx, receiver)
    else:
        raise CannotCapture("generator", f"a value is sent to {receiver.describe()}")
    if value is not None:
        f.push(value)
        return
    result = receiver.result if isinstance(receiver, GeneratorValue) else None
    if not D.keeps_receiver:
        f.pop()
    f.push(result or Constant(None))
    f.jump(i)


@handler("END_SEND")
def _end_send(f: Frame, i: Instruction) -> None:
    del f.stack[-1 - D.iterator_items : -1]
