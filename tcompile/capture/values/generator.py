"""Generators whose functions are followed.

Input: a generator's frame. Output: a value that is iterated over and sent to as a generator is. Why: a followed frame
stops at each yield, and goes on when the next value is asked for.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence

from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.callable import BuiltinMethod, IteratorValue
from tcompile.capture.values.constant import Constant
from tcompile.frontends.base import CannotCapture


class GeneratorValue(IteratorValue):
    """A generator whose function is followed; ``resume`` runs its frame to the next yield."""

    def __init__(self, tx: Context, resume: Callable[[Value | None], tuple[Value, bool]]) -> None:
        super().__init__(tx, iter(()))
        self._resume = resume
        self._started = self._running = False
        self.result: Value | None = None  # when it has returned

    @property
    def python_type(self) -> type:
        """Always generator."""
        return types.GeneratorType

    def __next__(self) -> Value:
        value = self.send(Constant(None))
        if value is None:
            raise StopIteration
        return value

    def send(self, sent: Value) -> Value | None:
        """``generator.send(sent)``: what it yields; None where it returns, or has returned before."""
        self.tx.touch()
        self.taken += 1
        if self._running:
            raise CannotCapture("operation-raises", "generator already executing")
        if self.result is not None:
            return None
        if not self._started and not sent.is_none:
            raise CannotCapture("operation-raises", "can't send non-None value to a just-started generator")
        self._running = True
        value, yielded = self._resume(sent if self._started else None)
        self._running, self._started = False, True
        if not yielded:
            self.result = value
        return value if yielded else None

    def attribute(self, tx: Context, name: str) -> Value:
        """The methods of a generator."""
        if name in ("send", "close", "__next__", "__iter__"):
            return BuiltinMethod(self, name)
        return super().attribute(tx, name)

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """send, close, ``__next__`` and ``__iter__``."""
        if kwargs or len(args) != (name == "send"):
            return super().method(tx, name, args, kwargs)
        if name == "__iter__":
            return self
        if name == "close":  # nothing to clean up: generators with try or with in them are not followed
            tx.touch()
            self.result = self.result or Constant(None)
            return Constant(None)
        value = self.send(args[0] if args else Constant(None))
        if value is None:
            raise CannotCapture("operation-raises", "StopIteration")
        return value


__all__ = ["GeneratorValue"]
