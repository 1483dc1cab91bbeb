"""Random numbers as operations on a generator's state, which is an array.

Input: a generator of NumPy's, ``np.random.Generator`` or ``RandomState``, or Python's ``random.Random``.
Output: the words of its state, as an array that aliases the generator's memory, and the functions of NumPy's library
that draw from such words.
Why: a draw is a pure function of the state, which returns a number and the next state. So a graph may draw NumPy's own
stream, and before a replay the state is unchanged.

The memory layout of bit generators is private to NumPy. Assumptions about it are checked on each kind before it is used
(``family_of``): draws from a copy of the words must equal the generator's.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tcompile.graph.dtypes import FLOAT64, INT32, DType
from tcompile.graph.ops import python_random
from tcompile.graph.ops.python_random import is_python_generator
from tcompile.records import dataclass


@dataclass(frozen=True)
class Family:
    """A kind of bit generator.

    Its state has so many ``words`` of 64 bits. Where ``inner`` is not 0, the first word is the address of the word with
    the number ``inner``, which is aligned to 16 bytes.
    """

    name: str
    words: int
    inner: int = 0

    @property
    def cls(self) -> Any:
        """NumPy's class."""
        return getattr(np.random, self.name)

    @property
    def is_pythons(self) -> bool:
        """Whether it is that of ``random.Random``, which NumPy's functions do not draw from."""
        return self.name == python_random.NAME


@dataclass(frozen=True)
class Draw:
    """A kind of draw: the function of NumPy's library, the kind of the result, and the names of the parameters.

    ``defaults`` are those of the parameters, None where there is none; ``positive`` are the numbers of those that are
    above 0 in all uses. ``function`` is empty where it is not a single call of a function of floats. ``many`` is the
    number of draws from which a loop, with most draws inlined, is as fast as NumPy; 0: always. A draw that ``keeps``
    makes two numbers at a time (``SPARE``).
    """

    function: str
    kind: str = "float"
    parameters: tuple[str, ...] = ()
    defaults: tuple[float | None, ...] = ()
    positive: tuple[int, ...] = ()
    many: int = 0
    keeps: bool = False


# What a generator that makes two normal numbers at a time keeps: whether there is a second one, and that one. Python's
# has it in an attribute, None or a float.
SPARE: Mapping[str, DType] = {"has_gauss": INT32, "gauss": FLOAT64}

