"""Describes the statements of a software pipeline: accesses, stages, numbers of versions of buffers.

With stages, what statement P does in iteration p happens at time p + stage(P), in the order of the statements at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import substitute
from ....dialects.tir.attribute_values import value_of
from ....dialects.tir.buffer import buffer_name
from ....support.diagnostics import error_at
from ....support.text import counted
from ..analyzed_walk import analyzer_at

STAGE, ORDER = "software_pipeline_stage", "software_pipeline_order"
ASYNC = "software_pipeline_async_stages"
ANNOTATIONS = (STAGE, ORDER, ASYNC)

Box = tuple[tuple[Expr, Expr], ...]
"""Least index and extent in each dimension."""


@dataclass(eq=False)
class Statement:
    """One statement of the body, as a block."""

    block: tir.BlockOp
    stage: int
    order: int
    is_async: bool
    place: int
    """Its number in the body."""
    reads: dict[SSAValue, Box] = field(default_factory=dict[SSAValue, Box])
    writes: dict[SSAValue, Box] = field(default_factory=dict[SSAValue, Box])

    def accesses(self, buffer: SSAValue) -> Iterator[tuple[Box, bool]]:
        """Yields the accesses to a buffer, and whether they write."""
        if buffer in self.reads:
            yield self.reads[buffer], False
        if buffer in self.writes:
            yield self.writes[buffer], True


def numbers(loop: tir.ForOp, key: str) -> list[int]:
    """Reads an annotation that is a list of numbers of at least 0; empty without it."""
    found: object = value_of(loop.annotations.data[key]) if key in loop.annotations.data else []
    if not isinstance(found, list):
        found = [found]
    values = cast("list[object]", found)
    if not all(isinstance(n, int) and n >= 0 for n in values):
        raise error_at(loop, f"the annotation {key} of loop '{loop.var_name.data}' is not a list of numbers from 0 on")
    return cast("list[int]", values)


def make_statements(loop: tir.ForOp, blocks: Sequence[tir.BlockOp]) -> list[Statement]:
    """Makes the statements, with their stage and order of the annotations.

    Raises MirError where the annotations do not fit the body.
    """
    name = loop.var_name.data
    for key in (STAGE, ORDER):
        if key not in loop.annotations.data:
            raise error_at(loop, f"loop '{name}' is a software pipeline without {key}", f"annotate {STAGE} and {ORDER}")
    stages, orders, background = numbers(loop, STAGE), numbers(loop, ORDER), numbers(loop, ASYNC)
    for key, values in ((STAGE, stages), (ORDER, orders)):
        if len(values) != len(blocks):
            raise error_at(
                loop,
                f"{key} of loop '{name}' has {counted(len(values), 'number')}, but its body {counted(len(blocks), 'statement')}",
                "a nested pipeline counts as its prologue, body and epilogue",
            )
    if sorted(orders) != list(range(len(orders))):
        raise error_at(
            loop,
            f"{ORDER} of loop '{name}' is not an order: {orders}",
            f"it gives each statement a place of its own, from 0 to {len(orders) - 1}",
        )
    made = [
        Statement(block, stage, order, stage in background, place)
        for place, (block, stage, order) in enumerate(zip(blocks, stages, orders, strict=True))
    ]
    analyzer = Analyzer()
    for statement in made:
        for kind, boxes in ((tir.ReadsOp, statement.reads), (tir.WritesOp, statement.writes)):
            regions = statement.block.find(kind)
            for region in regions.operands if regions is not None else ():
                if isinstance(box := region.owner, tir.BufferRegionOp):
                    boxes[box.buffer] = tuple(
                        (analyzer.expr(low), analyzer.expr(extent))
                        for low, extent in zip(box.mins, box.extents, strict=True)
                    )
    return made


class Dependences:
    """The dependences between the statements of a pipeline, which must keep their order."""

    def __init__(self, loop: tir.ForOp, statements: Sequence[Statement], own: Sequence[SSAValue]):
        self.loop = loop
        self.own = set(own)
        self.users: dict[SSAValue, list[Statement]] = {}
        for statement in statements:
            for buffer in {**statement.reads, **statement.writes}:
                self.users.setdefault(buffer, []).append(statement)
        self.analyzer = analyzer_at(loop)
        self.analyzer.bind(loop.loop_var, loop.min, loop.extent)
        self.variable = self.analyzer.expr(loop.loop_var)

    def check(self) -> None:
        """Raises MirError where a statement would run before one that it depends on, whatever the versions."""
        for buffer, users in self.users.items():
            for first, second in ((a, b) for a in users for b in users if a.place < b.place):
                if self.conflict(buffer, first, second, 0) and _overtakes(first, second, 0):
                    self.refuse(buffer, first, second, 0)
            if buffer not in self.own:
                self.first_conflict(buffer, users, 1, refuse=True)

    def versions(self, buffer: SSAValue) -> int:
        """Returns how many versions of a buffer of the body's own the pipeline needs.

        As in TVM, one for each stage from the first write to the last read, and one less where no statement of a later
        stage runs after a write at the same time; more where that would overwrite what an earlier iteration still reads.
        """
        users = self.users.get(buffer, [])
        writes = [s.stage for s in users if buffer in s.writes]
        if not writes:
            return 1
        reads = [s.stage for s in users if buffer in s.reads]
        most = max(reads, default=-1) - min(writes) + 1
        count = most
        if most >= 2 and not any(
            a.order < b.order and a.stage < b.stage and not self.disjoint(a.writes[buffer], b.reads[buffer], 0)
            for a in users
            if buffer in a.writes
            for b in users
            if buffer in b.reads
        ):
            count -= 1
        count = max(count, 1)
        last = max(s.stage for s in users) - min(s.stage for s in users) + 1
        while count < last and self.first_conflict(buffer, users, count, refuse=False):
            count += 1
        self.first_conflict(buffer, users, count, refuse=True)
        return count

    def first_conflict(self, buffer: SSAValue, users: Sequence[Statement], step: int, refuse: bool) -> bool:
        """Returns whether an access wrongly overtakes one of `step`, `2 * step`, … iterations before."""
        for first in users:
            for second in users:
                for distance in range(step, first.stage - second.stage + 1, step):
                    if not _overtakes(first, second, distance):
                        continue
                    if self.conflict(buffer, first, second, distance):
                        if refuse:
                            self.refuse(buffer, first, second, distance)
                        return True
        return False

    def conflict(self, buffer: SSAValue, first: Statement, second: Statement, distance: int) -> bool:
        """Returns whether `second`, that many iterations later, must run after `first`."""
        return any(
            (writes or rewrites) and not self.disjoint(a, b, distance)
            for a, writes in first.accesses(buffer)
            for b, rewrites in second.accesses(buffer)
        )

    def disjoint(self, a: Box, b: Box, distance: int) -> bool:
        """Returns whether two boxes, the second of that many iterations later, are disjoint."""
        later = {self.variable.atom: self.variable + distance} if self.variable.atom is not None and distance else {}
        for (low, extent), (other, size) in zip(a, b, strict=True):
            start = substitute(other, later)
            end = start + substitute(size, later)
            if self.analyzer.can_prove_ge0(start - low - extent) or self.analyzer.can_prove_ge0(low - end):
                return True
        return False

    def refuse(self, buffer: SSAValue, first: Statement, second: Statement, distance: int) -> None:
        """Raises the error for two statements in the wrong order."""
        distances = "the same iteration" if not distance else f"{counted(distance, 'iteration')} later"
        if first.stage == second.stage:
            rule = "statements of one stage that depend on each other keep their order"
        else:
            rule = "a statement runs in no earlier stage than what it depends on"
        raise error_at(
            second.block,
            f"statement {second.place} of the software pipeline '{self.loop.var_name.data}' (stage {second.stage}, order {second.order}) would run before statement {first.place} (stage {first.stage}, order {first.order}), which it depends on through '{buffer_name(buffer)}' ({distances})",
            rule,
        )


def _overtakes(first: Statement, second: Statement, distance: int) -> bool:
    """Returns whether `second`, that many iterations later, runs before `first`."""
    return (first.stage, first.order) > (second.stage + distance, second.order)


def double_buffers(blocks: Sequence[tir.BlockOp]) -> set[SSAValue]:
    """Returns the buffers that blocks double, by the annotation `double_buffer_scope`."""
    found: set[SSAValue] = set()
    for block in blocks:
        number = block.annotations.data.get("double_buffer_scope")
        if number is None:
            continue
        writes = block.find(tir.WritesOp)
        count = len(writes.operands) if writes is not None else 0
        if not isinstance(number, IntegerAttr) or not 0 <= number.value.data < count:
            raise error_at(
                block,
                f"double_buffer_scope of block '{block.block_name.data}' is {value_of(number)}, but it writes {counted(count, 'buffer')}",
                "the annotation is the place of a buffer in T.writes, from 0",
            )
        assert writes is not None
        region = writes.operands[number.value.data].owner
        if isinstance(region, tir.BufferRegionOp):
            found.add(region.buffer)
    return found
