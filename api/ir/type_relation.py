"""Constraints of function types, by TVM's names: `TypeRelation(func, args, num_inputs, attrs)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...support.arguments import check, integer, items
from ..relay.ty import Type
from .node import ContentNode, Node


class TypeConstraint(ContentNode):
    """A condition on the types of a function's arguments and result."""

    __slots__ = ()


class TypeRelation(TypeConstraint):
    """A relation between types: the first `num_inputs` of `args` are given, the others follow."""

    __slots__ = ("args", "attrs", "func", "num_inputs")

    def __init__(
        self, func: Node, args: Sequence[Type], num_inputs: int, attrs: Mapping[str, Any] | Node | None = None
    ):
        self.span = None
        check(func, "func", "a named function, ir.EnvFunc.get(…)", Node)
        self.func = func
        self.args = items(args, "args", "types", Type)
        self.num_inputs = integer(num_inputs, "num_inputs", 0, len(self.args))
        self.attrs = attrs

    def content(self) -> Sequence[object]:
        return [self.func, self.args, self.num_inputs, self.attrs]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.args))
        return f"TypeRelation({self.func}, [{shown}], {self.num_inputs})"
