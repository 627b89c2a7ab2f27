"""Linear forms of indices, a constant plus atoms times constants, and the ops that they become."""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..tir.arithmetic import AddOp, BinaryOp, MulOp, SubOp
from ..tir.buffer import BufferOp
from ..tir.expr import ConstOp, LetOp, RampOp, SelectOp, VarOp
from ..tir.operators import Const, ExprBuilder, Value


@dataclass(frozen=True, slots=True, eq=False)
class LinearAtom:
    """A term that is not taken apart: a value, or an operation on two linear forms. Equal by structure."""

    key: Hashable
    value: SSAValue | None = None
    op: type[BinaryOp] | None = None
    parts: tuple[Linear, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearAtom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Linear:
    """A constant plus atoms times constants."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int = 0, terms: dict[LinearAtom, int] | None = None):
        self.constant = constant
        self.terms = {a: f for a, f in terms.items() if f} if terms else {}

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """This plus `factor` times the other."""
        terms = dict(self.terms)
        for atom, count in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * count
        return Linear(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> Linear:
        """This times a number."""
        return Linear().plus(self, factor)

    def minus(self, other: Linear) -> int | None:
        """The difference where it is a number."""
        difference = self.plus(other, -1)
        return None if difference.terms else difference.constant

    def key(self) -> Hashable:
        """Equal for equal forms."""
        return (self.constant, frozenset((a.key, f) for a, f in self.terms.items()))

    def build(self, builder: ExprBuilder, type: Attribute, only: Container[Operation]) -> Value:
        """The form as ops; expressions of ops in `only` are made anew."""
        result: Value | None = None
        for atom, factor in self.terms.items():
            term = _build_atom(atom, builder, type, only)
            if factor < 0 and result is not None:
                scaled = builder.binary(MulOp, term, Const(-factor, type)) if factor != -1 else term
                result = builder.binary(SubOp, result, scaled)
                continue
            scaled = builder.binary(MulOp, term, Const(factor, type)) if factor != 1 else term
            result = scaled if result is None else builder.binary(AddOp, result, scaled)
        if result is None:
            return Const(self.constant, type)
        if self.constant < 0:
            return builder.binary(SubOp, result, Const(-self.constant, type))
        return builder.binary(AddOp, result, Const(self.constant, type))


def _build_atom(atom: LinearAtom, builder: ExprBuilder, type: Attribute, only: Container[Operation]) -> Value:
    if atom.value is not None:
        return copy_tree(atom.value, builder, only)
    assert atom.op is not None
    parts = [part.build(builder, type, only) for part in atom.parts]
    return builder.binary(atom.op, parts[0], parts[1])


def copy_tree(value: SSAValue, builder: ExprBuilder, only: Container[Operation] | None = None) -> SSAValue:
    """An expression anew, down to variables and buffers, which are shared; with `only`, down to ops that are not in it.

    The ops come in the order in which the expression's text would make them: constants of an operator last.
    """
    made = value.owner
    if isinstance(made, Block | VarOp | LetOp | BufferOp) or made.regions or (only is not None and made not in only):
        return value
    copies: dict[SSAValue, SSAValue] = {}
    late: list[SSAValue] = []
    for operand in made.operands:
        if isinstance(made, BinaryOp | SelectOp | RampOp) and isinstance(operand.owner, ConstOp):
            late.append(operand)
        else:
            copies[operand] = copy_tree(operand, builder, only)
    for operand in late:
        copies[operand] = copy_tree(operand, builder, only)
    copy = made.clone(copies)
    copy.location = builder.location
    builder.ops.append(copy)
    return copy.results[0]
