"""Generated programs of PyTorch's tensors, in eager mode and compiled.

Input: seeds, from which come the program and the way in which it is run.
Output: ``Difference`` where a run differs in results, types, strides, aliasing, writes, gradients, output or errors.
Why: hand-written tests do not cover the combinations of views, writes, dtypes, grad modes and graph breaks.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from capture.language_check import Difference, checks, shrink

import tcompile

CALLS = 3
_POINTWISE = ("torch.sin({a})", "torch.tanh({a})", "{a}.abs()", "F.relu({a})", "F.gelu({a}.double())", "-{a}",
              "torch.sigmoid({a})", "{a}.clamp(-1, 1)", "{a}.square()", "torch.sign({a})", "F.softmax({a}.float(), -1)",
              "{a}.detach()", "{a}.clone()", "{a}.contiguous()", "{a}.float()", "{a}.to(torch.float64)", "{a}.int()",
              "{a} > 0", "{a}.bool()", "torch.zeros_like({a})", "{a}.exp().clamp(max=5)", "abs({a})",
              "F.dropout({a}.float(), 0.5)", "torch.nan_to_num({a})", "{a}.cumsum(0)",
              "F.layer_norm({a}.float(), {a}.shape[-1:])")  # fmt: skip
_BINARY = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / ({b} + 10)",
    "torch.maximum({a}, {b})",
    "{a} ** 2 + {b}",
    "torch.where({a} > {b}, {a}, {b})",
    "{a} < {b}",
    "torch.atan2({a}.float(), {b}.float())",
    "{a} == {b}",
)
_VIEWS = (
    "{a}.t()",
    "{a}[1:]",
    "{a}[..., ::2]",
    "{a}.view(-1)",
    "{a}.reshape(-1, 1)",
    "{a}[0]",
    "{a}.unsqueeze(0)",
    "{a}.transpose(0, -1)",
    "{a}.flatten()",
    "{a}[:, 1]",
    "{a}.expand(2, *{a}.shape)",
    "{a}.T",
    "{a}[-1:]",
    "{a}.unbind(0)[-1]",
    "{a}.split(2)[0]",
    "{a}.chunk(2)[-1]",
    "{a}.diagonal()",
    "{a}.squeeze()",
    "{a}.mT",
)
_REDUCED = (
    "{a}.sum()",
    "{a}.float().mean(0)",
    "{a}.max()",
    "{a}.amax(-1)",
    "{a}.argmax()",
    "{a}.any()",
    "{a}.max(0).values",
    "torch.topk({a}.flatten(), 2)[0]",
    "{a}.float().std()",
    "{a}.sort(0)[1]",
    "{a}.prod()",
    "torch.logsumexp({a}.float(), 0)",
    "{a}.float().norm()",
    "{a}.shape[0] * 2",
    "{a}.sum().item()",
    "{a}.numel()",
    "{a}.tolist()",
    "{a}.dtype",
    "len({a})",
    "{a}.requires_grad",
    "float({a}.float().sum()) > 0",
)
_JOINED = ("torch.cat([{a}.flatten(), {b}.flatten()])", "torch.stack([{a}, {a}])", "{a} @ {b}",
           "F.linear({a}.float(), torch.ones(2, {a}.shape[-1]))", "torch.einsum('ij,kj->ik', {a}, {b})",
           "{a}[i % {a}.shape[0]]", "{a}[{a} > 0]", "{a}.index_select(0, torch.tensor([0]))",
           "{a}.gather(0, torch.zeros_like({a}).long())")  # fmt: skip
_WRITES = (
    "{a}.add_(1)",
    "{a}[0] = 2",
    "{a}[1:] *= 2",
    "{a} += 1",
    "{a}.mul_({b}.clone())",  # written memory may not overlap with what is read: PyTorch checks some layouts alone
    "{a}.zero_()",
    "{a}.copy_({b})",
    "{a}[..., 0] = {b}[..., 0]",
    "{a}[{a} > 1] = 0",
    "{a}.clamp_(min=0)",
    "{a}.view(-1)[0] = 5",
    "{a}.fill_(3)",
    "{a}[0].sub_(1)",
    "{a}.masked_fill_({a} > 0, 1)",
    "{a}.t().add_({a}.t())",
    "{a}.relu_()",
)
_OTHERS = (
    "print({a}.shape)",
    "print('here')",
    "box.append({a})",
    "box.append({a}.sum().item())",
    "state['t'] = {a}",
    "state['n'] = state.get('n', 0) + 1",
    "{c} = [{a}, {b}]",
    "{c} = ({a}, n)",
    "n = n + 1",
    "s = s * 2",
    "{a}, {b} = {b}, {a}",
    "{c} = helper({a}, {b})",
    "{c} = torch.tensor([s, n * 1.0])",
    "{c} = torch.arange(n + 1)",
    "{c} = {{'x': {a}}}",
    "{c} = np.sin({a}.detach().double().numpy())",
    "{c} = torch.rand(2) + {a}.sum()",
    "{c} = layer({a}.float().reshape(-1)[:4].expand(2, -1))",
)
_WRITTEN = "one of the variables needed for gradient"
_NAMES = ("x", "w", "y", "z", "v")


def program(random: Random) -> str:
    """The text of a function ``f(x, w, n, s)`` of two tensors and two numbers."""
    lines = ["def f(x, w, n, s):", "    y, z, v, i = x * 2, w.t(), x[0], 1"]
    for _ in range(random.randint(2, 7)):
        lines += _statement(random, 1)
    return "\n".join([*lines, "    return x, w, y, z, v, n, s", ""])


def _statement(random: Random, depth: int) -> list[str]:
    indent, kind = "    " * depth, random.random()
    if depth < 3 and kind < 0.2:
        head = random.choice(("if n > 2:", "if {a}.sum() > 0.37:", "for i in range(3):", "with torch.no_grad():",
                              "try:", "for i in range(n):", "with torch.enable_grad():", "if i % 2:",
                              "with torch.autograd.set_detect_anomaly(False):"))  # fmt: skip
        inside = [line for _ in range(random.randint(1, 3)) for line in _statement(random, depth + 1)]
        closing = [f"{indent}except (RuntimeError, IndexError, TypeError):", f"{indent}    n = 7"]
        return [indent + _filled(head, random), *inside, *(closing if head == "try:" else [])]
    target = random.choice(_NAMES[2:])
    if kind < 0.32:
        return [indent + _filled(random.choice(_WRITES), random)]
    if kind < 0.42:
        return [indent + _filled(random.choice(_OTHERS), random)]
    forms = random.choice((_POINTWISE, _BINARY, _BINARY, _VIEWS, _VIEWS, _REDUCED, _JOINED))
    return [f"{indent}{target} = {_filled(random.choice(forms), random)}"]


def _filled(form: str, random: Random) -> str:
    a, b, c = (random.choice(_NAMES) for _ in range(3))
    if random.random() < 0.2:
        b = random.choice(("n", "s"))
    return form.format(a=a, b=b, c=c)


@dataclass(frozen=True)
class Plan:
    """How a program is run: by which backend, and on which tensors."""

    seed: int
    backend: str

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> Plan:
        """A plan."""
        return cls(random.randrange(1 << 30), backend or random.choice(("auto", "auto", "aot_eager", "eager")))

    def simpler(self) -> Iterator[Plan]:
        """The same program in simpler ways: there is none."""
        return iter(())


def _arguments(plan: Plan, call: int) -> list[Any]:
    generator = torch.Generator().manual_seed(plan.seed % 1000 + call % 2)
    random = Random(plan.seed + call % 2)
    x = torch.randn(4, 5, generator=generator)
    w = torch.randn(random.choice(((5, 4), (4, 5), (5, 3))), generator=generator)
    if random.random() < 0.3:
        x = x.t().contiguous().t()
    if random.random() < 0.15:
        x = x.double()
    if random.random() < 0.15:
        w = (w * 3).long()
    elif random.random() < 0.6:
        w.requires_grad_()
    if random.random() < 0.3 and x.is_floating_point():
        x.requires_grad_()
    return [x, w, random.choice((1, 2, 3)), random.choice((0.5, 2.0))]


def run(function: Callable[..., Any], names: dict[str, Any], arguments: list[Any], one_by_one: bool) -> Any:
    """What a call returns or raises, prints, and leaves behind."""
    torch.manual_seed(3)
    names["box"], names["state"] = [], {}
    said, found = io.StringIO(), None
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = function(*arguments)
        except Exception as error:
            return [type(error), said.getvalue(), picture((arguments, names["box"], names["state"]))]
        everything = (found, arguments, names["box"], names["state"])
        return [
            picture(everything),
            aliases(everything),
            gradients(found, arguments, one_by_one),
            said.getvalue(),
            float(torch.rand(1)),
        ]


def picture(value: Any) -> Any:
    """What can be seen of a value."""
    if isinstance(value, torch.Tensor):
        own = value.detach()
        steps = tuple(step for step, size in zip(own.stride(), own.shape, strict=True) if size > 1 and own.numel())
        return type(value), str(own.dtype), tuple(own.shape), steps, value.requires_grad, Elements(own.clone())
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, Elements(torch.from_numpy(value.copy()))
    if isinstance(value, tuple | list):
        return type(value), [picture(item) for item in value]
    if isinstance(value, dict):
        return {key: picture(item) for key, item in value.items()}
    return (type(value), Elements(torch.tensor(value))) if isinstance(value, float) else (type(value), value)


class Elements:
    """Elements, which are equal to others that are close: kernels may round otherwise."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Elements)
        try:
            torch.testing.assert_close(self.tensor, other.tensor, rtol=1e-3, atol=1e-4, equal_nan=True)
        except AssertionError:
            return False
        return True

    def __repr__(self) -> str:
        return str(self.tensor.tolist())[:300]

    __hash__ = None  # type: ignore[assignment]


