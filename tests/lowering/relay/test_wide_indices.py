"""Indices of 64 bits keep all of them until they have been clipped, divided or compared."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.loading.executable import Array
from test_dynamic import check

FAR = 1 << 32
ROWS = "%x: Tensor[(3, 5), float32], %p: Tensor[(3), int64]"

CASES = {
    "clip": "take(%x, %p, axis=0)",
    "wrap": 'take(%x, %p, axis=0, mode="wrap")',
    "fast": 'take(%x, minimum(maximum(%p, 0i64), 2i64), axis=0, mode="fast")',
    "remainder": "take(%x, floor_mod(%p, 3i64), axis=0)",
    "quotient": "take(%x, floor_divide(%p, 2147483648i64), axis=0)",
    "truncating quotient": "take(%x, divide(%p, 2147483648i64), axis=0)",
    "shift": "take(%x, right_shift(%p, 31i64), axis=0)",
    "bits": "take(%x, bitwise_and(%p, 4294967297i64), axis=0)",
    "choice": "take(%x, where(less(%p * 3i64, 10000000000i64), %p, %p - 4294967296i64), axis=0)",
    "of reverse": 'take(reverse(%x, axis=0), %p, axis=0, mode="wrap")',
    "gather_nd of reverse": "gather_nd(reverse(%x, axis=0), expand_dims(floor_mod(%p, 3i64), axis=0))",
    "gather": "gather(%x, floor_mod(reshape(repeat(%p, repeats=5, axis=0), newshape=[3, 5]), 3i64), axis=0)",
    "scatter": 'scatter_elements(%x, floor_mod(reshape(repeat(%p, repeats=5, axis=0), newshape=[3, 5]), 3i64), %x, axis=0, reduction="add")',
    "scatter_nd": 'scatter_nd(%x, floor_mod(expand_dims(%p, axis=0), 3i64), %x, mode="add")',
    "rows summed": 'sum(take(%x, %p, axis=0, mode="wrap"), axis=[0])',
    "one_hot": 'one_hot(%p, 1f, 0f, depth=3, axis=-1, dtype="float32")',
    "sequence_mask": "sequence_mask(transpose(%x), %p, mask_value=-1f)",
    "trilu": "trilu(%x, take(%p, 1))",
    "sparse_to_dense": "sparse_to_dense(floor_mod(%p, 3i64), take(%x, 0, axis=1), 0f, output_shape=[4])",
}


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("name", CASES)
def test_int64_indices_mean_what_they_mean_in_the_interpreter(name: str, opt_level: int) -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    check(f"def @main({ROWS}) {{ {CASES[name]} }}", x, np.array([FAR, FAR + 1, 2**40 + 2]), opt_level=opt_level)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize(
    "places", [np.array([2**32 - 1, 1, 2**31], np.uint32), np.array([2**64 - 1, 1, 2**63], np.uint64)]
)
def test_unsigned_indices_are_not_negative(places: Array, mode: str) -> None:
    x = np.arange(5, dtype=np.float32)
    text = f'def @main(%x: Tensor[(5), float32], %p: Tensor[(3), {places.dtype}]) {{ take(%x, %p, mode="{mode}") }}'
    expected = np.minimum(places, 4) if mode == "clip" else places % np.array(5, places.dtype)
    for target in ("cpu", "interp"):
        result = mirstack.compile(mirstack.parse(text), target)(x, places)
        assert result.tolist() == expected.astype(np.float32).tolist(), target


@pytest.mark.parametrize("opt_level", [0, 3])
def test_products_of_casts_are_computed_in_64_bits(opt_level: int) -> None:
    text = (
        "def @main(%x: Tensor[(3, 5), float32], %p: Tensor[(3), int32]) {"
        ' take(reverse(%x, axis=0), floor_divide(cast(%p, dtype="int64") * 100003i64, 1000000007i64), axis=0) }'
    )
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    check(text, x, np.array([25000, 1, 15000], np.int32), opt_level=opt_level)


TIR = """
@T.prim_func
def f(P: T.Buffer((8,), "int64"), A: T.Buffer((16,), "float32"), n: T.int32, B: T.Buffer((8,), "float32")):
    for i in T.serial(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            B[v] = (A[T.Cast("int32", P[v] // T.int64(4294967296))]
                    + A[T.max(T.min(P[v], T.int64(15)), T.int64(0))] * 2.0
                    + A[P[v] % T.int64(16)] * 4.0
                    + A[T.if_then_else(T.Cast("int64", v) * T.int64(1000000000) < T.int64(4000000000), T.int64(1), T.int64(2))] * 8.0
                    + A[T.Select(T.Cast("int64", v) * T.int64(1000000000) < P[v], T.int64(1), T.int64(2))] * 16.0
                    + A[T.shift_right(P[v], T.int64(32))] * 32.0
                    + A[(T.Cast("int64", n) * T.int64(1000000007)) // T.int64(500000003)] * 64.0)
"""


@pytest.mark.parametrize("target", ["interp", 0, 3])
def test_int64_indices_that_a_person_wrote_in_tir(target: str | int) -> None:
    places = [0, 1, FAR + 3, 2 * FAR, 4 * FAR + 7, 3 * FAR, 8 * FAR + 15, 7 * FAR + 8]
    result = np.zeros(8, np.float32)
    module = mirstack.parse(TIR)
    program = (
        mirstack.compile(module, opt_level=target) if isinstance(target, int) else mirstack.compile(module, "interp")
    )
    program(np.array(places), np.arange(16, dtype=np.float32), 3, result)
    for v, place in enumerate(places):
        terms = (
            place // FAR,
            min(place, 15),
            place % 16,
            1 if v < 4 else 2,
            1 if v * 10**9 < place else 2,
            place // FAR,
            6,
        )
        assert result[v] == sum(term * 2**k for k, term in enumerate(terms))


@pytest.mark.parametrize("index", ["%p", "floor_mod(%p, 3i64)", "right_shift(%p, 31i64)"])
def test_rows_chosen_by_int64_where_they_are_moved_as_vectors(index: str) -> None:
    x = np.arange(90, dtype=np.float32).reshape(1, 3, 6, 5)
    text = f"def @main(%x: Tensor[(1, 3, 6, 5), float32], %p: Tensor[(3), int64]) {{ take(%x, {index}, axis=1) }}"
    check(text, x, np.array([FAR, FAR + 1, 2**40 + 2]))
