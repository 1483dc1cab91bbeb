"""Instructions that move values: constants, locals, cells, globals, and the stack itself.

Input: a frame.
Output: the frame with a value moved.
Why: reads of globals and built-ins need guards, and moves between a frame's places do not.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.lazy_imports import is_imported
from tcompile.capture.guards.sources import AttributeSource, ConstantSource, ItemSource
from tcompile.capture.interpreter.frame import Frame, Returned, Yielded, handler
from tcompile.capture.semantics.attributes import attribute, has_attribute
from tcompile.capture.values.base import NULL, LazyValue, Null, Value
from tcompile.capture.values.callable import ClosureCell
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.slices import SliceValue
from tcompile.frontends.base import CannotCapture


@handler("NOP", "RESUME", "PRECALL", "COPY_FREE_VARS", "END_FOR")
def _nothing(f: Frame, i: Instruction) -> None:
    return


@handler("RETURN_GENERATOR")
def _return_generator(f: Frame, i: Instruction) -> None:
    f.push(NULL)  # the generator object that the following POP_TOP discards
    raise Yielded(NULL)  # to the caller: the body runs at the first `next`


@handler("MAKE_CELL")
def _make_cell(f: Frame, i: Instruction) -> None:
    f.cells[i.argval] = ClosureCell(f.tx, f.locals.pop(i.argval, None))  # from now on the variable lives in its cell


@handler("PUSH_NULL")
def _push_null(f: Frame, i: Instruction) -> None:
    f.push(NULL)


@handler("POP_TOP")
def _pop_top(f: Frame, i: Instruction) -> None:
    value = f.stack[-1]
    if type(value) is LazyValue and _ends_in_python(value.value):
        raise CannotCapture("frame-step", f.tx.current_text())  # its clean-up has its place in the program
    f.pop_unread()


@handler("POP_ITER")
def _pop_iterator(f: Frame, i: Instruction) -> None:
    del f.stack[len(f.stack) - D.iterator_items + 1 :]
    _pop_top(f, i)


def _ends_in_python(value: Any) -> bool:
    """Whether the program's own code may run as an object ends that only the frame holds (a loop's iterator)."""
    classes = type.__dict__["__mro__"].__get__(type(value))
    return type(value) in _SUSPENDED or any("__del__" in type.__dict__["__dict__"].__get__(cls) for cls in classes)


_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


@handler("COPY")
def _copy(f: Frame, i: Instruction) -> None:
    f.push(f.stack[-(i.arg or 0)])


@handler("SWAP")
def _swap(f: Frame, i: Instruction) -> None:
    depth = i.arg or 0
    f.stack[-1], f.stack[-depth] = f.stack[-depth], f.stack[-1]


@handler("LOAD_CONST")
def _load_const(f: Frame, i: Instruction) -> None:
    f.push(f.tx.wrap_found(i.argval) if callable(i.argval) else constant(i.argval))


def constant(value: Any) -> Value:
    """The value of a constant of the code object; tuples are taken apart, so that they can be indexed and unpacked."""
    if type(value) is tuple:
        made = SequenceValue([constant(item) for item in value], tuple)
        made.original = value
        return made
    if type(value) is slice:
        start, stop, step = map(constant, (value.start, value.stop, value.step))
        return SliceValue(start, stop, step)
    return Constant(value)


@handler("RETURN_CONST")
def _return_const(f: Frame, i: Instruction) -> None:
    raise Returned(constant(i.argval))


@handler("RETURN_VALUE")
def _return_value(f: Frame, i: Instruction) -> None:
    raise Returned(f.pop_unread())


@handler("YIELD_VALUE")
def _yield_value(f: Frame, i: Instruction) -> None:
    raise Yielded(f.pop())


@handler("LOAD_FAST", "LOAD_FAST_CHECK")
def _load_fast(f: Frame, i: Instruction) -> None:
    f.push(f.load_local(i.argval))


@handler("LOAD_FAST_AND_CLEAR")
def _load_fast_and_clear(f: Frame, i: Instruction) -> None:
    f.assigned.add(i.argval)
    f.rely_on_binding(i.argval)
    found = f.locals.pop(i.argval, None)
    if found is None and i.argval in f.cells and i.argval in f.code.co_cellvars:
        found = f.cells.pop(i.argval)
    f.push(found or NULL)


@handler("LOAD_FAST_LOAD_FAST")
def _load_fast_twice(f: Frame, i: Instruction) -> None:
    for name in i.argval:
        f.push(f.load_local(name))


def store_local(f: Frame, name: str, value: Value) -> None:
    """Binds a local variable; the empty slot unbinds it (as comprehensions do when they give a name back)."""
    f.assigned.add(name)
    if isinstance(value, Null):
        f.locals.pop(name, None)
        f.cells.pop(name, None)
    elif isinstance(value, ClosureCell) and name in f.code.co_cellvars:  # a comprehension gives a closure variable back
        f.cells[name] = value
    else:
        f.locals[name] = value


@handler("STORE_FAST")
def _store_fast(f: Frame, i: Instruction) -> None:
    store_local(f, i.argval, f.pop_unread())


@handler("STORE_FAST_LOAD_FAST")
def _store_load(f: Frame, i: Instruction) -> None:
    store, load = i.argval
    value = f.pop_unread()
    loaded = value if load == store else f.load_local(load)  # first, as it may not be set
    store_local(f, store, value)
    f.push(loaded)


@handler("STORE_FAST_STORE_FAST")
def _store_store(f: Frame, i: Instruction) -> None:
    for name in i.argval:
        store_local(f, name, f.pop_unread())


@handler("DELETE_FAST")
def _delete_fast(f: Frame, i: Instruction) -> None:
    f.load_local(i.argval)
    f.assigned.add(i.argval)
    del f.locals[i.argval]


@handler("LOAD_CLOSURE")
def _load_closure(f: Frame, i: Instruction) -> None:
    f.push(f.cells[i.argval])


@handler("LOAD_DEREF", "LOAD_CLASSDEREF")
def _load_deref(f: Frame, i: Instruction) -> None:
    f.push(f.cells[i.argval].get(i.argval))


@handler("STORE_DEREF")
def _store_deref(f: Frame, i: Instruction) -> None:
    f.cells[i.argval].set(f.pop_unread())


@handler("DELETE_DEREF")
def _delete_deref(f: Frame, i: Instruction) -> None:
    f.cells[i.argval].delete(i.argval)


def push_callable(f: Frame, value: Value) -> None:
    """Pushes a callable with the empty slot that CALL expects beside it: above it since 3.13, below it before."""
    f.push(value if D.null_above else NULL)
    f.push(NULL if D.null_above else value)


@handler("LOAD_GLOBAL")
def _load_global(f: Frame, i: Instruction) -> None:
    value = f.load_global(i.argval)
    if (i.arg or 0) & 1:
        push_callable(f, value)
    else:
        f.push(value)


@handler("LOAD_NAME")
def _load_name(f: Frame, i: Instruction) -> None:
    f.push(f.load_global(i.argval))


@handler("STORE_GLOBAL", "STORE_NAME")
def _store_global(f: Frame, i: Instruction) -> None:
    f.store_global(i.argval, f.pop_unread())


@handler("DELETE_GLOBAL", "DELETE_NAME")
def _delete_global(f: Frame, i: Instruction) -> None:
    f.store_global(i.argval, None)


@handler("LOAD_BUILD_CLASS", "SETUP_ANNOTATIONS")
def _class_statement(f: Frame, i: Instruction) -> None:
    raise CannotCapture("unsupported-instruction", "a class statement or an annotation")


@handler("IMPORT_NAME")
def _import(f: Frame, i: Instruction) -> None:
    level, names = f.pop_many(2)
    parts = i.argval.split(".")
    paths = [".".join(parts[: n + 1]) for n in range(len(parts))]
    importer = f.function.builtins.get("__import__")
    if constant_of(level, "a level") or importer is not _IMPORT or not all(map(is_imported, paths)):
        raise CannotCapture("side-effect", f"Importing `{i.argval}`")
    home, text = ConstantSource.of("sys", sys), "__import__ is the built-in"
    f.tx.prologue.guard_binding(home, f.function.builtins, "__import__", text, "the built-in", "built-in")
    modules = AttributeSource(home, "modules")
    found = [f.tx.wrap(sys.modules[path], ItemSource(modules, path)) for path in paths]
    if names.is_none:
        f.push(found[0])
        return
    for name in names.iterate(f.tx):
        if not has_attribute(f.tx, found[-1], constant_of(name, "a name")):  # a module that is not imported yet
            raise CannotCapture("side-effect", f"Importing `{i.argval}`")
    f.push(found[-1])


_IMPORT = builtins.__import__


@handler("IMPORT_FROM")
def _import_from(f: Frame, i: Instruction) -> None:
    f.push(attribute(f.tx, f.peek(1), i.argval))
