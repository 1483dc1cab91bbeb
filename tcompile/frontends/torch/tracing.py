"""Tensors while a function is captured: each node of the graph has a fake tensor.

Input: tensors from outside, and calls of PyTorch's functions.
Output: nodes that are such calls, with fake results.
Why: PyTorch itself says what a call gives: shape, dtype, strides, aliasing, version counters, whether it is
differentiable. Nothing about its functions is written a second time.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._C._dynamo.guards import GlobalStateGuard
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

from tcompile.frontends.base import CannotCapture, Record, Tensor
from tcompile.frontends.torch.tensors import DTYPES, storage_of, type_of
from tcompile.graph import Graph, Location, Node, TensorType, ops
from tcompile.graph.ops.opaque import Name, Slot, short_name
from tcompile.graph.types import on_device
from tcompile.strict import strict

DEVICE = "torch"  # of the types of tensors in graphs
_PLAIN = (bool, int, float, complex, str, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout)


class Trace:
    """The tensors of one capture, and the calls in its graph.

    ``grad_enabled`` is the grad mode at this point of the captured code. ``written`` are the storages of tensors from
    outside that calls have written to.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.mode = FakeTensorMode(allow_non_fake_inputs=False, static_shapes=True)
        self.grad_enabled = torch.is_grad_enabled()
        self.same_state = GlobalStateGuard().check
        self.inputs: dict[int, list[torch.Tensor]] = {}  # fake tensors from outside, by storage
        self.written: set[int] = set()
        self.known: dict[int, Tensor] = {}  # by the identity of the fake tensor
        self.numbers: dict[tuple[Node, torch.dtype], Tensor] = {}  # of the graph's inputs
        self.calls = 0

    # -- tensors from outside --------------------------------------------------------------------------------------
    def input(self, tensor: torch.Tensor, node: Node) -> Tensor:
        """The traced form of a tensor from outside, which ``node`` stands for."""
        _check_gradient(tensor)
        fake = self.mode.from_tensor(tensor, static_shapes=True)
        storage = storage_of(fake)
        if storage in self.written:
            raise CannotCapture("writes-to-array", "A write to a tensor, which shares memory with another one,")
        self.inputs.setdefault(storage, []).append(fake)
        return self._remember(fake, node)

    def number(self, node: Node, dtype: torch.dtype, location: Location | None) -> Tensor:
        """A Python float that ``node`` stands for, as a tensor without axes."""
        if (node, dtype) not in self.numbers:
            with self.mode:
                fake = torch.empty((), dtype=torch.float64)
            given = Tensor(node, fake, type_of_fake(fake))
            self.known[id(fake)] = given
            self.numbers[node, dtype] = self.call("torch.Tensor.to", torch.Tensor.to, [given, dtype], {}, location)
        return self.numbers[node, dtype]

    def _remember(self, fake: torch.Tensor, node: Node) -> Tensor:
        made = self.known[id(fake)] = Tensor(node, fake, type_of_fake(fake))
        return made

    # -- calls -----------------------------------------------------------------------------------------------------
    def call(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        location: Location | None,
    ) -> Any:
        """Adds a call, and returns its result: tensors, plain objects, or records of them.

        ``name`` is the dotted name of ``function``. Raises CannotCapture where the call raises or warns, where its
        result depends on elements, and where a write may be seen through another tensor.
        """
        self._check_graph()
        fakes = _tensors_in((args, kwargs))
        before = [fake._version for fake in fakes]
        shapes = [_facts(fake) for fake in fakes]
        with self._running():
            try:
                result = function(*_fake(tuple(args)), **_fake(dict(kwargs)))
            except (DataDependentOutputException, DynamicOutputShapeException) as error:
                raise CannotCapture(
                    "data-dependent-shape", f"{short_name(name)} gives what only elements say"
                ) from error
            except (UnsupportedFakeTensorException, NotImplementedError) as error:
                raise CannotCapture("unknown-function", f"`{name}`") from error
            except Exception as error:
                raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error
        written = [fake for fake, version in zip(fakes, before, strict=True) if fake._version != version]
        if any(_facts(fake) != fact for fake, fact in zip(fakes, shapes, strict=True)):
            raise CannotCapture("side-effect", f"{short_name(name)} changes the shape of a tensor in place, which")
        for fake in written:
            self._note_write(fake)
        return self._result(name, args, kwargs, result, bool(written), location)

    def set_grad_enabled(self, on: bool, location: Location | None) -> None:
        """Sets the grad mode from here on."""
        self._check_graph()
        if on != self.grad_enabled:
            self.grad_enabled = on
            attrs = {"target": "torch._C._set_grad_enabled", "args": (on,), "kwargs": ()}
            self.graph.append(ops.TENSOR_CALL, [], attrs, (), name="set_grad_enabled", location=location)

    def answer(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The answer to a question about tensors' classes and dtypes, or about what the guards hold."""
        with self._running():
            try:
                result = function(*_fake(tuple(args)), **_fake(dict(kwargs)))
            except DataDependentOutputException as error:
                raise CannotCapture("data-dependent-value", f"`{function.__name__}` of a tensor") from error
            except Exception as error:
                raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error
        return self._plain(result)

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """A block in which fake tensors may be used. Warnings are errors: every call has to give them."""
        log = logging.getLogger("torch._subclasses.fake_tensor")  # which reports errors that plain Python raises, too
        disabled, log.disabled = log.disabled, True
        try:
            with strict(), self.mode, torch.set_grad_enabled(self.grad_enabled):
                yield
        finally:
            log.disabled = disabled

    def _check_graph(self) -> None:
        if any(node.op not in (ops.TENSOR_CALL, ops.GET) for node in self.graph.nodes):
            raise CannotCapture("mixed-libraries", "a graph of arrays gets a tensor")

    def _note_write(self, fake: torch.Tensor) -> None:
        _check_gradient(fake)
        if any(step == 0 and size > 1 for step, size in zip(fake.stride(), fake.shape, strict=True)):
            # PyTorch's functionalization loses it: neither the base nor other views get the new elements.
            raise CannotCapture("writes-to-array", "A write to a tensor that has several elements in one place,")
        found = self.inputs.get(storage_of(fake), [])
        if len(found) > 1:
            raise CannotCapture("writes-to-array", "A write to a tensor, which shares memory with another one,")
        if found:
            self.written.add(storage_of(fake))

    def _result(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        writes: bool,
        location: Location | None,
    ) -> Any:
        leaves = _leaves(result)
        made = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and id(leaf) not in self.known]
        if made or writes:
            operands: list[Node] = []
            template = _template((tuple(args), tuple(kwargs.items())), operands)
            attrs = {"target": name, "args": template[0], "kwargs": template[1]}
            label = short_name(name).rstrip("_")
            types = [on_device(type_of_fake(leaf), DEVICE) for leaf in leaves if isinstance(leaf, torch.Tensor)]
            self.calls += 1
            if isinstance(result, torch.Tensor):
                node = self.graph.append(ops.TENSOR_CALL, operands, attrs, types[0], name=label, location=location)
                if made:
                    self._remember(result, node)
            else:
                positions = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
                whole = self.graph.append(ops.TENSOR_CALL, operands, attrs, tuple(types), name=label, location=location)
                for at, type in zip(positions, types, strict=True):
                    if id(leaves[at]) in self.known:
                        continue
                    part = self.graph.append(
                        ops.GET, [whole], {"index": at}, type, name=f"{label}_{at}", location=location
                    )
                    self._remember(leaves[at], part)
        return self._plain(result)

    def _plain(self, value: Any) -> Any:
        """A result in the form that capture takes."""
        if isinstance(value, torch.Tensor):
            return self.known[id(value)]
        if type(value) in (tuple, list):
            return type(value)(map(self._plain, value))
        if isinstance(value, tuple):
            fields = (
                [name for name in dir(type(value)) if not name.startswith("_")] if hasattr(value, "n_fields") else []
            )
            return Record(type(value), tuple(map(self._plain, value)), _fields(value, fields))
        if isinstance(value, _PLAIN):
            return value
        raise CannotCapture("unsupported-object", f"A {type(value).__name__} is computed.")


