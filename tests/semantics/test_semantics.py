"""Interpreters, levels and processors are held to the table of `docs/semantics.md`: scalars, vectors and what vectors leave over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.api.compile import TargetName
from mirstack.dialects.array import numpy_dtype
from mirstack.dialects.tir.intrinsics import BINARY_MATH, BITWISE, OF_FLOATS, OF_INTEGERS
from mirstack.lowering.driver.loading.executable import flatten
from mirstack.support.diagnostics import MirError
from table import NARROW, TIR, Array, Row, Whole, rows, wholes

CPUS = ("x86-64", "haswell", "skylake-avx512", "sapphirerapids")
VECTOR = 33
"""Elements of whole vectors and one more."""
THREE: tuple[dict[str, Any], ...] = ({"target": "interp"}, {"opt_level": 0}, {})
COMMON = {"float32", "float64", "int8", "int32", "int64", "uint8", "uint32", "bool"}
"""The dtypes that every processor's code is looked at for; all others share theirs."""


def merged(given: Sequence[Row]) -> list[Row]:
    """Rows of the same expression and dtype as one."""
    found: dict[tuple[object, ...], Row] = {}
    for row in given:
        key = (row.text, row.dtype, row.close, row.any_zero)
        before = found.get(key)
        if before is not None:
            inputs = tuple(a + b for a, b in zip(before.inputs, row.inputs, strict=True))
            row = replace(row, inputs=inputs, expected=before.expected + row.expected)
        found[key] = row
    return list(found.values())


EVERY = merged(rows())
ROWS = [row for row in EVERY if not {row.dtype, row.out} & {*NARROW}]
"""Those of dtypes that every level of the IR computes in."""


def array(dtype: str, values: Sequence[float]) -> np.ndarray[Any, Any]:
    """The numbers in a dtype that may hold more than a float."""
    integers = dtype.startswith(("int", "uint", "bool"))
    wide = np.array(list(values), np.uint64 if dtype == "uint64" else np.int64 if integers else np.float64)
    return wide.astype(numpy_dtype(dtype))


def check(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], close: float, any_zero: bool, what: str) -> None:
    """Fails unless the numbers are the same: NaN is NaN, and 0 not -0."""
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, what
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, wanted, what)
        return
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(a, b, rtol=close, atol=0.0, err_msg=what)
    if not any_zero:
        zero = b == 0
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]), f"{what}: the sign of 0")


def run(texts: Sequence[str], arguments: Sequence[Sequence[np.ndarray[Any, Any]]], target: dict[str, Any]) -> list[Any]:
    """The results of expressions of %a, %b, …, as one program."""
    params: list[str] = []
    body: list[str] = []
    for number, (text, given) in enumerate(zip(texts, arguments, strict=True)):
        for name, x in zip("abc", given, strict=False):
            text = text.replace(f"%{name}", f"%{name}{number}")
            shape = ", ".join(map(str, x.shape)) + ("," if x.ndim == 1 else "")
            params.append(f"%{name}{number}: Tensor[({shape}), {x.dtype.name}]")
        body.append(text)
    program = mirstack.parse(f"def @main({', '.join(params)}) {{ ({', '.join(body)},) }}")
    return list(mirstack.compile(program, **target)(*(x for given in arguments for x in given)))


def hold(chosen: Sequence[Row], size: int, target: dict[str, Any]) -> None:
    """Holds a target to elementwise rows: their numbers follow each other again and again, as many as `size`, beginning with each."""
    for first in range(0, max(map(lambda r: len(r.expected), chosen)) if size == 1 else 1):
        some = [row for row in chosen if first < len(row.expected)]
        given = [[np.resize(array(row.dtype, v)[first:], size) for v in row.inputs] for row in some]
        for row, got in zip(some, run([row.text for row in some], given, target), strict=True):
            wanted = np.resize(array(row.out, row.expected)[first:], size)
            check(np.asarray(got), wanted, row.close, row.any_zero, f"{row.text} of {row.dtype} at {size}")


@pytest.mark.parametrize("size", [VECTOR, 7, 1])
def test_interpreter(size: int) -> None:
    hold(EVERY, size, {"target": "interp"})


@pytest.mark.parametrize("size", [VECTOR, 1])
def test_narrow_dtypes_in_native_code(size: int) -> None:
    hold([row for row in EVERY if row not in ROWS], size, {})


