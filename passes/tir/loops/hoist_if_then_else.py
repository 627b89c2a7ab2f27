"""The pass `hoist-if-then-else`: an invariant branch that is the whole body of a loop goes around it.

for i in range(8):                     if n > 4:
    if n > 4:                  →           for i in range(8):
        B[i] = A[i]                            B[i] = A[i]
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....support.diagnostics import Diagnostic, MirError
from ....support.edit import builder_before, erase_op, move_to_end
from ....support.effects import is_side_effect_free
from ....support.walk import post_order, walk_ops
from ..clone_body import hoist_views
from ..rewriting import is_statement, only_statement, prim_funcs
from ..scalars.remove_no_op import remove_no_ops
from ..scalars.simplify import simplify_function

MAX_DISTANCE = 64
"""Declarations further in front of a branch, in ops, stay there."""


def hoist(loop: tir.ForOp) -> tir.IfOp | None:
    """Moves the branch in a loop's body around the loop; returns the branch, or None where it must stay."""
    branch = only_statement(loop.body.block)
    if not isinstance(branch, tir.IfOp) or (loop.var is not None and branch.else_region.blocks):
        return None
    needed = _condition_ops(branch, loop)
    if needed is None:
        return None
    home = loop.parent
    assert home is not None
    hoist_views(loop)
    for op in needed:
        op.detach()
        home.insert_op_before(op, loop)
    has_else = bool(branch.else_region.blocks)
    sides = [branch.then_region.detach_block(0), *([branch.else_region.detach_block(0)] if has_else else [])]
    outer = builder_before(loop, branch.location).insert(tir.IfOp(branch.condition))
    erase_op(branch)
    if has_else:
        mapper: dict[SSAValue, SSAValue] = {}
        other = loop.clone(mapper)
        outer.else_region.add_block(Block([other]))
        move_to_end(sides[1].ops, other.body.block)
        for op in walk_ops(other):
            for index, operand in enumerate(op.operands):
                if operand in mapper:
                    op.operands[index] = mapper[operand]
    move_to_end([loop], outer.then_region.block)
    move_to_end(sides[0].ops, loop.body.block)
    _sink_views(outer)
    return outer


def _sink_views(branch: tir.IfOp) -> None:
    """Declarations just before the branch that only its first side uses go in there."""
    op = branch.prev_op
    inside = set(walk_ops(branch.then_region.block.first_op)) if branch.then_region.block.first_op else set[Operation]()
    for _ in range(MAX_DISTANCE):
        if op is None or is_statement(op):
            break
        before = op.prev_op
        is_view = isinstance(op, tir.DeclBufferOp) and bool(op.implicit.value.data)
        if is_view and op.results[0].uses and all(use.operation in inside for use in op.results[0].uses):
            op.detach()
            first = branch.then_region.block.first_op
            assert first is not None
            branch.then_region.block.insert_op_before(op, first)
            inside.add(op)
        op = before


def _condition_ops(branch: tir.IfOp, loop: tir.ForOp) -> list[Operation] | None:
    """Returns the ops of a loop's body that compute a condition, in order; None if it varies."""
    block = loop.body.block
    needed: set[Operation] = set()
    pending = [branch.condition]
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, Block):
            if owner is block:
                return None
        elif owner.parent is block and owner not in needed:
            if owner.regions or not is_side_effect_free(owner):
                return None
            needed.add(owner)
            pending += owner.operands
        if value is loop.var:
            return None
    return [op for op in block.ops if op in needed]


def hoist_over_threads(branch: tir.IfOp) -> None:
    """Moves a branch that ends its region before the launches of threads that its condition does not need."""
    while (launch := branch.prev_op) is not None and branch.next_op is None:
        condition: list[Operation] = []
        while launch is not None and not is_statement(launch):
            condition.append(launch)
            launch = launch.prev_op
        if not isinstance(launch, tir.LaunchThreadOp) or not all(map(_may_move, condition)):
            return
        used = {use.operation for use in launch.result.uses}
        if launch.env is not None or branch in used or any(op in used for op in condition):
            return
        home = branch.parent
        assert home is not None
        for op in reversed(condition):
            op.detach()
            home.insert_op_before(op, launch)
        launch.detach()
        if branch.else_region.blocks:
            mapper: dict[SSAValue, SSAValue] = {}
            copy = launch.clone(mapper)
            for op in walk_ops_of(branch.else_region):
                for index, operand in enumerate(op.operands):
                    if operand in mapper:
                        op.operands[index] = mapper[operand]
            _put_first(copy, branch.else_region.block)
        _put_first(launch, branch.then_region.block)


def _may_move(op: Operation) -> bool:
    return isinstance(op, tir.VarOp | tir.DeclBufferOp) or is_side_effect_free(op)


def walk_ops_of(region: Region) -> list[Operation]:
    """Returns every op inside a region."""
    return [op for block in region.blocks for outer in block.ops for op in walk_ops(outer)]


def _put_first(op: Operation, block: Block) -> None:
    first = block.first_op
    if first is None:
        block.add_op(op)
    else:
        block.insert_op_before(op, first)


@dataclass(frozen=True)
class HoistIfThenElse(ModulePass):
    """Moves branches out of loops that they do not depend on, then simplifies and removes no-ops, as TVM.

    With `support_block_scope_hosting` also out of launches of threads; `variant` "basic" never does that.
    """

    name = "hoist-if-then-else"
    variant: str = ""
    support_block_scope_hosting: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hoists the branches of every prim_func of the module; raises MirError for an unknown variant."""
        if self.variant not in ("", "basic"):
            raise MirError(Diagnostic(f"hoist-if-then-else has no variant '{self.variant}'; it has 'basic'"))
        for func in prim_funcs(op):
            for inner in post_order(func):
                if isinstance(inner, tir.ForOp):
                    self.hoist_from(inner)
            simplify_function(func)
            remove_no_ops(func)

    def hoist_from(self, loop: tir.ForOp) -> None:
        """Hoists the branches in a loop's body; what a side then holds may be a branch again."""
        pending = [loop]
        while pending:
            current = pending.pop()
            branch = None if current.kind.data == "thread_binding" else hoist(current)
            if branch is None:
                continue
            pending += [
                op for region in branch.regions for b in region.blocks for op in b.ops if isinstance(op, tir.ForOp)
            ]
            if self.support_block_scope_hosting and not self.variant:
                hoist_over_threads(branch)
