"""Scalar loops: a row of the op table, and the program that such a node carries.

Input: nothing.
Output: the row, and the reference meaning of its programs.
Why: loops over single elements run in machine code, with Python's semantics.

``scalar_loop(*roots, *numbers, shows=…, program=…)``: a stretch of scalar code with loops in it, which reads and writes
single elements. ``shows`` has a pair ``(root, path)`` for each array of the program: the operand, and the view ops that
lead to the array. The node's type is a tuple, which ``get`` reads: each written root, with its new elements, then the
numbers that the program returns, as arrays of rank 0. It works on copies. An attribute ``runs`` is how many blocks the
program runs at most, where that is known but does not follow from its ranges.

A program is ``(kinds, numbers, blocks, results)``, plain tuples throughout, so that it can be printed and compared:

- ``kinds[r]`` is the kind of register ``r``: ``int``, ``float``, ``bool`` (Python's own), or ``np.float64`` and so on.
- ``numbers`` are the registers of the node's numbers, the operands after the roots.
- a block is ``(parameters, instructions, end)``. The first one is the entry.
- an instruction is ``(name, result, *operands)``, registers all; ``const`` has a literal, ``size`` and ``load`` and
  ``store`` an array's number first. ``more`` is the loop condition of a range, and ``step`` its increment. ``draw`` has
  the number of a generator's state, which it writes, the bit generator's kind, and the kind of draw (``draws``).
  ``hold`` stands where an iteration of the outermost loop begins: a backend may leave the loop there, after a change by
  others. Its operands are the iterator's position, the number of the iteration's version (they differ in the kinds of
  variables), and the live registers with which the iteration could begin elsewhere. Before ``replay`` it holds what
  plain Python needs to go on before an exception; the number is negative there.
- the end is ``("jump", block, given)``, ``("back", block, given)`` for a back edge,
  ``("branch", condition, block, given, block, given)``, ``("exit", values)``, or ``("replay",)``, where only plain
  Python can go on.
- ``results`` are the kinds of the values of ``exit``.

Registers are assigned once. Each instruction means what Python, or NumPy for its scalars, makes of the same operation
on the same kinds: ``text`` writes the program in Python, which is its meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tcompile.graph.dtypes import DType, named, promote
from tcompile.graph.op import Aliasing, Op, define
from tcompile.graph.ops.draws import drawn
from tcompile.graph.ops.writing import shown
from tcompile.polls import Changed, Clock

Kind: TypeAlias = str
Block: TypeAlias = tuple[tuple[int, ...], tuple[tuple[Any, ...], ...], tuple[Any, ...]]
Program: TypeAlias = tuple[tuple[Kind, ...], tuple[int, ...], tuple[Block, ...], tuple[Kind, ...]]

ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
# The dtypes of elements.
ELEMENTS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64")
PYTHON: dict[Kind, type] = {"int": int, "float": float, "bool": bool}
_WEAK: dict[Kind, Any] = {"int": 1, "float": 1.0, "bool": True}
DTYPES = {"int": "int64", "float": "float64", "bool": "bool"}
# Functions of one float that the C library computes for Python, which raises where the result is not finite.
LIBRARY = (
    "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt",
)  # fmt: skip
LIBRARY_OF_TWO = ("atan2", "pow", "fmod", "remainder", "copysign", "nextafter")  # the same of two floats
# Universal functions of one float or two, computed by NumPy's own code.
UFUNCS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor", "ceil", "trunc", "rint", "arctan2",
    "maximum", "minimum", "power",
)  # fmt: skip
COMPOSED_UFUNCS = ("square", "sign", "isnan", "isinf", "isfinite")  # which consist of other instructions
_OF_UFUNCS = frozenset(f"np.{name}" for name in UFUNCS)


def operand_count(name: str) -> int:
    """How many floats one of these takes."""
    count: int = getattr(np, name).nin
    return count


def kind_of_scalar(value: Any) -> Kind | None:
    """The kind of a scalar object of NumPy's; None for another object.

    >>> kind_of_scalar(np.float32(1)), kind_of_scalar(1.0)
    ('np.float32', None)
    """
    return f"np.{value.dtype.name}" if isinstance(value, np.generic) else None


def is_ufunc(name: str) -> bool:
    """Whether an instruction is one of these."""
    return name in _OF_UFUNCS


def is_called(name: str) -> bool:
    """Whether an instruction calls an external function."""
    return name == "draw" or is_ufunc(name) or name.startswith("math.")


@lru_cache
def dtype_of(kind: Kind) -> DType:
    """The dtype of an array of rank 0 that holds such a value."""
    return named(DTYPES.get(kind, kind.removeprefix("np.")))


def code_points(text: str) -> np.ndarray[Any, Any]:
    """The code points of a str, as an array of int32.

    >>> code_points("aé")
    array([ 97, 233], dtype=int32)
    """
    coded = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(coded, np.int32) if coded else np.empty(0, np.int32)


def is_numpy(kind: Kind) -> bool:
    """Whether it is a scalar of NumPy's."""
    return kind.startswith("np.")


