"""Graphs of PyTorch's calls, compiled.

Input: a graph that capture has made of a function of tensors, and the tensors of the call.
Output: a callable that takes and returns tensors.
Why: PyTorch's AOTAutograd turns the calls into functional operations and differentiates them; the graphs of operations
that come out are compiled as those of ``torch.compile`` are.

AOTAutograd also wraps what it has compiled, for results that share memory and for arguments that are written. Most
graphs have neither. They are called directly, or as one node of autograd.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from tcompile.callers import raise_if_callers
from tcompile.frontends.base import CannotCapture
from tcompile.frontends.torch.fx_graphs import stack_of
from tcompile.graph import Graph, Node, ops
from tcompile.graph.ops.opaque import Name, Slot, flat, resolve
from tcompile.records import dataclass
from tcompile.runtime.cache import CompileSettings
from tcompile.strict import strict
from tcompile.torch_backend import CompiledModule, Made, compile_aten, differentiated, options_of

_TANGENT = re.compile(r"tangents_(\d+)")


def compile_tensor_graph(graph: Graph, examples: Sequence[Any], settings: CompileSettings) -> Callable[..., Any]:
    """Compiles a graph of PyTorch's calls.

    Parameters
    ----------
    graph : Graph
        A graph of ``tensor_call`` nodes.
    examples : sequence of torch.Tensor
        Its inputs in this call.
    settings : CompileSettings
        The options of ``tcompile.compile``.

    Returns
    -------
    callable
        Takes the graph's inputs, returns the sequence of its outputs.

    Raises
    ------
    CannotCapture
        Where the calls raise or warn, or give something else than they do with fake tensors.
    """
    module, options = fx_module(graph), options_of(settings)
    facts, written, expected = _facts(module, examples)
    _check_once(module, examples, written, expected)
    if settings.backend == "eager":
        return graph
    made = Made([tuple(fake.stride()) for fake in expected] if facts is not None else ())
    run: Any = differentiated(module, list(examples), options, made, reports=False)
    plain = None if facts is None else _direct(made, facts) or _as_node(module, made, facts, options)
    run = plain or _with_strides(run, expected)
    run.kernels = tuple(
        kernel for part in made.compiled for program in part.programs.values() for kernel in program.kernels
    )
    return run  # type: ignore[no-any-return]


def fx_module(graph: Graph) -> GraphModule:
    """The graph as PyTorch's own: a module of the same calls, in the same order."""
    made = FxGraph()
    values: dict[Node, FxNode] = {node: made.placeholder(node.name) for node in graph.inputs}
    for node in graph.nodes:
        if node.op is ops.GET:
            values[node] = made.call_function(operator.getitem, (values[node.inputs[0]], node.attrs["index"]))
            continue
        operands = [values[operand] for operand in node.inputs]
        args, kwargs = _filled(node.attrs["args"], operands), dict(node.attrs["kwargs"])
        target = resolve(node.attrs["target"])
        called = made.call_function(target, args, {k: _filled(v, operands) for k, v in kwargs.items()})
        if node.location is not None:
            called.meta["stack_trace"] = stack_of(node.location)
        values[node] = made.call_function(flat, (called,)) if isinstance(node.type, tuple) else called
    made.output(tuple(values[node] for node in graph.outputs))
    return GraphModule(torch.nn.Module(), made)


def _filled(template: Any, operands: Sequence[FxNode]) -> Any:
    """The arguments of a call, with PyTorch's nodes for slots, and objects for names."""
    if isinstance(template, Slot):
        return operands[template.index]
    if isinstance(template, tuple | list):
        return type(template)(_filled(item, operands) for item in template)
    return resolve(template.path) if isinstance(template, Name) else template


@dataclass(frozen=True)
class Facts:
    """The number of a graph's inputs and of its results, and which results have a gradient."""

    inputs: int
    results: int
    smooth: tuple[int, ...]


