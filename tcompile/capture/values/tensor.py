"""PyTorch's tensors, records of them, and its modules.

Input: tensors of the PyTorch frontend, and modules from outside.
Output: values whose operations are calls in the graph.
Why: unlike arrays, tensors keep their calls as they are, writes included. The graph's order is the program's, so there
is no memory to follow here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from tcompile.capture.guards.sources import ConstantSource, MemberSource, Source
from tcompile.capture.values.base import Context, Rebuilder, Unrebuildable, Value, named, settled
from tcompile.capture.values.classes import lookup
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue
from tcompile.capture.values.slices import SliceValue
from tcompile.frontends.base import Builder, CannotCapture, Record, Tensor, Traced

_OPEN = frozenset({"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="})
_OPEN_METHODS = frozenset({"add", "sub", "mul", "div"})
_TABLES = ("_parameters", "_buffers", "_modules")  # of a module's members, in the order in which they are looked up


class TensorLibrary(Protocol):
    """The PyTorch frontend, as captured values see it."""

    def python_type(self, x: Any) -> type:
        """The class that Python sees."""

    def call(self, b: Builder, function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds a call of a function."""

    def method(self, b: Builder, x: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds ``x.name(*args, **kwargs)``."""

    def has_method(self, x: Any, name: str) -> bool:
        """Whether ``name`` is a method."""

    def attribute(self, b: Builder, x: Any, name: str) -> Any:
        """Builds ``x.name``."""

    def opens_numbers(self, x: Any) -> bool:
        """Whether a Python float beside ``x`` may be an input of the graph."""

    def number(self, b: Builder, node: Any, x: Any) -> Any:
        """A float that is an input of the graph, as an operand beside ``x``."""

    def operator(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """Builds ``left sign right``."""

    def inplace(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """Builds ``left sign= right``."""

    def unary(self, b: Builder, sign: str, x: Any) -> Any:
        """Builds ``sign x``."""

    def getitem(self, b: Builder, x: Any, key: Any) -> Any:
        """Builds ``x[key]``."""

    def setitem(self, b: Builder, x: Any, key: Any, value: Any) -> None:
        """Builds ``x[key] = value``."""

    def rows(self, b: Builder, x: Tensor) -> Any:
        """Builds the rows of ``x``."""

    def set_grad_enabled(self, b: Builder, on: bool) -> None:
        """Sets the grad mode from here on."""

    def grad_enabled(self, b: Builder) -> bool:
        """The grad mode at this point."""

    def has_no_hooks(self, module: Any) -> bool:
        """Whether a call of a module is a call of its ``forward``."""

    @property
    def module_setattr(self) -> Any:
        """The method by which modules store attributes."""


class TensorValue(Value):
    """A tensor: one from outside, or the result of a call."""

    def __init__(self, traced: Tensor, library: TensorLibrary, source: Source | None = None) -> None:
        self.traced = traced
        self.library = library
        self.source = source

    @property
    def python_type(self) -> type:
        """Tensor or Parameter."""
        return self.library.python_type(self.traced)

    def describe(self) -> str:
        """The type and, where there is one, the user's name."""
        return named(self.source, f"a tensor of type {str(self.traced.type).removesuffix(' torch')}")

    def export(self, tx: Context) -> Any:
        """The traced tensor."""
        return self.traced

    def attribute(self, tx: Context, name: str) -> Value:
        """A fact about it, a view, or a method."""
        if self.library.has_method(self.traced, name):
            return TensorMethod(self, name)
        return tx.from_frontend(self.library.attribute(tx.builder, self.traced, name), self)

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``tensor.name(…)``: a call in the graph."""
        if name in ("item", "tolist", "__bool__", "__float__", "__int__"):
            raise CannotCapture("data-dependent-value", f"`{tx.current_text()}`")
        if name == "numpy":
            raise CannotCapture("array-conversion", f"`{tx.current_text()}` makes an array of a tensor")
        plain, named = self._arguments(tx, name, args, kwargs)
        return tx.from_frontend(self.library.method(tx.builder, self.traced, name, plain, named), self)

    def _arguments(
        self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a method: floats stay open as those of operators do, ``alpha`` as a product."""
        opens = len(args) == 1 and name.removesuffix("_") in _OPEN_METHODS and kwargs.keys() <= {"alpha"}
        if not opens:
            return [fixed(tx, arg) for arg in args], {key: fixed(tx, value) for key, value in kwargs.items()}
        operand = self._operand(tx, "*", args[0])
        if not kwargs:
            return [operand], {}
        if isinstance(operand, Tensor) and operand.type.dtype == self.traced.type.dtype:
            alpha = self._operand(tx, "*", kwargs["alpha"])
            if isinstance(alpha, Tensor):
                return [self.library.operator(tx.builder, "*", operand, alpha)], {}
        return [operand], {"alpha": fixed(tx, kwargs["alpha"])}

    def item(self, tx: Context, key: Value) -> Value:
        """``tensor[key]``."""
        return tx.from_frontend(self.library.getitem(tx.builder, self.traced, fixed(tx, key)), self)

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """``tensor[key] = value``."""
        self.library.setitem(tx.builder, self.traced, fixed(tx, key), fixed(tx, value))

    def binary(self, tx: Context, sign: str, left: Value, right: Value) -> Value:
        """``left sign right``, one of which is this tensor."""
        made = self.library.operator(tx.builder, sign, self._operand(tx, sign, left), self._operand(tx, sign, right))
        return tx.from_frontend(made, self)

    def update(self, tx: Context, sign: str, right: Value) -> Value:
        """``tensor sign= right``."""
        made = self.library.inplace(tx.builder, sign, self.traced, self._operand(tx, sign, right))
        return tx.from_frontend(made, self)

    def _operand(self, tx: Context, sign: str, value: Value) -> Any:
        """An operand of an operator: a float that varies stays open where PyTorch computes with it as with a tensor."""
        value = settled(tx, value)
        if not isinstance(value, FloatValue) or sign not in _OPEN or not self.library.opens_numbers(self.traced):
            return fixed(tx, value)
        if not tx.profile.varies(value.source.text, value.hint, tx.options.dynamic):
            return value.specialise(tx, "closed float")
        return self.library.number(tx.builder, value.export(tx).node, self.traced)

    def unary(self, tx: Context, sign: str) -> Value:
        """``sign tensor``, or ``abs(tensor)`` for the sign "abs"."""
        return tx.from_frontend(self.library.unary(tx.builder, sign, self.traced), self)

    def truth(self, tx: Context) -> bool:
        """A tensor's truth is in its elements."""
        raise CannotCapture("data-dependent-branch", tx.current_text())

    def length(self, tx: Context) -> Value:
        """The first size."""
        shape = self.traced.type.shape
        if not shape:
            raise CannotCapture("operation-raises", "len() of a 0-d tensor")
        return integer(shape[0])

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The rows."""
        if not self.traced.type.shape:
            raise CannotCapture("operation-raises", "iteration over a 0-d tensor")
        return tx.from_frontend(self.library.rows(tx.builder, self.traced), self).iterate(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """The object from outside, else an output of the graph."""
        return program.load(self.source) if self.source is not None else program.output(self, Traced(self.traced.node))


class TensorMethod(Value):
    """``tensor.name``, waiting to be called."""

    def __init__(self, tensor: TensorValue, name: str) -> None:
        self.tensor = tensor
        self.name = name

    def describe(self) -> str:
        """The method's name."""
        return f"the method `{self.name}` of {self.tensor.describe()}"

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Asks the tensor."""
        return self.tensor.method(tx, self.name, args, kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """The method of the tensor."""
        return f"{program.rebuild(self.tensor)}.{self.name}"


class RecordValue(Value):
    """An object of a tuple's class with named items: ``torch.Size``, or what ``torch.max`` returns."""

    def __init__(self, cls: type, items: Sequence[Value], fields: Sequence[str]) -> None:
        self.cls = cls
        self.items = list(items)
        self.fields = tuple(fields)

    @property
    def python_type(self) -> type:
        """The class."""
        return self.cls

    def export(self, tx: Context) -> Any:
        """A tuple of the items."""
        return tuple(item.export(tx) for item in self.items)

    def attribute(self, tx: Context, name: str) -> Value:
        """A named item."""
        if name in self.fields:
            return self.items[self.fields.index(name)]
        if name == "numel" and not self.fields:
            return _Count(self)
        return super().attribute(tx, name)

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """A method of tuples."""
        return SequenceValue(list(self.items), tuple).method(tx, name, args, kwargs)

    def item(self, tx: Context, key: Value) -> Value:
        """One item, or those of a slice, which for sizes are sizes."""
        found = SequenceValue(list(self.items), tuple).item(tx, key)
        if isinstance(found, SequenceValue) and isinstance(key, SliceValue) and not self.fields:
            return RecordValue(self.cls, found.items, ())
        return found

    def length(self, tx: Context) -> Value:
        """The number of items."""
        return Constant(len(self.items))

    def truth(self, tx: Context) -> bool:
        """Whether there are items."""
        return bool(self.items)

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The items."""
        return iter(self.items)

    def rebuild(self, program: Rebuilder) -> str:
        """A new object of the class."""
        return f"{program.constant(self.cls)}(({''.join(f'{program.rebuild(item)}, ' for item in self.items)}))"


class _Count(Value):
    """``shape.numel``, waiting to be called."""

    def __init__(self, record: RecordValue) -> None:
        self.record = record

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The product of the sizes."""
        total = 1
        for size in self.record.items:
            total *= constant_of(size, "a size")
        return Constant(total)


def fixed(tx: Context, value: Value) -> Any:
    """A value as the PyTorch frontend takes it: numbers are constants."""
    value = settled(tx, value)
    if isinstance(value, IntegerValue):
        return value.specialise()
    if isinstance(value, FloatValue):
        return value.specialise(tx)
    if isinstance(value, SequenceValue):
        if value.cls not in (tuple, list):
            raise CannotCapture("unsupported-argument", f"{value.describe()} in place of a tuple")
        return value.cls(fixed(tx, item) for item in value.items)
    if isinstance(value, RecordValue):
        return tuple(fixed(tx, item) for item in value.items)
    if isinstance(value, SliceValue):
        return slice(*(fixed(tx, part) for part in value.parts))
    if isinstance(value, DictValue):
        raise CannotCapture("unsupported-argument", f"{value.describe()} in place of a tensor")
    return value.export(tx)


class BlockValue(Value):
    """A context manager that capture enters and leaves itself."""

    def way_in(self, tx: Context) -> Value:
        """The method that ``with`` calls to enter the block."""
        raise NotImplementedError

    def way_out(self, tx: Context) -> Value:
        """The method that ``with`` keeps to leave the block."""
        raise NotImplementedError


class GradModeValue(BlockValue):
    """``torch.no_grad()``, ``torch.enable_grad()`` or ``torch.set_grad_enabled(on)``."""

    def __init__(
        self, on: bool, cls: type, args: Sequence[Value], library: TensorLibrary, source: Source | None = None
    ) -> None:
        self.on = on
        self.cls = cls
        self.args = list(args)
        self.library = library
        self.source = source

    @property
    def python_type(self) -> type:
        """The class."""
        return self.cls

    def describe(self) -> str:
        """The text of the call that makes it."""
        return f"torch.{self.cls.__name__}()"

    def way_out(self, tx: Context) -> Value:
        """Puts back the mode of now."""
        return GradModeChange(self.library.grad_enabled(tx.builder), self.library, tx.step)

    def way_in(self, tx: Context) -> Value:
        """Sets the mode."""
        return GradModeChange(self.on, self.library, tx.step)

    def attribute(self, tx: Context, name: str) -> Value:
        """``clone``, which decorated functions call."""
        if name == "clone":
            return _Clone(self)
        if name == "__class__":
            return Constant(self.cls)
        return super().attribute(tx, name)

    def rebuild(self, program: Rebuilder) -> str:
        """A new object, or the one from outside."""
        if self.source is not None:
            return program.load(self.source)
        return f"{program.constant(self.cls)}({', '.join(map(program.rebuild, self.args))})"


def sets_gradients(cls: type, mode: Any) -> bool:
    """The grad mode that a block of a class sets; ``mode`` is the argument of ``set_grad_enabled``."""
    return bool(mode) if cls.__name__ == "set_grad_enabled" else cls.__name__ == "enable_grad"


class _Clone(Value):
    """``no_grad().clone``, waiting to be called."""

    def __init__(self, block: GradModeValue) -> None:
        self.block = block

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """A new object that sets the same mode."""
        return GradModeValue(self.block.on, self.block.cls, self.block.args, self.block.library)


class GradModeChange(Value):
    """Sets the grad mode at one end of a block, which was met at the step ``born``."""

    def __init__(self, on: bool, library: TensorLibrary, born: int) -> None:
        self.on = on
        self.library = library
        self.born = born

    def describe(self) -> str:
        """The mode."""
        return f"the change of the grad mode to {self.on}"

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Sets the mode."""
        tx.touch()
        self.library.set_grad_enabled(tx.builder, self.on)
        return Constant(None)

    def rebuild(self, program: Rebuilder) -> str:
        """A block that is open where capture stops is entered by the running frame."""
        raise Unrebuildable(self, self.born)


class ModuleValue(ObjectValue):
    """A module from outside: its members are found, and it is called, as PyTorch does it."""

    def __init__(self, cls: type, value: Any, source: Source, library: TensorLibrary) -> None:
        super().__init__(cls, value, source)
        self.library = library

    def _missing(self, tx: Context, name: str) -> Value:
        assert self.source is not None
        for table in _TABLES:
            members = self.value.__dict__[table]
            if name in members:
                return tx.wrap(members[name], MemberSource(self.source, table, name))
        raise CannotCapture("operation-raises", f"{self.cls.__name__!r} object has no attribute {name!r}")

    def has(self, tx: Context, name: str) -> bool:
        """``hasattr(module, name)``, under a guard."""
        assert self.source is not None
        there = hasattr(self.value, name)
        return tx.decide(self.source, f"hasattr({{}}, {name!r})", f"hasattr({self.source.text}, {name!r})", there)

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls ``forward``, if the module has no hooks."""
        assert self.source is not None
        if not self.library.has_no_hooks(self.value):
            raise CannotCapture("unknown-function", f"{self.describe()}, which has hooks")
        check = tx.prologue.constant(self.library.has_no_hooks)
        text = f"{self.source.text} has no hooks"
        tx.prologue.guard(self.source, f"{check}({{}})", text, "no hooks")
        return self.special(tx, "forward").call(tx, args, kwargs)

    def store_attribute(self, tx: Context, name: str, value: Value | None) -> None:
        """``module.name = value`` for an attribute that is its own, and no member."""
        own = name in self.value.__dict__ or name in self.stored
        own = own and lookup(self.cls, "__setattr__") is self.library.module_setattr
        if value is None or not own or isinstance(settled(tx, value), TensorValue | ModuleValue):
            raise CannotCapture("side-effect", f"Setting the attribute `{name}` of {self.describe()}")
        self.store_plainly(tx, name, value)


def guard_state(tx: Context, library: Any) -> None:
    """Guards the modes of PyTorch under which calls mean what they mean now."""
    for check in library.state_checks(tx.builder, tx.prologue.constant):
        tx.prologue.guard(ConstantSource.of("torch", library), check.code, check.text, check.expected, check.kind)


def keep_apart(tx: Context) -> None:
    """Guards that no written tensor shares memory with another one."""
    if tx.tensors is None:
        return
    places = dict(zip(tx.graph.inputs, tx.input_sources, strict=True))
    for node, others in tx.tensors.write_guards(tx.builder):
        if others:
            names = ", ".join(tx.prologue.load(places[other]) for other in others)
            text = f"{places[node].text} shares memory with no other tensor"
            code = f"{tx.prologue.constant(tx.tensors.apart)}({{}}, {names})"
            tx.prologue.guard(places[node], code, text, "memory of its own", "memory")


def record_value(tx: Context, record: Record) -> RecordValue:
    """The value of a record."""
    return RecordValue(record.cls, [tx.from_frontend(item) for item in record.items], record.fields)
