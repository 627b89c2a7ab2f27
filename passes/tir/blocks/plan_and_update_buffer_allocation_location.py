"""The pass `plan-and-update-buffer-allocation-location`: each buffer moves to the scope of its uses.

    B = T.alloc_buffer((8, 8))                    for i in range(8):
    for i in range(8):                                with T.block(""):
        … writes B[i, 0:8] …              →               B = T.alloc_buffer((8, 8))
        … reads B[i, 0:8] …                               … writes B[i, 0:8] … reads B[i, 0:8] …

Scopes are the bodies of loops and blocks. A buffer that a reduction, or an opaque block, updates is allocated outside of the
loops that drive the update, because its contents must outlast their iterations; a buffer that is only read there need not be. A buffer
of which an iteration reads what another has written stays outside of that loop, too. If the parts of a loop (`loop_partition`) use
disjoint elements of a buffer, each part has a buffer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.regions import infer_regions
from ....dialects.tir.stmt import RegionsOp
from ....support.edit import block_of_ops, erase_op
from ....support.walk import enclosing
from ..rewriting import erase_if_dead, ops_of
from ..threads.thread_storage_scope import share_memory
from .loop_carried import CarriedValues

MOST_PARTS = 4
"""Parts of a loop that are compared with each other at most."""


def _scopes_around(op: Operation) -> list[Block]:
    """Returns the bodies of loops, blocks and functions around `op`, outermost first."""
    around = (each for each in enclosing(op) if isinstance(each, tir.ForOp | tir.BlockOp | tir.PrimFuncOp))
    return [each.body.block for each in around][::-1]


def _driving_loops(block: tir.BlockOp, kinds: tuple[str, ...]) -> set[Operation]:
    """Returns the loops whose variables the block's axes of some kinds are bound to."""
    loops: set[Operation] = set()
    pending: list[SSAValue] = [
        binding for kind, binding in zip(block.iter_types.data, block.bindings, strict=True) if kind.data in kinds
    ]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, OpResult):
            pending += value.op.operands
        elif isinstance(loop := value.owner.parent_op() if isinstance(value.owner, Block) else None, tir.ForOp):
            loops.add(loop)
    return loops


@dataclass(frozen=True)
class _Scopes:
    """The scopes around a block that may hold a buffer, outermost first."""

    reading: list[Block]
    """For a buffer that it reads: each iteration of a reduction may compute its own, that of an ordered axis may not."""
    updating: list[Block]
    """For what it updates: outside of the loops that drive that."""


Memo = dict[Operation, _Scopes]
ORDERED = ("scan", "opaque")
"""Kinds of axes that are neither parallel nor of a reduction."""


def _block_around(op: Operation) -> tir.BlockOp | None:
    """Returns the innermost block around an op."""
    return next((each for each in enclosing(op) if isinstance(each, tir.BlockOp)), None)


def _scopes_of_block(block: tir.BlockOp, memo: Memo) -> _Scopes:
    """Returns the scopes that may hold a buffer which a block uses."""
    found = memo.get(block)
    if found is None:
        around = _scopes_around(block)
        if not block.iter_vars:
            # Nothing says which loops its state outlasts: up to the block around it.
            while around and isinstance(around[-1].parent_op(), tir.ForOp):
                around.pop()
        reading, updating = (_outside(around, _driving_loops(block, kinds)) for kinds in (ORDERED, (*ORDERED, "R")))
        found = memo[block] = _Scopes(reading, updating)
    return found


def _outside(scopes: list[Block], loops: set[Operation]) -> list[Block]:
    """Returns the nested scopes that are in none of the loops."""
    return scopes[: next((k for k, scope in enumerate(scopes) if scope.parent_op() in loops), len(scopes))]


def _using_ops(buffer: SSAValue) -> list[Operation]:
    """Returns the ops that use a buffer; a region counts as the op that uses it.

    Regions in `T.reads` and `T.writes` are not uses.
    """
    uses: list[Operation] = []
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, tir.BufferRegionOp):
            for outer in op.result.uses:
                if not isinstance(outer.operation, RegionsOp):
                    uses.append(outer.operation)
        else:
            uses.append(op)
    return uses


def _undeclare(buffer: SSAValue, target: Block) -> None:
    """Takes a buffer from what the blocks around its new place read and write, for it is theirs alone now."""
    owner = target.parent_op()
    around = {target} if owner is None else {target, owner.parent, *(each.parent for each in enclosing(owner))}
    regions = [use.operation for use in buffer.uses if isinstance(use.operation, tir.BufferRegionOp)]
    for region in regions:
        for use in list(region.result.uses):
            declares = use.operation
            if isinstance(declares, RegionsOp) and declares.parent in around:
                declares.operands = [operand for operand in declares.operands if operand is not region.result]
        if not region.result.first_use:
            made = list(region.operands)
            erase_op(region)
            for value in made:
                erase_if_dead(value)


def _scopes_of_all(alloc: tir.AllocBufferOp, memo: Memo) -> list[Block]:
    """Returns the scopes that hold every use of a buffer, outermost first."""
    common: list[Block] | None = None
    uses = [(op, _block_around(op)) for op in _using_ops(alloc.result)]
    updating = {block for op, block in uses if not isinstance(op, tir.LoadOp)}
    for op, block in uses:
        if block is None:
            scopes = _scopes_around(op)
        else:
            known = _scopes_of_block(block, memo)
            scopes = known.updating if block in updating else known.reading
        if common is None:
            common = list(scopes)
        else:
            shared = 0
            for a, b in zip(common, scopes, strict=False):
                if a is not b:
                    break
                shared += 1
            common = common[:shared]
    return common or []


