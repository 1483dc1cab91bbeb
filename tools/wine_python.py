"""Makes a Windows Python for Wine, so that the tests run as on Windows.

Input: python.org's embeddable package for 64-bit Windows (``python-3.11.9-embed-amd64.zip``), or a folder with its
files.
Output: a folder with that Python, the wheels of NumPy, llvmlite and pytest for Windows, and a Wine prefix. Arguments
after ``--`` run that Python.
Why: the driver of ``windows_objects.py`` has no Python.

    python tools/wine_python.py python-3.11.9-embed-amd64.zip build/wine -- -m pytest tests/native

Needs Wine and mingw-w64. Wine 8 lacks C's complex functions; NumPy gets a library with them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ("numpy", "llvmlite", "pytest", "pytest-xdist", "hypothesis", "colorama")
MINGW = "x86_64-w64-mingw32-"
# NumPy finds C's mathematical functions in the first of these. The second name has the same length, and has all of
# them.
THEIRS, OURS = "api-ms-win-crt-math-l1-1-0.dll", "tc--ms-win-crt-math-l1-1-0.dll"
_COMPLEX = ("sin", "sinh", "tan", "tanh", "cos", "cosh", "exp", "pow", "real", "imag", "arg", "abs")


def make(source: Path, folder: Path) -> Path:
    """Fills the folder; returns the path of ``python.exe``."""
    python = folder / "python"
    python.mkdir(parents=True)
    if source.is_dir():
        shutil.copytree(source, python, dirs_exist_ok=True)
    else:
        zipfile.ZipFile(source).extractall(python)
    (paths,) = python.glob("python3*._pth")
    version = re.fullmatch(r"python3(\d+)\._pth", paths.name)
    assert version is not None
    lines = [f"python3{version[1]}.zip", ".", "site", _windows(ROOT), _windows(ROOT / "jupyter_ext"), "import site"]
    paths.write_text("\n".join(lines) + "\n")
    site = python / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site), "--platform", "win_amd64",
         "--python-version", f"3.{version[1]}", "--only-binary", ":all:", *WHEELS], check=True,
    )  # fmt: skip
    _give_complex_functions(site / "numpy" / "_core", folder)
    for command in (["wineboot", "-i"], ["wine", "winecfg", "-v", "win10"]):
        subprocess.run(command, env=environment(folder), check=True, capture_output=True)
    return python / "python.exe"


def _windows(path: Path) -> str:
    """Returns a path as Windows programs see it under Wine."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


def _give_complex_functions(core: Path, folder: Path) -> None:
    """Makes a library of all mathematical functions that NumPy imports, and patches its name into NumPy."""
    (module,) = core.glob("_multiarray_umath*.pyd")
    listing = subprocess.run([MINGW + "objdump", "-p", str(module)], check=True, capture_output=True, text=True).stdout
    block = listing.partition(f"DLL Name: {THEIRS}")[2].partition("DLL Name:")[0]
    names = re.findall(r"^\t[0-9a-f]+\t.*?(\w+)$", block, re.MULTILINE)
    lines, exports = ["#include <complex.h>"], []
    for name in names:
        part = re.fullmatch(rf"c({'|'.join(_COMPLEX)})([fl]?)", name)
        if part is None or name in ("cosh", "cos"):
            exports.append(f"  {name} = ucrtbase.{name}")
            continue
        real = "float" if part[2] == "f" else "double"  # long double is double there
        result = real if part[1] in ("real", "imag", "arg", "abs") else f"{real} _Complex"
        called = f"c{part[1]}{'f' if part[2] == 'f' else ''}"
        given = "ab" if part[1] == "pow" else "a"
        parameters = ", ".join(f"{real} _Complex {x}" for x in given)
        lines.append(f"{result} tc_{name}({parameters}) {{ return {called}({', '.join(given)}); }}")
        exports.append(f"  {name} = tc_{name}")
    (folder / "complex.c").write_text("\n".join(lines) + "\n")
    (folder / "complex.def").write_text("\n".join([f'LIBRARY "{OURS}"', "EXPORTS", *exports]) + "\n")
    sources = [str(folder / "complex.c"), str(folder / "complex.def")]
    subprocess.run([MINGW + "gcc", "-O1", "-w", "-fno-builtin", "-static", "-shared", "-o", str(core / OURS), *sources],
                   check=True)  # fmt: skip
    module.write_bytes(module.read_bytes().replace(THEIRS.encode(), OURS.encode()))


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment in which Wine runs programs of that folder."""
    cache = _windows(folder / "cache")
    added = {"WINEPREFIX": str((folder / "prefix").resolve()), "WINEDEBUG": "-all", "TCOMPILE_CACHE_DIR": cache}
    return {**os.environ, **added, "PYTHONPATH": ""}


def main() -> None:
    """The command."""
    own, given = sys.argv[1:], list[str]()
    if "--" in own:
        own, given = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, help="the embeddable package, a zip file or a folder")
    parser.add_argument("folder", type=Path, help="where all of it goes; what is there already is used as it is")
    arguments = parser.parse_args(own)
    python = arguments.folder / "python" / "python.exe"
    if not python.exists():
        make(arguments.source, arguments.folder)
    if given:
        # Wine cannot use a file as standard output unless it is seekable.
        done = subprocess.Popen(["wine", str(python), *given], cwd=ROOT, env=environment(arguments.folder),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        assert done.stdout is not None
        for line in done.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
        sys.exit(done.wait())


if __name__ == "__main__":
    main()
