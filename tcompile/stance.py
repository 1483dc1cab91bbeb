"""The stance: what compiled functions do when they are called.

Enters: ``set_stance`` as a statement, a ``with`` block or a decorator. Leaves: ``current()``, which the
runtime asks on each call. Exists so that a program can turn compilation off, forbid recompiles or change
the backend without touching the functions themselves.

There is one stance for the process, and each thread and each asyncio task may stand inside blocks of its
own. The blocks form a chain, innermost first, in a context variable, so that no other thread ever sees
them. A statement inside a block takes effect in the block and in the process; when the block ends, its
thread has again what it had before, and the rest of the process keeps what the statement set.
"""

from __future__ import annotations

import array
import functools
import inspect
import math
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar, final

from tcompile import process
from tcompile.callsite import kept_or_dropped
from tcompile.errors import InvalidArgument, InvalidType, StanceError, did_you_mean
from tcompile.observe import bus
from tcompile.observe.events import StanceChanged
from tcompile.observe.source_location import UserLine, format_stack
from tcompile.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])

STANCES: dict[str, str] = {
    "default": "compile where needed; with force_backend, through that backend",
    "force_eager": "run everything in plain Python",
    "eager_on_recompile": "use compiled code that fits the call, else plain Python; never compile",
    "fail_on_recompile": "use compiled code that fits the call, else raise RecompileError; never compile",
    "eager_then_compile": "first call in plain Python; the second compiles, with changed sizes left open",
    "aot_eager_then_compile": "the same, with the first call through the backend aot_eager",
}


@dataclass(frozen=True)
class Stance:
    """One stance. ``force_backend`` (a name or a callable) replaces the functions' own backend.

    ``skip_guard_eval_unsafe`` checks only those guards that tell a function's entries apart: faster, and
    wrong for calls of a kind that the function has not seen.
    """

    name: str = "default"
    force_backend: str | Callable[..., Any] | None = None
    skip_guard_eval_unsafe: bool = False

    def __str__(self) -> str:
        text = self.name
        if self.force_backend is not None:
            text += f", force_backend={_backend_name(self.force_backend)}"
        return f"{text}, skip_guard_eval_unsafe" if self.skip_guard_eval_unsafe else text


@dataclass(frozen=True, eq=False)
class _Block:
    """A block that this thread stands in: whose it is, its stance now, the stance before it, the one around
    it.

    ``statement`` is the epoch of the last statement made inside. A chain may end in a block with no owner,
    left by one that has ended: it holds until the next statement anywhere (``until``).
    """

    owner: set_stance | None
    stance: Stance
    before: Stance
    outer: _Block | None
    statement: int | None = None
    until: float = math.inf


DEFAULT = Stance()
_process = DEFAULT
departed = array.array("q", [0])  # 1 while the process has another stance: machine code reads it
_epoch = 0  # counts the statements
_lock = process.lock()
blocks: ContextVar[_Block | None] = ContextVar("tcompile_stance", default=None)


def check_backend(backend: str | Callable[..., Any]) -> None:
    """Refuses a backend that does not exist. ``api`` puts another in its place: backends are above this module."""


def current() -> Stance:
    """The stance that a call made here and now has to follow."""
    block = blocks.get()
    if block is not None and block.until >= _epoch:
        return block.stance
    return _process


