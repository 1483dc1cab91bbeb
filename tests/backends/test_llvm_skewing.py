"""Kernels of a loop that go through the same arrays together, a few slabs each in turn, across iterations too."""

from __future__ import annotations

import _thread
import random
import signal
import threading
import warnings

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import native
from tcompile.backends.llvm.loop_program import build, skewing
from tcompile.backends.llvm.loop_program.ir import CopyStep
from tcompile.backends.llvm.loop_program.skewing import Band, SlabAccess, conflict, skew
from tests.differential import check


@pytest.fixture
def small(monkeypatch):
    """Small arrays count as large ones. Gives the ways found, None for kernels that stay apart."""
    found = []
    original = skewing.skew

    def noted(bands, threads):
        found.append(original(bands, threads))
        return found[-1]

    monkeypatch.setattr(skewing, "skew", noted)
    for name in ("LEAST_BYTES", "SEAMS", "SEAMS_FAR"):
        monkeypatch.setattr(skewing, name, 0)
    monkeypatch.setattr(skewing, "SLAB_BYTES", 1)
    monkeypatch.setattr(skewing, "NEAR_USES", 99)
    tcompile.reset()
    yield found
    tcompile.reset()


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    """So many threads, and zones."""
    before = native.num_threads()
    native.set_num_threads(request.param)
    yield request.param
    native.set_num_threads(before)


# -- programs ----------------------------------------------------------------------------------------------------------
def jacobi(u, n):
    for t in range(n):
        v = u.copy()
        u[1:-1, 1:-1] = 0.25 * (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2]) + 0.01 * t
    return u


def fields(h, n):
    ex, ey, hz = h * 0, h * 0, h
    for t in range(n):
        ey[1:, :] = ey[1:, :] - 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] = ex[:, 1:] - 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] = hz[:-1, :-1] - 0.75 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
        hz[7, 3] += 0.125 * t  # a source: one place, and another number each iteration
    return hz, ex, ey


