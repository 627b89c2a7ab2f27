"""Plans a function's text: which values are written inline, and the number `%N` of each other one.

A leaf (a constant, `@f`) with one user is written in that user, wherever its op is: it computes nothing, and reading puts it
right before the user. Any other value is written inline where reading the text again yields the same op at the same place:
right before the `let` that binds it, or at the end of the block that returns it. All others are bound, `%N`.
The numbers are TVM's: in the order in which a walk from each result meets values, bodies of functions before the arguments
of their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.ir import LEAVES


def inlined(block: Block) -> set[Operation]:
    """The ops of a block, not of its regions, that are written where their value is used."""
    found: set[Operation] = set()
    op = block.first_op
    # The op before, not counting the leaves that are written in place: reading puts those before their users.
    before: Operation | None = None
    while op is not None:
        if _in_place(op):
            found.add(op)
        else:
            if (
                isinstance(op, ir.LetOp | ir.ReturnOp)
                and before is not None
                and op.operands[0].owner is before
                and not isinstance(before, (*LEAVES, ir.LetOp))
                and _has_one_use(before)
            ):
                found.add(before)
            before = op
        op = op.next_op
    return found


def _in_place(op: Operation) -> bool:
    """Returns whether an op is a leaf with one user, which is written in that user's text."""
    return isinstance(op, LEAVES) and _has_one_use(op)


def _has_one_use(op: Operation) -> bool:
    return op.results[0].has_one_use()


class Numbering:
    """Numbers for the values that are bound as `%N`, and the order in which constants are met."""

    def __init__(self, meet_constant: Callable[[ir.ConstantOp], None]):
        self.numbers: dict[SSAValue, int] = {}
        self.inline: set[Operation] = set()
        self._meet_constant = meet_constant
        self._visited: set[Operation] = set()

    def function(self, body: Block) -> None:
        """Numbers a function's values, going on from the function before."""
        self._block(body)

    def _block(self, block: Block) -> None:
        self.inline |= inlined(block)
        # A let's value and the block's value are what TVM prints from; what they do not need (it is there for what it
        # does) comes last.
        op = block.first_op
        while op is not None:
            if isinstance(op, ir.LetOp | ir.ReturnOp):
                self._root(op.operands[0])
            op = op.next_op
        op = block.first_op
        while op is not None:
            if op.results and op not in self._visited and not isinstance(op, ir.LetOp) and not _in_place(op):
                self._expand(op)
                self._number(op.results[0])
            op = op.next_op

    def _root(self, value: SSAValue) -> None:
        if isinstance(value, OpResult) and not isinstance(value.owner, ir.LetOp):
            self._expand(value.owner)
            self._number(value)

    def _expand(self, op: Operation) -> None:
        """Visits what `op` is computed from, then `op`, each once."""
        pending: list[tuple[Operation, bool]] = [(op, False)]
        while pending:
            current, expanded = pending.pop()
            if current in self._visited:
                continue
            if expanded:
                self._visited.add(current)
                self._visit(current)
                continue
            pending.append((current, True))
            # The callee, a call's first operand, is visited first.
            for value in reversed(current.operands):
                if isinstance(value, OpResult) and not isinstance(value.owner, ir.LetOp):
                    pending.append((value.owner, False))

    def _visit(self, op: Operation) -> None:
        if isinstance(op, ir.ConstantOp):
            self._meet_constant(op)
        for operand in _printed_order(op):
            self._number(operand)
        for region in op.regions:
            self._block(region.block)

    def _number(self, value: SSAValue) -> None:
        if isinstance(value, OpResult) and value not in self.numbers:
            owner = value.owner
            if not isinstance(owner, ir.LetOp) and owner not in self.inline:
                self.numbers[value] = len(self.numbers)


def _printed_order(op: Operation) -> Sequence[SSAValue]:
    """In which order an op's operands get numbers: the callee last."""
    operands = op.operands
    return [*operands[1:], operands[0]] if isinstance(op, ir.CallOp) else operands
