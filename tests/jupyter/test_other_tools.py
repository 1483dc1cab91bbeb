"""What other tools make of a compiled function: as of a plain one, or as docs/notebooks.md says."""

import dis
import doctest
import functools
import inspect
import types
import typing
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.runtime.dispatch import CompiledFunction

X = np.arange(1.0, 5.0)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "notebooks.md"
CELL = '''
def f(x: float, k=2, *, z: int = 1) -> float:
    """Documented.

    >>> 1 + 1
    2
    """
    return x * k + z
'''


@pytest.fixture(params=["decorated", "cell"])
def f(request, notebook):
    """A compiled function with its plain one: decorated in a cell, or defined in a ``%%tcompile`` cell."""
    notebook("import tcompile\n@tcompile.compile" + CELL if request.param == "decorated" else "%%tcompile" + CELL)
    function = notebook["f"]
    assert type(function) is CompiledFunction
    for _ in range(3):
        function(X)
    return function


def test_as_of_a_plain_function(f):
    plain = f.function
    assert f.__wrapped__ is inspect.unwrap(f) is plain
    for name in ("isroutine", "signature", "getfullargspec", "getsource", "getsourcelines", "getdoc",
                 "isgeneratorfunction", "iscoroutinefunction", "isbuiltin", "isclass", "ismethod"):  # fmt: skip
        of = getattr(inspect, name)
        assert of(f) == of(plain), name
    assert inspect.get_annotations(f) == inspect.get_annotations(plain)
    assert typing.get_type_hints(f) == typing.get_type_hints(plain)
    assert [i.opname for i in dis.get_instructions(f)] == [i.opname for i in dis.get_instructions(plain)]
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__code__", "__globals__", "__closure__",
                 "__builtins__", "__defaults__", "__kwdefaults__", "__type_params__"):  # fmt: skip
        assert getattr(f, name, None) == getattr(plain, name, None), name
    (example,) = (test for test in doctest.DocTestFinder().find(f, "f", globs={}))
    assert len(example.examples) == 1
    assert_same(functools.partial(f, k=3)(X), plain(X, k=3))
    assert functools.singledispatch(f)(3) == plain(3) == functools.lru_cache(f)(3)
    for apply in (np.vectorize, lambda function: np.frompyfunc(function, 1, 1)):
        assert_same(apply(f)(X), apply(plain)(X))


def test_the_deviations_are_those_of_the_page(f):
    assert not inspect.isfunction(f) and not isinstance(f, types.FunctionType) and inspect.isfunction(f.function)
    for name in ("getfile", "getsourcefile", "getclosurevars"):
        of = getattr(inspect, name)
        with pytest.raises(TypeError):
            of(f)
        assert of(f.function)
    assert mock.create_autospec(f)(1, 2, 3, 4)  # of any arguments
    with pytest.raises(TypeError, match="too many positional arguments"):
        mock.create_autospec(f.function)(1, 2, 3, 4)
    page = DOCS.read_text(encoding="utf-8").partition("## A compiled function and other tools\n")[2]
    page = page.partition("\n## ")[0]
    for name in ("isfunction", "getfile", "getsourcefile", "getclosurevars", "create_autospec", "numba.njit",
                 "torch.compile", "__code__", "__init_subclass__", "f.function"):  # fmt: skip
        assert name in page, name


def test_numba(f):
    numba = pytest.importorskip("numba")
    with pytest.raises(TypeError, match="not a function"):
        numba.njit(f)
    fast = numba.njit(f.function)
    np.testing.assert_allclose(fast(X, 2, z=1), f.function(X))
    calling = tcompile.compile(lambda x: fast(x, 2, z=1) + 1)
    np.testing.assert_allclose(calling(X), f.function(X) + 1)


def test_torch(f):
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (f, f.function):
            fast = torch.compile(given, backend="eager", fullgraph=True)
            assert fast(tensor).tolist() == (tensor * 2 + 1).tolist()
        assert tcompile.compile(fast) is fast
        assert tcompile.compile(lambda x: fast(x) + 1)(tensor).tolist() == (tensor * 2 + 2).tolist()
    assert f(tensor).tolist() == (tensor * 2 + 1).tolist()


