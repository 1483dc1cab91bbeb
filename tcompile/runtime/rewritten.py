"""The rewritten code of a function, in which captured stretches and plain Python alternate in one frame.

Input: a function's cache.
Output: the rewritten code, made when first needed, with resume points opened where captured code may start.
Why: separate from ``bytecode``, since it knows regions, and from ``regions``, since few functions need it.
"""

from __future__ import annotations

import dis
import itertools
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tcompile import reentry
from tcompile.bytecode.dialect import D
from tcompile.config import config
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.observe.source_location import file_line
from tcompile.process import loading
from tcompile.runtime.cache import FunctionCache, Region
from tcompile.runtime.trials import begin

if TYPE_CHECKING:
    from tcompile.bytecode.rewritten import Rewritten
    from tcompile.capture.entry.codegen import Captured


class Entrance(Protocol):
    """Makes the callable of each resume point."""

    def enter(self, cache: FunctionCache, offset: int, patience: int = 0) -> Callable[..., Any]:
        """Returns the callable of the resume point at ``offset``; ``patience`` misses run in plain Python."""


@reentry.slow
def rewritten_of(cache: FunctionCache, code: types.CodeType, compiler: Entrance) -> Rewritten | None:
    """Returns the function's rewritten code, its first resume point open; None if the function cannot be resumed.

    It takes effect when ``cache.rewritten`` is set to it.
    """
    with cache.lock:
        if cache.built is None and cache.resumable:
            with loading:
                from tcompile.bytecode.analysis import analyse
                from tcompile.bytecode.decode import NotResumable
                from tcompile.bytecode.rewritten import build
            try:
                analysis = analyse(code)
                every = bool(config.stress_breaks) or cache.settings.plain_frame
                rewritten = build(analysis, lambda offset: compiler.enter(cache, offset), every=every)
            except NotResumable as error:
                cache.resumable = False
                bus.emit(FellBack(**cache.about, reason="cannot be resumed", detail=str(error)))
                return None
            cache.built = rewritten
            cache.open(analysis.start)
        return cache.built


def settle(cache: FunctionCache, compiler: Entrance) -> None:
    """Counts a call in the rewritten code. After many without a new resume point, narrows it to the open ones.

    Sleeping resume points are woken ever less often: values that arrive there may have changed.
    """
    cache.quiet_calls += 1
    count, settled = cache.quiet_calls, _SETTLED_UNDER_STRESS if config.stress_breaks else _SETTLED
    if cache.asleep and cache.retries:
        cache.wake()
    if count == _ON_TRIAL:
        begin(cache)
    if not count % settled and cache.rewritten is cache.built and not reentry.is_inside():
        _narrow(cache, compiler)


@reentry.slow
def _narrow(cache: FunctionCache, compiler: Entrance) -> None:
    """Makes calls run in rewritten code that has only the resume points that are open now."""
    from tcompile.bytecode.rewritten import build

    with cache.lock:
        full = cache.built
        assert full is not None
        used = [offset for offset, resume_point in full.resume_points.items() if resume_point]
        rewritten = build(full.analysis, lambda offset: compiler.enter(cache, offset), every=full.every, only=used)
        for offset in used:
            rewritten.resume_points[offset].append(offset)
        cache.rewritten = rewritten


def resumed_function(
    cache: FunctionCache,
    compiler: Entrance,
    function: types.FunctionType,
    answer: Callable[[Sequence[Any]], Any],
    stays_plain: bool,
) -> types.FunctionType:
    """Returns a function for one call of ``function``, which jumps at its start to where the answer leads."""
    code = resuming_code(cache, compiler, answer, stays_plain)
    made = types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    made.__qualname__ = function.__qualname__
    copy_defaults(made, function)
    return made


def copy_defaults(made: Any, function: types.FunctionType) -> None:
    """Gives ``made`` the current defaults of ``function``."""
    if made.__defaults__ is not function.__defaults__:
        made.__defaults__ = function.__defaults__
    if made.__kwdefaults__ is not function.__kwdefaults__:
        made.__kwdefaults__ = function.__kwdefaults__


@reentry.slow
def resuming_code(
    cache: FunctionCache, compiler: Entrance, answer: Callable[[Sequence[Any]], tuple[Any, ...]], stays_plain: bool
) -> types.CodeType:
    """Returns the rewritten code for one call, which jumps at its start to where the answer leads.

    stays_plain: whether plain Python runs everything from there on.
    """
    from tcompile.bytecode.rewritten import build

    full = cache.built
    assert full is not None
    start = full.first
    assert start is not None
    answers = [answer]

    def call(offset: int) -> Callable[..., Any]:
        if offset == start:
            return lambda *values: answers.pop()(values) if answers else None
        return compiler.enter(cache, offset, _PLAIN_PASSES)

    with cache.lock:
        cache.rewritten = cache.rewritten or full
        opened = () if stays_plain else (offset for offset, resume_point in full.resume_points.items() if resume_point)
        used = {start, *opened}
        rewritten = build(full.analysis, call, every=full.every, only=used)
    for offset in used:
        rewritten.resume_points[offset].append(offset)
    return rewritten.code


# Misses to tolerate in a frame that may soon end: usually the flag that ends its loop has changed.
_PLAIN_PASSES = 64
_ON_TRIAL = 8  # calls without a new resume point, after which a function may go on trial
_SETTLED = 64
_SETTLED_UNDER_STRESS = 2


def open_resume_points(cache: FunctionCache, captured: Captured, region: Region) -> None:
    """Opens the next resume points that the frame reaches after the end of a stretch."""
    assert captured.exit is not None
    open_resume_points_after(cache, captured.exit)
    if captured.graph is None and captured.exit == region.start.offset and not captured.guards:
        cache.close(captured.exit)  # no values can make this place capturable


def open_resume_points_after(cache: FunctionCache, offset: int) -> None:
    """Opens the resume points that the frame reaches first when it continues at an instruction."""
    rewritten = cache.built
    assert rewritten is not None
    top = _result_text(cache.code, offset)
    for handler in rewritten.analysis.points[offset].handlers:
        cache.open(handler)
    for following in rewritten.following(offset):
        cache.tops.setdefault(following, top)
        cache.open(following)


_GIVES_A_VALUE = (
    "CALL", "CALL_KW", "CALL_FUNCTION_EX", "PRECALL", "KW_NAMES", "LOAD_ATTR", "BINARY_OP", "BINARY_SUBSCR",
    "COMPARE_OP", "GET_ITER", "FOR_ITER",
)  # fmt: skip


def _result_text(code: types.CodeType, offset: int) -> str:
    """Returns the source text of the value that the instruction at ``offset`` pushes; "" if unknown."""
    name = dis.opname[code.co_code[offset]]
    place = next(itertools.islice(code.co_positions(), offset // 2, None), (None,) * 4)
    line, end_line, column, end_column = place
    if name == "LOAD_ATTR" and code.co_code[offset + 1] & 1 and D.attributes_load_methods:
        return ""  # of a method, which is called before anything can start
    if name not in _GIVES_A_VALUE or line is None or line != end_line or column is None:
        return ""
    text = file_line(code.co_filename, line).encode()[column:end_column].decode(errors="replace").strip()
    if not text or len(text) > _LONGEST_TEXT:
        return ""
    return f"an item of {text}" if name == "FOR_ITER" else text


_LONGEST_TEXT = 60
