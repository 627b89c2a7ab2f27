"""Moves allocations: is the size known at another place; redirection of uses to other memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.operators import Const, ExprBuilder, as_const
from ....dialects.tir.types import I1, I32, HandleType, element_of, lanes_of
from ....support.edit import erase_op, insert_ops_before
from ....support.effects import is_side_effect_free
from ....support.walk import enclosing
from ..rewriting import acts_until_end, is_statement, set_indices, set_operands
from .storage_liveness import AccessFinder, Allocation, Attach, bits_of


class _Start:
    """The start of what an attach point covers: ops go there one after the other."""

    def __init__(self, attach: Attach, order: dict[Operation, int]):
        self.block = attach.block
        self.last = attach.after
        op = attach.block.first_op if attach.after is None else attach.after.next_op
        while op is not None and not is_statement(op) and not acts_until_end(op):
            if isinstance(op, tir.MatchBufferOp | tir.VarOp | tir.EnvThreadOp):
                self.last = op
            op = op.next_op
        owner = attach.block.parent_op() if self.last is None else self.last
        assert owner is not None
        self.limit = order[owner]
        first = attach.block.parent_op()
        assert first is not None
        self.blocks: set[Block | None] = {attach.block, *(outer.parent for outer in (first, *enclosing(first)))}

    def knows(self, value: SSAValue, order: dict[Operation, int]) -> bool:
        """Returns whether a value is computed before."""
        owner = value.owner
        if isinstance(owner, Block):
            return owner in self.blocks
        return owner.parent in self.blocks and order.get(owner, self.limit) <= self.limit

    def insert(self, ops: Sequence[Operation]) -> None:
        """Inserts ops here, after those that were inserted here before."""
        for op in ops:
            if self.last is not None:
                self.block.insert_op_after(op, self.last)
            elif self.block.first_op is not None:
                self.block.insert_op_before(op, self.block.first_op)
            else:
                self.block.add_op(op)
            self.last = op


class Allocator:
    """Moves the allocations of a function."""

    def __init__(self, finder: AccessFinder):
        self.order = finder.order
        self.starts: dict[Attach, _Start] = {}
        self.analyzers: dict[Attach, Analyzer] = {}

    def start(self, attach: Attach) -> _Start:
        """Returns the place for allocations there."""
        if attach not in self.starts:
            self.starts[attach] = _Start(attach, self.order)
        return self.starts[attach]

    # Sizes

    def constant_bits(self, allocation: Allocation) -> int:
        """Returns the size in bits, 0 when it is not constant."""
        bits = bits_of(allocation.dtype)
        for extent in allocation.extents():
            bits *= extent if isinstance(extent, int) else 0
        return bits

    def can_move(self, allocation: Allocation, attach: Attach) -> bool:
        """Returns whether the memory can be allocated at another place."""
        op = allocation.op
        if allocation.is_pinned or not bits_of(allocation.dtype):
            return False
        if isinstance(op, tir.AllocateOp):
            condition = None if op.condition is None else as_const(op.condition)
            if op.condition is not None and (condition is None or not condition.value):
                return False
        elif op.stride_dims.data or op.elem_offset is not None or op.data_alignment is not None:
            return False
        symbolic = [extent for extent in allocation.extents() if isinstance(extent, SSAValue)]
        if not all(self.tree(extent, attach) is not None for extent in symbolic):
            return False
        if attach.scope is allocation.home or not symbolic:
            return True
        # What runs not always, or not yet, must not ask for less than nothing.
        analyzer = self.analyzer(attach)
        return all(analyzer.can_prove_ge0(analyzer.expr(extent)) for extent in symbolic)

    def analyzer(self, attach: Attach) -> Analyzer:
        """Returns an analyzer with what is known of sizes at a place."""
        if attach not in self.analyzers:
            analyzer = self.analyzers[attach] = Analyzer()
            inner = attach.block.parent_op()
            assert inner is not None
            for outer in reversed([inner, *enclosing(inner)]):
                if isinstance(outer, tir.ForOp) and is_index_type(outer.loop_var.type):
                    analyzer.bind(outer.loop_var, outer.min, outer.extent)
        return self.analyzers[attach]

    def tree(self, value: SSAValue, attach: Attach) -> list[Operation] | None:
        """Returns the pure ops, in order, that must be cloned to compute a value at a place.

        None when it cannot be computed there.
        """
        start, found, pending = self.start(attach), dict[Operation, None](), [value]
        while pending:
            current = pending.pop()
            if start.knows(current, self.order):
                continue
            if not isinstance(current, OpResult) or current.op.regions or not is_side_effect_free(current.op):
                return None
            found[current.op] = None
            pending += current.op.operands
        return sorted(found, key=self.order.__getitem__)

    # Allocations

    def allocate(self, attach: Attach, allocations: Sequence[Allocation], bits: int = 0) -> SSAValue:
        """Asks for memory that any of the allocations fits in, or of that many bits; the handle to it."""
        start, first = self.start(attach), allocations[0]
        builder = ExprBuilder(first.op.location)
        if not bits and _are_identical(allocations):
            op = first.op
            extents = list(op.operands)
            op.operands = [self.at(attach, builder, extent) for extent in extents]
            op.detach()
            start.insert([*builder.ops, op])
            if isinstance(op, tir.AllocateOp):
                return op.result
            data = tir.BufferGetOp(op.result, "data", HandleType.get(op.result.type.dtype, first.memory))
            data.location = op.location
            start.insert([data])
            return data.result
        dtype = max((a.dtype for a in allocations), key=lanes_of)
        sizes = [self.constant_bits(allocation) for allocation in allocations]
        if bits or all(sizes):
            count = builder.value(Const(-(-max(bits, *sizes, 0) // bits_of(dtype)), I32))
        else:
            dtype = element_of(dtype)
            count = self.largest(attach, builder, allocations)
        made = tir.AllocateOp(first.name, [count], dtype, first.memory)
        made.location = first.op.location
        start.insert([*builder.ops, made])
        return made.result

    def largest(self, attach: Attach, builder: ExprBuilder, allocations: Sequence[Allocation]) -> SSAValue:
        """Returns the largest of symbolic sizes, in elements."""
        analyzer, seen = self.analyzer(attach), list[object]()
        total: SSAValue | Const | None = None
        for allocation in allocations:
            extent, lanes = allocation.extents()[0], lanes_of(allocation.dtype)
            here = Const(extent) if isinstance(extent, int) else self.at(attach, builder, extent)
            size = builder.binary(tir.MulOp, here, Const(lanes)) if lanes > 1 else here
            known = analyzer.expr(extent).scaled(lanes)
            if known not in seen:
                total = size if total is None else builder.binary(tir.MaxOp, total, size)
                seen.append(known)
        assert total is not None
        return builder.value(total)

    def at(self, attach: Attach, builder: ExprBuilder, value: SSAValue) -> SSAValue:
        """Returns a value at a place, recomputed where it is not available."""
        mapper: dict[SSAValue, SSAValue] = {}
        for op in self.tree(value, attach) or ():
            builder.emit(op.clone(mapper))
        return mapper.get(value, value)

    def can_shift(self, allocation: Allocation) -> bool:
        """Returns whether the accesses can be shifted to an offset in larger memory."""
        views = [*allocation.views, *([allocation.op] if isinstance(allocation.op, tir.DeclBufferOp) else ())]
        return not allocation.is_opaque and all(
            view.result.type.rank == 1
            and not view.stride_dims.data
            and view.elem_offset is None
            and bits_of(view.result.type.dtype) == bits_of(allocation.dtype)
            for view in views
        )

    def move_to(self, allocation: Allocation, handle: SSAValue, offset: int = 0) -> None:
        """Redirects the uses of an allocation to the memory of a handle, from `offset` bits on."""
        op = allocation.op
        views = list(allocation.views)
        if isinstance(op, tir.AllocateOp):
            if op.result is not handle:
                op.result.replace_all_uses_with(handle)
                erase_op(op)
        elif not (isinstance(handle.owner, tir.BufferGetOp) and handle.owner.buffer is op.result):
            data = [use.operation for use in op.result.uses if isinstance(use.operation, tir.BufferGetOp)]
            for get in data:
                if get.field.data == "data":
                    get.result.replace_all_uses_with(handle)
            set_operands(op, [handle], op.shape, op.strides, [], [])
            views.append(op)
        if not offset:
            return
        for view in views:
            # What is declared has no element there; a view that no statement declares goes wherever the memory does.
            view.implicit = IntegerAttr(1, I1)
        for accesses in allocation.touches.values():
            for access in accesses:
                if isinstance(access, tir.LoadOp | tir.StoreOp):
                    _shift(access, offset // bits_of(allocation.dtype))

    def remove(self, allocation: Allocation) -> None:
        """Drops memory that nothing touches, and the views of it."""
        for op in (*reversed(allocation.views), allocation.op):
            if op.parent is None:
                continue
            for use in list(op.result.uses):
                user = use.operation
                if isinstance(user, tir.BufferGetOp | tir.AttrOp) and not any(r.uses for r in user.results):
                    erase_op(user)
            if not op.result.uses:
                erase_op(op)


def _are_identical(allocations: Sequence[Allocation]) -> bool:
    first = allocations[0]
    analyzer = Analyzer()

    def shape(allocation: Allocation) -> list[object]:
        return [analyzer.expr(extent) for extent in allocation.extents()]

    return all(a.dtype == first.dtype and shape(a) == shape(first) for a in allocations[1:])


def _shift(access: tir.LoadOp | tir.StoreOp, amount: int) -> None:
    index, builder = access.indices[0], ExprBuilder()
    builder.location = access.location
    moved = builder.value(builder.binary(tir.AddOp, Const(amount, element_of(index.type)), index))
    insert_ops_before(builder.ops, access)
    set_indices(access, [moved])
