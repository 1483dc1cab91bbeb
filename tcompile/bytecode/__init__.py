"""Rewritten code objects: where a frame can be taken apart and resumed, and the code that does so.

Input: a ``types.CodeType``. Output: an `Analysis` of its resumable points (``analysis``), and a `Rewritten`, the same
code with resume points through which regions take over and give back (``rewritten``). Why: a graph break goes on in the
function's own frame. Imports nothing of tcompile, and knows nothing of arrays. The modules are imported one by one: a
process in which nothing is compiled loads only ``decode``.
"""
