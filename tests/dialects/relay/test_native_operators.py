"""Every operator in native code, against the interpreter, on sampled uses: each dtype that its cases draw, compiled at
the lowest and the highest optimization level.

What is compared is machine code against the operator's meaning in numpy; `test_operators.py` compares that meaning with
independent references.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mirstack.dialects.relay.operator import Operator, OpPattern, all_operators
from mirstack.fuzz.operators.programs import Drawn, compiled, interpret
from mirstack.fuzz.operators.sampling import CASES, flat, load_cases
from mirstack.support.diagnostics import MirError

load_cases()

NOT_NATIVE = {
    "memory.alloc_storage": "a tensor in known memory is zeros, and memory that is not known is refused",
    "memory.alloc_tensor": "a tensor in known memory is zeros, and memory that is not known is refused",
    "memory.kill": "a tensor in known memory is zeros, and memory that is not known is refused",
}
"""Operators that only the interpreter runs, each with the reason."""

NATIVE = sorted(all_operators().keys() - NOT_NATIVE.keys())

# Units in the last place. Operators that work element by element are composed of functions that are right to within one,
# on both sides; those that move elements give the very same. A sum's rounding errors depend on its order and on whether a
# product is rounded before it is added: they are small against the largest element, whatever a cancelled sum itself is.
ULPS = 4
ULPS_OF_LARGEST = 16
BY_ELEMENT = (OpPattern.ELEMWISE, OpPattern.BROADCAST)
INTERPOLATES = ("image.", "nn.upsampling", "qnn.", "einsum", "vision.")
"""How the names of operators begin that are injective to fusion, but compute besides moving elements."""


def draws(name: str, examples: int) -> Iterator[Drawn]:
    """Uses of an operator, one for each case and dtype that `examples` samples bring."""
    found: dict[tuple[Any, ...], Drawn] = {}
    cases = CASES.get(name, [])
    assert cases, f"{name} has no case"

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
        phases=(Phase.generate,),
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        case = data.draw(st.sampled_from(cases)) if len(cases) > 1 else cases[0]
        attrs, arguments = data.draw(case.samples)
        use = Drawn(case, attrs, tuple(arguments))
        dtypes = tuple(a.dtype.name for a in flat(arguments)[:1])
        # The latest, since the first samples are the simplest.
        found[id(case), *dtypes, attrs.get("dtype")] = use

    draw()
    yield from found.values()


def check(operator: Operator, uses: list[Drawn]) -> None:
    """Native code gives what the interpreter gives."""
    for opt_level in (0, 3):
        for use, got in zip(uses, compiled(operator, uses, opt_level), strict=True):
            wanted = interpret(operator, use)
            for a, b in zip(flat(got), flat(wanted), strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{operator.name} {use}"
                if not agree(operator, a, b):
                    pytest.fail(f"{operator.name} {use} at level {opt_level} gives\n{a}\ninstead of\n{b}")


def agree(operator: Operator, got: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether integers are equal, and floats within a few units in the last place."""
    if wanted.dtype.kind in "iub":
        return bool(np.array_equal(got, wanted))
    eps = float(ml_dtypes.finfo(wanted.dtype).eps)
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    size = np.abs(b)
    if operator.pattern == OpPattern.INJECTIVE and not operator.name.startswith(INTERPOLATES):
        limit = 0.0 * size
    elif operator.pattern in BY_ELEMENT:
        limit = ULPS * eps * size
    else:
        limit = ULPS_OF_LARGEST * eps * np.max(size, initial=0.0, where=np.isfinite(size))
    with np.errstate(invalid="ignore"):
        return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= limit)))


@pytest.mark.parametrize("name", NATIVE)
def test_native(name: str) -> None:
    check(all_operators()[name], list(draws(name, 40)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NATIVE)
def test_native_by_many(name: str) -> None:
    """More samples, of which the last of each dtype run."""
    for examples in (150, 300, 600):
        check(all_operators()[name], list(draws(name, examples)))


def test_tensors_in_memory() -> None:
    """They are zeros natively, too, where they lie in their memory; elsewhere they are refused."""
    import mirstack

    text = """def @main(%x: Tensor[(3), float32]) {{
  let %s = memory.alloc_storage(64i64, stack((3i64,), axis=0), 64i64);
  let %t = memory.alloc_tensor(%s, {}i64, stack((3i64,), axis=0), assert_shape=[3], dtype="float32");
  let %y = add(exp(%t), %x);
  let %k = memory.kill(%t);
  %y
}}
"""
    x = np.array([1, 2, 3], np.float32)
    for target in ("cpu", "interp"):
        np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text.format(52)), target)(x), x + 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MirError) as error:
        mirstack.compile(mirstack.parse(text.format(56), "file.mir"))
    assert str(error.value).startswith(
        "file.mir:2:12: error: memory.alloc_storage has no tensor expression, so it cannot be compiled"
    )


