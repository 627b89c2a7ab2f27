"""The pass `lower-lane-reduction`: a reduction loop keeps partial results in the lanes of vectors.

Schedules ask for it by annotations: `reduction_lanes` is the number of lanes of a vector, `reduction_vectors` how
many vectors are independent of each other (so that one addition need not wait for the one before), and `reduction_masks` whether the
elements after the last whole vector are taken under a mask, or one by one.

    for k in T.serial(1000, annotations={"reduction_lanes": 16, "reduction_masks": 1, "reduction_vectors": 2}):
        B[i] = B[i] + A[i, k]

becomes, with `lanes` for B's partial results,

    for u, l in T.grid(2, T.vectorized(16)):           lanes[u * 16 + l] = 0
    for k, u, l in T.grid(31, 2, T.vectorized(16)):    lanes[u * 16 + l] = lanes[u * 16 + l] + A[i, k * 32 + u * 16 + l]
    for l in T.vectorized(16):                         lanes[l] = lanes[l] + T.if_then_else(l < 8, A[i, 992 + l], 0)
    for l in T.vectorized(16):                         lanes[l] = lanes[l] + lanes[16 + l]
    for l in T.vectorized(16):                         B[i] = B[i] + lanes[l]

Other stores of the loop, each iteration in a place of its own, become stores of whole vectors as well: exponentials and their sum, say.
The last loop, whose lanes meet in one element, becomes a horizontal reduction in `vectorize-loop`. As a reduction's terms may be taken in
any order, this is what TVM's `LowerCrossThreadReduction` does for threads of a GPU. A loop that is not understood stays serial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import DictionaryAttr, Float32Type, Float64Type, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import Atom, free_vars
from ....dialects.tir.operators import as_const
from ....support.edit import builder_before, erase_op
from ....support.walk import walk_ops
from ..blocks.convert_blocks_to_opaque import REASSOCIATE
from ..clone_body import copy_ops
from ..rewriting import PrimFuncPass, erase_dead, ops_of, statements_of
from .lane_arg_reduction import ChoiceLanes, match_choice

LANES, VECTORS, MASKS = "reduction_lanes", "reduction_vectors", "reduction_masks"
"""The annotations of a loop: see above."""

Update = tir.AddOp | tir.MulOp | tir.MinOp | tir.MaxOp


@dataclass(frozen=True)
class _Reduction:
    """A loop whose body is `output[…] = output[…] op term`, after other stores that a term may read."""

    loop: tir.ForOp
    store: tir.StoreOp
    update: Update
    old: tir.LoadOp
    term: SSAValue
    needed: list[Operation]
    """The ops of the body that the term is computed by, in order."""
    aside: list[Operation]
    """The other stores, with the ops that they are computed by, in order."""


def _match(loop: tir.ForOp) -> _Reduction | None:
    """Matches a reduction whose terms may be taken in any order."""
    low = as_const(loop.min)
    if loop.kind.data != "serial" or low is None or low.value != 0:
        return None
    statements = list(statements_of(loop.body.block))
    stores = [op for op in statements if isinstance(op, tir.StoreOp) and op.predicate is None]
    if not stores or stores != statements:
        return None
    *others, store = stores
    update = store.value.owner
    if not isinstance(update, Update) or REASSOCIATE not in update.attributes:
        return None
    if not isinstance(update.result.type, Float32Type | Float64Type | IntegerType):
        return None
    inside = set(walk_ops(loop))
    loads = [op for op in inside if isinstance(op, tir.LoadOp) and op.buffer is store.buffer]
    sides = (update.lhs, update.rhs)
    old = next((s.owner for s in sides if s.owner in loads), None)
    if (
        len(loads) != 1
        or not isinstance(old, tir.LoadOp)
        or old.predicate is not None
        or old.result.has_more_than_one_use()
    ):
        return None
    term = sides[1] if sides[0] is old.result else sides[0]
    analyzer = Analyzer()
    own = {loop.loop_var, *(v for op in inside for v in op.results if isinstance(op, tir.LoadOp))}
    for there, here in zip(store.indices, old.indices, strict=True):
        place = analyzer.expr(there)
        if place != analyzer.expr(here) or any(a.payload in own for a in free_vars(place)):
            return None
    if any(not _apart(other, store, loop, inside) for other in others):
        return None
    aside = {*others, *_needed(loop, [v for other in others for v in other.operands])}
    return _Reduction(
        loop, store, update, old, term, _needed(loop, [term]), [op for op in loop.body.block.ops if op in aside]
    )


def _apart(other: tir.StoreOp, store: tir.StoreOp, loop: tir.ForOp, inside: set[Operation]) -> bool:
    """Returns whether each iteration stores in a place of its own, which no other iteration reads.

    Then iterations may run at the same time.
    """
    analyzer = Analyzer()
    counter = analyzer.expr(loop.loop_var).atom
    place = [analyzer.expr(i) for i in other.indices]
    if other.buffer is store.buffer or counter is None:
        return False
    linear = [e for e in place if counter in free_vars(e)]
    if not linear or any(not e.coefficient(counter) or counter in free_vars(_without(e, counter)) for e in linear):
        return False
    if any(isinstance(v := a.payload, SSAValue) and v.owner in inside for e in place for a in free_vars(e)):
        return False
    touching = [op for op in inside if isinstance(op, tir.LoadOp | tir.StoreOp) and op.buffer is other.buffer]
    return all([analyzer.expr(i) for i in op.indices] == place for op in touching)


def _without(e: Expr, variable: Atom) -> Expr:
    return Expr(tuple(t for t in e.terms if t[0] is not variable), e.const)


def _needed(loop: tir.ForOp, values: Iterable[SSAValue]) -> list[Operation]:
    """Returns the ops at the top of the loop's body that values are computed from."""
    body = loop.body.block
    seen: set[Operation] = set()
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner.parent is not body or owner in seen:
            continue
        seen.add(owner)
        for op in walk_ops(owner):
            pending += op.operands
    return [op for op in body.ops if op in seen]


