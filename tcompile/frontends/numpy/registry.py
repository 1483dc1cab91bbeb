"""The tables of the NumPy frontend, and the decorators that fill them.

Input: handlers from the sibling files.
Output: ``FUNCTIONS``, ``METHODS`` and ``ATTRIBUTES``, and ``invoke``, which binds a call's arguments to a handler's own
signature.
Why: supporting another NumPy function takes one decorated function. A handler has the signature of its function, after
the builder; parameters that are only refused are checked with ``refuse_unless``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

from tcompile.frontends.base import CannotCapture, Traced
from tcompile.numpy_versions import SIGNATURES_IN_C_STATED

Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)

FUNCTIONS: dict[Any, Handler] = {}
METHODS: dict[str, Handler] = {}
ATTRIBUTES: dict[str, Callable[[Any, Traced], Any]] = {}
OPAQUE: set[Any] = set()

NO_VALUE = np._NoValue


def lookup(name: str) -> Any:
    """The NumPy object after a dotted name below ``numpy``, or None where this NumPy has none."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def function(*names: str, opaque: bool = False) -> Callable[[H], H]:
    """Registers a handler for the functions ``numpy.<name>``; names that this NumPy lacks are passed over.

    ``opaque`` says that the handler builds one library call, which is not fused.
    """

    def register(handler: H) -> H:
        for name in names:
            found = lookup(name)
            if found is not None:
                FUNCTIONS[found] = handler
                if opaque:
                    OPAQUE.add(found)
        return handler

    return register


def method(*names: str) -> Callable[[H], H]:
    """Registers a handler for the methods ``x.<name>``; it takes the builder, ``x``, and the method's arguments."""

    def register(handler: H) -> H:
        for name in names:
            METHODS[name] = handler
        return handler

    return register


def attribute(*names: str) -> Callable[[H], H]:
    """Registers a handler for the attributes ``x.<name>``."""

    def register(handler: H) -> H:
        for name in names:
            ATTRIBUTES[name] = handler
        return handler

    return register


@cache
def _signature(handler: Handler) -> inspect.Signature:
    return inspect.signature(handler)


# Keywords of functions that the methods of their names do not have.
OF_FUNCTIONS_ONLY = {
    "var": {"mean", "correction"}, "std": {"mean", "correction"}, "clip": {"a_min", "a_max"},
}  # fmt: skip
_MISSTATED = (np.ndarray.any, np.ndarray.all, np.ndarray.choose)  # they take other arguments than NumPy's signature
# Where NumPy states nothing of functions in C: those that take less than their handlers do, as a function of Python.
_UNSTATED: dict[Any, Handler] = {} if SIGNATURES_IN_C_STATED else {
    np.array: lambda object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None: None,
    np.empty_like: lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    np.putmask: lambda a, /, mask, values: None,
    np.ndarray.put: lambda self, /, indices, values, mode="raise": None,
    np.ndarray.swapaxes: lambda self, axis1, axis2, /: None,
}  # fmt: skip


@cache
def _own_signature(known: Any) -> inspect.Signature | None:
    """Returns the signature that NumPy states, if any."""
    if known in _MISSTATED:
        return None
    try:
        return inspect.signature(_UNSTATED.get(known, known))
    except (TypeError, ValueError):
        return None


def signature_of(known: Any, handler: Handler | None, rule: inspect.Signature | None) -> inspect.Signature | None:
    """Returns the signature of a function or method with a handler or a rule: NumPy's, or theirs."""
    if handler is None and rule is None:
        return None
    own = None if known is None else _own_signature(known)
    if own is not None or handler is None:
        return own or rule
    stated = _signature(handler)
    return stated.replace(parameters=list(stated.parameters.values())[1:])  # without the builder


def invoke(
    handler: Handler, name: str, b: Any, args: Sequence[Any], kwargs: Mapping[str, Any], known: Any = None
) -> Any:
    """Calls ``handler`` for the NumPy function ``known``.

    Arguments that NumPy's own signature or the handler's does not have mean CannotCapture. A parameter that NumPy calls
    ``b`` is ``b_`` in a handler, whose ``b`` is the builder.
    """
    own = _own_signature(known)
    renamed = {"b_" if key == "b" else key: value for key, value in kwargs.items()}
    try:
        if own is not None:
            own.bind(*args, **kwargs)
        _signature(handler).bind(b, *args, **renamed)
    except TypeError as error:
        raise CannotCapture("unsupported-argument", f"{name}: {error}") from error
    return handler(b, *args, **renamed)


def refuse_unless(name: str, **arguments: tuple[Any, tuple[Any, ...]]) -> None:
    """Refuses every argument with an effect, given as ``(value, harmless values)``."""
    for argument, (value, harmless) in arguments.items():
        if not any(value is item or (type(value) is type(item) and value == item) for item in harmless):
            raise CannotCapture("unsupported-argument", f"{name} with {argument}=")
