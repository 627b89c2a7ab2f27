"""TOPI's functions by its own names compute what `topi.testing` computes in numpy, which is written apart from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import te, tir, topi
from mirstack.api.contrib.pickle_memoize import memoize
from mirstack.api.topi import testing
from mirstack.api.topi.nn.utils import get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d, get_pad_tuple_generic
from mirstack.api.topi.utils import get_const_tuple

RNG = np.random.default_rng(3)


def random(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.uniform(-1, 1, shape).astype("float32")


def computed(call: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Returns the results of a function of tensors, interpreted."""
    tensors = [te.placeholder(a.shape, a.dtype.name, f"a{n}") for n, a in enumerate(arrays)]
    made = call(*tensors)
    results = made if isinstance(made, list) else [made]
    outs = [np.zeros(get_const_tuple(r.shape), r.dtype) for r in results]
    mirstack.build(te.create_prim_func([*tensors, *results]), target="interp")(*arrays, *outs)
    return outs


X, N = random(1, 4, 5, 6), random(1, 5, 6, 4)
W, D = random(3, 4, 3, 2), random(4, 2, 3, 2)
ROI = np.array([[0, 0.5, 0.2, 4.2, 3.6]], "float32")
G = random(4)
CASES: dict[str, tuple[Callable[..., Any], list[Any], Callable[..., Any]]] = {
    "conv2d_nchw": (
        lambda x, w: topi.nn.conv2d_nchw(x, w, (1, 2), "SAME", 1), [X, W],
        lambda x, w: testing.conv2d_nchw_python(x, w, (1, 2), "SAME"),
    ),
    "conv2d_nhwc": (
        lambda x, w: topi.nn.conv2d_nhwc(x, w, 2, (1, 0), 1), [N, random(3, 2, 4, 3)],
        lambda x, w: testing.conv2d_nhwc_python(x, w, 2, (1, 0)),
    ),
    "conv2d_hwcn": (
        lambda x, w: topi.nn.conv2d_hwcn(x, w, 1, "VALID", 1), [random(5, 6, 4, 2), random(3, 2, 4, 3)],
        lambda x, w: testing.conv2d_hwcn_python(x, w, 1, "VALID"),
    ),
    "group_conv2d_nchw": (
        lambda x, w: topi.nn.group_conv2d_nchw(x, w, 1, 1, 1, 2), [X, random(6, 2, 3, 3)],
        lambda x, w: testing.conv2d_nchw_python(x, w, 1, 1, 2),
    ),
    "depthwise_conv2d_nchw": (
        lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, 1, "SAME", 1), [X, D],
        lambda x, w: testing.depthwise_conv2d_python_nchw(x, w, 1, "SAME"),
    ),
    "depthwise_conv2d_nhwc": (
        lambda x, w: topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1), [N, random(3, 2, 4, 2)],
        lambda x, w: testing.depthwise_conv2d_python_nhwc(x, w, 1, 1),
    ),
    "depthwise_conv2d_backward_input_nhwc": (
        lambda f, g: topi.nn.depthwise_conv2d_backward_input_nhwc(f, g, (1, 3, 3, 2), (1, 5, 5, 2), 2, 1),
        [random(3, 3, 2, 1), random(1, 3, 3, 2)],
        lambda f, g: testing.depthwise_conv2d_python_nhwc(
            testing.dilate_python(g, (1, 2, 2, 1)), np.flip(f, (0, 1)), 1, 1
        ),
    ),
    "depthwise_conv2d_backward_weight_nhwc": (
        lambda x, g: topi.nn.depthwise_conv2d_backward_weight_nhwc(x, g, (1, 3, 3, 2), (3, 3, 2, 1), 1, 0),
        [random(1, 5, 5, 2), random(1, 3, 3, 2)],
        lambda x, g: np.stack([
            testing.conv2d_nchw_python(x[..., c][:, None], g[..., c][:, None], 1, 0)[0, 0] for c in range(2)
        ], -1)[..., None],
    ),
    "conv1d_ncw": (
        lambda x, w: topi.nn.conv1d_ncw(x, w, 1, (1,), 2), [random(2, 3, 9), random(4, 3, 3)],
        lambda x, w: testing.conv1d_ncw_python(x, w, 1, (1,), 2),
    ),
    "conv3d_ndhwc": (
        lambda x, w: topi.nn.conv3d_ndhwc(x, w, 1, "SAME", 1, 1), [random(1, 3, 3, 3, 2), random(2, 2, 2, 2, 3)],
        lambda x, w: testing.conv3d_ndhwc_python(x, w, 1, "SAME"),
    ),
    "conv2d_transpose_nchw": (
        lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, (2, 1), (1, 0, 0, 1), "float32", (1, 0)),
        [random(1, 2, 3, 4), random(2, 3, 3, 2)],
        lambda x, w: testing.conv2d_transpose_nchw_python(x, w, (2, 1), (1, 0, 0, 1), (1, 0)),
    ),
    "deformable_conv2d_nchw": (
        lambda x, o, w: topi.nn.deformable_conv2d_nchw(x, o, w, 1, 0, 1, 1, 1), [X, random(1, 12, 3, 5), W],
        lambda x, o, w: testing.deformable_conv2d_nchw_python(x, o, w, 1, 0, 1, 1, 1),
    ),
    "correlation_nchw": (
        lambda x, y: topi.nn.correlation_nchw(x, y, 1, 1, 1, 1, 1, True), [X, random(1, 4, 5, 6)],
        lambda x, y: testing.correlation_nchw_python(x, y, 1, 1, 1, 1, 1, True),
    ),
    "pool2d": (
        lambda x: topi.nn.pool2d(x, (2, 3), (2, 2), (1, 1), (1, 1, 0, 1), "avg", True, "NCHW", False), [X],
        lambda x: testing.poolnd_python(x, (2, 3), (2, 2), (1, 1), (1, 1), (0, 1), "avg", False, True),
    ),
    "pool_grad": (
        lambda g, x: topi.nn.pool_grad(g, x, (2, 2), (1, 2), (0, 0, 0, 0), "max"), [random(1, 4, 4, 3), X],
        lambda g, x: testing.pool_grad_nchw(x, g, (2, 2), (1, 2), (0, 0), "max", False),
    ),
    "global_pool": (lambda x: topi.nn.global_pool(x, "max"), [X], lambda x: x.max((2, 3), keepdims=True)),
    "adaptive_pool": (
        lambda x: topi.nn.adaptive_pool(x, (2, 4), "avg"), [X], lambda x: testing.adaptive_pool(x, (2, 4), "avg", "NCHW")
    ),
    "rms_norm": (
        lambda x, g: topi.nn.rms_norm(x, g, 1), [X, G], lambda x, g: testing.rms_norm_python(x, g, 1)
    ),
    "batch_norm": (
        lambda x, g, b, m, v: topi.nn.batch_norm(x, g, b, m, v, 1, 0.01, True, False, True, 0.2),
        [X, G, random(4), random(4), random(4)],
        lambda x, g, b, m, v: testing.batch_norm(x, g, b, m, v, 1, 0.01, True, False, True, 0.2),
    ),
    "sparse_dense_sp_rhs": (
        topi.nn.sparse_dense_sp_rhs,
        [random(2, 3), np.array([2, 3, 5], "float32"), np.array([0, 2, 1], "int32"), np.array([0, 2, 3], "int32")],
        lambda x, *_: x @ np.array([[2, 0, 3], [0, 5, 0]], "float32").T,
    ),
    "binary_dense": (
        lambda x, y: topi.nn.binary_dense(topi.nn.binarize_pack(x), topi.nn.binarize_pack(y)),
        [random(2, 64), random(3, 64)],
        lambda x, y: np.where(x >= 0, 1, -1) @ np.where(y >= 0, 1, -1).T.astype("float32"),
    ),
    "scale_shift_nchw": (
        topi.nn.scale_shift_nchw, [X, G, G], lambda x, g, b: x * g[:, None, None] + b[:, None, None]
    ),
    "tensordot": (lambda x, y: topi.tensordot(x, y, ((1, 3), (1, 3))), [X, X], lambda x, y: np.tensordot(x, y, ((1, 3), (1, 3)))),
    "collapse_sum": (lambda x: topi.collapse_sum(x, (5, 1)), [X], lambda x: x.sum((0, 1, 3))[:, None]),
    "expand_like": (
        lambda x, like: topi.expand_like(x, like, (1, 2)), [random(1, 4), random(1, 5, 6, 4)],
        lambda x, like: np.broadcast_to(x[:, None, None], like.shape),
    ),
    "arange": (lambda _: topi.arange(1, 8, 3, "int32"), [G], lambda _: np.array([1, 4, 7])),
    "elemwise_sum": (lambda x, y: topi.elemwise_sum([x, y, x]), [X, X], lambda x, y: x + y + x),
    "upsampling": (
        lambda x: topi.nn.upsampling(x, 2, 3), [X], lambda x: testing.upsampling_python(x, (2, 3))
    ),
    "roi_align_nchw": (
        lambda x, r: topi.vision.rcnn.roi_align_nchw(x, r, 2, 1.0, "avg", 2), [X, ROI],
        lambda x, r: testing.roi_align_nchw_python(x, r, 2, 1.0, 2),
    ),
    "roi_pool_nchw": (
        lambda x, r: topi.vision.roi_pool_nchw(x, r, 2, 1.0), [X, ROI],
        lambda x, r: testing.roi_pool_nchw_python(x, r, 2, 1.0),
    ),
    "grid_sample": (
        lambda x, g: topi.image.grid_sample(x, g, "bilinear"), [X, random(1, 2, 3, 3)], testing.grid_sample_python
    ),
    "crop_and_resize": (
        lambda x, b, i: topi.image.crop_and_resize(x, b, i, (3, 2), "NCHW"),
        [X, np.array([[0.1, 0.2, 0.9, 0.8]], "float32"), np.zeros(1, "int32")],
        lambda x, b, i: testing.crop_and_resize_python(x, b, i, (3, 2), "NCHW"),
    ),
    "reorg": (lambda x: topi.vision.reorg(x, 2), [random(1, 4, 4, 4)], lambda x: testing.reorg_python(x, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, arrays, reference = CASES[name]
    wanted = reference(*arrays)
    found = computed(function, *arrays)
    for one, other in zip(found, wanted if isinstance(wanted, list) else [wanted], strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_sizes_that_are_variables_stay() -> None:
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), name="A")
    assert topi.exp(A).shape == (m, n) and topi.nn.relu(A).op.tag == topi.tag.ELEMWISE
    assert topi.sum(A, axis=1).op.tag == topi.tag.COMM_REDUCE and topi.tag.is_injective("broadcast,x")
    assert str(topi.add(m, 2)) == str(m + 2) and isinstance(topi.equal(m, n), tir.PrimExpr)


def test_generic_schedules() -> None:
    A = te.placeholder((4, 6), name="A")
    B = topi.nn.relu(topi.add(A, A))
    schedule = testing.get_elemwise_schedule("llvm")(B)
    assert [stage.attach_type for stage in schedule.stages] == [1, 2, 1]
    assert isinstance(topi.x86.schedule_softmax([topi.x86.softmax(A)]), te.Schedule)
    assert testing.dispatch("llvm", {"generic": 1, "cpu": 2}) == 2 and testing.dispatch("c", {"generic": 1}) == 1
    plain = te.create_schedule(B.op)
    visited: list[str] = []
    topi.utils.traverse_inline(plain, B.op, lambda op: visited.append(op.name))
    assert len(visited) == 2 and plain[B.op.input_tensors[0]].attach_type == 2
    with pytest.raises(AttributeError, match="no attribute 'schedule_softmx'; did you mean 'schedule_softmax'"):
        topi.generic.schedule_softmx  # noqa: B018


def test_what_pools_and_winograd_refuse() -> None:
    A = te.placeholder((1, 4, 6, 6), name="A")
    with pytest.raises(ValueError, match="pool_type is 'max' or 'avg', not 'mean'"):
        topi.nn.global_pool(A, "mean")
    with pytest.raises(TypeError, match="takes weights as they are here"):
        topi.nn.conv2d_winograd_nchw(A, te.placeholder((2, 4, 3, 3)), 1, 1, 1, None, True)


def test_padding_and_sizes() -> None:
    assert get_pad_tuple("SAME", (3, 2)) == (1, 1, 1, 0) and get_pad_tuple((1, 2), (3, 3)) == (1, 2, 1, 2)
    assert get_pad_tuple1d((2,), (3,)) == (2, 2) and get_pad_tuple3d(1, (3, 3, 3)) == (1,) * 6
    assert get_pad_tuple_generic((1, 2, 3, 4), (3, 3)) == ([1, 2], [3, 4])
    with pytest.raises(ValueError, match="padding has 2 numbers or 4, not 3"):
        get_pad_tuple((1, 2, 3), (3, 3))
    n = te.var("n")
    assert get_const_tuple((te.const(3), n, te.const(2) * 4)) == (3, n, 8)
    assert topi.utils.get_const_int(te.const(3) + 1) == 4 and topi.utils.get_const_float(te.const(0.5)) == 0.5
    with pytest.raises(mirstack.MirError, match="'n' is not a constant integer"):
        topi.utils.get_const_int(n)
    with pytest.raises(mirstack.MirError, match="'n' is not a constant float"):
        topi.utils.get_const_float(n)
    assert topi.utils.get_max_power2_factor(48) == 16 and topi.utils.ceil_div(7, 2) == 4
    assert (
        topi.utils.is_empty_shape((3, 0))
        and topi.utils.prod((2, 3)) == 6
        and topi.utils.swap((1, 2, 3), 0) == [3, 2, 1]
    )


def test_memoized_functions_are_called_once() -> None:
    calls: list[int] = []
    once = memoize("key")(lambda value: calls.append(value) or value)
    assert [once(1), once(1), once(2)] == [1, 1, 2] and calls == [1, 2]
