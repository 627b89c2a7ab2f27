"""Draws calls of the primitives that the other files omit: queries, annotations, partitions, layouts."""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.tir import AllocBufferOp
from ...passes.schedule.analysis.structure import buffers_written
from .block_moves import MAPS, Playing, any_block, any_loop


def loop_partition(game: Playing) -> None:
    """A loop as two or three, one after the other."""
    game.schedule.loop_partition(
        any_loop(game), game.draw.choice([[None, 2], [2, None], [3, None], [None, 1, 2], [1, 2]])
    )


def merge(game: Playing) -> None:
    """The first loops of two blocks, or some of one."""
    s = game.schedule
    loops = [s.get_loops(game.block())[0] for _ in range(2)]
    s.merge(*loops)


def reorder_axes(game: Playing) -> None:
    """The axes of a block in another order."""
    block = any_block(game)
    count = sum(op.name == "tir.iter_var" for op in game.schedule.get(block).body.block.ops)
    order = list(range(count))
    game.draw.shuffle(order)
    game.schedule.reorder_block_iter_var(block, order)


def add_unit_loop(game: Playing) -> None:
    """A loop of one iteration."""
    game.schedule.add_unit_loop(any_block(game) if game.draw.random() < 0.5 else any_loop(game))


def bind(game: Playing) -> None:
    """A loop to threads."""
    game.schedule.bind(any_loop(game), game.draw.choice(["threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread.x"]))


def queries(game: Playing) -> None:
    """Calls primitives that change nothing."""
    s = game.schedule
    s.get_output_blocks(s.get_block("root"))
    block = any_block(game)
    s.get_producers(block)
    s.get_consumers(block)
    s.get_loops(block)


def annotate(game: Playing) -> None:
    """An annotation put on and taken off."""
    s, draw = game.schedule, game.draw
    target = any_block(game) if draw.random() < 0.5 else any_loop(game)
    s.annotate(target, "note", draw.choice([1, "text", [1, 2]]))
    if draw.random() < 0.7:
        s.unannotate(target, "note")


def storage_align(game: Playing) -> None:
    """Pads the rows of a buffer."""
    game.schedule.storage_align(
        any_block(game), 0, game.draw.choice([0, -1]), game.draw.choice([4, 8]), game.draw.choice([0, 1])
    )


def set_scope(game: Playing) -> None:
    """A buffer in another memory."""
    game.schedule.set_scope(any_block(game), 0, game.draw.choice(["shared", "local"]))


def unsafe_set_dtype(game: Playing) -> None:
    """A buffer of a wider dtype."""
    s = game.schedule
    block = any_block(game)
    buffers = list(buffers_written(s.get(block)))
    if buffers and isinstance(buffers[0].owner, AllocBufferOp):
        name = str(buffers[0].type)
        s.unsafe_set_dtype(
            block, 0, "float64" if "f" in name.rpartition(",")[2] or "f32" in name or "f16" in name else "int64"
        )


def transform_block_layout(game: Playing) -> None:
    """Other axes of a block."""
    game.schedule.transform_block_layout(any_block(game), game.draw.choice(MAPS))


def set_axis_separator(game: Playing) -> None:
    """Dimensions of a buffer in groups."""
    game.schedule.set_axis_separator(any_block(game), ("write", 0), game.draw.choice([[1], [], None]))


def pad_einsum(game: Playing) -> None:
    """Loops up to multiples."""
    block = any_block(game)
    count = sum(op.name == "tir.iter_var" for op in game.schedule.get(block).body.block.ops)
    game.schedule.pad_einsum(block, [game.draw.choice([1, 2, 4, 8]) for _ in range(count)])


def omit_padding(game: Playing) -> None:
    """A padding that is not stored."""
    block = any_block(game)
    game.schedule.omit_padding(block, game.draw.choice(game.schedule.get_loops(block)))


def control(game: Playing) -> None:
    """Marks in the trace."""
    if game.draw.random() < 0.5:
        game.schedule.enter_postproc()
    else:
        game.schedule.work_on("main")


MOVES: list[Callable[[Playing], None]] = [
    loop_partition, loop_partition, merge, reorder_axes, add_unit_loop, bind, queries, annotate, storage_align, set_scope, unsafe_set_dtype,
    transform_block_layout, transform_block_layout, set_axis_separator, pad_einsum, pad_einsum, omit_padding, control,
]  # fmt: skip