def _fields(value: tuple[Any, ...], names: Sequence[str]) -> tuple[str, ...]:
    """The names of a record's items, in their order."""
    positions = {name: at for name in names for at, item in enumerate(value) if getattr(value, name, None) is item}
    return tuple(sorted(positions, key=positions.__getitem__))


def type_of_fake(fake: torch.Tensor) -> TensorType:
    """The graph type of a tensor. Raises CannotCapture where NumPy has no dtype for it."""
    if fake.dtype not in DTYPES:
        raise CannotCapture("unsupported-dtype", f"tensors of {fake.dtype}")
    return type_of(tuple(fake.shape), tuple(fake.stride()), fake.dtype)


def _check_gradient(tensor: torch.Tensor) -> None:
    """Refuses integers that require a gradient: ``integers[0] = x`` gives them one in eager mode."""
    if tensor.requires_grad and not (tensor.is_floating_point() or tensor.is_complex()):
        raise CannotCapture("unsupported-dtype", f"tensors of {tensor.dtype} that require a gradient")


def _facts(fake: torch.Tensor) -> Any:
    return fake.shape, fake.stride(), fake.storage_offset(), fake.requires_grad and fake.is_leaf


def _leaves(value: Any) -> list[Any]:
    """The items of nested tuples and lists, as ``get`` numbers those of a call's result."""
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _tensors_in(value: Any) -> list[torch.Tensor]:
    """The fake tensors of arguments."""
    if isinstance(value, Tensor):
        return [value.fake]
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return [fake for item in value for fake in _tensors_in(item)] if isinstance(value, tuple | list) else []


def _fake(value: Any) -> Any:
    """Arguments with fake tensors. Raises CannotCapture for what PyTorch's functions do not take."""
    if isinstance(value, Tensor):
        return value.fake
    if isinstance(value, tuple | list):
        return type(value)(map(_fake, value)) if type(value) is not torch.Size else value
    if isinstance(value, dict):
        return {key: _fake(item) for key, item in value.items()}
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        if any(isinstance(part, Tensor) for part in parts):
            raise CannotCapture("data-dependent-value", "a bound of a slice")
        return value
    if type(value) in _PLAIN or isinstance(value, torch.memory_format):
        return value
    raise CannotCapture("unsupported-argument", f"{type(value).__name__} in place of a tensor")


def _template(value: Any, operands: list[Node]) -> Any:
    """Arguments with a ``Slot`` for each tensor, whose nodes go to ``operands``."""
    if isinstance(value, Tensor):
        if value.node not in operands:
            operands.append(value.node)
        return Slot(operands.index(value.node))
    if isinstance(value, tuple | list) and type(value) is not torch.Size:
        made = [_template(item, operands) for item in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return Name(str(value))
    return str(value) if isinstance(value, torch.device) else value


@functools.cache
def state_check() -> tuple[Any, ...]:
    """The functions that ask for modes of PyTorch under which calls mean something else."""
    return (
        torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack,
        torch._C._functorch.maybe_current_level,
    )  # fmt: skip


def under_modes() -> bool:
    """Whether calls of PyTorch's functions mean something else now."""
    functions, dispatch, level = state_check()
    return bool(functions()) or bool(dispatch()) or level() is not None


__all__ = ["DEVICE", "Trace", "state_check", "type_of_fake", "under_modes"]
