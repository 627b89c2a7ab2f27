"""Computes the upper halves of 32-bit products, as in fixed-point multiplication, by `pmuldq`.

`trunci((extsi(a) * extsi(b)) >> 32)` on vectors: x86 multiplies the even lanes of two vectors, into 64 bits each. LLVM widens
both sides instead, which moves all lanes twice before the product and once more after it. Here the even lanes are multiplied
in place, then the odd ones, and the upper halves of both need one shuffle only.
"""

from __future__ import annotations

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i32, i64
from xdsl.ir import SSAValue

from ....dialects import vector_ext
from ....dialects.interned import vector_type
from ....support.target import named
from .builder import WRAPS
from .converter import Converter
from .types import lanes

WORD = 32
MOST = 1 << WORD - 1


def high_product(c: Converter, op: vector_ext.CastOp) -> SSAValue | None:
    """Emits a cast to 32 bits that takes the upper half of a product; returns None for any other cast."""
    type_ = op.result.type
    if op.kind.data != "trunci" or type_.element_type != i32 or type_.get_shape()[-1] % 4:
        return None
    shift = op.input.owner
    if not isinstance(shift, (arith.ShRSIOp, arith.ShRUIOp)) or _splat(shift.rhs) != WORD:
        return None
    product = shift.lhs.owner
    if not isinstance(product, arith.MuliOp) or named(c.cpu).arch != "x86_64":
        return None
    sides = [_words(c, side, type_) for side in (product.lhs, product.rhs)]
    a, b = sides
    if a is None or b is None:
        return None
    # Of wider vectors than the processor's LLVM loses sight of what the lanes are.
    width = next(w for w in (16, 8, 4) if lanes(a.type) % w == 0 and (4 * w <= named(c.cpu).vector_bytes or w == 4))
    return c.by_parts((a, b), width, lambda parts: _product(c, parts[0], parts[1]))


def _product(c: Converter, a: SSAValue, b: SSAValue) -> SSAValue:
    """Returns the upper halves of the products of two vectors of words."""
    count = lanes(a.type)
    even, odd = (
        c.emit(llvm.MulOp, (_extended(c, a, first), _extended(c, b, first)), vector_type(i64, count // 2), WRAPS)
        for first in (0, 1)
    )
    halves = [c.emit(llvm.BitcastOp, (each,), a.type) for each in (even, odd)]
    return c.shuffle(halves[0], halves[1], [count + place if place % 2 else place + 1 for place in range(count)])


def _splat(value: SSAValue) -> int | None:
    """Returns the number that a constant vector repeats."""
    constant = value.owner
    if not isinstance(constant, arith.ConstantOp) or not isinstance(constant.value, DenseIntOrFPElementsAttr):
        return None
    number = constant.value.get_values()[0] if constant.value.is_splat() else None
    return number if isinstance(number, int) else None


def _words(c: Converter, value: SSAValue, type_: VectorType) -> SSAValue | None:
    """One side of a product as the words that were extended to it; None where it has more bits than these."""
    number = _splat(value)
    if number is not None:
        return c.constant(number, vector_type(i32, type_.get_shape()[-1])) if -MOST <= number < MOST else None
    cast = value.owner
    if isinstance(cast, vector_ext.CastOp) and cast.kind.data == "extsi" and cast.input.type == type_:
        return c.value(cast.input)
    return None


def _extended(c: Converter, value: SSAValue, first: int) -> SSAValue:
    """Returns every second lane from `first` on in 64 bits, in the form that LLVM knows for `pmuldq`."""
    count = lanes(value.type)
    if first:
        value = c.shuffle(value, value, [place | 1 for place in range(count)])
    wide = vector_type(i64, count // 2)
    pairs = c.emit(llvm.BitcastOp, (value,), wide)
    upper = c.emit(llvm.ShlOp, (pairs, c.constant(WORD, wide)), wide, WRAPS)
    return c.emit(llvm.AShrOp, (upper, c.constant(WORD, wide)), wide)
