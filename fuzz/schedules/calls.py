"""`Caller`: each schedule primitive called with random arguments, on any block or loop, also nested."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ...dialects import tir
from ...passes.schedule import Schedule
from ...passes.schedule.analysis.structure import read_regions, write_regions

INDEX_MAPS: list[Callable[..., Sequence[Any]]] = [
    lambda *v: list(v),
    lambda *v: list(v[::-1]),
    lambda *v: [*v[:-1], v[-1] // 2, v[-1] % 2],
    lambda *v: [v[0] // 3, v[0] % 3, *v[1:]],
    lambda *v: [v[0] * 7 + v[-1]],
    lambda *v: [*v[1:], v[0] * 2],
    lambda *v: [v[0] * 4 + v[1], *v[2:]] if len(v) > 1 else list(v),
    lambda *v: [v[0] // 2],
    lambda *v: [v[0] + 1, *v[1:]],
    lambda *v: [0, *v],
]

FACTORS: list[list[int | None]] = [[None, 2], [None, 3], [2, None], [3, None], [None, 2, 1], [1, None], [None, 1], [2, None, 2], [4, None], [3, 5]]  # fmt: skip

SCOPES = ["local", "global", "shared"]


class Caller:
    """Calls primitives with arguments drawn at random; `called` says what was called, as text."""

    def __init__(self, schedule: Schedule, draw: random.Random):
        self.schedule, self.draw, self.called = schedule, draw, ""

    def blocks(self) -> list[Any]:
        found: list[Any] = []
        pending = list(self.schedule.get_child_blocks(self.schedule.get_block("root")))
        while pending:
            block = pending.pop(0)
            found.append(block)
            pending += self.schedule.get_child_blocks(block)
        return found

    def block(self) -> Any:
        return self.draw.choice(self.blocks())

    def loops(self) -> list[Any]:
        found = self.schedule.get_loops(self.block())
        if not found:
            raise IndexError
        return list(found)

    def loop(self) -> Any:
        return self.draw.choice(self.loops())

    def _reduced(self) -> Any:
        """Returns a block with reduction axes if there is one, and a loop around it."""
        blocks = self.blocks()
        chosen = [b for b in blocks if any(k.data == "R" for k in self.schedule.resolve(b).iter_types.data)]  # pyright: ignore[reportAttributeAccessIssue]
        return self.draw.choice(chosen or blocks)

    def arguments(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments for a primitive."""
        draw = self.draw
        unit = {"preserve_unit_iters": draw.random() < 0.6}
        number = draw.choice([0, 0, 0, 1])
        match name:
            case "split":
                return (self.loop(), draw.choice(FACTORS)), unit
            case "loop_partition":
                return (self.loop(), draw.choice([[1, None], [2, None], [None, 1], [1, 1, None], [None, 2], [1]])), unit
            case "merge":
                return tuple(self.loop() for _ in range(2)), {}
            case "fuse":
                loops = self.loops()
                start = draw.randrange(len(loops))
                return tuple(loops[start : start + draw.randint(1, 3)]), unit
            case "reorder":
                loops = self.loops()
                return tuple(draw.sample(loops, draw.randint(1, len(loops)))), {}
            case "reorder_block_iter_var":
                block = self.block()
                order = list(range(len(self.schedule.resolve(block).iter_names.data)))  # pyright: ignore[reportAttributeAccessIssue]
                draw.shuffle(order)
                return (block, order), {}
            case "add_unit_loop":
                return (draw.choice([self.block, self.loop])(),), {}
            case "parallel" | "vectorize" | "unroll":
                return (self.loop(),), {}
            case "bind":
                return (self.loop(), draw.choice(["threadIdx.x", "blockIdx.x", "threadIdx.y", "vthread.x"])), {}
            case "cache_read" | "cache_write":
                listed = {"consumer_blocks": [self.block()]} if draw.random() < 0.2 else {}
                return (self.block(), number, draw.choice(SCOPES)), listed
            case "reindex_cache_read" | "reindex_cache_write":
                return (self.block(), number, draw.choice(SCOPES), draw.choice(INDEX_MAPS)), {}
            case "cache_inplace":
                return (self.block(), number, draw.choice(SCOPES)), {}
            case "cache_index":
                return (self.block(), "global", draw.choice([0, 1, 2])), {}
            case "reindex":
                return (self.block(), (draw.choice(["read", "write"]), number)), {}
            case "read_at" | "write_at":
                return (self.loop(), self.block(), number, draw.choice(SCOPES)), {}
            case "compute_at" | "reverse_compute_at":
                return (self.block(), self.loop(), draw.random() < 0.4, draw.choice([-1, -1, -2, 0, 1])), {}
            case "compute_inline" | "reverse_compute_inline":
                return (self.block(),), {}
            case "decompose_reduction":
                block = self._reduced()
                return (block, draw.choice(self.schedule.get_loops(block))), {}
            case "rfactor":
                block = self._reduced()
                return (draw.choice(self.schedule.get_loops(block)), draw.choice([0, 0, 1, -1])), {}
            case "storage_align":
                return (self.block(), number, draw.choice([0, -1]), 4, draw.choice([0, 1])), {}
            case "set_scope":
                return (self.block(), number, draw.choice(SCOPES)), {}
            case "blockize":
                if draw.random() < 0.25:
                    return ([self.block() for _ in range(draw.choice([1, 2]))],), unit
                return (draw.choice([self.block, self.loop, self.loop])(),), unit
            case "transform_layout":
                block, side = self.block(), draw.choice(["read", "write", "write"])
                regions = read_regions if side == "read" else write_regions
                buffer = regions(self.schedule.resolve(block))[number].buffer  # pyright: ignore[reportArgumentType]
                if not isinstance(buffer.owner, tir.AllocBufferOp):
                    raise IndexError  # the layout of a parameter is what callers see
                return (block, (side, number), draw.choice(INDEX_MAPS)), {"pad_value": draw.choice([None, None, 0, 5])}
            case "transform_block_layout":
                return (self.block(), draw.choice(INDEX_MAPS)), {}
            case "decompose_padding" | "omit_padding":
                block = self.block()
                return (block, draw.choice(self.schedule.get_loops(block))), {}
            case "pad_einsum":
                block = self.block()
                count = len(self.schedule.resolve(block).iter_names.data)  # pyright: ignore[reportAttributeAccessIssue]
                return (block, [draw.choice([1, 2, 4]) for _ in range(count)]), {}
            case "rolling_buffer":
                return (self.block(), number), {}
            case "set_axis_separator":
                return (self.block(), (draw.choice(["read", "write"]), number), draw.choice([[], [1], [0, 1]])), {}
            case _:
                raise ValueError(name)

    def step(self) -> None:
        """Calls one primitive. Raises ScheduleError where refused, IndexError with nothing to call it on."""
        self.call(self.draw.choice(NAMES if self.draw.random() < 0.6 else OFTEN))

    def call(self, name: str) -> None:
        """Calls a primitive."""
        args, keywords = self.arguments(name)
        getattr(self.schedule, name)(*args, **keywords)


OFTEN = ["split", "split", "fuse", "reorder", "loop_partition", "blockize", "rfactor", "decompose_reduction", "compute_at", "reverse_compute_at"]  # fmt: skip

NAMES = [
    "split", "loop_partition", "merge", "fuse", "reorder", "reorder_block_iter_var", "add_unit_loop", "parallel", "vectorize",
    "unroll", "bind", "cache_read", "cache_write", "reindex_cache_read", "reindex_cache_write", "cache_inplace", "cache_index",
    "reindex", "read_at", "write_at", "compute_at", "reverse_compute_at", "compute_inline", "reverse_compute_inline",
    "decompose_reduction", "rfactor", "storage_align", "set_scope", "blockize", "transform_layout", "transform_block_layout",
    "decompose_padding", "omit_padding", "pad_einsum", "rolling_buffer", "set_axis_separator",
]  # fmt: skip
