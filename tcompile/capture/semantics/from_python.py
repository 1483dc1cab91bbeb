"""From an existing object to its captured value, with guards.

Input: an object and its source.
Output: a ``Value``; the guards that its kind needs are in the prologue.
Why: one place decides on the guards at first sight: types, values of constants, layouts of arrays, lengths of
containers. Contents are guarded when they are read.
"""

from __future__ import annotations

import enum
import functools
import operator
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from tcompile.annotations.marks import marks_of, not_dynamic
from tcompile.annotations.policy import error_on_graph_break
from tcompile.capture.guards.kinds import keys as keys_of
from tcompile.capture.guards.kinds import shown, sized, type_name
from tcompile.capture.guards.list_numbers import has_numbers
from tcompile.capture.guards.sources import AttributeSource, CellSource, GlobalSource, ItemSource, Source, StateSource
from tcompile.capture.semantics.special.policy import PolicyValue
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, LazyValue, Value
from tcompile.capture.values.callable import FunctionValue, MethodValue, PartialValue
from tcompile.capture.values.classes import class_answers_in_python, plain_named_tuple
from tcompile.capture.values.constant import Constant, CopiedDtype, FloatValue, IntegerValue, float_test
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue, OpaqueValue, WeakReference
from tcompile.capture.values.random_generator import DrawingMethod, RandomGeneratorValue, method_of_known
from tcompile.capture.values.sets import SetValue
from tcompile.capture.values.slices import RangeValue, SliceValue
from tcompile.capture.values.tensor import GradModeValue, ModuleValue, TensorValue, guard_state, sets_gradients
from tcompile.frontends.base import CannotCapture, Frontend
from tcompile.graph import TensorType
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.draws import is_generator, module_of

_BY_IDENTITY = (
    types.ModuleType, types.BuiltinFunctionType, type, types.MethodWrapperType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.GenericAlias, enum.Enum,
    operator.itemgetter, operator.attrgetter, operator.methodcaller,
)  # fmt: skip
_KEYS = (str, int, bytes, bool, type(None), type)  # their equality and hash run none of the user's code
_MAX_ITEMS = 1000


def wrap(tx: Context, value: Any, source: Source) -> Value:
    """The captured value of ``value``, found at ``source``."""
    cls = type(value)
    if isinstance(source, StateSource):  # the guard on the generator's class is enough
        return tx.array_input(TensorType(value.dtype, value.shape), False, source)
    found = None if tx.tensors is None else _of_torch(tx, value, source)
    if found is not None:
        return found
    if _is_foreign(value):
        return _moved(tx, value, source)
    if value is None or value is Ellipsis or value is NotImplemented or cls is bool:
        return _identical(tx, value, source, shown(value))
    if cls is int:
        return _integer(tx, value, source)
    if cls is float:
        return _float(tx, value, source)
    if cls in (str, bytes):
        return _equal(tx, value, source)
    if cls is complex:
        return _complex(tx, value, source)
    for frontend in tx.frontends:
        type_ = frontend.type_of(value)
        if type_ is not None:
            return _array(tx, value, type_, frontend, source)
    if is_generator(value):
        return _generator(tx, value, source)
    if cls is list or cls is tuple or (issubclass(cls, tuple) and plain_named_tuple(cls)):
        return _sequence(tx, value, source)
    if cls is dict:
        return _dict(tx, value, source)
    if cls is range or cls is slice:
        return _bounds(tx, value, source)
    if cls is set or cls is frozenset:
        return _set(tx, value, source)
    if cls is types.FunctionType:
        return _function(tx, value, source)
    inner = tx.inlined_function(value)
    if inner is not None:
        _identical(tx, value, source, inner.__qualname__)
        return FunctionValue.compiled(tx, value, inner, source)
    if cls is types.MethodType:
        return _method(tx, value, source)
    if cls is types.CellType:
        return _cell(tx, value, source)
    if cls is functools.partial:
        return _partial(tx, value, source)
    for frontend in tx.frontends:
        usual = frontend.copied_dtype(value)
        if usual is not None:
            return _copied_dtype(tx, usual, frontend, source)
    # From here on the object's own methods are not called: they may run Python code.
    if issubclass(cls, _BY_IDENTITY) or (not _by_class_statement(cls) and tx.is_fixed(value)) or tx.is_special(value):
        return _identical(tx, value, source, shown(value))
    if cls is error_on_graph_break:
        _identical(tx, value, source, repr(value))
        return PolicyValue(value.errors, source)
    return _object(tx, value, source)


