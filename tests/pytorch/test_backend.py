"""``torch.compile(..., backend="tcompile")``: values, gradients, writes, sizes, errors, and what PyTorch keeps.

Input: small functions and modules.
Output: what eager PyTorch gives.
Why: a change of the table or of the conversion must keep the results of eager mode.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tcompile
from tcompile.errors import InvalidArgument
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.torch_backend import torch_backend

ROOT = Path(__file__).resolve().parent.parent.parent


def compiled(function: Any, **settings: Any) -> Any:
    return torch.compile(function, backend=torch_backend, **settings)


def agree(one: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True, check_stride=True)


class Block(nn.Module):
    """A transformer's block, written out."""

    def __init__(self, width: int = 32, heads: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.dropout = heads, dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        parts = self.mixed(self.first(x)).split(width, 2)
        q, k, v = (y.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for y in parts)
        weights = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        mask = torch.tril(torch.ones(time, time, dtype=torch.bool))
        weights = weights.masked_fill(~mask, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))
        inner = F.dropout(F.gelu(self.up(self.second(x))), self.dropout, self.training)
        return x + self.down(inner)


class Residual(nn.Module):
    """Two convolutions with batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norms[0](self.one(x)))
        x = F.relu(x + self.norms[1](self.two(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Recurrent(nn.Module):
    """An LSTM cell in a Python loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(8, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = x.new_zeros(x.shape[1], 16)
        for step in x:
            h, c = self.cell(step, (h, c))
        return h


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5)), (7, 12)),
    "norms": (lambda: nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.SiLU(), nn.GroupNorm(4, 16)), (7, 12)),
    "block": (Block, (2, 10, 32)),
    "block with dropout": (lambda: Block(dropout=0.2), (2, 10, 32)),
    "encoder": (lambda: nn.TransformerEncoderLayer(32, 4, 48, dropout=0.1, batch_first=True), (2, 10, 32)),
    "residual": (Residual, (4, 3, 8, 8)),
    "recurrent": (Recurrent, (5, 3, 8)),
    "embedding": (
        lambda: nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(32, 3), nn.LogSoftmax(-1)),
        (6, 4),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_train(name: str) -> None:
    make, shape = MODELS[name]
    plain = make()
    ours = copy.deepcopy(plain)
    x = torch.randint(0, 20, shape) if name == "embedding" else torch.randn(shape)
    run = compiled(ours)
    for seed in range(2):
        losses = []
        for module, call in ((plain, plain), (ours, run)):
            module.zero_grad(set_to_none=True)
            torch.manual_seed(seed)
            loss = (call(x) ** 2).mean()
            loss.backward()
            losses.append(loss.detach())
        agree(losses[1], losses[0])
        for (label, one), other in zip(ours.named_parameters(), plain.parameters(), strict=True):
            assert one.grad is not None and other.grad is not None
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5, msg=lambda m, k=label: f"{k}: {m}")
        for one, other in zip(ours.buffers(), plain.buffers(), strict=True):
            agree(one, other)
    ours.eval(), plain.eval()
    with torch.no_grad():
        agree(run(x), plain(x), 1e-4, 1e-5)


def _views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    left, right = x.split([2, x.shape[1] - 2], 1)
    return left.t() + 1, right.unsqueeze(0).expand(3, -1, -1) * 2, torch.cat([right, left], 1).flip(0)


def _reductions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        x.sum(),
        x.mean(0),
        x.amax(1),
        x.var(1),
        x.std(0, correction=0),
        x.prod(1),
        x.argmax(1),
        x.cumsum(0),
        (x > 0).all(),
    )


def _layouts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.t().contiguous(), x.t() * 2, x.t().clone(), x[:, ::2] + 1, x.as_strided((2, 2), (1, 2)) * 3


