"""Widgets: the compiler's live state in the page, and controls for it.

Input: compiled functions, and the compiler's events.
Output: widgets for a notebook. Each is also saved as a picture, which stays when the notebook is opened without a
kernel.
Why: separate from the magics, which therefore need no ipywidgets.

``feed``, beside this package, delivers events in batches. ``shown`` is the base class of all widgets; ``picture`` and
``plot`` are front ends of this package. The widgets are ``controls``, ``live_graph``, ``timeline``, ``speedup``
and ``gradient_check``; ``dashboard`` shows all of them but the last.
"""

from tcompile_jupyter.widgets.controls import BackendChooser, ModeChooser, StanceToggle
from tcompile_jupyter.widgets.dashboard import Dashboard, dashboard
from tcompile_jupyter.widgets.gradient_check import GradientCheck
from tcompile_jupyter.widgets.live_graph import LiveGraph
from tcompile_jupyter.widgets.speedup import SpeedupPlot
from tcompile_jupyter.widgets.timeline import RecompileTimeline

__all__ = [
    "BackendChooser", "Dashboard", "GradientCheck", "LiveGraph", "ModeChooser", "RecompileTimeline", "SpeedupPlot",
    "StanceToggle", "dashboard",
]  # fmt: skip
