"""Places other than local variables that a loop's iterations bind anew: attributes, items, closure variables, globals.

Input: the contents of captured objects before an iteration and after it.
Output: an ``AttributeSlot`` for each place whose contents differ. ``carried`` carries it like a local variable, under a
name of its own.
Why: ``state.t += dt`` is a binding like any other, except for its place.

Stores to objects are known only when an iteration has been traced. The next attempt finds the objects again. Objects
from outside are found by their source, others by a path from the frames.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tcompile.capture.guards.sources import ConstantSource, GlobalSource
from tcompile.capture.semantics.subgraph import NOT_STATE
from tcompile.capture.values.base import Effect, Value, settled
from tcompile.capture.values.callable import ClosureCell
from tcompile.capture.values.container import SequenceValue, same_object
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue
from tcompile.capture.values.sets import SetValue
from tcompile.frontends.base import CannotCapture
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.capture.interpreter.context import Capture
    from tcompile.capture.interpreter.frame import Frame

_Way = tuple[tuple[str, Any], ...] | None


@dataclass(frozen=True)
class AttributeSlot:
    """One place: an object, found at a source or by a path from the frames, and a key in it.

    ``part`` names the attribute of the captured value that has the contents. ``key`` is the attribute's name, the
    item's key, or None where the part itself is the place.
    """

    part: str
    key: Any
    source: Any = None
    way: _Way = None
    objects: tuple[Any, ...] = field(default=(), compare=False)  # the objects at the source


@dataclass
class _Seen:
    """An object that can be changed: its slots' contents, its name, and a path to it where there is one.

    ``waiting`` counts the stores under keys that have not been read.
    """

    holder: Any
    held: dict[Any, Value]
    way: _Way = None
    text: str = ""
    waiting: int = 0


class Slots:
    """The slots that one loop is known to bind anew, and the slots that its iterations were seen to bind."""

    def __init__(self, f: Frame, known: dict[str, AttributeSlot]) -> None:
        self.f, self.tx = f, f.tx
        self.known: dict[str, tuple[Any, AttributeSlot]] = {}
        for name, slot in known.items():
            holder = self._find(slot)
            if holder is not None:
                self.known[name] = holder, slot
        self._before: dict[int, _Seen] = {}
        self._mutated: dict[int, Value] = {}
        self._noted: dict[str, tuple[Any, AttributeSlot, Value | None]] = {}

    # -- contents ------------------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Makes each slot a plain store, and notes the contents of all objects."""
        tx = self.tx
        for holder, slot in self.known.values():
            if isinstance(holder, Effect):
                tx.store_global(holder.namespace, holder.name, self._value(holder, slot))
            else:
                value = self._value(holder, slot)
                tx.mutate(holder)
                _put(holder, slot, value)
        self.known = {name: (self._find(slot), slot) for name, (_, slot) in self.known.items()}
        self._before = {_identity(seen.holder): seen for seen in _reachable(tx)}
        self._mutated = dict(tx.mutated)
        self.show()

    def show(self) -> None:
        """Shows the contents of slots as local variables of the frame."""
        self.f.locals.update(self.values())

    def hide(self) -> None:
        """Removes these local variables."""
        for name in self.known:
            self.f.locals.pop(name, None)

    def store(self) -> None:
        """Stores these local variables to their slots, and removes them."""
        self.put({name: self.f.locals[name] for name in self.known})
        self.hide()

    def values(self) -> dict[str, Value]:
        """The contents of the slots."""
        return {name: self._value(self._now(holder), slot) for name, (holder, slot) in self.known.items()}

    def put(self, values: dict[str, Value]) -> None:
        """Stores values to the slots."""
        self.tx.touch()
        for name, value in values.items():
            holder, slot = self.known[name]
            _put(self._now(holder), slot, value)

    def is_but_for_slots(self, holder: int, before: dict[str, Any], after: dict[str, Any]) -> bool:
        """Whether an object's state differs in its slots only."""
        slots = [slot for held, slot in self.known.values() if id(held) == holder]
        if not slots or before.keys() != after.keys():
            return False
        for part in before:
            keys = [slot.key for slot in slots if slot.part == part]
            if before[part] != after[part] and None not in keys:
                old, new = _entries(before[part]), _entries(after[part])
                if [e for e in old if e[0] not in keys] != [e for e in new if e[0] not in keys]:
                    return False
        return True

    def _now(self, holder: Any) -> Any:
        """The current holder: a store to a global makes another effect."""
        return self.tx.effects[_identity(holder)] if isinstance(holder, Effect) else holder

    def _value(self, holder: Any, slot: AttributeSlot) -> Value:
        value = _get(self.tx, holder, slot.part, slot.key)
        assert value is not None
        return value

    # -- bindings of an iteration --------------------------------------------------------------------------------------
    def note(self) -> None:
        """Notes slots that were not known and have been stored to since ``begin``.

        Raises CannotCapture where objects have changed in any other way.
        """
        tx = self.tx
        known = {slot for _, slot in self.known.values()} | {slot for _, slot, _ in self._noted.values()}
        changed = [value for key, value in tx.mutated.items() if key not in self._mutated]
        for value in changed:
            if isinstance(value, SetValue):
                raise CannotCapture("loop-mismatch", f"an iteration changes {value.describe()}")
        inside = [seen.holder for seen in self._before.values() if not isinstance(seen.holder, Effect)]
        outside = [value for value in changed if isinstance(value, _HOLDERS) and id(value) not in self._before]
        for holder in [*inside, *outside, *tx.effects.values()]:
            for name, slot, before in self._differences(holder):
                if slot not in known:
                    known.add(slot)
                    while name in self.known or name in self._noted:
                        name = f"{name} (another)"
                    self._noted[name] = holder, slot, before

    def changed(self) -> dict[str, tuple[AttributeSlot, Value | None, Value]]:
        """Slots that were not known and have been stored to since ``begin``, with their contents then and now.

        The contents may be equal again, where a test has ended a part of the iteration between. They are None where the
        slot was empty. Raises CannotCapture where objects have changed in any other way.
        """
        self.note()
        found: dict[str, tuple[AttributeSlot, Value | None, Value]] = {}
        for name, (holder, slot, before) in self._noted.items():
            now = _get(self.tx, self._now(holder), slot.part, slot.key)
            if now is None:
                raise CannotCapture("loop-mismatch", f"`{name}` has a value in a part of an iteration only")
            found[name] = slot, before, now
        return found

    def _differences(self, holder: Any) -> Iterator[tuple[str, AttributeSlot, Value | None]]:
        seen = self._before.get(_identity(holder)) or _Seen(holder, _pristine(holder))
        if isinstance(holder, DictValue) and holder.waiting > seen.waiting:
            holder.read()  # the iteration has stored to more keys
        tx, part, held = self.tx, _part(holder), _held(holder)
        other = CannotCapture("loop-mismatch", f"an iteration deletes contents of {_text(seen)}")
        is_list = isinstance(holder, SequenceValue)
        if is_list and len(held) != len(seen.held):
            raise CannotCapture("loop-mismatch", f"an iteration changes the length of {_text(seen)}")
        if any(key not in held for key in seen.held):
            raise other
        for key, now in held.items():
            before = seen.held.get(key)
            if before is not None and same_object(before, now):
                continue
            if before is None and isinstance(holder, ObjectValue | Effect):
                before = _outside(tx, holder, key)
            name, slot = self._named(seen, part, key)
            yield name, slot, before

    def _named(self, seen: _Seen, part: str, key: Any) -> tuple[str, AttributeSlot]:
        """A slot and its name in the user's terms."""
        holder = seen.holder
        if isinstance(holder, Effect):
            return f"global {holder.name}", AttributeSlot("value", None, _identity(holder), None, (holder.namespace,))
        name = _text(seen) + _accessor(holder, key)
        if isinstance(holder, ClosureCell):
            name, key = f"nonlocal {_text(seen)}", None
            if holder.source is not None:
                cell = self.tx.objects[holder.source]
                return name, AttributeSlot(part, None, holder.source, None, (cell, holder.contents))
        if holder.source is not None:
            return name, AttributeSlot(part, key, holder.source, None, (self.tx.objects[holder.source],))
        if seen.way is None:
            raise CannotCapture("loop-mismatch", f"an iteration changes {_text(seen)}, which no variable leads to")
        return name, AttributeSlot(part, key, None, seen.way)

    def _find(self, slot: AttributeSlot) -> Any:
        """The object that has the slot in this attempt; None where it has none."""
        tx = self.tx
        if slot.source is None:
            with contextlib.suppress(AttributeError, LookupError, TypeError):
                holder: Any = tx
                for part, key in slot.way or ():
                    holder = getattr(holder, part)
                    holder = holder if key is None else holder[key]
                return holder if _has(tx, holder, slot) else None
            return None
        if isinstance(slot.source, tuple):
            (namespace,), (_, name) = slot.objects, slot.source
            effect = tx.effects.get(slot.source) or Effect(namespace, name, _outside(tx, Effect(namespace, name, None)))
            return effect if effect.value is not None else None
        if len(slot.objects) == 2:
            holder = tx.cell(slot.objects[0], slot.source, slot.objects[1])
        else:
            holder = tx.wrap(slot.objects[0], slot.source)
        return holder if _has(tx, holder, slot) else None


