"""Backends: compilers from graphs to callables.

Input: a graph and the example inputs of one call.
Output: a callable over the graph's inputs.
Why: the rest of tcompile sees one interface, whatever generates the code.

``registry`` has the backends by name, ``schedule`` fuses graphs into kernels, ``llvm`` and ``triton`` generate code for
them.
"""

from tcompile.backends.registry import (
    Backend,
    check_backend,
    find_backend,
    list_backends,
    register_backend,
    registered_backend,
    takes_option,
    why_no_native,
    why_not_on,
)

__all__ = [
    "Backend", "check_backend", "find_backend", "list_backends", "register_backend", "registered_backend",
    "takes_option", "why_no_native", "why_not_on",
]  # fmt: skip
