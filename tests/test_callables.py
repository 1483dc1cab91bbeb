# ruff: noqa: E501, F821
"""Everything that can be handed to ``compile``: compiled, passed through, or refused with an error that says why."""

from __future__ import annotations

import asyncio
import dis
import enum
import functools
import inspect
import math
import operator
import sys
import types
import typing
import unittest.mock
import warnings

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.errors import InvalidType

X = np.linspace(-1, 1, 6)


def base(x):
    return x * 2 + 1


def made(source, name="f", **names):
    """A function from source that no file has."""
    exec(
        compile(source, "<string>", "exec", dont_inherit=True), names
    )  # without the imports from the future of this file
    return names[name]


def altered(function=base, **fields):
    """A function with a code object that no compiler made."""
    return types.FunctionType(function.__code__.replace(**fields), globals())


NO_INSTRUCTION = max(number for number in range(254) if dis.opname[number].startswith("<"))


def with_dead_code(*code):
    return altered(co_code=base.__code__.co_code + bytes(code))


def without_defaults():
    def f(x, y=1):
        return x * y

    f.__defaults__ = None
    return f


def too_many_defaults():
    def f(x, y=1):
        return x * y

    f.__defaults__ = (1, 2, 3)
    return f


def odd_keyword_defaults():
    def f(x, *, y):
        return x * y

    f.__kwdefaults__ = {"y": 2, "zz": 3}
    return f


def unhashable_defaults(x, a=[1, 2], b={"k": 3}, c=np.ones(6), d=object()):
    return x * a[0] + b["k"] + c


def array_among_the_constants():
    def f(x):
        return x * 2.5

    consts = tuple(np.full(6, 3.0) if value == 2.5 else value for value in f.__code__.co_consts)
    return altered(f, co_consts=consts)


def same_name_twice():
    return altered(lambda x, y: x * 2 + y, co_varnames=("x", "x"))


def empty_cell():
    def f(x):
        return x * never

    if X.ndim == 0:
        never = 1
    return f


def nested(depth):
    lines = ["def f(x):"]
    for i in range(depth):
        lines.append(" " * (i + 1) + f"def g{i}(x):")
    lines.append(" " * (depth + 1) + "return x * 2")
    for i in reversed(range(depth)):
        lines.append(" " * (i + 1) + f"return g{i}(x) + 1")
    return made("\n".join(lines))


def nested_ifs(depth):
    lines = ["def f(x):"] + [" " * (i + 1) + "if x.ndim == 1:" for i in range(depth)]
    return made("\n".join([*lines, " " * (depth + 1) + "return x * 2"]))


def nested_loops(depth):
    lines = ["def f(x):"] + [" " * (i + 1) + f"for i{i} in range(1):" for i in range(depth)]
    return made("\n".join([*lines, " " * (depth + 1) + "x = x + 1", " return x"]))


class Scale:
    k = 2

    def times(self, x):
        return x * self.k

    @staticmethod
    def thrice(x):
        return x * 3

    @classmethod
    def by_class(cls, x):
        return x * cls.k

    def __call__(self, x):
        return x - self.k


class Slotted:
    __slots__ = ()

    def __call__(self, x):
        return x * 2


class CallsStatic:
    @staticmethod
    def __call__(x):
        return x * 2


class CallsClass:
    @classmethod
    def __call__(cls, x):
        return x * 2


class CallsBuiltin:
    __call__ = staticmethod(np.sin)


class Pretends:
    @property
    def __class__(self):
        return types.FunctionType

    def __call__(self, x):
        return x * 2


class Secretive:
    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __call__(self, x):
        return x * 2


class Unshown:
    def __repr__(self):
        raise RuntimeError("no repr")


class Meta(type):
    def __call__(cls, x):
        return x * 2


class Items(dict):
    def __getitem__(self, key):
        return X


def generates(x):
    yield x * 2
    yield x + 1


async def generates_later(x):
    yield x * 2


async def later(x):
    return x * 2


@types.coroutine
def old_coroutine(x):
    yield None
    return x * 2


