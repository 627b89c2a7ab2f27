"""Arithmetic on LLVM values as Python expressions: `x * y + 1.0` appends the instructions.

A `Float` or `Int` is a scalar or a vector; numbers become constants of the other side's type. Nothing is fused or
reordered but by `mul_add`, so that what a formula says is what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float64Type, IntegerType, f32, f64, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects import llvm_ext
from ..convert.builder import FASTMATH_NONE, WRAPS, Builder
from ..convert.types import element_of, float_width, lanes, with_element

NumberT = TypeVar("NumberT", "Int", "Float")


@dataclass(frozen=True, slots=True)
class Bool:
    """The result of a compare."""

    b: Builder
    value: SSAValue

    def __and__(self, other: Bool) -> Bool:
        return Bool(self.b, self.b.emit(llvm.AndOp, (self.value, other.value), self.value.type))

    def __or__(self, other: Bool) -> Bool:
        return Bool(self.b, self.b.emit(llvm.OrOp, (self.value, other.value), self.value.type))

    def __invert__(self) -> Bool:
        ones = self.b.constant(1, self.value.type)
        return Bool(self.b, self.b.emit(llvm.XOrOp, (self.value, ones), self.value.type))

    def choose(self, yes: Float | float, no: Float | float) -> Float:
        """Returns `yes` where true, otherwise `no`; at least one of them is a `Float`."""
        typed = yes if isinstance(yes, Float) else no
        assert isinstance(typed, Float)
        return Float(self.b, self.b.select(self.value, typed.same(yes), typed.same(no)))

    def pick(self, like: NumberT, yes: float, no: float) -> NumberT:
        """Returns the number `yes` where true, otherwise `no`, in the type of `like`."""
        if isinstance(like, Float):
            return type(like)(self.b, self.b.select(self.value, like.same(yes), like.same(no)))
        return type(like)(self.b, self.b.select(self.value, like.same(int(yes)), like.same(int(no))))


@dataclass(frozen=True, slots=True)
class Int:
    """An integer, or a vector of them; arithmetic wraps around."""

    b: Builder
    value: SSAValue

    def same(self, other: Int | int) -> SSAValue:
        """Returns `other` as a value of this type."""
        return other.value if isinstance(other, Int) else self.b.constant(other, self.value.type)

    def _op(self, op: type[Operation], other: Int | int) -> Int:
        properties: dict[str, Attribute] = dict(WRAPS) if op in (llvm.AddOp, llvm.SubOp, llvm.MulOp, llvm.ShlOp) else {}
        return Int(self.b, self.b.emit(op, (self.value, self.same(other)), self.value.type, properties))

    def __add__(self, other: Int | int) -> Int:
        return self._op(llvm.AddOp, other)

    def __sub__(self, other: Int | int) -> Int:
        return self._op(llvm.SubOp, other)

    def __mul__(self, other: Int | int) -> Int:
        return self._op(llvm.MulOp, other)

    def __lshift__(self, other: Int | int) -> Int:
        return self._op(llvm.ShlOp, other)

    def __rshift__(self, other: Int | int) -> Int:
        """Shifts the sign in."""
        return self._op(llvm.AShrOp, other)

    def __and__(self, other: Int | int) -> Int:
        return self._op(llvm.AndOp, other)

    def __or__(self, other: Int | int) -> Int:
        return self._op(llvm.OrOp, other)

    def __xor__(self, other: Int | int) -> Int:
        return self._op(llvm.XOrOp, other)

    def compare(self, predicate: str, other: Int | int) -> Bool:
        """Computes an integer compare by LLVM's predicate name."""
        return Bool(self.b, self.b.icmp(predicate, self.value, self.same(other)))

    def choose(self, cond: Bool, other: Int | int) -> Int:
        """Returns this where `cond`, otherwise `other`."""
        return Int(self.b, self.b.select(cond.value, self.value, self.same(other)))

    def as_float_bits(self) -> Float:
        """Computes the float whose bits these are."""
        element = element_of(self.value.type)
        assert isinstance(element, IntegerType)
        type_ = with_element(self.value.type, f64 if element.width.data == 64 else f32)
        return Float(self.b, self.b.emit(llvm.BitcastOp, (self.value,), type_))


