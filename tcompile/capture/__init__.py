"""Capture: Python bytecode becomes a graph, guards and a residual program.

Input: a function, a place in it, what its frame holds there, and what earlier compiles saw. Output: ``Captured``,
whose graph is None where the frame runs in plain Python, and where capture stopped before the function returned, a
``GraphBreak`` that says where and why.

``entry.driver`` is the way in. ``entry.root_frame`` is the frame in which a stretch starts and ends. ``interpreter``
walks the bytecode, there and in called functions, over ``values``, and ``semantics`` says what operations on them mean.
Each value knows its ``guards.sources``; checks collect in ``guards.prologue``. ``entry.codegen`` turns the outcome into
one generated function.

Imports lead one way: ``guards < context < values < scalar_loops < semantics < interpreter < loops < entry``. What is
below the interpreter knows the capture in progress by the protocols in ``values.base``. The interpreter knows no loops:
``loops.enter`` registers the handlers of the instructions at which loops begin.

This file imports nothing: until something is compiled, the runtime needs only ``guards.entry_protocol`` and
``guards.dynamic_shapes``.
"""
