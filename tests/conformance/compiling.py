"""Compiles every function of a test module in place.

Input: a test module of CPython's or NumPy's, or the names that a doctest has just defined.
Output: the same objects, with each function replaced by its compiled one: module-level functions, methods, static and
class methods, property getters, in nested classes and in base classes of the test package too.
Why: other people's tests then test compiled code. A unittest class's functions are all compiled, decorated ones
included; elsewhere only those defined by the test package.
"""

from __future__ import annotations

import doctest
import functools
import sys
import types
import unittest
from collections.abc import Callable
from typing import Any

import tcompile

_HARNESS = ("test.support", "test.libregrtest")  # what runs tests is not under test


class Compiling:
    """Replaces functions, each once; ``count`` says how many. ``is_test`` tells modules of tests by their names.

    ``exact`` asks for results with NumPy's very bits.
    """

    def __init__(self, is_test: Callable[[str], bool], backend: str = "eager", exact: bool = False) -> None:
        self.count = 0
        self.backend = backend
        self.options = {"exact": exact}
        self._is_test = is_test
        self._classes: set[type] = set()

    def module(self, module: types.ModuleType) -> None:
        """Compiles what ``module`` defines, and the test classes that it takes from other modules."""
        for name, value in list(vars(module).items()):
            if isinstance(value, type):
                for cls in value.__mro__:
                    if self._is_test(cls.__module__):
                        self.type(cls)
            elif isinstance(value, types.FunctionType) and value.__code__.co_filename == module.__file__:
                setattr(module, name, self.function(value))

    def names(self, namespace: dict[str, Any]) -> None:
        """Compiles the functions and classes that code run in ``namespace`` has defined there."""
        for name, value in list(namespace.items()):
            if isinstance(value, types.FunctionType) and value.__globals__ is namespace:
                namespace[name] = self.function(value)
            elif isinstance(value, type) and value.__module__ == namespace.get("__name__"):
                self.type(value)

    def type(self, cls: type) -> None:
        """Compiles the methods of a class."""
        if cls in self._classes:
            return
        self._classes.add(cls)
        file = None if issubclass(cls, unittest.TestCase) else self._file(cls)
        for name, value in list(vars(cls).items()):
            if isinstance(value, type):
                if value.__qualname__.startswith(cls.__qualname__ + "."):
                    self.type(value)
                continue
            made = self._attribute(value, file)
            if made is not value:
                try:
                    setattr(cls, name, made)
                    if isinstance(made, property):
                        made.__set_name__(cls, name)
                except (AttributeError, TypeError):
                    continue  # a class that refuses assignment stays as it is

    def code(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """What ``exec`` does for a doctest's example: runs it as a compiled function, compiles what it defined."""
        if "__builtins__" not in namespace:
            exec("", namespace)
        self.function(types.FunctionType(code, namespace, "example"))()
        self.names(namespace)

    def _attribute(self, value: Any, file: str | None) -> Any:
        if isinstance(value, types.FunctionType):
            return self.function(value) if file in (None, value.__code__.co_filename) else value
        if type(value) in (staticmethod, classmethod):
            made = self._attribute(value.__func__, file)
            return value if made is value.__func__ else type(value)(made)
        if type(value) is property:
            held = (value.fget, value.fset, value.fdel)
            parts = tuple(part and self._attribute(part, file) for part in held)
            return value if parts == held else property(*parts, doc=value.__doc__)
        return value

    def function(self, function: types.FunctionType) -> Any:
        """A function, compiled."""
        self.count += 1
        return tcompile.compile(function, backend=self.backend, options=self.options)

    def _file(self, cls: type) -> str | None:
        """The file that defines a class; None for a class of a doctest."""
        return getattr(sys.modules.get(cls.__module__), "__file__", None) if self._is_test(cls.__module__) else None


def compile_doctests(compiling: Compiling) -> None:
    """From now on doctest runs its examples compiled."""
    doctest.exec = lambda code, namespace: compiling.code(code, namespace)  # type: ignore[attr-defined]
    functools.update_wrapper(doctest.exec, exec)  # type: ignore[attr-defined]


def is_cpython_test(name: str) -> bool:
    """Whether a module of that name is one of CPython's tests."""
    return name.startswith("test.") and not name.startswith(_HARNESS)


def is_numpy_test(name: str) -> bool:
    """Whether a module of that name is one of NumPy's tests."""
    return name.startswith("numpy.") and ".tests." in name
