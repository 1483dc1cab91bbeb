"""Library calls in compiled code, with kernels before and after them, against plain Python."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from differential import check
from frontends.test_library import PROGRAMS, arguments

import tcompile
from tcompile.frontends.numpy import library
from tcompile.observe import bus

BODY = """
def f(x, y, z):
    x = x + 1
    y = y * 2
    r = ({text})
    if isinstance(r, np.ndarray) and r.dtype == np.float64:
        r = r * 3
    return r
"""


def function(text):
    scope = {"np": np}
    exec(BODY.replace("{text}", text), scope)
    return scope["f"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", PROGRAMS)
def test_call_between_kernels(text):
    for dtype, layout in (("f8", None), ("i4", None), ("f4", "f")):
        check(function(text), lambda d=dtype, o=layout: arguments(d, "f8", o), backends=("llvm",), calls=1)


def test_a_call_that_gives_another_type_runs_plainly(monkeypatch):
    wrong = library.Rule(lambda a: a.shape, "numpy.linalg.eigvals", {"a": "eye"})
    monkeypatch.setitem(library.RULES, np.linalg.eigvals, wrong)

    def f(x):
        return np.linalg.eigvals(x)

    x = np.eye(3)
    compiled = tcompile.compile(f)
    np.testing.assert_array_equal(compiled(x), f(x))


@pytest.mark.parametrize("name", ["nanmax", "nanmean", "nanstd", "nanmedian"])
def test_a_warning_in_words_comes_from_the_user_s_line(name):
    function = getattr(np, name)

    def f(x):
        return function(x + 1, axis=1)

    compiled = tcompile.compile(f)
    assert compiled(np.ones((2, 3))).tolist() == f(np.ones((2, 3))).tolist()
    seen = []
    for call in (f, compiled):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(np.array([[1.0, 2, 3], [np.nan] * 3]))
        seen.append([(w.category, str(w.message), w.filename, w.lineno) for w in caught])
    assert seen[0] == seen[1] != []


def adds_to_the_real_part(x):
    y = x.real
    y += 1
    return y


def adds_to_a_diagonal(x):
    y = np.diagonal(x)
    y += 1
    return y


def adds_to_a_row(x):
    y = np.ravel(x.T, "F")
    y *= 2
    return y


def views(x):
    return x.imag, np.diagonal(x), np.diag(x, 1), x.ravel("F"), np.rot90(x), np.unstack(x), np.real(x) + 1, x


@pytest.mark.parametrize("f", [adds_to_the_real_part, adds_to_a_diagonal, adds_to_a_row, views])
def test_views_are_views(f):
    for order in "CF":
        check(f, lambda o=order: (np.array(np.arange(9).reshape(3, 3) * (1 + 2j), order=o),), calls=1)


def copies_of_two_kinds(x):
    y = x + 1
    return y.copy("K"), x.copy("F")


def test_calls_of_one_name_are_told_apart():
    for order in "CF":
        check(copies_of_two_kinds, lambda o=order: (np.asarray(np.arange(6).reshape(2, 3), order=o),), calls=1)


def in_the_middle(arange_dtype, numpy_copy):
    return np.arange(0.0, 100_000.0)[:3] * arange_dtype + numpy_copy.copy("F")[0] * 2


def test_arguments_may_be_called_as_what_a_call_is_given():
    events = []
    with bus.listening(events.append):
        check(in_the_middle, lambda: (np.ones(3), np.ones((2, 3))), backends=("llvm",), fullgraph=True)
    assert not [event for event in events if event.kind == "fell_back"]
