"""The binary interface of CPython and NumPy, as far as native code relies on it, and checks of it.

Input: nothing.
Output: offsets of object fields, addresses of C functions, the allocators of Python and NumPy, and builtin functions
made from loaded code.
Why: every assumption about another program's memory is in one place, and is checked against Python itself before any
code relies on it (``unsupported``). A mismatch makes native code unavailable; it never makes it wrong.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tcompile import system
from tcompile.backends.llvm.native import target

# Offsets in bytes: PyObject, PyVarObject, PyTypeObject, bytes, float, list; then NumPy's PyArrayObject.
# The names are those that the IR texts use.
OFFSETS = {
    "OB_TYPE": 8,
    "OB_SIZE": 16,
    "TYPE_NAME": 24,
    "BYTES_TEXT": 32,
    "FLOAT_VALUE": 16,
    "LIST_ITEMS": 24,
    "ARRAY_DATA": 16,
    "ARRAY_NDIM": 24,
    "ARRAY_DIMS": 32,
    "ARRAY_STRIDES": 40,
    "ARRAY_FLAGS": 64,
    "ARRAY_HANDLER": 88,  # of the handler of the array's memory
}

# Slots of NumPy's C API table, fixed by its ABI.
_NUMPY_SLOTS = {
    "PyArray_Scalar": 60,
    "PyArray_NewFromDescr": 94,
    "PyDataMem_GetHandler": 305,
    "PyDataMem_DefaultHandler": 306,  # a variable
}

RAW = 0  # PYMEM_DOMAIN_RAW
DOMAINS = range(3)  # of Python's allocators: raw, mem, obj
_HANDLER_TEXT = 127  # bytes of a memory handler's name, before its version and its allocator


def symbols(ir: str) -> dict[str, int]:
    """Addresses of the functions and variables of CPython's and NumPy's C API that the IR text declares.

    Raises ValueError for a name that this CPython lacks.
    """
    found = {}
    for name in set(re.findall(r"^(?:declare .*?|)@(_?Py\w+)(?:\(| = external)", ir, re.MULTILINE)):
        if name == "PyArray_Type":
            found[name] = id(np.ndarray)
        elif name in _NUMPY_SLOTS:
            found[name] = _numpy_function(name)
        else:
            found[name] = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))
    return found


def _numpy_function(name: str) -> int:
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table: int = get(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return _word(table + 8 * _NUMPY_SLOTS[name])


def builtin(code: target.MachineCode, method: str) -> Callable[..., Any]:
    """The builtin for the PyMethodDef that ``code`` exports as ``method``. The code must stay loaded."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    function: Callable[..., Any] = make(code[method], None, None)
    return function


def c_string(name: str, text: str) -> str:
    """IR of a constant ``@name`` that holds the ASCII ``text`` and a closing zero."""
    data = text.encode("ascii")
    escaped = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in data)
    return f'@{name} = private constant [{len(data) + 1} x i8] c"{escaped}\\00"\n'


def method_def(export: str, function: str, signature: str) -> str:
    """IR of a PyMethodDef ``@export`` for the METH_FASTCALL function ``@function``."""
    name = signature.partition("(")[0]
    return (
        c_string(f"{export}.name", name)
        + c_string(f"{export}.doc", f"{signature}\n--\n\n")
        + f"@{export} = global {{ ptr, ptr, i32, ptr }} "
        f"{{ ptr @{export}.name, ptr @{function}, i32 128, ptr @{export}.doc }}\n"
    )


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _layout_error() -> str | None:
    """Checks the offsets on two arrays, a bytes object and a type; None where all agree."""
    if object.__basicsize__ != 16 or np.ndarray.__basicsize__ < OFFSETS["ARRAY_STRIDES"] + 8:
        return "objects have another size"
    whole = np.zeros((3, 5, 7), np.int16)
    for sample in (whole, whole[1:, ::2, ::-3].T):
        at = id(sample)
        if _word(at + OFFSETS["OB_TYPE"]) != id(np.ndarray):
            return "an object's type is not where it should be"
        if ctypes.c_int.from_address(at + OFFSETS["ARRAY_NDIM"]).value != sample.ndim:
            return "an array's number of axes is not where it should be"
        if _word(at + OFFSETS["ARRAY_DATA"]) != sample.__array_interface__["data"][0]:
            return "an array's data pointer is not where it should be"
        for offset, expected in (
            (OFFSETS["ARRAY_DIMS"], sample.shape),
            (OFFSETS["ARRAY_STRIDES"], sample.strides),
        ):
            found = (ctypes.c_int64 * sample.ndim).from_address(_word(at + offset))
            if tuple(found) != expected:
                return "an array's shape or strides are not where they should be"
    text = b"layout"
    if _word(id(text) + OFFSETS["OB_SIZE"]) != len(text) or ctypes.string_at(id(text) + OFFSETS["BYTES_TEXT"]) != text:
        return "a bytes object looks different"
    if b"ndarray" not in ctypes.string_at(_word(id(np.ndarray) + OFFSETS["TYPE_NAME"])):
        return "a type's name is not where it should be"
    return None


