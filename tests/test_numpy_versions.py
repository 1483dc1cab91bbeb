"""The table of NumPy's versions: each row is what this NumPy does, no other file asks, older versions are refused."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tcompile import numpy_versions, versions

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("tcompile", "jupyter_ext", "tests", "tools", "benchmarks")
FILES = [path for top in TOPS for path in (ROOT / top).rglob("*.py")]
INTS = np.arange(6)


def warns(function, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return bool(caught)


def one_element():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return isinstance(np.float64(np.ones(1)), np.ndarray)


def checks_indices():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            np.zeros((3, 0))[[5]]
        except IndexError:
            return True
    return False


def states_signatures():
    try:
        return inspect.signature(np.putmask) is not None
    except ValueError:
        return False


# What shows each row. NEGATES_RIGHTLY depends on the processor too.
SHOWN = {
    "HAS_MATVEC": lambda: hasattr(np, "matvec") and hasattr(np, "vecmat"),
    "POWER_LOOKS_AT_TYPES": lambda: (np.ones(2, "f4") ** np.float64(2)).dtype == "f8",
    "DOT_WARNS": lambda: warns(np.dot, np.full(2, 1e300), np.full(2, 1e300)),
    "INDICES_CHECKED_BESIDE_EMPTY": checks_indices,
    "COUNTS_ARE_NUMPYS": lambda: isinstance(np.count_nonzero(INTS), np.intp),
    "ROUND_COPIES_INTEGERS": lambda: INTS.round() is not INTS,
    "TYPES_KEEP_ONE_ELEMENT": one_element,
    "SIGNATURES_IN_C_STATED": states_signatures,
    "NEGATES_RIGHTLY": lambda: bool(numpy_versions.NEGATES_RIGHTLY),
}


def test_every_row_is_what_this_numpy_does():
    assert {name: show() for name, show in SHOWN.items()} == {n: bool(r) for n, r in numpy_versions.ROWS.items()}


def test_those_that_ask_are_named():
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
    known = ("tcompile/numpy_versions.py", "tests/test_numpy_versions.py")
    for name, row in numpy_versions.ROWS.items():
        asking = {path for path, text in texts.items() if re.search(rf"\b{name}\b", text) and path not in known}
        assert asking == set(row.asked_by.split(", ")), name
        assert versions.NUMPY < row.version <= numpy_versions.NEWEST


def decides(tree):
    """Whether a module compares NumPy's version with anything, or takes it apart."""
    for node in ast.walk(tree):
        inside = (*node.body, *node.orelse) if isinstance(node, ast.If) else ()
        if isinstance(node, ast.Compare | ast.If | ast.IfExp | ast.Call):
            found = [part for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr == "__version__"]
            hidden = [part for statement in inside for part in ast.walk(statement)]
            ours = [part for part in found if part not in hidden and ast.unparse(part.value) in ("np", "numpy")]
            if ours and (not isinstance(node, ast.Call) or "ersion" in ast.unparse(node.func)):
                return True
    return False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if np.__version__ > '2': pass", True), ("x = np.lib.NumpyVersion(np.__version__) < '2.5.0'", True),
        ("x = 1 if numpy.__version__ else 2", True), ("print(np.__version__)", False),
        ("if a: print(np.__version__)", False), ("x = {'numpy': np.__version__}", False),
    ],
)  # fmt: skip
def test_what_counts_as_a_decision(text, expected):
    assert decides(ast.parse(text)) is expected


def test_no_other_file_decides_by_numpys_version():
    allowed = {ROOT / "tcompile" / "numpy_versions.py", ROOT / "tests" / "test_benchmarks.py"}  # the latter: a report
    deciding = {path for path in FILES if decides(ast.parse(path.read_text(encoding="utf-8")))}
    assert deciding <= allowed


def test_the_page_has_the_rows():
    text = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8").partition("## NumPy\n")[2]
    assert re.findall(r"^\| (\d\.\d) \| ([^|]+) \|$", text, re.MULTILINE) == [
        (versions.dotted(row.version), row.what) for row in numpy_versions.ROWS.values()
    ]


# -- what is refused -----------------------------------------------------------------------------------------------


def wheel(folder, name, version, requires=()):
    """A wheel with nothing in it."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {r}" for r in requires)]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", "\n".join(metadata) + "\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.mark.parametrize(("numpy", "refused"), [("1.26.4", True), ("2.0.2", True), ("2.1.0", False)])
def test_the_installer_refuses_an_older_numpy(tmp_path, numpy, refused):
    pytest.importorskip("pip")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel(tmp_path, "tcompile", project["version"], project["dependencies"])
    wheel(tmp_path, "llvmlite", "99.0")
    wheel(tmp_path, "numpy", numpy)
    command = ["-m", "pip", "install", "--isolated", "--dry-run", "--no-index", "--ignore-installed", "--no-cache-dir"]
    done = subprocess.run(
        [sys.executable, *command, "--find-links", str(tmp_path), "tcompile", f"numpy=={numpy}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode != 0) is refused, done.stdout + done.stderr
    assert not refused or re.search(rf"tcompile \S+ depends on numpy>={versions.dotted(versions.NUMPY)}", done.stdout)


def refusal_of(folder):
    """What importing tcompile says beside what lies in this folder, and the exit status."""
    program = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]; import tcompile"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.returncode, done.stderr.rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from numpy._core import lost", "ModuleNotFoundError: No module named 'numpy._core'"),
        ("import math\nmath.sin.lost", "AttributeError: 'builtin_function_or_method' object has no attribute 'lost'"),
        (
            "try:\n    from math import lost\nexcept ImportError as e:\n    raise ImportError('\\n\\nREAD') from e",
            "ImportError: cannot import name 'lost' from 'math'",
        ),
        ("raise RuntimeError('\\n  module compiled against another ABI\\n')", "RuntimeError: module compiled against"),
    ],
)  # fmt: skip
def test_parts_of_several_numpys_are_refused_with_one_line(tmp_path, text, reason):
    """As where an upgrade was cut short: the files of one version, the machine code of another."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text(text, encoding="utf-8")
    status, line = refusal_of(tmp_path)
    needed = versions.dotted(versions.NUMPY)
    assert status == 1
    assert line.startswith(f"ImportError: tcompile needs NumPy {needed} or newer, which cannot be imported ({reason}")
    assert line.endswith(f"): pip install --force-reinstall 'numpy>={needed}'")
