"""Operators whose result's shape is the value of an argument: one compile, many shapes, against the interpreter."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirstack.lowering.driver.loading.executable import Array
from mirstack.support.diagnostics import MirError
from test_dynamic import both, check, floats

SMALL = st.integers(0, 5)
MATRIX = "%x: Tensor[(?, ?), float32]"
PAIR = "Tensor[(2), int64]"


def numbers(*values: int, dtype: str = "int64") -> Array:
    return np.array(values, dtype)


@pytest.mark.parametrize("opt_level", [0, 3])
@settings(max_examples=10, deadline=None)
@given(m=st.integers(1, 5), n=st.integers(1, 5), which=st.integers(0, 4))
def test_reshape(opt_level: int, m: int, n: int, which: int) -> None:
    shape = [(n, m), (-1, m), (m, -1), (0, -1), (-1, 1)][which]
    text = f"def @main({MATRIX}, %s: {PAIR}) {{ dyn.reshape(%x, %s, newshape=None) }}"
    check(text, floats(m, n), numbers(*shape), opt_level=opt_level)


@settings(max_examples=10, deadline=None)
@given(m=SMALL, n=SMALL, outer=SMALL, stretched=st.booleans())
def test_broadcast_to(m: int, n: int, outer: int, stretched: bool) -> None:
    text = f"def @main({MATRIX}, %s: Tensor[(3), int64]) {{ dyn.broadcast_to(%x, %s, shape=None) }}"
    check(text, floats(1 if stretched else m, n), numbers(outer, m, n))


@pytest.mark.parametrize("opt_level", [0, 3])
@settings(max_examples=10, deadline=None)
@given(m=SMALL, k=st.integers(-1, 9))
def test_topk(opt_level: int, m: int, k: int) -> None:
    text = 'def @main(%x: Tensor[(?, 7), float32], %k: int32) { dyn.topk(%x, %k, ret_type="both") }'
    check(text, floats(m, 7), np.array(k, np.int32), opt_level=opt_level)


@settings(max_examples=10, deadline=None)
@given(m=SMALL, n=SMALL, reps=st.tuples(SMALL, SMALL))
def test_tile(m: int, n: int, reps: tuple[int, int]) -> None:
    check(f"def @main({MATRIX}, %r: {PAIR}) {{ dyn.tile(%x, %r, reps=None) }}", floats(m, n), numbers(*reps))


@settings(max_examples=10, deadline=None)
@given(m=SMALL, n=SMALL)
def test_made_from_a_shape(m: int, n: int) -> None:
    text = f"""def @main(%s: {PAIR}, %v: float32) {{
  (dyn.zeros(%s, shape=None, dtype="int32"), dyn.ones(%s, shape=None, dtype="float32"), dyn.full(%v, %s, shape=None, dtype="float32"))
}}"""
    check(text, numbers(m, n), np.array(2.5, np.float32))


@settings(max_examples=10, deadline=None)
@given(count=SMALL, depth=SMALL)
def test_one_hot(count: int, depth: int) -> None:
    text = """def @main(%i: Tensor[(?), int32], %on: float32, %off: float32, %d: int32) {
  dyn.one_hot(%i, %on, %off, %d, depth=1, axis=-1, dtype="float32")
}"""
    check(text, np.arange(count, dtype=np.int32), *(np.array(v, np.float32) for v in (1, 0)), np.array(depth, np.int32))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_expand_dims(axis: int) -> None:
    text = f"def @main({MATRIX}, %a: int64) {{ dyn.expand_dims(%x, %a, num_newaxis=2) }}"
    check(text, floats(4, 6), np.array(axis))


@pytest.mark.parametrize(("shape", "axis"), [((4, 1, 6), 1), ((1, 1, 6), 0), ((4, 1, 1), -1), ((0, 1, 3), 1)])
def test_squeeze(shape: tuple[int, ...], axis: int) -> None:
    text = "def @main(%x: Tensor[(?, 1, ?), float32], %a: Tensor[(1), int64]) { dyn.squeeze(%x, %a, axis=None) }"
    check(text, floats(*shape), numbers(axis))


BOUND = st.tuples(st.integers(-12, 12), st.integers(-12, 12))


@pytest.mark.parametrize("mode", ["end", "size"])
@settings(max_examples=25, deadline=None)
@given(m=SMALL, n=st.integers(0, 9), begin=BOUND, end=BOUND, steps=st.tuples(*[st.sampled_from([-3, -1, 1, 2])] * 2))
def test_strided_slice(mode: str, m: int, n: int, begin: Any, end: Any, steps: Any) -> None:
    text = f"""def @main({MATRIX}, %b: {PAIR}, %e: {PAIR}, %s: {PAIR}) {{
  dyn.strided_slice(%x, %b, %e, %s, begin=None, end=None, strides=None, axes=None, slice_mode="{mode}")
}}"""
    check(text, floats(m, n), numbers(*begin), numbers(*end), numbers(*steps))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@settings(max_examples=10, deadline=None)
@given(m=st.integers(2, 6), n=st.integers(2, 6), widths=st.lists(SMALL, min_size=4, max_size=4))
def test_pad(mode: str, m: int, n: int, widths: list[int]) -> None:
    text = f"""def @main({MATRIX}, %w: Tensor[(2, 2), int64], %v: float32) {{ dyn.nn.pad(%x, %w, %v, pad_mode="{mode}") }}"""
    check(text, floats(m, n), np.array(widths).reshape(2, 2), np.array(7, np.float32))


@settings(max_examples=6, deadline=None)
@given(h=st.integers(1, 6), w=st.integers(1, 6), size=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_resize2d(h: int, w: int, size: tuple[int, int]) -> None:
    text = """def @main(%x: Tensor[(1, 3, ?, ?), float32], %s: Tensor[(2), int64], %r: Tensor[(0), float32]) {
  dyn.image.resize2d(%x, %s, %r, size=None, roi=[0f, 0f, 0f, 0f], method="linear")
}"""
    check(text, floats(1, 3, h, w), numbers(*size), np.zeros(0, np.float32))


@pytest.mark.parametrize("method", ["trilinear", "nearest_neighbor"])
def test_upsampling_of_nothing_beside_sizes_of_run_time(method: str) -> None:
    """Positions are divided by the new size, of which one is known to be 0."""
    use = f'nn.upsampling3d(%x, scale_d=2f, scale_h=3f, scale_w=2f, layout="NDHWC", method="{method}")'
    for executable in both(f"def @main(%x: Tensor[(?, 0, 2, ?, ?), float32]) {{ {use} }}", 0):
        assert executable(floats(1, 0, 2, 1, 3)).shape == (1, 0, 6, 2, 3)


def test_upsampling() -> None:
    text = """def @main(%x: Tensor[(1, 3, ?, ?), float32], %a: float32, %b: float32) {
  dyn.nn.upsampling(%x, %a, %b, scale_h=1.0f, scale_w=1.0f)
}"""
    for h, w in ((5, 6), (1, 2)):
        check(text, floats(1, 3, h, w), np.array(2, np.float32), np.array(1.5, np.float32))


def test_sparse_to_dense() -> None:
    text = """def @main(%i: Tensor[(?, 2), int32], %v: Tensor[(?), float32], %d: float32, %s: Tensor[(2), int64]) {
  dyn.sparse_to_dense(%i, %v, %d, %s)
}"""
    check(text, np.array([[0, 1], [2, 3]], np.int32), floats(2), np.array(0, np.float32), numbers(3, 5))


@settings(max_examples=15, deadline=None)
@given(start=st.integers(-9, 9), stop=st.integers(-9, 9), step=st.sampled_from([-3, -1, 1, 2]))
def test_arange(start: int, stop: int, step: int) -> None:
    for dtype, scale in (("int32", 1), ("float32", 0.75)):
        parameters = ", ".join(f"%{name}: {dtype}" for name in "abc")
        text = f'def @main({parameters}) {{ arange(%a, %b, %c, start=None, stop=None, step=None, dtype="{dtype}") }}'
        check(text, *(np.array(v * scale, dtype) for v in (start, stop, step)))


@pytest.mark.parametrize("opt_level", [0, 3])
@settings(max_examples=10, deadline=None)
@given(m=SMALL, n=SMALL)
def test_argwhere(opt_level: int, m: int, n: int) -> None:
    x = floats(m, n)
    check(f"def @main({MATRIX}) {{ argwhere(%x) }}", np.where(x > 0, x, 0).astype(np.float32), opt_level=opt_level)


@pytest.mark.parametrize("true", [False, True])
def test_argwhere_of_a_scalar(true: bool) -> None:
    check("def @main(%x: bool) { argwhere(%x) }", np.array(true))


@pytest.mark.parametrize("order", ["True", "False"])
@settings(max_examples=15, deadline=None)
@given(values=st.lists(st.sampled_from([0.0, 1.0, 2.5, -3.0, float("nan")]), max_size=12))
def test_unique(order: str, values: list[float]) -> None:
    text = f"def @main(%x: Tensor[(?), float32]) {{ unique(%x, sorted={order}, return_counts=True) }}"
    check(text, np.array(values, np.float32))


GROUPED = """def @main(%x: Tensor[(?, ?, ?, ?), float32], %w: Tensor[(?, ?, ?, ?), float32]) {
  nn.conv2d(%x, %w, groups=2, channels=None, kernel_size=None)
}"""

ERRORS = [
    (
        GROUPED,
        [floats(1, 5, 3, 3), floats(4, 2, 1, 1)],
        "nn.conv2d: dimension 1 of 'data' leaves 1 when it is divided by 2",
    ),
    (
        GROUPED,
        [floats(1, 4, 3, 3), floats(3, 2, 1, 1)],
        "nn.conv2d: dimension 0 of 'weight' leaves 1 when it is divided by 2",
    ),
    (
        f"def @main({MATRIX}, %y: Tensor[(?, ?), float32], %z: Tensor[(?, ?), float32]) {{ where(greater(%x, 0f), %y, %z) }}",
        [floats(2, 4), floats(3, 4), floats(1, 4)],
        "where: 3 does not broadcast to 2, dimension 0 of the result",
    ),
    (
        f"def @main({MATRIX}, %w: Tensor[(5, 8), float32]) {{ nn.dense(%x, %w, units=5) }}",
        [floats(3, 4), floats(5, 8)],
        "d.mir:2:71: error: nn.dense: dimension 1 of 'data' is 4, but must be 8",
    ),
    (
        f"def @main({MATRIX}, %y: Tensor[(?, ?), float32]) {{ add(%x, %y) }}",
        [floats(2, 4), floats(3, 4)],
        "add: dimension 0 of 'lhs' and dimension 0 of 'rhs' do not broadcast: they are 2 and 3",
    ),
    (
        f"def @main({MATRIX}, %y: Tensor[(3, 4), float32]) {{ add(%x, %y) }}",
        [floats(2, 4), floats(3, 4)],
        "add: dimension 0 of 'lhs' is 2, but must be 3 or 1",
    ),
    (
        f"def @main({MATRIX}, %y: Tensor[(?, ?), float32]) {{ concatenate((%x, %y), axis=1) }}",
        [floats(2, 4), floats(3, 4)],
        "concatenate: dimension 0 of field 0 of 'data' is 2, but dimension 0 of field 1 of 'data' is 3",
    ),
    (
        f"def @main({MATRIX}, %y: Tensor[(?, ?), float32]) {{ slice_like(%x, %y) }}",
        [floats(2, 4), floats(3, 4)],
        "slice_like: 3 elements are read along dimension 0 of 'data', which has 2",
    ),
    (
        f"def @main({MATRIX}) {{ reshape(%x, newshape=[-1, 4]) }}",
        [floats(3, 3)],
        "reshape: 'data' has 9 elements, but the new shape has 8",
    ),
    (
        f"def @main({MATRIX}, %s: {PAIR}) {{ dyn.reshape(%x, %s, newshape=None) }}",
        [floats(3, 3), numbers(2, 4)],
        "dyn.reshape: 'data' has 9 elements, but the new shape has 8",
    ),
    (
        f"def @main({MATRIX}, %s: {PAIR}) {{ dyn.broadcast_to(%x, %s, shape=None) }}",
        [floats(3, 3), numbers(2, 3)],
        "dyn.broadcast_to: dimension 0 of 'data' is 3, which does not broadcast to 2",
    ),
    (
        f"def @main({MATRIX}) {{ squeeze(%x, axis=[0]) }}",
        [floats(3, 3)],
        "squeeze: dimension 0 of 'data' is 3, but must be 1",
    ),
    (
        f"def @main({MATRIX}) {{ split(%x, indices_or_sections=2, axis=0) }}",
        [floats(3, 3)],
        "split: dimension 0 of 'data' leaves 1 when it is divided by 2",
    ),
    (
        f"def @main({MATRIX}) {{ split(%x, indices_or_sections=[1, 4], axis=0) }}",
        [floats(3, 3)],
        "split: the last position is 4, but dimension 0 of 'data' is 3",
    ),
    (f"def @main({MATRIX}) {{ topk(%x, k=4) }}", [floats(3, 3)], "topk: k is 4, but dimension 1 of 'data' is 3"),
    (
        f'def @main(%s: {PAIR}) {{ dyn.zeros(%s, shape=None, dtype="float32") }}',
        [numbers(2, -1)],
        "dimension 1 of the result of dyn.zeros would be -1",
    ),
    (
        'def @main(%s: Tensor[(3), int64]) { dyn.zeros(%s, shape=None, dtype="float32") }',
        [numbers(1 << 20, 1 << 20, 1 << 20)],
        "out of memory",
    ),
    (
        'def @main(%a: int32) { arange(%a, 5, %a, start=None, stop=None, step=None, dtype="int32") }',
        [np.array(0, np.int32)],
        "arange: the step must not be 0",
    ),
    (
        'def @main(%a: float32) { arange(0f, %a, 1f, start=None, stop=None, step=None, dtype="int32") }',
        [np.array(np.nan, np.float32)],
        "arange: how many numbers there are is NaN",
    ),
    (
        'def @main(%i: Tensor[(2), int32], %d: int32) { dyn.one_hot(%i, 1f, 0f, %d, axis=-1, dtype="float32") }',
        [np.zeros(2, np.int32), np.array(-3, np.int32)],
        "dimension 1 of the result of dyn.one_hot would be -3",
    ),
    (
        f"def @main({MATRIX}, %s: {PAIR}) {{ dyn.reshape(%x, %s, newshape=None) }}",
        [floats(3, 3), numbers(-1, -1)],
        "dyn.reshape: 'data' has 9 elements, but the new shape has 81",
    ),
    (
        f"""def @main({MATRIX}, %b: {PAIR}) {{
  dyn.strided_slice(%x, %b, %b, %b, begin=None, end=None, strides=None, axes=None)
}}""",
        [floats(3, 3), numbers(1, 0)],
        "dyn.strided_slice: stride 1 must not be 0",
    ),
    (
        f"def @main({MATRIX}, %w: Tensor[(2, 2), int64]) {{ dyn.nn.pad(%x, %w, 0f) }}",
        [floats(3, 3), np.array([[0, 0], [-2, 0]])],
        "dyn.nn.pad: the padding of dimension 1 must be 0 or more, not -2",
    ),
    (
        f'def @main({MATRIX}, %w: Tensor[(2, 2), int64]) {{ dyn.nn.pad(%x, %w, 0f, pad_mode="edge") }}',
        [floats(3, 0), np.array([[0, 0], [2, 0]])],
        "dyn.nn.pad: dimension 1 of 'data' has no elements to pad with",
    ),
    (
        "def @main(%x: Tensor[(1, 1, 2, 2), float32], %s: float32) { dyn.nn.upsampling(%x, %s, 2f) }",
        [floats(1, 1, 2, 2), np.array(-0.1, np.float32)],
        "scale_h must be positive",
    ),
    (
        "def @main(%x: Tensor[(2, 3), float32], %s: Tensor[(0), int64]) { dyn.reshape(%x, %s, newshape=None) }",
        [floats(2, 3), numbers()],
        "dyn.reshape: 'data' has 6 elements, but the new shape has 1",
    ),
    (
        f"def @main(%x: Tensor[(5, 4), float32], %v: Tensor[(2, 1), float32], %b: {PAIR}) {{ strided_set(%x, %v, %b, %b, %b) }}",
        [floats(5, 4), floats(2, 1), numbers(1, 0)],
        "stride 1 must not be 0",
    ),
    (
        f"""def @main(%x: Tensor[(5, 4), float32], %v: Tensor[(2, 1), float32], %b: {PAIR}, %e: {PAIR}) {{
  strided_set(%x, %v, %b, %e, sign(%e))
}}""",
        [floats(5, 4), floats(2, 1), numbers(1, 0), numbers(4, 4)],
        "dimension 0 of 'v' is 2, which does not broadcast to 3, what the slice takes",
    ),
    (
        """@te.func
