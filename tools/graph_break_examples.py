"""An example for each reason of the break catalogue: a program that breaks, and a rewrite that does not.

Input: nothing.
Output: ``EXAMPLES``, by reason id.
Why: docs/graph_breaks.md shows programs that tests run. The break is recorded at the line marked ``# here``, and the
rewrite gives the same result as one graph. The package does not need the examples at run time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HERE = "# here"


@dataclass(frozen=True)
class Example:
    """``program`` and ``rewrite`` define ``f``; ``call`` is evaluated with ``x``, a float64 array of shape (4,).

    ``settings`` are those of ``tcompile.config`` that keep the example short.
    """

    program: str
    rewrite: str
    call: str = "f(x)"
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """The number of the line that breaks."""
        return 1 + next(number for number, line in enumerate(self.program.splitlines()) if line.endswith(HERE))


EXAMPLES = {
    "data-dependent-branch": Example(
        """\
def f(x):
    if x.sum() < 0:  # here
        return -x
    return x * 2
""",
        """\
def f(x):
    return np.where(x.sum() < 0, -x, x * 2)
""",
    ),
    "data-dependent-value": Example(
        """\
def f(x):
    count = (x > 0).sum()
    return x[:count].sum()  # here
""",
        """\
def f(x):
    count = (x > 0).sum()
    return np.where(np.arange(len(x)) < count, x, 0).sum()
""",
    ),
    "data-dependent-shape": Example(
        """\
def f(x):
    return np.compress(x > 0, x).sum()  # here
""",
        """\
def f(x):
    return np.where(x > 0, x, 0).sum()
""",
    ),
    "array-conversion": Example(
        """\
def f(x):
    return x / max(x.tolist())  # here
""",
        """\
def f(x):
    return x / x.max()
""",
    ),
    "writes-to-array": Example(
        """\
buffer = np.zeros(6)
inner = buffer[1:-1]

def f(x):
    doubled = buffer * 2
    inner[:] = x  # here
    return doubled
""",
        """\
buffer = np.zeros(6)

def f(x):
    doubled = buffer * 2
    buffer[1:-1] = x
    return doubled
""",
    ),
    "overlapping-views": Example(
        """\
def f(x):
    x[::2] = x[:2]  # here
    return x + 1
""",
        """\
def f(x):
    x[::2] = x[:2].copy()
    return x + 1
""",
    ),
    "side-effect": Example(
        """\
class Settings:
    scale = 1.0

def f(x):
    Settings.scale = 2.0  # here
    return x * Settings.scale
""",
        """\
class Settings:
    scale = 1.0

settings = Settings()

def f(x):
    settings.scale = 2.0
    return x * settings.scale
""",
    ),
    "input-output": Example(
        """\
def f(x):
    y = x * 2
    print("doubled")  # here
    return y.sum()
""",
        """\
def work(x):
    return (x * 2).sum()

compiled = tcompile.compile(work, fullgraph=True)

def f(x):
    y = compiled(x)
    print("doubled")
    return y
""",
    ),
    "random-numbers": Example(
        """\
np.random.seed(0)

def f(x):
    return x + np.random.rand(4)  # here
""",
        """\
np.random.seed(0)
noise = np.random.rand(4)

def f(x):
    return x + noise
""",
    ),
    "unknown-function": Example(
        """\
import zlib

def f(x):
    return x * (zlib.crc32(b"tcompile") % 7)  # here
""",
        """\
import zlib

scale = zlib.crc32(b"tcompile") % 7

def f(x):
    return x * scale
""",
    ),
    "unsupported-argument": Example(
        """\
def f(x):
    return np.einsum(x, [0], x, [0])  # here
""",
        """\
def f(x):
    return np.einsum("i,i->", x, x)
""",
    ),
    "unsupported-dtype": Example(
        """\
def f(x):
    return (x.astype(object) * 2).astype(float)  # here
""",
        """\
def f(x):
    return x * 2
""",
    ),
    "unsupported-object": Example(
        """\
import datetime

day = datetime.date(2024, 5, 17)

def f(x):
    return x * day.month  # here
""",
        """\
import datetime

month = datetime.date(2024, 5, 17).month

def f(x):
    return x * month
""",
    ),
    "unsupported-operands": Example(
        """\
import datetime

start, end = datetime.date(2024, 5, 1), datetime.date(2024, 5, 17)

def f(x):
    return x / (end - start).days  # here
""",
        """\
import datetime

start, end = datetime.date(2024, 5, 1), datetime.date(2024, 5, 17)
days = (end - start).days

def f(x):
    return x / days
""",
    ),
    "unsupported-instruction": Example(
        """\
