"""compute_inline, reverse_compute_inline: a block's expression moves into the blocks around it."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr
from ....dialects.arith.expr import eq, ge, logical_and, lt, substitute
from ....dialects.arith.int_set import relax
from ....dialects.arith.iter_map import IterMapLevel, IterRange, inverse_affine_iter_map
from ....dialects.tir.types import I1
from ....support.edit import block_of_ops, builder_before, erase_op
from ....support.locations import fuse_locations
from ....support.op_kinds import Kinds
from ....support.walk import all_ops
from ...tir.rewriting import erase_if_dead, ops_of
from ..analysis.access import declare_access
from ..analysis.block_kind import why_not_complete
from ..analysis.region_cover import repeated_with, why_not_apart
from ..analysis.structure import (
    buffers_read,
    child_under,
    const_int,
    in_order,
    is_inside,
    readers,
    runs_before,
    scope_of,
    uses_in,
    writers,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.clone_expression import clone_value
from .common.loops import require_block, require_complete, require_own_values


@primitive
def compute_inline(state: State, block: tir.BlockOp) -> None:
    """Puts a block's expression where its output is read; the block and its buffer vanish.

    with T.block("B"): B[vi, vj] = A[vi, vj] * 2
    with T.block("C"): C[vi, vj] = B[vi, vj] + 1     →     with T.block("C"): C[vi, vj] = A[vi, vj] * 2 + 1
    """
    store, users, loads = check_compute_inline(block)
    buffer, axes = store.buffer, list(block.iter_vars)
    nest = child_under(scope_of(block), block)
    for load in loads:
        builder = builder_before(load)
        values = {
            axis: builder.insert(tir.CastOp(index, axis.type)).result if index.type != axis.type else index
            for axis, index in zip(store.indices, load.indices, strict=True)
            if axis in axes
        }
        for axis in _only_zero(block):
            if axis not in values:
                values[axis] = builder.insert(tir.ConstOp.int(0, axis.type)).result
        value = clone_value(store.value, values, builder, nest)
        load.result.replace_all_uses_with(value)
        erase_op(load)
    for user in users:
        user.location = fuse_locations([user.location, block.location])
        _redeclare(user)
    remove_block(state, block, f"block '{block.block_name.data}' was inlined")
    _drop_buffer(buffer)


def _only_zero(block: tir.BlockOp) -> list[SSAValue]:
    """Returns the axes of a block that are always 0, which its output may be indexed without."""
    sizes = zip(block.iter_vars, block.dom_mins, block.dom_extents, strict=True)
    return [axis for axis, low, size in sizes if const_int(low) == 0 and const_int(size) == 1]


def check_compute_inline(block: tir.BlockOp) -> tuple[tir.StoreOp, list[tir.BlockOp], list[tir.LoadOp]]:
    """Returns a block's only store, its readers and their loads; raises when it may not be inlined."""
    block = require_block(block, "compute_inline")
    store, buffer = _single_store(block, "compute_inline")
    _require_intermediate(block, buffer, "compute_inline")
    loads = _loads_outside(buffer, block, "compute_inline")
    require_complete(block, "compute_inline", "each element must be computed once, from finished inputs")
    if block.predicate is not None:
        raise refuse(
            block,
            f"compute_inline: block '{block.block_name.data}' has a predicate (T.where)",
            "inline before splitting, or split by factors of the extent",
        )
    require_own_values(block, "compute_inline")
    axes = list(block.iter_vars)
    analyzer = Analyzer()
    for number, index in enumerate(store.indices):
        if index not in axes and analyzer.expr(index).value is None:
            raise refuse(
                store,
                f"compute_inline: index {number} of '{tir.buffer_name(buffer)}' is not an axis of block '{block.block_name.data}'",
                "the block must write B[v0, v1, …], each index one axis of its own",
            )
    used = [i for i in store.indices if i in axes]
    if len(set(used)) != len(used) or not {*used, *_only_zero(block)}.issuperset(axes):
        raise refuse(
            store,
            f"compute_inline: block '{block.block_name.data}' does not index its output by each axis once",
            "the block must write B[v0, v1, …], each index one axis of its own",
        )
    scope = scope_of(block)
    users = in_order((b for b in readers(buffer, scope) if b is not block), scope)
    if not users:
        raise refuse(
            block,
            f"compute_inline: nothing reads '{tir.buffer_name(buffer)}'",
            f"there is no place for what block '{block.block_name.data}' computes",
        )
    for source in dict.fromkeys(buffers_read(block)):
        for writer in writers(source, scope):
            if any(
                repeated_with(user, writer, block) or not (runs_before(writer, block) or runs_before(user, writer))
                for user in users
            ):
                raise refuse(
                    writer,
                    f"compute_inline: block '{writer.block_name.data}' overwrites '{tir.buffer_name(source)}', which block '{block.block_name.data}' reads, before '{tir.buffer_name(buffer)}' is read for the last time",
                    "what is computed from the old values must be kept",
                )
    for user in users:
        reason = why_not_apart(block, user, with_readers=False)
        if reason is not None:
            raise refuse(user, f"compute_inline: {reason}", "what is computed from the values of then must be kept")
    return store, users, loads


