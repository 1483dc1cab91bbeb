"""What a person sets of memory and threads."""

import gc

import numpy as np
import pytest

import tcompile
from tcompile.errors import InvalidArgument, InvalidType


@pytest.fixture(autouse=True)
def _as_before():
    limit, threads = tcompile.memory.limit, tcompile.get_num_threads()
    yield
    tcompile.memory.limit = limit
    tcompile.set_num_threads(threads)


def test_memory():
    f = tcompile.compile(lambda x: x * 2 + 1)
    x = np.ones(1 << 20)
    f(x)
    gc.collect()
    tcompile.memory.trim()
    before = tcompile.memory.info()
    kept = [f(x), f(x)]
    during = tcompile.memory.info()
    assert during.in_use - before.in_use >= 2 * x.nbytes and during.cached == 0
    kept.clear()
    gc.collect()
    after = tcompile.memory.info()
    assert after.in_use == before.in_use and after.cached >= 2 * x.nbytes
    f(x)
    assert tcompile.memory.info().hits == after.hits + 1
    assert tcompile.memory.trim(keep=1 << 40) == 0
    assert tcompile.memory.trim() >= 2 * x.nbytes and tcompile.memory.info().cached == 0
    tcompile.memory.limit = 0
    f(x)
    assert tcompile.memory.limit == 0 and tcompile.memory.info().cached == 0
    assert "in use" in repr(tcompile.memory) and "<code>" in tcompile.memory._repr_html_()


def test_threads():
    f = tcompile.compile(lambda x: x * 2 + 1)
    x = np.arange(1 << 20, dtype="f4")
    for n in (1, 3, 2):
        tcompile.set_num_threads(n)
        assert tcompile.get_num_threads() == n
        assert np.array_equal(f(x), x * 2 + 1)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda: tcompile.set_num_threads(0), InvalidArgument),
        (lambda: tcompile.set_num_threads(1025), InvalidArgument),
        (lambda: tcompile.set_num_threads(2.0), InvalidType),
        (lambda: tcompile.set_num_threads(True), InvalidType),
        (lambda: tcompile.memory.trim(-1), InvalidArgument),
        (lambda: tcompile.memory.trim(1 << 63), InvalidArgument),
        (lambda: tcompile.memory.trim("1"), InvalidType),
        (lambda: setattr(tcompile.memory, "limit", -1), InvalidArgument),
        (lambda: setattr(tcompile.memory, "limit", 1.5), InvalidType),
    ],
)
def test_refused(change, error):
    with pytest.raises(error, match="must be"):
        change()
