"""The pool under the limits of a process: what it keeps is nobody else's MemoryError."""

import ctypes
import mmap
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tcompile.backends import memory_limits
from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import abi, memory, target

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce these limits")

BEGIN = """
import resource, sys
MiB = 1 << 20

def mapped(field=0):
    with open("/proc/self/statm") as file:
        return int(file.read().split()[field]) * resource.getpagesize()

def leave(mebibytes, which=resource.RLIMIT_AS):
    "Sets the soft limit, so that as much is left now."
    used = mapped(5 if which == resource.RLIMIT_DATA else 0)
    resource.setrlimit(which, (used + int(mebibytes * MiB), resource.getrlimit(which)[1]))

def lift():
    for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        resource.setrlimit(which, (resource.getrlimit(which)[1],) * 2)
"""
IMPORT = """
import numpy as np
import tcompile
from tcompile.backends.llvm import native

def cached():
    return tcompile.memory.info().cached

def doubled(x):
    return x * 2 + 1

double = tcompile.compile(doubled)
double(np.ones(10))

def fill():
    "Leaves 512 MiB in the pool."
    lift()
    x = np.ones(8 * MiB)
    arrays = [double(x) for _ in range(8)]
    del arrays, x
    assert cached() >= 512 * MiB, cached()
"""


def run(*parts, **environment):
    """Runs a program in a fresh interpreter; returns what it printed."""
    program = "".join(textwrap.dedent(part) for part in parts)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


ALLOCATIONS = """
def resized():
    a = np.ones(10)
    a.resize(300 * MiB // 8)
    return a

def in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(np.empty(300 * MiB, "u1")))
    thread.start()
    thread.join()
    return found[0]

def grown():
    a = []
    a.extend([None] * (150 * MiB // 8))
    a.extend(a)
    return a

allocations = {
    "empty": lambda: np.empty(300 * MiB, "u1"), "zeros": lambda: np.zeros(300 * MiB, "u1"),
    "sum": lambda: np.add(tiny[:, None], row), "resized": resized, "thread": in_a_thread,
    "context": lambda: contextvars.Context().run(np.empty, 300 * MiB, "u1"),
    "bytearray": lambda: bytearray(300 * MiB), "bytes": lambda: bytes(300 * MiB), "str": lambda: "a" * (300 * MiB),
    "list": lambda: [None] * (300 * MiB // 8), "grown": grown,
    "sorted": lambda: np.sort(np.zeros(150 * MiB, "u1"), kind="stable"),
}
import contextvars, threading
tiny, row = np.ones(300, "u1"), np.ones(MiB, "u1")
"""


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_what_the_pool_keeps_is_given_back_before_an_allocation_fails(limit):
    printed = run(
        BEGIN, IMPORT, ALLOCATIONS, f"which = resource.{limit}",
        """
        for name, allocate in allocations.items():
            fill()
            leave(100, which)
            made = allocate()
            assert cached() == 0, name
            del made
            lift()
            print(name, end=" ")
        """,
    )  # fmt: skip
    assert len(printed.split()) == 12


@pytest.mark.parametrize("allocator", ["malloc", "debug", "pymalloc"])
def test_whatever_allocator_python_has(allocator):
    run(BEGIN, IMPORT, "fill(); leave(100); made = bytearray(300 * MiB), np.empty(200 * MiB, 'u1')",
        PYTHONMALLOC=allocator)  # fmt: skip


def test_while_memory_is_traced():
    run(
        BEGIN, "import tracemalloc", "\ntracemalloc.start()", IMPORT,
        """
        fill()
        leave(100)
        made = bytearray(300 * MiB)
        del made
        tracemalloc.stop()
        fill()
        leave(100)
        np.empty(300 * MiB, "u1")
        tracemalloc.start()
        fill()
        leave(100)
        np.empty(300 * MiB, "u1")
        """,
    )  # fmt: skip


def test_a_result_that_fits_only_where_others_were():
    run(
        BEGIN, IMPORT,
        """
        large = np.arange(32.0 * MiB)
        fill()
        leave(50)
        made = double(large)
        lift()
        assert np.array_equal(made, doubled(large))
        assert len(double.entries) <= 2
        """,
    )  # fmt: skip


@pytest.mark.parametrize("when", ["before the import", "after the import"])
def test_the_pool_keeps_a_share_of_what_the_limit_leaves(when):
    limit = "resource.setrlimit(resource.RLIMIT_AS, (1200 * MiB, resource.RLIM_INFINITY))\n"
    run(
        BEGIN, *((limit, IMPORT) if when == "before the import" else (IMPORT, limit)),
        """
        def share():
            return (1200 * MiB - mapped() + cached()) // 4

        x = np.ones(4 * MiB)
        for iterations in range(3):
            arrays = [double(x) for _ in range(12)]
            del arrays
            assert 0 < cached() <= share(), (cached(), share())
        held = np.empty(share(), "u1")
        for count in range(70):
            double(x)
        assert 0 < cached() <= share(), (cached(), share())
        del held
        # what the pool does not give back to C libraries, it leaves to them
        import mmap
        rest = 1200 * MiB - mapped()
        mmap.mmap(-1, rest - 16 * MiB).close()
        assert cached() > 0
        """,
    )  # fmt: skip


