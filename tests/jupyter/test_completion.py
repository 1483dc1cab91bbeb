"""The options of the magics, and what they take, complete."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter
from tcompile_jupyter.completion import candidates
from tcompile_jupyter.magics import TcompileMagics
from tcompile_jupyter.options import choices, options

import tcompile
from tcompile.stance import STANCES


def completed(notebook, text):
    with provisionalcompleter():
        return [found.text for found in notebook.shell.Completer.completions(text, len(text))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%%tcompile --st", ["--stance"]),
        ("%%tcompile --stance fail", ["fail_on_recompile"]),
        ("%%tcompile --stance=fail", ["fail_on_recompile"]),
        ("%%tcompile --quiet --dynamic t", ["true"]),
        ("%tcompile w", ["watch"]),
        ("%tcompile watch o", ["on", "off"]),
        ("%tcompile stance force", ["force_eager"]),
        ("%tcompile explain f(", []),
        ("%%timeit --st", []),
        ("tcompile --st", []),
    ],
)
def test_candidates(line, expected):
    assert candidates(line) == expected


def test_the_names_are_those_of_the_api():
    assert choices("--stance") == list(STANCES)
    assert {"auto", "llvm", "eager", "aot_eager"} <= set(choices("--backend"))
    assert choices("--mode") == list(tcompile.list_mode_options())
    assert {"--each", "--explain", "--profile", "--help"} < set(options(TcompileMagics.cell.parser))
    assert "--quiet" not in candidates("%%tcompile --quiet --")  # once is enough


def test_the_shell_offers_them(notebook):
    notebook.shell.Completer.use_jedi = False
    assert completed(notebook, "%%tcompile --compa") == ["--compare"]
    assert completed(notebook, "%tcompile res") == ["reset"]
    notebook("%unload_ext tcompile")
    assert "--compare" not in completed(notebook, "%%tcompile --compa")
    notebook("%load_ext tcompile")