class _Lanes:
    """Writes the loops that take the place of one reduction's."""

    def __init__(self, found: _Reduction, lanes: int, masks: bool):
        self.found, self.lanes, self.masks = found, lanes, masks
        self.loop = found.loop
        self.type = found.loop.loop_var.type
        self.before = builder_before(found.loop)
        analyzer = Analyzer()
        self.place = [analyzer.to_ssa(analyzer.expr(i), self.before, i.type) for i in found.store.indices]

    # Pieces of TIR

    def number(self, builder: Builder, value: int) -> SSAValue:
        """Builds a number of the type of the loop's variable."""
        return builder.insert(tir.ConstOp.int(value, self.type)).result

    def loop_of(
        self, builder: Builder, name: str, extent: SSAValue | int, kind: str, body: Callable[[Builder, SSAValue], None]
    ) -> None:
        """Builds a loop from 0."""
        block = Block(arg_types=[self.type])
        block.args[0].name_hint = name
        inner = Builder(InsertPoint.at_end(block))
        inner.operation_insertion_handler = builder.operation_insertion_handler
        low = self.number(builder, 0)
        many = self.number(builder, extent) if isinstance(extent, int) else extent
        body(inner, block.args[0])
        builder.insert(tir.ForOp(name, low, many, kind=kind, body=Region(block)))

    def in_lanes(self, builder: Builder, body: Callable[[Builder, SSAValue], None]) -> None:
        """Builds a loop over the lanes of a vector."""
        self.loop_of(builder, "lane", self.lanes, "vectorized", body)

    def sum(self, builder: Builder, base: SSAValue | int, offset: SSAValue) -> SSAValue:
        """Builds base + offset."""
        if base == 0:
            return offset
        base = self.number(builder, base) if isinstance(base, int) else base
        return builder.insert(tir.AddOp(base, offset)).result

    # The reduction

    def neutral(self, builder: Builder, old: SSAValue) -> SSAValue:
        """Returns the neutral element of the update."""
        update = self.found.update
        if isinstance(update, tir.MinOp | tir.MaxOp):
            return old
        return builder.insert(_number(1 if isinstance(update, tir.MulOp) else 0, update.result.type)).result

    def term(self, builder: Builder, index: SSAValue) -> SSAValue:
        """Returns the term of one iteration of the loop."""
        needed, term = self.found.needed, self.found.term
        if term is self.loop.loop_var:
            return index
        copies = copy_ops(needed, {self.loop.loop_var: index})
        for copy in copies:
            builder.insert(copy)
        owner = term.owner
        if isinstance(term, OpResult) and isinstance(owner, Operation) and owner in needed:
            return copies[needed.index(owner)].results[term.index]
        return term

    def side_stores(self, builder: Builder, index: SSAValue) -> None:
        """Clones the other stores of one iteration of the loop."""
        for copy in copy_ops(self.found.aside, {self.loop.loop_var: index}):
            builder.insert(copy)

    def bounded_side_stores(self, builder: Builder, index: SSAValue) -> None:
        """Clones the other stores of an iteration under a test that the loop has it."""
        if not self.found.aside:
            return
        inside = Block()
        then = Builder(InsertPoint.at_end(inside))
        then.operation_insertion_handler = builder.operation_insertion_handler
        condition = builder.insert(tir.LtOp(index, self.loop.extent)).result
        self.side_stores(then, index)
        builder.insert(tir.IfOp(condition, Region(inside), Region()))

    def bounded_term(self, builder: Builder, index: SSAValue, old: SSAValue) -> SSAValue:
        """Returns the term of an iteration, or the neutral element where the loop does not have it."""
        inside, outside = Block(), Block()
        then, otherwise = Builder(InsertPoint.at_end(inside)), Builder(InsertPoint.at_end(outside))
        for each in (then, otherwise):
            each.operation_insertion_handler = builder.operation_insertion_handler
        condition = builder.insert(tir.LtOp(index, self.loop.extent)).result
        then.insert(tir.YieldOp(self.term(then, index)))
        otherwise.insert(tir.YieldOp(self.neutral(otherwise, old)))
        type_ = self.found.update.result.type
        return builder.insert(tir.IfThenElseOp(condition, Region(inside), Region(outside), type_)).result

    def combine(
        self, builder: Builder, buffer: SSAValue, place: list[SSAValue], term: Callable[[SSAValue], SSAValue]
    ) -> None:
        """Builds buffer[place] = buffer[place] op term."""
        old = builder.insert(tir.LoadOp(buffer, place)).result
        update = self.found.update
        new = type(update).create(operands=[old, term(old)], result_types=[old.type], attributes=update.attributes)
        builder.insert(tir.StoreOp(builder.insert(new).results[0], buffer, place))

    def directly(self) -> None:
        """Reduces all terms at once into the output: there are no more than lanes."""

        def body(b: Builder, lane: SSAValue) -> None:
            extent = as_const(self.loop.extent)
            whole = extent is not None and extent.value == self.lanes
            (self.side_stores if whole else self.bounded_side_stores)(b, lane)

            def term(old: SSAValue) -> SSAValue:
                return self.term(b, lane) if whole else self.bounded_term(b, lane, old)

            self.combine(b, self.found.store.buffer, self.place, term)

        self.in_lanes(self.before, body)

    def partially(self, vectors: int) -> None:
        """Computes partial results in lanes, then combines them."""
        b, found = self.before, self.found
        width = self.lanes * vectors
        type_ = found.update.result.type
        name = f"{tir.buffer_name(found.store.buffer)}_lanes"
        partial = b.insert(tir.DeclBufferOp(name, tir.BufferType.get([width], type_, "local"))).result
        partial.name_hint = name
        extremum = isinstance(found.update, tir.MinOp | tir.MaxOp)

        def each_vector(outer: Builder, body: Callable[[Builder, SSAValue, SSAValue], None]) -> None:
            """Calls `body(builder, element of the partial results, offset of the term)` for each vector."""

            def of_lane(base: SSAValue | int) -> Callable[[Builder, SSAValue], None]:
                return lambda inner, lane: body(inner, place := self.sum(inner, base, lane), place)

            def of_vector(inner: Builder, u: SSAValue) -> None:
                base = inner.insert(tir.MulOp(u, self.number(inner, self.lanes))).result
                self.in_lanes(inner, of_lane(base))

            if vectors == 1:
                self.in_lanes(outer, of_lane(0))
            else:
                self.loop_of(outer, "vector", vectors, "unrolled", of_vector)

        start = b.insert(tir.LoadOp(found.store.buffer, self.place)).result if extremum else self.neutral(b, partial)
        each_vector(b, lambda inner, at, _: (inner.insert(tir.StoreOp(start, partial, [at])), None)[1])

        def taken(inner: Builder, base: SSAValue | int) -> Callable[[Builder, SSAValue, SSAValue], None]:
            def body(b: Builder, at: SSAValue, offset: SSAValue) -> None:
                index = self.sum(b, base, offset)
                self.side_stores(b, index)
                self.combine(b, partial, [at], lambda _: self.term(b, index))

            return body

        extent = as_const(self.loop.extent)
        count = None if extent is None else int(extent.value)
        blocks: SSAValue | int = (
            b.insert(tir.FloorDivOp(self.loop.extent, self.number(b, width))).result
            if count is None
            else count // width
        )

        def block_of(inner: Builder, k: SSAValue) -> None:
            base = inner.insert(tir.MulOp(k, self.number(inner, width))).result
            each_vector(inner, taken(inner, base))

        self.loop_of(b, self.loop.var_name.data, blocks, "serial", block_of)
        done = (
            b.insert(tir.MulOp(blocks, self.number(b, width))).result
            if isinstance(blocks, SSAValue)
            else blocks * width
        )
        self.rest(partial, done, count)

        def fold(u: int) -> Callable[[Builder, SSAValue], None]:
            def body(inner: Builder, lane: SSAValue) -> None:
                other = self.sum(inner, u * self.lanes, lane)
                self.combine(inner, partial, [lane], lambda _: inner.insert(tir.LoadOp(partial, [other])).result)

            return body

        for u in range(1, vectors):
            self.in_lanes(b, fold(u))

        def last(inner: Builder, lane: SSAValue) -> None:
            self.combine(
                inner, found.store.buffer, self.place, lambda _: inner.insert(tir.LoadOp(partial, [lane])).result
            )

        self.in_lanes(b, last)

    def rest(self, partial: SSAValue, done: SSAValue | int, count: int | None) -> None:
        """Reduces the terms after the last whole block: vectors, then a masked vector or single terms."""
        b, found = self.before, self.found

        def vector(inner: Builder, base: SSAValue | int, bounded: bool) -> None:
            def body(b: Builder, lane: SSAValue) -> None:
                index = self.sum(b, base, lane)
                (self.bounded_side_stores if bounded else self.side_stores)(b, index)
                self.combine(
                    b, partial, [lane], lambda old: self.bounded_term(b, index, old) if bounded else self.term(b, index)
                )

            self.in_lanes(inner, body)

        if isinstance(done, int) and count is not None:
            while done + self.lanes <= count:
                vector(b, done, False)
                done += self.lanes
            if done == count:
                return
            left: SSAValue | int = count - done
            if self.masks:
                vector(b, done, True)
                return
        else:
            assert isinstance(done, SSAValue)
            remaining = b.insert(tir.SubOp(self.loop.extent, done)).result
            start = done
            if self.masks:
                iterations = b.insert(tir.AddOp(remaining, self.number(b, self.lanes - 1))).result
                iterations = b.insert(tir.FloorDivOp(iterations, self.number(b, self.lanes))).result

                def masked(inner: Builder, t: SSAValue) -> None:
                    offset = inner.insert(tir.MulOp(t, self.number(inner, self.lanes))).result
                    vector(inner, self.sum(inner, start, offset), True)

                self.loop_of(b, "rest", iterations, "serial", masked)
                return
            left = remaining

        def single(inner: Builder, t: SSAValue) -> None:
            index = self.sum(inner, done, t)
            self.side_stores(inner, index)
            self.combine(inner, found.store.buffer, self.place, lambda _: self.term(inner, index))

        self.loop_of(b, "rest", left, "serial", single)


