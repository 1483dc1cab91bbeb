"""The state of Python's own generators of random numbers, ``random.Random``, as words.

Input: an instance of ``random.Random``, and of no subclass.
Output: its state as an array of words that aliases the instance's memory, and draws from such words.
Why: a draw is a pure function of the state (``graph.ops.draws``), so a graph may draw Python's own stream.

The generator is the Mersenne Twister (M. Matsumoto and T. Nishimura, 1998): an index, and 624 words of 32 bits. That
CPython keeps them so, right after an object's header, is private to it, and is checked before it is used
(``is_known``).
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tcompile import process

NAME = "Random"
LENGTH = 624  # words of 32 bits, after the index
WORDS = (4 * LENGTH + 4 + 7) // 8
_OWN_ATTRIBUTES = {"gauss_next"}
_DRAWS = ("uniform", "randint", "randrange", "choice", "expovariate", "normalvariate", "gauss", "_randbelow")
_INHERITED = ("random", "getrandbits")
_methods: list[tuple[Any, ...]] = []  # those of the class, once they were seen to be Python's own
_held: weakref.WeakKeyDictionary[Any, Held] = weakref.WeakKeyDictionary()
# Added to a state, they give that of another stream, and the same. The low half of the first word, the index, stays.
_OTHERS = np.zeros((2, WORDS), np.uint64)
_OTHERS[0] = np.uint64(0x9E3779B97F4A7C15) * np.arange(1, WORDS + 1, dtype=np.uint64)
_OTHERS[0, 0] &= np.uint64(0xFFFFFFFF00000000)
_shown = ctypes.c_uint64 * WORDS


def is_python_generator(value: object) -> bool:
    """Whether it is a ``random.Random``, and of no subclass.

    >>> import random
    >>> is_python_generator(random.Random(1)), is_python_generator(random.SystemRandom())
    (True, False)
    """
    module = sys.modules.get("random")  # not everybody needs it
    return module is not None and type(value) is module.Random


def is_shared(generator: object) -> bool:
    """Whether it is the generator that the functions of ``random`` draw from."""
    return getattr(sys.modules["random"].random, "__self__", None) is generator


def _address(generator: Any) -> int:
    return id(generator) + object.__basicsize__


def words_of(generator: Any) -> Any:
    """The words of the state, as an array that aliases them."""
    shown: Any = _shown.from_address(_address(generator))
    shown.keeps = generator
    return np.frombuffer(shown, np.uint64)


class Held:
    """A block in which compiled code has a generator's state, one thread at a time, in the array ``taken``.

    Plain Python asks for no lock before it draws. So another thread, or a signal handler, meanwhile draws from another
    stream: it would get the numbers of a running loop else.
    """

    lock = process.lock()  # one is enough for all generators: draws are short

    def __init__(self, words: Any) -> None:
        self.words, self.taken = words, np.zeros_like(words)
        self.both = as_strided(words, (2, WORDS), (self.taken.ctypes.data - words.ctypes.data, 8))
        self.outer: list[Any] = []  # of the blocks around this one, which signal handlers have interrupted

    def __enter__(self) -> None:
        self.lock.acquire()
        self.outer.append(self.taken.copy() if self.outer else self.taken)
        # One call of NumPy's for both: no handler may draw in between.
        np.add(self.words, _OTHERS, out=self.both)

    def __exit__(self, *_: object) -> None:
        self.words[:] = self.taken
        self.taken[:] = self.outer.pop()
        self.lock.release()


def has_pythons_methods(generator: Any) -> bool:
    """Whether a generator draws by Python's own methods: neither the instance nor the class has got others."""
    return is_python_generator(generator) and generator.__dict__.keys() == _OWN_ATTRIBUTES and _are_pythons()


def _are_pythons() -> bool:
    held = vars(sys.modules["random"].Random)
    found = tuple(map(held.get, (*_DRAWS, *_INHERITED)))
    if not _methods and all(getattr(one, "__module__", "") == "random" for one in found[: len(_DRAWS)]):
        _methods.append((*found[: len(_DRAWS)], *(None for _ in _INHERITED)))
    return _methods[:1] == [found]


def taken_from(generator: Any) -> Any:
    """The array that holds a generator's state while compiled code draws. Raises TypeError for other methods."""
    if not has_pythons_methods(generator):
        raise TypeError(f"{generator!r} draws by other methods than Python's")
    return held(generator).taken


def held(generator: Any) -> Held:
    """The block of a generator."""
    found = _held.get(generator)
    if found is None:  # it does not keep the generator alive
        shown: Any = _shown.from_address(_address(generator))
        found = _held.setdefault(generator, Held(np.frombuffer(shown, np.uint64)))
    return found


def drawn(words: Any, name: str, given: Sequence[Any]) -> Any:
    """The result of a draw; ``words`` become the next state's.

    >>> import random
    >>> generator = random.Random(1)
    >>> words = words_of(generator).copy()
    >>> drawn(words, "random", ()) == generator.random()
    True
    """
    generator, own = _own.found
    own[:] = words
    try:
        return (generator.random if name == "random" else generator._randbelow)(*given)
    finally:
        words[:] = own


@lru_cache
def is_known() -> bool:
    """Whether CPython keeps the state as assumed, and draws from it as machine code does."""
    import random

    if sys.byteorder != "little" or object.__basicsize__ + 8 * WORDS > random.Random.__basicsize__:
        return False
    generator: Any = random.Random(1)
    words = words_of(generator).view(np.uint32)[: 1 + LENGTH]
    numbers = words.tolist()
    for _ in range(LENGTH // 8):  # the words are made anew meanwhile
        for count in (1, 10, 1 << 31, (1 << 32) + 1, (1 << 62) - 1):
            if _below(numbers, count) != generator._randbelow(count):
                return False
        if (_next(numbers) >> 5 << 26 | _next(numbers) >> 6) / (1 << 53) != generator.random():
            return False
    _, state, _ = generator.getstate()
    return bool(numbers == words.tolist() == [state[-1], *state[:-1]])


def _below(numbers: list[int], count: int) -> int:
    """A number below ``count``: as many bits as it has, until they are below it."""
    bits = count.bit_length()
    while True:
        found = _next(numbers)
        found = found >> 32 - bits if bits <= 32 else found | _next(numbers) >> 64 - bits << 32
        if found < count:
            return found


def _next(numbers: list[int]) -> int:
    """The next 32 bits; ``numbers`` are the index and the words."""
    if numbers[0] >= LENGTH:
        words = numbers[1:]
        for n in range(LENGTH):
            mixed = words[n] & 0x80000000 | words[(n + 1) % LENGTH] & 0x7FFFFFFF
            words[n] = words[(n + 397) % LENGTH] ^ mixed >> 1 ^ (0x9908B0DF if mixed & 1 else 0)
        numbers[:] = 0, *words
    numbers[0] += 1
    found = numbers[numbers[0]]
    found ^= found >> 11
    found ^= found << 7 & 0x9D2C5680
    found ^= found << 15 & 0xEFC60000
    return found ^ found >> 18


class _Own(threading.local):
    """A thread's own generator, which draws from the words of others, and its words."""

    @cached_property
    def found(self) -> tuple[Any, Any]:
        """Both, made when they are needed."""
        import random

        generator = random.Random(1)
        return generator, words_of(generator)


_own = _Own()

__all__ = [
    "LENGTH", "NAME", "WORDS", "Held", "drawn", "has_pythons_methods", "held", "is_known", "is_python_generator",
    "is_shared", "taken_from", "words_of",
]  # fmt: skip