def _facts(
    module: GraphModule, examples: Sequence[torch.Tensor]
) -> tuple[Facts | None, list[bool], Sequence[torch.Tensor]]:
    """Runs a graph on fake tensors.

    Returns
    -------
    tuple
        The facts, None where results share memory with others or with arguments, or an argument is written; which
        arguments are written; the fake results.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=False, static_shapes=True)
    given = [mode.from_tensor(tensor, static_shapes=True) for tensor in examples]
    before = [fake._version for fake in given]
    with mode:
        results = module(*given)
    written = [fake._version != version for fake, version in zip(given, before, strict=True)]
    storages = [tensor.untyped_storage()._cdata for tensor in (*results, *given)]
    own, others = set(storages[: len(results)]), set(storages[len(results) :])
    if any(written) or len(own) < len(results) or own & others:
        return None, written, results
    smooth = tuple(number for number, tensor in enumerate(results) if tensor.requires_grad)
    return Facts(len(given), len(results), smooth), written, results


def _check_once(
    module: GraphModule, examples: Sequence[torch.Tensor], written: Sequence[bool], expected: Sequence[torch.Tensor]
) -> None:
    """Runs the calls on the tensors themselves, and on copies of those that may be written.

    Fake tensors do not raise all errors: ``bools.mul_(2)`` is one of their successes. Running statistics are written
    without a new version, so tensors without a gradient are copied in any case. The random numbers that the run draws
    are drawn again.
    """
    given = [
        _copied(tensor) if is_written or not tensor.requires_grad else tensor
        for tensor, is_written in zip(examples, written, strict=True)
    ]
    drawn = torch.get_rng_state()
    try:
        with strict(), torch.no_grad():
            results = module(*given)
    except Exception as error:
        raise_if_callers(error)
        raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error
    finally:
        torch.set_rng_state(drawn)
    for tensor, fake in zip(results, expected, strict=True):
        if (tensor.dtype, tensor.shape, tensor.stride()) != (fake.dtype, fake.shape, fake.stride()):
            raise CannotCapture("memory-order", "PyTorch's fake tensors tell other strides than the real ones have")


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor.detach())


def _with_strides(run: Callable[..., Any], expected: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """The same function, whose results that share memory with no other one have the strides of the fake results."""
    storages = [fake.untyped_storage()._cdata for fake in expected]
    wanted = [
        (i, fake.stride()) for i, fake in enumerate(expected) if storages.count(storages[i]) == 1 and fake.numel()
    ]

    def call(*tensors: Any) -> list[Any]:
        places = {tensor.untyped_storage()._cdata for tensor in tensors}
        results = list(run(*tensors))
        for number, strides in wanted:
            made = results[number]
            if made.stride() != strides and made.untyped_storage()._cdata not in places:
                results[number] = torch.empty_strided(made.shape, strides, dtype=made.dtype).copy_(made)
        return results

    return call


def _is_whole(compiled: CompiledModule, facts: Facts) -> bool:
    """Whether a graph of ATen operations takes the inputs of the graph that it comes from, and is compiled."""
    inputs = sum(node.op == "placeholder" for node in compiled.module.graph.nodes)
    if inputs != facts.inputs or compiled.symbolic or compiled.refused is not None:
        return False
    program = compiled.program(())
    return program is not None and len(program.converted.inputs) == inputs


def _direct(made: Made, facts: Facts) -> Callable[..., Any] | None:
    """The compiled graph itself, if nothing is differentiated."""
    (graph,) = made.compiled
    if graph.kind != "graph" or not _is_whole(graph, facts):
        return None
    program = graph.program(())
    return program.direct if program is not None and program.converted.returned == facts.results else None


def _as_node(module: GraphModule, made: Made, facts: Facts, options: dict[str, Any]) -> Callable[..., Any] | None:
    """The compiled graphs as one node of autograd; None where the backward graph takes what only AOTAutograd knows.

    A backward pass that is itself differentiated (``create_graph=True``) runs the calls again, in eager mode.
    """
    (forward,) = made.compiled
    if forward.kind != "forward" or made.backward is None or made.results != facts.results:
        return None
    if not _is_whole(forward, facts):
        return None
    program, found_order = forward.program(()), _order(forward.module, made, facts)
    if found_order is None or program is None:
        return None
    call, results, order = program.call, facts.results, found_order
    rough = [number for number in range(results) if number not in facts.smooth]
    backward = compile_aten(made.backward, options, "backward", later=True)
    again = _Again(module, facts, program.converted.draws)

    class Compiled(torch.autograd.Function):  # type: ignore[misc,name-defined,unused-ignore]
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            ctx.again = again.note(tensors)
            found = call(list(tensors))
            ctx.save_for_backward(*found[results:])
            if rough:
                ctx.mark_non_differentiable(*[found[number] for number in rough])
            return tuple(found[:results])

        @staticmethod
        def backward(ctx: Any, *tangents: Any) -> Any:
            if torch.is_grad_enabled():
                return again.gradients(ctx.again, tangents)
            values = (*ctx.saved_tensors, *tangents)
            return tuple(backward([values[number] for number in order]))

    Compiled.__name__ = Compiled.__qualname__ = f"{forward.name}_compiled"
    apply: Any = Compiled.apply

    def run(*tensors: Any) -> Any:
        return apply(*tensors)

    return run


def _order(forward: GraphModule, made: Made, facts: Facts) -> list[int] | None:
    """For each input of the backward graph, its number among the saved tensors and the gradients of the results."""
    assert made.backward is not None
    (output,) = (node for node in forward.graph.nodes if node.op == "output")
    saved = list(output.args[0])[made.results :]
    names = {node.name: number for number, node in enumerate(saved) if isinstance(node, FxNode)}
    if len(names) < len(saved) or not all(isinstance(node.meta.get("val"), torch.Tensor) for node in saved):
        return None
    found: list[int] = []
    for node in made.backward.graph.nodes:
        if node.op == "placeholder":
            tangent = _TANGENT.fullmatch(node.name)
            if node.name in names:
                found.append(names[node.name])
            elif tangent is not None and int(tangent[1]) <= len(facts.smooth):
                found.append(len(saved) + facts.smooth[int(tangent[1]) - 1])
            else:
                return None
    return found


class _Again:
    """Differentiable gradients of a graph: its calls run again, with the same random numbers."""

    def __init__(self, module: GraphModule, facts: Facts, draws: bool) -> None:
        self.module = module
        self.facts = facts
        self.draws = draws
        self.autocast = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def note(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The arguments of a call, their versions and the random generator's state."""
        return tensors, [tensor._version for tensor in tensors], torch.get_rng_state() if self.draws else None

    def gradients(self, noted: tuple[Any, ...], tangents: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The gradient for each argument, None where it has none; ``noted`` is what ``note`` returned.

        Raises RuntimeError where an argument was written since the call.
        """
        tensors, versions, drawn = noted
        if any(tensor._version != version for tensor, version in zip(tensors, versions, strict=True)):
            raise RuntimeError(
                "a tensor was modified by an inplace operation after a compiled function took it, and the gradient of "
                "its gradient needs its old elements: clone it before the write"
            )
        now = torch.get_rng_state() if drawn is not None else None
        try:
            if drawn is not None:
                torch.set_rng_state(drawn)
            on, dtype = self.autocast
            with torch.autocast("cpu", enabled=on, dtype=dtype):
                results = self.module(*tensors)
        finally:
            if now is not None:
                torch.set_rng_state(now)
        smooth = [results[number] for number in self.facts.smooth]
        wanted = [tensor for tensor in tensors if tensor.requires_grad]
        cotangents = [tangents[number] for number in self.facts.smooth]
        found = iter(torch.autograd.grad(smooth, wanted, cotangents, create_graph=True, allow_unused=True))
        return tuple(next(found) if tensor.requires_grad else None for tensor in tensors)


__all__ = ["compile_tensor_graph", "fx_module"]
