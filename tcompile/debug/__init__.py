"""Debugging of the compiler: from a result that differs, or a crash, to a few lines that reproduce it.

Input: failing graphs, and functions.
Output: verdicts, smaller graphs, scripts that run.
Why: a compiler bug is reported as a small script; this package drives the compiler from above, and is loaded at first
use.

In order of dependence: ``judge`` (runs a graph through a part of the compiler and compares with NumPy), ``isolated``
(the same where it may crash), ``pieces`` (cuts graphs), ``minify`` (the smallest piece that still fails), ``script``
(graphs as files that run), ``watch`` (TCOMPILE_REPRO_AFTER) and ``diagnose`` (the faulty stage for a function).
"""
