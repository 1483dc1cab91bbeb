"""Programs made by hypothesis: chains of calls, traced by the frontend, before and after the transforms,
against NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tcompile import transforms
from tcompile.graph.verify import verify

from .harness import check

UNARY = [
    "np.sin({0})", "-{0}", "abs({0})", "np.sqrt(np.abs({0}))", "{0} ** 2", "{0} * 2", "{0} + 0.5", "1 - {0}",
    "{0} > 1", "np.clip({0}, -2, 3)", "{0}.astype('f4')", "{0}.astype('i8')", "{0}.T",
    "{0}[::-1]", "{0}[..., ::2]", "{0}[None]", "{0}[1:]", "{0}.reshape(-1)", "{0}.sum(axis=0)",
    "{0}.max(axis=-1, keepdims=True)", "{0}.mean(axis=0)", "np.var({0}, axis=-1)", "{0}.sum()",
    "np.swapaxes({0}, 0, -1)",
    "np.where({0} > 0, {0}, 0)", "np.cumsum({0}, axis=0)", "np.sort({0}, axis=-1)", "np.expand_dims({0}, -1)",
    "np.squeeze({0})", "{0}.copy()", "np.argmax({0}, axis=0)", "np.concatenate([{0}, {0}])",
    "np.stack([{0}, {0}], -1)",
    "np.atleast_2d({0})", "np.zeros_like({0})", "np.round({0})", "{0}[0]", "{0} / 3", "{0} // 2", "{0} % 3",
    "np.broadcast_to({0}, (2, *{0}.shape))", "np.diff({0}, axis=0)", "np.nansum({0}, axis=0)",
    "np.isnan({0})", "{0}.any(axis=0)",
    "np.float32(2) * {0}", "{0}.ravel()", "{0}.flatten()", "np.flip({0})", "np.ascontiguousarray({0})",
    "np.clip({0}, 0, None)", "np.moveaxis({0}, 0, -1)", "{0}.astype(bool)", "np.repeat({0}, 2)",
    "np.take({0}, [0, 0], axis=0)",
    "np.nanmax({0}, axis=0)", "np.nanmean({0})", "np.median({0}, axis=0)", "np.nan_to_num({0})",
    "{0}.real", "np.tril({0})",
    "np.rot90({0})", "np.diagonal({0})", "np.trace({0})", "np.append({0}, {0})", "np.pad({0}, 1)", "np.trapezoid({0})",
    "np.linalg.norm({0}, axis=0)", "np.select([{0} > 1], [{0}], 2)", "{0}.ravel('F')", "np.gradient({0}, axis=0)",
    "np.sum({0}, axis=0, where={0} > 0)", "np.max({0}, 0, initial=1)", "np.modf({0})[0]", "np.fft.fft({0}).real",
    "np.fft.fft({0}, axis=0)", "np.where({0} > 0, {0}, 1j)", "np.add.accumulate({0})", "np.partition({0}, 0)",
    "np.asfortranarray({0})", "np.unstack({0})[0]", "np.linspace({0}, 1, 3)", "np.average({0}, axis=0)",
]  # fmt: skip
BINARY = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "np.maximum({0}, {1})",
    "np.where({0} > {1}, {0}, {1})", "{0} < {1}", "np.hypot({0}, {1})", "{0} @ {1}", "np.add({0}, {1}.T)",
    "np.outer({0}, {1})",
    "np.kron({0}, {1})", "np.inner({0}, {1})", "np.append({0}, {1})", "np.isclose({0}, {1})",
    "np.clip({0}, {1}, 2)", "np.hstack([{0}, {1}])", "np.vstack([{0}, {1}])",
]  # fmt: skip

values = st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, 7.0, 1e-3, 1e6])


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(["f4", "f8", "i4", "i8", "?", "u1"]))
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3)))
    size = int(np.prod(shape))
    data = np.array(draw(st.lists(values, min_size=size, max_size=size)))
    with np.errstate(all="ignore"):
        array = np.abs(data).astype(dtype) if dtype == "u1" else data.astype(dtype)
    array = array.reshape(shape)
    layout = draw(st.sampled_from(["c", "f", "cut", "reversed", "permuted"]))
    if layout == "f":
        return np.asfortranarray(array)
    if layout == "cut":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if layout == "reversed":
        return array[::-1]
    if layout == "permuted":
        return np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0)
    return array


@st.composite
def programs(draw):
    names = ["x", "y"]
    lines = []
    for i in range(draw(st.integers(1, 6))):
        form = draw(st.sampled_from(UNARY + BINARY))
        text = form.format(draw(st.sampled_from(names)), draw(st.sampled_from(names)))
        lines.append(f"v{i} = {text}")
        names.append(f"v{i}")
    count = draw(st.integers(1, 3))
    return lines, names[-count:]


@settings(max_examples=400, deadline=None)
@given(programs(), arrays(), arrays())
def test_programs(program, x, y):
    lines, results = program

    def function(np, x, y):
        scope = {"np": np, "x": x, "y": y}
        for line in lines:
            exec(line, scope)
        return tuple(scope[name] for name in results)

    # A mean or sum of a cast array iterations in another order than NumPy's buffered cast.
    graph = check(function, x, y, exact=False)
    if graph is None:
        return
    verify(graph)
    after = transforms.run(graph, verify)
    with np.errstate(all="ignore"):
        try:
            before = graph(x, y)
        except Exception:
            return
        for a, b in zip(before, after(x, y)):
            np.testing.assert_array_equal(a, b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
            for argument in (x, y):
                assert np.shares_memory(a, argument) == np.shares_memory(b, argument)


def test_python_raises():
    assert check("np.unstack(x)[0]", np.empty((0, 2))) is None
