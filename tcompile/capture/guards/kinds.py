"""The kinds of guards: how a failure is displayed, and how a recompile is avoided.

Input: a kind's name and the value for which a guard failed.
Output: words for the report.
Why: guards of one kind read alike everywhere. No user code, such as a ``__repr__``, runs here.
"""

from __future__ import annotations

import ast
import enum
import os.path
import types
from collections.abc import Callable
from typing import Any

from tcompile.frontends.base import described
from tcompile.observe.source_location import file_label
from tcompile.records import dataclass

_MAX_TEXT = 120
_REPR = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented))
_SIZED = (list, tuple, dict, set, frozenset)


Advice = Callable[[str, str, Any], str]  # of the place, the expected value, and the actual value


@dataclass(frozen=True)
class Kind:
    """``show`` describes the actual value; ``advise`` says how the recompile is avoided."""

    show: Callable[[Any], str]
    advise: Advice


def shown(value: Any) -> str:
    """Describes a value in a few words.

    >>> shown(3), shown("a"), shown([1, 2]), shown(int), shown(shown).partition(",")[0]
    ('3', "'a'", 'a list of length 2', 'int', 'shown (kinds.py')
    """
    cls = type(value)
    if cls is int and abs(value) >= 1 << 64:
        return hex(value)[:_MAX_TEXT]  # conversion to decimal has a limit of digits
    if cls in _REPR:
        return _short(repr(value))
    if cls in _SIZED:
        return sized(value)
    if cls is types.FunctionType:
        code = value.__code__
        label = file_label(code.co_filename)
        place = os.path.basename(label) if label == code.co_filename else label
        return f"{value.__qualname__} ({place}, line {code.co_firstlineno})"
    if issubclass(cls, type):
        return class_name(value)
    if cls is types.ModuleType:
        return f"the module {value.__name__}"
    if issubclass(cls, enum.Enum):
        return f"{class_name(cls)}.{value.__dict__.get('_name_', '?')}"  # missing during construction
    if cls.__flags__ & (1 << 9):  # made by a class statement: attribute access may run Python code
        return f"{_article(class_name(cls))} object"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{_article(cls.__name__)} of {dtype} and shape {shape}"
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) and callable(value) else _short(repr(value))


def sized(value: Any) -> str:
    """Describes a container by class and length, any other object by its class."""
    cls = type(value)
    if not issubclass(cls, _SIZED):
        return type_name(value)
    return f"{_article(class_name(cls))} of length {len(value)}"


def keys(value: Any) -> str:
    """Describes a dict's keys."""
    return f"keys [{_short(', '.join(map(shown, value)))}]" if type(value) is dict else type_name(value)


def class_name(cls: type) -> str:
    """Returns the name of a class, without asking its metaclass."""
    return str(type.__dict__["__qualname__"].__get__(cls))


def type_name(value: Any) -> str:
    """The class of a value."""
    return class_name(type(value))


def _dtype(value: Any) -> str:
    return str(value.dtype) if hasattr(value, "dtype") else type_name(value)


def _shape(value: Any) -> str:
    return str(value.shape) if hasattr(value, "shape") else type_name(value)


def _layout(value: Any) -> str:
    flags = getattr(value, "flags", None)
    if flags is None:
        return type_name(value)
    order = "C-contiguous" if flags.c_contiguous else "F-contiguous" if flags.f_contiguous else ""
    return order or f"strides {value.strides}"


def _tensor(value: Any) -> str:
    """Describes a tensor by what graphs depend on, any other object by its class."""
    return described(value) if hasattr(value, "is_contiguous") else type_name(value)


def _numbers(value: Any) -> str:
    """Describes a list by the array of its numbers, which is None if they are no numbers of one class."""
    words = {"f": "floats", "i": "ints", "b": "bools"}
    return f"a list of {words.get(value.dtype.kind, 'others')}" if hasattr(value, "dtype") else "a list of others"


def _own_attributes(value: Any) -> str:
    return f"own attributes {sorted(map(str, vars(value)))}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' or noun == 'ndarray' else 'a'} {noun}"


def _of_type(cls: type, advice: str) -> Advice:
    """Returns ``advice`` if a ``cls`` was found, else the advice about types."""
    return lambda place, expected, found: advice if type(found) is cls else _one_type(place, expected, found)


def _always(advice: str) -> Advice:
    return lambda place, expected, found: advice.replace("{place}", place)


