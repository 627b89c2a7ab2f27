"""Primitives on blocks inside of blocks: what stands around them is known, and is no use of the buffers."""

from __future__ import annotations

from mirstack.passes.schedule import Schedule
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
    """What the block around declares is no other use of the buffers, and its axes have known values."""

    def steps(s: Schedule) -> None:
        s.reindex(s.get_block("B"), ("read", 0))
        s.reindex(s.get_block("B"), ("write", 0))

    text = scheduled(NESTED, steps)
    assert "A_reindex[v0] = A[vi, v0]" in text
    assert "B[vi, v0] = B_reindex[v0]" in text


def test_a_map_of_one_index() -> None:
    text = scheduled(NESTED, lambda s: s.reindex_cache_read(s.get_block("B"), 0, "local", lambda j: j))
    assert "A_local[v0] = A[vi, v0]" in text
