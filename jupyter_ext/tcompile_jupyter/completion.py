"""Completes the options of ``%%tcompile`` and ``%tcompile``, and their values.

Input: the line up to the cursor.
Output: candidates: options, commands, stances, backends, modes, sizes.
Why: a magic's line is not Python, so IPython cannot complete it. The names come from the magic's parser and the public
API.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tcompile.stance import STANCES
from tcompile_jupyter.magics import COMMANDS, WATCH, TcompileMagics
from tcompile_jupyter.options import choices, options

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_LINE = re.compile(r"\s*(%{1,2})tcompile\s(.*)$")


def candidates(line: str) -> list[str]:
    """Returns the candidates at the end of ``line``, the magic with the text typed so far.

    >>> candidates("%%tcompile --dyn"), candidates("%%tcompile --stance fail")
    (['--dynamic'], ['fail_on_recompile'])
    """
    found = _LINE.match(line)
    if found is None:
        return []
    *before, typed = re.split(r"[\s=]+", found[2])
    if found[1] == "%%":
        used = set(before)
        valid = choices(before[-1]) if before else []
        valid = valid or [name for name in options(TcompileMagics.cell.parser) if name not in used]
    elif not before:
        valid = [*COMMANDS, "--help"]
    elif len(before) == 1:
        valid = {"stance": list(STANCES), "watch": [word for word in WATCH if word]}.get(before[0], [])
    else:
        valid = []
    return [name for name in valid if name.startswith(typed)]


def complete(shell: InteractiveShell) -> Callable[[], None]:
    """Completes the magics in ``shell``. Returns a function that undoes it."""

    @context_matcher()  # type: ignore[untyped-decorator]
    def tcompile_matcher(context: CompletionContext) -> SimpleMatcherResult:
        first = not any(text.strip() for text in context.full_text.split("\n")[: context.cursor_line])
        line = context.text_until_cursor
        names = candidates(line) if first or not line.lstrip().startswith("%%") else []
        found: Any = {"completions": [SimpleCompletion(text=name, type="param") for name in names]}
        if names:
            found["suppress"] = True  # suppresses Python completions
        return found

    matchers = shell.Completer.custom_matchers
    matchers.append(tcompile_matcher)
    return lambda: matchers.remove(tcompile_matcher) if tcompile_matcher in matchers else None


__all__ = ["candidates", "complete"]
