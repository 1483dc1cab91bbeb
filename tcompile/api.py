"""The public functions.

Input: arguments from the user.
Output: checked arguments, passed to the runtime and the compiler.
Why: arguments are validated in one place. An error names the argument, the valid values and the value that was given.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from tcompile import process, reentry, stance
from tcompile.annotations.control_flow import associative_scan, cond, map, scan, while_loop
from tcompile.annotations.intrinsics import cudagraph_mark_step_begin, graph_break, is_compiling, unroll
from tcompile.annotations.marks import mark_dynamic, mark_static, maybe_mark_dynamic
from tcompile.annotations.policy import error_on_graph_break
from tcompile.annotations.treatments import (
    Treatment,
    allow_in_graph,
    assume_constant_result,
    disallow_in_graph,
    is_compiled_by_torch,
    nested_compile_region,
    set_treatment,
    substitute_in_graph,
    treatment_of,
)
from tcompile.backends import check_backend, list_backends, memory_limits, preload, takes_option
from tcompile.collector import no_collection
from tcompile.config import on_new_premise
from tcompile.errors import InvalidArgument, InvalidType, did_you_mean
from tcompile.observe import bus, events, times, variables
from tcompile.observe.explain import ExplainOutput, Recorder
from tcompile.observe.history import history
from tcompile.observe.profiler import CompileProfiler
from tcompile.observe.times import compile_times
from tcompile.runtime import cache as caches
from tcompile.runtime import cell
from tcompile.runtime.cache import SUSPENDS, CompileSettings, Entry, FunctionCache, Region
from tcompile.runtime.cell import run_statements
from tcompile.runtime.dispatch import CompiledFunction, parts_of
from tcompile.runtime.pickled import on_unpickling
from tcompile.runtime.regions import Compiler

F = Callable[..., Any]
# Where torch.compile has the same name, its meaning here is the same.
_MODES: dict[str, dict[str, Any]] = {
    "default": {}, "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True},
}  # fmt: skip
_OPTIONS: dict[str, Any] = {  # names and defaults
    "epilogue_fusion": True, "exact": False, "fallback_random": True, "max_autotune": False, "shape_padding": False,
    "trace.enabled": False, "trace.graph_diagram": False, "triton.cudagraphs": False,
}  # fmt: skip
_OF_ALL_BACKENDS = frozenset({"fallback_random", "trace.enabled", "trace.graph_diagram"})
_AROUND_METHODS = (property, functools.cached_property, functools.partialmethod)
_OLD_NAMES = {"nopython": "fullgraph", "model": "fn", "cache_size_limit": "tcompile.config.recompile_limit"}


def compile_region(
    cache: FunctionCache, region: Region, values: Sequence[Any], reasons: Sequence[str], compiler: Compiler
) -> Entry:
    """Loads the compiler on the first compile: capture and the frontends are most of the package's code.

    Raises MemoryError if there is too little memory to compile.
    """
    memory_limits.ensure(memory_limits.FURTHER if _pipeline.cache_info().currsize else memory_limits.FIRST)
    return _pipeline()(cache, region, values, reasons, compiler)


@functools.cache
@reentry.slow
def _pipeline() -> Callable[..., Entry]:
    preload.map_llvm()
    with process.loading, no_collection():
        from tcompile import compiler as pipeline
        from tcompile.backends import llvm  # noqa: F401  # nearly every backend imports it
    return pipeline.compile_region


@overload
def compile(
    fn: F,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | F = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    disable: bool = ...,
) -> Any: ...
@overload
def compile(
    fn: None = None,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | F = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    disable: bool = ...,
) -> Callable[[F], Any]: ...
def compile(
    fn: F | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | F = "auto",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
    **unknown: Any,
) -> Any:
    """Compiles the NumPy work in ``fn``; the result gives the same answers as ``fn``.

    Works as a function, as ``@compile`` and as ``@compile(...)``.

    Parameters
    ----------
    fn : callable, optional
        A function, a lambda, a bound method, an object with a Python ``__call__``, or a ``functools.partial`` of one of
        these. Arrays may have any shape, and NumPy's bool, integer, float and complex dtypes. Functions of PyTorch's
        tensors, too (docs/pytorch.md). A ``torch.nn.Module`` becomes a module over the same parameters and attributes.
    fullgraph : bool
        Whether a function that cannot be captured as one graph is an error.
    dynamic : bool, optional
        None compiles for the sizes seen, and leaves open those that change. True leaves all open at once; False never
        does.
    backend : str or callable
        A name of ``list_backends(None)``, or a callable ``f(graph, example_inputs)``.
    mode : str, optional
        A named set of options: see `list_mode_options`.
    options : mapping, optional
        Options by name: see `list_options`. Not together with `mode`.
    disable : bool
        Whether ``fn`` is returned as it is.

    Returns
    -------
    callable
        The compiled function; without ``fn``, a decorator.

    Raises
    ------
    InvalidArgument, InvalidType
        At once, for an argument that is not valid.
    Unsupported
        In a call, under ``fullgraph=True``, where the function cannot be captured whole.

    Examples
    --------
    >>> import numpy as np
    >>> @compile
    ... def f(x):
    ...     return np.maximum(x + 1, 0) * 2
    >>> f(np.array([-2.0, 3.0]))
    array([0., 8.])
    """
    if unknown:
        raise _unknown_argument(next(iter(unknown)))
    for name, value, kinds in (
        ("fullgraph", fullgraph, (bool,)),
        ("dynamic", dynamic, (bool, type(None))),
        ("disable", disable, (bool,)),
        ("mode", mode, (str, type(None))),
        ("options", options, (Mapping, type(None))),
    ):
        if not isinstance(value, kinds):
            wanted = " or ".join("None" if k is type(None) else k.__name__ for k in kinds)
            raise InvalidType(f"{name} must be {wanted}, got {type(value).__name__} {_shown(value)}")
    check_backend(backend)
    if mode is not None and options is not None:
        raise InvalidArgument("give mode or options, not both: a mode is a named set of options")
    _check_mode(mode)
    settings = _settings(fullgraph, dynamic, backend, mode, options)
    if fn is None:
        return lambda function: compile_with(function, settings, disable)
    return compile_with(fn, settings, disable)


def _settings(
    fullgraph: bool, dynamic: bool | None, backend: str | F, mode: str | None, options: Mapping[str, Any] | None
) -> CompileSettings:
    """Returns the settings with the options that the backend takes.

    Modes cover several backends, so options of a mode that the backend lacks are dropped; explicit options raise.
    """
    chosen = _check_options(_MODES[mode] if mode is not None else options or {})
    settings = CompileSettings(fullgraph, dynamic, backend, tuple(o for o in chosen if _takes(backend, o[0])))
    lost = next((name for name, on in chosen if on and not _takes(backend, name)), None)
    if lost is not None and (mode is None or not settings.options):  # modes cover several backends
        own = ", ".join(name for name in list_backends(None) if takes_option(name, lost))
        other = settings.backend_name
        raise InvalidArgument(f"option {lost!r} is for tcompile's own backends {own}, not for {other!r}")
    return settings


def _takes(backend: str | F, option: str) -> bool:
    return option in _OF_ALL_BACKENDS or takes_option(backend, option)


def compile_with(fn: Any, settings: CompileSettings, disable: bool = False) -> Any:
    """``compile`` with checked settings. Raises InvalidType for something that cannot be compiled."""
    kind = type(fn)  # not isinstance, which reads __class__: mocks and proxies report another class
    if issubclass(kind, type):
        raise InvalidType(f"compile takes a function, got the class {fn.__qualname__}; compile its methods instead")
    if issubclass(kind, _AROUND_METHODS):
        raise InvalidType(f"compile takes a function, got a {kind.__name__}: put @compile under @{kind.__name__}")
    wraps_function = issubclass(kind, staticmethod | classmethod)
    if not wraps_function and not callable(fn):
        raise InvalidType(f"compile takes a function, got {kind.__name__} {_shown(fn)}")
    if disable:
        return fn
    if wraps_function:
        return kind(compile_with(fn.__func__, settings))
    if kind is types.FunctionType and is_compiled_by_torch(fn):
        return fn
    if kind is CompiledFunction:
        return CompiledFunction(parts_of(fn)[0], settings, compile_region)
    if kind is types.FunctionType:
        if hasattr(fn, "__tcompile_disabled__"):
            return _with_plain_frame(fn, settings)
        return CompiledFunction(fn, settings, compile_region)
    if kind is types.MethodType:
        inner = compile_with(fn.__func__, settings)
        return types.MethodType(inner, fn.__self__) if inner is not fn.__func__ else fn
    if kind is functools.partial:
        return functools.partial(compile_with(fn.func, settings), *fn.args, **fn.keywords)
    if (nn := sys.modules.get("torch.nn")) is not None and issubclass(kind, nn.Module):
        return _compile_module(fn, settings)
    call = inspect.getattr_static(kind, "__call__", None)
    if type(call) in (types.FunctionType, CompiledFunction):
        return types.MethodType(compile_with(call, settings), fn)
    return fn  # a built-in or C function has no Python code to compile


def _compile_module(module: Any, settings: CompileSettings) -> Any:
    """Returns a compiled module.

    PyTorch's own capture leaves sizes open under ``dynamic=True``, and takes modules that define calls themselves.
    """
    from tcompile import torch_modules  # imported late: only PyTorch's users have it

    if settings.dynamic is not True and torch_modules.can_compile(module):
        return torch_modules.compiled_module(module, functools.partial(compile_with, settings=settings))
    from tcompile.torch_backend import compile_module  # it imports much more of PyTorch

    return compile_module(module, settings)


def _with_plain_frame(fn: types.FunctionType, settings: CompileSettings) -> Callable[..., Any]:
    """Returns a function that runs ``fn`` in plain Python, as ``disable`` asks.

    With ``recursive=False``, the functions that it calls are compiled.
    """
    treatment = treatment_of(fn)
    if treatment is None or treatment.kind != "frame":
        return fn
    plain = treatment.replacement
    assert type(plain) is types.FunctionType
    made = CompiledFunction(plain, replace(settings, plain_frame=True, fullgraph=False), compile_region)

    @functools.wraps(fn)
    def plainly(*args: Any, **kwargs: Any) -> Any:
        return made(*args, **kwargs)

    set_treatment(plainly, treatment)
    return plainly


def _shown(value: Any) -> str:
    """Returns a value's repr for an error text, shortened; a substitute if the repr raises."""
    try:
        text = repr(value)
    except Exception:
        return "that has no repr"
    return text if len(text) <= 200 else text[:197] + "..."


