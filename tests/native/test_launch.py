"""The builtin ``launch``: arguments of all kinds, errors, statuses, chunks."""

import struct

import numpy as np
import pytest

from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import abi
from tcompile.backends.llvm.native import launch as module
from tcompile.errors import BackendError


def address(array):
    return array.__array_interface__["data"][0]


def bits(number):
    return struct.unpack("<q", struct.pack("<d", number))[0]


def echo(launch, kernels, n, spec, *args):
    """The words that a kernel gets for these arguments."""
    out = np.full(n, 99, np.int64)
    assert launch(kernels.echo, b"a" + spec, n, n + 1, out, *args) == 0
    return out.tolist()


def test_all_kinds_of_arguments(launch, kernels):
    x = np.zeros((3, 4, 5), np.int16)
    y = x[::-1, :, 1::2].T
    assert echo(launch, kernels, 1, b"a", x) == [address(x)]
    assert echo(launch, kernels, 4, b"s", y) == [address(y), *y.strides]
    assert echo(launch, kernels, 3, b"iii", 0, -1, 2**63 - 1) == [0, -1, 2**63 - 1]
    assert echo(launch, kernels, 3, b"iii", -(2**63), True, 2**31) == [-(2**63), 1, 2**31]
    numbers = (0.0, -0.0, 1.5, float("inf"), -float("nan"), 5e-324)
    assert echo(launch, kernels, 6, b"ffffff", *numbers) == [bits(number) for number in numbers]
    expected = [7, address(y), *y.strides, bits(2.5), address(x)]
    assert echo(launch, kernels, 7, b"isfa", 7, y, 2.5, x) == expected


def test_arrays_of_no_axes_many_axes_and_no_items(launch, kernels):
    scalar, deep = np.array(5.0), np.zeros((1,) * 64, np.int8)[...]
    assert echo(launch, kernels, 2, b"si", scalar, 3) == [address(scalar), 3]
    assert echo(launch, kernels, 66, b"si", deep, 4) == [address(deep), *deep.strides, 4]
    none = np.zeros((0, 3), np.float32)
    assert echo(launch, kernels, 3, b"s", none) == [address(none), *none.strides]


def test_many_arguments(launch, kernels):
    n = 3000
    assert echo(launch, kernels, n, b"i" * n, *range(n)) == list(range(n))
    with pytest.raises(ValueError, match="too many"):
        launch(kernels.echo, b"i" * 40000, 1, 1, *range(40000))


def test_subclasses_of_numbers_are_numbers(launch, kernels):
    class Count(int):
        def __index__(self):
            raise AssertionError("must not run")

    assert echo(launch, kernels, 2, b"if", Count(5), np.float64(2.0)) == [5, bits(2.0)]


class Derived(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("spec", "args", "text"),
    [
        (b"a", (1,), "argument 0 must be a numpy.ndarray, not int"),
        (b"ia", (1, [1]), "argument 1 must be a numpy.ndarray, not list"),
        (b"s", (None,), "argument 0 must be a numpy.ndarray, not NoneType"),
        (b"a", (np.zeros(2).view(Derived),), "argument 0 must be a numpy.ndarray, not Derived"),
        (b"s", (np.float64(1),), "argument 0 must be a numpy.ndarray, not numpy.float64"),
        (b"i", (1.0,), "argument 0 must be an int, not float"),
        (b"i", ("1",), "argument 0 must be an int, not str"),
        (b"i", (np.int64(1),), "argument 0 must be an int, not numpy.int64"),
        (b"f", (1,), "argument 0 must be a float, not int"),
        (b"f", (1j,), "argument 0 must be a float, not complex"),
        (b"x", (1,), "unknown character 120"),
        (b"\x00", (1,), "unknown character 0"),
        (b"\xff", (1,), "unknown character 255"),
        (b"ii", (1,), "for 2 arguments, and 1 came"),
        (b"", (1,), "for 0 arguments, and 1 came"),
        ("i", (1,), "must be bytes, not str"),
    ],
)
def test_arguments_that_do_not_fit(launch, kernels, spec, args, text):
    with pytest.raises(TypeError, match=text):
        launch(kernels.count, spec, 1, 1, *args)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((), TypeError),
        ((1, b"", 1), TypeError),
        (("a", b"", 1, 1), TypeError),
        ((0, b"", 1, 1), ValueError),
        ((-1, b"", 1, 1), ValueError),
        ((1, b"", -1, 1), ValueError),
        ((1, b"", -2, 1), ValueError),
        ((1, b"", 1, 0), ValueError),
        ((1, b"", 1, -1), ValueError),
        ((1, b"", 2**64, 1), OverflowError),
        ((2**64, b"", 1, 1), OverflowError),
        ((1, b"", 1, 1.5), TypeError),
        ((1, b"i", 1, 1, 2**63), OverflowError),
        ((1, b"i", 1, 1, -(2**63) - 1), OverflowError),
    ],
)
def test_bad_numbers(launch, args, error):
    with pytest.raises(error):
        launch(*args)


