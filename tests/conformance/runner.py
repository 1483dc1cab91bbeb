"""Runs other projects' test modules plainly and with every function compiled, and compares how each test ends.

Three suites: CPython's own tests, NumPy's own tests, and the Array API test suite (which is not installed with
anything: https://github.com/data-apis/array-api-tests, cloned with its submodule, next to ``pip install
pytest-json-report ndindex``), for which NumPy's functions are compiled instead of the tests'.

Enters (command line): the suite, and names of modules of its test package, by default those of ``SUITES``. Output: a
table of counts, each difference with what the compiled run said, and the exit status: 1 where a difference is not
among those that the suite's table (``cpython.toml``, …) accepts, each with its reason.

    python -m tests.conformance.runner cpython test_with test_scope --stress-breaks 3 --json build/cpython.json
    python -m tests.conformance.runner numpy _core.test_umath --backend llvm --exact
    python -m tests.conformance.runner array_api --path ~/array-api-tests --examples 1000 --backend llvm
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
CPYTHON = (
    "test_grammar", "test_scope", "test_with", "test_exceptions", "test_unpack", "test_unpack_ex", "test_extcall",
    "test_keywordonlyarg", "test_patma", "test_listcomps", "test_setcomps", "test_dictcomps", "test_contextlib",
    "test_dataclasses", "test_enum", "test_functools", "test_itertools", "test_operator", "test_iter", "test_augassign",
    "test_compare", "test_range", "test_slice", "test_builtin", "test_list", "test_dict", "test_set", "test_tuple",
    "test_generators", "test_genexps", "test_coroutines", "test_asyncgen", "test_raise", "test_except_star",
    "test_exception_group", "test_exception_variations", "test_decorators", "test_descr", "test_super", "test_class",
    "test_property", "test_named_expressions", "test_fstring", "test_string_literals",
    "test_int", "test_float", "test_complex", "test_bool", "test_bytes", "test_str", "test_unicode", "test_collections",
    "test_userdict", "test_userlist", "test_heapq", "test_bisect", "test_random", "test_statistics",
    "test_fractions", "test_decimal",
    "test_math", "test_copy", "test_abc", "test_funcattrs", "test_call", "test_positional_only_arg", "test_defaultdict",
    "test_ordered_dict", "test_deque", "test_enumerate", "test_index", "test_richcmp", "test_binop", "test_contains",
    "test_global", "test_opcodes", "test_pow", "test_string", "test_textwrap", "test_types", "test_typing",
    "test_weakref", "test_json", "test_pprint", "test_graphlib", "test_dynamic", "test_dynamicclassattribute",
    "test_isinstance", "test_subclassinit", "test_baseexception", "test_contextlib_async", "test_with_signal",
)  # fmt: skip
NUMPY = (
    "_core.test_umath", "_core.test_numeric", "_core.test_ufunc", "_core.test_indexing", "_core.test_multiarray",
    "_core.test_nep50_promotions", "_core.test_scalarmath", "_core.test_shape_base", "_core.test_einsum",
    "_core.test_errstate", "_core.test_half", "_core.test_item_selection", "_core.test_mem_overlap",
    "_core.test_function_base", "_core.test_indexerrors", "_core.test_umath_complex", "_core.test_casting_unittests",
    "_core.test_scalar_methods", "_core.test_arrayprint", "_core.test_regression", "_core.test_overrides",
    "_core.test_array_coercion", "_core.test_dtype", "_core.test_getlimits", "_core.test_longdouble",
    "lib.test_function_base", "lib.test_nanfunctions", "lib.test_arraypad", "lib.test_arraysetops",
    "lib.test_histograms", "lib.test_index_tricks", "lib.test_packbits", "lib.test_polynomial", "lib.test_shape_base",
    "lib.test_stride_tricks", "lib.test_twodim_base", "lib.test_type_check", "lib.test_ufunclike",
    "linalg.test_linalg", "fft.test_pocketfft", "fft.test_helper", "_core.test_nditer", "random.test_random",
    "random.test_randomstate", "random.test_generator_mt19937", "random.test_smoke", "random.test_direct",
)  # fmt: skip


@dataclass(frozen=True)
class Suite:
    """A package of tests: the module of ours that runs one of its modules, and those that are run by default."""

    child: str
    modules: tuple[str, ...]


ARRAY_API = (
    "test_array_object", "test_constants", "test_creation_functions", "test_data_type_functions", "test_fft",
    "test_has_names", "test_indexing_functions", "test_inspection_functions", "test_linalg",
    "test_manipulation_functions", "test_operators_and_elementwise_functions", "test_searching_functions",
    "test_set_functions", "test_signatures", "test_sorting_functions", "test_special_cases",
    "test_statistical_functions", "test_utility_functions",
)  # fmt: skip
SUITES = {
    "cpython": Suite("cpython_child", CPYTHON),
    "numpy": Suite("numpy_child", NUMPY),
    "array_api": Suite("array_api_child", ARRAY_API),
}


@dataclass
class Outcomes:
    """How the tests of a module ended in one run."""

    ended: dict[str, tuple[str, str]] = field(default_factory=dict)  # by test: outcome and the traceback's text
    counts: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""  # a crash or a run out of time


@dataclass
class Difference:
    """A test that ends differently."""

    test: str
    plain: str
    compiled: str
    accepted: str  # the reason, or nothing
    detail: str = ""


@dataclass
class Report:
    """What came of one module."""

    module: str
    tests: int
    differences: list[Difference]
    counts: dict[str, Any]
    trouble: str

    @property
    def good(self) -> bool:
        """Whether every difference is an accepted one."""
        return not self.trouble and all(d.accepted for d in self.differences) and not self.counts.get("bugs")


def run_child(suite: str, module: str, how: str, options: dict[str, Any], seconds: float) -> Outcomes:
    """Runs a module's tests in a process of its own."""
    outcomes = Outcomes()
    # PYTHONHASHSEED: the order of sets is the same in both runs.
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder, "outcomes"), Path(folder, "log")
        command = [sys.executable, "-m", f"tests.conformance.{SUITES[suite].child}", module, how]
        command += [str(path), json.dumps(options)]
        with log.open("wb") as text:
            try:
                status = subprocess.run(
                    command,
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=text,
                    stderr=text,
                    timeout=seconds,
                ).returncode
                trouble = f"exit status {status}" if status else ""
            except subprocess.TimeoutExpired:
                trouble = f"not done after {seconds:.0f} s"
        begun = ""
        for line in path.read_text().splitlines() if path.exists() else ():
            row = json.loads(line)
            if "ended" in row:
                outcomes.ended[row["ended"]] = (row["outcome"], row["detail"])
                begun = ""
            elif "done" in row:
                outcomes.counts = row["done"]
            else:
                begun = row["begun"]
        if trouble or not outcomes.counts:
            end = log.read_text(errors="replace")[-1500:]
            outcomes.trouble = f"{trouble or 'ended early'}{f' in {begun}' if begun else ''}\n{end}"
    return outcomes


