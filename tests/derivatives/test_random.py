"""Some generated programs, whose gradients are compared; ``tools/fuzz.py --kind gradients`` runs more."""

from __future__ import annotations

import pytest

from . import gradient_check


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_gradients_of_generated_programs(first):
    before = gradient_check.PASSED_OVER["checked"]
    for seed in range(first, first + 20):
        gradient_check.check(seed)
    assert gradient_check.PASSED_OVER["checked"] > before


def test_a_wrong_gradient_is_found(monkeypatch):
    from tcompile.graph import ops
    from tcompile.transforms.autodiff import VJPS

    source = "def f(a, b, n):\n    return np.sin(a) * b, a\n"
    assert gradient_check.difference(source, gradient_check.Plan(3)) is None
    monkeypatch.setitem(VJPS, ops.SIN, lambda e, node, g: [lambda: g])
    assert "the gradient is" in gradient_check.difference(source, gradient_check.Plan(4))