def _number(value: int, type_: Attribute) -> tir.ConstOp:
    return tir.ConstOp.int(value, type_) if isinstance(type_, IntegerType) else tir.ConstOp.float(float(value), type_)


def lower(loop: tir.ForOp) -> None:
    """Replaces one annotated loop, or removes its annotations where it is not a reduction for lanes."""
    known = dict(loop.annotations.data)
    lanes, vectors, masks = (_annotation(known.pop(key, None)) for key in (LANES, VECTORS, MASKS))
    loop.annotations = DictionaryAttr(known)
    found = _match(loop) if lanes > 1 else None
    choice = match_choice(loop) if lanes > 1 and found is None else None
    if choice is not None and (choice.extent >= lanes or (choice.later is not None and choice.extent > 0)):
        # With fewer iterations than lanes one candidate, of the first: a later one is compared with it more simply.
        lanes = lanes if choice.extent >= lanes else 1
        ChoiceLanes(choice, lanes).write(max(min(vectors, choice.extent // lanes), 1) if lanes > 1 else 1)
        erase_op(loop)
    if found is None:
        return
    extent = as_const(loop.extent)
    count = None if extent is None else int(extent.value)
    writer = _Lanes(found, lanes, bool(masks))
    if count is not None and (count == lanes or (count < lanes and masks)):
        writer.lanes = min(lanes, 1 << max(count - 1, 1).bit_length())
        writer.directly()
    elif count is not None and count < lanes:
        return
    else:
        writer.partially(max(vectors if count is None else min(vectors, count // lanes), 1))
    erase_op(loop)


def _annotation(value: Attribute | None) -> int:
    return value.value.data if isinstance(value, IntegerAttr) else 0


@dataclass(frozen=True)
class LowerLaneReduction(PrimFuncPass):
    """Gives loops annotated with `reduction_lanes` a partial result for each lane."""

    name = "lower-lane-reduction"

    def apply_to(self, function: tir.PrimFuncOp) -> None:
        """Lowers every such loop of the module."""
        loops = [loop for loop in ops_of(function, tir.ForOp) if LANES in loop.annotations.data]
        for loop in reversed(loops):
            lower(loop)
        if loops:
            erase_dead(function)


__all__ = ["LANES", "MASKS", "VECTORS", "LowerLaneReduction", "lower"]
