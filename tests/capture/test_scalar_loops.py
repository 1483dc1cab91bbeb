"""Loops over elements in machine code: what Python makes of every operation, element and way out."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tcompile
from tcompile.graph.ops.scalar_loop import result_kind
from tests.differential import check

BACKENDS = ("eager", "llvm")


def ops(compiled):
    """The operations in all its graphs, those in regions included."""
    found, waiting = set(), list(compiled.graphs)
    while waiting:
        for node in waiting.pop():
            found.add(node.op.name)
            waiting += node.regions
    return found


def captured(f, make_args, **more):
    """Checks a function, and that it became one scalar loop without a break."""
    for compiled in check(f, make_args, backends=BACKENDS, ulp=0, **more):
        if compiled.entries:
            assert "scalar_loop" in ops(compiled)
            assert not compiled.breaks
    return compiled


def refused(f, make_args, **more):
    """Checks a function that is no scalar loop."""
    for compiled in check(f, make_args, backends=BACKENDS, **more):
        assert "scalar_loop" not in ops(compiled)


# -- the programs people write -----------------------------------------------------------------------------------------


def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m], d


def mandelbrot(xs, ys, limit):
    out = np.zeros((len(ys), len(xs)), np.int64)
    for i in range(len(ys)):
        for j in range(len(xs)):
            a = b = 0.0
            n = 0
            while a * a + b * b <= 4.0 and n < limit:
                a, b = a * a - b * b + xs[j], 2.0 * a * b + ys[i]
                n += 1
            out[i, j] = n
    return out


def sieve(n):
    prime = np.ones(n + 1, np.bool_)
    prime[0] = prime[1] = False
    for i in range(2, n + 1):
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return prime


def nussinov(seq):
    n = len(seq)
    t = np.zeros((n, n), np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            t[i, j] = max(t[i, j], t[i, j - 1])
            if i + 1 < n:
                t[i, j] = max(t[i, j], t[i + 1, j])
                if i < j - 1:
                    t[i, j] = max(t[i, j], t[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
            for k in range(i + 1, j):
                t[i, j] = max(t[i, j], t[i, k] + t[k + 1, j])
    return t


def crc32(data):
    table = np.zeros(256, np.int64)
    for i in range(256):
        c = i
        for _ in range(8):
            c = 0xEDB88320 ^ (c >> 1) if c & 1 else c >> 1
        table[i] = c
    crc = 0xFFFFFFFF
    for k in range(len(data)):
        crc = table[(crc ^ data[k]) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def nearest(x, c):
    n, d = x.shape
    out = np.zeros(n, np.int64)
    for i in range(n):
        best = np.inf
        for k in range(c.shape[0]):
            s = 0.0
            for j in range(d):
                t = x[i, j] - c[k, j]
                s += t * t
            if s < best:
                best = s
                out[i] = k
    return out


def random(*shape):
    return np.random.default_rng(3).random(shape)


def letters(n, seed=1):
    return np.random.default_rng(seed).integers(0, 4, n)


@pytest.mark.parametrize(("f", "make"), [
    (edit_distance, lambda: (letters(12), letters(9, 2))),
    (mandelbrot, lambda: (np.linspace(-2, 1, 7), np.linspace(-1, 1, 5), 30)),
    (sieve, lambda: (150,)),
    (nussinov, lambda: (letters(11),)),
    (crc32, lambda: (np.random.default_rng(0).integers(0, 256, 50),)),
    (nearest, lambda: (random(20, 3), random(4, 3))),
])  # fmt: skip
def test_programs(f, make):
    captured(f, make)


# -- kinds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64",
])  # fmt: skip
def test_elements_of_every_kind(dtype):
    def f(a, b):
        for i in range(len(a) - 1):
            if a[i] < a[i + 1]:
                b[i] = a[i]
            else:
                b[-i - 1] = a[i + 1]
        return a[0], b

    captured(f, lambda: (np.array([3, 1, 2, 0, 1, 5, 4, 4]).astype(dtype), np.zeros(8, dtype)))


SIGNS = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**", "<", "<=", "==", "!=", ">", ">=")
LEFT = {
    "np.int64": "a[i]", "int": "i - 4", "float": "(i - 4) * 0.75", "np.float64": "x[i]", "np.int32": "s[i]",
    "np.float32": "y[i]", "bool": "(i < 9)", "np.bool": "q[i]", "np.uint8": "u[i]",
}  # fmt: skip


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("one", LEFT)
def test_operators(sign, one):
    """On every pair of kinds; where the last iterations raise, the first ones are left."""
    lines = ["def f(a, x, s, y, q, u, n):", "    r = t = v = 0", "    for i in range(n):"]
    for number, (kind, second) in enumerate(LEFT.items()):
        if result_kind(sign, one, kind) is None:
            continue
        other = second.replace("[i]", "[-i - 1]").replace("i - 4", "3 - i")
        first = LEFT[one].replace("i - 4", "i + 4") if kind == "np.uint8" else LEFT[one]
        lines += [f"        r{number} = ({first}) {sign} ({other})"]
    results = [line.split()[0] for line in lines[3:]]
    if not results:
        return
    f = _function("\n".join([*lines, f"    return {', '.join(results)},"]))
    for n in (2, 8):
        check(f, lambda n=n: (*_kinds(), n), backends=("llvm",), stances=("default",), ulp=0)


def _function(text):
    """The function ``f`` of a program's text."""
    names = {"np": np, "math": math}
    exec(compile(text, "<elements>", "exec"), names)
    return names["f"]


