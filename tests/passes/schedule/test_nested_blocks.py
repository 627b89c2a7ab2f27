"""Primitives on blocks inside of blocks: what stands around them is known, and is not a use of the buffers."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.dialects.arith import Analyzer
from mirstack.parser import parse_mir
from mirstack.passes.schedule import Schedule
from mirstack.passes.schedule.analysis.block_kind import driving_variables
from mirstack.passes.schedule.analysis.structure import in_order, loops_above, runs_before
from test_primitives import scheduled

NESTED = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.block("row"):
            vi = T.axis.spatial(8, i)
            for j in range(8):
                with T.block("B"):
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def test_reindex() -> None:
    """What the block around declares is not another use of the buffers, and its axes have known values."""

    def steps(s: Schedule) -> None:
        s.reindex(s.get_block("B"), ("read", 0))
        s.reindex(s.get_block("B"), ("write", 0))

    text = scheduled(NESTED, steps)
    assert "A_reindex[v0] = A[vi, v0]" in text
    assert "B[vi, v0] = B_reindex[v0]" in text


def test_a_map_of_one_index() -> None:
    text = scheduled(NESTED, lambda s: s.reindex_cache_read(s.get_block("B"), 0, "local", lambda j: j))
    assert "A_local[v0] = A[vi, v0]" in text


def test_order_of_nested_blocks() -> None:
    """A block neither precedes nor follows the one around it; in order, the outer one comes first."""
    sch = Schedule(parse_mir(NESTED, "<test>"))
    outer, inner = sch.resolve(sch.get_block("row")), sch.resolve(sch.get_block("B"))
    assert not runs_before(outer, inner) and not runs_before(inner, outer)
    assert in_order([inner, outer], sch.state.function()) == [outer, inner]


def test_variables_that_drive_axes() -> None:
    sch = Schedule(parse_mir(NESTED, "<test>"))
    inner = sch.resolve(sch.get_block("B"))
    (loop,) = loops_above(inner)
    assert driving_variables(inner, "S") == {loop.loop_var} and driving_variables(inner, "R") == set()
    assert Analyzer().variable(loop.loop_var).payload is loop.loop_var
    with pytest.raises(ValueError, match="only a variable can be bound"):
        Analyzer().variable(3)


def test_numbers_of_other_types_in_dictionaries_of_a_trace() -> None:
    sch = Schedule(parse_mir(NESTED, "<test>"))
    sch.annotate(sch.get_block("B"), "sizes", {"rows": np.int64(4), "all": [np.int32(1)]})
    assert sch.trace[-1].arguments["ann_val"] == {"rows": 4, "all": [1]}
    assert "'rows': 4" in str(sch.trace) or '"rows": 4' in str(sch.trace)
