"""Graphs of PyTorch's calls, compiled.

Input: a graph that capture has made of a function of tensors, and the tensors of the call.
Output: a callable that takes and returns tensors.
Why: PyTorch's AOTAutograd turns the calls into functional operations, differentiates them, and keeps what aliases what;
the graphs of operations that come out are compiled as those of ``torch.compile`` are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from tcompile.frontends.torch.fx_graphs import stack_of
from tcompile.graph import Graph, Node, ops
from tcompile.graph.ops.opaque import Name, Slot, flat, resolve
from tcompile.runtime.cache import CompileSettings
from tcompile.torch_backend import CompiledModule, differentiated, options_of


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
    """
    made: list[CompiledModule] = []
    compiled = differentiated(fx_module(graph), list(examples), options_of(settings), made, reports=False)
    run: Any = _direct(graph, made) or compiled
    run.kernels = tuple(kernel for module in made for program in module.programs.values() for kernel in program.kernels)
    return run  # type: ignore[no-any-return]


def _direct(graph: Graph, made: Sequence[CompiledModule]) -> Callable[..., Any] | None:
    """The compiled graph without AOTAutograd around it, which has nothing to do where nothing is differentiated, no
    argument is written, and all results are new.
    """
    (module,) = made
    inputs = sum(node.op == "placeholder" for node in module.module.graph.nodes)
    if module.kind != "graph" or inputs != len(graph.inputs) or module.refused is not None:
        return None
    program = module.program(())
    if program is None or len(program.converted.outputs) != len(graph.outputs):
        return None
    return program.direct if len(program.converted.inputs) == inputs else None


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


__all__ = ["compile_tensor_graph", "fx_module"]