def test_keywords_are_refused(launch):
    with pytest.raises(TypeError):
        launch(kernel=1)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("items", "grain"),
    [(1, 1), (2, 1), (64, 64), (65, 64), (1000, 7), (1001, 1000), (1 << 20, 1 << 12), (4099, 1)],
)
def test_chunks_are_multiples_of_the_grain(launch, kernels, threads, items, grain, n_threads):
    threads(n_threads)
    n = -(-items // grain)
    rows = np.full((n, 2), -1, np.int64)
    status = launch(kernels.chunks, b"ai", items, grain, rows, grain)
    begins = np.arange(n) * grain
    assert np.array_equal(rows, np.stack([begins, np.minimum(begins + grain, items)], 1))
    assert status == (1 << min(n, 5)) - 1


@pytest.mark.parametrize("grain", [8, 0])
def test_no_items_is_one_call(launch, kernels, grain):
    rows = np.full((1, 2), -1, np.int64)
    assert launch(kernels.chunks, b"ai", 0, grain, rows, 8) == 1
    assert rows.tolist() == [[0, 0]]
    with pytest.raises(ValueError, match="a grain >= 1 where there are items"):
        launch(kernels.chunks, b"ai", 1, 0, rows, 8)


def test_more_grains_than_the_ticket_can_count(launch, kernels, threads):
    items = (1 << 24) + 3
    counts = np.zeros(items, np.int32)
    launch(kernels.count, b"a", items, 1, counts)
    assert (counts == 1).all()


@pytest.mark.parametrize("n_threads", [1, 4])
@pytest.mark.parametrize(
    ("x", "y", "status"),
    [
        (1.0, 2.0, 0),
        (1.0, 0.0, native.DIVIDE),
        (1e300, 1e-300, native.OVERFLOW),
        (1e-300, 1e300, native.UNDERFLOW),
        (0.0, 0.0, native.INVALID),
        (1.0, 3.0, 0),
    ],
)
def test_exception_flags(launch, kernels, threads, x, y, status, n_threads):
    threads(n_threads)
    n = 1000
    xs, ys, out = np.ones(n), np.ones(n), np.empty(n)
    xs[777], ys[777] = x, y
    for items, grain in ((n, n), (n, 10)):
        assert launch(kernels.divide, b"aaa", items, grain, xs, ys, out) == status
        assert launch(kernels.divide, b"aaa", 700, grain, xs, ys, out) == 0
    with np.errstate(all="ignore"):
        assert np.array_equal(out, xs / ys, equal_nan=True)
    with np.errstate(all="raise"):  # no flag is left behind for NumPy to find
        np.ones(3) / np.ones(3)


def test_flags_of_several_chunks_are_merged(launch, kernels, threads):
    xs, ys, out = np.ones(64), np.ones(64), np.empty(64)
    ys[3] = 0.0
    xs[40], ys[40] = 1e300, 1e-300
    assert launch(kernels.divide, b"aaa", 64, 8, xs, ys, out) == native.DIVIDE | native.OVERFLOW


def test_arguments_are_not_leaked(launch, kernels):
    import sys

    x, big, number = np.zeros(4, np.int32), 2**40 + 1, 1234.5
    before = [sys.getrefcount(value) for value in (x, big, number)]
    for _ in range(100):
        launch(kernels.count, b"aif", 4, 2, x, big, number)
        with pytest.raises(TypeError):
            launch(kernels.count, b"aifa", 4, 2, x, big, number, None)
    assert [sys.getrefcount(value) for value in (x, big, number)] == before


def test_signature(launch):
    import inspect

    assert str(inspect.signature(launch)) == "(kernel, spec, items, grain, /, *arguments)"


def test_a_layout_that_differs_makes_it_unavailable(monkeypatch):
    monkeypatch.setitem(abi.OFFSETS, "ARRAY_NDIM", 28)
    assert "number of axes" in abi._layout_error()
    monkeypatch.setitem(abi.OFFSETS, "ARRAY_STRIDES", 32)
    assert abi._layout_error()


def test_unavailable_is_an_error_with_its_reason(monkeypatch):
    monkeypatch.setattr(module, "_build", lambda: "no such machine")
    assert module.unavailable() == "no such machine"
    assert not module.available()
    with pytest.raises(BackendError, match="no such machine"):
        module.launcher()
