"""Compiled functions are pickled as plain ones are, or by value where a name leads nowhere, and compile anew there."""

import functools
import importlib
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
from differential import assert_same
from picklers import pickler

import tcompile
from tcompile.runtime import pickled
from tcompile.runtime.dispatch import CompiledFunction, parts_of

X = np.arange(1.0, 5.0)
LIBRARIES = ["pickle", "cloudpickle", "dill"]


def python(*arguments, **keywords):
    done = subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, timeout=300, **keywords)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def again(function, library="pickle", protocol=None):
    """The function pickled and unpickled here."""
    module = pytest.importorskip(library)
    return module.loads(module.dumps(function, protocol))


# -- what a script defines, in a process that knows nothing of it ------------------------------------------------------
ZOO = """
    import functools, os, sys
    import numpy as np, tcompile

    X = np.arange(1.0, 5.0)
    k = 3.0

    @tcompile.compile(dynamic=True, options={"exact": True})
    def recursive(x, n=2):
        return x * k + (recursive(x, n - 1) if n else 0)

    @tcompile.compile
    def caller(x):
        return recursive(x) + helper(x)

    def helper(x):
        return np.sqrt(recursive(x, 0))

    def plain(x):
        return caller(x) - 1

    @tcompile.compile
    def breaks(x):
        y = x + k
        print(end="")
        return y * k

    def nested():
        c, count = 5.0, 0
        @tcompile.compile(dynamic=False)
        def inner(x, n=1):
            return x * c + (inner(x, n - 1) if n else 0)
        def counting(x):
            nonlocal count
            count += 1
            return x * count
        return inner, tcompile.compile(counting)

    closure, counting = nested()
    by_lambda = tcompile.compile(lambda x: x / k, mode="max-autotune-no-cudagraphs")
    explicit = tcompile.compile(helper, backend="eager")
    default = tcompile.compile(lambda x, g=recursive, *, h=by_lambda: g(x) + h(x))

    def backend(graph, inputs):
        return graph

    tcompile.register_backend(lambda graph, inputs: graph, name="mine")
    custom = tcompile.compile(lambda x: x - k, backend=backend)
    nameless = tcompile.compile(lambda x: x + k, backend=lambda graph, inputs: graph)
    refused_by_name = tcompile.compile(helper, backend=lambda graph, inputs: graph)
    registered = tcompile.compile(lambda x: x * k, backend="mine")

    class Base:
        factor = 2.0
        @tcompile.compile
        def method(self, x):
            return x * self.factor
        def bare(self, x):
            return x - self.factor
        @staticmethod
        @tcompile.compile
        def static(x):
            return x + k
        @classmethod
        @tcompile.compile
        def ofclass(cls, x):
            return x + cls.factor

    class Derived(Base):
        @tcompile.compile
        def method(self, x):
            return super().method(x) + 1
        @tcompile.compile
        def __call__(self, x):
            return x * 7

    @tcompile.disable
    def disabled(x):
        return recursive(x)

    @tcompile.compile
    def attributed(x):
        return x * attributed.scale

    attributed.scale = 4.0

    FUNCTIONS = {
        "recursive": recursive, "caller": caller, "plain": plain, "breaks": breaks, "closure": closure,
        "counting": counting, "lambda": by_lambda, "explicit": explicit, "default": default, "custom": custom,
        "nameless": nameless, "refused_by_name": refused_by_name, "registered": registered,
        "method": Derived().method, "bound": tcompile.compile(Base().bare), "static": Base.static,
        "ofclass": Derived.ofclass, "object": Derived(), "compiled_object": tcompile.compile(Derived()),
        "partial": functools.partial(recursive, n=1), "disabled": disabled, "attributed": attributed,
        "frozen": tcompile.run(recursive), "strict": tcompile.error_on_graph_break(False)(recursive),
    }

    def settings_of(function):
        function = getattr(function, "__func__", getattr(function, "func", function))
        if not hasattr(function, "settings"):
            return None
        settings = function.settings
        return settings.fullgraph, settings.dynamic, settings.backend_name, settings.options
"""
WRITE = """
    import importlib, pickle
    lib, failed, written = importlib.import_module(sys.argv[1]), {}, {}
    for name, function in FUNCTIONS.items():
        try:
            written[name] = lib.dumps(function), settings_of(function)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    results = {}
    for name, function in FUNCTIONS.items():
        with tcompile.set_stance("force_eager"):
            results[name] = [function(X) for _ in range(4)]
    sys.stdout.buffer.write(pickle.dumps((failed, written, results)))
"""
READ = """
    import importlib, pickle, sys
    import numpy as __np  # nothing that the functions name
    lib, (failed, written, results) = importlib.import_module(sys.argv[1]), pickle.load(sys.stdin.buffer)
    def settings_of(function):
        function = getattr(function, "__func__", getattr(function, "func", function))
        if not hasattr(function, "settings"):
            return None
        settings = function.settings
        return settings.fullgraph, settings.dynamic, settings.backend_name, settings.options
    for _name, (_data, _settings) in written.items():
        try:
            _function = lib.loads(_data)
            _got = [_function(__np.arange(1.0, 5.0)) for _ in range(4)]
        except Exception as error:
            failed[_name] = f"{type(error).__name__}: {error}"
            continue
        for one, other in zip(_got, results[_name], strict=True):
            __np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        assert settings_of(_function) == _settings, (_name, settings_of(_function), _settings)
        if _name == "recursive":
            assert _function.graphs and _function.__qualname__ == "recursive"
    sys.stdout.buffer.write(pickle.dumps(failed))
"""
# What plain functions cannot do either: the standard pickle and dill look names up in ``__main__``; a wrapper that has
# its function's name is refused by the one, and taken with all globals of its module by the other.
AS_PLAIN = {
    "pickle": {"plain", "method", "bound", "ofclass", "object", "compiled_object", "disabled", "frozen", "strict"},
    "cloudpickle": set(),
    "dill": {"plain", "disabled", "frozen", "strict"},
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_functions_of_a_script_in_a_process_that_has_none_of_them(library, tmp_path):
    pickler(library)
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(ZOO) + textwrap.dedent(WRITE))
    written = python(str(script), library)
    failed = pickle.loads(python("-c", textwrap.dedent(READ), library, input=written))
    assert set(failed) == AS_PLAIN[library], failed


