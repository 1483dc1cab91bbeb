"""Quoting of the user's names in the text of programs.

Input: names that ``setattr``, keyword arguments and dicts may hold, which are arbitrary texts.
Output: Python code that refers to them.
Why: the parser normalises some of them, refuses some, and runs the rest.
"""

from __future__ import annotations

from keyword import iskeyword
from unicodedata import normalize


def is_plain(name: str) -> bool:
    """Whether a name, written into a program, is parsed as the same name.

    >>> is_plain("rate"), is_plain("lambda"), is_plain("ﬁ")
    (True, False, False)
    """
    return name.isidentifier() and normalize("NFKC", name) == name and not iskeyword(name) and name != "__debug__"


def quoted(name: str) -> str:
    r"""A literal of a name, without ``{}``, which stands for a variable in the code of guards.

    >>> quoted("{}")
    "'\\x7b}'"
    """
    return repr(name).replace("{", r"\x7b")


def attribute_of(owner: str, name: str) -> str:
    """Code that reads an attribute.

    >>> attribute_of("p0", "rate"), attribute_of("p0", "class")
    ('p0.rate', "getattr(p0, 'class')")
    """
    return f"{owner}.{name}" if is_plain(name) else f"getattr({owner}, {quoted(name)})"


__all__ = ["attribute_of", "is_plain", "quoted"]
