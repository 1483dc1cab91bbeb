"""Small programs in which a compiled graph could differ from eager PyTorch without an error.

Input: functions, each with the arguments of one call.
Output: values, gradients, memory and errors of eager mode.
Why: each is a way in which a row, or the conversion, was wrong once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tcompile
from tcompile.torch_backend import torch_backend

NAN = float("nan")


def compiled(function: Any) -> Any:
    return torch.compile(function, backend=torch_backend)


def _diagonal(x: torch.Tensor) -> torch.Tensor:
    return x.clone().diagonal()


def _old_values(x: torch.Tensor) -> torch.Tensor:
    d = x.clone().diagonal()
    x.zero_()
    return d


def _two_views(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.clone()
    return y, y.t()


def _cast_after_write(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x.to(torch.int64)


def _written_and_returned(x: torch.Tensor) -> torch.Tensor:
    x.mul_(3)
    return x


def _infinite(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x @ x, 0.5)


def _drawn_then_indexed(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.5)[i]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "a view of a clone": (_diagonal, lambda: (torch.eye(3),)),
    "a view of what is overwritten": (_old_values, lambda: (torch.eye(3) * 2,)),
    "two views of a clone": (_two_views, lambda: (torch.randn(2, 3),)),
    "a clone, expanded": (lambda x: x.clone().expand(3, 4), lambda: (torch.randn(1, 4),)),
    "flipped and expanded": (lambda x: x.flip(0).unsqueeze(0).expand(2, -1), lambda: (torch.arange(3.0),)),
    "a cast of NaN after a write": (_cast_after_write, lambda: (torch.tensor([1.0, NAN]),)),
    "written and returned": (_written_and_returned, lambda: (torch.ones(3),)),
    "as_strided from the storage's start": (
        lambda x: x.as_strided((2,), (1,), 0) + 1, lambda: (torch.arange(10.0)[5:],)
    ),
    "as_strided beyond a view": (lambda x: x.as_strided((10,), (1,)) + 1, lambda: (torch.arange(10.0)[:2],)),
    "as_strided of a part": (lambda x: (x + 1)[2:].as_strided((2,), (1,), 0) * 1, lambda: (torch.arange(10.0),)),
    "hardtanh, usual bounds": (lambda x: F.hardtanh(x, -1, 1), lambda: (torch.tensor([5.0, -3.0, 0.5]),)),
    "hardtanh, one usual bound": (lambda x: F.hardtanh(x, -2, 1), lambda: (torch.tensor([5.0, -3.0, 0.5]),)),
    "any of no axes": (lambda x: torch.any(x, dim=()), lambda: (torch.tensor([True, False]),)),
    "sign of NaN": (lambda x: torch.sign(x), lambda: (torch.tensor([NAN, -2.0, 0.0]),)),
    "a long sum": (lambda x: x.cumsum(0)[-1], lambda: (torch.full((1_000_000,), 0.1),)),
    "half precision with a factor": (
        lambda x, y: (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=-2)),
        lambda: (torch.tensor([-30000.0]).half(), torch.tensor([40000.0]).half()),
    ),
    "the variance of complex numbers": (lambda x: x.var(), lambda: (torch.randn(4, dtype=torch.cfloat),)),
    "overflow beside random numbers": (_infinite, lambda: (torch.full((64, 64), 1e30),)),
    "a cast beside random numbers": (lambda x: (F.dropout(x), x.long()), lambda: (torch.tensor([NAN, 2.0]),)),
    "log of zero": (lambda x: torch.log(x) / x, lambda: (torch.tensor([0.0, 1.0]),)),
    "a constant tensor": (lambda x: (x + 1, torch.tensor([1.0, 2.0])), lambda: (torch.ones(2),)),
    "uint8 and a negative number": (lambda x: x + (-1), lambda: (torch.tensor([0, 5], dtype=torch.uint8),)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, arguments = PROGRAMS[name]
    call = compiled(function)
    for seed in range(2):
        torch.manual_seed(seed)
        mine = arguments()
        theirs = copy.deepcopy(mine)
        torch.manual_seed(seed)
        wanted, after = function(*theirs), torch.rand(1)
        torch.manual_seed(seed)
        got, after_got = call(*mine), torch.rand(1)
        torch.testing.assert_close(
            (got, mine, after_got), (wanted, theirs, after), equal_nan=True, rtol=1e-5, atol=1e-5
        )


def test_gradients_do_not_share_memory() -> None:
    def step(function: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        for _ in range(2):
            function(x, y).backward()
        assert x.grad is not None and y.grad is not None
        return x.grad, y.grad

    def plain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return ((x + y) ** 2).sum()

    torch.testing.assert_close(step(compiled(plain)), step(plain))


def test_writes_to_results_are_seen_by_autograd() -> None:
    x = torch.ones(3, requires_grad=True)
    y = compiled(lambda x: x.exp())(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_constants_are_not_handed_out() -> None:
    call = compiled(lambda x: (x + 1, torch.tensor([1.0, 2.0])))
    call(torch.ones(2))[1].add_(1)
    assert call(torch.ones(2))[1].tolist() == [1.0, 2.0]


def test_errors_beside_random_numbers_are_pytorchs() -> None:
    call = compiled(_drawn_then_indexed)
    x = torch.ones(3)
    call(x, torch.tensor([1]))
    with pytest.raises(IndexError, match="out of bounds for dimension 0"):
        call(x, torch.tensor([5]))


@pytest.mark.parametrize("errors", ["raise", "warn", "ignore"])
def test_numpys_error_state_does_not_matter(errors: Any) -> None:
    call = compiled(lambda x: torch.log(x) / x + F.dropout(x, 0.0))
    with np.errstate(all=errors):
        assert call(torch.zeros(2)).isinf().all()
        assert np.geterr()["under"] == errors


def test_saved_tensors_with_other_strides() -> None:
    """PyTorch runs the forward graph of a tensor in bfloat16, and what it saves may lie in another order."""
    x = torch.randn(4, 3, requires_grad=True)

    def f(x: torch.Tensor) -> torch.Tensor:
        return (x.t().exp() * x.bfloat16().float().t()).sum()

    (want,) = torch.autograd.grad(f(x), x)
    (got,) = torch.autograd.grad(compiled(f)(x), x)
    torch.testing.assert_close(got, want)

    from tcompile.torch_backend import _restrided

    turned = _restrided(x, (1, 4))
    assert turned.stride() == (1, 4) and torch.equal(turned, x)


def test_random_numbers_come_in_memory_order() -> None:
    def noisy(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.dropout(w.t() + x, 0.5), torch.bernoulli((w.t() + x).abs().clamp(max=1))

    x, w = torch.randn(4, 5), torch.randn(5, 4)
    for function in (noisy, torch.compile(noisy, backend=torch_backend), tcompile.compile(noisy)):
        torch.manual_seed(3)
        found = function(x, w)
        if function is noisy:
            wanted = found
        torch.testing.assert_close(found, wanted, check_stride=True)
