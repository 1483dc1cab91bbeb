"""Random programs of NumPy, as source text.

Input: a random generator.
Output: ``program(random)`` returns a module of two functions.
Why: hand-written tests miss combinations.

``inputs(k)`` makes the arguments of call ``k``: arrays of random dtypes, shapes and memory layouts, some of which
overlap, NumPy scalars and Python numbers. ``f`` takes them and does 10 to 40 operations with them: arithmetic,
reductions, views, writes, masks, gathers, library calls. Both follow from the random generator's state. Each statement
was tried in plain Python before it was kept, so most programs run to their end; one in twenty keeps a statement that
raises.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import math
import re
import warnings
from random import Random
from typing import Any

import numpy as np

from tcompile.numpy_versions import NEGATES_RIGHTLY

NAME = "<numpy program>"  # the file name of programs

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16")
COMPLEX = ("complex64", "complex128")
DTYPES = (
    *("float64",) * 6, *("float32",) * 4, *("int64",) * 3, "int32", "int32", "bool", "bool", "float16", "complex64",
    *("complex128",) * 2, "int8", "int16", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
NUMBERS = (
    "1", "1", "2", "2", "2", "3", "0", "-1", "10", "0.5", "0.5", "2.0", "-1.5", "1.0", "0.25", "0.1", "True", "1j",
    "np.float32(0.5)", "np.float64(1.5)", "np.float16(2)", "np.int8(2)", "np.int64(2)", "np.uint8(3)",
)  # fmt: skip
OTHERS = (  # arguments that are no arrays
    "0", "1", "3", "-1", "n", "2.5", "0.1", "True", "1.5j", "None", "'f4'", "(1, 2)", "[1.0, 2.0, 3.0]",
    "slice(1, None)", "np.float32(1.5)", "np.float64(2.5)", "np.int8(2)", "np.int64(3)", "np.uint8(3)",
    "np.complex64(1j)", "np.bool_(False)", "np.float16(.5)",
)  # fmt: skip
LARGEST = 60_000  # elements of a value
# NumPy 2.4 and 2.5 end the process where an int beyond the dtype of an array is compared with it under a mask.
CRASHES = re.compile(r"np\.(?:not_equal|equal|less|less_equal|greater|greater_equal)\((?:[^,]+, )?-?\d+, .*where=")
NEGATES = None if NEGATES_RIGHTLY else re.compile(r"np\.negative|[=(,\[]\s*-[a-z(]")
LONGEST = 200  # rows that a block walks, and items of a list
MOST = 20 * LARGEST  # elements that a statement may make on its way


def data(random: np.random.Generator, shape: Any, dtype: str, how: str = "small") -> np.ndarray:
    """An array for a program: small numbers, numbers of the unit interval, any, or special ones among them."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return random.random(shape) < 0.5
    if kind in "iu":
        info = np.iinfo(dtype)
        if how == "special":
            few = [0, 1, info.max, info.min, info.max - 1, 2, 7]
            return random.choice(np.array(few, dtype), shape)
        low = 1 if how == "unit" else 0 if kind == "u" else -6
        return random.integers(low, 10, shape).astype(dtype)
    if kind == "c":
        part = "float32" if dtype == "complex64" else "float64"
        made = np.empty(shape, dtype)
        made.real, made.imag = data(random, shape, part, how), data(random, shape, part, how)
        return made
    if how == "unit":
        return random.uniform(0.1, 0.9, shape).astype(dtype)
    if how == "special":
        few = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.5, -3.5, 0.5, 1e-5]
        few += [float(np.finfo(dtype).max), float(np.finfo(dtype).tiny), float(np.finfo(dtype).smallest_subnormal)]
        return random.choice(np.array(few, dtype), shape)
    if how == "any":
        return (random.normal(size=shape) * 3).astype(dtype)
    return (random.integers(-8, 9, shape) / 2).astype(dtype)


def misaligned(array: np.ndarray) -> np.ndarray:
    """A copy that does not lie where its dtype wants to lie."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    made = memory[1:].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, which may not be written to."""
    array.flags.writeable = False
    return array


def namespace(source: str) -> dict[str, Any]:
    """What a program's module defines."""
    linecache.cache[NAME] = len(source), None, source.splitlines(keepends=True), NAME
    space: dict[str, Any] = {
        "np": np, "data": data, "misaligned": misaligned, "read_only": read_only, "__name__": "program",
    }  # fmt: skip
    exec(compile(source, NAME, "exec"), space)
    return space


