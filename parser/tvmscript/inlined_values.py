"""Plans which ops of a region print as statements, and which inside the expressions that use them.

A pure op with one use prints where it is used. So does a load or an impure call, if no other effect would come to
stand on its wrong side; otherwise, and where a value has several uses, it is given a name by a let. Linear in the region.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.tir.arithmetic import AddOp, MulOp, SubOp
from ...dialects.tir.buffer import BufferRegionOp, StoreOp
from ...dialects.tir.evaluation import EXPRESSIONS, LEAVES, NONE, READ, WRITE, Evaluation, blocks_inside
from ...dialects.tir.operators import as_const
from ...dialects.tir.stmt import BlockOp, ForOp
from ..python.tree import Binary, Expr, Token
from .slice_extent import difference


class Plan:
    """Decides for each op of a function whether it is printed inline, by a let, or as a statement."""

    def __init__(self, root: Block):
        self.inline: set[Operation] = set()
        self.lets: set[Operation] = set()
        # Uses that print nothing: of `low` in `low : stop`; of a loop's extent as the domain of an axis remapped to it.
        self._ranges: dict[SSAValue, int] = {}
        self._shared: dict[SSAValue, int] = {}
        self._writes = 0
        blocks = blocks_inside(root)
        self._evaluation = Evaluation(blocks)
        for block in blocks:
            self._note_ranges(block)
        for block in blocks:
            self._plan(block)

    def _note_ranges(self, block: Block) -> None:
        """Takes note of uses that print nothing."""
        for op in block.ops:
            if isinstance(op, ForOp):
                self._range(op.min, op.extent)
            elif isinstance(op, BufferRegionOp):
                for low, extent in zip(op.mins, op.extents, strict=True):
                    self._range(low, extent)
            elif isinstance(op, BlockOp):
                for low, extent, binding in zip(op.dom_mins, op.dom_extents, op.bindings, strict=True):
                    self._range(low, extent)
                    self._share(low, extent, binding)

    def _range(self, low: SSAValue, extent: SSAValue) -> None:
        """`low : stop` where the extent is `stop - low`: low prints once."""
        if is_stop(low, extent):
            self._ranges[low] = self._ranges.get(low, 0) + 1

    def _share(self, low: SSAValue, extent: SSAValue, binding: SSAValue) -> None:
        loop = binding.owner.parent_op() if isinstance(binding.owner, Block) else None
        if isinstance(loop, ForOp):
            for own, theirs in ((low, loop.min), (extent, loop.extent)):
                if own is theirs:
                    self._shared[own] = self._shared.get(own, 0) + 1

    def _plan(self, block: Block) -> None:
        # Values with effects that wait to be printed by their one user, in the order of their evaluation.
        pending: dict[SSAValue, int] = {}
        self._writes = 0
        for op in block.ops:
            if isinstance(op, LEAVES):
                self.inline.add(op)
                self._carry(op, pending)
                continue
            consumed = [o for o in _evaluation_order(op) if o in pending]
            effect = max([self._evaluation.effect(op), *(pending[o] for o in consumed)])
            self._settle(consumed, pending)
            if not isinstance(op, EXPRESSIONS) or not op.results:
                self._statement(effect, pending)
                continue
            uses = self._uses(op.results[0], effect)
            if uses == 0 and effect != WRITE:
                self.inline.add(op)
            elif uses == 0:
                self._statement(effect, pending)
            elif uses == 1 and (effect == NONE or self._used_here(op)):
                self.inline.add(op)
                if effect != NONE:
                    self._wait(op.results[0], effect, pending)
            else:
                self.lets.add(op)
                self._statement(effect, pending)

    def _carry(self, op: Operation, pending: dict[SSAValue, int]) -> None:
        """A region or reducer that is printed with its user carries its operands' effects along."""
        carried = [o for o in op.operands if o in pending]
        if carried:
            effect = max(pending[o] for o in carried)
            self._settle(carried, pending)
            self._wait(op.results[0], effect, pending)

    def _settle(self, consumed: Sequence[SSAValue], pending: dict[SSAValue, int]) -> None:
        """Takes the consumed values out of the pending ones, or names them where their order would be lost."""
        if not consumed:
            return
        if self._writes:
            # The values evaluated since the first of those consumed: only if those are all is the order kept.
            tail: list[SSAValue] = []
            missing = set(consumed)
            for value in reversed(pending):
                tail.append(value)
                missing.discard(value)
                if not missing:
                    break
            tail.reverse()
            if any(pending[value] == WRITE for value in tail) and tail != list(consumed):
                for value in tail:
                    self._name(value)
                    self._drop(value, pending)
                return
        for value in consumed:
            self._drop(value, pending)

    def _drop(self, value: SSAValue, pending: dict[SSAValue, int]) -> None:
        if pending.pop(value, NONE) == WRITE:
            self._writes -= 1

    def _wait(self, value: SSAValue, effect: int, pending: dict[SSAValue, int]) -> None:
        pending[value] = effect
        self._writes += effect == WRITE

    def _statement(self, effect: int, pending: dict[SSAValue, int]) -> None:
        """Names by lets the pending values that conflict with a statement which is printed here."""
        if effect == NONE or (effect == READ and not self._writes):
            return
        for value, kind in list(pending.items()):
            if effect == WRITE or kind == WRITE:
                self._name(value)
                self._drop(value, pending)

    def _name(self, value: SSAValue) -> None:
        op = value.owner
        if not isinstance(op, Operation):
            return
        if isinstance(op, LEAVES):
            for operand in op.operands:
                if operand.owner in self.inline:
                    self._name(operand)
            return
        self.inline.discard(op)
        self.lets.add(op)
        if isinstance(op, SubOp) and op.rhs in self._ranges and op.rhs.owner in self.inline:
            self._name(op.rhs)

    def _uses(self, value: SSAValue, effect: int) -> int:
        count = value.uses.get_length() - self._ranges.get(value, 0)
        return count if effect != NONE else count - self._shared.get(value, 0)

    def _used_here(self, op: Operation) -> bool:
        """Returns whether the users of an op's result are in its own block."""
        return all(use.operation.parent is op.parent for use in op.results[0].uses)


def is_stop(low: SSAValue, extent: SSAValue) -> bool:
    """Returns whether a range prints as `low : stop` because its extent is `stop - low`.

    The printed text must be read as the same extent.
    """
    op = extent.owner
    return isinstance(op, SubOp) and op.rhs is low and difference(_tree(low), _tree(op.lhs)) is None


def _tree(value: SSAValue, depth: int = 8) -> Expr:
    """The syntax tree that an expression's text has, as far as differences are taken of it."""
    const = as_const(value)
    if const is not None:
        return Token("NUMBER", str(const.value))
    op = value.owner
    if isinstance(op, AddOp | SubOp | MulOp) and depth:
        return Binary(Token("OPERATOR", op.SYMBOL), _tree(op.lhs, depth - 1), _tree(op.rhs, depth - 1))
    return Token("NAME", f"v{id(value)}")


def _evaluation_order(op: Operation) -> Iterable[SSAValue]:
    """Operands in the order in which the text evaluates them."""
    if isinstance(op, StoreOp):
        return (op.value, *op.indices, *([op.predicate] if op.predicate is not None else []))
    return op.operands
