"""Template strings (PEP 750) are records of their parts, whose arrays stay in the graph."""

import sys

import pytest

import tcompile

from .helpers import X

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="there are no template strings")

PROGRAM = """
def kept(x):
    y = x * 2
    return t"a{y}b{y.sum():>5}{x!r}{1 + 2!s:{x.ndim}}", y

def read(x):
    t = t"{x + 1} and {x.ndim!a}"
    first, second = t.interpolations
    return first.value * 2, first.expression, second.conversion, second.format_spec, t.strings, t.values[0] + 1, bool(t)

def walked(x):
    found = []
    for part in t"{x}text{x * 2}{x * 3}":
        found.append(part if isinstance(part, str) else part.value + 1)
    return found

def broken(x):
    t = t"{x + 1} {x.ndim}"
    print("here")
    return t, t.interpolations[0].value * 2
"""


def parts(found):
    """What templates and interpolations hold, as plain tuples."""
    if type(found).__name__ == "Template":
        return found.strings, [parts(one) for one in found.interpolations]
    if type(found).__name__ == "Interpolation":
        return parts(found.value), found.expression, found.conversion, found.format_spec
    if isinstance(found, tuple | list):
        return type(found)(parts(one) for one in found)
    return found.tolist() if hasattr(found, "tolist") else found


@pytest.mark.parametrize("name", ["kept", "read", "walked", "broken"])
def test_templates(name, capsys):
    space = {}
    exec(PROGRAM, space)
    compiled = tcompile.compile(space[name], backend="eager", fullgraph=name != "broken")
    want = parts(space[name](X))
    for _ in range(3):
        assert parts(compiled(X)) == want
    assert any(graph.op_count for graph in compiled.graphs)
    assert capsys.readouterr().out in ("", "here\n" * 4)
