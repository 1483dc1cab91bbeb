"""Small programs in which a compiled graph could differ from eager PyTorch without an error.

Input: functions, each with the arguments of one call.
Output: values, gradients, memory and errors of eager mode.
Why: each is a way in which a row, or the conversion, was wrong once.
"""

from __future__ import annotations

import copy
import re
import warnings
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


def _by_torch(function: Any) -> Any:
    return torch.compile(function, backend="tcompile")


def _row(x: Any) -> Any:
    with torch.no_grad():
        return x[0]


def _row_of_product(x: Any) -> Any:
    y = x * 2
    with torch.no_grad():
        return y, y[0]


def _parts(x: Any) -> Any:
    y = x * 2
    return (*x.split([1, 2]), y, *y.unbind())


def _detached(x: Any) -> Any:
    y = x * 2
    return y.detach(), y[-1:], y.detach()[0]


def _part_without_gradient(x: Any) -> Any:
    y = x * 2
    with torch.no_grad():
        y = y.chunk(2)[-1]
        return y, y.detach(), y.view(-1)


@pytest.mark.parametrize("function", [_row, _row_of_product, _parts, _detached, _part_without_gradient])
@pytest.mark.parametrize("leaf", [True, False])
def test_in_place_writes_to_views_are_refused_as_in_eager_mode(function: Any, leaf: bool) -> None:
    def outcomes(called: Any) -> Any:
        x = torch.arange(12.0).reshape(3, 4).requires_grad_()
        found = called(x if leaf else x * 1)
        results = found if isinstance(found, tuple) else (found,)
        facts = [(r.requires_grad, r.is_leaf, r.requires_grad and r._is_view(), r.grad_fn is None) for r in results]
        written = []
        for result in results:
            try:
                result.mul_(3)
                written.append("")
            except RuntimeError as error:
                written.append(re.sub(r"Output \d of \w+", "", str(error)))
        return facts, written

    assert outcomes(tcompile.compile(function)) == outcomes(function)


@pytest.mark.parametrize("turned", [False, True])
def test_writes_to_elements_in_one_place_reach_their_base(turned: bool) -> None:
    def zeroed(x: Any) -> Any:
        y = x.t() if turned else x
        wide = y.expand(2, *y.shape)
        wide.zero_()
        return -x, wide

    x, own = torch.ones(3, 4), torch.ones(3, 4)
    compiled = tcompile.compile(zeroed)
    for got, want in zip(compiled(own), zeroed(x), strict=True):
        assert torch.equal(got, want)
    assert torch.equal(own, x)


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_results_that_share_memory_have_the_strides_of_eager_mode(needs_gradient: bool) -> None:
    def written(x: Any) -> Any:
        y = x * 2
        y[0] = 2
        y.masked_fill_(y > 0, 1)
        return y, y.unbind(0)[-1], y.detach(), y[1:]

    def outcome(function: Any) -> Any:
        torch.manual_seed(0)
        x = torch.randn(4, 5).t().contiguous().t().requires_grad_(needs_gradient)
        results = function(x)
        found = [(r.tolist(), r.stride(), r.storage_offset(), r.requires_grad) for r in results]
        places = [r.untyped_storage().data_ptr() == results[0].untyped_storage().data_ptr() for r in results]
        total = sum((k + 1) * r.sum() for k, r in enumerate(results))
        return found, places, torch.autograd.grad(total, x)[0].tolist() if needs_gradient else None

    assert outcome(tcompile.compile(written)) == outcome(written)


@pytest.mark.parametrize("compiler", [tcompile.compile, _by_torch])
@pytest.mark.parametrize("is_argument_smooth", [False, True])
def test_the_backward_pass_has_what_a_written_argument_held(compiler: Any, is_argument_smooth: bool) -> None:
    def product(x: Any, w: Any) -> Any:
        x.mul_(w.clone())
        return x

    w = torch.full((3, 4), 2.0, requires_grad=True)
    x = torch.full((3, 4), 3.0)
    if is_argument_smooth:
        x = x.requires_grad_() * 1
    (found,) = torch.autograd.grad(compiler(product)(x, w).sum(), [w])
    assert torch.equal(found, torch.full((3, 4), 3.0))


def test_a_graph_whose_backward_pass_fails_fails_as_in_eager_mode() -> None:
    def written(x: Any, w: Any) -> Any:
        y = x * w
        x.add_(1)
        return y

    for function in (written, tcompile.compile(written)):
        w = torch.ones(3, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(torch.ones(3), w)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


def _hidden_and_loss(x: Any, w: Any) -> Any:
    hidden = torch.tanh(x @ w)
    return hidden, (hidden * hidden).sum()


def _written_argument(x: Any, w: Any) -> Any:
    w.mul_(x)
    return w, w**2


def _under_no_grad(x: Any, w: Any) -> Any:
    with torch.no_grad():
        k = x @ w
    hidden = torch.tanh(x @ w)
    with torch.no_grad():
        z = hidden * k
    return hidden, (hidden * k).sum(), z


def _chain(x: Any, w: Any) -> Any:
    found = [x * w]
    for _ in range(3):
        found.append(torch.sin(found[-1]))
    return found


def _views_of_a_result(x: Any, w: Any) -> Any:
    hidden = x * w
    hidden.add_(1)
    p, q = hidden.split(2)
    row = hidden[0]
    return hidden, p.sum(), row, row[1:], row * 2, q


@pytest.mark.parametrize("function", [_hidden_and_loss, _written_argument, _under_no_grad, _chain, _views_of_a_result])
def test_gradients_of_results_by_other_results(function: Any) -> None:
    def gradients(called: Any) -> Any:
        torch.manual_seed(0)
        x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True) * 1
        smooth = [t for t in called(x, w) if t.requires_grad]
        return [
            torch.autograd.grad(of.sum(), by, retain_graph=True, allow_unused=True)[0]
            for of in smooth
            for by in (*smooth, x, w)
        ]

    found, wanted = gradients(tcompile.compile(function)), gradients(function)
    for got, want in zip(found, wanted, strict=True):
        if want is None:
            assert got is None or not got.any()  # the results of a graph are one node of autograd
        else:
            torch.testing.assert_close(got, want)


