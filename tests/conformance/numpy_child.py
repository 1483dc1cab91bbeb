"""Runs one module of NumPy's tests in this process, with pytest, and records how each test ended.

Input: on the command line, a module's name (``_core.test_umath``), ``plain`` or ``compiled``, and a file.
Output: in the file, a line of JSON for each test begun and ended, and a last line with counts. A crash leaves the lines
before it.
Why: tests may crash. Fixtures stay plain; the tests and the helpers of their modules are compiled.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import sys
import tempfile
import types
from typing import Any

import hypothesis
import pytest

from tests.conformance.compiling import Compiling, is_numpy_test
from tests.conformance.counting import Counting


class Recording:
    """A plugin of pytest's that writes each test's beginning and end to a file, and runs tests compiled if told."""

    def __init__(self, out: Any, compiling: Compiling | None, left_out: set[str]) -> None:
        self.out, self.compiling, self.left_out = out, compiling, left_out
        self.outcome, self.detail = "pass", ""
        self.functions: dict[Any, Any] = {}  # compiled, by the function

    def note(self, **what: Any) -> None:
        """One line, there even if the next instruction crashes."""
        self.out.write(json.dumps(what) + "\n")
        self.out.flush()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Compiles helpers when pytest has read their signatures and marks; drops what cannot be run compiled."""
        if self.compiling is None:
            return
        items[:] = [i for i in items if name_of(i) not in self.left_out and function_of(i) not in self.left_out]
        for module in {item.module for item in items if isinstance(item, pytest.Function)}:
            for name, value in list(vars(module).items()):
                if isinstance(value, type) and is_numpy_test(value.__module__):
                    self._helpers_of(value)
                elif _is_helper(name, value) and value.__code__.co_filename == module.__file__:
                    setattr(module, name, self.compiling.function(value))

    def _helpers_of(self, cls: type) -> None:
        assert self.compiling is not None
        if not cls.__name__.startswith("Test"):
            self.compiling.type(cls)
            return
        for name, value in list(vars(cls).items()):
            if _is_helper(name, value):
                setattr(cls, name, self.compiling.function(value))

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> None:
        """The test itself, compiled once for all of its parameters."""
        if self.compiling is None:
            return
        test = pyfuncitem.obj
        function = getattr(test, "__func__", test)
        if hasattr(function, "hypothesis"):  # which calls it for each example
            inner = function.hypothesis.inner_test
            if isinstance(inner, types.FunctionType):
                made = self._compiled(inner)
                function.hypothesis.inner_test = functools.wraps(inner)(lambda *args, **more: made(*args, **more))
        elif isinstance(function, types.FunctionType):
            made = self._compiled(function)
            pyfuncitem.obj = types.MethodType(made, test.__self__) if function is not test else made

    def _compiled(self, function: types.FunctionType) -> Any:
        assert self.compiling is not None
        if function not in self.functions:
            self.functions[function] = self.compiling.function(function)
        return self.functions[function]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.outcome, self.detail = "pass", ""
        self.note(begun=nodeid.partition("::")[2])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test is done."""
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            self.outcome = "expected failure" if report.skipped else "unexpected success"
        elif outcome != "passed" and self.outcome == "pass":
            self.outcome = outcome if report.when == "call" else f"{outcome} in {report.when}"
            self.detail = str(report.longrepr)[-4000:]

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test ends."""
        self.note(ended=nodeid.partition("::")[2], outcome=self.outcome, detail=self.detail)


class Patient:
    """A plugin that lets hypothesis take its time, for compiling takes some, and other processes may be at work."""

    def pytest_collection(self) -> None:
        """The settings of all tests that are read from now on."""
        calm = hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None)
        hypothesis.settings.register_profile("patient", calm)
        hypothesis.settings.load_profile("patient")


def name_of(item: pytest.Item) -> str:
    """A test's name within its file, with its parameters."""
    return item.nodeid.partition("::")[2]


def function_of(item: pytest.Item) -> str:
    """A test's name within its file."""
    return name_of(item).partition("[")[0]


def _is_helper(name: str, value: Any) -> bool:
    """Whether a name is that of a function that tests call: no test itself, no set-up, no fixture."""
    special = name.startswith(("test", "setup", "teardown"))
    return isinstance(value, types.FunctionType) and not special and not hasattr(value, "_pytestfixturefunction")


def main(name: str, how: str, path: str, options: dict[str, Any]) -> None:
    """Runs the tests of ``numpy.<package>.tests.<name>``."""
    os.environ["NUMPY_EXPERIMENTAL_DTYPE_API"] = "1"
    package, _, short = name.rpartition(".")
    counting = Counting(assertions=False)
    with open(path, "w") as out, tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        recording, patient = Recording(out, None, set()), Patient()
        patient.pytest_collection()  # for tests take their settings when their module is first imported
        try:
            module = importlib.import_module(f"numpy.{package}.tests.{short}")
        except ModuleNotFoundError as missing:
            recording.note(done={"skipped": str(missing)})
            return
        if how == "compiled":
            import tcompile
            from tcompile.observe import bus
            from tcompile.runtime import regions

            recording.left_out = set(options.pop("left_out"))
            recording.compiling = Compiling(is_numpy_test, options.pop("backend"), options.pop("exact"))
            tcompile.config.stress_capture = True
            for setting, value in options.items():
                setattr(tcompile.config, setting, value)
            regions._at_limit = lambda *about: None  # its warning is for a person, and some tests count warnings
            bus.subscribe(counting)
        assert module.__file__
        arguments = ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "-q", "-m", "not slow"]
        arguments += ["--import-mode=importlib", "--rootdir", os.path.dirname(os.path.dirname(module.__file__))]
        pytest.main([*arguments, "-c", os.devnull, module.__file__], plugins=[recording, patient])
        recording.note(
            done={
                "functions": recording.compiling.count if recording.compiling else 0, "compiles": counting.compiles,
                "captured": counting.captured, "breaks": dict(counting.breaks), "bugs": counting.bugs[:20],
            }
        )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
