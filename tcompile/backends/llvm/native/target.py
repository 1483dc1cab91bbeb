"""Machine code from LLVM IR text, loaded as long as it is referenced.

Input: textual LLVM IR and the names of the wanted functions.
Output: a ``MachineCode`` with their addresses, made by LLVM or found in the disk cache.
Why: one place knows llvmlite. It is imported at the first use, because its import takes longer than that of all of
tcompile.

No optimisation pipeline runs: the IR that codegen writes is already vectorised and inlined, and the pipeline would take
longer than instruction selection. Only ``alwaysinline`` is obeyed. External symbols are bound when the code is linked
(from ``symbols``, then from the process, the C library, libm and libmvec), so that the IR holds no addresses.

Modules are compiled one after the other: llvmlite holds one lock around every call of LLVM, so that threads would block
each other. Two modules took 118 ms in turn and 155 ms in two threads.

llvmlite's objects free LLVM's memory and hold its locks in Python code, which a Ctrl-C would leave half-done. So the
main thread, the only one that receives signals, lets another one do all that.
"""

from __future__ import annotations

import array
import ctypes
import itertools
import os
import platform
import sys
import threading
import time
import weakref
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache as once
from functools import partial
from importlib import resources
from typing import Any, TypeVar

from tcompile import interpreter, process, reentry, system, versions
from tcompile.backends.disk import cache, key_of
from tcompile.callers import raise_if_callers
from tcompile.collector import no_collection
from tcompile.observe import bus
from tcompile.observe.events import CacheHit, CacheMiss, Event
from tcompile.records import dataclass


@dataclass(frozen=True)
class Machine:
    """The target processor. ``features`` are LLVM's names of its instruction sets.

    ``scalable_bits`` is the width of an SVE vector, which is known only at run time; 0 where there is none.
    """

    triple: str
    cpu: str
    features: frozenset[str]
    scalable_bits: int = 0

    @property
    def masks_bytes(self) -> bool:
        """Whether some bytes of a vector can be loaded and stored at once."""
        return "avx512bw" in self.features and "avx512vl" in self.features

    @property
    def scales_vectors(self) -> bool:
        """Whether one instruction multiplies a vector of floats by powers of two."""
        return "avx512f" in self.features

    @property
    def has_extremes(self) -> bool:
        """Whether one instruction gives the larger of two floats, and NaN where one is.

        Where it does, NumPy uses it, and every ordered vector comparison raises the invalid flag for NaN.
        """
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def fuses(self) -> bool:
        """Whether one instruction multiplies and adds floats, rounding once."""
        return "fma" in self.features or self.triple.startswith(("aarch64", "arm64"))

    @property
    def fences_streams(self) -> bool:
        """Whether a fence alone orders nontemporal stores with other stores."""
        return self.triple.startswith("x86")

    @property
    def makes_unsigned(self) -> bool:
        """Whether one instruction converts floats to unsigned ints."""
        return "avx512f" in self.features or not self.triple.startswith("x86")

    @property
    def scales_registers(self) -> bool:
        """Whether SVE vectors are wider than NEON's; otherwise NEON does as well."""
        return self.scalable_bits > 128

    @property
    def vector_bits(self) -> int:
        """Width in bits of the widest vector register that kernels should use: 512, 256 or 128."""
        if self.scales_registers:
            return min(self.scalable_bits, 512)
        if "avx512f" in self.features:
            return 512
        return 256 if "avx2" in self.features else 128


@dataclass(frozen=True)
class _Tools:
    """llvmlite's objects: one of each for the process, made at the first use and never freed."""

    llvm: Any
    machine_for: Any
    machine: Machine
    layout: str  # LLVM's data layout string
    identity: tuple[str, ...]  # everything that the code depends on beside its IR


# The effort of instruction selection, 0 to 3: the second level cost a tenth more time, and made no kernel and no loop
# measurably faster.
EFFORT = 1

# A linker keeps about 10 KB per library until it is freed, which happens with the last of its libraries.
_LIBRARIES_PER_LINKER = 16

