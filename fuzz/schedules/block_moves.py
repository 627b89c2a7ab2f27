"""Draws calls of rfactor, blockize, tensorize, reindex, cache_index, cache_inplace; programs for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

from ...dialects.tir import ForOp
from ...parser import parse_mir
from ...passes.schedule import LoopRV, Schedule
from ...passes.schedule.analysis.structure import const_int
from ...passes.schedule.engine.tensor_intrinsics import TensorIntrin


class Playing(Protocol):
    """The interface of a move: the schedule, and the source of randomness."""

    schedule: Schedule
    draw: random.Random

    def block(self) -> Any: ...

    def loop(self) -> LoopRV: ...


ARGMAX = """
@T.prim_func
def main(A: T.Buffer((6, 20), "float32"), X: T.Buffer((6,), "float32"), V: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 20):
        with T.block("V"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                X[vi] = T.float32(-1)
                V[vi] = T.float32(-100)
            x: T.float32 = T.Select(V[vi] >= A[vi, vk], X[vi], A[vi, vk] * T.float32(2))
            v: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            X[vi] = x
            V[vi] = v
"""

UPDATES = """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), B: T.Buffer((12, 10), "float32"), C: T.Buffer((10, 12), "float32")):
    for i, j in T.grid(12, 10):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] * T.float32(2) + B[vi, vj]
    for i, j in T.grid(10, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vj, vi] + B[vj // 2 + vi // 4, vj % 5 + vi // 3]
    for i, j in T.grid(12, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = B[vi, vj] + A[11 - vi, vj]
"""

POOL = """
@T.prim_func
def main(A: T.Buffer((2, 10, 10), "float32"), D: T.Buffer((2, 4, 4), "float32")):
    B = T.alloc_buffer((2, 10, 10))
    C = T.alloc_buffer((2, 4, 4))
    for c, i, j in T.grid(2, 10, 10):
        with T.block("B"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            B[vc, vi, vj] = A[vc, vj, vi] + T.float32(1)
    for c, i, j, r, s in T.grid(2, 4, 4, 4, 4):
        with T.block("C"):
            vc, vi, vj, vr, vs = T.axis.remap("SSSRR", [c, i, j, r, s])
            with T.init():
                C[vc, vi, vj] = T.float32(-9)
            C[vc, vi, vj] = T.max(C[vc, vi, vj], B[vc, vi * 2 + vr, vj * 2 + vs])
    for c, i, j in T.grid(2, 4, 4):
        with T.block("D"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            D[vc, vi, vj] = C[vc, 3 - vi, vj] * B[vc, vi, vj]
"""

OVERWRITTEN = """
@T.prim_func
def main(A: T.Buffer((16, 10), "float32"), D: T.Buffer((16, 10), "float32"), X: T.Buffer((16, 10), "float32")):
    B = T.alloc_buffer((16, 10))
    C = T.alloc_buffer((16, 10))
    for i, j in T.grid(16, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + X[vi, vj]
    for i, j in T.grid(16, 10):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = C[15 - vi, vj]
    for i, j in T.grid(16, 10):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = T.float32(3)
    for i, j in T.grid(16, 10):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + A[vi, vj]
"""

PROGRAMS = {"overwritten": OVERWRITTEN, "argmax": ARGMAX, "updates": UPDATES, "pool": POOL}

TWICE = """
@T.prim_func
def twice(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            B[vi] = A[vi] * T.float32(2)
"""

TWICE_BACKWARD = """
@T.prim_func
def twice(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    for i in range(5):
        B[4 - i] = A[4 - i] + A[4 - i]
"""

DOT = """
@T.prim_func
def dot(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
    for k in range(4):
        with T.block("C"):
            vk = T.axis.reduce(4, k)
            C[0] = C[0] + A[vk] * B[vk]
"""

DOT_AT_ONCE = """
@T.prim_func
def dot(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
    C[0] = C[0] + (A[0] * B[0] + A[1] * B[1] + A[2] * B[2] + A[3] * B[3])
"""

for _name, _desc, _impl in (("random twice", TWICE, TWICE_BACKWARD), ("random dot", DOT, DOT_AT_ONCE)):
    TensorIntrin.register(
        _name, parse_mir(_desc).body.block.first_op, parse_mir(_impl).body.block.first_op, override=True
    )


def any_block(game: Playing) -> Any:
    """A block of the function, or sometimes one in another block."""
    block = game.block()
    while game.draw.random() < 0.5:
        inner = game.schedule.get_child_blocks(block)
        if not inner:
            break
        block = game.draw.choice(inner)
    return block


def any_loop(game: Playing) -> LoopRV:
    """A loop around such a block; the innermost as often as any other."""
    loops = game.schedule.get_loops(any_block(game))
    return loops[-1] if game.draw.random() < 0.5 else game.draw.choice(loops)


def split_last(game: Playing) -> None:
    loops = game.schedule.get_loops(any_block(game))
    game.schedule.split(loops[-1], [None, game.draw.choice([2, 4, 5])])


def rfactor(game: Playing) -> None:
    game.schedule.rfactor(any_loop(game), game.draw.choice([0, 0, 1, -1, 2]))


def blockize(game: Playing) -> None:
    if game.draw.random() < 0.2:
        count = game.draw.choice([1, 2, 2])
        game.schedule.blockize([any_block(game) for _ in range(count)], game.draw.random() < 0.5)
    else:
        game.schedule.blockize(any_loop(game), game.draw.random() < 0.5)


def tensorize(game: Playing) -> None:
    """Tensorizes a loop nest that may match the intrinsic, often enough."""
    if game.draw.random() < 0.3:
        target = any_block(game) if game.draw.random() < 0.5 else any_loop(game)
        game.schedule.tensorize(target, game.draw.choice(["random twice", "random dot"]))
        return
    loop = game.schedule.get_loops(any_block(game))[-1]
    op = game.schedule.get(loop)
    assert isinstance(op, ForOp)
    game.schedule.tensorize(loop, "random twice" if const_int(op.extent) == 5 else "random dot")


def reindex(game: Playing) -> None:
    game.schedule.reindex(any_block(game), (game.draw.choice(["read", "write"]), game.draw.choice([0, 0, 1])))


MAPS: list[Callable[..., list[Any]]] = [
    lambda *v: list(v),
    lambda *v: list(v[::-1]),
    lambda *v: [*v[:-1], v[-1] // 2, v[-1] % 2],
    lambda *v: [v[0] // 2],
    lambda *v: [*v[1:], v[0] * 2],
]


def reindex_cache(game: Playing) -> None:
    call = game.draw.choice([game.schedule.reindex_cache_read, game.schedule.reindex_cache_write])
    call(any_block(game), game.draw.choice([0, 0, 1]), "local", game.draw.choice(MAPS))


def cache_index(game: Playing) -> None:
    game.schedule.cache_index(any_block(game), "global", game.draw.choice([0, 0, 1, 2]))


def cache_inplace(game: Playing) -> None:
    game.schedule.cache_inplace(any_block(game), game.draw.randrange(2), "local")


MOVES: list[Callable[[Playing], None]] = [
    split_last,
    rfactor,
    rfactor,
    blockize,
    blockize,
    tensorize,
    tensorize,
    reindex,
    reindex_cache,
    cache_index,
    cache_inplace,
]