def _by_class_statement(cls: type) -> bool:
    return bool(cls.__flags__ & (1 << 9))


def _is_foreign(value: Any) -> bool:
    """Whether almost any access to an object may run the user's code."""
    cls = type(value)
    if class_answers_in_python(cls) or (issubclass(cls, type) and class_answers_in_python(value)):
        return True
    return issubclass(cls, types.ModuleType) and cls is not types.ModuleType


def _moved(tx: Context, value: Any, source: Source) -> Value:
    """An object that is only moved: it is neither read nor called."""
    name = type_name(value)
    held = tx.prologue.constant(type(value))
    tx.prologue.guard(source, f"type({{}}) is {held}", f"type({source.text}) is {name}", name, "type")
    return OpaqueValue(value, source, f"an object of class {name}")


def _identical(tx: Context, value: Any, source: Source, expected: str) -> Constant:
    held = "None" if value is None else str(value) if isinstance(value, bool) else tx.prologue.constant(value)
    tx.prologue.guard(source, f"{{}} is {held}", f"{source.text} is {expected}", expected)
    return Constant(value, source)


def _equal(tx: Context, value: Any, source: Source) -> Constant:
    cls, held = tx.prologue.constant(type(value)), tx.prologue.constant(value)
    text = shown(value)
    tx.prologue.guard(source, f"type({{}}) is {cls} and {{}} == {held}", f"{source.text} == {text}", text)
    return Constant(value, source)


def _complex(tx: Context, value: complex, source: Source) -> Constant:
    # The text tells -0.0 from 0.0 and finds NaN equal to itself, as == does not.
    code = f"type({{}}) is complex and repr({{}}) == {repr(value)!r}"
    tx.prologue.guard(source, code, f"{source.text} == {value!r}", repr(value))
    return Constant(value, source)


def _integer(tx: Context, value: int, source: Source) -> Value:
    listed = isinstance(source, ItemSource) and type(tx.objects.get(source.base)) is list
    among = source.base.text if listed else ""  # type: ignore[attr-defined]
    if tx.profile.is_open(source.text, value, tx.options.dynamic, among) and abs(value) < 1 << 62:
        tx.prologue.guard(
            source, "type({}) is int and -(1 << 62) < {} < 1 << 62", f"type({source.text}) is int",
            "an int below 2**62", "open integer",
        )  # fmt: skip
        return IntegerValue(tx.symbols.of_number(value, source), source)
    fixed = tx.options.dynamic is False
    advice = "dynamic=False compiles each int by itself; without it, one that varies becomes symbolic" if fixed else ""
    held = str(value) if abs(value) < 1 << 64 else tx.prologue.constant(value)
    tx.prologue.guard(
        source, f"type({{}}) is int and {{}} == {held}", f"{source.text} == {shown(value)}", shown(value), "integer",
        advice=advice,
    )  # fmt: skip
    return Constant(value, source)


def _float(tx: Context, value: float, source: Source) -> Value:
    if not tx.profile.is_fixed(source.text, value) and tx.options.dynamic is not False:
        tx.prologue.guard(source, "type({}) is float", f"type({source.text}) is float", "float", "type")
        tx.left_open[source.text] = float
        return FloatValue(source, value)
    test = float_test(value, tx.prologue.constant)
    tx.prologue.guard(source, f"type({{}}) is float and {test}", f"{source.text} == {value!r}", repr(value), "float")
    return Constant(value, source)