POOLS = """
    def check():
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        names = ["recursive", "breaks", "closure", "lambda", "explicit", "nameless", "registered"]
        with tcompile.set_stance("force_eager"):
            results = {name: FUNCTIONS[name](X) for name in names}
        for method in sys.argv[1:]:
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
                for name in names:
                    for got in pool.map(FUNCTIONS[name], [X] * 3):
                        np.testing.assert_array_equal(got, results[name])
                assert pool.submit(same, recursive, X).result()

    def same(function, x):  # in the other process, where arrays come to that are unpickled
        function(x), function(x)
        return function is recursive and function.graphs and settings_of(function) == settings_of(recursive)
"""


METHODS = [m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]


@pytest.mark.parametrize("method", METHODS)
def test_process_pools_of_a_script(method, tmp_path):
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    guard = "\nif __name__ == '__main__':\n    check()\n"
    script.write_text(textwrap.dedent(ZOO) + textwrap.dedent(POOLS) + guard)
    python(str(script), method)


def test_process_pools_without_a_script():
    pytest.importorskip("cloudpickle")
    lines = textwrap.dedent(ZOO) + textwrap.dedent(POOLS)
    lines = lines.replace("assert pool.submit(same,", "# ")  # a plain function is not found there
    methods = [method for method in METHODS if method != "fork"]
    python("-c", lines + "\ncheck()\n", *methods)


