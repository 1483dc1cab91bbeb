"""PyTorch's own database of operators in captured functions: values, types, strides, aliasing, writes and gradients.

Input: the first samples of each operator, in several dtypes; ``TCOMPILE_TORCH_SAMPLES`` says how many.
Output: what eager PyTorch gives, within the tolerance of its test suite.
Why: capture asks PyTorch's fake tensors what a call gives, and every kind of call has to be right, or break.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_map_only

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import Event, FellBack, GraphBroke

try:
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError:  # it needs expecttest
    op_db = []

SAMPLES = int(os.environ.get("TCOMPILE_TORCH_SAMPLES", "1"))
SEED = 42  # the one that the database's random operators set
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4}  # of results that are no ints
TOLERANCE |= {"int64": 1e-5, "bool": 1e-5} if SAMPLES > 1 else {}
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
             "resize_as_"}  # fmt: skip
ILL_CONDITIONED = {"pinverse", "linalg.pinv", "svd_lowrank", "pca_lowrank"}
NAMES = sorted({op.name for op in op_db})
# Operators whose first sample in float32 breaks: the result depends on elements, an argument is no tensor, or the
# database calls them in a block that stops capture. All others become one graph.
BREAKING = {
    "__getitem__", "__rsub__", "allclose", "argwhere", "bernoulli", "bfloat16", "cauchy", "chalf", "combinations",
    "corrcoef", "cov", "empty_strided", "equal", "exponential", "geometric", "item", "linalg.lstsq", "log_normal",
    "masked.amax", "masked.amin", "masked.argmax", "masked.argmin", "masked.cumprod", "masked.cumsum",
    "masked.log_softmax", "masked.logaddexp", "masked.logsumexp", "masked.mean", "masked.median", "masked.norm",
    "masked.normalize", "masked.prod", "masked.softmax", "masked.softmin", "masked.std", "masked.sum",
    "masked.var", "masked_select", "multinomial", "nn.functional.alpha_dropout", "nn.functional.ctc_loss",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.gaussian_nll_loss",
    "nn.functional.linear_cross_entropy", "nn.functional.multi_head_attention_forward", "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention", "nn.functional.triplet_margin_with_distance_loss",
    "nn.functional.upsample_bilinear", "nn.functional.upsample_nearest", "nonzero", "normal", "pca_lowrank",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "resize_", "sparse.mm", "sparse.sampled_addmm",
    "svd_lowrank", "tensor_split", "to_sparse", "uniform", "unique", "unique_consecutive",
}  # fmt: skip


def _samples(op: Any, dtype: torch.dtype, gradients: bool) -> list[Any]:
    try:
        return list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), SAMPLES))
    except Exception as error:
        pytest.skip(f"no samples here: {error}")


def _program(op: Any) -> Callable[..., Any]:
    """The operator as a function that is captured, with code of its own: functions of one code share a cache."""
    namespace: dict[str, Any] = {"function": op.op}
    exec("def program(x, args, kwargs):\n    return function(x, *args, **kwargs)", namespace)
    program: Callable[..., Any] = namespace["program"]
    return program


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def _copy(value: Any) -> Any:
    """The same arguments with tensors of their own, of the same strides."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout != torch.strided:
            return tensor
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        with torch.no_grad():
            made.copy_(tensor)
        return made.requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, one, value)


