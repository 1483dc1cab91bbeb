"""NumPy's namespace, each function of which is a compiled function that calls NumPy's.

Input: ``TCOMPILE_TEST_BACKEND``, the backend (by default llvm).
Output: a module that the Array API test suite accepts as an array library.
Why: the suite then tests compiled calls. Dtypes, classes and constants are NumPy's own. A function whose entries have
reached the limit loses them all, so every call is made by captured code.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import tcompile

BACKEND = os.environ.get("TCOMPILE_TEST_BACKEND", "llvm")
_SOURCE = """
def {name}(*args, **kwargs):
    return function(*args, **kwargs)
"""


def compiled(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function like ``function``, whose calls run as compiled code."""
    space: dict[str, Any] = {"function": function}
    exec(compile(_SOURCE.format(name=name), f"<compiled {name}>", "exec"), space)  # a code object of its own
    made = tcompile.compile(space[name], backend=BACKEND)

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(made.entries) >= tcompile.config.recompile_limit:
            tcompile.reset()
        return made(*args, **kwargs)

    functools.update_wrapper(call, function)
    del call.__wrapped__
    try:
        call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    except ValueError:
        pass  # ufuncs of older versions have none
    return call


def namespace(module: types.ModuleType, name: str) -> types.ModuleType:
    """A module of that name with the public names of ``module``, its functions compiled."""
    made = types.ModuleType(name)
    for key, value in vars(module).items():
        if callable(value) and not isinstance(value, type) and not key.startswith("_"):
            value = compiled(key, value)
        if not key.startswith("__") or key == "__array_namespace_info__":
            setattr(made, key, value)
    return made


for _key, _value in vars(namespace(np, __name__)).items():
    setattr(sys.modules[__name__], _key, _value)
for _name in ("linalg", "fft"):
    setattr(sys.modules[__name__], _name, namespace(getattr(np, _name), f"{__name__}.{_name}"))
__array_api_version__ = np.__array_api_version__
