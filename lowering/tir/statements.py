"""TIR's statements as structured control flow."""

from __future__ import annotations

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import tir
from ...dialects.interned import i32_array
from ...dialects.llvm_ext import LoopAnnotationAttr
from ...dialects.plain_op import SEGMENTS
from ...dialects.tir.stmt import PREFETCH
from ...support.diagnostics import error_at
from ...support.edit import create_op
from ...support.operands import operands_of
from .emitter import INDEX
from .function import FunctionLowering, lowers
from .intrinsics import lower_call
from .values import Index

LOOP_ANNOTATION = "loop_annotation"
UNROLL_FULLY = LoopAnnotationAttr.of({"unroll.full": 1, "mustprogress": 1})
UNROLL = LoopAnnotationAttr.of({"unroll.enable": 1, "mustprogress": 1})

ROLLED = LoopAnnotationAttr.of({"unroll.disable": 1, "mustprogress": 1})
LONG_BODY = 16
"""Ops of a loop's body from which on unrolling multiplies compile time without a gain."""
LONG_SUM = 48
"""The same for a body with a loop-carried dependence; a loop that stays rolled counts as so many ops."""
# Loops of constant extent up to this are unrolled completely by LLVM; longer ones partially.
MAX_FULL_UNROLL = 128


def _loop_range(f: FunctionLowering, start: Index, extent: Index) -> Index:
    """Returns the range of a loop variable, with no value yet."""
    low, high = start.low, None
    if start.high is not None and extent.high is not None:
        high = start.high + extent.high - 1
    return Index(0, low, high)


@lowers(tir.ForOp)
def lower_for(f: FunctionLowering, op: tir.ForOp) -> None:
    """Lowers a loop to one over `index`. Loops bound to GPU threads run serially."""
    start, extent = f.index(op.min), f.index(op.extent)
    outer, f.prefetch = f.prefetch, _prefetch_distance(op) or f.prefetch
    try:
        _lower_loop(f, op, start, extent)
    finally:
        f.prefetch = outer


def _prefetch_distance(op: tir.ForOp) -> int:
    """Returns how many bytes ahead of its loads a loop asks for memory; 0 for none."""
    distance = op.annotations.data.get(PREFETCH)
    return distance.value.data if isinstance(distance, IntegerAttr) else 0


def _lower_loop(f: FunctionLowering, op: tir.ForOp, start: Index, extent: Index) -> None:
    body = op.body.block
    if extent.value == 1:
        _enter_name(op, start)
        f.bind(op.loop_var, start)
        f.lower_ops(body.ops)
        return
    if isinstance(extent.value, int) and extent.value <= 0:
        return
    known = _loop_range(f, start, extent)
    stop = f.index_add(start, extent)
    bounds = [f.ssa(start), f.ssa(stop), f.constant(1, INDEX)]
    block = Block(arg_types=[INDEX])
    variable = block.args[0]
    variable.name_hint = _hint(op.var_name.data)
    f.bind(op.loop_var, Index(variable, known.low, known.high))
    if op.kind.data == "parallel" and not f.in_parallel:
        _parallel(f, op, block, bounds)
        return
    f.lower_region(block, body.ops, lambda: f.act(scf.YieldOp, ()))
    f.location = op.location
    loop = f.loop(bounds, block)
    turns = extent.value if isinstance(extent.value, int) else None
    size = _size(f, block)
    if op.kind.data == "unrolled":
        full = turns is not None and turns <= MAX_FULL_UNROLL
        loop.attributes[LOOP_ANNOTATION] = UNROLL_FULLY if full else UNROLL
        if full and turns is not None:
            f.sizes[loop] = size * turns
    elif _is_long(f, block, size):
        loop.attributes[LOOP_ANNOTATION] = ROLLED


def _is_long(f: FunctionLowering, block: Block, size: int) -> bool:
    """Returns whether unrolling a loop of `size` ops makes it no faster."""
    return size >= LONG_SUM or (size >= LONG_BODY and not _accumulates(f, block))


