"""Scripts of graphs: files that run by themselves.

Input: a ``Graph``, and inputs for it where there are some.
Output: the text of a script: the graph as Python, its inputs, and a last line that compares the backends on it.
Why: a failing graph can be kept, sent, edited and run again with nothing else.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tcompile.graph.ir import Graph
from tcompile.graph.printer import code

SMALL = 64  # elements of an array that is written as a literal


def script(graph: Graph, about: str = "", inputs: Sequence[Any] | None = None, options: str = "") -> str:
    """The text of a script that runs ``graph``. ``about`` stands at its top.

    ``inputs`` are written out where they are small; all others, and those not given, are made up from their types when
    the script runs. ``options`` are keyword arguments of ``tcompile.debug.script.main``, as text.

    >>> from tcompile.graph import TensorType, ops
    >>> g = Graph("double")
    >>> x = g.input("x", TensorType(np.dtype("float32"), (3,)))
    >>> g.outputs = [ops.apply(g, "multiply", x, 2.0)]
    >>> print(script(g, inputs=[np.float32([1, 2, 3])]).partition("def ")[2], end="")
    double(x: "f32[3]"):
        multiply = xp.multiply(x, 2.0)  # f32[3]
        return (multiply,)
    <BLANKLINE>
    <BLANKLINE>
    INPUTS = [
        np.array([1.0, 2.0, 3.0], "float32"),  # x
    ]
    <BLANKLINE>
    if __name__ == "__main__":
        main(__file__, INPUTS)
    """
    return "\n".join(_lines(graph, about, inputs, options)) + "\n"


def _lines(graph: Graph, about: str, inputs: Sequence[Any] | None, options: str) -> Iterator[str]:
    plain = "".join(c if c.isprintable() or c == "\n" else " " for c in about)
    text = plain.replace("\\", "/").replace('"""', "'''") or f"The graph {graph.name}."
    yield '"""' + "\n".join(textwrap.fill(line, 116) for line in text.splitlines())
    yield ""
    yield "    python <this file>             compares the backends with NumPy on this graph"
    yield "    python <this file> --minify    looks for a smaller graph that goes wrong in the same way"
    yield '"""'
    yield ""
    yield "import numpy as np"
    yield ""
    yield "from tcompile.debug.script import main"
    yield "from tcompile.graph.namespace import xp"
    yield ""
    yield ""
    yield code(graph)
    yield ""
    yield "INPUTS = ["
    for node, value in zip(graph.inputs, inputs or [None] * len(graph.inputs), strict=True):
        yield f"    {input_text(value)},  # {node.name}"
    yield "]"
    yield ""
    yield 'if __name__ == "__main__":'
    yield f"    main(__file__, INPUTS{', ' if options else ''}{options})"


def input_text(value: Any) -> str:
    """An input as a Python expression; ``None`` where it is to be made up: it is large, or has no plain form."""
    if isinstance(value, np.ndarray | np.generic) and value.size <= SMALL and value.dtype.kind in "biufc":
        if value.dtype.itemsize > {"f": 8, "c": 16}.get(value.dtype.kind, 8):
            return "None"  # Python's numbers do not hold it
        return f'np.array({_nested(np.asarray(value).tolist())}, "{value.dtype.name}")'
    if isinstance(value, bool | int | float | complex):
        return _nested(value)
    return "None"


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    if isinstance(value, complex):
        return f"complex({_nested(value.real)}, {_nested(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


__all__ = ["SMALL", "input_text", "script"]