# Templates: {x} any value, {a} an array, {f} a float or complex one, {r} a real one, {i} an integer one, {m} a mask,
# {u} floats in the unit interval or near it, {s} a number, {n} a size, {k} an axis, {K} axes or None, {d} a dtype name,
# {y} something that broadcasts with the value before it, {w} a writable array, {v} a value that fits into it.
UNARY = (
    "negative", "positive", "absolute", "fabs", "rint", "sign", "conjugate", "exp", "exp2", "log", "log2", "log10",
    "expm1", "log1p", "sqrt", "square", "cbrt", "reciprocal", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "deg2rad", "rad2deg", "invert",
    "logical_not", "isfinite", "isinf", "isnan", "signbit", "spacing", "floor", "ceil", "trunc", "real", "imag",
    "angle", "isreal", "iscomplex", "isneginf", "isposinf", "nan_to_num", "fix", "bitwise_count", "sinc", "abs", "i0",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power", "maximum", "minimum", "fmax",
    "fmin", "logaddexp", "logaddexp2", "hypot", "arctan2", "copysign", "nextafter", "bitwise_and", "bitwise_or",
    "bitwise_xor", "left_shift", "right_shift", "logical_and", "logical_or", "logical_xor", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal", "gcd", "lcm", "heaviside", "float_power", "ldexp", "true_divide",
    "mod", "isclose",
)  # fmt: skip
SIGNS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">=", "@")
REDUCTIONS = (
    "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "ptp", "median",
    "count_nonzero",
    "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian", "nanargmax", "nanargmin",
    "cumsum", "cumprod", "nancumsum", "nancumprod", "average", "trapezoid",
)  # fmt: skip
METHOD_REDUCTIONS = (
    "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "cumsum", "cumprod",
)  # fmt: skip
VIEWS = (
    "{a}.T", "{a}[::-1]", "{a}[1:]", "{a}[:-1]", "{a}[..., ::2]", "{a}[:, 0]", "{a}[0]", "{a}[-1]", "{a}[None]",
    "{a}[..., None]", "{a}[:, None]", "{a}[1:, :-1]", "{a}[::2, 1:]", "{a}[1:3]", "{a}[5:2]", "{a}[-2:]", "{a}[::-2]",
    "{a}[..., 0]", "{a}[...]", "{a}[()]", "{a}.reshape(-1)", "{a}.ravel()", "{a}.reshape(1, -1)", "{a}.reshape(-1, 1)",
    "{a}.reshape({a}.shape[::-1])", "np.reshape({a}, -1, order='F')", "{a}.ravel('F')", "{a}.ravel('K')",
    "{a}.flatten('F')", "{a}.flatten()", "np.swapaxes({a}, 0, -1)", "np.moveaxis({a}, 0, -1)", "{a}.transpose()",
    "np.transpose({a})", "np.diagonal({a})", "{a}.diagonal(1)", "{a}.squeeze()", "np.expand_dims({a}, {k})",
    "np.flip({a})", "np.flip({a}, 0)", "np.rot90({a})", "{a}.real", "{a}.imag", "{a}.mT", "np.atleast_2d({x})",
    "np.atleast_1d({x})", "np.atleast_3d({x})", "np.broadcast_to({a}, (2, *{a}.shape))", "{a}.view()",
    "{a}.view(np.uint8)", "{a}.view('int32')", "np.split({a}, [1])[0]", "np.array_split({a}, 2)[1]",
    "np.unstack({a})[0]", "np.fliplr({a})", "np.flipud({a})", "np.matrix_transpose({a})",
    "np.lib.stride_tricks.sliding_window_view({a}, 2, axis=0)", "np.asarray({a})", "{a}[:{n}]", "{a}[{n}:]", "{a}[{n}]",
    "np.ravel({a})", "np.squeeze({a})", "{a}[:, ::-1]", "np.trim_zeros({a})", "np.ix_({a})[0]", "np.split({a}, 2)[0]",
)  # fmt: skip
GATHERS = (
    "{a}[{a} > {s}]", "{a}[{m}]", "{a}[{i}]", "{a}[[0, -1, 0]]", "{a}[..., [0, 0]]", "{a}[[0], [-1]]",
    "{a}[:, [0, -1]]", "np.take({a}, {i} % 97 - np.int64(40), mode='wrap')", "np.take({a}, [0, 0], axis={k})",
    "{a}.take([0, 1], axis=0, mode='clip')", "np.take_along_axis({a}, np.argsort({a}, axis=0), axis=0)",
    "{a}[np.argsort({a})]", "{a}[np.abs({i}) % len({a})]", "np.compress({m}, {a}, axis=0)", "np.extract({m}, {a})",
    "np.nonzero({a})", "{a}.nonzero()[0]", "np.flatnonzero({a})", "np.argwhere({a})", "np.where({m})",
    "np.flatnonzero({a}).sum()", "{a}[np.where({a} > {s})].sum()",
    "{a}[np.where({a} > {s})]", "{a}[{m}, None]", "{a}[True]", "{a}[[]]", "{a}[{m}].sum()", "{a}[{m}].mean()",
    "{a}[{m}] * 2", "{a}[np.ix_([0, -1], [0])]", "{a}[~({m})]", "np.unique({a})",
    "np.choose(np.abs({i}) % 2, [{a}, {a}])", "{a}[np.array([0, 0])]", "{a}[np.int64(0)]", "{a}[1:, [0]]",
    "{a}[{i}[0]]", "{a}[np.argmax({a})]", "{a}[{i} % 2 == 0]", "{a}[np.newaxis, {m}]",
    "{a}[:, {a}[0] > {s}]", "{a}[:, {a}[0] > {s}].sum(axis={k})", "{a}[1:, {a}[0] != 0].max()", "{a}[0, {a}[0] > {s}]",
)  # fmt: skip
LIBRARY = (
    "np.where({m}, {x}, {y})", "np.where({x} > {s}, {x}, {s})", "np.clip({a}, {s}, {s})", "np.clip({a}, 0, None)",
    "{a}.clip(-1, 2)", "np.clip({a}, {y}, {y})", "np.select([{a} > 1, {a} < 0], [{a}, {y}], {s})",
    "np.concatenate([{a}, {a}], axis={k})", "np.concatenate([{a}, {y}])", "np.stack([{a}, {y}], axis={k})",
    "np.stack([{a}, {a}])", "np.hstack([{a}, {y}])", "np.vstack([{a}, {y}])", "np.dstack([{a}, {y}])",
    "np.column_stack([{a}, {y}])", "np.append({a}, {x})", "np.tile({a}, 2)", "np.tile({a}, (2, 1))",
    "np.repeat({a}, 2)", "np.repeat({a}, 2, axis={k})", "np.roll({a}, 1)", "np.roll({a}, {n}, axis={k})",
    "np.pad({a}, 1)", "np.pad({a}, 1, mode='edge')", "np.pad({a}, (1, 2), mode='wrap')", "np.diff({a}, axis={k})",
    "np.diff({a})", "np.gradient({a}, axis=0)", "np.ediff1d({a})", "np.sort({a}, axis={k})", "np.sort({a})",
    "np.argsort({a}, axis={k})", "np.partition({a}, 0)", "np.searchsorted(np.sort({a}), {x})",
    "np.digitize({x}, np.sort({a}))", "np.bincount({i}.ravel() % 64)", "np.histogram({r}, 4)",
    "np.histogram({r}, 3, (-2, 2))[0]", "np.interp({x}, np.arange(4), [1., 2., 0., 3.])", "np.dot({a}, {a}.T)",
    "np.matmul({a}, {a}.T)", "{a} @ {a}.T", "{a}.dot({a}.T)", "np.inner({a}, {a})", "np.outer({a}, {x})",
    "np.kron({a}, {a})", "np.tensordot({a}, {a}, 0)", "np.einsum('i...->...', {a})", "np.einsum('ij,kj->ik', {a}, {a})",
    "np.vdot({a}, {a})", "np.vecdot({a}, {a})", "np.cross({a}, {y})", "np.trace({a})", "np.tril({a})",
    "np.triu({a}, 1)", "np.diag({a})", "np.diagflat({a})", "np.convolve({a}, [1, 2, 1])", "np.correlate({a}, {a})",
    "np.linalg.norm({f})", "np.linalg.norm({f}, axis={k})", "np.linalg.det({f}[:4] @ {f}[:4].T + np.eye(len({f}[:4])))",
    "np.linalg.inv(np.eye(3) * 2)", "np.fft.fft({f})", "np.fft.ifft({f}).real", "np.fft.rfft({r}, axis={k})",
    "np.cov({r})", "np.percentile({r}, 30)", "np.quantile({r}, [.2, .5], axis={k})", "np.round({a}, 1)", "{a}.round()",
    "np.around({a}, -1)", "np.meshgrid({a}, {a})[0]", "np.delete({a}, 0)", "np.insert({a}, 0, {s})",
    "np.resize({a}, (2, 3))", "np.unwrap({r})", "np.polyval([1, 2, 1], {a})", "np.vander({a})", "np.isin({a}, [1, 2])",
    "np.array_equal({a}, {x})", "np.allclose({a}, {x})", "np.divmod({a}, {y})", "divmod({a}, {y})", "np.modf({r})",
    "np.frexp({r})", "np.add.reduce({a}, axis={k})", "np.add.accumulate({a})", "np.multiply.outer({a}, {x})",
    "np.maximum.reduce({a}, axis=None)", "np.logical_and.reduce({a}, axis={k})", "np.add.reduceat({a}, [0, 1])",
    "np.nan_to_num({f}, nan=1.5)", "np.packbits({m})", "np.unravel_index(np.argmax({a}), {a}.shape)",
    "np.lexsort(({a}, {a}))", "np.cumulative_sum({a}, axis=0)", "np.real_if_close({f})",
    "np.vectorize(lambda v: v * 2)({a})", "sum({a})", "max({a})", "np.apply_along_axis(np.sum, 0, {a})",
    "np.count_nonzero({a} > {s}, axis={k})", "np.linspace({s}, {s}, 5)", "np.geomspace(1, 8, 4)",
    "np.fromfunction(lambda p, q: p + q, (2, 3))", "list({a})", "len({a})", "np.piecewise({f}, [{f} > 0], [1, -1])",
    "np.sum({a}, axis={k}, where={m})", "np.max({r}, axis={k}, initial=1)",
    "np.sum({a}, axis={K}, keepdims=True, initial=2)", "np.mean({a}, axis={k}, where={m})",
    "np.add({a}, {y}, where={m}, out=np.zeros_like({a}))", "np.var({f}, axis={k}, ddof=1)",
    "np.any({a}, axis={k}, where={m})", "np.linalg.vector_norm({f}, axis={k})", "np.nanquantile({r}, .5)",
    "np.cumsum({a}, axis={k}, dtype={d})", "np.corrcoef({r}, {r})", "np.array([{s}, {s}])", "np.array([{a}, {a}])",
    "np.fft.fftshift({a})", "np.nansum({f}, axis={K})", "np.logspace(0, 1, 3)", "np.indices((2, 3))[0]",
    "np.argpartition({a}, 0)", "np.broadcast_arrays({a}, {y})[0] + 0", "np.linalg.matrix_power(np.eye(2) * {s}, 2)",
    "np.triu_indices(3)", "np.rollaxis({a}, -1)", "np.block([[{a}], [{a}]])",
    "np.isclose({a}, {y})", "np.isclose({x}, {s}, equal_nan=True)", "np.array_equiv({a}, {y})", "np.r_[{a}, {a}]",
    "np.einsum('ij,jk', {a}, {a}.T)", "np.einsum('ij,ij->i', {a}, {a})", "np.einsum('i,ij', {a}[:, 0], {a})",
    "np.vectorize(lambda v: v / 2 if v > 1 else v)({r})", "np.vectorize(max)({r}, {s})",
    "np.vectorize(lambda v, w: v * w + 1, otypes=[{d}])({r}, {y})", "np.gradient({f}, .5, axis={k}, edge_order=2)",
    "np.pad({a}, (2, 0), mode='reflect')", "np.pad({a}, 1, mode='symmetric')", "np.cross({a}[..., :3], {a}[..., :3])",
    "np.lib.stride_tricks.sliding_window_view({a}, 2, axis={k}).sum(axis=-1)", "np.kron({a}, {x})",
    "np.median(np.stack([{a}, {a}, {a} * 2]), axis=0)", "np.median(np.stack([{a}, {y} + {a}] * 2), axis={k})",
    "np.c_[{a}, {a}]", "np.r_[0:{n}, {s}]", "np.mgrid[0:{n}, 0:2]", "np.apply_along_axis(lambda p: p * 2, 1, {a})",
)  # fmt: skip
CREATION = (
    "np.zeros_like({x})", "np.ones_like({x})", "np.full_like({x}, {s})", "np.zeros(({n}, 2), {d})", "np.ones({n}, {d})",
    "np.full(({n},), {s})", "np.full((2, {n}), {s}, {d})", "np.arange({n})", "np.arange({n}, dtype={d})", "np.eye({n})",
    "np.arange(0, {n}, .5)", "np.identity(3, {d})", "np.linspace(0, 1, {n})", "{x}.copy()", "np.array({x})",
    "np.copy({x})", "{x}.astype({d})", "{x}.astype({d}, copy=False)", "np.asarray({x}, {d})",
    "np.ascontiguousarray({x})", "np.asfortranarray({a})", "{a}.copy('F')", "{a}.copy('K')", "np.array({a}, order='F')",
    "np.zeros({a}.shape, {a}.dtype)", "np.asarray({s})", "np.array({x}, copy=None)", "{x}.astype({d})",
    "np.zeros_like({a}, {d})", "np.zeros(({n}, {n}))", "np.array([[1, 2], [3, 4]], {d})", "np.tri(3)",
    "np.zeros((), {d})", "np.empty((0, {n}))", "{x}.astype({d}, order='F')", "np.require({a}, requirements='C')",
)  # fmt: skip
SCALARS = (
    "{a}.shape[0]", "{a}.size", "{a}.ndim", "len({a})", "{a}.itemsize", "{x}.item()", "float({a}.max())",
    "int({a}.sum().real)", "bool({a}.any())", "{a}.dtype.itemsize", "np.float32({s})", "np.float64({s})", "np.int8(3)",
    "np.int64({n})", "np.float16({s})", "np.bool_(True)", "{a}.flat[0]", "{a}.sum().item() + 1", "{a}.tolist()",
    "complex({s})", "np.uint8(200)", "{a}.nbytes // 2", "{a}.flags.c_contiguous", "{a}.flags.f_contiguous",
    "{a}.strides if {a}.size else ()", "np.result_type({x}, {x}).name", "{a}.dtype == {x}.dtype",
    "np.can_cast({a}.dtype, {d})", "np.shape({x})", "np.ndim({x})", "np.shares_memory({a}, {a})", "np.complex64({s})",
    "abs({a}.min())", "round(float({a}.real.max()), 1)", "np.iinfo({i}.dtype).max", "np.finfo({f}.dtype).eps",
    "{a}.any() and {s}", "{s} if {a}.all() else {x}", "np.isscalar({x})", "max({n}, {a}.ndim)", "{a}.real.argmax() + 1",
)  # fmt: skip
KEYS = (
    "0", "-1", "1:", ":-1", "...", "::2", "::-1", ":, 0", "..., 0", "1:, 1:", "0, 0", "[0, -1]", "[0, 0]", "{m}",
    "{w} > {s}", "{i}", ":", "()", "..., [0, 1]", "1:3", ":, 1:", "{w} == {w}.max()", "{w} != 0", "None", "2:2", "-2:",
    ":, ::-1", "np.ix_([0], [-1])", "{n}", ":{n}", "[True]", "{w}.argmax()", "[0], [0]", "~({m})", "np.abs({w}) > {s}",
    "..., 1:", "1:-1, 1:-1", "1:-1", "np.array([1, 0, 1])",
)  # fmt: skip
WRITES = (
    "{w}[{key}] = {v}", "{w}[{key}] = {v}", "{w}[{key}] = {s}", "{w}[{key}] = {s}", "{w}[{key}] = {w}[{key}] * {s}",
    "{w}[{key}] {o}= {v}", "{w}[{key}] {o}= {s}", "{w}[{key}] = {w}[::-1][{key}]", "{w}[{key}] += {w}[{key}][::-1]",
    "{w} {o}= {v}", "{w} {o}= {s}", "{w} {o}= {w}", "{w} += {w}.T", "{w} -= {w}[::-1]", "{w}[1:] = {w}[:-1]",
    "{w}[:-1] += {w}[1:]", "{w}[1:] += {w}[:-1] * {s}", "{w}[1:-1] = ({w}[:-2] + {w}[2:]) / 2", "{w}[...] = {v}",
    "{w}[:] = 0", "np.add({w}, {v}, out={w})", "np.multiply({a}, {y}, out={w})", "np.sqrt({a}, out={w})",
    "np.negative({w}, out={w})", "np.add({w}[1:], {w}[:-1], out={w}[:-1])", "np.copyto({w}, {v})",
    "np.copyto({w}, {s}, where={m})", "np.sum({a}, axis=0, out={w})", "np.maximum({w}, {v}, out={w}, casting='unsafe')",
    "{w}.fill({s})", "{w}.sort()", "{w}.sort(axis=0)", "np.put({w}, [0, -1], {s})", "np.place({w}, {m}, [1, 2])",
    "np.putmask({w}, {m}, {v})", "np.add.at({w}, [0, 0], {s})", "np.fill_diagonal({w}, {s})", "{w}.T[0] = {s}",
    "{w}.ravel()[0] = {s}", "{w}.reshape(-1)[::2] = {s}", "{w}.flat[1] = {s}", "{w}.real[...] = {s}", "{w}.put(0, {s})",
    "{w}[{key}][0] = {s}", "{w}[1:][::2] = {s}", "{w}.T[...] = {v}", "{w}.diagonal()",
    "np.put_along_axis({w}, np.argmax({w}, axis=0, keepdims=True), {s}, 0)", "np.clip({w}, -1, 1, out={w})",
    "{w}.clip(0, 2, out={w})", "np.cumsum({w}, axis=0, out={w})", "{w}.partition(0)", "{w}[{w} > {s}] = 0",
    "{w}[np.where({w} > {s})] {o}= {s}", "{w}[np.nonzero({m})] = {w}[np.nonzero({m})] * 2",
    "{w}[np.flatnonzero({w}[..., 0] > {s})[:0]] = {s}", "{w}[{w}[0] > {s}, [0]] = {s}", "{w}[np.nonzero({w})[0]] = {s}",
    "{w}[{w} < {s}] *= 2", "{w}[{m}] = {w}[{m}] + 1", "np.exp({w}, out={w}, where={w} < 1)", "{w}.shape = (-1,)",
    "{w}.swapaxes(0, -1)[0] = {s}", "np.subtract.at({w}, {i} * 0, {s})", "np.dot({w}, {w}, out={w}.copy())",
    "np.round({w}, out={w})", "{w}[...] = {w}[..., ::-1]", "{w}.setflags(write=False)",
    "np.take({w}, [0, 0], axis=0, out={w}[:2])", "np.mean({a}, axis=0, out={w})", "{w}.itemset(0)",
    "np.random.default_rng(3).shuffle({w})", "{w}[0], {w}[-1] = {w}[-1], {w}[0]",
    "{w}[np.abs({i}.ravel()) % len({w})] = {v}", "np.add.at({w}, np.abs({i}.ravel()[:99]) % len({w}), {s})",
    "np.add.at({w}, np.abs({i}.ravel()[:99]) % len({w}), {v})", "{w}[..., np.abs({i}.ravel()) % {w}.shape[-1]] = {s}",
    "np.multiply.at({w}, [-1, 0, -1], {w}[:1])", "{w}[np.abs({i}) % len({w})] {o}= {s}",
    "{w}[:, {w}[0] > {s}] = {s}", "{w}[:, {w}[0] > {s}] {o}= {v}", "{w}[::-1, {w}[0] != 0] *= {w}[:, {w}[0] != 0]",
)  # fmt: skip
BLOCKS = (
    "for j in range({count}):\n    {st}", "for j in range({count}):\n    {st}\n    {st}",
    "if {x_}.any():\n    {st}\nelse:\n    {st}", "if {x_}.sum() > {s}:\n    {st}",
    "with np.errstate(all='ignore'):\n    {st}", "for row in {a}:\n    {st}", "if {a}.shape[0] > 2:\n    {st}",
    "for j, row in enumerate({a}):\n    {st}", "while {x_}.sum() > 1e3:\n    {st}\n    break",
)  # fmt: skip
ERRORS = (
    "{a}[100]", "{a} + np.ones(97)", "np.sqrt({a}, out=np.zeros(3, 'int8'))", "{a}.reshape(7, 13, 2)",
    "np.sum({a}, axis=9)", "np.concatenate([{a}, {a}[0]])", "{a}[..., 0, 0, 0, 0, 0]", "{a}.nothing",
    "np.array({a}, 'nothing')", "{a}[1.5]", "bool({a})", "int({a})", "np.linalg.inv(np.zeros((2, 2)))",
    "np.stack([{a}, {a}[1:]])", "{a} @ np.ones((17, 19))", "np.max([])", "{a}['x']",
)  # fmt: skip