def test_narrow_dtypes_are_refused_in_prim_funcs() -> None:
    text = """@T.prim_func
def main(A: T.Buffer((4,), "int4"), B: T.Buffer((4,), "int4")):
    for i in range(4):
        B[i] = A[i]
"""
    with pytest.raises(MirError, match=r"error: dtype int4 cannot be compiled for a CPU"):
        mirstack.compile(mirstack.parse(text))


@pytest.mark.parametrize("cpu", CPUS)
def test_processors(cpu: str) -> None:
    hold([row for row in ROWS if row.dtype in COMMON], VECTOR, {"cpu": cpu})


def test_this_processor() -> None:
    hold([row for row in ROWS if row.dtype not in COMMON], VECTOR, {})


@pytest.mark.parametrize("cpu", ["x86-64", "haswell", None])
def test_short_vectors(cpu: str | None) -> None:
    hold([row for row in ROWS if row.dtype == "float32"], 7, {"cpu": cpu})


@pytest.mark.parametrize("level", [0, 1, 2])
def test_levels(level: int) -> None:
    dtypes = {"float32", "int32", "uint8"}
    hold([row for row in ROWS if row.dtype in dtypes], VECTOR, {"opt_level": level})


def test_scalars() -> None:
    hold([row for row in ROWS if row.dtype in ("float32", "int32")], 1, {"opt_level": 0})


WHOLES = wholes()