# -- objects that can be changed ---------------------------------------------------------------------------------------
_HOLDERS = (ObjectValue, DictValue, SequenceValue, ClosureCell, Effect)


def _identity(holder: Any) -> Any:
    """The identity of an object as long as it lives."""
    return (id(holder.namespace), holder.name) if isinstance(holder, Effect) else id(holder)


def _part(holder: Any) -> str:
    """The attribute of a captured value that has its slots."""
    if isinstance(holder, ClosureCell | Effect):
        return "value"
    return "stored" if isinstance(holder, ObjectValue) else "_items"


def _held(holder: Any) -> dict[Any, Value]:
    """The contents of an object's slots, by their keys."""
    held = getattr(holder, _part(holder))
    if isinstance(holder, ClosureCell | Effect):
        return {} if held is None else {None: held}
    return dict(held) if isinstance(held, dict) else dict(enumerate(held))


def _pristine(holder: Any) -> dict[Any, Value]:
    """The slots' contents of an object from outside, before the first store to it."""
    if isinstance(holder, ObjectValue | Effect):
        return {}
    found = holder.found
    if isinstance(holder, ClosureCell):
        return {} if found is None else {None: found}
    return dict(found) if isinstance(found, dict) else dict(enumerate(found))


def _outside(tx: Capture, holder: Any, key: Any = None) -> Value | None:
    """The value of an attribute or a global that has not been stored to; None where there is none."""
    if isinstance(holder, Effect):
        namespace, name = holder.namespace, holder.name
        if name not in namespace:
            return None
        return tx.wrap(namespace[name], GlobalSource(name, ConstantSource.of("globals()", namespace)))
    found: Value | None = holder.found_value(tx, key)
    return found


