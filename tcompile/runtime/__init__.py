"""The runtime: calls, the code cache, and what runs around compiled graphs.

Input: functions, settings and a compile function from ``api``.
Output: ``CompiledFunction`` objects.
Why: a call must reach compiled code without the compiler, which is loaded on the first compile.
"""
