"""Listings: one kernel's functions, cut out of the text of its module.

Input: LLVM IR or assembly of all kernels of a graph, and the names of functions.
Output: the text of these alone.
Why: a report shows one kernel, without the rest of the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_NOISE = re.compile(r"^\s*\.(p2align|cfi_|type|size|globl|section|text|file|addrsig)")


def ir_of(module: str, functions: Iterable[str]) -> str:
    """The definitions of ``functions`` in the IR ``module``.

    >>> ir_of("declare void @g()\\ndefine void @f() {\\n  ret void\\n}\\n", ["f"])
    'define void @f() {\\n  ret void\\n}'
    """
    found = []
    for name in functions:
        match = re.search(rf"^define [^\n]*@{re.escape(name)}\(.*?^}}", module, re.MULTILINE | re.DOTALL)
        found += [match.group()] if match is not None else []
    return "\n\n".join(found)


def assembly_of(module: str, functions: Iterable[str]) -> str:
    r"""The instructions of ``functions`` in the assembly ``module``, without assembler directives.

    >>> assembly_of("f:\n\tretq\n.Lfunc_end0:\n\t.size f, 1\n", ["f"])
    'f:\n    retq'
    """
    found = []
    for name in functions:
        match = re.search(rf"^{re.escape(name)}:.*?(?=^\.?L?func_end\d+:)", module, re.MULTILINE | re.DOTALL)
        if match is not None:
            lines = (line for line in match.group().splitlines() if line.strip() and not _NOISE.match(line))
            found.append("\n".join(map(_aligned, lines)))
    return "\n\n".join(found)


def _aligned(line: str) -> str:
    """An instruction with its operands in a column; labels are not indented."""
    if not line.startswith("\t"):
        return line.rstrip()
    name, _, operands = line.strip().partition("\t")
    return f"    {name:<12} {operands}".rstrip()


__all__ = ["assembly_of", "ir_of"]