@pytest.mark.parametrize("target", [{"target": "interp"}, {"opt_level": 0}, *({"cpu": cpu} for cpu in CPUS)], ids=str)
def test_whole_tensors(target: dict[str, Any]) -> None:
    def arrays(parts: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        return [array(part.dtype, part.values).reshape(part.shape) for part in parts]

    results = run([row.text for row in WHOLES], [arrays(row.inputs) for row in WHOLES], target)
    for row, got in zip(WHOLES, results, strict=True):
        for part, wanted in zip(flatten(got), arrays(row.expected), strict=True):
            check(np.asarray(part), wanted, row.close, False, f"{row.text} of {row.inputs}")


def describe(row: Row | Whole) -> str:
    """The operator that a row is about."""
    return row.operator


def tir(row: Row) -> str | None:
    """A row's expression in TIR; None where TIR has none of one op."""
    form = TIR.get(row.operator)
    if form is None or (row.dtype == "bool" and row.operator not in ("cast", "equal")):
        return None
    if row.operator in ("isnan", "isinf", "isfinite", "round") and row.dtype not in ("float32", "float64"):
        return None
    if form.partition("(")[0].removeprefix("T.") in OF_FLOATS and not row.out.startswith("float"):
        return None  # Relay's are computed in float32 and cast back; TIR's are refused.
    return form.replace("%t", row.out)


@pytest.mark.parametrize("kind", ["range(33)", "T.vectorized(32)"])
@pytest.mark.parametrize(
    "target", [{"target": "interp"}, {"opt_level": 0}, {"cpu": "x86-64"}, {"cpu": "haswell"}, {}], ids=str
)
def test_tir(target: dict[str, Any], kind: str) -> None:
    size = int(kind.partition("(")[2].rstrip(")"))
    chosen = [
        (row, text) for row in ROWS if row.dtype in ("float32", "int32", "uint8") and (text := tir(row)) is not None
    ]
    params: list[str] = []
    body: list[str] = []
    arguments: list[np.ndarray[Any, Any]] = []
    results: list[tuple[Row, np.ndarray[Any, Any]]] = []
    for number, (row, text) in enumerate(chosen):
        for name, values in zip("abc", row.inputs, strict=False):
            text = text.replace(f"%{name}", f"{name}{number}[i]")
            params.append(f'{name}{number}: T.Buffer(({size},), "{row.dtype}")')
            arguments.append(np.resize(array(row.dtype, values), size))
        params.append(f'r{number}: T.Buffer(({size},), "{row.out}")')
        results.append((row, np.zeros(size, numpy_dtype(row.out))))
        arguments.append(results[-1][1])
        body += [f"    for i in {kind}:", f"        r{number}[i] = {text}"]
    text = "\n".join(["from tvm.script import tir as T", "@T.prim_func", f"def main({', '.join(params)}):", *body])
    mirstack.compile(mirstack.parse(text), **target)(*arguments)
    for row, got in results:
        wanted = np.resize(array(row.out, row.expected), size)
        check(got, wanted, row.close, row.any_zero, f"{TIR[row.operator]} of {row.dtype}")


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize("name", sorted(OF_FLOATS))
def test_functions_of_floats_take_no_integers(name: str, target: TargetName) -> None:
    operands = "a[i], a[i]" if name in BINARY_MATH else "a[i]"
    text = f"""from tvm.script import tir as T
@T.prim_func
def main(a: T.Buffer((4,), "int32"), r: T.Buffer((4,), "int32")):
    for i in range(4):
        r[i] = T.{name}({operands})
"""
    zeros = np.zeros(4, np.int32)
    with pytest.raises(
        MirError, match=rf":5:16: error: 'T.{name}' takes floats, not int32(.|\n)*\nnote: cast it to floats first"
    ):
        mirstack.compile(mirstack.parse(text), target)(zeros, zeros.copy())


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize("name", sorted(OF_INTEGERS))
def test_functions_of_bits_take_no_floats(name: str, target: TargetName) -> None:
    operands = "a[i], 2" if name in BITWISE else "a[i]"
    text = f"""from tvm.script import tir as T
@T.prim_func
def main(a: T.Buffer((4,), "float32"), r: T.Buffer((4,), "float32")):
    for i in range(4):
        r[i] = T.Cast("float32", T.{name}({operands}))
"""
    zeros = np.zeros(4, np.float32)
    with pytest.raises(
        MirError,
        match=rf":5:34: error: 'T.{name}' takes integers and bool, not float32(.|\n)*\nnote: cast it to an integer first",
    ):
        mirstack.compile(mirstack.parse(text), target)(zeros, zeros.copy())


@pytest.mark.parametrize("target", [{"target": "interp"}, {"opt_level": 0}, {}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_powers_of_two(target: dict[str, Any], dtype: str) -> None:
    text = f"""from tvm.script import tir as T
@T.prim_func
def main(a: T.Buffer((5,), "{dtype}"), n: T.Buffer((5,), "int32"), r: T.Buffer((2, 5), "{dtype}")):
    for i in range(5):
        r[0, i] = T.ldexp(a[i], n[i])
        r[1, i] = T.ldexp(a[i], T.Cast("{dtype}", n[i]))
"""
    a, n = array(dtype, [1.5, -3.0, np.nan, 0.0, 1.0]), np.array([2, -1, 0, 200, -200], np.int32)
    r = np.zeros((2, 5), numpy_dtype(dtype))
    mirstack.compile(mirstack.parse(text), **target)(a, n, r)
    # The power is rounded before it is multiplied: 2^200 is infinite, and 0 times it NaN.
    wanted = array(dtype, [6.0, -1.5, np.nan, np.nan, 0.0])
    np.testing.assert_array_equal(r.astype(np.float32), np.stack([wanted] * 2).astype(np.float32))


@pytest.mark.parametrize("target", [{"target": "interp"}, {"opt_level": 0}, {}], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_nan_has_no_sign(target: dict[str, Any], dtype: str) -> None:
    """Which of the two a processor computes is its own choice: copysign(x, NaN) is |x|."""
    text = f"""from tvm.script import tir as T
@T.prim_func
def main(a: T.Buffer((6,), "{dtype}"), s: T.Buffer((6,), "{dtype}"), r: T.Buffer((2, 6), "{dtype}")):
    for i in range(6):
        r[0, i] = T.copysign(a[i], s[i])
    for i in T.vectorized(6):
        r[1, i] = T.copysign(a[i], s[i])
"""
    a, s = array(dtype, [-1.5, 2.0, 3.0, -4.0, -np.inf, 0.0]), array(dtype, [np.nan, np.nan, -1.0, -0.0, -np.nan, -2.0])
    r = np.zeros((2, 6), numpy_dtype(dtype))
    mirstack.compile(mirstack.parse(text), **target)(a, s, r)
    wanted = array(dtype, [1.5, 2.0, -3.0, -4.0, np.inf, -0.0])
    for row in r:
        np.testing.assert_array_equal(row.astype(np.float32), wanted.astype(np.float32))
        np.testing.assert_array_equal(np.signbit(row.astype(np.float32)), np.signbit(wanted.astype(np.float32)))


@pytest.mark.parametrize("target", [{"opt_level": 0}, *({"cpu": cpu} for cpu in CPUS)], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_in_half_precision_are_rounded_term_by_term(target: dict[str, Any], dtype: str) -> None:
    text = f"""from tvm.script import tir as T
@T.prim_func
def main(a: T.Buffer((16, 300), "{dtype}"), b: T.Buffer((16, 300), "{dtype}"), r: T.Buffer((16,), "{dtype}")):
    for i, k in T.grid(16, 300):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                r[vi] = T.{dtype}(0)
            r[vi] = r[vi] + a[vi, vk] * b[vi, vk]
"""
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=(16, 300)).astype(numpy_dtype(dtype)) for _ in range(2))
    wanted, got = np.zeros((2, 16), a.dtype)
    mirstack.compile(mirstack.parse(text), "interp")(a, b, wanted)
    mirstack.compile(mirstack.parse(text), **target)(a, b, got)
    np.testing.assert_array_equal(got.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize(
    "text", ["left_shift(%a, %a)", "right_shift(%a, %a)", "bitwise_xor(%a, %a)", "bitwise_not(%a)"]
)
def test_floats_have_no_bits_to_combine(text: str) -> None:
    module = mirstack.parse(f"def @main(%a: Tensor[(2), float32]) {{ {text} }}")
    with pytest.raises(MirError, match=r"of integers and bools, not of float32; reinterpret reads the bits"):
        mirstack.compile(module, "interp")(np.ones(2, np.float32))
    with pytest.raises(MirError, match=r"for integers and bool, not float32"):
        mirstack.compile(module)


@pytest.mark.parametrize("target", [{"target": "interp"}, {"opt_level": 0}, {}], ids=str)
def test_casts_between_bfloat16_and_wide_integers(target: dict[str, Any]) -> None:
    text = """from tvm.script import tir as T
@T.prim_func
def main(a: T.Buffer((4,), "bfloat16"), u: T.Buffer((4,), "uint64"), r: T.Buffer((4,), "uint64"),
         p: T.Buffer((4,), "bfloat16"), q: T.Buffer((4,), "float32")):
    for i in range(4):
        r[i] = T.Cast("uint64", a[i])
        p[i] = T.Cast("bfloat16", u[i])
        q[i] = T.Cast("float32", u[i])
"""
    high = (1 << 64) - 1
    # The last is a little above the middle between two float32, where float64 does not tell.
    a, u = array("bfloat16", [np.nan, np.inf, -3.0, 257.0]), array("uint64", [0, high, 257, (1 << 60) + (1 << 36) + 1])
    r, p, q = np.zeros(4, np.uint64), np.zeros(4, a.dtype), np.zeros(4, np.float32)
    mirstack.compile(mirstack.parse(text), **target)(a, u, r, p, q)
    assert r.tolist() == [0, high, 0, 256]
    assert p.astype(np.float64).tolist() == [0.0, 2.0**64, 256.0, 2.0**60]
    assert q.astype(np.float64).tolist() == [0.0, 2.0**64, 257.0, 2.0**60 + 2.0**37]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_interpreted_bools_become_floats(dtype: str) -> None:
    """What is compared at one place is one of numpy's bools."""
    text = f"""from tvm.script import tir as T
@T.prim_func
def main(a: T.Buffer((2,), "float64"), b: T.Buffer((2,), "bool"), r: T.Buffer((4,), "{dtype}")):
    for i in range(2):
        r[i] = T.Cast("{dtype}", a[i] < T.float64(1))
        r[i + 2] = T.Cast("{dtype}", b[i])
"""
    for target in ("interp", "cpu"):
        r = array(dtype, [5, 5, 5, 5])
        mirstack.compile(mirstack.parse(text), target)(np.array([0.0, 2.0]), np.array([False, True]), r)
        assert r.astype(np.float64).tolist() == [1, 0, 0, 1]


def test_constants_of_floats_are_no_numbers_of_the_analysis() -> None:
    text = """from tvm.script import tir as T
@T.prim_func
def main(r: T.Buffer((2,), "uint8")):
    r[0] = T.Cast("uint8", T.max(0, T.Cast("int32", T.Cast("uint8", T.Cast("float16", T.int32(-2147483648))))))
    r[1] = T.Cast("uint8", T.max(0, T.Cast("int32", T.Cast("uint8", T.Cast("float16", T.int32(2147483647))))))
"""
    for target in ("interp", "cpu"):
        r = np.ones(2, np.uint8)
        mirstack.compile(mirstack.parse(text), target)(r)
        assert r.tolist() == [0, 255]


@pytest.mark.parametrize("operator", ["roi_align", "roi_pool"])
def test_regions_of_images_that_there_are_not(operator: str) -> None:
    ratio = ", sample_ratio=2" if operator == "roi_align" else ""
    module = mirstack.parse(
        f"""def @main(%a: Tensor[(2, 1, 4, 4), float32], %b: Tensor[(5, 5), float32]) {{
          vision.{operator}(%a, %b, pooled_size=[1, 1], spatial_scale=1f{ratio}) }}"""
    )
    regions = np.tile(np.array([0, 0, 0, 3, 3], np.float32), (5, 1))
    regions[:, 0] = [np.nan, np.inf, -np.inf, 1.75, -0.5]
    image = np.repeat(np.array([5, 7], np.float32), 16).reshape(2, 1, 4, 4)
    for target in ("interp", "cpu"):
        got = np.asarray(mirstack.compile(module, target)(image, regions))
        np.testing.assert_allclose(got.ravel(), [5, 7, 5, 7, 5])


@pytest.mark.parametrize("value", [-np.inf, -3.2e38, np.nan])
def test_largest_of_regions_below_all_numbers(value: float) -> None:
    module = mirstack.parse(
        """def @main(%a: Tensor[(1, 1, 4, 4), float32], %b: Tensor[(1, 5), float32]) {
          vision.roi_align(%a, %b, pooled_size=[2, 2], spatial_scale=1f, sample_ratio=2, mode="max") }"""
    )
    image, region = np.full((1, 1, 4, 4), value, np.float32), np.array([[0, 0, 0, 3, 3]], np.float32)
    wanted, *others = (np.asarray(mirstack.compile(module, **target)(image, region)) for target in THREE)
    for got in others:
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("score", [-np.inf, -3.2e38, np.nan, 1.0])
def test_boxes_that_there_are_not_stand_behind_those_that_there_are(score: float) -> None:
    module = mirstack.parse(
        """def @main(%x: Tensor[(1, 4, 6), float32], %n: Tensor[(1), int32], %i: Tensor[(1, 4), int32]) {
          vision.non_max_suppression(%x, %n, %i, 4, 0.5f, return_indices=False) }"""
    )
    boxes = np.array([[[0, score, k, k, k + 3, k + 3] for k in range(4)]], np.float32)
    inputs = (boxes, np.array([2], np.int32), np.arange(4, dtype=np.int32)[None])
    wanted, *others = (np.asarray(mirstack.compile(module, **target)(*inputs)) for target in THREE)
    for got in others:
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("width", [1, 4])
def test_samples_at_places_far_away(padding: str, method: str, width: int) -> None:
    """Places that are not finite, or more than integers hold, and pixels that are not finite."""
    module = mirstack.parse(
        f"""def @main(%a: Tensor[(1, 1, 3, {width}), float32], %b: Tensor[(1, 2, 9, 9), float32]) {{
          image.grid_sample(%a, %b, method="{method}", padding_mode="{padding}") }}"""
    )
    image = np.arange(3 * width, dtype=np.float32).reshape(1, 1, 3, width)
    image[0, 0, 2, 0] = np.inf
    numbers = np.array([0, 1, -1, 0.5, 1e5, -7e9, np.nan, np.inf, -np.inf], np.float32)
    grid = np.stack(np.meshgrid(numbers, numbers))[None]
    wanted, *others = (np.asarray(mirstack.compile(module, **target)(image, grid)) for target in THREE)
    for got in others:
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "x", "wanted"),
    [
        ("power(%x, 0.5f)", [-np.inf, -0.0, 4], [np.inf, 0, 2]),
        ("power(%x, 2f)", [-np.inf, -0.0, 3], [np.inf, 0, 9]),
        ('take(arange(1f, 5f, 1f, dtype="float32"), %x)', [np.inf, 3e9, np.nan], [4, 4, 1]),
        ("left_shift(less(%x, 0f), True)", [-1, 1, 0], [0, 0, 0]),
        ('left_shift(cast(%x, dtype="int8"), 8i8)', [-1, 1, 0], [0, 0, 0]),
        ('right_shift(cast(%x, dtype="int8"), -1i8)', [-1, 1, 0], [-1, 0, 0]),
    ],
)
def test_constants_that_stand_for_all_elements(text: str, x: list[float], wanted: list[float]) -> None:
    module = mirstack.parse(f"def @main(%x: Tensor[(3), float32]) {{ {text} }}")
    targets: tuple[dict[str, Any], ...] = (*THREE, {"strict_math": True})
    for target in targets:
        got = np.asarray(mirstack.compile(module, **target)(np.array(x, np.float32)), np.float64)
        np.testing.assert_array_equal(got, wanted)
        assert not np.signbit(got[got == 0]).any()


def test_a_result_that_turns_out_to_be_empty() -> None:
    module = mirstack.parse('def @main() { arange(3, 1, 1, dtype="int32") }')
    for target in THREE:
        assert np.asarray(mirstack.compile(module, **target)()).shape == (0,)


def test_moved_taps_between_an_infinite_pixel_and_the_border() -> None:
    """Pixels outside of an image are 0: a tap half outside is half of the pixel at the border, and no NaN."""
    module = mirstack.parse(
        """def @main(%a: Tensor[(1, 1, 1, 4), float32], %b: Tensor[(1, 2, 1, 4), float32],
                     %c: Tensor[(1, 1, 1, 1), float32]) {
          nn.deformable_conv2d(%a, %b, %c, channels=1, kernel_size=[1, 1]) }"""
    )
    image = np.array([1, 2, 4, np.inf], np.float32).reshape(1, 1, 1, 4)
    moves = np.array([[0.5, np.nan, 0, 0], [0.5, 0, 0, 0.5]], np.float32).reshape(1, 2, 1, 4)
    for target in THREE:
        got = np.asarray(mirstack.compile(module, **target)(image, moves, np.ones((1, 1, 1, 1), np.float32)))
        np.testing.assert_array_equal(got.ravel(), [0.75, np.nan, np.nan, np.inf])


def test_places_of_a_shape_whose_products_wrap_around() -> None:
    module = mirstack.parse(
        """def @main(%a: Tensor[(3, 2), int32], %b: Tensor[(2), int64], %c: Tensor[(17), int64]) {
          sparse_reshape(%a, %b, %c) }"""
    )
    places = np.array([[0, 1], [2, 5], [3, 1]], np.int32)
    for size in (24, 1 << 13, 3):
        arrays = (places, np.array([4, 6], np.int64), np.full(17, size, np.int64))
        wanted, got = (mirstack.compile(module, target)(*arrays) for target in ("interp", "cpu"))
        for a, b in zip(wanted, got, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pooled_regions_of_corners_that_are_not_finite(dtype: str) -> None:
    """NaN is 0, as `cast` has it, and what is beyond int32 its end."""
    module = mirstack.parse(
        f"""def @main(%a: Tensor[(1, 1, 4, 4), {dtype}], %b: Tensor[(?, 5), {dtype}]) {{
          vision.roi_pool(%a, %b, pooled_size=[2, 1], spatial_scale=1f) }}"""
    )
    image = np.arange(1, 17).reshape(1, 1, 4, 4).astype(dtype)
    corners = [0, 2, 5e9, -5e9, np.nan, np.inf, -np.inf]
    regions = np.array([[0, a, b, c, d] for a in corners for b in corners for c in corners for d in corners], dtype)
    wanted, *others = (np.asarray(mirstack.compile(module, **target)(image, regions)) for target in THREE)
    by_corners = dict(zip(map(tuple, regions[:, 1:].tolist()), wanted, strict=True))
    assert by_corners[2, 0, 2, 2].ravel().tolist() == [7, 11]
    for got in others:
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_proposals_for_images_of_no_finite_size(number: float) -> None:
    module = mirstack.parse(
        """def @main(%a: Tensor[(1, 2, 3, 2), float32], %b: Tensor[(1, 4, 3, 2), float32], %c: Tensor[(1, 3), float32]) {
          vision.proposal(%a, %b, %c, scales=[2f], ratios=[1f], rpn_post_nms_top_n=2, rpn_min_size=4) }"""
    )
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=shape).astype(np.float32) for shape in ((1, 2, 3, 2), (1, 4, 3, 2)))
    c = np.array([[64, number, 1]], np.float32)
    wanted, got = (np.asarray(mirstack.compile(module, target)(a, b, c)) for target in ("interp", "cpu"))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