def _weighted(**weights: int) -> list[str]:
    return [name for name, weight in weights.items() for _ in range(weight)]


class Missing(Exception):
    """A template needs a value of a kind that there is none of."""


class Writer:
    """Writes one program, and runs it while it writes.

    ``how`` says of which numbers, where they are not random; ``few``: arrays are small, and vary from call to call.
    """

    def __init__(self, random: Random, how: str | None = None, few: bool = False) -> None:
        self.random, self.how, self.few = random, how, few
        self.scope: dict[str, Any] = {}
        self.lines: list[str] = []  # of f
        self.count = 0
        self.quiet = random.random() < 0.2  # f runs under np.errstate(all="ignore")
        sections = _weighted(
            unary=6,
            binary=10,
            sign=10,
            reduction=6,
            view=8,
            gather=5,
            library=8,
            creation=4,
            scalar=2,
            write=9,
            block=2,
        )
        dull = {name for name in sorted(set(sections)) if random.random() < 0.2}
        self.sections = [name for name in sections if name not in dull] or sections
        self.reuse = random.choice((0.0, 0.1, 0.3))

    # -- inputs ------------------------------------------------------------------------------------------------
    def inputs(self) -> list[str]:
        """The lines of the function that makes the arguments."""
        random = self.random
        sizes = [0, 1, 1, 2, 2, 2, 3, 3, 4] if self.few else [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 16, 17]
        n, m = random.choice(sizes), random.choice(sizes)
        if not self.few and random.random() < 0.04:
            n = random.choice((4096, 4099, 20_000, 50_000))
            m = random.choice((1, 2)) if n < 30_000 else 1
        other = (random.choice(sizes), random.choice(sizes)) if random.random() < 0.5 else (n, m)
        change = [(n, m), (random.choice(sizes), random.choice(sizes)) if self.few else (n, m), other]
        self.arrays: list[str] = []  # parameters that are arrays
        lines = [
            "def inputs(k):",
            f"    random = np.random.default_rng([{random.randrange(1 << 20)}, k % 2])",
            f"    n, m = {tuple(change)}[k]",
        ]
        self.parameters = "xyzw"[: random.randint(1, 4)]
        how = random.choice(("small",) * 4 + ("unit", "unit", "any", "any", "special"))
        how = self.how or how
        dtypes = random.sample(DTYPES, random.randint(1, 3))
        for name in self.parameters:
            lines.append(f"    {name} = {self._input(name, how, dtypes)}")
        lines.append(f"    return [{', '.join(self.parameters)}]")
        return lines

    def _input(self, name: str, how: str, dtypes: list[str]) -> str:
        random = self.random
        if name != "x" and random.random() < 0.15:
            return random.choice(OTHERS)
        if self.arrays and random.random() < 0.12:  # what overlaps
            form = random.choice(("{0}", "{0}[::-1]", "{0}[1:]", "{0}.T", "{0}[...]", "{0}[:-1]"))
            return form.format(random.choice(self.arrays))
        shape = random.choice(
            ("n,", "n,", "n,", "n, m", "n, m", "n, m", "m, n", "1, m", "n, 1", "n, m, 2", "2, n, m", "")
        )
        if shape == "" and random.random() < 0.7:
            shape = "n,"
        dtype = random.choice(dtypes)
        made = lambda s: f"data(random, ({s}), '{dtype}', '{how}')"
        ndim = shape.count(",") + (shape[-1:] not in (",", ""))
        kinds = ["c"] * (3 if self.few else 8) + ["f", "cut", "back", "moved", "row", "odd", "still", "wide"]
        kind = random.choice(kinds) if ndim else "c"
        if ndim:
            self.arrays.append(name)
        if kind == "f" and ndim > 1:
            return f"np.asfortranarray({made(shape)})"
        if kind == "cut":
            return f"np.repeat({made(shape)}, 2, axis=-1)[..., ::2]"
        if kind == "back":
            return f"{made(shape)}[{random.choice(('::-1', '..., ::-1'))}]"
        if kind == "moved" and ndim > 1:
            return f"np.moveaxis({made(shape)}, 0, -1)"
        if kind == "row" and ndim > 1:
            return f"np.broadcast_to({made(shape)}[:1], ({shape}))"
        if kind == "odd":
            return f"misaligned({made(shape)})"
        if kind == "still":
            return f"read_only({made(shape)})"
        if kind == "wide":
            return f"np.concatenate([{made(shape)}] * 3)[1:-1]"
        return made(shape)

    # -- holes -------------------------------------------------------------------------------------------------
    def names(self, accept: Any) -> list[str]:
        """Variables whose value is accepted, those of late three times as often."""
        found = [name for name, value in self.scope.items() if accept(value)]
        return found + found[-3:] * 2

    def pick(self, accept: Any) -> str:
        """One of them."""
        found = self.names(accept)
        if not found:
            raise Missing
        return self.random.choice(found)

    def array(self, kinds: str = "biufc") -> str:
        """A variable that holds an array, or a little more than a variable."""
        name = self.pick(lambda v: type(v) is np.ndarray and v.dtype.kind in kinds)
        if self.random.random() < self.reuse:
            form = self.random.choice(
                ("{0}[::-1]", "{0}[1:]", "({0} + 1)", "{0}.T", "np.abs({0})", "({0} * 2)", "{0}[..., ::2]", "(-{0})")
            )
            return form.format(name)
        return name

    def number(self) -> str:
        """A number: a literal, a NumPy scalar, or a variable."""
        random = self.random
        if random.random() < 0.2:
            found = self.names(lambda v: isinstance(v, np.generic | int | float | complex))
            if found:
                return random.choice(found)
        return random.choice(NUMBERS)

    def beside(self, shape: tuple[int, ...] | None) -> str:
        """A value that broadcasts with a shape."""
        if shape is None or self.random.random() < 0.3:
            return self.number()

        def fits(value: Any) -> bool:
            if not isinstance(value, np.ndarray):
                return isinstance(value, np.generic)
            try:
                np.broadcast_shapes(value.shape, shape)
            except (ValueError, RuntimeError):  # the latter of more than 32 axes
                return False
            return True

        try:
            return self.pick(fits)
        except Missing:
            return self.number()

    def fill(self, template: str, target: str = "") -> str:
        """A template with its holes filled in; ``target`` is the variable that is written to."""
        random, shape = self.random, None
        out, rest = "", template
        while True:
            before, found, rest = rest.partition("{")
            out += before
            if not found:
                return out
            hole, _, rest = rest.partition("}")
            if hole in ("a", "f", "r", "i"):
                kinds = {"a": "biufc", "f": "fc", "r": "biuf", "i": "iu"}[hole]
                text = self.array(kinds)
                shape = self.shape(text)
            elif hole == "x":
                text = self.pick(lambda v: isinstance(v, np.ndarray | np.generic))
                shape = self.shape(text)
            elif hole == "x_":
                text = self.array()
            elif hole in ("y", "v"):
                text = self.beside(self.shape(target) if target and hole == "v" else shape)
            elif hole == "s":
                text = self.number()
            elif hole == "n":
                names = self.names(lambda v: type(v) is int and 0 <= v < 50)
                text = random.choice((*names, "1", "2", "3", "4"))
            elif hole == "k":
                text = random.choice(("0", "-1", "0", "-1", "1"))
            elif hole == "K":
                text = random.choice(("0", "-1", "1", "None", "(0, 1)", "(0,)", "()", "(0, -1)"))
            elif hole == "d":
                text = repr(random.choice(DTYPES)) if random.random() < 0.7 else f"np.{random.choice(DTYPES)}"
                text = text.replace("np.bool", "bool")
            elif hole == "m":
                like = self.shape(target) if target else shape
                try:
                    masks = lambda v: type(v) is np.ndarray and v.dtype == bool and (like is None or v.shape == like)
                    text = self.pick(masks)
                except Missing:
                    same = lambda v: type(v) is np.ndarray and v.dtype.kind != "c" and (like is None or v.shape == like)
                    text = f"({self.pick(same)} {random.choice(('> 0', '> 1', '< 0.5', '< 1', '>= 0', '!= 0'))})"
            elif hole == "w":
                if not target:
                    target = self.pick(
                        lambda v: type(v) is np.ndarray and (v.flags.writeable or random.random() < 0.05)
                    )
                text = target
            elif hole == "key":
                text = self.fill(random.choice(KEYS), target)
            elif hole == "o":
                text = random.choice(
                    ("+", "-", "*", "*", "+", "-", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "+", "*")
                )
            elif hole == "count":
                text = str(random.randint(1, 4))
            elif hole == "st":
                text = self.statement(nested=True).replace("\n", "\n    ")
            else:
                raise AssertionError(hole)
            out += text

    def shape(self, text: str) -> tuple[int, ...] | None:
        """The shape of a variable's value."""
        return getattr(self.scope.get(text), "shape", None)

    # -- statements --------------------------------------------------------------------------------------------
    def expression(self, section: str) -> str:
        """An expression of one section."""
        random = self.random
        if section == "unary":
            return self.fill("np." + random.choice(UNARY) + "({x})")
        if section == "binary":
            name = random.choice(BINARY)
            extra = random.choice(("",) * 12 + (", dtype={d}", ", casting='same_kind'", ", where={m}, out={w}"))
            return self.fill(
                "np." + name + random.choice(("({x}, {y}", "({s}, {x}") + ("({x}, {y}",) * 4) + extra + ")"
            )
        if section == "sign":
            sign = random.choice(SIGNS[:7] * 3 + SIGNS)
            form = random.choice(
                ("{x} S {y}",) * 8 + ("{s} S {x}", "{x} S {s}", "-{x}", "~{x}", "abs({x})", "+{x}", "{x} S {y} S {s}")
            )
            return self.fill(form.replace("S", sign))
        if section == "reduction":
            return self.fill(self._reduction())
        table = {"view": VIEWS, "gather": GATHERS, "library": LIBRARY, "creation": CREATION, "scalar": SCALARS}[section]
        return self.fill(random.choice(table))

    def _reduction(self) -> str:
        random = self.random
        where = random.choice(("", "", "axis={k}", "axis={k}", "axis={K}", "{k}"))
        more = [where] if where else []
        if random.random() < 0.2:
            more.append("keepdims=True")
        if random.random() < 0.1:
            more.append("dtype={d}")
        if random.random() < 0.5:
            return "{x}." + random.choice(METHOD_REDUCTIONS) + "(" + ", ".join(more) + ")"
        return "np." + random.choice(REDUCTIONS) + "(" + ", ".join(["{x}", *more]) + ")"

    def statement(self, nested: bool = False) -> str:
        """One statement; sets no variable that is not there yet inside a block."""
        random = self.random
        section = random.choice(self.sections)
        while nested and section == "block":
            section = random.choice(self.sections)
        if section == "write":
            return self.fill(random.choice(WRITES))
        if section == "block":
            return self.fill(random.choice(BLOCKS))
        text = self.expression(section)
        if nested or random.random() < 0.08:  # a variable takes another value
            names = [name for name in self.scope if name.startswith("v")]
            if names:
                return f"{random.choice(names)} = {text}"
        name = f"v{self.count}"
        self.count += 1
        return f"{name} = {text}"

    def kept(self, text: str) -> bool:
        """Runs a statement in the scope; whether the program is to have it."""
        trial = dict(self.scope)
        if _explodes(text, trial) or CRASHES.search(text) or (NEGATES is not None and NEGATES.search(text)):
            return False
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore" if self.quiet else "warn"):
                warnings.simplefilter("ignore" if self.quiet or self.random.random() < 0.05 else "error")
                exec(compile(text, NAME, "exec"), {"np": np, **trial}, trial)
        except Exception:
            return False
        new = {name: value for name, value in trial.items() if self.scope.get(name) is not value}
        for value in new.values():
            if type(value) in (tuple, list) and len(value) > LONGEST:
                return False
            for item in value if type(value) in (tuple, list) else (value,):
                if isinstance(item, np.ndarray):
                    if item.size > LARGEST or item.dtype.kind not in "biufc":
                        return False
                    if item.size and item.dtype.kind in "fc" and not self.quiet and not np.isfinite(item).any():
                        return False
                    with np.errstate(all="ignore"):
                        if (
                            item.dtype.kind in "fc"
                            and not self.quiet
                            and np.abs(item[np.isfinite(item)]).max(initial=0) > 1e6
                        ):
                            return False
                elif type(item) is int and abs(item) > 1 << 40:
                    return False
        self.scope.update((k, v) for k, v in trial.items() if k not in ("j", "row"))
        return True

    def program(self) -> str:
        """The whole text."""
        random = self.random
        lines = self.inputs()
        text = "\n".join(lines) + "\n"
        with np.errstate(all="ignore"):
            values = namespace(text)["inputs"](0)
        self.scope = dict(zip(self.parameters, values, strict=True))
        wanted, tries = random.choice((3, 6, 10, 10, 15, 20, 30, 40)), 0
        while len(self.lines) < wanted and tries < 400:
            tries += 1
            count = self.count
            try:
                statement = self.statement()
                fine = self.kept(statement)
            except Missing:
                fine = False
            if fine:
                self.lines.append(statement)
            else:
                self.count = count
        if random.random() < 0.05:
            try:
                self.lines.append(f"e = {self.fill(random.choice(ERRORS))}")
            except Missing:
                pass
        results = [name for name in self.scope if name.startswith("v")]
        shown = random.sample(results, min(len(results), random.randint(1, 5)))
        if results and results[-1] not in shown:
            shown.append(results[-1])
        if random.random() < 0.2:
            shown.append(random.choice(self.parameters))
        body = "\n".join([*self.lines, f"return {', '.join(shown) if shown else 'x'}"])
        if self.quiet:
            body = "with np.errstate(all='ignore'):\n" + "\n".join("    " + line for line in body.splitlines())
        parameters = ", ".join(self.parameters)
        return text + f"\ndef f({parameters}):\n" + "\n".join("    " + line for line in body.splitlines()) + "\n"