_one_type = _always("each type of `{place}` has an entry of its own: pass one type in every call")
_VALUES = "each value of `{place}` has an entry of its own: keep to a few"


def _one_dtype(place: str, expected: str, found: Any) -> str:
    return f"each dtype has an entry of its own: {place}.astype({expected!r}) before the call keeps to one"


def _open_sizes(place: str, expected: str, found: Any) -> str:
    """Names the axes, for a whole shape or (``x.shape[1] == 4``) one of the axes that stayed fixed."""
    try:
        wanted = ast.literal_eval(expected)
        axes = [axis for axis, sizes in enumerate(zip(wanted, found.shape, strict=True)) if sizes[0] != sizes[1]]
        if any(found.shape[axis] <= 1 for axis in axes):
            return "sizes 0 and 1 are always compiled by themselves"
        marked = str(axes[0] if len(axes) == 1 else tuple(axes))
    except TypeError:
        marked = "axis"
    except ValueError:
        return "each number of axes has an entry of its own"
    return (
        "a size that varies becomes symbolic at the next compile; "
        f"tcompile.mark_dynamic({place}, {marked}) or dynamic=True make it so at once"
    )


KINDS = {
    "value": Kind(shown, _always(_VALUES)),
    "type": Kind(type_name, _one_type),
    "dtype": Kind(_dtype, _one_dtype),
    "shape": Kind(_shape, _open_sizes),
    "same size": Kind(shown, _always("sizes that were equal are compiled as equal; the next compile tells them apart")),
    "least size": Kind(shown, _always("sizes 0 and 1 are always compiled by themselves")),
    "marked size": Kind(shown, _always("these are the bounds given to mark_dynamic")),
    "layout": Kind(
        _layout,
        _always(
            "each memory order has an entry of its own: np.ascontiguousarray({place}) before the call keeps to one"
        ),
    ),
    "tensor": Kind(
        _tensor,
        _always(
            "each dtype, shape and memory order of a tensor, and whether it requires a gradient, is compiled by "
            "itself: keep `{place}` to a few"
        ),
    ),
    "modes": Kind(lambda found: "others", _always("code under other modes of PyTorch has an entry of its own")),
    "device": Kind(
        shown, _always("an array is compiled for its own GPU, which must be the current one: with cupy.cuda.Device(n):")
    ),
    "integer": Kind(
        shown,
        _of_type(int, "an int that varies becomes symbolic at the next compile; dynamic=True makes it so at once"),
    ),
    "open integer": Kind(shown, _of_type(int, "each int of 2**62 or more has an entry of its own")),
    "float": Kind(
        shown,
        _of_type(float, "the function needs this float while it is compiled, so each value has an entry of its own"),
    ),
    "closed float": Kind(shown, _of_type(float, "a float that varies becomes an input of the graph with this compile")),
    "length": Kind(sized, _always("each class and length has an entry of its own: an array can have an open size")),
    "numbers": Kind(_numbers, _always("each class of a list's numbers has an entry of its own: keep to one")),
    "keys": Kind(keys, _of_type(dict, "each set of keys has an entry of its own: keep to one")),
    "function": Kind(shown, _always("each function passed as `{place}` has an entry of its own: keep to a few")),
    "definition": Kind(shown, _always("`{place}` was defined anew, and the new definition is compiled")),
    "class attribute": Kind(
        lambda found: "another definition", _always("the class was changed, and is compiled as it is now")
    ),
    "own attribute": Kind(
        _own_attributes,
        _always("an attribute of the object hides the one of its class: set it on every object, or on none"),
    ),
    "no global": Kind(
        lambda found: "one", _always("a global hides the built-in function of that name: rename the global")
    ),
    "built-in": Kind(lambda found: "another function", _always("the built-in function was replaced")),
    "library": Kind(
        lambda found: "another object", _always("the library's module was changed, and is compiled as it is now")
    ),
    "question": Kind(shown, _always("the code tests this, so each outcome has an entry of its own")),
    "memory": Kind(
        lambda found: "shared memory",
        _always("arrays that share memory with one that is written run in plain Python: pass a copy of `{place}`"),
    ),
    "writeable": Kind(lambda found: "read-only", _always("a write to a read-only array raises ValueError")),
    "identity": Kind(shown, _always("which of these are one object is compiled in: keep it the same")),
}


__all__ = ["KINDS", "Kind", "keys", "shown", "sized", "type_name"]
