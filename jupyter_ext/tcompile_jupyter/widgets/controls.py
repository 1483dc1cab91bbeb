"""Widgets that set what compiled functions do: the stance, the backend, the mode.

Input: clicks, and events of stance changes.
Output: calls of ``set_stance``.
Why: the process's stance can be seen and changed beside the code; all copies show the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ipywidgets
import traitlets

from tcompile import api
from tcompile.backends import list_backends
from tcompile.observe.events import Event, StanceChanged
from tcompile.stance import STANCES, Stance, current, set_stance
from tcompile_jupyter.feed import feed
from tcompile_jupyter.widgets.shown import Shown, text

OWN = "each function's own"
"""The entry of the backend chooser if no backend is forced."""


def process_stance() -> Stance:
    """Returns the stance of the process, whatever block this thread is in."""
    found: list[Stance] = []
    asker = threading.Thread(target=lambda: found.append(current()))  # a new thread is in no block
    asker.start()
    asker.join()
    return found[0]


class _Follower(Shown):
    """A control that shows a part of the process's stance, and changes it on a click.

    ``chooser`` is the widget with the value; ``read`` maps a stance to its value, ``write`` sets the value.
    """

    def __init__(
        self, chooser: Any, read: Callable[[Stance], str], write: Callable[[str], None], *more: Any, **settings: Any
    ) -> None:
        super().__init__((chooser, *more), **settings)
        self.chooser = chooser
        self._read = read
        self._write = write
        self.ends = (feed.open(self._follow),)
        self.take(process_stance())
        chooser.observe(self._clicked, "value")

    def take(self, stance: Stance) -> None:
        """Shows ``stance``."""
        self.stance = stance
        self.chooser.value = self._read(stance)
        self.redraw()

    def _follow(self, batch: tuple[Event, ...]) -> None:
        if any(isinstance(event, StanceChanged) for event in batch):
            self.take(process_stance())

    def _clicked(self, change: Any) -> None:
        if change["new"] != self._read(process_stance()):
            self._write(change["new"])
            self.take(process_stance())

    def title(self) -> str:
        """The stance."""
        return f"stance {self.stance}"


class StanceToggle(_Follower):
    """The six stances as buttons. A click is ``tcompile.set_stance(name)``, for the whole process.

    It follows stances set elsewhere, by code or by another copy. A ``with`` block, which holds in one thread for a
    while, is not shown. The trait ``value`` is the stance's name.
    """

    value = traitlets.Unicode("default")

    def __init__(self) -> None:
        buttons = ipywidgets.ToggleButtons(
            options=list(STANCES), tooltips=list(STANCES.values()), style={"button_width": "auto"},
        )  # fmt: skip
        self._meaning = ipywidgets.HTML()
        super().__init__(buttons, lambda stance: stance.name, _set, self._meaning)
        self.observe(lambda change: setattr(buttons, "value", change["new"]), "value")

    def take(self, stance: Stance) -> None:
        """Shows ``stance``."""
        self._meaning.value = f'<span style="opacity:.7">{text(_meaning(stance))}</span>'
        super().take(stance)
        self.value = stance.name

    def picture(self) -> str:
        """Returns the stance, and its meaning."""
        return f"<div>stance <b>{text(str(self.stance))}</b>: {text(_meaning(self.stance))}</div>"


class BackendChooser(_Follower):
    """The backend for all compiles: ``tcompile.set_stance(force_backend=name)``, for the process.

    "each function's own" removes it. A forced backend requires the stance ``default``, so choosing one returns to
    ``default``. The trait ``value`` is a backend's name, or None.
    """

    value = traitlets.Unicode(None, allow_none=True)

    def __init__(self) -> None:
        names = [OWN, *(name for name in list_backends(None) if name != "auto")]
        chooser = ipywidgets.Dropdown(options=names, description="backend", layout={"width": "270px"})
        super().__init__(chooser, self._shown, self._force)
        self.observe(lambda change: setattr(chooser, "value", change["new"] or OWN), "value")

    def take(self, stance: Stance) -> None:
        """Shows the backend that ``stance`` forces."""
        super().take(stance)
        self.value = None if self.chooser.value == OWN else self.chooser.value

    def title(self) -> str:
        """The backend."""
        return f"backend {self.chooser.value}"

    def _shown(self, stance: Stance) -> str:
        forced = stance.force_backend
        if forced is None:
            return OWN
        name = forced if isinstance(forced, str) else getattr(forced, "__name__", "custom")
        if name not in self.chooser.options:  # the user's own
            self.chooser.options = (*self.chooser.options, name)
        return name

    def _force(self, name: str) -> None:
        if name == OWN:
            set_stance("default")
        elif name in list_backends(None):
            set_stance(force_backend=name)
        else:  # a callable without a registered name cannot be restored by name
            self.take(process_stance())


class ModeChooser(Shown):
    """A mode for ``tcompile.compile(f, mode=chooser.value)``, and the options that it sets."""

    value = traitlets.Unicode("default")

    def __init__(self) -> None:
        chooser = ipywidgets.Dropdown(
            options=list(api.list_mode_options()), description="mode", layout={"width": "270px"}
        )
        self._sets = ipywidgets.HTML()
        super().__init__((chooser, self._sets))
        self.chooser = chooser
        traitlets.link((chooser, "value"), (self, "value"))
        self.observe(self._describe, "value")
        self._describe()

    def title(self) -> str:
        """The mode."""
        return f"mode {self.value}: {self._options()}"

    def _options(self) -> str:
        options = api.list_mode_options(self.value)
        return ", ".join(f"{name}={value!r}" for name, value in options.items()) or "no options set"

    def _describe(self, *_: Any) -> None:
        self._sets.value = f'<span style="opacity:.7">{text(self._options())}</span>'
        self.redraw()


def _set(name: str) -> None:
    set_stance(name)


def _meaning(stance: Stance) -> str:
    meaning = STANCES[stance.name]
    if stance.force_backend is not None:
        return f"{meaning} (now {stance})"
    return meaning.partition(";")[0] if stance.name == "default" else meaning


__all__ = ["OWN", "BackendChooser", "ModeChooser", "StanceToggle", "process_stance"]
