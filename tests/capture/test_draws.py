"""Random numbers that machine code draws: NumPy's own stream, number by number, whatever happens on the way."""

import _thread
import signal
import threading

import numpy as np
import pytest

import tcompile
from tcompile.graph.ops.draws import DRAWS, family_of, method_of
from tcompile.graph.ops.scalar_loop import filling
from tests.capture.test_scalar_loops import ops

BACKENDS = ("eager", "llvm")
FAMILIES = ("PCG64", "PCG64DXSM", "MT19937", "SFC64")


def generator(family="PCG64", seed=3):
    return np.random.Generator(getattr(np.random, family)(seed))


def legacy(seed=3):
    return np.random.RandomState(seed)


def picture(rng):
    """All that can be seen of a generator."""
    state = rng.get_state(legacy=False) if isinstance(rng, np.random.RandomState) else rng.bit_generator.state
    return repr(state)


def outcome(f, args):
    try:
        with np.errstate(all="ignore"):
            return f(*args)
    except Exception as error:
        return type(error), str(error)


def shown(value):
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.shape, value.strides, value.tolist()
    return [shown(v) for v in value] if isinstance(value, tuple) else (type(value), value)


def same(f, make, calls=3, breaks=0):
    """Checks results, arguments and states of a function of which ``make`` gives the arguments; returns it compiled."""
    for backend in BACKENDS:
        tcompile.reset()
        compiled = tcompile.compile(f, backend=backend)
        for _ in range(calls):
            plain, ours = make(), make()
            for _ in range(2):  # from the state that the first call has left, too
                want, got = outcome(f, plain), outcome(compiled, ours)
                assert repr(shown(got)) == repr(shown(want))
                for a, b in zip(plain, ours, strict=True):
                    one, two = (picture(x) if hasattr(x, "_bit_generator") else shown(x) for x in (a, b))
                    assert repr(one) == repr(two)
        assert len(compiled.breaks) == breaks, compiled.breaks
    return compiled


def loop(call):
    """A function with a scalar loop that draws so."""
    names = {"np": np}
    exec(f"def f(rng, out):\n    for i in range(len(out)):\n        out[i] = {call}\n    return rng.random()\n", names)
    return names["f"]


CALLS = {
    "random": "rng.random()", "standard_normal": "rng.standard_normal()", "normal": "rng.normal()",
    "normal of two": "rng.normal(i, 2)", "normal of one": "rng.normal(0.5)", "uniform": "rng.uniform()",
    "uniform of two": "rng.uniform(-i - 1, i)", "uniform of one": "rng.uniform(0.25)",
    "integers": "rng.integers(5)", "integers of two": "rng.integers(-i - 1, i * i + 1)",
    "integers of 64 bits": "rng.integers(-(1 << 61), 1 << 61)", "integers of one": "rng.integers(0, 1)",
    "integers of 32 bits": "rng.integers(0, 1 << 32)", "standard_exponential": "rng.standard_exponential()",
    "exponential": "rng.exponential()", "exponential of one": "rng.exponential(i + 0.5)",
    "standard_gamma": "rng.standard_gamma(i + 0.5)", "gamma": "rng.gamma(2)", "gamma of two": "rng.gamma(0.5, 3)",
    "beta": "rng.beta(0.5, i + 1)", "chisquare": "rng.chisquare(3)", "laplace": "rng.laplace(1, 2)",
    "logistic": "rng.logistic(1, 2)", "gumbel": "rng.gumbel(1, 2)", "lognormal": "rng.lognormal(0.1, 0.2)",
    "rayleigh": "rng.rayleigh(2)", "weibull": "rng.weibull(1.5)", "pareto": "rng.pareto(3)",
    "normal by names": "rng.normal(scale=2, loc=i)", "normal by a name": "rng.normal(i, scale=2)",
    "integers by names": "rng.integers(low=3, high=9)", "integers by a name": "rng.integers(low=4)",
    "uniform by a name": "rng.uniform(high=3)", "poisson": "rng.poisson(3)", "poisson of many": "rng.poisson(300.5)",
}  # fmt: skip
LEGACY = {
    "random": "rng.random()", "random_sample": "rng.random_sample()", "rand": "rng.rand()", "uniform": "rng.uniform()",
    "uniform of two": "rng.uniform(-i - 1, i)", "randint": "rng.randint(7)", "randint of two": "rng.randint(-i, i + 3)",
    "randint of 64 bits": "rng.randint(-(1 << 61), 1 << 61)", "randn": "rng.randn()", "normal": "rng.normal()",
    "normal of two": "rng.normal(i, 2)", "standard_normal": "rng.standard_normal()",
}  # fmt: skip