_AROUND: Mapping[str, Any] = {"parameters": ("loc", "scale"), "defaults": (0.0, 1.0), "positive": (1,)}
_SCALED: Mapping[str, Any] = {"parameters": ("scale",), "defaults": (1.0,), "positive": (0,)}
DRAWS: Mapping[str, Draw] = {
    "random": Draw("", many=10_000),
    # The second parameter is the distance of the upper bound.
    "uniform": Draw("random_uniform", parameters=("low", "high"), defaults=(0.0, 1.0), positive=(1,), many=1000),
    "integers": Draw("", "np.int64", ("low", "high"), (None, None), many=1000),
    "randint": Draw("", "int", ("low", "high"), (None, None)),
    "standard_normal": Draw("random_standard_normal", many=1000),
    "normal": Draw("random_normal", **_AROUND, many=1000),
    "standard_exponential": Draw("random_standard_exponential", many=1000),
    "exponential": Draw("random_exponential", **_SCALED, many=1000),
    "standard_gamma": Draw("random_standard_gamma", parameters=("shape",), defaults=(None,), positive=(0,)),
    "gamma": Draw("random_gamma", parameters=("shape", "scale"), defaults=(None, 1.0), positive=(0, 1)),
    "beta": Draw("random_beta", parameters=("a", "b"), defaults=(None, None), positive=(0, 1)),
    "chisquare": Draw("random_chisquare", parameters=("df",), defaults=(None,), positive=(0,)),
    "laplace": Draw("random_laplace", **_AROUND),
    "logistic": Draw("random_logistic", **_AROUND),
    "gumbel": Draw("random_gumbel", **_AROUND),
    "lognormal": Draw("random_lognormal", parameters=("mean", "sigma"), defaults=(0.0, 1.0), positive=(1,)),
    "rayleigh": Draw("random_rayleigh", **_SCALED),
    "weibull": Draw("random_weibull", parameters=("a",), defaults=(None,), positive=(0,)),
    "pareto": Draw("random_pareto", parameters=("a",), defaults=(None,), positive=(0,)),
    "poisson": Draw("random_poisson", "int", ("lam",), (1.0,), (0,)),
    "polar_normal": Draw("", **_AROUND, keeps=True),
    "polar_standard_normal": Draw("", keeps=True),
    # Python's own. All others are made of ``random`` and of ints below a bound.
    "below": Draw("", "int", ("n",), (None,)),
    "python_uniform": Draw("", parameters=("a", "b"), defaults=(None, None)),
    "python_randint": Draw("", "int", ("a", "b"), (None, None)),
    "python_randrange": Draw("", "int", ("start", "stop"), (None, None)),
    "python_expovariate": Draw("", parameters=("lambd",), defaults=(1.0 if sys.version_info >= (3, 12) else None,)),
    "python_normalvariate": Draw("", parameters=("mu", "sigma"), defaults=(0.0, 1.0)),
    "python_gauss": Draw("", parameters=("mu", "sigma"), defaults=(0.0, 1.0), keeps=True),
}
MOST_POISSON = 1e18  # NumPy refuses somewhat larger ones
# The draws that are methods of the classes of generators. ``RandomState`` has another stream for most names.
_METHODS: Mapping[str, Mapping[str, str]] = {
    "Generator": {name: name for name, row in DRAWS.items() if row.function or name in ("random", "integers")},
    "RandomState": {"random": "random", "random_sample": "random", "rand": "random", "uniform": "uniform",
                    "randint": "randint"},
    python_random.NAME: {"random": "random", **{name: f"python_{name}" for name in (
        "uniform", "randint", "randrange", "expovariate", "normalvariate", "gauss")}},
}  # fmt: skip
_POLAR = {"standard_normal": "polar_standard_normal", "randn": "polar_standard_normal", "normal": "polar_normal"}
_FAMILIES = ("PCG64", "PCG64DXSM", "MT19937", "SFC64")
_SIZES = {"MT19937": (4 * 624 + 4 + 7) // 8, "SFC64": 5}
PCG64_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
HALVES = {"PCG64": 1, "SFC64": 4}
_INNER_WORDS = 4  # of the PCGs: the state and the increment
# The functions in NumPy's ``bitgen_t``, in order after the address of the state.
NEXT = ("next_uint64", "next_uint32", "next_double", "next_raw")
BOUNDED = "random_bounded_uint64_fill"


def is_generator(value: object) -> bool:
    """Whether it is a generator of NumPy's or Python's, and of no subclass."""
    if is_python_generator(value):
        return True
    numpys = sys.modules.get("numpy.random")  # NumPy loads it at first use
    return numpys is not None and (type(value) is numpys.Generator or type(value) is numpys.RandomState)


def is_legacy(generator: Any) -> bool:
    """Whether a generator is a ``RandomState``, whose methods have other names and draw other numbers."""
    return type(generator) is np.random.RandomState


def module_of(generator: Any) -> str | None:
    """The module whose functions draw from a generator; None where it is somebody's own."""
    if is_python_generator(generator):
        return "random" if python_random.is_shared(generator) else None
    return "np.random" if getattr(np.random.rand, "__self__", None) is generator else None


def method_of(cls: type, name: str) -> str | None:
    """The row of ``DRAWS`` for a method of a generator; None where graphs cannot draw such numbers."""
    row = _METHODS[cls.__name__].get(name)
    if row is None and cls is np.random.RandomState and _spare_at() is not None:
        row = _POLAR.get(name)
    return row


def family_of(generator: Any) -> Family | None:
    """The kind of a generator's bit generator; None where its memory layout is unknown."""
    if is_python_generator(generator):
        known = python_random.has_pythons_methods(generator)
        return family_named(python_random.NAME) if known else None
    cls = type(_bits_of(generator))
    known = cls.__name__ in _FAMILIES and cls is getattr(np.random, cls.__name__)
    return family_named(cls.__name__) if known else None


def state_of(generator: Any, family: Family) -> Any:
    """The words of the state, as an array that aliases them. Raises TypeError for another kind of bit generator."""
    if family.is_pythons:
        return python_random.taken_from(generator)
    bits = _bits_of(generator)
    if type(bits) is not family.cls:
        raise TypeError(f"{type(bits).__name__} in the place of {family.name}")
    words = _words(bits, family.words)
    if family.inner and int(words[0]) != _address(bits) + 8 * family.inner:
        raise TypeError(f"a state of {family.name} that lies elsewhere")
    return words


def spare_of(generator: Any, part: str) -> Any:
    """One of ``SPARE``, as an array of one element that aliases it."""
    at = _spare_at()
    assert at is not None and type(generator) is np.random.RandomState
    return _spare(generator, at, part)


def lock_of(generator: Any) -> Any:
    """The lock that is held during a draw."""
    if is_python_generator(generator):
        return python_random.held(generator)
    return _bits_of(generator).lock


def drawn(words: Any, family: str, name: str, *given: Any, size: tuple[int, ...] | None = None) -> Any:
    """The result of a draw, or an array of so many; ``words`` become the next state's.

    >>> generator = np.random.default_rng(1)
    >>> words = state_of(generator, family_of(generator)).copy()
    >>> drawn(words, "PCG64", "random") == generator.random()
    True
    """
    if family == python_random.NAME:
        return python_random.drawn(words, name, given)
    found = family_named(family)
    assert found is not None
    return _drawn(words, found, name, given, size)


def addresses(family: str) -> dict[str, int]:
    """The addresses of functions that draw, by their names; those of the bit generator are called
    ``PCG64_next_double``.
    """
    bits = getattr(np.random, family)(1)
    own = (ctypes.c_uint64 * (1 + len(NEXT))).from_address(bits.ctypes.bit_generator.value)
    return {**_library(), **{f"{family}_{name}": own[place] for place, name in enumerate(NEXT, 1)}}


@lru_cache
def is_plain(name: str) -> bool:
    """Whether a bit generator's step and layout are those implemented here; False for other families.

    PCG64's inner words are the state and the increment, two numbers of 128 bits, low words first (M. E. O'Neill, PCG: a
    family of simple fast space-efficient statistically good algorithms for random number generation, 2014). SFC64's
    first four are three numbers and a counter (C. Doty-Humphrey, Practically Random, 2010). The upper half of 64 bits
    may be kept for the next draw of 32: the word ``HALVES`` has an int of 32 bits that says so, and that half above it.
    """
    family = family_named(name)
    if name not in _NEXT or family is None or sys.byteorder != "little":
        return False
    generator = np.random.Generator(family.cls(1))
    words = [int(word) for word in state_of(generator, family)]
    for count in (10, 3_000_000_000, 2, 1 << 31, (1 << 32) - 1) * 3:
        if _bounded(name, words, family.inner, count) != generator.integers(count):
            return False
        if count == 2 and _next(name, words, family.inner) != generator.bit_generator.random_raw():
            return False
    return True


def _bounded(name: str, words: list[int], inner: int, count: int) -> int:
    """A number below ``count`` (D. Lemire, Fast random integer generation in an interval, 2019)."""
    product = _next_half(name, words, inner) * count
    while product % (1 << 32) < (1 << 32) % count:
        product = _next_half(name, words, inner) * count
    return product >> 32


def _next_half(name: str, words: list[int], inner: int) -> int:
    at = HALVES[name]
    if words[at] % (1 << 32):
        words[at] &= ~((1 << 32) - 1)
        return words[at] >> 32
    found = _next(name, words, inner)
    words[at] = found >> 32 << 32 | 1
    return found % (1 << 32)


def _next(name: str, words: list[int], inner: int) -> int:
    part = words[inner : inner + _INNER_WORDS]
    found = _NEXT[name](part)
    words[inner : inner + _INNER_WORDS] = part
    return found


def _next_of_pcg64(words: list[int]) -> int:
    state = words[0] | words[1] << 64
    state = (state * PCG64_MULTIPLIER + (words[2] | words[3] << 64)) % (1 << 128)
    words[:2] = state % (1 << 64), state >> 64
    return _turned(words[0] ^ words[1], 64 - (state >> 122))


def _next_of_sfc64(words: list[int]) -> int:
    a, b, c, count = words
    found = (a + b + count) % (1 << 64)
    words[:] = b ^ b >> 11, (c + (c << 3)) % (1 << 64), (_turned(c, 24) + found) % (1 << 64), (count + 1) % (1 << 64)
    return found


def _turned(word: int, left: int) -> int:
    return (word << left | word >> 64 - left) % (1 << 64)


_NEXT: Mapping[str, Callable[[list[int]], int]] = {"PCG64": _next_of_pcg64, "SFC64": _next_of_sfc64}


def _bits_of(generator: Any) -> Any:
    return generator._bit_generator


def _address(bits: Any) -> int:
    address: int = bits.ctypes.state_address
    return address


def _words(bits: Any, words: int) -> Any:
    shown = _array_of(words).from_address(_address(bits))
    shown.keeps = bits
    return np.frombuffer(shown, np.uint64)


@lru_cache
def _array_of(words: int) -> Any:
    return ctypes.c_uint64 * words


@lru_cache
def _library() -> dict[str, int]:
    """The addresses of the functions in NumPy's library; empty where it does not export them."""
    from numpy.random import _generator

    names = [BOUNDED, *(row.function for row in DRAWS.values() if row.function)]
    try:
        library = ctypes.CDLL(_generator.__file__)
        found = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names}
    except (OSError, AttributeError):
        return {}
    return {name: address for name, address in found.items() if address is not None}


