"""Lowers `arith`, and `vector_ext`'s compares, selects and casts, to `llvm`.

bf16 arithmetic is done in f32 and rounded to nearest even after each op: few targets have it, and those that have it
flush denormals. f16 is left to LLVM, except for f64 → f16, which must not round twice.
Integer division never traps: x / 0 = 0, x % 0 = 0, and the least number divided by -1 is itself, as in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    Float16Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f32,
    i1,
    i16,
    i32,
)
from xdsl.dialects.utils import FastMathAttrBase, FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import llvm_ext, vector_ext
from ....dialects.interned import integer
from ....support.diagnostics import error_at
from ....support.memoize import memoized
from ....support.target import named
from ...emitter import dense
from .builder import NO_FASTMATH, WRAPS, Builder
from .converter import Converter, HandlerTable
from .mulhi import high_product
from .types import element_of, float_width, is_memref, is_vector, lanes, with_element

TABLE = HandlerTable()


def fastmath_of(flags: Attribute | None) -> llvm.FastMathAttr:
    """Returns arith's fastmath flags as LLVM's."""
    return NO_FASTMATH if flags is None else _fastmath_of(flags)


@memoized
def _fastmath_of(flags: Attribute) -> llvm.FastMathAttr:
    return llvm.FastMathAttr(list(flags.data)) if isinstance(flags, FastMathAttrBase) and flags.data else NO_FASTMATH


# Constants


@TABLE.on(arith.ConstantOp)
def convert_constant(c: Converter, op: arith.ConstantOp) -> None:
    """Lowers scalars and dense vectors."""
    type_, value = c.type_of(op.results[0]), op.properties["value"]
    match value:
        case IntegerAttr():
            c.bind(op.results[0], c.constant(value.value.data, type_))
            return
        case DenseResourceAttr():
            raise error_at(op, "a constant that refers to a resource cannot be lowered", "use a dense<…> constant")
        case DenseIntOrFPElementsAttr():
            if not is_vector(type_):
                raise error_at(op, f"a constant of type {op.result.type} cannot be lowered", "use a memref.global")
            if value.type != type_:
                value = dense(type_, cast("tuple[int | float, ...]", value.get_values()))
        case _:
            pass
    c.bind(op.result, c.constant_attr(value, type_))


# Integers

INTEGER_OPS: dict[type[Operation], type[Operation]] = {
    arith.AndIOp: llvm.AndOp,
    arith.OrIOp: llvm.OrOp,
    arith.XOrIOp: llvm.XOrOp,
    arith.ShRUIOp: llvm.LShrOp,
    arith.ShRSIOp: llvm.AShrOp,
}
WRAPPING_OPS: dict[type[Operation], type[Operation]] = {
    arith.AddiOp: llvm.AddOp,
    arith.SubiOp: llvm.SubOp,
    arith.MuliOp: llvm.MulOp,
    arith.ShLIOp: llvm.ShlOp,
}
INTEGER_INTRINSICS: dict[type[Operation], str] = {
    arith.MinSIOp: "smin",
    arith.MinUIOp: "umin",
    arith.MaxSIOp: "smax",
    arith.MaxUIOp: "umax",
}


@TABLE.on(*INTEGER_OPS)
def convert_integer_op(c: Converter, op: Operation) -> None:
    """Lowers bitwise ops and right shifts."""
    lhs, rhs = c.operands(op)
    c.bind(op.results[0], c.emit(INTEGER_OPS[type(op)], (lhs, rhs), lhs.type))


@TABLE.on(*WRAPPING_OPS)
def convert_wrapping_op(c: Converter, op: Operation) -> None:
    """Lowers ops that wrap around unless their flags say that they do not."""
    lhs, rhs = c.operands(op)
    flags = op.properties.get("overflowFlags")
    properties = WRAPS if flags is None else _overflow_of(flags)
    c.bind(op.results[0], c.emit(WRAPPING_OPS[type(op)], (lhs, rhs), lhs.type, properties))


@memoized
def _overflow_of(flags: Attribute) -> dict[str, Attribute]:
    """Returns arith's overflow flags as a property of LLVM's ops."""
    if not isinstance(flags, arith.IntegerOverflowAttr) or not flags.data:
        return WRAPS
    bits = (arith.IntegerOverflowFlag.NSW in flags.data) + 2 * (arith.IntegerOverflowFlag.NUW in flags.data)
    return {"overflowFlags": integer(bits, i32)}


@TABLE.on(*INTEGER_INTRINSICS)
def convert_min_max(c: Converter, op: Operation) -> None:
    """Lowers minimum and maximum of integers."""
    lhs, rhs = c.operands(op)
    c.bind(op.results[0], c.compute(INTEGER_INTRINSICS[type(op)], (lhs, rhs), lhs.type))


def _known_lanes(value: SSAValue) -> list[int] | None:
    """Returns the lanes of an integer constant, None when it is none."""
    owner = value.owner
    if isinstance(owner, llvm.ConstantOp):
        match owner.value:
            case IntegerAttr():
                return [owner.value.value.data]
            case DenseIntOrFPElementsAttr():
                return [int(lane) for lane in owner.value.get_values()]  # pyright: ignore[reportArgumentType]
            case _:
                return None
    return None


def divide(b: Builder, op: type[Operation], lhs: SSAValue, rhs: SSAValue, zero_result: SSAValue | None) -> SSAValue:
    """Emits lhs `op` rhs; neither a zero divisor nor the least number over -1 traps.

    The result for a zero divisor is `zero_result`, or 0 when that is None; -1 as a signed divisor negates (or leaves 0).
    """
    type_ = lhs.type
    signed = op in (llvm.SDivOp, llvm.SRemOp)
    known = _known_lanes(rhs)
    if known is not None and all(lane != 0 and not (signed and lane == -1) for lane in known):
        return b.emit(op, (lhs, rhs), type_)
    zero, one = b.constant(0, type_), b.constant(1, type_)
    is_zero = b.icmp("eq", rhs, zero)
    odd = is_zero
    if signed:
        is_minus_one = b.icmp("eq", rhs, b.constant(-1, type_))
        odd = b.emit(llvm.OrOp, (is_zero, is_minus_one), is_zero.type)
    result = b.emit(op, (lhs, b.select(odd, one, rhs)), type_)
    if op in (llvm.SRemOp, llvm.URemOp):
        # x % 1 = 0 is also the result of x % 0 and x % -1.
        return result
    if signed:
        negated = b.emit(llvm.SubOp, (zero, lhs), type_, WRAPS)
        result = b.select(is_minus_one, negated, result)  # pyright: ignore[reportPossiblyUnboundVariable]
    return b.select(is_zero, zero if zero_result is None else zero_result, result)


@TABLE.on(arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
def convert_division(c: Converter, op: Operation) -> None:
    """Lowers division and remainder, toward zero."""
    ops: dict[type[Operation], type[Operation]] = {
        arith.DivSIOp: llvm.SDivOp,
        arith.DivUIOp: llvm.UDivOp,
        arith.RemSIOp: llvm.SRemOp,
        arith.RemUIOp: llvm.URemOp,
    }
    lhs, rhs = c.operands(op)
    c.bind(op.results[0], divide(c, ops[type(op)], lhs, rhs, None))


@TABLE.on(arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp)
def convert_rounded_division(c: Converter, op: Operation) -> None:
    """Lowers division toward minus or plus infinity: C's quotient, corrected by the remainder."""
    lhs, rhs = c.operands(op)
    type_ = lhs.type
    zero, one = c.constant(0, type_), c.constant(1, type_)
    known = _known_lanes(rhs) if isinstance(op, arith.FloorDivSIOp) else None
    if known is not None and min(known) > 0:
        c.bind(op.results[0], _floor_divide(c, lhs, rhs, known))
        return
    if isinstance(op, arith.CeilDivUIOp):
        quotient, remainder = divide(c, llvm.UDivOp, lhs, rhs, None), divide(c, llvm.URemOp, lhs, rhs, None)
        off = c.icmp("ne", remainder, zero)
    else:
        quotient, remainder = divide(c, llvm.SDivOp, lhs, rhs, None), divide(c, llvm.SRemOp, lhs, rhs, None)
        signs = c.emit(llvm.XOrOp, (lhs, rhs), type_)
        inexact = c.icmp("ne", remainder, zero)
        below_zero = c.icmp("slt" if isinstance(op, arith.FloorDivSIOp) else "sge", signs, zero)
        off = c.emit(llvm.AndOp, (inexact, below_zero), inexact.type)
    step = llvm.SubOp if isinstance(op, arith.FloorDivSIOp) else llvm.AddOp
    c.bind(op.results[0], c.select(off, c.emit(step, (quotient, one), type_, WRAPS), quotient))


