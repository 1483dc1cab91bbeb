"""PyCharm's debugger, by its own protocol, stops in compiled functions as in plain ones.

PyCharm has a pydevd of its own beside the one in debugpy: it is on PyPI as ``pydevd-pycharm``.
"""

import importlib.util
import itertools
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, unquote_plus

import pytest
from runtime.debugged import LINES, SCRIPT

PYDEVD = importlib.util.find_spec("pydevd_pycharm")
pytestmark = pytest.mark.skipif(PYDEVD is None, reason="pydevd-pycharm is not installed")

RUN, SUSPENDED, SET_BREAKPOINT, VERSION = 101, 105, 111, 501
STEPS = {"continue": 106, "stepIn": 107, "next": 108, "stepOut": 109}


def conversation(connection, script, breaks, steps):
    """What PyCharm says to a debugger that has connected, and where this one stops."""
    number, steps, stops = itertools.count(1, 2), iter(steps), []

    def send(command, text=""):
        connection.sendall(f"{command}\t{next(number)}\t{text}\n".encode())

    send(VERSION, "1.0\tUNIX")
    for line in breaks:
        send(SET_BREAKPOINT, f"python-line\t{script}\t{line}\tNone\tNONE\tNone\tNone")
    send(RUN)
    for message in connection.makefile("r", encoding="utf-8"):
        command, _, text = message.rstrip("\n").split("\t", 2)
        if command == str(SUSPENDED):
            text = unquote_plus(unquote(text))
            frames = re.findall(r'name="([^"]+)" file="[^"]*" line="(\d+)"', text)
            stops.append((re.search(r'stop_reason="([^"]+)', text)[1], frames))
            send(STEPS[next(steps, "continue")], re.search(r'thread id="([^"]+)', text)[1])
    return stops


def run_in_pycharm(script, breaks, steps, *arguments):
    """Where the script stops, between steps."""
    pydevd = Path(PYDEVD.origin).with_name("pydevd.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "WARM": "3"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        where = ["--client", "127.0.0.1", "--port", str(server.getsockname()[1]), "--file", str(script)]
        process = subprocess.Popen(
            [sys.executable, "-Xfrozen_modules=off", str(pydevd), *where, *arguments], env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(120)
                return conversation(connection, script, breaks, steps)
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("kind, breaks, steps", [
    ("tail(x, 0); tail(x, 0)", ["y = x * 2"], ["next"] * 5 + ["continue"] * 3),
    ("tail(x, 0); tail(x, 0)", ["z = y * 2"], ["next", "stepIn", "next", "stepOut", "next", "continue", "continue"]),
    ("loop(x, -1); loop(x, -1)", ["x = x * 2"], ["next"] * 6 + ["continue"] * 3),
    ("list(numbers(x, -1)); print(1)", ["x = x * 3"], ["next"] * 6 + ["continue"]),
])  # fmt: skip
def test_steps_and_breakpoints(kind, breaks, steps, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("KIND", kind))
    runs = [run_in_pycharm(script, [LINES[line] for line in breaks], steps, *plain) for plain in ((), ("plain",))]
    assert runs[0] == runs[1]
    assert len(runs[0]) >= len(steps)
