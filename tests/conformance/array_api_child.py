"""Runs one module of the Array API test suite in this process, and records how each test ended.

Input: on the command line, a module's name (``test_linalg``), ``plain`` (NumPy itself) or ``compiled`` (the namespace
of ``compiled_numpy``), and a file. Options give the suite's folder, and the number of examples per test.
Output: as ``numpy_child``.
Why: tests may crash.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.counting import Counting
from tests.conformance.numpy_child import Recording


def main(name: str, how: str, path: str, options: dict[str, Any]) -> None:
    """Runs the tests of ``array_api_tests/<name>.py``."""
    suite = Path(options["suite"])
    counting = Counting(assertions=False)
    os.environ["ARRAY_API_TESTS_MODULE"] = "tests.conformance.compiled_numpy" if how == "compiled" else "numpy"
    os.environ["TCOMPILE_TEST_BACKEND"] = options.get("backend", "")
    with open(path, "w") as out:
        recording = Recording(out, None, set())
        if how == "compiled":
            from tcompile.config import config
            from tcompile.observe import bus

            config.stress_capture = True  # what is a call of NumPy alone is captured all the same
            bus.subscribe(counting)
        os.chdir(suite)
        sys.path.insert(0, str(suite))
        arguments = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--disable-deadline", "--derandomize"]
        arguments += ["--max-examples", str(options["examples"]), f"array_api_tests/{name}.py"]
        pytest.main(arguments, plugins=[recording])
        recording.note(
            done={
                "compiles": counting.compiles, "captured": counting.captured, "breaks": dict(counting.breaks),
                "bugs": counting.bugs[:20],
            }
        )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
