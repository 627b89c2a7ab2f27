"""Vector loads and stores of buffers that lie in a region of another, in loops that run as array axes."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.api.compile import compile
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj * 4:vj * 4 + 4])
            T.writes(B[vi, vj * 4:vj * 4 + 4])
MATCHES
            Y[Q] = X[P] * T.Broadcast(T.float32(3), 4) + T.Broadcast(T.float32(1), 4)
"""

REGIONS = {
    "rows": ("A[vi, vj * 4:vj * 4 + 4], (4,)", "0:4"),
    "planes": ("A[vi:vi + 1, vj * 4:vj * 4 + 4], (1, 4)", "0, 0:4"),
    "offsets": ("A[vi, 0:16], (16,)", "vj * 4:vj * 4 + 4"),
}


@pytest.mark.parametrize("read", REGIONS)
@pytest.mark.parametrize("written", REGIONS)
def test_every_lane_of_every_turn(read: str, written: str) -> None:
    source, at = REGIONS[read]
    target, into = REGIONS[written]
    matches = f"            X = T.match_buffer({source})\n            Y = T.match_buffer({target.replace('A', 'B')})"
    text = PROGRAM.replace("MATCHES", matches).replace("X[P]", f"X[{at}]").replace("Y[Q]", f"Y[{into}]")
    module = parse_mir(text)
    function = module.body.block.first_op
    assert isinstance(function, PrimFuncOp)
    given = np.arange(128, dtype=np.float32).reshape(8, 16)
    values = {"A": given, "B": np.zeros_like(given)}
    interpret_prim_func(function, values, module)
    np.testing.assert_array_equal(values["B"], given * 3 + 1)


def test_what_is_stored_through_a_region_is_an_output() -> None:
    source, at = REGIONS["rows"]
    matches = f"            X = T.match_buffer({source})\n            Y = T.match_buffer({source.replace('A', 'B')})"
    text = PROGRAM.replace("MATCHES", matches).replace("X[P]", f"X[{at}]").replace("Y[Q]", f"Y[{at}]")
    for target in ("interp", "cpu"):
        executable = compile(parse_mir(text), target=target)
        assert {param.name: param.is_output for param in executable.params} == {"A": False, "B": True}


PREDICATED = """
@T.prim_func
def main(A: T.Buffer((2, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((2, 4), "int32")):
    for i in range(4):
        B[i, 0:4] = A.vload([i - 1, T.Ramp(0, 1, 4)], predicate=T.Broadcast(1 <= i and i < 3, 4))
    for i in range(4):
        C.vstore([i - 1, T.Ramp(0, 1, 4)], B.vload([i, T.Ramp(0, 1, 4)]) * T.Broadcast(2, 4), predicate=T.Broadcast(1 <= i and i < 3, 4))
"""


def test_lanes_that_are_left_out_may_be_outside_in_every_dimension() -> None:
    module = parse_mir(PREDICATED)
    given = np.arange(8, dtype=np.int32).reshape(2, 4)
    for target in ("interp", "cpu"):
        b, c = np.ones((4, 4), np.int32), np.zeros((2, 4), np.int32)
        compile(module, target=target)(given, b, c)
        np.testing.assert_array_equal(b, np.pad(given, ((1, 1), (0, 0))))
        np.testing.assert_array_equal(c, given * 2)
