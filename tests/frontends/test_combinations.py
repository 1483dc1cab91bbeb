"""Statements of one operation: keys of every kind with values of every kind, operators with operands of every kind.

Each is compared with plain Python: all assignments, and some of all other combinations.
"""

import itertools
from random import Random

import numpy as np
import pytest
from differential import check

PLACES = (
    "x[0]", "x[-1]", "x[i]", "x[i - 1]", "x[k]", "x[0, 1]", "x[i, k]", "x[...]", "x[..., i]", "x[i, ...]", "x[:]",
    "x[1:]", "x[::-1]", "x[:, i]", "x[1:, k]", "x[None, 0]", "x[i, None]", "x[[0, 1]]", "x[i, [0, 1]]", "x[[0, 1], i]",
    "x[p]", "x[p, i]", "x[p, p]", "x[p[:, None], p]", "x[m]", "x[m[:, 0]]", "x[0, m[0]]", "x[np.asarray(i)]",
    "x[True]", "x[m[0, 0]]", "x[np.where(m)]", "x[()]", "x[0:0]", "x[[]]", "x[p[:0]]", "x[x > 2]", "x.T[i]",
    "x.flat[i]", "x.flat[1:]", "x.ravel()[i]", "x[i][k]", "x[i:][0]", "x.view()[k]", "w[i]", "w[p[0]]", "w[:, 0]",
    "w[p]", "y[i]", "y[y.argmax()]", "m[i]", "m[i, k]", "o[()]", "o[...]",
)  # fmt: skip
VALUES = (
    "1", "300", "-1", "True", "1.5", "1e300", "float('nan')", "2j", "s", "s * 1.0", "s + 300", "s.astype('u1')",
    "np.float32(2.5)", "np.int64(300)", "x[0]", "x[0, 0]", "x[:, 0]", "x", "x.T", "x[::-1]", "x * 100", "[1, 2]",
    "[s, 2]", "[[1], [2]]", "(1.5, 2)", "y", "y[:1]", "np.asarray(s + 300)", "x.sum()", "x.mean()", "x.any()", "None",
    "'a'", "x[i]", "[x[0, 0], x[1, 1]]", "np.array([[7]])", "y > 0", "x[m]", "x[p]", "[]",
)  # fmt: skip
SIGNS = ("=", "=", "=", "+=", "*=", "-=", "//=", "/=", "&=", "**=")
FUNCTIONS = (
    "x.put({at}, {v})", "np.put(x, p, {v}, mode='clip')", "np.place(x, m, {v})", "np.putmask(x, m, {v})",
    "np.copyto(x, {v})", "np.copyto(x, {v}, casting='unsafe', where=m)", "x.fill({v})", "np.fill_diagonal(x, {v})",
    "np.put_along_axis(x, p[:, None], {v}, 1)", "np.add.at(x, {at}, {v})", "np.maximum.at(x, p, {v})",
    "np.add(x, {v}, out=x, casting='unsafe')", "np.clip(x, {v}, None, out=x)", "x.__setitem__({at}, {v})",
    "x.__iadd__({v})", "z = np.full(2, {v}, dtype=x.dtype)", "z = np.full_like(x, {v})", "z = np.array({v}, x.dtype)",
    "z = np.asarray([{v}], 'i1')", "z = np.where(m, {v}, x)", "z = np.append(y, {v})", "z = x.astype('i1'); z[i] = {v}",
)  # fmt: skip
WRITES = [f"{place} {sign} {value}" for place, sign, value in itertools.product(PLACES, SIGNS, VALUES)]
WRITES += [text.format(at=at, v=value) for text, value, at in itertools.product(FUNCTIONS, VALUES, ("0", "i", "p"))]


def arguments(dtype):
    """An array, a column of it, an array without axes, numbers of NumPy's, and arrays of places."""
    x = (np.arange(4).reshape(2, 2) + 1).astype(dtype)
    places = np.array([1, 0])
    return (x, x[:, :1].copy(), np.array(2, dtype), np.int64(1), places[1], np.int64(3), np.array([5, 6]), places,
            np.array([[True, False], [True, True]]))  # fmt: skip


OPERANDS = (
    "x", "x[0]", "x[0, 0]", "x[i]", "x[i, k]", "x.T", "x[:, ::-1]", "w", "o", "s", "i", "y", "y[:1]", "np.asarray(s)",
    "x.sum()", "x.any()", "x.mean()", "x > 1", "x.max(axis=0)", "abs(x[0, 0])", "len(y)", "x.shape", "float(s)",
    "int(s)", "x.astype('f2')", "x[0, 0].real", "y.mean()", "m", "m[0, 0]", "p", "x.size", "s.astype('u1')",
    "y[0].astype('f4')", "bool(m[0, 0])",
)  # fmt: skip
OTHERS = (
    *OPERANDS, "2", "True", "1.5", "2j", "-1", "0", "[1, 2]", "(1, 2)", "[[1], [2]]", "[]", "'ab'", "None",
    "{1: 2}", "{1}", "range(2)", "np.int8(3)", "np.uint64(3)", "np.float16(1.5)", "np.longdouble(2)",
    "np.complex64(1j)", "np.bool_(True)", "np.array([2], 'u1')", "np.array([], 'f4')", "slice(1)", "...",
    "np.timedelta64(1, 'D')", "np.array(['a', 'b'])", "np.nan", "type(x)", "[x[0, 0], 2]", "(s,)",
)  # fmt: skip
OPERATORS = (
    "+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">=", "in", "is",
    "and", "or",
)  # fmt: skip
OPERATIONS = [
    text.format(one, sign, other)
    for one, other, sign in itertools.product(OPERANDS, OTHERS, OPERATORS)
    for text in ("z = ({0}) {1} ({2})", "z = ({2}) {1} ({0})", "z = 1 if ({0}) {1} ({2}) else 2")
]
OPERATIONS += [
    f"z = {one}; z {sign}= {other}" for one, other, sign in itertools.product(OPERANDS, OTHERS, OPERATORS[:13])
]


def same(statement, dtype):
    names = {"np": np}
    exec(f"def f(x, w, o, i, k, s, y, p, m):\n    z = None\n    {statement}\n    return x + 0, z\n", names)
    try:
        check(names["f"], lambda: arguments(dtype), backends=("eager",))
    except AssertionError as error:
        raise AssertionError(f"{statement}, of {dtype}: {error}") from error


@pytest.mark.parametrize("place", PLACES)
def test_assignments(place):
    """Into the integers that hold least."""
    for value in VALUES:
        same(f"{place} = {value}", "i1")


@pytest.mark.parametrize("part", range(12))
@pytest.mark.parametrize("statements", [WRITES, OPERATIONS], ids=["writes", "operators"])
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_statements(statements, part):
    random = Random(part)
    for statement in random.sample(statements, 120):
        same(statement, random.choice(["i1", "u2", "i8", "f2", "f4", "f8", "c16", "?"]))
