"""Dimensions `?` in native code: compiled once, right at every size, against the interpreter."""

from __future__ import annotations

from functools import cache

import mirstack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirstack.lowering.driver.loading.executable import Array, Executable, flatten
from mirstack.support.diagnostics import MirError

HEAD = '#[version = "0.0.5"]\n'

SIZES = st.integers(0, 9)
"""0 and 1 are the ones that go wrong."""


@cache
def both(text: str, opt_level: int) -> tuple[Executable, Executable]:
    """The program natively, compiled once, and in the interpreter."""
    module = mirstack.parse(HEAD + text, "d.mir")
    return mirstack.compile(module, opt_level=opt_level), mirstack.compile(module, "interp")


def check(text: str, *inputs: Array, opt_level: int = 3) -> None:
    native, interpreted = both(text, opt_level)
    results, expected = flatten(native(*inputs)), flatten(interpreted(*inputs))
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        assert result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


MATRIX = "%x: Tensor[(?, ?), float32]"
ELEMENTWISE = f'def @main({MATRIX}) {{ (nn.relu(%x), multiply(exp(%x), 2f), cast(%x, dtype="int32"), clip(%x, a_min=0f, a_max=1f)) }}'
SHAPES = f"""def @main({MATRIX}) {{
  (transpose(%x), reshape(%x, newshape=[-1]), reshape(%x, newshape=[0, 1, -1]), expand_dims(%x, axis=1),
   strided_slice(%x, begin=[1, -1], end=[5, -10], strides=[2, -1]), reverse(%x, axis=1), tile(%x, reps=[2, 1]),
   repeat(%x, repeats=2, axis=0), shape_of(%x), ndarray_size(%x), zeros_like(%x), nn.batch_flatten(%x))
}}"""
SUMS = f"def @main({MATRIX}) {{ (sum(%x), sum(%x, axis=[0]), sum(%x, axis=[1], keepdims=True), prod(%x, axis=[0]), cumsum(%x, axis=0)) }}"
ROWS = f"def @main({MATRIX}) {{ (nn.softmax(%x), nn.log_softmax(%x), max(%x, axis=[1]), mean(%x, axis=[1])) }}"
SORTS = f"def @main({MATRIX}) {{ (sort(%x), argsort(%x, axis=0), topk(%x, k=0)) }}"


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("text", [ELEMENTWISE, SHAPES, SUMS, SORTS], ids=["elementwise", "shapes", "sums", "sorts"])
@settings(max_examples=12, deadline=None)
@given(m=SIZES, n=SIZES)
def test_one_matrix(text: str, opt_level: int, m: int, n: int) -> None:
    check(text, floats(m, n), opt_level=opt_level)


@settings(max_examples=12, deadline=None)
@given(m=SIZES, n=st.integers(1, 9), opt_level=st.sampled_from([0, 3]))
def test_rows(m: int, n: int, opt_level: int) -> None:
    check(ROWS, floats(m, n), opt_level=opt_level)


@pytest.mark.parametrize(
    "types",
    [
        "%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]",
        "%x: Tensor[(?, 4), float32], %y: Tensor[(?, ?), float32]",
    ],
)
@settings(max_examples=20, deadline=None)
@given(m=SIZES, stretched=st.tuples(*[st.booleans()] * 4))
def test_broadcast(types: str, m: int, stretched: tuple[bool, ...]) -> None:
    x = floats(1 if stretched[0] else m, 4)
    y = floats(1 if stretched[1] else m, 1 if stretched[2] else 4)
    if types.count("?") == 4 and stretched[3]:
        x = x[:, :1].copy()
    check(f"def @main({types}) {{ (add(%x, %y), less(%x, %y), where(greater(%x, 0f), %x, %y)) }}", x, y)


@pytest.mark.parametrize("opt_level", [0, 3])
@settings(max_examples=12, deadline=None)
@given(m=SIZES, n=SIZES, k=SIZES)
def test_dense(opt_level: int, m: int, n: int, k: int) -> None:
    text = f"def @main({MATRIX}, %w: Tensor[(?, ?), float32]) {{ nn.dense(%x, %w, units=None) }}"
    check(text, floats(m, k), floats(n, k), opt_level=opt_level)


@settings(max_examples=15, deadline=None)
@given(m=st.integers(0, 70))
def test_batch_of_a_classifier(m: int) -> None:
    text = """def @main(%x: Tensor[(?, 64), float32], %w: Tensor[(40, 64), float32], %b: Tensor[(40), float32]) {
  nn.softmax(nn.relu(nn.bias_add(nn.dense(%x, %w, units=40), %b)))
}"""
    check(text, floats(m, 64), floats(40, 64), floats(40))


