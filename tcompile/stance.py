"""The stance: what compiled functions may do when they are called.

Input: calls of ``set_stance``, and the ``with`` blocks and decorators that use them.
Output: ``current()``, which the runtime reads on each call.
Why: a program can turn compilation off, forbid recompiles or change the backend without editing functions.

``set_stance(...)`` is a statement: it changes the stance of the process. ``with`` and ``@`` undo the statement and set
the stance for one thread or asyncio task. Other threads see it for the moment in between. Statements may be undone in
any order: the process has the stance of the newest that is left.

The blocks of a thread form a chain, innermost first, in a context variable. A statement inside a block holds in the
block and in the process. When the block ends, its thread returns to its former stance; the process keeps that of the
statement.
"""

from __future__ import annotations

import array
import functools
import inspect
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar, final

from tcompile import process
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

    ``skip_guard_eval_unsafe`` checks only the guards that distinguish a function's entries. That is faster, and wrong
    for calls of a kind that the function has not seen.
    """

    name: str = "default"
    force_backend: str | Callable[..., Any] | None = None
    skip_guard_eval_unsafe: bool = False

    def __str__(self) -> str:
        text = self.name
        if self.force_backend is not None:
            text += f", force_backend={_backend_name(self.force_backend)}"
        return f"{text}, skip_guard_eval_unsafe" if self.skip_guard_eval_unsafe else text


class _Statement:
    """A call of ``set_stance``: sets the stance of the process until the next one, or until it is undone."""

    __slots__ = ("maker", "stance", "taken_back")

    def __init__(self, maker: set_stance) -> None:
        self.stance = maker.stance
        self.maker = weakref.ref(maker)  # only its maker can undo it
        self.taken_back = False


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of this thread: its owner, its stance, the stance before it, and the enclosing block.

    ``inside`` holds the statements made in it, ``ended`` those of inner blocks that have ended. A block without an
    owner remains of a thread's blocks after their end. It holds while the newest statement is one of ``ended``.
    """

    owner: set_stance | None
    stance: Stance
    before: Stance
    outer: _Block | None
    inside: tuple[_Statement, ...] = ()
    ended: tuple[_Statement, ...] = ()

    def now(self) -> Stance | None:
        """Returns the stance in the block; None where that of the process holds."""
        if self.owner is None:
            return self.stance if _statements and _statements[-1] in self.ended else None
        for statement in reversed(self.inside):
            if not statement.taken_back:
                return statement.stance
        return self.stance


DEFAULT = Stance()
_statements: tuple[_Statement, ...] = ()  # those in force, or that may return to force; newest last
_process = DEFAULT  # that of the newest statement
departed = array.array("q", [0])  # 1 while the stance of the process is another one: machine code reads it
_lock = process.lock()
blocks: ContextVar[_Block | None] = ContextVar("tcompile_stance", default=None)


def check_backend(backend: str | Callable[..., Any], argument: str) -> None:
    """Refuses a backend that does not exist. ``api`` replaces this function: backends are above this module."""


def current() -> Stance:
    """Returns the stance for a call made here and now."""
    block = blocks.get()
    if block is None:
        return _process
    stance = block.now()
    if stance is None:
        blocks.set(_inside())
        return _process
    return stance


