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
from tcompile.frontends.torch.stages import Stage, autograd, check_draws, origin_of, reached_arguments, stages_of
from tcompile.frontends.torch.tensors import storage_of
from tcompile.graph import Graph, Node, ops
from tcompile.graph.ops.opaque import Name, Slot, flat, resolve
from tcompile.records import dataclass
from tcompile.runtime.cache import CompileSettings
from tcompile.strict import strict
from tcompile.torch_backend import CompiledModule, Made, compile_aten, differentiated, options_of

_NO_GRAD_MODE = autograd.CreationMeta.NO_GRAD_MODE
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
    numbers = [at for at, value in enumerate(examples) if type(value) is float]
    if numbers and settings.backend != "eager":
        run = compile_tensor_graph(graph, [_tensor_of(value) for value in examples], settings)
        return _with_numbers(run, numbers)
    module, options = fx_module(graph), options_of(settings)
    draws = _check_once(module, examples)
    if settings.backend == "eager":
        return graph
    if draws:
        check_draws(module, examples)
    differentiates = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in examples)
    stages = stages_of(module, examples) if differentiates else []
    if len(stages) < 2:
        return _compiled(module, examples, options)[0]
    return _one_after_another(module, stages, examples, options)


def _tensor_of(value: Any) -> Any:
    """A Python float as a tensor; a tensor itself."""
    return torch.scalar_tensor(value, dtype=torch.float64) if type(value) is float else value


def _with_numbers(run: Callable[..., Any], numbers: Sequence[int]) -> Callable[..., Any]:
    """The same function, for Python floats at some positions."""

    def call(*values: Any) -> Any:
        tensors = list(values)
        for at in numbers:
            tensors[at] = torch.scalar_tensor(tensors[at], dtype=torch.float64)
        return run(*tensors)

    call.kernels = run.kernels  # type: ignore[attr-defined]
    return call


def _one_after_another(
    module: GraphModule, stages: Sequence[Stage], examples: Sequence[torch.Tensor], options: dict[str, Any]
) -> Callable[..., Any]:
    """The stages of a graph, each compiled."""
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    wanted = [node.name for node in output.args[0]]
    known = dict(zip(names, examples, strict=True))
    calls: list[tuple[Any, Stage]] = []
    for stage in stages:
        made, given, expected = _compiled(stage.module, [known[name] for name in stage.takes], options)
        for name, fake in zip(stage.takes, given, strict=True):
            if fake.requires_grad != known[name].requires_grad:  # a write gave it a gradient
                known[name] = _like(fake)
        known |= zip(stage.gives, map(_like, expected), strict=True)
        calls.append((made, stage))

    def run(*tensors: Any) -> list[Any]:
        values = dict(zip(names, tensors, strict=True))
        for call, stage in calls:
            values |= zip(stage.gives, call(*[values[name] for name in stage.takes]), strict=True)
        return [values[name] for name in wanted]

    whole: Any = run
    whole.kernels = tuple(kernel for call, _ in calls for kernel in call.kernels)
    return whole  # type: ignore[no-any-return]


def _like(fake: torch.Tensor) -> torch.Tensor:
    """A tensor with a fake result's dtype, strides and part in autograd; its elements are not used."""
    made = torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)
    if not fake.requires_grad:
        return made
    if fake.is_leaf:
        return made.requires_grad_()
    computed = made.requires_grad_() * 1
    if computed.stride() == fake.stride():
        return computed
    size = 1 + sum((count - 1) * step for count, step in zip(fake.shape, fake.stride(), strict=True))
    memory = torch.empty(size, dtype=fake.dtype, device=fake.device).requires_grad_() * 1
    return memory.as_strided(fake.shape, fake.stride())


def _compiled(
    module: GraphModule, examples: Sequence[torch.Tensor], options: dict[str, Any]
) -> tuple[Callable[..., Any], Sequence[torch.Tensor], Sequence[torch.Tensor]]:
    """A graph, compiled, and fake tensors that are like its arguments after it has run, and like its results."""
    given, expected, apart, facts = _facts(module, examples)
    _check_views(expected)
    examples = [tensor.detach() if number in apart else tensor for number, tensor in enumerate(examples)]
    made = Made([tuple(fake.stride()) for fake in expected] if facts is not None else ())
    run: Any = differentiated(module, list(examples), options, made, reports=False)
    plain = None if facts is None else _direct(made, facts) or _as_node(module, made, facts, expected, options)
    run = _as_restricted_views(plain or _with_strides(run, expected), expected)
    run = _detaching(run, apart) if apart else run
    run.kernels = tuple(
        kernel for part in made.compiled for program in part.programs.values() for kernel in program.kernels
    )
    return run, given, expected


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
    """The number of a graph's inputs and of its results, and which results have a gradient, each by which inputs."""

    inputs: int
    results: int
    smooth: tuple[int, ...]
    reached: tuple[frozenset[int], ...]


