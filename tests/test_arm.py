"""Running Python on an emulated processor: what is said where that cannot be, what is installed, how it is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import instructions
from benchmarks.kernels import KERNELS


@pytest.fixture
def tool(load_tool, monkeypatch, tmp_path):
    tool = load_tool("arm")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(tool.chroot, "system", lambda name, *arguments: None)
    monkeypatch.setattr(tool, "_REGISTERED", tmp_path / "binfmt_misc")
    monkeypatch.setattr(tool, "_FORMAT", tmp_path / "qemu-aarch64.conf")
    (tmp_path / "binfmt_misc").mkdir()
    (tmp_path / "qemu-aarch64.conf").write_text(":qemu-aarch64:M::magic:mask:qemu:OPF\n")
    return tool


def said(tool, monkeypatch, capsys, *arguments):
    """The exit status, and what is printed."""
    monkeypatch.setattr(sys, "argv", ["arm.py", *map(str, arguments)])
    return tool.main(), capsys.readouterr().out


def test_no_root(tool, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert said(tool, monkeypatch, capsys, "--", "-V") == (1, "no ARM processor: it takes root\n")
    assert said(tool, monkeypatch, capsys, "--if-possible", "--", "-V")[0] == 0


def test_no_emulator(tool, monkeypatch, capsys):
    tool._FORMAT.unlink()
    assert "qemu-user-static" in said(tool, monkeypatch, capsys, "--", "-V")[1]


def test_it_is_made_once_and_runs_python(tool, monkeypatch, capsys, tmp_path):
    folder, calls = tmp_path / "arm64", []

    def runs(command, **keywords):
        calls.append((command, keywords.get("env")))
        target = Path(f"{folder}{tool.PACKAGES_OF_PYTHON}")
        target.mkdir(parents=True, exist_ok=True)
        return SimpleNamespace(returncode=3 * (command[0] == "chroot"), stdout="")

    monkeypatch.setattr(subprocess, "run", runs)
    for _ in range(2):
        given = ("--folder", folder, "--cpu", "max", "--", "-m", "pytest", "-x")
        assert said(tool, monkeypatch, capsys, *given)[0] == 3
    assert (tmp_path / "binfmt_misc" / "register").read_text() == tool._FORMAT.read_text().strip()
    assert [command[0] for command, _ in calls] == ["debootstrap", sys.executable, "chroot", "chroot"]
    assert "--arch=arm64" in calls[0][0] and "manylinux_2_28_aarch64" in calls[1][0]
    command, environment = calls[-1]
    assert command[-3:] == ["-m", "pytest", "-x"] and environment["QEMU_CPU"] == "max"


def test_what_is_installed(tool):
    names = " ".join(tool.requirements())
    assert "numpy" in names and "pytest" in names and "ruff" not in names and "tcompile[" not in names


def test_markers_are_those_of_the_emulated_processor(tool):
    """The host's pip would ask them of the host, and look for wheels that do not exist."""
    assert tool.is_for_arm("numpy>=2.1")
    assert not tool.is_for_arm("py-spy; platform_machine == 'x86_64'")
    assert not [text for text in tool.requirements() if text.startswith(("scalene", "py-spy", "line_profiler"))]


@pytest.mark.parametrize("arguments", [(), ("--remove", "--", "-V")])
def test_arguments(arguments, tool, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        said(tool, monkeypatch, capsys, *arguments)


def test_counts_become_a_table():
    marks = [(6400, 640), (640, 320)] * (2 * len(KERNELS))
    rows = instructions.table(marks, (8, 8))
    assert rows[0]["numpy"] == {"instructions": 100.0, "vectors": 0.1} and rows[0]["tcompile"]["vectors"] == 0.5
    about = {"date": "2030-01-02", "command": "c", "processor": "p", "python": "3.11", "versions": {"numpy": "2"}}
    page = instructions.markdown({"about": about, "shape": [8, 8], "rows": rows})
    assert "| relu | float32 | 100.00 (10) | 10.00 (50) | 10.00 |" in page