def compare(suite: str, module: str, options: dict[str, Any], seconds: float, accepted: dict[str, str]) -> Report:
    """Runs a module both ways; one of the Array API test suite plainly only where the compiled run was not all good."""
    left_out = [test for test, reason in accepted.items() if reason.startswith("not run")]
    compiled = run_child(suite, module, "compiled", {**options, "left_out": left_out}, seconds)
    good = not compiled.trouble and all(outcome == "pass" for outcome, _ in compiled.ended.values())
    one_will_do = good and suite == "array_api"
    plain = compiled if one_will_do else run_child(suite, module, "plain", options, seconds)
    differences = []
    for test in {**plain.ended, **compiled.ended}:
        want, got = plain.ended.get(test, ("not run", "")), compiled.ended.get(test, ("not run", ""))
        if want[0] != got[0] and (suite != "array_api" or want[0] == "pass"):  # which also draws examples at random
            short = test.removeprefix(f"test.{module}").lstrip(".: ")
            reason = accepted.get(short) or accepted.get(short.partition("[")[0], "")
            differences.append(Difference(test, want[0], got[0], reason, got[1] or want[1]))
    bugs = compiled.counts.get("bugs", [])
    compiled.counts["bugs"] = [bug for bug in bugs if bug.partition(":")[0] not in accepted]
    trouble = (plain.trouble and f"plain: {plain.trouble}") or compiled.trouble
    if not trouble and not plain.ended and "skipped" not in plain.counts:
        trouble = "no test has noted how it ended"
    return Report(module, len(plain.ended), differences, compiled.counts, trouble)