def _facts(
    module: GraphModule, examples: Sequence[torch.Tensor]
) -> tuple[Sequence[torch.Tensor], Sequence[torch.Tensor], list[int], Facts | None]:
    """Runs a graph on fake tensors.

    Returns
    -------
    tuple
        The fake arguments and results; the arguments that require a gradient, and of which no result has one; the
        facts, None where results share memory with others or with arguments, or an argument is written.
    """
    given, written, results = _fake_run(module, examples)
    reached = tuple(reached_arguments(given, result) for result in results)
    storages = [storage_of(tensor) for tensor in (*results, *given)]
    own, others = set(storages[: len(results)]), set(storages[len(results) :])
    smooth_arguments = {number for number, fake in enumerate(given) if fake.requires_grad}
    apart = [] if any(written) or own & others else sorted(smooth_arguments.difference(*reached))
    if any(written) or len(own) < len(results) or own & others:
        return given, results, apart, None
    smooth = tuple(number for number, tensor in enumerate(results) if tensor.requires_grad)
    return given, results, apart, Facts(len(given), len(results), smooth, reached)


def _fake_run(
    module: GraphModule, examples: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[bool], Sequence[torch.Tensor]]:
    """Fake arguments, which of them the graph writes to, and the fake results."""
    mode = FakeTensorMode(allow_non_fake_inputs=False, static_shapes=True)
    given = [mode.from_tensor(tensor, static_shapes=True) for tensor in examples]
    before = [fake._version for fake in given]
    with mode:
        results = module.forward(*given)
    return given, [fake._version != version for fake, version in zip(given, before, strict=True)], results


def _check_once(module: GraphModule, examples: Sequence[torch.Tensor]) -> bool:
    """Runs the calls on the tensors themselves, and on copies of those that may be written; says whether they draw.

    Fake tensors do not raise all errors: ``bools.mul_(2)`` is one of their successes. Running statistics are written
    without a new version, so tensors without a gradient are copied in any case. The random numbers that the run draws
    are drawn again.
    """
    _, written, expected = _fake_run(module, examples)
    given = [
        _copied(tensor) if is_written or not tensor.requires_grad else tensor
        for tensor, is_written in zip(examples, written, strict=True)
    ]
    drawn = torch.get_rng_state()
    try:
        with strict(), torch.no_grad():
            results = module.forward(*given)
    except Exception as error:
        raise_if_callers(error)
        raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error
    finally:
        draws = not torch.equal(torch.get_rng_state(), drawn)
        torch.set_rng_state(drawn)
    for tensor, fake in zip(results, expected, strict=True):
        if (tensor.dtype, tensor.shape, tensor.stride()) != (fake.dtype, fake.shape, fake.stride()):
            raise CannotCapture("memory-order", "PyTorch's fake tensors tell other strides than the real ones have")
    return draws


def _check_views(expected: Sequence[torch.Tensor]) -> None:
    """Refuses a view of a hidden tensor that was made under ``no_grad``, beside another view of that tensor.

    AOTAutograd makes the one from the other by repeating what made it of the hidden tensor: with wrong elements, or
    outside of memory.
    """
    storages = [storage_of(fake) for fake in expected]
    for fake, storage in zip(expected, storages, strict=True):
        if fake.requires_grad and storages.count(storage) > 1 and origin_of(fake) == _NO_GRAD_MODE:
            raise CannotCapture("memory-order", "a view made under `no_grad` is a result beside other views")


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor.detach())