@lru_cache(maxsize=256)
def common(a: Kind, b: Kind) -> DType:
    """The dtype in which NumPy combines two scalars, at least one of which is its own."""
    given = [dtype_of(kind) if is_numpy(kind) else _WEAK[kind] for kind in (a, b)]
    return promote(*given)


@lru_cache(maxsize=1024)
def result_kind(sign: str, a: Kind, b: Kind) -> Kind | None:
    """The kind of ``a sign b``; None where such programs leave it to Python."""
    if sign in COMPARISONS:
        return ("np.bool" if is_numpy(a) or is_numpy(b) else "bool") if _comparable(a, b) else None
    if not is_numpy(a) and not is_numpy(b):
        return _python_kind(sign, a, b)
    dtype = common(a, b)
    if dtype.name not in ELEMENTS:
        return None
    if sign in "&|^":
        return f"np.{dtype.name}" if dtype.kind in "biu" else None
    if dtype.kind == "b":
        return None
    if sign in ("<<", ">>"):
        return f"np.{dtype.name}" if dtype.kind in "iu" else None
    if sign == "/":
        wide = dtype.kind == "f" or dtype.itemsize >= 4
        return f"np.{dtype.name if dtype.kind == 'f' else 'float64'}" if wide else None
    if sign == "**":  # NumPy makes arrays of other kinds, whose powers have other last bits
        return "np.float64" if a == "np.float64" or (b == "np.float64" and not is_numpy(a)) else None
    return f"np.{dtype.name}"


def _python_kind(sign: str, a: Kind, b: Kind) -> Kind | None:
    if "float" in (a, b):
        return "float" if sign in ("+", "-", "*", "/", "//", "%", "**") else None
    if sign in "&|^" and a == b == "bool":
        return "bool"
    if sign == "**":
        return None
    return "float" if sign == "/" else "int"


def _comparable(a: Kind, b: Kind) -> bool:
    return not (is_numpy(a) or is_numpy(b)) or common(a, b).name in ELEMENTS


def about(program: Program) -> str:
    """A summary of the program in words.

    >>> about((("int",), (), (((), (("load", 0, 0, 0),), ("jump", 0, ())),), ()))
    'one loop, one read'
    """
    fills = filling(program)
    if fills is not None:
        return f"all elements drawn, {fills[0][4]}"
    lines = [line[0] for _, instructions, _ in program[2] for line in instructions]
    backward = {way for number, (_, _, end) in enumerate(program[2]) for way in ways(end) if way <= number}
    counts = (
        (len(backward), "loop"), (lines.count("load"), "read"), (lines.count("store"), "write"),
        (lines.count("draw"), "draw"),
    )  # fmt: skip
    return ", ".join(f"{count if count > 1 else 'one'} {noun}{'s' * (count > 1)}" for count, noun in counts if count)


def ways(end: tuple[Any, ...]) -> tuple[int, ...]:
    """The successors of a block with this end."""
    return (end[1],) if end[0] in ("jump", "back") else (end[2], end[4]) if end[0] == "branch" else ()


# -- reference meaning -------------------------------------------------------------------------------------------------


def text(program: Program, arrays: int) -> str:
    """The program as a Python function ``loop`` of its arrays and numbers, which returns the values of its exit."""
    kinds, numbers, blocks, _ = program
    given = [f"a{n}" for n in range(arrays)] + [f"r{n}" for n in numbers]
    head = f"def loop({', '.join(given)}):"
    fills = filling(program)
    if fills is not None:
        (_, _, *what), target = fills
        first = [f"    {line}" for line in _lines(kinds, blocks[0][1])]
        drawn = f"    a{target}[...] = {_draw(what, f'size=a{target}.shape')}"
        return "\n".join([head, *first, drawn, "    return ()"]) + "\n"
    held = any(line[0] == "hold" for _, instructions, _ in blocks for line in instructions)
    lines = [head, "    at = 0", "    clock = Clock()", "    while True:"]
    for number, (_, instructions, end) in enumerate(blocks):
        lines.append(f"        {'elif' if number else 'if'} at == {number}:")
        leaves = "is_late" if end[0] == "replay" else "leaves"
        lines += [f"            {line}" for line in _lines(kinds, instructions, leaves)]
        if any(way <= number for way in ways(end)):
            lines.append(f"            clock.{'tick_inside' if held else 'tick'}()")
        lines += [f"            {line}" for line in _end(blocks, end)]
    return "\n".join(lines) + "\n"


