"""Finding what is wrong: from a result that differs, or a crash, to a few lines that show it.

Input: graphs that go wrong, and functions. Output: verdicts, smaller graphs, scripts that run. Drives the compiler
from above, and is loaded when first used. In the order in which they build on each other: ``judge`` (runs a graph
through a part of the compiler and compares with NumPy), ``isolated`` (the same where it may crash), ``pieces`` (cuts
graphs), ``minify`` (the smallest piece that still goes wrong), ``script`` (graphs as files that run), ``watch``
(TCOMPILE_REPRO_AFTER) and ``diagnose`` (which stage is at fault for a function).
"""
