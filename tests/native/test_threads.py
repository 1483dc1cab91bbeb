"""The thread pool: all chunks run once, from any thread, after forks, until the interpreter ends."""

import os
import sys
import threading

import numpy as np
import pytest

from tcompile.backends.llvm import native

linux = pytest.mark.skipif(sys.platform != "linux", reason="the pool has workers on Linux only")


def launch_and_check(launch, kernel, items=100_000, grain=100):
    counts = np.zeros(items, np.int32)
    assert launch(kernel, b"a", items, grain, counts) == 0
    assert (counts == 1).all()


def test_many_regions(launch, kernels, threads):
    for n in (1, 2, 4, 3, 9, 1, 4):
        threads(n)
        for _ in range(200):
            launch_and_check(launch, kernels.count, 1000, 10)


def test_many_threads_launch_at_once(launch, kernels, threads):
    errors = []
    start = threading.Barrier(8)

    def work():
        try:
            start.wait()
            for _ in range(200):
                launch_and_check(launch, kernels.count, 20_000, 500)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for _ in range(50):  # the number of threads changes under way
        threads(1)
        threads(6)
    for worker in workers:
        worker.join()
    assert not errors


def test_other_threads_run_during_a_region(launch, kernels, threads):
    threads(2)
    seen = []
    stop = threading.Event()

    def watch():
        while not stop.is_set():
            seen.append(None)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(5):
        launch_and_check(launch, kernels.count, 4_000_000, 10_000)
    stop.set()
    watcher.join()
    assert seen


@pytest.mark.parametrize("n", [0, -1, 1025, 1.5, "2", None])
def test_bad_numbers_of_threads(n):
    with pytest.raises(ValueError):
        native.set_num_threads(n)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TCOMPILE_NUM_THREADS": "3"}, "3"),
        ({"TCOMPILE_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, "3"),
        ({"TCOMPILE_NUM_THREADS": "", "OMP_NUM_THREADS": "5"}, "5"),
        ({"TCOMPILE_NUM_THREADS": "many", "OMP_NUM_THREADS": "6,2"}, "6"),
        ({"TCOMPILE_NUM_THREADS": "1"}, "1"),
        ({"TCOMPILE_NUM_THREADS": "99999"}, "1024"),
    ],
)
def test_environment(run_program, environment, expected):
    assert run_program("print(native.num_threads())", **environment).strip() == expected


@linux
def test_default_is_no_more_than_the_affinity(run_program):
    printed = run_program("print(native.num_threads())", TCOMPILE_NUM_THREADS="", OMP_NUM_THREADS="")
    assert 1 <= int(printed) <= len(os.sched_getaffinity(0))


@linux
def test_workers_are_started_when_first_needed_and_block_signals(run_program):
    printed = run_program("""
        from pathlib import Path
        def tasks():
            return sorted(map(int, os.listdir("/proc/self/task")))
        before = tasks()
        check(10, 10)
        print(len([task for task in tasks() if task not in before]))  # others may end meanwhile
        check()
        new = [task for task in tasks() if task not in before]
        print(len(new))
        for task in new:
            status = Path(f"/proc/self/task/{task}/status").read_text()
            blocked = int(status.split("SigBlk:")[1].split()[0], 16)
            assert blocked & 0b10, hex(blocked)  # SIGINT
    """)
    assert printed.split() == ["0", "3"]


@linux
def test_workers_may_run_where_they_might_before(run_program):
    """They are sent away from the caller's processor only until they are awake; what others set for them holds."""
    printed = run_program("""
        import time
        check()
        def workers():
            others = [int(task) for task in os.listdir("/proc/self/task")]
            return [os.sched_getaffinity(task) for task in others if task != os.getpid()]
        def woken(may):
            for pause in [0.01] * 20 + [0.0002, 0.0003, 0.0004] * 300:
                check(20_000, 1000)
                time.sleep(pause)
            end = time.monotonic() + 30
            while any(at != may for at in workers()) and time.monotonic() < end:  # some may not be awake yet
                time.sleep(0.01)
            return workers()
        all = os.sched_getaffinity(0)
        found = woken(all)
        assert len(found) >= 3 and found == [all] * len(found), found
        one = {min(all)}
        for task in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(task), one)
        found = woken(one)
        assert found == [one] * len(found), found
        print("well")
    """)
    assert printed.strip() == "well"


