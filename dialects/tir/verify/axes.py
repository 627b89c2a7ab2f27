"""Verifies block axes: each declared domain against the values of its binding."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation, SSAValue

from ....support.diagnostics import Diagnostic
from ....support.text import counted
from ...arith import Expr
from ...arith.bounds import ConstIntBound
from ..buffer import AllocBufferOp, DeclBufferOp, StoreOp
from ..stmt import BlockOp, ForOp, InitOp
from .context import Context


@dataclass
class AxisRules:
    """Verifies domains and bindings of axes, and that an init has a reduction."""

    context: Context
    # Axes that their loops do not fill: whether that is wrong shows when the whole function was seen.
    uncovered: list[tuple[BlockOp, Diagnostic]] = field(default_factory=list[tuple[BlockOp, Diagnostic]])

    def check(self, op: BlockOp, number: int) -> bool:
        """Verifies the domain of one axis against its binding; returns False if a rule is broken."""
        low, extent = (
            self.context.analyzer.simplify(op.dom_mins[number]),
            self.context.analyzer.simplify(op.dom_extents[number]),
        )
        if low.value is None or extent.value is None or extent.value <= 0:
            return True
        binding = self.context.analyzer.simplify(op.bindings[number])
        last = low.value + extent.value - 1
        bound = self.context.analyzer.const_int_bound(binding)
        if not self.context.is_attained(binding):
            return True
        name, block = op.iter_names.data[number].data, op.block_name.data
        loops = self.context.loops_of(binding)
        domain = f"[{low.value}, {last + 1})"
        count = min(bound.max_value - bound.min_value + 1, self.context.count(binding))
        if bound.min_value < low.value or bound.max_value > last:
            worst = bound.min_value if bound.min_value < low.value else bound.max_value
            # As many values as the domain has, but others: the program is well-defined.
            self.context.report(
                op,
                f"axis '{name}' of block '{block}' has the domain {domain}, but its binding {binding!r} takes the value {worst}",
                *self.context.loop_notes(loops),
                f"where a loop runs past the domain, guard the block: T.where({_bounded(binding, low.value, last, bound)})",
                severity="error" if count > extent.value else "warning",
            )
            return False
        contiguous = count == bound.max_value - bound.min_value + 1
        if count < extent.value and contiguous and op.iter_types.data[number].data != "opaque":
            covers = f"{'loop' if len(loops) == 1 else 'its binding'} {_names(loops, binding)} covers"
            uncovered = Diagnostic(
                f"axis '{name}' of block '{block}' has {counted(extent.value, 'value')}, but {covers} only {count} of them",
                op.location,
            )
            for text, loop in self.context.loop_notes(loops):
                uncovered = uncovered.with_note(text, loop.location)
            self.uncovered.append(
                (
                    op,
                    uncovered.with_note(
                        f"the loops around a block must run through the whole domain of its axes: here {domain}"
                    ),
                )
            )
        return True

    def report_uncovered(self, unwritten: set[SSAValue]) -> None:
        """Reports axes that loops do not fill, where that leaves elements unwritten.

        These are elements of a result that no other block writes, or of one of the buffers `unwritten`, which are read where nothing writes
        (they are removed from the set). A buffer computed for its consumer alone need not be computed where that does not read.
        """
        for block, diagnostic in self.uncovered:
            buffers = {op.buffer for op in block.body.block.ops if isinstance(op, StoreOp)}
            results = {b for b in buffers if not isinstance(b.owner, AllocBufferOp | DeclBufferOp)}
            if (results and not _has_other_writer(block)) or buffers & unwritten:
                self.context.diagnostics.append(diagnostic)
                unwritten -= buffers

    def check_init(self, op: InitOp) -> None:
        """Verifies that an init belongs to a reduction."""
        block = op.parent_op()
        if not isinstance(block, BlockOp):
            self.context.report(op, "T.init stands outside of a block", "it is the start of a reduction block")
        elif not any(kind.data == "R" for kind in block.iter_types.data):
            self.context.report(
                op,
                f"block '{block.block_name.data}' has a T.init, but no reduction axis",
                "an init runs where all reduction axes begin: declare one with T.axis.reduce, or move the store out of the init",
                severity="warning",
            )


def _bounded(binding: Expr, low: int, last: int, bound: ConstIntBound) -> str:
    """Returns the condition that keeps a binding in its domain."""
    if bound.min_value >= low:
        return f"{binding!r} < {last + 1}"
    return f"{low} <= {binding!r}" + ("" if bound.max_value <= last else f" and {binding!r} <= {last}")


def _names(loops: list[BlockArgument], binding: Expr) -> str:
    if len(loops) == 1:
        op = loops[0].block.parent_op()
        if isinstance(op, ForOp):
            return f"'{op.var_name.data}'"
    return repr(binding)


def _has_other_writer(block: BlockOp) -> bool:
    """Returns True if a buffer that the block writes has other writers, which may fill it together."""
    for op in block.body.block.ops:
        if isinstance(op, StoreOp):
            for use in op.buffer.uses:
                if isinstance(use.operation, StoreOp) and not _is_within(use.operation, block):
                    return True
    return False


def _is_within(op: Operation, block: BlockOp) -> bool:
    parent = op.parent_op()
    while parent is not None and parent is not block:
        parent = parent.parent_op()
    return parent is block
