"""The interface between capture and a library's frontend.

Input: library objects, and calls on traced values.
Output: types of library objects, and nodes in the graph under construction.
Why: capture knows no library: everything about NumPy is in ``numpy`` beside this file.

A traced value is a graph node plus what Python can see of it. Arguments reach a frontend as plain Python (numbers,
strings, None, dtypes, slices, tuples, lists, dicts) with traced values at the leaves; results return in the same form.
A frontend refuses with ``CannotCapture`` whatever it cannot express exactly; it never guesses.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from tcompile.errors import GraphError
from tcompile.graph import Graph, Location, Node, Operand, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import Op, op_named
from tcompile.graph.ops import apply
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.ops.rules import UnknownOrder
from tcompile.graph.overlap import in_turn
from tcompile.graph.sizes import ShapeEnv
from tcompile.records import dataclass


class CannotCapture(Exception):
    """This cannot become a graph. ``reason`` is an id of the break catalogue, ``detail`` completes its text."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


def refuse_sequential_copy(target: Node, contents: Node) -> None:
    """Refuses a copy within one array in which NumPy reads elements that it has just written."""
    if in_turn(target, contents):
        raise CannotCapture("overlapping-views", "Elements of an array are copied to others of it, in other steps.")


@dataclass(frozen=True)
class Traced:
    """An array of the library. ``scalar`` says that Python sees a scalar object (np.float64) and not an array."""

    node: Node
    scalar: bool = False

    @property
    def type(self) -> TensorType:
        """The node's tensor type."""
        return self.node.tensor


@dataclass(frozen=True, eq=False)
class Selected:
    """The elements of an array under a mask, in order: an array whose size is unknown.

    ``whole`` has them in place, and arbitrary values elsewhere: ``outside``, if that is one known number. The axes of
    ``mask`` are those of ``whole`` after the first ``lead``. ``axis`` is set if the elements are the indices along that
    axis of the mask itself. With those along all its axes, a key selects the same as the mask.
    """

    whole: Node
    mask: Node
    outside: Any = None
    lead: int = 0
    axis: int | None = None

    def having(self, whole: Node, outside: Any = None) -> Selected:
        """Returns other elements at the same positions."""
        return Selected(whole, self.mask, outside, self.lead)

    @property
    def masked(self) -> tuple[int, ...]:
        """Returns the axes of ``whole`` that the mask has."""
        return tuple(range(self.lead, self.lead + self.mask.tensor.ndim))

    @property
    def after(self) -> int:
        """Returns the number of axes after them."""
        return self.whole.tensor.ndim - self.lead - self.mask.tensor.ndim


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of PyTorch: ``fake`` has its shape, strides and flags, and no elements."""

    node: Node
    fake: Any
    type: TensorType


def described(tensor: Any) -> str:
    """A tensor in a few words: what graphs depend on."""
    dtype, cls = str(tensor.dtype).removeprefix("torch."), type(tensor).__name__.lower()
    text = f"a {dtype} {cls} of shape {tuple(tensor.shape)}"
    if not tensor.is_contiguous():
        text += f" and strides {tensor.stride()}"
    return text + (" that requires a gradient" if tensor.requires_grad and cls != "parameter" else "")


@dataclass(frozen=True)
class Record:
    """An object of a tuple's class ``cls``, some of whose items have names: ``fields``, in their order."""

    cls: type
    items: tuple[Any, ...]
    fields: tuple[str, ...]


