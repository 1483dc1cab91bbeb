"""Arrays from the pool: ordinary arrays whose memory comes back."""

import gc
import itertools
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import memory

F4 = np.dtype(np.float32)
BIG = (1024, 1024)


def address(array):
    return array.__array_interface__["data"][0]


def handler(array):
    return np._core.multiarray.get_handler_name(array)


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    native.trim()
    yield
    native.set_limit(memory._default_limit())


@pytest.mark.parametrize(
    "shape", [(), (0,), (3,), (0, 5), (2, 3, 4), (300_000,), (700, 900), (50, 70, 90), (1, 1 << 18, 1)]
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "?", "i1", "u8", "f2", "M8[s]", "S5", "i4,f8", ">f4"])
def test_arrays_are_ordinary(shape, dtype):
    dtype = np.dtype(dtype)
    array = native.empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype, array.strides) == (shape, dtype, np.empty(shape, dtype).strides)
    assert array.base is None
    assert array.flags.owndata and array.flags.writeable and array.flags.aligned
    if array.nbytes >= memory.THRESHOLD:
        assert handler(array) == "tcompile"
        assert address(array) % 64 == 0
    else:
        assert handler(array) == "default_allocator"
    array[...] = np.zeros((), dtype)
    assert (array == np.zeros((), dtype)).all()


@pytest.mark.parametrize("shape", [(3, 4, 5), (30, 40, 500), (1, 4, 1 << 17), (2, 1, 3)])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_orders(shape, order):
    array = native.empty(shape, F4, order)
    in_memory = array.transpose(order)
    assert in_memory.flags.c_contiguous
    assert in_memory.strides == np.empty(in_memory.shape, F4).strides
    assert array.base is None and array.flags.owndata
    assert array.shape == shape


def test_memory_comes_back():
    array = native.empty(BIG, F4)
    at = address(array)
    view = array[10:, ::2].T
    before = native.stats()
    del array
    assert native.stats() == before  # the view holds it
    del view
    after = native.stats()
    assert after["in_use"] < before["in_use"]
    assert after["cached"] - before["cached"] == before["in_use"] - after["in_use"] >= 1 << 22
    again = native.empty(BIG, F4)
    assert address(again) == at
    assert native.stats()["hits"] == before["hits"] + 1


def test_living_arrays_do_not_share_memory():
    arrays = [native.empty((n,), F4) for n in (100_000, 100_001, 100_000, 1 << 20, 1 << 20, 3_000_000)]
    for k, array in enumerate(arrays):
        array[:] = k
    del arrays[2]
    arrays.append(native.empty((100_000,), F4))
    arrays[-1][:] = 6
    assert [array[0] for array in arrays] == [0, 1, 3, 4, 5, 6]
    assert all((array == array[0]).all() for array in arrays)


def test_newest_block_is_reused_first():
    first, second = native.empty(BIG, F4), native.empty(BIG, F4)
    at = address(first)
    del second
    del first
    assert address(native.empty(BIG, F4)) == at


def test_resize_keeps_the_data():
    for sizes in (
        (100_000, 105_000),
        (100_000, 5_000_000),
        (5_000_000, 100_000),
        (5_000_000, 7),
        (100_000, 0),
    ):
        array = native.empty((sizes[0],), F4)
        array[:] = np.arange(sizes[0])
        array.resize(sizes[1])
        kept = min(sizes)
        assert np.array_equal(array[:kept], np.arange(kept, dtype=F4))
        assert not array[kept:].any()  # NumPy clears what is new
        array[...] = 3
        array.resize(sizes[0])
        assert (array[:kept] == 3).all()


def test_zeroed_memory_is_zero():
    array = native.empty(BIG, np.dtype("i4"))
    array[:] = -1
    at = address(array)
    del array
    grown = native.empty((1 << 17,), np.dtype("i4"))
    grown[:] = 1
    grown.resize(1 << 20)  # NumPy clears what is new
    assert handler(grown) == "tcompile" and address(grown) == at
    assert grown.sum() == 1 << 17


def test_arrays_die_on_another_thread():
    arrays = [native.empty(BIG, F4) for _ in range(4)]
    before = native.stats()["in_use"]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert native.stats()["in_use"] <= before - 4 * (1 << 22)


def test_many_threads_at_once():
    errors = []

    def work(seed):
        random = np.random.default_rng(seed)
        living = []
        try:
            for _ in range(300):
                array = native.empty((int(random.integers(70_000, 400_000)),), F4)
                array[:] = seed
                living.append(array)
                if len(living) > 5:
                    old = living.pop(int(random.integers(5)))
                    assert (old == seed).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_limit_and_trim():
    native.set_limit(10 << 20)
    arrays = [native.empty(BIG, F4) for _ in range(6)]
    arrays.append(native.empty((16 << 20,), np.dtype("u1")))  # larger than the limit: never kept
    newest = address(arrays[5])
    while arrays:
        arrays.pop(0)
    stats = native.stats()
    assert stats["limit"] == 10 << 20
    assert 8 << 20 <= stats["cached"] <= 10 << 20
    assert address(native.empty(BIG, F4)) == newest
    native.trim()
    assert native.stats()["cached"] == 0
    native.set_limit(0)
    del arrays
    array = native.empty(BIG, F4)
    del array
    assert native.stats()["cached"] == 0
    with pytest.raises(ValueError):
        native.set_limit(-1)


