"""The catalogue of graph breaks.

Input: a reason id with its detail (from ``CannotCapture``), and the place.
Output: the full text: headline, explanation, hints, the user's line.
Why: no stage writes its own error prose, and each reason has a stable id for the documentation.
"""

from __future__ import annotations

from typing import Any

from tcompile.observe.html_form import html_form
from tcompile.observe.source_location import UserLine, format_stack
from tcompile.records import dataclass


@dataclass(frozen=True)
class Reason:
    """One row of the catalogue. ``{detail}`` in the explanation is filled in."""

    id: str
    headline: str
    explanation: str
    hints: tuple[str, ...] = ()
    silent: bool = False  # a step that the frame runs because of another break: it is not reported


_ROWS = [
    Reason(
        "data-dependent-branch", "A branch depends on an array's value",
        "Which way `{detail}` goes is known only when the array has been computed, so one graph cannot hold both ways.",
        ("Where both branches are array expressions, write them with np.where.",
         "tcompile.cond(pred, true_fn, false_fn, operands) captures both branches."),
    ),
    Reason(
        "data-dependent-value", "Python needs the value of an array element",
        "A number that exists only when the graph runs is needed while it is built: {detail}.",
        ("Keep the value in an array (0-d is fine) until the end of the function.",),
    ),
    Reason(
        "data-dependent-shape", "A result's shape depends on an array's values",
        "How large the result is, is known only when the graph runs: {detail}.",
        ("Elements under a mask are captured where they are reduced, or go back to places under the same mask, and so "
         "are the places that np.nonzero(mask) finds.",
         "np.where(mask, value, other) keeps the shape."),
    ),
    Reason(
        "array-conversion", "An array and Python objects are turned into each other",
        "In the middle of the function, {detail}.",
        ("Stay in arrays: np.stack joins arrays, array.max() is the max() of its elements.",
         "Return the array, and convert it outside the compiled function."),
    ),
    Reason(
        "writes-to-array", "A write that other arrays may see",
        "{detail} may change what another array of the graph shows.",
        ("Write through the array itself, a[1:-1] = …, rather than through a view that was made outside the function.",
         "Pass arrays that share no memory: a copy of what is only read."),
    ),
    Reason(
        "overlapping-views", "Views of one array are read and written at once",
        "{detail} What comes of it depends on the order in which NumPy reads and writes.",
        ("Copy what is read first: x[::2] = x[:4].copy().",),
    ),
    Reason(
        "side-effect", "Something outside the function is changed",
        "{detail} must happen at its place in the program.",
        ("Return the new value, and store it outside the compiled function.",),
    ),
    Reason(
        "input-output", "Input or output in the middle of the function",
        "{detail} must happen at its place in the program.",
        ("Move it before or after the array work, or out of the compiled function.",),
    ),
    Reason(
        "random-numbers", "Random numbers are drawn",
        "{detail} belongs to a random generator. Outside of loops, its own library draws few numbers as fast.",
        ("Draw the numbers outside, and pass them in.",
         "A Generator's arrays of 1000 numbers and more (10,000 of random) are no break; docs/loops.md says which.",
         "In a loop, draws from the usual distributions with numbers as parameters are part of it (docs/loops.md)."),
    ),
    Reason(
        "unknown-function", "A function that cannot be looked into is called",
        "{detail} is not Python code that capture can follow, and it has no meaning in a graph.",
        ("Call it before or after the array work, and pass its result in.",
         "If what it returns depends on its arguments alone, tcompile.allow_in_graph makes it part of the graph."),
    ),
    Reason(
        "unsupported-argument", "A NumPy function is called with arguments that are not captured",
        "The function itself is known, but not this way of calling it: {detail}.",
        ("Say the same with the function's usual arguments, or with other functions.",),
    ),
    Reason(
        "unsupported-dtype", "A dtype that is not compiled",
        "Compiled code has no form for {detail}.",
        ("Convert to a bool, integer or floating-point dtype first, where the values allow it.",),
    ),
    Reason(
        "unsupported-object", "An object that is not captured is used",
        "{detail} What that gives, only the object's own code knows.",
        ("Pass arrays, numbers and plain containers to the compiled function.",),
    ),
    Reason(
        "unsupported-operands", "An operator is used on objects that are not captured",
        "What {detail} gives, only the objects' own code knows.",
        ("Compute it outside the compiled function, and pass the result in.",),
    ),
    Reason(
        "unsupported-instruction", "A Python construct that is not captured",
        "Capture does not follow this: {detail}.",
        ("Move the construct out of the function that does the array work.",),
    ),
    Reason(
        "with-statement", "A with statement whose context manager is not followed",
        "What {detail} does on the way in and out is not code that capture can follow.",
        ("Put the array work into a function of its own, and call it inside the with block.",),
    ),
    Reason(
        "raises", "An exception is raised",
        "The program comes to {detail}. Errors and their tracebacks are plain Python's own.",
        ("Decide with `if` what is expected to happen, and raise only for what is not.",),
    ),
    Reason(
        "operation-raises", "An operation would raise an error or a warning",
        "Plain Python gives the error, so that its text and traceback are Python's own: {detail}.",
        ("Ask for shapes, keys and types with `if` before the operation.",),
    ),
    Reason(
        "advanced-indexing", "Indexing with booleans beside other indices",
        "Elements are picked by {detail}.",
        ("Ints and slices beside a mask are captured: x[mask, 0] in place of x[mask, [[0]]].",),
    ),
    Reason(
        "undefined-contents", "An array with undefined contents",
        "{detail} holds other values in each run.",
        ("Compute the result as a new array, or start from np.zeros or np.full.",),
    ),
    Reason(
        "memory-order", "The memory order of an array is needed",
        "Strides are settled when the compiled code runs, and capture cannot say now what plain NumPy would give: "
        "{detail}.",
        ("np.ascontiguousarray(x) before it fixes the order.",),
    ),
    Reason(
        "generator", "A generator or coroutine",
        "{detail} runs in pieces, with its caller's code in between.",
        ("Return a list, or put the array work of one step into a function of its own.",),
    ),
    Reason(
        "recursion", "Calls nest too deeply to be followed",
        "{detail} Capture goes no deeper.",
        ("Write the recursion as a loop.",),
    ),
    Reason(
        "too-long", "Too many instructions to follow",
        "{detail} Loops over Python values are unrolled, up to config.max_unrolled operations a loop (500 loads and"
        " guards where no array takes part) and config.max_instructions in all.",
        ("Nothing needs to be done where the loop's body is long: it is compiled, and the loop is Python's.",
         "Express the loop with whole-array operations."),
    ),
    Reason(
        "disabled-function", "A function that is excluded from compilation is called",
        "{detail}",
        ("Call it before or after the array work, or take tcompile.disable away.",),
    ),
    Reason(
        "compiled-by-itself", "A compiled function is called",
        "{detail} has graphs of its own.",
        ("Nothing needs to be done: its calls are compiled all the same.",), silent=True,
    ),
    Reason(
        "graph-break-call", "tcompile.graph_break() is called",
        "{detail}",
        ("Take the call away, and capture goes on.",),
    ),
    Reason(
        "object-identity", "An identity test on a computed value",
        "Whether {detail} holds depends on which objects Python makes, and a graph makes others.",
        ("Compare with == instead.",
         "An array that a loop may carry unchanged is written to after it: copy it before the loop."),
    ),
    Reason(
        "cond-mismatch", "tcompile.cond's branches do not fit together",
        "{detail}",
        ("Both branches must return new arrays of the same shapes and dtypes: write y.copy() for an operand y.",),
    ),
    Reason(
        "not-differentiable", "A function cannot be differentiated",
        "{detail}",
        ("tcompile.stop_gradient(x) keeps what needs no derivative out of it.",),
    ),
    Reason(
        "loop-mismatch", "A function given to a control-flow operator or to vmap does not fit",
        "{detail}",
        (
            "For an operator it must return arrays of the structure, shapes and dtypes that it is given.",
            "It must change nothing outside itself: tcompile.vmap then calls it for one example after the other.",
        ),
    ),
    Reason(
        "frame-step", "A step of the running frame",
        "The step at `{detail}` belongs to a loop or block that runs in the frame itself.", (), silent=True,
    ),
    Reason(
        "mixed-libraries", "Arrays and tensors meet in one stretch",
        "A graph is of NumPy's arrays or of PyTorch's tensors: {detail}.",
        ("Nothing is lost but the passage from one graph to the next: no data is copied.",),
    ),
    Reason(
        "training-step", "A step of training runs between graphs",
        "{detail} reads and writes what belongs to many tensors, so PyTorch calls it between graphs.",
        ("Nothing needs to change: backward passes and optimizers' updates are compiled by themselves.",),
    ),
    Reason(
        "numpy-untraced", "NumPy is not captured",
        "{detail} The code runs in plain Python.",
        ("Set config.trace_numpy to True, as it is at first.",), silent=True,
    ),
    Reason(
        "plain-frame", "A step of a function whose own frame runs in plain Python",
        "`{detail}` belongs to a function under tcompile.disable(recursive=False).", (), silent=True,
    ),
    Reason("stress-break", "A break that config.stress_breaks asks for", "{detail}", (), silent=True),
    Reason(
        "internal-error", "Capture failed inside tcompile",
        "{detail} This is a bug of tcompile's; the code runs in plain Python.",
        ("Please report it, with the function and this text.",),
    ),
]  # fmt: skip
CATALOGUE: dict[str, Reason] = {row.id: row for row in _ROWS}


