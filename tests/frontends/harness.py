"""Drives the NumPy frontend without capture: a tiny tracing proxy, and a comparison with NumPy itself.

Input: a function of arrays.
Output: an assertion that its graph, run by NumPy, gives values, dtypes, shapes, kinds and memory orders of the plain
call.
Why: a frontend's fault is found without the rest of the compiler.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

from tcompile.frontends.base import Builder, CannotCapture, Read, Selected, Traced
from tcompile.frontends.numpy import NumPyFrontend
from tcompile.frontends.numpy.quiet import Worded

FRONTEND = NumPyFrontend()


class Proxy:
    """A traced value that Python code can compute with."""

    __array_ufunc__ = None

    def __init__(self, b, traced):
        self.b, self.traced = b, traced

    def __getattr__(self, name):
        if FRONTEND.has_method(self.traced, name):
            return lambda *a, **k: wrap(self.b, FRONTEND.method(self.b, self.traced, name, unwrap(a), unwrap(k)))
        return wrap(self.b, FRONTEND.attribute(self.b, self.traced, name))

    def __getitem__(self, key):
        return wrap(self.b, FRONTEND.getitem(self.b, self.traced, unwrap(key)))

    def __abs__(self):
        return wrap(self.b, FRONTEND.method(self.b, self.traced, "__abs__", (), {}))

    def __len__(self):
        return FRONTEND.method(self.b, self.traced, "__len__", (), {})


def _operators():
    signs = {
        "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
        "matmul": "@",
        "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    }  # fmt: skip
    for name, sign in signs.items():
        setattr(Proxy, f"__{name}__", lambda s, o, g=sign: wrap(s.b, FRONTEND.binary(s.b, g, s.traced, unwrap(o))))
        setattr(
            Proxy,
            f"__r{name}__",
            lambda s, o, g=sign: wrap(s.b, FRONTEND.binary(s.b, g, unwrap(o), s.traced)),
        )
        setattr(
            Proxy,
            f"__i{name}__",
            lambda s, o, g=sign: wrap(s.b, FRONTEND.inplace(s.b, g, s.traced, unwrap(o))),
        )
    for name, sign in {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}.items():
        setattr(Proxy, f"__{name}__", lambda s, o, g=sign: wrap(s.b, FRONTEND.binary(s.b, g, s.traced, unwrap(o))))
    for name, sign in {"neg": "-", "pos": "+", "invert": "~"}.items():
        setattr(Proxy, f"__{name}__", lambda s, g=sign: wrap(s.b, FRONTEND.unary(s.b, g, s.traced)))


_operators()


def unwrap(value: Any) -> Any:
    if isinstance(value, Proxy):
        return value.traced
    if isinstance(value, Function):
        return value.function
    if type(value) in (tuple, list):
        return type(value)(unwrap(v) for v in value)
    if isinstance(value, dict):
        return {k: unwrap(v) for k, v in value.items()}
    return value


def wrap(b, value):
    if isinstance(value, Traced):
        return Proxy(b, value)
    if type(value) in (tuple, list):
        return type(value)(wrap(b, v) for v in value)
    return value


class Function:
    """A NumPy function or scalar type, as the function under test sees it."""

    function: Any = None


class Namespace:
    """``np`` for a function under test: calls go to the frontend."""

    def __init__(self, b, module=np):
        self._b, self._module = b, module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if type(found) is type(np):
            return Namespace(self._b, found)
        if not callable(found):
            return found
        assert FRONTEND.knows(found)

        class Call(Function):
            function = found

            def __call__(_, *a, **k):
                return wrap(self._b, FRONTEND.call(self._b, found, unwrap(a), unwrap(k)))

            def __getattr__(_, attribute):
                method = getattr(found, attribute)
                return lambda *a, **k: wrap(self._b, FRONTEND.call(self._b, method, unwrap(a), unwrap(k)))

        return Call()


def trace(function, *args):
    """The builder and the results of ``function(np, *args)``; arrays and NumPy scalars become inputs."""
    b = Builder()
    traced = []
    for i, a in enumerate(args):
        type = FRONTEND.type_of(a)
        traced.append(
            a if type is None else Proxy(b, Traced(b.graph.input(f"x{i}", type), scalar=FRONTEND.is_scalar(a)))
        )
    return b, unwrap(function(Namespace(b), *traced))


def leaves(value):
    if isinstance(value, tuple | list):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


def strides_seen(array):
    return [s for s, n in zip(array.strides, array.shape) if n != 1]


def check(function, *args, exact=True, zeros=True):
    """Asserts that ``function(np, *args)`` means in the graph what NumPy does; returns the graph, or None if
    refused, or if Python's part of the function raises. ``zeros`` says that the signs of zeros count. What is not
    ``exact`` may warn where NumPy does not, for plain Python then does it again."""
    if isinstance(function, str):
        function = eval(f"lambda np, x=None, y=None, z=None: ({function})")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            b, results = trace(function, *args)
    except CannotCapture:
        return None
    except Exception as error:  # as ``np.unstack(x)[0]`` does where there is nothing to unstack
        with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"), np.errstate(all="ignore"):
            function(np, *args)
        return None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            expected = function(np, *args)
        except Exception as error:
            expected = error
    if isinstance(expected, Exception):
        traced = [r.node for r in leaves(results) if isinstance(r, Traced)]
        b.graph.outputs = traced
        with pytest.raises(type(expected)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            b.graph(*inputs_of(args))
        return b.graph
    b.graph.outputs = [
        node
        for r in leaves(results) if isinstance(r, Traced | Read | Selected)
        for node in ((r.whole, r.mask) if isinstance(r, Selected) else (r.node,))
    ]  # fmt: skip
    with warnings.catch_warnings(record=True) as also:
        warnings.simplefilter("always")
        checked = {}

        def spy(graph, values):
            if graph is b.graph:
                checked.update((node, values[node]) for node in graph.nodes)

        from tcompile.graph.evaluate import run

        try:
            outputs = run(b.graph, inputs_of(args), spy=spy)
        except Worded:
            assert seen, "raised where NumPy warns, and NumPy does not"
            return b.graph
    for node, value in checked.items():
        check_type(node, value)
    assert kinds(seen) == kinds(also) or (not exact and kinds(seen) < kinds(also)), (kinds(seen), kinds(also))
    found = iter(outputs)
    want = leaves(expected)
    assert len(want) == len(leaves(results))
    for result, plain in zip(leaves(results), want):
        if isinstance(result, Read):
            assert type(plain) is result.cls and result.cls(next(found)) == plain
            continue
        if isinstance(result, Selected):
            whole, mask = next(found), next(found)
            np.testing.assert_array_equal(whole[mask], plain, strict=True)
            continue
        if not isinstance(result, Traced):
            assert type(result) is type(plain) or (isinstance(result, np.dtype) and result == plain), (
                result,
                plain,
            )
            assert result == plain or result != result
            continue
        compare(result, next(found), plain, exact, args, zeros)
    return b.graph


def inputs_of(args):
    return [a for a in args if FRONTEND.type_of(a) is not None]


def kinds(seen):
    """The floating-point conditions that were warned about; which operation names them may differ."""
    return {
        str(w.message).split(" encountered")[0] if "encountered" in str(w.message) else str(w.message) for w in seen
    }


def check_type(node, value):
    """A node's type says what NumPy made."""
    if isinstance(node.type, tuple):
        return
    value = np.asarray(value)
    assert value.dtype == node.tensor.dtype, (node, value.dtype, node.type)
    assert value.shape == node.tensor.shape, (node, value.shape, node.type)
    if value.size == 0:
        return
    order = sorted((i for i, n in enumerate(value.shape) if n != 1), key=lambda i: -abs(value.strides[i]))
    kept = [i for i in node.tensor.layout.order if value.shape[i] != 1]
    assert [abs(value.strides[i]) for i in kept] == [abs(value.strides[i]) for i in order], (
        node,
        value.strides,
        node.type,
    )
    if node.tensor.layout.dense:
        want = [s * value.itemsize for s in node.tensor.strides()]
        assert [w for w, n in zip(want, value.shape) if n != 1] == strides_seen(value), (
            node,
            value.strides,
            node.type,
        )
    assert node.tensor.c_contiguous <= value.flags.c_contiguous


def compare(result, found, plain, exact, args, zeros=True):
    assert isinstance(plain, np.generic | np.ndarray), f"traced, but plainly {plain!r}"
    assert result.scalar == isinstance(plain, np.generic), (result, type(plain))
    array, want = np.asarray(found), np.asarray(plain)
    assert array.dtype == want.dtype, (array.dtype, want.dtype)
    assert result.type.dtype == want.dtype
    assert array.shape == want.shape == result.type.shape, (array.shape, want.shape)
    if exact:
        np.testing.assert_array_equal(array, want)
        if want.dtype.kind == "f" and zeros:
            np.testing.assert_array_equal(np.signbit(array) & ~np.isnan(array), np.signbit(want) & ~np.isnan(want))
    else:
        np.testing.assert_allclose(array, want, rtol=1e-5)
    if isinstance(plain, np.ndarray) and want.size:
        check_type(result.node, want)
        assert strides_seen(array) == strides_seen(want), (array.strides, want.strides)
        for i, a in enumerate(inputs_of(args)):
            if isinstance(a, np.ndarray):
                assert np.shares_memory(a, array) == np.shares_memory(a, plain), f"view or copy of input {i}"
                assert (result.node.op.name == "input" and array is a) == (plain is a), f"identity with input {i}"
