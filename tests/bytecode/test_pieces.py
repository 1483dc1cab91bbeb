"""Decoding, tables and single pieces, each by itself."""

import argparse
import ast
import asyncio.tasks
import contextlib
import dataclasses
import dis
import functools
import gc
import inspect
import itertools
import types
import typing
import weakref

import pytest

from bytecode.programs import PROGRAMS
from tcompile import interpreter
from tcompile.bytecode import assemble, decode, dialect, exceptions, instructions, positions
from tcompile.bytecode.analysis import analyse
from tcompile.bytecode.rewritten import build


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_decode_is_what_dis_says(function):
    stream = decode.Stream(function.__code__)
    said = [i for i in dis.get_instructions(function) if i.opname not in ("EXTENDED_ARG", "CACHE")]
    assert [decode.NAME[op] for op in stream.ops] == [i.opname for i in said]
    assert [arg for arg, i in zip(stream.args, said, strict=True) if i.arg is not None] == [
        i.arg for i in said if i.arg is not None
    ]
    jumps = {i: said[i].argval for i, target in enumerate(stream.target) if target >= 0}
    for i, where in jumps.items():
        target = stream.target[i]
        assert stream.begin[target] * 2 <= where <= said[target].offset


def all_code(code):
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from all_code(inner)


def test_instructions_are_what_dis_says():
    """Of a thousand functions of Python's library, and of ours."""
    modules = [dis, argparse, ast, asyncio.tasks, contextlib, dataclasses, functools, inspect, typing, decode]
    sources = [compile(inspect.getsource(module), module.__name__, "exec") for module in modules]
    many = "def f():\n" + "".join(f"    v{n} = v{n - 1} + {n}.5 if v{n} else g{n}.a{n}\n" for n in range(1, 300))
    count = 0
    for code in itertools.chain(*map(all_code, [*sources, compile(many, "many", "exec")])):
        count += 1
        raw = code.co_code
        found = instructions.read(code)
        said = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]
        targets, end = set(dis.findlabels(raw)), 0
        for one, other in zip(found, said, strict=True):
            assert (one.opname, one.opcode, one.arg, one.offset, one.positions) == (
                dialect.meaning(other.opname, other.arg or 0), other.opcode, other.arg, other.offset, other.positions,
            )  # fmt: skip
            assert set(raw[one.start : one.offset : 2]) <= {decode.EXTENDED_ARG}
            assert one.start == end
            assert one.is_jump_target == any(at in targets for at in range(one.start, one.offset + 2, 2))
            end = one.offset + 2 + 2 * decode.CACHES[one.opcode]
            if other.opname not in OF_PEOPLE:
                assert (one.argval, type(one.argval)) == (other.argval, type(other.argval))
            if one.opname in ("BINARY_OP", "COMPARE_OP", "CALL_INTRINSIC_1"):
                assert one.argrepr == other.argrepr
    assert count > 1000


# Whose values `dis` has as texts for people: nothing looks at them but at the argument.
OF_PEOPLE = ("FORMAT_VALUE", "CONVERT_VALUE", "KW_NAMES", "LOAD_COMMON_CONSTANT", "LOAD_SPECIAL")


@pytest.mark.parametrize("size", range(1, 6))
def test_arrange(size):
    for wanted in itertools.permutations(range(size)):
        stack = list(range(size))
        code = assemble.arrange(stack, wanted)
        assert set(code[::2]) <= {decode.OP["SWAP"]}
        for depth in code[1::2]:
            stack[-1], stack[-depth] = stack[-depth], stack[-1]
        assert tuple(stack) == wanted


@pytest.mark.parametrize("value", [0, 63, 64, 4095, 4096, 300_000])
def test_exception_table_numbers(value):
    entries = [(value, value + 7, 2 * value, 3, 1), (value + 7, 2 * value + 8, 0, 0, 0)]
    assert exceptions.parse(exceptions.write(entries)) == entries


@pytest.mark.parametrize("line", [1, 40, 5, 70_000])
def test_lines(line):
    without = bytes((0x80 | 15 << 3 | 2,))  # an entry for three units that have no line
    table = positions.plain(10, 3, 20) + positions.plain(line, 10, 9) + without
    code = test_lines.__code__.replace(co_linetable=table, co_firstlineno=3)
    assert [where[0] for where in code.co_positions()] == [10] * 20 + [line] * 9 + [None] * 3
    lines, last = positions.lines(positions.parse(table), 3)
    assert (lines, last) == ([10] * 20 + [line] * 9 + [None] * 3, line)


def test_the_newest_version_is_the_same_everywhere():
    assert dialect.NEWEST == interpreter.NEWEST


def test_code_is_freed_with_its_function():
    class Region:
        def __call__(self, *values):
            return None

    regions = []

    def call(offset):
        region = Region()
        regions.append(weakref.ref(region))
        return region

    rewritten = build(analyse(functools.wraps.__code__), call)
    assert regions and all(region() is not None for region in regions)
    del rewritten
    gc.collect()
    assert all(region() is None for region in regions)