def _array(tx: Context, value: Any, type_: TensorType, frontend: Frontend, source: Source) -> Value:
    scalar = frontend.is_scalar(value)
    if scalar and frontend.is_constant_scalar(value):
        place, profile = source.text, tx.profile
        whole = type_.dtype.kind in "iu" and not profile.is_fixed(place, int(value))
        if not (whole and profile.is_open(place, int(value), tx.options.dynamic)):
            return _equal(tx, value, source)
        tx.left_open[place] = int
    marks = marks_of(value)
    axes = tx.profile.axes(source.text, type_.shape, tx.options.dynamic, marks)  # type: ignore[arg-type]
    for axis, mark in marks.items():
        if mark.kind == "dynamic" and axis not in axes:
            text = f"{source.text}.shape[{axis}]"
            raise not_dynamic(text, f"{text} == {type_.shape[axis]}", tx.user_stack())
    fixed = tx.options.dynamic is False
    advice = "dynamic=False compiles each size by itself; without it, one that varies becomes symbolic" if fixed else ""
    own_dtype = not scalar and frontend.copied_dtype(value.dtype) is not None
    for check in frontend.checks(source.text, type_, scalar, frozenset(axes), tx.prologue.constant, own_dtype):
        tx.prologue.guard(
            source, check.code, check.text, check.expected, check.kind,
            advice=advice if check.kind == "shape" else "",
        )  # fmt: skip
    if axes:
        shape = tuple(
            tx.symbols.of_size(size, source, axis, marks.get(axis)) if axis in axes else size  # type: ignore[arg-type]
            for axis, size in enumerate(type_.shape)
        )
        type_ = TensorType(type_.dtype, shape, type_.layout, type_.device)
    array = tx.array_input(type_, scalar, source)
    if isinstance(array, ArrayValue) and array.memory is not None:
        array.memory.own_dtype = own_dtype
    return array


def _of_torch(tx: Context, value: Any, source: Source) -> Value | None:
    """The value of an object of PyTorch that means something to capture; None of any other."""
    library, cls = tx.tensors, type(value)
    if library.takes(value):
        return _tensor(tx, value, source)
    if cls in library.grad_modes:
        return _grad_mode(tx, value, source)
    if library.is_operation(value):
        return _identical(tx, value, source, str(value))
    if library.is_of_training(value):
        return _identical(tx, value, source, value.__qualname__)
    if library.is_table(value):
        _identical(tx, value, source, "a table of PyTorch's functions")
        return Constant(library.functions)
    reference = cls is weakref.ref and library.takes(value())  # as LSTMs hold their parameters
    if not reference and not library.is_module(cls):
        return None
    held, name = tx.prologue.constant(cls), type_name(value)
    tx.prologue.guard(source, f"type({{}}) is {held}", f"type({source.text}) is {name}", name, "type")
    return WeakReference(value, source, "a weak reference") if reference else ModuleValue(cls, value, source, library)


def _tensor(tx: Context, value: Any, source: Source) -> Value:
    library = tx.tensors
    guard_state(tx, library)
    for check in library.tensor_checks(value, source.text, tx.prologue.constant):
        tx.prologue.guard(source, check.code, check.text, check.expected, check.kind)
    node = tx.graph_input(library.type_of_input(value), source)
    traced = library.input(tx.builder, value, node)
    made = tx.tensor_values[id(traced)] = TensorValue(traced, library, source)
    return made


def _grad_mode(tx: Context, value: Any, source: Source) -> Value:
    """A block of a grad mode, whose class and mode are guarded."""
    cls = type(value)
    held = tx.prologue.constant(cls)
    tx.prologue.guard(source, f"type({{}}) is {held}", f"type({source.text}) is {cls.__name__}", cls.__name__, "type")
    on = sets_gradients(cls, getattr(value, "mode", None))
    if cls.__name__ == "set_grad_enabled":
        tx.prologue.guard(source, f"{{}}.mode is {on}", f"{source.text}.mode is {on}", str(on))
    return GradModeValue(on, cls, [Constant(on)] if cls.__name__ == "set_grad_enabled" else [], tx.tensors, source)


def _copied_dtype(tx: Context, usual: DType, frontend: Frontend, source: Source) -> Value:
    code = f"{tx.prologue.constant(frontend.copied_dtype)}({{}}) is {tx.prologue.constant(usual)}"
    tx.prologue.guard(source, code, f"{source.text} is a copy of {usual}", f"a copy of {usual}", "value")
    return CopiedDtype(usual, source)


def _generator(tx: Context, value: Any, source: Source) -> Value:
    name, held = type_name(value), tx.prologue.constant(type(value))
    tx.prologue.guard(source, f"type({{}}) is {held}", f"type({source.text}) is {name}", name, "type")
    return RandomGeneratorValue(value, source)


