"""Compiled modules: a module whose ``forward`` is compiled, and which is the same module in all other respects.

Input: a module, and what compiles functions.
Output: an object of a subclass of its class, over the same attributes.
Why: parameters, buffers, submodules, hooks, ``train()``, ``state_dict()`` and the module's own attributes stay what
they are, under the same names, whichever of the two objects they are reached through.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from torch.nn import Module

from tcompile.frontends.torch.modules import is_plain

Compile = Callable[[Any], Any]


def can_compile(module: Module) -> bool:
    """Whether a module's ``forward`` can be compiled in a subclass of its class."""
    cls = type(module)
    usual = is_plain(cls) and getattr(cls.__init_subclass__, "__func__", None) is None
    return (
        usual and "forward" not in module.__dict__ and not any("__slots__" in vars(base) for base in cls.__mro__[:-1])
    )


def compiled_module(module: Module, compile: Compile) -> Module:
    """A module over the attributes of ``module`` with its ``forward`` compiled.

    Parameters
    ----------
    module : torch.nn.Module
        A module for which `can_compile` holds.
    compile : callable
        Compiles a function, or a module: a copy of the result is compiled by it again. It must be picklable for the
        result to be.

    Returns
    -------
    torch.nn.Module
        Of a subclass of the module's class, with the same name.
    """
    cls = type(module)
    run = compile(cls.forward)

    @functools.wraps(cls.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(module, *args, **kwargs)

    def reduce(self: Any, protocol: Any) -> Any:
        return compile, (module,)

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        return compile(copy.deepcopy(module, memo))

    body = {
        "forward": forward, "__reduce_ex__": reduce, "__deepcopy__": deepcopy, "__module__": cls.__module__,
        "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
    }  # fmt: skip
    make: Any = type(cls)
    made: Module = object.__new__(make(cls.__name__, (cls,), body))
    object.__setattr__(made, "__dict__", module.__dict__)
    return made


__all__ = ["can_compile", "compiled_module"]