_lock = process.lock()
_serial = itertools.count()
_libraries = itertools.count()
_linker: Any = None
# The owners of loaded code, by number: here the cycle collector does not reach them until they are closed.
_trackers: dict[int, Any] = {}
_dropped: list[int] = []  # numbers of dead code, to be closed with the next load, where no signal interrupts

_UNDISTURBED = 1.0  # seconds for which other threads wait for the GIL, at most
_PATIENCE = 0.5  # seconds until a caller checks whether the thread that it waits for is alive

T = TypeVar("T")


_turns = process.lock()  # held while the switch interval is a long one
_starting = process.lock()  # taken by each thread of ``_run_in_thread`` as it begins its work
_working: set[Any] = set()  # for each such thread a lock, which it holds to its end
_forks = 0  # the number of forks in this process's ancestry


def _before_fork() -> None:
    """Waits for these threads: the child would lack them, but inherit the locks that they hold in LLVM.

    Those that have not begun their work yet do so after the fork, and only in the parent.
    """
    _starting.acquire()
    for done in list(_working):
        with done:
            pass


def _after_fork_in_child() -> None:
    global _forks
    _forks += 1
    _starting.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_starting.release, after_in_child=_after_fork_in_child)


class _Thread:
    """An object that lives as long as a thread."""


@once
def _shared_library(name: str) -> ctypes.CDLL | None:
    """The library, loaded so that the linker sees its symbols; None where there is none."""
    try:
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None


def _run_in_thread(
    run: Callable[[Callable[[], object]], T], wait: Callable[[], object] = lambda: True
) -> Callable[[], T]:
    """Begins to ``run`` in a thread of its own. The returned function waits, and returns its result or raises its
    error.

    Where the wait is interrupted, or never happens, the thread ends all the same. ``run`` is passed a function to call,
    once, when long work without Python begins: until then the caller waits, since it would hold the GIL. ``wait`` comes
    before each wait for that.
    """
    done, busy = allocate_lock(), allocate_lock()
    values: list[T] = []
    errors: list[BaseException] = []

    @reentry.slow
    def work(alive: object) -> None:
        with _starting:
            _working.add(done)
        try:
            values.append(run(busy.release))
        except BaseException as error:
            errors.append(error)
        finally:
            _working.discard(done)
            done.release()
            if busy.locked():
                busy.release()

    def end() -> T:
        with done:
            for error in errors:
                raise error
            if not values:  # there was no memory for the error
                raise MemoryError
            return values[0]

    done.acquire()
    busy.acquire()
    thread = _Thread()
    alive, forks = weakref.ref(thread), _forks
    reentry.release_import_lock()
    try:
        start_new_thread(work, (thread,))
        del thread  # now only the thread refers to it
    except RuntimeError:  # no thread can start, as at interpreter exit
        work(None)
    while not (wait() and busy.acquire(timeout=_PATIENCE)):
        # It has ended before it called `work`, for lack of memory, or a handler has forked this process.
        if busy.locked() and (alive() is None or forks != _forks):
            work(None)
    return end


def uninterrupted(run: Callable[[], T]) -> T:
    """Returns the result of ``run``, or raises its error. Where the wait is interrupted, it still runs to its end."""
    if threading.current_thread() is not threading.main_thread():
        return run()
    made: list[T] = []  # emptied here, as the thread may end a little later
    _run_in_thread(lambda _: made.append(run()))()
    return made.pop()


def undisturbed(run: Callable[[], T], wait: Callable[[int, float], int]) -> T:
    """The same, while no signal handler runs, nor other Python code but that of threads that wait for the GIL already.

    ``wait(address, seconds)`` waits for a byte to be set, without the GIL and without a look at signals.
    """
    with _long_turns():
        if threading.current_thread() is not threading.main_thread():
            return run()
        made, over = list[T](), array.array("b", [0])

        def work(_: object) -> None:
            try:
                made.append(run())
            finally:
                over[0] = 1

        _run_in_thread(work, lambda: wait(over.buffer_info()[0], _PATIENCE))()
        return made.pop()