def filling(program: Program) -> tuple[tuple[Any, ...], int] | None:
    """The draw, and the array of its numbers, where a program only fills an array, in the order of its axes.

    >>> start = ((), (("const", 0, 0), ("const", 1, 1), ("size", 2, 1, 0)), ("jump", 1, (0,)))
    >>> header = ((3,), (("more", 4, 3, 2, 1),), ("branch", 4, 2, (), 3, ()))
    >>> draw = ("draw", 5, 0, "PCG64", "random")
    >>> body = ((), (draw, ("store", -1, 1, 5, 3), ("step", 6, 3, 1)), ("back", 1, (6,)))
    >>> filling((("int",) * 7, (), (start, header, body, ((), (), ("exit", ()))), ())) == (draw, 1)
    True
    """
    _, numbers, blocks, results = program
    lines = [line for _, inner, _ in blocks[1:] for line in inner]
    named: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("more", "step", "draw", "store")}
    for line in lines:
        if line[0] not in named:
            return None
        named[line[0]].append(line)
    first = {line[1]: line for line in blocks[0][1]}
    if results or len(named["draw"]) != 1 or len(named["store"]) != 1 or blocks[0][2][0] != "jump":
        return None
    (drawn,), ((_, _, target, value, *places),) = named["draw"], named["store"]
    ones = {register for register, line in first.items() if line[0] == "const" and line[2] == 1}
    starts = [given for _, _, end in blocks for given in _entered(end)]
    if (
        value != drawn[1]
        or not {*drawn[5:]} <= {*first, *numbers}
        or [header[0] for header, _, _ in blocks if header] != places
        or [line[2] for line in named["more"]] != places
        or [first.get(line[3], ())[:1] + first.get(line[3], ())[2:] for line in named["more"]]
        != [("size", target, axis) for axis in range(len(places))]
        or not {line[-1] for line in (*named["more"], *named["step"])} <= ones
        or sorted(line[2] for line in named["step"]) != sorted(places)
        or {end[1] for _, _, end in blocks if end[0] == "branch"} != {line[1] for line in named["more"]}
        or any(first.get(given, ("",))[0] != "const" or first[given][2] != 0 for given in starts)
    ):
        return None
    return drawn, target


def _entered(end: tuple[Any, ...]) -> tuple[int, ...]:
    """The arguments of a block's forward edges."""
    return (*end[3], *end[5]) if end[0] == "branch" else end[2] if end[0] == "jump" else ()


def held_versions(program: Program) -> int:
    """How many versions of an iteration a program as capture writes it holds."""
    lines = [line for _, instructions, _ in program[2] for line in instructions]
    numbers = {line[3] for line in lines if line[0] == "hold"}
    return 1 + max((line[2] for line in lines if line[1] in numbers), default=-1)


def _lines(kinds: Sequence[Kind], instructions: Sequence[tuple[Any, ...]], leaves: str = "leaves") -> Iterator[str]:
    for name, result, *rest in instructions:
        if name == "hold":
            words = "".join(f"({kinds[register]!r}, r{register}), " for register in rest)
            yield f"if clock.{leaves}(): raise Changed(variables=words({words}))"
        elif name == "store":
            array, value, *places = rest
            yield f"a{array}[{_places(places)}] = r{value}"
        elif name == "require":
            yield f"if not r{rest[0]}: raise Replayed"
        else:
            yield f"r{result} = {_expression(kinds[result], name, rest)}"


def _places(places: Sequence[int]) -> str:
    return ", ".join(f"r{place}" for place in places)


def _expression(kind: Kind, name: str, rest: Sequence[Any]) -> str:
    if name == "const":
        (value,) = rest
        shown = f"float({str(value)!r})" if type(value) is float and not math.isfinite(value) else repr(value)
        return f"np.{dtype_of(kind).type.__name__}({shown})" if is_numpy(kind) else shown
    if name == "size":
        return f"a{rest[0]}.shape[{rest[1]}]"
    if name == "load":
        return f"a{rest[0]}[{_places(rest[1:])}]"
    if name == "draw":
        return _draw(rest)
    if name == "select":
        return f"r{rest[1]} if r{rest[0]} else r{rest[2]}"
    if name == "step":
        return f"r{rest[0]} + r{rest[1]}"
    if name == "more":
        return f"r{rest[0]} < r{rest[1]} if r{rest[2]} > 0 else r{rest[0]} > r{rest[1]}"
    if name in ARITHMETIC or name in COMPARISONS:
        return f"r{rest[0]} {name} r{rest[1]}"
    if name in ("negative", "invert", "positive", "not"):
        return f"{ {'negative': '-', 'invert': '~', 'positive': '+', 'not': 'not '}[name] }r{rest[0]}"
    return f"{name}({', '.join(f'r{n}' for n in rest)})"