def _floor_divide(c: Converter, value: SSAValue, divisor: SSAValue, known: Sequence[int]) -> SSAValue:
    """Divides toward minus infinity by positive constants, by one shift or one unsigned division.

        floor(x / 8) = x >> 3                floor(x / 7) = ~(~x / 7) where x < 0

    Not a rule on TIR: there the divisor of a vector is a broadcast, and index arithmetic has no width yet.
    """
    type_ = value.type
    element = element_of(type_)
    assert isinstance(element, IntegerType)
    if len(set(known)) == 1 and known[0].bit_count() == 1:
        return c.emit(llvm.AShrOp, (value, c.constant(known[0].bit_length() - 1, type_)), type_)
    sign = c.emit(llvm.AShrOp, (value, c.constant(element.width.data - 1, type_)), type_)
    quotient = c.emit(llvm.UDivOp, (c.emit(llvm.XOrOp, (value, sign), type_), divisor), type_)
    return c.emit(llvm.XOrOp, (quotient, sign), type_)


@TABLE.on(arith.AddUIExtendedOp)
def convert_addui_extended(c: Converter, op: arith.AddUIExtendedOp) -> None:
    """Lowers sum and carry."""
    lhs, rhs = c.operands(op)
    total = c.emit(llvm.AddOp, (lhs, rhs), lhs.type, WRAPS)
    c.bind(op.sum, total)
    c.bind(op.overflow, c.icmp("ult", total, lhs))


