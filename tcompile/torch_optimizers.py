"""The steps of PyTorch's optimizers, compiled.

Input: an optimizer whose class is PyTorch's own.
Output: its ``step``, which updates each parameter by one kernel.
Why: in eager mode an update takes a dozen passes over the parameter and its state, each a call of PyTorch's.

The class's own ``step`` is traced for one parameter, with the learning rate and the step count as tensors, so a
schedule is no recompile. Parameters of one shape share a program. Whatever is unusual (hooks, sparse gradients, other
options) runs in eager mode, as does the first step, which makes the state.
"""

from __future__ import annotations

import collections
import functools
import inspect
import logging
import operator
import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.optim import Optimizer
from torch.optim import optimizer as _optimizers

from tcompile.backends.helpers import ignore_flags, reset
from tcompile.callers import raise_if_callers
from tcompile.config import config
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.records import dataclass
from tcompile.runtime.cache import CompileSettings

_OPEN = ("params", "lr", "initial_lr")  # items of a parameter group that are no constants of a program
_EAGER = ("capturable", "differentiable", "fused", "foreach")  # options under which a step stays PyTorch's
_DTYPES = (torch.float32, torch.float64)
# The classes whose step is an update of each parameter by itself, element by element.
_CLASSES = frozenset({
    "ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD",
})  # fmt: skip
_COUNTS = frozenset({"step", "mu_product", "eta", "mu"})  # of a state: numbers that eager mode takes as Python's floats


class Stepper:
    """Stands for an optimizer of which plain Python is about to call ``step``.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer. Its own ``step``, which a learning rate scheduler may have wrapped, is left alone.
    """

    __slots__ = ("optimizer",)

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def step(self) -> Any:
        """The compiled step; the optimizer's attribute where that is not the ``step`` of one of PyTorch's classes."""
        optimizer = self.optimizer
        found = optimizer.step
        original = getattr(found, "__func__", None)
        if _is_step(original):
            return types.MethodType(compiled_step(original), optimizer)
        return _noted_by_scheduler(found) if getattr(found, "_wrapped_by_lr_sched", False) else found


def _noted_by_scheduler(wrapper: types.FunctionType) -> Callable[..., Any]:
    """The ``step`` that a learning rate scheduler has given an optimizer: it notes that there was one."""
    original = getattr(wrapper, "__wrapped__", None)
    cells = zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True)
    held = {name: cell.cell_contents for name, cell in cells}
    if not _is_step(original) or not {"opt_ref", "func"} <= held.keys() or held["func"] is not original:
        return wrapper
    return functools.partial(_noted_step, held["opt_ref"](), original)


def _noted_step(optimizer: Any, original: Callable[..., Any], closure: Callable[[], Any] | None = None) -> Any:
    optimizer._opt_called = True
    return compiled_step(original)(optimizer, closure)


def _is_step(function: Any) -> bool:
    """Whether a function is the ``step`` of one of PyTorch's optimizers.

    PyTorch wraps the ``step`` of a class when it makes the first optimizer of that class.
    """
    name = function.__qualname__.partition(".")[0] if isinstance(function, types.FunctionType) else ""
    cls = getattr(torch.optim, name, None) if name in _CLASSES else None
    return isinstance(cls, type) and cls.__dict__.get("step") is function


