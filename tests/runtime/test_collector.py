"""The cycle collector does not start in the midst of a compile, and is as it was afterwards."""

import gc

import numpy as np
import pytest

import tcompile
from tcompile.collector import catch_up, no_collection


@pytest.fixture
def collections():
    seen = []
    threshold = gc.get_threshold()

    def note(phase, info):
        seen.append(phase)

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)
    gc.set_threshold(*threshold)
    gc.enable()


@pytest.mark.parametrize("enabled", [True, False])
def test_no_collection_during_a_compile(collections, enabled):
    met = []

    def backend(graph, examples):
        collections.clear()
        held = [[] for _ in range(5000)]
        met.extend([gc.isenabled(), len(collections), len(held)])
        return graph

    (gc.enable if enabled else gc.disable)()
    tcompile.compile(lambda x: x + 1, backend=backend)(np.ones(3))
    assert met == [False, 0, 5000]
    assert gc.isenabled() is enabled


def test_it_is_back_after_a_failure():
    def backend(graph, examples):
        raise ValueError("no")

    with pytest.raises(RuntimeError):
        tcompile.compile(lambda x: x + 1, backend=backend)(np.ones(3))
    assert gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_who_waits_has_what_is_new_collected(collections, enabled):
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(100, 10, 10)
    gc.collect()
    with no_collection():
        collections.clear()
        catch_up()
        assert not collections  # little is new
        held = [[] for _ in range(200)]
        with no_collection():
            catch_up()
        assert bool(collections) is enabled and len(held) == 200
    collections.clear()
    catch_up()
    assert not collections
    assert gc.isenabled() is enabled
