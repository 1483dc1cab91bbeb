"""``np.einsum``: of one array a view or a sum, of two a product; of more, and with other sums, one call.

Input: subscripts and arrays.
Output: view ops, products and reductions; one call if their result would have another memory order than NumPy's.
Why: products and sums fuse.

NumPy's loops add one product after the other, so a sum may differ in its last bits, as elsewhere; ``exact`` keeps the
call. For complex arrays a matrix product gives NaNs where these loops keep an infinity; a fused product gives an
infinity where they give NaN. There the graph calls ``by_blas``, which runs the loops if a result is not finite, or
keeps the call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import reductions, ufuncs
from tcompile.frontends.numpy.library import RULES, Shape, library, refuse, shape_of, type_of_call
from tcompile.frontends.numpy.linear import agree, matmul
from tcompile.frontends.numpy.registry import function, refuse_unless
from tcompile.frontends.numpy.shape import diagonal, transpose
from tcompile.frontends.numpy.values import array, call, same_order, sizes_equal
from tcompile.graph import ops
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import Size, hint, is_one

# number of multiplications from which BLAS is faster than the loops, even with a check of its result
_SMALL_PRODUCT = 4096


@function("einsum")
def einsum(
    b: Builder,
    subscripts: Any,
    /,
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    order: Any = "K",
    casting: Any = "safe",
) -> Traced:
    """``np.einsum`` of one or two arrays of one dtype."""
    refuse_unless(
        "einsum", out=(out, (None,)), optimize=(optimize, (False,)), dtype=(dtype, (None,)), order=(order, ("K",)),
        casting=(casting, ("safe",)),
    )  # fmt: skip
    if not isinstance(subscripts, str):
        raise CannotCapture("unsupported-argument", "einsum without a subscript string")
    parts = [array(b, x) for x in operands]
    if not 1 <= len(parts) <= 2 or not all(x.type.ndim for x in parts):
        raise CannotCapture("unsupported-argument", "einsum of more arrays, or of numbers")
    found = parts[0].type.dtype
    if any(x.type.dtype != found for x in parts) or found.name in ("bool", "float16"):
        raise CannotCapture("unsupported-dtype", "einsum of these dtypes")
    terms, wanted = _subscripts(subscripts, [x.type.ndim for x in parts])
    called = None if _is_view(terms, wanted) else type_of_call(b, RULES[np.einsum], [subscripts, *operands], {})
    made = _of_one(b, parts[0], terms[0], wanted) if len(parts) == 1 else _of_two(b, parts, terms, wanted)
    if called is not None and (
        made.scalar != called.scalar or not same_order(made.type, called.type.layout) or made.type.dtype != found
    ):
        raise CannotCapture("memory-order", "einsum gives its result another memory order than a product")
    return made if len(parts) == 1 or found.kind != "c" else _of_complex(b, made, subscripts, parts)


def _is_view(terms: list[list[str]], wanted: list[str]) -> bool:
    return len(terms) == 1 and set(terms[0]) == set(wanted)


def _exactly(b: Builder, x: Traced) -> None:
    if b.exact and x.type.dtype.kind in "fc":
        raise CannotCapture("unsupported-argument", "a sum in another order than einsum adds in")


def _of_one(b: Builder, x: Traced, term: list[str], wanted: list[str]) -> Traced:
    """A view with its axes in another order, a trace, or a sum over the other axes."""
    if len(set(term)) < len(term):
        if len(term) != 2 or wanted:  # NumPy's diagonal can be written to
            raise CannotCapture("unsupported-argument", "einsum with a label repeated")
        _exactly(b, x)
        return reductions.sum(b, diagonal(b, x))
    summed = [label for label in term if label not in wanted]
    if not summed:
        return transpose(b, x, tuple(term.index(label) for label in wanted))
    _exactly(b, x)
    return _summed(b, _arranged(b, x, term, [*wanted, *summed]), len(wanted))


def _summed(b: Builder, x: Traced, kept: int) -> Traced:
    """The sum over all axes but the first ones."""
    return reductions.sum(b, x, tuple(range(kept, x.type.ndim)), x.type.dtype)


def _of_two(b: Builder, parts: list[Traced], terms: list[list[str]], wanted: list[str]) -> Traced:
    """Builds a product of matrices, or of elements, with its sums."""
    if any(len(set(term)) < len(term) for term in terms):
        raise CannotCapture("unsupported-argument", "einsum with a label repeated")
    sizes: dict[str, Size] = {}
    for part, term in zip(parts, terms, strict=True):
        for label, size in zip(term, part.type.shape, strict=True):
            if not sizes_equal(sizes.setdefault(label, size), size):
                raise CannotCapture("unsupported-argument", "einsum of sizes that are broadcast")
    shared = [label for label in terms[0] if label in terms[1]]
    summed = [label for label in sizes if label not in wanted]
    if not set(summed) <= set(shared):
        raise CannotCapture("unsupported-argument", "einsum that sums one array by itself")
    if summed:
        _exactly(b, parts[0])
    alone = [[label for label in term if label not in shared] for term in terms]
    batch = [label for label in wanted if label in shared]
    if len(summed) == 1 and (all(alone) or (any(alone) and not batch)):
        for first, second in ((0, 1), (1, 0)):
            rows, columns = alone[first], alone[second]
            if wanted == [*batch, *rows, *columns] and len(columns) <= 1 and (len(rows) <= 1 or not batch):
                left = _arranged(b, parts[first], terms[first], [*batch, *rows, *summed])
                right = _arranged(b, parts[second], terms[second], [*batch, *summed, *columns])
                return matmul(b, left, right)
    if len(summed) == 1 and all(len(labels) == 1 for labels in alone) and _is_large(sizes.values()):
        return _reordered(b, parts, terms, batch, alone, summed, wanted)
    labels = [*wanted, *summed]
    if summed and not any(len(term) == len(labels) for term in terms):
        raise CannotCapture("memory-order", "einsum that is no product of matrices, or one in another memory order")
    product = ufuncs.emit(b, np.multiply, [_spread(b, x, t, labels) for x, t in zip(parts, terms, strict=True)])
    if summed:
        return _summed(b, product, len(wanted))
    # einsum adds every product to a zero, which makes zero of a negative zero
    return ufuncs.emit(b, np.add, [product, 0]) if product.type.dtype.kind == "f" else product


def _is_large(sizes: Iterable[Size]) -> bool:
    """Whether so many products, of the sizes that capture has seen, are worth a copy of their sums."""
    return math.prod(map(hint, sizes)) >= _SMALL_PRODUCT


def _reordered(
    b: Builder, parts: list[Traced], terms: list[list[str]], batch: list[str], alone: list[list[str]],
    summed: list[str], wanted: list[str],
) -> Traced:  # fmt: skip
    """A stack of products of matrices, whose axes are then brought in order."""
    first = int(wanted[-1] in alone[0])  # the last axis stays the last one, if it can
    (rows,), (columns,) = alone[first], alone[1 - first]
    left = _arranged(b, parts[first], terms[first], [*batch, rows, *summed])
    right = _arranged(b, parts[1 - first], terms[1 - first], [*batch, *summed, columns])
    made = _arranged(b, matmul(b, left, right), [*batch, rows, columns], wanted)
    return Traced(b.op("copy_c", made.node))


def _of_complex(b: Builder, made: Traced, subscripts: str, parts: list[Traced]) -> Traced:
    """Returns ``made`` through a function that checks the result: only matrix products gain by it."""
    if made.node.op is not ops.MATMUL:
        raise CannotCapture("unsupported-dtype", "einsum of two complex arrays that is no product of matrices")
    factors = [Traced(node) for node in made.node.inputs]
    target = f"{by_blas.__module__}.{by_blas.__name__}"
    return call(b, target, [*factors, *parts], made.type, Slot(0), Slot(1), subscripts, Slot(2), Slot(3))


def by_blas(left: Any, right: Any, subscripts: str, x: Any, y: Any) -> Any:
    """``np.einsum(subscripts, x, y)``, which is the product ``left @ right`` where all of that is finite.

    What is not finite depends on how the products are made and added, so it is left to the loops; so are small arrays,
    for which they are as fast. The loops warn of nothing.
    """
    columns = right.shape[-1] if right.ndim > 1 else 1
    if left.size * columns >= _SMALL_PRODUCT:
        with np.errstate(all="ignore"):
            product = np.matmul(left, right)
        if np.isfinite(product).all():
            return product
    return np.einsum(subscripts, x, y)


def _arranged(b: Builder, x: Traced, term: list[str], labels: list[str]) -> Traced:
    """The array with its axes in the order of ``labels``."""
    order = tuple(term.index(label) for label in labels)
    return x if order == tuple(range(len(term))) else transpose(b, x, order)


def _spread(b: Builder, x: Traced, term: list[str], labels: list[str]) -> Traced:
    """The array with an axis for each of ``labels``."""
    moved = _arranged(b, x, term, [label for label in labels if label in term])
    key = tuple(slice(None) if label in term else None for label in labels)
    return Traced(b.op("index", moved.node, key=key)) if None in key else moved


@library("einsum")
def _einsum_shape(
    subscripts: Any,
    /,
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    order: Any = "K",
    casting: Any = "safe",
) -> Shape:
    """The sizes of the letters of the result."""
    if not isinstance(subscripts, str) or isinstance(optimize, list | tuple):
        raise refuse("einsum without a subscript string, or with a path")
    shapes = [shape_of(x) for x in operands]
    terms, result = _subscripts(subscripts, [len(s) for s in shapes])
    sizes: dict[str, Size] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            if is_one(sizes.get(letter, 1)):
                sizes[letter] = size
            elif not is_one(size):
                agree(sizes[letter], size)
    return tuple(sizes[letter] for letter in result)


def _subscripts(text: str, ndims: list[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; the axes of an ellipsis are numbered from the last."""
    given, arrow, result = text.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(ndims):
        raise refuse("einsum: subscripts and operands do not fit", "operation-raises")
    hidden = 0
    labels: list[list[str]] = []
    for term, ndim in zip(terms, ndims, strict=True):
        before, dots, after = term.partition("...")
        more = ndim - len(before) - len(after)
        if more < 0 or (more and not dots):
            raise refuse("einsum: subscripts and operands do not fit", "operation-raises")
        hidden = max(hidden, more)
        labels.append([*before, *(f"...{i}" for i in range(more, 0, -1)), *after])
    spread = [f"...{i}" for i in range(hidden, 0, -1)]
    if not arrow:
        letters = "".join(terms).replace(".", "")
        return labels, [*(spread if "..." in given else []), *sorted(c for c in letters if letters.count(c) == 1)]
    before, dots, after = result.partition("...")
    wanted = [*before, *(spread if dots else []), *after]
    if not set(wanted) <= {label for term in labels for label in term}:
        raise refuse(f"einsum with the subscripts {text!r}", "operation-raises")
    return labels, wanted
