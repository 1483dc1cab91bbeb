"""The runtime: calls, the code cache, and what runs around compiled graphs.

Input: functions, settings and a compile function from ``api``. Output: ``CompiledFunction`` objects.
"""
