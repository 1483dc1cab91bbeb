"""Programs after public reports, run plain and compiled.

Input: functions with the number of a report, one sentence about its situation, and arguments.
Output: an AssertionError if a compiled program is distinguishable from plain Python.
Why: this compiler may have another compiler's fault, too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from differential import ULP, Picture, Run, assert_same_picture, assert_same_run

import tcompile

REPOSITORIES = {"numba": "numba/numba", "pytorch": "pytorch/pytorch", "jax": "jax-ml/jax"}
CALLS = 3  # the second hit of an entry and all later ones are machine code's
STANCES = ("default", "eager_then_compile")

Case = Callable[[], tuple[Any, ...]]


class Table:
    """The programs of one kind, by the numbers of their reports."""

    def __init__(self) -> None:
        self.situations: dict[str, str] = {}
        self._checks: dict[str, Callable[[], None]] = {}

    @property
    def numbers(self) -> list[str]:
        """The ids of the reports: repository and number."""
        return list(self._checks)

    def check(self, number: str) -> None:
        """Raises AssertionError where the program of a report differs between plain and compiled."""
        self._checks[number]()

    def calls(self, number: str, *cases: Case, ulp: float = ULP) -> Callable[[Any], Any]:
        """Adds a function that is called with each of the cases, in both orders."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            def check() -> None:
                for stance, order in zip(STANCES, (cases, cases[::-1]), strict=True):
                    tcompile.reset()
                    compiled = tcompile.compile(function)
                    for case in [case for _ in range(CALLS) for case in order]:
                        want = Run(function, case())
                        with _under(stance):
                            got = Run(compiled, case())
                        assert_same_run(got, want, ulp=ulp)

            self._add(number, function, check)
            return function

        return add

    def session(self, number: str) -> Callable[[Any], Any]:
        """Adds a program that gets a decorator: one that does nothing, then the compiler's."""

        def add(program: Callable[..., Any]) -> Callable[..., Any]:
            def check() -> None:
                for stance in STANCES:
                    tcompile.reset()
                    want = Run(program, (_plain,))
                    with _under(stance):
                        got = Run(program, (tcompile.compile,))
                    assert_same_picture(Picture(got.value), Picture(want.value))
                    want.value = got.value = None
                    assert_same_run(got, want)

            self._add(number, program, check)
            return program

        return add

    def _add(self, number: str, function: Callable[..., Any], check: Callable[[], None]) -> None:
        assert number not in self._checks and number.split("-")[0] in REPOSITORIES, number
        assert function.__doc__ and "\n" not in function.__doc__, f"{number}: one line says what the situation is"
        self.situations[number] = function.__doc__
        self._checks[number] = check


def _under(stance: str) -> AbstractContextManager[Any]:
    """A stance in force; calls are machine code's in the default one, where no block sets it."""
    return nullcontext() if stance == "default" else tcompile.set_stance(stance)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