class GraphBreak(Exception):
    """Capture of a frame stopped. Holds the catalogue row, its detail and the user's lines, outermost first.

    ``is_error``: the program makes breaks errors there (``error_on_graph_break``).
    """

    def __init__(self, reason: str, detail: str, stack: tuple[UserLine, ...], is_error: bool = False) -> None:
        row = CATALOGUE[reason]
        super().__init__(row.headline)
        self.reason = row
        self.detail = detail
        self.stack = stack
        self.is_error = is_error

    def same_place(self, other: GraphBreak) -> bool:
        """Whether this is another report of one break."""
        return self.reason is other.reason and self.where == other.where

    @property
    def where(self) -> UserLine:
        """The innermost user line."""
        return self.stack[-1] if self.stack else UserLine()

    @property
    def explanation(self) -> str:
        """The row's explanation with the detail filled in, as sentences."""
        template = self.reason.explanation
        text = template.replace("{detail}", self.detail.removesuffix(".") if "{detail}." in template else self.detail)
        # A name (`np.unique`) and user code are kept as they are.
        return text if template == "{detail}" or not text.partition(" ")[0].isalpha() else text[0].upper() + text[1:]

    def view(self, function: str = "") -> Any:
        """The data of its display: a ``tcompile.observe.display.places.GraphBreakView``."""
        from tcompile.observe.display.places import GraphBreakView

        return GraphBreakView(
            function=function, reason=self.reason.id, headline=self.reason.headline, explanation=self.explanation,
            hints=self.reason.hints, stack=self.stack,
        )  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        made: dict[str, Any] = self.view().bundle()
        return made

    _repr_html_ = html_form

    def full_text(self) -> str:
        """Returns the text of the error under ``fullgraph=True``: headline, explanation, hints, the user's lines."""
        lines = [f"{self.reason.headline} [{self.reason.id}]", f"  Why: {self.explanation}"]
        lines += [f"  Hint: {hint}" for hint in self.reason.hints]
        lines += ["", format_stack(self.stack), ""]
        lines.append("Without fullgraph=True this runs in plain Python, and capture goes on right after it;")
        lines.append("tcompile.set_logs(graph_breaks=True) then shows every graph break.")
        return "\n".join(lines)
