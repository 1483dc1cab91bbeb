"""Object layouts of CPython and NumPy that the machine code of calls relies on, and their verification.

Input: nothing.
Output: field offsets, found by inspecting objects of known contents, and the base class of compiled functions.
Why: separate from ``backends.llvm.native.abi``, because calls read more kinds of objects than kernels do. If one of
these assumptions fails, calls stay in Python and kernels do not.
"""

from __future__ import annotations

import array
import ctypes
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile import interpreter

_WORD = 8
_END_OF_FIELDS = 128  # of a function object, in bytes
_END_OF_STATE = 160  # of the inspected part of a thread's state, which has some hundred bytes more
_END_OF_INTERPRETER, _PIECE, _TOOLS = 1 << 20, 1 << 9, 6
_TYPE_VECTORCALL, _TYPE_FLAGS = 56, 168  # in a PyTypeObject
_HAVE_VECTORCALL, _METHOD_DESCRIPTOR = 1 << 11, 1 << 17
_BASE_FLAGS = 1 << 18 | 1 << 10 | _HAVE_VECTORCALL  # default, may be inherited from, and the one it is for
_VECTORCALL = 16  # after the object's head, in a compiled function
TABLES = 24  # its slot after that

# Offsets of fields, most of them stable for many versions; ``unsupported`` verifies each.
OFFSETS = {
    "OB_TYPE": 8,
    "OB_SIZE": 16,
    "FLOAT_VALUE": 16,
    "SCALAR_VALUE": 16,
    "TUPLE_ITEMS": tuple.__basicsize__,  # 24 bytes; since CPython 3.14 a tuple keeps its hash before them
    "LIST_ITEMS": 24,
    "ARRAY_ITEMS": 24,  # of array.array
    "ARRAY_DATA": 16,
    "ARRAY_NDIM": 24,
    "ARRAY_DIMS": 32,
    "ARRAY_STRIDES": 40,
    "ARRAY_DTYPE": 56,
    "ARRAY_FLAGS": 64,
    "SELF_TABLES": TABLES,
}
C_CONTIGUOUS = 1
_SCALARS = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32,
    np.float64, np.complex64, np.complex128,
)  # fmt: skip


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )  # fmt: skip


_members = (_Member * 2)(_Member(b"__vectorcalloffset__", 19, _VECTORCALL, 1, None))  # a Py_ssize_t, read-only
_slots = (_Slot * 2)(_Slot(72, ctypes.addressof(_members)))  # Py_tp_members
_spec = _Spec(b"tcompile.runtime.native.Called", _VECTORCALL + _WORD, 0, _BASE_FLAGS, ctypes.addressof(_slots))


def _refusal() -> str | None:
    """Returns why this process cannot have a base class with a slot; None if it can."""
    if interpreter.refusal is not None:
        return interpreter.refusal
    if ctypes.sizeof(ctypes.c_void_p) != _WORD or sys.byteorder != "little":
        return "calls in machine code need a 64-bit little-endian machine"
    if hasattr(sys, "gettotalrefcount") or object.__basicsize__ != 2 * _WORD:
        return "calls in machine code do not support debug builds of CPython"
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = api.PyInterpreterState_Main.restype = ctypes.c_void_p
    if api.PyInterpreterState_Get() != api.PyInterpreterState_Main():
        return "calls in machine code do not support subinterpreters"
    return None


def _make_base() -> type:
    """Makes a class whose objects have a slot for the address of their machine code, zero at first."""
    if _refusal() is not None:
        return object
    # not through an attribute, to which other code may have given other types
    make = ctypes.pythonapi["PyType_FromSpec"]
    make.restype = ctypes.py_object
    try:
        made: type = make(ctypes.byref(_spec))
    except SystemError:  # a CPython that rejects the spec
        return object
    return made


class Table(array.array):  # type: ignore[type-arg]  # no class of CPython 3.11 to be asked for its items
    """Words that machine code reads, and in ``keep`` the objects whose addresses they contain."""

    keep: tuple[Any, ...] = ()


Base: Any = _make_base()  # what compiled functions inherit from


def complete(cls: Any, slot: str) -> Any:
    """Lets calls and bound calls of ``cls``'s objects find their machine code. Call it once, right after the class
    statement.

    CPython lets no class made by a class statement inherit these flags. The class must define ``__call__`` (for objects
    without machine code), ``__get__`` as functions do, and ``slot``, which machine code reads. The slot's descriptor is
    returned and removed from the class, so that no other code writes there.
    """
    descriptor = cls.__dict__[slot]
    delattr(cls, slot)
    _complete(cls, descriptor)
    return descriptor


