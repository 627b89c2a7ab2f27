"""MLIR's form of a primitive: parses and prints calls, items and slices.

`%j0, %j1 = schedule.split(%j, factors = [none, 4]) as "j0", "j1" : !schedule.loop, !schedule.loop`

Splats are written `*%loops`, lambdas as their region after `lambda`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from .arguments import Argument, Lambda, Ref, Splat
from .signature_table import Signature, SignatureError
from .types import ListType

if TYPE_CHECKING:
    from .ops import ItemOp, PrimitiveOp, SliceOp, YieldOp

_WORDS: Mapping[str, bool | None] = {"none": None, "true": True, "false": False}


def parse_call(parser: Parser, signature: Signature) -> tuple[dict[str, Argument], int, list[str], list[Attribute]]:
    """Parses a call after the op's name: (arguments, positional count, result names, their types)."""
    positional: list[Argument] = []
    keywords: dict[str, Argument] = {}

    def argument() -> None:
        at = parser.pos
        value, found = _optional_value(parser)
        if found:
            if keywords:
                parser.raise_error("an argument without a name stands before those with one", at)
            positional.append(value)
            return
        name = parser.parse_identifier(" of an argument")
        if name in keywords:
            parser.raise_error(f"{signature.name} is given the argument '{name}' twice", at)
        parser.parse_punctuation("=")
        keywords[name] = _value(parser)

    start = parser.pos
    parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
    try:
        bound = signature.bind(positional, keywords)
    except SignatureError as error:
        parser.raise_error(f"{error.message}; {error.note}", start)
    arguments: dict[str, Argument] = {name: value for name, value in bound.items()}  # type: ignore[misc]
    names: list[str] = []
    types: list[Attribute] = []
    if parser.parse_optional_keyword("as") is not None:
        names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_str_literal)
    if parser.parse_optional_punctuation(":") is not None:
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    count = len(arguments) - len(keywords)
    return arguments, count, names or [""] * len(types), types


def _value(parser: Parser) -> Argument:
    value, found = _optional_value(parser)
    if not found:
        parser.raise_error(
            "an argument is expected: %handle, *%handles, a number, a string, none, [...], {...} or lambda"
        )
    return value


def _optional_value(parser: Parser) -> tuple[Argument, bool]:
    """Parses a value if there is one: (the value, whether there is one)."""
    operand = _optional_handle(parser)
    if operand is not None:
        return Ref(operand), True
    if parser.parse_optional_punctuation("*") is not None:
        operand = _optional_handle(parser)
        if operand is None:
            parser.raise_error("a list of handles is expected after '*'")
        return Splat(operand), True
    word = parser.parse_optional_keyword_in((*_WORDS, "lambda"))
    if word == "lambda":
        names = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_str_literal) or []
        return Lambda(parser.parse_region(), tuple(names)), True
    if word is not None:
        return _WORDS[word], True
    text = parser.parse_optional_str_literal()
    if text is not None:
        return text, True
    number = parser.parse_optional_number()
    if number is not None:
        return number, True
    items = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: _value(parser))
    if items is not None:
        return items, True
    pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, lambda: _pair(parser))
    return (dict(pairs), True) if pairs is not None else (None, False)


def _optional_handle(parser: Parser) -> SSAValue | None:
    """Returns a handle, which is always defined further up, if there is one."""
    at = parser.pos
    name = parser.parse_optional_unresolved_operand()
    if name is None:
        return None
    known = parser.ssa_values.get(name.operand_name, ())
    if len(known) <= name.index:
        parser.raise_error(f"%{name.operand_name} is used before it is defined", at)
    return parser.resolve_operand(name, known[name.index].type)


def _pair(parser: Parser) -> tuple[str, Argument]:
    key = parser.parse_str_literal()
    parser.parse_punctuation("=")
    return key, _value(parser)


def print_call(op: PrimitiveOp, printer: Printer) -> None:
    """Prints a call after the op's name."""
    bound = op.bound
    positional = op.positional.value.data
    variadic = op.SIGNATURE.variadic
    printer.print_string("(")
    first = True
    for place, (name, value) in enumerate(bound.items()):
        items = value if variadic is not None and name == variadic.name and isinstance(value, list) else [value]
        for item in items:
            printer.print_string("" if first else ", ")
            first = False
            if place >= positional:
                printer.print_string(f"{name} = ")
            _print_value(item, printer)
    printer.print_string(")")
    if not op.outs:
        return
    names = [n.data for n in op.result_names.data]
    if any(names):
        printer.print_string(" as ")
        printer.print_list(names, printer.print_string_literal)
    printer.print_string(" : ")
    printer.print_list([r.type for r in op.outs], printer.print_attribute)


