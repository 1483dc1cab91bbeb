"""Optimizers' steps in compiled functions: parameters, state and errors are those of eager mode."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tcompile
from tcompile import torch_optimizers

OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01, "maximize": True}),
    (torch.optim.Adam, {}),
    (torch.optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {}),
    (torch.optim.NAdam, {}),
    (torch.optim.RAdam, {}),
    (torch.optim.Adamax, {}),
    (torch.optim.Adagrad, {"lr_decay": 0.1}),
    (torch.optim.Adadelta, {}),
    (torch.optim.RMSprop, {"momentum": 0.9, "centered": True}),
    (torch.optim.ASGD, {}),
    (torch.optim.Rprop, {}),
]
X, Y = torch.randn(8, 5), torch.randn(8, 3)


def model(dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)).to(dtype)


def trained(
    made: Any,
    options: dict[str, Any],
    how: Any,
    dtype: torch.dtype = torch.float32,
    scheduler: Any = None,
    steps: int = 7,
) -> tuple[torch.nn.Module, Any]:
    net = model(dtype)
    optimizer = made(net.parameters(), **options)
    schedule = scheduler(optimizer) if scheduler else None

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    called = how(step)
    for _ in range(steps):
        called(X.to(dtype), Y.to(dtype))
        if schedule:
            schedule.step()
    return net, optimizer


def plain(function: Any) -> Any:
    return function


def assert_same(got: tuple[Any, Any], wanted: tuple[Any, Any]) -> None:
    for mine, its in zip(got[0].parameters(), wanted[0].parameters(), strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-4 if mine.dtype == torch.float32 else 1e-8)
    mine, its = got[1].state_dict(), wanted[1].state_dict()
    assert mine["param_groups"] == its["param_groups"]
    torch.testing.assert_close(mine["state"], its["state"], rtol=1e-3, atol=1e-4)  # near zero, rounding is amplified


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("made", "options"), OPTIMIZERS)
def test_training_is_that_of_eager_mode(made: Any, options: dict[str, Any], dtype: torch.dtype) -> None:
    got, wanted = (trained(made, options, how, dtype) for how in (tcompile.compile, plain))
    assert_same(got, wanted)
    plan = torch_optimizers._plans[got[1]]
    assert (plan.updates is None) == (options == {"lr": 0.1})  # one operation for each parameter, as in eager mode


@pytest.mark.parametrize(
    "scheduler",
    [
        lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8),
        lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=40),
    ],
)
def test_schedules_compile_nothing_again(scheduler: Any) -> None:
    got, wanted = (
        trained(torch.optim.AdamW, {}, how, scheduler=scheduler, steps=20) for how in (tcompile.compile, plain)
    )
    assert_same(got, wanted)
    before = len(torch_optimizers._programs)
    trained(torch.optim.AdamW, {}, tcompile.compile, scheduler=scheduler, steps=3)
    assert len(torch_optimizers._programs) == before


def pairs(made: Any = torch.optim.Adam, **options: Any) -> list[tuple[Any, Any, Any]]:
    """Two models with an optimizer and the function that takes a step: compiled, and plain."""
    found = []
    for how in (tcompile.compile, plain):
        net = model()
        optimizer = made(net.parameters(), **options)

        def step(x: Any, optimizer: Any = optimizer, net: Any = net) -> Any:
            loss = net(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        found.append((net, optimizer, how(step)))
    return found


def test_parameters_without_a_gradient_groups_and_loaded_states() -> None:
    two = pairs()
    for net, optimizer, step in two:
        for _ in range(3):
            step(X)
        net[0].weight.grad = None
        net[0].weight.requires_grad_(False)
        for _ in range(2):
            step(X)
        net[0].weight.requires_grad_()
        extra = torch.nn.Parameter(torch.ones(4))
        optimizer.add_param_group({"params": [extra], "lr": 0.5, "weight_decay": 0.1})
        for _ in range(3):
            extra.grad = torch.arange(4.0)
            step(X)
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for _ in range(3):
            step(X)
        optimizer.param_groups[0]["betas"] = (0.5, 0.9)
        step(X)
    assert_same(two[0][:2], two[1][:2])


def test_hooks_closures_tensor_rates_and_sparse_gradients() -> None:
    two = pairs()
    counts = []
    for net, optimizer, step in two:
        seen: list[int] = []
        for _ in range(3):
            step(X)
        hook = optimizer.register_step_post_hook(lambda *_, seen=seen: seen.append(1))
        step(X)
        hook.remove()
        optimizer.param_groups[0]["lr"] = torch.tensor(0.01)
        step(X)
        optimizer.param_groups[0]["lr"] = 0.02
        step(X)
        decay = optimizer.param_groups[0]["weight_decay"] = torch.tensor(0.1)
        for _ in range(3):
            decay.mul_(0.5)
            step(X)
        optimizer.param_groups[0]["weight_decay"] = 0.01
        step(X)
        counts.append(len(seen))
        del net
    assert counts == [1, 1]
    assert_same(two[0][:2], two[1][:2])

    def with_closure(optimizer: Any, net: Any) -> Any:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = net(X).square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    two = pairs(torch.optim.SGD, lr=0.01, momentum=0.9)
    found = [
        [how(with_closure)(optimizer, net).item() for _ in range(4)]
        for (net, optimizer, _), how in zip(two, (tcompile.compile, plain), strict=True)
    ]
    assert found[0] == pytest.approx(found[1])
    assert_same(two[0][:2], two[1][:2])

    table = [torch.nn.Embedding(5, 3, sparse=True) for _ in range(2)]
    table[1].load_state_dict(table[0].state_dict())
    for embedding, how in zip(table, (tcompile.compile, plain), strict=True):
        optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1, momentum=0.9)

        def sparse(rows: Any, optimizer: Any = optimizer, embedding: Any = embedding) -> None:
            optimizer.zero_grad()
            embedding(rows).sum().backward()
            optimizer.step()

        for _ in range(3):
            how(sparse)(torch.tensor([1, 3]))
    torch.testing.assert_close(table[0].weight, table[1].weight)


def test_autograd_sees_the_writes() -> None:
    for net, optimizer, step in pairs():
        for _ in range(3):
            step(X)
        result = net(X).square().sum()
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        before = [parameter._version for parameter in net.parameters()]
        tcompile.compile(lambda x, optimizer=optimizer: (x + 1, optimizer.step()))(X)
        assert all(p._version > v for p, v in zip(net.parameters(), before, strict=True))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()


def test_a_class_of_the_users_runs_its_own_step() -> None:
    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            calls.append(1)
            return super().step(closure)

    calls: list[int] = []
    two = pairs(Own, lr=0.1)
    for _, _, step in two:
        for _ in range(3):
            step(X)
    assert len(calls) == 6
    assert_same(two[0][:2], two[1][:2])


@pytest.mark.parametrize(("made", "options"), OPTIMIZERS)
def test_parameters_without_axes(made: Any, options: dict[str, Any]) -> None:
    found = []
    for how in (tcompile.compile, plain):
        number = torch.nn.Parameter(torch.tensor(1.5))
        optimizer = made([number], **options)

        def step(x: Any, optimizer: Any = optimizer, number: Any = number) -> Any:
            optimizer.zero_grad()
            loss = (number * x - 1).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        called = how(step)
        found.append([called(X).item() for _ in range(5)])
        found[-1].append(number.item())
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_a_step_that_is_no_update_of_each_parameter_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    found = []
    for how in (tcompile.compile, plain):
        x = torch.tensor([-1.0, 2.0], requires_grad=True)
        optimizer = torch.optim.LBFGS([x], lr=0.5, max_iter=10)

        def closure(x: Any = x, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        def step(optimizer: Any = optimizer, closure: Any = closure) -> Any:
            return optimizer.step(closure)

        called = how(step)
        found.append([called().item() for _ in range(4)] + x.tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert not capfd.readouterr().err


def test_gradients_that_have_a_gradient_themselves() -> None:
    found = []
    for how in (tcompile.compile, plain):
        net = model()
        optimizer = torch.optim.Adam(net.parameters())

        def step(x: Any, net: Any = net, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            net(x).square().sum().backward(create_graph=True)
            optimizer.step()

        called = how(step)
        for _ in range(4):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of PyTorch's, about cycles
                called(X)
        found.append((net, optimizer))
        optimizer.zero_grad()
    assert_same(*found)


def test_memory_orders_and_gradients_whose_elements_lie_in_one_place() -> None:
    found = []
    for how in (tcompile.compile, plain):
        torch.manual_seed(0)
        parameters = [
            torch.nn.Parameter(torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last)),
            torch.nn.Parameter(torch.randn(6, 4).t()),
            torch.nn.Parameter(torch.randn(6, 8)[:, ::2]),
            torch.nn.Parameter(torch.zeros(0, 3)),
        ]
        optimizer = torch.optim.Adam(parameters, 1e-2)
        called = how(lambda x, optimizer=optimizer: (x + 1, optimizer.step()))
        for number in range(5):
            for parameter in parameters:
                parameter.grad = torch.randn(parameter.shape)
            if number > 2:
                parameters[1].grad = torch.ones(()).expand(4, 6)
            called(X)
        found.append(parameters)
    for mine, its in zip(*found, strict=True):
        torch.testing.assert_close(mine, its)
