"""`eliminate-common-subexpr`: merges uses of one operator on the same arguments.

    add(nn.relu(%x), nn.relu(%x))   ->   %0 = nn.relu(%x); add(%0, %0)

As TVM's pass of this name: uses of operators and projections of tuples are merged, in local functions and branches with
those around them, and what every branch computes is computed before the branches. Equal scalars are the same argument,
arguments in another order are others; stateful operators and those without arguments stay. (`cse`, which knows any dialect,
also merges constants, tuples, functions and branches.)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.operator import OperatorOp
from ....support.edit import erase_op, insert_op_before
from ....support.locations import fuse_locations
from ....support.trace import Tracer, tracer
from ....support.walk import walk_ops
from ...changes import op_name
from ...common.cse import Equality, merge_equal_ops, shallow_key
from ..common.rewriting import inner_first, place_leaves, replace


@dataclass(frozen=True)
class EliminateCommonSubexpr(ModulePass):
    """Merge operators with equal attributes and the same arguments."""

    name = "eliminate-common-subexpr"
    tells: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        trace = tracer(self.name)
        for inner in inner_first(op):
            if isinstance(inner, ir.IfOp | ir.MatchOp):
                _hoist_common(inner, trace)
        scalars = [inner for inner in walk_ops(op) if isinstance(inner, ir.ConstantOp)]
        merge_equal_ops(op, _TvmEquality(), trace)
        for scalar in scalars:
            if scalar.result.first_use is None:
                erase_op(scalar)


def _hoist_common(branching: ir.IfOp | ir.MatchOp, trace: Tracer | None) -> None:
    """Moves what every branch computes to before them, so that what follows can take it from there, too."""
    blocks = [region.block for region in branching.regions]
    inside = set(blocks)
    numbers: dict[Hashable, int] = {}
    found = [_numbered(block, inside, numbers) for block in blocks]
    common = [key for key in found[0] if all(key in others for others in found[1:])]
    for key in common:
        kept, *others = [ops[key] for ops in found]
        if trace is not None:
            notes = [("as here", op) for op in others]
            trace(kept, f"{op_name(kept)} is computed in every branch: it moves in front of them", *notes)
        for operand in kept.operands:
            if isinstance(operand.owner, ir.ConstantOp) and operand.owner.parent in inside:
                copy = operand.owner.clone()
                insert_op_before(copy, branching)
                kept.operands[list(kept.operands).index(operand)] = copy.result
        kept.detach()
        insert_op_before(kept, branching)
        kept.location = fuse_locations(op.location for op in (kept, *others))
        for op in others:
            replace(op, kept.results[0])
        place_leaves(kept)


def _numbered(block: Block, inside: set[Block], numbers: dict[Hashable, int]) -> dict[int, Operation]:
    """Numbers the ops of a branch that could move out of it.

    Equal ops of other branches have the same number.
    """
    of_value: dict[SSAValue, int] = {}
    found: dict[int, Operation] = {}
    equality = _TvmEquality()
    for op in block.ops:
        if not equality.may_merge(op) or (isinstance(op, OperatorOp) and op.OPERATOR.stateful):
            continue
        operands: list[Hashable] = []
        for operand in op.operands:
            home = operand.owner if isinstance(operand.owner, Block) else operand.owner.parent
            if operand in of_value:
                operands.append(of_value[operand])
            elif home not in inside or _is_scalar(operand):
                operands.append(("outside", equality.operand_key(operand)))
            else:
                break
        if len(operands) == len(op.operands):
            number = numbers.setdefault((shallow_key(op), *operands), len(numbers))
            of_value[op.results[0]] = number
            found.setdefault(number, op)
    return found


class _TvmEquality(Equality):
    def may_merge(self, op: Operation) -> bool:
        return isinstance(op, OperatorOp | ir.TupleGetItemOp) and bool(op.operands)

    def commutes(self, op: Operation) -> bool:
        return False

    def operand_key(self, operand: SSAValue) -> Hashable:
        owner = operand.owner
        return owner.value if isinstance(owner, ir.ConstantOp) and _is_scalar(operand) else id(operand)


def _is_scalar(value: SSAValue) -> bool:
    """Returns whether `value` is a constant of rank 0."""
    return isinstance(value.owner, ir.ConstantOp) and not value.owner.value.data.shape
