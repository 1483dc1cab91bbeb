"""Which instructions become one program: a loop, and the code up to where its exits meet.

Input: the analysis of a function's code, and the loop.
Output: the instructions.
Why: an exit may lead to code of its own, which is part of the program.
"""

from __future__ import annotations

from bisect import bisect
from itertools import pairwise

from tcompile.bytecode.analysis import Analysis
from tcompile.bytecode.instructions import Instruction


def extent(found: Analysis, start: int, loop: frozenset[int], lost: frozenset[int], depth: int) -> set[int]:
    """The instructions of the translated code that a loop begins, up to where its exits meet or the function ends.

    ``lost`` instructions, from which on an exception is raised, are not among them. Where the exits meet, the stack has
    the ``depth`` that it has after the loop: on the way out of an iteration, the iterator is still there.
    """
    last = {at: end - 1 for at, end in pairwise([*found.blocks, found.stream.size])}
    last.setdefault(start, last[found.blocks[bisect(found.blocks, start) - 1]])  # a test before a `while` loop
    order: list[int] = []  # blocks, by their first instructions, most after their successors
    leads: dict[int, tuple[int, ...]] = {}
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if at < 0:
            order.append(~at)
        elif at not in leads:
            leads[at] = tuple(way for way in found.next_of(last[at]) if way not in lost)
            waiting.append(~at)
            waiting.extend(leads[at])
    # The blocks on every path from a block to the end of the function, as bits (post-dominators).
    place = {at: number for number, at in enumerate(order)}
    everything = (1 << len(order)) - 1
    after = dict.fromkeys(order, everything)
    changed = True
    while changed:
        changed = False
        for at in order:
            ways = leads[at]
            meet = everything if ways else 0
            for way in ways:
                meet &= after[way]
            meet |= 1 << place[at]
            if meet != after[at]:
                after[at] = meet
                changed = True
    common = [at for at in order if after[start] >> place[at] & 1 and at not in loop]
    common = [at for at in common if len(found.stacks[at] or ()) == depth]
    end = max(common, key=lambda at: after[at].bit_count(), default=None)
    inside: set[int] = set()
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if at != end and at not in inside:
            inside.update(range(at, last[at] + 1))
            waiting.extend(leads[at])
    return inside


def stored(i: Instruction) -> tuple[str, ...]:
    """The local variables that an instruction binds."""
    if i.opname in ("STORE_FAST", "DELETE_FAST"):
        return (i.argval,)
    if i.opname == "STORE_FAST_STORE_FAST":
        return tuple(i.argval)
    return (i.argval[0],) if i.opname == "STORE_FAST_LOAD_FAST" else ()


__all__ = ["extent", "stored"]
