"""What a rule's SSA values stand for."""

from __future__ import annotations

from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class ValueType(ParametrizedAttribute, TypeAttribute):
    """One SSA value of the program: `%x`."""

    name = "rule.value"


@irdl_attr_definition
class RunType(ParametrizedAttribute, TypeAttribute):
    """Any number of neighbouring operands: `%xs...`."""

    name = "rule.run"


@irdl_attr_definition
class AttrType(ParametrizedAttribute, TypeAttribute):
    """One attribute, or what is computed of them: a number, a string, a bool, None, a tuple, a shape, a dtype: `$a`."""

    name = "rule.attr"


@irdl_attr_definition
class AttrsType(ParametrizedAttribute, TypeAttribute):
    """The attributes of a matched op that the pattern does not name: `**$rest`."""

    name = "rule.attrs"


@irdl_attr_definition
class OperationType(ParametrizedAttribute, TypeAttribute):
    """Which of several ops was matched: `[add, subtract]$op`."""

    name = "rule.operation"


VALUE, RUN, ATTR, ATTRS, OPERATION = ValueType(), RunType(), AttrType(), AttrsType(), OperationType()
