"""Functions of tcompile itself that mean something inside a captured function: one file a theme.

Enters: calls of them. Leaves: ``SPECIAL``, what each call means to capture, and the marks by which a user's function is
excluded. What these functions do in plain Python is in ``intrinsics`` and ``control_flow`` of the package above.
"""

from tcompile.capture.special import control_flow, functions
from tcompile.capture.special.functions import is_marked, refuse_marked
from tcompile.capture.special.registry import SPECIAL

__all__ = ["SPECIAL", "control_flow", "functions", "is_marked", "refuse_marked"]
