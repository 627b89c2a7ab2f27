"""Declares views of memory (`B_1 = T.Buffer(…)`) in the innermost block around all uses, as in TVM."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from ....dialects import tir
from ....support.edit import insert_op_before
from ....support.walk import walk_ops

DECLARATIONS = (
    tir.AllocateOp, tir.DeclBufferOp, tir.LaunchThreadOp, tir.EnvThreadOp, tir.VarOp, tir.MatchBufferOp, tir.AllocBufferOp,
    tir.AllocateConstOp, tir.IterVarOp, tir.CommReducerOp,
)  # fmt: skip
"""Ops whose results are names for all that follows."""


def place_declarations(function: tir.PrimFuncOp) -> None:
    """Moves each implicit declaration before its first use, in the innermost block around all uses."""
    declarations = [op for op in walk_ops(function) if isinstance(op, tir.DeclBufferOp) and op.implicit.value.data]
    if not declarations:
        return
    order = {op: place for place, op in enumerate(walk_ops(function))}
    targets: list[tuple[float, int, tir.DeclBufferOp, Operation]] = []
    for place, declaration in enumerate(declarations):
        target = _target(declaration, order)
        if target is not None:
            first = min(_seen(u.operation, order) for u in declaration.result.uses)
            targets.append((first, place, declaration, target))
    for _, _, declaration, target in sorted(targets, key=lambda t: t[:2]):
        _move(declaration, target)


def _seen(user: Operation, order: dict[Operation, int]) -> float:
    """When the text comes to a use: a store names its buffer before the value."""
    return order[_statement_start(user)] - 0.5 if isinstance(user, tir.StoreOp) else order[user]


def _blocks(op: Operation) -> list[Block]:
    """Returns the blocks around an op, outermost first."""
    found: list[Block] = []
    block = op.parent
    while block is not None:
        found.append(block)
        parent = block.parent_op()
        if parent is None or isinstance(parent, tir.PrimFuncOp):
            break
        block = parent.parent
    return found[::-1]


def _is_place(block: Block) -> bool:
    """Returns whether a declaration may be in the block: not in an expression, a lane or an iteration."""
    around = block.parent_op()
    if isinstance(around, tir.ForOp) and around.kind.data in ("vectorized", "unrolled"):
        return False
    return not isinstance(around, tir.IfThenElseOp | tir.CommReducerOp)


def _target(declaration: tir.DeclBufferOp, order: dict[Operation, int]) -> Operation | None:
    """Returns the op to declare before: the statement of the common block that holds the first use."""
    users = sorted({u.operation for u in declaration.result.uses}, key=lambda op: order[op])
    if not users:
        return None
    common = _blocks(users[0])
    for user in users[1:]:
        other = _blocks(user)
        count = 0
        while count < min(len(common), len(other)) and common[count] is other[count]:
            count += 1
        common = common[:count]
    block = next((b for b in reversed(common) if _is_place(b)), None)
    # Memory that a vectorized or an unrolled loop allocates is declared within the loop.
    if block is None or not _needs(declaration) <= set(common[: common.index(block) + 1]):
        return None
    op = block.find_ancestor_op_in_block(users[0])
    assert op is not None
    # An op follows the ops of its expressions: the declaration is put before all ops of the statement.
    start = _statement_start(op)
    before = start.prev_op
    if declaration.shape and isinstance(before, tir.LetOp):
        first = _statement_start(before)
        # TVM's printer puts a view of symbolic size before a single let, but after several.
        if not isinstance(first.prev_op, tir.LetOp):
            return first
    return start


def _needs(declaration: tir.DeclBufferOp) -> set[Block]:
    """Returns the blocks of what a declaration is made of: its memory, and what its expressions name."""
    found: set[Block] = set()
    pending: list[Operation] = [declaration]
    while pending:
        for operand in pending.pop().operands:
            owner = operand.owner
            if isinstance(owner, Operation) and _is_expression(owner):
                pending.append(owner)
            else:
                block = owner if isinstance(owner, Block) else owner.parent
                assert block is not None
                found.add(block)
    return found


def _statement_start(op: Operation) -> Operation:
    while (before := op.prev_op) is not None and _is_expression(before):
        op = before
    return op


def _is_expression(op: Operation) -> bool:
    return bool(op.results) and not isinstance(op, (tir.LetOp, *DECLARATIONS))


def _move(declaration: tir.DeclBufferOp, target: Operation) -> None:
    """Moves a declaration and the expressions that only it uses."""
    moved: list[Operation] = []
    pending: list[Operation] = [declaration]
    while pending:
        op = pending.pop()
        moved.append(op)
        for operand in op.operands:
            owner = operand.owner
            if (
                isinstance(owner, Operation)
                and _is_expression(owner)
                and all(u.operation in moved for u in operand.uses)
            ):
                pending.append(owner)
    if target in moved:
        return
    for op in reversed(moved):
        op.detach()
        insert_op_before(op, target)
