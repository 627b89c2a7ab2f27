"""Tensor intrinsics that are generated from their names: dot products and interleaving of rows.

`dot_16x4_u8i8i32` adds to each of 16 sums in int32 the products of 4 uint8, the same for all sums, with 4 int8 of its own:

    for i, k in T.grid(16, 4): C[i] = C[i] + T.Cast("int32", A[k]) * T.Cast("int32", B[i * 4 + k])

The name says sums x group, then the types of A, B and C; after `_ba` the product is B * A. C is in scope "local": the sums
stay in registers. The implementation is `T.vector_dot`, for which processors have instructions (VNNI, AVX512-BF16, Arm's
dotprod); such layouts of B are those that oneDNN packs weights in.

`interleave_16x4_u8_3d` takes 4 rows of 16 uint8, which are a dimension apart, and stores them element by element:

    for i, k in T.grid(16, 4): B[i * 4 + k] = A[k, 0, i]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ....dialects import tir

NAME = re.compile(
    r"dot_([1-9]\d{0,2})x([1-9]\d?)_(bf16|f16|f32|[iu]8|[iu]16)(bf16|f16|f32|[iu]8|[iu]16)(f32|i32)(_ba)?"
)
INTERLEAVE = re.compile(r"interleave_([1-9]\d{0,2})x([248])_(bf16|f16|[iu]8|[iu]16)_([2-6])d")
DTYPES = {
    **{"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32"},
    **{"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16"},
}
"""The dtypes by what the names of intrinsics call them."""
SHORT = {dtype: short for short, dtype in DTYPES.items()}
"""The other way round."""


def dot_name(sums: int, group: int, a: str, b: str, c: str, swapped: bool = False) -> str:
    """Returns the name of the intrinsic for these dtypes; `swapped` where the product is B * A."""
    return f"dot_{sums}x{group}_{SHORT[a]}{SHORT[b]}{SHORT[c]}{'_ba' if swapped else ''}"


@cache
def dot_intrinsic(name: str) -> tuple[tir.PrimFuncOp, tir.PrimFuncOp] | None:
    """Returns description and implementation of a dot or interleave intrinsic; None for other names."""
    if (rows := INTERLEAVE.fullmatch(name)) is not None:
        return _interleaving(int(rows[1]), int(rows[2]), DTYPES[rows[3]], int(rows[4]))
    match = NAME.fullmatch(name)
    if match is None:
        return None
    sums, group = int(match[1]), int(match[2])
    a, b, c = (DTYPES[match[k]] for k in (3, 4, 5))
    whole = {dtype.startswith(("int", "uint")) for dtype in (a, b, c)}
    if sums < 2 or len(whole) != 1:
        return None
    return _functions(sums, group, a, b, c, swapped=match[6] is not None)


def _functions(sums: int, group: int, a: str, b: str, c: str, swapped: bool) -> tuple[tir.PrimFuncOp, tir.PrimFuncOp]:
    lanes = sums * group
    factors = [_cast(c, a, "A[vk]"), _cast(c, b, f"B[vi * {group} + vk]")]
    if swapped:
        factors.reverse()
    return _pair(
        f"""(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, ({group},), "{a}", offset_factor=1)
    B = T.match_buffer(b, ({lanes},), "{b}", offset_factor=1)
    C = T.match_buffer(c, ({sums},), "{c}", offset_factor=1, scope="local")
    with T.block("root"):
        T.reads(C[0:{sums}], A[0:{group}], B[0:{lanes}])
        T.writes(C[0:{sums}])""",
        f"""
        for i, k in T.grid({sums}, {group}):
            with T.block("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + {factors[0]} * {factors[1]}""",
        f"C[0:{sums}] = T.vector_dot(C[0:{sums}], {_repeated(sums, group, a)}, B[0:{lanes}])",
    )


def interleave_name(count: int, group: int, dtype: str, rank: int) -> str:
    """Returns the name of the intrinsic that interleaves `group` rows of `count` elements."""
    return f"interleave_{count}x{group}_{SHORT[dtype]}_{rank}d"


def _interleaving(count: int, group: int, dtype: str, rank: int) -> tuple[tir.PrimFuncOp, tir.PrimFuncOp]:
    between = "0, " * (rank - 2)
    shape = ", ".join(map(str, (group, *[1] * (rank - 2), count)))
    rows = [f"A[{k}, {between}0:{count}]" for k in range(group)]
    region = f"A[0:{group}, {'0:1, ' * (rank - 2)}0:{count}], "
    return _pair(
        f"""(a: T.handle, b: T.handle):
    A = T.match_buffer(a, ({shape}), "{dtype}", offset_factor=1)
    B = T.match_buffer(b, ({count * group},), "{dtype}", offset_factor=1)
    with T.block("root"):
        T.reads({region.rstrip(", ")})
        T.writes(B[0:{count * group}])""",
        f"""
        for i, k in T.grid({count}, {group}):
            with T.block("copy"):
                vk, vi = T.axis.remap("SS", [k, i])
                B[vi * {group} + vk] = A[vk, {between}vi]""",
        f"B[0:{count * group}] = {_zipped(rows, count)}",
    )


def _zipped(rows: Sequence[str], count: int) -> str:
    """Returns the interleaving of vectors, two at a time: processors have instructions for that."""
    if len(rows) == 1:
        return rows[0]
    half = count * len(rows) // 2
    places = ", ".join(str(side + k) for k in range(half) for side in (0, half))
    return f"T.Shuffle([{_zipped(rows[::2], count)}, {_zipped(rows[1::2], count)}], [{places}])"


def _pair(buffers: str, desc: str, impl: str) -> tuple[tir.PrimFuncOp, tir.PrimFuncOp]:
    """Returns the two functions of an intrinsic, from the text of their parameters and bodies."""
    from ....parser import parse_mir

    text = f"@T.prim_func\ndef desc{buffers}{desc}\n\n@T.prim_func\ndef impl{buffers}\n        {impl}\n"
    first, second = (op for op in parse_mir(text).body.block.ops if isinstance(op, tir.PrimFuncOp))
    return first.clone(), second.clone()


def _cast(target: str, source: str, value: str) -> str:
    return value if source == target else f'T.Cast("{target}", {value})'


def _repeated(sums: int, group: int, dtype: str) -> str:
    """Returns the group of A once for each sum: as one word, broadcast, where there is a word of its size."""
    if group == 1:
        return f"T.Broadcast(A[0], {sums})"
    word = {16: "int16", 32: "int32", 64: "int64"}.get(group * BITS[dtype])
    if word is None:
        places = ", ".join(map(str, [k for _ in range(sums) for k in range(group)]))
        return f"T.Shuffle([A[0:{group}]], [{places}])"
    return f'T.reinterpret("{dtype}x{sums * group}", T.Broadcast(T.reinterpret("{word}", A[0:{group}]), {sums}))'


BITS = {"bfloat16": 16, "float16": 16, "float32": 32, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16}
