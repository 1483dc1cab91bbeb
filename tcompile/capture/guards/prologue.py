"""The prologue: the guards of an entry, as an ordered program of loads and checks.

Input: ``guard(source, …)`` calls while capture runs.
Output: steps that the entry program runs in order (a check of ``x`` comes before a load of ``x.w``), and that a report
can run one by one to find the failed check.
Why: the text that runs is the text that is explained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from tcompile.callers import raise_if_callers
from tcompile.capture.guards.kinds import KINDS
from tcompile.capture.guards.sources import Source
from tcompile.graph.names import quoted
from tcompile.records import dataclass


@dataclass(frozen=True)
class Guard:
    """A predicate on a source.

    ``code`` is a Python expression over entry variables and constants; ``text`` is what a person reads
    (``x.shape == (3, 4)``); ``kind``, a name of ``KINDS``, says how what was found is shown and how the recompile is
    avoided, unless ``advice`` says so.
    """

    source: Source
    code: str
    text: str
    expected: str
    kind: str = "value"
    advice: str = ""


def texts(guards: Iterable[Guard]) -> list[str]:
    """What people read of guards: what the module of a library is to hold is one line."""
    found: list[str] = []
    names: dict[str, list[str]] = {}
    for guard in guards:
        if guard.kind == "library":
            names.setdefault(guard.source.text, []).append(guard.expected)
        else:
            found.append(guard.text)
    for module, held in names.items():
        one = len(held) == 1
        found.append(f"{module}.{held[0]} is unchanged" if one else f"{module}: {', '.join(held)} are unchanged")
    return found


_NAME = re.compile(r"\b[^\W\d]\w*")


@dataclass(frozen=True)
class LoadStep:
    """Assigns a variable of the entry program."""

    variable: str
    code: str
    source: Source | None = None


@dataclass(frozen=True)
class GuardFailure:
    """Which guard did not hold, and what was there instead."""

    guard: Guard | None
    seen: str

    def __str__(self) -> str:
        advice = self.guard.advice if self.guard is not None else ""
        return f"{self.text}\n  Hint: {advice}" if advice else self.text

    @property
    def text(self) -> str:
        """The failure without the advice."""
        if self.guard is None:
            return self.seen
        if self.guard.expected in self.guard.text:
            return f"{self.guard.text}, got {self.seen}"
        if self.guard.kind in ("question", "identity"):
            return f"{self.guard.text} does not hold"
        return f"{self.guard.text} (expected {self.guard.expected}, got {self.seen})"


@dataclass
class Prologue:
    """The guards of one entry in the order in which they were needed, with the loads they need."""

    steps: list[LoadStep | Guard] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    _variables: dict[Source, str] = field(default_factory=dict)
    _constant_names: dict[int, str] = field(default_factory=dict)
    _codes: set[str] = field(default_factory=set)
    _count: int = 0  # of variables

    @property
    def guards(self) -> list[Guard]:
        """The checks alone."""
        return [step for step in self.steps if isinstance(step, Guard)]

    def load(self, source: Source) -> str:
        """The variable that holds the value of ``source``, loading it on first use."""
        variable = self._variables.get(source)
        if variable is None:
            code = source.expression(self.load, self.constant)
            variable = f"v{self._count}"
            self._count += 1
            self._variables[source] = variable
            self.steps.append(LoadStep(variable, code, source))
        return variable

    def constant(self, value: Any) -> str:
        """The name under which the entry program holds ``value``."""
        name = self._constant_names.get(id(value))
        if name is None:
            name = f"K{len(self.constants)}"
            self.constants[name] = value
            self._constant_names[id(value)] = name
        return name

    def assign(self, variable: str, code: str) -> None:
        """Adds an assignment (a symbol bound to a size)."""
        self.steps.append(LoadStep(variable, code))

    def guard(
        self, source: Source, code: str, text: str, expected: str, kind: str = "value", *, advice: str = ""
    ) -> None:
        """Adds a check; ``{}`` in ``code`` stands for the variable that holds the source's value.

        The user's names in it are ``quoted``. ``advice`` takes the place of the kind's own.
        """
        filled = code.replace("{}", self.load(source))
        if filled not in self._codes:
            self._codes.add(filled)
            self.steps.append(Guard(source, filled, text, expected, kind, advice))

    def guard_binding(
        self, source: Source, namespace: dict[str, Any], name: str, text: str, expected: str, kind: str
    ) -> None:
        """Adds the check that a known dict still holds what it holds under this name."""
        code = f"{self.constant(namespace)}[{quoted(name)}] is {self.constant(namespace[name])}"
        self.guard(source, code, text, expected, kind)

    def shorten(self, count: int) -> None:
        """Takes back all but the first ``count`` steps: what they were for has not been captured after all."""
        for step in self.steps[count:]:
            if isinstance(step, Guard):
                self._codes.discard(step.code)
            elif step.source is not None:
                del self._variables[step.source]
        del self.steps[count:]

    def loosen(self, source: Source, code: str, looser: str, text: str, expected: str, kind: str) -> None:
        """Puts a looser check in the place of a check that asks for more than was used, where that is still there."""
        variable = self._variables.get(source)
        if variable is None:
            return
        filled = code.replace("{}", variable)
        for position, step in enumerate(self.steps):
            if isinstance(step, Guard) and step.code == filled:
                self.steps[position] = Guard(source, looser.replace("{}", variable), text, expected, kind)

    def failures(self, parameters: Mapping[str, Any]) -> Iterator[GuardFailure]:
        """Runs the steps one by one on the values of a call, and yields each guard that does not hold.

        What depends on a variable whose guard has failed is left out: it could run code of the user's.
        """
        variables: dict[str, Any] = dict(parameters)
        failed: set[str] = set()
        for step in self.steps:
            needs = _NAME.findall(step.code)
            if not failed.isdisjoint(needs):
                if isinstance(step, LoadStep):
                    failed.add(step.variable)
                continue
            try:
                found = eval(step.code, self.constants, variables)
                holds = isinstance(step, LoadStep) or bool(found)
            except Exception as error:
                raise_if_callers(error)
                if isinstance(step, LoadStep):
                    failed.add(step.variable)
                    where = step.source.text if step.source is not None else step.code
                    yield GuardFailure(None, f"{where} cannot be read: {type(error).__name__}: {error}")
                    continue
                holds = False
            if isinstance(step, LoadStep):
                variables[step.variable] = found
            elif not holds:
                failed.add(self._variables[step.source])
                yield _failure(step, variables.get(self._variables[step.source]))


def _failure(guard: Guard, found: Any) -> GuardFailure:
    kind = KINDS[guard.kind]
    try:
        seen = kind.show(found)
        advice = guard.advice or kind.advise(guard.source.text, guard.expected, found)
    except Exception as error:  # an object that answers in strange ways
        raise_if_callers(error)
        seen, advice = f"an object of class {type(found).__qualname__}", guard.advice
    return GuardFailure(replace(guard, advice=advice), f"another {seen}" if seen == guard.expected else seen)
