"""`scf` to `llvm`: loops and branches as blocks; loops carry their annotation to LLVM."""

from __future__ import annotations

from xdsl.dialects import llvm, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import llvm_ext
from ....support.diagnostics import error_at
from ....support.operands import operands_of
from ....support.walk import op_around
from .builder import NO_WRAP_SIGNED
from .converter import Converter, HandlerTable

TABLE = HandlerTable()

LOOP_ANNOTATION = "loop_annotation"
"""Attribute of a loop op and of the branch back to its header: an `llvm_ext.loop`."""

MUST_PROGRESS = llvm_ext.LoopAnnotationAttr.of({"mustprogress": 1})


@TABLE.on(scf.YieldOp, scf.ReduceOp)
def convert_yield(c: Converter, op: scf.YieldOp | scf.ReduceOp) -> None:
    """Keeps the operands of a region's terminator for the op around it, which goes on when the block ends."""
    if isinstance(op, scf.ReduceOp) and op.args:
        raise error_at(
            op, "scf.parallel with a reduction cannot be lowered", "reduce into a buffer, or use scf.for with iter_args"
        )
    parent = op_around(op)
    if isinstance(parent, scf.ExecuteRegionOp):
        c.branch(c.joins[parent], c.flatten(op.operands))
    else:
        c.yielded = operands_of(op)


@TABLE.on(scf.ConditionOp)
def convert_condition(c: Converter, op: scf.ConditionOp) -> None:
    """Keeps condition and values for the scf.while around it."""
    c.yielded = tuple(op.operands)


@TABLE.on(scf.ForOp)
def convert_for(c: Converter, op: scf.ForOp) -> None:
    """Lowers a loop: header(iv, args): if iv < ub then body; header(iv + step, yielded) else after.

    A loop that is known to have a first iteration is tested at its end, where LLVM would move the test to:
    header(iv, args): body; if iv + step < ub then header(iv + step, yielded) else after(yielded).
    """
    body = op.regions[0].block
    low, high, stride, *given = operands_of(op)
    lower, upper, step = c.operands_of(low, high, stride)
    signed = isinstance(low.type, IndexType) or "unsignedCmp" not in op.properties
    predicate = "slt" if signed else "ult"
    first, limit = c.index(low), c.index(high)
    has_turn = isinstance(first, int) and isinstance(limit, int) and 0 <= first < limit
    header, after = c.new_block(body.args), c.new_block(op.results if has_turn else ())
    c.branch(header, [lower, *c.flatten(given)])
    c.enter(header)
    c.bind_flat(body.args, header.args)
    induction = header.args[0]
    if not has_turn:
        loop = c.new_block()
        c.bind_flat(op.results, header.args[1:])
        c.cond_branch(c.icmp(predicate, induction, upper), loop, (), after, ())
        c.enter(loop)
    annotation = op.attributes.get(LOOP_ANNOTATION, MUST_PROGRESS)

    def close() -> None:
        carried = c.flatten(c.yielded)
        following = c.emit(llvm.AddOp, (induction, step), induction.type, NO_WRAP_SIGNED)
        if has_turn:
            more = c.icmp(predicate, following, upper)
            back = c.cond_branch(more, header, [following, *carried], after, carried)
        else:
            back = c.branch(header, [following, *carried])
        back.attributes[LOOP_ANNOTATION] = annotation
        c.enter(after)
        if has_turn:
            c.bind_flat(op.results, after.args)

    c.convert_block(body, close)


@TABLE.on(scf.WhileOp)
def convert_while(c: Converter, op: scf.WhileOp) -> None:
    """Lowers before(args): condition ? after(values) : exit(values); after jumps to before."""
    before_source, after_source = op.before_region.block, op.after_region.block
    before, after, leave = c.new_block(op.arguments), c.new_block(after_source.args), c.new_block(op.res)
    c.branch(before, c.flatten(op.arguments))
    c.enter(before)
    c.bind_flat(before_source.args, before.args)
    annotation = op.attributes.get(LOOP_ANNOTATION)

    def decide() -> None:
        condition, *passed = c.yielded
        flat = c.flatten(passed)
        c.cond_branch(c.value(condition), after, flat, leave, flat)
        c.enter(after)
        c.bind_flat(after_source.args, after.args)
        c.convert_block(after_source, close)

    def close() -> None:
        back = c.branch(before, c.flatten(c.yielded))
        if annotation is not None:
            back.attributes[LOOP_ANNOTATION] = annotation
        c.enter(leave)
        c.bind_flat(op.res, leave.args)

    c.convert_block(before_source, decide)


def _join_regions(c: Converter, op: Operation, branches: list[tuple[Region, Block]], join: Block) -> None:
    """Converts each single-block region into its block, each then jumping to `join` with what it yielded."""
    remaining = branches[::-1]

    def next_region() -> None:
        if not remaining:
            c.enter(join)
            c.bind_flat(op.results, join.args)
            return
        region, block = remaining.pop()
        c.enter(block)
        c.yielded = ()
        c.convert_block(region.block, close_region)

    def close_region() -> None:
        c.branch(join, c.flatten(c.yielded))
        next_region()

    next_region()


@TABLE.on(scf.IfOp)
def convert_if(c: Converter, op: scf.IfOp) -> None:
    """Lowers then and else, each jumping to the ops after."""
    join = c.new_block(op.output)
    then = c.new_block()
    branches = [(op.true_region, then)]
    if op.false_region.blocks:
        otherwise = c.new_block()
        branches.append((op.false_region, otherwise))
    else:
        otherwise = join
    c.cond_branch(c.value(op.cond), then, (), otherwise, ())
    _join_regions(c, op, branches, join)


@TABLE.on(scf.IndexSwitchOp)
def convert_index_switch(c: Converter, op: scf.IndexSwitchOp) -> None:
    """Lowers regions chosen by the value of an index."""
    join = c.new_block(op.output)
    default = c.new_block()
    regions = [(region, c.new_block()) for region in op.case_regions]
    cases: list[tuple[int, Block, list[SSAValue]]] = [
        (int(value), block, []) for value, (_, block) in zip(op.cases.get_values(), regions, strict=True)
    ]
    c.append(llvm_ext.SwitchOp(c.value(op.arg), default, (), cases))
    _join_regions(c, op, [(op.default_region, default), *regions], join)


@TABLE.on(scf.ExecuteRegionOp)
def convert_execute_region(c: Converter, op: scf.ExecuteRegionOp) -> None:
    """Inlines the region's blocks; its yields jump to the ops after."""
    join = c.new_block(op.outs)
    source_entry = op.region.blocks.first
    if source_entry is None:
        return
    entry = c.new_block()
    c.branch(entry)

    def finish() -> None:
        c.enter(join)
        c.bind_flat(op.outs, join.args)

    c.joins[op] = join
    c.convert_region(op.region, entry, finish)