def _sequence(tx: Context, value: Any, source: Source) -> Value:
    cls = type(value)
    if len(value) > _MAX_ITEMS and (cls is not list or not has_numbers(value)):
        return _object(tx, value, source)
    if len(value) > _MAX_ITEMS:
        tx.prologue.guard(source, "type({}) is list", f"type({source.text}) is list", "list", "type")
        return SequenceValue.of_numbers(tx, value, source)
    held = tx.prologue.constant(cls)
    code, looser = f"type({{}}) is {held} and len({{}}) == {len(value)}", f"type({{}}) is {held}"
    tx.prologue.guard(source, code, f"{source.text} is {sized(value)}", sized(value), "length")
    items: list[Value] = [LazyValue(item, ItemSource(source, i)) for i, item in enumerate(value)]

    def loosen() -> Callable[[], None]:
        text = f"type({source.text}) is {cls.__qualname__}"
        tx.prologue.loosen(source, code, looser, text, cls.__qualname__, "type")
        length, shown = f"len({{}}) == {len(value)}", f"{source.text} is {sized(value)}"
        return lambda: tx.prologue.guard(source, length, shown, sized(value), "length")

    return SequenceValue.outside(tx, items, cls, source, loosen)


def _dict(tx: Context, value: dict[Any, Any], source: Source) -> Value:
    if "__builtins__" in value or "__name__" in value:  # a module's globals are read and stored as globals
        return _object(tx, value, source)
    if len(value) > _MAX_ITEMS or not all(type(type(key)) is type and type(key) in _KEYS for key in value):
        return _object(tx, value, source)
    found = dict(value)
    keys = tuple(found)
    # 1 and True are equal, and keys of other types may answer in Python: the types come first.
    held = tx.prologue.constant([*map(type, keys), *keys])
    dict_ = tx.prologue.constant(dict)
    code = f"type({{}}) is {dict_} and [*map(type, {{}}), *{{}}] == {held}"
    tx.prologue.guard(source, code, f"{source.text} is a dict with {keys_of(value)}", keys_of(value), "keys")
    items: dict[Any, Value] = {key: LazyValue(item, ItemSource(source, key)) for key, item in found.items()}

    def loosen(asked: Mapping[Any, bool]) -> None:
        tx.prologue.loosen(source, code, f"type({{}}) is {dict_}", f"type({source.text}) is dict", "dict", "type")
        for key, there in {"__builtins__": False, "__name__": False, **asked}.items():
            plain = type(key) is int or (type(key) is str and key.isidentifier())
            shown = repr(key) if plain else tx.prologue.constant(key)
            tx.decide(source, f"{shown} in {{}}", f"{shown} in {source.text}", there)

    varies = tx.profile.is_open(f"len({source.text})", len(keys), tx.options.dynamic)
    return DictValue.outside(tx, items, source, loosen, varies)


def _set(tx: Context, value: Any, source: Source) -> Value:
    if len(value) > _MAX_ITEMS or not all(type(item) in (str, int, bytes, bool, type(None)) for item in value):
        return _object(tx, value, source)
    cls, order = tx.prologue.constant(type(value)), tuple(value)
    held = tx.prologue.constant(frozenset(value))
    text, kinds = f"{source.text} == {set(value)!r}", tx.prologue.constant(frozenset(map(type, value)))
    code = f"type({{}}) is {cls} and {kinds}.issuperset(map(type, {{}})) and {{}} == {held}"
    tx.prologue.guard(source, code, text, repr(set(value)))

    def ordered() -> tuple[Any, ...]:
        held = tx.prologue.constant(order)
        tx.prologue.guard(source, f"tuple({{}}) == {held}", f"the order of {source.text} is {order!r}", repr(order))
        return order

    if any(type(item) is not str for item in order):  # 1 and True are equal
        ordered()
        kinds = tx.prologue.constant(tuple(map(type, order)))
        tx.prologue.guard(source, f"tuple(map(type, {{}})) == {kinds}", f"the types in {source.text}", "the same types")
    return SetValue.outside(tx, value, ordered, source)


