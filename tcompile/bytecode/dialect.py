"""Differences between the bytecode of CPython's versions, as one table.

Input: the version that runs.
Output: `D`, its row of the table, and `same_as`, which maps equivalent instructions to one name.
Why: all other code uses one vocabulary, and reads a named fact where versions differ.
"""

from __future__ import annotations

import opcode
import sys
from typing import Any, NamedTuple

VERSION = sys.version_info[:2]


class Dialect(NamedTuple):
    """What distinguishes the bytecode of one version.

    Attributes
    ----------
    jump_if_true, jump_if_not_none : str
        The forward jumps.
    splits_calls : bool
        Whether PRECALL precedes CALL.
    null_above : bool
        Whether the empty slot beside a callable lies above it, else below.
    attributes_load_methods : bool
        Whether LOAD_ATTR loads methods, too.
    tests_are_bools : bool
        Whether a conditional jump takes a bool only, so that TO_BOOL precedes it.
    compare_shift, import_shift : int
        The flag bits below the operator of COMPARE_OP, and below the name of IMPORT_NAME.
    loop_ends : int
        The instructions at the target of FOR_ITER that remove the iterator; FOR_ITER does so itself without them.
    iterator_items : int
        The stack items of an iterator. The second is empty, or the index of an iterable that is its own iterator.
    keeps_receiver : bool
        Whether SEND leaves the receiver on the stack when it has returned.
    keywords_slot : bool
        Whether CALL_FUNCTION_EX always finds keyword arguments on the stack, which may be empty.
    function_flags : bool
        Whether the argument of MAKE_FUNCTION says what else is on the stack.
    tagged_ints : bool
        Whether the evaluation loop puts integers on the stack that are no objects.
    pops_null : bool
        Whether POP_TOP removes an empty slot.
    """

    jump_if_true: str = "POP_JUMP_FORWARD_IF_TRUE"
    jump_if_not_none: str = "POP_JUMP_FORWARD_IF_NOT_NONE"
    splits_calls: bool = True
    null_above: bool = False
    attributes_load_methods: bool = False
    tests_are_bools: bool = False
    compare_shift: int = 0
    import_shift: int = 0
    loop_ends: int = 0
    iterator_items: int = 1
    keeps_receiver: bool = False
    keywords_slot: bool = False
    function_flags: bool = True
    tagged_ints: bool = False
    pops_null: bool = False


_3_11 = Dialect()
_3_12 = _3_11._replace(
    jump_if_true="POP_JUMP_IF_TRUE", jump_if_not_none="POP_JUMP_IF_NOT_NONE", splits_calls=False,
    attributes_load_methods=True, compare_shift=4, loop_ends=1, keeps_receiver=True,
)  # fmt: skip
_3_13 = _3_12._replace(null_above=True, tests_are_bools=True, compare_shift=5, loop_ends=2, function_flags=False)
_3_14 = _3_13._replace(keywords_slot=True, tagged_ints=True, pops_null=True)
_3_15 = _3_14._replace(import_shift=2, iterator_items=2)
_ROWS = {(3, 11): _3_11, (3, 12): _3_12, (3, 13): _3_13, (3, 14): _3_14, (3, 15): _3_15}
NEWEST = max(_ROWS)
D = _ROWS.get(VERSION, _ROWS[NEWEST])

# Instructions that differ from another only in cost, in borrowed references, or in monitoring.
_SAME_AS = {
    "LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST",
    "LOAD_SMALL_INT": "LOAD_CONST", "LOAD_COMMON_CONSTANT": "LOAD_CONST", "NOT_TAKEN": "NOP",
}  # fmt: skip
_ITEM_SIGN = "[]"  # BINARY_OP's argument for subscripts, in versions without BINARY_SUBSCR
COMMON_CONSTANTS: list[Any] = getattr(opcode, "_common_constants", [])
SPECIAL_METHODS: list[str] = getattr(opcode, "_special_method_names", [])
OPERATORS: list[str] = [sign for _, sign in opcode._nb_ops]  # type: ignore[attr-defined]
INTRINSICS: list[str] = getattr(opcode, "_intrinsic_1_descs", [])


def is_known() -> bool:
    """Whether the running version's bytecode is known."""
    return VERSION <= NEWEST


def same_as(name: str) -> str:
    """Returns the canonical name of an instruction, for any argument.

    >>> same_as("LOAD_FAST_BORROW"), same_as("RETURN_VALUE")
    ('LOAD_FAST', 'RETURN_VALUE')
    """
    return _SAME_AS.get(name, name)


def meaning(name: str, arg: int) -> str:
    """Returns the canonical name of an instruction with this argument.

    >>> meaning("BINARY_OP", 0)
    'BINARY_OP'
    """
    if name == "BINARY_OP" and OPERATORS[arg] == _ITEM_SIGN:
        return "BINARY_SUBSCR"
    if name == "LOAD_COMMON_CONSTANT" and COMMON_CONSTANTS[arg] is AssertionError:
        return "LOAD_ASSERTION_ERROR"
    if name == "LOAD_SPECIAL" and SPECIAL_METHODS[arg].startswith("__a"):
        return "BEFORE_ASYNC_WITH"
    if name == "GET_ITER" and arg and D.iterator_items == 2:
        return "GET_YIELD_FROM_ITER"
    return same_as(name)