@functools.wraps(base)
def wrapping(*args, **kwargs):
    return base(*args, **kwargs)


def wrapping_itself():
    def f(x):
        return x * 2

    f.__wrapped__ = f
    return f


def full_of_attributes(x):
    return x * 2


full_of_attributes.__dict__.update(entries=5, function=3, settings=1, _cache=2, _bind=7, __call__=4)


def renamed(x):
    return x * 2


renamed.__name__, renamed.__qualname__, renamed.__module__ = "é ñ", "a.<b>.c", None

PARAMETERS = ", ".join(f"a{i}" for i in range(300))
# What is compiled: gives what it gives in plain Python, on every backend. With it, the arguments of the call.
COMPILED = {
    "no source": (made("def f(x): return x * 2"), (X,)),
    "lambda": (lambda x: x * 2, (X,)),
    "bound method": (Scale().times, (X,)),
    "unbound method": (Scale.times, (Scale(), X)),
    "class method": (Scale.by_class, (X,)),
    "bound twice": (types.MethodType(types.MethodType(lambda a, b, x: x * b, 2), 3), (X,)),
    "bound callable": (types.MethodType(Scale(), X), ()),
    "callable": (Scale(), (X,)),
    "callable with slots": (Slotted(), (X,)),
    "callable that pretends to be a function": (Pretends(), (X,)),
    "callable that shows nothing": (Secretive(), (X,)),
    "partial": (functools.partial(lambda a, x, b=1: x * a + b, 2, b=3), (X,)),
    "partial of a partial": (functools.partial(functools.partial(Scale().times)), (X,)),
    "static method object": (Scale.__dict__["thrice"], (X,)),
    "compiled": (tcompile.compile(base, backend="eager"), (X,)),
    "compiled method": (tcompile.compile(Scale().times, backend="eager"), (X,)),
    "generator function": (generates, (X,)),
    "asynchronous generator function": (generates_later, (X,)),
    "coroutine function": (later, (X,)),
    "generator-based coroutine": (old_coroutine, (X,)),
    "wrapper": (wrapping, (X,)),
    "wrapper of itself": (wrapping_itself(), (X,)),
    "attributes of its own": (full_of_attributes, (X,)),
    "odd names": (renamed, (X,)),
    "unhashable defaults": (unhashable_defaults, (X,)),
    "defaults taken away": (without_defaults(), (X,)),
    "too many defaults": (too_many_defaults(), (X,)),
    "odd keyword defaults": (odd_keyword_defaults(), (X,)),
    "function as default": (lambda x, g=lambda v: v + 1: g(x), (X,)),
    "empty cell": (empty_cell(), (X,)),
    "300 parameters": (made(f"def f({PARAMETERS}): return {PARAMETERS.replace(',', ' +')}"), (X,) * 300),
    "300 keyword-only parameters": (made(f"def f(x, *, {PARAMETERS.replace(',', '=1,')}=2): return x * a0"), (X,)),
    "positional-only and keywords": (lambda a, /, b, *c, d=1, **e: a + b + d, (X, X)),
    "5000 constants": (made("def f(x):\n" + "".join(f" y = {i}.5\n" for i in range(5000)) + " return x * y"), (X,)),
    "constant of 20,000 items": (made(f"def f(x): return x * {tuple(range(20_000))}[17]"), (X,)),
    "long expression": (made("def f(x): return " + " + ".join(["x"] * 400)), (X,)),
    "60 nested functions": (nested(60), (X,)),
    "60 nested ifs": (nested_ifs(60), (X,)),
    "18 nested loops": (nested_loops(18), (X,)),
    "60 nested parentheses": (made("def f(x): return " + "(" * 60 + "x" + " + 1)" * 60), (X,)),
    "60 nested lists": (made("def f(x): return " + "[" * 60 + "x" + "]" * 60), (X,)),
    "globals without built-ins": (types.FunctionType(base.__code__, {}), (X,)),
    "empty built-ins": (made("def f(x): return abs(x)", __builtins__={}), (X,)),
    "built-ins of its own": (made("def f(x): return abs(x)", __builtins__={"abs": lambda v: v * 100}), (X,)),
    "globals of a class of its own": (types.FunctionType((lambda x: x + anything).__code__, Items()), (X,)),
    "array among the constants": (array_among_the_constants(), (X,)),
    "no name": (altered(co_name="", co_qualname=""), (X,)),
    "file name with a NUL": (altered(co_filename="\0\n<x>"), (X,)),
    "a folder as file": (altered(co_filename="/"), (X,)),
    "no lines": (altered(co_linetable=b""), (X,)),
    "a huge line number": (altered(co_firstlineno=2**31 - 1), (X,)),
    "broken line table": (altered(co_linetable=b"\xff\x01\x80\x7f" * 3), (X,)),
    "broken exception table": (altered(co_exceptiontable=b"\x80\x7f\x81\x22"), (X,)),
    "unused names": (altered(co_names=("a",) * 300), (X,)),
    "keyword as parameter": (altered(co_varnames=("class",)), (X,)),
    "empty parameter name": (altered(co_varnames=("",)), (X,)),
    "parameter name with a space": (altered(co_varnames=("a b",)), (X,)),
    "parameter name of a lone surrogate": (altered(co_varnames=("\ud800",)), (X,)),
    "parameter name that is normalised": (altered(co_varnames=("ﬁ",)), (X,)),
    "two parameters of one name": (same_name_twice(), (X, X)),
    "keyword for the rest": (altered(lambda *args: args[0] * 2, co_varnames=("if",)), (X,)),
    "flag of a generator": (altered(co_flags=base.__code__.co_flags | 0x20), (X,)),
    "unknown flag": (altered(co_flags=base.__code__.co_flags | 1 << 30), (X,)),
    "large stack": (altered(co_stacksize=1000), (X,)),
    "dead code of no instruction": (with_dead_code(*[NO_INSTRUCTION, 255] * 8), (X,)),
    "dead code of no constant": (with_dead_code(dis.opmap["LOAD_CONST"], 250, dis.opmap["LOAD_FAST"], 99), (X,)),
    "dead jump out of the code": (with_dead_code(dis.opmap["JUMP_FORWARD"], 250), (X,)),
    "dead prefixes": (with_dead_code(*[dis.opmap["EXTENDED_ARG"], 255] * 4), (X,)),
    "np.vectorize": (np.vectorize(lambda a: a + 1), (X,)),
}  # fmt: skip


