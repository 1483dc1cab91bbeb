"""With its resume points taken out again, rewritten code is the original code: instructions, positions and handlers."""

import dis
import importlib
import itertools
import types

import pytest

from bytecode.passing import functions_of
from tcompile.bytecode import decode, dialect, exceptions
from tcompile.bytecode.analysis import analyse
from tcompile.bytecode.decode import NotResumable
from tcompile.bytecode.rewritten import build

MODULES = (
    "argparse", "ast", "asyncio.base_events", "asyncio.tasks", "asyncio.locks", "bdb", "calendar", "cmd", "code",
    "codecs", "collections", "concurrent.futures._base", "configparser", "contextlib", "copy", "csv", "dataclasses",
    "datetime", "_pydecimal", "difflib", "dis", "doctest", "email.message", "enum", "fractions", "functools", "gettext",
    "glob", "heapq", "html.parser", "http.client", "inspect", "ipaddress", "json.decoder", "logging", "mailbox",
    "opcode", "optparse", "pathlib", "pdb", "pickle", "plistlib", "posixpath", "pprint", "queue", "random", "selectors",
    "shlex", "shutil", "socket", "statistics", "string", "subprocess", "tarfile", "tempfile", "textwrap", "threading",
    "tokenize", "traceback", "types", "typing", "unittest.mock", "urllib.parse", "uuid", "weakref", "xml.dom.minidom",
    "zipfile",
)  # fmt: skip

METHODS = ("LOAD_METHOD", "LOAD_ATTR", "LOAD_SUPER_ATTR")
# What makes a known NULL of the second item that an instruction leaves: in its place, or after it.
INSTEAD = {"GET_ITER": ("LOAD_CONST", "SWAP", "PUSH_NULL", "SWAP", "CALL", "PUSH_NULL")}
AFTER = {
    "LOAD_SPECIAL": (
        "STORE_FAST", "LOAD_FAST_CHECK", "PUSH_NULL", "STORE_FAST", "LOAD_CONST", "SWAP", "PUSH_NULL", "SWAP", "CALL",
        "JUMP_FORWARD", "POP_TOP", "PUSH_NULL",
    ),
}  # fmt: skip


def names(code):
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return [*code.co_varnames, *cells, *code.co_freevars]


def place(op, arg, code_names):
    """What an argument that names a local or a cell stands for."""
    name = decode.NAME[op]
    if op in dis.haslocal or op in dis.hasfree or name in ("MAKE_CELL", "LOAD_CLOSURE"):
        if name.count("_FAST") == 2:
            return code_names[arg >> 4], code_names[arg & 15]
        return code_names[arg]
    return arg


def compare(code, rewritten):
    old, new = decode.Stream(code), decode.Stream(rewritten.code)
    old_names, new_names = names(code), names(rewritten.code)
    positions = list(code.co_positions()), list(rewritten.code.co_positions())
    consts = rewritten.code.co_consts
    assert consts[: len(code.co_consts)] == code.co_consts
    at, where, resumable, jumps = 0, {}, {}, []
    for i, op in enumerate(old.ops):
        offset = old.begin[i] * 2
        name = decode.NAME[op]
        resumable[offset] = at
        if offset in rewritten.resume_points:
            assert decode.NAME[new.ops[at]] == "LOAD_CONST"
            assert consts[new.args[at]] is rewritten.resume_points[offset]
            at += 1 + (decode.NAME[new.ops[at + 1]] == "TO_BOOL")
            assert decode.NAME[new.ops[at]].startswith("POP_JUMP") and new.target[at] > 0
            at += 1
        where[offset] = first = at
        if old.target[i] >= 0:
            assert new.ops[at] == op
            jumps.append((old.begin[old.target[i]] * 2, new.target[at]))
        elif name in METHODS and (new.ops[at], new.args[at]) != (op, old.args[i]):
            assert decode.NAME[new.ops[at]] == name.replace("METHOD", "ATTR")
            assert new.args[at] == (old.args[i] if name == "LOAD_METHOD" else old.args[i] & ~1)
            at += 1
            assert decode.NAME[new.ops[at]] == "PUSH_NULL"
            at += decode.NAME[new.ops[at + 1]] == "SWAP" and not dialect.D.null_above
        elif name in INSTEAD and new.ops[at] != op:
            made = INSTEAD[name]
            assert tuple(decode.NAME[other] for other in new.ops[at : at + len(made)]) == made
            at += len(made) - 1
        elif name.count("_FAST") == 2 and new.ops[at] != op:
            parts = [place(new.ops[at + k], new.args[at + k], new_names) for k in range(2)]
            assert tuple(parts) == place(op, old.args[i], old_names)
            at += 1
        else:
            assert new.ops[at] == op
            assert place(op, old.args[i], old_names) == place(op, new.args[at], new_names)
            made = AFTER.get(name, ())
            if made and tuple(decode.NAME[other] for other in new.ops[at + 1 : at + 1 + len(made)]) == made:
                at += len(made)
        for k in range(new.begin[first], new.end[at]):
            assert positions[1][k] == positions[0][old.begin[i]]
        at += 1
    for target, goes in jumps:
        assert goes == resumable[target]

    def handlers(table, stream, index):
        found = {}
        for start, end, target, depth, lasti in table:
            for unit in range(start, end):
                found[unit] = index(target * 2), depth, lasti
        return found

    table = exceptions.parse(code.co_exceptiontable)
    assert [(e.start, e.end, e.target, e.depth, e.lasti) for e in dis._parse_exception_table(code)] == [
        (start * 2, end * 2, target * 2, depth, bool(lasti)) for start, end, target, depth, lasti in table
    ]
    before = handlers(table, old, lambda offset: new.begin[resumable[offset]])
    moved = exceptions.parse(rewritten.code.co_exceptiontable)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(moved))
    after = handlers(moved, new, lambda offset: offset // 2)
    for i in range(old.size):
        assert before.get(old.begin[i]) == after.get(new.begin[where[old.begin[i] * 2]])


@pytest.mark.parametrize("module", MODULES)
def test_modules(module):
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        pytest.skip("not here")
    for number, code in enumerate(functions_of(loaded)):
        if number % 3 == 2:  # the others tell as much
            continue
        rewritten = build(analyse(code), lambda offset: None, every=number % 3 == 1)
        compare(code, rewritten)
        for field in (
            "co_name",
            "co_qualname",
            "co_filename",
            "co_firstlineno",
            "co_flags",
            "co_argcount",
            "co_names",
            "co_posonlyargcount",
            "co_kwonlyargcount",
            "co_freevars",
            "co_cellvars",
        ):
            assert getattr(rewritten.code, field) == getattr(code, field)
        assert set(rewritten.resume_points) <= rewritten.targets <= set(rewritten.analysis.points)


def test_nearly_everything_is_resumable():
    """Points exist for almost every instruction of ordinary code."""
    lost = total = 0
    for code in functions_of(importlib.import_module("argparse")):
        analysis = analyse(code)
        reached = [i for i in range(analysis.first, analysis.stream.size) if analysis.stacks[i] is not None]
        total += len(reached)
        lost += sum(i not in analysis.bars and analysis.stream.begin[i] * 2 not in analysis.points for i in reached)
    assert lost < total / 80


def test_class_bodies_with_comprehensions():
    body = compile("class A:\n  x = [y for y in range(3)]", "s", "exec").co_consts[0]
    assert isinstance(body, types.CodeType)
    if body.co_nlocals:  # inlined, with a local that only the interpreter may see
        with pytest.raises(NotResumable, match="fast locals"):
            analyse(body)
    else:
        analyse(body)
