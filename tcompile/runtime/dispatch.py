"""Dispatch: the call of a compiled function.

Input: a call.
Output: its result.
Why: a function whose entries all run to its end is called through them directly. One with a graph break, a generator or
a coroutine is called through its rewritten code, in which captured stretches and plain Python alternate in one frame.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from sys import gettrace
from time import perf_counter
from types import CellType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from tcompile import interpreter, reentry
from tcompile.annotations.policy import error_on_graph_break
from tcompile.annotations.treatments import is_compiled_by_torch, treatment_of
from tcompile.backends import takes_option
from tcompile.capture.context.followed import Followed
from tcompile.capture.guards.entry_protocol import MISS, PLAIN, local_names
from tcompile.config import config
from tcompile.observe import bus
from tcompile.observe.html_form import html_form
from tcompile.runtime import cache as caches
from tcompile.runtime import interrupted, native, refused
from tcompile.runtime.binding import binder
from tcompile.runtime.cache import SUSPENDS, CompileSettings, Entry, FunctionCache, function_cache
from tcompile.runtime.changes import Resumed
from tcompile.runtime.debuggers import may_stop, other_watcher
from tcompile.runtime.frames import look_at_callers
from tcompile.runtime.native import stack
from tcompile.runtime.pickled import reduction
from tcompile.runtime.regions import CompileFunction, Compiler, after_interrupt, note_replay
from tcompile.runtime.rewritten import copy_defaults, resumed_function, rewritten_of, settle
from tcompile.runtime.run import Run, carry_out, carry_out_unseen
from tcompile.runtime.unseen import is_counted, pause, resume_tracing, thread, unseen
from tcompile.stance import DEFAULT, Stance, current

if TYPE_CHECKING:
    from tcompile.capture.guards.graph_breaks import GraphBreak
    from tcompile.graph import Graph
    from tcompile.runtime.native.words import CallPlan


class _OfFunction:
    """An attribute that the plain function computes on access; the class itself has none."""

    def __init__(self, name: str, of_class: Any) -> None:
        self.name, self.of_class = name, of_class

    def __get__(self, instance: CompiledFunction | None, owner: type) -> Any:
        return self.of_class if instance is None else getattr(parts_of(instance)[0], self.name)

    def __set__(self, instance: CompiledFunction, value: Any) -> None:
        setattr(parts_of(instance)[0], self.name, value)

    def __delete__(self, instance: CompiledFunction) -> None:
        delattr(parts_of(instance)[0], self.name)


_COPIED: list[Any] = [name for name in map(str, functools.WRAPPER_ASSIGNMENTS) if name != "__annotate__"]
_Read = TypeVar("_Read")


class _Shown(Generic[_Read]):
    """An attribute of compiled functions, unless the user's function has one of that name."""

    def __init__(self, read: Callable[[CompiledFunction], _Read]) -> None:
        self.read = read
        self.__doc__ = read.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> _Shown[_Read]: ...

    @overload
    def __get__(self, instance: CompiledFunction, owner: type) -> _Read: ...

    def __get__(self, instance: CompiledFunction | None, owner: type) -> _Shown[_Read] | _Read:
        return self if instance is None else self.read(instance)


_IMPLIED = {"__new__": staticmethod, "__init_subclass__": classmethod, "__class_getitem__": classmethod}


class _ReportsTime:
    """Reports the duration of a call that ran in the function's rewritten code."""

    __slots__ = ("calls", "compiled", "started")

    def __init__(self, compiled: CompiledFunction, started: float, calls: int) -> None:
        self.compiled, self.started, self.calls = compiled, started, calls

    def begin(self) -> None:
        """Does nothing: the call has begun before."""

    def end(self, returned: bool) -> None:
        """Reports a call that has returned."""
        if returned:
            self.compiled._report_call(self.started, self.calls)