def without_effects(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls ``function(*args, **kwargs)`` in a form, where the library calls it only under a condition.

    Capture calls it in any case, and refuses a function with side effects.
    """
    return function(*args, **kwargs)


def scalar_iterations(values: range) -> range:
    """Returns ``values``, for a loop in a form that is scalar code.

    Capture compiles the loop to machine code, or keeps the library's call: any other form would be slower.
    """
    return values


@dataclass(frozen=True)
class TracedNumber:
    """A Python float known at run time only, weakly typed: an input node of ``ScalarType('float')``.

    A float that the graph computes is a float64 node of rank 0; ``at`` then gives its node in another dtype.
    """

    node: Node
    at: Callable[[DType], Node] | None = None


def slot(index: int, value: Traced | TracedNumber) -> Slot:
    """Returns the placeholder of operand ``index`` in a call's arguments, with Python's view of ``value``."""
    if isinstance(value, Traced):
        return Slot(index, "scalar" if value.scalar else "array")
    return Slot(index) if value.at is None else Slot(index, "number")


def _after_whole_view(operand: Operand) -> Operand:
    if isinstance(operand, Node) and operand.op is ops.INDEX and operand.attrs["key"] == (...,):
        return operand.inputs[0]
    return operand


@dataclass(frozen=True)
class Read:
    """A Python number of class ``cls`` that a function returns: it is read from a 0-d value of the graph."""

    node: Node
    cls: type


@dataclass
class Builder:
    """The graph under construction, the current user line, and the writes that a call makes.

    ``exact`` requires the library's very bits: a sum must then keep its order. ``whole`` forbids plain Python, however
    long compiled code takes.
    """

    graph: Graph = field(default_factory=Graph)
    location: Location | None = None
    exact: bool = False
    whole: bool = False
    writes: list[tuple[Traced, Node]] = field(default_factory=list)
    tensors: Any = None  # the PyTorch frontend's state, once a tensor is met

    @property
    def env(self) -> ShapeEnv:
        """Returns the symbols of this capture."""
        return self.graph.env

    def op(self, op: Op | str, *operands: Operand, **attrs: Any) -> Node:
        """Adds an operation at the current location. Raises CannotCapture if the operands' types do not fit."""
        row = op_named(op) if isinstance(op, str) else op
        if self.tensors is not None and self.tensors.calls:
            raise CannotCapture("mixed-libraries", "a graph of tensors gets an array")
        if row.kind != "view":
            operands = tuple(map(_after_whole_view, operands))
        try:
            return apply(self.graph, row, *operands, location=self.location, **attrs)
        except UnknownOrder as error:
            raise CannotCapture("memory-order", str(error)) from error
        except GraphError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def whole_view(self, node: Node) -> Node:
        """Returns ``node[...]``: the result of a function that makes an array and returns a view of it.

        Python can distinguish it from an array that owns its memory; operations that compute it see the array.
        """
        return self.op("index", node, key=(...,))

    def write(self, target: Traced, contents: Node) -> Traced:
        """Writes ``contents`` (of the target's dtype, broadcast to its shape) to an array or view.

        Returns the target, the same object with new contents.
        """
        self.writes.append((target, contents))
        return target


@dataclass(frozen=True)
class Stacked:
    """A list to which a loop has appended: ``parts`` are its items, and arrays of which ``many`` rows are items."""

    parts: list[Any]
    many: tuple[bool, ...]


def device_of(*values: Any) -> str:
    """Returns the device of the traced arrays among ``values``, nested ones included: the first that is not the CPU.

    >>> device_of(1, [2.0])
    'cpu'
    """
    for value in values:
        if isinstance(value, Traced | Tensor):
            found = value.node.device
        elif isinstance(value, Selected):
            found = value.whole.device
        elif isinstance(value, tuple | list):
            found = device_of(*value)
        elif isinstance(value, Stacked):
            found = device_of(*value.parts)
        elif isinstance(value, dict):
            found = device_of(*value.values())
        else:
            continue
        if found != "cpu":
            return found
    return "cpu"


@dataclass(frozen=True)
class Check:
    """A condition on a library object: Python ``code`` with ``{}`` for its variable, and its readable text.

    ``kind`` is the subject of the condition: the object's ``type``, ``dtype``, ``shape``, ``layout`` or ``device``.
    """

    code: str
    text: str
    expected: str
    kind: str


class Frontend(Protocol):
    """A library. Every method that builds may raise ``CannotCapture``."""

    name: str
    device: str  # the kind of device of its arrays: ``cpu`` or ``cuda``
    namespace: Any  # the library's module, whose functions are what operations mean (``Op.reference``)

    def type_of(self, value: object) -> TensorType | None:
        """Returns the type of a library array or scalar object with static sizes; None for an unsupported one."""

    def is_scalar(self, value: object) -> bool:
        """Whether an object that ``type_of`` accepts is a scalar object, not an array."""

    def python_type(self, x: Traced) -> type:
        """Returns the class that Python sees: the array class, or the scalar class of the dtype."""

    def checks(
        self,
        name: str,
        type: TensorType,
        scalar: bool,
        open_axes: frozenset[int],
        constant: Callable[[Any], str],
        own_dtype: bool = False,
    ) -> list[Check]:
        """Returns the guards for an object of this type, called ``name`` by the user; ``open_axes`` may vary.

        ``constant`` gives the name under which the entry holds an object. ``own_dtype``: its dtype is a copy of the
        type's.
        """

    def copied_dtype(self, value: object) -> DType | None:
        """Returns the library's own dtype if ``value`` is an equal copy, as unpickling makes one."""

    def is_fixed(self, value: object) -> bool:
        """Whether ``value``'s identity determines its behaviour: an immutable library object (dtype, function, class),
        or one whose every use is refused.
        """

    def as_array(self, b: Builder, number: Any) -> Node:
        """A number of Python's or a scalar object of the library, known or traced, as an array without axes."""

    def scalar_instruction(self, function: object) -> str | None:
        """The instruction of a scalar loop (``graph.ops.scalar_loop``) that a call of ``function`` with numbers is."""

    def is_constant_scalar(self, value: object) -> bool:
        """Whether a scalar object that ``type_of`` accepts is better guarded by value (integers count and choose)."""

    def knows(self, function: object) -> bool:
        """Whether ``function`` belongs to the library (captured or refused, but never inlined)."""

    def form(self, function: object) -> types.FunctionType | None:
        """Returns a Python function to inline in place of one that calls user functions; usually None.

        It raises NotImplementedError for cases that it does not cover.
        """

    def call(self, b: Builder, function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds a call of a function that ``knows`` accepts."""

    def subscript(self, b: Builder, owner: object, key: Any) -> Any:
        """Builds ``owner[key]``, for a library object that ``is_fixed`` accepts."""

    def method(
        self, b: Builder, x: Traced | Selected, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Builds ``x.name(*args, **kwargs)``."""

    def attribute(self, b: Builder, x: Traced | Selected, name: str) -> Any:
        """Builds ``x.name`` for data attributes (``shape``, ``T``, ``dtype``); methods are ``has_method``."""

    def has_method(self, x: Traced | Selected, name: str) -> bool:
        """Whether ``name`` is a method of such values."""

    def count(self, b: Builder, x: Selected) -> Traced:
        """Builds the number of elements that a mask selects, as a scalar of the library."""

    def binary(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """Builds ``left sign right`` for + - * / // % ** @ & | ^ << >> < <= == != > >= ; one side is traced."""

    def takes_memory(self, sign: str, left: Any, right: Any, result: Any) -> list[int]:
        """Returns the operands (0: left) whose buffer ``left sign right`` reuses if unshared, in order of preference.

        Empty if the result's memory layout is the same in any case.
        """

    def laid_out(self, b: Builder, x: Traced, like: Traced) -> Traced:
        """Returns ``x`` in the memory order of ``like``."""

    def inplace(self, b: Builder, sign: str, left: Traced | Selected, right: Any) -> Any:
        """Builds the new contents of ``left`` after ``left sign= right`` (of the dtype and shape of ``left``)."""

    def unary(self, b: Builder, sign: str, x: Traced | Selected) -> Any:
        """Builds ``sign x`` for the signs + - ~."""

    def getitem(self, b: Builder, x: Traced | Selected, key: Any) -> Any:
        """Builds ``x[key]``."""

    def setitem(self, b: Builder, x: Traced, key: Any, value: Any) -> None:
        """Builds ``x[key] = value``, as a write that the builder records."""

    def write_checks(self, value: Any, name: str, constant: Callable[[Any], str]) -> list[Check]:
        """Returns the guards under which the array ``value``, called ``name`` by the user, is writable.

        Raises CannotCapture if it is not. ``constant`` is that of ``checks``.
        """

    def overlap(self, a: Any, b: Any) -> bool:
        """Whether two arrays may share memory; the answer is conservative, because it must be fast."""