def _size(f: FunctionLowering, block: Block) -> int:
    """Returns how many ops one iteration of a loop executes, with all iterations of unrolled inner loops."""
    size, pending = 0, [block]
    while pending:
        for op in pending.pop().ops:
            kind = type(op)
            if kind is scf.ForOp:
                size += f.sizes.pop(op, LONG_SUM)
            elif kind is not arith.ConstantOp:
                size += 1
                if op.regions:
                    pending += [inner for region in op.regions for inner in region.blocks]
    return size


def _accumulates(f: FunctionLowering, block: Block) -> bool:
    """Returns whether an iteration writes memory that it has read before, as sums do."""
    read, written = _memory_of(f, block)
    return not read.isdisjoint(written)


def _memory_of(f: FunctionLowering, block: Block) -> tuple[set[SSAValue], set[SSAValue]]:
    """Returns the memory that a block reads before it writes it, and the memory it writes; memoized."""
    known = f.memory.get(block)
    if known is not None:
        return known
    read: set[SSAValue] = set()
    written: set[SSAValue] = set()
    for op in block.ops:
        for operand in operands_of(op):
            if type(operand.type) is MemRefType:
                if not op.results:
                    written.add(operand)
                elif operand not in written:
                    read.add(operand)
        for region in op.regions:
            for inner in region.blocks:
                read_inside, written_inside = _memory_of(f, inner)
                read |= read_inside - written
                written |= written_inside
    f.memory[block] = read, written
    return read, written


def _enter_name(op: tir.ForOp, start: Index) -> None:
    if isinstance(start.value, SSAValue) and start.value.name_hint is None:
        start.value.name_hint = _hint(op.var_name.data)


def _hint(name: str) -> str | None:
    return name if SSAValue.is_valid_name(name) else None


def _parallel(f: FunctionLowering, op: tir.ForOp, block: Block, bounds: list[SSAValue]) -> None:
    """Lowers a loop whose iterations run on threads; each iteration allocates the memory that it needs."""
    f.anchors.append((block, len(f.frees)))
    f.in_parallel = True
    f.lower_region(block, op.body.block.ops, lambda: f.act(scf.ReduceOp, ()))
    f.in_parallel = False
    f.anchors.pop()
    f.location = op.location
    loop = create_op(scf.ParallelOp, bounds, (), {SEGMENTS: i32_array(1, 1, 1, 0)}, f.location)
    loop.add_region(Region(block))
    f.append(loop)
    if _is_long(f, block, _size(f, block)):
        loop.attributes[LOOP_ANNOTATION] = ROLLED


@lowers(tir.ScopeOp)
def lower_scope(f: FunctionLowering, op: tir.ScopeOp) -> None:
    """Lowers the body, and frees its allocations at its end."""
    f.frees.append([])
    f.lower_ops(op.body.block.ops)
    f.release()


@lowers(tir.IfOp)
def lower_if(f: FunctionLowering, op: tir.IfOp) -> None:
    """A branch; one that is decided by ranges vanishes."""
    condition = f.plain(op.condition)
    owner = condition.owner
    known = owner.properties.get("value") if isinstance(owner, Operation) and owner.name == "arith.constant" else None
    sides = [op.then_region, op.else_region]
    if isinstance(known, IntegerAttr):
        chosen = sides[0 if known.value.data else 1]
        for block in chosen.blocks:
            f.frees.append([])
            f.lower_ops(block.ops)
            f.release()
        return
    regions: list[Region] = []
    for side in sides:
        region = Region()
        if side.blocks:
            block = Block()
            region.add_block(block)
            f.lower_region(block, side.block.ops, lambda: f.act(scf.YieldOp, ()))
        regions.append(region)
    f.location = op.location
    f.append(scf.IfOp(condition, [], regions[0], regions[1]))


@lowers(tir.WhileOp)
def lower_while(f: FunctionLowering, op: tir.WhileOp) -> None:
    """Lowers a loop whose condition is evaluated before each iteration."""
    before, after = Block(), Block()
    last = op.condition.block.last_op
    assert isinstance(last, tir.YieldOp)
    ops = [inner for inner in op.condition.block.ops if inner is not last]
    f.lower_region(before, ops, lambda: f.append(scf.ConditionOp(f.plain(last.values[0]))))
    f.lower_region(after, op.body.block.ops, lambda: f.act(scf.YieldOp, ()))
    f.location = op.location
    f.append(scf.WhileOp([], [], Region(before), Region(after)))


