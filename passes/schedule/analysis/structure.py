"""Positions of ops: loops around a block, blocks of a scope, order, writers and readers of a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....support.walk import blocks_of, enclosing, op_around

Scope: TypeAlias = "tir.BlockOp | tir.PrimFuncOp"
"""The scope of blocks: the function (TVM's root block), or a block around them."""


def const_int(value: SSAValue) -> int | None:
    """Returns the integer of a constant, otherwise None."""
    owner = value.owner
    if type(owner) is not tir.ConstOp:
        return None
    literal = owner.properties["value"]
    return literal.value.data if type(literal) is IntegerAttr else None


def scope_of(op: Operation) -> Scope:
    """Returns the innermost block or function around `op`."""
    scope = next((each for each in enclosing(op) if type(each) is tir.BlockOp or type(each) is tir.PrimFuncOp), None)
    assert scope is not None
    return scope


def function_of(op: Operation) -> tir.PrimFuncOp:
    """Returns the function around `op`."""
    while type(op) is not tir.PrimFuncOp:
        parent = op_around(op)
        assert parent is not None
        op = parent
    return op


def body_of(scope: Scope | tir.ForOp) -> Block:
    """Returns the ops directly in a scope or loop."""
    return scope.body.block


def loops_above(op: Operation) -> list[tir.ForOp]:
    """Returns the loops around `op` inside its scope, outermost first."""
    above = takewhile(lambda each: type(each) is not tir.BlockOp and type(each) is not tir.PrimFuncOp, enclosing(op))
    return [each for each in above if type(each) is tir.ForOp][::-1]


def all_loops_above(op: Operation) -> list[tir.ForOp]:
    """Returns the loops around `op` in the whole function, outermost first."""
    return [each for each in enclosing(op) if type(each) is tir.ForOp][::-1]


def blocks_above(op: Operation) -> list[tir.BlockOp]:
    """Returns the blocks around `op` in the whole function, outermost first."""
    return [each for each in enclosing(op) if type(each) is tir.BlockOp][::-1]


def child_blocks(root: Operation) -> list[tir.BlockOp]:
    """Returns the blocks inside `root` that are in no other block inside it, in order."""
    return list(_blocks_in(root))


def is_only_block(block: tir.BlockOp, root: Operation) -> bool:
    """Returns whether `root` holds no other block than this one, apart from those in it."""
    found = _blocks_in(root)
    return next(found, None) is block and next(found, None) is None


def _blocks_in(root: Operation) -> Iterator[tir.BlockOp]:
    pending = blocks_of(root)
    while pending:
        place = pending.pop()
        op = place.first_op if isinstance(place, Block) else place
        while op is not None:
            following = op.next_op
            if type(op) is tir.BlockOp:
                yield op
            elif op.regions:
                if following is not None:
                    pending.append(following)
                pending += blocks_of(op)
                break
            op = following


def child_under(ancestor: Operation, op: Operation) -> Operation:
    """Returns the op directly in `ancestor`'s regions that is `op` or holds it."""
    while (parent := op.parent_op()) is not ancestor:
        assert parent is not None
        op = parent
    return op


def is_inside(op: Operation, ancestor: Operation) -> bool:
    """Returns whether `op` is `ancestor` or in it."""
    return op is ancestor or any(each is ancestor for each in enclosing(op))


def path_to(op: Operation, ancestor: Operation) -> list[Operation]:
    """Returns the ops from directly under `ancestor` down to `op`."""
    return [op, *enclosing(op, ancestor)][::-1] if op is not ancestor else []


class Use(NamedTuple):
    """A use of a buffer in a scope by a block of that scope, or (`block` is None) outside of its blocks."""

    block: tir.BlockOp | None
    reads: bool
    writes: bool


def uses_in(buffer: SSAValue, scope: Scope) -> list[Use]:
    """Returns the uses of a buffer in `scope`, each by the block directly in the scope; in no order.

    The reads and writes that the scope's own block declares are not uses inside of it.
    """
    found: list[Use] = []
    for use in buffer.uses:
        op = use.operation
        if type(op) is tir.BufferRegionOp:
            for outer in op.result.uses:
                user = outer.operation
                kind = type(user)
                if (kind is tir.ReadsOp or kind is tir.WritesOp) and op_around(user) is scope:
                    continue
                found += _use_at(user, scope, kind is not tir.WritesOp, kind is not tir.ReadsOp)
        elif type(op) is tir.LoadOp or type(op) is tir.StoreOp:
            found += _use_at(op, scope, type(op) is tir.LoadOp, type(op) is tir.StoreOp)
        else:
            found += _use_at(op, scope, True, True)
    return found


def _use_at(op: Operation, scope: Scope, reads: bool, writes: bool) -> list[Use]:
    block: tir.BlockOp | None = None
    current: Operation | None = op
    while current is not None and current is not scope:
        if type(current) is tir.BlockOp:
            block = current
        current = op_around(current)
    return [] if current is None else [Use(block, reads, writes)]


def writers(buffer: SSAValue, scope: Scope) -> list[tir.BlockOp]:
    """Returns the blocks directly in `scope` that write a buffer, in no order, each once."""
    return list(dict.fromkeys(u.block for u in uses_in(buffer, scope) if u.writes and u.block is not None))


def readers(buffer: SSAValue, scope: Scope) -> list[tir.BlockOp]:
    """Returns the blocks directly in `scope` that read a buffer, in no order, each once."""
    return list(dict.fromkeys(u.block for u in uses_in(buffer, scope) if u.reads and u.block is not None))


def in_order(blocks: Iterable[tir.BlockOp], root: Operation) -> list[tir.BlockOp]:
    """Blocks inside `root` in the order in which they stand."""
    distinct = list(dict.fromkeys(blocks))
    if len(distinct) > _FEW:
        wanted = set(distinct)
        return [block for block in child_blocks(root) if block in wanted]
    return sorted(distinct, key=cmp_to_key(lambda a, b: -1 if runs_before(a, b) or is_inside(b, a) else 1))


_FEW = 16
"""So many blocks are put in order by comparing them, which does not depend on how much else there is; more by a walk."""


def runs_before(a: Operation, b: Operation) -> bool:
    """Returns whether op `a` is before op `b`; False when one is in the other."""
    above: dict[Operation, Operation] = {}
    current = a
    while (parent := current.parent_op()) is not None:
        above[parent] = current
        current = parent
    current = b
    while (parent := current.parent_op()) is not None:
        if parent in above:
            return current.parent is above[parent].parent and _precedes(above[parent], current)
        current = parent
    return False


def _precedes(a: Operation, b: Operation) -> bool:
    """Returns whether a sibling is before another, searching both ways: the cost is their distance."""
    later, earlier = a.next_op, a.prev_op
    while later is not None or earlier is not None:
        if later is b:
            return True
        if earlier is b:
            return False
        later = None if later is None else later.next_op
        earlier = None if earlier is None else earlier.prev_op
    return False


def buffers_read(block: tir.BlockOp) -> list[SSAValue]:
    """Returns the buffers of a block's reads, in the order written, with repeats."""
    return [region.buffer for region in read_regions(block)]


def buffers_written(block: tir.BlockOp) -> list[SSAValue]:
    """Returns the buffers of a block's writes, in the order written, with repeats."""
    return [region.buffer for region in write_regions(block)]


def read_regions(block: tir.BlockOp) -> list[tir.BufferRegionOp]:
    """Returns the regions of a block's `T.reads`."""
    return _regions(block.find(tir.ReadsOp))


def write_regions(block: tir.BlockOp) -> list[tir.BufferRegionOp]:
    """Returns the regions of a block's `T.writes`."""
    return _regions(block.find(tir.WritesOp))


def _regions(op: Operation | None) -> list[tir.BufferRegionOp]:
    if op is None:
        return []
    return [r.owner for r in op.operands if isinstance(r.owner, tir.BufferRegionOp)]


def producers(block: tir.BlockOp) -> list[tir.BlockOp]:
    """Returns the blocks of the same scope that write what `block` reads, in order."""
    scope = scope_of(block)
    found = {w for b in dict.fromkeys(buffers_read(block)) for w in writers(b, scope) if w is not block}
    return in_order(found, scope)


def consumers(block: tir.BlockOp) -> list[tir.BlockOp]:
    """Returns the blocks of the same scope that read what `block` writes, in order."""
    scope = scope_of(block)
    found = {r for b in dict.fromkeys(buffers_written(block)) for r in readers(b, scope) if r is not block}
    return in_order(found, scope)