on_unpickling(compile_region)
stance.check_backend = check_backend


def _forget_code() -> None:
    caches.reset()
    cell.reset()


on_new_premise(_forget_code)
compile.set_stance = stance.set_stance  # type: ignore[attr-defined]  # PyTorch tutorials read it under this name


def _unknown_argument(name: str) -> InvalidArgument:
    if name in _OLD_NAMES:
        return InvalidArgument(f"compile has no argument {name!r}: use {_OLD_NAMES[name]}")
    valid = ["fullgraph", "dynamic", "backend", "mode", "options", "disable"]
    hint = did_you_mean(name, valid)
    return InvalidArgument(f"compile has no argument {name!r}.{hint} Arguments: {', '.join(valid)}")


def _check_mode(mode: str | None) -> None:
    if mode is not None and mode not in _MODES:
        hint = did_you_mean(mode, _MODES)
        raise InvalidArgument(f"there is no mode {mode!r}.{hint} Modes: {', '.join(_MODES)}")


def _check_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    for name, value in options.items():
        if name not in _OPTIONS:
            hint = did_you_mean(str(name), _OPTIONS)
            valid = ", ".join(_OPTIONS) or "none in this version"
            raise InvalidArgument(f"there is no option {name!r}.{hint} Options: {valid}")
        if type(value) is not type(_OPTIONS[name]):
            wanted = type(_OPTIONS[name]).__name__
            raise InvalidType(f"option {name!r} must be {wanted}, got {type(value).__name__} {_shown(value)}")
    if options.get("fallback_random") is False:
        raise InvalidArgument("option 'fallback_random' is always on: random numbers are drawn by NumPy itself")
    if options.get("epilogue_fusion") and not options.get("max_autotune"):
        raise InvalidArgument("option 'epilogue_fusion' says what 'max_autotune' may try: set that one, too")
    return tuple(sorted(options.items()))


