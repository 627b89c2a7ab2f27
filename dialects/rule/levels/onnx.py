"""Defines nodes of ONNX graphs in rules: `Relu(%x) => nn.relu(%x)`.

A node is an op only while rules look at it (`node_op`): it is never in a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.ir import Operation, SSAValue

from ...relay.types import UNKNOWN
from .relay import RelayLevel


class NodeOp(Operation):
    """A node of an ONNX graph.

    `attribute_values` holds its attributes, defaults filled in, and the `opset` that the model imports.
    """

    attribute_values: Mapping[str, Any]


def node_op(op_type: str, operands: Sequence[SSAValue], attributes: Mapping[str, Any]) -> NodeOp:
    """Creates the op of a node: `onnx.Relu`; its result is of the type of its first operand."""
    op = _node_class(op_type).create(operands=operands, result_types=[operands[0].type if operands else UNKNOWN])
    op.attribute_values = attributes
    return op


@cache
def _node_class(op_type: str) -> type[NodeOp]:
    return type(f"{op_type}NodeOp", (NodeOp,), {"name": f"onnx.{op_type}"})


class OnnxLevel(RelayLevel):
    """Implements `Level`: names that begin with a capital letter are ONNX' operators, all others Relay's."""

    name = "onnx"

    def resolve(self, name: str) -> str | None:
        short = name.removeprefix("onnx.")
        return f"onnx.{short}" if short[:1].isupper() else super().resolve(name)

    def spelled(self, op_name: str) -> str:
        return op_name.removeprefix("onnx.").removeprefix("relay.")

    def problem(self, op_name: str, arguments: int | None, attributes: Sequence[str]) -> str | None:
        return None if op_name.startswith("onnx.") else super().problem(op_name, arguments, attributes)

    def attribute(self, op: Operation, name: str) -> Any:
        return op.attribute_values[name] if isinstance(op, NodeOp) else super().attribute(op, name)

    def attributes(self, op: Operation) -> Mapping[str, Any]:
        return op.attribute_values if isinstance(op, NodeOp) else super().attributes(op)
