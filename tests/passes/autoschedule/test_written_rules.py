"""Schedule rules in programs that are compiled: kernels in modules of their own, in other processes, from the cache; loaded rules."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.dialects import tir
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from mirstack.passes.registry import PASSES as ENTRIES
from mirstack.support import extensions
from mirstack.support.diagnostics import MirError
from xdsl.context import Context

PASSES = {entry.name: entry for entry in ENTRIES}

RULE = """rule for nn.dense(%x, %w) where $rows = 4
@T.schedule
def dense_rows(sch, rows):
    i, j, k = sch.get_loops("T_matmul_NT")
    sch.split(i, [None, rows])
"""
INTRINSIC = """@T.prim_func
def row_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (1,), offset_factor=1)
    B = T.match_buffer(b, (8,), offset_factor=1)
    C = T.match_buffer(c, (8,), offset_factor=1)
    with T.block("root"):
        for j in range(8):
            with T.block("C"):
                vj = T.axis.spatial(8, j)
                C[vj] = C[vj] + A[0] * B[vj]

@T.prim_func
def row_impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (1,), offset_factor=1)
    B = T.match_buffer(b, (8,), offset_factor=1)
    C = T.match_buffer(c, (8,), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:8], A[0], B[0:8])
        T.writes(C[0:8])
        C[0:8] = C[0:8] + T.Broadcast(A[0], 8) * B[0:8]

TensorIntrin.register("row8", row_desc, row_impl)
"""
ROWS = """
rule for nn.matmul(%x, %w)
@T.schedule
def rows(sch):
    block = sch.get_block("T_matmul_NN")
    i, j, k = sch.get_loops(block)
    jo, ji = sch.split(j, [None, 8])
    sch.reorder(i, jo, k, ji)
    sch.decompose_reduction(block, k)
    sch.tensorize(ji, "row8")
"""
PRODUCT = """
def @main(%x: Tensor[(8, 32), float32], %w: Tensor[(16, 32), float32]) {
  nn.relu(nn.matmul(%x, transpose(%w)))
}
"""
PROGRAM = """
def @main(%x: Tensor[(8, 32), float32], %w: Tensor[(16, 32), float32]) { nn.relu(nn.dense(%x, %w)) }
"""


def run(text: str) -> None:
    net = mirstack.compile(mirstack.parse(text))
    x, w = (
        np.random.default_rng(seed).standard_normal(shape, "float32") for seed, shape in enumerate([(8, 32), (16, 32)])
    )
    np.testing.assert_allclose(net(x, w), np.maximum(x @ w.T, 0), rtol=1e-4, atol=1e-4)


def test_a_rule_schedules_kernels_of_a_program(kept_kernels: None):
    run(RULE + PROGRAM)
    # Another rule is another kernel, though the program is the same: its primitive is refused.
    wrong = RULE.replace("T_matmul_NT", "nowhere")
    for _ in range(2):
        with pytest.raises(
            MirError,
            match=r"the schedule rule 'dense_rows\(rows=4\)' stops at function 'fused_nn_dense_nn_relu': function 'fused_nn_dense_nn_relu' has no block 'nowhere'",
        ):
            run(wrong + PROGRAM)
    run("optional " + wrong + PROGRAM)


def test_a_rule_schedules_kernels_of_open_sizes():
    text = (RULE + PROGRAM).replace("(8, 32)", "(?, 32)").replace("nn.relu(nn.dense(%x, %w))", "nn.dense(%x, %w)")
    net = mirstack.compile(mirstack.parse(text))
    for rows in (1, 9, 70):
        x, w = np.ones((rows, 32), "float32"), np.full((16, 32), 0.5, "float32")
        np.testing.assert_allclose(net(x, w), x @ w.T)


def test_loaded_rules_are_for_every_program_after_its_own():
    (rule,) = parse_mir(RULE.replace("T_matmul_NT", "nowhere")).ops
    extensions.register("schedule.rule", "dense_rows", rule, origin="a test", text=RULE)
    try:
        with pytest.raises(MirError, match="has no block 'nowhere'"):
            run(PROGRAM)
        run(RULE + PROGRAM)
        run(RULE.replace("dense_rows", "first") + PROGRAM)
    finally:
        extensions.forget("schedule.rule", "dense_rows")
    run(PROGRAM)


SCRIPT = """
@T.prim_func
def other(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = 1.0

@T.schedule(other)
def other_schedule(sch):
    sch.vectorize(sch.get_loops("A")[0])
"""


def test_intrinsics_stay_where_schedules_are_applied_and_printed():
    run(INTRINSIC + SCRIPT + ROWS + PRODUCT)
    module = parse_mir(INTRINSIC + ROWS + PRODUCT)
    for name in ("fuse-ops", "match-schedule-rules", "lower-relay-to-te", "lower-te-to-tir"):
        PASSES[name].load()().apply(Context(), module)
    DefaultSchedule(print=True).apply(Context(), module)
    assert 'sch.tensorize(i1_1, tensor_intrin="row8")' in print_mir(module)


def test_rules_name_intrinsics_of_the_program_and_of_loaded_files():
    run(INTRINSIC + ROWS + PRODUCT)
    with pytest.raises(MirError, match="there is no tensor intrinsic 'row8'"):
        run(ROWS + PRODUCT)
    halves = [op for op in parse_mir(INTRINSIC).ops if isinstance(op, tir.PrimFuncOp)]
    for half in halves:
        extensions.register("tir.prim_func", half.sym_name.data, half, origin="a test", text=INTRINSIC)
    try:
        run(ROWS + PRODUCT)
    finally:
        for half in halves:
            extensions.forget("tir.prim_func", half.sym_name.data)
