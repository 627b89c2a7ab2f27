"""Converts SSA values to analyzer expressions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from ...support.operands import operands_of
from ..tir import scalar_ops
from ..tir.arithmetic import AndOp, NotOp, OrOp
from ..tir.buffer import BufferGetOp, BufferOp
from ..tir.expr import CallOp, CastOp, ConstOp, IfThenElseOp, LetOp, SelectOp, YieldOp
from ..tir.intrinsics import Effect, intrinsic_effect
from ..tir.types import I1, BufferType, is_unsigned
from . import expr as x
from .expr import Expr, Function, ne, select


def is_index_type(type: Attribute) -> bool:
    """Returns True for dtypes analyzed as unbounded integers: signed, of 32 bits or more."""
    return isinstance(type, IntegerType) and type.width.data >= 32 and type.signedness.data is not Signedness.UNSIGNED


def _constructor(name: str) -> Callable[..., Expr]:
    """Returns the analyzer's constructor of that name: `floordiv`, `logical_and`, `Expr.__add__`."""
    return getattr(Expr, name.removeprefix("Expr.")) if name.startswith("Expr.") else getattr(x, name)


CONSTRUCTORS: dict[type[Operation], Callable[..., Expr]] = {
    op: _constructor(row.analyzer) for op, row in scalar_ops.OPERATORS.items()
}
ARITHMETIC: dict[type[Operation], Callable[..., Expr]] = {op: CONSTRUCTORS[op] for op in scalar_ops.ARITHMETIC}
COMPARISONS: dict[type[Operation], Callable[..., Expr]] = {op: CONSTRUCTORS[op] for op in scalar_ops.COMPARISONS}
LOGIC: dict[type[Operation], Callable[..., Expr]] = {op: CONSTRUCTORS[op] for op in (AndOp, OrOp, NotOp)}
"""The analyzer's expression of each operator, by its op."""
# Operators of other dtypes wrap around or round: all that is known is that they are functions of their operands.
_PURE = frozenset([*ARITHMETIC, *COMPARISONS, *LOGIC, SelectOp, CastOp])

Inputs: TypeAlias = "tuple[SSAValue, ...] | None"


def from_ssa(value: SSAValue, memo: dict[SSAValue, Expr]) -> Expr:
    """Returns the expression of a scalar value.

    A `let` becomes its value; loads and values that are not pure scalars become variables. `memo` holds earlier conversions;
    it is valid while the converted ops are not changed. `T.likely` is dropped.
    """
    leaf = _leaf(value)
    if leaf is not None:
        return leaf
    found = memo.get(value)
    if found is not None:
        return found
    # Values to convert, with their inputs once those are known and pushed.
    pending: list[tuple[SSAValue, Inputs]] = [(value, None)]
    while pending:
        current, inputs = pending.pop()
        if current in memo:
            continue
        leaf = _leaf(current)
        if leaf is not None:
            memo[current] = leaf
            continue
        assert isinstance(current, OpResult)
        rule = _RULES.get(type(current.op))
        if rule is None:
            memo[current] = x.var(current)
            continue
        if inputs is None:
            inputs = rule.inputs(current.op, current)
            if inputs is None:
                memo[current] = x.var(current)
                continue
            missing: list[SSAValue] = []
            for each in inputs:
                if each not in memo:
                    # Atoms are created in the order of operands, which becomes that of terms.
                    leaf = _leaf(each) if type(each) is OpResult else x.known_var(each)
                    if leaf is None:
                        missing.append(each)
                    else:
                        memo[each] = leaf
            if missing:
                pending.append((current, inputs))
                pending += [(v, None) for v in reversed(missing)]
                continue
        result = rule.build(current.op, current, [memo[v] for v in inputs])
        if not result.terms and result.const.bit_length() > 31:
            result = _wrapped(result, current.type)
        elif len(result.terms) > x.MAX_TERMS or result.depth > x.MAX_DEPTH:
            result = x.var(current)
        memo[current] = result
    return memo[value]


