"""diagnose: the stage at fault, found by climbing from plain Python to machine code."""

import functools
import itertools
import math
import threading

import numpy as np
import pytest

import tcompile
from tcompile.annotations import treatments
from tcompile.debug.copying import copied
from tcompile.debug.differences import difference
from tcompile.debug.script import graph_in
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.graph import ops
from tests.debug import faults


def model(x, y):
    z = np.sin(x) * 2
    y[0] = 5
    return {"sum": np.expm1(z).sum() + y}


X, Y = np.linspace(0, 1, 10), np.ones(3)


def stages(found):
    return [stage.name for stage in found.stages]


def test_nothing_is_at_fault():
    found = tcompile.diagnose(model)(X, Y)
    assert found.at_fault is None and found.smallest is None
    assert stages(found) == ["plain", "capture", "transforms", "backend"]
    assert Y.tolist() == [1, 1, 1]  # the arguments are not touched
    assert "does what plain Python does" in str(found) and repr(found).startswith("<Diagnosis: model")
    assert found._repr_mimebundle_()["text/plain"] == str(found)
    with pytest.raises(InvalidArgument, match="no graph to write"):
        found.write_script("never.py")


@pytest.mark.parametrize("backend, last", [("eager", ["capture"]), ("aot_eager", ["capture", "transforms"])])
def test_the_ladder_ends_where_the_backend_does(backend, last):
    found = tcompile.diagnose(tcompile.compile(model, backend=backend))(X, Y)
    assert stages(found) == ["plain", *last] and found.at_fault is None


def test_a_wrong_backend(tmp_path):
    compiled = tcompile.compile(model, backend=faults.wrong_expm1)
    found = tcompile.diagnose(compiled)(X, y=Y)
    assert found.at_fault == "backend" and stages(found) == ["plain", "capture", "backend"]
    assert [node.op.name for node in found.smallest.graph.nodes] == ["expm1"]
    assert not compiled.entries  # its own cache is left alone
    path = found.write_script(tmp_path / "fault.py")
    assert graph_in(path.read_text()).op_count == 1


def test_a_wrong_lowering_of_llvm(monkeypatch):
    from tcompile.backends.llvm.kernels import pointwise

    monkeypatch.setitem(pointwise.LOWERINGS, ops.SUBTRACT, pointwise.LOWERINGS[ops.ADD])
    found = tcompile.diagnose(lambda a, b: np.sqrt(a) * (np.sin(a) - b) + 1)(X, X[::-1])
    assert found.at_fault == "backend" and "llvm" in found.headline
    assert [node.op.name for node in found.smallest.graph.nodes] == ["subtract"]


def test_a_wrong_transform(monkeypatch):
    from tcompile import transforms

    def spoil(graph):
        def replace(result, node, operands):
            if node.op.name != "multiply":
                return None
            return result.append(ops.ADD, operands, node.attrs, node.type, name=node.name, location=node.location)

        return graph.rebuild(replace)

    monkeypatch.setattr(transforms, "PIPELINE", (*transforms.PIPELINE[:1], ("spoil", spoil), *transforms.PIPELINE[1:]))
    found = tcompile.diagnose(model)(X, Y)
    assert found.at_fault == "transforms" and found.transform == "spoil" and "(pass spoil)" in found.headline
    assert found.smallest.graph.op_count == 1


def test_wrong_capture():
    try:

        @tcompile.substitute_in_graph(math.dist)
        def dist(p, q, /):
            return np.abs(p - q).sum()  # which it is not

        found = tcompile.diagnose(lambda x, y: x * math.dist(x, y))(X, X + 1)
    finally:
        treatments._table.pop(id(math.dist), None)
    assert found.at_fault == "capture" and found.smallest is None
    assert stages(found) == ["plain", "capture"]


def test_what_is_not_repeatable_cannot_be_compared():
    numbers = itertools.count()
    found = tcompile.diagnose(lambda x: x + next(numbers))(X)
    assert found.at_fault == "plain" and "same twice" in found.headline


def test_random_numbers_are_the_same_for_each_run():
    found = tcompile.diagnose(lambda x: x + np.random.rand())(X)
    assert found.at_fault is None


def test_errors_are_compared():
    def f(x):
        if x.sum() > 0:
            raise ValueError("too large")
        return x

    assert tcompile.diagnose(f)(X).at_fault is None

    def backend(graph, inputs):
        return lambda *args: [np.float32(0)] * len(graph.outputs)

    found = tcompile.diagnose(tcompile.compile(lambda x: np.linalg.inv(x * 2), backend=backend))(np.zeros((2, 2)))
    assert "raises" in found.stages[-1].trouble or found.at_fault == "backend"


def test_methods_and_partials():
    class Scale:
        by = 3.0

        def times(self, x):
            self.by = self.by + 1
            return x * self.by

    scale = Scale()
    assert tcompile.diagnose(scale.times)(X).at_fault is None and scale.by == 3.0
    assert tcompile.diagnose(functools.partial(model, X))(Y).at_fault is None
    with pytest.raises(InvalidType, match="diagnose takes a function"):
        tcompile.diagnose(3)
    with pytest.raises(InvalidType, match="Python code"):
        tcompile.diagnose(abs)(X)


def test_generators_run_to_their_end_and_coroutines_are_refused():
    def generate(x):
        for factor in (1.0, 2.0):
            yield np.expm1(x) * factor

    assert tcompile.diagnose(generate)(X).at_fault is None
    assert tcompile.diagnose(tcompile.compile(generate, backend=faults.wrong_expm1))(X).at_fault == "backend"

    async def later(x):
        return x

    with pytest.raises(InvalidType, match="coroutine"):
        tcompile.diagnose(later)(X)


def test_a_crash_in_another_process():
    compiled = tcompile.compile(model, backend=faults.crashes_on_expm1)
    found = tcompile.diagnose(compiled, isolate=True)(X, Y)
    assert found.at_fault == "backend" and "crash: died of" in found.stages[-1].trouble
    assert [node.op.name for node in found.smallest.graph.nodes] == ["expm1"]


# -- copies and differences


def test_copies_lie_in_memory_as_what_they_are_of():
    base = np.arange(24.0).reshape(4, 6)
    views = [base[::2, 1:], base.T, base[::-1], base, np.asfortranarray(base), base[1:1], np.array(3.0)]
    base[1:2].flags.writeable = False
    locked = base[2]
    locked.flags.writeable = False
    made = copied({"views": views, "locked": locked, "lock": threading.Lock(), "self": None})
    for one, other in zip((*views, locked), (*made["views"], made["locked"]), strict=True):
        assert one.strides == other.strides or not one.size
        assert np.array_equal(one, other) and not np.shares_memory(one, other)
        assert one.flags.writeable == other.flags.writeable
    assert np.shares_memory(made["views"][0], made["views"][3])
    made["views"][3][:] = 0
    assert not made["views"][0].any() and base.any()


def test_attributes_of_objects_are_compared():
    class Holder:
        def __init__(self, value):
            self.value, self.me = value, self

    compare = functools.partial(difference, attributes=True)
    same = compare(Holder(np.ones(2)), Holder(np.ones(2)))
    assert same.equal and same.largest == 0
    assert "result.value" in compare(Holder(np.ones(2)), Holder(np.ones(3))).mismatch
    off = compare([1.0, Holder(2.0)], [1.0, Holder(2.5)])
    assert difference(Holder(1), Holder(2)).equal
    assert off.equal and off.scaled > 0.1 and off.where == "the result[1].value"
