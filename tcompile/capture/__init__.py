"""Capture: Python bytecode becomes a graph, guards and a residual program.

Enters: a function, the values of its parameters in one call, and what earlier compiles saw. Leaves: ``Captured``, whose
graph is None where the frame runs in plain Python, or a ``GraphBreak`` that says where and why capture stopped.

``driver`` is the way in; ``interpreter`` walks the bytecode over ``values``, each of which knows its place in
``sources``; checks collect in ``guards``; ``program`` turns the outcome into one generated function. This file imports
nothing: the runtime needs only ``entries`` and ``dynamic`` until something is compiled.
"""