def _get(tx: Capture, holder: Any, part: str, key: Any) -> Value | None:
    """The contents of a slot; None where it is empty."""
    held = getattr(holder, part)
    if key is None:
        return None if held is None else settled(tx, held)
    if isinstance(holder, SequenceValue | DictValue):
        there = key in held if isinstance(held, dict) else key < len(held)
        return holder.at(key) if there else None
    return held[key] if key in held else _outside(tx, holder, key)


def _put(holder: Any, slot: AttributeSlot, value: Value) -> None:
    if slot.key is None:
        setattr(holder, slot.part, value)
    else:
        getattr(holder, slot.part)[slot.key] = value


def _has(tx: Capture, holder: Any, slot: AttributeSlot) -> bool:
    fits = isinstance(holder, _HOLDERS) and slot.part == _part(holder)
    return fits and _get(tx, holder, slot.part, slot.key) is not None


def _reachable(tx: Capture) -> Iterator[_Seen]:
    """All objects that can be changed and can be reached from the frames and globals, nearest first."""
    known: set[int] = set()
    waiting: list[tuple[Any, _Way, str]] = []
    for depth, frame in enumerate(tx.frames):
        start = ("frames", depth)
        waiting += [(value, (start, ("locals", name)), name) for name, value in frame.locals.items()]
        waiting += [(value, (start, ("cells", name)), name) for name, value in frame.cells.items()]
        waiting += [(value, (start, ("stack", at)), "") for at, value in enumerate(frame.stack)]
    waiting += [(effect, (("effects", key),), effect.name) for key, effect in tx.effects.items()]
    waiting += [(value, None, "") for value in tx.mutated.values()]
    for value, way, text in waiting:  # the list grows in the loop
        if id(value) in known or not isinstance(value, Value | Effect):
            continue
        known.add(id(value))
        if isinstance(value, _HOLDERS) and not (isinstance(value, SequenceValue) and value.cls is not list):
            yield _Seen(value, _held(value), way, text, value.waiting if isinstance(value, DictValue) else 0)
        for part, inner in vars(value).items():
            if part in NOT_STATE:
                continue
            is_dict, is_list = type(inner) is dict, type(inner) in (list, tuple)
            entries = inner.items() if is_dict else enumerate(inner) if is_list else ((None, inner),)
            for key, x in entries:
                waiting.append((x, None if way is None else (*way, (part, key)), text + _accessor(value, key)))


def _accessor(holder: Any, key: Any) -> str:
    """The text of a slot after the object's name."""
    if isinstance(holder, ObjectValue):
        return f".{key}" if key is not None else ""
    return f"[{key!r}]" if key is not None and isinstance(holder, DictValue | SequenceValue) else ""


def _text(seen: _Seen) -> str:
    holder = seen.holder
    if isinstance(holder, ClosureCell):
        return seen.text if holder.source is None else str(holder.contents.text)
    source = getattr(holder, "source", None)
    return seen.text or "an object" if source is None else str(source.text)


def _entries(part: Any) -> list[Any]:
    """The entries of a part in a fingerprint of state: pairs of keys and identities."""
    if not isinstance(part, list):
        return [(None, part)]
    return part if part and isinstance(part[0], tuple) else list(enumerate(part))


__all__ = ["AttributeSlot", "Slots"]