@final
class set_stance:
    """Changes what compiled functions do: as a statement, a ``with`` block or a decorator.

    A call acts at once, whatever the expression around it, and holds for the whole process until the next one. A
    ``with`` block or a decorator undoes that. It holds in the current thread or task only, until the block or the
    function's call ends, however it ends. The same applies to an object made before: ``s = set_stance(...)``, then
    ``with s:``. Other threads see the stance from the call until the block or decoration begins. In a generator,
    decorate the function: the caller would be inside a ``with`` block that contains a ``yield``.

    Parameters
    ----------
    stance : str
        ``default``; ``force_eager`` (plain Python); ``eager_on_recompile`` (plain Python where no compiled code fits
        the call); ``fail_on_recompile`` (RecompileError there); ``eager_then_compile`` (first call plain, the second
        compiles with changed sizes left open); ``aot_eager_then_compile`` (the same, first call through ``aot_eager``).
    skip_guard_eval_unsafe : bool
        Whether only the guards are checked that tell a function's entries apart.
    force_backend : str or callable, optional
        A backend that replaces each function's own for the time. It goes with ``default`` only.

    Raises
    ------
    InvalidArgument, InvalidType
        At once, for what is not valid.

    Examples
    --------
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
        self._statement: _Statement | None = _state(self)

    # -- as a block --------------------------------------------------------------------------------
    def __enter__(self) -> set_stance:
        self._undo()
        before = current()
        blocks.set(_Block(self, self.stance, before, _inside()))
        _tell(self.stance, before, "block")
        return self

    def __exit__(self, *error: object) -> None:
        before = current()
        blocks.set(_without(_inside(), self))
        _tell(current(), before, "block")

    # -- as a decorator ----------------------------------------------------------------------------
    def __call__(self, function: F) -> F:
        """Makes ``function`` run in this stance: plain functions, methods, coroutines and generators."""
        self._undo()
        if isinstance(function, staticmethod | classmethod):
            return type(function)(self(function.__func__))
        if isinstance(function, type) or not callable(function):
            raise InvalidType(f"set_stance decorates functions and methods, got {function!r}")
        wrapper = _wrapper(function, set_stance.block(self.stance))
        is_function = inspect.isroutine(function)  # other callables: __dict__ holds their own state
        functools.update_wrapper(wrapper, function, updated=("__dict__",) if is_function else ())
        wrapper.__tcompile_stance__ = self.stance  # type: ignore[attr-defined]  # capture refuses such functions
        return wrapper  # type: ignore[return-value]

    @classmethod
    def block(cls, stance: str | Stance) -> set_stance:
        """Returns a block or decorator that is not a statement: other threads never see its stance."""
        made = cls.__new__(cls)
        made.stance = _checked(stance, False, None) if isinstance(stance, str) else stance
        made._statement = None
        return made

    def _undo(self) -> None:
        """Undoes the statement that constructing this object made."""
        statement, self._statement = self._statement, None
        if statement is not None:
            before = _process
            statement.taken_back = True
            _follow()
            _tell(_process, before, "process")

    def __reduce__(self) -> tuple[Any, ...]:
        return set_stance.block, (self.stance,)  # a copy has made no statement

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


def _state(maker: set_stance) -> _Statement:
    """Makes a statement: sets the stance of the process and of the enclosing block."""
    before = current() if _process == maker.stance else _process
    statement = _Statement(maker)
    _follow(statement)
    block = _inside()
    if block is not None and block.owner is not None:
        block = replace(block, inside=_in_force((*block.inside, statement)))
    blocks.set(block)
    _tell(maker.stance, before, "process")
    return statement


def _follow(*added: _Statement) -> None:
    """Gives the process the stance of the newest statement."""
    global _statements, _process
    with _lock:
        _statements = _in_force((*_statements, *added))
        _process = _statements[-1].stance if _statements else DEFAULT
        departed[0] = _process is not DEFAULT


def _in_force(statements: Sequence[_Statement]) -> tuple[_Statement, ...]:
    """Returns the statements that may still take effect: none before one that cannot be undone any more."""
    left: list[_Statement] = []
    for statement in reversed(statements):
        if statement.taken_back:
            continue
        left.append(statement)
        if statement.maker() is None:
            break
    return tuple(reversed(left))


def _inside() -> _Block | None:
    """Returns the innermost block or its remainder; None if no block can take effect any more."""
    block = blocks.get()
    if block is None or block.owner is not None:
        return block
    left = _in_force(_statements)
    return block if any(one in left for one in block.ended) else None


def _without(block: _Block | None, owner: set_stance) -> _Block | None:
    """Returns the chain without the innermost block of ``owner``; blocks may end in any order."""
    if block is None:
        return None
    if block.owner is not owner:
        return replace(block, outer=_without(block.outer, owner))
    outer = block.outer
    made = tuple(one for one in (*block.ended, *block.inside) if one in _statements)
    if not made:
        return outer
    if outer is not None and outer.owner is not None:
        return replace(outer, ended=(*outer.ended, *made))
    return _Block(None, block.before, block.before, None, ended=made)


def _tell(stance: Stance, before: Stance, scope: str) -> None:
    if bus.active() and stance != before:
        bus.emit(StanceChanged(stance=str(stance), previous=str(before), scope=scope))


# -- wrappers --------------------------------------------------------------------------------------


def _wrapper(function: Callable[..., Any], block: set_stance) -> Callable[..., Any]:
    """Returns a function of the same kind as ``function`` that runs it in ``block``, which is left at each yield."""
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
        got = f"{type(backend).__name__} {backend!r}"
        raise InvalidType(f"force_backend must be a callable or a backend's name, got {got}")
    if backend is not None and stance != "default":
        raise InvalidArgument(
            f"force_backend goes with the stance 'default' only, because {stance!r} itself decides what runs"
        )
    if backend is not None:
        check_backend(backend, "force_backend")
    return Stance(stance, backend, skip) if (stance, backend, skip) != ("default", None, False) else DEFAULT


def _backend_name(backend: str | Callable[..., Any]) -> str:
    return repr(backend) if isinstance(backend, str) else getattr(backend, "__name__", repr(backend))


__all__ = ["DEFAULT", "STANCES", "Stance", "current", "refusal", "set_stance"]