class Breaks:
    """The graph breaks and fallbacks of a block."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def note(self, event: Event) -> None:
        if isinstance(event, GraphBroke):
            self.found.append(f"{event.reason}: {event.explanation}")
        elif isinstance(event, FellBack):
            self.found.append(f"{event.reason}: {event.detail}")


def _compare(name: str, got: Any, wanted: Any, tolerance: float) -> None:
    theirs, ours = tree_flatten(wanted), tree_flatten(got)
    assert theirs[1] == ours[1]
    for mine, its in zip(ours[0], theirs[0], strict=True):
        assert type(mine) is type(its)
        if not isinstance(its, torch.Tensor):
            assert mine == its
            continue
        assert (mine.dtype, mine.shape, mine.requires_grad) == (its.dtype, its.shape, its.requires_grad)
        assert _steps(mine) == _steps(its)
        if name in UNDEFINED or its.layout != torch.strided:
            continue
        exact = not (its.is_floating_point() or its.is_complex())
        allowed = 0.0 if exact else tolerance * 20 if name in ILL_CONDITIONED else tolerance
        torch.testing.assert_close(mine, its, rtol=allowed, atol=allowed, equal_nan=True)


def _steps(tensor: torch.Tensor) -> list[int]:
    """The strides of axes that have several places."""
    if tensor.layout != torch.strided:
        return []
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1 and tensor.numel()]


def _aliases(results: Any, arguments: Any) -> list[list[bool]]:
    """Which results share memory with which arguments and results."""
    made = [tensor for tensor in _tensors(results) if tensor.layout == torch.strided and tensor.numel()]
    all_of_them = [*(tensor for tensor in _tensors(arguments) if tensor.layout == torch.strided), *made]
    places = [tensor.untyped_storage().data_ptr() for tensor in all_of_them]
    return [[place == result.untyped_storage().data_ptr() for place in places] for result in made]


def _gradients(results: Any, arguments: Any) -> list[Any]:
    smooth = [out for out in _tensors(results) if out.requires_grad and (out.is_floating_point() or out.is_complex())]
    wanted = [tensor for tensor in _tensors(arguments) if tensor.requires_grad and tensor.is_leaf]
    if not smooth or not wanted:
        return []
    torch.manual_seed(1)
    cotangents = [torch.randn_like(out) for out in smooth]
    found = torch.autograd.grad(smooth, wanted, cotangents, allow_unused=True)
    return [g if g is not None else torch.zeros_like(t) for g, t in zip(found, wanted, strict=True)]


def check(op: Any, dtype: torch.dtype, tolerance: float, gradients: bool) -> Iterator[list[str]]:
    """Compares the samples of an operator; gives the breaks of each."""
    for sample in _samples(op, dtype, gradients):
        given = (sample.input, sample.args, sample.kwargs)
        theirs, ours = _copy(given), _copy(given)
        program = _program(op)
        try:
            torch.manual_seed(SEED)
            wanted = program(*theirs)
        except Exception:
            continue  # an error sample
        breaks = Breaks()
        with bus.listening(breaks.note):
            torch.manual_seed(SEED)
            got = tcompile.compile(program)(*ours)
        _compare(op.name, got, wanted, tolerance)
        if op.name not in UNDEFINED:
            _compare(op.name, ours, theirs, tolerance)
        assert _aliases(got, ours) == _aliases(wanted, theirs)
        if gradients:
            torch.testing.assert_close(
                _gradients(sample.output_process_fn_grad(got), ours),
                _gradients(sample.output_process_fn_grad(wanted), theirs),
                rtol=tolerance, atol=tolerance, equal_nan=True,
            )  # fmt: skip
        yield breaks.found


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, dtype: str) -> None:
    kind = getattr(torch, dtype)
    breaks = [
        found
        for op in op_db
        if op.name == name and kind in op.supported_dtypes("cpu")
        for found in check(op, kind, TOLERANCE[dtype], False)
    ]
    if not breaks:
        pytest.skip("not of this dtype")
    if dtype == "float32" and SAMPLES == 1:
        assert any(breaks) == (name in BREAKING), breaks


@pytest.mark.parametrize("name", sorted({op.name for op in op_db if op.supports_autograd}))
def test_gradients(name: str) -> None:
    kind, compared = torch.float64, 0
    for op in (op for op in op_db if op.name == name and kind in op.supported_backward_dtypes("cpu")):
        compared += sum(1 for _ in check(op, kind, 1e-6, True))
    if not compared:
        pytest.skip("no samples")
