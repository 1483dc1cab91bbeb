"""Slices in scalar loops whose bounds depend on data: their items, sums, means and products."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from differential import check

import tcompile
from tests.capture.test_scalar_loops import ops

RNG = np.random.default_rng(3)
LENGTHS = [0, 1, 7, 8, 9, 0, 127, 128, 129, 136, 200, 1000, 3, 5000, 17]
INDPTR = np.concatenate([[0], np.cumsum(LENGTHS)])
VALUES = RNG.standard_normal(INDPTR[-1]) * 2.0 ** RNG.integers(-9, 9, INDPTR[-1])
COLUMNS = RNG.integers(0, 300, INDPTR[-1])


def run(text, *arguments, exact=True, scalar=True):
    """Compares a function ``f(row, cols, v, x, out)`` of some lines in a loop over ``i``."""
    lines = ["def f(row, cols, v, x, out):", "    for i in range(len(out)):"]
    names = {"np": np}
    exec("\n".join([*lines, *(f"        {line}" for line in text.splitlines()), "    return out"]), names)
    compiled = tcompile.compile(names["f"])
    given = arguments or (INDPTR, COLUMNS, VALUES, RNG.random(300), np.zeros(len(LENGTHS)))
    for _ in range(2):
        ours, plain = (function(*(a.copy() for a in given)) for function in (compiled, names["f"]))
        if exact:
            assert ours.tobytes() == plain.tobytes()
        else:
            np.testing.assert_allclose(ours, plain, rtol=1e-12, atol=1e-12)
    assert ("scalar_loop" in ops(compiled)) == scalar
    return compiled


@pytest.mark.parametrize("text", [
    "out[i] = v[row[i]:row[i + 1]].sum()",
    "out[i] = np.sum(v[row[i]:row[i + 1]])",
    "out[i] = len(v[row[i]:row[i + 1]])",
    "s = v[row[i]:row[i + 1]]\nout[i] = s.mean() if len(s) else -1.0",
    "out[i] = v[row[i] + 5:].sum() + v[:row[i]].sum()",
    "out[i] = v[-row[i + 1]:-row[i]].sum() + v[i - 3:i + 3].sum()", "out[i] = v[row[i]:row[i] + 10 ** 9].size",
    "for w in v[row[i]:row[i + 1]]:\n    out[i] = out[i] * 0.5 + w", "out[i] = x[cols[row[i]:row[i + 1]]].sum()",
    "s = v[row[i]:row[i + 1]]\nfor k in range(len(s)):\n    out[i] += s[k] - s[-1] * s[k - len(s)]",
    "c = cols[row[i]:row[i + 1]]\nfor k in range(len(c)):\n    out[i] += x[c[k]]",
    "for j, w in enumerate(v[row[i]:row[i + 1]]):\n    out[i] += w * j", "out[i] = v[row[i]:row[i + 1]].shape[0]",
    "v[row[i]] = i\nout[i] = v[row[i]:row[i + 1] + 1].sum()",
    "s = v[row[i]:row[i + 1] + 2]\nv[row[i]] = 0.5 * i\nout[i] = s[0]",
])  # fmt: skip
def test_slices(text):
    run(text, *(part if part is not VALUES else np.append(VALUES, [1.0, 2.0]) for part in
                (INDPTR, COLUMNS, VALUES, RNG.random(300), np.zeros(len(LENGTHS)))))  # fmt: skip


@pytest.mark.parametrize("text", [
    "out[i] = v[row[i]:row[i + 1]] @ x[cols[row[i]:row[i + 1]]]",
    "out[i] = np.dot(v[row[i]:row[i + 1]], v[row[i]:row[i + 1]])",
    "c = cols[row[i]:row[i + 1]]\nout[i] = v[row[i]:row[i + 1]].dot(x[c])",
])  # fmt: skip
def test_products(text):
    run(text, exact=False)


def test_rows_and_strides():
    a = RNG.standard_normal((40, 400))
    row = RNG.integers(0, 200, 41)
    for array in (a, a[:, ::2], np.asfortranarray(a), a[::-1, ::-1]):
        run("out[i] = v[i, row[i]:row[i] + i * 9].sum() + v[i][1:row[i]].sum()", row, row, array, row, np.zeros(40))
        run("out[i] = v[i, -3:].sum() + v[-1, :4][1]", row, row, array, row, np.zeros(40))


@pytest.mark.parametrize("text", [
    "out[i] = v[row[i]:row[i + 1]][8]",
    "out[i] = x[cols[row[i]:row[i + 1]] * 9].sum()",
    "out[i] = v[row[i]:row[i + 1]].mean()",
    "out[i] = v[row[i]:row[i + 1]] @ v[row[i]:row[i + 2]]",
    "out[i] = x[cols[row[i]:row[i + 1]] + 0][0]",
    "out[i] = v[0.5:i].sum()",
    "out[i] = x[cols[row[i] + 300:]].sum()",
    "out[i] = v[row[i]:row[i + 1]].sum(0)",
    "out[i] = cols[row[i]:row[i + 1]].sum()",
    "out[i] = v[row[i]:row[i + 1]:2].sum()",
    "out[i] = v[row[i]:row[i + 1]].max(initial=0)",
    "x[i] = 2.0\nout[i] = x[cols[:4]].sum()",
    "s = x[cols[:9]]\ncols[0] = i\nout[i] = s[0]",
    "s = x[cols[row[i]:row[i + 1]]]\nout[i] = s[0] if len(s) else 0",
    "s = x[cols[row[i]:row[i + 1]]]\nif i % 2: out[i] = s.sum()",
    "s = x[cols[:9]]\nx[:] = 0.0\nout[i] = s[0]", "s = x[cols[:9]]\nx[cols[0]] = i\nout[i] = s[0]",
])  # fmt: skip
def test_what_raises_or_is_something_else(text):
    names = {"np": np}
    body = [f"        {line}" for line in text.splitlines()]
    exec("\n".join(["def f(row, cols, v, x, out):", "    for i in range(12):", *body, "    return out, i"]), names)
    given = (INDPTR, COLUMNS, VALUES, np.arange(250.0), np.zeros(len(LENGTHS)))

    def outcome(function):
        arguments = [part.copy() for part in given]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                return repr(function(*arguments)), arguments[-1].tobytes(), arguments[3].tobytes()
            except (IndexError, ValueError, TypeError) as error:
                return repr(error), arguments[-1].tobytes()

    compiled = tcompile.compile(names["f"])
    for _ in range(3):
        assert outcome(compiled) == outcome(names["f"])


def test_a_slice_that_leaves_the_loop():
    def f(v, n):
        s = v[:1]
        for i in range(n):
            s = v[i : i + 3]
        return s, s.base is v

    check(f, lambda: (np.arange(50.0), 30), ulp=0, backends=["llvm"])


def test_products_keep_to_numpys_bits_if_asked():
    def f(row, v, out):
        for i in range(len(out)):
            out[i] = v[row[i] : row[i + 1]] @ v[row[i] : row[i + 1]]
        return out

    compiled = tcompile.compile(f, options={"exact": True})
    given = INDPTR, VALUES, np.zeros(len(LENGTHS))
    assert compiled(*given).tobytes() == f(*given).tobytes()


def test_gradients_of_sums_of_slices():
    def f(v, row, x, cols):
        total = 0.0
        for i in range(len(row) - 1):
            total += v[row[i] : row[i + 1]].sum() ** 2 + v[row[i] : row[i + 1]] @ x[cols[row[i] : row[i + 1]]] * i
        return total

    row = np.concatenate([[0], np.cumsum(RNG.integers(0, 20, 30))])
    v, cols, x = RNG.standard_normal(row[-1]), RNG.integers(0, 5, row[-1]), RNG.standard_normal(5)
    of_v, of_x = (tcompile.grad(f, argnums=k)(v, row, x, cols) for k in (0, 2))
    lengths = np.diff(row)
    which = np.repeat(np.arange(30), lengths)
    sums = np.array([v[row[i] : row[i + 1]].sum() for i in range(30)])
    np.testing.assert_allclose(of_v, 2 * sums[which] + which * x[cols], rtol=1e-12)
    np.testing.assert_allclose(of_x, np.bincount(cols, which * v, 5), rtol=1e-12)
