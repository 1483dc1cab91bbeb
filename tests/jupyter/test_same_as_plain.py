"""Cells of many kinds, plain and under %%tcompile: the same names, values, output, displayed value and errors."""

from __future__ import annotations

import pytest

from tcompile.debug.differences import difference

CELLS = {
    "views write through": "x = np.arange(10)\ny = x[::2]\ny[0] = 50\ny += 1\nx",
    "aliases": "a = np.ones(3)\nb = a\na = a + 1\nb *= 5\na, b",
    "the same object": "a = np.ones(3)\nb = a\nsame = a is b\nc = (a, b)\nalso = c[0] is c[1]",
    "in place": "a = np.ones(4, 'f4')\na += 1\na *= np.float32(3)\na[1:3] = -1\na",
    "out=": "a = np.ones(3)\no = np.empty(3)\nr = np.add(a, 1, out=o)\nr is o",
    "scalars": "s = np.float32(3) + 1\nt = np.int64(7) // 2\nu = (np.arange(5) > 2).sum()\nv = np.arange(3).max()",
    "python numbers": "n = 3\nm = n ** 2 + 1.5\nk = divmod(17, 5)\nf'{m} {k}'",
    "dtypes": "a = np.arange(5, dtype='i2')\nb = a * 2\nc = a / 2\nd = a + np.float32(1)\ne = a > 2\ng = ~e",
    "loops": "t = np.zeros(3)\nfor i in range(4):\n    t = t + i\n    if i == 2:\n        continue\n"
    "else:\n    done = True\ni",
    "while": "n = 0\nwhile True:\n    n += 1\n    if n > 5:\n        break\nn",
    "branch on data": "a = np.arange(4.0)\nif a.sum() > 3:\n    b = a * 2\nelse:\n    b = -a\nb",
    "comprehensions": "l = [np.ones(n) * n for n in range(3)]\nd = {k: v.sum() for k, v in enumerate(l)}\ns = {1, 2}",
    "unpacking": "a, (b, *c) = np.arange(2), [1, 2, 3]\n(d := np.ones(2) * 3)\ne = f = np.zeros(1)",
    "containers": "d = {'a': np.ones(2)}\nd['b'] = d['a'] + 1\nl = []\nl.append(d['b'] * 2)\nl[0][0] = 9\ndel d['a']",
    "attributes": "class C:\n    n = 1\nc = C()\nc.x = np.ones(2) + C.n\nc.x *= 2\nresult = c.x.copy()",
    "functions": "def f(x, k=2, *a, **kw):\n    return x * k + sum(a)\nf(np.ones(2)), f(1, 2, 3), f(x=1, z=3)",
    "closures": "def make(n):\n    def add(x):\n        return x + n\n    return add\nadd2 = make(2)\nadd2(np.ones(2))",
    "globals of functions": "g = 1\ndef f():\n    global g\n    g += 1\n    return np.ones(1) * g\nr = f(), f()\ng",
    "recursion": "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(12)",
    "decorated": "import functools\n@functools.lru_cache\ndef f(x):\n    return x * 2\nf(2), f.cache_info().misses",
    "generators": "def g(n):\n    for i in range(n):\n        yield np.ones(1) * i\nlist(g(3))",
    "classes": "class P:\n    def __init__(self, x):\n        self.x = x\n"
    "    def __add__(self, o):\n        return P(self.x + o.x)\n"
    "r = (P(np.ones(2)) + P(np.arange(2))).x",
    "with and try": "import contextlib\nr = []\nwith contextlib.suppress(ValueError):\n"
    "    r.append(np.ones(2) + 1)\n    raise ValueError\n"
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    r.append(str(e))\nfinally:\n    r.append(3)",
    "prints in order": "for i in range(3):\n    print(i, np.ones(1) * i)\nprint('end')",
    "random": "rng = np.random.default_rng(3)\na = rng.random(3) * 2\n"
    "b = rng.integers(0, 9, 3) + 1\nnp.random.seed(1)\nc = np.random.rand(2)",
    "warnings": "import warnings\nwith warnings.catch_warnings(record=True) as w:\n"
    "    warnings.simplefilter('always')\n"
    "    a = np.zeros(2) / 0\nkinds = [x.category.__name__ for x in w]",
    "errstate": "with np.errstate(all='ignore'):\n    a = np.log(np.array([-1.0, 0.0, 1.0]))\na",
    "masks": "a = np.arange(6.0)\na[a > 2] = -1\nb = a[a < 0]\nb.size",
    "fancy": "a = np.arange(6)\nb = a[[0, 2, 2]]\nb[0] = 7\nc = a[np.array([True] * 3 + [False] * 3)]",
    "reductions": "a = np.arange(12, dtype='f4').reshape(3, 4)\n"
    "b = a.sum(0), a.mean(axis=1, keepdims=True), a.argmax(), a.std()",
    "softmax": "x = np.linspace(-1, 1, 12).reshape(3, 4)\ne = np.exp(x - x.max(1, keepdims=True))\n"
    "p = e / e.sum(1, keepdims=True)\np",
    "matmul": "a = np.arange(6.0).reshape(2, 3)\nb = a @ a.T + np.eye(2)\nb.dot(np.ones(2))",
    "empty and 0-d": "a = np.empty((0, 3)) * 2\nb = np.array(3.0) + 1\nc = np.array(5)\nc.shape, b",
    "orders": "a = np.asfortranarray(np.arange(6.0).reshape(2, 3))\nb = a + 1\nf = b.flags.f_contiguous, b.strides",
    "object and string dtypes": "a = np.array([1, 'x', None], dtype=object)\nb = np.array(['a', 'b'])\nc = b == 'a'",
    "masked arrays": "m = np.ma.array([1.0, 2, 3], mask=[0, 1, 0])\ns = (m + 1).sum()",
    "match": "p = (1, 'a')\nmatch p:\n    case (int(n), str(s)):\n        r = n, s\n    case _:\n        r = None",
    "lambda and map": "f = lambda x: x * 2\nr = list(map(f, [np.ones(1), 3]))\ns = sorted([3, 1], key=lambda n: -n)",
    "del and rebind": "a = np.ones(2)\ndel a\na = 5\nb = 'a' in globals()",
    "annotations": "x: int = 3\ny: 'np.ndarray' = np.ones(1) * x\nz: float",
    "async def": "async def co():\n    return 1\nimport asyncio\nasyncio.iscoroutinefunction(co)",
    "magics": "%time a = np.ones(2) * 2\nb = !echo one\nlen(b)",
    "name error": "a = 1\nb = np.ones(2) * missing\nc = 2",
    "value error": "a = np.ones(2)\nb = a + np.ones(3)\nc = 1",
    "index error": "a = np.ones(2)\na[0] = 5\nb = a[7]\nc = 1",
    "error in a function": "def f(x):\n    y = x + 1\n    return y['a']\nr = 1\nf(np.ones(2))",
    "assert": "a = np.ones(2)\nassert a.sum() == 3, 'not three'\nb = 1",
    "chained errors": "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('second') from e",
}  # fmt: skip
PRELUDE = "import numpy as np\n"