def _complete(cls: Any, descriptor: Any) -> None:
    if Base is object or _word(id(cls) + _TYPE_FLAGS) != cls.__flags__:
        return
    if _word(id(cls) + _TYPE_VECTORCALL) != _VECTORCALL:
        return
    sample, held = cls.__new__(cls), ("held",)
    before = ctypes.string_at(id(sample) + _VECTORCALL, 2 * _WORD)
    descriptor.__set__(sample, held)
    if any(before) or _word(id(sample) + TABLES) != id(held) or _word(id(sample) + _VECTORCALL):
        return
    flags = ctypes.c_uint64.from_address(id(cls) + _TYPE_FLAGS)
    flags.value |= _HAVE_VECTORCALL | _METHOD_DESCRIPTOR


def is_complete(cls: type) -> bool:
    """Whether ``complete`` has verified the class."""
    return bool(cls.__flags__ & _HAVE_VECTORCALL and cls.__flags__ & _METHOD_DESCRIPTOR)


def point(called: object, address: int) -> None:
    """Sets the machine code that calls the object."""
    ctypes.c_uint64.from_address(id(called) + _VECTORCALL).value = address


def function_fields() -> dict[str, int]:
    """Returns the offsets of a function object's code, globals, defaults and keyword defaults. Raises LookupError."""
    namespace: dict[str, Any] = {}
    exec("def f(a=1.5, *, b=2.5): pass\ndef g(a=3.5, *, b=4.5): pass", namespace)
    found = {}
    for name, read in (
        ("FUNCTION_CODE", "__code__"),
        ("FUNCTION_GLOBALS", "__globals__"),
        ("FUNCTION_DEFAULTS", "__defaults__"),
        ("FUNCTION_KWDEFAULTS", "__kwdefaults__"),
    ):
        places = [
            {at for at in range(16, _END_OF_FIELDS, _WORD) if _word(id(function) + at) == id(getattr(function, read))}
            for function in (namespace["f"], namespace["g"])
        ]
        (found[name],) = set.intersection(*places) or (0,)
        if not found[name]:
            raise LookupError(name)
    namespace["f"].__defaults__ = namespace["f"].__kwdefaults__ = None
    if any(_word(id(namespace["f"]) + found[name]) for name in ("FUNCTION_DEFAULTS", "FUNCTION_KWDEFAULTS")):
        raise LookupError("defaults")
    return found


def trace_object() -> int:
    """Returns the offset of a thread's tracing object in its state, null without one. Raises LookupError."""
    api = ctypes.pythonapi
    state = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_Get", api))()
    tracer = sys.gettrace()
    if tracer is not None:
        return _only(state, id(tracer))
    hold = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.py_object)(("PyEval_SetTrace", api))
    sample = object()
    hold(None, sample)  # held and never called, as there is no trace function
    try:
        found = _only(state, id(sample))
    finally:
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(("PyEval_SetTrace", api))(None, None)
    if _word(state + found):
        raise LookupError("a tracing object that stays")
    return found


def _only(state: int, wanted: int) -> int:
    """Returns the offset of the only such word in the thread's state."""
    (found,) = [at for at in range(0, _END_OF_STATE, _WORD) if _word(state + at) == wanted] or (0,)
    if not found:
        raise LookupError("the tracing object")
    return found


def debugger_name() -> int:
    """Returns the address of the pointer to the name of ``sys.monitoring``'s debugger, null if none; else 0.

    Raises LookupError if it is not found. The names of all tools are adjacent in the interpreter's state, which is read
    only up to the first match.
    """
    if sys.version_info < (3, 12):
        return 0
    monitoring = sys.monitoring
    names = [monitoring.get_tool(tool) for tool in range(_TOOLS)]
    tool = next((tool for tool in range(_TOOLS - 1, -1, -1) if names[tool] is None), None)
    if tool is None:
        raise LookupError("a free tool")
    name = f"tcompile looks {tool}"
    monitoring.use_tool_id(tool, name)
    try:
        wanted = id(name).to_bytes(_WORD, sys.byteorder)
        interpreter = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", ctypes.pythonapi))()
        for start in range(interpreter, interpreter + _END_OF_INTERPRETER, _PIECE):
            at = ctypes.string_at(start, _PIECE).find(wanted)
            if at >= 0:
                break
        else:
            raise LookupError("the names of tools")
    finally:
        monitoring.free_tool_id(tool)
    first = start + at - _WORD * tool
    words = [_word(first + _WORD * other) for other in range(_TOOLS)]
    if first % _WORD or words != [0 if other is None else id(monitoring.get_tool(i)) for i, other in enumerate(names)]:
        raise LookupError("the names of tools")
    return first + _WORD * monitoring.DEBUGGER_ID


