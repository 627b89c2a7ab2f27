"""Types and attributes of schedules: handles, lists of handles, and references to them in arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.utils.exceptions import VerifyException

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """`!schedule.block`: a handle of a block (TVM's BlockRV)."""

    name = "schedule.block"


@irdl_attr_definition
class LoopType(ParametrizedAttribute, TypeAttribute):
    """`!schedule.loop`: a handle of a loop (TVM's LoopRV)."""

    name = "schedule.loop"


@irdl_attr_definition
class ExprType(ParametrizedAttribute, TypeAttribute):
    """`!schedule.expr`: a number that is drawn when the schedule runs (TVM's ExprRV)."""

    name = "schedule.expr"


@irdl_attr_definition
class ListType(ParametrizedAttribute, TypeAttribute):
    """`!schedule.list<!schedule.loop>`: several results under one name."""

    name = "schedule.list"
    element: Attribute = param_def()

    def verify(self) -> None:
        if not isinstance(self.element, BlockType | LoopType | ExprType):
            raise VerifyException("a schedule.list holds blocks, loops or exprs")


BLOCK, LOOP, EXPR = BlockType(), LoopType(), ExprType()
_TYPES: dict[str, Attribute] = {"block": BLOCK, "loop": LOOP, "expr": EXPR}


def type_of_kind(kind: str) -> Attribute:
    """Returns the type of a kind of handle: `loop`, `list[loop]`."""
    element = kind.removeprefix("list[").removesuffix("]")
    return ListType(_TYPES[element]) if element != kind else _TYPES[kind]


def kind_of_type(type: Attribute) -> str | None:
    """Returns the kind of a handle's type; None for other types. The inverse of `type_of_kind`."""
    match type:
        case BlockType():
            return "block"
        case LoopType():
            return "loop"
        case ExprType():
            return "expr"
        case ListType():
            return f"list[{kind_of_type(type.element)}]"
        case _:
            return None


class _Reference(ParametrizedAttribute):
    """Names an operand of the op by its number."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [_number(parser)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(cast(IntAttr, self.parameters[0]).data)


def _number(parser: AttrParser) -> IntAttr:
    return IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))


@irdl_attr_definition
class OperandAttr(_Reference):
    """`#schedule.operand<0>`: the op's operand of that number."""

    name = "schedule.operand"
    index: IntAttr = param_def()


@irdl_attr_definition
class SplatAttr(_Reference):
    """`#schedule.splat<0>`: all elements of the operand of that number, a list."""

    name = "schedule.splat"
    index: IntAttr = param_def()


@irdl_attr_definition
class LambdaAttr(ParametrizedAttribute):
    """The number of a lambda's region, and its parameters' names: `#schedule.lambda<0, "i", "j">`."""

    name = "schedule.lambda"
    index: IntAttr = param_def()
    names: ArrayAttr[StringAttr] = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        names: list[StringAttr] = []
        with parser.in_angle_brackets():
            number = _number(parser)
            while parser.parse_optional_punctuation(",") is not None:
                names.append(StringAttr(parser.parse_str_literal()))
        return [number, ArrayAttr(names)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.index.data)
            for each in self.names:
                printer.print_string(", ")
                printer.print_string_literal(each.data)