def test_gradients_of_hidden_tensors_can_be_kept() -> None:
    def gradient(called: Any) -> Any:
        torch.manual_seed(0)
        hidden, loss = called(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
        seen: list[Any] = []
        hidden.retain_grad()
        hidden.register_hook(seen.append)
        loss.backward()
        return hidden.grad, *seen

    for got, want in zip(gradient(tcompile.compile(_hidden_and_loss)), gradient(_hidden_and_loss), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("compiler", [tcompile.compile, _by_torch])
def test_a_result_shares_memory_with_one_of_several_results_of_a_call(compiler: Any) -> None:
    def dropped(x: Any) -> Any:
        v = F.dropout(x, 0.5)
        largest = x.max(0).values
        return v, v[1:], largest, largest[:1]

    v, part, largest, first = compiler(dropped)(torch.randn(4, 5))
    assert part.data_ptr() == v[1:].data_ptr() and first.data_ptr() == largest.data_ptr()


def test_integers_that_get_a_gradient() -> None:
    def written(x: Any, n: Any) -> Any:
        turned = n.t()
        turned[..., 0] = x[0, 0]
        return turned.fill_(3)

    for function in (written, tcompile.compile(written)):
        n = torch.zeros(3, 2, dtype=torch.int64)
        with warnings.catch_warnings(), pytest.raises(RuntimeError, match="leaf Variable"):
            warnings.simplefilter("error")
            function(torch.ones(2, 3, requires_grad=True), n)


def _two_losses(x: Any, w: Any) -> Any:
    a, b = torch.sin(x), torch.cos(w)
    a, b = a * a, b * b
    return a.sum(), b.sum()


def _shared_views(x: Any, w: Any) -> Any:
    moved = x.view(-1) + 1  # keeps nothing
    return (moved**2).sum(), (moved * moved * moved).sum(), (w * w).sum()


def _detached_between(x: Any, w: Any) -> Any:
    made = torch.tanh(x @ w)
    return made, (made.detach() * w).sum()


def _common_trunk(x: Any, w: Any) -> Any:
    trunk = torch.tanh(x)
    return (trunk * w).sum(), (trunk * 2).sum()


def _two_draws(x: Any, w: Any) -> Any:
    a, b = F.dropout(x * x, 0.5), F.dropout(w * w, 0.5)
    return a.sum(), b.sum()


def _two_writes(x: Any, w: Any) -> Any:
    y, z = x * x, w * w
    y.add_(1)
    z.mul_(z.clone())
    return y.sum(), z.sum()


@pytest.mark.parametrize(
    "function", [_two_losses, _shared_views, _detached_between, _common_trunk, _two_draws, _two_writes]
)
def test_one_backward_pass_after_the_other(function: Any) -> None:
    def outcome(called: Any) -> Any:
        torch.manual_seed(0)
        x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
        told = []
        for result in called(x, w):
            try:
                result.sum().backward()
                told.append("")
            except RuntimeError as error:
                told.append(str(error)[:30])
        return told, x.grad, w.grad

    for got, want in zip(outcome(tcompile.compile(function)), outcome(function), strict=True):
        assert type(got) is type(want)
        if isinstance(want, torch.Tensor):
            torch.testing.assert_close(got, want)
        else:
            assert got == want


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_head_that_no_loss_uses_has_no_gradient(create_graph: bool) -> None:
    def heads(x: Any, a: Any, b: Any) -> Any:
        trunk = torch.tanh(x)
        return (trunk * a).sum(), (trunk * b).sum()

    x, a, b = (torch.randn(4, requires_grad=True) for _ in range(3))
    first, _ = tcompile.compile(heads)(x, a, b)
    found = torch.autograd.grad(first, [x, a, b], create_graph=create_graph, allow_unused=True)
    torch.testing.assert_close(found[1], torch.tanh(x))
    assert found[2] is None


def test_two_models_that_train_against_each_other() -> None:
    def trained(how: Any) -> Any:
        torch.manual_seed(0)
        maker = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LeakyReLU(), torch.nn.Linear(8, 2))
        critic = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.LeakyReLU(), torch.nn.Linear(8, 1))
        of_maker = torch.optim.RMSprop(maker.parameters(), 1e-3)
        of_critic = torch.optim.RMSprop(critic.parameters(), 1e-3)
        loss = torch.nn.BCEWithLogitsLoss()

        def step(real: Any) -> Any:
            one, zero = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            fake = maker(torch.randn(len(real), 4))
            of_critic.zero_grad()
            first = loss(critic(real), one) + loss(critic(fake.detach()), zero)
            first.backward()
            of_critic.step()
            of_maker.zero_grad()
            second = loss(critic(fake), one)
            second.backward()
            of_maker.step()
            return first.item(), second.item()

        called = how(step)
        return [called(torch.randn(16, 2) + 3) for _ in range(5)]

    for got, want in zip(trained(tcompile.compile), trained(lambda f: f), strict=True):
        assert got == pytest.approx(want, rel=1e-4)
