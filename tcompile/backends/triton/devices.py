"""Where kernels run: on a GPU, or in Triton's interpreter.

Enters: the settings. Leaves: a ``Device``. Exists so that the rest of the backend writes one program for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tcompile.backends.triton.text import Function
from tcompile.config import config


class Device(Protocol):
    """What a host program needs of a device."""

    def tools(self) -> dict[str, Any]:
        """What a host program calls: ``empty(shape, dtype, order)`` makes an array, ``stride(array, axis)`` is in
        elements. Where arrays lie on a GPU, further: ``placed(x, order)`` copies one there, ``to_host(x)`` back, and
        ``on_host(function, *args)`` calls a function of NumPy's.
        """

    def around(self, program: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        """The program, with results that are NumPy's arrays."""

    def launcher(self, function: Function) -> Callable[..., Any]:
        """Runs a function: ``launcher(grid, *arguments)`` returns its status bits."""


def device() -> Device:
    """The device on which kernels run now. Raises BackendError where there is none."""
    if config.triton_interpret:
        from tcompile.backends.triton.interpreter import Interpreter

        return Interpreter()
    from tcompile.backends.triton import cuda

    return cuda.current()


__all__ = ["Device", "device"]
