"""Finds and lowers reductions over possibly empty ranges: `T.init` then runs without any iteration.

    for i, k in T.grid(8, n):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]

stores 0.0 where n is 0, as a sum over nothing is 0. Lowering decomposes such a reduction (the pass `decompose-open-reductions`); the
interpreter runs the result of `with_first_values`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ...support.edit import erase_op
from ...support.walk import op_around, walk_ops
from .arithmetic import AndOp, LeOp, OrOp
from .buffer import LoadOp
from .expr import CallOp, ConstOp
from .stmt import BlockOp, ForOp, IfOp, InitOp, PrimFuncOp
from .types import I1


def reducing_loops(block: BlockOp) -> list[ForOp]:
    """Returns the loops, outermost first, that drive only a block's reduction, if one may be empty.

    Otherwise, and for a block whose `T.init` never runs, none. A loop that also drives other axes enumerates elements: where it has no
    iterations, there are none to initialize.

    For the block above: the loop k.
    """
    axes = zip(block.iter_types.data, block.dom_extents, strict=True)
    if not any(kind.data == "R" and _number(extent) in (None, 0) for kind, extent in axes):
        return []
    found = loops_of_reduction(block)
    if _begins_later(block, found):
        return []
    kinds = zip(block.iter_types.data, block.bindings, strict=True)
    others = _reached([binding for kind, binding in kinds if kind.data != "R"])
    return [loop for loop in found if loop.loop_var not in others]


def loops_of_reduction(block: BlockOp) -> list[ForOp]:
    """Returns the loops, outermost first, that drive axes of a block's reduction, perhaps others too.

    For a block with an axis of its reduction bound to f % 4 and another axis to f // 4: the loop f.
    """
    kinds = zip(block.iter_types.data, block.bindings, strict=True)
    driving = _reached([binding for kind, binding in kinds if kind.data == "R"])
    found: list[ForOp] = []
    parent = op_around(block)
    while parent is not None and not isinstance(parent, BlockOp | PrimFuncOp):
        if isinstance(parent, ForOp) and parent.loop_var in driving:
            found.append(parent)
        parent = op_around(parent)
    return found[::-1]


def _begins_later(block: BlockOp, loops: list[ForOp]) -> bool:
    """Returns True if a reduction axis never has its first value, as in a partitioned loop's second part."""
    from ..arith import Analyzer

    analyzer = Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    return any(
        kind.data == "R" and analyzer.can_prove_ge0(analyzer.expr(binding) - analyzer.expr(low) - 1)
        for kind, binding, low in zip(block.iter_types.data, block.bindings, block.dom_mins, strict=True)
    )


def starts_empty_reduction(loop: ForOp) -> bool:
    """Returns True for a loop that reduces: even without iterations it runs `T.init`, an effect."""
    return any(loop in reducing_loops(block) for block in _initialized(loop))


def mixed_with_elements(loops: Sequence[ForOp]) -> BlockOp | None:
    """Returns the block of a possibly empty reduction driven by some, but not all, of these nested loops.

    Fused into one loop, they would have no iterations, also not of the loop over elements, so that no `T.init` would run: a block in
    them that `with_first_values` initializes is initialized in one iteration of it.
    """
    for block in _initialized(loops[0]):
        of_reduction = set(reducing_loops(block))
        inside = [loop for loop in loops if loop in of_reduction]
        others = [loop for loop in loops if loop not in of_reduction]
        if any(may_be_empty(loop) for loop in inside) and any(_number(loop.extent) != 1 for loop in others):
            return block
    return None


def may_be_empty(loop: ForOp) -> bool:
    """Returns True unless a loop is known to have an iteration."""
    from ..arith import Analyzer

    analyzer = Analyzer()
    return not analyzer.can_prove_ge0(analyzer.expr(loop.extent) - 1)


def carries_open_reduction(loop: ForOp) -> bool:
    """Returns True if a block in a loop reduces over a possibly empty range."""
    return any(reducing_loops(block) for block in _initialized(loop))


def with_first_values(func: PrimFuncOp) -> PrimFuncOp:
    """Returns the function, or a clone in which empty reductions run `T.init`.

    Before the outermost loop of such a reduction, under the condition that one of its loops has no iterations, is a clone of that loop
    in which each loop of the reduction has one, and only `T.init` is left of the block.
    """
    if not any(reducing_loops(block) for block in _initialized(func)):
        return func
    copy = func.clone()
    for block in _initialized(copy):
        loops = reducing_loops(block)
        if loops:
            put_first_values(block, loops)
    return copy


def _initialized(outer: Operation) -> list[BlockOp]:
    """Returns the blocks in a function or loop that have a `T.init`."""
    parents = [op.parent_op() for op in walk_ops(outer) if isinstance(op, InitOp)]
    return [block for block in parents if isinstance(block, BlockOp)]


def _number(value: SSAValue) -> int | None:
    owner = value.owner
    if not isinstance(owner, ConstOp) or not isinstance(owner.value, IntegerAttr):
        return None
    return owner.value.value.data


def _reached(values: list[SSAValue]) -> set[SSAValue]:
    """Returns the values and all that they are computed from."""
    pending, seen = list(values), set[SSAValue]()
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            if isinstance(value, OpResult):
                pending += value.op.operands
    return seen


