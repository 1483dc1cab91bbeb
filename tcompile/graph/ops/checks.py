"""What a graph relies on that only its own values tell.

Input: nothing.
Output: a row of the op table.
Why: a graph that follows one path through a function's branches has to notice where a call takes another one.

``expect(value, expected=…)`` is its operand; where that differs from ``expected`` it raises ``OtherPath``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.graph.op import SIGNALS, Op, define
from tcompile.graph.ops.rules import only
from tcompile.graph.types import TensorType


class OtherPath(BaseException):
    """The call takes another path through its function. It is no Exception, for which compiled code begins again."""


def _expect(value: Any, expected: Any) -> Any:
    if value != expected:
        raise OtherPath
    return value


def _rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return only("expect", types)


EXPECT = define(Op("expect", "opaque", 1, _rule, _expect, "the operand; where it is not ``expected``, an error",
                   SIGNALS))  # fmt: skip

__all__ = ["EXPECT", "OtherPath"]
