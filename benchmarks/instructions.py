"""Instruction counts of the kernels on an emulated 64-bit ARM processor, tcompile's beside NumPy's.

Input: this machine, with the requirements of ``tools/arm.py``, qemu-user and a C compiler.
Output: a table as JSON and Markdown.
Why: the clock means nothing on an emulated processor, and a bad code path shows in counts too.

    python -m benchmarks.instructions [--shape 512x512] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kernels import KERNELS

ROOT = Path(__file__).resolve().parent.parent
DTYPES = ("float32", "float64")
_MARK = """
declare void @llvm.aarch64.hint(i32)
define void @mark() {
  call void @llvm.aarch64.hint(i32 77)
  ret void
}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="512x512", help="rows x columns of the arrays (512x512)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", help="a folder")
    parser.add_argument("--cpu", default="neoverse-n1", help="qemu's name of a processor (neoverse-n1)")
    parser.add_argument("--inside", action="store_true", help="run the kernels, where instructions are counted")
    given = parser.parse_args(arguments)
    rows, columns = map(int, given.shape.split("x"))
    if given.inside:
        run_kernels((rows, columns))
        return 0
    told, marks = counted(given.shape, given.cpu)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    command = f"python -m benchmarks.instructions --shape {given.shape}"
    data = {
        "suite": "aarch64", "about": {"date": date, "command": command, **told},
        "shape": [rows, columns], "rows": table(marks, (rows, columns)),
    }  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"{date}-aarch64"
    path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n")
    path.with_suffix(".md").write_text(markdown(data))
    print(markdown(data))
    return 0


def run_kernels(shape: tuple[int, int]) -> None:
    """Calls each kernel once in NumPy and once compiled, between marks."""
    import llvmlite

    import tcompile
    from tcompile.backends.llvm.native import machine, target

    code = target.load(_MARK, ["mark"])
    mark = ctypes.CFUNCTYPE(None)(code["mark"])
    told = {"processor": os.environ.get("QEMU_CPU", machine().cpu), "python": sys.version.split()[0]}
    versions = {"numpy": np.__version__, "llvmlite": llvmlite.__version__, "tcompile": tcompile.__version__}
    print(json.dumps({**told, "versions": versions}), flush=True)
    for kernel in KERNELS.values():
        for dtype in DTYPES:
            arrays = kernel.inputs(shape, np.dtype(dtype))
            compiled = tcompile.compile(kernel.numpy)
            for function in (kernel.numpy, compiled):
                for _ in range(3):
                    function(*arrays)  # once more than it takes until native calls are used
                mark()
                function(*arrays)
                mark()


def counted(shape: str, cpu: str) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The emulated process's description of itself, and instructions between marks: all, and vector ones."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = Path(folder) / "instructions.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(plugin), str(source)], check=True)
        command = [
            sys.executable, str(ROOT / "tools" / "arm.py"), "--cpu", cpu, "--plugin", str(plugin), "--",
            "-m", "benchmarks.instructions", "--inside", "--shape", shape,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"TCOMPILE_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    lines = [line.split() for line in done.stderr.splitlines() if line.startswith("instructions ")]
    totals = [(int(every), int(vectors)) for _, every, vectors in lines]
    pairs = zip(totals[::2], totals[1::2], strict=True)
    return json.loads(done.stdout.splitlines()[-1]), [(b[0] - a[0], b[1] - a[1]) for a, b in pairs]


def table(marks: Sequence[tuple[int, int]], shape: tuple[int, int]) -> list[dict[str, Any]]:
    """A row for each kernel and dtype: instructions per element of the arrays, and the share of vector instructions."""
    found = []
    left = iter(marks)
    for kernel in KERNELS.values():
        for dtype in DTYPES:
            elements = max(array.size for array in kernel.inputs(shape, np.dtype(dtype)))
            elements = shape[0] ** 2 if kernel.name == "pairwise" else elements
            row: dict[str, Any] = {"name": kernel.name, "dtype": dtype}
            for who in ("numpy", "tcompile"):
                every, vectors = next(left)
                row[who] = {"instructions": every / elements, "vectors": vectors / every}
            found.append(row)
    return found


def markdown(data: dict[str, Any]) -> str:
    """The table as a page."""
    about, rows, columns = data["about"], *data["shape"]
    versions = " · ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [
        "# Instructions on 64-bit ARM: tcompile beside NumPy", "",
        f"{about['date']} · qemu's {about['processor']}, one thread · Python {about['python']} · {versions}", "",
        f"`{about['command']}`", "",
        f"Instructions for one element of {rows} x {columns} (of the result for `pairwise`), and in brackets how many "
        "in a hundred are arithmetic on vectors. The call of Python is in it. Instructions are not time.", "",
        "| kernel | dtype | NumPy | tcompile | times fewer |", "|---|---|---:|---:|---:|",
    ]  # fmt: skip
    for row in data["rows"]:
        cells = [f"{row[w]['instructions']:.2f} ({100 * row[w]['vectors']:.0f})" for w in ("numpy", "tcompile")]
        fewer = row["numpy"]["instructions"] / row["tcompile"]["instructions"]
        lines.append(f"| {row['name']} | {row['dtype']} | {cells[0]} | {cells[1]} | {fewer:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