def aliases(value: Any) -> Any:
    """Which tensors are one object, and which share memory."""
    tensors = [t for t in _tensors(value) if t.numel()]
    places = [t.untyped_storage().data_ptr() for t in tensors]
    return [[a is b for b in tensors] for a in tensors], [[p == q for q in places] for p in places]


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, tuple | list) else []


def gradients(found: Any, arguments: list[Any], one_by_one: bool) -> Any:
    """The gradients of all results' sum, or of each result in turn, by arguments and results, or the errors."""
    smooth = [t for t in _tensors(found) if t.requires_grad and t.is_floating_point()]
    try:
        smooth = [t for t in smooth if t.is_leaf or t.grad_fn is not None]  # others are views made without gradients
    except RuntimeError as error:  # such a view, whose base was written since
        return _message(error)
    wanted = [t for t in (*arguments, *smooth) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not smooth or not wanted:
        return None
    try:
        total = sum((t.double() * (1 + k)).sum() for k, t in enumerate(smooth))
        made = torch.autograd.grad(total, wanted, allow_unused=True)
    except RuntimeError as error:
        return _message(error)
    return [
        None if g is None or not (g.abs() > 1e-4).any() else (str(g.dtype), tuple(g.shape), Elements(g)) for g in made
    ]


def _message(error: RuntimeError) -> str:
    return re.sub(r"Output \d+ of \w+", "", str(error))[:40]


def _first(got: Any, wanted: Any, place: str) -> tuple[str, Any, Any]:
    """The first place in which two pictures differ, and what is there."""
    if type(got) is type(wanted) and isinstance(got, tuple | list) and len(got) == len(wanted):
        for number, (mine, its) in enumerate(zip(got, wanted, strict=True)):
            if mine != its:
                return _first(mine, its, f"{place}[{number}]")
    return place, got, wanted


def _names() -> dict[str, Any]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 2)

    def helper(a: Any, b: Any) -> Any:
        return a * 2 - b

    return {"torch": torch, "F": F, "np": np, "layer": layer, "helper": helper}


def compare(source: str, plan: Plan) -> bool:
    """Runs a program both ways; False where it is of no use. Raises Difference."""
    names, own = _names(), _names()
    exec(compile(source, "<tensors>", "exec"), names)
    exec(compile(source, "<tensors>", "exec"), own)
    compiled = tcompile.compile(own["f"], backend=plan.backend)
    for call in range(CALLS):
        wanted = run(names["f"], names, _arguments(plan, call), plan.seed % 2 > 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = run(compiled, own, _arguments(plan, call), plan.seed % 2 > 0)
        if len(wanted) == len(got) == 5 and any(_WRITTEN in str(each[2]) for each in (got, wanted)):
            got[2] = wanted[2]  # docs/pytorch.md: a graph does not keep for its backward pass what eager mode keeps
        if got != wanted:
            place, mine, its = _first(got, wanted, "")
            raise Difference(f"call {call}, at {place}: {mine} instead of {its}"[:1500])
    return True


check, difference = checks(program, Plan.random, compare)

__all__ = ["Difference", "Plan", "check", "compare", "difference", "program", "shrink"]