def outcome(notebook, cell):
    notebook.shell.reset(new_session=True)
    notebook(PRELUDE)
    before = set(notebook.shell.user_ns)
    ran = notebook(cell, fails=None)
    names = {name: value for name, value in notebook.shell.user_ns.items() if name not in before}
    data = {name: value for name, value in names.items() if not callable(value) and not name.startswith("_")}
    error = None if ran.error is None else (type(ran.error).__name__, str(ran.error))
    steps, entry = [], ran.error and ran.error.__traceback__
    while entry is not None:
        if "ipython-input" in entry.tb_frame.f_code.co_filename:
            steps.append((entry.tb_lineno, entry.tb_frame.f_code.co_name))
        entry = entry.tb_next
    return set(names), data, ran.value, error, steps, [line for line in ran.stdout.splitlines() if "time" not in line]


@pytest.mark.parametrize("backend", ["auto", "eager"])
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.at_recompile_limit  # one cell recurses
def test_the_same(notebook, name, backend):
    cell = CELLS[name]
    names, data, value, error, steps, stdout = outcome(notebook, f"# comment\n{cell}")
    for again in range(2):
        got = outcome(notebook, f"%%tcompile --quiet --backend {backend}\n{cell}")
        assert got[0] == names
        assert got[1].keys() == data.keys()
        for one in data:
            found = difference(data[one], got[1][one], one)
            assert found.equal and found.relative < 1e-6, (found, again)
            assert getattr(data[one], "strides", None) == getattr(got[1][one], "strides", None), one
        found = difference(value, got[2])
        assert found.equal and found.relative < 1e-6, found
        assert (got[3], got[4]) == (error, steps)
        assert error is not None or got[5] == stdout