@TABLE.on(arith.MulSIExtendedOp, arith.MulUIExtendedOp)
def convert_mul_extended(c: Converter, op: arith.MulSIExtendedOp | arith.MulUIExtendedOp) -> None:
    """Lowers low and high half of a product, from one of twice the width."""
    lhs, rhs = c.operands(op)
    element = element_of(lhs.type)
    assert isinstance(element, IntegerType)
    wide = with_element(lhs.type, IntegerType(2 * element.width.data))
    extend = llvm.SExtOp if isinstance(op, arith.MulSIExtendedOp) else llvm.ZExtOp
    product = c.emit(llvm.MulOp, (c.emit(extend, (lhs,), wide), c.emit(extend, (rhs,), wide)), wide, WRAPS)
    high = c.emit(llvm.LShrOp, (product, c.constant(element.width.data, wide)), wide)
    c.bind(op.low, c.emit(llvm.TruncOp, (product,), lhs.type, {"overflowFlags": llvm.OverflowAttr(None)}))
    c.bind(op.high, c.emit(llvm.TruncOp, (high,), lhs.type, {"overflowFlags": llvm.OverflowAttr(None)}))


# Floats

FLOAT_OPS: dict[type[Operation], type[Operation]] = {
    arith.AddfOp: llvm.FAddOp,
    arith.SubfOp: llvm.FSubOp,
    arith.MulfOp: llvm.FMulOp,
    arith.DivfOp: llvm.FDivOp,
}
FLOAT_INTRINSICS: dict[type[Operation], str] = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
}


def in_f32(c: Converter, values: tuple[SSAValue, ...], compute: Callable[[tuple[SSAValue, ...]], SSAValue]) -> SSAValue:
    """Returns `compute(values)`, done in f32 and rounded back when the values are bf16."""
    type_ = values[0].type
    if not isinstance(element_of(type_), BFloat16Type):
        return compute(values)
    wide = with_element(type_, f32)
    return truncate_float(c, compute(tuple(extend_float(c, value, wide) for value in values)), type_)


