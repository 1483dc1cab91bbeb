import re

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import compile_graph
from tcompile.backends.replay import Replay
from tcompile.graph import Graph, ScalarType, TensorType, ops
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import check, same, sample

F32 = np.dtype("float32")


def softmax(axis):
    def build(op, x):
        shifted = op("subtract", x, op("max", x, axis=(axis,), keepdims=True))
        e = op("exp", shifted)
        return op("divide", e, op("sum", e, axis=(axis,), keepdims=True))

    return build


def layer_norm(axis, n):
    def build(op, x, w, b):
        mean = op("divide", op("sum", x, axis=(axis,), keepdims=True), float(n))
        d = op("subtract", x, mean)
        var = op("divide", op("sum", op("multiply", d, d), axis=(axis,), keepdims=True), float(n))
        y = op("divide", d, op("sqrt", op("add", var, 1e-5)))
        return op("add", op("multiply", y, w), b)

    return build


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(7, 64), (5, 100), (3, 1), (1, 3), (300, 17), (33, 600)])
def test_softmax_and_layer_norm(dtype, axis, shape):
    a = sample(dtype, shape)
    check(softmax(axis), a, ulp=8, rtol=1e-6, kernels=1 if shape[axis] > 1 else None)
    w, b = sample(dtype, shape[1], 3), sample(dtype, shape[1], 4)
    if shape[axis] > 1:
        check(layer_norm(axis, shape[axis]), a, w, b, ulp=16, rtol=2e-4, kernels=1)


def test_softmax_with_leading_axes():
    a = sample("float32", (3, 4, 50))
    check(softmax(2), a, ulp=8, rtol=1e-6, kernels=1)
    check(softmax(1), a, ulp=8, rtol=1e-6, kernels=1)


