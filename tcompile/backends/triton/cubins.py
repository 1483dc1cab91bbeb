"""Cubins: kernels as machine code of NVIDIA's GPUs. No GPU is needed to compile: Triton contains the assembler.

Input: a ``TritonFunction``, the compute capability of a GPU, and facts about its arguments.
Output: a ``Cubin``, from tcompile's disk cache where the same was compiled before.
Why: Triton is loaded only where something has to be compiled.

The cache key has everything that the code depends on: the source and the library that kernels call, types, blocks, the
capability, and Triton's version.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import json
import re
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcompile.backends.disk import cache, key_of
from tcompile.backends.triton import library
from tcompile.backends.triton.sources import defined
from tcompile.backends.triton.text import TritonFunction
from tcompile.errors import BackendError

OLDEST = 80  # Ampere: older GPUs are untested
# The assembler of CUDA 12.8 takes the negated least integer of 16 bits for a positive one where more is computed from
# it (``-x % 6``, ``-x > y``). Negation is a subtraction from this 0, which is opaque to the assembler.
_NEGATED = re.compile(r"\bneg\.s16\s+(%\w+), (%\w+);")
_SUBTRACTED = (
    r"{ .reg .b32 program; .reg .b16 zero; mov.u32 program, %ctaid.y; cvt.u16.u32 zero, program;"
    r" sub.s16 \1, zero, \2; }"
)
_one_at_a_time = threading.Lock()  # Triton's settings are global


@dataclass(frozen=True)
class ArgumentFacts:
    """Facts about the arguments of one launch: ``wide`` says that offsets need 64 bits, ``even`` which arguments
    (pointers, in bytes, and numbers) are multiples of 16, so that loads can be vectorised.
    """

    wide: bool
    even: tuple[bool, ...]


@dataclass(frozen=True)
class Cubin:
    """Machine code: the ``name`` of its function, how many ``warps`` and bytes of ``shared`` memory a program has.

    ``extra`` is the number of pointers after its arguments: scratch memory, which stays unused.
    """

    code: bytes
    name: str
    warps: int
    shared: int
    extra: int


def compiled(function: TritonFunction, capability: int, variant: ArgumentFacts) -> Cubin:
    """The machine code for GPUs of this compute capability (90 for 9.0).

    Raises BackendError where the GPU is too old, or Triton is missing or fails.
    """
    check_capability(capability)
    about = (function.blocks, function.warps, function.config.stages, variant, capability)
    key = key_of("triton", version(), library_text(), _SUBTRACTED, function.text, repr(about),
                 repr([(p.name, p.type) for p in function.parameters]))  # fmt: skip
    found = cache.find(key)
    if found is not None:
        head, _, code = found.partition(b"\n")
        return Cubin(code, **json.loads(head))
    made = _compile(function, capability, variant)
    parameters = len(re.findall(r"^\s*\.param", made.asm["ptx"].partition(".entry")[2].partition(")")[0], re.M))
    given = len(function.parameters) + function.signals
    facts = {
        "name": made.metadata.name, "warps": made.metadata.num_warps, "shared": made.metadata.shared,
        "extra": parameters - given,
    }  # fmt: skip
    cache.keep(key, json.dumps(facts).encode() + b"\n" + made.asm["cubin"])
    return Cubin(made.asm["cubin"], **facts)


def check_capability(capability: int) -> None:
    """Raises BackendError where a GPU is too old."""
    if capability < OLDEST:
        raise BackendError(
            f"this GPU has compute capability {capability // 10}.{capability % 10}; kernels are compiled for"
            f" {OLDEST // 10}.{OLDEST % 10} (Ampere) and later. backend='llvm' runs on the CPU."
        )


def assembly(function: TritonFunction, capability: int, variant: ArgumentFacts) -> str:
    """The PTX of a function, generated on demand."""
    text: str = _compile(function, capability, variant).asm["ptx"]
    return text


def _compile(function: TritonFunction, capability: int, variant: ArgumentFacts) -> Any:
    """Compiles a function with Triton."""
    try:
        import triton
        import triton.language as tl
        from triton.backends.compiler import GPUTarget
        from triton.backends.nvidia.compiler import CUDAOptions
        from triton.compiler import ASTSource
        from triton.runtime.jit import JITFunction
    except ImportError as error:
        raise BackendError(f"backend='triton' needs Triton: pip install triton ({error})") from error
    index = "i64" if variant.wide else "i32"
    signature = {p.name: index if p.is_index else p.type for p in function.parameters}
    if function.signals:
        signature["status"] = "*i32"
    attributes = {(i,): [["tt.divisibility", 16]] for i, even in enumerate(variant.even) if even}
    constants: dict[tuple[int, ...], Any] = {}
    for name, value in [*function.blocks, ("INDEX", tl.int64 if variant.wide else tl.int32)]:
        constants[(len(signature),)] = value
        signature[name] = "constexpr"
    options = {
        "num_warps": function.warps, "num_stages": function.config.stages, "enable_fp_fusion": False,
        "enable_reflect_ftz": False,
    }  # fmt: skip
    known = {field.name for field in dataclasses.fields(CUDAOptions)}
    source = ASTSource(JITFunction(defined(function, _names())), signature, constants, attributes)
    settings, hooks = triton.knobs.compilation, triton.knobs.runtime
    try:
        with _one_at_a_time, settings.scope(), hooks.scope():
            settings.disable_line_info = True  # two thirds of the machine code's size
            hooks.add_stages_inspection_hook = _negating
            settings.always_compile = True  # Triton 3.6's disk cache ignores the hook
            return triton.compile(
                source, target=GPUTarget("cuda", capability, 32),
                options={name: value for name, value in options.items() if name in known},
            )  # fmt: skip
    except Exception as error:
        raise BackendError(f"Triton refuses kernel {function.name}: {error}\n{function.text}") from error


def _negating(backend: Any = None, stages: dict[str, Any] | None = None, *others: Any) -> Any:
    """The hook into Triton's stages: without arguments Triton asks for its key and hash."""
    if stages is None:
        return _SUBTRACTED, _SUBTRACTED
    assembled = stages["ptx"]
    stages["ptx"] = lambda source, metadata: _NEGATED.sub(_SUBTRACTED, assembled(source, metadata))
    return None


@functools.cache
def _names() -> dict[str, Any]:
    """The globals of kernels: Triton's language, and the library's functions to be compiled into them."""
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime.jit import JITFunction

    names: dict[str, Any] = {"tl": tl, "libdevice": libdevice, "Block": tl.tensor}  # Triton reads annotations, too
    for name, value in vars(library).items():
        if isinstance(value, types.FunctionType) and value.__module__ == library.__name__:
            copy: Callable[..., Any] = types.FunctionType(value.__code__, names, name, value.__defaults__)
            copy.__annotations__ = value.__annotations__
            copy.__module__ = library.__name__
            names[name] = JITFunction(copy)
        elif isinstance(value, int):
            names[name] = tl.constexpr(value)
    return names


@functools.cache
def library_text() -> str:
    """The text of the functions that kernels call."""
    return Path(__file__).with_name("library.py").read_text("utf-8")


@functools.cache
def library_names() -> frozenset[str]:
    """Their names, which no name in a kernel may equal."""
    return frozenset(name for name in vars(library) if not name.startswith("__"))


@functools.cache
def version() -> str:
    """Triton's version, "" where it is not installed."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


__all__ = ["OLDEST", "ArgumentFacts", "Cubin", "assembly", "check_capability", "compiled", "library_names", "version"]