JOBLIB = """
    def check():
        import joblib
        with tcompile.set_stance("force_eager"):
            results = {name: [f(X) for _ in range(4)] for name, f in FUNCTIONS.items() if name != "counting"}
        for name, expected in results.items():
            got = joblib.Parallel(n_jobs=2)(joblib.delayed(FUNCTIONS[name])(X) for _ in range(4))
            np.testing.assert_array_equal(got, expected)
        for backend in ("threading", "multiprocessing"):
            for name in ("recursive", "closure", "lambda"):
                got = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(FUNCTIONS[name])(X) for _ in range(4))
                np.testing.assert_array_equal(got, results[name])
"""


def test_joblib(tmp_path):
    pytest.importorskip("joblib")
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    guard = "\nif __name__ == '__main__':\n    check()\n"
    script.write_text(textwrap.dedent(ZOO) + textwrap.dedent(JOBLIB) + guard)
    python(str(script), env={**os.environ, "PYTHONWARNINGS": "default"})


# -- functions of a module ---------------------------------------------------------------------------------------------
scale = 2.0


@tcompile.compile
def top(x, k=2):
    return x * k * scale


def bare(x):
    return x * 3


def named_backend(graph, inputs):
    return graph


class Layer:
    @tcompile.compile
    def method(self, x):
        return x + 1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_functions_of_a_module_go_by_name(protocol):
    for function in (top, Layer.method):
        assert again(function, protocol=protocol) is function
    explicit = tcompile.compile(bare, backend="eager", dynamic=False)
    made = again(explicit, protocol=protocol)
    assert parts_of(made)[0] is bare and made.settings == explicit.settings and made is not explicit
    assert_same(made(X), bare(X))


@pytest.mark.parametrize("library", ["cloudpickle", "dill"])
def test_functions_of_a_module_go_by_name_in_picklers_by_value(library):
    assert again(top, library) is top and again(Layer().method, library).__func__ is Layer.method
    explicit = tcompile.compile(bare, backend=named_backend)
    made = again(explicit, library)
    assert parts_of(made)[0] is bare and made.settings.backend is named_backend


def test_a_module_that_is_registered_to_go_by_value():
    cloudpickle = pytest.importorskip("cloudpickle")
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        made = again(top, "cloudpickle")
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert made is not top and made.__globals__ is not top.__globals__ and made.settings == top.settings
    assert_same(made(X), top(X))
    assert again(top) is top


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_copy_is_a_function_of_its_own(library):
    pickler(library)
    pytest.importorskip("cloudpickle")
    offset = 1.5

    @tcompile.compile(dynamic=False, options={"exact": True})
    def local(x: float, *, k=2) -> float:
        """Documented."""
        return x * k + offset if local else x

    local.tag = "mine"
    local(X), local(X)
    made = again(local, library)
    assert type(made) is CompiledFunction and made is not local and made.settings == local.settings
    assert not made.entries and local.entries
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__kwdefaults__", "tag"):
        assert getattr(made, name) == getattr(local, name), name
    assert made.__wrapped__ is parts_of(made)[0] and made.__wrapped__ is not local.__wrapped__
    assert next(cell.cell_contents for cell in made.__closure__ if cell.cell_contents != offset) is made
    for _ in range(3):
        assert_same(made(X, k=3), local(X, k=3))
    assert made.entries
    assert_same(again(made, library)(X), local(X))  # and of the copy


@pytest.mark.parametrize("library", ["cloudpickle", "dill"])
def test_functions_that_are_pickled_together_stay_together(library):
    pickler(library)

    def make():
        def helper(x):
            return x + 1

        first = tcompile.compile(lambda x: helper(x))
        second = tcompile.compile(lambda x: first(helper(x)))
        return helper, first, second

    helper, first, second = again(make(), library)
    assert first.__closure__[0].cell_contents is helper
    assert [cell.cell_contents for cell in second.__closure__] == [first, helper]
    assert_same(second(X), X + 2)


