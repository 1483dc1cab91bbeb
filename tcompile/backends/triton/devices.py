"""Devices of kernels: a GPU, or Triton's interpreter.

Input: the settings.
Output: a ``Device``.
Why: the rest of the backend writes one program for both.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, Protocol

from tcompile.backends.triton.text import TritonFunction
from tcompile.config import config
from tcompile.errors import BackendError


class Device(Protocol):
    """The interface between a host program and a device."""

    @property
    def name(self) -> str | None:
        """The key of measurements; None where there is nothing to measure."""

    def finish(self) -> None:
        """Waits for all started kernels."""

    def tools(self) -> dict[str, Any]:
        """The functions that a host program calls: ``empty(shape, dtype, order)`` makes an array, ``stride(array,
        axis)`` is in elements. Where arrays lie on a GPU, further: ``placed(x, order)`` copies one there,
        ``to_host(x)`` back, and ``on_host(function, *args)`` calls a function of NumPy's.
        """

    def around(self, program: Callable[..., tuple[Any, ...]], resident: bool) -> Callable[..., tuple[Any, ...]]:
        """Wraps the program so that results are NumPy arrays; ``resident``: all arrays are on the device, and stay."""

    def launcher(self, function: TritonFunction) -> Callable[..., Any]:
        """Returns ``launcher(programs, *arguments)``, which starts so many programs of a function, and returns their
        status bits.
        """


def device(arrays: str = "cpu") -> Device:
    """The device for kernels now; that of a caller's ``arrays``, where these are on a GPU.

    Raises BackendError where there is none.
    """
    if config.triton_interpret and arrays == "cpu":
        from tcompile.backends.triton.interpreter import Interpreter

        return Interpreter()
    reason = _without_triton()
    if reason is not None:
        raise BackendError(reason)
    from tcompile.backends.triton import cuda

    return cuda.current() if arrays == "cpu" else cuda.on(arrays)


def _without_triton() -> str | None:
    return "kernels for GPUs need Triton: pip install triton" if importlib.util.find_spec("triton") is None else None


def unavailable() -> str | None:
    """The reason why kernels cannot run on a GPU; None where they can."""
    reason = _without_triton()
    if reason is not None:
        return reason
    from tcompile.backends.triton import cuda

    try:
        cuda.current()
    except BackendError as error:
        return str(error)
    return None


__all__ = ["Device", "device", "unavailable"]
