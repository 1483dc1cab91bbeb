"""Tests that need PyTorch are collected where it is installed (``make test-torch``)."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*", "tensor_check.py"]


@pytest.fixture(autouse=True)
def _new_dynamo() -> Iterator[None]:
    """Has PyTorch forget what it compiled, and its own warnings."""
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