def test_a_large_global_goes_by_name_alone():
    pytest.importorskip("cloudpickle")
    program = """
        import pickle, threading, numpy as np, tcompile
        large, lock = np.ones(1 << 20), threading.Lock()
        large_and_split = large[::2]

        @tcompile.compile
        def f(x):
            return x + large[0]

        @tcompile.compile
        def locked(x):
            with lock:
                return x + 1

        @tcompile.compile
        def split(x):
            return x + large_and_split[0]

        for function in (f, locked, split):
            assert len(pickle.dumps(function)) < 100 and pickle.loads(pickle.dumps(function)) is function
    """
    python("-c", textwrap.dedent(program))


def test_without_cloudpickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert again(top) is top
    lost = "is not found under its name in its module[.] Install cloudpickle"
    with pytest.raises(pickle.PicklingError, match=f"<lambda> {lost}"):
        pickle.dumps(tcompile.compile(lambda x: x))
    with pytest.raises(pickle.PicklingError, match=f"its backend <lambda> {lost}"):
        pickle.dumps(tcompile.compile(bare, backend=lambda graph, inputs: graph))
    program = """
        import pickle, sys, numpy as np, tcompile
        sys.modules["cloudpickle"] = None

        @tcompile.compile
        def f(x):
            return x + 1

        assert pickle.loads(pickle.dumps(f)) is f
    """
    python("-c", textwrap.dedent(program))


def test_a_registered_backend_comes_along_unless_the_name_is_known():
    cloudpickle = pytest.importorskip("cloudpickle")
    from tcompile.backends import registry

    calls = []

    def first(graph, inputs):
        calls.append("first")
        return graph

    tcompile.register_backend(first, name="pickled_first", tags=("debug",))
    try:
        function = tcompile.compile(lambda x: x * 2, backend="pickled_first")
        data = cloudpickle.dumps(function)
        assert_same(pickle.loads(data)(X), X * 2)
        assert calls == ["first"]
        del registry._BACKENDS["pickled_first"]
        made = pickle.loads(data)
        assert_same(made(X), X * 2)
        assert registry._BACKENDS["pickled_first"].tags == ("debug",) and calls == ["first"]
    finally:
        registry._BACKENDS.pop("pickled_first", None)


def test_a_backend_that_cannot_be_pickled_is_refused():
    pytest.importorskip("cloudpickle")

    class Backend:
        def __call__(self, graph, inputs):
            return graph

        def __reduce__(self):
            raise TypeError("this backend cannot be pickled")

    for function in (tcompile.compile(bare, backend=Backend()), tcompile.compile(lambda x: x, backend=Backend())):
        for library in ("pickle", "cloudpickle"):
            with pytest.raises(TypeError, match="this backend cannot be pickled"):
                importlib.import_module(library).dumps(function)


def test_the_python_pickler_is_the_standard_one():
    assert pickle._loads(pickle._dumps(top)) is top

    class Override(pickle.Pickler):
        def reducer_override(self, obj):
            return NotImplemented

    assert not pickled._writes_functions(Override(io.BytesIO()))
    assert not pickled._writes_functions(None) and not pickled._writes_functions(pickle.Pickler)


def test_partials_and_containers():
    pytest.importorskip("cloudpickle")
    local = tcompile.compile(lambda x, y: x - y)
    held = again({"f": [local, functools.partial(local, X)], "g": local})
    assert held["f"][0] is held["g"] and held["f"][1].func is held["g"]
    assert_same(held["f"][1](X), X - X)


def test_a_dynamic_module():
    pytest.importorskip("cloudpickle")
    module = types.ModuleType("made_by_a_test")
    exec("import tcompile\n@tcompile.compile\ndef f(x):\n    return x * 2", vars(module))
    made = again(module.f)  # the module is not in sys.modules
    assert made is not module.f
    assert_same(made(X), X * 2)
