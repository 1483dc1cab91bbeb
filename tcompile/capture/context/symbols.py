"""Symbols: the sizes and ints of arguments that compiled code takes as they come.

Input: sizes, ints and lengths, with their sources.
Output: a symbol for each, and the guards that it needs.
Why: guards, the entry program and error texts all need the meaning of a symbol.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tcompile.annotations.marks import AxisMark, not_dynamic
from tcompile.capture.guards.dynamic_shapes import Profile
from tcompile.capture.guards.prologue import Prologue
from tcompile.capture.guards.sources import ComputedSource, SizeSource, Source
from tcompile.graph.sizes import ShapeEnv, SymInt
from tcompile.observe.source_location import UserLine


class Symbols:
    """The symbols of one capture.

    Attributes:
        texts: the meaning of each symbol, as a user would write it.
        numbers: the symbols of Python ints, with their sources.
    """

    def __init__(
        self,
        env: ShapeEnv,
        prologue: Prologue,
        profile: Profile,
        dynamic: bool | None,
        user_stack: Callable[[], tuple[UserLine, ...]],
    ) -> None:
        self.env = env
        self.prologue = prologue
        self.profile = profile
        self.dynamic = dynamic
        self.user_stack = user_stack
        self.texts: dict[str, str] = {}
        self.numbers: dict[str, tuple[SymInt, Source]] = {}
        self.measured: dict[Source, SymInt] = {}  # the open lengths of lists
        self.marked: dict[str, str] = {}  # symbols that must stay open, and the user's text for them

    def of_size(self, size: int, source: Source, axis: int, mark: AxisMark | None = None) -> SymInt:
        """A symbol for one size of the array at ``source``. Equal sizes share a symbol, under a guard."""
        env = self.env
        variable = self.prologue.load(source)
        text = f"{source.text}.shape[{axis}]"
        symbol = next((SymInt(env, {(n,): 1}) for n, h in env.hints.items() if h == size and env.minimum[n]), None)
        if symbol is not None:
            self.prologue.guard(
                ComputedSource(f"{{0}}.shape[{axis}]", (source,)), f"{{}} == {symbol}",
                f"{text} == {self.texts[str(symbol)]}", "the same size", "same size",
            )  # fmt: skip
        else:
            symbol = env.symbol(size, minimum=2, stands_for=("size", size))
            self.texts[str(symbol)] = text
            self.prologue.assign(str(symbol), f"{variable}.shape[{axis}]")
            self.prologue.guard(
                SizeSource(str(symbol)), "{} >= 2", f"{text} >= 2", ">= 2", "least size",
            )  # fmt: skip
        if mark is not None:
            self._bound(symbol, text, mark)
        return symbol

    def _bound(self, symbol: SymInt, text: str, mark: AxisMark) -> None:
        """Applies the user's statements about a size: its bounds, and that it must stay open."""
        env, name = self.env, str(symbol)
        if mark.minimum is not None and mark.minimum > (env.minimum[name] or 0):
            env.minimum[name] = mark.minimum
            self.prologue.guard(
                SizeSource(name), f"{{}} >= {mark.minimum}", f"{text} >= {mark.minimum}", f">= {mark.minimum}",
                "marked size",
            )  # fmt: skip
        if mark.maximum is not None and mark.maximum < env.maximum.get(name, mark.maximum + 1):
            env.maximum[name] = mark.maximum
            self.prologue.guard(
                SizeSource(name), f"{{}} <= {mark.maximum}", f"{text} <= {mark.maximum}", f"<= {mark.maximum}",
                "marked size",
            )  # fmt: skip
        if mark.kind == "dynamic":
            self.marked[name] = text
            env.on_guard = self._check_marked

    def _check_marked(self, relation: str) -> None:
        """Raises InvalidArgument where the guards leave one size only to an axis that is marked as dynamic."""
        names = set(re.findall(r"\bs\d+\b", relation))
        if not (self.env.guards[relation] and "==" in relation and len(names) == 1):
            return
        (name,) = names
        size = self.env.hints[name]
        others = (eval(relation, {name: other}) for other in range(2, size + 64) if other != size)
        if name in self.marked and not any(others):
            text = self.marked[name]
            raise not_dynamic(text, f"{text} == {size}", self.user_stack())

    def of_number(self, value: int, source: Source) -> SymInt:
        """A symbol for the Python int at ``source``."""
        symbol = self.env.symbol(value, stands_for=source)
        self.texts[str(symbol)] = source.text
        self.numbers[str(symbol)] = (symbol, source)
        self.prologue.assign(str(symbol), self.prologue.load(source))
        return symbol

    def of_length(self, length: int, source: Source) -> SymInt | None:
        """A symbol for the length of the list at ``source``; None where it has not been seen to vary."""
        known = self.measured.get(source)
        if known is None:
            place = ComputedSource("len({0})", (source,))
            if not self.profile.is_open(place.text, length, self.dynamic):
                return None
            known = self.measured[source] = self.of_number(length, place)
        return known

    def readable(self, expression: str) -> str:
        """An expression over symbols in the user's terms."""
        return readable(expression, self.texts)


def readable(expression: str, texts: Mapping[str, str]) -> str:
    """An expression over symbols, each as the text that a user would write for it."""
    return re.sub(r"\bs\d+\b", lambda m: texts.get(m.group(), m.group()), expression)


__all__ = ["Symbols", "readable"]
