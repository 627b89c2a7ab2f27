"""Parses and prints families of ops in MLIR's custom form, where `assembly_format` does not suffice.

    %2 = relay.nn.dense %0, %1 {units = 4 : i64} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %3 = tir.add %a, %b : i32
    %4 = tir.load %A[%i, %j] : !tir.buffer<[16 : i64, 16 : i64], f32, "global"> -> f32

The short form leaves out types that the op's verifier requires; an op that breaks that rule prints all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i32
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation

from ..support.operands import operands_of
from .interned import string
from .plain_op import SEGMENTS, PlainOp

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer


def print_values(printer: Printer, values: Iterable[SSAValue]) -> None:
    """Prints `%a, %b`."""
    printer.print_list(values, printer.print_operand)


def print_types(printer: Printer, types: Iterable[Attribute]) -> None:
    """Prints `i32, f32`."""
    printer.print_list(types, printer.print_attribute)


def print_function_type(printer: Printer, op: Operation) -> None:
    """Prints `(i32, i32) -> i32`: the types of the operands and of the results."""
    printer.print_string("(")
    print_types(printer, [operand.type for operand in operands_of(op)])
    printer.print_string(") -> ")
    results = [result.type for result in op.results]
    if len(results) == 1:
        printer.print_attribute(results[0])
    else:
        printer.print_string("(")
        print_types(printer, results)
        printer.print_string(")")


def parse_values(parser: Parser) -> list[UnresolvedOperand]:
    """Parses `%a, %b`, or nothing."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def parse_indices(parser: Parser) -> list[UnresolvedOperand]:
    """Parses `[%i, %j]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


def parse_result_types(parser: Parser) -> Sequence[Attribute]:
    """Parses `i32` or `(i32, f32)`."""
    if (single := parser.parse_optional_type()) is not None:
        return (single,)
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)


def parse_operand_types(parser: Parser) -> list[Attribute] | None:
    """Parses `(i32, f32)`, or nothing."""
    return parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)


def resolve(parser: Parser, values: Sequence[UnresolvedOperand], types: Sequence[Attribute]) -> Sequence[SSAValue]:
    """Returns the values of these names and types."""
    return parser.resolve_operands(values, types, parser.pos)


def print_attributes(printer: Printer, op: Operation, written: Iterable[str] = (), keyword: bool = False) -> None:
    """Prints ` {a = 1}`: attributes, and properties not `written` elsewhere and not at their defaults.

    Before a region it is ` attributes {a = 1}`, with `keyword`. Where an attribute has the name of a property, attributes follow as
    ` attributes {…}`.
    """
    if not op.properties:
        printer.print_op_attributes(op.attributes, print_keyword=keyword)
        return
    known = cast("IRDLOperation", op).get_irdl_definition().properties
    properties = {
        name: value
        for name, value in op.properties.items()
        if name not in written and name != SEGMENTS and not (name in known and known[name].default_value == value)
    }
    if op.attributes.keys().isdisjoint(known):
        printer.print_op_attributes({**properties, **op.attributes}, print_keyword=keyword)
    else:
        if not printer.print_op_attributes(properties, print_keyword=keyword):
            printer.print_string(" attributes {}" if keyword else "")
        printer.print_op_attributes(op.attributes, print_keyword=True)


def parse_attributes(
    parser: Parser, op: type[IRDLOperation], keyword: bool = False
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Parses what `print_attributes` prints, to properties and attributes."""
    attributes = _with_keyword(parser) if keyword else parser.parse_optional_attr_dict()
    properties: dict[str, Attribute] = {}
    if attributes:
        known = op.get_irdl_definition().properties
        properties = {name: attributes.pop(name) for name in list(attributes) if name in known}
    return properties, attributes | _with_keyword(parser)


def _with_keyword(parser: Parser) -> dict[str, Attribute]:
    found = parser.parse_optional_attr_dict_with_keyword()
    return {} if found is None else dict(found.data)