def _kinds():
    a = np.array([-3, 7, 2, 1, 5, -8, 4, 9])
    return a, a * 0.3, a.astype("int32"), (a * 0.7).astype("float32"), a > 2, np.abs(a).astype("uint8")


@pytest.mark.parametrize("text", [
    "-x[i]", "-a[i]", "~a[i]", "abs(x[i])", "abs(a[i])", "abs(i - 3)", "not x[i]", "int(x[i] * 9)", "float(a[i])",
    "bool(x[i])", "math.sqrt(abs(x[i]))", "math.exp(x[i])", "math.floor(x[i])", "math.ceil(x[i])", "math.sin(x[i])",
    "np.sqrt(abs(x[i]))", "np.float64(i)", "max(x[i], x[0])", "min(i, 3)", "max(a[i], a[1], a[2])", "math.isnan(x[i])",
    "max((x[i], x[0]))", "min((i, 3, x[i]))", "max((x[i],))",
    "i if x[i] > 0 else i + 1", "x[i] and x[0]", "a[i] or 7", "3 < a[i] < 8", "+x[i]", "len(x) - i", "x.size + i",
    "math.log(abs(x[i]) + 1)", "i ** 2", "a[i] ** 3", "x[i] ** 2", "(i * 0.5) ** 3",
])  # fmt: skip
def test_expressions(text):
    lines = f"def f(a, x):\n    r = t = 0\n    for i in range(8):\n        r = {text}\n        t = t + r\n"
    check(_function(lines + "    return r, t\n"), lambda: _kinds()[:2], backends=BACKENDS, stances=("default",), ulp=0)