@settings(max_examples=12, deadline=None)
@given(b=SIZES, m=SIZES, n=SIZES, k=SIZES, one=st.sampled_from(["", "x", "y"]))
def test_batch_matmul(b: int, m: int, n: int, k: int, one: str) -> None:
    tensor = "Tensor[(?, ?, ?), float32]"
    text = f"def @main(%x: {tensor}, %y: {tensor}) {{ nn.batch_matmul(%x, %y, transpose_b=True) }}"
    check(text, floats(1 if one == "x" else b, m, k), floats(1 if one == "y" else b, n, k))


@pytest.mark.parametrize("opt_level", [0, 3])
@settings(max_examples=8, deadline=None)
@given(n=st.integers(0, 4))
def test_conv2d_of_a_batch(opt_level: int, n: int) -> None:
    text = """def @main(%x: Tensor[(?, 8, 10, 10), float32], %w: Tensor[(16, 8, 3, 3), float32]) {
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3])
}"""
    check(text, floats(n, 8, 10, 10), floats(16, 8, 3, 3), opt_level=opt_level)


@settings(max_examples=8, deadline=None)
@given(h=st.integers(2, 9), w=st.integers(2, 9))
def test_images_of_any_size(h: int, w: int) -> None:
    text = """def @main(%x: Tensor[(1, 3, ?, ?), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  (nn.global_avg_pool2d(%1), nn.pad(%1, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 2]]), image.resize2d(%x, size=[5, 7], roi=[0f, 0f, 0f, 0f]))
}"""
    check(text, floats(1, 3, h, w), floats(4, 3, 3, 3))


@settings(max_examples=8, deadline=None)
@given(m=SIZES, n=st.integers(1, 9))
def test_layer_norm(m: int, n: int) -> None:
    vector = "Tensor[(?), float32]"
    text = f"def @main({MATRIX}, %g: {vector}, %b: {vector}) {{ nn.layer_norm(%x, %g, %b) }}"
    check(text, floats(m, n), floats(n), floats(n))


@settings(max_examples=12, deadline=None)
@given(m=SIZES, n=SIZES, k=SIZES)
def test_concatenate_and_split(m: int, n: int, k: int) -> None:
    text = f"""def @main({MATRIX}, %y: Tensor[(?, ?), float32]) {{
  %0 = concatenate((%x, %y), axis=1);
  (%0, split(concatenate((%x, %x), axis=0), indices_or_sections=2, axis=0))
}}"""
    check(text, floats(m, n), floats(m, k))


@settings(max_examples=12, deadline=None)
@given(m=st.integers(1, 9), n=SIZES, indices=st.lists(st.integers(-2, 12), max_size=6))
def test_take(m: int, n: int, indices: list[int]) -> None:
    text = f"def @main({MATRIX}, %i: Tensor[(?), int32]) {{ take(%x, %i, axis=0) }}"
    check(text, floats(m, n), np.array(indices, np.int32))


def test_a_size_that_comes_again_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    native, _ = both(ELEMENTWISE, 3)
    from mirstack.lowering.llvm.jit import load as jit

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(jit, "emit_object", refuse)
    for m in range(20):
        assert flatten(native(floats(m, 3)))[0].shape == (m, 3)


# Control flow --------------------------------------------------------------------------------------------------------

LOOP = """def @loop(%n: int32, %x: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] {
  if (less(%n, 1)) { %x } else {
    %0 = concatenate((%x, ones(shape=[1, 4], dtype="float32")), axis=0);
    @loop(subtract(%n, 1), %0)
  }
}
def @main(%n: int32) -> Tensor[(?, 4), float32] { @loop(%n, zeros(shape=[1, 4], dtype="float32")) }"""


@pytest.mark.parametrize("turns", [0, 1, 40])
def test_a_tensor_that_grows_in_a_loop(turns: int) -> None:
    check(LOOP, np.array(turns, np.int32))


def test_memory_of_a_call_is_given_back() -> None:
    native, _ = both(LOOP, 3)
    shapes = {native(np.array(n, np.int32)).shape for n in (200, 1, 200, 3)}
    assert shapes == {(201, 4), (2, 4), (4, 4)}


