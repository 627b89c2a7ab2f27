"""Contractions: dense, matmul, batch_matmul, convolution, known by what they compute, not by name.

C[m, n] += A[m, k] * B[n, k]: B is packed in panels of whole vectors along n, a tile of m x n is kept in vector registers
while k runs, and what follows (bias, activation) is applied to the tile before it is stored. The scheme is that of Goto
and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), in the words of BLIS (Van Zee and van de Geijn,
2015), with the panel of A left where it is: its elements are broadcast from memory.

`match` finds contractions, `tile` chooses the register tile, `pack` lays panels out, `gemm` orders the loops, `blocked` blocks k
where that keeps what is read again in a cache, `padded` skips the padding, `epilogue` takes the tile out of the registers. Matrices that are
multiplied by few rows are limited by how fast they are read: `dot` and `gevm` read them in place.
"""

from ....support.target import Target
from ...schedule import BlockRV, Schedule
from ..loop_nests import own_loops
from . import dot, gevm
from .epilogue import store_tile, take_out
from .gemm import MIN_ROWS, MIN_WORK, pays, schedule_contraction
from .match import Contraction, match_contraction
from .pack import lanes_innermost
from .sums import share_out, split_rows
from .tile import Tile, choose_tile


def schedule_by_shape(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> bool:
    """Schedules a contraction by the scheme that suits its shape; False where any reduction is as good."""
    turned = match.turned() if dot.is_narrow(match, target) else None
    if turned is not None and gevm.suits(turned, target):
        gevm.schedule_gevm(sch, block, turned, target)
    elif dot.suits(match, target):
        dot.schedule_dot(sch, block, match, target)
    elif gevm.suits(match, target):
        gevm.schedule_gevm(sch, block, match, target)
    elif pays(match):
        schedule_contraction(sch, block, match, target)
    else:
        return False
    return True


__all__ = [
    "MIN_ROWS",
    "MIN_WORK",
    "Contraction",
    "Tile",
    "choose_tile",
    "lanes_innermost",
    "match_contraction",
    "own_loops",
    "pays",
    "schedule_by_shape",
    "schedule_contraction",
    "share_out",
    "split_rows",
    "store_tile",
    "take_out",
]