# -- where Python raises, warns, or has more bits ----------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    "a[i + 5]", "a[-i - 4]", "x[i, 0]", "1 // (i - 4)", "1 % (i - 4)", "1.0 / (i - 4)", "x[i] / (x[4] - x[4])",
    "a[i] // (a[i] - a[4])", "math.sqrt(4.0 - i)", "math.log(4.0 - i)", "math.exp(i * 500.0)", "(i + 1) << 62",
    "a[i] << (i - 4)", "1 << (i - 4)", "(9223372036854775807 // (i + 1)) * 3", "a[i] * 4611686018427387904",
    "int(1e300 * i)", "int(x[i] / 1e-320)", "s[i] * 1000000000", "u[i] - u[0] - u[1]", "u[i] * 100",
    "x[i] * 1e308 * 10", "s[i] + 5000000000", "np.sqrt(int(1e200) + i)",
    "x[i] - x[i] * 1e308 * 1e10", "(-1.0) ** (i * 0.5)", "0.0 ** (i - 4)", "a[x[i]]", "a[i > 2]",
])  # fmt: skip
def test_what_only_python_does(text):
    lines = f"def f(a, x, s, u):\n    r = 0\n    for i in range(8):\n        a[i] = i\n        r = {text}\n"

    def make():
        a = np.arange(8)[::-1].copy()
        return a, a * 0.3 + 1, a.astype("int32"), a.astype("uint8")

    check(_function(lines + "    return r, a\n"), make, backends=BACKENDS, stances=("default",), ulp=0)


def test_an_error_in_a_later_iteration_leaves_what_was_done_before():
    def f(a, n):
        for i in range(n):
            a[i] = a[i] * 2 + i

    for n in (3, 9):
        check(f, lambda n=n: (np.arange(7), n), backends=BACKENDS)


def test_stores_that_do_not_fit():
    def f(a, b, n):
        for i in range(n):
            b[i] = a[i] * 70
        return b

    for dtype in ("int8", "uint8", "int16", "bool", "float32"):
        check(f, lambda d=dtype: (np.arange(8), np.zeros(8, d), 8), backends=BACKENDS)
        check(f, lambda d=dtype: (np.arange(8) - 4, np.zeros(8, d), 8), backends=BACKENDS)


# -- ways --------------------------------------------------------------------------------------------------------------


def test_ways_out():
    def search(a, x):
        for i in range(len(a)):
            if a[i] == x:
                break
        else:
            i = -1
        return i

    def first(a, x):
        for i in range(len(a)):
            if a[i] > x:
                return i
        return -1

    def skips(a, x):
        t = 0
        for i in range(len(a)):
            if a[i] < x:
                continue
            if i > 6:
                t += 100
                break
            t += a[i]
        return t

    def steps(a, x):
        n = 0
        while a[n] != x:
            n += 1
            if n == len(a) - 1:
                return n, "gone"
        return n, "found"

    for f in (search, first, skips, steps):
        for x in (2, 5, 99):
            check(f, lambda x=x: (np.array([4, 1, 2, 5, 3, 7, 6, 0, 8]), x), backends=BACKENDS)


def test_a_variable_that_has_another_type_in_the_first_iteration():
    def f(a, n):
        low, at = np.inf, None
        for i in range(n):
            if a[i] < low:
                low, at = a[i], i
        return low, at

    for n in (0, 1, 8):
        check(f, lambda n=n: (np.array([3.0, 2, 5, 1, 4, 1, 0, 9]), n), backends=BACKENDS)


def test_loops_of_no_iterations():
    def f(a, n):
        s, i = 0.5, -7
        for i in range(n):
            for j in range(i):
                s = s + a[j]
        return s, i

    for n in (0, 1, 2, 5):
        check(f, lambda n=n: (np.arange(8.0), n), backends=BACKENDS)


def test_ranges():
    def f(a, start, stop, step):
        s, i = 0, 99
        for i in range(start, stop, step):
            s = s * 3 + a[i]
        return s, i

    for bounds in ((0, 8, 1), (7, -1, -1), (1, 8, 3), (6, 0, -4), (5, 5, 1), (7, 2, 1), (-8, 8, 2), (-1, -9, -3)):
        check(f, lambda b=bounds: (np.arange(8), *b), backends=BACKENDS)


