"""Converts nodes by rules: `Relu(%x) => nn.relu(%x)` in the `.mir` files of `operators/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

from xdsl.ir import Operation, SSAValue

from ...dialects.relay.operator import OperatorOp
from ...dialects.rule.functions import NoMatch
from ...dialects.rule.levels.onnx import node_op
from ...passes.rules.engine.program import Match, Program
from ...passes.rules.engine.rewriter import RuleIndex
from ...passes.rules.engine.shipped import read_shipped
from ...support.diagnostics import MirError
from .node import Node

FILES = ("elementwise.mir", "indexing.mir", "shape.mir")
"""The files of rules, in `operators/`."""


@cache
def onnx_rules() -> tuple[RuleIndex, ...]:
    """Returns the rules of all files."""
    folder = Path(__file__).parent / "operators"
    return tuple(read_shipped(folder / name) for name in FILES)


def ruled_operators() -> list[str]:
    """Returns the names of all operators that rules convert."""
    return sorted({root.removeprefix("onnx.") for rules in onnx_rules() for root in rules.by_root})


def apply_rules(node: Node) -> SSAValue | None:
    """Converts a node by the first rule that matches; None where none does."""
    name = f"onnx.{node.op_type}"
    if node.domain or not any(name in rules.by_root for rules in onnx_rules()):
        return None
    operands = [value for value in node.inputs if isinstance(value, SSAValue)]
    if len(operands) < len(node.inputs):
        return None
    op = node_op(node.op_type, operands, {"opset": node.opset, **node.importer.defaults(node), **node.attributes})
    try:
        for rules in onnx_rules():
            for program in rules.candidates(op):
                match = program.match(op)
                made = None if match is None else _made(node, program, match)
                if made is not None:
                    return made
    finally:
        op.drop_all_references()
    return None


def _made(node: Node, program: Program, match: Match) -> SSAValue | None:
    """Returns the value that a rule replaces a node by; None where a condition does not hold after all."""
    slots = match.slots
    like = match.roots[0].results[0]
    pending: list[Operation] = []
    try:
        for make in program.makers:
            op = cast("Operation | None", make(slots, like))
            if op is None:
                continue
            pending.append(op)
            op.location = node.builder.location
            slot = program.made[len(pending) - 1]
            slots[slot] = node.builder.add(op) if isinstance(op, OperatorOp) else node.builder.insert(op)
    except (NoMatch, KeyError):
        return None
    except MirError as error:
        raise error.__cause__ or error from None
    return cast("SSAValue", slots[program.results[0]])