@final
class set_stance:
    """Changes what compiled functions do: as a statement, a ``with`` block or a decorator.

    As a statement (also ``s = set_stance(...)`` and ``return set_stance(...)``) it holds for the whole
    process until the next one. As a ``with`` block or a decorator it holds in the current thread or task
    only, until the block or the function's call ends, however it ends; nothing that other threads see
    changes. An object made by ``s = set_stance(...)`` and then used in ``with s:`` or ``@s`` is no longer a
    statement: its effect on the process is taken back when the block is entered or the function decorated.
    In a generator, decorate the function rather than writing ``yield`` inside a ``with`` block, which the
    caller would stand in too.

    Stances: ``default``; ``force_eager`` (plain Python); ``eager_on_recompile`` (plain Python where no
    compiled code fits the call); ``fail_on_recompile`` (RecompileError there); ``eager_then_compile``
    (first call plain, the second compiles with changed sizes left open); ``aot_eager_then_compile`` (the
    same, first call through ``aot_eager``).

    ``force_backend``, the name of a backend that exists or a callable, goes with ``default`` only and replaces each
    function's own backend for the time. ``skip_guard_eval_unsafe`` checks only the guards that tell a
    function's entries apart.

    Raises InvalidArgument or InvalidType at once for what is not valid.

    >>> @set_stance("force_eager")
    ... def plainly():
    ...     return current().name
    >>> with set_stance("fail_on_recompile"):
    ...     plainly(), current().name
    ('force_eager', 'fail_on_recompile')
    >>> current().name
    'default'
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        self.stance = _checked(stance, skip_guard_eval_unsafe, force_backend)
        self._undo: _Undo | None = None
        try:
            caller = sys._getframe(1)
        except ValueError:  # called by the interpreter itself, say at exit: nothing can enter the value
            caller = None
        if caller is None or kept_or_dropped(caller):
            self._undo = _state(self.stance)

    # -- as a block --------------------------------------------------------------------------------
    def __enter__(self) -> set_stance:
        self._take_back()
        before = current()
        blocks.set(_Block(self, self.stance, before, _live()))
        _tell(self.stance, before, "block")
        return self

    def __exit__(self, *error: object) -> None:
        before = current()
        blocks.set(_without(_live(), self))
        _tell(current(), before, "block")

    # -- as a decorator ----------------------------------------------------------------------------
    def __call__(self, function: F) -> F:
        """Makes ``function`` run in this stance: plain functions, methods, coroutines and generators."""
        if isinstance(function, staticmethod | classmethod):
            return type(function)(self(function.__func__))
        if isinstance(function, type) or not callable(function):
            raise InvalidType(f"set_stance decorates functions and methods, got {function!r}")
        self._take_back()
        wrapper = _wrapper(function, set_stance.block(self.stance))
        is_function = inspect.isroutine(function)  # of other callables, the state in __dict__ is their own
        functools.update_wrapper(wrapper, function, updated=("__dict__",) if is_function else ())
        wrapper.__tcompile_stance__ = self.stance  # type: ignore[attr-defined]  # capture refuses such functions
        return wrapper  # type: ignore[return-value]

    @classmethod
    def block(cls, stance: Stance) -> set_stance:
        """A block or a decorator of this stance, that is no statement."""
        made = cls.__new__(cls)
        made.stance, made._undo = stance, None
        return made

    def _take_back(self) -> None:
        """Undoes what constructing this object did as a statement, unless another has changed it since."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __repr__(self) -> str:
        arguments = [repr(self.stance.name)]
        if self.stance.force_backend is not None:
            arguments.append(f"force_backend={_backend_name(self.stance.force_backend)}")
        if self.stance.skip_guard_eval_unsafe:
            arguments.append("skip_guard_eval_unsafe=True")
        return f"set_stance({', '.join(arguments)})"


def refusal(what: str, stack: Sequence[UserLine]) -> StanceError:
    """The error for a stance change inside a compiled function.

    ``what`` completes "tcompile cannot compile …": ``a call of set_stance``, ``inner, which set_stance
    decorates``. ``stack`` is the user's lines, outermost first.
    """
    return StanceError(
        f"tcompile cannot compile {what}: the stance can be changed only outside of compiled functions.\n\n"
        f"{format_stack(stack)}\n\n"
        "Put the change around the call of the compiled function instead.\n"
        "To see more of what led here, first call:\n"
        "    tcompile.set_logs(graph_breaks=True, compiles=True)\n"
        "To run such a function in plain Python instead of raising this error:\n"
        "    tcompile.config.suppress_errors = True"
    )


# -- statements and blocks -------------------------------------------------------------------------

_Undo = Callable[[], None]


def _state(stance: Stance) -> _Undo:
    """A statement: sets the stance of the process and of the block we stand in. Returns its undoing."""
    global _process, _epoch
    before = current()
    with _lock:
        process_before, _process = _process, stance
        departed[0] = _process is not DEFAULT
        _epoch += 1
        epoch = _epoch
    block_before = _live()
    block = None
    if block_before is not None and block_before.owner is not None:
        block = replace(block_before, stance=stance, statement=epoch)
    blocks.set(block)
    _tell(stance, before, "process")

    def undo() -> None:
        global _process, _epoch
        seen = current()
        with _lock:
            if _epoch == epoch:
                _process = process_before
                departed[0] = _process is not DEFAULT
                _epoch += 1
        if block is not None and blocks.get() is block:
            blocks.set(block_before)
        _tell(current(), seen, "process")

    return undo