@TABLE.on(*FLOAT_OPS)
def convert_float_op(c: Converter, op: Operation) -> None:
    """Lowers +, -, *, / of floats."""
    properties: dict[str, Attribute] = {"fastmathFlags": fastmath_of(op.properties.get("fastmath"))}
    llvm_op = FLOAT_OPS[type(op)]
    c.bind(op.results[0], in_f32(c, c.operands(op), lambda values: c.emit(llvm_op, values, values[0].type, properties)))


@TABLE.on(*FLOAT_INTRINSICS)
def convert_float_min_max(c: Converter, op: Operation) -> None:
    """Lowers minima and maxima: maximumf and minimumf return NaN for a NaN, maxnumf and minnumf the other."""
    operands = c.operands(op)
    type_ = operands[0].type
    lhs, rhs = _widened(c, operands)
    result = _min_max(c, FLOAT_INTRINSICS[type(op)], lhs, rhs, fastmath_of(op.properties.get("fastmath")))
    # Of bf16, it is one of the operands, with nothing to round.
    c.bind(op.results[0], result if result.type == type_ else _upper_half(c, result, type_))


def _min_max(c: Converter, name: str, lhs: SSAValue, rhs: SSAValue, flags: llvm.FastMathAttr) -> SSAValue:
    any_zero = FastMathFlag.NO_SIGNED_ZEROS in flags.data
    if name in ("maximum", "minimum") and any_zero and (_is_number(lhs) or _is_number(rhs)):
        # Of a number and what may be NaN: one compare, as processors have it.
        number, other = (lhs, rhs) if _is_number(lhs) else (rhs, lhs)
        return c.select(c.fcmp("ogt" if name == "maximum" else "olt", number, other), number, other)
    if name in ("maximum", "minimum") and any_zero and lanes(lhs.type) and named(c.cpu).arch == "x86_64":
        # The only such instruction, under a mask, returns the second of two that it cannot compare. The second is what a
        # reduction waits for, so that the first is looked at beforehand.
        chosen = c.select(c.fcmp("ogt" if name == "maximum" else "olt", rhs, lhs), rhs, lhs)
        return c.select(c.fcmp("ord", rhs, rhs), chosen, rhs)
    return c.compute(name, (lhs, rhs), lhs.type, flags)


def _is_number(value: SSAValue) -> bool:
    """Tells whether a value is a constant, or a vector of constants, of which none is NaN."""
    match value.owner.value if isinstance(value.owner, llvm.ConstantOp) else None:
        case FloatAttr() as scalar:
            return scalar.value.data == scalar.value.data
        case DenseIntOrFPElementsAttr() as dense:
            return all(number == number for number in dense.get_values())
        case _:
            return False


@TABLE.on(arith.NegfOp)
def convert_negf(c: Converter, op: arith.NegfOp) -> None:
    """Flips the sign bit."""
    (value,) = c.operands(op)
    if isinstance(element_of(value.type), BFloat16Type):
        bits = with_element(value.type, i16)
        flipped = c.emit(llvm.XOrOp, (c.emit(llvm.BitcastOp, (value,), bits), c.constant(-(1 << 15), bits)), bits)
        c.bind(op.result, c.emit(llvm.BitcastOp, (flipped,), value.type))
        return
    c.bind(op.result, c.emit(llvm.FNegOp, (value,), value.type, {"fastmathFlags": fastmath_of(op.fastmath)}))


# Compares and selects


@TABLE.on(arith.CmpiOp, vector_ext.CmpiOp)
def convert_cmpi(c: Converter, op: arith.CmpiOp | vector_ext.CmpiOp) -> None:
    """Lowers an integer compare."""
    lhs, rhs = c.operands(op)
    c.bind(op.result, c.icmp(_predicate(op.predicate, vector_ext.CMPI_PREDICATES), lhs, rhs))


@TABLE.on(arith.CmpfOp, vector_ext.CmpfOp)
def convert_cmpf(c: Converter, op: arith.CmpfOp | vector_ext.CmpfOp) -> None:
    """Lowers a float compare."""
    lhs, rhs = _widened(c, c.operands(op))
    c.bind(op.result, c.fcmp(_predicate(op.predicate, vector_ext.CMPF_PREDICATES), lhs, rhs))


