"""Backends: a graph becomes a callable.

Input: a graph and the example inputs of one call. Output: a callable over the graph's inputs. ``registry`` knows them
by name; ``schedule`` fuses graphs into kernels, ``llvm`` makes kernels machine code.
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