def test_a_step_that_is_no_constant():
    def f(a, n):
        for i in range(1, n):
            for j in range(i, n, i):
                a[j] += i
            for j in range(n - 1, 0, i - 4):
                a[j] -= 1
        return a

    check(f, lambda: (np.arange(9), 4), backends=BACKENDS)
    check(f, lambda: (np.arange(9), 9), backends=BACKENDS)


def test_long_loops_go_in_strips(monkeypatch):
    monkeypatch.setattr("tcompile.backends.llvm.scalar_loops.lower._STRIP", 16)

    def f(a, n):
        s = 0
        for i in range(n):
            s += a[i % 7]
        for i in range(n, 0, -3):
            s ^= i
        return s

    for n in (15, 16, 17, 99, 144):
        captured(f, lambda n=n: (np.arange(7), n), stances=("default",))


# -- arrays ------------------------------------------------------------------------------------------------------------


def test_views_of_one_array_see_one_another():
    def f(a):
        b, c = a[1], a[:, 2]
        for i in range(6):
            b[i] = b[i] + c[i]
            c[5 - i] = a[1, i] * 2 + a[i, i]
        return b, c

    captured(f, lambda: (np.arange(36.0).reshape(6, 6),))
    captured(f, lambda: (np.arange(36.0).reshape(6, 6).T,))
    captured(f, lambda: (np.arange(144.0).reshape(12, 12)[::2, 1::2],))


def test_arguments_that_overlap():
    def f(a, b):
        for i in range(5):
            a[i + 1] = a[i] + b[i]
        return a

    def make():
        x = np.arange(12.0)
        return x[:8], x[2:10]

    check(f, make, backends=BACKENDS)
    check(f, lambda: (np.arange(8.0),) * 2, backends=BACKENDS)


def test_arrays_that_change_places():
    def f(u, v, n):
        for _ in range(n):
            for i in range(1, len(u) - 1):
                v[i] = (u[i - 1] + u[i] + u[i + 1]) / 3
            u, v = v, u
        return u, v

    for n in (5, 6, 7):
        check(f, lambda n=n: (np.arange(8.0) % 3, np.zeros(8), n), backends=BACKENDS)


def test_rows():
    def f(a, n):
        s = 0.0
        for i in range(n):
            row = a[i]
            for j in range(len(row)):
                s += row[j]
            a[i][0] = s
        return s, a

    check(f, lambda: (random(5, 6), 5), backends=BACKENDS)
    check(f, lambda: (random(5, 6), 6), backends=BACKENDS)


def test_read_only_arrays_and_subclasses():
    def f(a, n):
        for i in range(n):
            a[i] = a[i] + 1
        return a

    def fixed():
        a = np.arange(6.0)
        a.flags.writeable = False
        return a, 6

    check(f, fixed, backends=BACKENDS)
    check(f, lambda: (np.ma.array(np.arange(6.0)), 6), backends=BACKENDS)
    check(f, lambda: ([1.0, 2.0, 3.0], 3), backends=BACKENDS)
    check(f, lambda: (np.arange(6, dtype=">f8"), 6), backends=BACKENDS)
    check(f, lambda: (np.frombuffer(b"\0" * 49, np.uint8)[1:].copy()[:48].view("f8"), 6), backends=BACKENDS)


def test_signed_zeros_and_nan():
    def f(a, out):
        for i in range(len(a)):
            out[i, 0] = max(a[i], 0.0 * a[i])
            out[i, 1] = min(a[i], a[-i - 1])
            out[i, 2] = -a[i]
            out[i, 3] = 1 if a[i] == a[i] else 0
            out[i, 4] = a[i] if not a[i] else 2.0
        return out

    check(f, lambda: (np.array([0.0, -0.0, np.nan, 1.0, -1.0]), np.zeros((5, 5))), backends=BACKENDS)


def test_warnings_are_numpys():
    def f(a, n):
        s = a[0]
        for i in range(n):
            s = s * a[i]
        return s

    with np.errstate(over="raise"):
        check(f, lambda: (np.full(8, 1e200), 8), backends=BACKENDS)
    check(f, lambda: (np.full(8, 1e200), 8), backends=BACKENDS)
    check(f, lambda: (np.full(8, np.inf) - 1, 8), backends=BACKENDS)


