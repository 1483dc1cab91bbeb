"""Calls of built-in functions, classes and library functions.

Input: a constant callable and captured arguments.
Output: the value of the result.
Why: one table leads from callables to their meanings. Frontends have those of array libraries; pure functions of
constants are simply run.
"""

from __future__ import annotations

import builtins
import enum
import functools
import math
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.guards.sources import AttributeSource, ComputedSource, ConstantSource, ItemSource
from tcompile.capture.semantics.attributes import (
    attribute,
    attribute_name,
    found_attribute,
    has_attribute,
    iterator,
)
from tcompile.capture.semantics.construction import (
    OBJECT_FUNCTIONS,
    construct,
    enum_member,
    make_super,
    makes_instances,
)
from tcompile.capture.semantics.operators import binary, contains, identical, ordered, unary
from tcompile.capture.semantics.special import call_later, call_special, is_reorderable
from tcompile.capture.semantics.stdlib import GETTERS, LIBRARY, call_getter
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.attributes import AttributesValue
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.callable import BuiltinMethod, FunctionValue, IteratorValue, MethodValue, PartialValue
from tcompile.capture.values.classes import (
    MISSING,
    answers_in_python,
    class_answers_in_python,
    lookup,
    plain_constructor,
    plain_named_tuple,
)  # fmt: skip
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.counted import Enumerated, RowIterator, counted, zipped
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue, OpaqueValue, advance
from tcompile.capture.values.random_generator import is_drawing, method_of_known
from tcompile.capture.values.scalar import ScalarValue, negative, of_number, read, selected
from tcompile.capture.values.selected import SelectedValue
from tcompile.capture.values.sets import SetValue, collection
from tcompile.capture.values.signs import BINARY, COMPARE
from tcompile.capture.values.slices import RangeValue, SliceValue
from tcompile.capture.values.tensor import GradModeValue, TensorValue, fixed, guard_state, sets_gradients
from tcompile.capture.values.text import text
from tcompile.frontends.base import CannotCapture, device_of

Handler = Callable[["Context", Sequence[Value], Mapping[str, Value]], Value]
_TABLE: dict[Any, Handler] = {}
_IO = (builtins.print, builtins.open, builtins.input)
_TEXTS = (str, repr, ascii, format)
_PURE = {
    divmod, hash, ord, chr, bytes, complex, bin, hex, oct, type(None),
    *(f for f in vars(math).values() if callable(f)), operator.index,
}  # fmt: skip


def handles(*functions: Any) -> Callable[[Handler], Handler]:
    """Registers the meaning of calling ``functions``."""

    def register(handler: Handler) -> Handler:
        for function in functions:
            _TABLE[function] = handler
        return handler

    return register


