"""The functions, methods and attributes of PyTorch that a graph may call.

Input: a function, or a method's or an attribute's name.
Output: the dotted name by which a graph calls it; None where it may not.
Why: a call on fake tensors says what the real call gives only if nothing but tensors is read and written. The tables
list what is so; whatever is not listed runs in plain Python between graphs.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import (
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

# Functions of these modules, apart from those in ``_NOT_CALLED``.
_MODULES = {
    "torch": [*(name for name in dir(torch._C._VariableFunctions) if not name.startswith("__")),
              *torch.functional.__all__, "tensor"],
    "torch.nn.functional": [name for name in dir(F) if not name.startswith("_")],
    "torch.linalg": [name for name in dir(torch.linalg) if not name.startswith("_")],
    "torch.fft": [name for name in dir(torch.fft) if not name.startswith("_")],
    "torch.special": [name for name in dir(torch.special) if not name.startswith("_")],
}  # fmt: skip
_NOT_CALLED = frozenset({
    "from_file", "from_numpy", "frombuffer", "save", "load", "can_cast", "promote_types", "boolean_dispatch",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "assert_int_or_pair", "Callable", "DType", "Optional", "Tensor", "set_flush_denormal", "as_tensor", "asarray",
    "fork", "wait", "is_vulkan_available", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3",
    "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
    "sparse_compressed_tensor", "native_norm", "TYPE_CHECKING", "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES", "LinAlgError", "result_type", "is_grad_enabled", "is_inference", "unify_type_list",
})  # fmt: skip
# Questions about the process or the class of a value, whose answers the guards hold.
_QUESTIONS: tuple[Callable[..., Any], ...] = (
    torch.is_grad_enabled, torch.is_autocast_enabled, torch.get_default_dtype, torch.is_inference_mode_enabled,
    torch.promote_types, torch.can_cast, torch.result_type, torch.finfo, torch.iinfo, torch.broadcast_shapes,
    torch.jit.is_scripting, torch.jit.is_tracing, torch._C._get_tracing_state, torch.compiler.is_compiling,
    torch.compiler.is_dynamo_compiling, torch.compiler.is_exporting, torch.is_tensor, torch.is_floating_point,
    torch.is_complex, torch.is_nonzero, torch.get_autocast_dtype, has_torch_function, has_torch_function_unary,
    has_torch_function_variadic, torch.device, torch.Size, torch.are_deterministic_algorithms_enabled,
    torch.backends.mha.get_fastpath_enabled, torch._C._get_cudnn_enabled, torch.cuda.is_available,
)  # fmt: skip
GRAD_MODES = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled)
# Methods that read or change more than elements, or whose result is not a tensor's.
_METHODS_NOT_CALLED = frozenset({
    "backward", "register_hook", "register_post_accumulate_grad_hook", "numpy", "tolist", "item", "data_ptr",
    "storage", "untyped_storage", "storage_type", "share_memory_", "is_shared", "pin_memory", "is_pinned", "set_",
    "resize", "resize_", "resize_as", "resize_as_", "resize_as_sparse_", "apply_", "map_", "map2_", "requires_grad_",
    "retain_grad", "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc",
    "sparse_resize_", "sparse_resize_and_clear_", "sparse_mask", "reinforce", "volatile", "module_load", "detach_",
    "rename", "rename_", "align_to", "align_as", "refine_names", "names", "has_names", "as_subclass", "solve", "eig",
    "symeig", "lstsq", "record_stream", "cuda", "xpu", "ipu", "hpu", "mtia", "new", "new_tensor", "type", "dim_order",
    "dense_dim", "sparse_dim", "is_same_size_storage", "element_size_storage", "coalesce", "indices", "values",
    "crow_indices", "col_indices", "ccol_indices", "row_indices", "to_padded_tensor", "to_mkldnn", "int_repr",
    "dequantize", "q_scale", "q_zero_point", "qscheme", "q_per_channel_scales", "q_per_channel_zero_points",
    "q_per_channel_axis",
})  # fmt: skip
_PYTHON_METHODS = frozenset({"split", "unflatten", "norm", "stft", "istft", "lu", "unique", "unique_consecutive"})
VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})
FACTS = frozenset({
    "shape", "dtype", "device", "ndim", "requires_grad", "layout", "itemsize", "nbytes", "is_leaf", "is_cuda",
    "is_cpu", "is_meta", "is_sparse", "is_quantized", "is_nested", "is_mkldnn", "is_mps", "is_xpu", "is_xla",
    "is_sparse_csr",
})  # fmt: skip
_METHOD_TYPES = (types.MethodDescriptorType, types.BuiltinFunctionType)


@functools.cache
def _names() -> dict[int, tuple[str, Any]]:
    """The dotted names of the functions, by identity; the functions are kept, so that no other has it."""
    found: dict[int, tuple[str, Any]] = {}
    for module, names in _MODULES.items():
        held = functools.reduce(getattr, module.split(".")[1:], torch)
        for name in names:
            function = getattr(held, name, None)
            called = callable(function) and not isinstance(function, type) and name not in _NOT_CALLED
            if called and not isinstance(function, types.ModuleType) and not name.startswith("quantize"):
                found.setdefault(id(function), (f"{module}.{name}", function))
    return found


def name_of_call(function: object) -> str | None:
    """The dotted name of a function that graphs may call.

    >>> name_of_call(torch.sin), name_of_call(F.linear), name_of_call(torch.save)
    ('torch.sin', 'torch.nn.functional.linear', None)
    """
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"torch.ops.{function}"
    known = _names().get(id(function))
    return None if known is None else known[0]


def is_question(function: object) -> bool:
    """Whether a function only asks about the process, or about a tensor's class and dtype."""
    return any(function is one for one in _QUESTIONS)


def name_of_method(name: str) -> str | None:
    """The dotted name of a method that graphs may call.

    >>> name_of_method("add_"), name_of_method("backward")
    ('torch.Tensor.add_', None)
    """
    found = getattr(torch.Tensor, name, None)
    usual = isinstance(found, _METHOD_TYPES) or name in _PYTHON_METHODS
    return f"torch.Tensor.{name}" if usual and name not in _METHODS_NOT_CALLED else None


def is_ours(function: object) -> bool:
    """Whether PyTorch defines a function or a class."""
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == "torch"


__all__ = ["FACTS", "GRAD_MODES", "VIEWS", "is_ours", "is_question", "name_of_call", "name_of_method"]