def _predicate(predicate: IntegerAttr | StringAttr, names: Sequence[str]) -> str:
    """Returns a predicate's name, which xDSL's `arith` keeps as a number."""
    return predicate.data if isinstance(predicate, StringAttr) else names[predicate.value.data]


def _widened(c: Converter, values: tuple[SSAValue, ...]) -> tuple[SSAValue, ...]:
    """Returns bf16 values as f32, others as they are."""
    type_ = values[0].type
    if not isinstance(element_of(type_), BFloat16Type):
        return values
    return tuple(extend_float(c, value, with_element(type_, f32)) for value in values)


@TABLE.on(arith.SelectOp, vector_ext.SelectOp)
def convert_select(c: Converter, op: arith.SelectOp | vector_ext.SelectOp) -> None:
    """Lowers cond ? lhs : rhs."""
    if is_memref(op.lhs.type):
        raise error_at(op, "a select between memrefs cannot be lowered", "select the element, or branch with scf.if")
    cond, lhs, rhs = c.operands(op)
    c.bind(op.result, c.select(cond, lhs, rhs))


# Casts


def extend_float(c: Builder, value: SSAValue, type_: Attribute) -> SSAValue:
    """Extends a float to a wider type."""
    if not isinstance(element_of(value.type), BFloat16Type):
        return c.emit(llvm.FPExtOp, (value,), type_)
    narrow, wide = with_element(type_, i16), with_element(type_, i32)
    bits = c.emit(llvm.ZExtOp, (c.emit(llvm.BitcastOp, (value,), narrow),), wide)
    exact = with_element(type_, f32)
    single = c.emit(llvm.BitcastOp, (c.emit(llvm.ShlOp, (bits, c.constant(16, wide)), wide, WRAPS),), exact)
    return single if exact == type_ else c.emit(llvm.FPExtOp, (single,), type_)


def truncate_float(c: Converter, value: SSAValue, type_: Attribute) -> SSAValue:
    """Truncates a float, rounded to nearest even."""
    source, target = element_of(value.type), element_of(type_)
    if isinstance(source, Float64Type) and isinstance(target, Float16Type):
        return c.emit(llvm.FPTruncOp, (_round_to_odd(c, value),), type_)
    if isinstance(target, BFloat16Type):
        if isinstance(source, Float64Type):
            value = c.emit(llvm.FPTruncOp, (value,), with_element(type_, f32))
        elif isinstance(source, Float16Type):
            value = extend_float(c, value, with_element(type_, f32))
        return _truncate_to_bf16(c, value, type_)
    return c.emit(llvm.FPTruncOp, (value,), type_)


def _truncate_to_bf16(c: Converter, value: SSAValue, type_: Attribute) -> SSAValue:
    """Rounds f32 to bf16 in integers: half of the last place is added, less one if even; NaN is quiet."""
    wide = with_element(type_, i32)
    bits = c.emit(llvm.BitcastOp, (value,), wide)
    upper = c.emit(llvm.LShrOp, (bits, c.constant(16, wide)), wide)
    last = c.emit(llvm.AndOp, (upper, c.constant(1, wide)), wide)
    half = c.emit(llvm.AddOp, (last, c.constant(0x7FFF, wide)), wide, WRAPS)
    rounded = c.emit(llvm.AddOp, (bits, half), wide, WRAPS)
    quiet = c.emit(llvm.OrOp, (bits, c.constant(0x40 << 16, wide)), wide)
    return _upper_half(c, c.select(c.fcmp("uno", value, value), quiet, rounded), type_)


def _upper_half(c: Converter, value: SSAValue, type_: Attribute) -> SSAValue:
    """Returns the bf16 whose bits are the upper half of these f32 (or of the i32 of their bits)."""
    wide = with_element(type_, i32)
    bits = value if value.type == wide else c.emit(llvm.BitcastOp, (value,), wide)
    upper = c.emit(llvm.LShrOp, (bits, c.constant(16, wide)), wide)
    cut = c.emit(llvm.TruncOp, (upper,), with_element(type_, i16), {"overflowFlags": llvm.OverflowAttr(None)})
    return c.emit(llvm.BitcastOp, (cut,), type_)


