"""Stages of a graph of PyTorch's calls: a result that another result is computed from ends a stage.

Input: an FX module of calls, and tensors like its inputs.
Output: modules that compute the same, one after the other.
Why: a compiled module is one node of autograd, and knows no gradient of one of its results by another. In eager mode
``autograd.grad(loss, hidden)`` gives it, as do ``hidden.retain_grad()`` and hooks on ``hidden``.

The same holds of arguments that a function writes to, and then computes with.

Results whose gradients have nothing in common get nodes of their own, too. A backward pass frees what a node keeps: in
eager mode, the losses of two models can be differentiated one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Interpreter
from torch.fx import Node as FxNode
from torch.utils._python_dispatch import TorchDispatchMode

from tcompile.frontends.base import CannotCapture
from tcompile.frontends.torch.tensors import storage_of
from tcompile.records import dataclass

autograd: Any = torch._C._autograd
_MOST_SORTED = 1000  # calls: sorting takes a time that grows with the square of their number


@dataclass(frozen=True)
class Stage:
    """A module, and the names of the values that it takes and gives."""

    module: GraphModule
    takes: tuple[str, ...]
    gives: tuple[str, ...]


def stages_of(module: GraphModule, examples: Sequence[torch.Tensor]) -> list[Stage]:
    """Splits a graph.

    Parameters
    ----------
    module : torch.fx.GraphModule
        The graph. Its calls stay in their order.
    examples : sequence of torch.Tensor
        Tensors like its inputs, real ones, which are not changed.

    Returns
    -------
    list of Stage
        One where no result is computed from another. The names are those of the graph's nodes.

    Raises
    ------
    CannotCapture
        Where a stage would write to a tensor of which it has another view, and where the backward pass would raise,
        since a tensor is written that it needs.
    """
    run = _FakeRun(module)
    run.start(examples)
    if run.writes:
        _check_backward(run)
    nodes, changes = _by_gradients(run, [node for node in module.graph.nodes if node.op == "call_function"])
    ends = sorted({_after_items(end, nodes, run) for end in (*_ends(run, nodes), *changes)} - {len(nodes) - 1})
    bounds = [0, *(end + 1 for end in ends), len(nodes)]
    live = _live(run, nodes)
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    stages, mode = [], torch.is_grad_enabled()
    first = mode
    for start, stop in pairwise(bounds):
        inside, later = _without_dead_uses(nodes[start:stop], live), {*nodes[stop:], output} & live
        own = set(inside)
        taken = dict.fromkeys(node for user in inside for node in user.all_input_nodes if node not in own)
        given = [node for node in inside if not later.isdisjoint(node.users)]
        if len(bounds) > 2:
            _check_writes(run, taken, inside)
        stages.append(_stage(module, list(taken), inside, given, (first, mode)))
        for node in inside:
            mode = node.args[0] if node.target is torch._C._set_grad_enabled else mode
    return stages


def check_draws(module: GraphModule, examples: Sequence[torch.Tensor]) -> None:
    """Raises CannotCapture where random numbers may be drawn in another order than in eager mode.

    They are drawn in memory order. Without in-place writes, as AOTAutograd has them, what they are drawn for may lie in
    C order when it does not in eager mode.
    """
    run = _FakeRun(module)
    run.start(examples)
    if run.draws and not run.is_regular:
        raise CannotCapture("random-numbers", "after a write to a tensor that is not contiguous, random numbers")


class _Operations(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
    """Notes whether an operation draws random numbers."""

    draw = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.draw |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **kwargs or {})


class _FakeRun(Interpreter):  # type: ignore[misc,unused-ignore]
    """A run on fake tensors.

    ``env`` has all values, ``written`` the storages that each call writes to, ``writes`` the last call that writes to
    each storage, ``draws`` the calls that draw random numbers. ``is_regular`` says that all that is written to lies in
    C order. ``outside`` are autograd's nodes of the arguments.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)  # type: ignore[no-untyped-call,unused-ignore]
        self.writes: dict[int, FxNode] = {}
        self.written: dict[FxNode, set[int]] = {}
        self.draws: set[FxNode] = set()
        self.is_regular = True
        self.outside: set[Any] = set()
        self._operations = _Operations()

    def start(self, examples: Sequence[torch.Tensor]) -> None:
        """Runs the graph; ``examples`` are its inputs."""
        mode = FakeTensorMode(allow_non_fake_inputs=False, static_shapes=True)
        given = [mode.from_tensor(tensor, static_shapes=True) for tensor in examples]
        self.outside = {fake.grad_fn for fake in given}
        with mode, self._operations, torch.set_grad_enabled(torch.is_grad_enabled()):
            self.run(*given)

    def run_node(self, n: FxNode) -> Any:
        """Runs one call, and notes what it writes to."""
        values = [value for node in n.all_input_nodes for value in _tensors_of(self.env[node])]
        before = [value._version for value in values]
        self._operations.draw = False
        made = super().run_node(n)
        if self._operations.draw:
            self.draws.add(n)
        written = [value for value, version in zip(values, before, strict=True) if value._version != version]
        self.written[n] = set(map(storage_of, written))
        self.is_regular &= all(value.is_contiguous() for value in written)
        self.writes.update(dict.fromkeys(self.written[n], n))
        return made