def _print_value(value: Argument, printer: Printer) -> None:
    match value:
        case Ref():
            printer.print_operand(value.value)
        case Splat():
            printer.print_string("*")
            printer.print_operand(value.value)
        case Lambda():
            printer.print_string("lambda ")
            if value.names:
                with printer.in_parens():
                    printer.print_list(value.names, printer.print_string_literal)
                printer.print_string(" ")
            printer.print_region(value.region)
        case None:
            printer.print_string("none")
        case bool():
            printer.print_string(str(value).lower())
        case int():
            printer.print_string(str(value))
        case float():
            text = repr(value)
            mantissa, exponent, digits = text.partition("e")
            printer.print_string((mantissa if "." in mantissa else f"{mantissa}.0") + exponent + digits)
        case str():
            printer.print_string_literal(value)
        case Mapping():
            with printer.in_braces():
                printer.print_list(list(value.items()), lambda pair: _print_pair(pair, printer))
        case _:
            with printer.in_square_brackets():
                printer.print_list(list(value), lambda item: _print_value(item, printer))


def _print_pair(pair: tuple[str, Argument], printer: Printer) -> None:
    printer.print_string_literal(pair[0])
    printer.print_string(" = ")
    _print_value(pair[1], printer)


# Items, slices, yields


def parse_item(parser: Parser) -> tuple[SSAValue, int, str]:
    """Parses `%loops[-1] as "last" : type` as (list, index, name)."""
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation("[")
    index = parser.parse_integer(allow_boolean=False)
    parser.parse_punctuation("]")
    name = _optional_name(parser)
    return _list(parser, operand), index, name


def print_item(op: ItemOp, printer: Printer) -> None:
    """Prints an item after the op's name."""
    printer.print_string(" ")
    printer.print_operand(op.list)
    printer.print_string(f"[{op.index.value.data}]")
    _print_name_and_type(op.result_name.data, op.list, printer)


def parse_slice(parser: Parser) -> tuple[SSAValue, int | None, int | None, int | None, str]:
    """Parses `%loops[1 : none : none] as "rest" : type` as (list, start, stop, step, name)."""
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation("[")
    bounds = [_bound(parser)]
    for _ in range(2):
        parser.parse_punctuation(":")
        bounds.append(_bound(parser))
    parser.parse_punctuation("]")
    name = _optional_name(parser)
    return _list(parser, operand), bounds[0], bounds[1], bounds[2], name


def print_slice(op: SliceOp, printer: Printer) -> None:
    """Prints a slice after the op's name."""
    printer.print_string(" ")
    printer.print_operand(op.list)
    bounds = ["none" if b is None else str(b.value.data) for b in (op.start, op.stop, op.step)]
    printer.print_string(f"[{' : '.join(bounds)}]")
    _print_name_and_type(op.result_name.data, op.list, printer)


def _bound(parser: Parser) -> int | None:
    if parser.parse_optional_keyword("none") is not None:
        return None
    return parser.parse_integer(allow_boolean=False)


def _optional_name(parser: Parser) -> str:
    return parser.parse_str_literal() if parser.parse_optional_keyword("as") is not None else ""


def _list(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """Returns the operand, of the list type that follows."""
    parser.parse_punctuation(":")
    at = parser.pos
    type_ = parser.parse_type()
    if not isinstance(type_, ListType):
        parser.raise_error("items and slices are of a !schedule.list", at)
    return parser.resolve_operand(operand, type_)


def _print_name_and_type(name: str, value: SSAValue, printer: Printer) -> None:
    if name:
        printer.print_string(" as ")
        printer.print_string_literal(name)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


def parse_yield(parser: Parser) -> tuple[list[SSAValue], bool, list[int]]:
    """Parses `single %x : i32` as (values, whether it is one value and no list, places of separators)."""
    single = parser.parse_optional_keyword("single") is not None
    operands: list[UnresolvedOperand] = []
    first = parser.parse_optional_unresolved_operand()
    if first is not None:
        operands.append(first)
        while parser.parse_optional_punctuation(",") is not None:
            operands.append(parser.parse_unresolved_operand())
    separators: list[int] = []
    if parser.parse_optional_keyword("separators") is not None:
        separators = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    types: list[Attribute] = []
    at = parser.pos
    if operands:
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    return list(parser.resolve_operands(operands, types, at)), single, separators


def print_yield(op: YieldOp, printer: Printer) -> None:
    """Prints a yield after the op's name."""
    if op.single.value.data:
        printer.print_string(" single")
    if op.values:
        printer.print_string(" ")
        printer.print_list(op.values, printer.print_operand)
    places = [str(place.value.data) for place in op.separators]
    if places:
        printer.print_string(f" separators [{', '.join(places)}]")
    if op.values:
        printer.print_string(" : ")
        printer.print_list([v.type for v in op.values], printer.print_attribute)
