"""Kernels of the triton backend as machine code: compiled for three generations of GPUs, without one."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("triton")

from tcompile.backends.triton import cubins
from tcompile.errors import BackendError
from tests.backends.llvm_cases import graph_of, sample
from tests.backends.triton_cases import check, compile_all, on_interpreter

F32, I64 = sample("float32", (8, 300)), sample("int64", (8, 300))


def softmax(op, x):
    e = op("exp", op("subtract", x, op("max", x, axis=(1,), keepdims=True)))
    return op("divide", e, op("sum", e, axis=(1,), keepdims=True))


CASES = {
    "pointwise": (lambda op, x, y: op("multiply", op("maximum", op("add", x, y), 0.0), 2.0), (F32, F32)),
    "integers": (lambda op, x, y: [op(n, x, y) for n in ("floor_divide", "remainder", "bitwise_right_shift")],
                 (I64, I64)),
    "floats": (lambda op, x, y: [op("floor_divide", x, y), op("pow", x, y), op("round", x), op("signbit", y)],
               (F32, F32)),
    "casts": (lambda op, x: [op("astype", x, dtype=np.dtype(d)) for d in ("bool", "uint8", "float16", "float64")],
              (F32,)),
    "complex": (lambda op, x: op("divide", x, op("add", x, 1.0)), (F32.astype("complex64"),)),
    "softmax": (softmax, (F32,)),
    "rectangles": (lambda op, x, y: op("add", op("permute_dims", x, axes=(1, 0)), y),
                   (sample("float32", (40, 64)), sample("float32", (64, 40)))),
    "gather": (lambda op, x, i: op("gather", x, i, axes=(0,)), (F32, np.array([1, -1]))),
    "parts": (lambda op, x: [op("sum", x, axis=(0,), keepdims=False), op("max", x, axis=(0,), keepdims=False)],
              (sample("float64", 50_000),)),
    "scans": (lambda op, x, y: [op("cumulative_sum", x, axis=0), op("cumulative_sum", op("exp", x), axis=1),
                                op("cumulative_prod", y, axis=1)], (F32, I64)),
    "parts of scans": (lambda op, x, y: [op("cumulative_sum", x, axis=0), op("cumulative_prod", y, axis=0)],
                       (sample("float64", 50_000), sample("uint8", 50_000))),
    "products in order": (lambda op, x: op("cumulative_prod", x, axis=0), (F32,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernels_compile_for_every_generation(name):
    build, arrays = CASES[name]
    assert compile_all(on_interpreter(graph_of(build, *arrays))) >= 3


def test_offsets_of_64_bits_compile():
    compile_all(on_interpreter(graph_of(softmax, F32)), capabilities=(90,), wide=True)


def test_machine_code_comes_from_the_disk(monkeypatch):
    build, arrays = CASES["pointwise"]
    ((function,),) = [kernel.functions for kernel in on_interpreter(graph_of(build, *arrays)).kernels]
    variant = cubins.ArgumentFacts(False, (True, True, True))
    first = cubins.compiled(function, 90, variant)
    monkeypatch.setattr(cubins, "_compile", lambda *_: pytest.fail("compiled again"))
    assert cubins.compiled(function, 90, variant) == first
    with pytest.raises(pytest.fail.Exception):  # another version of Triton, another key
        monkeypatch.setattr(cubins, "version", lambda: "0")
        cubins.compiled(function, 90, variant)


def test_a_gpu_that_is_too_old_is_refused_in_words():
    build, arrays = CASES["pointwise"]
    ((function,),) = [kernel.functions for kernel in on_interpreter(graph_of(build, *arrays)).kernels]
    with pytest.raises(BackendError, match=r"compute capability 7.5; kernels are compiled for 8.0"):
        cubins.compiled(function, 75, cubins.ArgumentFacts(False, (True, True, True)))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_least_integers_absolute_value_is_not_taken_for_positive(dtype):
    """What PTX's ``abs`` makes of it is: on a GPU, ``abs(x) % 6`` and ``abs(x) < 0`` were wrong. Triton 3.6 writes it
    for all of these, 3.9 for 8 bits.
    """
    build = lambda op, x: [op("remainder", op("abs", x), 6), op("less", op("abs", x), 0)]
    made = on_interpreter(graph_of(build, sample(dtype, 300)))
    assert "abs." not in made.kernels[0].assembly(90)


NEGATIONS = {
    "-x": lambda op, x: op("negative", x),
    "0 - x": lambda op, x: op("subtract", 0, x),
    "x * -1": lambda op, x: op("multiply", x, -1),
    "(x - y) - x": lambda op, x: op("subtract", op("subtract", op("sign", x), x), op("sign", x)),
}


@pytest.mark.parametrize("negation", NEGATIONS)
def test_the_least_integer_of_16_bits_negated_is_not_taken_for_positive(negation):
    """What PTX's ``neg`` makes of it is, by CUDA 12.8's assembler: on a GPU, ``-x % 6`` was wrong."""

    def build(op, x):
        y = NEGATIONS[negation](op, x)
        return [op("remainder", y, 6), op("less", y, x)]

    made = check(build, np.array([-32768, -32767, -1, 0, 1, 32767] * 50, "i2"))
    assert "neg.s16" not in made.kernels[0].assembly(90)


def test_threads_leave_tritons_settings_alone():
    import triton

    (kernel,) = on_interpreter(graph_of(CASES["pointwise"][0], F32, F32)).kernels
    before = dict(vars(triton.knobs.compilation)), dict(vars(triton.knobs.runtime))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda capability: kernel.assembly(capability), [80, 90, 80, 90]))
    assert made[0] == made[2] != made[1] == made[3]
    assert before == (dict(vars(triton.knobs.compilation)), dict(vars(triton.knobs.runtime)))