def unsupported() -> str | None:
    """Returns why calls cannot be machine code in this process; None if all assumptions hold."""
    refusal = _refusal()
    if refusal is not None:
        return refusal
    wrong = _wrong_layout()
    return f"this CPython or NumPy has other objects than the machine code of calls knows: {wrong}" if wrong else None


def _wrong_layout() -> str | None:
    if Base is object or sys.getsizeof(1.5) != 24:
        return "classes"
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("tuples", _tuples), ("floats", _floats), ("array.array", _words), ("arrays", _arrays), ("scalars", _scalars),
    )  # fmt: skip
    for what, right in checks:
        if not right():
            return what
    for what, find in (("functions", function_fields), ("threads", trace_object), ("tools", debugger_name)):
        try:
            find()
        except (LookupError, ValueError):
            return what
    return None


def _tuples() -> bool:
    items = ("a", 2.5, None)
    listed = list(items)
    at = _word(id(listed) + OFFSETS["LIST_ITEMS"])
    return (
        _word(id(items) + OFFSETS["OB_TYPE"]) == id(tuple)
        and _word(id(items) + OFFSETS["OB_SIZE"]) == _word(id(listed) + OFFSETS["OB_SIZE"]) == len(items)
        and [_word(id(items) + OFFSETS["TUPLE_ITEMS"] + _WORD * i) for i in range(3)] == list(map(id, items))
        and [_word(at + _WORD * i) for i in range(3)] == list(map(id, listed))
    )


def _floats() -> bool:
    values = (1.5, -0.0, 1e300)
    return all(
        struct.pack("<Q", _word(id(value) + OFFSETS["FLOAT_VALUE"])) == struct.pack("<d", value) for value in values
    )


def _words() -> bool:
    words = Table("Q", [1, 2, 3])
    return words.itemsize == _WORD and _word(id(words) + OFFSETS["ARRAY_ITEMS"]) == words.buffer_info()[0]


def _arrays() -> bool:
    whole = np.zeros((3, 5, 7), np.int16)
    for sample in (whole, whole[1:, ::2, ::-3].T, np.asfortranarray(whole), np.zeros((), np.complex128)):
        at, ndim = id(sample), sample.ndim
        flags = ctypes.c_int.from_address(at + OFFSETS["ARRAY_FLAGS"]).value
        if (
            ctypes.c_int.from_address(at + OFFSETS["ARRAY_NDIM"]).value != ndim
            or _word(at + OFFSETS["ARRAY_DATA"]) != sample.__array_interface__["data"][0]
            or _word(at + OFFSETS["ARRAY_DTYPE"]) != id(sample.dtype)
            or bool(flags & C_CONTIGUOUS) != sample.flags.c_contiguous
            or bool(flags & 2) != sample.flags.f_contiguous
            or bool(flags & 1024) != sample.flags.writeable
        ):
            return False
        if not ndim:
            continue
        for offset, expected in (("ARRAY_DIMS", sample.shape), ("ARRAY_STRIDES", sample.strides)):
            if tuple((ctypes.c_int64 * ndim).from_address(_word(at + OFFSETS[offset]))) != expected:
                return False
    return True


def _scalars() -> bool:
    return all(
        ctypes.string_at(id(value) + OFFSETS["SCALAR_VALUE"], value.nbytes) == value.tobytes()
        for value in (kind(1) for kind in _SCALARS)
    )


def scalar_holds_value(kind: type) -> bool:
    """Whether the value of a NumPy scalar of this class lies at the verified offset."""
    return kind in _SCALARS


__all__ = [
    "C_CONTIGUOUS", "OFFSETS", "TABLES", "Base", "complete", "debugger_name", "function_fields", "is_complete", "point",
    "scalar_holds_value", "trace_object", "unsupported",
]  # fmt: skip
