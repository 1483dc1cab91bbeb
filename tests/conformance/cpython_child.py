"""Runs one module of CPython's test package in this process and records how each test ended.

Input: on the command line, a module's name, ``plain`` or ``compiled``, and a file.
Output: in the file, a line of JSON for each test begun and ended, and a last line with counts. A crash leaves the lines
before it.
Why: a process of its own, because tests may crash, hang, or change the interpreter for good.
"""

from __future__ import annotations

import collections
import contextlib
import doctest
import importlib
import json
import sys
import tempfile
import traceback
import unittest
from collections.abc import Callable
from typing import Any

from test import support

from tests.conformance.compiling import Compiling, compile_doctests, is_cpython_test
from tests.conformance.counting import Counting


class Recording(unittest.TestResult):
    """Writes each test's beginning and end to a file."""

    def __init__(self, out: Any) -> None:
        super().__init__()
        self.out = out
        self.seen: collections.Counter[str] = collections.Counter()
        self.name = ""  # of the test that runs

    def note(self, **what: Any) -> None:
        """One line, there even if the next instruction crashes."""
        self.out.write(json.dumps(what) + "\n")
        self.out.flush()

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        name = test.id()
        self.seen[name] += 1
        self.name = name if self.seen[name] == 1 else f"{name} #{self.seen[name]}"
        self.outcome, self.detail = "pass", ""
        self.note(begun=self.name)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        if self.name and not isinstance(test, doctest.DocTestCase):  # whose examples are noted one by one
            self.note(ended=self.name, outcome=self.outcome, detail=self.detail)
        self.name = ""

    def _set(self, outcome: str, error: Any = None) -> None:
        if self.outcome == "pass":
            self.outcome = outcome
        if error is not None:
            self.detail += "".join(traceback.format_exception(*error))[-4000:]

    def addFailure(self, test: Any, error: Any) -> None:
        self._outside(test, error, "fail")

    def addError(self, test: Any, error: Any) -> None:
        self._outside(test, error, "error")

    def _outside(self, test: Any, error: Any, outcome: str) -> None:
        """An error of a class's or module's set-up belongs to no test: it gets a line of its own."""
        if self.name:
            self._set(outcome, error)
            return
        detail = "".join(traceback.format_exception(*error))[-4000:]
        self.note(ended=str(test), outcome=outcome, detail=detail)

    def addSkip(self, test: Any, reason: str) -> None:
        if self.name:
            self._set("skip")
        else:  # a class or module; Python 3.12.1 also says so of a test that has not begun
            self.note(ended=str(test), outcome="skip", detail=reason)

    def addExpectedFailure(self, test: Any, error: Any) -> None:
        self._set("expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._set("unexpected success")

    def addSubTest(self, test: Any, subtest: Any, error: Any) -> None:
        if error is not None:
            self._set("fail" if issubclass(error[0], test.failureException) else "error", error)


def note_examples(result: Recording) -> None:
    """From now on each example of a doctest is noted as a test, named by its first line."""

    def noting(outcome: str, text: Callable[..., str]) -> Callable[..., None]:
        def report(runner: Any, out: Any, test: Any, example: Any, *got: Any) -> None:
            line = example.source.partition("\n")[0]
            before = test.examples[: test.examples.index(example)]
            count = sum(other.source.partition("\n")[0] == line for other in before)
            name = f"{test.name}: {line}{f' #{count + 1}' if count else ''}"
            detail = f"{example.source}expected:\n{example.want}{text(*got)}" if outcome != "pass" else ""
            result.note(ended=name, outcome=outcome, detail=detail)

        return report

    # Since CPython 3.15 a DocTestCase has a runner of its own, which reports to the TestResult.
    runner: Any = getattr(doctest, "_DocTestCaseRunner", doctest.DocTestRunner)
    runner.report_success = noting("pass", str)
    runner.report_failure = noting("fail", lambda got: f"got:\n{got}")
    runner.report_unexpected_exception = noting("error", lambda info: "".join(traceback.format_exception(*info)))


def leave_out(tests: unittest.TestSuite, names: set[str]) -> None:
    """Drops the tests that cannot be run compiled at all."""
    tests._tests[:] = [test for test in tests if isinstance(test, unittest.TestSuite) or test.id() not in names]
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            leave_out(test, names)


def main(name: str, how: str, path: str, options: dict[str, Any]) -> None:
    """Runs the tests of ``test.<name>``."""
    support.use_resources = ()  # no network, no large files, no tests that only take processor time
    support.verbose = 0
    counting, compiling = Counting(), Compiling(is_cpython_test, options.pop("backend", "eager"))
    with open(path, "w") as out, tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        result = Recording(out)
        note_examples(result)
        try:
            module = importlib.import_module(f"test.{name}")
        except (unittest.SkipTest, ModuleNotFoundError) as skipped:
            result.note(done={"skipped": str(skipped)})
            return
        if how == "compiled":
            import tcompile
            from tcompile.observe import bus
            from tcompile.runtime import regions

            left_out = {f"test.{name}.{test}" for test in options.pop("left_out")}
            tcompile.config.stress_capture = True
            for setting, value in options.items():
                setattr(tcompile.config, setting, value)
            regions._at_limit = lambda *about: None  # its warning is for a person, and some tests count warnings
            bus.subscribe(counting)
            compiling.module(module)
            compile_doctests(compiling)
        tests = unittest.TestLoader().loadTestsFromModule(module)
        if how == "compiled":
            leave_out(tests, left_out)
        tests.run(result)
        result.note(
            done={
                "functions": compiling.count, "compiles": counting.compiles, "captured": counting.captured,
                "breaks": dict(counting.breaks), "bugs": counting.bugs[:20],
            }
        )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
