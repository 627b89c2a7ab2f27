"""Converts nodes by rules: `Relu(%x) => nn.relu(%x)` in the `.mir` files of `operators/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdsl.ir import SSAValue

from ...dialects.rule.levels.imported import node_op
from ...passes.rules.engine.rewriter import RuleIndex
from ...passes.rules.engine.shipped import read_shipped
from ..common.operator_rules import convert_by_rules
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
    op = node_op(
        "onnx", node.op_type, operands, {"opset": node.opset, **node.importer.defaults(node), **node.attributes}
    )
    return convert_by_rules(op, onnx_rules(), node.builder)