def _redeclare(block: tir.BlockOp) -> None:
    """Declares the accesses of a block, after those of the blocks in it."""
    inner = [op for op in all_ops(block) if isinstance(op, tir.BlockOp)]
    for op in reversed(inner):
        declare_access(op)


@primitive
def reverse_compute_inline(state: State, block: tir.BlockOp) -> None:
    """Puts a block's expression where its one input is computed; the block and that input's buffer vanish.

    with T.block("B"): B[vi, vj] = A[vi, vj] * 2
    with T.block("C"): C[vi, vj] = B[vi, vj] + 1     →     with T.block("B"): C[vi, vj] = A[vi, vj] * 2 + 1
    """
    block = require_block(block, "reverse_compute_inline")
    name = block.block_name.data
    store, output = _single_store(block, "reverse_compute_inline")
    require_complete(block, "reverse_compute_inline", "each element must be computed once, from finished inputs")
    scope = scope_of(block)
    loads = [op for op in all_ops(block) if isinstance(op, tir.LoadOp)]
    inputs = [b for b in dict.fromkeys(op.buffer for op in loads) if writers(b, scope)]
    if len(inputs) != 1:
        raise refuse(
            block,
            f"reverse_compute_inline: block '{name}' reads {len(inputs)} buffers that blocks of its scope compute",
            "it must read exactly one",
        )
    (buffer,) = inputs
    _require_intermediate(block, buffer, "reverse_compute_inline")
    makers = writers(buffer, scope)
    if len(makers) != 1:
        raise refuse(
            block,
            f"reverse_compute_inline: '{tir.buffer_name(buffer)}' is written by {len(makers)} blocks",
            "one block must write the buffer",
        )
    (maker,) = makers
    if any(use.block is not block and use.block is not maker for use in uses_in(buffer, scope)):
        raise refuse(
            block,
            f"reverse_compute_inline: block '{name}' is not the only reader of '{tir.buffer_name(buffer)}'",
            "the buffer vanishes, so that no other block may read it",
        )
    for use in uses_in(output, scope):
        user = use.block
        if user is None or user is block:
            continue
        if repeated_with(maker, user, block) or (runs_before(user, block) and not runs_before(user, maker)):
            raise refuse(
                user,
                f"reverse_compute_inline: block '{user.block_name.data}' uses '{tir.buffer_name(output)}' before block '{name}' writes it, which is to happen in block '{maker.block_name.data}' already",
                "the two must keep their order",
            )
    reason = why_not_apart(block, maker)
    if reason is not None:
        raise refuse(block, f"reverse_compute_inline: {reason}", "it would run in other iterations than before")
    reason = why_not_complete(maker)
    if reason is not None:
        raise refuse(
            maker,
            f"reverse_compute_inline: the producer, block '{maker.block_name.data}', is not a complete block: {reason}",
            "reverse_compute_at puts the block after a producer that reduces",
        )
    made, _ = _single_store(maker, "reverse_compute_inline")
    analyzer = Analyzer()
    iters: dict[Atom, IterRange] = {}
    for variable, low, extent in zip(block.iter_vars, block.dom_mins, block.dom_extents, strict=True):
        analyzer.bind(variable, low, extent)
        iters[analyzer.variable(variable)] = IterRange(analyzer.expr(low), analyzer.expr(extent))
    reading = [op for op in loads if op.buffer is buffer]
    rows = {tuple(analyzer.expr(i) for i in op.indices) for op in reading}
    if len(rows) != 1:
        raise refuse(
            block,
            f"reverse_compute_inline: block '{name}' reads '{tir.buffer_name(buffer)}' at {len(rows)} places",
            "it must read one element of the buffer in each instance; compute_inline the producer instead",
        )
    (row,) = rows
    found = analyzer.detect_iter_map(
        list(row),
        {v: (lo, ex) for v, lo, ex in zip(block.iter_vars, block.dom_mins, block.dom_extents, strict=True)},
        1,
        IterMapLevel.BIJECTIVE,
    )
    if not found:
        raise refuse(
            block,
            f"reverse_compute_inline: the indices at which block '{name}' reads '{tir.buffer_name(buffer)}' cannot be inverted: {found.errors[0]}",
            "each instance must read an element of its own; compute_inline the producer instead",
        )
    stored_at = [analyzer.expr(i) for i in made.indices]
    inverse = inverse_affine_iter_map(analyzer, found, iters, stored_at)
    # Where the consumer reads less than the producer makes, the producer's other instances must store nothing.
    outside: list[Expr] = []
    fresh = Analyzer()
    for variable, low, extent in zip(maker.iter_vars, maker.dom_mins, maker.dom_extents, strict=True):
        fresh.bind(variable, low, extent)
    for atom, range_ in iters.items():
        value = inverse[atom]
        for condition in (ge(value, range_.min), lt(value, range_.min + range_.extent)):
            if not fresh.can_prove(condition):
                outside.append(fresh.simplify(condition))
    # Axes of one value say nothing of where they read.
    for read, stored in zip(row, stored_at, strict=True):
        condition = eq(substitute(read, inverse), stored)
        if not fresh.can_prove(condition):
            outside.append(fresh.simplify(condition))
    if block.predicate is not None:
        raise refuse(
            block,
            f"reverse_compute_inline: block '{name}' has a predicate (T.where)",
            "inline before splitting, or split by factors of the extent",
        )
    _require_covered(block, maker, row, stored_at, analyzer, fresh)
    require_own_values(block, "reverse_compute_inline")
    nest = child_under(scope, block)
    builder = builder_before(made)
    values: dict[SSAValue, SSAValue] = {}
    for variable in block.iter_vars:
        atom = analyzer.variable(variable)
        values[variable] = fresh.to_ssa(fresh.simplify(inverse[atom]), builder, variable.type)
    for op in reading:
        values[op.result] = made.value
    value = clone_value(store.value, values, builder, nest)
    indices = [clone_value(i, values, builder, nest) for i in store.indices]
    new = builder.insert(tir.StoreOp(value, output, indices))
    new.attributes.update(store.attributes)
    erase_op(made)
    if outside:
        _guard(maker, logical_and(*outside))
    maker.location = fuse_locations([maker.location, block.location])
    why = f"block '{name}' was inlined into block '{maker.block_name.data}'"
    remove_block(state, block, why)
    declare_access(maker)
    _drop_buffer(buffer)


