"""`np.einsum` of one and of two arrays: views, sums and products, beside NumPy's own loops."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tests.differential import check

SIZES = {"i": 3, "j": 4, "k": 5, "l": 2, "b": 6}


def operands(subscripts, dtype="f8", order="C", times=1):
    random = np.random.default_rng(1)
    terms = subscripts.partition("->")[0].split(",")
    made = [random.uniform(1, 4, [SIZES[label] * times for label in term]).astype(dtype, order=order) for term in terms]
    return [a + 1j * a[::-1] if a.dtype.kind == "c" else a for a in made]


FUSED = {
    "ij,jk->ik": "matmul", "ij,kj->ik": "matmul", "ji,jk->ik": "matmul", "ij,jk": "matmul",
    "ij,j->i": "matmul", "i,ij->j": "matmul", "bij,bjk->bik": "matmul", "bij,bkj->bik": "matmul", "ij,i->j": "matmul",
    "i,i->": "sum", "ij,ij->i": "sum", "ij,ij->": "sum", "ij,ij->j": "sum", "bij,bij->b": "sum", "ij->i": "sum",
    "ij->": "sum", "ijk->ki": "sum", "ii->": "sum", "ij,ji->": "sum", "bij,bj->bi": "sum", "ijk,kl->ijl": "matmul",
    "i,j->ij": "multiply", "ij,ij->ij": "multiply", "ij,i->ij": "multiply", "i,jk->ijk": "multiply",
    "ij->ji": "permute_dims", "ijk->kij": "permute_dims", "ij->ij": "permute_dims",
}  # fmt: skip
CALLED = ("bij,bj->b", "ij,jk,kl->il", "ij,k->i", "ij,jk->", "ij,jk->ki", "ijk,jkl->il")


@pytest.mark.parametrize("subscripts", [*FUSED, *CALLED, "ii->i", "iij->ij"])
def test_einsum(subscripts):
    def f(*arrays):
        return np.einsum(subscripts, *arrays)

    for dtype, order in (("f8", "C"), ("f8", "F"), ("f4", "C"), ("c16", "C"), ("i4", "C"), ("?", "C")):
        check(f, lambda dtype=dtype, order=order: operands(subscripts, dtype, order), backends=["llvm"])
    compiled = tcompile.compile(f)
    compiled(*operands(subscripts))
    made = {node.op.name for graph in compiled.graphs for node in graph.nodes}
    if subscripts in FUSED:
        assert FUSED[subscripts] in made
        assert "call" not in made
    elif subscripts in CALLED:
        assert "call" in made


@pytest.mark.parametrize("subscripts", ["bij,kbj->kbi", "kbj,bij->kbi"])
def test_large_products_in_another_order(subscripts):
    """A stack of products of matrices, and a copy."""

    def f(*arrays):
        return np.einsum(subscripts, *arrays)

    for dtype, order in (("f8", "C"), ("f8", "F"), ("f4", "C"), ("c16", "C"), ("i4", "C"), ("?", "C")):
        check(f, lambda dtype=dtype, order=order: operands(subscripts, dtype, order, times=6), backends=["llvm"])
    compiled = tcompile.compile(f)
    compiled(*operands(subscripts, times=6))
    made = [node.op.name for graph in compiled.graphs for node in graph.nodes]
    assert "matmul" in made
    assert "copy_c" in made
    assert "call" not in made


@pytest.mark.parametrize("how", [True, "greedy", "optimal", ["einsum_path", (0, 1), (0, 1)], ["einsum_path", (0, 1)]])
@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,jk,kl->il", "ij,jk,kl->li", "ijk,jl,kl->il", "ij,ij,ij->i"])
def test_optimized(subscripts, how):
    """One call of NumPy's, which finds the order of the products itself."""

    def f(*arrays):
        return np.einsum(subscripts, *arrays, optimize=how) + 1

    compiled = check(f, lambda: operands(subscripts), backends=["llvm"])[-1]
    if isinstance(how, list):
        check(f, lambda: operands(subscripts, order="F"), backends=["llvm"])
    else:
        assert not compiled.breaks


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,ij->i", "ij->i"])
def test_exact(subscripts):
    def f(*arrays):
        return np.einsum(subscripts, *arrays)

    check(f, lambda: operands(subscripts), backends=["llvm"], exact=True, options={"exact": True})


@pytest.mark.parametrize(
    "make",
    [
        lambda x: (np.einsum, "ij,jk", x, x), lambda x: (np.einsum, "ij", x, x), lambda x: (np.einsum, "...j->...", x),
        lambda x: (np.einsum, "...j,...j", x, x), lambda x: (np.einsum, x, [0, 1], [1]),
        lambda x: (np.einsum, "ij,j", x, 2),
        lambda x: (np.einsum, "ij,ij->i", x, x.astype("f4")), lambda x: (np.einsum, "ij,ij->i", x[:1], x),
    ],
)  # fmt: skip
def test_other_arguments(make):
    function, *args = make(np.arange(12.0).reshape(3, 4))
    check(lambda *given: function(*given), lambda: list(args), backends=["llvm"])


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,ij->i", "ij->i"])
def test_no_warning_of_infinities(subscripts):
    def f(*arrays):
        return np.einsum(subscripts, *arrays)

    def special():
        made = operands(subscripts)
        made[0][0] = [np.inf, -np.inf, 1e308, 1e308]
        return made

    check(f, special)


@pytest.mark.parametrize("times", [1, 16])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("subscripts", [name for name in FUSED if "," in name])
def test_infinities_of_complex_numbers(subscripts, dtype, times):
    def f(*arrays):
        with np.errstate(all="ignore"):  # else what signals is computed again
            return np.einsum(subscripts, *arrays)

    def special():
        made = operands(subscripts, dtype, times=times if "b" not in subscripts else min(times, 8))
        made[0].flat[0] = complex(np.inf, 0.5)
        return made

    check(f, special)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("subscripts", [name for name, op in FUSED.items() if op == "matmul"])
def test_products_of_complex_matrices(subscripts, dtype, order):
    """What is finite is BLAS's: the loops take fifteen times as long for matrices of 64 x 64. Nothing is warned of."""

    def f(*arrays):
        return np.einsum(subscripts, *arrays), np.float64(1) + 1

    def large():
        return operands(subscripts, dtype, order, times=8)

    def overflowing():
        made = large()
        made[0].flat[0] = made[1].flat[0] = np.finfo(dtype).max
        return made

    compiled = check(f, large)[-1]
    check(f, overflowing)
    assert not compiled.breaks
    if order == "C":
        targets = [node.attrs["target"] for graph in compiled.graphs for node in graph.nodes if node.op.name == "call"]
        assert targets == ["tcompile.frontends.numpy.einsum.by_blas"]
