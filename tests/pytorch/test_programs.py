"""Programs as people write them in PyTorch, compiled and plain: the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tcompile

Way = Callable[[Any], Any]
PROGRAMS: dict[str, Callable[[Way], list[float]]] = {}


def program(function: Callable[[Way], list[float]]) -> Callable[[Way], list[float]]:
    """Adds a program: it takes what compiles a function, or leaves it, and returns numbers."""
    PROGRAMS[function.__name__] = function
    return function


@program
def variational_autoencoder(way: Way) -> list[float]:
    encoder, mean, spread = nn.Linear(20, 16), nn.Linear(16, 4), nn.Linear(16, 4)
    decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20))
    parameters = [p for part in (encoder, mean, spread, decoder) for p in part.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-2)

    def step(x: Any, beta: float) -> Any:
        optimizer.zero_grad(set_to_none=True)
        hidden = F.relu(encoder(x))
        mu, log_variance = mean(hidden), spread(hidden)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * log_variance)
        likelihood = F.binary_cross_entropy(torch.sigmoid(decoder(z)), x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mu.pow(2) - log_variance.exp())
        loss = likelihood + beta * divergence
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss

    called, x = way(step), torch.rand(64, 20)
    return [called(x, number / 10).item() for number in range(12)]


@program
def sequences_of_several_lengths(way: Way) -> list[float]:
    cell, head = nn.GRUCell(5, 8), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1, momentum=0.9)

    def loss_of(sequence: Any, y: Any) -> Any:
        hidden = torch.zeros(sequence.size(1), 8)
        for t in range(sequence.size(0)):
            hidden = cell(sequence[t], hidden)
        return F.cross_entropy(head(hidden), y)

    called, found = way(loss_of), []
    for number in range(6):
        optimizer.zero_grad()
        loss = called(torch.randn(3 + number % 3, 6, 5), torch.randint(0, 3, (6,)))
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@program
def penalty_on_a_gradient(way: Way) -> list[float]:
    critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.0, 0.9))

    def step(real: Any, fake: Any, weight: float) -> Any:
        share = torch.rand(real.size(0), 1)
        between = (share * real + (1 - share) * fake).requires_grad_(True)
        score = critic(between)
        (gradient,) = torch.autograd.grad(score, between, torch.ones_like(score), create_graph=True)
        penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + weight * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    called = way(step)
    return [called(torch.randn(8, 3), torch.randn(8, 3) + 1, 10.0) for _ in range(4)]


@program
def learning_to_learn(way: Way) -> list[float]:
    weight = torch.randn(3, 1, requires_grad=True)

    def outer(x: Any, y: Any, further_x: Any, further_y: Any) -> Any:
        loss = ((x @ weight - y) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
        return ((further_x @ (weight - 0.1 * gradient) - further_y) ** 2).mean()

    called, found = way(outer), []
    for _ in range(4):
        loss = called(torch.randn(6, 3), torch.randn(6, 1), torch.randn(6, 3), torch.randn(6, 1))
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= 0.1 * gradient
        found += [loss.item(), gradient.sum().item()]
    return found


@program
def distillation(way: Way) -> list[float]:
    teacher, student = nn.Linear(5, 4), nn.Linear(5, 4)
    optimizer = torch.optim.AdamW(student.parameters(), 1e-2)

    def step(x: Any, y: Any, temperature: float, share: float) -> Any:
        with torch.no_grad():
            wanted = teacher(x)
        found = student(x)
        soft = F.kl_div(
            F.log_softmax(found / temperature, 1), F.softmax(wanted / temperature, 1), reduction="batchmean"
        )
        loss = share * soft * temperature * temperature + (1 - share) * F.cross_entropy(found, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    called = way(step)
    return [called(torch.randn(8, 5), torch.randint(0, 4, (8,)), 4.0 - 0.1 * n, 0.5) for n in range(5)]


@program
def attention_over_a_growing_cache(way: Way) -> list[float]:
    width = 8
    query, key, value = (torch.randn(width, width) * 0.3 for _ in range(3))
    words = torch.randn(20, width)

    def step(word: Any, keys: Any, values: Any) -> Any:
        x = words[word]
        keys, values = torch.cat([keys, (x @ key)[None]]), torch.cat([values, (x @ value)[None]])
        found = torch.softmax((x @ query) @ keys.T / math.sqrt(width), -1) @ values
        return (found @ words.T).argmax(), keys, values

    called, word, found = way(step), torch.tensor(3), []
    keys = values = torch.zeros(0, width)
    with torch.no_grad():
        for _ in range(6):
            word, keys, values = called(word, keys, values)
            found.append(word.item())
    return found


@program
def messages_over_edges(way: Way) -> list[float]:
    linear = nn.Linear(6, 6)
    source, target = torch.randint(0, 10, (30,)), torch.randint(0, 10, (30,))

    def pooled(h: Any) -> Any:
        messages = linear(h)[source]
        total = torch.zeros_like(h).index_add_(0, target, messages)
        degree = torch.bincount(target, minlength=10).clamp(min=1)
        largest = torch.full((10, 6), -1e9).scatter_reduce(0, target[:, None].expand(-1, 6), messages, "amax")
        return F.elu(total / degree[:, None]).sum() + largest[degree > 1].mean()

    called, found = way(pooled), []
    for _ in range(3):
        loss = called(torch.randn(10, 6))
        loss.backward()
        found.append(loss.item())
    return [*found, linear.weight.grad.sum().item()]


@program
def training_loop_in_a_function(way: Way) -> list[float]:
    x = torch.randn(60, 4)
    data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())

    def train(epochs: int) -> Any:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.Adam(model.parameters(), 1e-1)
        told = []
        for _ in range(epochs):
            total = 0.0
            model.train()
            for xs, ys in torch.utils.data.DataLoader(data, batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(xs), ys)
                loss.backward()
                optimizer.step()
                total += loss.item() * len(xs)
            model.eval()
            with torch.no_grad():
                told += [total, (model(x).argmax(1) == data.tensors[1]).float().mean().item()]
        return told

    found: list[float] = way(train)(3)
    return found


@program
def what_a_layer_saw(way: Way) -> list[float]:
    model, seen = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), []
    model[1].register_forward_hook(lambda module, given, result: seen.append(result))
    called, found = way(lambda x: model(x).sum()), []
    for _ in range(3):
        seen.clear()
        loss = called(torch.randn(3, 4))
        (gradient,) = torch.autograd.grad(loss, seen[0])
        found += [loss.item(), gradient.sum().item(), len(seen)]
    return found


@program
def heads_that_train_by_turns(way: Way) -> list[float]:
    trunk, actor, critic = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    parameters = [p for part in (trunk, actor, critic) for p in part.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-2, weight_decay=0.1)

    def both(state: Any) -> Any:
        hidden = torch.tanh(trunk(state))
        return torch.log_softmax(actor(hidden), -1), critic(hidden).squeeze(-1)

    called = way(both)
    for number in range(6):
        policy, value = called(torch.randn(5, 4))
        optimizer.zero_grad()
        loss = -policy[:, 0].mean() if number % 2 else ((value - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
    return [p.sum().item() for p in parameters]


@program
def layers_that_are_frozen_by_turns(way: Way) -> list[float]:
    first, second = nn.Linear(4, 8), nn.Linear(8, 2)
    called = way(lambda x: F.mse_loss(second(F.gelu(first(x))), torch.zeros(3, 2)))
    optimizer, found = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1, momentum=0.9), []
    for number in range(8):
        first.requires_grad_(number % 4 < 2)
        optimizer.zero_grad()
        loss = called(torch.randn(3, 4))
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@program
def batches_as_dicts(way: Way) -> list[float]:
    words, head = nn.Embedding(10, 4), nn.Linear(4, 3)

    def called_for(batch: Any, options: Any) -> Any:
        hidden = words(batch["ids"]).mean(1)
        if options.get("norm", False):
            hidden = F.layer_norm(hidden, hidden.shape[-1:])
        logits = head(hidden)
        return {"logits": logits, "loss": F.cross_entropy(logits, batch["y"]) if "y" in batch else None}

    called, found = way(called_for), []
    for number in range(4):
        batch = {"ids": torch.randint(0, 10, (3, 5)), "y": torch.randint(0, 3, (3,))}
        if number == 2:
            del batch["y"]
        made = called(batch, {"norm": number > 1})
        found.append(made["logits"].sum().item())
        if made["loss"] is not None:
            made["loss"].backward()
    return [*found, head.weight.grad.sum().item()]


@program
def a_grid_in_place(way: Way) -> list[float]:
    def heat(size: int) -> Any:
        u = torch.sin(math.pi * torch.linspace(0, 1, size))
        for _ in range(10):
            u[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    called = way(heat)
    return [number for size in (8, 12, 8) for number in called(size).tolist()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    torch.manual_seed(0)
    wanted = PROGRAMS[name](lambda function: function)
    torch.manual_seed(0)
    assert PROGRAMS[name](tcompile.compile) == pytest.approx(wanted, rel=2e-3, abs=1e-4)
