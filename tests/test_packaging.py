"""What is installed is what is imported, and importing it is light."""

from __future__ import annotations

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
    assert expected | {"tcompile/py.typed"} <= set(names)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {
        "tcompile",
        "tcompile_jupyter",
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_imports_alone_and_lightly(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    text = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import numpy; before = set(sys.modules); import tcompile; "
        f"assert tcompile.__file__.startswith({str(tmp_path)!r}), tcompile.__file__; "
        "heavy = {m.split('.')[0] for m in set(sys.modules) - before} & "
        "{'llvmlite', 'IPython', 'ipykernel', 'torch', 'jax', 'numba', 'matplotlib'}; assert not heavy, heavy; "
        "import tcompile_jupyter"
    )
    subprocess.run([sys.executable, "-I", "-c", text], check=True, cwd=tmp_path)


def test_importing_tcompile_loads_no_heavy_package():
    text = (
        "import sys, tcompile; "
        "heavy = {'llvmlite', 'IPython', 'ipykernel', 'torch', 'jax', 'cupy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_every_dependency_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    groups = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
    ]
    names = {
        requirement.partition("[")[0].split(">")[0].split("=")[0] for group in groups for requirement in group
    }
    missing = sorted(name for name in names - {"tcompile"} if f"`{name}`" not in page)
    assert not missing


def test_the_version_is_one():
    import tcompile

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert tcompile.__version__ == project["project"]["version"]
    assert f"## {tcompile.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