def _with_strides(run: Callable[..., Any], expected: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """The same function, whose results have the strides of the fake results.

    Results that share memory with one another share it still, and those that share it with arguments stay as they are.
    """
    storages = [storage_of(fake) for fake in expected]
    groups = [
        [number for number, found in enumerate(storages) if found == storage and expected[number].numel()]
        for storage in dict.fromkeys(storages)
    ]

    def call(*tensors: Any) -> list[Any]:
        places = {storage_of(tensor) for tensor in tensors}
        results = list(run(*tensors))
        for group in groups:
            made = [results[number] for number in group]
            if all(tensor.stride() == expected[number].stride() for number, tensor in zip(group, made, strict=True)):
                continue
            if len({tensor.dtype for tensor in made}) > 1:  # the same bits in two dtypes
                continue
            if any(storage_of(tensor) in places for tensor in made):
                continue
            for number, tensor in zip(group, _restrided(made, [expected[number] for number in group]), strict=True):
                results[number] = tensor
        return results

    return call


def _restrided(tensors: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors with the elements of some and the strides of others, in common memory if there are several."""
    first = tensors[0]
    if len(tensors) == 1:
        made = torch.empty_strided(first.shape, expected[0].stride(), dtype=first.dtype, device=first.device)
        return [made.copy_(first)]
    size = expected[0].untyped_storage().nbytes() // first.element_size()
    memory = torch.empty(size, dtype=first.dtype, device=first.device)
    views = [memory.as_strided(fake.shape, fake.stride(), fake.storage_offset()) for fake in expected]
    for view, tensor in zip(views, tensors, strict=True):
        if tensor.requires_grad or not memory.requires_grad:
            view.copy_(tensor)
    return [
        view if tensor.requires_grad or not view.requires_grad else view.detach()
        for view, tensor in zip(views, tensors, strict=True)
    ]


def _detaching(run: Callable[..., Any], apart: Sequence[int]) -> Callable[..., Any]:
    """The same function, which keeps autograd from the arguments at some positions.

    Autograd would go on to what they were computed from, with zeros, and free what a later backward pass needs.
    """

    def call(*tensors: Any) -> Any:
        given = list(tensors)
        for number in apart:
            given[number] = given[number].detach()
        return run(*given)

    return call


def _as_restricted_views(run: Callable[..., Any], expected: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """The same function, where PyTorch refuses in-place writes to the results to which eager mode refuses them.

    Those are views with a gradient that were made under ``no_grad``, or by a function that returns several views.
    """
    restricted = [
        (number, fake.requires_grad, origin)
        for number, fake in enumerate(expected)
        if (origin := origin_of(fake)) is not None
    ]
    if not restricted:
        return run

    def call(*tensors: Any) -> list[Any]:
        results = list(run(*tensors))
        for number, has_gradient, origin in restricted:
            found = results[number]
            if found.requires_grad != has_gradient:  # AOTAutograd sees neither the base's gradient nor its absence
                found = found.detach().requires_grad_(has_gradient)
            elif not has_gradient or origin_of(found) == origin:
                continue
            with torch.set_grad_enabled(origin != _NO_GRAD_MODE):
                results[number] = torch.ops.aten.alias(found)
            autograd._set_creation_meta(results[number], origin)
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


def _as_node(
    module: GraphModule, made: Made, facts: Facts, expected: Sequence[torch.Tensor], options: dict[str, Any]
) -> Callable[..., Any] | None:
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
    keeps = program.converted.returned > results
    rough = [number for number in range(results) if number not in facts.smooth]
    backward = compile_aten(made.backward, options, "backward", later=True)
    again = _Again(module, facts, program.converted.draws)

    def zeros(number: int) -> torch.Tensor:
        fake = expected[number]
        return torch.zeros(fake.shape, dtype=fake.dtype)

    class Compiled(torch.autograd.Function):  # type: ignore[misc,name-defined,unused-ignore]
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            ctx.again = again.note(tensors)
            found = call(list(tensors))
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*found[results:])
            if rough:
                ctx.mark_non_differentiable(*[found[number] for number in rough])
            return tuple(found[:results])

        @staticmethod
        def backward(ctx: Any, *tangents: Any) -> Any:
            known = [number for number in facts.smooth if tangents[number] is not None]
            if len(known) < len(facts.smooth):
                tangents = tuple(zeros(number) if t is None else t for number, t in enumerate(tangents))
            if torch.is_grad_enabled():
                found = again.gradients(ctx.again, tangents)
            else:
                values = (*(ctx.saved_tensors if keeps else ()), *tangents)  # freed ones may not be asked for
                found = tuple(backward([values[number] for number in order]))
            if len(known) == len(facts.smooth):
                return found
            reached = frozenset[int]().union(*(facts.reached[number] for number in known))
            return tuple(gradient if number in reached else None for number, gradient in enumerate(found))

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
                results = self.module.forward(*tensors)
        finally:
            if now is not None:
                torch.set_rng_state(now)
        smooth = [results[number] for number in self.facts.smooth]
        wanted = [tensor for tensor in tensors if tensor.requires_grad]
        cotangents = [tangents[number] for number in self.facts.smooth]
        found = iter(torch.autograd.grad(smooth, wanted, cotangents, create_graph=True, allow_unused=True))
        return tuple(next(found) if tensor.requires_grad else None for tensor in tensors)


__all__ = ["compile_tensor_graph", "fx_module"]
