"""An `If` whose branches return other ranks: what follows is converted in each branch, or in the one that it fits."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

BOTH = """g (float[n, m] x, bool c) => (float[] y) {
  a = If <then_branch = then () => (t) { t = ReduceSum <keepdims = 0> (x, axes) },
          else_branch = otherwise () => (e) { e = Identity (x) }> (c)
  b = Relu (a)
  y = ReduceMax <keepdims = 0> (b)
}"""

ONE = """g (float[n, 3, l] x) => (float[?, ?] y) <int64[1] last = {-1}, int64[1] one = {1}, int64[1] place = {2}, float[2, 3, 1] w = {1, 2, 3, 4, 5, 6}> {
  sizes = Shape (x)
  size = Gather <axis = 0> (sizes, place)
  is_one = Equal (size, one)
  a = If <then_branch = then () => (t) { t = Squeeze (x, last) },
          else_branch = otherwise () => (e) { e = Identity (x) }> (is_one)
  b = Unsqueeze (a, last)
  c = Conv (b, w)
  y = Squeeze (c, last)
}"""


def parsed(text: str) -> Any:
    """Returns a model of ONNX' text."""
    return onnx.parser.parse_model(HEAD + text)


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_what_follows_is_in_both_branches(target: Any) -> None:
    graph = parsed(BOTH.replace("=> (float[] y)", "=> (float[] y) <int64[1] axes = {0}>"))
    compiled = mirstack.compile(mirstack.from_onnx(graph), target)
    x = np.array([[1, -5], [2, 1]], "float32")
    assert compiled(x, np.array(True)) == 3
    assert compiled(x, np.array(False)) == 2


def test_what_follows_fits_one_branch_only() -> None:
    mod = mirstack.from_onnx(parsed(ONE))
    assert "if (" not in mod.astext()
    compiled = mirstack.compile(mod)
    np.testing.assert_array_equal(compiled(np.array([[[1], [2], [3]]], "float32")), [[14, 32]])
    # The program itself cannot go on where the condition does not hold.
    with pytest.raises(mirstack.MirError):
        compiled(np.zeros((1, 3, 2), "float32"))


UNFIT = """g (float[n, 2] x, bool c) => (float[?, ?] y, float total) <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3, 3] v = {1, 0, 0, 0, 1, 0, 0, 0, 1}> {
  y, total = If <then_branch = then () => (t, s) { t = MatMul (x, w)  s = ReduceSum <keepdims = 0> (t) },
                 else_branch = otherwise () => (e, r) {
                   b = If <then_branch = deep () => (i) { p = MatMul (x, v)  i = Relu (p) },
                           else_branch = deeper () => (j) { q = MatMul (v, x)  j = Neg (q) }> (c)
                   e = Exp (b)
                   r = ReduceMax <keepdims = 0> (e)
                 }> (c)
}"""


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_a_branch_that_types_do_not_fit(target: Any) -> None:
    mod = mirstack.from_onnx(parsed(UNFIT), {"x": (4, 2)})
    assert "if (" not in mod.astext()
    compiled = mirstack.compile(mod, target)
    y, total = compiled(np.ones((4, 2), "float32"), np.array(True))
    np.testing.assert_array_equal(y, [[5, 7, 9]] * 4)
    assert total == 84
    with pytest.raises(mirstack.MirError, match="elements"):
        compiled(np.ones((4, 2), "float32"), np.array(False))


def test_neither_branch_fits() -> None:
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(parsed(UNFIT.replace("MatMul (x, w)", "MatMul (x, v)")), {"x": (4, 2)})
    assert str(error.value).count("MatMul: ") == 3


def test_ranks_that_never_agree() -> None:
    text = BOTH.replace("y = ReduceMax <keepdims = 0> (b)", "y = Identity (b)")
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(parsed(text.replace("=> (float[] y)", "=> (float[] y) <int64[1] axes = {0}>")))
    assert "error: If: output 0 has rank 1 in one branch and rank 2 in the other" in str(error.value)
