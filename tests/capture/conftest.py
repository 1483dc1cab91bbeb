"""Every test of capture starts with nothing compiled."""

from __future__ import annotations

import pytest

import tcompile


@pytest.fixture(autouse=True)
def _nothing_compiled():
    tcompile.reset()
    yield
    tcompile.reset()