def _round_to_odd(c: Converter, value: SSAValue) -> SSAValue:
    """Rounds f64 to f32 to odd, so that rounding again to f16 is correct.

    Truncates, and sets the last bit where inexact. After Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
    proved algorithms using rounding to odd".
    """
    narrow, bits = with_element(value.type, f32), with_element(value.type, i32)
    nearest = c.emit(llvm.FPTruncOp, (value,), narrow)
    back = extend_float(c, nearest, value.type)
    inexact = c.fcmp("one", back, value)
    past = c.fcmp("ogt", c.compute("fabs", (back,), value.type), c.compute("fabs", (value,), value.type))
    pattern = c.emit(llvm.BitcastOp, (nearest,), bits)
    toward_zero = c.select(past, c.emit(llvm.SubOp, (pattern, c.constant(1, bits)), bits, WRAPS), pattern)
    odd = c.emit(llvm.OrOp, (toward_zero, c.constant(1, bits)), bits)
    return c.emit(llvm.BitcastOp, (c.select(inexact, odd, pattern),), narrow)


def resize_float(c: Converter, value: SSAValue, type_: Attribute) -> SSAValue:
    """Converts `value` to another float type."""
    if value.type == type_:
        return value
    if float_width(type_) > float_width(value.type):
        return extend_float(c, value, type_)
    return truncate_float(c, value, type_)


@TABLE.on(arith.ExtFOp, arith.TruncFOp)
def convert_float_resize(c: Converter, op: Operation) -> None:
    """Lowers conversions between float widths."""
    c.bind(op.results[0], resize_float(c, c.value(op.operands[0]), c.type_of(op.results[0])))


def resize_integer(c: Builder, value: SSAValue, type_: Attribute, signed: bool) -> SSAValue:
    """Converts `value` to an integer of another width."""
    source, target = element_of(value.type), element_of(type_)
    assert isinstance(source, IntegerType) and isinstance(target, IntegerType)
    if source.width.data == target.width.data:
        return value
    if source.width.data > target.width.data:
        return c.emit(llvm.TruncOp, (value,), type_, {"overflowFlags": llvm.OverflowAttr(None)})
    return c.emit(llvm.SExtOp if signed else llvm.ZExtOp, (value,), type_)


def integer_to_float(c: Converter, value: SSAValue, type_: Attribute, signed: bool) -> SSAValue:
    """Converts rounded to nearest; f16 and bf16 by way of f32, as numpy does."""
    op = llvm.SIToFPOp if signed else llvm_ext.UIToFPOp
    if float_width(type_) == 16:
        return truncate_float(c, c.emit(op, (value,), with_element(type_, f32)), type_)
    return c.emit(op, (value,), type_)