@contextmanager
def _long_turns() -> Iterator[None]:
    """A block in which other threads wait long for the GIL. Only one thread at a time restores the interval."""
    if not _turns.acquire(blocking=False):
        yield
        return
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_UNDISTURBED)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        _turns.release()


def immortal(value: Any) -> Any:
    """Takes a reference forever, so that not even interpreter exit frees ``value``."""
    take = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
    take(value)
    return value


@once
def _make_tools() -> _Tools:
    import llvmlite

    if versions.numbers(llvmlite.__version__) < versions.LLVMLITE:
        raise ImportError(f"llvmlite {llvmlite.__version__} is too old")
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    if sys.platform == "linux":
        _shared_library("libm.so.6")
        if platform.machine() == "x86_64":
            _shared_library("libmvec.so.1")
    features = llvm.get_host_cpu_features()
    scalable = _scalable_bits()
    if scalable:  # LLVM reads a file, which may describe another processor in a container or an emulator
        features["sve"] = True
    machine = Machine(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), frozenset(name for name, on in features.items() if on),
        scalable,
    )  # fmt: skip
    tools = _tools_for(machine, features.flatten())
    immortal(tools)
    return tools


def _scalable_bits() -> int:
    """The width of a vector of SVE in this process, in bits; 0 where there is none."""
    if sys.platform != "linux" or platform.machine() != "aarch64":
        return 0
    length = ctypes.CDLL(None).prctl(51, 0, 0, 0, 0)  # PR_SVE_GET_VL: bytes in the low half, or an error
    return 8 * (length & 0xFFFF) if length > 0 else 0


def _tools_for(machine: Machine, features: str) -> _Tools:
    """LLVM's objects for a processor, whose ``features`` say what it has and lacks."""
    import llvmlite
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(machine.triple)

    @once
    def machine_for(opt: int) -> Any:
        return target.create_target_machine(
            cpu=machine.cpu, features=features, opt=opt, reloc="pic", codemodel=system.CODE_MODEL, jit=True
        )

    return _Tools(
        llvm=llvm,
        machine_for=machine_for,
        machine=machine,
        layout=str(machine_for(EFFORT).target_data),
        identity=(machine.triple, machine.cpu, features, str(llvm.llvm_version_info), llvmlite.__version__),
    )


def _tools() -> _Tools:
    if _make_tools.cache_info().currsize:
        return _make_tools()

    def make() -> _Tools:
        with _lock, no_collection():
            return _make_tools()

    return uninterrupted(make)


def _next_library(tools: _Tools) -> tuple[Any, str]:
    """A linker, and a name for a library in it. Libraries keep their linker."""
    global _linker
    with _lock:
        serial = next(_libraries)
        if serial % _LIBRARIES_PER_LINKER == 0:
            target = tools.machine_for(EFFORT)
            _linker = tools.llvm.create_lljit_compiler(target, use_jit_link=system.JIT_LINK, suppress_errors=True)
        return _linker, f"tcompile.{serial}"


def source(name: str, values: Mapping[str, object] | None = None, package: str | None = None) -> str:
    """The text of an IR file, each ``$KEY`` replaced by its value; from ``package``, else from beside this module."""
    return system.fill(_text(name, package or __package__ or ""), values or {})


@once
def _text(name: str, package: str) -> str:
    return resources.files(package).joinpath(name).read_text("ascii")


