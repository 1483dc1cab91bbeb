"""set_logs: what is switched on is printed, in one layout, wherever logging goes."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tcompile.errors import InvalidArgument, InvalidType
from tcompile.observe import bus, logs
from tcompile.observe.events import (
    CacheHit,
    CacheMiss,
    CallTimed,
    CompileFinished,
    CompileStarted,
    FellBack,
    GraphBroke,
    GraphCaptured,
    GuardFailed,
    KernelCompiled,
    LoopTimed,
    PassFinished,
    RecompileStarted,
    StanceChanged,
)
from tcompile.observe.logs import ARTIFACTS, set_logs
from tcompile.observe.source_location import UserLine


@pytest.fixture(autouse=True)
def _off():
    set_logs(all=False)
    yield
    set_logs(all=False)
    assert logs._unsubscribe is None


LINE = UserLine(file="cell", line=2, column=7, end_column=14, function="f", text="    if x.sum() < 0:")
GRAPH = SimpleNamespace(readable=lambda: "graph graph_0: 1 op\n  x", code="def graph_0(x):\n    ...\n")
OUTER = UserLine(file="cell", line=9, function="g", text="f(x)")
ID = {"function": "f", "compile_id": "0/1"}
EVENTS = [
    CompileStarted(**ID, where=LINE, reason="first call"),
    GuardFailed(**ID, entry=0, source="x", guard="x.shape[0] == 3", expected="3", seen="4", hint="mark_dynamic(x, 0)"),
    RecompileStarted(**ID, number=1, reasons=("x.shape[0] == 3, seen 4",)),
    GraphCaptured(
        **ID,
        graph="graph_0",
        ops=1,
        guards=("x.ndim == 1",),
        get_graph=lambda: GRAPH,
    ),
    GraphBroke(
        **ID,
        reason="branch",
        headline="A branch",
        explanation="Why.",
        hints=("Do.",),
        where=LINE,
        stack=(OUTER, LINE),
    ),
    PassFinished(**ID, name="cse", ms=0.25, before=4, after=3, get_graph=lambda: GRAPH),
    CacheHit(**ID, key="1a2b", ms=0.125),
    CacheMiss(**ID, key="3c4d", reason="another version wrote it"),
    KernelCompiled(
        **ID,
        kernel="k0",
        nodes=("add", "max"),
        lines=(LINE,),
        ms=5,
        description="pointwise",
        get_ir=lambda: "define void",
        get_assembly=lambda: "vaddps",
    ),
    FellBack(**ID, reason="recompile limit", detail="8 entries"),
    CompileFinished(
        **ID,
        backend="llvm",
        graphs=1,
        kernels=2,
        ms=3.5,
        phases={"capture": 1.0, "llvm": 2.5},
        get_entry_code=lambda: "def entry(p0):\n    ...\n",
        get_graph_code=lambda: "",
    ),
    StanceChanged(stance="force_eager", previous="default", scope="block"),
    CallTimed(**ID, ms=0.5),
    LoopTimed(**ID, where=LINE, runs=2, iterations=100, ms=0.5),
]

TEXTS = {
    "compiles": [
        '[0/1] f: compiling, first call\n  File "cell", line 2, in f\n    if x.sum() < 0:\n       ^^^^^^^\n',
        "[0/1] f: compiled by llvm in 3.50 ms: 1 graph, 2 kernels (ms: capture 1.00, llvm 2.50)\n",
    ],
    "recompiles": ["[0/1] f: recompile 1, because no entry fits this call\n    x.shape[0] == 3, seen 4\n"],
    "graph": ["[0/1] f: captured graph graph_0: 1 op\n  x\n"],
    "graph_code": ["[0/1] f: code of graph_0\n    def graph_0(x):\n        ...\n"],
    "guards": ["[0/1] f: 1 guard of graph_0\n    x.ndim == 1\n"],
    "graph_breaks": [
        '[0/1] f: graph break: A branch [branch]\n  File "cell", line 2, in f\n    if x.sum() < 0:\n       ^^^^^^^\n'
        "    Why.\n    Hint: Do.\n"
    ],
    "passes": ["[0/1] f: pass cse: 4 to 3 ops in 0.25 ms\n"],
    "schedule": [
        '[0/1] f: kernel k0: pointwise\n    2 ops: add, max\n  File "cell", line 2, in f\n    if x.sum() < 0:\n'
    ],
    "kernel_code": ["[0/1] f: kernel k0, compiled in 5.00 ms\n    define void\n"],
    "output_code": ["[0/1] f: program of the entry\n    def entry(p0):\n        ...\n"],
    "cache": [
        "[0/1] f: found 1a2b in the disk cache in 0.12 ms\n",
        "[0/1] f: 3c4d is not in the disk cache: another version wrote it\n",
    ],
    "perf_hints": ["[0/1] f: runs in plain Python: recompile limit\n    8 entries\n"],
    "stances": ["stance default to force_eager (block)\n"],
    "calls": [
        "[0/1] f: compiled call, 0.500 ms\n",
        "[0/1] f: the loop of cell, line 2: 0.5 ms for 100 iterations, 5 µs each in 2 runs\n",
    ],
}
DETAILS = {
    "passes": TEXTS["passes"][0] + "    graph graph_0: 1 op\n      x\n",
    "recompiles": "[0/1] f: guard of entry 0 failed: x.shape[0] == 3: expected 3, seen 4\n"
    "    Hint: mark_dynamic(x, 0)\n" + TEXTS["recompiles"][0],
    "kernel_code": TEXTS["kernel_code"][0] + "assembly\n    vaddps\n",
    "graph_breaks": '[0/1] f: graph break: A branch [branch]\n  File "cell", line 9, in g\n    f(x)\n'
    '  File "cell", line 2, in f\n    if x.sum() < 0:\n'
    "       ^^^^^^^\n    Why.\n    Hint: Do.\n",
}


def emit_all():
    for event in EVENTS:
        bus.emit(event)


@pytest.mark.parametrize("name", ARTIFACTS)
def test_each_artifact_prints_its_own_events_only(name, capsys):
    set_logs(**{name: True})
    emit_all()
    assert capsys.readouterr() == ("", "".join(TEXTS[name]))
    set_logs(**{name: False})
    emit_all()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", DETAILS)
def test_detail(name, capsys):
    set_logs(**{name: "+"})
    emit_all()
    assert capsys.readouterr().err == DETAILS[name]


def test_switches_are_independent(capsys):
    set_logs(graph=True, passes=True)
    set_logs(guards=True, passes=False)
    emit_all()
    assert capsys.readouterr().err == TEXTS["graph"][0] + TEXTS["guards"][0]
    set_logs("-graph, +recompiles")
    emit_all()
    assert capsys.readouterr().err == DETAILS["recompiles"] + TEXTS["guards"][0]


def test_all(capsys):
    set_logs(all=True, calls=False)
    emit_all()
    err = capsys.readouterr().err
    assert all(text in err for name, texts in TEXTS.items() for text in texts if name != "calls")
    assert TEXTS["calls"][0] not in err
    set_logs("all,-graph")
    assert "graph" not in logs._on and "calls" in logs._on


def test_listens_only_while_something_is_on():
    before = bus.active()
    set_logs(graph=True)
    assert bus.active()
    set_logs(graph=False)
    assert bus.active() == before


def test_logging_captures_too(caplog, capsys):
    set_logs(passes=True)
    emit_all()
    (record,) = caplog.records
    assert record.name == "tcompile.passes" and record.levelno == logging.INFO
    assert record.getMessage() == TEXTS["passes"][0].strip()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_printed_once_where_the_program_configures_logging(capsys):
    set_logs(passes=True)
    handler = logging.StreamHandler()
    logging.getLogger().addHandler(handler)
    try:
        emit_all()
    finally:
        logging.getLogger().removeHandler(handler)
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "call", [lambda: set_logs(grph=True), lambda: set_logs("+grph"), lambda: set_logs("guards,grph")]
)
def test_unknown_name(call):
    with pytest.raises(InvalidArgument) as error:
        call()
    assert "Did you mean 'graph'?" in str(error.value) and all(name in str(error.value) for name in ARTIFACTS)
    assert not logs._on


@pytest.mark.parametrize("name, ours", [("verbose_guards", "guards"), ("fusion", "schedule"), ("dynamo", "compiles")])
def test_names_of_torch_compile_lead_to_ours(name, ours):
    with pytest.raises(InvalidArgument, match=f"Did you mean '{ours}'"):
        set_logs(name)
    assert set(logs._KNOWN_ELSEWHERE.values()) <= set(ARTIFACTS)


def test_wrong_type():
    with pytest.raises(InvalidType, match="graph must be True, False or '\\+', got 3"):
        set_logs(graph=3)
    with pytest.raises(InvalidType, match="one string"):
        set_logs(["graph"])


def run_python(code, **env):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_variable():
    code = "import tcompile.observe.logs as l; print(sorted(l._on.items()), file=__import__('sys').stderr)"
    assert run_python(code, TCOMPILE_LOGS="+graph_breaks,guards").endswith(
        "[('graph_breaks', True), ('guards', False)]\n"
    )
    assert run_python(code, TCOMPILE_LOGS="").endswith("[]\n")
    err = run_python(code, TCOMPILE_LOGS="guards,nope")
    assert err.count("nope") == 2 and "TCOMPILE_LOGS='guards,nope' is ignored" in err and err.endswith("[]\n")
