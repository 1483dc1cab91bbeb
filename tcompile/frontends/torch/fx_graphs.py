"""From PyTorch's graph of ATen operations to a graph of ours.

Input: an FX graph with fake results, which writes to its arguments at its end alone, and the values of its symbols.
Output: a ``Graph`` over arrays with its calling convention, or ``Refused``.
Why: PyTorch has captured, functionalised and differentiated the function; the graph remains to be compiled.

Sizes are numbers here: a graph with open sizes is converted once for each set of sizes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from tcompile.errors import GraphError
from tcompile.frontends.torch import composed, elementwise, indexing, reductions, shapes
from tcompile.frontends.torch.aten_calls import NoLowering, append_call, nodes_in
from tcompile.frontends.torch.lowering import LOWERINGS, Builder
from tcompile.frontends.torch.tensors import array_of, has_array, same_strides, type_of_tensor
from tcompile.graph import Graph, Location, Node, TensorType, ops
from tcompile.records import dataclass

ROWS = (composed, elementwise, indexing, reductions, shapes)  # the modules whose rows are in the table
_WITH_EFFECTS = torch.ops.higher_order.with_effects
_BY_STRIDES = frozenset({"aten.as_strided.default", "aten.as_strided_scatter.default", "aten.view.dtype"})
_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)\n\s*(?P<text>.*)')


class Refused(Exception):
    """A graph that cannot be converted, and that PyTorch runs. The text says why."""


@dataclass(frozen=True)
class Shown:
    """What a view shows: sizes, strides, how many places on, and whether autograd knows it as a view."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    detached: bool


@dataclass(frozen=True)
class Given:
    """The argument at a position, or a view of it."""

    position: int
    view: Shown | None = None


@dataclass(frozen=True)
class Part:
    """A view of another result, which has this number."""

    result: int
    view: Shown


@dataclass
class Converted:
    """A graph, with its calling convention.

    ``inputs`` are the positions of the tensors among the arguments, and ``strides`` their strides, on which kernels
    rely. The other arguments are numbers, and constants in the graph. ``constants`` are further inputs, after the
    tensors. ``outputs`` describes each result: its position among the graph's outputs, ``Given`` for an argument,
    ``Part`` for a view of another result, or a function that makes a number or an empty tensor. ``Given`` and ``Part``
    share a version counter, by which autograd sees writes. The first ``returned`` results are PyTorch's; the others are
    what several of these are views of. ``written`` are pairs of an output's position, and the number of the input that
    gets its elements. ``draws`` says whether random numbers are drawn, ``shares`` whether a result is a view of an
    argument or of another result.
    """

    graph: Graph
    inputs: list[int]
    strides: list[tuple[int, ...]]
    constants: list[np.ndarray[Any, Any]]
    outputs: list[int | Given | Part | Callable[[], Any]]
    written: list[tuple[int, int]]
    draws: bool
    shares: bool = False
    returned: int = 0


def draws(operation: Any) -> bool:
    """Whether an ATen operation draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(operation, "tags", ())


def symbols_of(module: GraphModule, args: Sequence[Any]) -> dict[Any, int]:
    """The values of a graph's symbols for some arguments."""
    found: dict[Any, int] = {}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, arg in zip(placeholders, args, strict=True):
        fake = node.meta.get("val")
        if isinstance(fake, torch.SymInt):
            found[fake.node.expr] = int(arg)
        elif isinstance(fake, torch.Tensor):
            for size, number in zip(fake.shape, arg.shape, strict=True):
                if isinstance(size, torch.SymInt):
                    found.setdefault(size.node.expr, int(number))
    return found


def location_of(node: FxNode) -> Location | None:
    """The user's line that a node came from."""
    frames = list(_FRAME.finditer(node.meta.get("stack_trace") or ""))
    if not frames:
        return None
    last = frames[-1]
    return Location(last["file"], int(last["line"]), function=last["function"], text=last["text"])


def stack_of(where: Location) -> str:
    """The user's line as PyTorch notes it in a node, which ``location_of`` reads."""
    return f'  File "{where.file}", line {where.line}, in {where.function}\n    {where.text.strip()}\n'


def convert(module: GraphModule, symbols: Mapping[Any, int], name: str = "graph") -> Converted:
    """Converts a graph for one set of sizes.

    Parameters
    ----------
    module : GraphModule
        A graph of ATen operations, whose nodes have fake values. It writes to nothing but its arguments, at the end.
    symbols : mapping
        The values of its symbols.
    name : str
        The graph's name in reports.

    Raises
    ------
    Refused
        Where the graph holds something that no array can be: a tensor of another dtype, device or layout, a size that
        depends on data, or an operation with an effect.
    """
    with unset_fake_temporarily():  # PyTorch compiles while it traces
        return _Conversion(module, symbols, name).run()