def test_interpreter_ends_well_with_parked_workers(run_program):
    run_program("""
        check()
        big = native.empty((1000, 1000), np.dtype("f8"))
    """)


def test_interpreter_ends_well_while_daemon_threads_launch(run_program):
    run_program("""
        def forever():
            while True:
                check(50_000, 100)
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        for _ in range(20):
            check()
    """)


@linux
def test_child_of_a_fork_works_and_ends_well(run_program):
    printed = run_program("""
        import warnings
        warnings.simplefilter("ignore")
        check()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                check()
                os._exit(0 if len(os.listdir("/proc/self/task")) == 4 else 1)
            assert os.waitpid(child, 0)[1] == 0
            check()
        child = os.fork()
        if child == 0:
            check()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print("done")
    """)
    assert printed == "done\n"


@linux
def test_fork_while_other_threads_are_inside_regions(run_program):
    run_program("""
        import warnings
        warnings.simplefilter("ignore")
        stop = threading.Event()
        def work():
            while not stop.is_set():
                check(500_000, 500)
        others = [threading.Thread(target=work) for _ in range(2)]
        for other in others:
            other.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                check()
                keep = native.empty((1 << 20,), np.dtype("f4"))
                del keep
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for other in others:
            other.join()
    """)


@linux
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(run_program, tmp_path, method):
    main = tmp_path / "pooled.py"
    main.write_text(
        "import numpy as np\n"
        "from tcompile.backends.llvm import native\n"
        "def total(n):\n"
        "    out = native.empty((n,), np.dtype('f8'))\n"
        "    out[:] = 1\n"
        "    return float(out.sum())\n"
    )
    run_program(f"""
        import warnings, multiprocessing
        warnings.simplefilter("ignore")
        sys.path.insert(0, {str(tmp_path)!r})
        import pooled
        if __name__ == "__main__":
            check()
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                assert pool.map(pooled.total, [100, 100_000, 1_000_000]) == [100, 100_000, 1_000_000]
            check()
    """)


@linux
def test_workers_take_over_the_rounding_mode(run_program):
    run_program("""
        import ctypes, ctypes.util, platform
        ir = '''
        define i32 @kernel(ptr %words, i64 %begin, i64 %end) {
          %out = load ptr, ptr %words
          %x.at = getelementptr double, ptr %words, i64 1
          %x = load double, ptr %x.at
          %q = fdiv double 1.0, %x
          %to = getelementptr double, ptr %out, i64 %begin
          store double %q, ptr %to
          br label %wait
        wait:
          %i = phi i64 [ 0, %0 ], [ %next, %wait ]
          %next = add i64 %i, 1
          %more = icmp slt i64 %next, 20000
          br i1 %more, label %wait, label %done
        done:
          ret i32 0
        }
        '''
        upward = native.load(ir, ["kernel"])
        libm = ctypes.CDLL("libm.so.6")
        out = np.zeros(500)
        launch(upward["kernel"], b"af", 500, 1, out, 3.0)
        assert (out == 1 / 3).all()
        libm.fesetround(0x800 if platform.machine() == "x86_64" else 0x400000)  # FE_UPWARD
        launch(upward["kernel"], b"af", 500, 1, out, 3.0)
        libm.fesetround(0)
        assert (out == np.nextafter(1 / 3, 1)).all()
        launch(upward["kernel"], b"af", 500, 1, out, 3.0)
        assert (out == 1 / 3).all()
    """)
