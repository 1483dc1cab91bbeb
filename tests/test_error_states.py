"""``np.errstate`` and warnings: what plain NumPy reports is reported, once each, in its words, at the user's line."""

import contextlib
import io
import threading
import warnings

import numpy as np
import pytest
from differential import check

import tcompile

MODES = ["default", "ignore", "warn", "raise", "call", "print", "log", "-W error", "once a place"]
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def pointwise(x, y):
    a = x + 1
    return a / y


@program
def vector_function(x, y):
    return np.log(y) * 2


@program
def overflow(x, y):
    z = x * 2
    return np.exp(z * 1000) + 1


@program
def read_in_part(x, y):
    a = x / y
    b = np.sqrt(2 - x)
    return a[4:] * 2, b[0] + 1, (a * 2)[5:].sum()


@program
def full_reduction(x, y):
    s = (x / y).sum()
    return s


@program
def column_reduction(x, y):
    return (x / y).reshape(2, -1).sum(axis=0)


@program
def row_reduction(x, y):
    return (x * 1e308).reshape(2, -1).sum(axis=1)


@program
def matrix_product(x, y):
    z = (x * 1e300).reshape(2, -1)
    return z @ z.T


@program
def integer_division(x, y):
    n = y.astype(np.int64)
    return (n + 3) // n


@program
def integer_remainder(x, y):
    n = y.astype(np.int32)
    return (n + 3) % n


@program
def power(x, y):
    return y**-1.5


@program
def complex_division(x, y):
    z = x + 1j * x
    return z / y


@program
def complex_comparison(x, y):
    z = x * 1j + np.nan
    return z < y


@program
def unread_complex_comparison(x, y):
    z = x * 1j + np.nan
    _ = z < y
    return x


@program
def unread_floor_of_sorted_halves(x, y):  # where NumPy sorts by vectors, it leaves signalling NaNs
    z = np.sort((x * np.nan).astype(np.float16))
    _ = np.floor(z)
    return z


@program
def broadcast_to_nothing(x, y):
    return np.sqrt(-x[:1]) + y[:0]


@program
def half_precision(x, y):
    h = x.astype(np.float16) * np.float16(1000)
    return h * h


@program
def conversion(x, y):
    with np.errstate(divide="ignore", invalid="ignore"):
        z = x / y
    return z.astype(np.int32)


@program
def narrowing(x, y):
    z = x * 1e300
    return z.astype(np.float32)


@program
def between_scalars(x, y):
    s = x.max()
    return s / y.min()


@program
def integer_scalars(x, y):
    n = np.int8(100)
    return (x.astype(np.int8)[7] * n) + x


@program
def library_calls(x, y):
    return np.linalg.norm(x * 1e300, axis=0) + np.arctan2(x, y) + np.cumsum(x * 1e308)


@program
def two_lines(x, y):
    a = x / y
    b = np.sqrt(-x)
    return a, b


@program
def own_state(x, y):
    with np.errstate(divide="raise"):
        return x / y


@program
def underflow(x, y):
    return np.exp(-x * 1e5) * 1e-300 + np.float32(1e-30) * np.float32(1e-30)


@program
def empty_mean(x, y):
    return x[:0].mean()


@program
def variance(x, y):
    return (x * 1e200).var()


@program
def many_threads(x, y):
    z, w = np.concatenate([x] * 60_000), np.concatenate([y] * 60_000)
    return z / w


