"""Defines nodes of other frameworks' graphs in rules.

ONNX' `Relu(%x) => nn.relu(%x)`, torch's `aten.relu(%x) => nn.relu(%x)`, JAX' `stablehlo.tanh(%x) => tanh(%x)`.

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
    """A node of an imported graph.

    `attribute_values` holds its attributes, defaults filled in; of ONNX also the `opset` that the model imports.
    """

    attribute_values: Mapping[str, Any]


def node_op(level: str, op_type: str, operands: Sequence[SSAValue], attributes: Mapping[str, Any]) -> NodeOp:
    """Creates the op of a node, `torch.aten.relu`; its result is of its first operand's type."""
    name = f"{level}.{op_type}"
    op = _node_class(name).create(operands=operands, result_types=[operands[0].type if operands else UNKNOWN])
    op.attribute_values = attributes
    return op


@cache
def _node_class(name: str) -> type[NodeOp]:
    return type(f"{name.rpartition('.')[2]}NodeOp", (NodeOp,), {"name": name})


class ImportedLevel(RelayLevel):
    """Implements `Level`: some names are another framework's operators, all others Relay's."""

    def is_foreign(self, name: str) -> bool:
        """Returns whether a name is an operator of the framework."""
        raise NotImplementedError

    def resolve(self, name: str) -> str | None:
        short = name.removeprefix(f"{self.name}.")
        return f"{self.name}.{short}" if self.is_foreign(short) else super().resolve(name)

    def spelled(self, op_name: str) -> str:
        return op_name.removeprefix(f"{self.name}.").removeprefix("relay.")

    def problem(self, op_name: str, arguments: int | None, attributes: Sequence[str]) -> str | None:
        return None if op_name.startswith(f"{self.name}.") else super().problem(op_name, arguments, attributes)

    def attribute(self, op: Operation, name: str) -> Any:
        return op.attribute_values[name] if isinstance(op, NodeOp) else super().attribute(op, name)

    def attributes(self, op: Operation) -> Mapping[str, Any]:
        return op.attribute_values if isinstance(op, NodeOp) else super().attributes(op)


class OnnxLevel(ImportedLevel):
    """Names that begin with a capital letter are ONNX' operators."""

    name = "onnx"

    def is_foreign(self, name: str) -> bool:
        return name[:1].isupper()


class TorchLevel(ImportedLevel):
    """Names that begin with `aten.` are torch's operators."""

    name = "torch"

    def is_foreign(self, name: str) -> bool:
        return name.startswith("aten.")


class JaxLevel(ImportedLevel):
    """Names that begin with `stablehlo.` or `chlo.` are operators of the modules that JAX writes."""

    name = "jax"

    def is_foreign(self, name: str) -> bool:
        return name.startswith(("stablehlo.", "chlo."))