@lowers(tir.AssertOp)
def lower_assert(f: FunctionLowering, op: tir.AssertOp) -> None:
    """A false condition leaves the function with the message."""
    f.append(cf.AssertOp(f.plain(op.condition), StringAttr(op.message.data)))


@lowers(tir.EvaluateOp)
def lower_evaluate(f: FunctionLowering, op: tir.EvaluateOp) -> None:
    """The expression's effects are those of the ops that compute it."""


IGNORED_ATTRIBUTES = (
    "pragma_", "storage_scope", "realize_scope", "storage_alignment", "buffer_bind_scope", "buffer_dim_align",
    "double_buffer", "loop_scope", "reduce_scope", "hand_threaded", "compute_scope", "device_id", "device_type",
    "target", "extern_scope", "prefetch_scope", "virtual_thread", "layout_transforms", "axis_separators", "noalias",
    "tir.", "software_pipeline", "hoist",
)  # fmt: skip


@lowers(tir.AttrOp)
def lower_attr(f: FunctionLowering, op: tir.AttrOp) -> None:
    """Hints are dropped; threads become loops over the rest of the region."""
    key = op.key.data
    node = op.node.owner
    if key in ("thread_extent", "virtual_thread") and isinstance(node, tir.IterVarOp):
        _run_serially(f, op, node.var, f.index(op.value), node.thread_tag.data)
    elif not key.startswith(IGNORED_ATTRIBUTES):
        raise error_at(
            op, f"the attribute '{key}' cannot be compiled for a CPU", "it changes what the code below it means"
        )


@lowers(tir.LaunchThreadOp)
def lower_launch_thread(f: FunctionLowering, op: tir.LaunchThreadOp) -> None:
    """The rest of the region, once per thread, one after the other."""
    _run_serially(f, op, op.result, f.index(op.extent), op.thread.data, op.env)


def _run_serially(
    f: FunctionLowering, op: Operation, variable: SSAValue, extent: Index, thread: str, alias: SSAValue | None = None
) -> None:
    block = Block(arg_types=[INDEX])
    block.args[0].name_hint = _hint(thread.replace(".", "_"))
    form = Index(block.args[0], 0, None if extent.high is None else extent.high - 1)
    f.bind(variable, form)
    if alias is not None:
        f.bind(alias, form)
    bounds = [f.constant(0, INDEX), f.ssa(extent), f.constant(1, INDEX)]
    f.lower_region(block, f.rest, lambda: f.act(scf.YieldOp, ()))
    f.location = op.location
    f.loop(bounds, block)


@lowers(tir.IterVarOp, tir.TargetOp, tir.EnvThreadOp)
def lower_token(f: FunctionLowering, op: Operation) -> None:
    """Does nothing: nodes of attributes have no value."""


@lowers(tir.PrefetchOp, tir.BufferRegionOp)
def lower_hint(f: FunctionLowering, op: Operation) -> None:
    """Prefetching is left to the hardware; a region alone does nothing."""


@lowers(tir.RealizeOp)
def lower_realize(f: FunctionLowering, op: tir.RealizeOp) -> None:
    """The buffer's own declaration brings its memory."""


@lowers(tir.BlockOp, tir.InitOp, tir.ReadsOp, tir.WritesOp)
def lower_block(f: FunctionLowering, op: Operation) -> None:
    """Blocks are gone by now."""
    name = op.block_name.data if isinstance(op, tir.BlockOp) else op.name
    raise error_at(
        op,
        f"block '{name}' must be lowered to loops first",
        "run lower-init-block, convert-blocks-to-opaque and lower-opaque-block",
    )


@lowers(tir.CallOp)
def lower_call_op(f: FunctionLowering, op: tir.CallOp) -> None:
    """Intrinsics and calls of functions."""
    lower_call(f, op)
