"""Rewritten code objects: points where a frame can be suspended and resumed, and code that does so.

Input: a ``types.CodeType``.
Output: an `Analysis` of its resumable points (``analysis``). And a `Rewritten`: the same code with resume points, where
regions take over and return control (``rewritten``).
Why: after a graph break the function's own frame continues.

The package imports nothing of tcompile and knows nothing of arrays. The modules are imported one by one: a process in
which nothing is compiled loads only ``decode``.
"""
