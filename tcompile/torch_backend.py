"""The backend for ``torch.compile(..., backend="tcompile")``.

Input: a graph that PyTorch has captured, and the inputs of the call.
Output: a callable that runs our kernels, forward and backward.
Why: PyTorch's users get machine code within milliseconds, and need no C++ compiler.

PyTorch's AOTAutograd functionalises the graph, differentiates it, and cuts it into a forward and a backward graph of
ATen operations. Each becomes a graph of ours, goes through the transforms, and is compiled for the CPU. PyTorch finds
this module by the entry point ``tcompile`` of the group ``torch_dynamo_backends``; ``tcompile.compile`` imports it for
modules.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np
import torch
from torch._decomp import _core_aten_decompositions_post_autograd
from torch._dynamo import disable
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.utils._python_dispatch import _disable_current_modes

from tcompile import transforms
from tcompile.backends import find_backend
from tcompile.backends.helpers import ignore_flags, reset
from tcompile.collector import no_collection
from tcompile.config import config
from tcompile.errors import InvalidArgument
from tcompile.frontends.torch.fx_graphs import (
    Converted,
    Given,
    Part,
    Refused,
    Shown,
    convert,
    draws,
    location_of,
    symbols_of,
)
from tcompile.frontends.torch.joint_graphs import merge_equal_calls
from tcompile.frontends.torch.tensors import tensor_of
from tcompile.graph import TensorType
from tcompile.graph.evaluate import as_array
from tcompile.graph.verify import verify
from tcompile.observe import bus
from tcompile.observe.context import compiling
from tcompile.observe.events import CompileFinished, CompileStarted, FellBack, GraphCaptured, Lazy
from tcompile.records import dataclass
from tcompile.runtime.cache import CompileSettings

Run = Callable[..., list[Any]]
OPTIONS = ("exact", "max_autotune", "backend")
_MOST_SIZES = 64  # sets of sizes for which one graph is compiled at a time
_numbers = itertools.count()
# Operations that are not decomposed: they have rows, or PyTorch's kernel is faster.
_KEPT = (
    "aten.addcmul.default", "aten.addcdiv.default", "aten.lerp.Scalar", "aten.lerp.Tensor",
    "aten.gelu_backward.default", "aten.silu.default", "aten._softmax_backward_data.default",
    "aten._log_softmax.default", "aten._log_softmax_backward_data.default", "aten.unbind.int",
    "aten.masked_fill.Scalar", "aten.masked_fill.Tensor", "aten.baddbmm.default", "aten.rsub.Tensor",
    "aten.rsub.Scalar", "aten.zeros_like.default", "aten.ones_like.default", "aten.zeros.default", "aten.ones.default",
    "aten.embedding_dense_backward.default", "aten.detach.default",
)  # fmt: skip


@functools.cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions into its core operations, without ``_KEPT``.

    Random numbers are drawn by PyTorch's own operations, so that they are those of eager mode.
    """
    found = _core_aten_decompositions_post_autograd()
    return {op: how for op, how in found.items() if str(op) not in _KEPT and not draws(op)}


