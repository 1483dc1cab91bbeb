"""What capture asks of a library's frontend.

Input: library objects, and calls on traced values. Output: types of library objects, and nodes in the graph under
construction. Exists so that capture knows no library: everything about NumPy is in ``numpy`` beside this file.

A traced value is a graph node plus what Python can see of it. Arguments reach a frontend as plain Python (numbers,
strings, None, dtypes, slices, tuples, lists, dicts) with traced values at the leaves; results go back the same way.
Whatever a frontend cannot express exactly it refuses with ``CannotCapture``; it never guesses.
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
    """This cannot become a graph. ``reason`` is an id of the break catalogue, ``detail`` fills its text in."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


def refuse_in_turn(target: Node, contents: Node) -> None:
    """Refuses a copy within one array of which NumPy reads elements that it has just written."""
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
    """The elements of an array where a mask holds, one after the other: an array whose size is not known.

    ``whole`` has them in their places, and anything in the others: ``outside``, where that is one number that is known.
    The axes of ``mask`` are those of ``whole`` after the first ``lead``. ``axis`` is set where the elements are the
    indices along that axis of the mask itself: with those along all its axes, a key names what the mask selects.
    """

    whole: Node
    mask: Node
    outside: Any = None
    lead: int = 0
    axis: int | None = None

    def having(self, whole: Node, outside: Any = None) -> Selected:
        """Other elements at the same places."""
        return Selected(whole, self.mask, outside, self.lead)

    @property
    def masked(self) -> tuple[int, ...]:
        """The axes of ``whole`` that the mask has."""
        return tuple(range(self.lead, self.lead + self.mask.tensor.ndim))

    @property
    def after(self) -> int:
        """The number of axes after them."""
        return self.whole.tensor.ndim - self.lead - self.mask.tensor.ndim


