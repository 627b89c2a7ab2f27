"""Numbers of TE expressions, equal for expressions of equal structure: value numbering."""

from __future__ import annotations

from collections.abc import Hashable

from ..tir import node as ex
from ..tir.intrinsics import Effect, intrinsic_effect
from ..tir.node import Expr
from . import tensor as te


class Numbering:
    """A number for each expression, equal for expressions of equal structure.

    A call with effects equals only itself.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self._by_structure: dict[Hashable, int] = {}
        # Objects whose id is a key must outlive it.
        self._kept: list[Expr] = []

    def number(self, root: Expr) -> int:
        """Returns the expression's number; expressions may be deep."""
        numbers, pending = self.numbers, [root]
        while pending:
            node = pending[-1]
            if id(node) in numbers:
                pending.pop()
                continue
            parts = (*node.args, node.then_value, node.else_value) if isinstance(node, ex.Choice) else node.args
            missing = [a for a in parts if id(a) not in numbers]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            self._kept.append(node)
            key = self._structure(node, tuple([numbers[id(a)] for a in parts]))
            numbers[id(node)] = self._by_structure.setdefault(key, len(numbers))
        return numbers[id(root)]

    def _structure(self, node: Expr, parts: tuple[int, ...]) -> Hashable:
        match node:
            case ex.Apply():
                return node.op, node.dtype, parts
            case te.Read():
                return te.Read, id(node.tensor), parts
            case ex.Const():
                # By spelling: 0.0 and -0.0, 1 and True are different constants.
                return ex.Const, node.dtype, repr(node.value)
            case ex.StringImm():
                return ex.StringImm, node.value
            case ex.Choice():
                return ex.Choice, parts
            case ex.Call() if intrinsic_effect(node.intrinsic) is not Effect.OPAQUE:
                others = tuple(id(o) for o in node.operands if not isinstance(o, Expr))
                return node.intrinsic, node.dtype, parts, others
            case ex.BufferLoad():
                return ex.BufferLoad, id(node.buffer), parts
            case ex.BufferField():
                return ex.BufferField, id(node.buffer), node.field
            case _:
                return id(node)
