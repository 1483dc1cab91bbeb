"""The table of backends by name.

Input: names and callables.
Output: ``Backend`` records, which compile a graph to a callable.
Why: users select a backend by name, and add their own.

A backend is any ``f(graph, example_inputs) -> callable``; the callable takes the graph's inputs and returns the
sequence of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tcompile.errors import BackendError, InvalidArgument, InvalidType, did_you_mean
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.graph import Graph

Compiled = Callable[..., Sequence[Any]]
Compile: TypeAlias = "Callable[[Graph, Sequence[Any]], Compiled]"
_DEBUG_TAGS = ("debug", "experimental")


@dataclass(frozen=True)
class Backend:
    """One backend. ``transformed``: it takes graphs after the transforms. ``builtin``: it is part of tcompile.

    ``devices`` says where the arrays of a graph may be, ``options`` which options the backend takes. ``under`` returns
    the compile function for some of these options; None: they make no difference.
    """

    name: str
    compile: Compile
    transformed: bool = False
    tags: tuple[str, ...] = ()
    builtin: bool = False
    devices: tuple[str, ...] = ("cpu",)
    options: tuple[str, ...] = ()
    under: Callable[[Mapping[str, Any]], Compile] | None = None

    def compiler(self, options: Mapping[str, Any]) -> Compile:
        """The compile function under these options."""
        return self.compile if self.under is None else self.under(options)


def _eager(graph: Graph, example_inputs: Sequence[Any]) -> Compiled:
    def run(*args: Any) -> Sequence[Any]:
        # A condition that NumPy would report becomes an error here, so that plain Python reports it from the user's own
        # line.
        report: Any = {category: "raise" for category, action in np.geterr().items() if action != "ignore"}
        with np.errstate(**report):
            return graph(*args)

    return run


def _llvm(options: Mapping[str, Any]) -> Compile:
    exact, autotune = bool(options.get("exact")), bool(options.get("max_autotune"))

    def compile(graph: Graph, example_inputs: Sequence[Any]) -> Compiled:
        from tcompile.backends.llvm import begin_graph  # llvmlite is loaded when first needed

        return begin_graph(graph, example_inputs, exact=exact, autotune=autotune)

    return compile


def _triton(options: Mapping[str, Any]) -> Compile:
    cudagraphs, autotune = bool(options.get("triton.cudagraphs")), bool(options.get("max_autotune"))
    fused, filled_up = autotune and bool(options.get("epilogue_fusion", True)), bool(options.get("shape_padding"))

    def compile(graph: Graph, example_inputs: Sequence[Any]) -> Compiled:
        from tcompile.backends.triton import compile_graph, tuning  # Triton is loaded when first needed

        wanted = ((tuning.DIVIDED, autotune), (tuning.FUSED, fused), (tuning.FILLED_UP, filled_up))
        tuned = frozenset[str]().union(*(properties for properties, on in wanted if on))
        return compile_graph(graph, example_inputs, cudagraphs=cudagraphs, tuned=tuned)

    return compile


_OF_THE_CPU = ("max_autotune", "exact")
_BACKENDS: dict[str, Backend] = {
    b.name: b
    for b in (
        Backend(  # fused machine code for the CPU
            "llvm", _llvm({}), transformed=True, builtin=True, options=_OF_THE_CPU, under=_llvm,
        ),
        # The captured graph, run in NumPy, and the same after the transforms.
        Backend("eager", _eager, tags=("debug",), builtin=True, options=_OF_THE_CPU),
        Backend("aot_eager", _eager, True, tags=("debug",), builtin=True, options=_OF_THE_CPU),
        Backend(  # fused kernels for NVIDIA's GPUs
            "triton", _triton({}), transformed=True, builtin=True, devices=("cpu", "cuda"),
            options=("max_autotune", "triton.cudagraphs", "epilogue_fusion", "shape_padding"), under=_triton,
        ),
    )
}  # fmt: skip


def register_backend(compile: Compile | None = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Adds a backend: ``register_backend(f)``, ``register_backend(f, name="mine")`` or as a decorator.

    Parameters
    ----------
    compile : callable, optional
        ``f(graph, example_inputs)`` gets the captured graph and the inputs of the call that is being compiled. It
        returns a callable over the graph's inputs that returns the sequence of its outputs; ``return graph`` is the
        simplest.
    name : str, optional
        The backend's name; by default that of the function.
    tags : sequence of str
        ``list_backends`` leaves out those tagged ``debug`` or ``experimental``.

    Returns
    -------
    callable
        ``compile``; without it, a decorator.

    Raises
    ------
    InvalidType
        Where ``compile`` is not callable.
    InvalidArgument
        Where the name is taken by a built-in backend.
    """
    if compile is None:
        return lambda function: register_backend(function, name, tags)
    if not callable(compile):
        raise InvalidType(f"register_backend takes a callable, got {type(compile).__name__} {compile!r}")
    own = name or getattr(compile, "__name__", None)
    if not isinstance(own, str) or not own:
        raise InvalidArgument("register_backend needs a name for this callable")
    if own == "auto" or (own in _BACKENDS and _BACKENDS[own].builtin):
        raise InvalidArgument(f"backend name {own!r} belongs to tcompile")
    _BACKENDS[own] = Backend(own, compile, False, tuple(tags))
    return compile


