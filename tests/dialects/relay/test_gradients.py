"""Every gradient of the operator table against central differences of the interpreter's results."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pytest
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.gradient import all_gradients, gradient
from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.relay.layouts import layout_rule, layout_rule_of
from mirstack.dialects.relay.operator import all_operators, get_operator, operator_class
from mirstack.dialects.relay.operators.common.gradients import WITHOUT, why_not
from mirstack.dialects.relay.operators.common.relations import tensor_type
from mirstack.fuzz.operators.relation import type_of
from mirstack.fuzz.operators.uses import uses_of
from mirstack.parser import parse_mir
from mirstack.passes.relay.training.first_order_gradient import FirstOrderGradient
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Block, Region, SSAValue

NARROW = ("asin", "acos", "atanh")
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "acosh", "power")
UNARY = (
    "exp", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
    "asinh", "acosh", "atanh", "erf", "sigmoid", "negative", "copy", "floor", "ceil", "round", "nearbyint", "trunc", "sign", "abs",
    "nn.relu", "nn.softmax", "nn.log_softmax", "nn.batch_flatten", "transpose", "zeros_like", "ones_like",
)  # fmt: skip
BROADCAST = ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")
COMPARE = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
LOGIC = ("logical_and", "logical_or", "logical_xor")
X = "%x: Tensor[(2, 3), float64]"
INDEX = "stack((2, 0, 1), axis=0)"
ROWS = "reshape(stack((2, 0, 1, 2), axis=0), newshape=[2, 2])"
PLACES = "stack((2, 3), axis=0)"
SHAPE = "stack((2i64, 3i64), axis=0)"
KEY = 'zeros(shape=[10], dtype="uint64")'

# (operators that it covers, parameters, body); values are drawn for each parameter.
CASES: dict[str, tuple[str, str]] = {
    **{name: (X, f"{name}(%x)") for name in UNARY},
    **{name: (f"{X}, %y: Tensor[(4, 1, 3), float64]", f"{name}(%x, %y)") for name in BROADCAST},
    **{name: (f"{X}, %y: Tensor[(3), float64]", f'cast({name}(%x, %y), dtype="float64")') for name in COMPARE},
    **{name: (X, f'cast({name}(less(%x, 0f64), less(%x, 1f64)), dtype="float64")') for name in LOGIC},
    "logical_not": (X, 'cast(logical_not(less(%x, 0f64)), dtype="float64")'),
    "nn.leaky_relu": (X, "nn.leaky_relu(%x, alpha=0.1f)"),
    "clip": (X, "clip(%x, a_min=-0.5f, a_max=0.7f)"),
    "cast": (X, 'cast(cast(%x, dtype="float32"), dtype="float64")'),
    "cast_like": (f"{X}, %y: Tensor[(2), float64]", "cast_like(%x, %y)"),
    "zeros": (X, 'multiply(%x, add(zeros(shape=[3], dtype="float64"), %x))'),
    "ones": (X, 'multiply(%x, ones(shape=[3], dtype="float64"))'),
    "arange": ("%start: float64, %step: float64", 'arange(%start, 5f64, add(%step, 2f64), dtype="float64")'),
    "full": ("%x: float64", 'full(%x, shape=[2, 3], dtype="float64")'),
    "full_like": (f"{X}, %y: float64", "full_like(%x, %y)"),
    "where": (f"{X}, %y: Tensor[(3), float64]", "where(less(%x, 0f64), %x, %y)"),
    "collapse_sum_like": (f"{X}, %y: Tensor[(3), float64]", "collapse_sum_like(%x, %y)"),
    "broadcast_to_like": (f"{X}, %y: Tensor[(4, 2, 3), float64]", "broadcast_to_like(%x, %y)"),
    "broadcast_to": (X, "broadcast_to(%x, shape=[4, 2, 3])"),
    "sum": (X, "multiply(sum(%x, axis=[0]), sum(%x, axis=[0], exclude=True, keepdims=True))"),
    "mean": (X, "multiply(mean(%x, axis=[-1], keepdims=True), mean(%x))"),
    "max": (X, "max(%x, axis=[1])"),
    "min": (X, "min(%x, axis=[0, 1], keepdims=True)"),
    "reshape": (X, "multiply(reshape(%x, newshape=[3, 2]), 2f64)"),
    "reshape_like": (f"{X}, %y: Tensor[(6), float64]", "reshape_like(%x, %y)"),
    "squeeze": ("%x: Tensor[(2, 1, 3), float64]", "squeeze(%x, axis=[1])"),
    "expand_dims": (X, "expand_dims(%x, axis=1)"),
    "transpose with axes": ("%x: Tensor[(2, 3, 4), float64]", "transpose(%x, axes=[2, 0, -2])"),
    "concatenate": (f"{X}, %y: Tensor[(2, 1), float64]", "concatenate((%x, %y, multiply(%x, %x)), axis=-1)"),
    "concatenate one": (X, "concatenate((%x,), axis=0)"),
    "split": ("%x: Tensor[(2, 6), float64]", "%0 = split(%x, indices_or_sections=[1, 3], axis=1); (%0.2, exp(%0.0))"),
    "tuple in, tuple out": (
        "%t: (Tensor[(2), float64], Tensor[(3), float64])",
        "%0 = (%t.1, (%t, %t.0)); (%0.0, multiply(%0.1.1, %0.1.0.0))",
    ),
    "nn.bias_add": (f"{X}, %y: Tensor[(2), float64]", "nn.bias_add(%x, %y, axis=0)"),
    "nn.dense": (f"{X}, %y: Tensor[(4, 3), float64]", "nn.dense(%x, %y)"),
    "nn.dense of a vector": ("%x: Tensor[(3), float64], %y: Tensor[(4, 3), float64]", "nn.dense(%x, %y)"),
    "nn.dense of matrices": ("%x: Tensor[(2, 2, 3), float64], %y: Tensor[(4, 3), float64]", "nn.dense(%x, %y)"),
    "nn.cross_entropy": (f"{X}, %y: Tensor[(2, 3), float64]", "nn.cross_entropy(exp(%x), %y)"),
    "nn.cross_entropy_with_logits": (f"{X}, %y: Tensor[(2, 3), float64]", "nn.cross_entropy_with_logits(%x, %y)"),
    "nn.conv2d": (
        "%x: Tensor[(1, 2, 5, 6), float64], %w: Tensor[(4, 1, 3, 2), float64]",
        "nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2], groups=2, channels=4, kernel_size=[3, 2])",
    ),
    "nn.conv2d of several filters a channel": (
        "%x: Tensor[(1, 2, 4, 4), float64], %w: Tensor[(2, 3, 2, 2), float64]",
        "nn.conv2d(%x, %w, groups=2, channels=6, kernel_size=[2, 2])",
    ),
    "nn.max_pool2d": ("%x: Tensor[(1, 2, 5, 6), float64]", "nn.max_pool2d(%x, pool_size=[2, 3], strides=[2, 1])"),
    "nn.avg_pool2d": (
        "%x: Tensor[(1, 2, 5, 6), float64]",
        "nn.avg_pool2d(%x, pool_size=[2, 3], strides=[2, 1], padding=[1, 1, 0, 0])",
    ),
    "nn.global_avg_pool2d": ("%x: Tensor[(1, 2, 3, 4), float64]", "nn.global_avg_pool2d(%x)"),
    **{name: (X, f"{name}(%x)") for name in ("fast_exp", "fast_tanh", "fast_erf", "nn.fast_softmax")},
    **{
        name: (X, f"multiply(%x, {name}(%x))")
        for name in (
            "annotation.checkpoint", "annotation.stop_fusion", "annotation.bitpack_start", "annotation.bitpack_end",
        )
    },
    **{
        name: (X, f'multiply(%x, {name}(%x, compiler="c"))')
        for name in ("annotation.compiler_begin", "annotation.compiler_end")
    },
    **{
        name: (X, f'multiply(%x, cast({name}(%x), dtype="float64"))')
        for name in ("isfinite", "isinf", "isnan", "argmax", "argmin", "argsort", "ndarray_size")
    },
    **{name: (X, f'multiply(sum(%x), cast(sum({name}(%x)), dtype="float64"))') for name in ("shape_of", "vm.shape_of", "argwhere")},
    **{name: (X, f'multiply(%x, cast({name}(less(%x, 0f64)), dtype="float64"))') for name in ("all", "any")},
    **{
        name: (X, f'multiply(%x, cast({name}(cast(multiply(%x, 4f64), dtype="int32"), 3), dtype="float64"))')
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
    },
    "bitwise_not": (X, 'multiply(%x, cast(bitwise_not(cast(multiply(%x, 4f64), dtype="int32")), dtype="float64"))'),
    "searchsorted": (X, 'multiply(%x, cast(searchsorted(sort(%x), %x), dtype="float64"))'),
    "unravel_index": (X, f'multiply(sum(%x), cast(unravel_index({INDEX}, {PLACES}), dtype="float64"))'),
    "invert_permutation": ("%x: Tensor[(3), float64]", f'multiply(%x, cast(invert_permutation({INDEX}), dtype="float64"))'),
    "vision.multibox_prior": ("%x: Tensor[(1, 1, 2, 2), float64]", "multiply(sum(%x), cast(vision.multibox_prior(cast(%x, dtype=\"float32\"), clip=False), dtype=\"float64\"))"),
    "device_copy": (X, 'multiply(%x, device_copy(%x, src_virtual_device=VirtualDevice(device_type=1, virtual_device_id=0), dst_virtual_device=VirtualDevice(device_type=1, virtual_device_id=0)))'),
    "on_device": (X, "multiply(%x, on_device(%x, virtual_device=VirtualDevice(device_type=1, virtual_device_id=0)))"),
    **{name: (f"{X}, %y: Tensor[(3), float64]", f"multiply(%x, {name}(%x, add(%y, 3f64)))") for name in ("floor_divide", "trunc_divide")},
    **{name: (f"{X}, %y: Tensor[(3), float64]", f"{name}(multiply(%x, 7f64), add(%y, 3f64))") for name in ("floor_mod", "mod", "trunc_mod")},
    "ewise_fma": (f"{X}, %y: Tensor[(2, 3), float64], %z: Tensor[(2, 3), float64]", "ewise_fma(%x, %y, %z)"),
    "dyn.zeros": (X, f'multiply(%x, add(dyn.zeros({SHAPE}, shape=None, dtype="float64"), %x))'),
    "dyn.ones": (X, f'multiply(%x, dyn.ones({SHAPE}, shape=None, dtype="float64"))'),
    "dyn.full": ("%x: float64", f'dyn.full(%x, {SHAPE}, shape=None, dtype="float64")'),
    "dyn.broadcast_to": ("%x: Tensor[(3), float64]", f"dyn.broadcast_to(%x, {SHAPE}, shape=None)"),
    "collapse_sum_to": (X, "collapse_sum_to(%x, stack((1, 3), axis=0), shape=[1, 3])"),
    "dyn.reshape": (X, "dyn.reshape(%x, stack((3, 2), axis=0), newshape=None)"),
    "dyn.squeeze": ("%x: Tensor[(2, 1, 3), float64]", "dyn.squeeze(%x, stack((1,), axis=0), axis=None)"),
    "dyn.expand_dims": (X, "dyn.expand_dims(%x, 1, num_newaxis=1)"),
    "contrib_reverse_reshape": (X, "contrib_reverse_reshape(%x, newshape=[3, -1])"),
    "vm.reshape_tensor": (X, "vm.reshape_tensor(%x, stack((3i64, 2i64), axis=0), newshape=[3, 2])"),
    "meshgrid": ("%x: Tensor[(2), float64], %y: Tensor[(3), float64]", '%0 = meshgrid((%x, %y), indexing="ij"); multiply(%0.0, %0.1)'),
    "meshgrid xy": ("%x: Tensor[(2), float64], %y: Tensor[(3), float64]", '%0 = meshgrid((%x, %y, %x), indexing="xy"); multiply(multiply(%0.0, %0.1), %0.2)'),
    "einsum": (f"{X}, %y: Tensor[(4, 3), float64]", 'einsum((%x, %y, %x), equation="ij,kj,il->ikl")'),
    "einsum to a number": (f"{X}, %y: Tensor[(3), float64]", 'einsum((%x, %y), equation="ij, j ->")'),
    "einsum of sums": (f"{X}, %y: Tensor[(3), float64]", 'einsum((%x, %y), equation="ij,k->k")'),
    "variance": (X, "variance(%x, mean(%x, axis=[1], keepdims=True), axis=[1])"),
    "variance unbiased": (f"{X}, %m: Tensor[(1, 1), float64]", "variance(%x, %m, keepdims=True, unbiased=True)"),
    "prod": ("%x: Tensor[(2, 3, 2), float64]", "prod(floor(multiply(%x, 1f64)), axis=[0]), prod(%x, axis=[0, -1]), prod(nn.relu(%x), axis=[1], keepdims=True)".join(("(", ")"))),
    "cumsum": (X, "(cumsum(%x, axis=1), cumsum(%x), cumsum(%x, axis=-2, exclusive=True))"),
    "stack": (f"{X}, %y: Tensor[(2, 3), float64]", "multiply(stack((%x, %y, %x), axis=-1), stack((%x, %y, %x), axis=2))"),
    "stack one": (X, "stack((%x,), axis=1)"),
    "take": (X, f"(take(%x, {INDEX}, axis=1), take(%x, {INDEX}), take(%x, {INDEX}, axis=0, mode=\"wrap\"))"),
    "gather": (X, f"gather(%x, {ROWS}, axis=1)"),
    "gather_nd": (X, f"gather_nd(%x, stack(({INDEX}, {INDEX}), axis=0))".replace(f"stack(({INDEX}, {INDEX})", f"stack((bitwise_and({INDEX}, 1), {INDEX})")),
    "strided_slice": (X, "(strided_slice(%x, begin=[1, -1], end=[2, -4], strides=[1, -2]), strided_slice(%x, begin=[1], end=[2], slice_mode=\"size\", axes=[1]))"),
    "dyn.strided_slice": (X, "dyn.strided_slice(%x, stack((0, 1), axis=0), stack((2, 3), axis=0), stack((1, 1), axis=0), begin=None, end=None, strides=None)"),
    "slice_like": (f"{X}, %y: Tensor[(1, 2), float64]", "slice_like(%x, %y)"),
    "tile": (X, "tile(%x, reps=[2, 1, 2])"),
    "dyn.tile": (X, "dyn.tile(%x, stack((2, 2), axis=0), reps=None)"),
    "repeat": (X, "(repeat(%x, repeats=2, axis=1), repeat(%x, repeats=3))"),
    "reverse": (X, "multiply(%x, reverse(%x, axis=1))"),
    "reverse_sequence": (X, "multiply(%x, reverse_sequence(%x, stack((1, 2), axis=0), seq_axis=1, batch_axis=0))"),
    "sliding_window": (X, "sliding_window(%x, axis=0, window_shape=[2, 2], strides=[1, 1])"),
    "trilu": (X, "multiply(%x, trilu(%x, 0i64, upper=True))"),
    "layout_transform": ("%x: Tensor[(1, 4, 2, 2), float64]", 'layout_transform(%x, src_layout="NCHW", dst_layout="NCHW2c")'),
    "nn.space_to_depth": ("%x: Tensor[(1, 1, 4, 2), float64]", "exp(nn.space_to_depth(%x, block_size=2))"),
    "nn.depth_to_space": ("%x: Tensor[(1, 4, 1, 2), float64]", "exp(nn.depth_to_space(%x, block_size=2))"),
    "vision.yolo_reorg": ("%x: Tensor[(1, 4, 2, 2), float64]", "exp(vision.yolo_reorg(%x, stride=2))"),
    "nn.space_to_batch_nd": (X, "nn.space_to_batch_nd(%x, block_shape=[2], paddings=[[1, 0]], pad_value=2f)".replace("paddings=[[1, 0]]", "paddings=[[0, 1]]")),
    "nn.batch_to_space_nd": (X, "nn.batch_to_space_nd(%x, block_shape=[2], crops=[[1, 1]])"),
    "nn.mirror_pad": (X, "multiply(nn.mirror_pad(%x, pad_width=[[1, 1], [0, 2]]), 3f64)"),
    "nn.pad": (f"{X}, %p: float64", "(nn.pad(%x, %p, pad_width=[[1, 0], [0, 2]]), nn.pad(%x, %p, pad_width=[[0, 0], [1, 2]], pad_mode=\"edge\"))"),
    "dyn.nn.pad": (f"{X}, %p: float64", 'dyn.nn.pad(%x, reshape(stack((1, 0, 0, 2), axis=0), newshape=[2, 2]), %p)'),
    "nn.dilate": (X, "nn.dilate(%x, strides=[2, 3], dilation_value=1.5f)"),
    "nn.fifo_buffer": (f"{X}, %y: Tensor[(2, 4), float64]", "exp(nn.fifo_buffer(%x, %y, axis=1))"),
    "sequence_mask": (X, "sequence_mask(%x, stack((1, 0, 2), axis=0), mask_value=2f)"),
    "strided_set": (f"{X}, %v: Tensor[(1, 3), float64]", "strided_set(%x, %v, stack((1, 0), axis=0), stack((2, 3), axis=0), stack((1, 1), axis=0))"),
    "matrix_set_diag": (f"{X}, %v: Tensor[(2), float64]", "exp(matrix_set_diag(%x, %v))"),
    "nn.upsampling": ("%x: Tensor[(1, 1, 2, 2), float64]", "nn.upsampling(%x, scale_h=2, scale_w=3)"),
    "nn.upsampling3d": ("%x: Tensor[(1, 1, 1, 2, 2), float64]", "nn.upsampling3d(%x, scale_d=2, scale_h=2, scale_w=1)"),
    "dyn.nn.upsampling": ("%x: Tensor[(1, 1, 2, 2), float64]", "dyn.nn.upsampling(%x, 2f, 3f)"),
    "dyn.nn.upsampling3d": ("%x: Tensor[(1, 1, 1, 2, 2), float64]", "dyn.nn.upsampling3d(%x, 2f, 2f, 1f)"),
    "adv_index": (X, f"adv_index((%x, bitwise_and({INDEX}, 1), {INDEX}))"),
    "sparse_to_dense": ("%v: Tensor[(2), float64], %d: float64", "exp(sparse_to_dense(stack((3, 1), axis=0), %v, %d, output_shape=[5]))"),
    "dyn.sparse_to_dense": ("%v: Tensor[(2), float64], %d: float64", "exp(dyn.sparse_to_dense(stack((3, 1), axis=0), %v, %d, stack((5,), axis=0)))"),
    "sort": (X, "multiply(%x, sort(%x, axis=1, is_ascend=False))"),
    "topk": (X, '%0 = topk(%x, k=2, ret_type="both"); (exp(%0.0), topk(%x, k=1, axis=0, ret_type="values"), multiply(%0.0, cast(topk(%x, k=2, ret_type="indices"), dtype="float64")))'),
    "dyn.topk": (X, 'dyn.topk(%x, 2, ret_type="values")'),
    "one_hot": ("%a: float64, %b: float64", f'one_hot({INDEX}, %a, %b, depth=2, axis=0, dtype="float64")'),
    "dyn.one_hot": ("%a: float64, %b: float64", f'dyn.one_hot({INDEX}, %a, %b, 4, dtype="float64")'),
    "scatter_nd": (f"{X}, %u: Tensor[(3), float64]", f"(scatter_nd(%x, stack((bitwise_and({INDEX}, 1), {INDEX}), axis=0), %u, mode=\"add\"), exp(scatter_nd(%x, stack((bitwise_and({INDEX}, 1), {INDEX}), axis=0), %u)))"),
    "scatter_elements": (
        f"{X}, %u: Tensor[(2, 2), float64]",
        f'(scatter_elements(%x, {ROWS}, %u, axis=1, reduction="add"), exp(scatter_elements(%x, {ROWS}, %u, axis=1)))',
    ),
    "nn.conv1d": ("%x: Tensor[(1, 4, 6), float64], %w: Tensor[(2, 2, 3), float64]", "nn.conv1d(%x, %w, strides=[2], padding=[1, 2], dilation=[1], groups=2)"),
    "nn.conv3d": (
        "%x: Tensor[(1, 2, 3, 4, 5), float64], %w: Tensor[(2, 2, 2, 2, 2), float64]",
        "nn.conv3d(%x, %w, strides=[1, 2, 1], padding=[0, 1, 0, 1, 0, 1], dilation=[1, 1, 2])",
    ),
    "nn.conv1d_transpose": (
        "%x: Tensor[(1, 4, 3), float64], %w: Tensor[(4, 1, 3), float64]",
        "nn.conv1d_transpose(%x, %w, strides=[2], padding=[1, 0], output_padding=[1], groups=2, channels=2, kernel_size=[3])",
    ),
    "nn.conv2d_transpose": (
        "%x: Tensor[(1, 2, 3, 4), float64], %w: Tensor[(2, 3, 3, 2), float64]",
        "nn.conv2d_transpose(%x, %w, strides=[2, 1], padding=[1, 0, 2, 1], output_padding=[1, 0], channels=3, kernel_size=[3, 2])",
    ),
    "nn.conv3d_transpose": (
        "%x: Tensor[(1, 2, 2, 2, 3), float64], %w: Tensor[(2, 1, 2, 2, 2), float64]",
        "nn.conv3d_transpose(%x, %w, strides=[2, 1, 1], padding=[0, 1, 0, 1, 0, 0], channels=1, kernel_size=[2, 2, 2])",
    ),
    "nn.max_pool1d": ("%x: Tensor[(1, 2, 6), float64]", "nn.max_pool1d(%x, pool_size=[3], strides=[2], padding=[1, 0])"),
    "nn.avg_pool1d": ("%x: Tensor[(1, 2, 6), float64]", "nn.avg_pool1d(%x, pool_size=[3], strides=[2], padding=[1, 0], count_include_pad=True)"),
    **{
        f"nn.global_{kind}_pool{rank}d": (f"%x: Tensor[(1, 2, {', '.join('23'[n % 2] for n in range(rank))}), float64]", f"nn.global_{kind}_pool{rank}d(%x)")
        for kind, rank in (("avg", 1), ("avg", 3), ("max", 1), ("max", 2), ("max", 3))
    },
    **{
        f"nn.adaptive_{kind}_pool{rank}d": (f"%x: Tensor[(1, 2, {', '.join('46'[n % 2] for n in range(rank))}), float64]", f"nn.adaptive_{kind}_pool{rank}d(%x, output_size={[2, 3, 1][:rank]})")
        for kind in ("avg", "max")
        for rank in (1, 2, 3)
    },
    "nn.layer_norm": (f"{X}, %g: Tensor[(3), float64], %b: Tensor[(3), float64]", "exp(nn.layer_norm(%x, %g, %b))"),
    "nn.layer_norm without scale": (f"{X}, %g: Tensor[(2), float64], %b: Tensor[(2), float64]", "exp(nn.layer_norm(%x, %g, %b, axis=0, center=False, scale=False))"),
    "nn.instance_norm": ("%x: Tensor[(2, 2, 3), float64], %g: Tensor[(2), float64], %b: Tensor[(2), float64]", "exp(nn.instance_norm(%x, %g, %b))"),
    "nn.group_norm": ("%x: Tensor[(1, 4, 3), float64], %g: Tensor[(4), float64], %b: Tensor[(4), float64]", "exp(nn.group_norm(%x, %g, %b, num_groups=2))"),
    "nn.batch_norm": (
        "%x: Tensor[(2, 2, 3), float64], %g: Tensor[(2), float64], %b: Tensor[(2), float64], %m: Tensor[(2), float64], %v: Tensor[(2), float64]",
        "%0 = nn.batch_norm(%x, %g, %b, %m, add(multiply(%v, %v), 1f64)); (exp(%0.0), %0.1, multiply(%0.2, %0.2))",
    ),
    "nn.l2_normalize": (X, "(nn.l2_normalize(%x, eps=0.001f, axis=[1]), nn.l2_normalize(%x, eps=100f))"),
    "nn.lrn": ("%x: Tensor[(1, 4, 2, 2), float64]", "nn.lrn(%x, size=3, alpha=0.5f, bias=1f)"),
    "nn.prelu": (f"{X}, %a: Tensor[(3), float64]", "nn.prelu(%x, %a)"),
    "nn.dropout": (X, "%0 = nn.dropout(%x); multiply(%x, %0.0)"),
    **{
        f"nn.nll_loss {reduction}": (
            f"{X}, %w: Tensor[(3), float64]",
            f'nn.nll_loss(%x, stack((2, 0), axis=0), add(%w, 3f64), reduction="{reduction}", ignore_index={ignored})',
        )
        for reduction, ignored in (("mean", -100), ("sum", 0), ("none", -100))
    },
    "random.normal": ("%m: float64, %s: float64", f'%0 = random.normal({KEY}, cast(%m, dtype="float32"), cast(add(%s, 3f64), dtype="float32"), out_shape=[2, 3]); %0.1'),
    "random.uniform": ("%m: float64, %s: float64", f'%0 = random.uniform({KEY}, cast(%m, dtype="float32"), cast(add(%s, 3f64), dtype="float32"), out_shape=[2, 3]); %0.1'),
    **{
        f"{name} {a} {b}": (
            f"%x: Tensor[({batch}{'3, 2' if a else '2, 3'}), float64], %y: Tensor[({batch}{'4, 3' if b else '3, 4'}), float64]",
            f"{name}(%x, %y, transpose_a={a}, transpose_b={b})",
        )
        for name, batch in (("nn.matmul", ""), ("nn.batch_matmul", "2, "))
        for a in (False, True)
        for b in (False, True)
    },
}  # fmt: skip


def test_every_gradient_has_a_case() -> None:
    # Other tests of the process may have registered operators of their own.
    assert {name.split(" ")[0] for name in CASES} >= set(all_gradients()) & set(all_operators())


def test_every_operator_has_a_gradient_or_a_reason() -> None:
    without = {name for name in all_operators() if why_not(name)}
    assert without == set(all_operators()) - set(all_gradients())
    listed = [name for names in WITHOUT.values() for name in names]
    assert all(any(fnmatchcase(name, pattern) for name in without) for pattern in listed)


def test_a_second_gradient_or_layout_rule_of_an_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="the gradient of exp is defined twice"):
        gradient("exp")(all_gradients()["exp"])
    exp = get_operator("exp")
    assert exp is not None
    rule = layout_rule_of(exp)
    assert rule is not None
    with pytest.raises(ValueError, match="the layout rule of exp is defined twice"):
        layout_rule("exp")(rule)


def draw(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Any:
    values = rng.uniform(-1.4, 1.4, shape)
    if name in NARROW:
        return values / 2
    return 1.2 + np.abs(values) if name in POSITIVE else values


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    parameters, body = CASES[name]
    text = f"def @main({parameters}) {{ {body} }}"
    before, after = parse_mir(text), parse_mir(text)
    FirstOrderGradient().apply(Context(), after)
    assert find_errors(after) == []
    rng = np.random.default_rng(0)
    if name == "tuple in, tuple out":
        leaves = [rng.standard_normal(2), rng.standard_normal(3)]
        pack: Any = lambda xs: [tuple(xs)]  # noqa: E731
    else:
        main = next(iter(before.ops))
        leaves = [draw(rng, p.type.get_shape(), name) for p in main.params]  # type: ignore[attr-defined]
        pack = list
    count = len(flatten(interpret(before, "main", pack(leaves))))
    results = flatten(interpret(after, "main", pack(leaves)))
    plain = flatten(interpret(before, "main", pack(leaves)))
    for value, wanted in zip(results[:count], plain, strict=True):
        np.testing.assert_array_equal(value, wanted)
    tolerance = 1e-3 if "float32" in body else 1e-6
    step = 1e-2 if "float32" in body else 1e-5
    for number, leaf in enumerate(leaves):
        expected = np.zeros_like(leaf)
        for place in np.ndindex(leaf.shape):
            sums: list[float] = []
            for sign in (1, -1):
                moved = [np.array(x) for x in leaves]
                moved[number][place] += sign * step
                sums.append(sum(float(r.sum()) for r in flatten(interpret(before, "main", pack(moved)))))
            expected[place] = (sums[0] - sums[1]) / (2 * step)
        np.testing.assert_allclose(results[count + number], expected, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("name", sorted(all_gradients()))
def test_gradients_are_of_the_arguments_types(name: str) -> None:
    """Of every way in which an operator's case draws it: of several ranks and dtypes, results of other types than arguments."""
    for attrs, arguments in uses_of(name):
        module, inputs = one_use(name, attrs, arguments)
        try:
            FirstOrderGradient().apply(Context(), module)
        except MirError as error:
            assert f"{name} has no gradient here" in str(error), attrs
            continue
        assert find_errors(module) == []
        with np.errstate(all="ignore"):
            results = flatten(interpret(module, "main", list(inputs)))
        gradients = results[len(results) - len(inputs) :]
        assert [(g.dtype, g.shape) for g in gradients] == [(x.dtype, x.shape) for x in inputs], attrs