def _parts(alloc: tir.AllocBufferOp, scope: Block) -> list[tir.BlockOp]:
    """Returns the blocks that use a buffer, if their elements are disjoint and nothing else uses it."""
    holder = scope.parent_op()
    if not isinstance(holder, tir.BlockOp) or holder.iter_vars:
        return []
    regions: dict[tir.BlockOp, list[tir.BufferRegionOp]] = {}
    for op in _using_ops(alloc.result):
        child = scope.find_ancestor_op_in_block(op)
        if not isinstance(child, tir.BlockOp) or child.iter_vars:
            return []
        regions.setdefault(child, [])
    for use in alloc.result.uses:
        region = use.operation
        child = None if region.parent is None else region.parent.parent_op()
        if isinstance(region, tir.BufferRegionOp) and isinstance(child, tir.BlockOp) and child in regions:
            regions[child].append(region)
    parts = list(regions)
    if not 2 <= len(parts) <= MOST_PARTS or not all(regions.values()):
        return []
    analyzer = Analyzer()
    whole = all(
        _are_apart(a, b, analyzer)
        for place, part in enumerate(parts)
        for other in parts[:place]
        for a in regions[part]
        for b in regions[other]
    )
    return parts if whole else []


def _are_apart(a: tir.BufferRegionOp, b: tir.BufferRegionOp, analyzer: Analyzer) -> bool:
    """Returns whether two regions of a buffer are provably disjoint."""
    for (low, size), (other, length) in zip(
        zip(a.mins, a.extents, strict=True), zip(b.mins, b.extents, strict=True), strict=True
    ):
        gap = analyzer.expr(other) - analyzer.expr(low)
        if analyzer.can_prove_ge0(gap - analyzer.expr(size)) or analyzer.can_prove_ge0(-gap - analyzer.expr(length)):
            return True
    return False


def split_apart(alloc: tir.AllocBufferOp, memo: Memo) -> list[tir.AllocBufferOp]:
    """Splits a buffer of which the parts of a loop use disjoint elements into one for each part."""
    scopes = _scopes_of_all(alloc, memo)
    parts = _parts(alloc, scopes[-1]) if scopes and alloc.parent in scopes else []
    if not parts:
        return [alloc]
    made = [alloc]
    _undeclare(alloc.result, scopes[-1])
    for part in parts[1:]:
        copy = alloc.clone()
        copy.result.name_hint = alloc.result.name_hint
        assert alloc.parent is not None
        alloc.parent.insert_op_after(copy, alloc)
        alloc.result.replace_uses_with_if(copy.result, lambda use, part=part: part.is_ancestor(use.operation))
        made.append(copy)
    return made


def _target(alloc: tir.AllocBufferOp, scopes: list[Block]) -> Block:
    """Returns the innermost of nested scopes, from a buffer's own, into which the buffer may move."""
    target = alloc.parent
    assert target is not None
    values: CarriedValues | None = None
    for scope in scopes[scopes.index(target) + 1 :]:
        owner = scope.parent_op()
        assert owner is not None
        around = [
            op
            for op in (owner, *enclosing(owner, target.parent_op()))
            if isinstance(op, tir.WhileOp) or (isinstance(op, tir.ForOp) and _may_carry(op, alloc))
        ]
        if around and values is None:
            values = CarriedValues(alloc.result)
        if values is not None and any(values.outlasts(loop) for loop in around):
            break
        target = scope
    return target


def _may_carry(loop: tir.ForOp, alloc: tir.AllocBufferOp) -> bool:
    """Returns whether an iteration may use what another stored; in threads, only in shared memory."""
    assert isinstance(alloc.result.type, tir.BufferType)
    return loop.kind.data in IN_ORDER or share_memory(loop, alloc.result.type.scope.data)


IN_ORDER = ("serial", "unrolled", "vectorized")
"""Kinds of loops of which an iteration may use what one before it has computed: vectors are made later, where none does."""


def plan(alloc: tir.AllocBufferOp, memo: Memo) -> tir.BlockOp | None:
    """Moves one allocation to where it belongs; the block that was made to hold it, if one was."""
    home = alloc.parent
    common = _scopes_of_all(alloc, memo)
    if not common or home not in common:
        return None
    target = _target(alloc, common)
    if target is home:
        return None
    made: tir.BlockOp | None = None
    owner = target.parent_op()
    if isinstance(owner, tir.ForOp):
        # A loop's body holds allocations through a block of its own.
        first = target.first_op
        holder = first if isinstance(first, tir.BlockOp) and first is target.last_op and not first.iter_vars else None
        if holder is None:
            holder = made = tir.BlockOp("", [], [], [], [], [], body=block_of_ops(target.ops))
            holder.location = owner.location
            target.add_op(holder)
            # One scope more for all that it holds now.
            memo.clear()
        target = holder.body.block
    _undeclare(alloc.result, target)
    # Extents of the allocation are values that dominate its old place, hence the new one.
    alloc.detach()
    point = InsertPoint.at_start(target)
    while isinstance(point.insert_before, tir.ReadsOp | tir.WritesOp | tir.BufferRegionOp | tir.AllocBufferOp):
        point = InsertPoint(target, point.insert_before.next_op)
    if point.insert_before is None:
        target.add_op(alloc)
    else:
        target.insert_op_before(alloc, point.insert_before)
    return made


@dataclass(frozen=True)
class PlanAndUpdateBufferAllocationLocation(ModulePass):
    """Moves every `T.alloc_buffer` into the innermost scope that holds all its uses."""

    name = "plan-and-update-buffer-allocation-location"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plans every allocation of the module."""
        memo: Memo = {}
        made = [plan(part, memo) for alloc in ops_of(op, tir.AllocBufferOp) for part in split_apart(alloc, memo)]
        for block in made:
            if block is not None:
                infer_regions(block)
