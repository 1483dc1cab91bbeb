"""The options of ``%%tcompile``: their valid values, help and errors.

Input: the magic's own parser, and the public API.
Output: valid names, the help text, and errors that name the valid values.
Why: help, completion and errors list the same names, which are the API's.
"""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from tcompile import api
from tcompile.backends import list_backends
from tcompile.stance import STANCES

DYNAMIC = {"true": True, "false": False, "auto": None}
_WIDTH = 100


def choices(option: str) -> list[str]:
    """Returns the values of an option of ``%%tcompile``; none for a flag.

    >>> choices("--dynamic")
    ['true', 'false', 'auto']
    """
    named: dict[str, Callable[[], Iterable[str]]] = {
        "--stance": lambda: STANCES,
        "--backend": lambda: list_backends(None),
        "--mode": api.list_mode_options,
        "--dynamic": lambda: DYNAMIC,
    }
    return list(named[option]()) if option in named else []


def options(parser: argparse.ArgumentParser) -> list[str]:
    """Returns the names of a parser's options."""
    return [name for action in parser._actions for name in action.option_strings if name.startswith("--")]


def help_text(parser: argparse.ArgumentParser, about: str) -> str:
    """Lists the options with their values, under ``about``."""
    rows: list[tuple[str, str]] = []
    for action in parser._actions:
        name = action.option_strings[-1]
        valid = choices(name)
        rows.append((f"{name} {(action.dest.upper() if valid else '')}".rstrip(), action.help or ""))
        if valid:
            rows.append(("", ", ".join(valid)))
    wide = max(len(name) for name, _ in rows) + 4
    lines = [about, ""]
    for name, text in rows:
        lines += textwrap.wrap(text, _WIDTH, initial_indent=f"  {name}".ljust(wide), subsequent_indent=" " * wide)
    return "\n".join(lines)


def better_error(parser: argparse.ArgumentParser, message: str) -> str:
    """Returns a parser's error about a wrong line, with the valid values.

    >>> from tcompile_jupyter.magics import TcompileMagics
    >>> better_error(TcompileMagics.cell.parser, "unrecognized arguments: --grph").partition(";")[0]
    "unknown option '--grph'"
    """
    what, _, words = message.partition(": ")
    if what == "unrecognized arguments":
        first = words.split()[0]
        kind = "option" if first.startswith("-") else "argument"
        return unknown(kind, first, options(parser), "%%tcompile --help describes them")
    option = what.removeprefix("argument ")
    if choices(option):
        return f"{option} takes one of: {', '.join(choices(option))}"
    return message


def unknown(what: str, given: str, valid: Iterable[Any], more: str = "") -> str:
    """Returns the text of an error about a name that is not in ``valid``."""
    names = [str(name) for name in valid if name]
    close = difflib.get_close_matches(given, names, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {what} {given!r}; valid are: {', '.join(names)}.{guess}{' ' + more if more else ''}"


__all__ = ["DYNAMIC", "better_error", "choices", "help_text", "options", "unknown"]