def _bounds(tx: Context, value: Any, source: Source) -> Value:
    cls = type(value)
    held = tx.prologue.constant(cls)
    tx.prologue.guard(source, f"type({{}}) is {held}", f"type({source.text}) is {cls.__name__}", cls.__name__, "type")
    parts = [tx.wrap(getattr(value, name), AttributeSource(source, name)) for name in ("start", "stop", "step")]
    if cls is slice:
        return SliceValue(parts[0], parts[1], parts[2], source)
    bounds = [part.size if isinstance(part, IntegerValue) else part.value for part in parts]  # type: ignore[attr-defined]
    return RangeValue(bounds[0], bounds[1], bounds[2], source)


def _function(tx: Context, value: types.FunctionType, source: Source) -> Value:
    if tx.frontend_of(value) is not None or tx.is_special(value):
        return _identical(tx, value, source, shown(value))
    # A function is its code and its globals; its other contents are read, and guarded, through it. Arguments, and
    # objects found through them, may be a new function at each call. A global is one function until it is redefined.
    code, is_global = tx.prologue.constant(value.__code__), isinstance(source, GlobalSource)
    if is_global and not tx.profile.is_redefined(source.text, value):
        test = f"{{}} is {tx.prologue.constant(value)} and {{}}.__code__ is {code}"
    else:
        held, names = tx.prologue.constant(types.FunctionType), tx.prologue.constant(value.__globals__)
        test = f"type({{}}) is {held} and {{}}.__code__ is {code} and {{}}.__globals__ is {names}"
    kind = "definition" if is_global else "function"
    tx.prologue.guard(source, test, f"{source.text} is {shown(value)}", shown(value), kind)
    return FunctionValue.of(tx, value, source)


def _cell(tx: Context, value: types.CellType, source: Source) -> Value:
    cls = tx.prologue.constant(types.CellType)
    tx.prologue.guard(source, f"type({{}}) is {cls}", f"{source.text} is a cell", "cell", "type")
    return tx.cell(value, source, CellSource(source.text, source))


def _method(tx: Context, value: types.MethodType, source: Source) -> Value:
    if is_generator(value.__self__) and module_of(value.__self__) is not None:  # one generator under many names
        _identical(tx, value, source, value.__name__)
        return method_of_known(tx, value)
    cls = tx.prologue.constant(types.MethodType)
    tx.prologue.guard(source, f"type({{}}) is {cls}", f"type({source.text}) is method", "method", "type")
    owner = tx.wrap(value.__self__, AttributeSource(source, "__self__"))
    if isinstance(owner, RandomGeneratorValue):
        tx.wrap(value.__func__, AttributeSource(source, "__func__"))
        return DrawingMethod(owner, value.__name__)
    return MethodValue(owner, tx.wrap(value.__func__, AttributeSource(source, "__func__")), source)


def _partial(tx: Context, value: functools.partial[Any], source: Source) -> Value:
    cls = tx.prologue.constant(functools.partial)
    tx.prologue.guard(source, f"type({{}}) is {cls}", f"type({source.text}) is partial", "partial", "type")
    function = tx.wrap(value.func, AttributeSource(source, "func"))
    args = tx.wrap(value.args, AttributeSource(source, "args"))
    kwargs = tx.wrap(value.keywords, AttributeSource(source, "keywords"))
    if not isinstance(args, SequenceValue) or not isinstance(kwargs, DictValue):
        raise CannotCapture("unsupported-object", f"`{source.text}` is a partial of a subclass.")
    return PartialValue(function, args.items, kwargs.items, source)


def _object(tx: Context, value: Any, source: Source) -> Value:
    cls = type(value)
    held = tx.prologue.constant(cls)
    code, text = f"type({{}}) is {held}", f"type({source.text}) is {cls.__qualname__}"
    tx.prologue.guard(source, code, text, cls.__qualname__, "type")
    dtype = getattr(value, "dtype", None) if tx.is_library_name(cls.__module__) else None
    if dtype is not None:  # an array, but none that a frontend takes: another dtype may be taken
        want = tx.prologue.constant(dtype)
        tx.prologue.guard(source, f"{{}}.dtype == {want}", f"{source.text}.dtype == {dtype}", str(dtype), "dtype")
        return OpaqueValue(value, source, f"an array of class {cls.__name__} and dtype {dtype}")
    if _by_class_statement(cls):
        return ObjectValue(cls, value, source)
    return OpaqueValue(value, source, f"an object of class {cls.__qualname__}")
