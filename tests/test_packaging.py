"""What is installed is what is imported, and importing it is light."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-qq",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run([*command, "--disable-pip-version-check"], check=True)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_both_packages_and_nothing_else(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")  # no compiler was needed
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    expected = {str(path.relative_to(ROOT)) for path in (ROOT / "tcompile").rglob("*.py")}
    expected |= {str(path.relative_to(ROOT / "jupyter_ext")) for path in (ROOT / "jupyter_ext").rglob("*.py")}
    assets = (path for ending in ("js", "css") for path in (ROOT / "jupyter_ext").rglob(f"*.{ending}"))
    expected |= {str(path.relative_to(ROOT / "jupyter_ext")) for path in assets}
    assert expected | {"tcompile/py.typed"} <= set(names)
    outside = [name for name in names if name.split("/")[0] not in ("tcompile", "tcompile_jupyter")]
    loaded_by_jupyterlab = f"tcompile-{wheel.name.split('-')[1]}.data/data/share/jupyter/labextensions/tcompile/"
    assert all(".dist-info/" in name or name.startswith(loaded_by_jupyterlab) for name in outside)
    assert f"{loaded_by_jupyterlab}package.json" in outside
    assert any(name.endswith("licenses/LICENSE") for name in names)


LIGHT = """
import sys
sys.path[:0] = {path!r}
import numpy
before = set(sys.modules)
import tcompile
found = {{name.partition(".")[0] for name in set(sys.modules) - before}}
heavy = found & {{"llvmlite", "IPython", "ipykernel", "torch", "jax", "cupy", "numba", "matplotlib"}}
assert not heavy, heavy
print(tcompile.__file__)
import tcompile_jupyter
assert "IPython" not in sys.modules
"""


def test_the_wheel_imports_alone_and_lightly(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-I", "-c", LIGHT.format(path=[str(tmp_path)])]
    printed = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    assert Path(printed.strip()).is_relative_to(tmp_path)


def test_what_is_installed_is_tried(wheel, tmp_path):
    """As continuous integration does on every system; the sources beside it are not what is tried."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)

    def tried(where: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "tools" / "check_install.py")]
        environment = {**os.environ, "PYTHONPATH": str(where)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    done = tried(tmp_path)
    assert done.returncode == 0 and "graphs in machine code" in done.stdout, done.stdout + done.stderr
    assert tried(ROOT).returncode == 1


def test_what_is_installed_imports_lightly():
    subprocess.run([sys.executable, "-c", LIGHT.format(path=[])], check=True)


def test_every_dependency_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    groups = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
    ]
    names = {re.split(r"[\[>=]", requirement)[0] for group in groups for requirement in group}
    missing = sorted(name for name in names - {"tcompile"} if f"`{name}`" not in page)
    assert not missing


def test_the_version_is_one():
    import tcompile

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert tcompile.__version__ == project["project"]["version"]
    assert f"## {tcompile.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


FIRST = """
import gc, sys
import numpy
before = set(sys.modules)
import tcompile
f = tcompile.compile(lambda x: numpy.maximum(x + 1, 0) * 2)
f(numpy.ones(8))
assert f.graphs and gc.isenabled()
print(*sorted(set(sys.modules) - before))
"""


def test_the_first_compile_loads_nothing_that_it_does_not_need():
    printed = subprocess.run([sys.executable, "-c", FIRST], check=True, capture_output=True, text=True).stdout
    needless = {"numpy.random", "hashlib", "html", "difflib", "csv", "sysconfig", "tcompile.graph.draw"}
    assert not needless & set(printed.split())


def test_what_is_needed_is_said_once():
    from tcompile import versions

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={versions.dotted(versions.PYTHON)}"
    numpy, llvmlite = versions.dotted(versions.NUMPY), versions.dotted(versions.LLVMLITE)
    assert project["dependencies"] == [f"numpy>={numpy}", f"llvmlite>={llvmlite}"]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("sys.version_info = (3, 10, 13)", "tcompile needs Python 3.11 or newer, and this is Python 3.10.13"),
        (
            "import numpy; numpy.__version__ = '1.26.4'",
            "tcompile needs NumPy {numpy} or newer, and this is NumPy 1.26.4: pip install 'numpy>={numpy}'",
        ),
        ("sys.modules['numpy'] = None", "tcompile needs NumPy {numpy} or newer, which cannot be imported (Mod"),
    ],
)
@pytest.mark.parametrize("where", ["tcompile", "tcompile_jupyter"])
def test_what_is_too_old_is_refused_with_one_line(before, text, where):
    from tcompile import versions

    program = f"import sys\n{before}\nimport {where}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = done.stderr.rstrip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith(f"ImportError: {text.format(numpy=versions.dotted(versions.NUMPY))}")


@pytest.mark.parametrize(
    "file", ["tcompile/__init__.py", "tcompile/versions.py", "jupyter_ext/tcompile_jupyter/__init__.py"]
)
def test_old_versions_of_python_come_as_far_as_the_refusal(file):
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    ours = [node for node in imported if not isinstance(node, ast.ImportFrom) or node.module.startswith("tcompile")]
    if file == "tcompile/__init__.py":
        assert [alias.name for alias in ours[0].names] == ["versions"]


@pytest.mark.skipif(shutil.which("python3.10") is None, reason="there is no Python 3.10")
def test_python_3_10_says_which_python_is_needed():
    for command in ("import tcompile", "import tcompile_jupyter"):
        done = subprocess.run(
            ["python3.10", "-c", f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'jupyter_ext')]!r}; {command}"],
            capture_output=True, text=True,
        )  # fmt: skip
        if "not found" in done.stderr:  # by a version manager
            pytest.skip(done.stderr)
        assert "ImportError: tcompile needs Python 3.11 or newer, and this is Python 3.10" in done.stderr