def _wrapped(number: Expr, type: Attribute) -> Expr:
    """Wraps a constant that exceeds its type, as the machine does: int32 -2147483648 - 7 → 2147483641."""
    if not is_index_type(type):
        return number
    assert isinstance(type, IntegerType)
    half = 1 << (type.width.data - 1)
    return x.as_expr((number.const + half) % (2 * half) - half)


def _leaf(value: SSAValue) -> Expr | None:
    """Converts block arguments and constants, the most frequent values; returns None for others."""
    if type(value) is not OpResult:
        return x.var(value)
    if type(value.op) is ConstOp:
        literal = value.op.properties["value"]
        if type(literal) is IntegerAttr and literal.value.data >= 0:
            return x.number(literal.value.data)
    return None


class _Rule(NamedTuple):
    """Converts ops of one class: the operands to convert first (None: to a variable), then the result."""

    inputs: Callable[[Any, OpResult], Inputs]
    build: Callable[[Any, OpResult, list[Expr]], Expr]


def _all_operands(op: Operation, value: OpResult) -> Inputs:
    return operands_of(op)


def _convert_const(op: ConstOp, value: OpResult, operands: list[Expr]) -> Expr:
    literal = op.value
    if not isinstance(literal, IntegerAttr):
        return x.call(Function("const", value.type, ConstOp, (), literal), ())
    number, dtype = literal.value.data, value.type
    if number < 0 and isinstance(dtype, IntegerType) and is_unsigned(dtype):
        number &= (1 << dtype.width.data) - 1
    return Expr((), number)


def _convert_operator(op: Operation, value: OpResult, operands: list[Expr]) -> Expr:
    """Converts integer arithmetic, comparisons and logic; on other dtypes to an opaque function."""
    kind = type(op)
    build = ARITHMETIC.get(kind)
    if build is not None and is_index_type(value.type):
        return build(*operands)
    compare = COMPARISONS.get(kind)
    if compare is not None and _orders_as_integers(op.operands[0].type):
        return compare(*operands)
    logic = LOGIC.get(kind)
    if logic is not None and value.type == I1:
        return logic(*operands)
    return x.call(_function(op.name, value.type, kind, tuple(op.operands)), operands)


def _let_inputs(op: LetOp, value: OpResult) -> Inputs:
    return (op.value,) if isinstance(op.value.type, IntegerType) else None


def _first(op: Operation, value: OpResult, operands: list[Expr]) -> Expr:
    return operands[0]


def _select_inputs(op: SelectOp, value: OpResult) -> Inputs:
    return tuple(op.operands) if op.condition.type == I1 else None


def _convert_select(op: SelectOp, value: OpResult, operands: list[Expr]) -> Expr:
    return select(operands[0], operands[1], operands[2])


def _branch_inputs(op: IfThenElseOp, value: OpResult) -> Inputs:
    sides = _pure_sides(op) if op.condition.type == I1 else None
    return None if sides is None else (op.condition, *sides)


def _convert_branch(op: IfThenElseOp, value: OpResult, operands: list[Expr]) -> Expr:
    return select(operands[0], operands[1], operands[2], lazy=True)


def _call_inputs(op: CallOp, value: OpResult) -> Inputs:
    pure = op.callee is None and intrinsic_effect(op.intrinsic.data) is Effect.PURE
    return tuple(op.arguments) if pure and op.arguments and isinstance(value.type, IntegerType) else None


def _field_inputs(op: BufferGetOp, value: OpResult) -> Inputs:
    extent = _buffer_extent(op)
    return None if extent is None else (extent,) if isinstance(extent, SSAValue) else ()


def _convert_field(op: BufferGetOp, value: OpResult, operands: list[Expr]) -> Expr:
    extent = _buffer_extent(op)
    return Expr((), extent) if isinstance(extent, int) else operands[0]


