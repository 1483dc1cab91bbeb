"""The exceptions that tcompile raises.

Input: nothing.
Output: exception classes, and spelling suggestions for their texts.
Why: any stage can raise them, so this module imports nothing of tcompile. Errors of the user's code are never wrapped:
plain Python raises them, from the user's own line.
"""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the sentence, after a space, that suggests the known name closest to ``name``; "" if none is close.

    >>> did_you_mean("fulgraph", ["fullgraph", "dynamic"])
    " Did you mean 'fullgraph'?"
    """
    from difflib import get_close_matches  # imported here: only processes with such an error need it

    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class TcompileError(RuntimeError):
    """Base of all of tcompile's own errors."""


class GraphError(TcompileError):
    """A graph is malformed, or an operation does not take these operands."""


class BackendError(TcompileError):
    """A backend failed to compile a graph. The text names the backend; ``__cause__`` is the original error."""


class InvalidArgument(TcompileError, ValueError):
    """An argument of tcompile's API has an invalid value; the text lists the valid ones."""


class InvalidType(TcompileError, TypeError):
    """An argument of tcompile's API has the wrong type; the text names the expected and the actual type."""


class Unsupported(TcompileError):
    """The function cannot be captured whole under ``fullgraph=True``; the text is that of the graph break."""


class DerivativeError(TcompileError, TypeError):
    """A function cannot be differentiated as asked: the text names the argument, or the operation and its line."""


class RecompileError(TcompileError):
    """A recompile was needed under a stance that forbids it; the text names the guards that failed."""


class RecompileLimitError(TcompileError):
    """The function reached ``config.recompile_limit`` under ``fullgraph=True``."""


class StanceError(TcompileError):
    """The stance was changed, or a function that changes it was called, inside a compiled region."""
