"""The builder of imported functions: which sizes it knows to be equal, and what shape arithmetic leaves behind."""

from __future__ import annotations

import numpy as np
from mirstack.frontends.common.graph_builder import GraphBuilder
from mirstack.frontends.common.open_sizes import OpenSize
from mirstack.parser import print_mir
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue


def text(b: GraphBuilder, result: SSAValue) -> str:
    """Returns the text of the finished function."""
    return print_mir(ModuleOp([b.finish_function("main", result)]))


def take(b: GraphBuilder, x: SSAValue, place: int) -> SSAValue:
    """Returns `shape_of(x)[place:place + 1]`, as exporters compute it."""
    return b.call("take", b.shape_tensor(x), b.integers([place]), axis=0)


def test_equal_names_are_equal_sizes() -> None:
    b = GraphBuilder()
    x, y = b.parameter("x", "float32", ["n", 3, None]), b.parameter("y", "float32", ["n", None])
    assert b.extents(x)[0] == b.extents(y)[0]
    assert b.extents(x)[1] == 3
    assert len({b.extents(x)[0], b.extents(x)[2], b.extents(y)[1]}) == 3


def test_results_have_the_sizes_of_their_arguments() -> None:
    b = GraphBuilder()
    x = b.parameter("x", "float32", ["n", "c", 8])
    n, c, _ = b.extents(x)
    assert b.extents(b.call("nn.relu", x)) == (n, c, 8)
    assert b.extents(b.call("transpose", x, axes=[2, 0, 1])) == (8, n, c)
    assert b.extents(b.call("sum", x, axis=[1], keepdims=True)) == (n, 1, 8)
    double = b.extents(b.call("concatenate", b.tuple([x, x]), axis=0))
    assert isinstance(double[0], OpenSize) and double[0] != n and double[1:] == (c, 8)
    assert b.extents(b.call("concatenate", b.tuple([x, x]), axis=0)) == double
    flat = b.extents(b.call("reshape", x, newshape=[-1, 8]))
    assert flat == b.extents(b.call("reshape", b.call("transpose", x, axes=[1, 0, 2]), newshape=[-1, 8]))


def test_shape_arithmetic_leaves_a_reshape() -> None:
    b = GraphBuilder()
    x = b.parameter("x", "float32", ["n", "s", 768])
    shape = b.call("concatenate", b.tuple([take(b, x, 0), take(b, x, 1), b.integers([12, 64])]), axis=0)
    assert b.elements(shape) == [*b.extents(x)[:2], 12, 64]
    done = text(b, b.reshape(x, shape))
    assert "reshape(%x, newshape=[0, 0, 12, 64])" in done and "shape_of" not in done


def test_products_of_sizes() -> None:
    b = GraphBuilder()
    x = b.parameter("x", "float32", ["n", "s", 8])
    rows = b.call("multiply", take(b, x, 0), take(b, x, 1))
    flat = b.reshape(x, b.call("concatenate", b.tuple([rows, b.integers([8])]), axis=0))
    assert b.elements(rows) == [b.extents(flat)[0]]
    assert "reshape(%x, newshape=[-1, 8])" in text(b, flat)


def test_sizes_that_cannot_be_told_stay_computed() -> None:
    b = GraphBuilder()
    x = b.parameter("x", "float32", ["n", "m"])
    n, m = take(b, x, 0), take(b, x, 1)
    # Either may be the smaller one, and the pair of them is not what is left of the elements.
    shape = b.call("concatenate", b.tuple([b.call("minimum", n, m), b.call("maximum", n, m)]), axis=0)
    assert "dyn.reshape" in text(b, b.reshape(x, shape))


def test_comparisons_of_sizes_are_not_decided() -> None:
    b = GraphBuilder()
    x = b.parameter("x", "float32", ["n"])
    size = b.shape_tensor(x)
    # No world has a size of 37, and yet n may be 37.
    assert b.array(b.call("equal", size, b.integers([37]))) is None
    assert b.array(b.call("greater", size, b.integers([1]))) is None
    # But no size is negative: exporters ask whether one is -1.
    np.testing.assert_array_equal(b.array(b.call("equal", size, b.integers([-1]))), [False])


def test_a_window_larger_than_small_images() -> None:
    b = GraphBuilder()
    x, y = b.parameter("x", "float32", ["n", 3, "h", "w"]), b.parameter("y", "float32", ["n", 3, "h", "w"])
    one, other = (b.call("nn.max_pool2d", each, pool_size=[20, 20], strides=[2, 2]) for each in (x, y))
    assert b.extents(one) == b.extents(other) and b.extents(one)[2] != b.extents(one)[3]
    assert b.elements(b.shape_tensor(one)) == list(b.extents(one))


def test_constants_are_folded() -> None:
    b = GraphBuilder()
    shape = b.call("concatenate", b.tuple([b.integers([2]), b.integers([-1])]), axis=0)
    x = b.parameter("x", "float32", [4, 3])
    done = text(b, b.reshape(x, shape))
    assert "reshape(%x, newshape=[2, 6])" in done and "meta[" not in done


def test_a_fixed_size_of_an_open_tensor_is_a_constant() -> None:
    b = GraphBuilder()
    x = b.parameter("x", "float32", ["n", 3])
    np.testing.assert_array_equal(b.array(take(b, x, 1)), [3])
    assert b.array(take(b, x, 0)) is None
