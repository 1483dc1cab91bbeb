"""Compiles kernels and the pools for Windows, links them with a driver, and runs that under Wine.

Input: the programs below, compiled and run here.
Output: ``driver.exe`` and its file of launches in a folder; with ``--run``, the driver's output.
Why: machine code for Windows can be made and run without Windows.

    python tools/windows_objects.py build/windows --run

Needs mingw-w64 (Debian: ``gcc-mingw-w64-x86-64``) and, to run it, Wine. The objects are for this machine's processor,
in the form that LLVM loads on Windows: ``x86_64-pc-windows-msvc``, with all addresses as literals.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import tcompile
from tcompile import system
from tcompile.backends.llvm import host, native
from tcompile.backends.llvm.native import entries, interrupts, launch, memory, threads
from tcompile.config import config

TRIPLE = "x86_64-pc-windows-msvc"
GCC = "x86_64-w64-mingw32-gcc"
DRIVER = Path(__file__).with_name("windows_driver.c")
THREADS = 8
# A frame of many pages, each of which must be touched in order.
DEEP = """
define i32 @tc_deep(ptr %words, i64 %begin, i64 %end) nounwind {
  %frame = alloca [300000 x i8], align 16
  %far = getelementptr i8, ptr %frame, i64 %begin
  store volatile i8 1, ptr %far
  %one = load volatile i8, ptr %far
  %wide = zext i8 %one to i64
  %sum = load ptr, ptr %words
  %old = atomicrmw add ptr %sum, i64 %wide seq_cst
  ret i32 0
}
"""
STUBS = """
define i32 @tc_late(ptr %last) nounwind { ret i32 0 }
define i32 @tc_due(ptr %clock) nounwind { ret i32 0 }
@tc_held = global [4096 x i64] zeroinitializer
@tc_held_count = global i64 0
"""


def _programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 301))
    single, small = x.astype("f4"), rng.integers(-9, 9, (500, 600)).astype("i1")
    whole = rng.integers(-(1 << 40), 1 << 40, (300, 401))

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def smooth(u: Any) -> Any:
        u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] - 2 * u[1:-1, 1:-1])
        return u

    def walk(x: Any) -> Any:
        total, above = 0.0, 0
        for i in range(len(x)):
            if x[i] > 1:
                above += 1
            total = total * 0.5 + np.sqrt(abs(x[i]))
        return total, above

    return {
        "pointwise": (lambda x: np.maximum(x + 1, 0) * 2 - np.abs(x) / 3, (x,)),
        "functions": (lambda x: np.sin(x) * np.exp(-x * x) * np.log1p(np.abs(x) + 1), (x,)),
        "softmax": (softmax, (single,)),
        "columns": (lambda x: (x.var(axis=0), x.min(axis=0)), (x,)),
        "sums": (lambda x: ((x * x).sum(), x.max()), (x,)),
        "stencil": (smooth, (single.copy(),)),
        "transposed": (lambda x, y: x.T + y, (x, np.ascontiguousarray(x.T))),
        "scan": (lambda x: np.cumsum(x, axis=1), (x,)),
        "masks": (lambda x: (np.where(x > 0, x, -x), (x > 3).any(axis=1)), (small,)),
        "integers": (lambda i: (i // 7 + i % 5, (i & 12) << 1), (whole,)),
        "half": (lambda x: x.astype("float16") + 1, (single,)),
        "positions": (lambda x: (x.argmax(axis=1), x.argmin(axis=0)), (x,)),
        "divisions": (lambda x: 1 / np.floor(x), (x,)),
        "scalar loop": (walk, (x.ravel()[:20000].copy(),)),
    }


class Recorder:
    """Intercepts launches: records the modules, and each launch's buffers before and after."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.names: dict[int, str] = {}  # of functions, by address
        self.launches: list[bytes] = []
        self.inexact = False

    def begin(self, ir: str, exports: Sequence[str], symbols: Mapping[str, int] | None = None, **how: Any) -> Any:
        """Replaces ``native.begin``; functions get unique names across modules."""
        strange = set(symbols or {}) - {*native.flags(), *interrupts.functions()}
        assert not strange, f"only this process has {strange}"
        for name in exports:
            ir = ir.replace(f"@{name}(", f"@p{len(self.modules)}_{name}(")
        renamed = [f"p{len(self.modules)}_{name}" for name in exports]
        self.modules.append(ir)
        waiting = self._begin(ir, renamed, symbols, **how)

        def code() -> Any:
            made = waiting()
            self.names |= {at: name for name, at in made.addresses.items()}
            made.addresses |= {name: made.addresses[new] for name, new in zip(exports, renamed, strict=True)}
            return made

        return code

    def launch(self, kernel: int, spec: bytes, items: int, grain: int, *arguments: Any) -> int:
        """Records a call of the builtin ``launch``."""
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        places = _merged([np.lib.array_utils.byte_bounds(array) for array in arrays if array.size])
        before = [_bytes_at(*place) for place in places]
        status = self._launch(kernel, spec, items, grain, *arguments)
        kinds = [self._kind(place, arrays) for place in places]
        words = []
        for letter, argument in zip(spec.decode(), arguments, strict=True):
            words += self._words(letter, argument, places)
        parts = [struct.pack("<6q", self._function(kernel), items, grain, status, len(places), len(words))]
        for place, old, kind in zip(places, before, kinds, strict=True):
            parts += [struct.pack("<3q", len(old), place[0] % 64, kind), old, _bytes_at(*place)]
        self.launches.append(b"".join([*parts, *(struct.pack("<3q", *word) for word in words)]))
        return status

    def _kind(self, place: tuple[int, int], arrays: Sequence[np.ndarray[Any, Any]]) -> int:
        """Returns 0 if all bits must be equal, else the size of a float."""
        inside = [a for a in arrays if a.size and place[0] <= a.__array_interface__["data"][0] < place[1]]
        floats = {a.dtype.itemsize for a in inside if a.dtype.kind == "f"}
        exact = not self.inexact or len(floats) != 1 or not floats <= {4, 8} or len({a.dtype for a in inside}) > 1
        return 0 if exact else floats.pop()

    def _words(self, letter: str, argument: Any, places: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
        if letter == "f":
            return [(0, *struct.unpack("<q", struct.pack("<d", argument)), 0)]
        if letter == "i":
            return [(2, self._function(argument), 0)] if argument in self.names else [(0, argument, 0)]
        at = argument.__array_interface__["data"][0]
        inside = [(1, k, at - low) for k, (low, high) in enumerate(places) if low <= at < high] or [(0, 0, 0)]
        return inside + [(0, stride, 0) for stride in argument.strides if letter == "s"]

    def _function(self, address: int) -> int:
        return list(self.names).index(address)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Compiles programs as on Windows, which has no vector library, and records them."""
        self._begin, self._launch = native.begin, native.launcher()
        shared = launch.shared()
        self.names |= {shared[name]: name for name in launch.FILLS.values()}
        self.names |= {entries.entry(n): f"tc_enter_{n}" for n in range(entries.MOST + 1)}
        with contextlib.ExitStack() as stack:
            for name, stand_in in (
                ("begin", self.begin),
                ("launcher", lambda: self.launch),
                ("has_symbol", lambda name: False),
            ):
                stack.enter_context(mock.patch.object(native, name, stand_in))
            for limit in ("LEAST_NS", "SHARED_NS"):  # small launches are shared among threads, too
                stack.enter_context(mock.patch.object(host, limit, 1000))
            stack.enter_context(config.patch(native_calls=False))
            yield


def _merged(bounds: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the union of these memory ranges, each beginning at a whole word."""
    found: list[tuple[int, int]] = []
    for low, high in sorted((low & -8, high) for low, high in bounds):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def _bytes_at(low: int, high: int) -> bytes:
    import ctypes

    return ctypes.string_at(low, high - low)


def record() -> Recorder:
    """Runs all programs twice, and compares them with plain Python."""
    recorder = Recorder()
    before = tcompile.get_num_threads()
    tcompile.set_num_threads(THREADS)
    try:
        with recorder.recording(), np.errstate(all="ignore"):
            for name, (function, arguments) in _programs().items():
                recorder.inexact = name in ("functions", "softmax")  # C libraries differ in the last bits
                known = len(recorder.launches)
                wanted = function(*(a.copy() for a in arguments))
                found = tcompile.compile(function, fullgraph=True)(*arguments)
                results = [r if isinstance(r, tuple) else (r,) for r in (found, wanted)]
                for a, b in zip(*results, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-4 if recorder.inexact else 1e-12)
                assert len(recorder.launches) > known, f"{name}: no kernel was launched"
    finally:
        tcompile.set_num_threads(before)
    return recorder


def _texts(recorder: Recorder) -> dict[str, str]:
    """Returns the IR of each object."""
    with mock.patch.multiple(sys, platform="win32"), mock.patch.dict(os.environ, {system.VARIABLE: ""}):
        texts = {
            "threads": threads._ir(), "memory": memory._ir(), "clock": system.text("clock"),
            "launch": launch._ir().partition("\ndeclare i64 @PyLong_AsLongLong")[0],
            "entries": "\n".join([launch.FLAGS, *(entries._entry(n) for n in range(entries.MOST + 1))]),
            "rest": DEEP + STUBS,
        }  # fmt: skip
    return texts | {f"kernels_{k}": text for k, text in enumerate(recorder.modules)}


def build(folder: Path) -> Path:
    """Writes objects, launches and the driver into ``folder``; returns the path of ``driver.exe``."""
    import llvmlite.binding as llvm

    folder.mkdir(parents=True, exist_ok=True)
    recorder = record()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    features = llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=1, reloc="pic", codemodel="large", jit=True
    )
    objects = []
    for name, text in _texts(recorder).items():
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = TRIPLE, str(machine.target_data)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))
        objects.append(folder / f"{name}.obj")
        objects[-1].write_bytes(machine.emit_object(module))
    names = list(recorder.names.values())
    declared = "".join(f"int32_t {name}(int64_t *, int64_t, int64_t);\n" for name in names)
    table = f"Kernel const functions[] = {{{', '.join(f'(Kernel){name}' for name in names)}}};\n"
    head = "#include <stdint.h>\ntypedef int32_t (*Kernel)(int64_t *, int64_t, int64_t);\n"
    (folder / "functions.c").write_text(head + declared + table)
    (folder / "launches.bin").write_bytes(b"".join([struct.pack("<q", len(recorder.launches)), *recorder.launches]))
    (folder / "ntdll.def").write_text("LIBRARY ntdll.dll\nEXPORTS\n__chkstk\n")  # missing from mingw-w64's library
    library = str(folder / "libchkstk.a")
    subprocess.run([GCC.replace("gcc", "dlltool"), "-d", str(folder / "ntdll.def"), "-l", library], check=True)
    driver = folder / "driver.exe"
    sources = [str(DRIVER), str(folder / "functions.c"), *map(str, objects)]
    subprocess.run([GCC, "-O1", "-o", str(driver), *sources, library, "-lsynchronization"], check=True)
    return driver


def run(driver: Path, prefix: Path) -> str:
    """Returns the driver's output under Wine, whose files are in ``prefix``. Raises CalledProcessError if it fails."""
    environment = {**os.environ, "WINEPREFIX": str(prefix.resolve()), "WINEDEBUG": "-all"}
    done = subprocess.run(
        ["wine", str(driver), "launches.bin"], cwd=driver.parent, env=environment, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, "driver.exe", done.stdout, done.stderr)
    return done.stdout.strip()


def missing() -> list[str]:
    """Returns missing prerequisites."""
    return [name for name in (GCC, "wine") if shutil.which(name) is None]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where objects and the driver go")
    parser.add_argument("--run", action="store_true", help="run the driver under Wine")
    arguments = parser.parse_args()
    driver = build(arguments.folder)
    print(driver)
    if arguments.run:
        print(run(driver, arguments.folder / "wine"))


if __name__ == "__main__":
    main()
