"""`cf` to `llvm`: branches, switches, and asserts that leave the function with a status."""

from __future__ import annotations

from xdsl.dialects import cf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from ....dialects import llvm_ext
from .converter import Converter, HandlerTable

TABLE = HandlerTable()


@TABLE.on(cf.BranchOp)
def convert_branch(c: Converter, op: cf.BranchOp) -> None:
    """Lowers a jump."""
    c.branch(c.blocks[op.successor], c.flatten(op.arguments)).attributes = dict(op.attributes)


@TABLE.on(cf.ConditionalBranchOp)
def convert_conditional_branch(c: Converter, op: cf.ConditionalBranchOp) -> None:
    """Lowers a jump to one of two blocks."""
    c.cond_branch(
        c.value(op.cond),
        c.blocks[op.then_block],
        c.flatten(op.then_arguments),
        c.blocks[op.else_block],
        c.flatten(op.else_arguments),
    ).attributes = dict(op.attributes)


@TABLE.on(cf.SwitchOp)
def convert_switch(c: Converter, op: cf.SwitchOp) -> None:
    """Lowers a jump by an integer."""
    values = op.case_values.get_values() if isinstance(op.case_values, DenseIntOrFPElementsAttr) else ()
    cases = [
        (int(value), c.blocks[block], c.flatten(operands))
        for value, block, operands in zip(values, op.case_blocks, op.case_operand, strict=True)
    ]
    c.append(llvm_ext.SwitchOp(c.value(op.flag), c.blocks[op.default_block], c.flatten(op.default_operands), cases))


@TABLE.on(cf.AssertOp)
def convert_assert(c: Converter, op: cf.AssertOp) -> None:
    """Lowers an assertion: the function returns the status of the message where the condition is false."""
    c.fail_unless(c.value(op.arg), op.msg.data)