def _kinds(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    n = x.to(torch.int64)
    return (
        n + 1,
        n / 2,
        n * 0.5,
        n == 2,
        x.to(torch.float64) * x,
        x.half() + 1,
        torch.where(n > 1, n, x),
        n // 2,
        ~(n > 1),
    )


def _steep(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.log(), 1 / x, x.sqrt(), x.pow(-0.5), torch.erf(x), torch.sigmoid(x * 100), F.gelu(x * 10), torch.tanh(x)


FUNCTIONS = [_views, _reductions, _layouts, _kinds, _steep]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__[1:])
@pytest.mark.parametrize("backend", ["auto", "eager"])
def test_functions(function: Callable[..., Any], backend: str) -> None:
    x = torch.tensor([[-1.5, 0.0, 2.0, 3.0], [1.0, -0.0, 0.25, 7.0], [5.0, 6.0, -7.0, 8.0]])
    options = {} if backend == "auto" else {"options": {"backend": backend}}
    agree(compiled(function, **options)(x), function(x), 1e-5, 1e-5)


def test_results_have_memory_of_their_own() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.clone(), x.float(), x + 0, torch.floor(x.to(torch.int64))

    x = torch.ones(3)
    clone, same, plus, _ = compiled(f)(x)
    assert clone.data_ptr() != x.data_ptr() and plus.data_ptr() != x.data_ptr()
    assert same is x or same.data_ptr() == x.data_ptr()


def test_writes() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        flat = y.view(-1)
        flat[0] = 5
        y[1:, 1].mul_(x[0])
        return flat

    first, second = (torch.ones(2), torch.arange(6.0).view(3, 2)), (torch.ones(2), torch.arange(6.0).view(3, 2))
    one, other = compiled(f)(*first), f(*second)
    agree((one, *first), (other, *second))
    assert one.data_ptr() == first[1].data_ptr()


def test_writes_that_read_one_another() -> None:
    def swap(x: torch.Tensor, y: torch.Tensor) -> None:
        held = x.clone()
        x.copy_(y)
        y.copy_(held)

    def rotate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.copy_(x.flip(0) + y)
        y.t().add_(x.sum())
        return x[1] * 2

    def overlapping(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x[0].add_(y[1])
        return x + y

    for function in (swap, rotate, overlapping):
        for shared in (False, True):
            torch._dynamo.reset()
            results = []
            for call in (function, compiled(function)):
                x = torch.arange(9.0).view(3, 3)
                y = x.t() if shared and function is overlapping else torch.ones(3, 3) * 5
                results.append((call(x, y), x, y))
            agree(results[1], results[0])


def test_a_write_is_seen_by_autograd() -> None:
    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    saved = (x * w).sum()
    compiled(lambda x: x.add_(1))(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_any_sizes() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return (torch.sin(x) * x.shape[0]).sum(0) + x.shape[1]

    call = compiled(f, dynamic=True)
    for shape in ((3, 4), (5, 2), (1, 7), (0, 3), (3, 4), (6, 1)):
        x = torch.randn(shape)
        agree(call(x), f(x))


def test_random_numbers_are_those_of_eager_mode() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = torch.rand_like(x)
        b = F.dropout(x, 0.5) + torch.randn(3)
        return a, b, torch.randint(0, 10, (4,)), torch.bernoulli(torch.full((5,), 0.5)), torch.randperm(6)

    x = torch.ones(4, 3)
    call = compiled(f)
    for seed in range(3):
        torch.manual_seed(seed)
        got = call(x)
        after = torch.rand(1)
        torch.manual_seed(seed)
        agree((got, after), (f(x), torch.rand(1)))


def test_errors_are_those_of_pytorch() -> None:
    def f(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return F.embedding(i, x) * 2

    call = compiled(f)
    x = torch.ones(3, 2)
    with pytest.raises(IndexError, match="index out of range in self"):
        call(x, torch.tensor([5]))
    agree(call(x, torch.tensor([2])), f(x, torch.tensor([2])))


def test_checks_raise() -> None:
    seen: list[FellBack] = []
    stop = bus.subscribe(lambda event: seen.append(event) if isinstance(event, FellBack) else None)
    try:
        inverse = compiled(lambda x: torch.linalg.inv(x) * 2)
        x = torch.tensor([[2.0, 1.0], [0.0, 1.0]], requires_grad=True)
        agree(inverse(x), torch.linalg.inv(x) * 2)
        with pytest.raises(torch.linalg.LinAlgError, match="diagonal element 1 is zero"):
            inverse(torch.zeros(2, 2))
        coded = compiled(lambda i: F.one_hot(i, 4) * 2)
        agree(coded(torch.tensor([1, 3])), F.one_hot(torch.tensor([1, 3]), 4) * 2)
        with pytest.raises(RuntimeError, match="Class values must be smaller"):
            coded(torch.tensor([1, 4]))
    finally:
        stop()
    assert not seen


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.complex64, torch.float16, torch.float64, torch.uint8, torch.bool]
)
def test_dtypes(dtype: torch.dtype) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + x, x * x, x == x, x.to(torch.float32) if not x.is_complex() else x.real.clone()

    x = torch.tensor([0, 1, 2, 3]).to(dtype)
    agree(compiled(f)(x), f(x))


def test_what_has_no_array_stays_with_pytorch() -> None:
    seen: list[FellBack] = []
    stop = bus.subscribe(lambda event: seen.append(event) if isinstance(event, FellBack) else None)
    try:
        x = torch.randn(5, dtype=torch.bfloat16)
        agree(compiled(lambda x: torch.sin(x) * 2)(x), torch.sin(x) * 2)
    finally:
        stop()
    assert "bfloat16" in seen[0].detail


def test_functions_of_torch_func() -> None:
    from torch.func import grad, hessian, jacrev, vmap

    def f(x: torch.Tensor) -> torch.Tensor:
        return (x**3).sum() + torch.sin(x).prod()

    x = torch.randn(3)
    agree(compiled(lambda x: grad(f)(x))(x), grad(f)(x))
    agree(compiled(lambda x: vmap(grad(f))(x))(torch.stack([x, x + 1])), vmap(grad(f))(torch.stack([x, x + 1])))
    agree(compiled(lambda x: jacrev(torch.sin)(x))(x), jacrev(torch.sin)(x))
    agree(compiled(lambda x: hessian(f)(x))(x), hessian(f)(x), 1e-4, 1e-5)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_optimizers(make: Any) -> None:
    plain = nn.Linear(4, 3)
    ours = copy.deepcopy(plain)
    one, other = make(plain.parameters(), lr=0.01), make(ours.parameters(), lr=0.01)
    x = torch.randn(5, 4)

    @compiled
    def step() -> None:
        other.step()

    for _ in range(3):
        for module, optimizer, advance in ((plain, one, one.step), (ours, other, step)):
            optimizer.zero_grad()
            (module(x) ** 2).sum().backward()
            advance()
        for a, b in zip(ours.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_options() -> None:
    x = torch.ones(3)
    agree(compiled(lambda x: x.exp() + 1, mode="max-autotune")(x), x.exp() + 1)
    agree(compiled(lambda x: x.exp() + 1, options={"exact": True})(x), x.exp() + 1)
    with pytest.raises(Exception, match="options has 'exakt', which backend='tcompile' does not know: exact"):
        compiled(lambda x: x + 1, options={"exakt": True})(x)
    with pytest.raises(Exception, match="mode must be one of None, default"):
        torch_backend(torch.fx.symbolic_trace(nn.ReLU()), [x], mode="fast")


def test_compile_takes_modules() -> None:
    plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5))
    ours = tcompile.compile(plain)
    x = torch.randn(2, 3)
    torch.manual_seed(1)
    wanted = plain(x)
    torch.manual_seed(1)
    agree(ours(x), wanted)
    assert [id(p) for p in ours.parameters()] == [id(p) for p in plain.parameters()]
    ours.eval()
    assert not plain.training
    agree(ours(x), plain(x))
    agree(tcompile.compile(plain, backend="eager", dynamic=True)(x), plain(x))
    agree(tcompile.compile(plain, backend=lambda graph, inputs: graph)(x), plain(x))
    with pytest.raises(InvalidArgument, match="backend must be a name for a torch"):
        tcompile.compile(plain, backend=lambda graph, inputs: graph, dynamic=True)


def test_an_older_pytorch_is_refused_in_one_line() -> None:
    program = """
import torch
torch.__version__ = "2.5.1"
try:
    import tcompile.torch_backend
except ImportError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert said == ("tcompile compiles for PyTorch 2.13 or later, and this is 2.5.1: pip install --upgrade torch\n")


def test_the_graph_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    tcompile.set_logs(graph_code=True)
    try:
        compiled(lambda x: torch.sin(x) * 2)(torch.ones(3))
    finally:
        tcompile.set_logs()
    assert "xp.sin" in "".join(capsys.readouterr())


def test_without_a_compiler_by_its_name() -> None:
    """The entry point is found by name, nothing imports PyTorch before the user has, and no compiler is called."""
    program = """
import sys, tcompile
assert "torch" not in sys.modules
import torch
if "tcompile" not in torch._dynamo.list_backends(None):
    from tcompile.torch_backend import torch_backend
    torch._dynamo.register_backend(torch_backend, "tcompile")
f = torch.compile(lambda x: torch.sin(x) * 2 + 1, backend="tcompile")
x = torch.ones(3)
assert torch.allclose(f(x), torch.sin(x) * 2 + 1)
"""
    environment = {**os.environ, "PATH": "", "CC": "", "CXX": ""}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_the_benchmark_writes_its_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.torch_models", "--only", "tiny", "--without-inductor"]
    subprocess.run([*command, "--out", str(tmp_path)], check=True, cwd=ROOT, capture_output=True)
    (page,) = tmp_path.glob("*.md")
    assert page.read_text(encoding="utf-8").count("| tiny, 4 to 4 |") == 1
