"""Debuggers and profilers of Python's own hooks see of compiled functions what they see of plain ones."""

import bdb
import cProfile
import dis
import io
import itertools
import json
import os
import pstats
import re
import socket
import subprocess
import sys
import time
import traceback

import numpy as np
import pytest
from bytecode.programs import PROGRAMS
from runtime.debugged import LINES, SCRIPT

import tcompile
from tcompile.bytecode.analysis import analyse
from tcompile.bytecode.decode import NotResumable
from tcompile.bytecode.rewritten import build
from tcompile.runtime import debuggers, native
from tcompile.runtime.native import layout

X = np.arange(4.0)


class Recorder(bdb.Bdb):
    """Goes through a program in steps of one kind, and notes where it has been."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.seen = []

    def note(self, event, frame):
        self.seen.append((event, frame.f_code.co_name, frame.f_lineno))
        if self.way == "step":
            self.set_step()
        elif self.way == "return":
            self.set_return(frame)
        elif self.way == "until":
            self.set_until(frame)
        elif self.way == "next" or len(self.seen) % 3:
            self.set_next(frame)
        else:
            self.set_step()

    def user_call(self, frame, argument_list):
        self.note("call", frame)

    def user_line(self, frame):
        self.note("line", frame)

    def user_return(self, frame, return_value):
        self.note("return", frame)

    def user_exception(self, frame, exc_info):
        self.note("exception", frame)


WAYS = ("step", "next", "until", "return", "mixed")
recorder = None


def stop():
    """Starts a debugger in the caller, once, as ``breakpoint()`` does."""
    global recorder
    if recorder is not None and not recorder.seen and sys.gettrace() is None:
        recorder.set_trace(sys._getframe(1))


class Manager:
    def __enter__(self):
        return 1

    def __exit__(self, *about):
        return False


def helper(x):
    return x * 2


def tail(x):
    y = x + 1
    stop()
    z = y * 2
    z = z + 1
    return z


# Several statements in a line are what these are for.
# fmt: off
def loop(x):
    for i in range(3):
        x = np.sqrt(x) + i
        stop()
        x = x + 1; x = x * 2  # noqa: E702
    return x * 2


def loop_in_a_line(x):
    for i in range(3): x = x + i; stop(); x = x * 2  # noqa: E701, E702
    return x * 2


def loop_with_continue(x):
    i = 0
    while i < 4:
        stop(); x = x * 2  # noqa: E702
        i += 1
        if i == 2:
            continue
        x = x - 1
    return x


# fmt: on


def with_block(x):
    with Manager() as one:
        y = x + one
        stop()
        y = y * 2
    return helper(y)


def try_block(x):
    try:
        y = x + 1
        stop()
        raise ValueError(1)
    except ValueError:
        y = x * 3
        print(end="")
        z = y + 1
    finally:
        z = x * 5
        print(end="")
    return z


def early_return(x):
    for i in range(9):
        x = x + 1
        stop()
        if i == 2:
            return x * 3
    return x


def some(x):
    for _ in range(3):
        x = x + 1
        yield x
        x = x * 2
        stop()
        x = x + 3
    y = x * 2
    yield y


def generator(x):
    total = 0
    for value in some(x):
        total = total + value
    return total


def over_lines(x):
    y = x + 1
    stop()
    z = [y * i for i in range(2)]
    # fmt: off
    return sum(z) + \
        helper(y) + \
        1
    # fmt: on


def nested(x):
    y = x + 1
    z = tail(x) * 2
    return y + z


class Model:
    def method(self, x):
        y = x * 2
        stop()
        return self.other(y)

    def other(self, y):
        return y + 1


def method(x):
    return Model().method(x)


FUNCTIONS = (
    tail, loop, loop_in_a_line, loop_with_continue, with_block, try_block, early_return, generator, over_lines, nested,
    method,
)  # fmt: skip


def call(function, *args):
    return function(*args)


def starts_inside(function, way):
    """What a debugger sees that is started in the middle of the function."""
    global recorder
    recorder = found = Recorder(way)
    try:
        call(function, X)
    finally:
        recorder = None
        sys.settrace(None)
    return found.seen


def starts_outside(function, way):
    """What a debugger sees that is there before the function is called."""
    found = Recorder(way)
    found.runcall(call, function, X)
    return found.seen


@pytest.mark.parametrize("calls", [0, 3, 80])
@pytest.mark.parametrize("start", [starts_inside, starts_outside])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_debuggers_see_what_they_see_of_plain_functions(function, start, calls):
    compiled = tcompile.compile(function)
    for _ in range(calls):
        compiled(X)
    for way in WAYS:
        seen = start(compiled, way)
        assert seen == start(function, way)
        assert not [event for event in seen if event[2] is None]
    assert not calls or compiled.entries


def test_calls_in_which_nobody_may_stop_stay_compiled():
    compiled = tcompile.compile(loop)
    for _ in range(3):
        compiled(X)
    (hits,) = {sum(entry.hits for entry in compiled.entries)}

    def over():
        compiled(X)
        return 1

    found = Recorder("next")
    found.runcall(over)
    assert sum(entry.hits for entry in compiled.entries) > hits
    assert {name for _, name, _ in found.seen} <= {"over", "runcall"}


def lines_of(code):
    starts = [i.offset for i in dis.get_instructions(code, show_caches=True)]
    found = dict.fromkeys(starts)
    for start, end, line in code.co_lines():
        found.update((at, line) for at in starts if start <= at < end)
    return found


@pytest.mark.parametrize("function", [*FUNCTIONS, *PROGRAMS], ids=lambda f: f.__name__)
def test_every_instruction_of_rewritten_code_has_a_line(function):
    code = function.__code__
    try:
        rewritten = build(analyse(code), lambda offset: print, every=True).code
    except NotResumable:
        pytest.skip("is never rewritten")
    plain = set(lines_of(code).values())
    found = list(lines_of(rewritten).values())
    assert set(found) <= plain | {code.co_firstlineno}
    assert None in plain or None not in found
    # Where the function's own instructions have none, those that were added have one all the same.
    own = max(at for at, line in lines_of(rewritten).items() if line is None) if None in found else 0
    assert None not in [line for at, line in lines_of(rewritten).items() if at > own]
    assert len(list(rewritten.co_positions())) == len(rewritten.co_code) // 2
    dis.dis(rewritten, file=io.StringIO())


def test_machine_code_finds_who_traces():
    assert layout.trace_object() > 0
    assert bool(layout.debugger_name()) is (sys.version_info >= (3, 12))
    sys.settrace(old := lambda *about: None)
    try:
        assert sys.gettrace() is old
        assert layout.trace_object() > 0
    finally:
        sys.settrace(None)


def test_unknown_trace_functions_see_all_calls():
    compiled = tcompile.compile(helper, fullgraph=True)
    for _ in range(3):
        compiled(X)
    seen = []
    sys.settrace(lambda frame, event, argument: seen.append(frame.f_code.co_name))
    try:
        compiled(X)
    finally:
        sys.settrace(None)
    assert seen == ["helper"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_debuggers_that_monitor_see_all_calls_and_nothing_of_ours():
    compiled = tcompile.compile(loop)
    for _ in range(3):
        compiled(X)
    seen, monitoring = [], sys.monitoring
    events = monitoring.events

    def note(code, *about):
        seen.append((code.co_name, *about[:1]))

    def watched(function):
        seen.clear()
        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "a test")
        for event in (events.PY_START, events.PY_RETURN, events.LINE):
            monitoring.register_callback(monitoring.DEBUGGER_ID, event, note)
        try:
            monitoring.set_events(monitoring.DEBUGGER_ID, events.PY_START | events.PY_RETURN | events.LINE)
            call(function, X)
        finally:
            monitoring.set_events(monitoring.DEBUGGER_ID, 0)
            monitoring.free_tool_id(monitoring.DEBUGGER_ID)
        return seen[:]

    assert watched(compiled) == watched(loop)


def test_profilers_see_each_return_with_its_call():
    compiled = [tcompile.compile(function) for function in FUNCTIONS]
    depth, wrong = [], []

    def profile(frame, event, argument):
        if event == "call":
            depth.append(frame.f_code)
        elif event == "return" and (not depth or depth.pop() is not frame.f_code):
            wrong.append(frame.f_code)

    def all_of_them():
        for _ in range(3):
            for function in compiled:
                function(X)

    sys.setprofile(profile)
    try:
        all_of_them()
    finally:
        sys.setprofile(None)
    assert not wrong
    made = cProfile.Profile()
    made.runcall(all_of_them)
    counts = {name: calls for (_, _, name), (_, calls, *_) in pstats.Stats(made).stats.items()}
    assert counts["all_of_them"] == 1
    assert counts["stop"] >= 3


def test_no_frame_of_ours_is_below_the_users():
    def names():
        return [frame.name for frame in traceback.extract_stack()]

    def plain(x):
        y = x + 1
        found.append(names())
        return y

    def fails(x):
        y = x * 2
        print(end="")
        return y[9]

    found = []
    compiled = tcompile.compile(plain)
    call(plain, X)
    for _ in range(80):
        call(compiled, X)
    assert {tuple(names) for names in found} == {tuple(found[0])}
    compiled = tcompile.compile(fails)
    for _ in range(3):
        with pytest.raises(IndexError) as raised:
            call(compiled, X)
        assert [entry.name for entry in raised.traceback[1:]] == ["call", "fails"]


# -- in processes of their own ---------------------------------------------------------------------------------------


def run_script(folder, kind, *arguments, stdin="", warm=0, debugger=()):
    script = folder / "script.py"
    script.write_text(SCRIPT.replace("KIND", kind))
    environment = {**os.environ, "WARM": str(warm), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, *debugger, str(script), *arguments], input=stdin, capture_output=True, text=True, timeout=120,
        env=environment, cwd=folder,
    )  # fmt: skip
    return (done.stdout + done.stderr).partition("the end")[0]  # who goes on is in what runs at exit


INSIDE = {
    "tail(x, 1)": ("n\nn\np z\nn\nn\nn\nn\nc\n", "s\ns\ns\ns\np y\ns\ns\ns\ns\ns\nc\n", "r\nn\nn\nc\n"),
    "loop(x, 1)": ("n\nn\nn\nn\np i\nn\nn\nn\nuntil\nn\nc\n", "until\nuntil\nuntil\nn\nn\nc\n", "r\np i\ns\nc\n"),
    "blocks(x, 1)": ("n\nn\nn\nn\nn\nn\nn\nn\nn\nc\n", "s\ns\ns\ns\ns\ns\ns\ns\ns\nc\n"),
    "list(numbers(x, 1)); print(1)": ("n\nn\nn\nn\nn\nn\nn\nn\nc\n", "s\ns\ns\ns\ns\ns\ns\ns\nc\n", "r\nn\nr\nc\n"),
    "Model().step(x, 1)": ("n\nn\nn\nn\nc\n", "s\nup\np x\nup\ndown\ndown\ns\ns\nc\n", "w\nll\nargs\nc\n"),
}


@pytest.mark.parametrize("warm", [0, 3])
@pytest.mark.parametrize("kind", INSIDE)
def test_pdb_from_the_middle_of_a_function(kind, warm, tmp_path):
    for commands in INSIDE[kind]:
        plain = run_script(tmp_path, kind, "plain", stdin=commands, warm=warm)
        assert "(Pdb)" in plain
        assert run_script(tmp_path, kind, stdin=commands, warm=warm) == plain


OUTSIDE = {
    "breakpoint(); tail(x, 0); tail(x, 0)": "s\ns\ns\ns\ns\ns\ns\ns\nw\nr\nr\nn\nn\nc\n",
    "breakpoint(); loop(x, -1); loop(x, -1)": "n\nn\ns\ns\ns\ns\ns\nuntil 34\nr\nn\nc\n",
    "breakpoint(); y = list(numbers(x, -1)); print(y)": "s\ns\ns\ns\nr\nr\nn\nc\n",
    "breakpoint(); Model().step(x, 0); print(1)": f"b {LINES['return y + 1']}\nc\np y\nb helper\nb\nc\nc\n",
    "breakpoint(); tail(x, 0); tail(x * 2, 0)": "b tail\nc\nn\nn\nn\nc\nn\nw\nc\n",
    "breakpoint(); tail(x, 0); tail(x * 2, 0); print(2)": (
        f"b {LINES['y = x * 2']}, x.sum() > 5\nc\np x\nw\nup\np y\nc\n"
    ),
    "breakpoint(); print(loop(x, -1)); print(loop(x, -1))": f"tbreak {LINES['x = x * 2']}\nc\np i\nn\nn\nc\n",
    "breakpoint(); print(blocks(x, 0))": f"b {LINES['z = x * 3']}\nc\nn\nn\np w\nc\n",
}


@pytest.mark.parametrize("warm", [0, 3])
@pytest.mark.parametrize("kind", OUTSIDE)
def test_pdb_from_outside(kind, warm, tmp_path):
    plain = run_script(tmp_path, kind, "plain", stdin=OUTSIDE[kind], warm=warm)
    assert "(Pdb)" in plain
    assert run_script(tmp_path, kind, stdin=OUTSIDE[kind], warm=warm) == plain


def test_pdb_as_a_program(tmp_path):
    commands = f"b {LINES['w = helper(z)']}\nc\nn\nn\ns\nc\nc\nq\n"
    runs = [
        run_script(tmp_path, "tail(x, 0); tail(x, 0)", *plain, stdin=commands, debugger=("-m", "pdb"))
        for plain in ((), ("plain",))
    ]
    assert runs[0] == runs[1]
    assert runs[0].count("w = helper(z)") >= 2


def test_pdb_after_an_exception(tmp_path):
    commands = "w\np x\nup\np x\ndown\nq\n"
    kind = "import pdb\n    try: tail('no', 0)\n    except Exception: pdb.post_mortem()"
    runs = [run_script(tmp_path, kind, *plain, stdin=commands, warm=3) for plain in ((), ("plain",))]
    assert runs[0] == runs[1]
    assert "'no'" in runs[0]


def test_ipythons_debugger(tmp_path):
    pytest.importorskip("IPython")
    kind = "import IPython.core.debugger as d; d.set_trace()\n    tail(x, 0)\n    loop(x, -1)"
    commands = "n\ns\ns\nn\nn\nn\nr\nn\nn\nc\n"
    runs = [run_script(tmp_path, kind, *plain, stdin=commands, warm=3) for plain in ((), ("plain",))]
    assert runs[0] == runs[1]
    assert re.search(r"---> \d+ +(x = np.sqrt|y = np.sin)", re.sub(r"\x1b\[[0-9;]*m", "", runs[0]))


SESSION = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
first = "compile = lambda f: f" if "plain" in sys.argv else "from tcompile import compile"
shell.run_cell("import numpy as np\\n" + first)
shell.run_cell('''
@compile
def f(x):
    y = np.sin(x)
    print(end="")
    return y[9]

x = np.ones(3)
''')
if MAGIC != "%debug":
    shell.run_cell(MAGIC)
shell.run_cell("f(x)")
if MAGIC == "%debug":
    shell.run_cell(MAGIC)
"""


