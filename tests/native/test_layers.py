"""The layers of the operating systems: which is chosen, and that all of them are whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from unittest import mock

import pytest

from tcompile import system
from tcompile.backends.llvm.native import interrupts, memory, target, threads

LAYERS = {"linux": ("linux", ""), "posix": ("linux", "posix"), "macos": ("darwin", ""), "windows": ("win32", "")}
PARTS = ("threads", "pages", "clock", "limits")
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux has two layers")


@pytest.fixture
def choose(monkeypatch):
    """Puts the process on another platform, as far as the choice of a layer goes."""

    def chosen(name):
        platform, variable = LAYERS[name]
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv(system.VARIABLE, variable)

    return chosen


def functions(ir):
    """The functions that a text defines for others, with their types."""
    found = re.findall(r"^define (?:internal )?(\S+) @(\w+)\((.*?)\)", ir, re.MULTILINE)
    return {(result, name, re.sub(r" %[\w.]+", "", given)) for result, name, given in found}


@pytest.mark.parametrize("part", PARTS)
def test_all_layers_have_the_same_functions(choose, part):
    wanted = {
        "threads": {"sleep_on", "wake", "start_thread", "forget_threads", "note_worker", "before_sleep", "after_sleep",
                    "send_away"},
        "pages": {"map_pages", "unmap_pages", "give_way"}, "clock": {"tc_now", "let_others"}, "limits": {"fair_share"},
    }[part]  # fmt: skip
    seen = set()
    for name in LAYERS:
        choose(name)
        made = {of for of in functions(system.text(part)) if of[1] in wanted}
        assert {of[1] for of in made} == wanted, name
        seen |= made
    assert len(seen) == len(wanted)


@pytest.mark.parametrize(
    ("name", "triple"),
    [
        ("linux", "x86_64-unknown-linux-gnu"), ("posix", "x86_64-unknown-linux-gnu"), ("macos", "x86_64-apple-darwin"),
        ("macos", "arm64-apple-darwin"), ("windows", "x86_64-pc-windows-msvc"),
    ],
)  # fmt: skip
def test_all_layers_become_machine_code(choose, monkeypatch, name, triple):
    llvm = target._make_tools().llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    choose(name)
    monkeypatch.setattr("platform.machine", lambda: triple.partition("-")[0])
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=0, reloc="pic", codemodel="small", jit=True)
    poll = target.source("poll.ll", {"PATIENCE": interrupts._PATIENCE, "THREAD_STATE": "PyThreadState_GetUnchecked"})
    for ir in (threads._ir(), memory._ir(), poll + system.text("clock")):
        with llvm.parse_assembly(ir, context=llvm.create_context()) as module:
            module.verify()
            module.triple, module.data_layout = triple, str(machine.target_data)
            assert machine.emit_object(module)


def test_symbols_of_windows(choose):
    assert system.library_symbols("declare double @sin(double)") == {}
    choose("windows")
    names = ("sin", "Py_None", "tc_f", "llvm.fabs.f64")
    ir = "\n".join(f"declare double @{name}(double)" for name in names)
    with mock.patch.object(system, "_address", lambda name: len(name)):
        found = system.library_symbols(ir)
    assert found["sin"] == 3 and found["_fltused"] == found["memcpy"]
    assert not {"Py_None", "tc_f", "llvm", "fabs"} & set(found)


@pytest.mark.parametrize(
    ("platform", "layer", "reason"),
    [
        ("linux", "", None), ("linux", "posix", None), ("darwin", "", None), ("darwin", "posix", None),
        ("win32", "windows", None),
        ("linux", "windows", "TCOMPILE_OS_LAYER must be 'linux' or 'posix' on linux, not 'windows'"),
        ("darwin", "linux", "TCOMPILE_OS_LAYER must be 'posix' on darwin, not 'linux'"),
        ("sunos5", "", "native code is not supported on sunos5"),
    ],
)  # fmt: skip
def test_which_layers_there_are(monkeypatch, platform, layer, reason):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(system.VARIABLE, layer)
    assert system.refusal() == reason


@linux
def test_an_unknown_layer_is_told_once():
    program = (
        "import numpy as np, tcompile\n"
        "f = tcompile.compile(lambda x: x + 1)\n"
        "print(f(np.ones(2)), f(np.ones(2)), len(f.entries))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
        env={**os.environ, system.VARIABLE: "solaris"},
    )  # fmt: skip
    assert done.stdout == "[2. 2.] [2. 2.] 0\n"
    assert done.stderr.count("TCOMPILE_OS_LAYER must be 'linux' or 'posix' on linux, not 'solaris'") == 1


@linux
def test_threads_and_forks_by_posix_alone(run_program):
    printed = run_program(
        """
        import time, warnings
        from tcompile import system
        warnings.simplefilter("ignore")
        assert "pthread_cond_wait" in system.text("threads")
        for n in (4, 2, 8, 1, 4):
            native.set_num_threads(n)
            for pause in [0.0] * 20 + [0.005] * 10:  # workers that are awake, and that sleep
                check(20_000, 100)
                time.sleep(pause)
        stop = threading.Event()
        def work():
            while not stop.is_set():
                check(200_000, 500)
        others = [threading.Thread(target=work) for _ in range(2)]
        for other in others:
            other.start()
        for _ in range(10):  # while a mutex may be held
            child = os.fork()
            if child == 0:
                for _ in range(5):
                    check()
                os._exit(0 if len(os.listdir("/proc/self/task")) == 4 else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for other in others:
            other.join()
        print("well")
        """,
        TCOMPILE_OS_LAYER="posix",
    )
    assert printed == "well\n"


def test_a_thread_knows_its_stack():
    lowest, size = system.stack_bounds()
    assert lowest > 0 and size > 1 << 16
    assert system.page_size() >= 4096 and (system.memory_size() or 1 << 30) >= 1 << 28


def test_on_windows(load_tool, tmp_path):
    tool = load_tool("windows_objects")
    if tool.missing():
        pytest.skip(f"needs {' and '.join(tool.missing())}")
    assert tool.run(tool.build(tmp_path), tmp_path / "wine").endswith("8 threads: all as expected")
