"""ONNX' control flow against onnxruntime: If, Loop and Scan, static and computed."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")
runtime = library("onnxruntime", "bench")


def parsed(text: str) -> Any:
    """Returns the model of a text in ONNX' own syntax."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')


def check(model: Any, target: Any, *inputs: Any) -> list[Any]:
    """Compares with onnxruntime; returns the results."""
    session = runtime.InferenceSession(model.SerializeToString())
    names = [each.name for each in model.graph.input]
    arrays = [np.asarray(each) for each in inputs]
    wanted = session.run(None, dict(zip(names, arrays, strict=True)))
    found = mirstack.compile(mirstack.from_onnx(model), target)(*arrays)
    results = list(found) if isinstance(found, tuple) else [found]
    for each, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-5)
    return results


X = np.arange(6, dtype="float32").reshape(2, 3)
TARGETS = pytest.mark.parametrize("target", ["interp", "cpu"])

BRANCHES = """g (bool c, float[n, 3] x) => (float[m, 3] y) {
  y = If(c) <
    then_branch = g1 () => (float[m, 3] a) { a = Concat<axis = 0>(x, x) },
    else_branch = g2 () => (float[m, 3] b) { b = Relu(x) }
  >
}"""


@TARGETS
@pytest.mark.parametrize("shape", [(2, 3), (None, 3)])
def test_branches_of_other_shapes(target: Any, shape: Any) -> None:
    model = parsed(BRANCHES)
    function = mirstack.compile(mirstack.from_onnx(model, {"x": shape}), target)
    np.testing.assert_array_equal(function(np.array(True), X), np.concatenate([X, X]))
    np.testing.assert_array_equal(function(np.array(False), X - 3), np.maximum(X - 3, 0))


def test_a_known_condition_leaves_one_branch() -> None:
    model = parsed(
        """g (float[n, 3] x) => (float[n, 3] y) {
          s = Shape(x)
          r = Size(s)
          two = Constant<value_int = 2>()
          c = Equal(r, two)
          y = If(c) <then_branch = g1 () => (float[n, 3] a) { a = Relu(x) }, else_branch = g2 () => (float[n, 3] b) { b = Neg(x) }>
        }"""
    )
    text = mirstack.from_onnx(model).astext()
    assert "if (" not in text and "nn.relu" in text and "negative" not in text


LOOP = """g (int64 n, bool c, float[2, 3] x) => (float[2, 3] y, float[k, 2, 3] all) {
  y, all = Loop(n, c, x) <body = b (int64 i, bool ci, float[2, 3] a) => (bool co, float[2, 3] out, float[2, 3] row) {
    f = Cast<to = 1>(i)
    out = Add(a, f)
    row = Mul(out, x)
    total = ReduceSum<keepdims = 0>(out)
    most = Constant<value_float = 50.0>()
    co = Less(total, most)
  }>
}"""


@TARGETS
def test_a_loop_of_computed_length(target: Any) -> None:
    for count in (2, 9):
        check(parsed(LOOP), target, np.int64(count), np.bool_(True), X)
    function = mirstack.compile(mirstack.from_onnx(parsed(LOOP)), target)
    for count, start in ((0, True), (9, False)):
        last, rows = function(np.int64(count), np.bool_(start), X)
        np.testing.assert_array_equal(last, X)
        assert rows.shape == (0, 2, 3)


GROWING = """g (int64 n, float[m, 3] x) => (float[k, 3] y) {
  t = Constant<value = bool {1}>()
  y = Loop(n, t, x) <body = b (int64 i, bool ci, float[j, 3] a) => (bool co, float[j, 3] out) {
    out = Concat<axis = 0>(a, x)
    co = Identity(ci)
  }>
}"""


@TARGETS
@pytest.mark.parametrize("count", [0, 3])
def test_a_loop_that_changes_a_shape(target: Any, count: int) -> None:
    (found,) = check(parsed(GROWING), target, np.int64(count), X)
    assert found.shape == (2 + 2 * count, 3)


@pytest.mark.parametrize("count", [0, 4])
def test_a_short_loop_is_unrolled(count: int) -> None:
    model = parsed(
        f"""g (float[n, 3] x) => (float[n, 3] y, float[k, n, 3] all) {{
          n = Constant<value_int = {count}>()
          y, all = Loop(n, , x) <body = b (int64 i, bool ci, float[n, 3] a) => (bool co, float[n, 3] out, float[n, 3] row) {{
            co = Identity(ci)
            out = Add(a, x)
            row = Identity(a)
          }}>
        }}"""
    )
    if count:
        assert "fn (" not in mirstack.from_onnx(model).astext()
    found = mirstack.compile(mirstack.from_onnx(model), "interp")(X)
    np.testing.assert_array_equal(found[0], X * (count + 1))
    np.testing.assert_array_equal(found[1], np.array([X * (k + 1) for k in range(count)]).reshape(count, 2, 3))