def _buffer_extent(op: BufferGetOp) -> int | SSAValue | None:
    """Returns the extent that `A.shape[i]` reads, if the op that defines A has it."""
    if op.field.data != "shape" or op.dim is None:
        return None
    source = op.buffer.owner
    if isinstance(source, BufferOp):
        return source.extents()[op.dim.value.data]
    type = op.buffer.type
    assert isinstance(type, BufferType)
    dim = type.shape.data[op.dim.value.data]
    return dim.value.data if isinstance(dim, IntegerAttr) else None


def _pure_sides(op: IfThenElseOp) -> tuple[SSAValue, SSAValue] | None:
    """Returns the values of both sides if these are pure; None if one loads or calls."""
    sides: list[SSAValue] = []
    for region in (op.then_region, op.else_region):
        for inner in region.block.ops:
            if isinstance(inner, CallOp):
                if inner.callee is not None or intrinsic_effect(inner.intrinsic.data) is not Effect.PURE:
                    return None
            elif isinstance(inner, YieldOp):
                sides.append(inner.values[0])
            elif not isinstance(inner, ConstOp | LetOp) and type(inner) not in _PURE:
                return None
    return sides[0], sides[1]


def _function(
    name: str, result: Attribute, kind: type[Operation], inputs: tuple[SSAValue, ...], more: Hashable = ()
) -> Function:
    """Returns the function that an op computes."""
    return Function(name, result, kind, tuple(v.type for v in inputs), more)


def _orders_as_integers(type: Attribute) -> bool:
    # Atoms of unsigned and narrow types represent the numbers they hold; comparing them is exact in 64 bits.
    return isinstance(type, IntegerType) and (type.width.data < 64 or is_index_type(type))


def _convert_cast(op: CastOp, value: OpResult, operands: list[Expr]) -> Expr:
    (operand,) = operands
    source, target = op.value.type, op.result.type
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        if source == target:
            return operand
        if target == I1:
            return ne(operand, x.ZERO)
        widens = target.width.data > source.width.data or (
            target.width.data == source.width.data and is_unsigned(source) == is_unsigned(target)
        )
        if widens and (is_unsigned(source) or not is_unsigned(target)):
            return operand
        if (
            not operand.terms
            and is_index_type(target)
            and -(1 << (target.width.data - 1)) <= operand.const < 1 << (target.width.data - 1)
        ):
            return operand
    return x.call(_function(op.name, target, CastOp, (op.value,)), (operand,))


def _convert_call(op: CallOp, value: OpResult, operands: list[Expr]) -> Expr:
    name = op.intrinsic.data
    if name == "likely":
        return operands[0]
    if is_index_type(value.type) and len(operands) == 2 and not operands[1].terms:
        left, amount = operands[0], operands[1].const
        assert isinstance(value.type, IntegerType)
        # 2^amount is a number of the dtype.
        within = 0 <= amount < value.type.width.data - 1
        if name == "shift_left" and within:
            return left.scaled(1 << amount)
        if name == "shift_right" and within:
            return x.floordiv(left, Expr((), 1 << amount))
        if name == "bitwise_and" and amount >= 0 and amount & (amount + 1) == 0:
            return x.floormod(left, Expr((), amount + 1))
    others = DictionaryAttr(op.attributes)
    return x.call(_function(f"T.{name}", value.type, CallOp, tuple(op.arguments), others), operands)


_RULES: dict[type[Operation], _Rule] = {
    **{kind: _Rule(_all_operands, _convert_operator) for kind in (*ARITHMETIC, *COMPARISONS, *LOGIC)},
    ConstOp: _Rule(_all_operands, _convert_const),
    LetOp: _Rule(_let_inputs, _first),
    CastOp: _Rule(_all_operands, _convert_cast),
    SelectOp: _Rule(_select_inputs, _convert_select),
    IfThenElseOp: _Rule(_branch_inputs, _convert_branch),
    CallOp: _Rule(_call_inputs, _convert_call),
    BufferGetOp: _Rule(_field_inputs, _convert_field),
}