class _Conversion:
    """One conversion in progress: the values of the nodes so far."""

    def __init__(self, module: GraphModule, symbols: Mapping[Any, int], name: str) -> None:
        self.module = module
        self.symbols = symbols
        self.graph = Graph(name)
        self.values: dict[FxNode, Any] = {}
        self.fakes: dict[Node, torch.Tensor] = {}
        self.owners = _owners(module)
        self.writes: dict[FxNode, Node] = {}  # the values of arguments after the call
        self.checks: list[Node] = []  # operations that may raise, and have no result
        self.last_draw: Node | None = None
        self.made = Converted(self.graph, [], [], [], [], [], False)

    def run(self) -> Converted:
        position, held = 0, []
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._input(node, position)
                position += 1
            elif node.op == "get_attr":
                held.append(self._constant(node))
            elif node.op == "call_function":
                self.values[node] = self._call(node)
            elif node.op == "output":
                self._outputs(node)
            else:
                raise Refused(f"the node {node.name} is a {node.op}")
        self.made.constants += held
        return self.made

    # -- values ----------------------------------------------------------------------------------------------------
    def concrete(self, value: Any) -> Any:
        """A value with numbers for symbols."""
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            found = value.node.expr
            found = found.subs(self.symbols) if hasattr(found, "subs") else found
            if getattr(found, "free_symbols", None):
                raise Refused(f"the size {found} depends on data")
            kind = int if isinstance(value, torch.SymInt) else float if isinstance(value, torch.SymFloat) else bool
            return kind(found)
        if isinstance(value, tuple | list):
            return type(value)(map(self.concrete, value))
        return value

    def fake(self, value: Any) -> Any:
        """A node's fake value with numbers for sizes: a tensor of the meta device, or a tuple of them."""
        if isinstance(value, torch.Tensor):
            if not has_array(value):
                raise Refused(f"NumPy has no array for a tensor of {value.dtype} on {value.device}")
            shape, strides = self.concrete(tuple(value.shape)), self.concrete(tuple(value.stride()))
            return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")
        if isinstance(value, tuple | list):
            return tuple(map(self.fake, value))
        return self.concrete(value)

    def value(self, arg: Any) -> Any:
        """An argument, with nodes of ours for nodes."""
        if isinstance(arg, FxNode):
            return self.values[arg]
        if isinstance(arg, tuple | list):
            return tuple(map(self.value, arg))
        if isinstance(arg, dict):
            return {key: self.value(item) for key, item in arg.items()}
        if isinstance(arg, slice):
            return slice(self.value(arg.start), self.value(arg.stop), self.value(arg.step))
        return self.concrete(arg)

    # -- nodes -----------------------------------------------------------------------------------------------------
    def _input(self, node: FxNode, position: int) -> None:
        if any(user.target is _WITH_EFFECTS and user.args[0] is node for user in node.users):
            self.values[node] = None  # an effect token: it orders effects and holds no value
            return
        fake = self.fake(node.meta.get("val"))
        if not isinstance(fake, torch.Tensor):
            self.values[node] = fake
            return
        made = self.values[node] = self.graph.input(node.name, type_of_tensor(fake))
        self.fakes[made] = fake
        self.made.inputs.append(position)
        self.made.strides.append(tuple(fake.stride()))

    def _constant(self, node: FxNode) -> np.ndarray[Any, Any]:
        held: Any = self.module
        for part in str(node.target).split("."):
            held = getattr(held, part)
        if not isinstance(held, torch.Tensor) or not has_array(held):
            raise Refused(f"the constant {node.target} is not a dense tensor on the CPU")
        fake = torch.empty_strided(held.shape, held.stride(), dtype=held.dtype, device="meta")
        made = self.values[node] = self.graph.input(node.name, type_of_tensor(fake))
        self.fakes[made] = fake
        return array_of(held)

    def _call(self, node: FxNode) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool):
            return self.concrete(value)
        if node.target is operator.getitem:
            whole, index = self.value(node.args[0]), self.value(node.args[1])
            return whole[index]
        if node.target is _WITH_EFFECTS:
            token, target, *args = node.args
            self._check_effect(node, target, tuple(args))
            return self.value(token), None
        if node.target is torch.ops.aten._assert_async.msg:
            self._check_effect(node, node.target, tuple(node.args))
            return None
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused(f"{node.target} is not an ATen operation")
        if node.target is torch.ops.aten.copy_.default:
            return self._write(node)
        if node.target._schema.is_mutable:
            raise Refused(f"{node.target} writes to its operands")
        args, kwargs = self.value(tuple(node.args)), self.value(dict(node.kwargs))
        expected = self.fake(value)
        name, before = str(node.target), len(self.graph.nodes)
        is_draw = draws(node.target)
        builder = Builder(self.graph, expected, self.fakes, location_of(node))
        row = None if is_draw else LOWERINGS.get(name)
        try:
            if row is None:
                raise NoLowering("no row")
            made = row(builder, *args, **kwargs)
            self._check(made, expected)
        except (NoLowering, GraphError):
            del self.graph.nodes[before:]
            made = self._aten(node, name, args, kwargs, expected, is_draw)
        if node in self.owners and isinstance(made, Node) and self._shares(made, args):
            made = self._ordered(made, type_of_tensor(expected))
        self._remember(made, expected)
        return made

    def _check_effect(self, node: FxNode, target: Any, args: tuple[Any, ...]) -> None:
        """An operation without a result, which raises where its operands are not right."""
        if not isinstance(target, torch._ops.OpOverload) or target._schema.returns or target._schema.is_mutable:
            raise Refused(f"{target} has an effect")
        made = append_call(
            self.graph, str(target), self.value(args), self.value(dict(node.kwargs)), None, location_of(node)
        )
        self.checks.append(made)

    def _write(self, node: FxNode) -> Node:
        """A write to an argument, with which graphs end."""
        target, source = node.args[:2]
        if not isinstance(target, FxNode) or target.op != "placeholder":
            raise Refused("a write to a tensor that is not an argument")
        base, value = self.values[target], self.value(source)
        fake, whole = self.fakes[base], target.meta["val"]
        if whole.is_conj() or whole.is_neg():
            raise Refused("a write to a lazily conjugated argument")
        try:
            made = LOWERINGS["aten.copy.default"](Builder(self.graph, fake, self.fakes, location_of(node)), base, value)
        except NoLowering as error:
            raise Refused(str(error)) from None
        assert isinstance(made, Node)
        self.writes[target] = ops.apply(self.graph, "assign", base, made, path=())
        return made

    def _check(self, made: Any, expected: Any) -> None:
        """Raises NoLowering where a row gave another dtype or shape than PyTorch does."""
        for node, fake in _paired(made, expected):
            type = type_of_tensor(fake)
            if (node.tensor.dtype, node.tensor.shape) != (type.dtype, type.shape):
                raise NoLowering(f"{node.tensor} instead of {type}")

    def _remember(self, made: Any, expected: Any) -> None:
        for node, fake in _paired(made, expected):
            if isinstance(node, Node):
                self.fakes.setdefault(node, fake)

    def _shares(self, made: Any, args: Any) -> bool:
        """Whether a row's result is an operand, or a view of one."""
        operands = {_root(item) for item in nodes_in(args)}
        return any(_root(node) in operands for node in nodes_in(made))

    def _aten(self, node: FxNode, name: str, args: Any, kwargs: Any, expected: Any, is_draw: bool) -> Any:
        """A call of PyTorch's own kernel."""
        if is_draw:  # random numbers come in memory order
            args = tuple(map(self._in_order, node.args, args))
        if name in _BY_STRIDES:
            args = self._by_strides(node, args)
        try:
            made = append_call(self.graph, name, args, kwargs, expected, location_of(node), is_draw, self.last_draw)
        except NoLowering as error:
            raise Refused(str(error)) from None
        if is_draw:
            self.made.draws, self.last_draw = True, nodes_in(made)[0]
        return made

    def _in_order(self, given: Any, value: Any) -> Any:
        """An argument, in the memory order that PyTorch gives it."""
        if not isinstance(given, FxNode) or not isinstance(value, Node):
            return value
        return self._with_strides(value, self.fake(given.meta["val"]))

    def _by_strides(self, node: FxNode, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an operation that looks at memory: the operand with PyTorch's strides, offsets in its array.

        Raises Refused where it looks at memory outside of the operand.
        """
        whole = node.args[0]
        assert isinstance(whole, FxNode)
        value = whole.meta["val"]
        fake, begin = self.fake(value), self.concrete(value.storage_offset())
        args = (self._with_strides(args[0], fake), *args[1:])
        number = {"aten.as_strided.default": 1, "aten.as_strided_scatter.default": 2}.get(str(node.target))
        if number is None:
            return args
        size, strides, offset = (*args[number:], None)[:3]
        offset = 0 if offset is None else offset - begin
        if offset < 0 or _extent(size, strides) + offset > _extent(fake.shape, fake.stride()):
            raise Refused("as_strided reads memory outside of its operand")
        return (*args[:number], size, strides, offset)

    # -- outputs ---------------------------------------------------------------------------------------------------
    def _outputs(self, node: FxNode) -> None:
        results = node.args[0]
        items = list(results if isinstance(results, tuple | list) else (results,))
        roots = [root_of(item) for item in items if isinstance(item, FxNode)]
        self.made.returned = len(items)
        items += [root for root in dict.fromkeys(roots) if roots.count(root) > 1 and self._is_new(root, items)]
        self.made.shares = len({*roots}) < len(roots) or any(root.op == "placeholder" for root in roots)
        known: dict[Node, int] = {}
        for item in items:
            if not isinstance(item, FxNode) or not isinstance(self.values[item], Node):
                self.made.outputs.append(partial(_same, self.value(item)))
                continue
            made: Node = self.values[item]
            fake = self.fake(item.meta["val"])
            shared = self._shared(item, items)
            if shared is not None:
                self.made.outputs.append(shared)
            elif not fake.numel():
                sizes, strides = tuple(fake.shape), tuple(fake.stride())
                self.made.outputs.append(partial(torch.empty_strided, sizes, strides, dtype=fake.dtype, device="cpu"))
            else:
                made = self._with_strides(made, fake)
                if made not in known:
                    known[made] = len(self.graph.outputs)
                    self.graph.outputs.append(made)
                self.made.outputs.append(known[made])
        for target, held in self.writes.items():
            number = self.graph.inputs.index(self.values[target])
            self.graph.updates[len(self.graph.outputs)] = number
            self.made.written.append((len(self.graph.outputs), number))
            self.graph.outputs.append(held)
        self.graph.outputs += self.checks  # unused outputs: dead code elimination would drop the checks

    def _is_new(self, root: FxNode, items: list[Any]) -> bool:
        """Whether it is a computed tensor, and no result itself."""
        return root.op != "placeholder" and root not in items and isinstance(self.values[root], Node)

    def _shared(self, node: FxNode, items: list[Any]) -> Given | Part | None:
        """How a result is an argument, or a view of one or of another result; None where it is none."""
        whole = root_of(node)
        is_argument = whole.op == "placeholder" and isinstance(self.values[whole], Node)
        if node is whole:
            return Given(self._position(node)) if is_argument else None
        value, base = node.meta["val"], whole.meta["val"]
        if not isinstance(base, torch.Tensor) or not value.numel():
            return None
        if value.dtype != base.dtype or value.is_conj() != base.is_conj() or value.is_neg() != base.is_neg():
            return None
        sizes, strides = self.concrete(tuple(value.shape)), self.concrete(tuple(value.stride()))
        offset = self.concrete(value.storage_offset()) - self.concrete(base.storage_offset())
        view = Shown(sizes, strides, offset, _is_detached(node))
        if is_argument:
            return Given(self._position(whole), view)
        return Part(items.index(whole), view) if whole in items else None

    def _position(self, node: FxNode) -> int:
        return self.made.inputs[self.graph.inputs.index(self.values[node])]

    def _ordered(self, node: Node, type: TensorType) -> Node:
        axes = type.layout.order if type.layout.dense else tuple(range(type.ndim))
        return ops.apply(self.graph, "ordered", node, axes=axes)

    def _with_strides(self, node: Node, fake: torch.Tensor) -> Node:
        """A node in the memory order that PyTorch's fake result has."""
        wanted = type_of_tensor(fake)
        if same_strides(node.tensor, wanted):
            return node
        if wanted.layout.dense:
            return self._ordered(node, wanted)
        made = append_call(self.graph, "aten.clone.default", (node,), {}, fake)
        assert isinstance(made, Node)
        return made


def _paired(made: Any, expected: Any) -> list[tuple[Any, Any]]:
    """Results, each with its fake one."""
    return list(zip(made, expected, strict=True)) if isinstance(made, tuple) else [(made, expected)]


def _same(value: Any) -> Any:
    return value


def _extent(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """How many places in memory a tensor spans."""
    return 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True)) if all(sizes) else 0