def list_backends(exclude_tags: Sequence[str] | None = _DEBUG_TAGS) -> list[str]:
    """The names of the backends, without those tagged ``debug`` or ``experimental``; with ``None``, all of them.

    Parameters
    ----------
    exclude_tags : sequence of str, optional
        The tags that are left out.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> list_backends()[:2]
    ['auto', 'llvm']
    >>> "eager" in list_backends(None)
    True
    """
    excluded = set(exclude_tags or ())
    return ["auto", *(b.name for b in _BACKENDS.values() if not excluded & set(b.tags))]


def check_backend(backend: str | Compile, argument: str = "backend") -> None:
    """Raises InvalidArgument or InvalidType where ``backend`` is neither a known name nor a callable.

    ``argument`` is what the user's function calls it.
    """
    if isinstance(backend, str):
        if backend != "auto" and backend not in _BACKENDS:
            names = list_backends(None)
            hint = did_you_mean(backend, names)
            raise InvalidArgument(
                f"{argument} must be a callable or a backend's name, got {backend!r}: there is no backend of that "
                f"name.{hint} Backends: {', '.join(names)}"
            )
    elif not callable(backend):
        got = f"{type(backend).__name__} {backend!r}"
        raise InvalidType(f"{argument} must be a callable or a backend's name, got {got}")


def registered_backend(backend: str | Compile) -> Backend | None:
    """The backend of that name; None for a callable, for ``auto``, and for an unknown name."""
    return _BACKENDS.get(backend) if isinstance(backend, str) else None


def takes_option(backend: str | Compile, option: str) -> bool:
    """Whether ``backend`` takes an option: ``auto`` takes all, since it stands for several backends."""
    return isinstance(backend, str) and (backend == "auto" or option in _BACKENDS[backend].options)


def why_no_native() -> str | None:
    """The reason why this process has no native code; None where it has. The first call loads LLVM."""
    from tcompile.backends.llvm import native

    return native.unavailable()


def why_not_on(device: str) -> str | None:
    """The reason why no backend runs graphs over arrays on this kind of device now (``cuda``); None where one does."""
    if device != "cuda":
        return None
    from tcompile.backends.triton.devices import unavailable

    return unavailable()


def find_backend(backend: str | Compile, device: str = "cpu") -> Backend:
    """The record of a name or callable, for a graph over arrays on ``device``.

    ``auto`` is ``llvm``, or ``aot_eager`` where there is no native code; for arrays on a GPU it is ``triton``. Raises
    BackendError where tcompile's own backend of that name does not run there, or ``llvm`` not at all.
    """
    check_backend(backend)
    if backend == "auto":
        if device != "cpu":
            backend = "triton"
        else:
            backend = "llvm" if why_no_native() is None else "aot_eager"
    if not isinstance(backend, str):
        return Backend(getattr(backend, "__name__", type(backend).__name__), backend)
    if backend == "llvm" and (reason := why_no_native()) is not None:
        raise BackendError(f"backend='llvm' cannot be used: {reason}. With backend='auto' it is plain Python.")
    found, kind = _BACKENDS[backend], device.partition(":")[0]
    if found.builtin and kind not in found.devices:
        able = ", ".join(["auto", *(b.name for b in _BACKENDS.values() if b.builtin and kind in b.devices)])
        raise BackendError(f"backend={backend!r} takes no arrays on {device}; for these use one of: {able}")
    return found
