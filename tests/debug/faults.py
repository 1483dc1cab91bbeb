"""Planted faults, as backends that another process can import, and large graphs to hide them in.

Input: graphs.
Output: backends with one wrong operation each.
Why: the debugging tools must find them.
"""

from __future__ import annotations

import ctypes
import os
import time

import numpy as np

from tcompile.graph import Graph, TensorType
from tcompile.graph.evaluate import run
from tcompile.graph.ops import apply


def chain(count=200, size=64, dtype="float64", seed=0):
    """A graph of ``count`` operations, each on a few of those before it, with values that stay near one."""
    rng = np.random.default_rng(seed)
    graph = Graph("large")
    kind = TensorType(np.dtype(dtype), (size,))
    values = [graph.input(name, kind) for name in "abc"]
    unary = ["sin", "cos", "tanh", "abs", "negative"]
    binary = ["add", "subtract", "multiply", "maximum"]
    while len(graph.nodes) < count - 2:
        recent = values[-6:]
        one = recent[rng.integers(len(recent))]
        if rng.random() < 0.5:
            values.append(apply(graph, unary[rng.integers(len(unary))], one))
        else:
            other = values[rng.integers(max(0, len(values) - 20), len(values))]
            made = apply(graph, binary[rng.integers(len(binary))], one, other)
            values.append(made if len(graph.nodes) % 3 else apply(graph, "tanh", made))
    total = values[-1]
    while len(graph.nodes) < count:
        total = apply(graph, "add", total, values[len(graph.nodes) % len(values)])
    graph.outputs = [total, values[-4]]
    return graph


def inputs_of(graph, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(node.tensor.shape).astype(node.tensor.dtype) for node in graph.inputs]


def planted(graph, op, after="tanh"):
    """Returns the graph with ``op`` inserted after an operation in its middle that the outputs depend on."""
    live = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in live:
            live.update(node.inputs)
    candidates = [node for node in graph.nodes if node in live and node.op.name == after]
    chosen = candidates[len(candidates) // 2]

    def replace(result, node, operands):
        if node is not chosen:
            return None
        kept = result.append(node.op, operands, node.attrs, node.type, name=node.name)
        return apply(result, op, kept)

    return graph.rebuild(replace)


def _interpreted(change):
    """Returns a backend that runs graphs in NumPy, with ``change(op, value)`` in place of each value."""

    def compile(graph, inputs):
        def call(*args):
            values = dict(zip(graph.inputs, args, strict=True))
            for node in graph.nodes:
                operands = [values.get(o, o) if not isinstance(o, int | float) else o for o in node.operands]
                values[node] = change(node.op.name, node.op.reference(np)(*operands, **node.attrs))
            return tuple(values[node] for node in graph.outputs)

        return call

    return compile


wrong_expm1 = _interpreted(lambda op, value: value + 0.5 if op == "expm1" else value)
drifting_tanh = _interpreted(lambda op, value: value * (1 + 3e-4) if op == "tanh" else value)


def refuses_expm1(graph, inputs):
    if any(node.op.name == "expm1" for node in graph.nodes):
        raise KeyError("expm1 has no lowering")
    return graph


def fails_on_expm1_after_sin(graph, inputs):
    """A fault that needs two operations, one of which reads the other."""
    for node in graph.nodes:
        if node.op.name == "expm1" and any(operand.op.name == "sin" for operand in node.inputs):
            return lambda *args: tuple(value + 1 for value in run(graph, args))
    return graph


def crashes_on_expm1(graph, inputs):
    def call(*args):
        if any(node.op.name == "expm1" for node in graph.nodes):
            ctypes.string_at(0)
        return graph(*args)

    return call


def aborts_compiling_expm1(graph, inputs):
    if any(node.op.name == "expm1" for node in graph.nodes):
        os.abort()
    return graph


def hangs_on_expm1(graph, inputs):
    if any(node.op.name == "expm1" for node in graph.nodes):
        time.sleep(1000)
    return graph