@pytest.mark.parametrize("magic", ["%debug", "%pdb on"])
def test_ipythons_magics(magic, tmp_path):
    pytest.importorskip("IPython")
    script = tmp_path / "session.py"
    script.write_text(SESSION.replace("MAGIC", repr(magic)))
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": path, "NO_COLOR": "1"}
    runs = [
        subprocess.run(
            [sys.executable, str(script), *plain],
            input="p y.shape\nup\np x.shape\nq\n",
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
        )
        for plain in ((), ("plain",))
    ]
    assert runs[0].stdout == runs[1].stdout, runs[0].stderr
    assert runs[0].stdout.count("(3,)") == 2


class Client:
    """As much of an editor as a debugger of the Debug Adapter Protocol needs."""

    def __init__(self, port):
        for left in range(300, -1, -1):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                if not left:
                    raise
                time.sleep(0.1)
        self.socket.settimeout(60)
        self.stream = self.socket.makefile("rb")
        self.number = itertools.count(1)
        self.events = []

    def send(self, command, **arguments):
        number = next(self.number)
        message = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        raw = json.dumps(message).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
        return number

    def read(self):
        size = int(self.stream.readline().split(b":")[1])
        self.stream.readline()
        message = json.loads(self.stream.read(size))
        if message["type"] == "event":
            self.events.append(message)
        return message

    def ask(self, command, **arguments):
        number = self.send(command, **arguments)
        while True:
            message = self.read()
            if message["type"] == "response" and message["request_seq"] == number:
                return message.get("body")

    def event(self, *names):
        while True:
            for event in self.events:
                if event["event"] in names:
                    self.events.remove(event)
                    return event
            self.read()