def call_constant(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """The meaning of ``function(*args, **kwargs)``."""
    target = function.value
    special = call_special(tx, function, args, kwargs)
    if special is not None:
        return special
    if is_drawing(target):
        return method_of_known(tx, target).call(tx, args, kwargs)
    if tx.tensors is not None and tx.tensors.is_of_training(target):
        raise CannotCapture("training-step", f"`{target.__qualname__}`")
    frontend = tx.frontend_of(target)
    if frontend is not None and frontend is tx.tensors:
        return _tensor_call(tx, target, args, kwargs)
    if frontend is not None:
        form = frontend.form(target)
        if form is not None and not any(isinstance(a, ArrayValue) and a.frontend is not frontend for a in args):
            return tx.inline_form(form, args, kwargs)
        plain = [arg.export(tx) for arg in args]
        named = {key: value.export(tx) for key, value in kwargs.items()}
        place = device_of(plain, named)
        frontend = frontend if place == "cpu" else tx.frontend_at(place)
        return tx.from_frontend(frontend.call(tx.builder, target, plain, named))
    by_users = answers_in_python(target)
    try:
        handler = None if by_users else _TABLE.get(target)
    except TypeError:
        handler = None
    if handler is not None:
        fewest, most = _ARITY.get(target, (0, len(args)))
        if not fewest <= len(args) <= most:
            raise CannotCapture("unknown-function", f"{function.describe()} with {len(args)} positional arguments")
        known = _KEYWORDS.get(target, ())
        if known is not None and not kwargs.keys() <= set(known):
            raise CannotCapture("unknown-function", f"{function.describe()} with the keywords {sorted(kwargs)}")
        return handler(tx, args, kwargs)
    if isinstance(target, type) and plain_named_tuple(target) and plain_constructor(target):
        return _named_tuple(tx, target, args, kwargs)
    if type(target) in GETTERS:
        return call_getter(tx, target, args, kwargs)
    if isinstance(target, type) and issubclass(target, enum.Enum):
        return enum_member(tx, target, args, kwargs)
    if makes_instances(target):
        return construct(tx, target, args, kwargs)
    if isinstance(target, type) and issubclass(target, BaseException):
        raise CannotCapture("raises", f"`{tx.current_text()}`")
    if by_users:
        raise CannotCapture("unknown-function", function.describe())
    if target in _IO:
        later = call_later(tx, function, args, kwargs) if tx.differentiated and target is print else None
        if later is None:
            raise CannotCapture("input-output", function.describe())
        return later
    if target in _TEXTS:
        return text(tx, target, args, kwargs)
    if _is_pure(target):
        found = of_number(tx, target, args[0]) if len(args) == 1 and not kwargs else None
        if found is not None:
            return found
        if target in _MATH and any(isinstance(arg, FloatValue | IntegerValue) for arg in args) and len(args) == 1:
            return _math(tx, target, args[0])
        return tx.fold(target, args, kwargs)
    if isinstance(target, types.MethodDescriptorType) and args and issubclass(args[0].python_type, target.__objclass__):
        return args[0].method(tx, target.__name__, args[1:], kwargs)
    raise CannotCapture("unknown-function", function.describe())


def _tensor_call(tx: Context, target: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """A call of a function of PyTorch."""
    library = tx.tensors
    guard_state(tx, library)
    if target is library.is_compiling:
        tx.differs = True
        return Constant(True)
    if any(target is mode for mode in library.grad_modes):
        if len(args) != (target.__name__ == "set_grad_enabled") or kwargs:
            raise CannotCapture("unknown-function", f"`torch.{target.__name__}` with these arguments")
        mode = constant_of(args[0], "a grad mode") if args else None
        return GradModeValue(sets_gradients(target, mode), target, args, library)
    plain, named = [fixed(tx, arg) for arg in args], {key: fixed(tx, value) for key, value in kwargs.items()}
    return tx.from_frontend(library.call(tx.builder, target, plain, named))


def takes_texts(function: Value) -> bool:
    """Whether a function takes texts unchanged: it only returns them, or makes others of them."""
    if isinstance(function, BuiltinMethod):
        return function.name == ("format" if isinstance(function.owner, Constant) else "append")
    if not isinstance(function, Constant):
        return False
    target = function.value
    known = any(target is one for one in (*_IO, *_TEXTS, len, enumerate))
    return known or makes_instances(target) or is_reorderable(target)


_MATH = {math.sqrt, math.exp, math.log, math.sin, math.cos, math.tan, math.tanh, math.fabs, math.log2, math.log10}


def _math(tx: Context, function: Callable[..., Any], value: Value) -> Value:
    """A function of a run-time number, which plain Python calls before the graph."""
    source = tx.number_source(value)
    assert source is not None
    hint = value.hint if isinstance(value, FloatValue) else value.size.hint  # type: ignore[attr-defined]
    try:
        result = function(hint)
    except Exception as error:
        raise CannotCapture("operation-raises", str(error)) from error
    made = ComputedSource("{1}({0})", (source,), (function,))
    tx.prologue.load(made)  # it may raise, even where it is dead
    return FloatValue(made, result)


def _is_pure(target: Any) -> bool:
    try:
        return target in _PURE or getattr(target, "__self__", None).__class__ in (str, bytes, int, float)
    except TypeError:
        return False


def _named_tuple(tx: Context, cls: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    values: dict[str, Value] = dict(zip(cls._fields, args, strict=False))
    values.update(kwargs)
    repeated = set(cls._fields[: len(args)]) & set(kwargs)
    for name, default in cls._field_defaults.items():
        if name not in values:
            held = AttributeSource(ConstantSource.of(cls.__qualname__, cls), "_field_defaults")
            values[name] = tx.wrap(default, ItemSource(held, name))
    if set(values) != set(cls._fields) or len(args) > len(cls._fields) or repeated:
        raise CannotCapture("operation-raises", f"wrong arguments for {cls.__qualname__}")
    return SequenceValue([values[name] for name in cls._fields], cls)


@handles(len)
def _len(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return args[0].length(tx)


@handles(range)
def _range(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    bounds: list[Any] = [
        arg.size if isinstance(arg, IntegerValue) else constant_of(arg, "a bound of range") for arg in args
    ]
    if not 1 <= len(bounds) <= 3 or (len(bounds) == 3 and bounds[2] == 0):
        raise CannotCapture("operation-raises", "range() arguments")
    for bound in bounds:
        if not hasattr(bound, "env"):
            try:
                operator.index(bound)
            except TypeError as error:
                raise CannotCapture("operation-raises", str(error)) from error
    whole = [b if hasattr(b, "env") else operator.index(b) for b in bounds]
    start, stop, step = (0, whole[0], 1) if len(whole) == 1 else (*whole, 1) if len(whole) == 2 else whole
    return RangeValue(start, stop, step)


@handles(slice)
def _slice(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    none = Constant(None)
    if len(args) == 1:
        return SliceValue(none, args[0], none)
    start, stop, step = (*args, none)[:3]
    return SliceValue(start, stop, step)


def _collect(cls: type) -> Handler:
    def collect(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if not args:
            return SequenceValue([], cls)
        if cls is tuple and isinstance(args[0], SequenceValue) and args[0].cls is tuple:
            return args[0]
        return SequenceValue(list(args[0].collect(tx, cls)), cls)

    return collect


def _collect_set(cls: type) -> Handler:
    def collect(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if args and cls is frozenset and args[0].python_type is frozenset:
            return args[0]
        return SetValue(tx, set(collection(tx, args[0])) if args else set(), cls)

    return collect


_TABLE[set] = _collect_set(set)
_TABLE[frozenset] = _collect_set(frozenset)
_TABLE[list] = _collect(list)
_TABLE[tuple] = _collect(tuple)


@handles(dict)
def _dict(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    made = DictValue({})
    for arg in args:
        if isinstance(arg, AttributesValue):
            arg = arg.copy(tx)
        if isinstance(arg, DictValue):
            made.method(tx, "update", [arg], {})
            continue
        if isinstance(arg, ObjectValue) or (isinstance(arg, SequenceValue) and hasattr(arg.cls, "keys")):
            raise CannotCapture("unsupported-object", f"{arg.describe()} becomes a dict.")
        for pair in arg.iterate(tx):
            parts = list(pair.collect(tx))
            if len(parts) != 2:
                raise CannotCapture("operation-raises", "dict() of items that are no pairs")
            made.store_item(tx, parts[0], parts[1])
    made.method(tx, "update", [], kwargs)
    return made


@handles(dict.fromkeys)
def _fromkeys(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    made = DictValue({})
    for key in args[0].iterate(tx):
        made.store_item(tx, key, args[1] if len(args) > 1 else Constant(None))
    return made


@handles(tuple.__new__)
def _tuple_new(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    cls = constant_of(args[0], "a class")
    items = list(args[1].collect(tx)) if len(args) > 1 else []
    named = isinstance(cls, type) and plain_named_tuple(cls)
    if cls is not tuple and not (named and len(items) == len(cls._fields)):
        raise CannotCapture("unknown-function", "`tuple.__new__`")
    return SequenceValue(items, cls)


@handles(callable)
def _callable(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    (value,) = args
    if isinstance(value, Constant):
        return Constant(callable(value.value))
    found = lookup(value.python_type, "__call__") is not MISSING
    if isinstance(value, ObjectValue | OpaqueValue) and value.source is not None:  # its class may get the method
        found = tx.decide(value.source, "callable({})", f"callable({value.source.text})", found)
    return Constant(found)


def _start(args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """The second argument, 0 unless given, which may come by name."""
    if len(args) > 1 and kwargs:
        raise CannotCapture("operation-raises", "the argument start is given twice")
    return args[1] if len(args) > 1 else kwargs.get("start", Constant(0))


@handles(enumerate)
def _enumerate(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    first = _start(args, kwargs)
    start = constant_of(first, "enumerate's start")
    if not isinstance(start, int):
        raise CannotCapture("unsupported-operands", f"enumerate from {first.describe()}")
    items = counted(tx, args[0])
    if items is not None and type(start) is int:
        return Enumerated(tx, items, start)
    values = args[0].iterate(tx)
    return IteratorValue(tx, (SequenceValue([Constant(i), v], tuple) for i, v in enumerate(values, start)))


@handles(zip)
def _zip(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    strict = constant_of(kwargs["strict"], "zip's strict") if "strict" in kwargs else False
    found = zipped(tx, args, bool(strict))
    if found is not None:
        return found
    sources = [arg.iterate(tx) for arg in args]

    def rows() -> Iterator[Value]:
        try:
            for row in zip(*sources, strict=strict):
                yield SequenceValue(list(row), tuple)
        except ValueError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    return IteratorValue(tx, rows())


@handles(map)
def _map(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    function, *sources = args
    columns = [s.iterate(tx) for s in sources]
    return IteratorValue(tx, (function.call(tx, list(row), {}) for row in zip(*columns, strict=False)))


@handles(filter)
def _filter(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    function, values = args
    if isinstance(function, Constant) and function.value is None:
        return IteratorValue(tx, (v for v in values.iterate(tx) if v.truth(tx)))
    return IteratorValue(tx, (v for v in values.iterate(tx) if function.call(tx, [v], {}).truth(tx)))


@handles(reversed)
def _reversed(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if isinstance(args[0], RangeValue):
        return iterator(tx, args[0].backwards())
    if isinstance(args[0], ArrayValue):
        return RowIterator(tx, args[0], backwards=True)
    if isinstance(args[0], SequenceValue):
        return IteratorValue(tx, reversed(args[0].items))
    raise CannotCapture("unknown-function", f"reversed of {args[0].describe()}")


@handles(iter)
def _iter(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if len(args) != 1:
        raise CannotCapture("unknown-function", "iter with a sentinel")
    return iterator(tx, args[0])


@handles(next)
def _next(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    found = advance(tx, args[0])
    if found is not None:
        return found
    if len(args) > 1:
        return args[1]
    raise CannotCapture("operation-raises", "StopIteration")


@handles(sum)
def _sum(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    total = _start(args, kwargs)
    values = list(args[0].iterate(tx))
    if issubclass(total.python_type, str | bytes | bytearray):
        raise CannotCapture("operation-raises", "sum() can't sum strings")
    constants = [v.value for v in [*values, total] if isinstance(v, Constant)]
    floats = any(isinstance(c, float | complex) for c in constants)
    if floats or any(isinstance(v, FloatValue) for v in [*values, total]):
        # Python 3.12 sums floats with compensation: leave it to Python itself.
        return tx.fold(sum, [SequenceValue(values, tuple), total], {})
    for value in values:
        total = binary(tx, "+", total, value)
    return total


def _extreme(function: Callable[..., Any], sign: str) -> Handler:
    def extreme(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if len(args) > 1 and "default" in kwargs:
            raise CannotCapture("operation-raises", f"{function.__name__}() of several values with a default")
        key = kwargs.get("key", Constant(None))
        best: Value | None = None
        rank: Value | None = None
        for value in args[0].iterate(tx) if len(args) == 1 else args:
            own = value if key.is_none else key.call(tx, [value], {})
            if best is not None and key.is_none and (chosen := selected(tx, sign, value, best)) is not None:
                best = rank = chosen
            elif rank is None or binary(tx, sign, own, rank).truth(tx):
                best, rank = value, own
        if best is None:
            best = kwargs.get("default")
        if best is None:
            raise CannotCapture("operation-raises", f"{function.__name__}() of an empty sequence")
        return best

    return extreme


_TABLE[min] = _extreme(min, "<")
_TABLE[max] = _extreme(max, ">")


@handles(any)
def _any(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return Constant(any(value.truth(tx) for value in args[0].iterate(tx)))


@handles(all)
def _all(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return Constant(all(value.truth(tx) for value in args[0].iterate(tx)))


@handles(sorted)
def _sorted(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return SequenceValue(ordered(tx, list(args[0].collect(tx)), kwargs.get("key"), kwargs.get("reverse")), list)


@handles(abs)
def _abs(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if isinstance(args[0], TensorValue):
        return args[0].unary(tx, "abs")
    (value,) = args
    if isinstance(value, ArrayValue | SelectedValue):
        return tx.from_frontend(value.frontend.unary(tx.builder, "abs", value.export(tx)), value)
    if isinstance(value, IntegerValue):
        return integer(value.size if value.size >= 0 else -value.size)
    if isinstance(value, FloatValue):
        return tx.compute("abs({})", [value], abs)
    if isinstance(value, ScalarValue):
        return negative(tx, "abs", value)
    return tx.fold(abs, args, kwargs)


@handles(int)
def _int(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if kwargs or len(args) != 1:
        return tx.fold(int, args, kwargs)
    if isinstance(args[0], IntegerValue):
        return args[0]
    if isinstance(args[0], ArrayValue):
        return read(tx, args[0], int)
    if isinstance(args[0], ScalarValue) and args[0].cls is int:
        return args[0]
    if isinstance(args[0], FloatValue):
        raise CannotCapture("data-dependent-value", "int of a float that varies")
    if isinstance(args[0], ScalarValue) and args[0].cls is float and tx.options.follows_path:
        return read(tx, args[0].array, int)
    return tx.fold(int, args, kwargs)


@handles(float)
def _float(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if kwargs or len(args) != 1:
        return tx.fold(float, args, kwargs)
    if isinstance(args[0], FloatValue):
        return args[0]
    if isinstance(args[0], IntegerValue):
        return tx.compute("float({})", args, float)
    if isinstance(args[0], ArrayValue):
        return read(tx, args[0], float)
    if isinstance(args[0], ScalarValue) and args[0].cls is float:
        return args[0]
    return tx.fold(float, args, kwargs)


@handles(bool)
def _bool(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if args and isinstance(args[0], ArrayValue) and not args[0].traced.type.ndim:
        return read(tx, args[0], bool)
    if args and isinstance(args[0], ScalarValue) and args[0].cls is bool:
        return args[0]
    return Constant(args[0].truth(tx) if args else False)


_TABLE[round] = lambda tx, args, kwargs: tx.fold(round, args, kwargs)
_TABLE[pow] = lambda tx, args, kwargs: (
    binary(tx, "**", *args) if len(args) == 2 and not kwargs else tx.fold(pow, args, kwargs)
)


@handles(type)
def _type(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if len(args) != 1:
        raise CannotCapture("unknown-function", "type with three arguments")
    cls = args[0].python_type
    if class_answers_in_python(cls):
        raise CannotCapture("unsupported-object", f"The class of {args[0].describe()} has a metaclass of its own.")
    return Constant(cls)


@handles(isinstance)
def _isinstance(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return Constant(is_instance(tx, args[0], constant_of(args[1], "a class")))


def is_instance(tx: Context, value: Value, classes: Any) -> bool:
    """``isinstance(value, classes)``."""
    cls = value.python_type
    if isinstance(value, ObjectValue | OpaqueValue) and not _has_own_class(cls):
        first = next(_each_class(classes), None)  # the object is asked for its class where this one does not match
        if first is None or not _subclass(cls, first):
            raise CannotCapture("unsupported-object", f"isinstance() is asked of {value.describe()}.")
    return _subclass(cls, classes)


def _has_own_class(cls: type) -> bool:
    """Whether the ``__class__`` of objects is their class, which is not so for proxies and mocks."""
    plain = object.__dict__["__class__"]
    return lookup(cls, "__class__") is plain and lookup(cls, "__getattribute__") is object.__getattribute__


def _subclass(cls: type, classes: Any) -> bool:
    """``issubclass(cls, classes)`` where none of the user's code runs."""
    for one in _each_class(classes):
        if not isinstance(one, type) or type(one).__instancecheck__ is type.__instancecheck__:
            continue
        plain = one.__module__ in ("collections.abc", "numbers", "typing") and cls.__module__ in _PLAIN_MODULES
        if not plain:
            raise CannotCapture("unknown-function", f"isinstance with `{one.__qualname__}`")
    try:
        return issubclass(cls, classes)
    except TypeError as error:
        raise CannotCapture("operation-raises", str(error)) from error


def _each_class(classes: Any) -> Iterator[Any]:
    """The classes in a tuple or a union, also in nested ones."""
    if isinstance(classes, tuple | types.UnionType):
        for one in classes if isinstance(classes, tuple) else classes.__args__:
            yield from _each_class(one)
    else:
        yield classes


_PLAIN_MODULES = ("builtins", "numpy", "functools", "types")


@handles(issubclass)
def _issubclass(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    cls = constant_of(args[0], "a class")
    if not isinstance(cls, type):
        raise CannotCapture("operation-raises", "issubclass() arg 1 must be a class")
    return Constant(_subclass(cls, constant_of(args[1], "a class")))


@handles(getattr)
def _getattr(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    name = attribute_name(args[1])
    if len(args) == 2:
        return attribute(tx, args[0], name)
    found = found_attribute(tx, args[0], name)
    return args[2] if found is None else found


@handles(hasattr)
def _hasattr(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return Constant(has_attribute(tx, args[0], attribute_name(args[1])))


@handles(vars)
def _vars(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if not isinstance(args[0], ObjectValue):
        raise CannotCapture("unknown-function", "`vars`")
    return attribute(tx, args[0], "__dict__")


@handles(setattr, delattr)
def _setattr(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    args[0].store_attribute(tx, attribute_name(args[1]), args[2] if len(args) == 3 else None)
    return Constant(None)


@handles(functools.partial)
def _partial(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return PartialValue(args[0], args[1:], kwargs)


@handles(types.MethodType)
def _method(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    function, owner = args
    if not isinstance(function, FunctionValue) or (isinstance(owner, Constant) and owner.value is None):
        raise CannotCapture("unknown-function", "MethodType")
    return MethodValue(owner, function)


@handles(functools.reduce)
def _reduce(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    values = args[1].iterate(tx)
    total = args[2] if len(args) > 2 else next(values, None)
    if total is None:
        raise CannotCapture("operation-raises", "reduce() of an empty sequence")
    for value in values:
        total = args[0].call(tx, [total, value], {})
    return total


def _register_operators() -> None:
    def two(sign: str) -> Handler:
        return lambda tx, args, kwargs: binary(tx, sign, args[0], args[1])

    for sign, function in {**BINARY, **COMPARE}.items():
        _TABLE[function] = two(sign)
    for sign, unary_function in {"-": operator.neg, "+": operator.pos, "~": operator.invert}.items():
        _TABLE[unary_function] = (lambda s: lambda tx, args, kwargs: unary(tx, s, args[0]))(sign)
    _TABLE[operator.getitem] = lambda tx, args, kwargs: args[0].item(tx, args[1])
    _TABLE[operator.is_] = lambda tx, args, kwargs: Constant(identical(tx, args[0], args[1]))
    _TABLE[operator.contains] = lambda tx, args, kwargs: Constant(contains(tx, args[0], args[1]))
    _TABLE[operator.not_] = lambda tx, args, kwargs: Constant(not args[0].truth(tx))
    _TABLE[operator.truth] = lambda tx, args, kwargs: Constant(args[0].truth(tx))


_register_operators()
# The keywords of functions that take any; None: the handler checks them.
_KEYWORDS: dict[Any, Sequence[str] | None] = {
    dict: None, functools.partial: None, int: None, float: None, round: None, pow: None, enumerate: ("start",),
    zip: ("strict",), sum: ("start",), min: ("key", "default"), max: ("key", "default"), sorted: ("key", "reverse"),
    **dict.fromkeys(LIBRARY, None),
}  # fmt: skip
_TABLE.update({function: row[2] for function, row in OBJECT_FUNCTIONS.items()})
_TABLE[super] = make_super
_TABLE.update({function: row[2] for function, row in LIBRARY.items()})
_ARITY: dict[Any, tuple[int, int]] = {
    len: (1, 1), range: (1, 3), slice: (1, 3), set: (0, 1), frozenset: (0, 1),
    list: (0, 1), tuple: (0, 1), dict: (0, 1), enumerate: (1, 2),
    zip: (0, 9999), map: (2, 99), filter: (2, 2), reversed: (1, 1), iter: (1, 1), next: (1, 2), sum: (1, 2),
    min: (1, 9999), max: (1, 9999), any: (1, 1), all: (1, 1), sorted: (1, 1), abs: (1, 1), bool: (0, 1),
    super: (0, 2), **{function: row[:2] for function, row in (OBJECT_FUNCTIONS | LIBRARY).items()},
    dict.fromkeys: (1, 2), tuple.__new__: (1, 2), callable: (1, 1),
    isinstance: (2, 2), types.MethodType: (2, 2),
    issubclass: (2, 2), getattr: (2, 3), hasattr: (2, 2), vars: (1, 1), setattr: (3, 3), delattr: (2, 2),
    functools.partial: (1, 9999), functools.reduce: (2, 3),
    **dict.fromkeys([*BINARY.values(), *COMPARE.values()], (2, 2)),
    **dict.fromkeys([operator.getitem, operator.is_, operator.contains], (2, 2)),
    **dict.fromkeys([operator.neg, operator.pos, operator.invert, operator.not_, operator.truth], (1, 1)),
}  # fmt: skip