@program
def caught_inside(x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return x / y
        except RuntimeWarning as warning:
            return str(warning)


@program
def written_in_place(x, y):
    x[1:] = x[1:] / y[1:]
    x *= 2
    return x


@program
def under_a_mask(x, y):
    m = x > 2
    x[m] = np.log(y[m]) + x[m]
    return x


@program
def outside_of_a_mask(x, y):
    m = y != 0
    x[m] = 1 / y[m]
    return x


@program
def gathered(x, y):
    places = np.array([0, 3, 3, 5])
    return x[places] / y[places]


class Log:
    def __init__(self, seen):
        self.write = seen.append


def observe(function, mode):
    """Everything that one call reports: value, error and its line, warnings and their places, calls."""
    x, y = np.arange(1.0, 9.0), np.arange(1.0, 9.0)
    y[3] = 0
    seen, state = [], {}
    if mode not in ("default", "-W error", "once a place"):
        state["all"] = mode
    if mode == "call":
        state["call"] = lambda kind, flag: seen.append((kind, flag))
    if mode == "log":
        state["call"] = Log(seen)
    value = error = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()) as out:
        warnings.simplefilter({"-W error": "error", "once a place": "default"}.get(mode, "always"))
        with np.errstate(**state):
            try:
                value = function(x, y)
            except Exception as raised:
                lines, trace = [], raised.__traceback__
                while trace is not None:
                    if trace.tb_frame.f_code.co_filename == __file__:
                        lines.append(trace.tb_lineno)
                    trace = trace.tb_next
                error = type(raised), str(raised), lines[-1]
    told = [(w.category, str(w.message), w.filename, w.lineno) for w in caught]
    return value, (error, told, seen, out.getvalue())


def assert_told_alike(function, compiled, mode, capfd, calls=2):
    for _ in range(calls):
        capfd.readouterr()
        want, told = observe(function, mode)
        printed = capfd.readouterr()  # the mode "print" writes past sys.stdout
        got, ours = observe(compiled, mode)
        assert ours == told
        assert capfd.readouterr() == printed
        if told[0] is None:
            for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want)), strict=True):
                assert type(a) is type(b)
                if not isinstance(b, str):
                    np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_numpy_reports_is_reported(name, mode, capfd):
    tcompile.reset()
    assert_told_alike(PROGRAMS[name], tcompile.compile(PROGRAMS[name]), mode, capfd)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_backends_report_alike(name, backend, capfd):
    for mode in ("warn", "raise"):
        tcompile.reset()
        assert_told_alike(PROGRAMS[name], tcompile.compile(PROGRAMS[name], backend=backend), mode, capfd, 1)


@pytest.mark.parametrize("name", ["pointwise", "vector_function", "library_calls", "half_precision"])
def test_one_entry_serves_every_error_state(name, capfd):
    tcompile.reset()
    compiled = tcompile.compile(PROGRAMS[name])
    for mode in [*MODES, *MODES]:
        assert_told_alike(PROGRAMS[name], compiled, mode, capfd, 1)
    assert len(compiled.entries) == 1


def test_the_programs_are_compiled():
    """They would report alike if they all ran in plain Python."""
    tcompile.reset()
    for name in set(PROGRAMS) - {"underflow", "empty_mean", "caught_inside", "integer_scalars", "between_scalars"}:
        compiled = tcompile.compile(PROGRAMS[name])
        with np.errstate(all="ignore"):
            compiled(np.arange(1.0, 9.0), np.arange(1.0, 9.0))
        assert any(entry.kernels for entry in compiled.entries), name


def test_error_states_of_threads_are_their_own():
    tcompile.reset()
    compiled = tcompile.compile(pointwise)
    x, zero = np.ones(8), np.zeros(8)
    results = {}

    def work(action):
        with np.errstate(divide=action):
            for _ in range(50):
                try:
                    results.setdefault(action, set()).add(bool(np.isinf(compiled(x, zero)).all()))
                except FloatingPointError as error:
                    results.setdefault(action, set()).add(str(error))

    threads = [threading.Thread(target=work, args=(action,)) for action in ("ignore", "raise")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"ignore": {True}, "raise": {"divide by zero encountered in divide"}}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_that_leave_the_range_are_numpys(dtype):
    """Parts of them overflow or underflow in one order and not in another: what comes of that is zero, inf or NaN."""

    def f(x):
        with np.errstate(all="ignore"):
            return x.prod(), x.prod(axis=0), x.prod(axis=1), np.multiply.reduce(x, axis=None)

    random = np.random.default_rng(0)
    factors = np.repeat([1e30, 1e-30, 1e-25], [500, 500, 3]).astype(dtype)
    for made in (factors, random.permutation(factors), factors[::-1].copy()):
        check(f, lambda made=made: [made.reshape(17, 59)], exact=True)
