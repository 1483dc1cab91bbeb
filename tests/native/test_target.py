"""Loading IR: addresses, errors, symbols, unloading."""

import ctypes
import gc
import math
import subprocess
import sys

import numpy as np
import pytest

import tcompile
from tcompile.backends import find_backend, preload
from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import target
from tcompile.errors import BackendError


def test_exports_are_callable_and_text_is_kept():
    ir = "define i32 @one() { ret i32 1 }\ndefine i32 @two() { ret i32 2 }\n"
    code = native.load(ir, ["one", "two"])
    assert [ctypes.CFUNCTYPE(ctypes.c_int)(code[name])() for name in ("one", "two")] == [1, 2]
    assert code.ir == ir
    assert "one:" in code.assembly()
    assert "one=0x" in repr(code)
    with pytest.raises(KeyError):
        code["three"]


def test_code_of_the_same_name_does_not_collide():
    codes = [native.load(f"define i32 @f() {{ ret i32 {n} }}", ["f"]) for n in range(20)]
    del codes[3]
    gc.collect()
    values = [ctypes.CFUNCTYPE(ctypes.c_int)(code["f"])() for code in codes]
    assert values == [n for n in range(20) if n != 3]


def test_code_that_is_begun_is_made_while_the_caller_goes_on():
    begun = [native.begin(f"define i32 @f() {{ ret i32 {n} }}", ["f"]) for n in range(8)]
    bad = native.begin("define i32 @f( { ret i32 1 }", ["f"])
    del begun[3]  # nobody waits for it
    for _ in range(2):
        with pytest.raises(RuntimeError, match="LLVM does not take this module"):
            bad()
    codes = [code() for code in begun]
    assert [ctypes.CFUNCTYPE(ctypes.c_int)(code["f"])() for code in codes] == [0, 1, 2, 4, 5, 6, 7]
    assert begun[0]() is codes[0]
    assert all(code.ms > 0 for code in codes)


@pytest.mark.parametrize(
    ("ir", "exports"),
    [
        ("define i32 @f( { ret i32 1 }", ["f"]),
        ("define i32 @f() { ret i64 1 }", ["f"]),
        ("define i32 @f() { ret i32 1 }", ["g"]),
        (
            "declare i32 @tc_missing()\ndefine i32 @f() { %r = call i32 @tc_missing()\n ret i32 %r }",
            ["f"],
        ),
    ],
)
def test_bad_modules_are_refused(ir, exports, capfd):
    with pytest.raises(RuntimeError, match="LLVM does not take this module"):
        native.load(ir, exports)
    assert capfd.readouterr() == ("", "")


def test_a_module_that_is_not_verified_is_refused_and_goes_before_its_context():
    ir = "define i32 @f(i32 %x) {\na:\n br label %b\nb:\n %s = add i32 %x, 1\n %p = phi i32 [ %x, %a ]\n ret i32 %p\n}"
    for _ in range(5):
        with pytest.raises(RuntimeError, match="PHI nodes not grouped") as caught:
            native.load(ir, ["f"])
        caught.value.held = caught  # a cycle, with the frames of the traceback in it, which the collector takes apart
        del caught
    gc.collect()


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
def test_open_symbols_come_from_libm_and_from_the_caller(opt):
    ir = """
    declare double @cbrt(double)
    declare double @given(double)
    define double @f(double %x) {
      %a = call double @cbrt(double %x)
      %b = call double @given(double %a)
      ret double %b
    }
    """
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    twice = prototype(lambda x: 2 * x)
    code = native.load(ir, ["f"], {"given": ctypes.cast(twice, ctypes.c_void_p).value}, opt)
    assert math.isclose(prototype(code["f"])(27.0), 6.0)


def test_alwaysinline_is_obeyed():
    ir = """
    define internal i32 @inner(i32 %x) alwaysinline { %y = mul i32 %x, 3
      ret i32 %y }
    define i32 @outer(i32 %x) { %y = call i32 @inner(i32 %x)
      ret i32 %y }
    """
    code = native.load(ir, ["outer"])
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code["outer"])(14) == 42
    assert "inner" not in code.assembly().replace('"inner"', "")


def test_vector_math_symbols():
    assert not native.has_symbol("_ZGVeN16v_nosuchthing")
    assert not native.has_symbol("cos")
    assert not native.has_symbol("_ZGVzN16v_expf")
    if native.has_symbol("_ZGVdN8v_expf"):
        ir = """
        declare <8 x float> @_ZGVdN8v_expf(<8 x float>)
        define void @f(ptr %to) {
          %y = call <8 x float> @_ZGVdN8v_expf(<8 x float> zeroinitializer)
          store <8 x float> %y, ptr %to, align 4
          ret void
        }
        """
        code = native.load(ir, ["f"])
        values = (ctypes.c_float * 8)()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code["f"])(values)
        assert list(values) == [1.0] * 8


def test_machine():
    machine = native.machine()
    assert machine.cpu
    assert machine.vector_bits in (128, 256, 512)


def test_text_has_no_open_placeholders():
    assert "$" not in target.source("flags_x86.ll")
    with pytest.raises(KeyError):
        target.source("launch.ll")


def test_importing_the_package_does_not_import_llvmlite():
    program = "import sys, tcompile.backends.llvm.native; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_code_that_is_dropped_gives_its_memory_back():
    """In a process of its own: what other tests have left is given back to the system at any time."""
    if sys.platform != "linux":
        pytest.skip("the memory in use is read from /proc")
    program = """
import gc, resource
from pathlib import Path
from tcompile.backends.llvm import native

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

for count in (100, 480):  # the first ones fill caches
    before = resident()
    for i in range(count):
        native.load(f"define i32 @answer() {{ ret i32 {i} }}", ["answer"])
print(resident() - before)
"""
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    assert grown < 5 << 19  # a linker that never goes keeps twice as much


def test_code_outlives_its_linkers_turn():
    kept = [native.load(f"define i32 @answer() {{ ret i32 {i} }}", ["answer"]) for i in range(40)]
    assert [ctypes.CFUNCTYPE(ctypes.c_int)(code["answer"])() for code in kept] == list(range(40))


def test_mapping_llvm_beforehand_fails_silently(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    preload.map_llvm()


def test_a_function_whose_code_is_refused_runs_plainly(monkeypatch):
    monkeypatch.setattr(native, "FLAGS", "no declarations")
    compiled = tcompile.compile(lambda x: x * 2 + 1, backend="llvm")
    with tcompile.config.patch(verify=False), pytest.warns(UserWarning, match="bug of tcompile's.*LLVM does not take"):
        assert compiled(np.ones(3)).tolist() == [3, 3, 3]


def test_another_backend_that_returns_our_code_fails_where_it_is_refused(monkeypatch):
    monkeypatch.setattr(native, "FLAGS", "no declarations")
    ours = find_backend("llvm")
    compiled = tcompile.compile(lambda x: x * 2 + 1, backend=lambda graph, inputs: ours.compile(graph, inputs))
    with pytest.raises(BackendError, match="LLVM does not take"):
        compiled(np.ones(3))