@pytest.mark.parametrize("n", [1, 5, 1000, 16384, 16385, 100_000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_full_reductions(n, dtype):
    a = sample(dtype, n)
    names = ["sum", "max", "min"]
    check(lambda op, x: [op(m, x, axis=(0,), keepdims=False) for m in names], a, rtol=1e-5)
    check(lambda op, x: op("any", op("greater", x, 2), axis=(0,), keepdims=False), a)
    check(lambda op, x: op("all", op("less", x, 2), axis=(0,), keepdims=True), a)
    if dtype != "int32":
        near_one = lambda op, x: op("add", op("multiply", x, 1e-4), 1.0)
        check(lambda op, x: op("prod", near_one(op, x), axis=(0,), keepdims=False), a, rtol=1e-2)
        check(lambda op, x: op("divide", op("sum", x, axis=(0,), keepdims=False), float(n)), a, rtol=1e-4, kernels=1)


def test_a_large_full_reduction_with_what_follows():
    a = sample("float32", (300, 400))

    def build(op, x):
        mean = op("divide", op("sum", x, axis=(0, 1), keepdims=True), 120000.0)
        return op("subtract", x, mean), mean

    check(build, a, rtol=1e-3)
    strided = np.repeat(a, 2, 1)[:, ::2]
    check(build, strided, rtol=1e-3)
    check(lambda op, x: [op("add", x, 1.0), op("sum", op("add", x, 1.0), axis=(0, 1), keepdims=False)], a, rtol=1e-5)


def test_results_do_not_depend_on_threads_or_position():
    from tcompile.backends.llvm import native

    a = np.random.default_rng(1).normal(size=1_000_003).astype("float32")
    graph = Graph("sum")
    x = graph.input("x", TensorType(F32, a.shape))
    graph.outputs = [apply(graph, "sum", apply(graph, "exp", x), axis=(0,), keepdims=False), apply(graph, "exp", x)]
    compiled = compile_graph(graph)
    before = native.num_threads()
    results = []
    try:
        for n in (1, 2, 3):
            native.set_num_threads(n)
            results.append(compiled(a))
    finally:
        native.set_num_threads(before)
    for total, values in results[1:]:
        assert total == results[0][0]
        np.testing.assert_array_equal(values, results[0][1])


def test_sums_are_at_least_as_exact_as_pairwise():
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for shape, axis in (((200_000,), (0,)), ((50, 3000), (1,)), ((3000, 50), (0,))):
            a = (rng.random(shape) + 0.1).astype(dtype)
            graph = Graph("sum")
            x = graph.input("x", TensorType(a.dtype, a.shape))
            graph.outputs = [apply(graph, "sum", x, axis=axis, keepdims=False)]
            exact = a.astype(np.longdouble).sum(axis=axis)
            ours = np.abs(compile_graph(graph)(a)[0] - exact).max()
            numpy = np.abs(a.sum(axis=axis) - exact).max()
            assert ours <= max(numpy, 2 * np.spacing(np.abs(exact).max().astype(dtype)))


def test_empty_reductions():
    a = np.zeros((0, 5), "float32")
    check(lambda op, x: [op("sum", x, axis=(0,), keepdims=False), op("prod", x, axis=(1,), keepdims=True)], a)
    b = np.zeros((5, 0), "float64")
    check(lambda op, x: [op("sum", x, axis=(1,), keepdims=False), op("sum", x, axis=(0, 1), keepdims=False)], b)
    graph = Graph("max")
    x = graph.input("x", TensorType(F32, (0, 5)))
    graph.outputs = [apply(graph, "max", x, axis=(0,), keepdims=False)]
    with pytest.raises(Replay):
        compile_graph(graph)(a)


def test_special_values_in_reductions():
    for dtype in ("float32", "float64"):
        a = sample(dtype, (6, 50))
        a[1, 3], a[2, 4], a[3, 5], a[4, 6:8] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
        for axis in ((0,), (1,), (0, 1)):
            check(lambda op, x: [op("max", x, axis=axis, keepdims=False), op("min", x, axis=axis, keepdims=False)], a)
        for row in (0, 1):
            check(lambda op, x: op("sum", x, axis=(0,), keepdims=False), a[row].copy(), rtol=1e-5)
        check(lambda op, x: op("sum", x, axis=(0,), keepdims=False), a[4].copy())


def test_several_outputs_share_one_kernel():
    a = sample("float32", (40, 30))

    def build(op, x):
        y = op("tanh", x)
        return y, op("multiply", y, y), op("sum", y, axis=(1,), keepdims=False)

    check(build, a, ulp=4, rtol=1e-5, kernels=1)


def test_expensive_values_are_stored_once():
    a = sample("float32", (40, 3000))

    def build(op, x, v):
        e = op("exp", v)
        return op("multiply", x, e)

    check(build, a, sample("float32", 3000), rtol=1e-6, kernels=2)


def test_an_expensive_value_along_the_rows_is_stored_however_many_rows_there_are():
    def build(op, x, w):
        return op("multiply", x, op("exp", w))

    check(build, sample("float64", (40, 8)), sample("float64", 8), ulp=4, kernels=2)
    check(build, sample("float64", (40, 8)), sample("float64", (40, 1)), ulp=4, kernels=1)  # once a row as it is


def test_library_calls_between_kernels():
    a, b = sample("float64", (8, 9), 1), sample("float64", (9, 5), 2)

    def build(op, x, y):
        return op("tanh", op("matmul", op("multiply", x, 2.0), op("add", y, 1.0)))

    check(build, a, b, rtol=1e-12, kernels=4)
    check(lambda op, x: op("add", op("sort", op("negative", x), axis=1), 1.0), a)
    check(lambda op, x: op("concat", op("negative", x), x, axis=0), a)
    check(lambda op, x: op("argmax", op("negative", x), axis=1, keepdims=False), a)
    check(lambda op, x: op("mean", x, axis=(1,), keepdims=True), a)
    check(lambda op, x: op("var", x, axis=(0,), keepdims=False, correction=1), a)


def test_moments_of_too_few_elements_are_replayed():
    for shape, correction in (((0, 3), 0), ((1, 3), 1)):
        graph = Graph("var")
        x = graph.input("x", TensorType(F32, shape))
        graph.outputs = [apply(graph, "var", x, axis=(0,), keepdims=False, correction=correction)]
        with pytest.raises(Replay):
            compile_graph(graph)(np.ones(shape, "float32"))


def test_library_results_in_another_layout():
    a = np.asfortranarray(sample("float64", (8, 9)))
    check(lambda op, x: op("add", op("sort", x, axis=0), 1.0), a)
    check(lambda op, x: op("add", op("argsort", x, axis=0), 1), a)
    check(lambda op, x: op("add", op("argmax", op("reshape", x, shape=(72,)), axis=0, keepdims=False), 1), a)
    check(lambda op, x: op("multiply", op("var", x, axis=(0, 1), keepdims=False, correction=0), 2.0), a, ulp=4)


def test_a_path_through_a_library_call_splits_the_kernel():
    a = sample("float64", (6, 6))

    def build(op, x):
        y = op("add", x, 1.0)
        z = op("matmul", y, y)
        return y, op("add", y, z), z

    check(build, a, kernels=3)


def test_opaque_errors_become_replays():
    a = np.zeros((3, 3))
    graph = Graph("inverse")
    x = graph.input("x", TensorType(a.dtype, a.shape))
    graph.outputs = [
        graph.append(ops.CALL, (x,), {"target": "numpy.linalg.inv", "args": (__slot(0),), "kwargs": ()}, x.type)
    ]
    compiled = compile_graph(graph)
    same(compiled(np.eye(3))[0], np.eye(3))
    with pytest.raises(Replay):
        compiled(a)


def __slot(i):
    from tcompile.graph.ops.opaque import Slot

    return Slot(i)


def test_error_state_is_respected():
    a = np.array([1.0, 0.0])
    graph = Graph("log")
    x = graph.input("x", TensorType(a.dtype, a.shape))
    graph.outputs = [apply(graph, "log", x)]
    compiled = compile_graph(graph)
    with pytest.raises(Replay):
        compiled(a)
    with np.errstate(divide="ignore"):
        same(compiled(a)[0], np.log(a, where=a > 0, out=np.array([0.0, -np.inf])))
    with np.errstate(under="raise"), pytest.raises(Replay):
        compiled(np.ones(2))
    with np.errstate(invalid="ignore"), pytest.raises(Replay):
        compiled(a)


def test_flags_of_what_a_compiler_could_compute_itself():
    a = np.array([4, 5], "int32")
    f64 = np.dtype("float64")
    check(lambda op, x: op("reciprocal", op("astype", op("subtract", x, x), dtype=f64)), a)
    check(lambda op, x: op("sqrt", op("astype", op("subtract", op("subtract", x, x), 1), dtype=f64)), a)
    for fill in (0.0, 1e300, -1.0):
        for name in ("reciprocal", "square", "sqrt", "log"):
            check(lambda op: op(name, op("full", shape=(5,), fill_value=fill, dtype=f64)))
        check(lambda op: op("astype", op("full", shape=(5,), fill_value=fill, dtype=f64), dtype=np.dtype("float32")))


def test_symbolic_sizes():
    graph = Graph("symbolic")
    n, m = graph.env.symbol(40, 2), graph.env.symbol(50, 2)
    x = graph.input("x", TensorType(F32, (n, m)))
    y = graph.input("y", TensorType(F32, (m,)))
    total = apply(graph, "sum", x, axis=(1,), keepdims=True)
    z = apply(graph, "add", apply(graph, "divide", x, total), y)
    inner = apply(graph, "index", z, key=(slice(1, None), slice(None, None, -1)))
    everything = apply(graph, "max", x, axis=(0, 1), keepdims=False)
    columns = apply(graph, "sum", x, axis=(0,), keepdims=False)
    count = apply(graph, "full", shape=(n, m), fill_value=m, dtype=F32)
    graph.outputs = [z, apply(graph, "negative", inner), everything, columns, apply(graph, "multiply", count, 2.0)]
    graph.env.frozen = True
    compiled = compile_graph(graph)
    for shape in ((40, 50), (2, 2), (3, 17), (700, 90), (5, 16)):
        a, b = np.abs(sample("float32", shape, 1)) + 1, sample("float32", shape[1], 2)
        for got, expected in zip(compiled(a, b), graph(a, b), strict=True):
            same(got, expected, ulp=8, rtol=1e-5)


@pytest.mark.parametrize("width", [63, 64, 65, 200, 1100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
def test_columns_side_by_side(dtype, width):
    a = sample(dtype, (37, width))

    def build(op, x):
        centred = op("subtract", x, op("max", x, axis=(0,), keepdims=True))
        return [op("sum", op("multiply", centred, centred), axis=(0,), keepdims=False), op("negative", centred)]

    compiled = check(build, a, ulp=8, rtol=1e-5)
    assert [kernel.form for kernel in compiled.schedule.kernels] == ["columns"]
    check(lambda op, x: op("min", x, axis=(0,), keepdims=False), a[:, ::2])


def test_there_are_as_many_strips_of_columns_as_fit_whatever_the_size():
    graph = Graph("symbolic")
    n, m = graph.env.symbol(1000, 2), graph.env.symbol(1000, 2)
    x = graph.input("x", TensorType(F32, (n, 50, m)))
    graph.outputs = [apply(graph, "sum", x, axis=(1,), keepdims=False)]
    graph.env.frozen = True
    compiled = compile_graph(graph)
    (kernel,) = compiled.schedule.kernels
    (launch,) = [step for step in compiled.recipe.steps if hasattr(step, "items")]
    for rows, width in ((1, 17), (17, 17), (3, 64), (100, 1000)):
        items = eval(launch.items, {str(n): rows, str(m): width})
        assert items % rows == 0  # each row of columns has its own strips, and no more
        assert items <= rows * -(-width // 64)
    a = sample("float32", (17, 50, 17), 1)
    same(compiled(a)[0], a.sum(axis=1), ulp=8, rtol=1e-5)
    assert kernel.form == "columns"


def test_python_numbers_as_inputs():
    graph = Graph("numbers")
    x = graph.input("x", TensorType(F32, (30,)))
    t = graph.input("t", ScalarType("float"))
    k = graph.input("k", ScalarType("int", graph.env.symbol(3)))
    n = k.type.symbol
    graph.outputs = [apply(graph, "multiply", x, t), apply(graph, "add", apply(graph, "add", x, n), t)]
    compiled = compile_graph(graph)
    a = sample("float32", 30)
    for t, k in ((0.1, 3), (2.5, -7), (float("nan"), 2**40 + 1)):
        for got, expected in zip(compiled(a, t, k), graph(a, t, k), strict=True):
            same(got, expected)


def test_cond():
    graph = Graph("outer")
    x = graph.input("x", TensorType(F32, (20,)))
    p = graph.input("p", TensorType(np.dtype(bool), ()))
    regions = []
    for name in ("sin", "cos"):
        region = Graph(name)
        y = region.input("y", TensorType(F32, (20,)))
        region.outputs = [apply(region, name, y), apply(region, "negative", y)]
        regions.append(region)
    types = (TensorType(F32, (20,)), TensorType(F32, (20,)))
    node = graph.append(ops.COND, (p, x), {}, types, regions=tuple(regions))
    first = graph.append(ops.GET, (node,), {"index": 0}, types[0])
    second = graph.append(ops.GET, (node,), {"index": 1}, types[1])
    graph.outputs = [apply(graph, "add", first, 1.0), second]
    compiled = compile_graph(graph)
    a = sample("float32", 20)
    for flag in (np.array(True), np.array(False)):
        for got, expected in zip(compiled(a, flag), graph(a, flag), strict=True):
            same(got, expected, ulp=4)


def test_a_loop_over_regions_with_sizes_from_outside():
    graph = Graph("outer")
    n = graph.env.symbol(20, 2)
    x = graph.input("x", TensorType(F32, (n,)))
    body = Graph("body", graph.env)
    i = body.input("i", TensorType(np.dtype("int64"), ()))
    y = body.input("y", TensorType(F32, ()))
    scaled = apply(body, "add", apply(body, "astype", i, dtype=F32), y)
    body.outputs = [apply(body, "add", scaled, apply(body, "full", shape=(), fill_value=n, dtype=F32))]
    start = apply(graph, "sum", x, axis=(0,), keepdims=False)
    loop = graph.append(ops.FORI_LOOP, (0, 5, start), {}, (TensorType(F32, ()),), regions=(body,))
    total = graph.append(ops.GET, (loop,), {"index": 0}, TensorType(F32, ()))
    graph.outputs = [apply(graph, "multiply", x, total)]
    for size in (20, 33):
        a = np.arange(size, dtype="float32")
        same(compile_graph(graph)(a)[0], graph(a)[0], ulp=4)


def test_names_never_clash():
    graph = Graph("names")
    inputs = ("status", "launch", "empty", "lambda", "float32", "x y")
    values = [graph.input(name, TensorType(F32, (3,))) for name in inputs]
    names = ("report", "kernel_0", "del", "numpy_sort", "sorted")
    total = values[0]
    for number, value in enumerate(values[1:]):
        total = apply(graph, "add", total, value, node_name=names[number])
    total = apply(graph, "sort", total, axis=0, node_name="numpy_sort")
    graph.outputs = [total]
    arrays = [sample("float32", 3, i) for i in range(6)]
    same(compile_graph(graph)(*arrays)[0], graph(*arrays)[0])


def test_kernels_describe_themselves():
    from tcompile.observe import bus

    events = []
    with bus.listening(events.append):
        compiled = check(lambda op, x: op("tanh", op("add", x, 1.0)), sample("float32", 10), ulp=4)
    told = [e for e in events if e.kind not in ("cache_hit", "cache_miss")]  # the cache may be warm
    assert {e.kind for e in told} == {"kernel_compiled"}
    (kernel,) = compiled.kernels
    assert kernel.name in kernel.ir and kernel.name in kernel.assembly()
    assert "tanh" in kernel.description
    assert kernel.name in compiled.source
    assert told[0].nodes == ("add", "tanh")


def test_long_chains_are_cut():
    def build(op, x):
        for i in range(300):
            x = op("add" if i % 2 else "multiply", x, 1.0 + i % 3)
            x = op("multiply", x, 0.5)
        return x

    check(build, sample("float64", 100), rtol=1e-12)


@pytest.mark.parametrize(("steps", "most"), [(1, 1), (2, 2), (12, 12)])
def test_a_chain_of_stencils_is_not_computed_from_its_start_at_every_place(steps, most):
    def around(op, x, key):
        return op("index", x, key=key)

    def build(op, x):
        for _ in range(steps):
            a, b, c = (around(op, x, (slice(i, x.tensor.shape[0] - 2 + i),)) for i in range(3))
            x = op("subtract", op("add", a, c), op("multiply", b, 2.0))
        return x

    kernels = check(build, sample("float64", 200)).schedule.kernels
    assert len(kernels) <= most
    assert max(len(kernel.values) for kernel in kernels) < 40


def test_a_cheap_value_is_computed_at_both_places_that_read_it():
    def build(op, x):
        y = op("add", x, 1.0)
        return op("subtract", op("index", y, key=(slice(1, None),)), op("index", y, key=(slice(0, -1),)))

    check(build, sample("float64", 200), kernels=1)


def test_vectors_on_the_stack_lie_in_one_cache_line():
    """Read back across two lines, one that was just written made products of sines and cosines twice as slow."""
    compiled = check(lambda op, x: op("multiply", op("sin", x), op("cos", x)), sample("float32", 4096), ulp=4)
    (kernel,) = compiled.kernels
    of_kernel = kernel.assembly().split(f"{kernel.name}:\n", 1)[1]
    if "rsp" in of_kernel and ("zmm" in of_kernel or "ymm" in of_kernel):  # an x86 with vectors longer than the stack's
        assert re.search(r"andq\s+\$-(64|32), %rsp", of_kernel)


def test_many_paths_through_few_values():
    """Choosing what to materialise goes over each value once, however many paths lead to it."""
    text = "def f(x):\n    y = x\n" + "    y = y * y * 0.5 + y\n" * 30
    space = {"np": np}
    exec(text + "    return np.sum(y, axis=0), np.sum(np.sin(y), axis=1), np.max(np.cos(y), axis=0)\n", space)
    x = np.linspace(0.0, 0.01, 600).reshape(30, 20)
    for found, want in zip(tcompile.compile(space["f"])(x), space["f"](x), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-13)