@lru_cache
def family_named(name: str) -> Family | None:
    """The kind of bit generators of a name; None where their layout differs from the assumed one."""
    if name == python_random.NAME:
        return Family(name, python_random.WORDS) if python_random.is_known() else None
    if not _library():
        return None
    bits = getattr(np.random, name)(1)
    if name in _SIZES:
        family = Family(name, _SIZES[name])
    else:
        away = int(_words(bits, 1)[0]) - _address(bits)
        if away not in range(16, 80, 8) or (_address(bits) + away) % 16:
            return None
        family = Family(name, away // 8 + _INNER_WORDS, away // 8)
    if _address(bits) % 8 or _address(bits) + 8 * family.words > id(bits) + type(bits).__basicsize__:
        return None
    generator = np.random.Generator(bits)
    trial: Sequence[tuple[str, tuple[int, ...]]] = (("random", ()), ("integers", (0, 10)), ("standard_normal", ()))
    for _ in range(2):  # half of 64 bits may be left
        words = state_of(generator, family).copy()
        for method, given in (*trial, *trial):
            if _drawn(words, family, method, given) != getattr(generator, method)(*given):
                return None
        generator.integers(10)
    return family


def _spare(generator: Any, at: int, part: str) -> Any:
    kind, place = (ctypes.c_int32, 8) if part == "has_gauss" else (ctypes.c_double, 16)
    shown: Any = (kind * 1).from_address(id(generator) + at + place)
    shown.keeps = generator
    found: Any = np.frombuffer(shown, SPARE[part])
    return found


@lru_cache
def _spare_at() -> int | None:
    """The offset of a RandomState's own state, in bytes; None where it is unknown.

    It is a C struct: the address of the generator's own ``bitgen_t``, then the two of ``SPARE``. Elsewhere than on x86
    compilers may fuse a product and a sum, which gives other bits.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    cls = np.random.RandomState
    generator, size = cls(1), cls.__basicsize__
    words = (ctypes.c_uint64 * (size // 8)).from_address(id(generator))
    found = [8 * place for place, word in enumerate(words) if id(generator) <= word < id(generator) + size]
    if len(found) != 1 or found[0] + 24 > size:
        return None
    for _ in range(4):
        state = generator.get_state(legacy=False)
        if [_spare(generator, found[0], part)[0] for part in SPARE] != [state[part] for part in SPARE]:
            return None
        generator.standard_normal()
    return found[0]


class _Own(threading.local):
    """A thread's own generators, which draw from the words of others."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[Any, Any]] = {}

    def of(self, family: Family) -> tuple[Any, Any]:
        """A generator, and the words of its state."""
        if family.name not in self.found:
            generator = np.random.Generator(family.cls(1))
            self.found[family.name] = generator, state_of(generator, family)
        return self.found[family.name]


_own = _Own()


def _drawn(words: Any, family: Family, name: str, given: Sequence[Any], size: Sequence[int] | None = None) -> Any:
    generator, own = _own.of(family)
    first = 1 if family.inner else 0
    own[first:] = words[first:]
    try:
        if name == "uniform":
            return given[0] + given[1] * generator.random(size)
        if name == "randint":
            legacy: Any = np.random.RandomState(_bits_of(generator))
            return legacy.randint(*given, size=size)
        return getattr(generator, name)(*given, size=size)
    finally:
        words[first:] = own[first:]


__all__ = [
    "BOUNDED", "DRAWS", "HALVES", "MOST_POISSON", "NEXT", "PCG64_MULTIPLIER", "SPARE", "Draw", "Family", "addresses",
    "drawn", "family_named", "family_of", "is_generator", "is_legacy", "is_plain", "is_python_generator",
    "lock_of", "method_of", "module_of", "spare_of", "state_of",
]  # fmt: skip