def wave(u, n):
    p = u.copy()
    for _ in range(n):
        q = 2 * u - p
        q[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        p, u = u, q
    return u, p


def borders(p, n):
    for _ in range(n):
        q = p.copy()
        p[1:-1, 1:-1] = 0.25 * (q[1:-1, 2:] + q[1:-1, :-2] + q[2:, 1:-1] + q[:-2, 1:-1])
        p[:, -1], p[0, :], p[:, 0], p[-1, :] = p[:, -2], p[1, :], p[:, 1], 0
    return p


def inside_a_loop(p, n):
    for _ in range(3):
        p = p * 1.01
        for _ in range(n):
            p[1:-1] = p[1:-1] + 0.1 * (p[2:] + p[:-2] - 2 * p[1:-1])
            p[2:-2] *= 0.999
    return p


def backwards(u, n):
    for _ in range(n):
        u[::-1][1:] = u[::-1][1:] * 0.5 + 0.25 * u[::-1][:-1]
        u[1:] = u[1:] * 0.5 + 0.25 * u[:-1]
    return u


def until(u, n):
    for t in range(n):
        v = u.copy()
        u[1:-1] = 0.5 * (v[2:] + v[:-2])
        v[1:] = u[1:] * 0.5 + u[:-1] * 0.25
        u[2:] = v[2:] - 0.125 * v[:-2]
        if t > 20 and u[3, 3] < 1e9:
            break
    return u


def ends_early(x, n):
    """A test passes over some of an iteration's steps, and over the copies that put things in place there."""
    y, z, total = x * 2, x * 3, np.zeros_like(x)
    for i in range(n):
        x = 0.9 * x + 0.01 * i
        y = 0.5 * y + x
        z = z + 0.1 * y
        if i % 3 == 1 or x[3, 3] > 1.5:
            continue
        total = total + x
        y = y * 0.9
        z = z - total
    return x, y, z, total


def mirrored(p, n):
    for _ in range(n):
        p[0, -2:0:-1] = p[1, 1:-1] * 0.5
        p[1:-1] = 0.5 * p[1:-1] + 0.25 * (p[2:] + p[:-2])
    return p


PROGRAMS = [jacobi, fields, wave, borders, inside_a_loop, backwards, until, ends_early, mirrored]


@pytest.mark.parametrize("shape", [(61, 40), (64, 64), (97, 31)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_numpy(program, shape, threads, small):
    """In all numbers of iterations: as many as are done at once, more, and some left over; for both memory orders."""
    for dtype, order in (("float64", "C"), ("float32", "F")):
        compiled = tcompile.compile(program)
        for count in (9, 16, 23, 30):
            array = np.asarray(np.random.default_rng(count).random(shape), dtype, order=order)
            want = program(array.copy(order="K"), count)
            got = compiled(array.copy(order="K"), count)
            for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
                np.testing.assert_array_equal(a, b)
                assert (a.dtype, a.strides) == (b.dtype, b.strides)
    assert any(found is not None for found in small)


def test_errors_are_told(threads, small):
    """What overflows in an iteration that is done with others is told as NumPy tells it."""

    def grows(u, n):
        for _ in range(n):
            v = u.copy()
            u[1:-1] = (v[2:] + v[:-2]) * 1e30
        return u

    array = np.ones((50, 20))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        want = grows(array.copy(), 30)
    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("always")
        got = tcompile.compile(grows)(array.copy(), 30)
    np.testing.assert_array_equal(got, want)
    assert {str(w.message) for w in told} == {str(w.message) for w in ours}
    assert any(small)


def test_slabs_of_more_rows_than_a_border_has(threads, small, monkeypatch):
    """A part of less than a slab that is written backwards, first of all in an iteration."""
    monkeypatch.setattr(skewing, "SLAB_BYTES", 1 << 11)

    def backwards_first(u, n):
        v = u.copy()
        for t in range(n):
            v[0, ::-1] = u[3, :] * 0.3 + 0.1 * t
            u[1:] = u[1:] * 0.5 + 0.1 * v[:-1]
        return u, v

    array = np.random.default_rng(0).random((800, 100))
    for count in (8, 27):
        want = backwards_first(array.copy(), count)
        for a, b in zip(tcompile.compile(backwards_first)(array.copy(), count), want, strict=True):
            np.testing.assert_array_equal(a, b)
    assert any(small)


def test_interrupts_leave_nothing_of_the_loop(threads, small):
    """Also where several iterations are done at once."""
    array = np.random.default_rng(0).random((400, 64))
    compiled, before = tcompile.compile(backwards), array.copy()
    compiled(array.copy(), 30)
    assert any(small)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(array, 10**12)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, handler)
    np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(compiled(array, 30), backwards(before, 30))


def test_plans_are_made_once(small):
    """Calls with arrays of the same form ask no more how kernels go together; other forms do."""
    compiled = tcompile.compile(fields)
    asked = []
    for rows in (60, 61, 62, 61, 62):
        compiled(np.ones((rows, 40)), 20)
        asked.append(len(small))
    assert asked[2] > asked[1] > 0
    assert asked[2] == asked[3] == asked[4]


def test_small_arrays_stay_apart():
    """What fits in a core's own cache gains nothing."""
    rows = Band(100, (SlabAccess(0, False, 0, 800, 800), SlabAccess(1, True, 0, 800, 800)))
    assert skew([rows, rows], 2) is None


def test_arrays_that_change_places_in_a_circle_are_not_copied(monkeypatch):
    """Of three arrays the oldest is written to: no iteration copies, whatever their number."""
    made = []
    loop = build.Iterations
    original = loop._swap_buffers
    monkeypatch.setattr(loop, "_swap_buffers", lambda self, **how: (original(self, **how), made.append(self)))
    for count in range(8, 15):
        check(wave, lambda count=count: [np.random.default_rng(0).random((9, 9)), count])
    assert made
    assert not any(isinstance(step, CopyStep) for loop in made for step in loop.steps)


def test_a_value_that_two_names_get():
    """Both names get an array of their own."""

    def twice(u, n):
        p, q = u * 2, u * 3
        for _ in range(n):
            new = 0.5 * u + 0.25 * p - 0.125 * q
            p, q, u = u, u, new
        return p, q, u

    for count in (8, 9, 10):
        check(twice, lambda count=count: [np.random.default_rng(0).random((9, 9)), count])


# -- generated programs ------------------------------------------------------------------------------------------------
class Writer:
    """Bodies of loops: parts of arrays get what others have next to them, arrays change names."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def part(self, rows: int, columns: int) -> str:
        """A part that is so many rows and columns smaller than the whole, somewhere."""
        name = self.random.choice("abc")
        return name + "[" + ", ".join(self.along(n) for n in (rows, columns)) + "]"

    def along(self, less: int) -> str:
        start = self.random.randint(0, less)
        stop = start - less
        return f"{start or ''}:{stop or ''}"

    def line(self) -> str:
        kind = self.random.random()
        rows, columns = self.random.choice([(2, 2), (1, 0), (0, 1), (0, 0), (3, 0), (1, 1)])
        if kind < 0.1:
            return self.random.choice(["a, b = b, a", "a, b, c = b, c, a", "c = a.copy()", "a, b, c = c, a, b * 0.5"])
        if kind < 0.2:
            k = self.random.randrange(3)
            edge = ("[0, :]", "[:, 0]", "[-1, :]", "[:, -1]")[self.random.randrange(4)]
            return f"{'abc'[k]}{edge} = {self.random.choice(['0', f'0.5 * b{edge}', '0.01 * t'])}"
        if kind < 0.3:
            return f"{self.random.choice('abc')}[5, 4] += 0.01 * t"
        if kind < 0.37:
            test = self.random.choice(["t % 3 == 1", "a[2, 3] > 0.5", "b[1, 1] < 0.25"])
            return f"if {test}: {self.random.choice(['continue', 'continue', 'break'])}"
        terms = " + ".join(f"0.2 * {self.part(rows, columns)}" for _ in range(self.random.randint(1, 4)))
        return f"{self.part(rows, columns)} {self.random.choice(['=', '=', '+='])} {terms}"

    def program(self) -> str:
        """The text of a function."""
        lines = [self.line() for _ in range(self.random.randint(1, 6))]
        body = "\n".join(f"        {line}" for line in lines)
        return f"def f(a, b, c, n):\n    for t in range(n):\n{body}\n    return a, b, c\n"


def run_generated(seed: int) -> None:
    """One program, compiled and not."""
    source = Writer(seed).program()
    space: dict = {}
    exec(source, space)
    chosen = random.Random(seed)
    shape = chosen.choice([(30, 31), (64, 8), (41, 50)])
    before = native.num_threads()
    native.set_num_threads(chosen.choice([1, 2, 3]))
    try:
        compiled = tcompile.compile(space["f"])
        for count in (8, 25, 31):
            sets = [[np.random.default_rng(k).random(shape) for k in range(3)] for _ in range(2)]
            want = [*space["f"](*sets[0], count), *sets[0]]
            got = [*compiled(*sets[1], count), *sets[1]]
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}, {count} iterations\n{source}")
    finally:
        native.set_num_threads(before)


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_generated(first, small):
    for seed in range(first, first + 30):
        run_generated(seed)
    assert sum(found is not None for found in small) > 10


# -- distances ---------------------------------------------------------------------------------------------------------
def test_distances_by_counting():
    """The bounds hold for all pairs of slabs that share bytes, and are reached."""
    chosen = random.Random(0)
    for _ in range(300):
        step = chosen.choice([-8, 8, 24])
        bands = [
            Band(9, (SlabAccess(0, written, start, start + chosen.randint(1, 40), step),))
            for written in (True, chosen.random() < 0.5)
            for start in [chosen.randint(200, 280)]
        ]
        a, b = (band.parts[0] for band in bands)
        near = [
            j - i
            for i in range(40)
            for j in range(40)
            if a.start + i * step < b.stop + j * step and b.start + j * step < a.stop + i * step
        ]
        least, largest = conflict(*bands)
        assert (least, largest) == (min(near), max(near)) if near else least > largest


def test_steps_that_differ():
    """Rows against columns of one array: at any distance; where they never meet, at none."""
    rows = Band(10, (SlabAccess(0, True, 0, 80, 80),))
    assert conflict(rows, Band(10, (SlabAccess(0, False, 0, 728, 8),))) is None
    least, largest = conflict(rows, Band(10, (SlabAccess(0, False, 4000, 4008, 8),)))
    assert least > largest


def test_the_program_of_a_loop_of_large_arrays_is_kept(monkeypatch, threads):
    """Arrays are each call's own, so they take no memory between calls."""
    made = []

    class Level(build.Level):
        def __init__(self, *args, **kwargs):
            made.append(self)
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(build, "Level", Level)

    def f(u, n):
        for t in range(n):
            u = u * 0.5 + t
        return u

    compiled = tcompile.compile(f)
    for seed in range(4):
        u = np.random.default_rng(seed).random((500, 600))
        found = compiled(u, 100)
        np.testing.assert_array_equal(found, f(u, 100))
    assert len(made) == 1 and not any(array.nbytes > 1 << 20 for array in made[0].arrays)
