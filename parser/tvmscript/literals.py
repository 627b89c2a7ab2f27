"""Literals: numbers, strings, dtypes, and the attributes that annotations and targets are made of."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NoneType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute

from ...dialects.tir.operators import Const, const_attr, int_const, wrap
from ...dialects.tir.types import F32, I1, HandleType, MetadataAttr, NameAttr, TargetAttr, dtype_to_type
from ...support.diagnostics import MirError
from ..python.literals import is_string, number, string
from ..python.tree import Call, Expr, Index, Mapping, Sequence, Token, Unary
from .reader import Reader

_CONSTANTS = {"True": Const(1, I1), "False": Const(0, I1)}
_FLOATS_BY_NAME = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"), "infinity": float("inf")}


def read_number(reader: Reader, token: Token) -> Const:
    """A number literal: an int32 (or int64) or a float32."""
    value = number(token, reader.fail)
    return int_const(value) if isinstance(value, int) else Const(value, F32)


def read_string(reader: Reader, node: Expr | None, what: str) -> str:
    """A string literal."""
    text = string(node, reader.fail)
    if text is None:
        reader.fail(node, f"{what} is a string in quotes")
    return text


def read_dtype(reader: Reader, node: Expr | None) -> Attribute:
    """The type named by a string literal: `"float32"`, `"int32x4"`, `"handle"`."""
    name = read_string(reader, node, "a dtype")
    try:
        return dtype_to_type(name)
    except MirError as error:
        reader.fail(node, error.diagnostics[0].message, *(n.message for n in error.diagnostics[0].notes))


def named_type(reader: Reader, node: Expr) -> Attribute | None:
    """Returns the type that an annotation names, `T.int32`, `T.handle("float32", "global")`, or None."""
    if isinstance(node, Index) and node.base in ("T.Ptr", "T.ptr"):
        node = Call(node.base, node.items, [])
    if isinstance(node, Call) and node.function in ("T.handle", "T.Ptr", "T.ptr"):
        return read_handle(reader, node)
    if isinstance(node, Call) and not node.arguments and not node.keywords:
        node = node.function
    if type(node) is not Token or not node.startswith("T."):
        return None
    try:
        return dtype_to_type(node[2:])
    except MirError:
        return None


def read_handle(reader: Reader, node: Call) -> HandleType:
    """`T.handle("float32", "global")`."""
    arguments = [a for a in node.arguments]
    scope = ""
    for keyword in node.keywords:
        if keyword.name == "storage_scope":
            scope = read_string(reader, keyword.value, "a storage scope")
        elif keyword.name == "dtype":
            arguments.insert(0, keyword.value)
    if len(arguments) > 1:
        scope = read_string(reader, arguments[1], "a storage scope")
    if not arguments:
        return HandleType.get()
    first = arguments[0]
    pointee = read_dtype(reader, first) if is_string(first) else named_type(reader, first)
    if pointee is None:
        reader.fail(first, "what a handle points to is a dtype", 'write T.handle("float32")')
    return HandleType.get(UnitAttr() if isinstance(pointee, NoneType) else pointee, scope)


def typed_literal(reader: Reader, type: Attribute, node: Expr) -> Const | None:
    """Returns the constant `T.dtype(node)` when node is a literal, otherwise None."""
    if is_string(node):
        text = read_string(reader, node, "")
        if isinstance(type, AnyFloat) and text.lower() in _FLOATS_BY_NAME:
            return Const(_FLOATS_BY_NAME[text.lower()], type)
        reader.fail(node, f"a string here is 'inf', '-inf' or 'nan', not '{text}'")
    number = literal_const(reader, node)
    if number is None:
        return None
    value = number.value
    if isinstance(type, AnyFloat):
        return Const(float(value), type)
    if isinstance(type, IntegerType):
        if type == I1:
            return Const(int(bool(value)), type)
        if isinstance(value, float):
            reader.fail(node, f"{value} is not an integer")
        if wrap(value, type) != value:
            from ...dialects.tir.types import type_to_dtype

            reader.fail(node, f"{value} does not fit into {type_to_dtype(type)}")
        return Const(value, type)
    return None


def literal_const(reader: Reader, node: Expr) -> Const | None:
    """A plain number, perhaps with a sign, or True or False; None for anything else."""
    if type(node) is Token:
        if node.type == "NUMBER":
            return read_number(reader, node)
        return _CONSTANTS.get(node) if node.type == "NAME" else None
    if isinstance(node, Unary) and node.op in ("-", "+"):
        inner = literal_const(reader, node.operand)
        if inner is None or node.op == "+":
            return inner
        return int_const(-inner.value) if isinstance(inner.value, int) else Const(-inner.value, inner.type)
    return None


def read_integer(reader: Reader, node: Expr, what: str) -> int:
    """An integer literal of any integer dtype."""
    attr = read_attribute(reader, node)
    if not isinstance(attr, IntegerAttr):
        reader.fail(node, f"{what} is an integer")
    return attr.value.data


def read_attribute(reader: Reader, node: Expr) -> Attribute:
    """A constant of an annotation: number, bool, string, list, dictionary, None, target."""
    const = literal_const(reader, node)
    if const is not None:
        reader.location = reader.at(node)
        return const_attr(const, reader)
    if is_string(node):
        return StringAttr(read_string(reader, node, ""))
    match node:
        case Token() if node == "None":
            return NoneType()
        case Sequence():
            return ArrayAttr([read_attribute(reader, item) for item in node.items])
        case Mapping():
            return read_dictionary(reader, node)
        case Call() if node.function == "T.target" and len(node.arguments) == 1:
            return TargetAttr(read_attribute(reader, node.arguments[0]))
        case Call() if len(node.arguments) == 1 and (type := named_type(reader, node.function)) is not None:
            typed = typed_literal(reader, type, node.arguments[0])
            if typed is not None:
                reader.location = reader.at(node)
                return const_attr(typed, reader)
        case Index() if isinstance(node.base, Index) and node.base.base == "metadata" and len(node.base.items) == 1:
            kind = read_string(reader, node.base.items[0], "the kind of a metadata object")
            return MetadataAttr(StringAttr(kind), IntAttr(read_integer(reader, node.items[0], "its number")))
        case Token() if node.type == "NAME" and node in reader.names:
            return NameAttr(StringAttr(str(node)))
        case _:
            pass
    reader.fail(
        node, "an annotation is made of constants", "numbers, strings, lists, dictionaries, True, False and None"
    )


def read_dictionary(reader: Reader, node: Expr) -> DictionaryAttr:
    """`{"key": constant, …}`."""
    if not isinstance(node, Mapping):
        reader.fail(node, "a dictionary is expected here", 'write it as {"name": value}')
    entries: dict[str, Attribute] = {}
    for key, value in node.pairs:
        name = read_string(reader, key, "a key")
        if name in entries:
            reader.fail(key, f"the key '{name}' is given twice")
        entries[name] = read_attribute(reader, value)
    return DictionaryAttr(entries)
