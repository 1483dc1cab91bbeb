"""Judging of graphs in another process, which may crash or hang.

Input: graphs and inputs, one after the other.
Output: verdicts; "crash" where the process died, "hang" where it did not answer in time.
Why: a wrong pointer in a kernel ends the process that runs it.

The other process is started once; where there is ``fork``, it judges each graph in a child of its own, which costs
milliseconds. Run as a module (``python -m tcompile.debug.isolated``) this is the other process: a line of JSON in, a
line out.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tcompile.debug.judge import Column, Verdict, judge
from tcompile.errors import InvalidArgument
from tcompile.graph import Graph

PATIENCE = 20.0  # seconds for one graph
_LESS_PATIENCE = 3.0  # once one has hung
_NO_ANSWER = "no answer in time"
_START = 60.0  # seconds for the process to begin


class Worker:
    """The other process, as a context manager.

    Raises InvalidArgument for a column whose backend another process cannot find by name.
    """

    def __init__(self, column: Column, patience: float = PATIENCE) -> None:
        self.use(column)
        self._patience = patience
        self._process: subprocess.Popen[str] | None = None

    def use(self, column: Column) -> None:
        """Switches to another column. Raises InvalidArgument as the class does."""
        name = column.name()
        if name is None:
            raise InvalidArgument(f"another process cannot find the backend {column.backend!r}: give it a module")
        self._request = {"backend": name, "after": column.after, "exact": column.exact}

    def __enter__(self) -> Worker:
        self._folder = tempfile.TemporaryDirectory(prefix="tcompile-")
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._folder.cleanup()

    def judge(self, graph: Graph, inputs: Sequence[Any], tolerance: float | None) -> Verdict:
        """The verdict on one graph. Raises GraphError where it cannot be written as text."""
        path = Path(self._folder.name) / "inputs.npz"
        save(path, inputs)
        request = {
            **self._request, "code": graph.code, "inputs": str(path), "tolerance": tolerance,
            "patience": self._patience,
        }  # fmt: skip
        answer = self._ask(self._running(), json.dumps(request))
        if answer:
            verdict = Verdict(**json.loads(answer))
        else:
            status = self._stop()
            verdict = Verdict("hang", _NO_ANSWER) if answer is None else Verdict("crash", _died_of(status))
        if verdict.kind == "hang":
            self._patience = min(self._patience, _LESS_PATIENCE)
        return verdict

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            for variable in ("TCOMPILE_REPRO_AFTER", "TCOMPILE_DEBUG", "TCOMPILE_TRACE", "TCOMPILE_LOGS"):
                env.pop(variable, None)
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, env=env,
            )  # fmt: skip
            self._read(self._process, _START)
        return self._process

    def _ask(self, process: subprocess.Popen[str], request: str) -> str | None:
        """The answer; None where there is none in time, "" where the process has ended."""
        assert process.stdin is not None
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._read(process, 2 * self._patience)

    @staticmethod
    def _read(process: subprocess.Popen[str], seconds: float) -> str | None:
        assert process.stdout is not None
        if os.name == "posix" and not select.select([process.stdout], [], [], seconds)[0]:
            return None
        return process.stdout.readline().strip()

    def _stop(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            status = process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        process.stdout.close()
        return status


def save(path: Path, inputs: Sequence[Any]) -> None:
    """Writes the inputs of a graph, Python numbers and memory order included."""
    arrays: dict[str, Any] = {}
    for position, value in enumerate(inputs):
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            order = np.argsort([-abs(step) for step in array.strides], kind="stable")
            arrays[f"array{position}"] = np.ascontiguousarray(array.transpose(order)) if array.ndim else array
            arrays[f"order{position}"] = order.astype(np.int64)
        else:
            arrays[f"number{position}"] = np.asarray(value)
    np.savez(path, **arrays)


def load(path: Path) -> list[Any]:
    """Reads what ``save`` wrote."""
    with np.load(path) as arrays:
        names = set(arrays.files)
        values: list[Any] = []
        for position in range(sum(not name.startswith("order") for name in names)):
            if f"number{position}" in names:
                values.append(arrays[f"number{position}"].item())
            else:
                value = arrays[f"array{position}"]
                values.append(value.transpose(np.argsort(arrays[f"order{position}"])) if value.ndim else value)
        return values


def _died_of(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"died of {signal.Signals(-status).name}"
    return f"ended with status {status}"


# -- the other process -------------------------------------------------------------------------------------------------


def answer(request: dict[str, Any]) -> Verdict:
    """The verdict on a request, in this process."""
    from tcompile.graph.reader import from_code

    column = Column(request["backend"], request["after"], request["exact"])
    return judge(from_code(request["code"]), load(Path(request["inputs"])), column, request["tolerance"])


def _in_child(request: dict[str, Any]) -> Verdict:
    """The verdict, asked in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, json.dumps(asdict(answer(request))).encode()[:60_000])
        except BaseException as error:
            os.write(write, json.dumps(asdict(Verdict("invalid", f"{type(error).__name__}: {error}"))).encode())
        finally:
            os._exit(0)
    os.close(write)
    text = b""
    while True:
        ready, _, _ = select.select([read], [], [], request["patience"])
        part = os.read(read, 65536) if ready else b""
        text += part
        if not part:
            break
    os.close(read)
    if not ready:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return Verdict("hang", _NO_ANSWER)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Verdict(**json.loads(text)) if text and not status else Verdict("crash", _died_of(status))


def serve() -> None:
    """Answers requests on stdin until it ends. The output of judged code is discarded."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        verdict = _in_child(request) if hasattr(os, "fork") else answer(request)
        print(json.dumps(asdict(verdict)), file=out, flush=True)


if __name__ == "__main__":
    serve()

__all__ = ["PATIENCE", "Worker", "load", "save"]