def torch_backend(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compiles a graph that ``torch.compile`` has captured.

    Parameters
    ----------
    module : torch.fx.GraphModule
        The graph.
    example_inputs : sequence
        Fake tensors and sizes like its inputs.
    options : mapping, optional
        ``exact`` leaves to NumPy what kernels may compute with other last bits, ``max_autotune`` times variants of
        kernels, ``backend`` names another of tcompile's backends ("eager" runs graphs without compiling them).
    mode : str, optional
        "max-autotune" is the option ``max_autotune``; "default" and "reduce-overhead" change nothing.

    Returns
    -------
    callable
        Takes the graph's inputs, and returns its outputs.

    Raises
    ------
    InvalidArgument
        Where an option or a mode is unknown.
    """
    return differentiated(module, example_inputs, _settings(options or {}, mode), Made())


@dataclass
class Made:
    """What PyTorch's AOTAutograd made of a graph.

    ``compiled`` are the graphs of ATen operations that were compiled; a backward graph comes with the first backward
    pass. If the graph is differentiated, ``backward`` is its backward graph. ``results`` is the number of results of
    the forward graph, which are followed by what the backward graph needs. ``strides`` are those that the results are
    to have, where they are not those of AOTAutograd's operations.
    """

    strides: Sequence[tuple[int, ...]] = ()
    compiled: list[CompiledModule] = field(default_factory=list)
    backward: GraphModule | None = None
    results: int = 0


def differentiated(
    module: GraphModule, example_inputs: Sequence[Any], settings: Mapping[str, Any], made: Made, reports: bool = True
) -> Callable[..., Any]:
    """Compiles a graph, forward and backward, by PyTorch's AOTAutograd.

    Parameters
    ----------
    module : torch.fx.GraphModule
        The graph.
    example_inputs : sequence
        Tensors, real or fake, and sizes like its inputs.
    settings : mapping
        The backend's options.
    made : Made
        Gets the graphs that come out.
    reports : bool
        Whether a compile of a forward graph is an event of its own.

    Returns
    -------
    callable
        Takes the graph's inputs, and returns its outputs.
    """

    def compile(graph: GraphModule, examples: Sequence[Any], kind: str) -> CompiledModule:
        if kind != "backward":
            _set_strides(graph, made.strides)
        made.compiled.append(compile_aten(graph, settings, kind, reports or kind == "backward"))
        return made.compiled[-1]

    def partition(joint: GraphModule, args: Sequence[Any], **options: Any) -> tuple[GraphModule, GraphModule]:
        merge_equal_calls(joint)
        with functorch_config.patch(cse=False):  # which imports Inductor: most of a second
            forward, made.backward = min_cut_rematerialization_partition(joint, args, **options)
        made.results = options["num_fwd_outputs"]
        _copy_written(forward, made.results)
        return forward, made.backward

    def compile_backward(graph: GraphModule, examples: Sequence[Any]) -> Any:
        return disable(disable(compile)(graph, examples, "backward"))

    compiled: Callable[..., Any] = disable(
        aot_module_simplified(
            module,
            example_inputs,
            fw_compiler=functools.partial(compile, kind="forward"),
            bw_compiler=compile_backward,
            inference_compiler=functools.partial(compile, kind="graph"),
            decompositions=_decompositions(),
            partition_fn=partition,
            keep_inference_input_mutations=True,
        )
    )
    return compiled


def _copy_written(forward: GraphModule, results: int) -> None:
    """Lets a forward graph keep copies of those inputs for the backward graph that have other elements by then.

    AOTAutograd writes to inputs after it has run the graph, and autograd would refuse the ones that it kept.
    """
    (output,) = (node for node in forward.graph.nodes if node.op == "output")
    items = list(output.args[0])
    written = [made.mutated_input for made in output.meta["desc"] if isinstance(made, InputMutationAOTOutput)]
    for number in range(results, len(items)):
        kept = items[number]
        if isinstance(kept, FxNode) and kept.op == "placeholder" and kept.meta["desc"] in written:
            with forward.graph.inserting_before(output):
                items[number] = forward.graph.call_function(torch.ops.aten.clone.default, (kept,))
            items[number].meta = dict(kept.meta)
    output.args = (tuple(items),)
    forward.recompile()


def _set_strides(graph: GraphModule, strides: Sequence[tuple[int, ...]]) -> None:
    """States other strides for the first results of a graph, which conversion then gives them."""
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    for node, wanted in zip(output.args[0], strides, strict=False):
        value = node.meta.get("val") if isinstance(node, FxNode) and node.op == "call_function" else None
        if isinstance(value, torch.Tensor) and value.stride() != wanted and len(wanted) == value.ndim:
            with value.fake_mode:
                node.meta["val"] = torch.empty_strided(value.shape, wanted, dtype=value.dtype, device=value.device)


def compile_module(module: torch.nn.Module, settings: CompileSettings) -> Any:
    """A module compiled by ``torch.compile`` with this backend, under the settings of ``tcompile.compile``.

    Raises InvalidArgument where the backend is a function of the user's, which takes graphs of NumPy's.
    """
    if not isinstance(settings.backend, str):
        raise InvalidArgument(f"backend must be a name for a torch.nn.Module, got {settings.backend_name}")
    backend = functools.partial(torch_backend, options=options_of(settings))
    return torch.compile(module, backend=backend, fullgraph=settings.fullgraph, dynamic=settings.dynamic)


def options_of(settings: CompileSettings) -> dict[str, Any]:
    """The options of this backend for the settings of ``tcompile.compile``."""
    options = {name: value for name, value in settings.options if name in OPTIONS}
    return options if settings.backend == "auto" else {**options, "backend": settings.backend}


def _settings(options: Mapping[str, Any], mode: str | None) -> dict[str, Any]:
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        known = ", ".join(OPTIONS)
        raise InvalidArgument(f"options has {unknown[0]!r}, which backend='tcompile' does not know: {known}")
    modes = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
    if mode not in modes:
        raise InvalidArgument(f"mode must be one of {', '.join(map(str, modes))}, got {mode!r}")
    return {**options, **({"max_autotune": True} if mode is not None and mode.startswith("max") else {})}


def compile_aten(
    module: GraphModule, settings: Mapping[str, Any], kind: str, reports: bool = True, later: bool = False
) -> CompiledModule:
    """Compiles one graph of ATen operations: at once, or at the first call with each set of sizes if these are open.

    ``reports`` is false where capture reports the compile itself. ``later``: at the first call in any case.
    """
    where = next((place for node in module.graph.nodes if (place := location_of(node)) is not None), None)
    number = next(_numbers)
    label = f"{kind} {number}" if where is None else f"{where.function} ({kind} {number})"
    compiled = CompiledModule(module, settings, f"{kind}_{number}", label, kind, reports)
    if not later and not compiled.symbolic:
        compiled.prepare({})
    return compiled


def _has_symbols(module: GraphModule) -> bool:
    """Whether a graph has open sizes."""
    fakes = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    sizes = [size for fake in fakes if isinstance(fake, torch.Tensor) for size in fake.shape]
    return any(isinstance(value, torch.SymInt) for value in (*fakes, *sizes))


class CompiledModule:
    """A graph of ATen operations with its compiled forms, one for each set of sizes.

    ``name`` is the graph's, ``label`` what reports call it. ``kind`` is "forward", "backward" or "graph". ``programs``
    are the compiled forms by sizes; ``refused`` is why there is none, where PyTorch runs the graph. ``reports``: its
    compiles are events of their own.
    """

    def __init__(
        self,
        module: GraphModule,
        settings: Mapping[str, Any],
        name: str,
        label: str,
        kind: str,
        reports: bool = True,
    ) -> None:
        self._boxed_call = True  # says to AOTAutograd: pass a list, which may be emptied
        self.module = module
        self.settings = settings
        self.name = name
        self.label = label
        self.kind = kind
        self.reports = reports
        self.programs: dict[tuple[int, ...], _Program] = {}
        self.refused: str | None = None
        self.symbolic = _has_symbols(module)

    def __call__(self, args: list[Any]) -> Any:
        """Runs the graph.

        At the first call AOTAutograd watches for operations that alias their operands, by a dispatch mode, under which
        ``torch.linalg.pinv`` of complex numbers is wrong (2.13). No mode is left on: the graph is functional.
        """
        if torch._C._len_torch_dispatch_stack():
            with _disable_current_modes():
                return self._run(args)
        return self._run(args)

    def _run(self, args: list[Any]) -> Any:
        program = self.program(args)
        if program is None:
            given = list(args)
            args.clear()
            return self.module(*given)
        return program.call(args)

    def program(self, args: Sequence[Any]) -> _Program | None:
        """The compiled form for the sizes of some arguments; None where PyTorch runs the graph."""
        if self.refused is not None:
            return None
        if not self.symbolic:
            return self.programs.get(()) or self.prepare({})
        symbols = symbols_of(self.module, args)
        key = tuple(symbols.values())
        found = self.programs.pop(key, None)
        if found is None:
            return self.prepare(symbols)
        self.programs[key] = found  # the last one is the newest
        return found

    def prepare(self, symbols: Mapping[Any, int]) -> _Program | None:
        """Compiles the graph for some sizes."""
        if not self.reports:
            program = self._compile(symbols)
        else:
            with no_collection(), compiling(self.label, f"{self.name}/{len(self.programs)}"):
                program = self._compile_and_report(symbols)
        if program is None:
            return None
        self.programs[tuple(symbols.values())] = program
        if len(self.programs) > _MOST_SIZES:
            self.programs.pop(next(iter(self.programs)))
        return program

    def _compile(self, symbols: Mapping[Any, int]) -> _Program | None:
        try:
            return _Program(self, convert(self.module, symbols, self.name))
        except Refused as error:
            self.refused = str(error)
            bus.emit(FellBack(reason="PyTorch runs the graph", detail=self.refused))
            return None

    def _compile_and_report(self, symbols: Mapping[Any, int]) -> _Program | None:
        started = time.perf_counter()
        bus.emit(CompileStarted(reason="first call" if not self.programs else "other sizes"))
        program = self._compile(symbols)
        if program is not None:
            ms = (time.perf_counter() - started) * 1e3
            bus.emit(CompileFinished(backend="tcompile", graphs=1, kernels=len(program.kernels), ms=ms))
        return program


def _example(type: TensorType) -> np.ndarray[Any, Any]:
    """A dense array of ones with the shape, dtype and memory order of this type."""
    order = type.layout.order
    made = np.ones([cast("int", type.shape[axis]) for axis in order], type.dtype)
    return made.transpose(sorted(range(type.ndim), key=order.__getitem__))


class _Program:
    """A graph compiled for one set of sizes: takes tensors, returns tensors."""

    def __init__(self, owner: CompiledModule, converted: Converted) -> None:
        self.owner = owner
        self.converted = converted
        self.graph = converted.graph
        check = verify if config.verify else None
        if check is not None:
            check(self.graph)
        if owner.reports:
            bus.emit(
                GraphCaptured(
                    graph=self.graph.name, ops=self.graph.op_count, inputs=tuple(n.name for n in self.graph.inputs),
                    get_graph=Lazy(self.graph),
                )
            )  # fmt: skip
        settings = owner.settings
        backend = find_backend(settings.get("backend", "auto"))
        final = transforms.run(self.graph, check) if backend.transformed else self.graph
        options = {name: settings[name] for name in ("exact", "max_autotune") if name in settings}
        examples = [_example(node.tensor) for node in self.graph.inputs] if options.get("max_autotune") else ()
        self.compiled = backend.compiler(options)(final, examples)
        settle = getattr(self.compiled, "settle", None)
        if settle is not None:
            settle()
        self.kernels = tuple(getattr(self.compiled, "kernels", ()))
        self.run = getattr(self.compiled, "program", self.compiled)
        self.call = self._wrapper(boxed=True)

    @property
    def direct(self) -> Callable[..., list[Any]] | None:
        """The program as a function of the tensors alone; None where results share memory or arguments are written."""
        converted = self.converted
        positions = {out for out in converted.outputs if isinstance(out, int)}
        plain = len(positions) == len(converted.outputs) and not converted.written and not converted.shares
        return self._wrapper(boxed=False) if plain else None

    def on_arrays(self) -> tuple[list[int], Callable[..., None]]:
        """The positions of the inputs that the program reads, and the program as a function of their arrays.

        It is for graphs without results, which write to their inputs. The caller ignores floating-point flags.
        """
        converted, count = self.converted, len(self.converted.inputs)
        names = {"run": self.run} | {f"constant_{i}": array for i, array in enumerate(converted.constants)}
        arrays = ", ".join(f"a{n}" for n in range(count))
        constants = "".join(f", constant_{i}" for i in range(len(converted.constants)))
        lines = [f"def program({arrays}):", f"    o = run({arrays}{constants})"]
        for output, number in converted.written:
            lines += [f"    if o[{output}] is not a{number}:", f"        a{number}[...] = o[{output}]"]
        exec("\n".join(lines), names)
        made: Callable[..., None] = names["program"]
        return list(converted.inputs), made

    def _wrapper(self, boxed: bool) -> Callable[..., list[Any]]:
        """Generates the function that views tensors as arrays, runs the graph, and views its results as tensors.

        ``boxed``: it takes them in a list, which it empties.
        """
        converted, positions = self.converted, set(self.converted.inputs)
        names: dict[str, Any] = {
            "run": self.run, "tensor_of": tensor_of, "as_array": as_array, "run_eagerly": self._run_eagerly,
            "ignore_flags": ignore_flags, "reset": reset, "restrided": _restrided, "get_rng_state": torch.get_rng_state,
        }  # fmt: skip
        constants = {f"constant_{i}": array for i, array in enumerate(converted.constants)}
        names |= constants
        count = sum(node.op == "placeholder" for node in self.owner.module.graph.nodes)
        tensors = "".join(f"t{p}, " if p in positions else "_, " for p in range(count))
        lines = [f"def program({tensors}):"]
        if boxed:
            lines = ["def program(args):", *([f"    {tensors}= args"] if tensors else [])]
            lines += ["    given = list(args)", "    args.clear()"]
        lines.append(f"    drawn = {'get_rng_state()' if converted.draws else 'None'}")
        for n, p in enumerate(converted.inputs):
            if self.owner.kind == "backward":
                lines += self._check_of_strides(n, f"t{p}")
            lines.append(f"    a{n} = t{p}.numpy(force=True)")
        inputs = [*(f"a{n}" for n in range(len(converted.inputs))), *constants]
        lines += ["    token = ignore_flags()", "    try:", f"        o = run({', '.join(inputs)})"]
        lines += ["    except Exception:", "        o = None", "    finally:", "        reset(token)"]
        lines += ["    if o is None:", f"        return run_eagerly({'given' if boxed else f'[{tensors}]'}, drawn)"]
        for output, number in converted.written:
            lines += [f"    if o[{output}] is not a{number}:", f"        a{number}[...] = o[{output}]"]
        lines += self._results(names)
        exec("\n".join(lines), names)
        made: Callable[..., list[Any]] = names["program"]
        return made

    def _check_of_strides(self, number: int, tensor: str) -> list[str]:
        """Generates the copy of a tensor whose strides are not those of the graph.

        PyTorch guards the inputs of forward graphs. Backward graphs get saved tensors, whose strides are real ones, and
        not the fake ones, if PyTorch has run the forward graph.
        """
        sizes, strides = self.graph.inputs[number].tensor.shape, self.converted.strides[number]
        pairs = list(enumerate(zip(sizes, strides, strict=True)))
        differs = " or ".join(f"{tensor}.stride({axis}) != {step}" for axis, (size, step) in pairs if size != 1)
        return [f"    if {differs}:", f"        {tensor} = restrided({tensor}, {strides})"] if differs else []

    def _results(self, names: dict[str, Any]) -> list[str]:
        """Generates the results: one tensor for each array, then views of arguments and of other results."""
        whole, parts, made = [], [], dict[int, str]()
        outputs = self.converted.outputs
        for number, out in enumerate(outputs):
            if isinstance(out, int):
                array = f"o[{out}]" if self.graph.outputs[out].tensor.ndim else f"as_array(o[{out}])"
                whole.append(f"    r{number} = {made.get(out) or f'tensor_of({array})'}")
                made.setdefault(out, f"r{number}")
            elif isinstance(out, Given):
                tensor = f"t{out.position}"
                whole.append(f"    r{number} = {tensor if out.view is None else _view(tensor, out.view)}")
            elif isinstance(out, Part):
                parts.append(f"    r{number} = {_view(f'r{out.result}', out.view)}")
            else:
                names[f"make_{number}"] = out
                whole.append(f"    r{number} = make_{number}()")
        results = ", ".join(f"r{number}" for number in range(self.converted.returned))
        return [*whole, *parts, f"    return [{results}]"]

    def _run_eagerly(self, given: list[Any], drawn: torch.Tensor | None) -> list[Any]:
        """Runs the graph in PyTorch, which raises its own error. It draws the same random numbers again."""
        if drawn is not None:
            torch.set_rng_state(drawn)
        return list(self.owner.module(*given))


def _restrided(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The same elements with other strides."""
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device="cpu")
    return made.copy_(tensor.detach())


def _view(tensor: str, view: Shown) -> str:
    """The text of a view of a tensor."""
    text = f"{tensor}.as_strided({view.sizes}, {view.strides}, {tensor}.storage_offset() + {view.offset})"
    return f"{text}.detach()" if view.detached else text


__all__ = ["OPTIONS", "CompiledModule", "Made", "compile_aten", "differentiated", "options_of", "torch_backend"]
