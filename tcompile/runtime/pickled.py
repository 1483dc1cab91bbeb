"""Pickling of compiled functions.

Input: a compiled function, and the pickler that asks for its reduction.
Output: a name, if the reader can find the function under it. Else the plain function, its settings and attributes, from
which the reader compiles anew.
Why: picklers treat functions by their exact type. The standard pickle writes names only, which do not resolve for
lambdas, closures or a notebook's ``__main__`` functions. cloudpickle and dill write such functions by value; but if
``__reduce__`` returns a name, they write the name.
"""

from __future__ import annotations

import importlib
import io
import math
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

from tcompile.backends import register_backend, registered_backend
from tcompile.runtime.cache import CompileSettings

_MAIN = ("__main__", "__mp_main__")  # the second is a script's module name where multiprocessing imports it
MOST_BYTES = 1 << 20
"""The size limit up to which a named function of ``__main__`` is also sent by value."""


def reduction(
    compiled: Any, function: types.FunctionType, settings: CompileSettings, pickler: Any
) -> str | tuple[Any, ...]:
    """Returns the result of ``compiled.__reduce__``. ``pickler`` is the object whose method calls it, if any.

    Raises PicklingError if only a value could be sent, and no pickler of functions by value is installed.
    """
    module, name = function.__module__, function.__qualname__
    found = _find(module, name)
    if found is compiled and module not in _MAIN and not _is_sent_by_value(module, pickler):
        return name
    if _writes_functions(pickler):
        return _by_value(compiled, function, settings, pickler)
    if found is not compiled and (found is not function or not _has_a_name(settings.backend)):
        lost = f"its backend {settings.backend_name}" if found is function else name
        return pickle.loads, (_written(compiled, lost),)
    value = _small_value(compiled, name) if module in _MAIN else None
    if value is not None:
        return _find_or_make, (type(compiled), module, name, value)
    return name if found is compiled else _by_value(compiled, function, settings, pickler)


def _find(module: str | None, name: str) -> Any:
    """Returns the object of a name in a loaded module; None if there is none."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _has_a_name(backend: str | Callable[..., Any]) -> bool:
    """Whether the standard pickle can write the backend of some settings."""
    return type(backend) is not types.FunctionType or _find(backend.__module__, backend.__qualname__) is backend


# -- picklers ----------------------------------------------------------------------------------------------------------
def _writes_functions(pickler: Any) -> bool:
    """Whether the pickler writes functions by itself, where the standard pickle writes their names."""
    if not issubclass(type(pickler), pickle.Pickler | pickle._Pickler):
        return False
    override = getattr(pickler, "reducer_override", None)
    if override is not None and override(lambda: None) is not NotImplemented:
        return True
    own = getattr(pickler, "dispatch", {}).get(types.FunctionType)  # dill changes the standard pickler's table, too
    return own is not None and own is not vars(pickle._Pickler)["save_global"]


def _is_sent_by_value(module: str, pickler: Any) -> bool:
    """Whether ``cloudpickle.register_pickle_by_value`` was called for the module, in the pickler's cloudpickle."""
    for cls in type(pickler).__mro__:
        listed = getattr(sys.modules.get(cls.__module__), "list_registry_pickle_by_value", None)
        if listed is not None:
            return any(f"{module}.".startswith(f"{registered}.") for registered in listed())
    return False


class _Limited(io.BytesIO):
    """A buffer with a size limit; large arrays are written to it without a copy."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > self.limit:
            raise OverflowError(f"more than {self.limit} bytes")
        return super().write(data)


def _written(compiled: Any, lost: str, limit: float = math.inf) -> bytes:
    """Returns the function by value, as cloudpickle writes it; ``lost`` is what the standard pickle cannot find.

    Raises PicklingError if cloudpickle is not installed, OverflowError beyond ``limit`` bytes, and whatever the values
    of globals and closures raise.
    """
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        raise pickle.PicklingError(
            f"cannot pickle {compiled!r}: {lost} is not found under its name in its module. "
            "Install cloudpickle, with which it is pickled by value, or define it at the top of a module"
        ) from None
    buffer = _Limited(limit)
    cloudpickle.CloudPickler(buffer).dump(compiled)
    return buffer.getvalue()


def _small_value(compiled: Any, name: str) -> bytes | None:
    """Returns the function by value, as a fallback; None if it is large or cannot be written."""
    try:
        return _written(compiled, name, MOST_BYTES)
    except Exception:
        return None


# -- reading -----------------------------------------------------------------------------------------------------------
def _by_value(compiled: Any, function: types.FunctionType, settings: CompileSettings, pickler: Any) -> tuple[Any, ...]:
    """Writes first an object without contents, then these: a recursive function has itself among its globals.

    dill writes no globals of ``__main__``, since it reads the function into another process's ``__main__``. If that one
    lacks some of them, a second value with its own globals replaces the function. A method that calls ``super()`` has
    no second value: it would belong to another copy of its class.
    """
    backend = registered_backend(settings.backend)
    known = None if backend is None or backend.builtin else (backend.compile, backend.name, backend.tags)
    from_main = isinstance(pickler, pickle._Pickler) and function.__globals__ is vars(sys.modules["__main__"])
    of_class = "__class__" in function.__code__.co_freevars
    complete = _small_value(compiled, function.__qualname__) if from_main and not of_class else None
    state = function, settings, dict(vars(compiled)), known, complete
    return _blank, (type(compiled),), state, None, None, _fill


def _blank(cls: type[Any]) -> Any:
    return object.__new__(cls)


def _fill(compiled: Any, state: tuple[types.FunctionType, CompileSettings, dict[str, Any], Any, bytes | None]) -> None:
    """Makes a blank object a compiled function, with an empty cache in this process."""
    function, settings, attributes, known, complete = state
    if known is not None and registered_backend(settings.backend) is None:
        register_backend(*known)
    if complete is not None and function.__globals__ is vars(sys.modules["__main__"]):
        other, _, _ = pickle.loads(complete).__tcompile_parts__()
        if any(name in other.__globals__ and name not in function.__globals__ for name in _names(function.__code__)):
            if attributes.get("__wrapped__") is function:
                attributes["__wrapped__"] = other
            function = other
    compiled.__init__(function, settings, _compile[0])
    vars(compiled).clear()
    vars(compiled).update(attributes)


def _names(code: types.CodeType) -> set[str]:
    """Returns the names in code and in its nested functions, global variables included."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*inner)


def _find_or_make(cls: type[Any], module: str, name: str, value: bytes) -> Any:
    """Returns this process's function of that name, as plain functions are unpickled; else one made of ``value``.

    A plain function is compiled: the other process may have compiled it under another name.
    """
    found = _find(module, name)
    if type(found) is cls:
        return found
    made = pickle.loads(value)
    if type(found) is types.FunctionType:
        _, settings, _ = made.__tcompile_parts__()
        made = cls(found, settings, _compile[0])
    return made


_compile: list[Callable[..., Any]] = []


def on_unpickling(compile: Callable[..., Any]) -> None:
    """Sets the compile function for unpickling; called by ``api``, which knows the compiler."""
    _compile[:] = [compile]


__all__ = ["on_unpickling", "reduction"]