def list_mode_options(mode: str | None = None) -> dict[str, Any]:
    """The options that each mode sets, or those of one mode.

    Parameters
    ----------
    mode : str, optional
        The name of a mode.

    Returns
    -------
    dict
        Options by name; without ``mode``, such a dict for each mode.

    Raises
    ------
    InvalidArgument
        Where there is no such mode.

    Examples
    --------
    >>> list_mode_options("max-autotune")
    {'max_autotune': True, 'triton.cudagraphs': True}
    """
    if mode is None:
        return {name: dict(options) for name, options in _MODES.items()}
    _check_mode(mode)
    return dict(_MODES[mode])


def list_options() -> list[str]:
    """The names that ``options=`` takes.

    Returns
    -------
    list of str
        The names, in order.

    Notes
    -----
    ``max_autotune``
        Kernels are timed in several variants on the arrays of the call that is compiled. The fastest is kept, also on
        disk. The results are the same; on a GPU, sums of floats are within the same bound.
    ``exact``
        Results have NumPy's very bits; vector functions and sums of floats then run in NumPy. It is for the CPU.
    ``triton.cudagraphs``
        The kernels that a call runs on CuPy arrays are started as one CUDA graph, where that can pay. No later call
        writes over a result.
    ``trace.enabled``, ``trace.graph_diagram``
        Each compile of the function writes a debug folder into ``tcompile_debug``. Its ``graph.svg`` is the drawing of
        the graph.
    ``epilogue_fusion``
        Kernels that multiply matrices of CuPy's, fused with the operations around them, are among those that
        ``max_autotune`` times beside cuBLAS. It is on unless it is False.
    ``shape_padding``
        Such a product is timed with zeros after rows of odd length, too.
    ``fallback_random``
        Always on: random numbers are NumPy's own.

    Examples
    --------
    >>> list_options()[:4]
    ['epilogue_fusion', 'exact', 'fallback_random', 'max_autotune']
    """
    return sorted(_OPTIONS)