@functools.cache
def compiled_step(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function that takes the place of an optimizer class's ``step``.

    >>> model = torch.nn.Linear(2, 2)
    >>> compiled_step(torch.optim.SGD.step)(torch.optim.SGD(model.parameters(), lr=0.1))
    """

    @functools.wraps(original)
    def step(self: Any, closure: Callable[[], Any] | None = None) -> Any:
        if not _is_usual(self, original):
            return original(self, closure) if closure is not None else original(self)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        plan = _plans.get(self)
        if plan is None or not (plan.updates is None or plan.holds(self)):
            if _lacks_state(self):
                original(self)
                return loss
            plan = _plans[self] = _plan(self)
        if plan.updates is None:
            original(self)
        else:
            plan.run()
        return loss

    return step


def _is_usual(self: Any, original: Callable[..., Any]) -> bool:
    """Whether nothing but the class's ``step`` belongs to a step of this optimizer."""
    own = self.__dict__
    return not (
        type(self).step is not original or own["_optimizer_step_pre_hooks"] or own["_optimizer_step_post_hooks"]
        or _optimizers._global_optimizer_pre_hooks or _optimizers._global_optimizer_post_hooks
        or "grad_scale" in own or "found_inf" in own or torch.autograd.profiler._is_profiler_enabled
    )  # fmt: skip


@dataclass(frozen=True)
class _Program:
    """A compiled update: takes the arrays at some positions of an update's."""

    inputs: list[int]
    run: Callable[..., None]


@dataclass
class _Update:
    """A parameter's program with its arguments, and the facts for which it holds.

    ``arrays`` are the memory of the parameter, its gradient, the learning rate and the state; the gradient's is new in
    each step.
    """

    program: _Program
    state: dict[str, Any]
    tensors: tuple[torch.Tensor, ...]  # the parameter, and those of the state
    addresses: list[int]
    strides: tuple[int, ...]  # of the gradient
    arrays: list[Any]

    def holds(self) -> bool:
        """Whether parameter, gradient and state are still such."""
        parameter = self.tensors[0]
        gradient = parameter.grad
        if gradient is None or gradient.layout is not torch.strided or gradient.dtype is not parameter.dtype:
            return False
        if gradient.stride() != self.strides or [t.data_ptr() for t in self.tensors] != self.addresses:
            return False
        found = [value for value in self.state.values() if type(value) is torch.Tensor]
        return len(found) == len(self.tensors) - 1 and all(map(operator.is_, found, self.tensors[1:]))

    def run(self) -> None:
        """Updates the parameter and its state."""
        gradient = self.tensors[0].grad
        assert gradient is not None
        self.arrays[1] = gradient.numpy(force=True)
        self.program.run(*[self.arrays[position] for position in self.program.inputs])
        self.arrays[1] = None  # its memory is free if the gradient is


@dataclass
class _Plan:
    """The updates of an optimizer's step; None where the step is PyTorch's.

    ``groups`` are its parameter groups, each with its parameters that have a gradient, its options and the tensor that
    holds its learning rate.
    """

    groups: list[tuple[dict[str, Any], list[torch.Tensor], dict[str, Any], torch.Tensor]]
    updates: list[_Update] | None

    def holds(self, optimizer: Any) -> bool:
        """Whether the optimizer has the same groups, parameters with a gradient, options and state."""
        groups = optimizer.param_groups
        if self.updates is None or len(groups) != len(self.groups):
            return False
        for group, (known, parameters, options, _) in zip(groups, self.groups, strict=True):
            found = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group is not known or len(found) != len(parameters) or type(group["lr"]) is not float:
                return False
            if not all(map(operator.is_, found, parameters)) or _options(group) != options:
                return False
        return all(update.holds() for update in self.updates)

    def run(self) -> None:
        """Updates all parameters."""
        assert self.updates is not None
        for group, _, _, rate in self.groups:
            rate.fill_(group["lr"])
        token = ignore_flags()
        try:
            for update in self.updates:
                update.run()
        finally:
            reset(token)
            torch.autograd.graph.increment_version([t for update in self.updates for t in update.tensors])


_plans: WeakKeyDictionary[Any, _Plan] = WeakKeyDictionary()
_programs: dict[Any, _Program | None] = {}
_variants: Counter[Any] = Counter()  # programs by class and shapes: some schedulers change other options in each step


def _options(group: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a parameter group that are constants of its programs."""
    return {name: value for name, value in group.items() if name not in _OPEN}


def _plan(self: Any) -> _Plan:
    """Makes the plan for further steps of an optimizer, from its parameters, their gradients and their state."""
    groups: list[Any] = []
    updates: list[_Update] = []
    usual = True
    for group in self.param_groups:
        rate = torch.empty((), dtype=torch.float64)
        parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
        groups.append((group, parameters, _options(group), rate))
        usual = usual and type(group["lr"]) is float and not any(group.get(name) for name in _EAGER)
        usual = usual and not any(map(_has_tensor, _options(group).values()))
        for parameter in parameters if usual else ():
            state = self.state.get(parameter, {})
            program = _program_for(self, group, parameter, state)
            if program is None:
                usual = False
                break
            own = [value for value in state.values() if isinstance(value, torch.Tensor)]
            addresses = [tensor.data_ptr() for tensor in (parameter, *own)]
            arrays = [tensor.numpy(force=True) for tensor in (parameter, parameter.grad, rate, *own)]
            updates.append(_Update(program, state, (parameter, *own), addresses, parameter.grad.stride(), arrays))
    return _Plan(groups, updates if usual else None)


def _has_tensor(option: Any) -> bool:
    """Whether an option's value can change in place."""
    return isinstance(option, torch.Tensor) or (isinstance(option, tuple) and any(map(_has_tensor, option)))


def _lacks_state(self: Any) -> bool:
    """Whether the next step adds to the state of a parameter."""
    return any(
        parameter.grad is not None and not self.state.get(parameter) and _makes_state(self, group)
        for group in self.param_groups
        for parameter in group["params"]
    )


def _program_for(
    self: Any, group: Mapping[str, Any], parameter: torch.Tensor, state: Mapping[str, Any]
) -> _Program | None:
    """The program for a parameter; None where eager mode is right."""
    tensors = [value for value in state.values() if isinstance(value, torch.Tensor)]
    facts = [(t.dtype, t.shape, t.stride()) for t in (parameter, parameter.grad, *tensors) if t is not None]
    key = (
        type(self),
        *((name, _key(value)) for part in (_options(group), state) for name, value in part.items()),
        *facts,
    )
    if not all(_is_usual_tensor(t) for t in (parameter, parameter.grad, *tensors)):
        return None
    if not state and _makes_state(self, group):
        return None
    if key not in _programs:
        _variants[type(self), *facts] += 1
        if _variants[type(self), *facts] > config.recompile_limit:
            bus.emit(FellBack(reason=f"{type(self).__name__}.step runs in eager mode", detail="its options vary"))
            return None
        _programs[key] = _compiled(self, group, parameter, state)
    return _programs[key]


def _is_usual_tensor(tensor: torch.Tensor | None) -> bool:
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor is not None
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and tensor.dtype in _DTYPES
        and torch.empty_like(tensor).stride() == tensor.stride()  # the tensors that a step is traced with are such
    )


def _key(value: Any) -> Any:
    """What a program depends on of an option, or of an item of a parameter's state."""
    return torch.Tensor if isinstance(value, torch.Tensor) else (type(value), repr(value))


def _compiled(
    self: Any, group: Mapping[str, Any], parameter: torch.Tensor, state: Mapping[str, Any]
) -> _Program | None:
    """Compiles the program for a parameter; None where it cannot be, or where eager mode is as fast."""
    names = tuple(name for name, value in state.items() if isinstance(value, torch.Tensor))
    detail = ""
    for capturable in (False, True):  # some classes ask for elements if they need not be captured
        try:
            module, examples = _traced(self, {**group, "capturable": capturable}, parameter, state, names)
            calls = sum(node.op == "call_function" for node in module.graph.nodes)
            return _compiled_graph(module, examples) if calls > 1 else None
        except Exception as error:
            raise_if_callers(error)
            detail = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    bus.emit(FellBack(reason=f"{type(self).__name__}.step runs in eager mode", detail=detail))
    return None


def _makes_state(self: Any, group: Mapping[str, Any]) -> bool:
    """Whether a step adds tensors to the state of a parameter that has none."""
    return type(self) is not torch.optim.SGD or bool(group["momentum"])


def _traced(
    self: Any, group: Mapping[str, Any], parameter: torch.Tensor, state: Mapping[str, Any], names: Sequence[str]
) -> tuple[GraphModule, list[torch.Tensor]]:
    """The calls of a step for one parameter, and tensors like the arguments."""
    from torch.fx.experimental.proxy_tensor import make_fx

    body = inspect.unwrap(type(self).step)

    def update(parameter: Any, gradient: Any, rate: Any, *values: Any) -> tuple[()]:
        one = object.__new__(type(self))
        one.__dict__ = dict(self.__dict__)
        parameter.grad = gradient
        counts = {name: value for name, value in zip(names, values, strict=True) if name in _COUNTS and not value.ndim}
        exact = {name: value.double() for name, value in counts.items()}
        one.state = collections.defaultdict(
            dict, {parameter: {**state, **dict(zip(names, values, strict=True)), **exact}}
        )
        one.param_groups = [{**group, "params": [parameter], "lr": rate, "foreach": False, "fused": False}]
        with torch.no_grad():
            body(one)
        for name, value in counts.items():
            value.copy_(one.state[parameter][name])
        return ()

    rate = torch.tensor(group["lr"], dtype=torch.float64).requires_grad_()  # SGD asks so whether it is a tensor's
    assert parameter.grad is not None
    examples = [torch.empty_like(parameter.detach()), torch.empty_like(parameter.grad), rate]
    examples += [torch.ones_like(state[name]) for name in names]
    was, log = torch.compiler._is_compiling_flag, logging.getLogger("torch._subclasses.fake_tensor")
    disabled, log.disabled = log.disabled, True  # its errors are caught
    torch.compiler._is_compiling_flag = True  # steps then compute with their counts, instead of with Python numbers
    try:
        module = make_fx(update, tracing_mode="fake")(*examples)
    finally:
        torch.compiler._is_compiling_flag, log.disabled = was, disabled
    _without_numbers(module)
    return module, [example.detach() for example in examples]


def _without_numbers(module: GraphModule) -> None:
    """Rewrites operations that take a tensor's element as a number into ones that take the tensor."""
    aten, graph = torch.ops.aten, module.graph
    for node in list(graph.nodes):
        number = next((x for x in node.kwargs.values() if _is_number(x)), None)
        if number is None:
            continue
        (tensor,), (first, *others) = number.args, node.args
        with graph.inserting_before(node):
            if node.target is aten.addcdiv_.default:
                change = graph.call_function(aten.mul.Tensor, (others[0], tensor))
                change = graph.call_function(aten.div.Tensor, (change, others[1]))
            elif node.target is aten.addcmul_.default:
                change = graph.call_function(aten.mul.Tensor, (others[0], tensor))
                change = graph.call_function(aten.mul.Tensor, (change, others[1]))
            elif node.target is aten.add_.Tensor:
                change = graph.call_function(aten.mul.Tensor, (others[0], tensor))
            else:
                continue
            made = graph.call_function(aten.add_.Tensor, (first, change))
        node.replace_all_uses_with(made)
        graph.erase_node(node)
    for node in reversed(list(graph.nodes)):
        if _is_number(node) and not node.users:
            graph.erase_node(node)
    module.recompile()


def _is_number(value: Any) -> bool:
    return isinstance(value, FxNode) and value.target is torch.ops.aten._local_scalar_dense.default


def _compiled_graph(module: GraphModule, examples: Sequence[torch.Tensor]) -> _Program:
    """The compiled form of an update."""
    from tcompile.torch_backend import Made, differentiated, options_of

    made = Made()
    with torch.no_grad():
        differentiated(module, examples, options_of(CompileSettings()), made, reports=False)
    (compiled,) = made.compiled
    program = compiled.program(())
    inputs = sum(node.op == "placeholder" for node in compiled.module.graph.nodes)
    if program is None or inputs != len(examples) or program.converted.returned:
        raise ValueError(f"it is no graph of kernels ({compiled.refused})")
    return _Program(*program.on_arrays())


__all__ = ["Stepper", "compiled_step"]