class MachineCode:
    """Loaded machine code: ``code[name]`` is the address of an exported function.

    The addresses hold as long as this object lives; a caller has to keep the object. ``ms`` is the time it took to
    make.
    """

    __slots__ = ("__weakref__", "_number", "addresses", "ir", "ms", "optimise")

    def __init__(
        self, ir: str, addresses: Mapping[str, int], tracker: Any, optimise: bool = False, ms: float = 0.0
    ) -> None:
        self.ir = ir
        self.optimise = optimise
        self.ms = ms
        self.addresses = dict(addresses)
        self._number = next(_serial)
        _trackers[self._number] = tracker
        if process.has_ended():
            _keep_all()

    def __getitem__(self, name: str) -> int:
        return self.addresses[name]

    def __del__(self, drop: Callable[[int], None] = _dropped.append) -> None:
        drop(self._number)

    def assembly(self) -> str:
        """The assembly text of the module, generated from the IR."""
        return uninterrupted(lambda: _assembly(_tools(), self.ir, self.optimise))

    def __repr__(self) -> str:
        return f"Code({', '.join(f'{name}=0x{at:x}' for name, at in self.addresses.items())})"


@contextmanager
def _parsed(tools: _Tools, ir: str) -> Iterator[Any]:
    """The module, freed before its context: after an error, the garbage collector may not free them in this order."""
    context = tools.llvm.create_context()
    with closing(tools.llvm.parse_assembly(ir, context=context)) as module:
        module.verify()
        module.triple, module.data_layout = tools.machine.triple, tools.layout
        yield module


def _run_passes(tools: _Tools, module: Any, ir: str, optimise: bool) -> None:
    if not optimise and "alwaysinline" not in ir:
        return
    target = tools.machine_for(EFFORT)
    if optimise:
        # Level 3 and SLP vectorization took up to half of the time, and made no loop faster.
        options = tools.llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.loop_unrolling = True
        options.slp_vectorization = False
        builder = tools.llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
    else:
        passes = tools.llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        options = tools.llvm.create_pipeline_tuning_options(speed_level=0)
        passes.run(module, tools.llvm.create_pass_builder(target, options))


def _assembly(tools: _Tools, ir: str, optimise: bool) -> str:
    with _parsed(tools, ir) as module:
        _run_passes(tools, module, ir, optimise)
        text: str = tools.machine_for(EFFORT).emit_assembly(module)
    return text


def assembly_for(machine: Machine, ir: str, optimise: bool = False) -> str:
    """The assembly text of a module for a processor that need not be this one; RuntimeError where LLVM lacks it."""
    llvm = _tools().llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = ",".join(f"+{name}" for name in sorted(machine.features))
    return uninterrupted(lambda: _assembly(_tools_for(machine, features), ir, optimise))


def load(
    ir: str, exports: Sequence[str], symbols: Mapping[str, int] | None = None, opt: int = EFFORT, optimise: bool = False
) -> MachineCode:
    """Compiles LLVM IR text for this processor and loads it.

    ``exports`` names the functions and variables whose addresses are wanted; ``symbols`` gives addresses of
    external symbols that the process does not export. ``opt`` is the effort of instruction selection, 0 to
    3; with ``optimise``, LLVM's usual passes run before it. Raises RuntimeError where the IR is not valid or a
    symbol is not found: an error of ours, after which the function runs in plain Python.

    >>> code = load("define i32 @answer() { ret i32 42 }", ["answer"])
    >>> import ctypes
    >>> ctypes.CFUNCTYPE(ctypes.c_int)(code["answer"])()
    42
    """
    return begin(ir, exports, symbols, opt, optimise)()


def begin(
    ir: str, exports: Sequence[str], symbols: Mapping[str, int] | None = None, opt: int = EFFORT, optimise: bool = False
) -> Callable[[], MachineCode]:
    """Starts ``load`` in the background: the returned function waits for the code, or raises the error of ``load``.

    >>> code = begin("define i32 @answer() { ret i32 42 }", ["answer"])
    >>> list(code().addresses)
    ['answer']
    """
    made = _run_in_thread(lambda works: _load(_tools(), ir, exports, symbols or {}, opt, optimise, works))

    def code() -> MachineCode:
        found, told = made()
        if bus.active():
            bus.emit(told())
        return found

    return code