def reset() -> None:
    """Forgets everything compiled, every profile of sizes, every count, the history of events and the compile times.

    Compiled functions stay callable, and are compiled anew.
    """
    _forget_code()
    history.clear()
    times.clear()


def disable(fn: F | None = None, recursive: bool = True, *, reason: str = "") -> Any:
    """Excludes ``fn`` from compilation: compiled code that calls it breaks the graph, and it runs in plain Python.

    Works as a function, as ``@disable`` and as ``@disable(...)``.

    Parameters
    ----------
    fn : callable, optional
        The function.
    recursive : bool
        Whether the functions that ``fn`` calls run in plain Python too, compiled ones among them. With False, they are
        compiled as the caller of ``fn`` is.
    reason : str
        A text for reports.

    Returns
    -------
    callable
        The function that runs plainly; without ``fn``, a decorator.

    Raises
    ------
    InvalidType
        Where an argument has the wrong kind.
    """
    for name, value, kind in (("recursive", recursive, bool), ("reason", reason, str)):
        if not isinstance(value, kind):
            raise InvalidType(f"disable: {name} must be {kind.__name__}, got {type(value).__name__} {value!r}")
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)
    if isinstance(fn, staticmethod | classmethod):
        return type(fn)(disable(fn.__func__, recursive, reason=reason))
    if isinstance(fn, bool | type) or not callable(fn):
        raise InvalidType(f"disable takes a function, got {type(fn).__name__} {fn!r}")
    function = parts_of(fn)[0] if isinstance(fn, CompiledFunction) else fn
    if recursive:
        plainly: Any = stance.set_stance.block("force_eager")(function)  # also for coroutines and generators
        del plainly.__tcompile_stance__
    else:

        @functools.wraps(function)
        def plainly(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        if type(function) is types.FunctionType:
            set_treatment(plainly, Treatment("frame", function))
    plainly.__tcompile_disabled__ = reason  # capture stops here
    return plainly


def run(fn: F) -> Any:
    """Freezes ``fn``: calls use existing compiled code that fits, else plain Python. Nothing is compiled.

    The same holds for the compiled functions that it calls.

    Parameters
    ----------
    fn : callable
        A compiled function, or a plain one, whose entries are those of ``compile(fn)``.

    Returns
    -------
    callable
        The frozen function.

    Raises
    ------
    InvalidType
        Where ``fn`` is no function.

    Examples
    --------
    >>> import numpy as np
    >>> f = compile(lambda x: x + 1)
    >>> frozen = run(f)
    >>> frozen(np.ones(2)), len(f.entries)
    (array([2., 2.]), 0)
    """
    if isinstance(fn, type) or not callable(fn):
        raise InvalidType(f"run takes a function, got {type(fn).__name__} {fn!r}")
    target = fn if isinstance(fn, CompiledFunction) else compile(fn)

    @functools.wraps(fn)
    def frozen(*args: Any, **kwargs: Any) -> Any:
        now = stance.current()
        if now.name == "force_eager":
            return target(*args, **kwargs)
        frozen_as = stance.Stance("eager_on_recompile", skip_guard_eval_unsafe=now.skip_guard_eval_unsafe)
        with stance.set_stance.block(frozen_as):
            return target(*args, **kwargs)

    return frozen


def run_cell(
    code: types.CodeType,
    namespace: dict[str, Any],
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | F = "auto",
    mode: str | None = None,
) -> None:
    """Executes the code of a module in ``namespace``, compiling the array work between statements that break.

    Raises what the statements raise, and under ``fullgraph`` Unsupported.
    """
    check_backend(backend)
    _check_mode(mode)
    settings = _settings(fullgraph, dynamic, backend, mode, None)
    run_statements(code, namespace, settings, compile_region)


def device(name: str) -> stance.set_stance:
    """Returns a ``with`` block or decorator in which compiled functions run on a device: ``"cuda"`` or ``"cpu"``.

    On ``"cuda"``, CuPy's current GPU (``with cupy.cuda.Device(1):`` chooses another), a call copies NumPy arrays to the
    device and its results back. That pays if a call computes much on few bytes. Work that kernels do not cover runs in
    NumPy. The implementation is ``set_stance(force_backend="triton")``, after a check that a GPU is available.

    Parameters
    ----------
    name : str
        The device.

    Returns
    -------
    set_stance
        The block.

    Raises
    ------
    InvalidType, InvalidArgument
        For another name.
    BackendError
        Where there is no GPU, driver, or CuPy.

    Examples
    --------
    >>> import numpy as np
    >>> with device("cpu"):
    ...     compile(np.square)(np.array([3.0]))
    array([9.])
    """
    if type(name) is not str:
        raise InvalidType(f"device must be str, got {type(name).__name__} {_shown(name)}")
    backends = {"cpu": "auto", "cuda": "triton"}
    if name not in backends:
        hint = " CuPy chooses among several GPUs: with cupy.cuda.Device(1): ..." if name.startswith("cuda:") else ""
        raise InvalidArgument(f"there is no device {name!r}.{hint} Devices: {', '.join(backends)}")
    if name == "cuda":
        from tcompile.backends.triton.devices import device as find

        find()
    return stance.set_stance.block(stance.Stance(force_backend=backends[name]))


def set_num_threads(n: int) -> None:
    """Sets the number of threads that kernels use, the calling thread included; for the whole process, from the next
    kernel on.

    At first it is ``TCOMPILE_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the number of processors that this process
    may use.

    Parameters
    ----------
    n : int
        From 1 to 1024.

    Raises
    ------
    InvalidType, InvalidArgument
        Where ``n`` is no such int.
    """
    from tcompile.backends.llvm import native

    if type(n) is not int:
        raise InvalidType(f"n must be int, got {type(n).__name__} {_shown(n)}")
    try:
        native.set_num_threads(n)
    except ValueError:
        raise InvalidArgument(f"n must be from 1 to 1024, got {n}") from None


def get_num_threads() -> int:
    """Returns the number of threads that kernels may use, the calling thread included.

    Returns
    -------
    int
        The number.

    Examples
    --------
    >>> get_num_threads() >= 1
    True
    """
    from tcompile.backends.llvm import native

    return native.num_threads()


def explain(fn: F, *args: Any, **kwargs: Any) -> Any:
    """Returns a function that runs ``fn`` and reports its graphs, breaks and guards as an ExplainOutput.

    Nothing that was compiled before is used, changed or forgotten. ``explain(fn, *args)`` does the same. A break of a
    function under ``fullgraph`` is explained like any other.

    Parameters
    ----------
    fn : callable
        A compiled or a plain function.
    *args, **kwargs
        The arguments of the call, or none.

    Returns
    -------
    callable or ExplainOutput
        A function of the arguments; with arguments, its result.

    Raises
    ------
    InvalidType
        Where ``fn`` is no function.
    """
    if args or kwargs:
        return explain(fn)(*args, **kwargs)
    if not callable(fn):
        raise InvalidType(f"explain takes a function, got {type(fn).__name__} {_shown(fn)}")

    @functools.wraps(fn)
    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        alone, bound, named = by_itself("explain", fn, args, kwargs, fullgraph=False)
        with Recorder(this_thread=True) as recorder, stance.set_stance.block("default"):
            alone(*bound, **named)
        return ExplainOutput.of(recorder.events)

    return explained


def diagnose(fn: F, *, isolate: bool = False, tolerance: float = 1e-3) -> Callable[..., Any]:
    """Returns a function that finds the stage at fault where compiled ``fn`` differs from plain Python.

    It runs ``fn`` in plain Python, then compiled with the graph run in NumPy (``eager``: is capture right?), with the
    transformed graph run in NumPy (``aot_eager``: are the transforms?), and as ``fn`` is compiled (``llvm``: is the
    machine code?). Each run has copies of the arguments. Results, exceptions and changed arguments are compared. Other
    things that ``fn`` changes or prints are done each time.

    Parameters
    ----------
    fn : callable
        A compiled or a plain function. A generator is run to its end.
    isolate : bool
        Whether each graph runs in another process first, for a function that crashes.
    tolerance : float
        The relative distance beyond which floats are wrong.

    Returns
    -------
    callable
        A function of the arguments that returns a ``Diagnosis``: the stage, and the smallest graph that shows the
        fault.

    Raises
    ------
    InvalidType
        Where ``fn`` has no Python code, or is a coroutine function.
    """
    if not callable(fn):
        raise InvalidType(f"diagnose takes a function, got {type(fn).__name__} {_shown(fn)}")

    @functools.wraps(fn)
    def diagnosed(*args: Any, **kwargs: Any) -> Any:
        from tcompile.debug.diagnose import Subject, diagnose

        alone, bound, named = by_itself("diagnose", fn, args, kwargs)
        if alone.function.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise InvalidType(f"diagnose takes a function that can be called as it is, got the coroutine {fn!r}")

        def under(backend: str | Callable[..., Any], exact: bool) -> Callable[..., Any]:
            options = (("exact", True),) if exact else ()
            return by_itself("diagnose", alone, (), {}, fullgraph=False, backend=backend, options=options)[0]

        subject = Subject(alone.function, under, alone.settings.backend, alone.settings.exact)
        return diagnose(subject, bound, named, isolate, tolerance)

    return diagnosed


def profile(fn: F) -> Callable[..., Any]:
    """Returns a function that reports where the time of a call of ``fn`` goes, by line.

    It repeats the call for about a second, and some ten times at least.

    Time in fused kernels, in functions of libraries and in plain Python is told apart. That of a kernel is shared out
    among its lines by a cost model. Nothing that was compiled before is used, changed or forgotten. Each call has
    copies of the arguments; other things that ``fn`` changes are changed in each call. Only the first call's output is
    shown.

    Parameters
    ----------
    fn : callable
        A compiled or a plain function.

    Returns
    -------
    callable
        A function of the arguments that returns a ``ProfileView``: ``ms``, the median of a call, ``plain_ms``, that
        of a call in plain Python, and ``lines``, each with its milliseconds ``fused``, ``library`` and ``plain``.

    Raises
    ------
    InvalidType
        Where ``fn`` is no function with Python code, or gives a generator or a coroutine.

    Examples
    --------
    >>> import numpy as np
    >>> found = profile(lambda x: np.sort(np.sin(x) * 2 + 1))(np.ones(10_000))
    >>> found.kind, found.calls >= 3, found.lines[0].library > 0
    ('profile', True, True)
    """
    if not callable(fn):
        raise InvalidType(f"profile takes a function, got {type(fn).__name__} {_shown(fn)}")

    @functools.wraps(fn)
    def profiled(*args: Any, **kwargs: Any) -> Any:
        from tcompile.debug import profile as profiling

        timed, bound, named = by_itself("profile", fn, args, kwargs, fullgraph=False)
        if timed.function.__code__.co_flags & SUSPENDS:
            raise InvalidType(f"profile takes a function that runs when it is called, got {fn!r}")
        usual = by_itself("profile", fn, args, kwargs)[0]
        works = (profiling.call(one, bound, named) for one in (usual, timed, timed.function))
        return profiling.profile(timed.function.__qualname__, *works)

    return profiled


def by_itself(
    who: str, fn: F, args: tuple[Any, ...], kwargs: dict[str, Any], **settings: Any
) -> tuple[CompiledFunction, tuple[Any, ...], dict[str, Any]]:
    """Returns ``fn`` with a cache of its own, and the arguments with which to call it.

    ``settings`` replace the function's own. Raises InvalidType, whose text names ``who`` as the caller.
    """
    target: Any = fn if isinstance(fn, CompiledFunction) else compile(fn)
    while not isinstance(target, CompiledFunction):
        if isinstance(target, types.MethodType):
            target, args = target.__func__, (target.__self__, *args)
        elif isinstance(target, functools.partial):
            target, args, kwargs = target.func, (*target.args, *args), {**target.keywords, **kwargs}
        else:
            raise InvalidType(f"{who} takes a function with Python code, got {_shown(fn)}")
    plain, own, _ = parts_of(target)
    private = FunctionCache.of(plain, replace(own, **settings))
    private.callees = {}
    return CompiledFunction(plain, private.settings, compile_region, private), args, kwargs


variables.follow(
    {
        "TCOMPILE_TRACE": "tcompile.observe.trace",
        "TCOMPILE_DEBUG": "tcompile.observe.folder",
        "TCOMPILE_REPRO_AFTER": "tcompile.debug.watch",
    }
)

__all__ = [
    "CompileProfiler", "allow_in_graph", "associative_scan", "assume_constant_result", "bus", "by_itself", "compile",
    "compile_times", "compile_with", "cond", "cudagraph_mark_step_begin", "device", "diagnose", "disable",
    "disallow_in_graph", "error_on_graph_break", "events", "explain", "get_num_threads", "graph_break", "is_compiling",
    "list_mode_options", "list_options", "map", "mark_dynamic", "mark_static", "maybe_mark_dynamic",
    "nested_compile_region", "profile", "reset", "run", "run_cell", "scan", "set_num_threads", "substitute_in_graph",
    "unroll", "while_loop",
]  # fmt: skip