def _check_backward(run: _FakeRun) -> None:
    """Refuses a graph that writes to what the backward pass needs: compiled, it would not raise."""
    left = [value.grad_fn for made in run.env.values() for value in _tensors_of(made)]
    seen = set(left)
    while left:
        node = left.pop()
        for name in dir(node):
            if name.startswith("_saved_"):
                try:
                    getattr(node, name)
                except RuntimeError as error:
                    raise CannotCapture("operation-raises", str(error)) from error
        following = [found for found, _ in getattr(node, "next_functions", ()) if found not in seen]
        seen.update(following)
        left += following


def origin_of(tensor: torch.Tensor) -> Any:
    """PyTorch's note of why it refuses in-place writes to a view; None where it refuses none."""
    if not tensor._is_view():
        return None
    try:
        origin = autograd._get_creation_meta(tensor)
    except RuntimeError:  # a detached view
        return None
    return origin if origin in (autograd.CreationMeta.NO_GRAD_MODE, autograd.CreationMeta.MULTI_OUTPUT_NODE) else None


def _by_gradients(run: _FakeRun, nodes: list[FxNode]) -> tuple[list[FxNode], list[int]]:
    """The calls, those for the same results side by side, and the positions of the last ones for some results."""
    labels = _labels(run, nodes)
    if len(set(labels.values())) < 2:
        return nodes, []
    has_modes = any(node.target is torch._C._set_grad_enabled for node in nodes)
    if not run.writes and not run.draws and not has_modes and len(nodes) < _MOST_SORTED:
        nodes = _sorted(nodes, labels)
    changes, last = [], None
    for number, node in enumerate(nodes):
        label = labels.get(node, last)
        if label != last and last is not None:
            changes.append(number - 1)
        last = label
    return nodes, changes


def _labels(run: _FakeRun, nodes: Sequence[FxNode]) -> dict[FxNode, frozenset[int]]:
    """For each call with a gradient, the groups of results that are computed from it.

    Results are of one group if a backward pass from one frees what a backward pass from the other needs.
    """
    ends = [node for node in run.module.graph.nodes if node.op in ("placeholder", "output")]
    values = {id(v): v for end in ends for node in (end, *end.all_input_nodes) for v in _tensors_of(run.env.get(node))}
    roots = [v.grad_fn for v in values.values() if v.grad_fn is not None and v.grad_fn not in run.outside]
    reached = [_reached(root, run.outside) for root in roots]
    every = set().union(*reached)
    keeping = {node for node in every if any(name.startswith("_raw_saved_") for name in dir(node))}
    groups: list[set[int]] = []
    for number in range(len(roots)):
        kept = keeping & reached[number]
        joined = [group for group in groups if any(not kept.isdisjoint(reached[other]) for other in group)]
        groups = [group for group in groups if group not in joined] + [{number}.union(*joined)]
    of: dict[Any, set[int]] = {}
    for label, group in enumerate(groups):
        for node in set().union(*(reached[number] for number in group)):
            of.setdefault(node, set()).add(label)
    found = {node: [v.grad_fn for v in _tensors_of(run.env[node]) if v.grad_fn in of] for node in nodes}
    return {node: frozenset(of[functions[0]]) for node, functions in found.items() if functions}


def _reached(root: Any, outside: Set[Any] = frozenset()) -> set[Any]:
    """Autograd's nodes from the one of a result on, up to those of the arguments."""
    found, left = {root}, [root]
    while left:
        following = {node for node, _ in left.pop().next_functions if node is not None} - found - outside
        found |= following
        left += following
    return found


def reached_arguments(given: Sequence[torch.Tensor], result: torch.Tensor) -> frozenset[int]:
    """The positions of arguments of which a result has a gradient.

    Parameters
    ----------
    given : sequence of torch.Tensor
        The fake arguments of a graph.
    result : torch.Tensor
        A fake result of it.
    """
    if result.grad_fn is None:
        return frozenset()
    nodes = _reached(result.grad_fn)
    edges = {edge for node in nodes for edge in node.next_functions} | {(result.grad_fn, result.output_nr)}
    leaves = {id(node.variable) for node in nodes if hasattr(node, "variable")}
    return frozenset(
        number
        for number, fake in enumerate(given)
        if fake.requires_grad and (id(fake) in leaves if fake.is_leaf else (fake.grad_fn, fake.output_nr) in edges)
    )


