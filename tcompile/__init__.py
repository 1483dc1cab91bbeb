"""tcompile: unmodified NumPy code, captured from Python bytecode and fused into machine code.

>>> import numpy as np, tcompile
>>> @tcompile.compile
... def f(x):
...     return np.maximum(x + 1, 0) * 2
>>> f(np.array([-2.0, 3.0]))
array([0., 8.])

In a notebook: ``%load_ext tcompile``, then ``%%tcompile`` on a cell.
"""

from typing import Any

from tcompile import versions

if versions.refusal():
    raise ImportError(versions.refusal())

from tcompile import func
from tcompile.api import (
    CompileProfiler,
    allow_in_graph,
    associative_scan,
    assume_constant_result,
    compile,
    compile_times,
    cond,
    cudagraph_mark_step_begin,
    device,
    diagnose,
    disable,
    disallow_in_graph,
    error_on_graph_break,
    explain,
    get_num_threads,
    graph_break,
    is_compiling,
    list_mode_options,
    list_options,
    map,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
    nested_compile_region,
    profile,
    reset,
    run,
    scan,
    set_num_threads,
    substitute_in_graph,
    unroll,
    while_loop,
)
from tcompile.backends import list_backends, register_backend
from tcompile.backends.disk import cache
from tcompile.backends.memory_pool import memory
from tcompile.config import config
from tcompile.derivatives import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from tcompile.gradient_checks import check_grads, find_nan, gradient_errors
from tcompile.observe.logs import set_logs
from tcompile.stance import set_stance

__version__ = "0.1.0"


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext tcompile``: adds the ``%tcompile`` and ``%%tcompile`` magics to an IPython shell."""
    from tcompile_jupyter import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext tcompile``: removes the magics."""
    from tcompile_jupyter import unload_ipython_extension as unload

    unload(shell)


__all__ = [
    "CompileProfiler",
    "allow_in_graph",
    "associative_scan",
    "assume_constant_result",
    "cache",
    "check_grads",
    "checkpoint",
    "compile",
    "compile_times",
    "cond",
    "config",
    "cudagraph_mark_step_begin",
    "custom_jvp",
    "custom_vjp",
    "device",
    "diagnose",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "explain",
    "find_nan",
    "func",
    "get_num_threads",
    "grad",
    "gradient_errors",
    "graph_break",
    "hessian",
    "hvp",
    "is_compiling",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "list_backends",
    "list_mode_options",
    "list_options",
    "load_ipython_extension",
    "map",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "memory",
    "nested_compile_region",
    "profile",
    "register_backend",
    "reset",
    "run",
    "scan",
    "set_logs",
    "set_num_threads",
    "set_stance",
    "stop_gradient",
    "substitute_in_graph",
    "unroll",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]  # fmt: skip