EACH = [("PCG64", name) for name in CALLS]
EACH += [(family, name) for family in FAMILIES[1:] for name in ("random", "integers of two", "normal by names")]


@pytest.mark.parametrize(("family", "name"), EACH)
def test_what_is_drawn(family, name):
    kind = float if "integers" not in name and "poisson" not in name else np.int64
    compiled = same(loop(CALLS[name]), lambda: (generator(family), np.zeros(40, kind)), calls=1, breaks=1)
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("name", LEGACY)
def test_what_legacy_generators_draw(name):
    kind = np.int64 if "randint" in name else float
    compiled = same(loop(LEGACY[name]), lambda: (legacy(), np.zeros(40, kind)), calls=1, breaks=1)
    assert "scalar_loop" in ops(compiled)


def test_every_row_of_the_table_is_tried():
    tried = {call.split("(")[0].removeprefix("rng.") for call in CALLS.values()}
    old = {call.split("(")[0].removeprefix("rng.") for call in LEGACY.values()}
    methods = {method_of(np.random.Generator, name) for name in tried}
    assert {*methods, *(method_of(np.random.RandomState, name) for name in old)} == {
        name for name in DRAWS if name != "below" and not name.startswith("python_")
    }


# -- programs people write ---------------------------------------------------------------------------------------------


def metropolis(rng, n):
    x, accepted, out = 0.0, 0, np.zeros(n)
    for i in range(n):
        y = x + rng.normal(0, 0.5)
        if rng.random() < np.exp(0.5 * (x * x - y * y)):
            x = y
            accepted += 1
        out[i] = x
    return out, accepted


def ising(rng, s, steps):
    n = s.shape[0]
    for _ in range(steps):
        i, j = rng.integers(0, n), rng.integers(0, n)
        change = 2 * s[i, j] * (s[(i + 1) % n, j] + s[(i - 1) % n, j] + s[i, (j + 1) % n] + s[i, (j - 1) % n])
        if change <= 0 or rng.random() < np.exp(-change * 0.4):
            s[i, j] = -s[i, j]
    return s


def circle(rng, n):
    inside = 0
    for _ in range(n):
        x, y = rng.random(), rng.random()
        if x * x + y * y < 1:
            inside += 1
    return 4 * inside / n


def shuffled(rng, x):
    for i in range(len(x) - 1, 0, -1):
        j = rng.integers(0, i + 1)
        x[i], x[j] = x[j], x[i]
    return x


