"""Lists that iterations append to: the loop is one node, and the lists are what plain Python has."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile

from .loop_check import Plan, nodes_of

HEAD = """
def f(a, b, n):
    x, out, more = a * 1, [], []
"""

NODES = [
    """
    for i in range(n):
        x = x * 0.5 + i
        out.append(x)
    return np.array(out), x
    """,
    """
    for i in range(n):
        x = x * 0.5 + i
        out.append(x)
    return out, x, out[-1] is x
    """,
    """
    for i in range(n):
        x = x * 0.5 + i
        out.append(x * 2)
        more.append(x.max())
    return np.stack(out), np.stack(out, axis=1), np.vstack(out), np.concatenate(out), more, len(more)
    """,
    """
    for i in range(n):
        x = x * 0.5 + i
        more.append(float(x[1]))
        out.append(x[2] > 1)
    return np.array(more), np.asarray(out), more, out
    """,
    """
    out.append(x)
    for i in range(n):
        x = x * 0.5
        out.append(x)
    out.append(x + 1)
    return np.array(out), out, np.vstack(out)
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
    for i in range(n):
        x = x + 0.5
        out.append(x)
    return np.array(out), out
    """,
    """
    for i in range(n):
        row = []
        for j in range(8):
            x = x * 0.5 + j
            row.append(x[j])
        out.append(np.array(row))
    return np.array(out)
    """,
    """
    for i in range(n):
        y = a * i
        out.append(y)
    return out, y, np.array(out), out[2] is y
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x + 1)
        out.append(x + 2)
    return np.array(out), out
    """,
    """
    for i in range(n):
        y = x * 0.5 + 1
        more.append((x - y).sum())
        x = y
    return more, x, sum(more), max(more), np.mean(more)
    """,
    """
    same = out
    for i in range(n):
        x = x * 0.5
        same.append(x)
    return out is same, out
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
    x[0] = 9
    return np.array(out), out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
    out[0][0] = 9
    out[-1][1] = 8
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
    p.all = out
    return x
    """,
    """
    for i in range(n):
        for j in range(6):
            x = x * 0.5 + j
        out.append(x)
    return out, [item is x for item in out]
    """,
    """
    for i in range(n):
        x = x + 1
        for j in range(6):
            if x[j] > 9:
                break
            x = x * 0.5 + j
        if x[0] > 2:
            x = x - 1
        out.append(x)
    return out, [item is x for item in out]
    """,
]

# What a list may not be told of as one array.
OTHERS = [
    """
    for i in range(n):
        x = x * 0.5 + i
        out.append(x)
        x[0] = 7
    return out, x
    """,
    """
    for i in range(n):
        out.append(x)
        x = x * 0.5
    return out, x
    """,
    """
    for i in range(n):
        x *= 0.5
        out.append(x)
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
        x += 1
        out.append(x)
    return out, x
    """,
    """
    for i in range(n):
        x += 1
        x = x * 0.5
        out.append(x)
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
        more.append(x)
    return out, more, x
    """,
    """
    y, z = b * 1, b * 2
    for i in range(n):
        z, y, x = y, x, x * 0.5 + 1
        out.append(x)
    return out, [item is y for item in out], [item is z for item in out]
    """,
    """
    y = b * 1
    for i in range(n):
        y = x
        x = x * 0.5 + 1
        out.append(x)
    return out, [item is y for item in out]
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
        out.append(x + 1)
    return out, [item is x for item in out]
    """,
    """
    y = z = x
    for i in range(n):
        z, y, x = y, x, x * 0.5
        out.append(x)
    return out, x, y, z
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x[1:])
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append((x, i))
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        if i % 2:
            out.append(x)
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
        if x[1] < 0.1:
            break
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x if i else 1.5)
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x[:i])
    return out, x
    """,
    """
    y = x * 2
    for i in range(n):
        if i > 3:
            y = x * 0.5 + i
        x = x + 1
        out.append(y)
    return out, x, [item is y for item in out]
    """,
    """
    y = x * 2
    for i in range(n):
        if x.max() > 4:
            y = x * 0.5 + i
        x = x + 1
        out.append(y)
    return out, x, [item is y for item in out]
    """,
    """
    y = x * 2
    for i in range(n):
        for j in range(i - 2):
            y = y * 0.5 + i
        out.append(y)
    return out, [item is y for item in out]
    """,
    """
    for i in range(n):
        for j in range(6):
            if x[j] > 20:
                z = x
                break
            x = x * 1.5 + 1
        else:
            z = x + 1
        x = z
        out.append(x)
    if len(out) > 3:
        out[-1][0] = 4
    return (out,)
    """,
    """
    z = b * 1
    for i in range(n):
        z = z * 0.5 + x
        out.append(z)
    for i in range(n):
        more.append(z)
        z[2] = 5
        x = x * 0.5 + 1
    return out, more, x, z
    """,
    """
    for i in range(n):
        for j in range(6):
            if x[j] > 3:
                break
            x = x * 1.5 + 1
        out.append(x)
    return out, [item is x for item in out]
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(i)
        more.append(len(out))
    return out, x, more
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x)
        if i > 3:
            raise ValueError(len(out))
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        out.append(x.sum())
        out.append(x)
    return out, x
    """,
    """
    p.all = out
    for i in range(n):
        x = x * 0.5
        p.all.append(x)
    return out, x
    """,
    """
    for i in range(n):
        x = x * 0.5
        b[i % 8] = len(out)
        out.append(x)
    return out, x, b
    """,
]


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("body", NODES)
def test_lists_of_loops_that_are_nodes(body, backend):
    assert nodes_of(HEAD + body, Plan(backend, (7, 8, 20, 5)))


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("body", OTHERS)
def test_lists_that_are_python_s(body, backend):
    assert nodes_of(HEAD + body, Plan(backend, (7, 8, 20, 1, 0))) is not None


def test_what_a_loop_inside_makes_in_any_case_is_an_item():
    def f(x, n):
        out = []
        for _ in range(n):
            for j in range(60):
                x = x * 0.5 + j
            out.append(x)
        return out, x

    loops = tcompile.explain(f)(np.arange(8.0), 50).loops
    assert len(loops) == 2 and all("one node" in text for text in loops)


def test_a_list_of_open_length():
    def f(x, n):
        out = []
        for _ in range(n):
            x = x * 0.5 + 1
            out.append(x)
        return np.array(out).sum(axis=0), len(out), out

    tcompile.reset()
    compiled = tcompile.compile(f)
    for n in (30, 40, 50, 77, 2, 0):
        got, want = compiled(np.arange(5.0), n), f(np.arange(5.0), n)
        np.testing.assert_array_equal(got[0], want[0])
        assert got[1] == want[1] and all(map(np.array_equal, got[2], want[2])) and len(got[2]) == n
        assert all(item.flags.owndata for item in got[2])
    assert len(compiled.entries) < 5 and not compiled.breaks


def test_what_a_list_holds_is_nobody_else_s():
    @tcompile.compile
    def f(x):
        out = []
        for i in range(50):
            x = x * 0.5 + i
            out.append(x)
        return out, x, np.array(out)

    out, x, rows = f(np.arange(4.0))
    assert out[-1] is x and len(set(map(id, out))) == 50
    out[3][:] = -1
    assert rows.min() >= 0 and all(item.min() >= 0 for item in [*out[:3], *out[4:]])
    out, x, _ = f(np.arange(4.0))
    assert out[3].min() >= 0


def test_branches_and_loops_with_tests_inside_leave_lists_alone():
    body = """
    for i in range(n):
        x = x * 0.5 + i
        if x.max() > 4:
            x = x * 0.25
        for j in range(6):
            if x.sum() > 40:
                break
            x = x + 0.5
        out.append(x)
        more.append(x.max())
    for i in range(n):
        x = x * 0.5
        if x.max() < 0.1:
            break
    return np.array(out), more, x
    """
    assert nodes_of(HEAD + body, Plan("llvm", (20,))) == 2


# Uses of such lists after the loop, of which many read item by item, and some cannot be captured: what a step has read
# until then is taken back with it.
USES = [
    "np.unstack(out)",
    "max(kinds)",
    "sum(flags)",
    "np.float64(2) * more",
    "x.reshape(*kinds)",
    "[*map(float, more)]",
    "out.index(x)",
    "x in out",
    "sorted(more)",
    "np.hstack(out)",
    "np.array(out, dtype='f4')",
    "np.cumsum(more)",
    "dict(zip(range(3), more))",
    "out[::-1]",
    "out + out",
    "out * 2",
    "list(enumerate(more))",
    "list(reversed(out))",
    "out == out",
    "out.pop()",
    "out.copy()",
    "[y * 2 for y in out]",
    "np.array(more) * 2",
    "np.array([out, out])",
    "tuple(flags)",
    "np.concatenate([out, out])",
    "np.mean(out, axis=0)",
    "any(flags)",
    "min(more), max(more)",
    "np.array(out).T @ np.array(more)",
    "str(kinds)",
    "print(len(out))",
    "np.asarray(flags).sum()",
    "len(more)",
    "np.dot(more, more)",
    "out.clear()",
    "np.iterable(more)",
    "np.split(x, kinds[:2])",
    "x.transpose(kinds[:1])",
    "np.pad(x, kinds[:2])",
    "np.tile(x, kinds)",
    "np.shape(out), np.ndim(more), np.size(out)",
    "x[kinds]",
    "x[out]",
    "out.extend(more)",
    "np.vstack([out[0], out[-1]])",
    "np.column_stack(out)",
    "list(zip(out, more))",
    "out.sort()",
    "np.stack(out, axis=-1)",
    "np.concatenate(out, axis=None)",
    "np.where(flags, more, 0)",
    "np.full(3, more[-1])",
]


@pytest.mark.parametrize("use", USES)
def test_lists_after_the_loop(use):
    text = f"""
    kinds, flags = [], []
    for i in range(n):
        x = x[::-1] * 0.5 + i
        out.append(x)
        more.append(x[2])
        kinds.append(int(x.argmax()) % 3)
        flags.append(bool(x[1] > 2))
    r = {use}
    if not isinstance(r, (list, tuple, np.ndarray)):
        r = repr(r)
    return r, x, out, more[-1:], kinds[-2:], flags[-2:]
    """
    for backend in ("eager", "llvm"):
        assert nodes_of(HEAD + text, Plan(backend, (7, 20, 5))) is not None


def test_array_of_an_empty_list():
    """Of no items NumPy makes float64, whatever the items would be."""

    def f(q, m, size):
        return np.array([q[1] for i in range(size)]), np.array([m[1] for i in range(size)])

    q, m = np.array([True, False]), np.arange(6).reshape(2, 3)
    for dynamic in (None, True):
        compiled = tcompile.compile(f, dynamic=dynamic)
        for size in (3, 4, 5, 0, 7, 0, 1):
            for got, wanted in zip(compiled(q, m, size), f(q, m, size), strict=True):
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_array_equal(got, wanted)