# -- beside other code -------------------------------------------------------------------------------------------------


def test_between_operations_on_arrays():
    def f(a, n):
        b = np.sqrt(a) * 2
        for i in range(1, n):
            b[i] = b[i - 1] * 0.5 + b[i]
        return b.sum() + b[-1], b * 2

    captured(f, lambda: (random(20), 20))


def test_inside_a_loop_over_arrays():
    def f(u, n):
        for _ in range(n):
            v = u * 0.5
            for i in range(1, len(v)):
                v[i] = v[i] + v[i - 1] * 0.5
            u = v + 1
        return u

    captured(f, lambda: (random(20), 9))


def test_open_sizes():
    def f(a, b, n):
        for i in range(n):
            for j in range(a.shape[1]):
                b[i] += a[i, j]
        return b

    compiled = tcompile.compile(f, dynamic=True)
    for n, m in ((5, 6), (7, 3), (4, 9)):
        a = random(n, m)
        want, got = np.zeros(n), np.zeros(n)
        f(a, want, n)
        compiled(a, got, n)
        assert (want == got).all()
    assert len(compiled.entries) == 1


def test_the_graph_prints_and_reads_back():
    from tcompile.graph.reader import from_code
    from tcompile.graph.verify import verify

    compiled = captured(nearest, lambda: (random(20, 3), random(4, 3)), stances=("default",))
    (graph,) = compiled.graphs
    again = from_code(graph.code)
    verify(again)
    given = random(20, 3), random(4, 3)
    assert (again(*given)[0] == graph(*given)[0]).all()
    assert graph.readable() and graph.svg()


def test_explain_says_what_became_of_the_loop():
    compiled = tcompile.compile(nearest)
    report = str(tcompile.explain(compiled)(random(20, 3), random(4, 3)))
    assert "stays a loop: one node of the graph, 20 iterations: all of it is scalar code" in report


def test_no_loop_over_elements():
    def rows(a, n):
        for i in range(n):
            a[i] = a[i - 1] * 2
        return a

    def lists(a, n):
        out = []
        for i in range(n):
            out.append(a[i])
        return out

    refused(rows, lambda: (random(9, 4), 9))
    refused(lists, lambda: (random(9, 4), 9))


def test_loops_in_a_called_function_and_over_globals():
    def f(a, n):
        total = 0.0
        for i in range(n):
            total += a[i] * FACTOR
        return inner(a, n) + total

    def inner(a, n):
        s = 1.0
        for i in range(n):
            if a[i] > 0.5:
                s *= a[i]
        return s

    captured(f, lambda: (random(12), 12))


FACTOR = 2.5


def test_overflow_warnings_are_raised_once():
    def f(a, n):
        s = a[0]
        for i in range(n):
            s = s + a[i]
        return s

    compiled = tcompile.compile(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled(np.full(4, 1 << 62), 4)
        compiled(np.full(4, 1 << 62), 4)
    assert {w.category for w in caught} == {RuntimeWarning}


# -- signals -----------------------------------------------------------------------------------------------------------

ENDLESS = """
import os, signal, sys, threading, time
import numpy as np
import tcompile

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

def nest(a, n):
    for i in range(n):
        for j in range(len(a)):
            a[j] = a[j] * 0.5 + i

def single(a, n):
    s = 0.0
    for i in range(n):
        s = s * 0.5 + a[i % 7]

def until(a, n):
    k = 0
    while k < n:
        k += 1
        a[0] = k

def iterations(a, n):
    for i in range(n):
        a[1:] = a[1:] * 0.5 + a[0]
        for j in range(len(a)):
            a[j] = a[j] * 0.5 + 1

def inside(a, n):
    for i in range(9):
        b = a * 1.0
        while b.min() < n:
            b = np.sqrt(np.abs(b)) * 0.9
        a += b

def ring():
    time.sleep(0.2)
    times.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

for function in (nest, single, until, iterations, inside):
    compiled, a, times = tcompile.compile(function, backend="llvm", dynamic=True), np.ones(100), []
    compiled(a, 9 if function is not inside else 0.5)
    before = a.copy()
    threading.Thread(target=ring).start()
    try:
        compiled(a, 10**12)
    except KeyboardInterrupt:
        print(function.__name__, (a == before).all(), time.perf_counter() - times[0])
"""


def test_an_interrupt_ends_a_loop_without_effects():
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=120)
    rows = [line.split() for line in done.stdout.splitlines()]
    names = ["nest", "single", "until", "iterations", "inside"]
    assert [row[:2] for row in rows] == [[name, "True"] for name in names], done.stderr


