"""The runtime: calls, the code cache, and what runs around compiled graphs.

Enters: functions, settings and a compile function from ``api``. Leaves: ``CompiledFunction`` objects.
"""