def run_in_debugpy(script, breaks, steps, *arguments):
    """Where the script stops, between steps."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["-Xfrozen_modules=off", "-m", "debugpy", "--listen", f"127.0.0.1:{port}", "--wait-for-client"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "WARM": "3"}
    process = subprocess.Popen(
        [sys.executable, *options, str(script), *arguments], env=environment, stdout=subprocess.DEVNULL
    )
    stops = []
    try:
        client = Client(port)
        client.ask("initialize", adapterID="tests", clientID="tests")
        client.send("attach", justMyCode=True)
        client.event("initialized")
        client.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": line} for line in breaks])
        client.ask("configurationDone")
        for step in steps:
            event = client.event("stopped", "terminated", "exited")
            if event["event"] != "stopped":
                break
            thread = event["body"]["threadId"]
            frames = client.ask("stackTrace", threadId=thread)["stackFrames"]
            stops.append((event["body"]["reason"], [(frame["name"], frame["line"]) for frame in frames]))
            client.ask(step, threadId=thread)
    finally:
        process.kill()
        process.wait()
        client.stream.close()
        client.socket.close()
    return stops


@pytest.mark.parametrize("kind, breaks, steps", [
    ("tail(x, 0); tail(x, 0)", ["y = x * 2"], ["next"] * 5 + ["continue"] * 3),
    ("tail(x, 0); tail(x, 0)", ["z = y * 2"], ["next", "stepIn", "next", "stepOut", "next", "continue", "continue"]),
    ("a = 1\n    tail(x, 0)\n    loop(x, -1)", ["scale = 3.0", "x = np.ones(3)"], [
        "next", "continue"] + ["stepIn", "next"] * 3,
    ),
    ("loop(x, -1); loop(x, -1)", ["x = x * 2"], ["next"] * 6 + ["continue"] * 3),
    ("list(numbers(x, -1)); print(1)", ["x = x * 3"], ["next"] * 6 + ["continue"]),
])  # fmt: skip
def test_debugpy(kind, breaks, steps, tmp_path):
    pytest.importorskip("debugpy")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("KIND", kind))
    runs = [run_in_debugpy(script, [LINES[line] for line in breaks], steps, *plain) for plain in ((), ("plain",))]
    assert runs[0] == runs[1]
    assert len(runs[0]) == len(steps)


def test_calls_are_machine_code_as_long_as_nobody_looks():
    assert not debuggers.is_watched()
    assert native.unavailable() is None