def without_effects(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)`` in a form, where the library makes this call only under a condition.

    Capture makes it in any case, and refuses a function that changes anything.
    """
    return function(*args, **kwargs)


def scalar_iterations(values: range) -> range:
    """``values``, which a loop in a form goes through that is scalar code.

    Capture makes machine code of the loop, or leaves the library's call as it is: there is no other way to be faster.
    """
    return values


@dataclass(frozen=True)
class TracedNumber:
    """A Python float known at run time only, weakly typed: an input node of ``ScalarType('float')``.

    A float that the graph itself computes is a float64 node of rank 0; ``at`` then gives its node in another dtype.
    """

    node: Node
    at: Callable[[DType], Node] | None = None


def slot(index: int, value: Traced | TracedNumber) -> Slot:
    """What stands for operand ``index`` in the arguments of a call, which gets what Python sees in ``value``."""
    if isinstance(value, Traced):
        return Slot(index, "scalar" if value.scalar else "array")
    return Slot(index) if value.at is None else Slot(index, "number")


def _after_whole_view(operand: Operand) -> Operand:
    if isinstance(operand, Node) and operand.op is ops.INDEX and operand.attrs["key"] == (...,):
        return operand.inputs[0]
    return operand


@dataclass(frozen=True)
class Read:
    """A Python number of class ``cls`` that a function gives: it is read from a 0-d value of the graph."""

    node: Node
    cls: type


@dataclass
class Builder:
    """The graph under construction, the user's line that is being executed, and the writes that a call makes.

    ``exact`` asks for the library's very bits: a sum may then not be expressed as a sum in another order. ``whole``
    says that nothing may be left to Python, however long it takes here.
    """

    graph: Graph = field(default_factory=Graph)
    location: Location | None = None
    exact: bool = False
    whole: bool = False
    writes: list[tuple[Traced, Node]] = field(default_factory=list)

    @property
    def env(self) -> ShapeEnv:
        """The symbols of this capture."""
        return self.graph.env

    def op(self, op: Op | str, *operands: Operand, **attrs: Any) -> Node:
        """Adds an operation at the current location. Operand types that do not fit mean CannotCapture."""
        row = op_named(op) if isinstance(op, str) else op
        if row.kind != "view":
            operands = tuple(map(_after_whole_view, operands))
        try:
            return apply(self.graph, row, *operands, location=self.location, **attrs)
        except UnknownOrder as error:
            raise CannotCapture("memory-order", str(error)) from error
        except GraphError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def whole_view(self, node: Node) -> Node:
        """``node[...]``: what a function gives that makes an array and returns a view of it.

        Python can tell such an array from one that owns its memory; to operations that compute it is the array.
        """
        return self.op("index", node, key=(...,))

    def write(self, target: Traced, contents: Node) -> Traced:
        """Asks for ``contents`` (of the target's dtype, broadcast to its shape) to be written to an array or view.

        Returns the target, which is the same object with other contents once the call is done.
        """
        self.writes.append((target, contents))
        return target


@dataclass(frozen=True)
class Stacked:
    """A list that was appended to by a loop: ``parts`` are its items, and arrays of which ``many`` rows are items."""

    parts: list[Any]
    many: tuple[bool, ...]


def device_of(*values: Any) -> str:
    """Where the traced arrays among ``values`` are, in lists, tuples and dicts too: the first one not on the CPU says.

    >>> device_of(1, [2.0])
    'cpu'
    """
    for value in values:
        if isinstance(value, Traced):
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
    """One condition on a library object: Python ``code`` with ``{}`` for its variable, and what a person reads.

    ``kind`` says what the condition is about: the object's ``type``, ``dtype``, ``shape``, ``layout`` or ``device``.
    """

    code: str
    text: str
    expected: str
    kind: str


class Frontend(Protocol):
    """One library. Every method that builds may raise ``CannotCapture``."""

    name: str
    device: str  # the kind of device on which its arrays are: ``cpu`` or ``cuda``
    namespace: Any  # the library's module, whose functions are what operations mean (``Op.reference``)

    def type_of(self, value: object) -> TensorType | None:
        """The type of a library array or scalar object with static sizes; None where it is not one we take."""

    def is_scalar(self, value: object) -> bool:
        """Whether an object that ``type_of`` accepts is a scalar object rather than an array."""

    def python_type(self, x: Traced) -> type:
        """The class that Python sees: the array class, or the scalar class of the dtype."""

    def checks(
        self,
        name: str,
        type: TensorType,
        scalar: bool,
        open_axes: frozenset[int],
        constant: Callable[[Any], str],
        own_dtype: bool = False,
    ) -> list[Check]:
        """How an entry recognises an object of this type, called ``name`` by the user, whose ``open_axes`` may vary.

        ``constant`` gives the name under which the entry holds an object. ``own_dtype``: its dtype
        is a copy of the type's.
        """

    def copied_dtype(self, value: object) -> DType | None:
        """The library's own dtype where ``value`` is another object that equals it, as unpickling makes one."""

    def is_fixed(self, value: object) -> bool:
        """Whether ``value`` is an immutable object of the library (a dtype, a function, a class), or one whose every
        use is refused, so that its identity says all there is to know.
        """

    def as_array(self, b: Builder, number: Any) -> Node:
        """A number of Python's or a scalar object of the library, known or traced, as an array without axes."""

    def scalar_instruction(self, function: object) -> str | None:
        """The instruction of a scalar loop (``graph.ops.scalar_loop``) that a call of ``function`` with numbers is."""

    def is_constant_scalar(self, value: object) -> bool:
        """Whether a scalar object that ``type_of`` accepts is better fixed by its value (integers count and choose)."""

    def knows(self, function: object) -> bool:
        """Whether ``function`` is one of the library's functions (captured or refused, but never entered)."""

    def form(self, function: object) -> types.FunctionType | None:
        """A Python function to follow in the place of one that calls a function of the user's; mostly there is none.

        It raises NotImplementedError for what it does not cover.
        """

    def call(self, b: Builder, function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The meaning of calling a function that ``knows`` accepts."""

    def subscript(self, b: Builder, owner: object, key: Any) -> Any:
        """``owner[key]``, of an object of the library's that ``is_fixed`` accepts."""

    def method(
        self, b: Builder, x: Traced | Selected, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The meaning of ``x.name(*args, **kwargs)``."""

    def attribute(self, b: Builder, x: Traced | Selected, name: str) -> Any:
        """The meaning of ``x.name`` for data attributes (``shape``, ``T``, ``dtype``); methods are ``has_method``."""

    def has_method(self, x: Traced | Selected, name: str) -> bool:
        """Whether ``name`` is a method of such values."""

    def count(self, b: Builder, x: Selected) -> Traced:
        """How many elements a mask selects, as a scalar of the library."""

    def binary(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """``left sign right`` for the signs + - * / // % ** @ & | ^ << >> < <= == != > >= ; one side is traced."""

    def takes_memory(self, sign: str, left: Any, right: Any, result: Any) -> list[int]:
        """The places (0: left) of the operands whose memory ``left sign right`` takes for its result, in this order,
        where nobody else holds them; none where the result lies in memory the same way in any case.
        """

    def laid_out(self, b: Builder, x: Traced, like: Traced) -> Traced:
        """``x`` in the memory order of ``like``."""

    def inplace(self, b: Builder, sign: str, left: Traced | Selected, right: Any) -> Any:
        """The new contents of ``left`` after ``left sign= right`` (of the dtype and shape of ``left``)."""

    def unary(self, b: Builder, sign: str, x: Traced | Selected) -> Any:
        """``sign x`` for the signs + - ~."""

    def getitem(self, b: Builder, x: Traced | Selected, key: Any) -> Any:
        """``x[key]``."""

    def setitem(self, b: Builder, x: Traced, key: Any, value: Any) -> None:
        """``x[key] = value``, as a write that the builder notes."""

    def write_checks(self, value: Any, name: str, constant: Callable[[Any], str]) -> list[Check]:
        """How an entry recognises that the array ``value``, called ``name`` by the user, can be written to.

        Raises CannotCapture where this one cannot. ``constant`` is that of ``checks``.
        """

    def overlap(self, a: Any, b: Any) -> bool:
        """Whether two arrays share memory (or may do: finding out must not take long)."""