def expected(suite: str) -> dict[str, dict[str, str]]:
    """The accepted differences: for each module, the test and its reason."""
    with Path(__file__).with_name(f"{suite}.toml").open("rb") as file:
        table: dict[str, dict[str, list[str]]] = tomllib.load(file)
    return {
        module: {test: reason for reason, tests in reasons.items() for test in tests}
        for module, reasons in table.items()
    }


def table_row(report: Report) -> str:
    """One line of the table."""
    counts = report.counts
    open_ = sum(not d.accepted for d in report.differences)
    cells = (
        report.tests, len(report.differences) - open_, open_, counts.get("functions", ""), counts.get("compiles", ""),
        counts.get("captured", ""), sum(counts.get("breaks", {}).values()) if counts else "",
    )  # fmt: skip
    if "skipped" in counts:
        return f"{report.module:28}  skipped: {counts['skipped']}"
    return f"{report.module:28}" + "".join(f"{cell:>11}" for cell in cells)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("modules", nargs="*", help="by default all that are known to say something")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--exact", action="store_true", help="results with NumPy's very bits (of NumPy's tests)")
    parser.add_argument("--path", type=Path, help="of the Array API test suite")
    parser.add_argument("--examples", type=int, default=20, help="for each test of the Array API test suite")
    parser.add_argument("--stress-breaks", type=int, default=0, metavar="K", help="break at every k-th instruction")
    parser.add_argument("--verify", action="store_true", help="bugs of tcompile's raise where they happen")
    parser.add_argument("--json", type=Path, help="write everything found to this file")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a module's run")
    parser.add_argument("--detail", type=int, default=1200, help="characters shown of a difference's traceback")
    chosen = parser.parse_args()
    options: dict[str, Any] = {"verify": chosen.verify, "backend": chosen.backend}
    if chosen.suite == "numpy":
        options["exact"] = chosen.exact
    if chosen.suite == "array_api":
        if chosen.path is None or not chosen.path.is_dir():
            parser.error("--path has to say where the Array API test suite lies")
        options = {"backend": chosen.backend, "suite": str(chosen.path.resolve()), "examples": chosen.examples}
    if chosen.stress_breaks:
        options["stress_breaks"] = chosen.stress_breaks
    accepted = expected(chosen.suite)
    names = ("tests", "accepted", "different", "functions", "compiles", "captured", "breaks")
    print(f"{'module':28}" + "".join(f"{name:>11}" for name in names), flush=True)
    reports: list[Report] = []
    breaks: Counter[str] = Counter()
    with ThreadPoolExecutor(chosen.jobs) as pool:
        run = lambda name: compare(chosen.suite, name, options, chosen.timeout, accepted.get(name, {}))
        for report in pool.map(run, chosen.modules or SUITES[chosen.suite].modules):
            reports.append(report)
            breaks.update(report.counts.get("breaks", {}))
            print(table_row(report), flush=True)
            for difference in report.differences:
                if report.trouble and difference.compiled == "not run":
                    continue
                print(f"    {difference.test}: {difference.plain}, compiled {difference.compiled}", end="")
                print(f" (accepted: {difference.accepted})" if difference.accepted else "")
                if not difference.accepted and chosen.detail:
                    print("        " + difference.detail[-chosen.detail :].replace("\n", "\n        "))
            for bug in report.counts.get("bugs", ()):
                print(f"    bug: {bug}")
            if report.trouble:
                print(f"    {report.trouble}".replace("\n", "\n        "))
    print("breaks:", ", ".join(f"{reason} {count}" for reason, count in breaks.most_common()) or "none")
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps([asdict(report) for report in reports], indent=1))
    return int(not all(report.good for report in reports))


if __name__ == "__main__":
    sys.exit(main())
