"""JupyterLab's debugger, by the messages that it sends to a kernel, stops in compiled cells as in plain ones."""

import functools
import itertools

import pytest
from tcompile_jupyter.debugger import hide_from_debugger

pytest.importorskip("debugpy")
manager = pytest.importorskip("jupyter_client.manager")

CELL = """HEAD
import numpy as np

def helper(y):
    z = y * 2
    return z + 1

DECORATOR
def f(x, n):
    total = np.zeros(3)
    for i in range(n):
        total = total + x * i
        total = np.sqrt(total)
    w = helper(total)
    return w.sum()

x = np.arange(3.0)
a = x + 1
b = f(a, 3)
c = b * 2
"""
KINDS = {
    "plain": ("# plain", "# plain"),
    "magic": ("%%tcompile", "# plain"),
    "decorated": ("# plain", "@tcompile.compile"),
}
STEPS = {
    "total = np.sqrt(total)": ["next", "next", "continue", "continue"],
    "z = y * 2": ["next", "next"],
    "b = f(a, 3)": ["stepIn", "next", "next", "stepOut"],
    "w = helper(total)": ["stepIn", "next", "stepOut", "next"],
}
NAMES = {"x", "y", "z", "w", "n", "i", "a", "b", "c", "total"}
HITS = "print([sum(entry.hits for entry in getattr(f, 'entries', ())) for _ in range(4) if f(a, 3)])"


class Kernel:
    """A kernel, and as much of JupyterLab as its debugger needs."""

    def __init__(self):
        self.manager = manager.KernelManager(kernel_name="python3")
        self.manager.start_kernel(extra_arguments=["--log-level=ERROR"])
        self.client = self.manager.client()
        self.client.start_channels()
        self.number = itertools.count(1)

    def __enter__(self):
        self.client.wait_for_ready(timeout=120)
        return self

    def __exit__(self, *error):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def ask(self, command, **arguments):
        content = {"type": "request", "seq": next(self.number), "command": command, "arguments": arguments}
        message = self.client.session.msg("debug_request", content)
        self.client.control_channel.send(message)
        while True:
            reply = self.client.control_channel.get_msg(timeout=120)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                assert reply["content"]["success"], reply["content"]
                return reply["content"].get("body")

    def attach(self):
        self.ask("initialize", clientID="jupyterlab", adapterID="", pathFormat="path", supportsVariableType=True)
        self.ask("attach")

    def set_breakpoint(self, code, text):
        (line,) = [number for number, each in enumerate(code.splitlines(), 1) if each.strip() == text]
        path = self.ask("dumpCell", code=code)["sourcePath"]
        self.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line}], sourceModified=False)
        self.ask("configurationDone")

    def run(self, code, steps=()):
        """Where a cell stops when these steps are taken, and what it prints."""
        request, stops, printed, steps = self.client.execute(code), [], [], iter(steps)
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            content, kind = message["content"], message["msg_type"]
            if kind in ("stream", "error"):
                printed.append(content.get("text", content.get("traceback")))
            elif kind == "debug_event" and content["event"] == "stopped":
                stops.append((content["body"]["reason"], *self.shown(content["body"]["threadId"])))
                self.ask(next(steps, "continue"), threadId=content["body"]["threadId"])
            elif kind == "status" and content["execution_state"] == "idle":
                if message["parent_header"].get("msg_id") == request:
                    return stops, printed

    def shown(self, thread):
        """The frames and the variables of the innermost one."""
        frames = self.ask("stackTrace", threadId=thread)["stackFrames"]
        scope = self.ask("scopes", frameId=frames[0]["id"])["scopes"][0]
        variables = self.ask("variables", variablesReference=scope["variablesReference"])["variables"]
        values = {each["name"]: each["value"] for each in variables if each["name"] in NAMES}
        return [(frame["name"], frame["line"]) for frame in frames], values


@functools.cache
def session(kind, attached_first):
    """What the debugger shows in a notebook of one kind of cell, and the function's hits after it has gone."""
    head, decorator = KINDS[kind]
    code = CELL.replace("HEAD", head).replace("DECORATOR", decorator)
    seen = {}
    with Kernel() as kernel:
        if attached_first:
            kernel.attach()
        _, printed = kernel.run("%load_ext tcompile\nimport tcompile")
        if not attached_first:
            for again in (code, "f(a, 3)", "f(a, 3)"):
                printed += kernel.run(again)[1]
            kernel.attach()
        for text, steps in STEPS.items():
            kernel.set_breakpoint(code, text)
            for run in (code, "d = f(a * 2, 3)"):
                seen[text, run is code], more = kernel.run(run, steps)
                printed += more
        kernel.ask("disconnect", restart=False, terminateDebuggee=False)
        kernel.run(HITS)
        _, (hits,) = kernel.run(HITS)
    return seen, printed, hits


@pytest.mark.parametrize("kind, attached_first", [("magic", False), ("magic", True), ("decorated", False)])
def test_stops_frames_and_variables(kind, attached_first):
    plain, said, _ = session("plain", attached_first)
    seen, printed, hits = session(kind, attached_first)
    assert not said and not printed
    for about, stops in seen.items():
        if kind == "magic" and about[1]:
            assert {frames.pop() for _, frames, _ in stops} == {("<module>", 1)}  # IPython's call of the magic
        assert stops == plain[about], about
    assert sum(map(len, plain.values())) >= len(STEPS) * 4
    counts = [int(count) for count in hits.strip()[1:-1].split(",")]
    assert counts == [counts[0] + more for more in range(4)]  # compiled again without the debugger


def test_the_rules_are_those_of_before_when_the_extension_is_unloaded():
    class Shell:
        class kernel:
            class debugger:
                kernel_modules = ["a file"]

    rules = Shell.kernel.debugger.kernel_modules
    undo = hide_from_debugger(Shell)
    assert rules[0] == "a file" and [rule.rpartition("/")[2] for rule in rules[1:]] == ["tcompile", "tcompile_jupyter"]
    hide_from_debugger(Shell)()
    assert len(rules) == 3
    undo()
    assert rules == ["a file"]
    hide_from_debugger(object())()
