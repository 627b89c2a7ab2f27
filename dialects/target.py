"""Defines the description of a target as an op, in the dialect of what belongs to no one level."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, traits_def
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..support.target import DESCRIPTION, with_description
from ..support.target_description import Description, DescriptionError, FieldValue
from .array import ArrayValueAttr


@irdl_op_definition
class DescribeTargetOp(IRDLOperation):
    """`target "my-cpu" { cpu = "haswell", lanes = 8 }`: a processor for schedules and code, by a name.

    "mirstack.target"() <{sym_name = "my-cpu", fields = {cpu = "haswell", lanes = 8 : i64}}> : () -> ()
    """

    name = DESCRIPTION
    sym_name = prop_def(StringAttr)
    fields = prop_def(DictionaryAttr)
    traits = traits_def(SymbolOpInterface())

    def __init__(self, description: Description):
        fields = DictionaryAttr({key: _attribute(value) for key, value in description.fields.items()})
        super().__init__(properties={"sym_name": StringAttr(description.name), "fields": fields})

    @property
    def description(self) -> Description:
        """Returns what the op says. Raises DescriptionError for an unknown field and a wrong value."""
        return Description.of(self.sym_name.data, {key: _value(value) for key, value in self.fields.data.items()})

    def verify_(self) -> None:
        try:
            with_description(self.description)
        except DescriptionError as error:
            raise VerifyException(error.message) from None


def _attribute(value: FieldValue) -> Attribute:
    match value:
        case int():
            return IntegerAttr(value, i64)
        case str():
            return StringAttr(value)
        case _:
            return ArrayAttr([StringAttr(each) for each in value])


def _value(attribute: Attribute) -> object:
    match attribute:
        case IntegerAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return tuple(_value(each) for each in attribute)
        case _:
            return attribute


def mirstack_dialect() -> Dialect:
    """Returns the dialect of ops and attributes that belong to no one level of the IR."""
    return Dialect("mirstack", [DescribeTargetOp], [ArrayValueAttr])
