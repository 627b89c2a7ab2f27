"""cache_index: expressions of a block's axes, computed to buffers before it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mirstack.parser import parse_mir
from mirstack.passes.schedule import Schedule
from mirstack.support.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from test_primitives import refused, scheduled

RESIZE = """
@T.prim_func
def main(A: T.Buffer((3, 12, 12), "float32"), B: T.Buffer((3, 16, 24), "float32")):
    for c, i, j in T.grid(3, 16, 24):
        with T.block("B"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            B[vc, vi, vj] = A[vc, vi // 4 + vj // 4, vj // 2]
"""

BLEND = """
@T.prim_func
def main(A: T.Buffer((13,), "float32"), B: T.Buffer((24,), "float32")):
    for i in range(24):
        with T.block("B"):
            vi = T.axis.spatial(24, i)
            B[vi] = A[vi // 2] * (T.float32(1) - T.Cast("float32", vi % 2) * T.float32(0.5)) + A[vi // 2 + 1] * (T.Cast("float32", vi % 2) * T.float32(0.5)) + A[vi // 2]
"""


def index(threshold: int = 0, scope: str = "global") -> Any:
    """The primitive on block B."""
    return lambda s: s.cache_index(s.get_block("B"), scope, threshold)


def test_indices_of_loads() -> None:
    text = scheduled(RESIZE, index())
    assert 'index_var_0 = T.alloc_buffer((16, 24), "int32")' in text
    assert "index_var_0[v0, v1] = v0 // 4 + v1 // 4" in text
    assert "index_var_1[v0] = v0 // 2" in text
    assert "B[vc, vi, vj] = A[vc, index_var_0[vi, vj], index_var_1[vj]]" in text
    assert "index_var_0[vi, vj], index_var_1[vj])" in text[text.index('T.block("B")') :]


def test_repeated_expressions() -> None:
    text = scheduled(BLEND, index(2))
    assert 'index_var_0[v0] = T.Cast("float32", v0 % 2) * T.float32(0.5)' in text
    assert "index_var_1[v0] = v0 // 2" in text
    assert "A[index_var_1[vi]] * (T.float32(1) - index_var_0[vi])" in text
    text = scheduled(BLEND, index(3))
    assert "index_var_0[v0] = v0 // 2" in text
    assert "index_var_1" not in text


def test_results_are_the_blocks() -> None:
    def steps(s: Schedule) -> None:
        assert [s.resolve(b) for b in index()(s)] == [
            s.resolve(s.get_block("index_0")),
            s.resolve(s.get_block("index_1")),
        ]

    scheduled(RESIZE, steps)


def test_nothing_to_compute() -> None:
    plain = RESIZE.replace("vi // 4 + vj // 4, vj // 2", "0, 0")
    found: list[Any] = []
    scheduled(plain, lambda s: found.append(index()(s)))
    assert found == [[]]


def test_what_varies_otherwise_stays() -> None:
    inner = """
@T.prim_func
def main(A: T.Buffer((24,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32"), n: T.int32):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.float32(0)
            for k in range(3):
                B[vi] = B[vi] + A[vi * 2 + k] + A[vi + n] + A[I[vi] + 1]
"""
    module = parse_mir(inner)
    schedule = Schedule(module)
    made = schedule.cache_index(schedule.get_block("B"), "global")
    verify(module)
    assert len(made) == 1


def test_many_names() -> None:
    lets = "\n".join(f"            x{k + 1}: T.int32 = x{k} + x{k}" for k in range(60))
    deep = f"""
@T.prim_func
def main(B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            x0: T.int32 = vi * 3
{lets}
            B[vi] = x60
"""
    module = parse_mir(deep)
    schedule = Schedule(module)
    schedule.cache_index(schedule.get_block("B"), "global", 2)
    verify(module)


def test_refusals() -> None:
    assert "there is no storage scope 'shed'" in refused(RESIZE, index(0, "shed"))
    message = refused(RESIZE, index(-1))
    assert "cache_index: cse_thresh is -1" in message
    assert "give how many times an expression must occur, or 0 for the indices of loads" in message
    assert "is not a block" in refused(RESIZE, lambda s: s.cache_index(s.get_block("root"), "global"))
