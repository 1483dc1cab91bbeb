"""Symbolic sizes: integers that a graph leaves open.

Input: arithmetic on ``SymInt`` values by type rules and frontends.
Output: canonical polynomials whose text is a Python expression over symbol names.
Why: a graph for a *size that varies* carries ``s0`` where a static graph carries ``4096``, and every comparison of such
a size ("is it 1?") becomes a guard.

A ``SymInt`` is a polynomial with integer coefficients over atoms; an atom is a symbol, or a floor division or remainder
that does not simplify. Two sizes are provably equal exactly when their polynomials are equal. Comparisons that the
polynomials cannot decide are answered by the hint (the value seen at capture) and recorded in the ``ShapeEnv``; a
frozen environment, as it is after capture, refuses them instead. A polynomial that would grow without bounds, as ``k =
k * k % 7`` does in unrolled iterations, is fixed to its hint likewise.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias, Union

from tcompile.records import dataclass

Size: TypeAlias = Union[int, "SymInt"]
_Monomial: TypeAlias = tuple[str, ...]  # atom texts, sorted; () is the constant term
_Range: TypeAlias = tuple[int | None, int | None]  # the bounds

# The limits of a division's characters, a sum's terms, and a product's factors: a larger size is fixed to its hint.
# Divisions are in brackets, of which Python parses no more than two hundred nested ones.
_LONGEST, _MOST_TERMS, _MOST_FACTORS = 500, 256, 32


class UnprovableSizeError(Exception):
    """A comparison of symbolic sizes that a frozen environment can neither prove nor guard."""


class VariesInLoop(UnprovableSizeError):
    """A comparison of a loop's induction variable with different answers in different iterations."""


class VariesUnevenly(VariesInLoop):
    """The same for a divided induction variable: its answers are periodic."""


@dataclass(frozen=True)
class Division:
    """The quotient (``//``) or the remainder (``%``) of a division that does not simplify, with Python's rounding."""

    left: SymInt
    sign: str
    right: Size

    def __call__(self, values: Mapping[str, int]) -> int:
        """Its value where the symbols have these values."""
        if values is self.left.env.hints:  # repeated for nested divisions
            a, b = self.left.hint, hint(self.right)
        else:
            a, b = self.left.evaluate(values), evaluate(self.right, values)
        return a // b if self.sign == "//" else a % b

    def replaced(self, name: str, value: Size) -> Size:
        """The division with an expression in the place of a symbol."""
        left, right = self.left.replaced(name, value), self.right
        right = right.replaced(name, value) if isinstance(right, SymInt) else right
        return left // right if self.sign == "//" else left % right


