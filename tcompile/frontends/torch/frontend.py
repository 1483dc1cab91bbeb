"""The PyTorch frontend: functions of tensors become graphs of PyTorch's calls.

Input: tensors, and calls, operators and attributes of traced ones.
Output: nodes, each a call of PyTorch's.
Why: what such a graph computes, PyTorch's own AOTAutograd turns into operations that kernels compute
(``tcompile.tensor_programs``). Capture decides what is in the graph, and when it holds.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._C._dynamo.guards import TensorGuards

from tcompile.frontends.base import Builder, CannotCapture, Check, Record, Tensor, described
from tcompile.frontends.torch import modules
from tcompile.frontends.torch.calls import FACTS, GRAD_MODES, VIEWS, is_ours, is_question, name_of_call, name_of_method
from tcompile.frontends.torch.tensors import has_array, storage_of
from tcompile.frontends.torch.tracing import DEVICE, Trace, state_check, type_of_fake, under_modes
from tcompile.graph import Node, TensorType
from tcompile.graph.types import on_device

_CLASSES = (torch.Tensor, torch.nn.Parameter)
_FIXED = (
    torch.dtype, torch.layout, torch.memory_format, type, types.FunctionType, types.BuiltinFunctionType,
    types.MethodDescriptorType, types.ModuleType, torch._ops.OpOverload, torch._ops.OpOverloadPacket,
)  # fmt: skip
_INPLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "@": operator.imatmul, "&": operator.iand, "|": operator.ior,
    "^": operator.ixor, "<<": operator.ilshift, ">>": operator.irshift,
}  # fmt: skip
_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le,
    "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "abs": operator.abs}


class TorchFrontend:
    """The PyTorch frontend."""

    name = "torch"
    device = DEVICE
    namespace: Any = torch
    grad_modes = GRAD_MODES
    functions = torch._C._VariableFunctionsClass
    is_compiling = staticmethod(torch.compiler.is_compiling)
    module_setattr = staticmethod(torch.nn.Module.__setattr__)
    stand_in_for_optimizer: Callable[[Any], Any] | None = None
    """Gives an object with the compiled ``step`` of an optimizer."""

    # -- objects ---------------------------------------------------------------------------------------------------
    def takes(self, value: object) -> bool:
        """Whether an object is a tensor that graphs take: dense, on the CPU, of exactly PyTorch's classes."""
        if type(value) not in _CLASSES:
            return False
        assert isinstance(value, torch.Tensor)
        return has_array(value) and not (value.is_inference() or value.is_conj() or value.is_neg() or under_modes())

    def type_of_input(self, tensor: torch.Tensor) -> TensorType:
        """The graph type of a tensor from outside."""
        found = on_device(type_of_fake(tensor), DEVICE)
        assert isinstance(found, TensorType)
        return found

    def input(self, b: Builder, tensor: torch.Tensor, node: Node) -> Tensor:
        """The traced form of a tensor from outside, which ``node`` stands for."""
        return self._trace(b).input(tensor, node)

    def _trace(self, b: Builder) -> Trace:
        if b.tensors is None:
            b.tensors = Trace(b.graph)
        trace: Trace = b.tensors
        if trace.graph is not b.graph:
            raise CannotCapture("unsupported-object", "A tensor is used in an iteration that stands for all.")
        return trace

    def python_type(self, x: Tensor) -> type:
        """The class that Python sees."""
        found: type = _CLASSES[isinstance(x.fake, torch.nn.Parameter)]
        return found

    def tensor_checks(self, tensor: torch.Tensor, name: str, constant: Callable[[Any], str]) -> list[Check]:
        """Returns the guards for a tensor."""
        guard = TensorGuards(
            tensor, dynamic_dims_sizes=[list(tensor.shape)], dynamic_dims_strides=[list(tensor.stride())]
        )
        expected = described(tensor)
        return [Check(f"{constant(guard.check)}({{}})", f"{name} is {expected}", expected, "tensor")]

    def state_checks(self, b: Builder, constant: Callable[[Any], str]) -> list[Check]:
        """Returns the guards on what calls depend on besides their arguments."""
        functions, dispatch, level = (constant(ask) for ask in state_check())
        code = (
            f"{constant(self._trace(b).same_state)}() and not {functions}() and not {dispatch}() and {level}() is None"
        )
        text = "PyTorch's grad mode, autocast, default dtype and other modes are unchanged"
        return [Check(code, text, "the same modes", "modes")]

    def write_guards(self, b: Builder) -> list[tuple[Node, list[Node]]]:
        """Returns each tensor from outside that is written, and the other ones, which may not share its memory."""
        trace = b.tensors
        if trace is None or not trace.written:
            return []
        inputs = {storage: trace.known[id(fakes[0])].node for storage, fakes in trace.inputs.items()}
        everything = [trace.known[id(fake)].node for fakes in trace.inputs.values() for fake in fakes]
        return [(inputs[s], [node for node in everything if node is not inputs[s]]) for s in trace.written]

    @staticmethod
    def apart(tensor: torch.Tensor, *others: torch.Tensor) -> bool:
        """Whether a tensor shares its storage with no other one."""
        own = storage_of(tensor)
        return all(storage_of(other) != own for other in others)

    def is_operation(self, value: object) -> bool:
        """Whether it is an operation of ``torch.ops``."""
        return isinstance(value, torch._ops.OpOverload | torch._ops.OpOverloadPacket)

    def is_of_training(self, value: object) -> bool:
        """Whether it is a function of training, which runs in plain Python and is not followed."""
        if not isinstance(value, types.FunctionType):
            return False
        of_optimizers = value.__module__.startswith("torch.optim.") and not value.__module__.endswith("swa_utils")
        return of_optimizers or value in (torch.autograd.grad, torch.autograd.backward)

    def stand_in(self, cls: type, name: str) -> Callable[[Any], Any] | None:
        """What plain Python gets for an object of which it reads an attribute next; None: the object itself."""
        is_step = name == "step" and issubclass(cls, torch.optim.Optimizer)
        return self.stand_in_for_optimizer if is_step else None

    def is_table(self, value: object) -> bool:
        """Whether its attributes are those of ``functions``."""
        return value is torch._VF or value is torch._C._VariableFunctions

    def is_module(self, cls: type) -> bool:
        """Whether a class is one of modules, whose calls and attributes are PyTorch's own."""
        return modules.is_plain(cls)

    def has_no_hooks(self, module: torch.nn.Module) -> bool:
        """Whether a call of a module is a call of its ``forward``."""
        return modules.has_no_hooks(module)

    # -- what capture asks of every frontend -------------------------------------------------------------------------
    def type_of(self, value: object) -> None:
        """Returns None: tensors are taken by ``takes``."""

    def is_scalar(self, value: object) -> bool:
        """Returns False: PyTorch has no scalars."""
        return False

    def copied_dtype(self, value: object) -> None:
        """Returns None: dtypes are never copied."""

    def is_fixed(self, value: object) -> bool:
        """Whether it is a dtype, a function, a module or a class of PyTorch."""
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return True
        return isinstance(value, _FIXED) and self.knows(value)

    def is_constant_scalar(self, value: object) -> bool:
        """Returns False: there are none."""
        return False

    def scalar_instruction(self, function: object) -> None:
        """Returns None: scalar loops call no function of PyTorch."""

    def knows(self, function: object) -> bool:
        """Whether ``function`` is called in a graph, or answered."""
        if any(function is mode for mode in GRAD_MODES):
            return True
        return name_of_call(function) is not None or is_question(function) or is_ours_and_compiled(function)

    def form(self, function: object) -> None:
        """Returns None: no function is inlined in another form."""

    def as_array(self, b: Builder, number: Any) -> Node:
        """Raises CannotCapture: numbers are no tensors."""
        raise CannotCapture("array-conversion", "a number becomes a tensor")

    def subscript(self, b: Builder, owner: object, key: Any) -> Any:
        """Raises CannotCapture: nothing else is subscripted."""
        raise CannotCapture("unsupported-object", f"A {type(owner).__name__} is subscripted.")

    # -- calls -----------------------------------------------------------------------------------------------------
    def call(self, b: Builder, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds a call of a function."""
        if is_question(function):
            return self._answer(b, function, args, kwargs)
        name = name_of_call(function)
        if name is None:
            shown = getattr(function, "__qualname__", type(function).__name__)
            raise CannotCapture("unknown-function", f"`{getattr(function, '__module__', '')}.{shown}` of a tensor")
        return self._trace(b).call(name, function, args, kwargs, b.location)

    def _answer(self, b: Builder, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        trace = self._trace(b)
        if function is torch.is_grad_enabled:
            return trace.grad_enabled
        return trace.answer(function, args, kwargs)

    def set_grad_enabled(self, b: Builder, on: bool) -> None:
        """Sets the grad mode from here on."""
        self._trace(b).set_grad_enabled(on, b.location)

    def grad_enabled(self, b: Builder) -> bool:
        """Returns the grad mode at this point."""
        return bool(self._trace(b).grad_enabled)

    def method(self, b: Builder, x: Tensor, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds ``x.name(*args, **kwargs)``."""
        found = name_of_method(name)
        if name == "backward":
            raise CannotCapture("training-step", "`backward`")
        if found is None:
            raise CannotCapture("unknown-function", f"the method `{name}` of a tensor")
        return self._trace(b).call(found, getattr(torch.Tensor, name), (x, *args), kwargs, b.location)

    def has_method(self, x: Tensor, name: str) -> bool:
        """Whether ``name`` is a method of tensors."""
        return callable(getattr(torch.Tensor, name, None))

    def attribute(self, b: Builder, x: Tensor, name: str) -> Any:
        """Builds ``x.name``."""
        if name in VIEWS:
            return self._trace(b).call("builtins.getattr", getattr, (x, name), {}, b.location)
        if name == "shape":
            return Record(torch.Size, tuple(x.fake.shape), ())
        if name == "device":  # a fake tensor's is that of the real one
            return x.fake.device
        if name in FACTS:
            return getattr(x.fake, name)
        raise CannotCapture("unsupported-object", f"The attribute `{name}` of a tensor is read.")

    def opens_numbers(self, x: Tensor) -> bool:
        """Whether a Python float beside ``x`` may be an input of the graph: it is rounded to the dtype of ``x``."""
        return x.fake.dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128)

    def number(self, b: Builder, node: Node, x: Tensor) -> Tensor:
        """A float that is an input of the graph, as an operand beside ``x``: a tensor of its dtype."""
        return self._trace(b).number(node, x.fake.dtype.to_real(), b.location)

    def operator(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """Builds ``left sign right``."""
        return self._operator(b, _BINARY[sign], left, right)

    def inplace(self, b: Builder, sign: str, left: Tensor, right: Any) -> Any:
        """Builds ``left sign= right``."""
        return self._operator(b, _INPLACE[sign], left, right)

    def unary(self, b: Builder, sign: str, x: Tensor) -> Any:
        """Builds ``sign x``."""
        return self._operator(b, _UNARY[sign], x)

    def getitem(self, b: Builder, x: Tensor, key: Any) -> Any:
        """Builds ``x[key]``."""
        return self._operator(b, operator.getitem, x, key)

    def setitem(self, b: Builder, x: Tensor, key: Any, value: Any) -> None:
        """Builds ``x[key] = value``."""
        self._operator(b, operator.setitem, x, key, value)

    def rows(self, b: Builder, x: Tensor) -> Any:
        """Builds the rows of ``x``, as iteration gives them."""
        return self._trace(b).call("torch.Tensor.unbind", torch.Tensor.unbind, (x, 0), {}, b.location)

    def _operator(self, b: Builder, function: Any, *operands: Any) -> Any:
        return self._trace(b).call(f"operator.{function.__name__}", function, operands, {}, b.location)


def is_ours_and_compiled(function: object) -> bool:
    """Whether it is a function of PyTorch that is not Python code."""
    return isinstance(function, types.BuiltinFunctionType) and is_ours(function)


FRONTEND = TorchFrontend()

__all__ = ["FRONTEND", "TorchFrontend"]