@pytest.mark.parametrize(
    ("shape", "use"),
    [
        ((2, 2, 0), "reshape(%x, newshape=[0, -2])"),
        ((3, 3, 0), 'topk(%x, k=1, axis=1, ret_type="values")'),
        ((3, 3, 0), "argsort(%x, axis=1)"),
        ((1, 0, 4, 4), "nn.space_to_depth(%x, block_size=2)"),
        ((1, 0, 4, 4), "nn.depth_to_space(%x, block_size=2)"),
        ((2, 0, 1), "nn.dilate(%x, strides=[3, 3, 2], dilation_value=2f)"),
    ],
)
def test_no_elements(shape: tuple[int, ...], use: str) -> None:
    """What is computed of indices divides by no size of 0, and no size is less than 0."""
    import mirstack

    for sizes in (shape, ("?",) * len(shape)):
        if use.startswith("reshape") and sizes != shape:
            continue
        text = f"def @main(%x: Tensor[({', '.join(map(str, sizes))}), float32]) {{ {use} }}"
        x = np.zeros(shape, np.float32)
        got, wanted = (mirstack.compile(mirstack.parse(text), target)(x) for target in ("cpu", "interp"))  # pyright: ignore[reportArgumentType]
        assert got.shape == wanted.shape and got.dtype == wanted.dtype and (got == wanted).all()


@pytest.mark.parametrize(
    "operator", ["divide", "trunc_divide", "floor_divide", "mod", "trunc_mod", "floor_mod", "power", "left_shift"]
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32"])
def test_constant_zero_on_the_right(operator: str, dtype: str) -> None:
    """What is divided by it, and what that leaves, is 0 of integers: as where the zero comes at run time."""
    import mirstack

    if (operator, dtype) == ("left_shift", "float32"):
        return
    x = np.array([0, 1, 7, 100], dtype)
    zero = f'cast(0, dtype="{dtype}")'
    for text, arrays in (
        (f"def @main(%x: Tensor[(4), {dtype}]) {{ {operator}(%x, {zero}) }}", [x]),
        (f"def @main(%x: {dtype}) {{ {operator}(%x, {zero}) }}", [x[2]]),
        (f"def @main(%x: Tensor[(4), {dtype}], %y: {dtype}) {{ {operator}(%x, %y) }}", [x, np.zeros((), dtype)]),
    ):
        got, wanted = (
            np.asarray(mirstack.compile(mirstack.parse(text), target)(*arrays)) for target in ("cpu", "interp")
        )  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(got, wanted)


def test_transposed_matrix_that_is_stored_in_more_than_it_has() -> None:
    """Rows out of bounds are kept inside; behind the entries of the result are zeros."""
    import mirstack

    module = mirstack.parse(
        """def @main(%d: Tensor[(5), float32], %c: Tensor[(5), int32], %s: Tensor[(4), int32]) {
          nn.sparse_transpose(%d, %c, %s) }"""
    )
    data = np.array([1, 2, 3, 4, 5], np.float32)
    for columns, starts, expected in (
        ([2, 0, 2, 9, 9], [0, 2, 2, 3], ([2, 1, 3, 0, 0], [0, 0, 2, 0, 0], [0, 1, 1, 3])),
        ([2, 0, 2, 1, 1], [1, 2, 2, 3], ([2, 3, 0, 0, 0], [0, 2, 0, 0, 0], [0, 1, 1, 2])),
        ([9, -9, 1, 1, 1], [-7, 1, 2, 99], None),
        ([2, 2, 1, 1, 1], [0, 5, 0, 5], None),
    ):
        arrays = (data, np.array(columns, np.int32), np.array(starts, np.int32))
        wanted, got = (mirstack.compile(module, target)(*arrays) for target in ("interp", "cpu"))
        for part, (a, b) in enumerate(zip(wanted, got, strict=True)):
            np.testing.assert_array_equal(a, b)
            assert expected is None or np.asarray(a).tolist() == expected[part]


def test_an_image_without_pixels() -> None:
    """Boxes of `vision.proposal` are limited from below last."""
    import mirstack

    text = """def @main(%p: Tensor[(1, 4, 2, 3), float32], %d: Tensor[(1, 8, 2, 3), float32], %i: Tensor[(1, 3), float32]) {
  vision.proposal(%p, %d, %i, scales=[2f, 4f], ratios=[1f], threshold=0.5f, rpn_pre_nms_top_n=6, rpn_post_nms_top_n=3)
}"""
    arrays = [np.ones((1, 4, 2, 3), np.float32), np.ones((1, 8, 2, 3), np.float32), np.zeros((1, 3), np.float32)]
    got, wanted = (mirstack.compile(mirstack.parse(text), target)(*arrays) for target in ("cpu", "interp"))  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(got, wanted)


def test_what_is_not_native_says_why() -> None:
    table = all_operators()
    assert {name for name in table if table[name].compute is None} == NOT_NATIVE.keys()


@pytest.mark.parametrize("opt_level", (0, 3))
@pytest.mark.parametrize("size", (1, 3, 7, 9, 17, 31, 33))
def test_bfloat16_of_any_length(size: int, opt_level: int) -> None:
    """Vectors of bfloat16 whose length is not a power of two."""
    import mirstack

    text = f"def @main(%x: Tensor[({size}), bfloat16]) {{ (copy(%x), abs(%x), reverse(%x, axis=0), where(less(%x, negative(%x)), %x, sum(%x))) }}"
    x = np.linspace(-2, 2, size).astype(ml_dtypes.bfloat16)
    got = mirstack.compile(mirstack.parse(text), opt_level=opt_level)(x)
    wanted = mirstack.compile(mirstack.parse(text), "interp")(x)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