def outcome(function, args):
    """What a call gives: its value, run to its end where it is one of those that run in pieces, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a bug of tcompile's is a warning
        try:
            value = function(*args)
        except Exception as error:
            return type(error), str(error)
    if isinstance(value, types.GeneratorType):
        return list(value)
    if inspect.iscoroutine(value):
        return asyncio.run(value)
    if inspect.isasyncgen(value):

        async def collect():
            return [item async for item in value]

        return asyncio.run(collect())
    return value


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name, backend):
    function, args = COMPILED[name]
    tcompile.reset()
    want = outcome(function, args)
    compiled = tcompile.compile(function, backend=backend)
    for _ in range(3):
        assert_same(outcome(compiled, args), want)
    assert repr(compiled)
    assert tcompile.compile(function, disable=True) is function


@pytest.mark.parametrize("function", [
    len, np.sin, str.upper, X.sum, X.__add__, np.ndarray.__add__, operator.itemgetter(0), list[int],
    functools.lru_cache(base), np.frompyfunc(base, 1, 1), types.MethodType(np.sum, X), CallsBuiltin(),
    tcompile.disable(base),
], ids=lambda f: type(f).__name__)  # fmt: skip
def test_passed_through(function):
    assert tcompile.compile(function) is function


@pytest.mark.parametrize("function", [CallsStatic(), CallsClass()], ids=lambda f: type(f).__name__)
def test_passed_through_or_compiled(function):
    assert_same(tcompile.compile(function)(X), X * 2)


REFUSED = [
    (3, "got int 3"), ("f", "got str 'f'"), (X, r"got ndarray array\(\[-1"), (math, "got module <module 'math'"),
    (np.zeros((100, 100)) + np.pi, r"got ndarray array\(\[\[3.14.*\.\.\.$"), (Unshown(), "got Unshown that has no repr"),
    (base.__code__, "got code <code object base"), (int | str, r"got \w+ int \| str"),
    (int, "got the class int; compile its methods instead"), (Scale, "got the class Scale"),
    (Meta("Made", (), {}), "got the class Made"), (enum.Enum("E", "a"), "got the class E"),
    (property(base), "got a property: put @compile under @property"),
    (functools.cached_property(base), ".*put @compile under @cached_property"),
    (functools.partialmethod(base), ".*put @compile under @partialmethod"),
]  # fmt: skip


@pytest.mark.parametrize(("thing", "text"), REFUSED)
def test_refused(thing, text):
    with pytest.raises(InvalidType, match=f"(?s)compile takes a function, {text}"):
        tcompile.compile(thing)
    with pytest.raises(InvalidType, match="compile takes a function"):
        tcompile.compile()(thing)


def test_decorated_class_and_static_methods():
    class Things:
        k = 3

        @tcompile.compile(backend="eager")
        @classmethod
        def by_class(cls, x):
            return x * cls.k

        @tcompile.compile(backend="eager")
        @staticmethod
        def plain(x):
            return x * 2

        @property
        @tcompile.compile(backend="eager")
        def prop(self):
            return X * self.k

    class More(Things):
        k = 5

    assert_same(Things.by_class(X), X * 3)
    assert_same(More().by_class(X), X * 5)
    assert_same(Things().plain(X), X * 2)
    assert_same(More().prop, X * 5)


def test_a_mock_of_a_function_is_called_as_it_is():
    mock = unittest.mock.Mock(spec=base, return_value=7)
    assert tcompile.compile(mock)(X) == 7
    mock.assert_called_once_with(X)


def test_functions_of_one_code_look_names_up_in_their_own_globals():
    def f(x):
        return abs(x)

    other = types.FunctionType(f.__code__, {"abs": lambda v: v * 100})
    plain, changed = tcompile.compile(f, backend="eager"), tcompile.compile(other, backend="eager")
    for _ in range(2):
        assert_same(plain(X), f(X))
        assert_same(changed(X), other(X))


def test_a_built_in_that_is_replaced(monkeypatch):
    def f(x):
        return abs(x)

    compiled = tcompile.compile(f, backend="eager")
    assert_same(compiled(X), np.abs(X))
    monkeypatch.setattr("builtins.abs", lambda v: v * 100)
    assert_same(compiled(X), X * 100)
    monkeypatch.undo()
    assert_same(compiled(X), np.abs(X))


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_a_function_that_is_given_new_code_and_new_defaults(backend, broken):
    def f(x, k=2, *, m=1):
        if broken:
            tcompile.graph_break()
        return x * k + m

    def g(x, k=2, *, m=1):
        y = x + k
        if broken:
            tcompile.graph_break()
        return y * 100 - m

    def h(x, *args, k=4):
        return x * len(args) + k + broken

    compiled = tcompile.compile(f, backend=backend)

    def same(*args, **kwargs):
        for _ in range(3):
            assert_same(compiled(*args, **kwargs), f(*args, **kwargs))

    same(X)
    f.__defaults__ = (5,)
    same(X)
    f.__kwdefaults__ = {"m": 7}
    same(X)
    f.__kwdefaults__["m"] = 8
    same(X)
    f.__code__ = g.__code__
    same(X)
    same(X, 3, m=2)
    f.__code__, f.__kwdefaults__ = h.__code__, {"k": 9}
    same(X, 1, 2)
    f.__defaults__ = f.__kwdefaults__ = None
    same(X, 1, k=3)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'k'"):
        compiled(X)


def test_the_code_of_a_compiled_function_is_the_plain_one():
    compiled = tcompile.compile(base)
    assert compiled.__code__ is base.__code__
    assert inspect.signature(compiled) == inspect.signature(base)


def test_signature_without_following_wrappers():
    def f(x, *, scale: float = 2.0):
        return x * scale

    assert inspect.signature(tcompile.compile(f), follow_wrapped=False) == inspect.signature(f)
    assert inspect.signature(tcompile.compile(f).__get__(1), follow_wrapped=False) == inspect.signature(f.__get__(1))


def test_a_decorated_function_shows_what_it_wraps():
    compiled = tcompile.compile(wrapping)
    assert compiled.__wrapped__ is wrapping.__wrapped__ is base
    assert inspect.unwrap(compiled) is base and inspect.signature(compiled) == inspect.signature(wrapping)
    assert inspect.getsource(compiled) == inspect.getsource(wrapping)
    assert tcompile.compile(base).__wrapped__ is base


def test_globals_and_closure_are_the_plain_functions():
    def f(x):
        return x * factor

    factor = 2
    compiled = tcompile.compile(f)
    assert compiled.__globals__ is f.__globals__ and compiled.__closure__ is f.__closure__


@pytest.mark.parametrize("name", ["no lines", "broken line table", "broken exception table", "dead prefixes"])
def test_broken_code_that_breaks(name):
    function, args = COMPILED[name]
    with tcompile.config.patch(stress_breaks=5, verify=True):
        compiled = tcompile.compile(function, backend="eager")
        for _ in range(3):
            np.testing.assert_array_equal(compiled(*args), function(*args))


def annotated(x: int, y: str = 2, *, k: np.ndarray = None) -> float:
    return x


def test_annotations_are_the_functions():
    for f in (annotated, lambda x: x):
        compiled = tcompile.compile(f)
        for one in (compiled, functools.wraps(compiled)(lambda *args: None)):
            assert one.__annotations__ == f.__annotations__
            assert inspect.get_annotations(one) == inspect.get_annotations(f)
            assert typing.get_type_hints(one) == typing.get_type_hints(f)
            assert inspect.signature(one) == inspect.signature(f)
    assert inspect.get_annotations(type(compiled)) == {}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are worked out where the function is made")
def test_annotations_are_worked_out_when_they_are_asked_for():
    import annotationlib

    f = made("def f(x: Later, *, k: Later | None = 3) -> list[Later]: return x")
    compiled = tcompile.compile(f)
    wrapping = functools.wraps(compiled)(lambda *args: None)
    for one in (f, compiled, wrapping):
        with pytest.raises(NameError, match="Later"):
            one.__annotations__
        with pytest.raises(NameError, match="Later"):
            inspect.signature(one)
        for format in (annotationlib.Format.STRING, annotationlib.Format.FORWARDREF):
            found = annotationlib.get_annotations(one, format=format)
            assert list(found) == ["x", "k", "return"]
        assert str(inspect.signature(one, annotation_format=annotationlib.Format.STRING)) == (
            "(x: 'Later', *, k: 'Later | None' = 3) -> 'list[Later]'"
        )
    f.__globals__["Later"] = int
    assert compiled.__annotations__ is f.__annotations__ and compiled.__annotate__ is f.__annotate__
    assert compiled.__annotations__ == {"x": int, "k": int | None, "return": list[int]} == wrapping.__annotations__
    compiled.__annotations__ = {"x": str}
    assert f.__annotations__ == {"x": str} and compiled.__annotate__ is None
    assert inspect.signature(compiled) == inspect.signature(f)
    compiled.__annotate__ = lambda format: {"x": bytes}
    assert compiled.__annotations__ == f.__annotations__ == {"x": bytes}
    del compiled.__annotations__
    assert compiled.__annotations__ == f.__annotations__ == {}


def test_functions_made_in_captured_code_have_their_annotations():
    f = made(
        "def f(x):\n def inner(a: int, b: np.ndarray = None) -> 'float': return a + x\n return inner, x * 2", np=np
    )
    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        inner, _ = compiled(X)
        assert inner.__annotations__ == {"a": int, "b": np.ndarray, "return": "float"}
        assert inspect.signature(inner) == inspect.signature(f(X)[0])
