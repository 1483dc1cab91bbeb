"""Lint, types and the import contract are tests like the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["-m", "ruff", "check", "."], id="ruff"),
        pytest.param(["-m", "ruff", "format", "--check", "."], id="format"),
        pytest.param(["-m", "mypy"], id="mypy"),
        pytest.param(["-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"], id="imports"),
    ],
)
def test_style(command):
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