def _live() -> _Block | None:
    """The innermost block, or what an ended one left, that holds; None where the process's stance does."""
    block = blocks.get()
    return None if block is None or block.until < _epoch else block


def _without(block: _Block | None, owner: set_stance) -> _Block | None:
    """The chain without the innermost block of ``owner``; blocks need not end in the order of nesting."""
    if block is None:
        return None
    if block.owner is not owner:
        return replace(block, outer=_without(block.outer, owner))
    outer = block.outer
    if block.statement is None:
        return outer
    if outer is not None and outer.owner is not None:
        return replace(outer, statement=block.statement)
    if block.statement != _epoch:
        return None  # somebody made a statement after the block's: the thread follows it
    return _Block(None, block.before, block.before, None, until=block.statement)


def _tell(stance: Stance, before: Stance, scope: str) -> None:
    if bus.active() and stance != before:
        bus.emit(StanceChanged(stance=str(stance), previous=str(before), scope=scope))


# -- wrappers --------------------------------------------------------------------------------------


def _wrapper(function: Callable[..., Any], block: set_stance) -> Callable[..., Any]:
    """A function of the same kind as ``function`` that runs it in ``block``, left while it has yielded."""
    if inspect.isasyncgenfunction(function):

        async def agen(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            inner = function(*args, **kwargs)
            step: Callable[[Any], Any] = inner.asend
            value: Any = None
            while True:
                try:
                    with block:
                        item = await step(value)
                except StopAsyncIteration:
                    return
                try:
                    step, value = inner.asend, (yield item)
                except GeneratorExit:
                    with block:
                        await inner.aclose()
                    raise
                except BaseException as error:
                    step, value = inner.athrow, error

        return agen
    if inspect.isgeneratorfunction(function):

        def gen(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            inner = function(*args, **kwargs)
            step: Callable[[Any], Any] = inner.send
            value: Any = None
            while True:
                try:
                    with block:
                        item = step(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    step, value = inner.send, (yield item)
                except GeneratorExit:
                    with block:
                        inner.close()
                    raise
                except BaseException as error:
                    step, value = inner.throw, error

        return gen
    if inspect.iscoroutinefunction(function):

        async def coro(*args: Any, **kwargs: Any) -> Any:
            with block:
                return await function(*args, **kwargs)

        return coro

    def plain(*args: Any, **kwargs: Any) -> Any:
        with block:
            return function(*args, **kwargs)

    return plain


# -- checking --------------------------------------------------------------------------------------


def _checked(stance: object, skip: object, backend: object) -> Stance:
    valid = ", ".join(STANCES)
    if not isinstance(stance, str):
        hint = ' Write @set_stance("force_eager") above a function.' if callable(stance) else ""
        raise InvalidType(f"set_stance takes a stance's name, got {stance!r}.{hint} Stances: {valid}")
    if stance not in STANCES:
        hint = did_you_mean(stance.lower().replace("-", "_"), STANCES)
        raise InvalidArgument(f"there is no stance {stance!r}.{hint} Stances: {valid}")
    if not isinstance(skip, bool):
        raise InvalidType(f"skip_guard_eval_unsafe must be bool, got {type(skip).__name__} {skip!r}")
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise InvalidType(f"force_backend must be a backend's name or a callable, got {backend!r}")
    if backend is not None and stance != "default":
        raise InvalidArgument(
            f"force_backend goes with the stance 'default' only, because {stance!r} itself decides what runs"
        )
    if backend is not None:
        check_backend(backend)
    return Stance(stance, backend, skip) if (stance, backend, skip) != ("default", None, False) else DEFAULT


def _backend_name(backend: str | Callable[..., Any]) -> str:
    return repr(backend) if isinstance(backend, str) else getattr(backend, "__name__", repr(backend))


__all__ = ["DEFAULT", "STANCES", "Stance", "current", "refusal", "set_stance"]
