"""The check that every value is defined before it is used."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsolatedFromAbove

from .diagnostics import Diagnostic, MirError, location_of
from .graph import dominator_tree

# Ops whose regions are graphs: their ops have no order (MLIR language reference, "Graph Regions").
GRAPH_REGION_OPS = frozenset({"builtin.module", "hw.module"})


@dataclass
class _Leave:
    """Work item: leaves a scope, whose values become invisible.

    `visible` is the set of values that were visible around an isolated op.
    """

    values: list[SSAValue]
    visible: set[SSAValue] | None = None


@dataclass
class _Enter:
    """Work item: a block, with its region's dominator tree."""

    block: Block
    tree: dict[Block, list[Block]]
    is_graph: bool


@dataclass
class _Resume:
    """Work item: continues in a block at `op`, after `done`.

    `scope` collects the values that the block defines.
    """

    done: Operation | None
    op: Operation | None
    scope: list[SSAValue]
    is_graph: bool


def check_dominance(root: Operation) -> None:
    """Raises a `MirError` with the diagnostics of `dominance_errors`, if there are any."""
    errors = dominance_errors(root)
    if errors:
        raise MirError(errors)


def dominance_errors(root: Operation) -> list[Diagnostic]:
    """Returns a diagnostic for each operand inside `root` that its definition does not dominate.

    Walks blocks along the dominator tree with the set of visible values, so that the time is linear in the number of
    operands. Unreachable blocks are not checked, nor the regions of unregistered ops, whose kind is unknown.
    """
    errors: list[Diagnostic] = []
    visible: set[SSAValue] = set()
    work: list[_Enter | _Resume | _Leave] = []

    def push_regions(op: Operation) -> None:
        nonlocal visible
        if isinstance(op, UnregisteredOp):
            return
        if op.has_trait(IsolatedFromAbove):
            work.append(_Leave([], visible))
            visible = set()
        is_graph = op.name in GRAPH_REGION_OPS
        for region in reversed(op.regions):
            if region.first_block is not None:
                work.append(_Enter(region.first_block, dominator_tree(region.first_block), is_graph))

    push_regions(root)
    while work:
        item = work.pop()
        match item:
            case _Leave():
                visible.difference_update(item.values)
                if item.visible is not None:
                    visible = item.visible
            case _Enter():
                scope: list[SSAValue] = list(item.block.args)
                if item.is_graph:
                    scope += (result for op in item.block.ops for result in op.results)
                visible.update(scope)
                work.append(_Leave(scope))
                work += [_Enter(child, item.tree, item.is_graph) for child in reversed(item.tree.get(item.block, []))]
                work.append(_Resume(None, item.block.first_op, scope, item.is_graph))
            case _Resume():
                done, op = item.done, item.op
                while True:
                    if done is not None and not item.is_graph:
                        visible.update(done.results)
                        item.scope += done.results
                    if op is None:
                        break
                    errors += [_explain(op, i) for i, operand in enumerate(op.operands) if operand not in visible]
                    done, op = op, op.next_op
                    if done.regions:
                        # Its results become visible after its regions, which must not see them.
                        work.append(_Resume(done, op, item.scope, item.is_graph))
                        push_regions(done)
                        break
    return errors


def _explain(op: Operation, index: int) -> Diagnostic:
    """Why operand `index` of `op` is not in sight there."""
    value = op.operands[index]
    name = f"%{value.name_hint}" if value.name_hint else f"operand #{index}"
    home, block = _home_of(value), op.parent
    if home is None:
        return Diagnostic(f"'{op.name}' uses {name}, which no op of the module defines", op.location)
    around: Operation | None = op
    isolating: Operation | None = None
    while around is not None and around.parent is not home:
        around = around.parent_op()
        if around is not None and isolating is None and around.has_trait(IsolatedFromAbove):
            isolating = around
    if around is not None and isolating is not None and around.parent is home:
        reason = (
            f"from outside of '{isolating.name}', which sees nothing of what surrounds it: pass it in as an argument"
        )
    elif around is not None and isinstance(value, OpResult) and around is value.op:
        reason = "inside the op that defines it"
    elif home is block or around is not None:
        reason = "before it is defined"
    elif block is not None and home.parent is block.parent:
        reason = "in a block that can be reached without passing its definition"
    else:
        reason = "outside of the region that defines it"
    return Diagnostic(f"'{op.name}' uses {name} {reason}", op.location).with_note("defined here", location_of(value))


def _home_of(value: SSAValue) -> Block | None:
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent
