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
from .scope import Scope

_CONSTANTS = {"True": Const(1, I1), "False": Const(0, I1)}
_FLOATS_BY_NAME = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"), "infinity": float("inf")}


class Literals(Scope):
    """Reads what needs no name in scope."""

    def number(self, token: Token) -> Const:
        """A number literal: an int32 (or int64) or a float32."""
        value = number(token, self.fail)
        return int_const(value) if isinstance(value, int) else Const(value, F32)

    def string(self, node: Expr | None, what: str) -> str:
        """A string literal."""
        text = string(node, self.fail)
        if text is None:
            self.fail(node, f"{what} is a string in quotes")
        return text

    def is_string(self, node: Expr | None) -> bool:
        """Whether a node is a string literal."""
        return is_string(node)

    def dtype(self, node: Expr | None) -> Attribute:
        """The type named by a string literal: `"float32"`, `"int32x4"`, `"handle"`."""
        name = self.string(node, "a dtype")
        try:
            return dtype_to_type(name)
        except MirError as error:
            self.fail(node, error.diagnostics[0].message, *(n.message for n in error.diagnostics[0].notes))

    def named_type(self, node: Expr) -> Attribute | None:
        """The type an annotation names: `T.int32`, `T.handle`, `T.handle("float32", "global")`; None when it is none."""
        if isinstance(node, Call) and node.function in ("T.handle", "T.Ptr", "T.ptr"):
            return self.handle(node)
        if isinstance(node, Call) and not node.arguments and not node.keywords:
            node = node.function
        if type(node) is not Token or not node.startswith("T."):
            return None
        try:
            return dtype_to_type(node[2:])
        except MirError:
            return None

    def handle(self, node: Call) -> HandleType:
        """`T.handle("float32", "global")`."""
        arguments = [a for a in node.arguments]
        scope = ""
        for keyword in node.keywords:
            if keyword.name == "storage_scope":
                scope = self.string(keyword.value, "a storage scope")
            elif keyword.name == "dtype":
                arguments.insert(0, keyword.value)
        if len(arguments) > 1:
            scope = self.string(arguments[1], "a storage scope")
        if not arguments:
            return HandleType.get()
        first = arguments[0]
        pointee = self.dtype(first) if self.is_string(first) else self.named_type(first)
        if pointee is None:
            self.fail(first, "what a handle points to is a dtype", 'write T.handle("float32")')
        return HandleType.get(UnitAttr() if isinstance(pointee, NoneType) else pointee, scope)

    def typed_literal(self, type: Attribute, node: Expr) -> Const | None:
        """The constant that `T.dtype(node)` is when node is a literal, else None."""
        if self.is_string(node):
            text = self.string(node, "")
            if isinstance(type, AnyFloat) and text.lower() in _FLOATS_BY_NAME:
                return Const(_FLOATS_BY_NAME[text.lower()], type)
            self.fail(node, f"a string here is 'inf', '-inf' or 'nan', not '{text}'")
        number = self.literal(node)
        if number is None:
            return None
        value = number.value
        if isinstance(type, AnyFloat):
            return Const(float(value), type)
        if isinstance(type, IntegerType):
            if type == I1:
                return Const(int(bool(value)), type)
            if isinstance(value, float):
                self.fail(node, f"{value} is no integer")
            if wrap(value, type) != value:
                from ...dialects.tir.types import type_to_dtype

                self.fail(node, f"{value} does not fit into {type_to_dtype(type)}")
            return Const(value, type)
        return None

    def literal(self, node: Expr) -> Const | None:
        """A plain number, perhaps with a sign, or True or False; None for anything else."""
        if type(node) is Token:
            if node.type == "NUMBER":
                return self.number(node)
            return _CONSTANTS.get(node) if node.type == "NAME" else None
        if isinstance(node, Unary) and node.op in ("-", "+"):
            inner = self.literal(node.operand)
            if inner is None or node.op == "+":
                return inner
            return int_const(-inner.value) if isinstance(inner.value, int) else Const(-inner.value, inner.type)
        return None

    def integer(self, node: Expr, what: str) -> int:
        """An integer literal of any integer dtype."""
        attr = self.attribute(node)
        if not isinstance(attr, IntegerAttr):
            self.fail(node, f"{what} is an integer")
        return attr.value.data

    def attribute(self, node: Expr) -> Attribute:
        """A constant of an annotation: number, bool, string, list, dictionary, None, target."""
        const = self.literal(node)
        if const is not None:
            self.location = self.at(node)
            return const_attr(const, self)
        if self.is_string(node):
            return StringAttr(self.string(node, ""))
        match node:
            case Token() if node == "None":
                return NoneType()
            case Sequence():
                return ArrayAttr([self.attribute(item) for item in node.items])
            case Mapping():
                return self.dictionary(node)
            case Call() if node.function == "T.target" and len(node.arguments) == 1:
                return TargetAttr(self.attribute(node.arguments[0]))
            case Call() if len(node.arguments) == 1 and (type := self.named_type(node.function)) is not None:
                typed = self.typed_literal(type, node.arguments[0])
                if typed is not None:
                    self.location = self.at(node)
                    return const_attr(typed, self)
            case Index() if isinstance(node.base, Index) and node.base.base == "metadata" and len(node.base.items) == 1:
                kind = self.string(node.base.items[0], "the kind of a metadata object")
                return MetadataAttr(StringAttr(kind), IntAttr(self.integer(node.items[0], "its number")))
            case Token() if node.type == "NAME" and node in self.names:
                return NameAttr(StringAttr(str(node)))
            case _:
                pass
        self.fail(
            node, "an annotation is made of constants", "numbers, strings, lists, dictionaries, True, False and None"
        )

    def dictionary(self, node: Expr) -> DictionaryAttr:
        """`{"key": constant, …}`."""
        if not isinstance(node, Mapping):
            self.fail(node, "a dictionary is expected here", 'write it as {"name": value}')
        entries: dict[str, Attribute] = {}
        for key, value in node.pairs:
            name = self.string(key, "a key")
            if name in entries:
                self.fail(key, f"the key '{name}' is given twice")
            entries[name] = self.attribute(value)
        return DictionaryAttr(entries)