@dataclass
class ShapeEnv:
    """The symbols of one capture, their hints, and the assumptions about them.

    Symbols made by ``symbol`` are assumed to be at least ``minimum`` (2 for array sizes, because 0 and 1 are
    specialised; nothing for Python ints), and at most ``maximum``. ``guards`` are relations between sizes, over the
    names of symbols, with the assumption: whether they hold. ``on_guard`` is called with each new one. ``counters`` has
    the first and the last value of each induction variable: a comparison of one must have the same answer in all
    iterations. ``facts`` are bounds of an atom that follow from guards, by the guards' texts: those of removed guards
    are void. ``names`` has the names of symbols, by what they stand for: where several captures of the same code share
    it, a name has one meaning in all. ``closed``: the entry is written, and no guard can be added any more.
    """

    hints: dict[str, int] = field(default_factory=dict)
    minimum: dict[str, int | None] = field(default_factory=dict)
    maximum: dict[str, int] = field(default_factory=dict)  # for symbols with one
    guards: dict[str, bool] = field(default_factory=dict)
    frozen: bool = False
    closed: bool = False
    atoms: dict[str, Division] = field(default_factory=dict)
    on_guard: Callable[[str], None] | None = None
    counters: dict[str, tuple[Size, Size]] = field(default_factory=dict)
    facts: dict[str, dict[str, _Range]] = field(default_factory=dict)
    names: dict[Any, str] = field(default_factory=dict)

    def symbol(
        self, hint: int, minimum: int | None = None, maximum: int | None = None, stands_for: Any = None
    ) -> SymInt:
        """Makes a new symbol ``s0``, ``s1``, … with the value seen at capture."""
        number = 0  # among symbols that stand for the same
        while (name := self.names.setdefault((stands_for, number), f"s{len(self.names)}")) in self.hints:
            number += 1
        self.hints[name] = hint
        self.minimum[name] = minimum
        if maximum is not None:
            self.maximum[name] = maximum
        return SymInt(self, {(name,): 1})

    def counter(self, last: Size, stands_for: Any = None) -> SymInt:
        """Makes the symbol of an induction variable, from 0 to ``last``."""
        made = self.symbol(hint(last) // 2, 0, last if isinstance(last, int) else None, stands_for)
        self.counters[str(made)] = 0, last
        return made

    def end_at(self, counter: SymInt, last: int) -> None:
        """Notes that a loop ends at an earlier value of its induction variable than was said."""
        (name,) = counter.names
        self.counters[name] = 0, last
        self.maximum[name] = last

    def adopt(self, size: Size) -> Size:
        """Converts a size of another capture of the same code, with the same symbol names, to one of this capture."""
        if isinstance(size, int):
            return size
        for name, value in size.env.atoms.items():
            self.atoms.setdefault(name, value)
        return SymInt(self, size.terms)

    def decide(self, text: str, hint: bool) -> bool:
        """Answers a comparison by its hint and records it; by existing guards where none can be added."""
        if self.counters and not self.counters.keys().isdisjoint(re.findall(r"\w+", text)):
            raise VariesInLoop(f"{text} is not the same in all iterations of the loop")
        if self.frozen:
            if text not in self.guards:
                raise UnprovableSizeError(f"cannot prove {text}")
            return self.guards[text]
        if text not in self.guards:
            self.guards[text] = hint
            if self.on_guard is not None:
                self.on_guard(text)
        return hint

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """A block in which questions become guards after capture, too, as long as the entry is not written.

        >>> env = ShapeEnv(frozen=True)
        >>> n = env.symbol(5, minimum=2)
        >>> with env.asking():
        ...     n - 1 == 1, env.guards
        (False, {'s0 - 2 == 0': False})
        """
        before, self.frozen = self.frozen, self.closed
        try:
            yield
        finally:
            self.frozen = before

    def range_of(self, atom: str) -> _Range:
        """The bounds of an atom (None: unbounded), by assumptions and by guards.

        >>> env = ShapeEnv()
        >>> n = env.symbol(5)
        >>> n - 1 >= 0, n < 9, env.range_of("s0"), n >= 0, env.guards
        (True, True, (1, 8), True, {'s0 - 1 >= 0': True, 's0 - 9 < 0': True})
        """
        low, high = self.minimum.get(atom), self.maximum.get(atom)
        for text, (least, most) in self.facts.get(atom, {}).items():
            if text in self.guards:
                low = least if low is None or (least is not None and least > low) else low
                high = most if high is None or (most is not None and most < high) else high
        return low, high


class SymInt:
    """An integer known only at run time, as a polynomial over the symbols of one ``ShapeEnv``.

    >>> env = ShapeEnv()
    >>> n = env.symbol(5, minimum=2)
    >>> print((n + 1) * n - n, n // n, n == 0)
    s0*s0 1 False
    >>> n > 3, env.guards
    (True, {'s0 - 3 > 0': True})
    """

    __slots__ = ("_hint", "_names", "env", "terms")

    def __init__(self, env: ShapeEnv, terms: Mapping[_Monomial, int]) -> None:
        self.env = env
        self._names: frozenset[str] | None = None
        self._hint: int | None = None
        self.terms = {m: c for m, c in sorted(terms.items(), key=_order) if c}

    # -- value -----------------------------------------------------------------------------------------------
    @property
    def hint(self) -> int:
        """The value this size had at capture."""
        if self._hint is None:
            self._hint = self.evaluate(self.env.hints)
        return self._hint

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value under ``values``, a mapping from symbol names to ints."""
        total = 0
        for monomial, coefficient in self.terms.items():
            product = coefficient
            for atom in monomial:
                if atom in self.env.atoms:
                    product *= self.env.atoms[atom](values)
                else:
                    product *= values[atom]
            total += product
        return total

    def specialise(self) -> int:
        """Fixes this size to its hint, recording the guard, and returns it."""
        self.env.decide(f"{self} == {self.hint}", True)
        return self.hint

    def as_int(self) -> int | None:
        """The value where it does not depend on any symbol, else None."""
        if not self.terms:
            return 0
        return self.terms[()] if set(self.terms) == {()} else None

    def symbols(self) -> set[str]:
        """The names of the atoms that occur."""
        return {atom for monomial in self.terms for atom in monomial}

    @property
    def names(self) -> frozenset[str]:
        """The symbols that it depends on, those in divisions included."""
        if self._names is None:
            self._names = frozenset(re.findall(r"[A-Za-z_]\w*", " ".join(self.symbols())))
        return self._names

    def counters(self) -> list[str]:
        """The induction variables in it, the innermost loop's first."""
        if not self.env.counters:
            return []
        found = self.env.counters.keys() & self.names
        return [name for name in reversed(self.env.counters) if name in found]

    def varies_unevenly(self) -> bool:
        """Whether an induction variable is divided in it."""
        return any(atom in self.env.atoms for atom in self.symbols()) and bool(self.counters())

    def at(self, name: str, value: Size) -> Size:
        """The size where ``name`` has ``value``. Raises VariesInLoop where the symbol is part of a division."""
        total: Size = 0
        for monomial, coefficient in self.terms.items():
            term: Size = coefficient
            for atom in monomial:
                if atom != name and name in re.findall(r"\w+", atom):
                    raise VariesUnevenly(f"{atom} is not the same in all iterations of the loop")
                term = term * (value if atom == name else SymInt(self.env, {(atom,): 1}))
            total = total + term
        return total

    def replaced(self, name: str, value: Size) -> Size:
        """The size with an expression in the place of a symbol, in divisions too.

        >>> env = ShapeEnv()
        >>> n, m = env.symbol(7), env.symbol(4)
        >>> ((n + 1) // 2 + n).replaced("s0", m * 2)
        ((2*s1 + 1) // (2)) + 2*s1
        """
        total: Size = 0
        for monomial, coefficient in self.terms.items():
            term: Size = coefficient
            for atom in monomial:
                division = self.env.atoms.get(atom)
                if division is not None and name in re.findall(r"\w+", atom):
                    term = term * division.replaced(name, value)
                else:
                    term = term * (value if atom == name else SymInt(self.env, {(atom,): 1}))
            total = total + term
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms.items():
            magnitude = abs(coefficient)
            factors = ([] if magnitude == 1 and monomial else [str(magnitude)]) + list(monomial)
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {'*'.join(factors)}" if text else ("-" if sign == "-" else "") + "*".join(factors)
        return text or "0"

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(tuple(self.terms.items()))

    # -- arithmetic ------------------------------------------------------------------------------------------
    def _with(self, terms: Mapping[_Monomial, int]) -> Size:
        result = SymInt(self.env, terms)
        known = result.as_int()
        return result if known is None else known

    def _bounded(self, result: Size, grown: bool) -> Size:
        """The result, fixed to its hint where it has grown too large and can still be fixed."""
        return result.specialise() if grown and isinstance(result, SymInt) and not self.env.frozen else result

    def __add__(self, other: Size) -> Size:
        if not isinstance(other, int | SymInt):
            return NotImplemented
        terms = dict(self.terms)
        for monomial, coefficient in _terms(other):
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return self._bounded(self._with(terms), len(terms) > _MOST_TERMS)

    __radd__ = __add__

    def __mul__(self, other: Size) -> Size:
        if not isinstance(other, int | SymInt):
            return NotImplemented
        terms: dict[_Monomial, int] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in _terms(other):
                m = tuple(sorted(m1 + m2))
                terms[m] = terms.get(m, 0) + c1 * c2
        grown = len(terms) > _MOST_TERMS or max(map(len, terms), default=0) > _MOST_FACTORS
        return self._bounded(self._with(terms), grown)

    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return self * -1

    def __pos__(self) -> Size:
        return self

    def __sub__(self, other: Size) -> Size:
        return self + -other if isinstance(other, int | SymInt) else NotImplemented

    def __rsub__(self, other: Size) -> Size:
        return -self + other

    def __floordiv__(self, other: Size) -> Size:
        return self._divide(other, "//")

    def __mod__(self, other: Size) -> Size:
        return self._divide(other, "%")

    def __rfloordiv__(self, other: int) -> Size:
        return SymInt(self.env, {(): other})._divide(self, "//")

    def __rmod__(self, other: int) -> Size:
        return SymInt(self.env, {(): other})._divide(self, "%")

    def _divide(self, other: Size, sign: str) -> Size:
        if not isinstance(other, int | SymInt):
            return NotImplemented
        if other == 0:
            raise ZeroDivisionError("integer modulo by zero" if sign == "%" else "integer division or modulo by zero")
        if isinstance(other, SymInt) and self == 0:
            return 0
        exact = self._exact_quotient(other)
        if exact is not None:
            return exact if sign == "//" else 0
        text = f"(({self}) {sign} ({other}))"
        self.env.atoms[text] = Division(self, sign, other)
        return self._bounded(SymInt(self.env, {(text,): 1}), len(text) > _LONGEST)

    def _exact_quotient(self, other: Size) -> Size | None:
        """``self // other`` where ``other`` is a single term that divides every term of ``self``."""
        terms = dict(_terms(other))
        if len(terms) != 1:
            one = isinstance(other, SymInt) and self.terms == other.terms
            return 1 if one else None
        ((monomial, coefficient),) = terms.items()
        quotient: dict[_Monomial, int] = {}
        for m, c in self.terms.items():
            rest = list(m)
            for atom in monomial:
                if atom not in rest:
                    return None
                rest.remove(atom)
            if c % coefficient:
                return None
            quotient[tuple(rest)] = c // coefficient
        return self._with(quotient)

    # -- comparisons -----------------------------------------------------------------------------------------------
    def _ask(self, other: object, sign: str) -> bool:
        if not isinstance(other, int | SymInt):
            return NotImplemented  # type: ignore[no-any-return]  # the comparison methods return it
        difference = self - other
        compare = _COMPARE[sign]
        if isinstance(difference, int):
            return compare(difference)
        low, high = difference.bounds()
        if low is not None:
            if sign == "==" and low > 0:
                return False
            if sign != "==" and compare(low) == compare(low + 1) == _COMPARE[sign](1):
                return compare(low)  # the answer can change at 0 only, and the difference stays above it
        if high is not None:
            if sign == "==" and high < 0:
                return False
            if sign != "==" and compare(high) == compare(high - 1) == _COMPARE[sign](-1):
                return compare(high)
        if self.env.counters:
            counters = difference.counters()
            if counters:
                return difference._ask_iterations(counters[0], sign)
        text = f"{difference} {sign} 0"
        if sign == "==" and self.env.frozen and text not in self.env.guards:
            text = f"{-difference} == 0"  # in the opposite order
        answer = self.env.decide(text, compare(difference.hint))
        if not self.env.frozen and sign != "==":
            difference._note(text, sign, answer)
        return answer

    def _note(self, text: str, sign: str, answer: bool) -> None:
        """Records the bound of the only atom that follows from the answer to ``self sign 0``."""
        (monomial, factor), *others = sorted(self.terms.items(), key=_order)
        if len(monomial) != 1 or any(rest for rest, _ in others):
            return
        constant = sum(value for _, value in others)
        is_above = (sign in (">", ">=")) is answer
        is_apart = (sign in ("<", ">")) is answer  # whether it cannot be 0
        bound = (is_apart if is_above else -is_apart) - constant  # of factor * atom
        least = is_above is (factor > 0)
        value = -(-bound // factor) if least else bound // factor
        self.env.facts.setdefault(monomial[0], {})[text] = (value, None) if least else (None, value)

    def _ask_iterations(self, name: str, sign: str) -> bool:
        """The answer to ``self sign 0`` in all iterations of ``name``'s loop.

        A size that is linear in the induction variable is bounded by its values in the first and in the last iteration.
        Where its direction is known, one end is enough: a loop that may have no iterations has none for which the other
        is wrong.
        """
        if any(monomial.count(name) > 1 for monomial in self.terms):
            raise VariesInLoop(f"{self} is not linear in the iterations of the loop")
        compare = _COMPARE[sign]
        first, last = (self.at(name, end) for end in self.env.counters[name])
        growing = [coefficient for monomial, coefficient in self.terms.items() if name in monomial]
        if len(growing) == 1 and (name,) in self.terms:
            least, most = (first, last) if growing[0] > 0 else (last, first)
            if sign == "==":
                if always(lambda: least > 0) or always(lambda: most < 0):
                    return False
            elif always(lambda: compare(least if compare(1) else most)):
                return True
            elif always(lambda: not compare(most if compare(1) else least)):
                return False
        elif sign == "==":
            if (first > 0 and last > 0) or (first < 0 and last < 0):
                return False
        elif compare(first) == compare(last):
            return compare(first)
        raise VariesInLoop(f"{self} {sign} 0 is not the same in all iterations of the loop")

    def bounds(self) -> _Range:
        """The bounds that follow from facts about the symbols (None: unbounded).

        A size that is linear in an induction variable is bounded by its values in the first and in the last iteration.

        >>> env = ShapeEnv()
        >>> n = env.symbol(5, minimum=2)
        >>> (n - env.counter(n - 1)).bounds()
        (1, None)
        """
        low, high = self._bounds_of_terms()
        if self.env.counters and self.counters():
            least, most = self._at_an_end(-1), self._at_an_end(1)
            low = low if least is None else _bound(least, 0)
            high = high if most is None else _bound(most, 1)
        return low, high

    def _bounds_of_terms(self) -> _Range:
        """The bounds without relations between the terms."""
        low: int | None = 0
        high: int | None = 0
        for monomial, coefficient in self.terms.items():
            least, most = self._range(monomial)
            if coefficient < 0:
                least, most = most, least
            low = None if least is None or low is None else low + coefficient * least
            high = None if most is None or high is None else high + coefficient * most
        return low, high

    def _at_an_end(self, sign: int) -> Size | None:
        """The size in those iterations in which it is the largest (``sign`` 1) or the least; None where that is
        unknown.

        A loop that may have no iterations has none for which the answer is wrong.
        """
        size: Size = self
        while isinstance(size, SymInt) and (counters := size.counters()):
            name = counters[0]
            growing = [coefficient for monomial, coefficient in size.terms.items() if name in monomial]
            if len(growing) != 1 or (name,) not in size.terms or size.varies_unevenly():
                return None
            first, last = self.env.counters[name]
            size = size.at(name, last if growing[0] * sign > 0 else first)
        return size

    def _range(self, monomial: _Monomial) -> _Range:
        """The bounds of a product of atoms, as far as they are known."""
        if len(monomial) == 1:
            return self.env.range_of(monomial[0])
        least: int | None = 1
        most: int | None = 1
        for atom in monomial:
            minimum, maximum = self.env.range_of(atom)
            known = minimum is not None and minimum >= 0
            least = least * minimum if known and minimum is not None and least is not None else None
            most = most * maximum if known and maximum is not None and most is not None else None
        return least, most

    def __eq__(self, other: object) -> bool:
        return self._ask(other, "==")

    def __ne__(self, other: object) -> bool:
        answer = self._ask(other, "==")
        return answer if answer is NotImplemented else not answer

    def __lt__(self, other: Size) -> bool:
        return self._ask(other, "<")

    def __le__(self, other: Size) -> bool:
        return self._ask(other, "<=")

    def __gt__(self, other: Size) -> bool:
        return self._ask(other, ">")

    def __ge__(self, other: Size) -> bool:
        return self._ask(other, ">=")

    def __bool__(self) -> bool:
        return not self._ask(0, "==")


_COMPARE: dict[str, Callable[[Any], bool]] = {
    "==": lambda d: d == 0,
    "<": lambda d: d < 0,
    "<=": lambda d: d <= 0,
    ">": lambda d: d > 0,
    ">=": lambda d: d >= 0,
}


def _order(item: tuple[_Monomial, int]) -> tuple[int, _Monomial]:
    return (-len(item[0]), item[0])


def counters_in(value: Any) -> set[str]:
    """The induction variables that sizes in a value depend on: in a path, a shape, or a size itself."""
    return {name for size in _sizes_in(value) for name in size.counters()}


def symbols_in(value: Any) -> set[str]:
    """The symbols that sizes in such a value depend on."""
    return {name for size in _sizes_in(value) for name in size.names}


def _sizes_in(value: Any) -> Iterator[SymInt]:
    if isinstance(value, SymInt):
        yield value
        return
    if isinstance(value, slice):
        value = value.start, value.stop, value.step
    if isinstance(value, tuple | list):
        for item in value:
            yield from _sizes_in(item)


def replace_sizes(value: Any, replace: Callable[[SymInt], Size]) -> Any:
    """A copy of ``value`` in which ``replace`` gives each symbolic int, also in tuples, lists, dicts and slices.

    >>> n = ShapeEnv().symbol(4)
    >>> replace_sizes((slice(None, n, 2), n + 1), lambda size: size.hint)
    (slice(None, 4, 2), 5)
    """
    if isinstance(value, SymInt):
        return replace(value)
    if type(value) in (tuple, list):
        return type(value)(replace_sizes(item, replace) for item in value)
    if isinstance(value, slice):
        return slice(*(replace_sizes(part, replace) for part in (value.start, value.stop, value.step)))
    if type(value) is dict:
        return {key: replace_sizes(item, replace) for key, item in value.items()}
    return value


def always(test: Callable[[], bool]) -> bool:
    """Whether ``test`` holds in all iterations of the enclosing loops, as far as that is known."""
    try:
        return test()
    except VariesInLoop:
        return False


def _bound(size: Size, number: int) -> int | None:
    return size.bounds()[number] if isinstance(size, SymInt) else size


def _terms(size: Size) -> Iterable[tuple[_Monomial, int]]:
    return size.terms.items() if isinstance(size, SymInt) else [((), size)]


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are provably equal; never records a guard."""
    if isinstance(a, SymInt) and isinstance(b, SymInt):
        return a.terms == b.terms
    return isinstance(a, int) and isinstance(b, int) and a == b


def same_shape(a: tuple[Size, ...], b: tuple[Size, ...]) -> bool:
    """Whether two shapes are provably equal; never records a guard."""
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


def is_one(size: Size) -> bool:
    """Whether a size is the literal 1 (a symbol of an array's size never is: 0 and 1 are specialised)."""
    return isinstance(size, int) and size == 1


def known_one(size: Size) -> bool:
    """Whether a size is one; for a symbolic one, by its existing guards. Never records a guard.

    >>> n = ShapeEnv().symbol(2)
    >>> known_one(n - 1), n - 1 == 1, known_one(n - 1)
    (False, True, True)
    """
    if not isinstance(size, SymInt):
        return is_one(size)
    return any(size.env.guards.get(f"{difference} == 0", False) for difference in (size - 1, 1 - size))


def may_be_one(size: Size) -> bool:
    """Whether a size of at least one is not provably above it (``n - 1`` of an axis of size ``n`` is not)."""
    return may_be(size, 1)


def may_be(size: Size, few: int) -> bool:
    """Whether a size is not provably above ``few``."""
    low = size.bounds()[0] if isinstance(size, SymInt) else size
    return low is None or low <= few


def guarded_one(size: Size) -> bool:
    """Whether a size is one; a symbolic one that may be is guarded."""
    if not isinstance(size, SymInt) or not may_be_one(size):
        return is_one(size)
    try:
        return size == 1
    except VariesInLoop:
        raise
    except UnprovableSizeError:  # after capture, where nothing depends on sizes that capture has not guarded
        return False


def may_be_empty(shape: Iterable[Size]) -> bool:
    """Whether a shape has an axis whose size is not provably above zero."""
    return any(may_be(size, 0) for size in shape)


def hint(size: Size) -> int:
    """The value of a size at capture."""
    return size.hint if isinstance(size, SymInt) else size


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The value of a size under the run-time ``values`` of the symbols."""
    return size.evaluate(values) if isinstance(size, SymInt) else size


def product(sizes: Iterable[Size]) -> Size:
    """The number of elements of a shape."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total