def product():
    m = te.var("m")
    A = te.placeholder((m,), name="A")
    C = te.placeholder((m,), name="C")
    B = te.compute((m,), lambda i: A[i] * C[i], name="B")
    return [A, C, B]
def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { call_tir(@product, %x, %y) }""",
        [floats(2), floats(3)],
        "@product: dimension 0 of 'C' is 3, but must be 2",
    ),
]


NATIVE = ("where: ", "@product")
"""Messages of compiled code alone, which compares what broadcasts with the result: interpreted, the arguments are compared."""


@pytest.mark.parametrize(("text", "inputs", "message"), ERRORS, ids=[message[:40] for *_, message in ERRORS])
def test_what_does_not_fit_is_refused(text: str, inputs: list[Array], message: str) -> None:
    for executable in both(text, 3)[: 1 if message.startswith(NATIVE) else 2]:
        with pytest.raises(MirError) as caught:
            executable(*inputs)
        assert message in str(caught.value)


def test_a_result_that_no_memory_holds() -> None:
    """The interpreter says so before it takes any."""
    text = 'def @main(%s: Tensor[(3), int64]) { dyn.zeros(%s, shape=None, dtype="float32") }'
    with pytest.raises(MirError) as caught:
        mirstack.compile(mirstack.parse(text), "interp")(numbers(1 << 20, 1 << 20, 1 << 20))
    assert "out of memory: the result of dyn.zeros takes 4611686018427387904 bytes, and " in str(caught.value)


EMPTY = [
    ("take(%x, %i, axis=0)", "take: dimension 0 of 'data' has no elements to take"),
    ('take(%x, %i, axis=0, mode="wrap")', "take: dimension 0 of 'data' has no elements to take"),
    ("take(%x, %i)", "take: 'data' has no elements to take"),
    ("add(1f, exp(take(exp(%x), %i, axis=0)))", "take: dimension 0 of 'data' has no elements to take"),
    ("gather(%x, %i, axis=0)", "gather: dimension 0 of 'data' has no elements to take"),
    ("gather_nd(%x, expand_dims(%i, axis=0))", "gather_nd: dimension 0 of 'data' has no elements to take"),
    ("adv_index((%x, %i))", "adv_index: dimension 0 of field 0 of 'inputs' has no elements to take"),
    ("nn.mirror_pad(%x, pad_width=[[1, 1]])", "nn.mirror_pad: dimension 0 of 'data' has no elements to repeat"),
    ('nn.pad(%x, 0f, pad_width=[[1, 0]], pad_mode="edge")', "nn.pad: dimension 0 of 'data' has no elements to repeat"),
]


@pytest.mark.parametrize(("body", "message"), EMPTY)
def test_elements_of_what_has_none(body: str, message: str) -> None:
    """The place is that of the operator, and its argument is named as the operator does, interpreted and natively."""
    text = f"def @main(%x: Tensor[(?), float32], %i: Tensor[(?), int32]) {{\n  {body}\n}}"
    column = 3 + body.index(message.partition(":")[0])
    for executable in both(text, 3):
        with pytest.raises(MirError) as caught:
            executable(floats(0), np.zeros(2, np.int32))
        assert f"d.mir:3:{column}: error: {message}\n" in str(caught.value) + "\n"
        if "pad" not in body:
            assert np.asarray(executable(floats(0), np.zeros(0, np.int32))).shape == (0,)


def test_a_static_dimension_beside_an_open_one_is_checked() -> None:
    native, _ = both("def @main(%x: Tensor[(?, 4), float32]) { exp(%x) }", 3)
    with pytest.raises(ValueError, match=r"'x' must have shape \(\?, 4\), not \(2, 5\)"):
        native(floats(2, 5))


def test_how_many_axes_are_indexed_must_be_known() -> None:
    text = """def @main(%i: Tensor[(?, ?), int32], %v: Tensor[(?), float32]) {
  sparse_to_dense(%i, %v, 0f, output_shape=[3, 4])
}"""
    with pytest.raises(MirError, match="dimension 1 of 'p0' is known only at run time, but says how many axes"):
        both(text, 3)


STATIC: dict[str, list[tuple[tuple[int, ...], list[Array]]]] = {
    "dyn.reshape(%x, %a, newshape=None)": [
        ((12,), [numbers(4, 3)]),
        ((2, 3, 4), [numbers(8, 3)]),
        ((4, 6), [numbers(2, -1, 3)]),
        ((2, 3, 4), [numbers(4, 0, 2)]),
        ((6,), [numbers(0, 1)]),
        ((), [numbers(1, 1)]),
        ((0, 3), [numbers(0, 3)]),
    ],
    "dyn.squeeze(%x, %a, axis=None)": [
        ((1, 3, 1), [numbers(0)]),
        ((1, 3, 1), [numbers(0, 2)]),
        ((1, 1), [numbers(-1)]),
    ],
    "dyn.expand_dims(%x, %a, num_newaxis=1)": [((3,), [np.array(1)]), ((), [np.array(0)])],
    "dyn.broadcast_to(%x, %a, shape=None)": [((3,), [numbers(2, 3)]), ((), [numbers(2)]), ((2, 1), [numbers(2, 5)])],
    "dyn.tile(%x, %a, reps=None)": [
        ((3,), [numbers(2, 2)]),
        ((2, 3), [numbers(2)]),
        ((2, 0), [numbers(2, 2)]),
    ],
    # A stride that is missing is 1, an end that is missing the end of its axis.
    "dyn.strided_slice(%x, %a, %b, %c, begin=None, end=None, strides=None, axes=None)": [
        ((5, 4), [numbers(0, 1), numbers(5, 4), numbers(2)]),
        ((5, 4), [numbers(0, 1), numbers(5), numbers(2, 1)]),
        ((5, 4), [numbers(-2), numbers(1 << 40), numbers()]),
    ],
    'dyn.strided_slice(%x, %a, %b, %c, begin=None, end=None, strides=None, slice_mode="size", axes=None)': [
        ((5, 4), [numbers(1, 1), numbers(2, -1), numbers(0)]),
        ((5, 4), [numbers(1, 1), numbers(), numbers(2)]),
    ],
    "reshape(dyn.reshape(%x, %a, newshape=None), newshape=[-1])": [((12,), [numbers(4, 3)]), ((2, 6), [numbers(4, 3)])],
    "dyn.reshape(dyn.tile(%x, %a, reps=None), %b, newshape=None)": [((6,), [numbers(2), numbers(3, -1)])],
    "dyn.squeeze(dyn.reshape(%x, %a, newshape=None), %b, axis=None)": [((12,), [numbers(1, 4, 3), numbers(0)])],
}


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("body", STATIC)
def test_sizes_of_time_of_running_of_shapes_that_are_known(body: str, opt_level: int) -> None:
    """The argument's rank is another than the result's, or its sizes are known: both sides follow from inputs alone."""
    for shape, more in STATIC[body]:
        types = [
            f"%{n}: Tensor[{tuple(a.shape)}, {a.dtype}]".replace(",)", ")") for n, a in zip("abc", more, strict=False)
        ]
        dims = ", ".join(map(str, shape))
        text = f"def @main({', '.join([f'%x: Tensor[({dims}), float32]', *types])}) {{ {body} }}"
        check(text, floats(*shape), *more, opt_level=opt_level)


@pytest.mark.parametrize("shape", ["(3, 0)", "(0, 3)", "(2, 0, 3)", "(0)"])
@pytest.mark.parametrize(("call", "wanted"), [("sum(%x)", 0), ("prod(%x)", 1), ("max(%x)", -(2**31))])
def test_reductions_of_all_axes_over_nothing(call: str, wanted: int, shape: str) -> None:
    extents = tuple(int(extent) for extent in shape.strip("()").split(", "))
    for executable in both(f"def @main(%x: Tensor[{shape}, int32]) {{ {call} }}", 3):
        assert executable(np.zeros(extents, np.int32)).item() == wanted


def test_slices_of_open_axes_with_bounds_beyond_every_size() -> None:
    """Bounds that no dtype of sizes holds mean the ends of the axis, as in Python."""
    most = 2**63 - 1
    for begin, end, stride in (
        (1, most, 1),
        (-most, most, 2),
        (most, -most, -1),
        (-2, -most, -most),
        (0, 4, most),
        (most, 2, 1),
    ):
        text = f"""
def @main(%x: Tensor[(?, 2), float32]) {{
  strided_slice(%x, begin=[{begin}], end=[{end}], strides=[{stride}], axes=[0])
}}
"""
        run = mirstack.compile(mirstack.parse(text))
        for rows in (0, 1, 5):
            x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
            np.testing.assert_array_equal(run(x), x[begin:end:stride])
