"""Emission of standard ops: index arithmetic that folds and knows ranges, comparisons, ramps."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import vector_ext
from ...dialects.interned import integer, vector_type
from ...support.edit import add_op, create_op
from ..emitter import Emitter, dense, wrap
from .values import Index, Ramp

OpT = TypeVar("OpT", bound=Operation)

INDEX = IndexType()
# What TVM assumes of index arithmetic: it does not overflow.
NSW: Mapping[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])}
NO_FLAGS: Mapping[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
FASTMATH_NONE: Mapping[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
CONTRACT: Mapping[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])}
REASSOCIABLE: Mapping[str, Attribute] = {
    "fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC, FastMathFlag.ALLOW_CONTRACT])
}
# Which of two zeros a reduction finds the larger depends on the order of its terms anyway.
ANY_ZERO: Mapping[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.NO_SIGNED_ZEROS])}
_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}
_FLOAT_PREDICATES = {
    "oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7, "ueq": 8, "une": 13, "uno": 14,
}  # fmt: skip


class StdEmitter(Emitter):
    """Appends ops of the standard dialects, and folds index arithmetic by its ranges."""

    CONSTANT = arith.ConstantOp

    def act(
        self, kind: type[OpT], operands: Sequence[SSAValue], properties: Mapping[str, Attribute] | None = None
    ) -> OpT:
        """Emits an op without results."""
        op = create_op(kind, operands, (), dict(properties or {}), self.location)
        add_op(self.block, op)
        return op

    @contextmanager
    def inside(self, block: Block) -> Generator[Block]:
        """While inside, ops go to the end of `block`."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    # Constants

    def true(self) -> SSAValue:
        return self.constant(1, i1)

    def iota(self, lanes: int, step: int, element: Attribute) -> SSAValue:
        """Returns the vector 0, step, 2 * step, …"""
        type_ = vector_type(element, lanes)
        return self.constant_attr(dense(type_, [wrap(i * step, element) for i in range(lanes)]), type_)

    # Index arithmetic

    def ssa(self, index: Index) -> SSAValue:
        """Returns an index as an SSA value of type `index`."""
        return self.constant(index.value, INDEX) if isinstance(index.value, int) else index.value

    def index_add(self, a: Index, b: Index) -> Index:
        if isinstance(a.value, int):
            a, b = b, a
        if isinstance(b.value, int):
            if isinstance(a.value, int):
                return Index.of(a.value + b.value)
            if b.value == 0:
                return a
        low = None if a.low is None or b.low is None else a.low + b.low
        high = None if a.high is None or b.high is None else a.high + b.high
        return Index(self.emit(arith.AddiOp, (self.ssa(a), self.ssa(b)), INDEX, NSW), low, high)

    def index_sub(self, a: Index, b: Index) -> Index:
        if isinstance(b.value, int):
            return self.index_add(a, Index.of(-b.value))
        low = None if a.low is None or b.high is None else a.low - b.high
        high = None if a.high is None or b.low is None else a.high - b.low
        return Index(self.emit(arith.SubiOp, (self.ssa(a), self.ssa(b)), INDEX, NSW), low, high)

    def index_mul(self, a: Index, b: Index) -> Index:
        if isinstance(a.value, int):
            a, b = b, a
        if isinstance(b.value, int):
            if isinstance(a.value, int):
                return Index.of(a.value * b.value)
            if b.value in (0, 1):
                return a if b.value else Index.of(0)
        low = high = None
        if a.low is not None and b.low is not None and a.low >= 0 and b.low >= 0:
            low = a.low * b.low
            high = None if a.high is None or b.high is None else a.high * b.high
        elif None not in (corners := [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]):
            known = [c for c in corners if c is not None]
            low, high = min(known), max(known)
        return Index(self.emit(arith.MuliOp, (self.ssa(a), self.ssa(b)), INDEX, NSW), low, high)

    def index_floordiv(self, a: Index, b: Index) -> Index:
        """a // b toward minus infinity: one unsigned division where neither can be negative."""
        if isinstance(b.value, int) and b.value > 0:
            if isinstance(a.value, int):
                return Index.of(a.value // b.value)
            if b.value == 1:
                return a
            low = None if a.low is None else a.low // b.value
            high = None if a.high is None else a.high // b.value
            if low is not None and low == high:
                return Index.of(low)
        else:
            low = 0 if a.is_natural and b.is_natural else None
            high = a.high if low == 0 else None
        kind = arith.DivUIOp if a.is_natural and b.is_natural else arith.FloorDivSIOp
        return Index(self.emit(kind, (self.ssa(a), self.ssa(b)), INDEX), low, high)

    def index_floormod(self, a: Index, b: Index) -> Index:
        """a % b with the sign of b."""
        if isinstance(b.value, int) and b.value > 0:
            if isinstance(a.value, int):
                return Index.of(a.value % b.value)
            if a.low is not None and a.high is not None and a.low // b.value == a.high // b.value:
                return self.index_sub(a, Index.of(a.low // b.value * b.value))
        if a.is_natural and b.is_natural:
            high = None if b.high is None else max(b.high - 1, 0)
            high = a.high if high is None else high if a.high is None else min(high, a.high)
            return Index(self.emit(arith.RemUIOp, (self.ssa(a), self.ssa(b)), INDEX), 0, high)
        # a - (a // b) * b; LLVM finds the cheap form for a constant b.
        quotient = Index(self.emit(arith.FloorDivSIOp, (self.ssa(a), self.ssa(b)), INDEX))
        rest = self.index_sub(a, self.index_mul(quotient, b))
        if isinstance(b.value, int) and b.value > 0:
            return Index(rest.value, 0, b.value - 1)
        return Index(self.zero_over_zero(self.ssa(b), self.ssa(rest)))

    def zero_over_zero(self, divisor: SSAValue, remainder: SSAValue) -> SSAValue:
        """a - (a // b) * b, as 0 where b is 0: it would be a, for a // 0 = 0."""
        owner = divisor.owner
        if isinstance(owner, Operation) and owner.name == "vector.broadcast":
            owner = owner.operands[0].owner
        if isinstance(owner, arith.ConstantOp):
            match owner.value:
                case IntegerAttr() as number if number.value.data:
                    return remainder
                case DenseIntOrFPElementsAttr() as lanes if all(lanes.get_values()):
                    return remainder
                case _:
                    pass
        zero = self.constant(0, divisor.type)
        return self.select(self.compare("eq", divisor, zero), zero, remainder)

    def index_truncdiv(self, a: Index, b: Index) -> Index:
        if a.is_natural and b.is_natural:
            return self.index_floordiv(a, b)
        return Index(self.emit(arith.DivSIOp, (self.ssa(a), self.ssa(b)), INDEX))

    def index_truncmod(self, a: Index, b: Index) -> Index:
        if a.is_natural and b.is_natural:
            return self.index_floormod(a, b)
        return Index(self.emit(arith.RemSIOp, (self.ssa(a), self.ssa(b)), INDEX))

    def index_min(self, a: Index, b: Index) -> Index:
        if isinstance(a.value, int) and isinstance(b.value, int):
            return Index.of(min(a.value, b.value))
        low = None if a.low is None or b.low is None else min(a.low, b.low)
        highs = [h for h in (a.high, b.high) if h is not None]
        return Index(self.emit(arith.MinSIOp, (self.ssa(a), self.ssa(b)), INDEX), low, min(highs) if highs else None)

    def index_max(self, a: Index, b: Index) -> Index:
        if isinstance(a.value, int) and isinstance(b.value, int):
            return Index.of(max(a.value, b.value))
        lows = [x for x in (a.low, b.low) if x is not None]
        high = None if a.high is None or b.high is None else max(a.high, b.high)
        return Index(self.emit(arith.MaxSIOp, (self.ssa(a), self.ssa(b)), INDEX), max(lows) if lows else None, high)

    # Conversions

    def cast_index(self, value: SSAValue, type_: Attribute, signed: bool = True) -> SSAValue:
        """Converts an integer to `index` or back, scalar or vector."""
        if isinstance(type_, VectorType):
            return self.append(vector_ext.CastOp("index_cast" if signed else "index_castui", value, type_)).result
        if not signed and isinstance(value.type, IntegerType) and value.type.width.data < 64:
            value = self.emit(arith.ExtUIOp, (value,), i64)
        return self.emit(arith.IndexCastOp, (value,), type_)

    def ramp_vector(self, ramp: Ramp, element: Attribute) -> SSAValue:
        """Returns a ramp as a vector of `element` integers (or `index`)."""
        from xdsl.dialects import vector

        type_ = vector_type(element, ramp.lanes)

        def scalar(index: Index) -> SSAValue:
            if isinstance(index.value, int):
                return self.constant(index.value, element)
            return index.value if element == INDEX else self.cast_index(index.value, element)

        if isinstance(ramp.stride.value, int):
            steps = None if ramp.stride.value == 0 else self.iota(ramp.lanes, ramp.stride.value, element)
        else:
            spread = self.emit(vector.BroadcastOp, (scalar(ramp.stride),), type_)
            steps = self.emit(arith.MuliOp, (spread, self.iota(ramp.lanes, 1, element)), type_, NO_FLAGS)
        if isinstance(ramp.base.value, int) and steps is None:
            return self.constant(ramp.base.value, type_)
        base = self.emit(vector.BroadcastOp, (scalar(ramp.base),), type_)
        return base if steps is None else self.emit(arith.AddiOp, (base, steps), type_, NO_FLAGS)

    # Comparison

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits an integer comparison, scalar or vector."""
        if isinstance(lhs.type, VectorType):
            return self.append(vector_ext.CmpiOp(predicate, lhs, rhs)).result
        return self.emit(arith.CmpiOp, (lhs, rhs), i1, {"predicate": integer(_PREDICATES[predicate], i64)})

    def compare_floats(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits a float comparison, scalar or vector."""
        if isinstance(lhs.type, VectorType):
            return self.append(vector_ext.CmpfOp(predicate, lhs, rhs)).result
        properties = {"predicate": integer(_FLOAT_PREDICATES[predicate], i64), **FASTMATH_NONE}
        return self.emit(arith.CmpfOp, (lhs, rhs), i1, properties)

    def select(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """condition ? lhs : rhs; lane by lane for a vector condition."""
        if isinstance(condition.type, VectorType):
            return self.append(vector_ext.SelectOp(condition, lhs, rhs)).result
        return self.emit(arith.SelectOp, (condition, lhs, rhs), lhs.type)


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b
