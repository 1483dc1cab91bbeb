"""Functions of tensors, captured: results, types, aliasing, writes, gradients, breaks and errors of eager mode.

Input: functions of tensors and modules.
Output: what plain Python gives; the graph breaks on the way.
Why: capture keeps PyTorch's calls as they are, and everything around them has to be Python's.
"""

from __future__ import annotations

import copy
import pickle
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import Event, GraphBroke


def _same(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted)
    if isinstance(wanted, torch.Tensor):
        assert (got.dtype, got.shape, got.stride()) == (wanted.dtype, wanted.shape, wanted.stride())
        assert got.requires_grad == wanted.requires_grad
        torch.testing.assert_close(got, wanted, equal_nan=True)
    elif isinstance(wanted, tuple | list):
        assert len(got) == len(wanted)
        for mine, its in zip(got, wanted, strict=True):
            _same(mine, its)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key, its in wanted.items():
            _same(got[key], its)
    else:
        assert got == pytest.approx(wanted) if isinstance(wanted, float) else got == wanted


def _own(value: Any) -> Any:
    """A copy of an argument."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return copy.deepcopy(value)


def _breaks(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, list[str]]:
    """What a call gives, and the reasons of the graph breaks on the way."""
    found: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, GraphBroke):
            found.append(event.reason)

    with bus.listening(note):
        return function(*args), found


def _check(function: Callable[..., Any], *args: Any, breaks: Sequence[str] = (), **options: Any) -> Any:
    """Compares a function with its compiled form, twice; returns the latter."""
    compiled = tcompile.compile(function, **options)
    for expected in (list(breaks), []):
        theirs, ours = [_own(arg) for arg in args], [_own(arg) for arg in args]
        torch.manual_seed(5)
        wanted = function(*theirs)
        torch.manual_seed(5)
        got, found = _breaks(compiled, ours)
        _same(got, wanted)
        assert found == expected
        for mine, its in zip(ours, theirs, strict=True):
            if isinstance(its, torch.Tensor):
                _same(mine, its)
    return compiled


X = torch.randn(4, 5)
W = torch.randn(5, 3, requires_grad=True)


# -- single functions --------------------------------------------------------------------------------------------------
def arithmetic(x: Any) -> Any:
    return x * 2 + 1, 2 / (x + 10), 1 - x, x**2, -x, abs(x), x % 3, x // 2, x > 0, (x > 0) & (x < 1), ~(x > 0)


def in_place(x: Any) -> Any:
    y = x.clone()
    y.add_(1)
    y[0] = 7
    y[1:3, ::2] *= 2
    y += x
    return y


def writes_to_argument(x: Any) -> Any:
    x.mul_(2)
    x[1] = 0
    return x


def writes_through_a_view(x: Any) -> Any:
    y = x * 1
    row = y[0]
    row.fill_(3)
    return y, row


def views(x: Any) -> Any:
    return x[1:, ::2], x.t(), x.view(-1), x.T, x[..., None], x


def sizes(x: Any) -> Any:
    n, m = x.shape
    last = x.shape[-1] + x.size(0) + x.numel() + len(x) + x.dim() + x.ndim
    return x.reshape(m, n) * last, x.shape, x.size(), x.shape[1:], x.shape.numel(), x.shape == (4, 5)


def types(x: Any) -> Any:
    return x.double() + 1, x.to(torch.int32), x.type_as(torch.ones(1, dtype=torch.float64)), x.dtype, x.device, x.layout


def records(x: Any) -> Any:
    best = x.max(0)
    value, place = torch.max(x, 1)
    return value, place, best.values, best.indices, best, torch.topk(x, 2), x.sort(1)


def lists(x: Any) -> Any:
    rows = [row * i for i, row in enumerate(x)]
    return torch.cat(rows), torch.stack(rows, 1), {"first": rows[0], "others": (rows[1], 3)}


def unrolled(x: Any) -> Any:
    for i in range(3):
        x = x * i + 1
    return x


def made_here(x: Any) -> Any:
    return torch.zeros(2, 3), torch.arange(5), torch.tensor([1.0, 2.0]), torch.ones_like(x), torch.full((2,), 7)


def random_numbers(x: Any) -> Any:
    return F.dropout(x, 0.5), torch.rand(2), torch.randn_like(x), x.bernoulli(0.5)


def questions(x: Any) -> Any:
    return (
        isinstance(x, torch.Tensor),
        x is None,
        torch.is_tensor(x),
        x.requires_grad,
        torch.is_grad_enabled(),
        x.is_leaf,
    )


def indices(x: Any) -> Any:
    return x[[0, 2]], x[:, torch.tensor([1, 2])], torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, 3), x[1][2]


def products(x: Any, w: Any) -> Any:
    return x @ w, F.relu(x @ w).sum(), torch.einsum("ij,jk->ik", x, w), F.softmax(w, -1)


def without_gradients(x: Any, w: Any) -> Any:
    with torch.no_grad():
        a = x @ w
        with torch.enable_grad():
            b = x @ w
    return a, b, a + b, torch.is_grad_enabled(), w.detach()


@torch.no_grad()
def _decorated(x: Any) -> Any:
    return x * 2


def calls_a_decorated(w: Any) -> Any:
    return _decorated(w) + w, _decorated(w)


WHOLE = [
    (arithmetic, X), (in_place, X), (writes_to_argument, X), (writes_through_a_view, X), (views, X), (sizes, X),
    (types, X), (records, X), (lists, X), (unrolled, X), (made_here, X), (random_numbers, X), (questions, X),
    (indices, X), (products, X, W), (without_gradients, X, W), (calls_a_decorated, W),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["auto", "aot_eager", "eager"])
@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case[0].__name__)
def test_one_graph(case: Any, backend: str) -> None:
    function, *args = case
    _check(function, *args, backend=backend)


def test_numbers_are_constants() -> None:
    def scaled(x: Any, factor: float, power: int) -> Any:
        return x * factor + (x**power) / (factor + 1)

    compiled = tcompile.compile(scaled)
    for factor, power in ((2.5, 2), (2.5, 2), (0.5, 3), (-1.0, 2)):
        _same(compiled(X, factor, power), scaled(X, factor, power))


# -- breaks ------------------------------------------------------------------------------------------------------------
def test_branch_on_a_value() -> None:
    def toy(a: Any, b: Any) -> Any:
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    compiled = _check(toy, X, X, breaks=["data-dependent-branch"])
    _same(compiled(X, -X.abs()), toy(X, -X.abs()))


def test_breaks_inside_blocks() -> None:
    def blocks(x: Any, w: Any) -> Any:
        with torch.no_grad():
            a = x @ w
            print(a.shape)
            b = a.sum() * x
        for i in range(2):
            b = b + i
            print(i)
        try:
            c = b * w.sum()
            print("in try")
            d = c + 1
        except ValueError:
            d = b
        return a, b, c, d

    _same(tcompile.compile(blocks)(X, W), blocks(X, W))


def test_sizes_that_depend_on_values() -> None:
    def picked(x: Any) -> Any:
        y = x * 2
        return y[y > 0], y.nonzero() + 1, torch.unique(y > 0)

    _same(tcompile.compile(picked)(X), picked(X))


def test_values_for_python() -> None:
    def values(x: Any) -> Any:
        return x.amax().item() + 1, float(x[0, 0]), x[0].tolist(), int(x.argmax())

    _same(tcompile.compile(values)(X), values(X))


def test_arrays_and_tensors() -> None:
    def mixed(x: Any) -> Any:
        a = (x + 1).numpy()
        b = np.sin(a) * 2 + a
        return torch.from_numpy(b) * 2

    _same(tcompile.compile(mixed)(X), mixed(X))


def test_errors_are_pytorchs_at_the_users_line() -> None:
    def wrong(x: Any) -> Any:
        y = x * 2
        return y @ x  # the shapes do not fit

    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied") as caught:
        tcompile.compile(wrong)(X)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert any("the shapes do not fit" in str(line) for line in lines)


def test_error_that_only_elements_cause() -> None:
    def index(x: Any, i: Any) -> Any:
        return x[i]

    compiled = tcompile.compile(index)
    _same(compiled(X, torch.tensor([0, 3])), X[[0, 3]])
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(X, torch.tensor([0, 9]))


def test_warnings_come_each_time() -> None:
    def warns(x: Any) -> Any:
        return F.mse_loss(x, x[:1])

    compiled = tcompile.compile(warns)
    for _ in range(2):
        with pytest.warns(UserWarning, match="different to the input size"):
            _same(compiled(X), F.mse_loss(X, X[:1]))


# -- guards ------------------------------------------------------------------------------------------------------------
def test_other_tensors_are_compiled_by_themselves() -> None:
    def twice(x: Any) -> Any:
        return x * 2, x.requires_grad, x.dtype

    compiled = tcompile.compile(twice)
    for x in (X, X.double(), X[:2], X.t(), X.clone().requires_grad_(), nn.Parameter(X), X > 0, X):
        _same(compiled(x), twice(x))


def test_modes_of_the_process() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ w, torch.ones(2)

    compiled = tcompile.compile(product)
    _same(compiled(X, W), product(X, W))
    with torch.no_grad():
        _same(compiled(X, W), product(X, W))
    with torch.inference_mode():
        _same(compiled(X, W.detach()), product(X, W.detach()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _same(compiled(X, W), product(X, W))
    with torch.device("meta"):
        assert compiled(X, W)[1].device.type == "meta"
    torch.set_default_dtype(torch.float64)
    try:
        _same(compiled(X, W), product(X, W))
    finally:
        torch.set_default_dtype(torch.float32)
    _same(compiled(X, W), product(X, W))


def test_tensors_that_are_not_captured() -> None:
    class Marked(torch.Tensor):
        pass

    def twice(x: Any) -> Any:
        return x + x

    compiled = tcompile.compile(twice)
    for x in (X.to_sparse(), X.to("meta"), X.to(torch.bfloat16)):
        wanted, got = twice(x), compiled(x)
        assert (got.layout, got.device, got.dtype) == (wanted.layout, wanted.device, wanted.dtype)
    assert type(compiled(X.as_subclass(Marked))) is Marked
    _same(torch.vmap(compiled)(X), torch.vmap(twice)(X))
    _same(torch.func.grad(lambda x: compiled(x).sum())(X), torch.func.grad(lambda x: twice(x).sum())(X))
    complex_one = torch.randn(3, dtype=torch.complex64).conj()
    torch.testing.assert_close(compiled(complex_one), twice(complex_one))


def test_writes_through_other_names() -> None:
    def update(a: Any, b: Any) -> Any:
        a.add_(1)
        return a + b

    compiled = tcompile.compile(update)
    for pair in (lambda x: (x, x.clone()), lambda x: (x, x), lambda x: (x, x[:]), lambda x: (x.view(-1)[5:10], x[1])):
        theirs, ours = X.clone(), X.clone()
        _same(compiled(*pair(ours)), update(*pair(theirs)))
        _same(ours, theirs)


def test_results_that_share_memory() -> None:
    def overlapping(x: Any) -> Any:
        y = x * 2
        return y[:3], y[1:]

    for compiled in (tcompile.compile(overlapping), torch.compile(overlapping, backend="tcompile")):
        first, second = compiled(X)
        first[1] = 7
        assert second[0].tolist() == [7] * 5


def test_results_are_the_objects_themselves() -> None:
    def same(x: Any) -> Any:
        y = x.add_(0)
        return x, x.contiguous(), y, [x], y is x, x.view(-1) is x

    a, b, c, (d,), is_same, is_view = tcompile.compile(same)(X)
    assert a is X and b is X and c is X and d is X
    assert is_same is True and is_view is False


# -- gradients ---------------------------------------------------------------------------------------------------------
def test_gradients() -> None:
    def loss(x: Any, w: Any) -> Any:
        hidden = torch.tanh(x @ w)
        return (hidden**2).mean() + hidden[0].sum()

    compiled = tcompile.compile(loss)
    for _ in range(2):
        theirs, ours = _own(W), _own(W)
        loss(X, theirs).backward()
        compiled(X, ours).backward()
        _same(ours.grad, theirs.grad)


@pytest.mark.parametrize("draws", [False, True])
def test_gradients_of_gradients(draws: bool) -> None:
    def loss(x: Any, w: Any) -> Any:
        hidden = torch.tanh(x @ w)
        return (F.dropout(hidden, 0.5, draws) ** 2).sum(), hidden.detach() * 2

    compiled = tcompile.compile(loss)
    for _ in range(2):
        found = []
        for function in (loss, compiled):
            x, w = _own(X).requires_grad_(), _own(W)
            torch.manual_seed(3)
            value, rest = function(x, w)
            assert not rest.requires_grad
            (first,) = torch.autograd.grad(value, w, create_graph=True)
            after = torch.rand(1)
            found.append([first.detach(), *torch.autograd.grad((first**3).sum(), (x, w)), after])
        _same(found[1], found[0])


def test_gradient_of_a_gradient_after_a_write() -> None:
    def cube(x: Any) -> Any:
        return (x**3).sum()

    compiled = tcompile.compile(cube)
    x = _own(X).requires_grad_()
    value = compiled(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, x, create_graph=True)


def test_retained_and_accumulated() -> None:
    def loss(x: Any, w: Any) -> Any:
        return (x @ w).relu().sum()

    compiled = tcompile.compile(loss)
    theirs, ours = _own(W), _own(W)
    seen: list[Any] = []
    for function, w in ((loss, theirs), (compiled, ours)):
        w.register_hook(lambda g: seen.append(g.sum()))
        value = function(X, w)
        value.backward(retain_graph=True)
        value.backward()
        function(X, w).backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            value.backward()
    _same(ours.grad, theirs.grad)
    torch.testing.assert_close(seen[3:], seen[:3])


def test_gradient_inside_the_function() -> None:
    def step(x: Any, w: Any) -> Any:
        value = (x @ w).pow(2).sum()
        (found,) = torch.autograd.grad(value, w)
        return w - 0.1 * found

    w = _own(W)
    _same(tcompile.compile(step)(X, w), step(X, w))


# -- modules -----------------------------------------------------------------------------------------------------------
class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.norm = nn.BatchNorm1d(8)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.last = nn.Sequential(nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 2))
        self.register_buffer("scale", torch.full((8,), 2.0))
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        x = F.relu(self.norm(self.first(x))) * self.scale
        for layer in self.layers:
            x = layer(x) + x
        return self.last(x)


def _call(module: Any, x: Any) -> Any:
    return module(x)


def test_module() -> None:
    theirs = Net()
    ours = copy.deepcopy(theirs)
    compiled = tcompile.compile(_call)
    for training in (True, True, False, True):
        theirs.train(training), ours.train(training)
        torch.manual_seed(2)
        wanted = theirs(X)
        torch.manual_seed(2)
        got, breaks = _breaks(compiled, (ours, X))
        assert not breaks
        _same(got, wanted)
        if training:
            wanted.sum().backward(), got.sum().backward()
    for (name, mine), its in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, its.grad, msg=name)
    for mine, its in zip(ours.buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(mine, its)
    assert ours.calls == theirs.calls == 4


@pytest.mark.parametrize("module", [
    nn.LSTM(5, 6), nn.GRU(5, 6, 2), nn.RNN(5, 3), nn.TransformerEncoderLayer(5, 1, 8, batch_first=True),
    nn.MultiheadAttention(5, 1), nn.Embedding(10, 3), nn.Conv1d(3, 4, 2), nn.MaxPool1d(2), nn.Softmax(-1), nn.PReLU(),
    nn.GroupNorm(3, 3), nn.Flatten(), nn.Identity(), nn.Bilinear(5, 5, 2), nn.CosineSimilarity(),
], ids=lambda module: type(module).__name__)  # fmt: skip
def test_modules_of_pytorch(module: nn.Module) -> None:
    x = torch.randn(2, 3, 5)
    args: tuple[Any, ...] = (x,)
    if isinstance(module, nn.MultiheadAttention):
        args = x, x, x
    elif isinstance(module, nn.Embedding):
        args = (torch.tensor([[1, 2], [9, 0]]),)
    elif isinstance(module, nn.Bilinear | nn.CosineSimilarity):
        args = x, x

    def call(*args: Any) -> Any:
        return module(*args)

    _check(call, *args)


def test_what_modules_change() -> None:
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    compiled = tcompile.compile(_call)
    _same(compiled(net, X), net(X))
    net[0].weight = nn.Parameter(torch.ones(5, 5))
    _same(compiled(net, X), net(X))
    net[1] = nn.Sigmoid()
    _same(compiled(net, X), net(X))
    with torch.no_grad():
        net[0].bias.zero_()
    _same(compiled(net, X), net(X))
    net[0].register_forward_hook(lambda module, args, output: output * 2)
    _same(compiled(net, X), net(X))
    net.forward = lambda x: x + 1  # type: ignore[method-assign]
    _same(compiled(net, X), net(X))


def test_compiled_module_is_the_module() -> None:
    plain = Net()
    ours = tcompile.compile(plain)
    assert type(ours) is not Net and isinstance(ours, Net) and repr(ours) == repr(plain)
    assert list(ours.state_dict()) == list(plain.state_dict())
    assert all(a is b for a, b in zip(ours.parameters(), plain.parameters(), strict=True))
    ours.eval()
    assert not plain.training
    ours.extra = 3
    assert plain.extra == 3
    got, breaks = _breaks(ours, (X,))
    assert not breaks and ours.calls == 1
    _same(got, plain(X))
    plain.first = nn.Linear(5, 8)
    _same(ours(X), plain(X))
    ours.load_state_dict(Net().state_dict())
    _same(ours(X), plain(X))
    handle = ours.register_forward_hook(lambda module, args, output: output + 1)
    _same(ours(X), plain(X))
    handle.remove()
    text = str(tcompile.explain(tcompile.compile(_call))(ours, X))
    assert "1 graph, 0 graph breaks" in text


def test_compiled_module_is_copied() -> None:
    ours = tcompile.compile(nn.Sequential(nn.Linear(5, 2), nn.Tanh()))
    wanted = ours(X)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert other[0].weight is not ours[0].weight
        _same(other(X), wanted)
    whole = nn.Sequential(ours, nn.Linear(2, 1))
    assert list(whole.state_dict()) == ["0.0.weight", "0.0.bias", "1.weight", "1.bias"]
    _same(tcompile.compile(whole)(X), whole(X))


def test_modules_with_open_sizes() -> None:
    plain = nn.Sequential(nn.Linear(5, 4), nn.ReLU())
    ours = tcompile.compile(plain, dynamic=True)
    for rows in (2, 3, 7, 1):
        x = torch.randn(rows, 5)
        _same(ours(x), plain(x))


def test_shared_parameters() -> None:
    net = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5))
    net[1].weight = net[0].weight
    compiled = tcompile.compile(_call)
    compiled(net, X).sum().backward()
    found = net[0].weight.grad.clone()
    net.zero_grad()
    net(X).sum().backward()
    torch.testing.assert_close(found, net[0].weight.grad)
    net[1].weight = nn.Parameter(torch.ones(5, 5))
    _same(compiled(net, X), net(X))


@pytest.mark.parametrize("whole", [False, True], ids=["loss", "step"])
def test_training(whole: bool) -> None:
    """A loss, or a whole step with its graph breaks, in a loop of training."""

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return F.mse_loss(model(x), y)

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    y = torch.randn(4, 2)
    losses: list[list[float]] = []
    for compiled in (False, True):
        torch.manual_seed(1)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        loss, whole_step = (tcompile.compile(f) if compiled else f for f in (loss_of, step))
        losses.append([])
        for _ in range(6):
            if whole:
                value = whole_step(model, optimizer, X, y)
            else:
                optimizer.zero_grad()
                value = loss(model, X, y)
                value.backward()
                optimizer.step()
            losses[-1].append(value.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


# -- the rest ----------------------------------------------------------------------------------------------------------
def test_threads() -> None:
    def work(x: Any) -> Any:
        return torch.sin(x) * 2 + x.sum()

    compiled, wrong = tcompile.compile(work), []

    def run(seed: int) -> None:
        x = torch.randn(seed % 3 + 2, 5)
        for _ in range(20):
            if not torch.allclose(compiled(x), work(x), rtol=1e-5, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_stances() -> None:
    def f(x: Any) -> Any:
        return torch.sin(x) + 1

    compiled = tcompile.compile(f)
    for stance in ("force_eager", "default", "eager_on_recompile"):
        with tcompile.set_stance(stance):
            _same(compiled(X), f(X))
    with tcompile.set_stance("fail_on_recompile"):
        _same(compiled(X), f(X))
        with pytest.raises(tcompile.errors.RecompileError, match="x is a float32 tensor of shape"):
            compiled(X[:2])


def test_graph_as_text() -> None:
    def f(x: Any, w: Any) -> Any:
        return F.linear(x, w.t()) + 1

    text = str(tcompile.explain(f)(X, W))
    assert "x       f32[4, 5]" in text
    assert "linear(x, t)" in text
    assert "x is a float32 tensor of shape (4, 5)" in text
    compiled = tcompile.compile(f)
    compiled(X, W)
    drawing = compiled.graphs[0].svg()
    assert "linear" in drawing and "tensor_call" not in drawing and "target=" not in drawing


def test_fullgraph() -> None:
    def broken(x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(tcompile.errors.Unsupported, match="branch depends on"):
        tcompile.compile(broken, fullgraph=True)(X)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_floats_that_vary_are_inputs(dtype: Any) -> None:
    def weighted(x: Any, w: Any, rate: float) -> Any:
        w -= rate * x
        loss = (x * x).sum() * rate + (1 - rate) / x[0, 0]
        return loss, x / rate, rate - x, w

    compiled = tcompile.compile(weighted)
    for rate in (0.1, 0.3, -7.5, 1e-3, 2.0, 0.5, 0.7, 1e30, 0.9, 0.11, 0.12):
        got, want = (
            function((torch.arange(12.0).reshape(3, 4) + 1).to(dtype), torch.ones(3, 4, dtype=dtype), rate)
            for function in (compiled, weighted)
        )
        _same(got, want)
    assert len(compiled.entries) == 2


def test_a_float_that_varies_has_no_part_in_gradients() -> None:
    def loss(x: Any, weight: float) -> Any:
        return (x.exp() * weight).sum() * weight

    compiled = tcompile.compile(loss)
    for weight in (0.5, 0.25, 2.0):
        x = torch.arange(3.0, requires_grad=True)
        (got,) = torch.autograd.grad(compiled(x, weight), [x], create_graph=True)
        torch.testing.assert_close(got, x.exp() * weight**2)
        torch.testing.assert_close(torch.autograd.grad(got.sum(), x)[0], x.exp() * weight**2)
    assert len(compiled.entries) == 2


def test_a_number_is_not_rounded_to_half_precision() -> None:
    def scaled(x: Any) -> Any:
        return x * 0.3, x / 0.3, 0.3 / x, x + 0.3

    x = torch.randn(1000).half()
    for got, want in zip(tcompile.compile(scaled)(x), scaled(x), strict=True):
        assert torch.equal(got, want)


def test_steps_of_training_are_told_as_such() -> None:
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(layer.parameters())

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = layer(x).square().sum()
        loss.backward()
        optimizer.step()
        return torch.autograd.grad(layer(x).sum(), layer.weight)

    told = tcompile.explain(step, X[:, :3])
    assert [broke.id for broke in told.break_reasons] == ["training-step"] * 4
    lines = [broke.user_stack[-1].line for broke in told.break_reasons]
    first = step.__code__.co_firstlineno
    assert lines == [first + 1, first + 3, first + 4, first + 5]


def test_an_averaged_model_is_captured() -> None:
    averaged = torch.optim.swa_utils.AveragedModel(torch.nn.Linear(3, 2))
    told = tcompile.explain(lambda x: averaged(x) * 2, X[:, :3])
    assert told.graph_count == 1 and told.graph_break_count == 0


def test_floats_of_methods_that_vary_are_inputs() -> None:
    def averaged(x: Any, w: Any, decay: float) -> Any:
        x.mul_(decay).add_(w, alpha=1 - decay)
        return x.sub(w, alpha=decay), x.div(decay), x.add(decay), x.add(w.double(), alpha=0.1)

    compiled = tcompile.compile(averaged)
    for decay in (0.9, 0.8, 0.7, -0.6, 2.0, 0.5):
        x, own = torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
        got, want = compiled(own, torch.ones(3, 4), decay), averaged(x, torch.ones(3, 4), decay)
        _same((*got, own), (*want, x))
    assert len(compiled.entries) == 2
