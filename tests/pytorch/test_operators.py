"""PyTorch's own database of operators, through the backend: values, dtypes, shapes, strides and gradients.

Input: the first samples of each operator, in several dtypes; ``TCOMPILE_TORCH_SAMPLES`` says how many.
Output: what eager PyTorch gives, within the tolerance of its test suite.
Why: the table of operations has a row for some operators only; all of them have to be right, with a row or without.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from functorch.compile import aot_function, min_cut_rematerialization_partition
from torch.utils._pytree import tree_flatten, tree_unflatten

import tcompile
from tcompile.frontends.torch.aten_calls import operation
from tcompile.frontends.torch.fx_graphs import ROWS
from tcompile.frontends.torch.lowering import LOWERINGS
from tcompile.torch_backend import CompiledModule, _decompositions, compile_aten

try:
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError:  # it needs expecttest
    op_db = []

SAMPLES = int(os.environ.get("TCOMPILE_TORCH_SAMPLES", "2"))
PACKAGE = Path(tcompile.__file__).parent
SEED = 42  # the one that the database's random operators set
DTYPES = {
    "float32": 1e-4,
    "int64": 1e-5,
    "bool": 1e-5,
    "complex64": 1e-4,
    "float16": 2e-2,
}  # of results that are no ints
NAMES = sorted({op.name for op in op_db})
# The results of these operators are uninitialised memory.
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
             "resize_as_"}  # fmt: skip
# In half precision each step of PyTorch gives float16; its own decomposition computes all of them in float32.
ROUNDED = {("nn.functional.soft_margin_loss", torch.float16)}
ILL_CONDITIONED = {"pinverse", "linalg.pinv", "svd_lowrank", "pca_lowrank"}
SPARSE = {"to_sparse"}  # gradients are no dense tensors


def _samples(op: Any, dtype: torch.dtype, gradients: bool) -> list[Any]:
    try:
        return list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), SAMPLES))
    except Exception as error:
        pytest.skip(f"no samples here: {error}")


def _over_tensors(op: Any, sample: Any) -> tuple[Callable[..., list[torch.Tensor]], list[torch.Tensor]]:
    """An operator as a function of its tensors, with these."""
    flat, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, value in enumerate(flat) if isinstance(value, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
        given = list(flat)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        x, args, kwargs = tree_unflatten(given, spec)
        made = sample.output_process_fn_grad(op(x, *args, **kwargs))
        return [out for out in tree_flatten(made)[0] if isinstance(out, torch.Tensor)]

    return call, [flat[place] for place in places]


def _ours(function: Callable[..., Any], kept: list[CompiledModule]) -> Callable[..., Any]:
    def compiler(kind: str) -> Callable[..., Any]:
        def compile(module: Any, examples: Any) -> Any:
            made = compile_aten(module, {}, kind)
            kept.append(made)
            return made

        return compile

    return aot_function(
        function, fw_compiler=compiler("forward"), bw_compiler=compiler("backward"),
        inference_compiler=compiler("graph"), decompositions=_decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )  # fmt: skip


def _run(call: Callable[..., Any], tensors: list[torch.Tensor], gradients: bool) -> Any:
    """The results, and the gradients by all tensors that have one."""
    given = [tensor.detach().clone().requires_grad_(tensor.requires_grad and gradients) for tensor in tensors]
    torch.manual_seed(SEED)
    made = call(*given)
    smooth = [out for out in made if out.requires_grad]
    wanted = [tensor for tensor in given if tensor.requires_grad]
    if not smooth or not wanted:
        return [out.detach() for out in made], ()
    torch.manual_seed(1)
    cotangents = [torch.randn_like(out) for out in smooth]
    found = torch.autograd.grad(smooth, wanted, cotangents, allow_unused=True)
    zeros = (g if g is not None else torch.zeros_like(t) for g, t in zip(found, wanted, strict=True))
    return [out.detach() for out in made], tuple(zeros)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, dtype: str) -> None:
    kind, tolerance, compared = getattr(torch, dtype), DTYPES[dtype], 0
    for op in (op for op in op_db if op.name == name and kind in op.supported_dtypes("cpu")):
        for sample in _samples(op, kind, False):
            call, tensors = _over_tensors(op, sample)
            try:
                wanted, _ = _run(call, tensors, False)
            except Exception:
                continue  # an error sample
            try:
                with torch.no_grad():
                    got, _ = _run(_ours(call, []), tensors, False)
            except Exception as error:
                if _went_through_tcompile(error):
                    raise
                continue
            compared += 1
            if name in UNDEFINED:
                wanted, got = ([torch.zeros_like(out) for out in outs] for outs in (wanted, got))
            if (name, kind) not in ROUNDED:
                for ours, theirs in zip(got, wanted, strict=True):
                    exact = not (theirs.is_floating_point() or theirs.is_complex())
                    allowed = 0.0 if exact else tolerance * 20 if name in ILL_CONDITIONED else tolerance
                    torch.testing.assert_close(ours, theirs, rtol=allowed, atol=allowed, equal_nan=True)
                assert [_steps(out) for out in got] == [_steps(out) for out in wanted]
    if not compared:
        pytest.skip("not of this dtype, or no function that AOTAutograd can trace")


@pytest.mark.parametrize("name", sorted({op.name for op in op_db if op.supports_autograd} - SPARSE))
def test_gradients(name: str) -> None:
    kind, compared = torch.float64, 0
    for op in (op for op in op_db if op.name == name and kind in op.supported_backward_dtypes("cpu")):
        for sample in _samples(op, kind, True):
            call, tensors = _over_tensors(op, sample)
            try:
                wanted = _run(call, tensors, True)
            except Exception:
                continue
            try:
                got = _run(_ours(call, []), tensors, True)
            except Exception as error:
                if _went_through_tcompile(error):
                    raise
                continue
            compared += 1
            torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-6, equal_nan=True)
    if not compared:
        pytest.skip("no samples that AOTAutograd can trace")


def _steps(tensor: torch.Tensor) -> list[int]:
    """The strides of axes that have several places."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1 and tensor.numel()]


def _went_through_tcompile(error: BaseException) -> bool:
    """Whether an error was raised in tcompile or in what it called; else AOTAutograd refuses the function."""
    at = error.__traceback__
    while at is not None:
        if Path(at.tb_frame.f_code.co_filename).is_relative_to(PACKAGE):
            return True
        at = at.tb_next
    return False


def test_no_row_is_dead() -> None:
    """PyTorch decomposes no operation that has a row, so that graphs can hold all of them."""
    decomposed = _decompositions()
    composite = "CompositeImplicitAutograd"
    for name in LOWERINGS:
        found = operation(name)
        assert found not in decomposed, name
        assert not torch._C._dispatch_has_kernel_for_dispatch_key(found.name(), composite), name


def test_rows_are_pytorchs() -> None:
    """Each row is of an operation that this PyTorch has, with the overload."""
    assert len(ROWS) == 5
    for name in LOWERINGS:
        space, operation, overload = name.split(".")
        assert overload in getattr(getattr(torch.ops, space), operation).overloads(), name