def f(x):
    class Scale:  # here
        factor = 3
    return x * Scale.factor
""",
        """\
class Scale:
    factor = 3

def f(x):
    return x * Scale.factor
""",
    ),
    "with-statement": Example(
        """\
import threading

lock = threading.Lock()

def f(x):
    with lock:  # here
        return x * 2
""",
        """\
import threading

lock = threading.Lock()

@tcompile.compile(fullgraph=True)
def work(x):
    return x * 2

def f(x):
    with lock:
        return work(x)
""",
    ),
    "raises": Example(
        """\
def f(x):
    try:
        if x.ndim != 2:
            raise ValueError("two axes, please")  # here
    except ValueError:
        x = x[None]
    return x * 2
""",
        """\
def f(x):
    if x.ndim != 2:
        x = x[None]
    return x * 2
""",
    ),
    "operation-raises": Example(
        """\
def f(x):
    try:
        return x + np.ones(3)  # here
    except ValueError:
        return x
""",
        """\
def f(x):
    if x.shape == (3,):
        return x + np.ones(3)
    return x
""",
    ),
    "advanced-indexing": Example(
        """\
def f(x):
    return x[x[:, 0] > 0, [[0]]].sum()  # here
""",
        """\
def f(x):
    return x[x[:, 0] > 0, 0].sum()
""",
        call="f(x.reshape(2, 2))",
    ),
    "undefined-contents": Example(
        """\
def f(x):
    return np.pad(x, 0, mode="empty") * 2  # here
""",
        """\
def f(x):
    return x * 2
""",
    ),
    "memory-order": Example(
        """\
def f(x):
    return x * (x.strides[0] // 8)  # here
""",
        """\
def f(x):
    x = np.ascontiguousarray(x)
    return x * (x.itemsize // 8)
""",
    ),
    "generator": Example(
        """\
def steps(x):
    try:
        for k in range(3):
            yield x * k
    finally:
        print("no more steps")

def f(x):
    return sum(steps(x))  # here
""",
        """\
def steps(x):
    return [x * k for k in range(3)]

def f(x):
    return sum(steps(x))
""",
    ),
    "recursion": Example(
        """\
def power(x, n):
    return x if n == 0 else power(x, n - 1) * 1.01  # here

def f(x):
    return power(x, 200)
""",
        """\
def f(x):
    for _ in range(200):
        x = x * 1.01
    return x
""",
    ),
    "too-long": Example(
        """\
def f(x):
    return x * sum([k * k for k in range(1000)])  # here
""",
        """\
def f(x):
    return x * (np.arange(1000) ** 2).sum()
""",
        settings={"max_instructions": 1000},
    ),
    "disabled-function": Example(
        """\
@tcompile.disable(reason="it talks to the instrument")
def read():
    return 3

def f(x):
    return x * read()  # here
""",
        """\
@tcompile.disable(reason="it talks to the instrument")
def read():
    return 3

scale = read()

def f(x):
    return x * scale
""",
    ),
    "graph-break-call": Example(
        """\
def f(x):
    y = x * 2
    tcompile.graph_break("from here on, look at it in the debugger")  # here
    return y + 1
""",
        """\
def f(x):
    y = x * 2
    return y + 1
""",
    ),
    "object-identity": Example(
        """\
def f(x):
    y = x * 2
    return y + (len(x) * 1000 is 4000)  # here
""",
        """\
def f(x):
    y = x * 2
    return y + (len(x) * 1000 == 4001)
""",
    ),
    "cond-mismatch": Example(
        """\
def f(x):
    return tcompile.cond(x.sum() > 0, lambda y: y, lambda y: -y, (x,))  # here
""",
        """\
def f(x):
    return tcompile.cond(x.sum() > 0, lambda y: y.copy(), lambda y: -y, (x,))
""",
    ),
    "not-differentiable": Example(
        """\
def loss(x):
    return np.sum(np.partition(x, 2)[:2])

def f(x):
    try:
        return tcompile.grad(loss)(x)  # here
    except TypeError:
        return np.partition(x, 2)
""",
        """\
def loss(x):
    return np.sum(x * np.partition(tcompile.stop_gradient(x), 2))

def f(x):
    return tcompile.grad(loss)(x)
""",
    ),
    "loop-mismatch": Example(
        """\
def f(x):
    sums = []

    def body(i, y):
        sums.append(y.sum())
        return i + 1, y * 2

    return tcompile.while_loop(lambda i, y: i < 3, body, (0, x))[1]  # here
""",
        """\
def f(x):
    return tcompile.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x))[1]
""",
    ),
}
