"""The distance between two results.

Input: the results of plain Python and of compiled code.
Output: a ``Difference``: the largest distance between numbers, and the first difference other than rounding.
Why: benchmarks check results before they claim a speed-up, and ``diagnose`` finds the faulty stage by it.

>>> import numpy as np
>>> difference([np.float32([1, 2])], [np.float32([1, 2.5])]).largest
0.5
>>> difference(np.int64([1]), np.int32([1])).mismatch
'the result: dtype int64 became int32'
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from tcompile.records import dataclass

_DEEPEST = 40  # depth of nested containers
_ROUNDING = 1e-2  # ``scaled`` differences beyond are not due to rounding, not even in half precision


@dataclass(frozen=True)
class Difference:
    """``largest`` is the largest absolute distance, ``relative`` the largest one relative to the plain value.

    ``scaled`` is the largest one relative to the plain value and the mean size of the values around it, which stays
    small for numbers near zero left by cancellation; ``where`` is the place of that. ``mismatch`` is empty, or names
    the place where the kind, type, shape or presence of a value differs.
    """

    largest: float = 0.0
    relative: float = 0.0
    mismatch: str = ""
    scaled: float = 0.0
    where: str = ""

    @property
    def equal(self) -> bool:
        """Whether everything but the rounding of floating-point numbers is the same."""
        return not self.mismatch

    @property
    def wrong(self) -> str:
        """What is different beyond rounding, in words; "" if nothing is."""
        far = f"{self.where}: numbers differ by {self.largest:.3g}" if self.scaled > _ROUNDING else ""
        return self.mismatch or far

    def __or__(self, other: Difference) -> Difference:
        return Difference(
            max(self.largest, other.largest),
            max(self.relative, other.relative),
            self.mismatch or other.mismatch,
            max(self.scaled, other.scaled),
            self.where if self.scaled >= other.scaled else other.where,
        )

    def __str__(self) -> str:
        if self.mismatch:
            return self.mismatch
        return f"{self.largest:.2g}" if self.largest else "0"


def difference(plain: Any, compiled: Any, where: str = "the result", *, attributes: bool = False) -> Difference:
    """Compares two values, containers included. Other objects are compared by type alone.

    attributes: also by their attributes.
    """
    return _difference(plain, compiled, where, attributes, ())


def _difference(plain: Any, compiled: Any, where: str, attributes: bool, above: tuple[int, ...]) -> Difference:
    if id(plain) in above or len(above) > _DEEPEST:  # an object that contains itself
        return Difference()
    above = (*above, id(plain))
    if _kind(plain) != _kind(compiled):  # by name: a repeated cell makes its classes anew
        return Difference(mismatch=f"{where}: {_kind(plain)} became {_kind(compiled)}")
    if isinstance(plain, np.ndarray | np.generic):
        return _arrays(plain, compiled, where)
    if isinstance(plain, Mapping):
        if list(plain) != list(compiled):
            return Difference(mismatch=f"{where}: keys {list(plain)} became {list(compiled)}")
        return _join(_difference(plain[key], compiled[key], f"{where}[{key!r}]", attributes, above) for key in plain)
    if isinstance(plain, list | tuple):
        if len(plain) != len(compiled):
            return Difference(mismatch=f"{where}: length {len(plain)} became {len(compiled)}")
        pairs = enumerate(zip(plain, compiled, strict=True))
        return _join(_difference(one, other, f"{where}[{n}]", attributes, above) for n, (one, other) in pairs)
    if isinstance(plain, float | complex):
        return _arrays(np.asarray(plain), np.asarray(compiled), where)
    if isinstance(plain, str | bytes | bool | int | None | set | frozenset | range | slice) and plain != compiled:
        return Difference(mismatch=f"{where}: {plain!r} became {compiled!r}")
    if not attributes:
        return Difference()
    names, others = _attributes(plain), _attributes(compiled)
    if list(names) != list(others):
        return Difference(mismatch=f"{where}: attributes {list(names)} became {list(others)}")
    return _join(_difference(names[name], others[name], f"{where}.{name}", attributes, above) for name in names)


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of a user's object; nothing for functions, modules and classes, which are no data."""
    if isinstance(value, types.ModuleType | types.FunctionType | types.MethodType | type):
        return {}
    return dict(getattr(value, "__dict__", {}))


def _join(differences: Any) -> Difference:
    total = Difference()
    for one in differences:
        total |= one
    return total


def _arrays(plain: Any, compiled: Any, where: str) -> Difference:
    if plain.dtype != compiled.dtype:
        return Difference(mismatch=f"{where}: dtype {plain.dtype} became {compiled.dtype}")
    if plain.shape != compiled.shape:
        return Difference(mismatch=f"{where}: shape {plain.shape} became {compiled.shape}")
    if plain.dtype.kind not in "fc":
        if np.array_equal(plain, compiled):
            return Difference()
        return Difference(mismatch=f"{where}: values of dtype {plain.dtype} differ")
    wide = np.result_type(plain.dtype, np.float64)
    one, other = np.asarray(plain, wide), np.asarray(compiled, wide)
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)) or not np.array_equal(
        one[~finite], other[~finite], equal_nan=True
    ):
        return Difference(mismatch=f"{where}: infinities or NaNs differ")
    if not finite.any():
        return Difference()
    distance = np.abs(one[finite] - other[finite])
    size = np.abs(one[finite])
    relative = np.divide(distance, size, out=np.zeros_like(distance), where=size > 0)
    scaled = float((distance / (size + size.mean() + np.finfo(wide).tiny)).max())
    return Difference(float(distance.max()), float(relative.max()), scaled=scaled, where=where)


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
