"""A module that is edited while a notebook works with it: IPython's autoreload changes functions in place."""

from __future__ import annotations

import os
import sys

import pytest

MODULE = """\
def scaled(x):
    return x * {k}

class Model:
    def __init__(self, w):
        self.w = w + {k}

    def forward(self, x):
        return x * self.w + {k}

    @property
    def bias(self):
        return {k}

    @staticmethod
    def shifted(x):
        return x + {k}

    @classmethod
    def of_class(cls, x):
        return x - {k}

    def __call__(self, x):
        return x / {k}
"""
EXPRESSIONS = [
    "scaled(x)", "edited.scaled(x)", "model.forward(x)", "x * model.bias", "model.shifted(x)", "Model.of_class(x)",
    "model(x)", "x * Model(2).w", "compiled(x)",
]  # fmt: skip


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes the module anew; each time it is as much later as autoreload needs to see it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(k):
        path = tmp_path / "edited.py"
        path.write_text(MODULE.format(k=k), encoding="utf-8")
        os.utime(path, (1000 + k, 1000 + k))

    yield write
    sys.modules.pop("edited", None)


def test_edits_are_seen(notebook, module):
    module(1)
    notebook("%load_ext autoreload\n%autoreload 2\nimport edited, tcompile\nfrom edited import Model, scaled")
    try:
        notebook("model = Model(2)\nx = np.arange(3.0)\ncompiled = tcompile.compile(edited.scaled)")
        for i, text in enumerate(EXPRESSIONS):
            notebook(f"def plain{i}(x): return {text}")
            notebook(f"%%tcompile --quiet\ndef fast{i}(x): return {text}")
        for k in (1, 2, 3):
            module(k)
            for i, text in enumerate(EXPRESSIONS):
                for _ in range(2):
                    got = notebook(f"fast{i}(x)").value
                assert got.tolist() == notebook(f"plain{i}(x)").value.tolist(), (k, text)
    finally:
        notebook("%autoreload 0")
