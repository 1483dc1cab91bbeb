"""Capture: Python bytecode becomes a graph, guards and a residual program.

Input: a function, a place in it, the values of its frame there, and records of earlier compiles.
Output: ``Captured``, whose graph is None where the frame runs in plain Python. Where capture stopped before the
function returned, also a ``GraphBreak`` with the place and the reason.
Why: a graph of many operations can be optimised and compiled, single operations cannot.

``entry.driver`` is the entry point. ``entry.root_frame`` is the frame in which a stretch starts and ends.
``interpreter`` walks the bytecode, there and in called functions, over ``values``, and ``semantics`` has the operations
on them. Each value has its ``guards.sources``; checks collect in ``guards.prologue``. ``entry.codegen`` turns the
outcome into one generated function.

Imports lead one way: ``guards < context < values < scalar_loops < semantics < interpreter < loops < entry``. Packages
below the interpreter know the capture in progress by the protocols in ``values.base``. The interpreter knows no loops:
``loops.enter`` registers the handlers of the instructions at which loops begin.

This file imports nothing: until something is compiled, the runtime needs only ``guards.entry_protocol`` and
``guards.dynamic_shapes``.
"""