def knows_owners() -> bool:
    """Whether an array's flags, and the handler of its memory, are at the known offsets."""
    if np.ndarray.__basicsize__ < OFFSETS["ARRAY_HANDLER"] + 8:
        return False
    handler = ctypes.PYFUNCTYPE(ctypes.py_object)(_numpy_function("PyDataMem_GetHandler"))()
    whole = np.zeros((3, 5))
    return all(
        bool(ctypes.c_int.from_address(id(sample) + OFFSETS["ARRAY_FLAGS"]).value & 4) == owns
        and _word(id(sample) + OFFSETS["ARRAY_HANDLER"]) == (id(handler) if owns else 0)
        for sample, owns in ((whole, True), (whole[1:], False), (np.frombuffer(b"some", np.int8), False))
    )


def knows_lists() -> bool:
    """Whether the items of a list, and the value of a float, are at the known offsets."""
    items = [1.5, -2.25]
    held = (ctypes.c_uint64 * 2).from_address(_word(id(items) + OFFSETS["LIST_ITEMS"]))
    values = [ctypes.c_double.from_address(at + OFFSETS["FLOAT_VALUE"]).value for at in map(id, items)]
    return list.__basicsize__ == 40 and list(held) == [*map(id, items)] and values == items


def allocator(domain: int) -> ctypes.Array[ctypes.c_uint64]:
    """A copy of the allocator of one of Python's domains: context, malloc, calloc, realloc, free."""
    found = (ctypes.c_uint64 * 5)()
    ctypes.pythonapi.PyMem_GetAllocator(ctypes.c_int(domain), found)
    return found


def set_allocator(domain: int, functions: ctypes.Array[ctypes.c_uint64]) -> None:
    """Sets the allocator of one of Python's domains, which must forward to the previous one."""
    ctypes.pythonapi.PyMem_SetAllocator(ctypes.c_int(domain), functions)


def arena_allocator() -> ctypes.Array[ctypes.c_uint64]:
    """A copy of the allocator of the arenas from which Python makes small objects: context, malloc, free."""
    found = (ctypes.c_uint64 * 3)()
    ctypes.pythonapi.PyObject_GetArenaAllocator(found)
    return found


def set_arena_allocator(functions: ctypes.Array[ctypes.c_uint64]) -> None:
    """Sets the allocator of Python's arenas, which must forward to the previous one."""
    ctypes.pythonapi.PyObject_SetArenaAllocator(functions)


def default_allocator() -> ctypes.Array[ctypes.c_uint64] | None:
    """The allocator of NumPy's default memory handler, in place: context, malloc, calloc, realloc, free.

    None where the handler is an unknown one, or where NumPy keeps it in read-only memory.
    """
    capsule = _word(_numpy_function("PyDataMem_DefaultHandler"))
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    at: int = get(capsule, b"mem_handler")
    name, version = ctypes.string_at(at), ctypes.string_at(at + _HANDLER_TEXT, 1)
    known = name == b"default_allocator" and version == b"\x01"
    functions = (ctypes.c_uint64 * 5).from_address(at + _HANDLER_TEXT + 1)
    return functions if known and all(functions[1:]) and _is_writeable(functions) else None


def _is_writeable(words: ctypes.Array[ctypes.c_uint64]) -> bool:
    """Whether memory can be written: read() returns an error where a store would end the process. The contents stay."""
    reading, writing = os.pipe()
    try:
        os.write(writing, bytes(words))
        count = system.read_function()(reading, words, ctypes.c_size_t(ctypes.sizeof(words)))
        return count == ctypes.sizeof(words)
    finally:
        os.close(reading)
        os.close(writing)


@cache
def unsupported() -> str | None:
    """The reason why this process cannot run native code or read Python's objects from it; None where it can."""
    reason = target.unsupported()
    if reason is None and (wrong := _layout_error()) is not None:
        reason = f"the object layout of this CPython or NumPy is not the one that native code knows: {wrong}"
    return reason