def float_to_integer(c: Converter, value: SSAValue, type_: Attribute, signed: bool) -> SSAValue:
    """Converts toward zero, limited to the type's range, NaN to 0; to a boolean, compares with zero.

    f32 → i8: max(x, -128), min(…, 127), fptosi, trunc, and 0 where x is NaN (f64 → i32 likewise).  f32 → i32, whose greatest number f32 does not
    hold: max(x, -2**31), fptosi, 2**31 - 1 where x is 2**31 or more, and 0 where x is NaN.

    x86 makes -2**31 of NaN, where LLVM promises nothing: frozen, it is that number, or 0 where LLVM knows that it is NaN. Its lower bytes are the
    0 that is wanted, so that f32 → i8 is max, min, fptosi, trunc.
    """
    element = element_of(type_)
    if isinstance(element_of(value.type), Float16Type | BFloat16Type):
        value = extend_float(c, value, with_element(value.type, f32))
    if element == i1:
        return c.fcmp("une", value, c.constant(0.0, value.type))
    assert isinstance(element, IntegerType)
    width = element.width.data
    if named(c.cpu).arch != "x86_64":
        # There it is what one or two instructions do; for vectors of x86 LLVM would do one lane after the other.
        return c.compute(f"fpto{'s' if signed else 'u'}i.sat", (value,), type_)
    avx2 = (
        lanes(type_) and named(c.cpu).arch == "x86_64" and named(c.cpu).has_fma and not named(c.cpu).has_masked_stores
    )
    if avx2 and width == 64:
        from .float_to_int64 import float_to_wide_integer

        return float_to_wide_integer(c, value, type_, signed)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    narrow = width < 32
    to = with_element(type_, i32) if narrow else type_
    holds = width <= (52 if isinstance(element_of(value.type), Float64Type) else 23)
    least = c.constant(float(low), value.type)
    # A constant LLVM would convert itself.
    frozen = named(c.cpu).arch == "x86_64" and not isinstance(value.owner, llvm.ConstantOp)
    if frozen and holds and narrow:
        # NaN goes through, as the second operand of the instructions.
        most = c.constant(float(high), value.type)
        packs = avx2 and not signed
        bounded = value if packs else c.select(c.fcmp("ogt", least, value), least, value)
        bounded = c.select(c.fcmp("olt", most, bounded), most, bounded)
        whole = c.emit(llvm_ext.FreezeOp, (c.emit(llvm_ext.FPToSIOp, (bounded,), to),), to)
        if packs:
            # The instructions that make two vectors one limit what they take, and -2**31 is 0 then.
            whole = c.compute("smax", (whole, c.constant(0, to)), to)
            whole = c.compute("smin", (whole, c.constant(high, to)), to)
        return resize_integer(c, whole, type_, True)
    bounded = c.select(c.fcmp("ogt", value, least), value, least)
    if holds:
        most = c.constant(float(high), value.type)
        bounded = c.select(c.fcmp("olt", bounded, most), bounded, most)
    whole = c.emit(llvm_ext.FPToSIOp if signed or narrow else llvm_ext.FPToUIOp, (bounded,), to)
    if not holds:
        # The number after the greatest is a power of two, which floats hold.
        beyond = c.fcmp("oge", value, c.constant(float(high + 1), value.type))
        whole = c.select(beyond, c.constant(high if signed else -1, to), whole)
    if signed:
        # Of unsigned ones the least, 0, took NaN's place.
        whole = c.select(c.fcmp("ord", value, value), whole, c.constant(0, to))
    return resize_integer(c, whole, type_, True)


CASTS: dict[str, Callable[[Converter, SSAValue, Attribute], SSAValue]] = {
    "extsi": lambda c, value, type_: resize_integer(c, value, type_, True),
    "extui": lambda c, value, type_: resize_integer(c, value, type_, False),
    "trunci": lambda c, value, type_: resize_integer(c, value, type_, False),
    "index_cast": lambda c, value, type_: resize_integer(c, value, type_, True),
    "index_castui": lambda c, value, type_: resize_integer(c, value, type_, False),
    "sitofp": lambda c, value, type_: integer_to_float(c, value, type_, True),
    "uitofp": lambda c, value, type_: integer_to_float(c, value, type_, False),
    "fptosi": lambda c, value, type_: float_to_integer(c, value, type_, True),
    "fptoui": lambda c, value, type_: float_to_integer(c, value, type_, False),
}


@TABLE.on(
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.IndexCastOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
)
def convert_cast(c: Converter, op: Operation) -> None:
    """Lowers the cast that the op is named after."""
    kind = op.name.removeprefix("arith.")
    c.bind(op.results[0], CASTS[kind](c, c.value(op.operands[0]), c.type_of(op.results[0])))


@TABLE.on(vector_ext.CastOp)
def convert_vector_cast(c: Converter, op: vector_ext.CastOp) -> None:
    """Lowers a cast lane by lane, or a product's upper half as a whole with its last cast."""
    if (value := high_product(c, op)) is not None:
        c.bind(op.result, value)
        return
    c.bind(op.result, CASTS[op.kind.data](c, c.value(op.input), c.type_of(op.result)))


@TABLE.on(arith.BitcastOp)
def convert_bitcast(c: Converter, op: arith.BitcastOp) -> None:
    """Lowers a bitcast to another type of the width."""
    if is_memref(op.input.type):
        raise error_at(op, "a bitcast of a memref cannot be lowered", "use memref.view on a memref of i8")
    c.bind(op.result, c.emit(llvm.BitcastOp, (c.value(op.input),), c.type_of(op.result)))