def _require_covered(
    block: tir.BlockOp,
    maker: tir.BlockOp,
    row: tuple[Expr, ...],
    stored_at: list[Expr],
    consumer: Analyzer,
    producer: Analyzer,
) -> None:
    """Raises unless every element that the block reads is one that the producer makes."""
    axes = {a for v in maker.iter_vars if (a := producer.expr(v).atom) is not None}
    for number, (read, stored) in enumerate(zip(row, stored_at, strict=True)):
        ends = relax(stored, axes, producer)
        if ends is None or not (consumer.can_prove(ge(read, ends[0])) and consumer.can_prove(ge(ends[1], read))):
            raise refuse(
                block,
                f"reverse_compute_inline: block '{block.block_name.data}' reads elements that block '{maker.block_name.data}' does not make (index {number})",
                "the producer must cover all instances of the inlined block",
            )


def _guard(block: tir.BlockOp, condition: Expr) -> None:
    """Runs the statements of a block under a condition on its axes."""
    # What the declarations are made of stays before them.
    declared: set[Operation] = set()
    pending: list[Operation] = [op for op in block.body.block.ops if isinstance(op, tir.ReadsOp | tir.WritesOp)]
    while pending:
        op = pending.pop()
        if op not in declared and op.parent is block.body.block:
            declared.add(op)
            pending += [o.owner for o in op.operands if isinstance(o.owner, Operation)]
    moved = [op for op in block.body.block.ops if op not in declared]
    value = Analyzer().to_ssa(condition, builder_before(moved[0], block.location), I1)
    branch = tir.IfOp(value, block_of_ops(moved))
    branch.location = block.location
    block.body.block.add_op(branch)


