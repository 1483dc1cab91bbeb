"""Instructions that make and call functions.

Input: a frame with a callable and its arguments on the stack.
Output: the value of the call, which may have run a frame of its own.
Why: each version of CPython puts an empty slot above or below the callable. Either order is understood here alone.
"""

from __future__ import annotations

from functools import partial

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.interpreter.frame import Frame, handler
from tcompile.capture.interpreter.opcodes.names import push_callable
from tcompile.capture.semantics.builtins import takes_texts
from tcompile.capture.values.base import Null, Value, settled
from tcompile.capture.values.callable import ClosureCell, FunctionValue, MethodValue
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.text import held
from tcompile.frontends.base import CannotCapture


@handler("MAKE_FUNCTION")
def _make_function(f: Frame, i: Instruction) -> None:
    code = constant_of(f.pop(), "code")
    flags = (i.arg or 0) if D.function_flags else 0
    closure = _closure(f.pop()) if flags & 8 else []
    annotations = _annotations(f.pop()) if flags & 4 else None
    kwdefaults = f.pop() if flags & 2 else None
    defaults = f.pop() if flags & 1 else None
    f.push(
        FunctionValue(
            code, f.function.globals, closure,
            defaults.items if isinstance(defaults, SequenceValue) else (),
            kwdefaults.items if isinstance(kwdefaults, DictValue) else None, annotations=annotations,
        )
    )  # fmt: skip


def _annotations(values: Value) -> DictValue:
    assert isinstance(values, SequenceValue)
    names = [constant_of(name, "a name") for name in values.items[::2]]
    return DictValue(dict(zip(names, values.items[1::2], strict=True)))


def _closure(cells: Value) -> list[ClosureCell]:
    assert isinstance(cells, SequenceValue)
    return [cell for cell in cells.items if isinstance(cell, ClosureCell)]


@handler("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(f: Frame, i: Instruction) -> None:
    function = f.pop()
    value = f.pop()
    if not isinstance(function, FunctionValue) or function.function is not None:
        raise CannotCapture("frame-step", f.tx.current_text())  # the running frame is making the generator
    f.tx.touch()
    if i.arg == 8:
        function.closure = tuple(_closure(value))
    elif i.arg == 1 and isinstance(value, SequenceValue):
        function.defaults = tuple(value.items)
    elif i.arg == 2 and isinstance(value, DictValue):
        function.kwdefaults = dict(value.items)
    elif i.arg == 4:
        function.annotations = _annotations(value)
    elif i.arg == 16 and isinstance(value, FunctionValue):
        function.annotate = value
    else:
        raise CannotCapture("unsupported-instruction", i.opname)
    f.push(function)


@handler("KW_NAMES")
def _kw_names(f: Frame, i: Instruction) -> None:
    f.keyword_names = f.code.co_consts[i.arg or 0]


@handler("CALL")
def _call(f: Frame, i: Instruction) -> None:
    names, f.keyword_names = f.keyword_names, ()
    _finish_call(f, i.arg or 0, names)


@handler("CALL_KW")
def _call_kw(f: Frame, i: Instruction) -> None:
    names = constant_of(f.pop(), "keyword names")
    _finish_call(f, i.arg or 0, names)


def _finish_call(f: Frame, count: int, names: tuple[str, ...]) -> None:
    args = f.stack[len(f.stack) - count :]
    del f.stack[len(f.stack) - count :]
    second, first = f.pop(), f.pop()
    if isinstance(first, Null):
        function = second
    elif isinstance(second, Null):
        function = first
    else:  # a decorator or comprehension call: the slot holds the first argument
        function = first
        args = [second, *args]
    followed = function.function if type(function) is MethodValue else function
    if type(followed) is not FunctionValue:  # followed functions read arguments at their uses
        args = list(map(partial(held if takes_texts(function) else settled, f.tx), args))
    positional = len(args) - len(names)
    try:
        f.push(function.call(f.tx, args[:positional], dict(zip(names, args[positional:], strict=True))))
    except CannotCapture as stopped:
        if _opens_block(f) and stopped.reason == "unknown-function" and f.tx.frames[-1] is f:
            raise CannotCapture("with-statement", f"`{f.tx.current_text()}`") from stopped
        raise


def _opens_block(f: Frame) -> bool:
    """Whether the value of the call is the one that a ``with`` block is about to enter."""
    following = f.decoded.instructions[f.at + (f.decoded.instructions[f.at].opname == "COPY")].opname
    return following in ("BEFORE_WITH", "BEFORE_ASYNC_WITH", "LOAD_SPECIAL")


@handler("CALL_FUNCTION_EX")
def _call_function_ex(f: Frame, i: Instruction) -> None:
    keywords = f.pop() if D.keywords_slot or (i.arg or 0) & 1 else DictValue({})
    if isinstance(keywords, Null):
        keywords = DictValue({})
    args = list(f.pop().collect(f.tx, tuple))
    first, second = f.pop_many(2)
    function = second if isinstance(first, Null) else first
    if not isinstance(keywords, DictValue):
        raise CannotCapture("unsupported-object", f"{keywords.describe()} is unpacked into keyword arguments.")
    if any(type(name) is not str for name in keywords.keys):
        raise CannotCapture("operation-raises", "keywords must be strings")
    f.push(function.call(f.tx, args, keywords.items))


@handler("LOAD_SUPER_ATTR")
def _load_super_attr(f: Frame, i: Instruction) -> None:
    function, cls, owner = f.pop_many(3)
    args = [cls, owner] if (i.arg or 0) & 2 else []
    value = function.call(f.tx, args, {}).attribute(f.tx, i.argval)
    if (i.arg or 0) & 1:
        push_callable(f, value)
    else:
        f.push(value)