def _draw(what: Sequence[Any], *size: str) -> str:
    state, family, name, *given = what
    return f"drawn({', '.join([f'a{state}', repr(family), repr(name), *(f'r{n}' for n in given), *size])})"


def _end(blocks: Sequence[Block], end: tuple[Any, ...]) -> Iterator[str]:
    if end[0] == "exit":
        yield f"return ({''.join(f'r{n}, ' for n in end[1])})"
    elif end[0] == "replay":
        yield "raise Replayed"
    elif end[0] in ("jump", "back"):
        yield from _go(blocks, *end[1:])
    else:
        _, condition, yes, given, no, others = end
        yield f"if r{condition}:"
        yield from (f"    {line}" for line in _go(blocks, yes, given))
        yield "else:"
        yield from (f"    {line}" for line in _go(blocks, no, others))


def _go(blocks: Sequence[Block], to: int, given: Sequence[int]) -> Iterator[str]:
    if given:
        yield f"{', '.join(f'r{n}' for n in blocks[to][0])}, = {', '.join(f'r{n}' for n in given)},"
    yield f"at = {to}"


class Replayed(Exception):
    """The program reached a ``replay`` end, or another loop an exit that its graph does not follow."""


@lru_cache(maxsize=256)
def _function(program: Program, arrays: int) -> Callable[..., tuple[Any, ...]]:
    names: dict[str, Any] = {
        "np": np, "math": math, "drawn": drawn, "Replayed": Replayed, "Clock": Clock, "Changed": Changed,
        "words": _held_words,
    }  # fmt: skip
    exec(compile(text(program, arrays), "<scalar loop>", "exec"), names)
    function: Callable[..., tuple[Any, ...]] = names["loop"]
    return function


def _held_words(*registers: tuple[Kind, Any]) -> np.ndarray[Any, Any]:
    """Registers as 64-bit words. Raises Changed where one needs more: the loop is then left without them."""
    words = np.zeros(len(registers), np.int64)
    for place, (kind, value) in enumerate(registers):
        try:
            made = np.asarray(value, dtype_of(kind)).reshape(1)
        except OverflowError:
            raise Changed from None
        words[place : place + 1].view(made.dtype)[:1] = made
    return words


def _number(value: Any, kind: Kind) -> Any:
    if is_numpy(kind):
        return np.asarray(value)[()]
    return PYTHON[kind](value)


def written_arrays(program: Program) -> list[int]:
    """The arrays that the program writes, by their numbers."""
    return sorted({i[2] for _, instructions, _ in program[2] for i in instructions if i[0] in ("store", "draw")})


def written_roots(shows: Sequence[tuple[int, Any]], program: Program) -> list[int]:
    """The operands whose elements the program writes."""
    return sorted({shows[number][0] for number in written_arrays(program)})


def _scalar_loop(*operands: Any, shows: tuple[Any, ...], program: Program, runs: object = None) -> tuple[Any, ...]:
    kinds, numbers, _, results = program
    written = written_roots(shows, program)
    roots = list(operands[: len(operands) - len(numbers)])
    for number in written:
        roots[number] = np.copy(roots[number], order="K")
    arrays = [shown(roots[root], path) for root, path in shows]
    given = [_number(value, kinds[n]) for n, value in zip(numbers, operands[len(roots) :], strict=True)]
    try:
        values = _unless_flags(_function(program, len(arrays)), (*arrays, *given))
    except Changed as changed:
        if len(changed.variables):
            changed.results = (*(roots[number] for number in written), *(np.zeros((), dtype_of(k)) for k in results))
        raise
    made = [np.asarray(value, dtype_of(kind)) for value, kind in zip(values, results, strict=True)]
    return (*(roots[number] for number in written), *made)


def _unless_flags(function: Callable[..., tuple[Any, ...]], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of ``function``. Raises Replayed where it leaves floating-point flags of which NumPy would warn.

    Python ignores flags, and NumPy's scalars report their own; a ufunc, as ``np.vectorize`` calls, reports all at its
    end.
    """
    found: list[tuple[Any, ...]] = []

    def call(_: object) -> None:
        found.append(function(*given))

    modes: dict[str, Any] = {kind: mode if mode == "ignore" else "raise" for kind, mode in np.geterr().items()}
    try:
        with np.errstate(**modes):
            np.frompyfunc(call, 1, 1)(0)
    except FloatingPointError:
        raise Replayed from None
    return found[0]


SCALAR_LOOP = define(Op("scalar_loop", "opaque", None, None, _scalar_loop, "scalar code with scalar loops",
                         memory=Aliasing.WRITES))  # fmt: skip
