"""A server of a front end: a process that answers at an address.

Input: a command, and an address that answers once the server is ready.
Output: the running process.
Why: JupyterLab and marimo are started, awaited and stopped in the same way.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path


class Served:
    """A server that runs until ``close``; its output is in ``server.log``."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path, ready: str) -> None:
        self._ready = ready
        self._log = (folder / "server.log").open("wb")
        self.process = subprocess.Popen(command, env=env, cwd=folder, stdout=self._log, stderr=self._log)

    def wait(self, seconds: float) -> None:
        """Waits until it answers. Raises RuntimeError with its log if it does not."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self._ready, timeout=5).close()
                return
            time.sleep(0.1)
        self.close()
        log = Path(self._log.name).read_text(errors="replace")
        raise RuntimeError(f"{type(self).__name__} did not start: {log}")

    def close(self) -> None:
        """Ends it and its kernels."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
            self.process.kill()
            self.process.wait()
        self._log.close()