@TARGETS
@pytest.mark.parametrize("size", [3, "n"])
def test_scan(target: Any, size: Any) -> None:
    model = parsed(
        f"""g (float[2] s, float[2, {size}] x, float[{size}, 2] z) => (float[2] t, float[2, {size}] y, float[{size}, 2] w) {{
          t, y, w = Scan(s, x, z) <
            num_scan_inputs = 2, scan_input_axes = [1, -2], scan_input_directions = [1, 0], scan_output_axes = [1, 0],
            scan_output_directions = [0, 1],
            body = b (float[2] a, float[2] p, float[2] q) => (float[2] o, float[2] r, float[2] u) {{
              o = Add(a, p)
              r = Mul(o, q)
              u = Sub(p, q)
            }}
          >
        }}"""
    )
    s, z = np.array([1, 2], "float32"), X.T.copy() * 2
    found = mirstack.compile(mirstack.from_onnx(model), target)(s, X, z)
    state, rows, others = s, [], []
    for k in range(3):
        p, q = X[:, 2 - k], z[k]
        state = state + p
        rows.append(state * q)
        others.append(p - q)
    for each, wanted in zip(found, (state, np.stack(rows, 1), np.stack(others[::-1])), strict=True):
        np.testing.assert_array_equal(each, wanted)


def test_refusals() -> None:
    def refusal(text: str) -> str:
        with pytest.raises(mirstack.MirError) as error:
            mirstack.from_onnx(parsed(text))
        return str(error.value)

    ranks = BRANCHES.replace("b = Relu(x)", "b = ReduceSum<keepdims = 0>(x)")
    assert "If: output 0 has rank 2 in one branch and rank 0 in the other" in refusal(ranks)
    dtypes = BRANCHES.replace("b = Relu(x)", "b = Cast<to = 11>(x)")
    assert "If: output 0 has different dtypes in the branches" in refusal(dtypes)
    changed = GROWING.replace("Concat<axis = 0>(a, x)", "Cast<to = 11>(a)")
    assert "Loop: an iteration changes the rank or the dtype of a value that it carries" in refusal(changed)


SCANNED = """g (float[n, 256] x) => (float[256] l, float[n, 256] y) {
  z = Constant <value = float[1] {0.0}> () k = Constant <value = int64[1] {256}> () s = Expand (z, k)
  l, y = Scan <num_scan_inputs = 1, body = b (float[256] h, float[256] e) => (float[256] o, float[256] p) {
    o = Add (h, e) p = Identity (o) }> (s, x) }"""
ENDED = """g (int64 n, float[256] x) => (float[256] l, float[m, 256] y) {
  c = Constant <value = bool {1}> ()
  l, y = Loop <body = b (int64 i, bool d, float[256] h) => (bool e, float[256] o, float[256] p) {
    one = Constant <value_float = 1.0> () most = Constant <value_float = 700.0> ()
    o = Add (h, one) p = Identity (o) f = ReduceMax <keepdims = 0> (o) e = Less (f, most) }> (n, c, x) }"""


@pytest.mark.parametrize("text", [SCANNED, ENDED], ids=["Scan", "Loop"])
def test_rows_of_a_loop_are_not_copied_in_each_iteration(text: str) -> None:
    program: Any = mirstack.compile(mirstack.from_onnx(parsed(text)), specialize=False)
    taken: list[int] = []
    for n in (64, 512):
        ones = (np.ones((n, 256), "float32"),)
        arguments = ones if text == SCANNED else (np.array(n), np.zeros(256, "float32"))
        program(*arguments)
        last, rows = program(*arguments)
        np.testing.assert_array_equal(rows[:, 0], np.arange(1, n + 1))
        assert last[0] == n
        context = program._take_context()
        taken.append(context.arena)
        program._give_context(context)
    # All rows are 512 kB; a copy of the rows so far in each iteration would be 134 MB.
    assert taken[1] < 24 * 512 * 256 * 4 and taken[1] < 24 * taken[0]


@TARGETS
def test_a_loop_whose_length_the_compiler_finds(target: Any) -> None:
    model = parsed(
        """g (float[1] x, bool[1] c) => (float l, float[n] y) {
      k = NonZero (c) f = Reshape (k, m) e = Gather (x, f)
      l, y = Scan <num_scan_inputs = 1, body = b (float h, float v) => (float o, float r) {
        o = Add (h, v) r = Identity (o) }> (s, e) }""".replace(
            "(float l, float[n] y) {", "(float l, float[n] y) <int64[1] m = {-1}, float s = {-1.0}> {"
        )
    )
    check(model, target, np.ones(1, "float32"), np.array([True]))


@TARGETS
@pytest.mark.parametrize("trips", [0, 1, 2, 5, 699, 700, 701, 10_000_000_000])
def test_a_loop_ends_by_its_condition_or_its_number(target: Any, trips: int) -> None:
    text = ENDED.replace("700.0", "7.0") if target == "interp" else ENDED
    most = 7 if target == "interp" else 700
    program = mirstack.compile(mirstack.from_onnx(parsed(text.replace("256", "2"))), target)
    last, rows = program(np.array(trips), np.zeros(2, "float32"))
    wanted = np.arange(1, min(trips, most) + 1)
    np.testing.assert_array_equal(rows, np.stack([wanted, wanted], 1))
    np.testing.assert_array_equal(last, np.full(2, min(trips, most)))