def _load(
    tools: _Tools,
    ir: str,
    exports: Sequence[str],
    symbols: Mapping[str, int],
    opt: int,
    optimise: bool,
    works: Callable[[], object],
) -> tuple[MachineCode, Callable[[], Event]]:
    """The code, and the event that reports how it was obtained."""
    _close_dropped()
    started = time.perf_counter()
    key = key_of(ir, f"{opt} passes 2" if optimise else str(opt), *tools.identity)
    image = cache.find(key)
    kept = image is not None

    def link(image: bytes) -> Any:
        builder = tools.llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for name, address in {**system.library_symbols(ir), **symbols}.items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        return builder.link(*_next_library(tools))

    try:
        if image is None:
            with _parsed(tools, ir) as module:
                works()
                _run_passes(tools, module, ir, optimise)
                image = tools.machine_for(opt).emit_object(module)
        tracker = link(image)
    except RuntimeError as error:
        raise RuntimeError(f"LLVM does not take this module: {error}") from error
    ms = (time.perf_counter() - started) * 1e3
    told: Callable[[], Event] = partial(CacheHit, key=key, ms=ms)
    if not kept:
        cache.keep(key, image)
        told = partial(CacheMiss, key=key, reason="not there")
    return MachineCode(ir, {name: tracker[name] for name in exports}, tracker, optimise, ms), told


def _close_dropped() -> None:
    while _dropped:
        try:
            tracker = _trackers.pop(_dropped.pop(), None)
        except IndexError:  # another thread took it
            break
        if tracker is not None:
            tracker.close()


def keep_forever(code: MachineCode) -> MachineCode:
    """Makes ``code`` outlive the interpreter, for threads and dying objects that may still call it then."""
    immortal(code)
    return code


def _keep_all() -> None:
    """Unloads nothing at exit, since a daemon thread may be inside any kernel while the interpreter ends.

    Nor is the linker freed: its finalizer is Python code that a debugger might still trace.
    """
    immortal((dict(_trackers), _linker))
    _trackers.clear()


process.at_end(_keep_all)


def machine() -> Machine:
    """The processor that code is compiled for."""
    return _tools().machine


def identity() -> tuple[str, ...]:
    """Everything that machine code depends on beside its IR: the processor, and the versions of LLVM and llvmlite."""
    return _tools().identity


def has_half() -> bool:
    """Whether this processor converts between half precision and float32."""
    return platform.machine() in ("aarch64", "arm64") or "f16c" in machine().features


def has_symbol(name: str) -> bool:
    """Whether the vector math function ``name`` of glibc's libmvec can be called on this machine.

    Names follow the x86 vector ABI: ``_ZGVeN16v_expf`` takes 16 floats in one AVX-512 register, ``d`` for
    ``e`` means AVX2, ``b`` SSE4.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64" or not name.startswith("_ZGV"):
        return False
    features = machine().features
    needs = {"b": {"sse4.2"}, "d": {"avx2", "fma"}, "e": {"avx512f", "avx512dq"}}.get(name[4:5])
    if needs is None or not needs <= features:
        return False
    library = _shared_library("libmvec.so.1")
    return library is not None and hasattr(library, name)


_GET = f"which `pip install --upgrade 'llvmlite>={versions.dotted(versions.LLVMLITE)}'` mends"


def unsupported() -> str | None:
    """The reason why this process has no native code, in one sentence; None where it has."""
    if interpreter.refusal is not None:
        return interpreter.refusal
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return "native code needs a 64-bit little-endian machine"
    if platform.machine() not in ("x86_64", "AMD64", "aarch64", "arm64"):
        return f"native code is not made for {platform.machine()} processors"
    if (refusal := system.refusal()) is not None:
        return refusal
    try:
        _tools()
    except ModuleNotFoundError as error:
        return f"{error.name or 'llvmlite'} is not installed, {_GET}"
    except Exception as error:  # whatever fails inside llvmlite, plain NumPy still works
        raise_if_callers(error)  # from a signal handler, while llvmlite was loaded
        return f"llvmlite cannot be used ({versions.first_cause(error)}), {_GET}"
    return None
