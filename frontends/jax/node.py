"""Defines an operator of StableHLO as its converter sees it: operands, attributes, types of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..common.graph_builder import GraphBuilder
from ..common.open_sizes import Extent
from ..common.refusal import Refused
from .stablehlo import FieldsAttr, WordAttr, dtype_name

if TYPE_CHECKING:
    from .importer import Frame


class HloNode:
    """An op while it is converted, in a frame: the builder, and the values of the names around it."""

    def __init__(self, frame: Frame, op: Operation, operands: Sequence[Any]):
        self.frame, self.op, self.given = frame, op, operands
        """`given` are the operands, of which those that a loop carries may not be tensors."""
        self.name = op_name(op).removeprefix("stablehlo.")

    @property
    def builder(self) -> GraphBuilder:
        """The builder, at the location of this node."""
        return self.frame.builder

    @property
    def operands(self) -> list[SSAValue]:
        """The operands as tensors."""
        return [self.frame.tensor(each) for each in self.given]

    def call(self, operator: str, *arguments: SSAValue, **attributes: Any) -> SSAValue:
        """Creates a use of a Relay operator at the location of this node."""
        return self.builder.call(operator, *arguments, **attributes)

    # Attributes ----------------------------------------------------------------------------------------------------

    def attribute(self, name: str) -> Attribute | None:
        """Returns an attribute; None where it is not there."""
        return attribute_of(self.op, name)

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Returns an attribute of integers, by rows; the default where it is not there."""
        found = self.attribute(name)
        match found:
            case DenseArrayBase() | DenseIntOrFPElementsAttr():
                return [int(each) for each in cast("Sequence[int]", found.get_values())]
            case ArrayAttr():
                return [each.value.data for each in found if isinstance(each, IntegerAttr)]
            case _:
                return list(default)

    def int(self, name: str, default: int = 0) -> int:
        """Returns an attribute that is a number; the default where it is not there."""
        found = self.attribute(name)
        return found.value.data if isinstance(found, IntegerAttr) else default

    def word(self, name: str) -> str:
        """Returns an attribute that is one word or a string; "" where it is not there."""
        found = self.attribute(name)
        if isinstance(found, WordAttr):
            return found.word.data
        return found.data if isinstance(found, StringAttr) else ""

    def fields(self, name: str) -> FieldsAttr:
        """Returns an attribute of fields. Raises Refused where it is not there."""
        found = self.attribute(name)
        if not isinstance(found, FieldsAttr):
            raise Refused(f"it has no attribute {name}")
        return found

    # Types ---------------------------------------------------------------------------------------------------------

    def result_type(self, index: int = 0) -> TensorType[Attribute]:
        """Returns the type of a result. Raises Refused for one that is not a tensor."""
        type = self.op.results[index].type
        if not isinstance(type, TensorType):
            raise Refused(f"a result of type {type} cannot be computed here")
        return type

    def dtype(self, index: int = 0) -> str:
        """Returns the dtype of a result. Raises Refused for one that Relay does not have."""
        return self.named(self.result_type(index).element_type)

    def named(self, element_type: Attribute) -> str:
        """Returns an element type's name. Raises Refused for one that Relay does not have."""
        name = dtype_name(element_type)
        if name is None:
            raise Refused(f"tensors of {element_type} cannot be computed here")
        return name

    def shape(self, index: int = 0) -> list[int]:
        """Returns the shape of a result, -1 for an open dimension."""
        return [-1 if size == DYNAMIC_INDEX else size for size in self.result_type(index).get_shape()]

    def static(self, value: SSAValue, what: str = "the operand") -> tuple[int, ...]:
        """Returns the shape of a tensor. Raises Refused where it has open dimensions."""
        shape = self.builder.static_shape(value)
        if shape is None:
            raise Refused(f"{what} has dimensions that are known only at run time")
        return shape

    def size(self, value: SSAValue, axis: int, what: str) -> int:
        """Returns a dimension. Raises Refused where it is open."""
        found = self.builder.extents(value)[axis]
        if not isinstance(found, int):
            raise Refused(f"{what} is known only at run time")
        return found

    # Values --------------------------------------------------------------------------------------------------------

    def constant(self, value: Any, dtype: str) -> SSAValue:
        """Creates a constant."""
        return self.builder.constant(value, dtype)

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        """Converts a tensor to a dtype: to bool by comparison with 0."""
        own = self.builder.dtype(value)
        if own == dtype:
            return value
        if dtype == "bool":
            return self.call("not_equal", value, self.constant(0, own))
        return self.call("cast", value, dtype=dtype)

    def sizes(self, value: SSAValue) -> list[Extent]:
        """Returns the elements of a tensor that is a shape. Raises Refused where they are computed from data."""
        found = self.builder.elements(value)
        if found is None:
            raise Refused("a shape is computed from what tensors hold")
        return found

    def transposed(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Orders the axes of a tensor."""
        return value if list(axes) == sorted(axes) else self.call("transpose", value, axes=list(axes))

    def reshaped(self, value: SSAValue, extents: Sequence[Extent]) -> SSAValue:
        """Reshapes a tensor to dimensions that follow from its own. Raises Refused where they do not."""
        if tuple(extents) == self.builder.extents(value):
            return value
        static = self.builder.reshape_attributes(value, extents)
        if static is None:
            raise Refused("a reshape of several open dimensions cannot be expressed here")
        found = self.call("reshape", value, newshape=static[0], allowzero=static[1])
        return found if self.builder.static_shape(found) is not None else self.builder.set_extents(found, extents)


def op_name(op: Operation) -> str:
    """Returns an op's name, that of an unregistered one, too."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def attribute_of(op: Operation, name: str) -> Attribute | None:
    """Returns an op's property or attribute; None where it is not there."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found
