"""Facts about modules that guards and capture ask for.

Input: modules, and their classes.
Output: answers.
Why: a call of a module without hooks is a call of its ``forward``, and its members are found without its own code.
"""

from __future__ import annotations

import torch
from torch.nn import Module
from torch.nn.modules import module as _module

_OWN = ("__call__", "__getattr__", "__getattribute__", "_call_impl", "_wrapped_call_impl")


def is_plain(cls: type) -> bool:
    """Whether a class is one of modules that leaves calls and attributes to PyTorch.

    >>> is_plain(torch.nn.Linear), is_plain(int)
    (True, False)
    """
    if not issubclass(cls, Module) or issubclass(cls, torch.jit.ScriptModule | torch.fx.GraphModule):
        return False
    return all(getattr(cls, name) is getattr(Module, name) for name in _OWN)


def has_no_hooks(module: Module) -> bool:
    """Whether a call of a module is a call of its ``forward``, of its class.

    >>> has_no_hooks(torch.nn.Linear(2, 2))
    True
    """
    own = module.__dict__
    return not (
        own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
        or _module._global_forward_hooks or _module._global_forward_pre_hooks or _module._global_backward_hooks
        or _module._global_backward_pre_hooks or "forward" in own or own.get("_compiled_call_impl") is not None
    )  # fmt: skip


__all__ = ["has_no_hooks", "is_plain"]
