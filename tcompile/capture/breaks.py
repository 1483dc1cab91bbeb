"""The catalogue of graph breaks: every reason for which something cannot be captured.

Enters: a reason id with its detail (from ``CannotCapture``), and where it happened. Leaves: the full text: headline,
explanation, hints, the user's line. Exists so that no stage writes its own error prose, and so that each reason has a
stable id that documentation can speak of.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcompile.observe.events import UserLine
from tcompile.observe.userline import format_stack


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the catalogue. ``{detail}`` in the explanation is filled in."""

    id: str
    headline: str
    explanation: str
    hints: tuple[str, ...] = ()


_ROWS = [
    Reason(
        "data-dependent-branch", "A branch depends on an array's value",
        "Which way `{detail}` goes is known only when the array has been computed, so one graph cannot hold both ways.",
        ("Where both branches are array expressions, write them with np.where.",
         "tcompile.cond(pred, true_fn, false_fn, operands) captures both branches."),
    ),
    Reason(
        "data-dependent-value", "Python needs the value of an array element",
        "{detail} needs a number that exists only when the graph runs.",
        ("Keep the value in an array (0-d is fine) until the end of the function.",),
    ),
    Reason(
        "data-dependent-shape", "A result's shape depends on an array's values",
        "{detail} gives an array whose size is known only when the graph runs.",
        ("np.where(mask, value, other) keeps the shape.",),
    ),
    Reason(
        "array-conversion", "An array is turned into a Python value",
        "{detail} leaves the array world in the middle of the function.",
        ("Return the array and convert it outside the compiled function.",),
    ),
    Reason(
        "writes-to-array", "An array is written in place",
        "{detail} changes memory that other names may see.",
        ("Build a new array instead: y = x + 1, np.where, np.concatenate.",),
    ),
    Reason(
        "side-effect", "Something outside the function is changed",
        "{detail} must happen at its place in the program.",
        ("Return the new value and store it outside the compiled function.",),
    ),
    Reason(
        "input-output", "Input or output in the middle of the function",
        "{detail} must happen at its place in the program.",
        ("Move it before or after the array work, or out of the compiled function.",),
    ),
    Reason(
        "random-numbers", "Random numbers are drawn",
        "{detail} advances NumPy's generator, which only NumPy itself does in the right order.",
        ("Draw the numbers outside and pass them in.",),
    ),
    Reason(
        "unknown-function", "A function that cannot be looked into is called",
        "{detail} is not Python code that capture can follow, and its meaning in a graph is not known.",
        ("Call it before or after the array work.",),
    ),
    Reason(
        "unsupported-argument", "A NumPy function is called with arguments that are not captured",
        "{detail}", (),
    ),
    Reason("unsupported-dtype", "A dtype that is not compiled", "{detail}", ()),
    Reason(
        "unsupported-object", "An object that is not captured is used",
        "{detail}", ("Pass arrays, numbers and plain containers to the compiled function.",),
    ),
    Reason("unsupported-operands", "An operator is used on objects that are not captured", "{detail}", ()),
    Reason(
        "unsupported-instruction", "A Python construct that is not captured yet",
        "The bytecode instruction {detail} is not followed by this version.", (),
    ),
    Reason(
        "with-statement", "A with statement", "{detail}: context managers are not followed by this version.",
        ("Put the array work into a function of its own, and call it inside the with block.",),
    ),
    Reason("raises", "An exception is raised", "{detail}", ("Check arguments before calling the compiled function.",)),
    Reason(
        "operation-raises", "An operation would raise an error", "Plain Python will raise it: {detail}", (),
    ),
    Reason("advanced-indexing", "Indexing with arrays or lists", "{detail}", ("np.where keeps the shape.",)),
    Reason("undefined-contents", "An array with undefined contents", "{detail}", ("Use np.zeros or np.full.",)),
    Reason("memory-order", "A result whose memory order is known only at run time", "{detail}",
           ("np.ascontiguousarray(x) before it fixes the order.",)),
    Reason("generator", "A generator or coroutine", "{detail} is not followed by this version.", ()),
    Reason("recursion", "Calls nest too deeply to be followed", "{detail}", ()),
    Reason(
        "too-long", "Too many instructions to follow",
        "{detail} Loops over Python values are unrolled by this version, up to config.max_instructions.",
        ("Express the loop with whole-array operations.",),
    ),
    Reason("disabled-function", "A function is excluded from compilation", "{detail}", ()),
    Reason("compiled-by-itself", "A compiled function is called", "{detail} has graphs of its own.", ()),
    Reason("graph-break-call", "tcompile.graph_break() is called", "{detail}", ()),
    Reason("no-code", "The function has no Python bytecode", "{detail}", ()),
    Reason("object-identity", "An identity test on a computed value", "{detail}", ("Compare with == instead.",)),
    Reason("cond-mismatch", "tcompile.cond's branches do not fit together", "{detail}",
           ("Both branches must return arrays of the same shapes and dtypes, and neither may return an operand "
            "itself.",)),
    Reason(
        "internal-error", "Capture failed inside tcompile",
        "{detail} This is a bug of tcompile's; please report it.", (),
    ),
]  # fmt: skip
CATALOGUE: dict[str, Reason] = {row.id: row for row in _ROWS}


class GraphBreak(Exception):
    """Capture of a frame stopped. Carries the catalogue row, its detail and the user's lines, outermost first."""

    def __init__(self, reason: str, detail: str, stack: tuple[UserLine, ...]) -> None:
        row = CATALOGUE[reason]
        super().__init__(row.headline)
        self.reason = row
        self.detail = detail
        self.stack = stack

    @property
    def where(self) -> UserLine:
        """The innermost user line."""
        return self.stack[-1] if self.stack else UserLine()

    @property
    def explanation(self) -> str:
        """The row's explanation with the detail filled in."""
        return self.reason.explanation.replace("{detail}", self.detail)

    def full_text(self) -> str:
        """What ``fullgraph=True`` raises: headline, explanation, hints, the user's lines."""
        lines = [f"{self.reason.headline} [{self.reason.id}]", f"  Why: {self.explanation}"]
        lines += [f"  Hint: {hint}" for hint in self.reason.hints]
        lines += ["", format_stack(self.stack), ""]
        lines.append("tcompile.set_logs(graph_breaks=True) shows every graph break; without fullgraph=True")
        lines.append("the function runs in plain Python instead of raising.")
        return "\n".join(lines)
