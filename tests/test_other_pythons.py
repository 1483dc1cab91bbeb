"""Making a chroot with other versions of CPython: what is said where there can be none, and what is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tool(load_tool, monkeypatch):
    tool = load_tool("other_pythons")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(tool.chroot, "system", lambda name, *arguments: None)
    return tool


def said(tool, monkeypatch, capsys, *arguments):
    """The exit status, and what is printed."""
    monkeypatch.setattr(sys, "argv", ["other_pythons.py", *map(str, arguments)])
    return tool.main(), capsys.readouterr().out


def test_no_root(tool, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    line = "no chroot with python3.14 and python3.15: it takes root\n"
    assert said(tool, monkeypatch, capsys, "smoke") == (1, line)
    assert said(tool, monkeypatch, capsys, "smoke", "--if-possible") == (0, line)
    assert said(tool, monkeypatch, capsys, "test", "python3.15")[1] == "no chroot with python3.15: it takes root\n"


def test_no_debootstrap(tool, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "it takes debootstrap" in said(tool, monkeypatch, capsys, "smoke")[1]


def test_no_namespaces(tool, monkeypatch, capsys):
    def refuses(name, *arguments):
        raise tool.NotPossible(f"{name}: Operation not permitted")

    monkeypatch.setattr(tool.chroot, "system", refuses)
    assert "unshare: Operation not permitted" in said(tool, monkeypatch, capsys, "smoke")[1]


def test_no_network(tool, monkeypatch, capsys, tmp_path):
    """What has been made is not taken for a chroot the next time."""
    folder, calls = tmp_path / "sid", []

    def fails(command, **_):
        calls.append(command[0])
        (folder / "etc").mkdir(exist_ok=True)
        return SimpleNamespace(returncode=1, stdout="I: Retrieving InRelease\nE: Failed getting release file\n")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", fails)
        status, text = said(tool, patch, capsys, "smoke", "--folder", folder)
    assert status == 1 and calls == ["debootstrap"]
    assert text.splitlines()[-1].endswith(
        "debootstrap has failed (I: Retrieving InRelease; E: Failed getting release file)"
    )
    assert not (folder / tool.chroot._MARK).exists()


def test_a_chroot_is_made_once_and_runs_the_target_in_each(tool, monkeypatch, capsys, tmp_path):
    folder, calls = tmp_path / "sid", []

    def runs(command, **keywords):
        calls.append((command, keywords.get("env")))
        return SimpleNamespace(returncode=2 * (command[-1] == "VENV=/opt/python3.14"), stdout="")

    monkeypatch.setenv("MAKEFLAGS", "w")
    monkeypatch.setattr(subprocess, "run", runs)
    assert said(tool, monkeypatch, capsys, "smoke", "--folder", folder)[0] == 2  # of the one that fails
    assert said(tool, monkeypatch, capsys, "test", "python3.15", "--folder", folder)[0] == 0
    names = [command[0] for command, _ in calls]
    assert names == ["debootstrap", "chroot", "chroot", "chroot"]
    assert calls[0][0][-3:-1] == ["sid", str(folder)] and "python3.14-venv" in calls[0][0][2]
    command, environment = calls[-1]
    assert command[1:] == [
        str(folder), "make", "--no-print-directory", "-C", str(ROOT), "test", "PYTHON=python3.15",
        "VENV=/opt/python3.15",
    ]  # fmt: skip
    assert "MAKEFLAGS" not in environment
    assert (folder / "etc" / "hosts").read_bytes() == Path("/etc/hosts").read_bytes()
    assert Path(f"{folder}{ROOT}").is_dir() and not any(Path(f"{folder}{ROOT}").iterdir())


def test_free_threaded_builds_are_made_once(tool, monkeypatch, capsys, tmp_path):
    folder, calls = tmp_path / "sid", []

    def runs(command, **keywords):
        calls.append(command[2:])
        if command[2] == "sh":
            (folder / "usr/local/bin").mkdir(parents=True)
            (folder / "usr/local/bin/python3.14t").touch()
        return SimpleNamespace(returncode=0, stdout="")

    monkeypatch.setattr(subprocess, "run", runs)
    for _ in range(2):
        assert said(tool, monkeypatch, capsys, "refused", "python3.14t", "--folder", folder)[0] == 0
    _, (shell, _, script), *runs_of_make = calls
    assert shell == "sh" and 'source "python3.14=$version"' in script and "--disable-gil" in script
    assert [command[3:5] for command in runs_of_make] == [[str(ROOT), "refused"]] * 2


def test_a_build_that_fails(tool, monkeypatch, capsys, tmp_path):
    """Debian's mirror may lack the source."""
    runs = lambda command, **_: SimpleNamespace(returncode=command[0] == "chroot", stdout="E: Failed to fetch\n")
    monkeypatch.setattr(subprocess, "run", runs)
    arguments = ("refused", "python3.15t", "--folder", tmp_path / "sid")
    status, text = said(tool, monkeypatch, capsys, *arguments)
    line = "no chroot with python3.15t: python3.15t cannot be built (E: Failed to fetch)"
    assert status == 1 and text.splitlines()[-1] == line
    assert said(tool, monkeypatch, capsys, *arguments, "--if-possible")[0] == 0


@pytest.mark.parametrize("arguments", [(), ("smoke", "--remove"), ("smoke", "python2.7")])
def test_arguments(arguments, tool, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        said(tool, monkeypatch, capsys, *arguments)


def test_removal(tool, monkeypatch, capsys, tmp_path):
    (tmp_path / "sid" / "usr").mkdir(parents=True)
    assert said(tool, monkeypatch, capsys, "--remove", "--folder", tmp_path / "sid") == (0, "")
    assert not (tmp_path / "sid").exists()
