"""The files that a process writes about itself: traces and the debug folder."""

import html.parser
import json
import os
import subprocess
import sys
import threading
import warnings

import jsonschema
import numpy as np
import pytest

import tcompile
from tcompile import transforms
from tcompile.observe import bus, trace
from tcompile.observe import folder as debug_folder
from tcompile.observe.events import CallTimed, CompileFinished, CompileStarted, FellBack, PassFinished
from tcompile.observe.folder import _file_name, writing
from tcompile.observe.schema import schema
from tcompile.observe.source_location import UserLine
from tcompile.observe.trace import tracing

VOID = {"meta", "br", "hr", "img", "input", "link", "rect", "path", "circle", "line", "polygon", "use", "stop"}


class Checker(html.parser.HTMLParser):
    """Holds that tags are closed in order, and collects links and the names of tags."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name == "href"]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag


def check_page(path):
    checker = Checker()
    checker.feed(path.read_text(encoding="utf-8"))
    assert not checker.open and "script" not in checker.tags
    assert not [link for link in checker.links if not (path.parent / link).exists()]
    return path.read_text(encoding="utf-8")


def waves(x):
    return np.sin(x) * 2 + np.mean(x)


def broken(x):
    y = x + 1
    print(end="")
    return y * 2


def program():
    """Two functions: one whole and compiled twice, one with a break."""
    tcompile.reset()
    f = tcompile.compile(waves, backend="llvm")
    for size in (3, 4, 4, 4):
        f(np.ones(size))
    tcompile.compile(broken)(np.ones(3))


# -- the debug folder


def test_a_folder_for_each_compile(tmp_path):
    with writing(tmp_path) as made:
        program()
    assert not bus.active() and made.folder.parent == tmp_path
    folders = sorted(path.name for path in made.folder.iterdir() if path.is_dir())
    assert folders == ["000_waves", "001_waves", "002_broken", "003_broken"]
    first = made.folder / "000_waves"
    names = {path.name for path in first.iterdir()}
    assert names == {
        "graph.py", "graph.txt", "graph.svg", "kernels.txt", "kernels.ll", "kernels.s", "kernels.py", "entry.py",
        "guards.txt", "times.json", "events.jsonl", "index.html",
        *(f"pass_{number}_{name}.txt" for number, (name, _) in enumerate(transforms.PIPELINE)),
    }  # fmt: skip
    assert " mean(x" in (first / "graph.txt").read_text()
    assert " mean(x" not in (first / "pass_0_decompose.txt").read_text()
    assert "define" in (first / "kernels.ll").read_text() and "x.shape" in (first / "guards.txt").read_text()
    assert (first / "kernels.ll").read_text().count("source_filename") <= 1
    for name in ("kernels.py", "entry.py", "graph.py"):
        compile((first / name).read_text(), name, "exec")
    assert json.loads((first / "times.json").read_text())["total"] > 0
    assert "x.shape" in (made.folder / "001_waves" / "recompile.txt").read_text()
    assert "Input or output" in (made.folder / "002_broken" / "breaks.txt").read_text()
    index = check_page(made.folder / "index.html")
    assert "4 compiles" in index and "did not finish" not in index
    for folder in folders:
        page = check_page(made.folder / folder / "index.html")
        assert "prefers-color-scheme:dark" in page and "<svg" in page
    assert "class='at'" in check_page(made.folder / folders[2] / "index.html")


def test_a_function_may_ask_for_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(debug_folder, "_of_process", debug_folder._Traced())
    tcompile.compile(np.sin)  # another function, which has asked for nothing
    for option in ("trace.enabled", "trace.graph_diagram"):
        asked = tcompile.compile(waves, options={option: True})
        np.testing.assert_allclose(asked(np.ones(3)), waves(np.ones(3)))
        tcompile.compile(lambda x: x + 1)(np.ones(3))
    (page,) = tmp_path.glob("tcompile_debug/*/index.html")
    assert f"see {page}" in capsys.readouterr().err
    compiles = [path for path in page.parent.iterdir() if path.is_dir()]
    assert {path.name for path in compiles} == {"000_waves", "001_waves"}
    assert all((path / "graph.svg").read_text().startswith("<svg") for path in compiles)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "tcompile_debug").write_text("in the way")
    monkeypatch.setattr(debug_folder, "_of_process", debug_folder._Traced())
    tcompile.compile(waves, options={"trace.enabled": True})(np.ones(4, "f4"))
    assert "no debug folder is written" in capsys.readouterr().err


def test_names_do_no_harm(tmp_path):
    names = ["<script>alert(1)</script>", "'\"&", "\x1b[31mred", "x" * 10_000, "../../up", "", "\ud800"]
    with writing(tmp_path) as made:
        for number, name in enumerate(names):
            about = {"function": name, "compile_id": f"0/{number}", "cell": name, "defined_in": name}
            bus.emit(CompileStarted(**about, reason=name, where=UserLine(file=name, line=1)))
            bus.emit(PassFinished(**about, name=name))
            bus.emit(FellBack(**about, reason=name, detail=name))
            bus.emit(CompileFinished(**about, backend=name, phases={name: 1.0}))
        bus.emit(CompileStarted(function="never ends", compile_id="1/0"))
    assert all(path.parent in (made.folder, *made.folder.iterdir()) for path in made.folder.rglob("*"))
    assert max(len(path.name) for path in made.folder.iterdir()) < 60
    index = check_page(made.folder / "index.html")
    assert "did not finish" in index and "\x1b" not in index
    for path in made.folder.glob("*/index.html"):
        check_page(path)
    assert _file_name("f.<locals>.g") == "f._locals_.g" and _file_name("数") == "function"


def test_a_compile_that_raises_leaves_what_it_had(tmp_path):
    def bad(graph, inputs):
        raise ValueError("no")

    with writing(tmp_path) as made, pytest.raises(tcompile.errors.BackendError):
        tcompile.compile(lambda x: x + 1, backend=bad)(np.ones(3))
    assert len(list(made.folder.glob("000_*/graph.py"))) == 1
    assert "did not finish" in check_page(made.folder / "index.html")


def test_two_writers_at_once_have_folders_of_their_own(tmp_path):
    with writing(tmp_path) as one, writing(tmp_path) as other:
        assert one.folder != other.folder


# -- traces


def test_a_trace_has_every_event_and_a_time_line(tmp_path):
    with tracing(tmp_path):
        program()
        thread = threading.Thread(target=program, name="the other one")
        thread.start()
        thread.join()
    validator = jsonschema.Draft202012Validator(schema())
    (events,) = tmp_path.glob("events-*.jsonl")
    rows = [json.loads(line) for line in events.read_text().splitlines()]
    for row in rows:
        validator.validate(row)
    assert {"compile_started", "graph_captured", "kernel_compiled", "graph_broke"} <= {row["kind"] for row in rows}
    (path,) = tmp_path.glob(f"trace-{os.getpid()}.json")
    slices = read_time_line(path)
    names = [row["name"] for row in slices]
    assert names.count("compile waves") == 4 and "pass fold" in names and "capture" in names
    assert any(name.startswith("kernel ") for name in names) and any(name.startswith("call") for name in names)


def read_time_line(path):
    """The slices, once it is checked that they nest, thread by thread."""
    rows = json.loads(path.read_text().rstrip().rstrip(",") + "]")
    assert {row["ph"] for row in rows} <= {"M", "X", "i"}
    assert "the other one" in [row["args"]["name"] for row in rows if row["ph"] == "M"]
    slices = [row for row in rows if row["ph"] == "X" and row["cat"] != "call"]
    for thread in {row["tid"] for row in slices}:
        stack = []
        of_thread = [row for row in slices if row["tid"] == thread]
        for row in sorted(of_thread, key=lambda row: (row["ts"], -row["dur"])):
            start, end = row["ts"], row["ts"] + row["dur"]
            while stack and stack[-1] <= start + 0.5:
                stack.pop()
            assert not stack or end <= stack[-1] + 0.5, row  # half a microsecond is the clock's own grain
            stack.append(end)
    return [row for row in rows if row["ph"] == "X"]


def test_sampled_calls_say_for_how_many_they_stand(tmp_path):
    with tracing(tmp_path):
        bus.emit(CallTimed(function="f", ms=1.0, calls=64))
    (path,) = tmp_path.glob("trace-*.json")
    assert '"stands for calls": 64' in path.read_text()


def test_a_forked_child_writes_files_of_its_own(tmp_path):
    with tracing(tmp_path):
        bus.emit(FellBack(function="parent"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the test runner's own threads
            child = os.fork()
        if not child:
            bus.emit(FellBack(function="child"))
            os._exit(0)
        os.waitpid(child, 0)
        bus.emit(FellBack(function="parent"))
    assert (tmp_path / f"events-{child}.jsonl").read_text().count("child") == 1
    own = (tmp_path / f"events-{os.getpid()}.jsonl").read_text()
    assert own.count('"parent"') == 2 and "child" not in own


# -- the variables

PROGRAM = """
import numpy as np, tcompile
tcompile.compile(lambda x: x + 1)(np.ones(3))
"""


@pytest.mark.parametrize("value", ["there", "1"])
def test_the_variables(tmp_path, value):
    env = {**os.environ, "TCOMPILE_TRACE": value, "TCOMPILE_DEBUG": value, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    traces = tmp_path / (trace.FOLDER if value == "1" else value)
    debug = tmp_path / ("tcompile_debug" if value == "1" else value)
    assert len(list(traces.glob("trace-*.json"))) == 1 and len(list(traces.glob("events-*.jsonl"))) == 1
    (index,) = debug.glob("*/index.html")
    assert "1 compile" in check_page(index) and str(index.relative_to(tmp_path)) in done.stderr


def test_a_folder_that_cannot_be_made_keeps_nobody_from_working(tmp_path):
    (tmp_path / "file").write_text("")
    env = {**os.environ, "TCOMPILE_TRACE": "file", "TCOMPILE_DEBUG": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert "TCOMPILE_TRACE='file' is ignored" in done.stderr