def _is_view(node: FxNode) -> bool:
    """Whether a node's result is memory of its first operand's, or one of several views of it."""
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, FxNode) and _is_view(source)
    return bool(getattr(node.target, "is_view", False))


def root_of(node: FxNode) -> FxNode:
    """What a node is a view of."""
    return _views(node)[-1]


def _is_detached(node: FxNode) -> bool:
    """Whether a node's result, which is a view, is none that autograd knows."""
    return any(view.target is torch.ops.aten.detach.default for view in _views(node))


def _views(node: FxNode) -> list[FxNode]:
    """The node, what it is a view of, and so on."""
    found = [node]
    while found[-1].op == "call_function" and _is_view(found[-1]):
        source = found[-1].args[0]
        assert isinstance(source, FxNode)
        found.append(source)
    return found


def _owners(module: GraphModule) -> set[FxNode]:
    """The nodes whose memory the graph's results are: they may not share it with their operands."""
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    return {root_of(node) for node in output.all_input_nodes}


def _root(node: Node) -> Node:
    """What a node is a view of."""
    while node.op.kind == "view":
        node = node.inputs[0]
    return node


__all__ = [
    "Converted",
    "Given",
    "Part",
    "Refused",
    "Shown",
    "convert",
    "draws",
    "location_of",
    "stack_of",
    "symbols_of",
]
