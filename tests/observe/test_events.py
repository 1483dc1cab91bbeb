"""The event protocol: what every event says, its schema, and what the history keeps alive."""

import gc
import json
import weakref

import jsonschema
import numpy as np
import pytest

import tcompile
from tcompile.observe import bus, context
from tcompile.observe.events import (
    EVENTS,
    CacheHit,
    CacheMiss,
    CallTimed,
    CompileFinished,
    CudaGraphSkipped,
    FellBack,
    GraphCaptured,
    KernelCompiled,
    Lazy,
    PassFinished,
    StanceChanged,
)
from tcompile.observe.history import history
from tcompile.observe.recorder import Recorder
from tcompile.observe.schema import PATH, schema
from tcompile.runtime import native

SOURCE = """
def f(x):
    y = np.sin(x) + 1
    print(end="")
    return y * 2
"""


def looped(x):
    for i in range(50):
        x = np.sin(x) + i
    return x


@pytest.fixture(scope="module")
def stream():
    """Every kind of event that a run can emit, from a function that a cell defined."""
    names = {"np": np}
    exec(compile(SOURCE, "<cell 7>", "exec"), names)
    forget = context.name_cells({"<cell 7>": "id-of-7"}.get)
    token = bus.current_cell.set("id-of-9")
    try:
        with Recorder() as seen:
            f = tcompile.compile(names["f"], backend="llvm")
            for size in (3, 4, 5):
                f(np.ones(size))
            tcompile.compile(looped)(np.ones(3))
            with np.errstate(all="ignore"):
                tcompile.compile(lambda a: a / 0)(np.zeros(2, int))
            with tcompile.set_stance("force_eager"):
                pass
    finally:
        bus.current_cell.reset(token)
        forget()
    return seen.events


def test_every_event_is_an_instance_of_the_schema(stream):
    validator = jsonschema.Draft202012Validator(schema())
    unseen = set(EVENTS) - {type(event) for event in stream}
    assert unseen <= {CacheHit, CacheMiss, CudaGraphSkipped, FellBack}
    for event in (*stream, *(kind() for kind in EVENTS)):
        validator.validate(json.loads(json.dumps(event.as_dict(), allow_nan=False)))


def test_the_schema_file_is_the_classes_own(load_tool):
    assert PATH.read_text(encoding="utf-8") == load_tool("write_event_schema").text(), (
        "run: python tools/write_event_schema.py"
    )
    with pytest.raises(TypeError, match="JSON"):
        from tcompile.observe.schema import _type

        _type(object, {})


def test_every_event_of_a_compile_names_it_and_its_cells(stream):
    told = [event for event in stream if event.function == "f"]
    assert {type(event) for event in told} >= {GraphCaptured, PassFinished, KernelCompiled, CompileFinished}
    for event in told:
        assert (event.cell, event.defined_in) == ("id-of-9", "id-of-7"), event
        assert event.compile_id or isinstance(event, CallTimed | FellBack) or event.kind == "guard_failed", event
    others = [event for event in stream if event.function != "f"]
    assert all(event.defined_in is None for event in others)
    assert not any(event.compile_id for event in stream if isinstance(event, StanceChanged))


def test_numbers_grow(stream):
    numbers = [event.id for event in stream]
    assert numbers == sorted(set(numbers))


def test_large_things_are_made_on_demand(stream):
    kernel = next(event for event in stream if isinstance(event, KernelCompiled))
    assert "define" in kernel.get_ir() and kernel.get_assembly()
    final = next(event for event in stream if isinstance(event, PassFinished))
    assert "sin" in final.get_graph().code
    finished = [event for event in stream if isinstance(event, CompileFinished) and event.kernels]
    assert "def " in finished[0].get_entry_code() and "def " in finished[0].get_graph_code()


def test_the_history_keeps_no_graph_alive():
    tcompile.reset()
    f = tcompile.compile(eval("lambda x: np.cos(x) * 3"))  # whose code nothing else holds
    f(np.ones(3))
    (captured,) = history.of(GraphCaptured)
    held = weakref.ref(f.graphs[0])
    assert captured.get_graph() is held() and "cos" in captured.readable
    program = next(event for event in history.of(CompileFinished)).get_graph_code
    assert "def " in program()
    del f
    gc.collect()
    assert held() is None
    assert captured.get_graph() is None and captured.readable == captured.code == "" and program() is None
    json.dumps(captured.as_dict())


def test_what_cannot_be_held_weakly_is_not_kept():
    event = GraphCaptured(get_graph=Lazy((1, 2)))
    assert event.get_graph() == (1, 2) and event.light().get_graph is None
    assert GraphCaptured(get_graph=lambda: 3).light().get_graph is None
    assert event.light().id == event.id


def test_short_calls_are_sampled_and_long_ones_are_not():
    with Recorder() as seen:
        told = 0
        for _ in range(1000):
            calls = bus.times_call()
            if calls:
                told += calls
                bus.emit_call("f", None, 0.001, calls)
        assert len(seen.of(CallTimed)) < 100 and abs(told - 1000) < 64
        for _ in range(1000):
            calls = bus.times_call()
            if calls:
                bus.emit_call("f", None, 5.0, calls)
        assert len(seen.of(CallTimed)) > 900
    assert bus.times_call() == 0


def test_a_listener_that_wants_no_calls_costs_them_nothing():
    seen = []
    f = tcompile.compile(lambda x: x + 1)
    with bus.listening(seen.append, calls=False):
        assert bus.active() and not bus.times_call() and not bus.listened[0]
        for _ in range(9):
            f(np.ones(3))
        if native.unavailable() is None:
            assert f.entries[0].plan is not None and f.entries[0].plan.hits  # answered in machine code meanwhile
        unsubscribe = bus.subscribe(print)
        assert bus.listened[0] == 1
        unsubscribe()
        unsubscribe()
        assert not bus.listened[0]
    assert {CompileFinished, PassFinished} <= {type(event) for event in seen}
    assert CallTimed not in {type(event) for event in seen}