class CompiledFunction(native.Base):  # type: ignore[misc]  # which class that is depends on the machine
    """A function whose array work runs as compiled graphs; it is called, bound and shown like the function itself."""

    if "__annotate__" in functools.WRAPPER_ASSIGNMENTS:  # from 3.14 on; before, ``__dict__`` holds it
        __annotations__ = _OfFunction("__annotations__", {})
        __annotate__ = _OfFunction("__annotate__", None)
    # ``__dict__`` belongs to the function: functools.wraps copies it. Machine code knows the offset of the first slot:
    # CPython orders them by name.
    __slots__ = (
        "_Called_tables", "__attached", "__bind", "__cache", "__cells", "__code", "__compiler", "__count", "__dict__",
        "__function", "__generation", "__in_rewritten", "__once", "__plain", "__plain_code", "__private", "__settings",
        "__simple", "__suspends", "__timed", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        function: types.FunctionType,
        settings: CompileSettings,
        compile: CompileFunction,
        private: FunctionCache | None = None,
        once: bool = False,
    ) -> None:
        self.__once = once  # made for a single call; no other code can reach it
        if not once:
            functools.update_wrapper(self, function, _COPIED)
            if "__wrapped__" in function.__dict__:  # like the function, it shows what that one wraps
                self.__wrapped__ = function.__dict__["__wrapped__"]
        self.__function = function
        self.__settings = settings
        self.__compiler = compiler_for(compile)
        self.__private = private  # a cache that no other callable shares
        self.__bind: types.FunctionType | None = None  # made on first use
        self.__plain, self.__timed = Run(function), Run(function)
        self.__in_rewritten: tuple[types.CodeType | None, Run] = (None, self.__plain)
        # The entries for which machine code has plans, or the plan of a function that rests.
        self.__attached: tuple[Entry | CallPlan, ...] = ()
        self._refresh()

    # -- calling -------------------------------------------------------------------------------------------------------
    @unseen
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        if self.__plain_code is not None and current() is DEFAULT and self.__plain_code is self.__function.__code__:
            return self.__function(*args, **kwargs)
        counted = False
        if gettrace() is not None or other_watcher() is not None:
            pause(thread())
            try:
                stops = not interrupted.pending and may_stop(self._functions())
                counted = is_counted()
            finally:
                resume_tracing(thread())
            if stops:
                return self.__function(*args, **kwargs)
        if not counted:
            found = self._answer(args, kwargs)
            if type(found) is not Run:
                return found
            if found.around is None:
                return found.function(*args, **kwargs)
            return carry_out_unseen(found, args, kwargs)
        pass  # noqa: PIE790
        found = self._answer(args, kwargs)
        return carry_out(found, args, kwargs) if type(found) is Run else found

    def _answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the entries' result for a call, or the ``Run`` that is to compute it."""
        if interrupted.pending:
            resumed = after_interrupt(self.__cache, self.__cache.first.entries)
            if resumed is not MISS:
                return self._left_to_python(resumed)
        stack.check()
        stance = current()
        if stance is not DEFAULT:
            return self._answer_under(stance, args, kwargs)
        if self.__generation != caches.generation[0] or self.__function.__code__ is not self.__code:
            self._refresh()
        cache = self.__cache
        trial = cache.trial
        if trial is not None and not trial.inside:  # a call inside a timed compiled call runs as usual
            run = trial.choose(self.__plain, self.__timed, self)
            if trial.resting_plan is not None:
                self._attach_resting(trial.resting_plan)
            if run is not None:
                return run
        rewritten = cache.rewritten
        if (
            rewritten is not None
            and rewritten is not cache.built
            and not cache.asleep
            and not bus.listened[0]
            and self.__attached is cache.first.entries
        ):
            return self._run_of(rewritten.code)  # nothing is left to learn
        timed = bus.times_call()
        started = perf_counter() if timed else 0.0
        region = cache.first
        entries = (
            region.entries
        )  # read before the rewritten code: entries that end inside the function need rewritten code
        if cache.rewritten is None and not self.__suspends:
            if self.__simple and not kwargs and len(args) == self.__count:
                values = (*self.__cells, *args) if self.__cells else args
            else:
                bound = self._bound(args, kwargs)
                if bound is None:
                    return self.__plain  # raises Python's own error
                values = bound
            for entry in entries:
                try:
                    result = entry.run(*values)
                except Exception as error:
                    result = note_replay(cache, entry, error)  # handled below, outside the exception handler
                    if entry.suspensions:
                        self.__attached = ()
                if result is MISS:
                    continue
                entry.calls += 1
                if entry is not entries[0]:
                    cache.promote(region, entry)
                if self.__attached is not entries:
                    self._attach(entries)
                if result is PLAIN or type(result) is Resumed:
                    return self._left_to_python(result)
                if started:
                    self._report_call(started, timed)
                return result
        elif self.__attached is not entries and not self.__suspends:
            self._attach(entries)  # entries that run to the function's end do not need rewritten code
        found = self._through(cache, stance, args, kwargs)
        if started and cache.rewritten is not None:
            if type(found) is Run:
                return Run(found.function, _ReportsTime(self, started, timed))
            self._report_call(started, timed)
        return found

    def _through(self, cache: FunctionCache, stance: Stance, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Handles a call that no entry has answered: compiles it, or runs it in the function's rewritten code."""
        if cache.stays_plain:
            self._refresh()
            return self.__plain
        if cache.rewritten is None and not self.__suspends:
            values = self._bound(args, kwargs)
            if values is None:
                return self.__plain
            found = self.__compiler.select(cache, cache.first, values, stance, in_rewritten=False)
            if found is not None and config.verify and cache.rewritten is None:
                self._attach(cache.first.entries)
            if (
                found is not None or cache.rewritten is None
            ):  # another thread may have made the rewritten code meanwhile
                result = PLAIN if found is None else found[1]
                if result is PLAIN or type(result) is Resumed:
                    return self._left_to_python(result)
                return result
        if cache.rewritten is None and cache.resumable and not sys.is_finalizing() and not reentry.is_inside():
            # A generator or coroutine starts in its rewritten code.
            cache.rewritten = rewritten_of(cache, self.__function.__code__, self.__compiler)
        rewritten = cache.rewritten
        if rewritten is None:
            return self.__plain
        settle(cache, self.__compiler)
        return self._run_of(rewritten.code)

    def _functions(self) -> Iterator[Followed]:
        """Returns the function, and those that its entries inline."""
        yield Followed.of(self.__function.__code__)
        for entry in self.__cache.entries:
            yield from entry.captured.followed

    def _left_to_python(self, resumed: Any) -> Run:
        """Returns a run in plain Python: from the function's start or, for Resumed, from a loop's next iteration."""
        function = self.__function
        if resumed is PLAIN:
            return self.__plain
        return Run(resumed_function(self.__cache, self.__compiler, function, resumed.answer, resumed.is_scalar))

    def _attach(self, entries: tuple[Entry, ...]) -> None:
        """Lets machine code answer the next calls that fit these entries, unless they are on trial."""
        if self.__once or (self.__cache.trial is not None and self.__cache.trial.alone):
            return
        if config.native_calls and not bus.listened[0]:  # while listeners wait for events of calls, Python makes them
            if set(entries) != set(self.__attached):
                if reentry.is_inside():
                    return
                native.attach(self, _TABLES, self.__function, entries)
            self.__attached = entries

    def _attach_resting(self, plan: CallPlan) -> None:
        """Lets machine code call the plain function while it rests."""
        plans = (plan,)
        if self.__attached == plans or self.__once or not config.native_calls or bus.listened[0] or reentry.is_inside():
            return
        native.attach_resting(self, _TABLES, self.__function, plan)
        self.__attached = plans

    def _run_of(self, code: types.CodeType) -> Run:
        """Returns the function with its rewritten code."""
        known, run = self.__in_rewritten
        function = self.__function
        if known is not code:
            made = types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
            made.__qualname__ = function.__qualname__
            run = Run(made)
            self.__in_rewritten = (code, run)
        copy_defaults(run.function, function)
        return run

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """Returns the parameters of an entry at the function's start; None if the arguments do not fit."""
        if self.__bind is None:
            self.__bind = binder(self.__function)
        copy_defaults(self.__bind, self.__function)
        try:
            bound = self.__bind(*args, **kwargs)
        except TypeError:
            return None
        code = self.__function.__code__
        if not code.co_cellvars:
            return (*self.__cells, *bound)
        named = dict(zip(local_names(code), bound, strict=True))
        own = [CellType(named.pop(name)) if name in named else CellType() for name in code.co_cellvars]
        return (*own, *self.__cells, *named.values())

    def _refresh(self) -> None:
        """Reads the function's current code: reloading a module replaces the code of a function in use."""
        function = self.__function
        code = self.__code = function.__code__
        self.__count = code.co_argcount
        self.__simple = not code.co_kwonlyargcount and not code.co_flags & 0x0C and not code.co_cellvars
        self.__suspends = bool(code.co_flags & SUSPENDS)
        self.__bind = None
        self.__cells = function.__closure__ or ()
        self.__in_rewritten = (None, self.__plain)
        if self.__private is not None and self.__private.held() is not code:
            self.__private = FunctionCache.of(function, self.__settings)
        self.__cache = self.__private or function_cache(function, self.__settings)
        self.__generation = caches.generation[0]
        self.__attached = ()
        # The code for which nothing is compiled.
        self.__plain_code: types.CodeType | None = code if self.__cache.stays_plain else None

    def _answer_under(self, stance: Stance, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answers a call under a stance other than the default."""
        if stance.name == "force_eager":
            return self.__plain
        cache = self.__current()
        if stance.force_backend is not None:
            own, backend = self.__settings, stance.force_backend
            options = tuple(o for o in own.options if takes_option(backend, o[0]))
            cache = function_cache(self.__function, replace(own, backend=backend, options=options))
        if stance.name in ("eager_then_compile", "aot_eager_then_compile") and not cache.compiles:
            cache.eager_calls += 1
            values = self._bound(args, kwargs)
            if cache.eager_calls == 1 and values is not None:
                cache.profile.observe(cache.first.start.names, values)
                if stance.name == "eager_then_compile":
                    return self.__plain
                first = function_cache(self.__function, replace(self.__settings, backend="aot_eager", options=()))
                return self._through(first, DEFAULT, args, kwargs)
        return self._through(cache, stance, args, kwargs)

    def _call_plainly(self, /, *args: Any, **kwargs: Any) -> Any:
        """``__call__`` in an unsupported interpreter, where nothing is compiled."""
        if not refused.warned or bus.listened[0]:
            refused.note_call(self.__current().about)
        return self.__function(*args, **kwargs)

    def _report_call(self, started: float, calls: int) -> None:
        milliseconds = (perf_counter() - started) * 1e3
        bus.emit_call(self.__function.__qualname__, self.__current().defined_in, milliseconds, calls)

    # -- being a function ----------------------------------------------------------------------------------------------
    @property
    def __code__(self) -> types.CodeType:
        """The plain function's code; assignments go there."""
        return self.__function.__code__

    @__code__.setter
    def __code__(self, code: types.CodeType) -> None:
        self.__function.__code__ = code

    @property
    def __globals__(self) -> dict[str, Any]:
        """The plain function's global variables."""
        return self.__function.__globals__

    @property
    def __builtins__(self) -> dict[str, Any]:
        """The plain function's built-ins."""
        held: dict[str, Any] = self.__function.__builtins__  # type: ignore[attr-defined, unused-ignore]
        return held

    @property
    def __closure__(self) -> tuple[CellType, ...] | None:
        """The plain function's cells."""
        return self.__function.__closure__

    @property
    def __defaults__(self) -> tuple[Any, ...] | None:
        """The plain function's defaults, used by calls."""
        return self.__function.__defaults__

    @__defaults__.setter
    def __defaults__(self, values: tuple[Any, ...] | None) -> None:
        self.__function.__defaults__ = values

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        """The defaults of keyword-only parameters."""
        return self.__function.__kwdefaults__

    @__kwdefaults__.setter
    def __kwdefaults__(self, values: dict[str, Any] | None) -> None:
        self.__function.__kwdefaults__ = values

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @unseen
    def __set_name__(self, owner: type, name: str) -> None:
        if name in _IMPLIED:  # a class statement gives plain functions of these names such methods
            type.__setattr__(owner, name, _IMPLIED[name](self))
        if gettrace() is None:
            return
        pause(thread())
        try:
            counted = is_counted()
        finally:
            resume_tracing(thread())
        if not counted:
            return
        pass  # noqa: PIE790

    def __copy__(self) -> CompiledFunction:
        return self  # as functions do

    def __deepcopy__(self, memo: Any) -> CompiledFunction:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        # The caller's frame is that of the pickler's method; a pickler in C has no frame.
        return reduction(self, self.__function, self.__settings, sys._getframe(1).f_locals.get("self"))

    def __repr__(self) -> str:
        function, settings, cache = self.__tcompile_parts__()
        return f"<compiled {function.__qualname__}: {len(cache.entries)} entries, backend {settings.backend_name}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from tcompile.runtime.look import cache_view

        return cache_view(self.__tcompile_parts__()[2]).bundle()

    _repr_html_ = html_form

    @staticmethod
    def __tcompile_inline__(compiled: CompiledFunction) -> types.FunctionType:
        """Returns the function that capture inlines where one compiled function calls another."""
        return compiled.__function

    # -- its state -----------------------------------------------------------------------------------------------------
    def __tcompile_parts__(self) -> tuple[types.FunctionType, CompileSettings, FunctionCache]:
        """``parts_of``."""
        return self.__function, self.__settings, self.__current()

    def __current(self) -> FunctionCache:
        if self.__generation != caches.generation[0] or self.__function.__code__ is not self.__code:
            self._refresh()
        return self.__cache

    @_Shown
    def function(self) -> types.FunctionType:
        """The plain function."""
        return self.__function

    @_Shown
    def _torchdynamo_orig_callable(self) -> types.FunctionType:
        """What ``torch.compile`` is to compile instead, where it is given this function."""
        return self.__function

    @_Shown
    def _torchdynamo_wrapper_id(self) -> int:
        """The number by which PyTorch sees that this object is what it was given."""
        return id(self)

    @_Shown
    def settings(self) -> CompileSettings:
        """The settings with which it is compiled."""
        return self.__settings

    @_Shown
    def cache(self) -> FunctionCache:
        """The code cache of this function under its own settings."""
        return self.__current()

    @_Shown
    def entries(self) -> tuple[Entry, ...]:
        """The compiled entries: those at the function's start first, then the most recent first."""
        return self.__current().entries

    @_Shown
    def graphs(self) -> list[Graph]:
        """The captured graphs, oldest first."""
        return self.__current().graphs

    @_Shown
    def breaks(self) -> list[GraphBreak]:
        """The graph breaks so far, each place once."""
        return list(self.__current().breaks)

    @_Shown
    def recompiles(self) -> list[tuple[str, ...]]:
        """For each recompile, the failed guards of each entry."""
        return list(self.__current().recompiles)


_TABLES = native.complete(CompiledFunction, "_Called_tables")
if interpreter.refusal is not None:
    CompiledFunction.__call__ = CompiledFunction._call_plainly  # type: ignore[method-assign]


def parts_of(compiled: CompiledFunction) -> tuple[types.FunctionType, CompileSettings, FunctionCache]:
    """Returns the plain function, its settings and its cache, whatever attributes the user has set."""
    return compiled.__tcompile_parts__()


def compiler_for(compile: CompileFunction) -> Compiler:
    """Wraps the compile function with what it needs of the runtime."""
    return Compiler(compile, _by_itself)


def _by_itself(compiler: Compiler, cache: FunctionCache, function: Any, again: bool) -> Any:
    """Returns a compiled form of a function that code of ``cache`` is about to call, if it is the user's own.

    A function with nothing to compile is called as it is, unless ``again`` is set.
    """
    if type(function) is types.MethodType:
        inner = _by_itself(compiler, cache, function.__func__, again)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if type(function) is not types.FunctionType:
        return function
    treatment = treatment_of(function)
    if treatment is not None and treatment.kind == "policy":
        return error_on_graph_break(treatment.flag)(_by_itself(compiler, cache, vars(function)["__wrapped__"], again))
    called, plain_frame = function, treatment is not None and treatment.kind == "frame"
    if plain_frame:
        assert treatment is not None and type(treatment.replacement) is types.FunctionType
        function = treatment.replacement
    elif treatment is not None and treatment.kind != "region":
        return called
    if not _is_followed(function):
        return called
    settings = cache.settings
    if settings.plain_frame != plain_frame:
        settings = replace(settings, plain_frame=plain_frame)
    inside = cache.of_callee(function, settings) or function_cache(function, settings)
    look = look_at_callers(function)
    if look is not None:
        if inside.look is None:
            inside.stay_plain(look)
        return called
    inside.callers_breaks = cache.breaks
    cache.called.add(inside)
    if inside.is_quiet and not bus.listened[0]:
        settle(inside, compiler)
        if again:
            inside.wake()
        elif not inside.retries:
            return called
    known = caches.followed.get(function)
    if known is not None and parts_of(known)[2] is inside:
        return known
    if "<" in function.__qualname__ or cache.callees is not None:  # it may hold references from the call that made it
        return CompiledFunction(function, settings, compiler.compile, inside, once=True)
    if len(caches.followed) >= caches.MOST_FOLLOWED:
        caches.followed.clear()
    made = caches.followed[function] = CompiledFunction(function, settings, compiler.compile)
    return made


_LIBRARIES = tuple({sys.prefix, sys.base_prefix, sys.exec_prefix, *(path for path in sys.path if "-packages" in path)})


def _is_followed(function: types.FunctionType) -> bool:
    """Whether a function is the user's own: not a library's, and not excluded from compilation."""
    if hasattr(function, "__tcompile_disabled__") or hasattr(function, "__tcompile_stance__"):
        return False
    if is_compiled_by_torch(function):
        return False
    name = function.__globals__.get("__name__")
    if type(name) is str and name.partition(".")[0] in ("tcompile", "tcompile_jupyter"):
        return False
    return not function.__code__.co_filename.startswith(_LIBRARIES)


__all__ = ["CompiledFunction", "compiler_for", "parts_of"]