# -- assignment of code ------------------------------------------------------------------------------------------------
def minus(x, k=2, *, z=1):
    return x * k - z


def broken(x, k=2, *, z=1):
    y = x - z
    print(end="")
    return y * k


def with_closure(c):
    return lambda x: x + c


def test_code_can_be_assigned(f):
    caller = tcompile.compile(lambda x: f(x) + 1)

    class Holder:
        method = tcompile.compile(lambda self, x: f(x) * 2)

    in_loop = tcompile.compile(lambda x: sum(f(x).sum() for _ in range(3)))
    plain = f.function
    for new in (minus, broken, lambda x, k=2, *, z=1: x / k, tcompile.compile(minus)):
        f.__code__ = new.__code__
        assert plain.__code__ is f.__code__ is new.__code__ and f.function is plain
        for _ in range(4):  # the last ones in machine code
            expected = new(X)
            assert_same(f(X), expected)
            assert_same(caller(X), expected + 1)
            assert_same(Holder().method(X), expected * 2)
            assert_same(in_loop(X), expected.sum() * 3)


def test_refused_assignments_are_refused_as_by_a_plain_function(f):
    for function in (f, f.function):
        with pytest.raises(TypeError):
            function.__code__ = 3
        with pytest.raises(ValueError, match="requires a code object with 0 free vars, not 1"):
            function.__code__ = with_closure(1).__code__
        for name in ("__closure__", "__globals__", "__builtins__"):
            with pytest.raises(AttributeError):
                setattr(function, name, None)
    assert_same(f(X), f.function(X))


# -- methods that a class statement treats by their names --------------------------------------------------------------
def classes(compile):
    """What Python makes of methods of special names; ``compile`` decorates them."""

    class Base:
        @compile
        def __new__(cls, value):
            made = super().__new__(cls)
            made.value = value
            return made

        @compile
        def __init__(self, value):
            self.doubled = value * 2

        @compile
        def __init_subclass__(cls, /, factor=1, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.factor = factor

        @compile
        def __class_getitem__(cls, item):
            return cls.__name__, item

        @compile
        def __set_name__(self, owner, name):
            self.named = name

        @compile
        def __call__(self, x):
            return x * self.factor

        @compile
        def __getattr__(self, name):
            return name.upper()

    class Meta(type):
        def __setattr__(cls, name, value):
            raise TypeError("no assignments")

    class Guarded(metaclass=Meta):
        @compile
        def __class_getitem__(cls, item):
            return item

    class Derived(Base, factor=3):
        held = Base(1)

    class Overriding(Derived, factor=4):
        @classmethod
        @compile
        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(factor=5, **kwargs)

    class Last(Overriding):
        pass

    kinds = {name: type(vars(Base)[name]) for name in ("__new__", "__init_subclass__", "__class_getitem__")}
    made = Derived(7)
    return (
        kinds, made.value, made.doubled, made.missing, made(2), Derived.factor, Overriding.factor, Last.factor,
        Derived.held.named, Base[int], Derived[3], Guarded[4], Base.__new__(Derived, 5).value,
        made.__new__(Base, 6).value, Base.__init_subclass__(factor=9), Base.factor,
    )  # fmt: skip


def test_methods_of_special_names():
    plain = classes(lambda function: function)
    assert plain[0]["__init_subclass__"] is classmethod and plain[0]["__new__"] is staticmethod
    for _ in range(2):
        assert classes(tcompile.compile) == plain


def test_functions_of_a_cell_as_methods_of_special_names(notebook):
    notebook("%%tcompile\ndef register(cls, **kwargs):\n    cls.seen = kwargs\ndef item(cls, key):\n    return key * 2")
    notebook("class A:\n    __init_subclass__ = register\n    __class_getitem__ = item\nclass B(A, k=1): pass")
    assert notebook["B"].seen == {"k": 1} and notebook["A"][4] == 8
