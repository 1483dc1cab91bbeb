"""The values that nodes have in the call that is being captured.

Input: nodes of the graph under construction.
Output: their values, computed by the libraries.
Why: a function that capture does not look into is called once, to see what it returns; and a
branch may be specialised to the value that this call has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.capture.guards.sources import ComputedSource, SizeSource, Source
from tcompile.capture.values.base import Context
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, ops
from tcompile.graph.evaluate import concrete


def examples_of(tx: Context, operands: Sequence[Any]) -> list[Any]:
    """The values of operands in the call that is being captured, computed by their libraries.

    Raises CannotCapture where an operation raises, or an operand depends on an iteration that is followed for all.
    """
    hints, values = tx.graph.env.hints, tx.examples
    waiting = [operand for operand in operands if isinstance(operand, Node)]
    while waiting:
        node = waiting[-1]
        missing = [other for other in node.inputs if other not in values]
        if node not in values and missing:
            waiting += missing
            continue
        waiting.pop()
        if node not in values:
            values[node] = _example_of(tx, node)
    return [values[o] if isinstance(o, Node) else concrete(o, hints) for o in operands]


def _example_of(tx: Context, node: Node) -> Any:
    """The value of a node whose operands' values are known."""
    if node.op is ops.INPUT:
        inputs = tx.graph.inputs
        if node not in inputs:
            raise CannotCapture("data-dependent-value", "It is another one in each iteration of a loop.")
        return _value_at(tx, tx.input_sources[inputs.index(node)])
    hints, values = tx.graph.env.hints, tx.examples
    given = [values[o] if isinstance(o, Node) else concrete(o, hints) for o in node.operands]
    attrs = {key: concrete(value, hints) for key, value in node.attrs.items()}
    if node.regions:
        attrs["regions"] = node.regions
    try:
        return node.op.reference(tx.frontend_at(node.device).namespace)(*given, **attrs)
    except Exception as error:
        raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error


def _value_at(tx: Context, source: Source) -> Any:
    """The object at a source in the call that is being captured."""
    if source in tx.objects:
        return tx.objects[source]
    if isinstance(source, SizeSource):
        return eval(source.size, dict(tx.graph.env.hints))
    if isinstance(source, ComputedSource):
        names = [f"p{i}" for i in range(len(source.parts))], [f"f{i}" for i in range(len(source.functions))]
        scope = {name: _value_at(tx, part) for name, part in zip(names[0], source.parts, strict=True)}
        scope.update(zip(names[1], source.functions, strict=True))
        return eval(source.template.format(*names[0], *names[1]), scope)
    raise CannotCapture("unsupported-argument", f"The value of `{source.text}` is not known while compiling.")


__all__ = ["examples_of"]
