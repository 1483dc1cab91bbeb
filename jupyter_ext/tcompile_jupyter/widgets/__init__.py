"""Widgets: the compiler's state in the page, live, and controls for it.

Input: compiled functions, and the compiler's events. Output: widgets for a notebook. Each is saved as a picture too,
which stays when the notebook is opened without a kernel. Exists apart from the magics so that these need no ipywidgets.

``feed``, beside this package, brings the events in batches; ``shown`` is what all widgets have in common, ``picture``
and ``plot`` are front ends of our own; the widgets are ``controls``, ``live_graph``, ``timeline``, ``speedup`` and, all
together, ``dashboard``.
"""

from tcompile_jupyter.widgets.controls import BackendChooser, ModeChooser, StanceToggle
from tcompile_jupyter.widgets.dashboard import Dashboard, dashboard
from tcompile_jupyter.widgets.live_graph import LiveGraph
from tcompile_jupyter.widgets.speedup import SpeedupPlot
from tcompile_jupyter.widgets.timeline import RecompileTimeline

__all__ = [
    "BackendChooser", "Dashboard", "LiveGraph", "ModeChooser", "RecompileTimeline", "SpeedupPlot", "StanceToggle",
    "dashboard",
]  # fmt: skip
