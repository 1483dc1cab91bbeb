"""What becomes of a call's value.

Enters: the frame of a function that is calling us. Leaves: whether our value will be dropped, kept in a
variable or returned, or else is handed on (to ``with``, to a decoration, to another call). Exists because
``set_stance(...)`` as a statement acts at once, and the same expression under ``with`` must not act before
the block is entered: for a moment, other threads would see it.

The instructions after the call are followed, keeping count of what lies on the stack above our value. The
code of a frame is read through ``co_code``, which never shows specialised or instrumented instructions.
"""

from __future__ import annotations

import dis
from types import FrameType

_PRINT = 1  # the intrinsic that shows an interactive statement's value
_STORES = {"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "POP_TOP", "PRINT_EXPR"}
_NOTHING = {"CACHE", "NOP", "RESUME", "NOT_TAKEN"}
_PUSHES = {
    "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF",
    "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "PUSH_NULL",
}  # fmt: skip
# Instructions that take some items and leave this many; 3.11 splits a call into PRECALL and CALL.
_LEAVES = {"LOAD_ATTR": 1, "LOAD_METHOD": 2, "BINARY_SUBSCR": 1, "BINARY_OP": 1, "PRECALL": 2, "CALL": 1}
_STORE_DEPTH = {"STORE_ATTR": 1, "STORE_SUBSCR": 2}  # items above the value that is stored
_LIMIT = 64


def kept_or_dropped(frame: FrameType) -> bool:
    """Whether the value of the call that ``frame`` is executing is dropped, stored, displayed or returned.

    False means that something takes it at once: a ``with`` statement, a decoration, another call's arguments.
    """
    code = frame.f_code.co_code
    position = frame.f_lasti + 2
    if dis.opname[code[frame.f_lasti]] == "PRECALL":  # 3.11 may make the whole call here
        position = code.index(dis.opmap["CALL"], position) + 2
    above, copies, argument = 0, 1, 0
    for _ in range(_LIMIT):
        if position >= len(code):
            return False
        opcode, name = code[position], dis.opname[code[position]]
        argument = argument << 8 | code[position + 1]
        position += 2
        if name == "EXTENDED_ARG":
            continue
        if name in _STORES:
            above, copies = (above - 1, copies) if above else (0, copies - 1)
        elif name == "STORE_FAST_STORE_FAST":
            above, copies = max(above - 2, 0), copies - max(2 - above, 0)
        elif name == "STORE_FAST_LOAD_FAST" and not above:
            above, copies = 1, copies - 1
        elif name in _STORE_DEPTH and above == _STORE_DEPTH[name]:
            above, copies = 0, copies - 1
        elif name in _STORE_DEPTH and above > _STORE_DEPTH[name]:
            above -= _STORE_DEPTH[name] + 1
        elif name == "LOAD_CONST" and isinstance(frame.f_code.co_consts[argument], list):
            position = _past_gate(code, position)
        elif name in _PUSHES:
            above += _effect(opcode, argument)
        elif name in _LEAVES:
            effect = _effect(opcode, argument)
            above += effect
            if above < _LEAVES[name] + max(effect, 0):
                return False  # it took our value
        elif name == "COPY" and argument == 1 and not above:
            copies += 1
        elif name == "SWAP" and copies == 1:
            above = argument - 1 if above == 0 else 0 if above == argument - 1 else above
        elif name == "JUMP_FORWARD":
            position += 2 * argument
        elif name == "RETURN_VALUE" or (name == "CALL_INTRINSIC_1" and argument == _PRINT):
            return not above
        elif name not in _NOTHING:
            return False
        if copies <= 0:
            return True
        argument = 0
    return False


def _past_gate(code: bytes, position: int) -> int:
    """Where the user's code goes on after a gate of a host (the only constants that are lists), once it is loaded."""
    while not dis.opname[code[position]].endswith("IF_TRUE"):
        position += 2
    position += 2
    while dis.opname[code[position]] == "CACHE":
        position += 2
    return position


def _effect(opcode: int, argument: int) -> int:
    return dis.stack_effect(opcode, argument if opcode >= dis.HAVE_ARGUMENT else None, jump=False)
