"""The instructions of a code object with their decoded arguments, for capture.

Input: a ``types.CodeType``.
Output: a list of `Instruction`.
Why: ``dis`` takes several microseconds per instruction, most of them for texts for people.
"""

from __future__ import annotations

import dis
import types
from typing import Any, NamedTuple, TypeAlias

from tcompile.bytecode.decode import CACHES, NAME, OP, Stream, numbers
from tcompile.bytecode.dialect import COMMON_CONSTANTS, INTRINSICS, OPERATORS, SPECIAL_METHODS, D, meaning

Positions: TypeAlias = tuple[int | None, int | None, int | None, int | None]


class Instruction(NamedTuple):
    """One instruction, its EXTENDED_ARG prefixes included.

    Attributes:
        opname: its meaning, in the vocabulary that all versions share.
        opcode: the opcode in this version.
        arg: the full argument; None if it has none.
        argval: the decoded argument: a constant, a name, two names, or a jump's target offset.
        argrepr: for an operator, a comparison or an intrinsic function its sign or name, as in ``dis``.
        start, offset: where it begins, and where its own unit is, after the prefixes; in bytes.
        is_jump_target: whether a jump leads here.
        positions: first and last line, first and last column.
    """

    opname: str
    opcode: int
    arg: int | None
    argval: Any
    argrepr: str
    start: int
    offset: int
    is_jump_target: bool
    positions: Positions


_HAS_ARG = frozenset(getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256)))
_CONSTANTS = frozenset(dis.hasconst)
_NAMES = dict.fromkeys(dis.hasname, 0)
for _op, _flags in {
    "LOAD_GLOBAL": 1, "LOAD_ATTR": int(D.attributes_load_methods), "LOAD_SUPER_ATTR": 2, "IMPORT_NAME": D.import_shift,
}.items():  # fmt: skip
    if _op in OP:
        _NAMES[OP[_op]] = _flags  # flag bits below the name's index
_PAIRS = numbers("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST")
_VARIABLES = frozenset((*dis.haslocal, *dis.hasfree)) - _PAIRS
_COMPARES = frozenset(dis.hascompare)
_SMALL_INT, _COMMON, _SPECIAL = (OP.get(f"LOAD_{name}", -1) for name in ("SMALL_INT", "COMMON_CONSTANT", "SPECIAL"))
_BINARY_OP, _INTRINSIC = OP["BINARY_OP"], OP.get("CALL_INTRINSIC_1", -1)


def read(code: types.CodeType) -> list[Instruction]:
    """Returns the instructions of ``code``.

    Raises:
        NotResumable, IndexError: the code was made by hand and is malformed.

    >>> [(i.opname, i.argval) for i in read((lambda x: x.real).__code__)][-2:]
    [('LOAD_ATTR', 'real'), ('RETURN_VALUE', None)]
    """
    stream = Stream(code)
    places: list[Positions] = list(code.co_positions())
    constants, names, variable = code.co_consts, code.co_names, code._varname_from_oparg  # type: ignore[attr-defined]
    targets = {target for target in stream.target if target >= 0}
    found: list[Instruction] = []
    for number, (op, given, begin, end) in enumerate(
        zip(stream.ops, stream.args, stream.begin, stream.end, strict=True)
    ):
        arg = given if op in _HAS_ARG else None
        argval: Any = arg
        argrepr = ""
        if arg is None:
            pass
        elif op in _VARIABLES:
            argval = variable(arg)
        elif op == _COMMON:
            argval = COMMON_CONSTANTS[arg]
        elif op in _CONSTANTS and op != _SMALL_INT:
            argval = constants[arg]
        elif op in _NAMES:
            argval = names[arg >> _NAMES[op]]
        elif stream.target[number] >= 0:
            argval = 2 * stream.begin[stream.target[number]]
        elif op == _BINARY_OP:
            argrepr = OPERATORS[arg]
        elif op in _COMPARES:
            argval = argrepr = dis.cmp_op[arg >> D.compare_shift]
            if D.compare_shift == 5 and arg & 16:
                argrepr = f"bool({argrepr})"
        elif op in _PAIRS:
            argval = variable(arg >> 4), variable(arg & 15)
        elif op == _INTRINSIC:
            argrepr = INTRINSICS[arg]
        elif op == _SPECIAL:
            argval = argrepr = SPECIAL_METHODS[arg]
        unit = end - CACHES[op] - 1
        place = places[unit]
        name, is_target = meaning(NAME[op], given), number in targets
        found.append(Instruction(name, op, arg, argval, argrepr, 2 * begin, 2 * unit, is_target, place))
    return found


__all__ = ["Instruction", "Positions", "read"]
