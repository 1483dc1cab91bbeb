"""Every error that tcompile raises on its own account.

Errors of the user's code are never wrapped: they are raised by plain Python, from the user's own line. Imports
nothing of ours, so that any stage can raise.
"""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The sentence, after a space, that offers the name most like ``name``; empty where none is like it.

    >>> did_you_mean("fulgraph", ["fullgraph", "dynamic"])
    " Did you mean 'fullgraph'?"
    """
    from difflib import get_close_matches  # here, since a process without such an error should not wait for it

    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class TcompileError(RuntimeError):
    """Base of all of tcompile's own errors."""


class GraphError(TcompileError):
    """A graph is malformed, or an operation does not take these operands."""


class BackendError(TcompileError):
    """A backend failed to compile a graph. Names the backend; ``__cause__`` is its own error."""


class InvalidArgument(TcompileError, ValueError):
    """An argument of tcompile's API is not one of the valid ones; the text lists them."""


class InvalidType(TcompileError, TypeError):
    """An argument of tcompile's API has the wrong type; the text says what was expected and what came."""


class Unsupported(TcompileError):
    """``fullgraph=True``, and the function cannot be captured whole: the graph break's full text."""


class RecompileError(TcompileError):
    """A compile was needed under a stance that forbids it; the text names the guards that failed."""


class RecompileLimitError(TcompileError):
    """``fullgraph=True``, and the function reached ``config.recompile_limit``."""


class StanceError(TcompileError):
    """The stance was changed, or a stance-changing function called, inside a compiled region."""