def two_generators(one, two, n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = one.random() - two.standard_normal()
    return out


def until(rng, limit):
    steps, x = 0, 0.0
    while abs(x) < limit:
        x += rng.normal()
        steps += 1
    return steps, x


def step(rng, x):
    return x + 0.1 * rng.standard_normal()


def calls(rng, n):
    x = 1.0
    out = np.empty(n)
    for i in range(n):
        x = step(rng, x)
        out[i] = x
    return out


def burns(rng, n):
    for _ in range(n):
        rng.random()
    x = np.zeros(3)
    for _ in range(n):
        rng.random()
    return x


def of_numpy(n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = np.random.rand() + np.random.uniform(1, 2) * np.random.randint(3) + np.random.randn()
    return out


PROGRAMS = [  # and in how many places they break: a Python int is divided by another one
    (metropolis, lambda: (generator(), 60), 0), (ising, lambda: (generator(), np.ones((6, 6), int), 80), 0),
    (circle, lambda: (generator(), 100), 1), (shuffled, lambda: (generator(), np.arange(30)), 0),
    (two_generators, lambda: (generator(), generator("MT19937"), 40), 0), (until, lambda: (generator(), 5.0), 0),
    (calls, lambda: (generator(), 40), 0), (burns, lambda: (generator(), 40), 0),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make", "breaks"), PROGRAMS, ids=lambda f: getattr(f, "__name__", ""))
def test_programs(f, make, breaks):
    compiled = same(f, make, breaks=breaks)
    assert "scalar_loop" in ops(compiled)
    assert not any(node.op.name == "fori_loop" for graph in compiled.graphs for node in graph.nodes)


def test_numpys_own_functions():
    found = []
    compiled = tcompile.compile(of_numpy)
    for f in (of_numpy, compiled):
        np.random.seed(5)
        found += [f(40).tolist() + f(40).tolist() + [picture(np.random.mtrand._rand)]]
    assert found[0] == found[1]
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("take", [np.random.default_rng(3).random, np.random.RandomState(3).rand, np.random.rand])
def test_methods_that_are_known_by_another_name(take):
    def f(n):
        x = np.zeros(3)
        for _ in range(n):
            x = x + take(3)
        return x

    compiled = tcompile.compile(f)
    state = take.__self__._bit_generator.state
    want = f(40)
    take.__self__._bit_generator.state = state
    assert compiled(40).tolist() == want.tolist()
    assert not compiled.breaks


def test_one_entry_serves_all_generators():
    compiled = tcompile.compile(circle)
    for seed in range(5):
        assert compiled(generator(seed=seed), 50) == circle(generator(seed=seed), 50)
    assert len(compiled.entries) == 1
    assert compiled(generator("SFC64"), 50) == circle(generator("SFC64"), 50)
    assert "SFC64 in the place of PCG64" in str(compiled.recompiles[-1])


def after_or(rng, a):
    n = 0
    for row in a:
        if row.max() <= 0.6 or rng.random() < 0.5:
            n += 1
    return n


def after_and(rng, a):
    n = 0
    for row in a:
        if not (row.max() <= 0.8 and rng.integers(10) < 5):
            n += 1
    return n


def until_both(rng, a):
    n, x = 0, a[0]
    while x.max() < 20 and rng.random() < 0.9:
        x = x * 1.5
        n += 1
    return n


def skips(rng, a):
    n = 0
    for row in a:
        if row.max() <= 0.6 or rng.random() < 0.5:
            continue
        n += 1
    return n


@pytest.mark.parametrize("f", [after_or, after_and, until_both, skips])
def test_the_second_half_of_a_test_draws_only_where_the_first_does_not_decide(f):
    for seed in range(5):
        compiled = same(f, lambda seed=seed: (generator(seed=seed), generator(seed=9).random((20, 2))), calls=1)
    assert "exit_loop" in ops(compiled)


# -- programs that do nothing but draw an array, which backends without machine code draw at once ----------------------
def changed(program, of, to):
    """The program with another instruction or end in the place of one."""
    blocks = tuple(
        (parameters, tuple(to if line == of else line for line in lines), to if end == of else end)
        for parameters, lines, end in program[2]
    )
    assert blocks != program[2]
    return (*program[:2], blocks, *program[3:])


def test_what_is_drawn_at_once():
    compiled = same(lambda rng, m: rng.normal(m, 2.0, (40, 30)), lambda: (generator(), 0.5), calls=1)
    (program,) = [n.attrs["program"] for g in compiled.graphs for n in g.nodes if n.op.name == "scalar_loop"]
    drawn, target = filling(program)
    assert drawn[2:5] == (0, "PCG64", "normal") and target == 1
    lines = [line for _, inner, _ in program[2] for line in inner]
    (store,) = (line for line in lines if line[0] == "store")
    mores, sizes = ([line for line in lines if line[0] == name] for name in ("more", "size"))
    one = next(line for line in lines if line[0] == "const" and line[2] == 1)
    back = next(end for _, _, end in program[2] if end[0] == "jump")
    for of, to in (
        (store, (*store[:4], store[5], store[4])),
        (store, (*store[:4], store[4], store[4])),
        (store, (*store[:3], mores[0][2], *store[4:])),
        (drawn, (*drawn[:5], mores[0][2], drawn[6])),
        (mores[0], (*mores[0][:3], mores[1][3], mores[0][4])),
        (sizes[0], (*sizes[0][:3], 1)),
        (sizes[0], (*sizes[0][:2], 0, 0)),
        (one, (*one[:2], 2)),
        (back, (*back[:2], (one[1],))),
    ):
        assert filling(changed(program, of, to)) is None, (of, to)


# -- many of them, outside of loops ------------------------------------------------------------------------------------
QUICK = {
    "random": "rng.random({})", "uniform": "rng.uniform(size={})", "uniform of two": "rng.uniform(-0.5, m, {})",
    "standard_normal": "rng.standard_normal({})", "normal": "rng.normal(size={})",
    "normal of two": "rng.normal(m, 3, {})", "standard_exponential": "rng.standard_exponential({})",
    "exponential": "rng.exponential(m, {})", "integers": "rng.integers(9, size={})",
    "integers of one kind": "rng.integers(4, 5, {})", "integers of both signs": "rng.integers(-3, 1000, {})",
    "integers drawn again": "rng.integers(0, 3_000_000_000, {})", "integers of 32 bits": "rng.integers(0, 1 << 32, {})",
    "integers of more": "rng.integers(0, (1 << 32) + 1, {})", "integers of less": "rng.integers(0, (1 << 32) - 1, {})",
}  # fmt: skip


def many(call):
    """A function that draws so many numbers at once, around work with arrays."""
    names = {"np": np}
    exec(f"def f(rng, m, x):\n    z = {call}\n    return x + z.max(), z, rng.random()\n", names)
    return names["f"]


@pytest.mark.parametrize("size", ["10_000", "(500, 20)", "len(x) * 100", "(4, len(x), 25)"])
@pytest.mark.parametrize("name", QUICK)
def test_arrays_are_drawn_in_the_graph(name, size):
    f = many(QUICK[name].format(size))
    compiled = same(f, lambda: (generator(), 0.75, np.arange(100.0)), breaks=1)  # one number is Python's
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", QUICK)
def test_arrays_of_all_kinds_of_generators(name, family):
    f = many(QUICK[name].format("30_000"))  # of these, hundreds are drawn by NumPy's function
    calls = family in ("MT19937", "PCG64DXSM") and name.split(" ")[0] in ("random", "integers")
    for seed in range(2):
        same(f, lambda seed=seed: (generator(family, seed), 0.75, np.arange(3.0)), calls=1, breaks=1 + calls)


@pytest.mark.parametrize("call", [
    "rng.standard_normal(999)", "rng.standard_normal()", "rng.random(9_999)", "rng.integers(0, 9, 2000, endpoint=True)",
    "rng.gamma(2, 1, 2000)", "rng.standard_normal(2000, dtype=np.float32)", "rng.normal(x, 1, (2000, 100))",
])  # fmt: skip
def test_draws_that_stay_numpys(call):
    same(many(call), lambda: (generator(), 0.75, np.arange(100.0)), calls=1, breaks=2)


def test_legacy_generators_draw_arrays_themselves():
    same(many("rng.standard_normal(2000)"), lambda: (legacy(), 0.75, np.arange(3.0)), calls=1, breaks=2)


@pytest.mark.parametrize("call", [
    "rng.normal(0, -m, 2000)", "rng.exponential(-m, 2000)", "rng.uniform(0, np.inf, 2000)", "rng.integers(3, 3, 2000)",
])  # fmt: skip
def test_what_numpy_refuses_of_arrays(call):
    same(many(call), lambda: (generator(), 0.75, np.arange(3.0)), calls=2, breaks=1)


CHOICES = [
    "x, 1500", "x, size=(40, 30)", "700, 2000", "len(x), len(x) * 20", "x.reshape(-1, 2), 1500", "a=x, size=1500",
    "x, 1500, True, None, 0", "x, 1500, replace=True, p=None, axis=0, shuffle=True", "x[:0], 1500", "0, 1500",
    "x, size=len(x) * 20, replace=True",
]  # fmt: skip


@pytest.mark.parametrize("given", CHOICES)
def test_choices_with_replacement(given):
    same(many(f"rng.choice({given})"), lambda: (generator(), 0.75, np.arange(100.0)), breaks=1)


@pytest.mark.parametrize("given", [
    "x, 50, replace=False", "x, 20", "x", "[1, 2, 3], 1500", "x.reshape(2, -1), 1500, axis=1", "x, 1500, shuffle=False",
    "m > 0, 1500", "x, 1500, p=x / x.sum()", "x, 1500, 1",
])  # fmt: skip
def test_choices_that_stay_numpys(given):
    same(many(f"rng.choice({given})"), lambda: (generator(), 0.75, np.arange(100.0)), calls=1, breaks=2)


def bootstrap_of_choices(rng, x, n):
    out = np.empty(n)
    for i in range(n):
        out[i] = rng.choice(x, size=len(x), replace=True).max()
    return out


def test_a_bootstrap_stays_a_loop():
    compiled = same(bootstrap_of_choices, lambda: (generator(), np.random.default_rng(3).random(30), 40))
    assert "fori_loop" in ops(compiled)


def two_of_one_shape(rng, n):
    a = rng.standard_normal(n)
    b = rng.standard_normal(n)
    return a * b, a


def test_arrays_of_one_shape_have_memory_of_their_own():
    compiled = same(two_of_one_shape, lambda: (generator(), 2000))
    (entry,) = compiled.entries
    assert [kernel.name.split("_")[0] for kernel in entry.kernels] == ["kernel", "scalar", "scalar"]  # none for memory
    lines = [line for line in entry.compiled_graph.source.splitlines() if "raise with_results(" not in line]
    assert sum(line.count("copy(") for line in lines) == 1  # of the state, for plain Python


def test_numbers_of_sizes_that_change():
    f = many(QUICK["normal of two"].format("(len(x), 25)"))
    compiled = tcompile.compile(f)
    for n in (100, 120, 130, 7, 0):
        one, two = generator(), generator()
        want, got = (outcome(run, (rng, 0.5, np.arange(float(n)))) for run, rng in ((f, one), (compiled, two)))
        assert repr(shown(got)) == repr(shown(want)) and picture(one) == picture(two)


# -- arrays of them, in loops over arrays ------------------------------------------------------------------------------


def rows(call):
    """The same, where each iteration draws a row."""
    return loop(call[:-1] + (", " if call[-2] != "(" else "") + "size=3)")


@pytest.mark.parametrize("name", CALLS)
def test_rows_that_are_drawn(name):
    kind = float if "integers" not in name and "poisson" not in name else np.int64
    compiled = same(rows(CALLS[name]), lambda: (generator(), np.zeros((20, 3), kind)), calls=1, breaks=1)
    assert "fori_loop" in ops(compiled)


@pytest.mark.parametrize("name", [name for name in LEGACY if not name.startswith("rand")])
def test_rows_that_legacy_generators_draw(name):
    kind = np.int64 if "randint" in name else float
    compiled = same(rows(LEGACY[name]), lambda: (legacy(), np.zeros((20, 3), kind)), calls=1, breaks=1)
    assert "fori_loop" in ops(compiled)


def brownian(rng, s, steps):
    for _ in range(steps):
        z = rng.standard_normal(s.shape)
        s = s * np.exp(-0.25 + 0.5 * z)
    return np.sign(s)


def descent(rng, x, y, steps):
    w = np.zeros(x.shape[1])
    for _ in range(steps):
        i = rng.integers(0, len(x), 16)
        w = w - 0.125 * (x[i] * (x[i] * w - y[i][:, None])).max(axis=0)
    return w


def bootstrap(rng, x, n):
    out = np.empty(n)
    for b in range(n):
        out[b] = x[rng.integers(0, len(x), len(x))].max()
    return out


def noisy(rng, x, steps):
    for _ in range(steps):
        if rng.random() < 0.5:
            x = x + rng.uniform(-1, 1, (2, 4))
        else:
            x = x * 2 - rng.normal()
    return x


def of_two_kinds(rng, n):
    x, last = np.zeros((2, 3)), 0.0
    for k in range(n):
        x = x + rng.random((2, 3)) * k
        last = last + rng.exponential()
        x[0] = rng.integers(5, size=3)
    return x, last


def with_dims(rng, n):
    x = np.zeros((2, 4))
    for _ in range(n):
        x = x + rng.rand(2, 4) * rng.randn() + rng.randn(4)
    return x


def nothing(rng, n):
    x = np.zeros((0, 3))
    for _ in range(n):
        x = x + rng.random((0, 3))
    return x, rng.random()


ROWS = [
    (brownian, lambda: (generator(), np.ones(10), 30), 0), (noisy, lambda: (generator(), np.ones((2, 4)), 30), 0),
    (descent, lambda: (generator(), np.arange(60.0).reshape(20, 3) % 7, np.arange(20.0), 30), 0),
    (bootstrap, lambda: (generator(), np.arange(50.0), 30), 0), (of_two_kinds, lambda: (generator(), 30), 0),
    (with_dims, lambda: (legacy(), 30), 0), (nothing, lambda: (generator(), 30), 1),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make", "breaks"), ROWS, ids=lambda f: getattr(f, "__name__", ""))
def test_programs_with_rows(f, make, breaks):
    compiled = same(f, make, breaks=breaks)
    assert "fori_loop" in ops(compiled)


def straight(rng, x):
    a = rng.standard_normal(len(x))
    return a * x + rng.random(), rng.integers(0, 9, (2, 3))


def test_without_loops_draws_are_plain_pythons_unless_that_is_an_error():
    compiled = tcompile.compile(straight)
    whole = tcompile.compile(straight, fullgraph=True)
    for f in (compiled, whole):
        for seed in range(3):
            one, two = generator(seed=seed), generator(seed=seed)
            got, want = f(one, np.arange(4.0)), straight(two, np.arange(4.0))
            assert [x.tolist() for x in got] == [x.tolist() for x in want]
            assert picture(one) == picture(two)
    assert len(compiled.breaks) == 3
    with pytest.raises(tcompile.errors.Unsupported, match="Random numbers are drawn"):
        tcompile.compile(lambda rng: rng.permutation(5), fullgraph=True)(generator())


def permuted(rng, n):
    x = np.arange(5.0)
    for _ in range(n):
        x = x + rng.permutation(5)
        x = x + rng.random(5, dtype=np.float32)
    return x


def test_other_methods_and_arguments_leave_the_iterations_to_python():
    same(permuted, lambda: (generator(), 20), breaks=2)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_errors_of_rows_leave_what_came_before(bad):
    def scaled(rng, scales, out):
        for i in range(len(out)):
            out[i] = rng.normal(0.0, scales[i], 3)
        return out

    same(scaled, lambda: (generator(), np.where(np.arange(20) == 13, bad, 1.0), np.zeros((20, 3))))


# -- what only plain Python can do -------------------------------------------------------------------------------------


def scaled(rng, scales, out):
    for i in range(len(out)):
        out[i] = rng.normal(0.0, scales[i])
    return out


def bounded(rng, lows, highs, out):
    for i in range(len(out)):
        out[i] = rng.integers(lows[i], highs[i])
    return out


def wide(rng, lows, highs, out):
    for i in range(len(out)):
        out[i] = rng.uniform(lows[i], highs[i])
    return out


def outside(rng, out):
    for i in range(len(out) + 1):
        out[i] = rng.random()


def overflowing(rng, out):
    with np.errstate(over="raise"):
        for i in range(len(out)):
            out[i] = np.exp(i * 100.0) * rng.random()
    return out


@pytest.mark.parametrize("bad", [-1.0, 0.0, -0.0, np.nan, np.inf])
def test_scales_that_numpy_refuses_or_treats_apart(bad):
    same(scaled, lambda: (generator(), np.where(np.arange(20) == 13, bad, 1.0), np.zeros(20)), breaks=0)


@pytest.mark.parametrize("high", [0, -5, 1 << 62, 1])
def test_bounds_that_numpy_refuses(high):
    highs = np.where(np.arange(20) == 13, high, 9)
    same(bounded, lambda: (generator(), np.zeros(20, int), highs, np.zeros(20, int)))


@pytest.mark.parametrize("high", [0.0, -1.0, np.inf, np.nan, 1e308])
def test_intervals_that_numpy_refuses(high):
    highs = np.where(np.arange(20) == 13, high, 9.0)
    same(wide, lambda: (generator(), np.where(np.arange(20) == 13, -high, 0.0), highs, np.zeros(20)))


@pytest.mark.parametrize(("f", "breaks"), [(outside, 0), (overflowing, 2)])
def test_errors_in_the_midst(f, breaks):
    same(f, lambda: (generator(), np.zeros(20)), breaks=breaks)


def test_one_generator_under_two_names():
    shared = [generator(), generator()]
    compiled = tcompile.compile(two_generators)
    compiled(generator(), generator(), 30)
    assert compiled(shared[0], shared[0], 30).tolist() == two_generators(shared[1], shared[1], 30).tolist()
    assert picture(shared[0]) == picture(shared[1])


class Mine(np.random.Generator):
    def random(self, *args):
        return 0.5


def test_subclasses_and_unknown_generators_are_plain_pythons():
    for make in (lambda: Mine(np.random.PCG64(1)), lambda: np.random.Generator(np.random.Philox(1))):
        compiled = tcompile.compile(circle)
        assert compiled(make(), 50) == circle(make(), 50)
    assert family_of(np.random.Generator(np.random.Philox(1))) is None


def test_threads_draw_in_turn():
    """Each call has its part of the stream: what two threads have drawn together is what one would have."""
    n, iterations = 20_000, 6

    def take(rng, out):
        for i in range(len(out)):
            out[i] = rng.random()
        return out

    compiled = tcompile.compile(take)
    compiled(generator(), np.zeros(n))
    rng, plain, found = generator(), generator(), []

    def work(f):
        for _ in range(iterations):
            found.append(f(np.zeros(n)))

    threads = [threading.Thread(target=work, args=(f,)) for f in (lambda o: compiled(rng, o), lambda o: rng.random(n))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parts = {tuple(plain.random(n)) for _ in range(2 * iterations)}
    assert {tuple(part) for part in found} == parts


def test_a_call_waits_while_another_thread_draws():
    compiled = tcompile.compile(circle)
    compiled(generator(), 50)
    rng, found = generator(), []
    thread = threading.Thread(target=lambda: found.append(compiled(rng, 50)))
    with rng.bit_generator.lock:
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert picture(rng) == picture(generator())
    thread.join()
    assert found == [circle(generator(), 50)]


def reads_after_an_array(rng):
    x = rng.standard_normal(1000)
    return x[0], rng.bit_generator.state


def reads_after_a_loop(rng):
    total = 0.0
    for _ in range(100):
        total += rng.random()
    return total, rng.bit_generator.state


def reads_before_and_after(rng):
    bits = rng.bit_generator
    before = bits.state
    x = rng.integers(0, 9, 1001)
    return x[-1], before, bits.state["bit_generator"], bits.state


def goes_back(rng):
    before = rng.bit_generator.state
    x = rng.random(20_000)
    rng.bit_generator.state = before
    return x[0], rng.random(), rng.bit_generator.random_raw()


def spawns(rng):
    child = rng.spawn(1)[0]
    return child.random(), rng.bit_generator.seed_seq.n_children_spawned


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.SFC64, np.random.MT19937])
@pytest.mark.parametrize("f", [
    reads_after_an_array, reads_after_a_loop, reads_before_and_after, goes_back, spawns,
])  # fmt: skip
def test_states_that_are_read_are_those_of_the_moment(f, kind):
    ours, plain = np.random.Generator(kind(5)), np.random.Generator(kind(5))
    compiled = tcompile.compile(f)
    for _ in range(4):
        np.testing.assert_equal(compiled(ours), f(plain))


def test_generators_are_objects_as_before():
    """What does not draw is no reason to break."""

    def f(x, rng):
        y = x * 0.5 + 2
        other = None if rng is None else rng
        draws = getattr(rng, "random", None)
        kept = [rng, (rng.bit_generator, other)]
        return y if callable(draws) and isinstance(rng, np.random.Generator) else x, kept, type(rng)

    rng, x = generator(), np.arange(3.0)
    compiled = tcompile.compile(f)
    for _ in range(2):
        (y, (one, (bits, other)), cls), want = compiled(x, rng), f(x, rng)
        assert y.tolist() == want[0].tolist()
        assert one is rng and other is rng and bits is rng.bit_generator and cls is np.random.Generator
    assert not compiled.breaks


def test_an_interrupt_leaves_the_state_as_it_was():
    def endless(rng, n):
        total = 0.0
        for _ in range(n):
            total += rng.random()
        return total

    compiled = tcompile.compile(endless, dynamic=True)
    compiled(generator(), 1000)
    rng = generator()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(rng, 1 << 34)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert picture(rng) == picture(generator())
    assert compiled(rng, 100) == endless(generator(), 100)