def put_first_values(block: BlockOp, loops: list[ForOp]) -> BlockOp | None:
    """Inserts the block of `with_first_values` before `loops`, those of the reduction, and returns it.

    None if no condition on these loops can be computed before them.
    """
    outermost, place = loops[0], loops[0].parent
    assert place is not None
    values: list[SSAValue] = []
    for loop in loops:
        extent = _computed_before(loop.extent, outermost)
        if extent is not None:
            zero = ConstOp.int(0, extent.type)
            ends = LeOp(extent, zero.result)
            place.insert_ops_before([zero, ends], outermost)
            values.append(ends.result)
    if not values:
        return None
    empty = values[0]
    for value in values[1:]:
        either = OrOp(empty, value)
        place.insert_op_before(either, outermost)
        empty = either.result
    path: list[Operation] = [block]
    while path[-1] is not outermost:
        parent = op_around(path[-1])
        assert parent is not None
        path.append(parent)
    copied = outermost.clone()
    ones, first = _strip(copied, path[::-1], set(loops))
    place.insert_op_before(IfOp(empty, Region(Block([*ones, copied]))), outermost)
    return first


def _computed_before(value: SSAValue, loop: ForOp) -> SSAValue | None:
    """Clones a value before a loop that uses it; None if it depends on the loop, or on stored values.

    For (m + 3) // 4, the extent of a loop in `loop`: the same quotient before `loop`.
    """
    if not _is_in(value, loop):
        return value
    if not isinstance(value, OpResult) or value.op.regions or isinstance(value.op, LoadOp | CallOp):
        return None
    operands: list[SSAValue] = []
    for operand in value.op.operands:
        before = _computed_before(operand, loop)
        if before is None:
            return None
        operands.append(before)
    copy = value.op.clone(dict(zip(value.op.operands, operands, strict=True)))
    assert loop.parent is not None
    loop.parent.insert_op_before(copy, loop)
    return copy.results[value.index]


def _is_in(value: SSAValue, loop: ForOp) -> bool:
    """Returns True if a value is the variable of a loop, or defined in it."""
    around = value.owner.parent_op()
    while around is not None and around is not loop:
        around = op_around(around)
    return around is loop


def _strip(copy: Operation, path: list[Operation], reducing: set[ForOp]) -> tuple[list[Operation], BlockOp]:
    """Strips a loop's clone to the ops around the last block of `path`, and that block to its `T.init`.

    Loops of the reduction have one iteration; returns the constants for that, to be inserted before the clone, and the block.
    """
    ones: list[Operation] = []
    driving: set[SSAValue] = set()
    bodies: list[Block] = []
    for original, inner in zip(path, [*path[1:], None], strict=True):
        if isinstance(copy, ForOp) and original in reducing:
            one = ConstOp.int(1, copy.extent.type)
            ones.append(one)
            copy.operands[1] = one.result
            driving.add(copy.loop_var)
        following = copy
        for region, own in zip(original.regions, copy.regions, strict=True):
            for block, twin in zip(region.blocks, own.blocks, strict=True):
                bodies.append(twin)
                for op, same in zip(list(block.ops), list(twin.ops), strict=True):
                    if op is inner:
                        following = same
                    elif not op.results and not (inner is None and isinstance(op, InitOp)):
                        erase_op(same)
        copy = following
    assert isinstance(copy, BlockOp)
    _drop_conditions(copy, driving)
    first = _only_init(copy)
    bodies[-1] = first.body.block
    for body in reversed(bodies):
        for op in reversed(list(body.ops)):
            if op.results and not any(result.first_use for result in op.results):
                erase_op(op)
    return ones, first


def _only_init(block: BlockOp) -> BlockOp:
    """Replaces a block by its `T.init`, as a block over the axes that are not reduced.

    with T.block("sum"):                             with T.block("sum_init"):
        vi, vk = T.axis.remap("SR", [i, k])    →         vi = T.axis.spatial(8, i)
        with T.init():                                   B[vi] = 0.0
            B[vi] = 0.0

    A reduction axis has the first value of its domain in it.
    """
    kept = [k for k, kind in enumerate(block.iter_types.data) if kind.data != "R"]
    types = [block.iter_vars[k].type for k in kept]
    body = Block(arg_types=types)
    new = BlockOp(
        f"{block.block_name.data}_init",
        [block.iter_names.data[k].data for k in kept],
        [block.iter_types.data[k].data for k in kept],
        [block.dom_mins[k] for k in kept],
        [block.dom_extents[k] for k in kept],
        [block.bindings[k] for k in kept],
        predicate=block.predicate,
        annotations=block.annotations,
        body=Region(body),
    )
    new.location = block.location
    for argument, k in zip(body.args, kept, strict=True):
        argument.name_hint = block.iter_vars[k].name_hint
        block.iter_vars[k].replace_all_uses_with(argument)
    for k, low in enumerate(block.dom_mins):
        if k not in kept:
            block.iter_vars[k].replace_all_uses_with(low)
    for op in list(block.body.block.ops):
        for inner in list(op.body.block.ops) if isinstance(op, InitOp) else [op]:
            inner.detach()
            body.add_op(inner)
    assert block.parent is not None
    block.parent.insert_op_before(new, block)
    erase_op(block)
    return new


def _drop_conditions(block: BlockOp, driving: set[SSAValue]) -> None:
    """Removes the conditions on loops of the reduction from a predicate."""
    predicate, place = block.predicate, block.parent
    if predicate is None:
        return
    assert place is not None
    kept: SSAValue | None = None
    pending = [predicate]
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, AndOp):
            pending += [owner.rhs, owner.lhs]
        elif driving.isdisjoint(_reached([value])):
            if kept is not None:
                both = AndOp(kept, value)
                place.insert_op_before(both, block)
                value = both.result
            kept = value
    if kept is None:
        true = ConstOp.int(1, I1)
        place.insert_op_before(true, block)
        kept = true.result
    block.operands[list(block.operands).index(predicate)] = kept
