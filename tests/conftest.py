"""Fixtures and options of all tests.

Input: pytest's configuration.
Output: a clean state for each test.
Why: tests share one process.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest

_USER = os.getuid() if hasattr(os, "getuid") else 0  # a folder for temporary files is a user's own on Windows
if "TCOMPILE_CACHE_DIR" not in os.environ:  # not the user's own; shared by the processes that run tests
    os.environ["TCOMPILE_CACHE_DIR"] = os.path.join(tempfile.gettempdir(), f"tcompile-tests-{_USER}")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in the background; tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
if "TRITON_CACHE_DIR" not in os.environ:  # Triton's own, likewise; a tenth of its time goes into directories there
    _fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    os.environ["TRITON_CACHE_DIR"] = os.path.join(_fast, f"tcompile-tests-{_USER}-triton")


@pytest.fixture(scope="session", autouse=True)
def _generator_of_hypothesis() -> None:
    """Has Hypothesis make its random generator, which it warns of where all that refers to it is frozen."""
    if "hypothesis" in sys.modules:
        from hypothesis import find, settings, strategies

        find(strategies.just(0), lambda _: True, settings=settings(database=None))


@pytest.fixture(scope="module", autouse=True)
def _little_to_look_through(_generator_of_hypothesis: None) -> None:
    """Keeps the garbage collector from looking through all tests, and what is kept of them, again and again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of tests/golden."""
    parser.addoption("--update-golden", action="store_true", help="write the texts in tests/golden anew")


def pytest_unconfigure() -> None:
    """Lets all of it go: libraries complain at the process's end of what is left."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_last_value() -> Iterator[None]:
    """Takes away ``builtins._``, which doctests and display hooks leave behind, and which turns IPython's own off."""
    yield
    vars(builtins).pop("_", None)


@pytest.fixture
def load_tool(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a script of the folder tools, which finds the others beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(autouse=True)
def _compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forgets what other tests have compiled, and sees to it that nothing comes to ``config.recompile_limit``.

    From there on calls are plain Python's, and a test would compare that with itself. Tests that compile one function
    more often are marked ``recompile_limit``, those that are about the limit ``at_recompile_limit``.
    """
    import tcompile
    from tcompile.config import config
    from tcompile.runtime import regions

    tcompile.reset()
    at_limit, reached = regions._at_limit, []

    def seen(cache: Any, region: Any, values: Any) -> None:
        reached.append(cache.name)
        at_limit(cache, region, values)

    about, raised = (request.node.get_closest_marker(name) for name in ("at_recompile_limit", "recompile_limit"))
    with contextlib.ExitStack() as stack:
        if not about:
            stack.enter_context(mock.patch.object(regions, "_at_limit", seen))
        if raised:
            stack.enter_context(config.patch(recompile_limit=raised.args[0]))
        yield
    assert not reached, f"compiled config.recompile_limit times, and plain Python since: {reached[0]}"


@pytest.fixture(autouse=True)
def _error_state() -> Iterator[None]:
    """Sees to it that a test leaves NumPy's error state as it was: those after it would see other warnings."""
    before = np.geterr()
    yield
    after = np.geterr()
    np.seterr(**before)
    assert after == before, f"NumPy's error state was left at {after}"


@pytest.fixture(autouse=True)
def _no_trials() -> Iterator[None]:
    """What is compiled stays compiled, however fast the machine is just now."""
    from tcompile.config import config

    with config.patch(rest_when_slower=False):
        yield