def test_a_real_error_is_pythons_own_and_nothing_is_lost():
    run(
        BEGIN, IMPORT,
        """
        import traceback

        def write(x, y):
            y += 1
            wide = x[:, None] * y
            y -= 3
            return wide

        def outcome(function, *args):
            try:
                return function(*args)
            except MemoryError as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                return type(error), str(error), where.name, where.lineno

        compiled = tcompile.compile(write)
        small = compiled(np.ones(3), np.ones(4))
        fill()
        x, y, z = np.ones(60_000), np.zeros(60_000), np.zeros(60_000)  # 26.8 GiB
        leave(1000)
        assert outcome(compiled, x, y) == outcome(write, x, z)
        assert np.array_equal(y, z)
        for huge in (lambda: np.empty(1 << 44), lambda: bytearray(1 << 44), lambda: [0] * (1 << 42)):
            fill()
            leave(200)
            kind, text, *_ = outcome(huge)
            assert cached() == 0
        assert np.array_equal(compiled(np.ones(3), np.ones(4)), small)
        lift()
        z = np.ones(2 * MiB)
        assert np.array_equal(double(z), doubled(z))
        fill()
        """,
    )  # fmt: skip


def test_with_too_little_memory_calls_run_in_plain_python_and_are_compiled_later():
    program = """
        leave(room)
        x = np.ones((40, 40))
        made = [compiled(x), compiled(x)]
        assert not compiled.entries
        lift()
        assert np.array_equal(compiled(x), made[0]) and np.array_equal(made[0], made[1])
        assert compiled.entries[0].graph is not None
    """
    define = "\ncompiled = tcompile.compile(lambda x: np.sqrt(x) * x + np.abs(x))\n"
    for mebibytes in (0.2, 8, 100):
        run(BEGIN, "import numpy as np, tcompile", define, f"room = {mebibytes}", program)
    for mebibytes in (0.2, 8):
        run(BEGIN, IMPORT, define, f"room = {mebibytes}", program)


def test_nobody_can_see_it(run_program):
    run_program("""
        import contextvars
        before = [*contextvars.copy_context().items()], np._core.multiarray.get_handler_name()
        made = native.empty((1 << 20,), np.dtype("f4"))
        assert ([*contextvars.copy_context().items()], np._core.multiarray.get_handler_name()) == before
        assert np._core.multiarray.get_handler_name(np.empty(1 << 20)) == "default_allocator"
    """)


def test_room(monkeypatch):
    import resource

    assert memory_limits.available() is None or memory_limits.available() > memory_limits.FURTHER
    none = resource.RLIM_INFINITY  # -1 up to CPython 3.14
    limits = {resource.RLIMIT_AS: (1 << 44, none), resource.RLIMIT_DATA: (none, none)}
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    assert (1 << 43) < memory_limits.available() < 1 << 44
    limits[resource.RLIMIT_DATA] = (1, none)
    assert memory_limits.available() == 0
    array = native.empty((1 << 20,), np.dtype("f4"))
    del array
    with pytest.raises(MemoryError, match="leave 0"):
        memory_limits.ensure(1)
    assert native.stats()["cached"] == 0
    memory_limits.ensure(0)


def test_a_thread_that_finds_no_memory_to_begin(monkeypatch):
    monkeypatch.setattr(target, "_PATIENCE", 0.01)
    monkeypatch.setattr(target, "start_new_thread", lambda function, args: None)
    assert target._run_in_thread(lambda works: 42)() == 42
    with pytest.raises(ZeroDivisionError):
        target._run_in_thread(lambda works: 1 // 0)()


def test_memory_that_is_read_only_is_seen_without_a_store():
    page = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ), np.uint64)
    assert not abi._is_writeable((ctypes.c_uint64 * 5).from_address(page.ctypes.data))
    words = (ctypes.c_uint64 * 5)(1, 2, 3, 4, 5)
    assert abi._is_writeable(words) and list(words) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("groups", "files", "limits"),
    [
        ("0::/", {"memory.max": "max"}, []),
        ("0::/", {"memory.max": "4096"}, [4096]),
        ("0::/a/b.scope", {"a/b.scope/memory.max": "8192", "a/memory.max": "4096", "memory.stat": "x"}, [8192, 4096]),
        ("5:memory:/docker/1\n4:cpu:/\n0::/", {"memory/memory.limit_in_bytes": "4096"}, [4096]),
        ("5:cpu,memory:/x", {"memory/x/memory.limit_in_bytes": "1", "memory/memory.limit_in_bytes": "2"}, [1, 2]),
    ],
)
def test_limits_of_control_groups(tmp_path, groups, files, limits):
    for name, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{k}": v for k, v in files.items()}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(memory._limits_of_groups(tmp_path)) == limits
    assert list(memory._limits_of_groups(tmp_path / "nothing")) == []