def test_block_freed_longest_ago_goes_first():
    native.set_limit(12 << 20)
    a, b, c = (native.empty((n << 20,), np.dtype("u1")) for n in (4, 5, 6))
    del b
    del a
    del c  # 6 + 4 stay, 5 goes
    misses = native.stats()["misses"]
    native.empty((4 << 20,), np.dtype("u1"))
    native.empty((6 << 20,), np.dtype("u1"))
    assert native.stats()["misses"] == misses
    native.empty((5 << 20,), np.dtype("u1"))
    assert native.stats()["misses"] == misses + 1


def test_errors_leave_the_handler_as_it_was():
    name = np._core.multiarray.get_handler_name()
    with pytest.raises(ValueError):
        native.empty((1 << 40, 1 << 40), F4)
    with pytest.raises(MemoryError):
        native.empty((1 << 58,), F4)
    with pytest.raises(MemoryError):
        native.empty((1 << 45,), np.dtype("f8"))
    with pytest.raises(ValueError, match="negative"):
        native.empty((-1000, -1000), F4)
    with pytest.raises(ValueError, match="dimension"):
        native.empty((1,) * 70 + (1 << 20,), F4)
    pool = memory._pool()
    with pytest.raises(TypeError, match="takes a dtype"):
        pool.new(F4)
    assert pool.new(F4, 1 << 70, (1 << 20,), None) is None
    assert pool.new(F4, 1 << 22, (1 << 20, "no"), None) is None
    assert np._core.multiarray.get_handler_name() == name


def test_copies_are_not_pooled():
    array = native.empty(BIG, F4)
    array[:] = 1
    for copy in (array.copy(), array + 1, np.empty_like(array)):
        assert handler(copy) == "default_allocator"


def test_scratch():
    block = native.scratch(1 << 20)
    assert (block.nbytes, block.dtype) == (1 << 20, np.uint8)
    assert native.scratch(0).nbytes == 0


def test_without_native_code_numpy_allocates(monkeypatch):
    monkeypatch.setattr(memory, "_pool", lambda: None)
    array = native.empty(BIG, F4, (1, 0))
    assert handler(array) == "default_allocator"
    assert array.flags.f_contiguous


def test_stats_before_the_first_large_array(run_program):
    printed = run_program("""
        print(sum(native.stats().values()))
        native.trim()
        native.set_limit(12345)
        array = native.empty((1 << 20,), np.dtype("f4"))
        print(native.stats()["limit"])
    """)
    assert printed.split() == ["0", "12345"]


def test_arrays_outlive_the_module(run_program):
    run_program("""
        import builtins, gc
        builtins.kept = [native.empty((1 << 20,), np.dtype("f4")) for _ in range(3)]
        cycle = [native.empty((1 << 20,), np.dtype("f4"))]
        cycle.append(cycle)
    """)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3 << 20)), min_size=1, max_size=60))
def test_any_sequence_of_allocations(steps):
    living = {}
    for k, (slot, nbytes) in enumerate(steps):
        if slot in living:
            array, value = living.pop(slot)
            assert (array == value).all()
            del array
        if k % 3:
            array = native.empty((nbytes,), np.dtype("u1"))
            array[:] = k
            living[slot] = (array, k)
    living.clear()
    array = None
    stats = native.stats()
    assert stats["cached"] <= stats["limit"]


def test_copies_lie_as_numpys_do_and_large_ones_come_from_the_pool():
    base = np.arange(400 * 300, dtype=np.float64).reshape(400, 300)
    for array in (base, base.T, base[::2, ::-1], np.broadcast_to(base[0], (400, 300)), base[:2], np.float64(3.0),
                  base.astype(object), base.view(np.recarray)):  # fmt: skip
        made, want = native.copy(array), np.copy(array, order="K")
        assert type(made) is np.ndarray
        assert made.strides == want.strides
        assert made.dtype == want.dtype
        assert np.array_equal(made, want)
        assert made.flags.owndata
    assert native.copy(base).__array_interface__["data"][0] % 64 == 0


def test_large_arrays_begin_apart_from_one_another_and_from_numpys():
    kept = [native.empty((1 << 17,), np.dtype("f8")) for _ in range(24)]
    places = [array.__array_interface__["data"][0] % 4096 for array in kept]
    assert all(512 <= place <= 3584 for place in places)
    assert len(set(places)) > 6


def test_tracemalloc_sees_large_arrays():
    domain = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    tracemalloc.start()
    try:
        made = native.empty(BIG, F4)
        traced = tracemalloc.take_snapshot().filter_traces([domain])
        assert [trace.size for trace in traced.traces if trace.size >= 1 << 20] == [made.nbytes]
        del made
        traced = tracemalloc.take_snapshot().filter_traces([domain])
        assert not [trace.size for trace in traced.traces if trace.size >= 1 << 20]
    finally:
        tracemalloc.stop()
