"""NumPy's own tests, run compiled: a quick module, or all of them where TCOMPILE_TEST_NUMPY is set.

The variable names the modules, or says ``all``; ``make test-numpy`` runs them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.runner import NUMPY

ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = ("_core.test_errstate", "lib.test_ufunclike")
_chosen = os.environ.get("TCOMPILE_TEST_NUMPY", "")
CHOSEN = NUMPY if _chosen == "all" else _chosen.split() or QUICK


@pytest.mark.parametrize("module", CHOSEN)
def test_module(module):
    pytest.importorskip("numpy._core.tests", reason="this NumPy has no tests", exc_type=ImportError)
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.runner", "numpy", module], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
