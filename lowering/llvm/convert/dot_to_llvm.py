"""Lowers `vector_ext.dot` to `llvm`: instructions for int8 and bfloat16 dot products, or products.

x86's `vpdpbusd` (VNNI) multiplies unsigned by signed bytes. Another pair of signs is made of it: with a' = a + 128 as
unsigned, the sum of a * b is that of a' * b less 128 times the sum of b, and the latter is a dot product itself, which LLVM
computes once for all rows that share b. `vpmaddubsw` is never used: it saturates. Arm's `sdot` and `udot` take bytes of one
signedness, `usdot` (i8mm) of two. A processor without such an instruction widens bytes to 16 bits, of which x86 multiplies
and adds pairs (`pmaddwd`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, bf16, f32, i8, i16, i32
from xdsl.ir import SSAValue

from ....dialects import vector_ext
from ....dialects.interned import vector_type
from ....support.target import Target, named
from .arith_to_llvm import extend_float, resize_integer
from .builder import WRAPS
from .converter import Converter, HandlerTable
from .types import element_of, lanes, with_element

TABLE = HandlerTable()

SIGN = -128
"""The byte of the bit that makes a signed byte the unsigned one that is 128 more, and back."""
FLIP = 0x80808080
"""That bit of each byte of a word."""

Signs = tuple[bool, bool]
"""Whether each side is unsigned."""
Product = Callable[[Sequence[SSAValue]], SSAValue]
"""The sums, with the products of two vectors added."""


@TABLE.on(vector_ext.DotOp)
def convert_dot(c: Converter, op: vector_ext.DotOp) -> None:
    """Lowers products added in groups, by as wide an instruction as there is."""
    acc, lhs, rhs = c.operands_of(op.acc, op.lhs, op.rhs)
    signs = (op.lhs_unsigned, op.rhs_unsigned)
    c.bind(op.result, dot(c, named(c.cpu), acc, lhs, rhs, signs))


def dot(c: Converter, target: Target, acc: SSAValue, lhs: SSAValue, rhs: SSAValue, signs: Signs) -> SSAValue:
    """Adds the products of each group of lanes to `acc`, on `target`."""
    group = lanes(lhs.type) // lanes(acc.type)
    kinds = (element_of(acc.type), element_of(lhs.type), element_of(rhs.type), group)
    whole = (acc, lhs, rhs)
    if kinds == (i32, i8, i8, 4) and target.has_int8_dot:
        width = _width(target, lanes(acc.type))
        if width:
            return _bytes(c, target, whole, width, signs)
    if kinds == (f32, bf16, bf16, 2):
        width = _width(target, lanes(acc.type))
        if width and target.has_bf16_dot:
            name = f"x86.avx512bf16.dpbf16ps.{32 * width}"
            if target.arch == "aarch64":
                name = "aarch64.neon.bfdot.v4f32.v8bf16"
            return c.by_parts(whole, width, lambda parts: c.compute(name, parts, parts[0].type))
        return _bf16_pairs(c, acc, lhs, rhs)
    if kinds[0] == i32 and _fits_16_bits(lhs, signs[0]) and _fits_16_bits(rhs, signs[1]) and group in (2, 4):
        width = _width(target, lanes(acc.type))
        if width and target.arch == "x86_64":
            return c.by_parts(whole, width, lambda parts: _multiply_add_pairs(c, parts, signs, group))
    return _by_lanes(c, acc, lhs, rhs, signs, group)


def _width(target: Target, count: int) -> int:
    """Lanes of 32 bits of the widest vectors that `count` lanes are made of; 0 where there are none."""
    return next((w for w in (16, 8, 4) if 4 * w <= target.vector_bytes and count % w == 0), 0)


# 8 bits


def _flip(c: Converter, value: SSAValue) -> SSAValue:
    """Adds 128 to signed bytes, for unsigned ones, or subtracts it from unsigned ones, for signed."""
    word = _broadcast_word(value)
    if word is None:
        return c.emit(llvm.XOrOp, (value, c.constant(SIGN, value.type)), value.type)
    # Before the broadcast: LLVM 22's code generator does not end on a vector of bytes of which one word is flipped and then
    # broadcast, which is what its optimizer makes of the other order.
    words = vector_type(i32, lanes(value.type) // 4)
    flipped = c.emit(llvm.XOrOp, (word, c.constant(FLIP, i32)), i32)
    return c.emit(llvm.BitcastOp, (c.broadcast(flipped, words),), value.type)


def _broadcast_word(value: SSAValue) -> SSAValue | None:
    """Returns the word that `value` repeats, where it is the bytes of a broadcast; else None."""
    cast = value.owner
    shuffle = cast.operands[0].owner if isinstance(cast, llvm.BitcastOp) else None
    if not isinstance(shuffle, llvm.ShuffleVectorOp) or any(shuffle.mask.get_values()):
        return None
    insert = shuffle.operands[0].owner
    word = insert.operands[1] if isinstance(insert, llvm.InsertElementOp) else None
    return word if word is not None and word.type == i32 else None


def _add(c: Converter, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return c.emit(llvm.AddOp, (lhs, rhs), lhs.type, WRAPS)


def _bytes(c: Converter, target: Target, whole: Sequence[SSAValue], width: int, signs: Signs) -> SSAValue:
    """Returns the product by an instruction for bytes of certain signs, of which one for others is made."""
    acc, lhs, rhs = whole
    if target.arch == "x86_64":
        name, known = f"x86.avx512.vpdpbusd.{32 * width}", (True, False)
    elif signs == (True, True):
        name, known = "aarch64.neon.udot.v4i32.v16i8", signs
    elif signs != (False, False) and "i8mm" in target.features:
        name, known = "aarch64.neon.usdot.v4i32.v16i8", (True, False)
    else:
        name, known = "aarch64.neon.sdot.v4i32.v16i8", (False, False)

    def product(sums: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return c.by_parts((sums, a, b), width, lambda parts: c.compute(name, parts, parts[0].type))

    if signs in ((True, False), (False, True)) and known[0] != known[1]:
        return product(acc, lhs, rhs) if signs == known else product(acc, rhs, lhs)
    if signs == known:
        return product(acc, lhs, rhs)
    zero = c.constant(0, acc.type)
    if signs == (False, False):
        # What 128 more on the left is too much.
        excess = product(zero, c.constant(SIGN, lhs.type), rhs)
        return c.emit(llvm.SubOp, (product(acc, _flip(c, lhs), rhs), excess), acc.type, WRAPS)
    if signs == (True, True):
        lhs, rhs = rhs, lhs
        half = product(zero, rhs, c.constant(64, lhs.type))
        total = product(acc, rhs, _flip(c, lhs))
    else:
        lhs, rhs = (lhs, rhs) if signs[0] else (rhs, lhs)
        half = product(zero, c.constant(64, lhs.type), rhs)
        total = product(acc, _flip(c, lhs), rhs)
    # The correction for 128 less on one side, in two halves: 128 does not fit a signed byte.
    return _add(c, total, _add(c, half, half))


# Without an instruction


def _fits_16_bits(value: SSAValue, unsigned: bool) -> bool:
    element = element_of(value.type)
    return isinstance(element, IntegerType) and element.width.data <= (8 if unsigned else 16)


MULTIPLY_ADD = {4: "x86.sse2.pmadd.wd", 8: "x86.avx2.pmadd.wd", 16: "x86.avx512.pmaddw.d.512"}
"""Products of pairs of 16 bits, added, by the number of sums."""


def _multiply_add_pairs(c: Converter, parts: Sequence[SSAValue], signs: Signs, group: int) -> SSAValue:
    acc, *sides = parts
    wide = [
        resize_integer(c, side, with_element(side.type, i16), not sign) for side, sign in zip(sides, signs, strict=True)
    ]
    width = lanes(acc.type)
    if group == 2:
        return _add(c, acc, c.compute(MULTIPLY_ADD[width], wide, acc.type))
    low, high = (
        c.compute(MULTIPLY_ADD[width], [c.shuffle(v, v, half) for v in wide], acc.type)
        for half in (range(2 * width), range(2 * width, 4 * width))
    )
    even, odd = (c.shuffle(low, high, range(first, 2 * width, 2)) for first in (0, 1))
    return _add(c, acc, _add(c, even, odd))


def _bf16_pairs(c: Converter, acc: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Adds products of bfloat16 pairs, each the upper half of a float32: one is shifted there."""
    words = with_element(acc.type, i32)
    halves: list[tuple[SSAValue, SSAValue]] = []
    for side in (lhs, rhs):
        pairs = c.emit(llvm.BitcastOp, (side,), words)
        low = c.emit(llvm.ShlOp, (pairs, c.constant(16, words)), words, WRAPS)
        high = c.emit(llvm.AndOp, (pairs, c.constant(-(1 << 16), words)), words)
        halves.append((c.emit(llvm.BitcastOp, (low,), acc.type), c.emit(llvm.BitcastOp, (high,), acc.type)))
    for a, b in zip(*halves, strict=True):
        acc = c.compute("fma", (a, b, acc), acc.type)
    return acc


def _by_lanes(c: Converter, acc: SSAValue, lhs: SSAValue, rhs: SSAValue, signs: Signs, group: int) -> SSAValue:
    """Adds one product of a group after the other, in the type of the sums."""
    count, type_ = lanes(acc.type), acc.type
    for place in range(group):
        lanes_of_place = range(place, group * count, group)
        a, b = (c.shuffle(side, side, lanes_of_place) for side in (lhs, rhs))
        if isinstance(element_of(type_), IntegerType):
            a, b = (resize_integer(c, v, type_, not sign) for v, sign in zip((a, b), signs, strict=True))
            acc = _add(c, acc, c.emit(llvm.MulOp, (a, b), type_, WRAPS))
        else:
            a, b = (_as_float(c, v, acc) for v in (a, b))
            acc = c.compute("fma", (a, b, acc), type_)
    return acc


def _as_float(c: Converter, value: SSAValue, acc: SSAValue) -> SSAValue:
    return value if value.type == acc.type else extend_float(c, value, acc.type)