def test_results_of_earlier_calls_stay() -> None:
    native, _ = both(ELEMENTWISE, 3)
    first = flatten(native(np.ones((600, 600), np.float32)))
    second = flatten(native(np.zeros((600, 600), np.float32)))
    assert first[0][0, 0] == 1
    assert second[0][0, 0] == 0


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("flag", [False, True])
def test_branches_of_known_and_unknown_shape(rows: int, flag: bool) -> None:
    text = """def @main(%c: bool, %x: Tensor[(?, 4), float32], %y: Tensor[(2, 4), float32]) {
  %0 = if (%c) { exp(%x) } else { %y };
  (sum(%0, axis=[0]), %0)
}"""
    check(text, np.array(flag), floats(rows, 4), floats(2, 4))


CALLS = {
    "a global function": """def @f(%x: Tensor[(3, 4), float32]) -> Tensor[(3, 4), float32] { exp(%x) }
def @main(%x: Tensor[(?, 4), float32]) { @f(%x) }""",
    "a closure": """def @main(%x: Tensor[(?, 4), float32]) {
  let %f = fn (%a: Tensor[(3, 4), float32]) -> Tensor[(3, 4), float32] { exp(%a) };
  %f(%x)
}""",
    "a result": "def @main(%x: Tensor[(?, 4), float32]) -> Tensor[(3, 4), float32] { exp(%x) }",
    "a function passed on": """def @f(%x: Tensor[(3, 4), float32]) -> Tensor[(3, 4), float32] { exp(%x) }
def @apply(%f: fn (Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32], %x: Tensor[(?, 4), float32]) { %f(%x) }
def @main(%x: Tensor[(?, 4), float32]) { @apply(@f, %x) }""",
}


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS.keys())
def test_a_shape_that_is_known_on_one_side_is_compared(text: str) -> None:
    check(text, floats(3, 4))
    with pytest.raises(MirError, match=r"d\.mir:\d+:\d+: error: dimension 0 of .* is 2, but must be 3"):
        both(text, 3)[0](floats(2, 4))


def test_a_known_shape_where_any_will_do() -> None:
    text = """def @f(%x: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] { %x }
def @main(%x: Tensor[(3, 4), float32]) { %0 = @f(%x); (add(%0, 1f), %0) }"""
    check(text, floats(3, 4))


DATA = "type List[A] { Cons(A, List[A]), Nil, }\n"


@pytest.mark.parametrize("sizes", [(3, 2), (0, 4)])
def test_tensors_in_lists_closures_and_references(sizes: tuple[int, int]) -> None:
    text = (
        DATA
        + """def @sum(%l: List[Tensor[(?), float32]]) -> float32 {
  match (%l) { Cons(%h, %t) => { add(sum(%h), @sum(%t)) }, Nil => { 0f } }
}
def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) {
  let %f = fn (%a: Tensor[(?), float32]) { (sum(%a), multiply(%a, sum(%y))) };
  let %r = ref(%x);
  let %w = ref_write(%r, add(%x, 1f));
  (@sum(Cons(%x, Cons(%y, Nil))), %f(%y), ref_read(%r))
}"""
    )
    check(text, floats(sizes[0]), floats(sizes[1]))


def test_a_list_of_known_and_unknown_shapes() -> None:
    text = (
        DATA
        + """def @main(%x: Tensor[(?), float32], %y: Tensor[(2), float32]) {
  match (Cons(%x, Cons(%y, Nil))) { Cons(%h, _) => { %h }, Nil => { %y } }
}"""
    )
    check(text, floats(3), floats(2))


def test_a_reference_cannot_change_what_it_holds() -> None:
    text = """def @f(%r: ref(Tensor[(?), float32])) { ref_read(%r) }
def @main(%y: Tensor[(2), float32]) { let %r = ref(%y); @f(%r) }"""
    with pytest.raises(MirError, match=r"argument 0 of @f has type .* but is used as"):
        both(text, 3)


def test_a_kernel_of_symbolic_sizes_that_a_person_wrote() -> None:
    text = """@T.prim_func
def twice(a: T.handle, b: T.handle):
    n = T.var("int32")
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n * 2, 4), "float32")
    for i, j in T.grid(n * 2, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // 2, vj]
def @main(%x: Tensor[(?, 4), float32]) { call_tir(@twice, nn.relu(%x)) }"""
    x = floats(3, 4)
    executable = mirstack.compile(mirstack.parse(HEAD + text, "d.mir"), entry="main")
    np.testing.assert_array_equal(executable(x), np.repeat(np.maximum(x, 0), 2, 0))


def test_parts_of_an_unknown_size_are_no_bounds_of_loops() -> None:
    # A third of an int32 is not a number of turns.
    text = """def @main(%x: Tensor[(?, ?, ?), float32]) { nn.adaptive_avg_pool1d(%x, output_size=[3], layout="NWC") }"""
    check(text, floats(1, 4, 2))
    check(text, floats(2, 7, 1))