# These make as many elements as two operands have together, multiplied, or more.
_SQUARES = ("outer", "tensordot", "diag", "kron", "vander", "meshgrid", "tri", "einsum", "cov", "corrcoef")


def _explodes(text: str, scope: dict[str, object]) -> bool:
    """Whether a statement could make an array of so many elements that running it, only to refuse it, takes seconds.

    Or ends the process, as NumPy's ``ufunc.at`` does with index arrays of more than 32 axes together with the array's.
    """
    names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]  # some of them twice
    shapes = [value.shape for name in names if isinstance(value := scope.get(name), np.ndarray)]
    sizes = sorted(map(math.prod, shapes))
    if ".at(" in text and sum(map(len, shapes)) > 32:
        return True
    if text.startswith(("for row in", "for j, row in")) and any(shape[:1] > (LONGEST,) for shape in shapes):
        return True
    if "apply_along_axis" in text and sizes[-1:] > [LONGEST * 10]:
        return True
    outer = any(word in text for word in _SQUARES)
    product = any(word in text for word in ("@", "matmul", "dot", "inner", "vec"))
    if outer or (product and sum(len(shape) > 1 for shape in shapes) > 1):
        return math.prod(sizes[-2:]) > MOST or sizes[-1:] > [LARGEST // 10]
    return sum(shape != (1,) * len(shape) for shape in shapes) > 1 and _together(shapes) > MOST


def _together(shapes: list[tuple[int, ...]]) -> int:
    """The elements of all shapes broadcast together, where they fit; an upper bound where only some do."""
    axes = itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return math.prod(max(axis) for axis in axes)


def program(random: Random, how: str | None = None, few: bool = False) -> str:
    """A program's text."""
    return Writer(random, how, few).program()
