"""Capture: Python bytecode becomes a graph, guards and a residual program.

Enters: a function, a place in it, what its frame holds there, and what earlier compiles saw. Leaves: ``Captured``,
whose graph is None where the frame runs in plain Python, and where capture stopped before the function returned, a
``GraphBreak`` that says where and why.

``driver`` is the way in; ``root`` is the frame in which a stretch starts and ends, and ``interpreter`` walks the
bytecode, there and in the functions that it calls, over ``values``, each of which knows its place in ``sources``;
checks collect in ``guards``; ``program`` turns the outcome into one generated function. This file imports nothing: the
runtime needs only ``entries`` and ``dynamic`` until something is compiled.
"""