def test_rows_of_more_axes():
    def f(a, n):
        s = 0.0
        for i in range(n):
            block = a[i]
            for j in range(block.shape[0]):
                row = block[j]
                for k in range(len(row)):
                    s += row[k] * block[-1, k] + a[i, j][0]
                row[1] = s
        return s, a

    captured(f, lambda: (random(3, 4, 2), 3))
    check(f, lambda: (random(3, 4, 2), 4), backends=BACKENDS)


def test_sums_of_scalars_beside_a_loop():
    """Kernels beside a loop are made the short way, and LLVM cannot do so with sums that say whether they overflow."""

    def f(a, n):
        b = np.zeros(n)
        for i in range(n):
            b[i] = i * 0.5
        return b, sum(a)

    check(f, lambda: [np.arange(7), 20])


@pytest.mark.parametrize("strided", [False, True])
def test_more_arrays_than_are_handed_over(strided):
    """The first eight are arguments of the function; addresses of the others, and all strides, are read."""

    def f(a, b, c, d, e, g, h, p, q, r, out):
        for i in range(len(out)):
            out[i] = a[i] + 2 * b[i] + 3 * c[i] + 4 * d[i] + 5 * e[i] - g[i] - 2 * h[i] - 3 * p[i] - 4 * q[i] - 5 * r[i]
            r[i] = out[i] - q[i]
        return out

    def arrays():
        made = [random(20) for _ in range(11)]
        return [one[::2] for one in made] if strided else made

    captured(f, arrays)
    check(f, arrays, backends=BACKENDS)
    check(f, arrays, backends=["llvm"], dynamic=True)


# -- parts of complex numbers ------------------------------------------------------------------------------------------
def reads_a_part(z):
    a, s = z.real, 0.0
    for i in range(a.shape[0]):
        s += a[i]
    return s


def writes_a_part(z):
    a = z.imag
    for i in range(a.shape[0]):
        a[i] = 5.0
    return z


def parts_of_parts(z):
    y = z[::2].imag
    for i in range(len(y)):
        y[i] = z.real[i] + y[i]
    return z


def both_parts(z):
    a, b = z.real, z.imag
    for _ in range(9):
        for i in range(1, len(a)):
            a[i] = a[i - 1] * 0.5 + b[i]
    return z


@pytest.mark.parametrize("f", [reads_a_part, writes_a_part, parts_of_parts, both_parts])
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_parts_of_complex_numbers(f, dtype):
    for size in (20, 33):
        check(f, lambda size=size: ((np.arange(size) + 1j * np.arange(size)[::-1]).astype(dtype),), backends=BACKENDS)


def test_what_cannot_be_written_is_refused_as_plainly():
    def f(b):
        a = np.broadcast_to(b, (3, 6))
        for i in range(3):
            for j in range(6):
                a[i, j] = a[0, j] * 0.5 + 1
        return a

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a bug of tcompile's would be one
        check(f, lambda: (np.ones(6),), backends=BACKENDS)
