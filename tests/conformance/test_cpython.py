"""CPython's own tests, run compiled: a few quick modules, or all of them where TCOMPILE_TEST_CPYTHON is set.

The variable names the modules, or says ``all``; ``make test-cpython`` sets it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.runner import CPYTHON

ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = ("test_with", "test_scope", "test_unpack_ex", "test_keywordonlyarg", "test_listcomps", "test_augassign")
_chosen = os.environ.get("TCOMPILE_TEST_CPYTHON", "")
CHOSEN = CPYTHON if _chosen == "all" else _chosen.split() or QUICK


@pytest.mark.parametrize("module", CHOSEN)
def test_module(module):
    pytest.importorskip(f"test.{module}", reason="this Python has no test package", exc_type=ImportError)
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.runner", "cpython", module], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