class FunctionalForm(PlainOp):
    """`relay.nn.dense %0, %1 {units = 4 : i64} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parse_values(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        results = parse_result_types(parser)
        return cls.create(
            operands=resolve(parser, values, types), result_types=results, properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        if operands_of(self):
            printer.print_string(" ")
            print_values(printer, operands_of(self))
        print_attributes(printer, self)
        printer.print_string(" : ")
        print_function_type(printer, self)


class ShortForm(PlainOp):
    """`tir.add %a, %b : i32`: one type tells all; otherwise `tir.add %a, %b : (i32, i64) -> i32`."""

    @classmethod
    def types_of(cls, type: Attribute) -> tuple[Sequence[Attribute], Attribute]:
        """Returns the types of the operands and of the result for the printed type, that of the last operand."""
        raise NotImplementedError

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parse_values(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        types: Sequence[Attribute] | None = parse_operand_types(parser)
        if types is None:
            types, result = cls.types_of(parser.parse_type())
        else:
            parser.parse_punctuation("->")
            result = parser.parse_type()
        return cls.create(
            operands=resolve(parser, values, types), result_types=[result], properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        operands = operands_of(self)
        printer.print_string(" ")
        print_values(printer, operands)
        print_attributes(printer, self)
        printer.print_string(" : ")
        type = operands[-1].type
        wanted, result = self.types_of(type)
        if self.results[0].type == result and all(
            operand.type == each for operand, each in zip(operands, wanted, strict=True)
        ):
            printer.print_attribute(type)
        else:
            print_function_type(printer, self)


def print_indexed(printer: Printer, base: SSAValue, indices: Sequence[SSAValue], more: Sequence[SSAValue] = ()) -> None:
    """Prints ` %A[%i, %j]`, with `more` ` %A[%i, %j] by [%m, %n]`."""
    printer.print_string(" ")
    printer.print_operand(base)
    for opening, values in (("[", indices), (" by [", more)):
        if values or opening == "[":
            printer.print_string(opening)
            print_values(printer, values)
            printer.print_string("]")


def print_indexed_type(printer: Printer, base: SSAValue, indices: Sequence[SSAValue]) -> None:
    """Prints ` : !tir.buffer<…>`, followed by the types of the indices unless all are i32: `[i64, i32]`."""
    printer.print_string(" : ")
    printer.print_attribute(base.type)
    if any(index.type != i32 for index in indices):
        printer.print_string("[")
        print_types(printer, [index.type for index in indices])
        printer.print_string("]")


def parse_indexed_type(parser: Parser, count: int) -> tuple[Attribute, Sequence[Attribute]]:
    """Parses what `print_indexed_type` prints, of `count` indices."""
    parser.parse_punctuation(":")
    base = parser.parse_type()
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_type)
    return base, [i32] * count if types is None else types


def print_optional(printer: Printer, keyword: str, value: SSAValue | None) -> None:
    """Prints ` if %p : i1`, or nothing."""
    if value is not None:
        printer.print_string(f" {keyword} ")
        printer.print_operand(value)
        printer.print_string(" : ")
        printer.print_attribute(value.type)


def parse_optional(parser: Parser, keyword: str) -> list[SSAValue]:
    """Parses what `print_optional` prints: one value or none."""
    if parser.parse_optional_keyword(keyword) is None:
        return []
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return [parser.resolve_operand(value, parser.parse_type())]


class FunctionForm(PlainOp):
    """Parses and prints `relay.func @main("x" %x: tensor<2xf32>) -> tensor<2xf32> { … }`.

    The name is optional.

    If the numbers of parameters and `param_names` differ, the names are among the attributes.
    """

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {}
        if (name := parser.parse_optional_symbol_name()) is not None:
            properties["sym_name"] = name
        names: list[StringAttr] = []

        def parameter() -> Parser.Argument:
            if (text := parser.parse_optional_str_literal()) is not None:
                names.append(string(text))
            return parser.parse_argument()

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parameter)
        if "param_names" in cls.get_irdl_definition().properties:
            properties["param_names"] = ArrayAttr(names)
        if parser.parse_optional_punctuation("->") is not None:
            properties["ret_type"] = parser.parse_attribute()
        given, attributes = parse_attributes(parser, cls, keyword=True)
        results = parse_result_types(parser) if parser.parse_optional_punctuation(":") is not None else ()
        body = parser.parse_region(arguments)
        return cls.create(result_types=results, properties=properties | given, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        written: set[str] = set()
        name, names = self.properties.get("sym_name"), self.properties.get("param_names")
        if isinstance(name, StringAttr):
            printer.print_string(" ")
            printer.print_symbol_name(name.data)
            written.add("sym_name")
        body = self.regions[0]
        args = body.block.args
        # In a recursive function, the function itself has no name among the parameters'.
        hidden = len(args) - len(names) if isinstance(names, ArrayAttr) else 0
        labels: list[str] = []
        if isinstance(names, ArrayAttr) and hidden in (0, 1):
            written.add("param_names")
            labels = [each.data for each in cast("ArrayAttr[StringAttr]", names)]
        printer.print_string("(" if written & {"sym_name"} else " (")
        for index, argument in enumerate(args):
            if index:
                printer.print_string(", ")
            if labels and index >= hidden:
                printer.print_string_literal(labels[index - hidden])
                printer.print_string(" ")
            printer.print_block_argument(argument)
        printer.print_string(")")
        definition = self.get_irdl_definition().properties.get("ret_type")
        if definition is not None and (type := self.properties.get("ret_type", definition.default_value)) is not None:
            written.add("ret_type")
            if type != definition.default_value:
                printer.print_string(" -> ")
                printer.print_attribute(type)
        print_attributes(printer, self, written, keyword=True)
        if self.results:
            printer.print_string(" : ")
            print_types(printer, [result.type for result in self.results])
        printer.print_string(" ")
        print_body(printer, body)


def print_body(printer: Printer, body: Region) -> None:
    """Prints a region of one block whose arguments are written before it."""
    printer.print_region(body, print_entry_block_args=False, print_empty_block=False)
