"""NumPy's main namespace with every function compiled: what the Array API test suite is pointed at.

Enters: nothing. Leaves: a module that looks like ``numpy``; a call of ``add`` runs a compiled function that calls
``numpy.add``. Exists so that an external suite can judge compiled NumPy:

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests && cd array-api-tests
    pip install -r requirements.txt
    export ARRAY_API_TESTS_VERSION=2024.12 PYTHONPATH=<this folder>
    ARRAY_API_TESTS_MODULE=numpy          pytest array_api_tests --max-examples 1000   # what NumPy itself passes
    ARRAY_API_TESTS_MODULE=compiled_numpy pytest array_api_tests --max-examples 1000   # has to pass here, too

``COMPILED_NUMPY_BACKEND`` names another backend than the default.
"""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable
from typing import Any

import numpy

import tcompile

# Each example has shapes and dtypes of its own: all of them are to be compiled.
tcompile.config.recompile_limit = 1_000_000
_BACKEND = os.environ.get("COMPILED_NUMPY_BACKEND", "auto")


def _compiled(owner: types.ModuleType, name: str) -> Callable[..., Any]:
    """``owner.name``, called by a compiled function of its own code."""
    scope: dict[str, Any] = {"owner": owner, "__name__": __name__}
    exec(f"def {name}(*args, **kwargs):\n    return owner.{name}(*args, **kwargs)\n", scope)
    made = tcompile.compile(functools.wraps(getattr(owner, name))(scope[name]), backend=_BACKEND)
    made.__tcompile_of__ = getattr(owner, name)
    return made


def _namespace(owner: types.ModuleType, names: list[str]) -> dict[str, Any]:
    """The names of ``owner``, its functions compiled."""
    found: dict[str, Any] = {}
    for name in names:
        value = getattr(owner, name, None)
        callable_ = isinstance(value, numpy.ufunc | types.BuiltinFunctionType) or inspect.isroutine(value)
        found[name] = _compiled(owner, name) if callable_ and name.isidentifier() else value
    return found


globals().update(_namespace(numpy, [name for name in dir(numpy) if not name.startswith("_") and name != "test"]))
for _name in ("linalg", "fft"):
    _module = types.ModuleType(f"{__name__}.{_name}")
    _owner = getattr(numpy, _name)
    vars(_module).update(_namespace(_owner, [n for n in dir(_owner) if not n.startswith("_") and n != "test"]))
    globals()[_name] = _module

__array_api_version__ = numpy.__array_api_version__
__array_namespace_info__ = numpy.__array_namespace_info__
__version__ = numpy.__version__
