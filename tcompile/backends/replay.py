"""Replay: how compiled work asks to be done again in plain Python.

Enters: the floating-point status of kernels, or an error of a library call. Leaves: ``Replay``, which dispatch answers by
dropping the results and running the function itself. Exists because captured work is pure: run natively from its start,
it raises, warns and returns exactly what plain Python would.
"""

from __future__ import annotations


class Replay(Exception):
    """The results of this run must be dropped and the function run in plain Python."""