def _sorted(nodes: Sequence[FxNode], labels: Mapping[FxNode, frozenset[int]]) -> list[FxNode]:
    """The calls in an order in which those with one label follow one another where their operands allow it."""
    left, done, label = list(nodes), set[FxNode](), labels.get(nodes[0])
    made: list[FxNode] = []
    while left:
        ready = [node for node in left if all(n.op == "placeholder" or n in done for n in node.all_input_nodes)]
        chosen = next((node for node in ready if labels.get(node, label) == label), ready[0])
        label = labels.get(chosen, label)
        left.remove(chosen)
        done.add(chosen)
        made.append(chosen)
    return made


def _ends(run: _FakeRun, nodes: Sequence[FxNode]) -> Iterator[int]:
    """The positions after which results, and written arguments, have their last elements and are computed with."""
    (output,) = (node for node in run.module.graph.nodes if node.op == "output")
    arguments = [node for node in run.module.graph.nodes if node.op == "placeholder"]
    position = {node: number for number, node in enumerate(nodes)}
    for node in dict.fromkeys([*output.all_input_nodes, *arguments]):
        value = run.env[node]
        if not isinstance(value, torch.Tensor) or not value.requires_grad:
            continue
        write = run.writes.get(storage_of(value))
        end = max(position.get(node, -1), -1 if write is None else position[write])
        if end >= 0 and any(position.get(user, -1) > end and _computes(run, user, value) for user in node.users):
            yield end


def _live(run: _FakeRun, nodes: Sequence[FxNode]) -> set[FxNode]:
    """The calls of which results are used, or that write or draw random numbers, and the output node."""
    live = {node for node in run.module.graph.nodes if node.op == "output"}
    for node in reversed(nodes):
        if (
            run.written[node]
            or node in run.draws
            or node.target is torch._C._set_grad_enabled
            or not live.isdisjoint(node.users)
        ):
            live.add(node)
    return live


def _without_dead_uses(nodes: Sequence[FxNode], live: set[FxNode]) -> list[FxNode]:
    """The calls of a stage but for dead ones on values of earlier stages: autograd would keep these values."""
    kept: dict[FxNode, None] = {}
    for node in nodes:
        if node in live or all(operand.op == "placeholder" or operand in kept for operand in node.all_input_nodes):
            kept[node] = None
    return list(kept)


def _computes(run: _FakeRun, user: FxNode, operand: torch.Tensor) -> bool:
    """Whether a call, or one on its views of ``operand``, computes something that may have a gradient."""
    if user.op == "output":
        return False
    if run.written[user] - {storage_of(operand)}:
        return True
    made = _tensors_of(run.env[user])
    if all(storage_of(value) == storage_of(operand) for value in made):
        # AOTAutograd makes results that are views of other results from what these are views of.
        is_result = any(further.op == "output" for further in user.users)
        is_second_view = is_result and (operand._is_view() or any(map(origin_of, made)))
        return is_second_view or any(_computes(run, further, operand) for further in user.users)
    return any(value.requires_grad for value in made)


def _after_items(end: int, nodes: Sequence[FxNode], run: _FakeRun) -> int:
    """The position of the last call that takes an item of what the call at ``end`` gives."""
    while end + 1 < len(nodes) and any(
        not isinstance(run.env[operand], torch.Tensor) for operand in nodes[end + 1].all_input_nodes
    ):
        end += 1
    return end


def _check_writes(run: _FakeRun, taken: Mapping[FxNode, None], inside: Sequence[FxNode]) -> None:
    storages = [storage_of(run.env[node]) for node in taken]
    for storage in {storage for node in inside for storage in run.written[node]}:
        if storages.count(storage) > 1:
            raise CannotCapture("writes-to-array", "A write to a tensor, which shares memory with another one,")


def _stage(
    module: GraphModule, taken: Sequence[FxNode], inside: Sequence[FxNode], given: Sequence[FxNode], modes: Any
) -> Stage:
    """The module of some calls; ``modes`` are the grad modes around it, and at its start."""
    made = FxGraph()
    values = {node: made.placeholder(node.name) for node in taken}
    around, mode = modes
    if mode != around:
        made.call_function(torch._C._set_grad_enabled, (mode,))
    for node in inside:
        values[node] = made.node_copy(node, values.__getitem__)
        mode = node.args[0] if node.target is torch._C._set_grad_enabled else mode
    if mode != around:
        made.call_function(torch._C._set_grad_enabled, (around,))
    made.output(tuple(values[node] for node in given))
    return Stage(GraphModule(module, made), tuple(n.name for n in taken), tuple(n.name for n in given))


def _tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors of nested tuples and lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [found for item in value for found in _tensors_of(item)] if isinstance(value, tuple | list) else []


__all__ = ["Stage", "autograd", "check_draws", "origin_of", "reached_arguments", "stages_of"]