@dataclass(frozen=True, slots=True)
class Float:
    """A float, or a vector of them."""

    b: Builder
    value: SSAValue

    def same(self, other: Float | float) -> SSAValue:
        """Returns `other` as a value of this type."""
        return other.value if isinstance(other, Float) else self.b.constant(float(other), self.value.type)

    def _op(self, op: type[llvm.AbstractFloatArithOp], lhs: Float | float, rhs: Float | float) -> Float:
        return Float(self.b, self.b.emit(op, (self.same(lhs), self.same(rhs)), self.value.type, FASTMATH_NONE))

    def __add__(self, other: Float | float) -> Float:
        return self._op(llvm.FAddOp, self, other)

    def __radd__(self, other: float) -> Float:
        return self._op(llvm.FAddOp, other, self)

    def __sub__(self, other: Float | float) -> Float:
        return self._op(llvm.FSubOp, self, other)

    def __rsub__(self, other: float) -> Float:
        return self._op(llvm.FSubOp, other, self)

    def __mul__(self, other: Float | float) -> Float:
        return self._op(llvm.FMulOp, self, other)

    def __rmul__(self, other: float) -> Float:
        return self._op(llvm.FMulOp, other, self)

    def __truediv__(self, other: Float | float) -> Float:
        return self._op(llvm.FDivOp, self, other)

    def __rtruediv__(self, other: float) -> Float:
        return self._op(llvm.FDivOp, other, self)

    def __neg__(self) -> Float:
        return Float(self.b, self.b.emit(llvm.FNegOp, (self.value,), self.value.type, FASTMATH_NONE))

    def __abs__(self) -> Float:
        return self.unary("fabs")

    def compare(self, predicate: str, other: Float | float) -> Bool:
        """Computes a float compare by LLVM's predicate name; the ordered ones are false for NaN."""
        return Bool(self.b, self.b.fcmp(predicate, self.value, self.same(other)))

    def __lt__(self, other: Float | float) -> Bool:
        return self.compare("olt", other)

    def __gt__(self, other: Float | float) -> Bool:
        return self.compare("ogt", other)

    def __ge__(self, other: Float | float) -> Bool:
        return self.compare("oge", other)

    def equals(self, other: Float | float) -> Bool:
        """Tells whether both are the same number (0 and -0 are)."""
        return self.compare("oeq", other)

    def is_nan(self) -> Bool:
        """Tells whether the value is not a number."""
        return self.compare("uno", self)

    def at_least(self, bound: float) -> Float:
        """Computes the larger of this and `bound`; NaN stays."""
        return (self < bound).choose(bound, self)

    def at_most(self, bound: float) -> Float:
        """Computes the smaller of this and `bound`; NaN stays."""
        return (self > bound).choose(bound, self)

    def unary(self, name: str) -> Float:
        """Computes an LLVM intrinsic of one operand."""
        return Float(self.b, self.b.compute(name, (self.value,), self.value.type))

    def sqrt(self) -> Float:
        """Computes the square root, rounded to nearest."""
        return self.unary("sqrt")

    def nearest(self) -> Float:
        """Computes the nearest whole number, ties to even."""
        return self.unary("rint")

    def with_sign_of(self, other: Float) -> Float:
        """This magnitude with the sign of `other`."""
        return Float(self.b, self.b.compute("copysign", (self.value, other.value), self.value.type))

    def bits(self) -> Int:
        """Computes the bits as an integer."""
        type_ = with_element(self.value.type, IntegerType(float_width(self.value.type)))
        return Int(self.b, self.b.emit(llvm.BitcastOp, (self.value,), type_))

    def widen(self) -> Float:
        """Converts to f64."""
        return Float(self.b, self.b.emit(llvm.FPExtOp, (self.value,), with_element(self.value.type, f64)))

    def narrow(self) -> Float:
        """Converts to f32, rounded to nearest."""
        return Float(self.b, self.b.emit(llvm.FPTruncOp, (self.value,), with_element(self.value.type, f32)))

    def is_wide(self) -> bool:
        """Tells whether the value is f64."""
        return isinstance(element_of(self.value.type), Float64Type)

    def to_int(self, width: int) -> Int:
        """Converts toward zero to an integer of `width` bits; it must fit."""
        type_ = with_element(self.value.type, IntegerType(width))
        return Int(self.b, self.b.emit(llvm_ext.FPToSIOp, (self.value,), type_))


def usually(condition: Bool, usual: Callable[[], Float], otherwise: Callable[[], Float]) -> Float:
    """Returns `usual` by a branch where all lanes meet the condition, otherwise `otherwise` for all.

    A scalar is `otherwise`, without a branch, so that loops over it can be vectorized.
    """
    if not lanes(condition.value.type):
        return otherwise()
    b = condition.b
    region = b.block.parent
    assert region is not None
    everywhere = b.compute("vector.reduce.and", (condition.value,), i1)
    near, far = Block(), Block()
    region.add_block([near, far])
    b.cond_branch(everywhere, near, (), far, ())
    b.block = near
    common = usual()
    after = Block(arg_types=[common.value.type])
    b.branch(after, [common.value])
    b.block = far
    b.branch(after, [otherwise().value])
    region.add_block(after)
    b.block = after
    return Float(b, after.args[0])


def mul_add(x: Float, y: Float | float, z: Float | float) -> Float:
    """Computes x * y + z, rounded once where the processor can."""
    return Float(x.b, x.b.compute("fmuladd", (x.value, x.same(y), x.same(z)), x.value.type))


def polynomial(x: Float, coefficients: Sequence[float]) -> Float:
    """Computes coefficients[0] + coefficients[1] * x + …, after Horner."""
    total = Float(x.b, x.same(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        total = mul_add(total, x, coefficient)
    return total
