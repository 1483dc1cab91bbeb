"""A real IPython shell for each test, and the output of its cells.

Input: cells.
Output: fixtures.
Why: magics and displays depend on IPython.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import capture_output

import tcompile


@dataclass
class Ran:
    """One cell that ran: IPython's result, and what was printed and displayed, in order."""

    result: ExecutionResult
    stdout: str
    stderr: str
    displayed: list[Any] = field(default_factory=list)

    @property
    def value(self) -> Any:
        return self.result.result

    @property
    def error(self) -> BaseException | None:
        return self.result.error_before_exec or self.result.error_in_exec

    @property
    def text(self) -> str:
        """What was displayed, as text."""
        return "\n".join(output.data.get("text/plain", "") for output in self.displayed)

    @property
    def html(self) -> str:
        return "\n".join(output.data.get("text/html", "") for output in self.displayed)

    @property
    def reports(self) -> list[Any]:
        """The reports of tcompile among what was displayed."""
        return [output for output in self.displayed if "tcompile-report" in output.data.get("text/html", "")]


class Notebook:
    """Runs cells one after the other, as a notebook does."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def __call__(self, cell: str, *, fails: bool | None = False) -> Ran:
        """Runs a cell; ``fails`` says whether it must, must not, or (None) may fail."""
        with capture_output() as captured:
            result = self.shell.run_cell(cell, store_history=True)
        ran = Ran(result, captured.stdout, captured.stderr, captured.outputs)
        if fails is False:
            assert ran.error is None, ran.stdout + ran.stderr
        elif fails:
            assert ran.error is not None
        return ran

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.shell.user_ns


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        made = InteractiveShell.instance(colors="nocolor")
        made.history_manager.enabled = False
        yield made
        made.history_manager.end_session()
        InteractiveShell.clear_instance()


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    tcompile.reset()
    shell.reset(new_session=True)
    shell.ast_node_interactivity = "last_expr"
    made = Notebook(shell)
    made("%load_ext tcompile" if "tcompile" not in shell.extension_manager.loaded else "%reload_ext tcompile")
    shell.user_ns["np"] = np
    yield made
    with contextlib.suppress(Exception):
        tcompile.set_stance("default")
