"""Machines that lack something: other processors, no vector library, no cache, one core, other processes.

Each runs a program in a fresh process that compares compiled functions with plain ones. What it prints to stderr is the
notice that a user would see: none, or one line.
"""

import os
import subprocess
import sys

import pytest

from tcompile.backends.llvm.native import target

PROGRAM = """
import os, sys
import numpy as np

def with_only(kept, name):
    "Makes LLVM believe in a processor of this name that has these instruction sets, as far as this one has them."
    import llvmlite.binding as llvm
    features = llvm.get_host_cpu_features()
    features.update({feature: False for feature in features if feature not in kept})
    llvm.get_host_cpu_features = lambda: features
    llvm.get_host_cpu_name = lambda: name

def without_libmvec():
    from tcompile.backends.llvm.native import target
    found = target._shared_library
    target._shared_library = lambda name: None if "mvec" in name else found(name)

{before}
import tcompile
{after}

def pointwise(x): return np.maximum(x + 1, 0) * 2 - np.abs(x) / 3
def functions(x): return np.exp(-x * x) + np.sin(x) * np.cos(x) + np.tanh(x) + np.log1p(np.abs(x)) + np.sqrt(np.abs(x))
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
def columns(x): return x.var(axis=0), x.min(axis=0)
def sums(x): return (x * x).sum(), x.max()
def across(x): return x.T + x
def stencil(x): return x[:-2] + x[2:] - 2 * x[1:-1]
def masks(x): return np.where(x > 0, x, -x), (x > 0).any(axis=1), x.astype("float16") + 1
def whole_numbers(x):
    i = (x * 100).astype("int64")
    return i // 7 + i % 5, (i & 12) << 1, i.astype("uint8") * 3, i[:, ::-1] + np.arange(i.shape[1])
def short_rows(x):
    few, row = x[:, :10], x[:, :3]
    e = np.exp(few - few.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), few.argmax(axis=1), row - row.mean(axis=1, keepdims=True), x.argmin(axis=0)
def loop(x):
    for i in range(5):
        x = x * 0.5 + i
    return x

FUNCTIONS = [pointwise, functions, softmax, columns, sums, across, stencil, masks, whole_numbers, short_rows, loop]
COMPILED = [tcompile.compile(f) for f in FUNCTIONS]

def check(shapes=((41, 41), (300, 300))):
    for plain, compiled in zip(FUNCTIONS, COMPILED):
        for shape in shapes:
            for dtype in ("float32", "float64"):
                x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
                wanted = plain(x)
                for _ in range(2):
                    seen = compiled(x)
                    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (seen, wanted))):
                        assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape, plain
                        rtol = 3e-5 if dtype == "float32" else 1e-11
                        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=plain.__name__)

{then}
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="is about Linux")
x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="is about x86-64")


def run(before="", after="", then="check()", lines=0, **environment):
    """Runs the program; its last line must be "done", and it may print as many lines of notice."""
    text = PROGRAM.replace("{before}", before).replace("{after}", after).replace("{then}", then) + '\nprint("done")\n'
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", text], capture_output=True, text=True, timeout=300,
        env={**os.environ, "TCOMPILE_NUM_THREADS": "2", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
    notices = [line for line in done.stderr.splitlines() if "DeprecationWarning" not in line and "os.fork" not in line]
    assert len(notices) <= lines, done.stderr
    return done


# By processor, the instruction sets that it has beyond those of the first one.
OLD = "64bit cmov cx8 fxsr mmx sse sse2 x87"
NEHALEM = f"{OLD} cx16 crc32 popcnt sahf sse3 ssse3 sse4.1 sse4.2"
SANDYBRIDGE = f"{NEHALEM} aes avx pclmul xsave xsaveopt"
HASWELL = f"{SANDYBRIDGE} avx2 bmi bmi2 f16c fma fsgsbase invpcid lzcnt movbe rdrnd"
ALDERLAKE = f"{HASWELL} avxvnni gfni vaes vpclmulqdq sha adx"


@x86
@pytest.mark.parametrize(
    "name, has, bits, libmvec",
    [
        ("x86-64", OLD, 128, True), ("nehalem", NEHALEM, 128, False), ("haswell", HASWELL, 256, True),
        ("alderlake", ALDERLAKE, 256, False),
    ],
    ids=["sse2", "sse4", "avx2", "avx2-and-more"],
)  # fmt: skip
def test_lesser_processors(name, has, bits, libmvec, tmp_path):
    features = target._make_tools().llvm.get_host_cpu_features()
    if not all(features.get(feature, True) for feature in has.split()):
        pytest.skip("this machine has less itself")
    then = "check(((41, 41),)); from tcompile.backends.llvm import native"
    run(
        f"with_only({has.split()!r}, {name!r})", "" if libmvec else "without_libmvec()",
        f"{then}; assert native.machine().vector_bits == {bits} and all(f.entries[0].kernels for f in COMPILED)",
        TCOMPILE_CACHE_DIR=str(tmp_path / "cache"),
    )  # fmt: skip


@linux
def test_no_vector_library():
    run(after="without_libmvec()", then="check(((41, 41),))", TCOMPILE_CACHE_DIR="")


@linux
def test_a_cache_that_cannot_be_made_or_is_full(tmp_path):
    run(then="check(((41, 41),)); assert tcompile.cache.info().off", TCOMPILE_CACHE_DIR="/proc/no/such/place")
    run(  # no file may grow
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
        then="check(((41, 41),)); assert tcompile.cache.info().off", TCOMPILE_CACHE_DIR=str(tmp_path / "full"),
    )  # fmt: skip
    assert not list((tmp_path / "full").iterdir())


@linux
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_is_read_only(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o500)
    run(then="check(((41, 41),)); assert tcompile.cache.info().off", TCOMPILE_CACHE_DIR=str(tmp_path / "cache"))


@linux
def test_one_core():
    run(
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); del os.environ['TCOMPILE_NUM_THREADS']",
        then="check(((41, 41), (700, 700))); assert tcompile.get_num_threads() == 1",
    )


FORK = """
check(((41, 41),))
child = os.fork()
if child == 0:
    check(((41, 41), (300, 300)))  # what was compiled, and sizes that are new
    tcompile.reset()
    check(((40, 40),))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
check()
"""

SPAWN = """
import multiprocessing
import pooled
if __name__ == "__main__":
    wanted = pooled.work(3)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(pooled.work, [3, 3, 3]) == [wanted] * 3
            assert pool.map(pooled.compiled, [3, 4]) == [pooled.compiled(3), pooled.compiled(4)]  # it pickles
"""

POOLED = """
import numpy as np
import tcompile
@tcompile.compile
def compiled(n):
    x = np.arange(n * 1000.0)
    return float((np.maximum(x - n, 0) * 2).sum())
def work(n):
    return [compiled(n) for _ in range(3)]
"""


@linux
def test_a_fork_between_calls():
    run(then=FORK)


@linux
def test_processes_of_both_kinds(tmp_path):
    (tmp_path / "pooled.py").write_text(POOLED)
    run(then=SPAWN, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