def test_integers_of_convolutions_with_wider_results() -> None:
    text = (
        "def @main(%x: Tensor[(1, 2, 3, 3), uint8], %w: Tensor[(2, 2, 2, 2), int8]) {"
        ' nn.conv2d(%x, %w, channels=2, kernel_size=[2, 2], out_dtype="int32") }'
    )
    module = parse_mir(text)
    FirstOrderGradient().apply(Context(), module)
    assert find_errors(module) == []
    x, w = np.ones((1, 2, 3, 3), np.uint8), np.ones((2, 2, 2, 2), np.int8)
    _, to_x, to_w = flatten(interpret(module, "main", [x, w]))
    assert (to_x.dtype, to_w.dtype) == (np.uint8, np.int8)
    assert to_x[0, 0].tolist() == [[2, 4, 2], [4, 8, 4], [2, 4, 2]]
    assert (to_w == 4).all()


def one_use(
    name: str, attrs: dict[str, Any], arguments: Sequence[Any], opened: bool = False
) -> tuple[ModuleOp, list[Any]]:
    """A program that is one operator, and its inputs. `opened`: no size of floats is known."""
    block, inputs = Block(), list[Any]()

    def given(array: Any) -> SSAValue:
        inputs.append(array)
        type = type_of(array)
        if opened and array.dtype.kind not in "iub":
            type = tensor_type([DYNAMIC_INDEX] * array.ndim, array.dtype.name)
        return block.insert_arg(type, len(block.args))

    operands: list[SSAValue] = []
    for argument in arguments:
        if isinstance(argument, tuple):
            block.add_op(fields := ir.TupleOp([given(array) for array in argument]))
            operands.append(fields.result)
        else:
            operands.append(given(argument))
    block.add_op(op := operator_class(all_operators()[name])(operands, attrs))
    block.add_op(ir.ReturnOp(op.result))
    module = ModuleOp([ir.FuncOp("main", [f"x{n}" for n in range(len(inputs))], [], body=Region(block))])
    infer_types(module)
    return module, inputs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def @main(%x: float32) { if (less(%x, 0f)) { %x } else { exp(%x) } }",
            "takes functions of operators and tuples only, not of 'relay.if'\nnote: inline, partial-evaluate or",
        ),
        (
            "def @main(%x: Tensor[(3), float32]) { cumprod(%x, axis=0) }",
            "cumprod has no gradient: none is written\nnote: the",
        ),
        (
            "def @main(%x: Tensor[(3), float32]) { qnn.quantize(%x, 1f, 0) }",
            "qnn.quantize has no gradient: it computes on",
        ),
        ("def @main(%r: ref(float32)) { 1f }", "only tensors and tuples of them have gradients, not ref(float32)"),
        (
            "def @main(%x: Tensor[(1, 4, 4, 2), float32], %w: Tensor[(3, 3, 2, 1), float32]) {"
            ' nn.conv2d(%x, %w, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO") }',
            "nn.conv2d has no gradient here: the layouts must be NCHW and OIHW\nnote: convert-layout gives",
        ),
        (
            'def @main(%x: Tensor[(3, 3), float32]) { einsum((%x,), equation="ii->i") }',
            "an operand repeats a letter, or leaves some unnamed\nnote: take the diagonal, or name the axes, first",
        ),
        (
            'def @main(%x: Tensor[(1, 6, 2), float32]) { nn.max_pool1d(%x, pool_size=[2], layout="NWC") }',
            "nn.max_pool1d has no gradient here: the layout must be NCW",
        ),
        (
            "def @main(%x: Tensor[(1, 2, 4, 4), float32]) {"
            ' nn.adaptive_avg_pool2d(%x, output_size=[2, 2], layout="NCHW", out_layout="NHWC") }',
            "the layout of the result must be that of the data",
        ),
        (
            "def @main(%x: Tensor[(1, 2, 5, 5), float32]) { nn.adaptive_avg_pool2d(%x, output_size=[2, 2]) }",
            "nn.adaptive_avg_pool2d has no gradient here: (1, 2, 5, 5) does not divide into (1, 2, 2, 2) equal parts",
        ),
        (
            "def @main(%x: Tensor[(1, 3, 4), float32], %a: Tensor[(4), float32], %b: Tensor[(4), float32]) {"
            " nn.group_norm(%x, %a, %b, num_groups=2, axis=2) }",
            "the channels must be axis 1\nnote: transpose the data first",
        ),
        (
            "def @main(%x: Tensor[(?, 4, ?), float32], %a: Tensor[(4), float32], %b: Tensor[(4), float32]) {"
            " nn.group_norm(%x, %a, %b, num_groups=2) }",
            "nn.group_norm has no gradient here: more than one size is `?`",
        ),
        (
            "def @main(%x: Tensor[(1, 2, 4, 4), float32]) {"
            ' nn.upsampling(%x, scale_h=2.0, scale_w=2.0, method="bilinear") }',
            "nn.upsampling has no gradient here: the method must be nearest_neighbor, not bilinear",
        ),
        (
            "def @main(%x: Tensor[(4), float32], %i: Tensor[(2), int64], %u: Tensor[(2), float32]) {"
            ' scatter_elements(%x, %i, %u, axis=0, reduction="mul") }',
            "the elements must be added or written, not combined by mul",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(MirError) as error:
        FirstOrderGradient().apply(Context(), parse_mir(text))
    assert message in str(error.value)


@pytest.mark.parametrize("name", sorted(all_gradients()))
def test_sizes_that_are_not_known(name: str) -> None:
    """The gradients are those of known sizes, or it is said that they depend on one."""
    for attrs, arguments in uses_of(name)[:3]:
        known, inputs = one_use(name, attrs, arguments)
        try:
            unknown, _ = one_use(name, attrs, arguments, opened=True)
            with np.errstate(all="ignore"):
                interpret(unknown, "main", list(inputs))
            FirstOrderGradient().apply(Context(), known)
        except MirError:
            continue  # An operator whose shape must be known, or a use without gradients.
        try:
            FirstOrderGradient().apply(Context(), unknown)
        except MirError as error:
            assert f"{name} has no gradient here" in str(error), attrs
            continue
        assert find_errors(unknown) == [], attrs
        with np.errstate(all="ignore"):
            wanted, got = (flatten(interpret(module, "main", list(inputs))) for module in (known, unknown))
        for old, new in zip(wanted, got, strict=True):
            assert old.dtype == new.dtype and old.shape == new.shape, attrs
            tolerance = 0.05 if old.dtype.itemsize == 2 else 1e-5
            np.testing.assert_allclose(
                new.astype("float64"), old.astype("float64"), tolerance, tolerance, err_msg=attrs
            )


@pytest.mark.parametrize(
    "body",
    ["nn.adaptive_avg_pool2d(%x, output_size=[1, 1])", "nn.adaptive_max_pool2d(%x, output_size=[1, 1])", "mean(%x, axis=[2])", "variance(%x, mean(%x, axis=[2], keepdims=True), axis=[2])"],
)  # fmt: skip
def test_gradients_of_nothing(body: str) -> None:
    module = parse_mir(f"def @main(%x: Tensor[(1, 2, 0, 3), float32]) {{ {body} }}")
    FirstOrderGradient().apply(Context(), module)
    with np.errstate(all="ignore"):
        *_, gradient = flatten(interpret(module, "main", [np.zeros((1, 2, 0, 3), np.float32)]))
    assert gradient.shape == (1, 2, 0, 3)


def test_a_size_that_must_be_known() -> None:
    text = "def @main(%x: Tensor[(2, ?), float32], %y: Tensor[(2, ?), float32]) {\n  concatenate((%x, %y), axis=1)\n}\n"
    with pytest.raises(MirError) as error:
        FirstOrderGradient().apply(Context(), parse_mir(text, "file.mir"))
    assert str(error.value) == (
        "file.mir:2:3: error: concatenate has no gradient here: a size that it depends on is `?`\n"
        "note: give the parameters their shapes"
    )
