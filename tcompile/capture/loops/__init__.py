"""Loops: one node for a loop whose iterations are alike, or the reason why it is unrolled or left to Python.

Input: a loop that the interpreter comes to.
Output: a node, unrolled iterations, or a graph break.
Why: each phase of capturing a loop (predict, trace, reconcile, build) has a file of its own. ``enter`` has the handlers
of instructions at which loops begin, and ``trace_loop`` runs the phases in order.
"""
