"""Arguments that a method does not have and its function has, flags that are arrays, lists for arrays, and C's other
integer types: what NumPy makes of each, warnings included.
"""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

I, A, B = np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
X = np.arange(16.0).reshape(4, 4)
SIGNED = np.array([0.0, -0.0, 2.0, -3.0, np.inf, -np.inf, np.nan], "f4")
ROWS, ROW = [[1, 2], [3, 4]], [1, 2, 3, 4]

CASES = {
    "i.choose(a, b)": (I, A, B),
    "np.ndarray.choose(i, a, b)": (I, A, B),
    "i.choose(a, b, mode='wrap')": (I, A, B),
    "i.choose([a, b])": (I, A, B),
    "i.choose([a, b], None)": (I, A, B),
    "i.choose(choices=[a, b])": (I, A, B),
    "i.choose([a, b], out=a)": (I, A, B),
    "i.choose((a, b), mode='clip')": (I, A, B),
    "i.var(correction=1)": (A,),
    "i.std(correction=1)": (A,),
    "i.var(mean=np._NoValue)": (A,),
    "i.var(ddof=1)": (A,),
    "i.std(0, None, None, 1)": (A,),
    "(i + 1).clip(a_min=0, a_max=2)": (A,),
    "i.clip(0, 2)": (A,),
    "i.clip(min=0, max=2)": (A,),
    "i.clip(1)": (A,),
    "i.fill(value=1)": (A,),
    "i.fill(1)": (A,),
    "np.take_along_axis(i, np.array([[0], [1]]), 1)": (ROWS,),
    "np.diag_indices_from(i)": (ROWS,),
    "np.rollaxis(i, 1)[0] + 1": (ROWS,),
    "np.split(i, 2)[0] + 1": (ROW,),
    "np.split(i, [1])[0] + 1": (ROW,),
    "np.array_split(i, 2)[0] + 1": (ROW,),
    "np.hsplit(i, 2)[0] + 1": (ROW,),
    # What versions of NumPy answer in different ways.
    "(i + 1).swapaxes(axis1=0, axis2=1)": (X,),
    "np.array(i, ndmax=0)": (A,),
    "np.putmask(a=i, mask=i > 2, values=0)": (X,),
    "i.put(ind=[0], v=[1])": (A,),
    "i.put(indices=[0], values=[1])": (A,),
    "np.arange(5, start=1, stop=3)": (A,),
    "np.empty_like(prototype=i).shape": (A,),
    "np.float64(i), np.float32(i)": (np.ones(1),),
    "np.count_nonzero(i), np.count_nonzero(i > 1) + 1, np.count_nonzero(i, keepdims=True)": (A,),
    "i.round(), np.round(i) + 1, i.T.round(decimals=1)": (np.arange(6).reshape(2, 3),),
    "np.float32(1) * i ** np.float64(2), i ** np.int64(2), i ** np.float32(0.5)": (SIGNED,),
    "i ** np.float64(-1), i ** np.int8(1), i ** np.float64(0)": (SIGNED,),
    "i ** a, i ** b, i ** np.array(0.5)": (SIGNED, np.float64(2), np.array(2)),
    "(i + 0) ** 2.0, i ** np.float64(2), i ** np.uint8(2), i ** 0": (I.astype("i1"),),
    "i ** np.bool_(True), i ** np.array(True)": (SIGNED,),
    "i ** True, i ** False": (SIGNED.astype("c8"),),
    "np.dot(i, i), np.inner(i, i), np.tensordot(i, i)": (np.full((2, 2), 1e300),),
    "np.tril(i, np.int8(-128))": (X,),
    "np.triu(i, np.uint8(2))": (X,),
    "np.tril(i, 1), np.triu(i, -1), np.tril(i, True)": (X,),
    "np.cov(i, rowvar=np.False_)": (np.ones((1, 4)),),
    "np.cov(i, bias=np.False_)": (np.ones((4, 1)),),
    "np.cov(i, bias=np.array(0))": (np.ones((4, 1)),),
    "np.corrcoef(i, rowvar=np.False_)": (np.ones((1, 4)),),
    "np.cov(i), np.corrcoef(i), np.cov(i, ddof=0)": (X * X + np.eye(4),),
    "np.modf(1.5, np.zeros(2))": (A,),
    "np.modf(1.5, out=(np.zeros(3), None))": (A,),
    "np.divmod(5, 3, np.zeros((), int))": (A,),
    "i.data.nbytes": (np.uint32(3),),
    "np.array([2**63]).dtype.char, np.full(2, 2**63).dtype.char": (A,),
    "type(np.asarray(2**63)[()] + i)": (np.uint64(1),),
    "np.kron(i, 2**63).dtype.char": (np.arange(3, dtype="u8"),),
    "(i + np.ulonglong(3)).dtype.char": (np.arange(3, dtype="u8"),),
    "np.zeros_like(i, subok=None)": (A,),
    "np.zeros_like(i, subok=False)": (A,),
    "np.full_like(i, 1, subok='a')": (A,),
    "np.ones_like(i, float, 'K', [])": (A,),
    "i.astype('f4', subok=None)": (A,),
    "i.copy(0)": (np.float64(1),),
    "i.copy('F')": (np.float64(1),),
    **{f"{text} + 1": (X,) for text in (
        "np.lib.stride_tricks.sliding_window_view(i, True, axis=0)",
        "np.lib.stride_tricks.sliding_window_view(i, (2, False))",
        "np.cross(i[:, :3], i[:, :3], axis=(1,))", "np.cross(i[:, :3], i[:, :3], axisc=[1])",
        "np.cross(i[:3], i[:3], axis=0)", "i.trace(1 << 31)", "np.trace(i, -(1 << 40))", "i.diagonal(1 << 63)",
        "np.diag(i, -(1 << 31) - 1)", "np.linalg.diagonal(i, offset=1 << 31)", "np.triu(i, 1 << 63)",
        "np.tril(i, -(1 << 63))", "i.trace((1 << 31) - 1)", "np.triu(i, 1 << 40)",
    )},
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_what_numpy_makes_of_odd_arguments(text):
    names = ["i", "a", "b"][: len(CASES[text])]
    space = {"np": np}
    exec(f"def f({', '.join(names)}):\n    r = {text}\n    return r, {', '.join(names)}", space)
    check(space["f"], lambda: [x.copy() if isinstance(x, np.ndarray) else x for x in CASES[text]])