# What both share


def _single_store(block: tir.BlockOp, primitive_name: str) -> tuple[tir.StoreOp, SSAValue]:
    """Returns the one store that a block consists of."""
    stores = ops_of(block, tir.StoreOp)
    name = block.block_name.data
    plain = not any(_STATEMENTS[type(op)] for op in all_ops(block) if op is not block)
    if len(stores) != 1 or not plain:
        raise refuse(
            block,
            f"{primitive_name}: block '{name}' is more than one store",
            "its body must be a single assignment B[v0, v1, …] = expression",
        )
    return stores[0], stores[0].buffer


_STATEMENTS = Kinds(tir.ForOp, tir.IfOp, tir.BlockOp, tir.InitOp, tir.WhileOp, tir.EvaluateOp)
"""Statements, stores apart."""


def _require_intermediate(block: tir.BlockOp, buffer: SSAValue, primitive_name: str) -> None:
    if not isinstance(buffer.owner, tir.AllocBufferOp):
        raise refuse(
            block,
            f"{primitive_name}: '{tir.buffer_name(buffer)}' is not an intermediate buffer of the function: its contents are seen outside",
            "only a buffer of T.alloc_buffer may vanish",
        )


def _loads_outside(buffer: SSAValue, block: tir.BlockOp, primitive_name: str) -> list[tir.LoadOp]:
    """Returns all loads of a buffer outside of its writer; raises for other uses, and for other writers."""
    loads: list[tir.LoadOp] = []
    for use in buffer.uses:
        op = use.operation
        if is_inside(op, block):
            continue
        if isinstance(op, tir.LoadOp) and op.predicate is None:
            loads.append(op)
        elif isinstance(op, tir.StoreOp) and scope_of(op) is not scope_of(block):
            # A block that writes the buffer as well: refused as such.
            continue
        elif not isinstance(op, tir.BufferRegionOp) or any(
            isinstance(u.operation, tir.MatchBufferOp) for u in op.result.uses
        ):
            raise refuse(
                op,
                f"{primitive_name}: '{tir.buffer_name(buffer)}' is used otherwise than by loads of its elements",
                f"only loads can be replaced by what block '{block.block_name.data}' computes",
            )
    return loads


def remove_block(state: State, block: tir.BlockOp, why: str) -> None:
    """Erases a block and the loops and blocks around it that hold nothing else."""
    victim: Operation = block
    parent = block.parent_op()
    while isinstance(parent, tir.ForOp | tir.IfOp) and _holds_only(parent, victim):
        victim = parent
        parent = parent.parent_op()
    operands = list(victim.operands)
    state.erase(victim, why)
    erase_if_dead(*operands)


def _holds_only(parent: Operation, child: Operation) -> bool:
    for region in parent.regions:
        for block in region.blocks:
            for op in block.ops:
                if op is not child and not op.results:
                    return False
                if op is not child and isinstance(op, tir.CallOp):
                    return False
    return True


def _drop_buffer(buffer: SSAValue) -> None:
    """Erases an allocation that nothing uses any more."""
    owner = buffer.owner
    if isinstance(owner, tir.AllocBufferOp) and not buffer.uses:
        erase_op(owner)
