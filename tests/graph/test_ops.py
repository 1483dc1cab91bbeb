"""The op table says the truth of each operation, and no table keyed by operations lacks one."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest

from tcompile.backends.llvm.kernels import pointwise as llvm
from tcompile.backends.schedule import admission
from tcompile.backends.schedule.complex_and_half import COMPLEX
from tcompile.backends.schedule.kernel_ops import LOWERED
from tcompile.errors import GraphError
from tcompile.frontends.numpy import ufuncs
from tcompile.graph import Graph, TensorType, draw, ops, verify
from tcompile.graph.op import EVERYWHERE, INPUT, OPS, Aliasing, Op, define, op_named
from tcompile.transforms.decompose import COMPOSED

POINTWISE = [op for op in OPS.values() if op.kind == "pointwise"]
CONTROL = {op for op in OPS.values() if op.kind == "control"}
WITH_TWO_DTYPES = {ops.ASTYPE, ops.WHERE}  # functions of their own in the code generators
ATTRS = {ops.ASTYPE: {"dtype": "complex128"}, ops.ORDERED: {"axes": (0,)}}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf, 1e-30, 3e4]
DTYPES = ["bool", "int8", "int64", "uint8", "uint64", "float16", "float32", "float64", "complex64", "complex128"]


def special(dtype):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(SPECIAL if np.dtype(dtype).kind in "fc" else [0, 1, 1, 2, 3, 5, 7, 9, 100, 120]).astype(dtype)


def given(op, dtype):
    """Operands of an element-by-element operation; None where it takes none of this dtype."""
    x = special(dtype)
    pairs = [np.array(column) for column in zip(*itertools.product(x, repeat=min(2, op.arity)), strict=True)]
    operands = [*pairs, *pairs[: op.arity - len(pairs)]]
    if op is ops.WHERE:
        operands[0] = operands[0].astype("bool")
    try:
        op.infer([TensorType(o.dtype, o.shape) for o in operands], ATTRS.get(op, {}))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            op.reference(np)(*operands, **ATTRS.get(op, {}))
    except (GraphError, TypeError, ValueError, ArithmeticError):
        return None
    return operands


# -- the table --------------------------------------------------------------------------------------------------------
def test_each_row_has_its_name_in_capitals():
    rows = {name: op for name, op in vars(ops).items() if isinstance(op, Op)}
    assert rows == {**{name.upper(): op for name, op in OPS.items()}, "INPUT": INPUT}
    assert set(rows) <= set(ops.__all__)


def test_an_operation_stays_the_same_object():
    for op in (*OPS.values(), INPUT):
        assert pickle.loads(pickle.dumps(op)) is copy.deepcopy(op) is copy.copy(op) is op_named(op.name) is op
        assert op != op.name and str(op) == op.name and hash(op) == object.__hash__(op)
    with pytest.raises(GraphError, match="unknown operation 'nope'"):
        op_named("nope")
    with pytest.raises(GraphError, match="'add' is defined twice"):
        define(ops.ADD)
    with pytest.raises(GraphError, match="call: no rule works out its type"):
        ops.apply(Graph("g"), "call")


# -- facts ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", [op for op in POINTWISE if op.effects.signals in ("never", "inexact")], ids=str)
def test_what_is_said_to_be_quiet_warns_of_nothing(op):
    for dtype in DTYPES:
        kind, never = np.dtype(dtype), op.effects.signals == "never"
        operands = given(op, dtype)
        if operands is None or kind.char in op.effects.loud or not (never or kind.kind in "biu"):
            continue
        with warnings.catch_warnings(), np.errstate(all="warn"):
            warnings.simplefilter("error")
            op.reference(np)(*operands, **ATTRS.get(op, {}))


@pytest.mark.parametrize("op", POINTWISE, ids=str)
def test_results_of_elements_own_their_memory(op):
    assert op.memory is Aliasing.FRESH
    for dtype in ("int64", "float64", "complex128"):
        operands = given(op, dtype)
        if operands is None:
            continue
        with np.errstate(all="ignore"):
            made = op.reference(np)(*operands, **ATTRS.get(op, {}))
        assert made.base is None and not any(np.shares_memory(made, operand) for operand in operands)


def test_memory_follows_from_the_kind_of_operation():
    for op in OPS.values():
        assert (op.memory is Aliasing.VIEW) == (op.kind == "view") == (op.fusion == "view")
        assert op.memory is Aliasing.FRESH or op.kind not in ("pointwise", "reduction", "creation")
        assert op.memory is Aliasing.MAY_ALIAS or op.kind != "control"
        stated = (ops.CALL, ops.PYTHON_CALL, ops.SCALAR_LOOP, ops.TENSOR_CALL)
        assert (op.type_rule is None) == (op.kind == "control" or op in stated)
        assert set(op.exact) <= {"f", "c"} or op.exact == EVERYWHERE
        assert op.cost > 0


# -- tables keyed by operations ---------------------------------------------------------------------------------------
def complete(lowerings, refused):
    """Each element-by-element operation has a lowering, or a reason for having none; and nothing else has."""
    assert set(POINTWISE) - WITH_TWO_DTYPES == (lowerings.keys() - LOWERED) | refused.keys()
    assert not lowerings.keys() & refused.keys() and all(refused.values())
    assert LOWERED <= lowerings.keys()


def test_llvm_lowers_every_operation_or_says_why_not():
    complete(llvm.LOWERINGS, llvm.REFUSED)


def test_triton_lowers_every_operation_or_says_why_not():
    from tcompile.backends.triton import pointwise as triton

    complete(triton.LOWERINGS, triton.REFUSED)


def test_kernels_reduce_every_reduction_or_it_is_decomposed():
    reductions = {op for op in OPS.values() if op.kind == "reduction"}
    assert admission.REDUCTIONS | (COMPOSED - {ops.CLIP}) == reductions
    assert not admission.REDUCTIONS & COMPOSED


def test_both_code_generators_write_every_scan():
    from tcompile.backends.llvm.kernels import scans as llvm_scans
    from tcompile.backends.triton import scans as triton_scans

    assert llvm_scans.STEPS.keys() == triton_scans.SCANS == {op.name for op in OPS.values() if op.fusion == "scan"}


def test_the_frontend_takes_on_complex_numbers_what_kernels_can_compute():
    assert ufuncs.ON_COMPLEX == {op.name for op in COMPLEX.keys() - {ops.ORDERED}}


def test_every_operation_with_regions_is_checked_and_drawn():
    assert verify.CONTROL.keys() == CONTROL
    assert verify.REGIONS.keys() == draw.CAPTIONS.keys() == CONTROL - {ops.GET}
