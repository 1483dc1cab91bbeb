"""Fixtures of the tests of the native runtime.

Input: the machine.
Output: kernels in IR text, the builtin, and a number of threads.
Why: the tests need native code; without it they are skipped with the reason.
"""

import os
import subprocess
import sys
import textwrap
from functools import cache
from types import SimpleNamespace

import pytest

from tcompile.backends.llvm import native

# words: counts (i32, one an item), limit. Adds 1 to the count of each item; status 0.
COUNT = """
define i32 @kernel(ptr %words, i64 %begin, i64 %end) {
entry:
  %counts = load ptr, ptr %words
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %counts, i64 %i
  %old = load i32, ptr %at
  %new = add i32 %old, 1
  store i32 %new, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""

# words: chunks (i64 pairs), grain. Writes begin and end to the row begin / grain; status 1 << (row % 5).
CHUNKS = """
define i32 @kernel(ptr %words, i64 %begin, i64 %end) {
  %rows = load ptr, ptr %words
  %grain.at = getelementptr i64, ptr %words, i64 1
  %grain = load i64, ptr %grain.at
  %row = sdiv i64 %begin, %grain
  %index = mul i64 %row, 2
  %to = getelementptr i64, ptr %rows, i64 %index
  store i64 %begin, ptr %to
  %to.end = getelementptr i64, ptr %to, i64 1
  store i64 %end, ptr %to.end
  %bit = srem i64 %row, 5
  %bit.32 = trunc i64 %bit to i32
  %status = shl i32 1, %bit.32
  ret i32 %status
}
"""

# words: x, y (float64), out. out = x / y, item by item; status: the exception flags.
DIVIDE = """
define i32 @kernel(ptr %words, i64 %begin, i64 %end) {
entry:
  %x = load ptr, ptr %words
  %y.at = getelementptr ptr, ptr %words, i64 1
  %y = load ptr, ptr %y.at
  %out.at = getelementptr ptr, ptr %words, i64 2
  %out = load ptr, ptr %out.at
  call void @tc_clear_flags()
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %xi.at = getelementptr double, ptr %x, i64 %i
  %yi.at = getelementptr double, ptr %y, i64 %i
  %oi.at = getelementptr double, ptr %out, i64 %i
  %xi = load double, ptr %xi.at
  %yi = load double, ptr %yi.at
  %q = fdiv double %xi, %yi
  store double %q, ptr %oi.at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  %status = call i32 @tc_read_flags()
  ret i32 %status
}
"""

# words: out, then as many words as out has items. Copies them; status 0.
ECHO = """
define i32 @kernel(ptr %words, i64 %begin, i64 %end) {
entry:
  %out = load ptr, ptr %words
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %from = getelementptr i64, ptr %words, i64 %next
  %to = getelementptr i64, ptr %out, i64 %i
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""


@cache
def _code(ir):
    return native.load(native.FLAGS + ir, ["kernel"], native.flags())


@pytest.fixture
def kernels():
    """Addresses of the kernels above; their code stays loaded."""
    texts = {"count": COUNT, "chunks": CHUNKS, "divide": DIVIDE, "echo": ECHO}
    return SimpleNamespace(**{name: _code(ir)["kernel"] for name, ir in texts.items()})


def pytest_collection_modifyitems(items):
    reason = native.unavailable()
    if reason is not None:
        for item in items:
            if "/native/" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def launch():
    return native.launcher()


@pytest.fixture
def threads():
    """Four threads, also on machines with fewer processors; afterwards the number that was before."""
    before = native.num_threads()
    native.set_num_threads(4)
    yield native.set_num_threads
    native.set_num_threads(before)


PRELUDE = f"""
import os, sys, threading
import numpy as np
from tcompile.backends.llvm import native
code = native.load({COUNT!r}, ["kernel"])
launch = native.launcher()

def check(items=200_000, grain=1000):
    counts = np.zeros(items, np.int32)
    launch(code["kernel"], b"a", items, grain, counts)
    assert (counts == 1).all()
"""


@pytest.fixture
def run_program():
    """Runs a program in a fresh interpreter, after the prelude above. Returns what it printed."""

    def run(program, **environment):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(program)],
            env={**os.environ, "TCOMPILE_NUM_THREADS": "4", **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run
