"""Concatenations, reshapes and slices that only move tensors take no kernel, and the tensors are right all the same."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.lowering.pipeline import Options, graph_passes
from mirstack.lowering.relay.memory.storage_views import view_offsets
from mirstack.support.walk import walk_ops
from sharing import T, called, check, frame_of, kernels, prepared
from xdsl.context import Context

PLACED = {
    "a fire module": (
        f"""def @main(%x: {T(1, 6, 7, 7)}, %a: {T(8, 6, 1, 1)}, %b: {T(9, 6, 3, 3)}, %c: {T(5, 17, 1, 1)}) {{
          %0 = nn.relu(nn.conv2d(%x, %a));
          %1 = nn.relu(nn.conv2d(%x, %b, padding=[1, 1]));
          nn.conv2d(concatenate((%0, %1), axis=1), %c) }}""",
        ["nn_conv2d_nn_relu", "nn_conv2d_nn_relu_1", "nn_conv2d"],
    ),
    "the result itself, offsets of odd numbers of bytes": (
        f"""def @main(%x: {T(3, 5, dtype="int8")}, %y: {T(7, 5, dtype="int8")}) {{
          concatenate((max(%x, axis=1), max(%y, axis=1), min(%y, axis=1)), axis=0) }}""",
        ["max", "max_1", "min"],
    ),
    "an empty piece": (
        f"""def @main(%x: {T(0, 5)}, %y: {T(7, 5)}) {{
          nn.softmax(concatenate((max(%x, axis=1), max(%y, axis=1)), axis=0)) }}""",
        ["max", "max_1", "nn_softmax"],
    ),
    "half precision": (
        f"""def @main(%x: {T(3, 5, dtype="float16")}) {{
          nn.softmax(concatenate((nn.softmax(%x), nn.softmax(%x, axis=0), exp(%x)), axis=0)) }}""",
        ["nn_softmax", "nn_softmax_1", "exp", "nn_softmax_2"],
    ),
    "a parameter and a constant are copied": (
        f"""def @main(%x: {T(3, 8)}) {{
          %0 = nn.softmax(%x);
          nn.softmax(concatenate((%x, %0, ones(shape=[2, 8], dtype="float32")), axis=0), axis=0) }}""",
        ["nn_softmax", "ones", "nn_softmax_1"],
    ),
    "one value twice": (
        f"""def @main(%x: {T(3, 8)}) {{
          %0 = nn.softmax(%x);
          nn.softmax(concatenate((%0, %0, %0), axis=0), axis=0) }}""",
        ["nn_softmax", "nn_softmax_1"],
    ),
    "a reshape is a piece, and is sliced for another one": (
        f"""def @main(%x: {T(3, 8)}) {{
          %0 = nn.softmax(%x);
          %1 = reshape(%0, newshape=[24]);
          concatenate((strided_slice(%1, begin=[0], end=[5], strides=[1]), %1), axis=0) }}""",
        ["nn_softmax", "reshape_strided_slice"],
    ),
    "two concatenations want one value": (
        f"""def @main(%x: {T(3, 8)}) {{
          %0 = nn.softmax(%x);
          %1 = nn.softmax(%x, axis=0);
          %2 = concatenate((%0, %1), axis=0);
          %3 = concatenate((%1, %0), axis=0);
          (nn.softmax(%2, axis=0), nn.softmax(%3, axis=0)) }}""",
        ["nn_softmax", "nn_softmax_1", "nn_softmax_2", "nn_softmax_2"],
    ),
    "nested, as in a dense block": (
        f"""def @main(%x: {T(1, 3, 5, 5)}, %a: {T(2, 3, 3, 3)}, %b: {T(2, 5, 3, 3)}, %c: {T(3, 7, 3, 3)}) {{
          %0 = nn.conv2d(%x, %a, padding=[1, 1]);
          %1 = concatenate((%x, %0), axis=1);
          %2 = nn.conv2d(%1, %b, padding=[1, 1]);
          %3 = concatenate((%1, %2), axis=1);
          %4 = nn.conv2d(%3, %c, padding=[1, 1]);
          concatenate((%3, %4), axis=1) }}""",
        ["nn_conv2d", "nn_conv2d_1", "nn_conv2d_2"],
    ),
    "a piece is a result, too": (
        f"""def @main(%x: {T(3, 8)}) {{
          %0 = nn.softmax(%x);
          %1 = nn.softmax(%x, axis=0);
          (concatenate((%0, %1), axis=0), %1) }}""",
        ["nn_softmax", "nn_softmax_1"],
    ),
    "a stack of reshaped pieces, reshaped": (
        f"""def @main(%x: {T(4, 6)}) {{
          %0 = reshape(nn.softmax(%x), newshape=[24]);
          %1 = squeeze(expand_dims(nn.batch_flatten(reshape(nn.softmax(%x, axis=0), newshape=[1, 4, 6])), axis=0));
          nn.softmax(reshape(stack((%0, %1), axis=0), newshape=[6, 8])) }}""",
        ["nn_softmax", "nn_softmax_1", "nn_softmax_2"],
    ),
    "a large parameter is copied by a kernel": (
        f"""def @main(%x: {T(60000)}, %y: {T(4, 4)}) {{ concatenate((%x, sum(%y, axis=1)), axis=0) }}""",
        ["sum", "copy"],
    ),
    "pieces that are computed, each by a kernel of its own": (
        f"""def @main(%x: {T(1, 16, 8, 9)}, %y: {T(1, 6, 4, 4)}) {{
          %0 = reshape(transpose(%x, axes=[0, 2, 3, 1]), newshape=[1, -1, 4]);
          %1 = reshape(transpose(%y, axes=[0, 2, 3, 1]), newshape=[1, -1, 4]);
          concatenate((%0, exp(%1)), axis=1) }}""",
        ["transpose_reshape", "transpose_reshape_exp"],
    ),
    "small parameters alone, and large ones": (
        f"""def @main(%x: {T(3, 5)}, %y: {T(130, 130)}, %z: {T(7, 5)}) {{
          (concatenate((%x, %z, %x), axis=0), stack((%y, %y), axis=0)) }}""",
        ["stack"],
    ),
    "slices of rows": (
        f"""def @main(%x: {T(9, 8)}) {{
          %0 = nn.softmax(%x);
          %1 = split(%0, indices_or_sections=[2, 5]);
          %2 = nn.softmax(strided_slice(%0, begin=[1], end=[8], axes=[0]), axis=0);
          (nn.softmax(%1.1, axis=0), sum(%1.2, axis=[0]), %2, nn.softmax(strided_slice(%x, begin=[4, 2], end=[5, 7]))) }}""",
        ["nn_softmax", "nn_softmax_1", "nn_softmax_2", "sum", "nn_softmax_3"],
    ),
    "gates of an LSTM": (
        f"""def @main(%x: {T(1, 8)}, %h: {T(1, 4)}, %w: {T(16, 12)}, %v: {T(3, 4)}) {{
          %0 = nn.dense(concatenate((nn.softmax(%x), nn.softmax(%h)), axis=1), %w);
          %1 = split(%0, indices_or_sections=4, axis=1);
          nn.dense(%1.2, %v) }}""",
        ["nn_softmax", "nn_softmax_1", "nn_dense", "nn_dense_1"],
    ),
}


@pytest.mark.parametrize("name", PLACED)
def test_nothing_but_kernels_that_compute(name: str):
    text, wanted = PLACED[name]
    assert kernels(text) == wanted
    check(text, 5e-3 if "float16" in text else 1e-5)


KEPT = {
    "a batch of two": (
        f"""def @main(%x: {T(2, 6, 5, 5)}, %a: {T(4, 6, 1, 1)}) {{
          %0 = nn.conv2d(%x, %a);
          nn.max_pool2d(concatenate((%0, %x), axis=1), pool_size=[2, 2]) }}""",
        ["nn_conv2d", "concatenate", "nn_max_pool2d"],
    ),
    "columns": (
        f"""def @main(%x: {T(4, 6)}) {{
          %0 = split(nn.softmax(%x), indices_or_sections=2, axis=1);
          nn.softmax(%0.1) }}""",
        ["nn_softmax", "split", "nn_softmax_1"],
    ),
    "a result is never a part of other memory": (
        f"""def @main(%x: {T(4, 6)}) {{
          (split(nn.softmax(%x), indices_or_sections=2, axis=0), reshape(%x, newshape=[24])) }}""",
        ["nn_softmax", "split", "reshape"],
    ),
    "elementwise consumers read the pieces": (
        f"""def @main(%x: {T(4, 6)}) {{ nn.relu(concatenate((nn.softmax(%x), nn.softmax(%x, axis=0)), axis=0)) }}""",
        ["nn_softmax", "nn_softmax_1", "concatenate_nn_relu"],
    ),
    "small pieces that are computed": (
        f"""def @main(%x: {T(4, 6)}) {{ nn.softmax(concatenate((exp(%x), tanh(%x), negative(%x)), axis=0)) }}""",
        ["exp_tanh_negative_concatenate", "nn_softmax"],
    ),
    "what is computed for two fields": (
        f"""def @main(%x: {T(4, 6)}) {{
          %0 = exp(%x);
          nn.softmax(concatenate((%0, negative(%0), nn.softmax(%x)), axis=0)) }}""",
        ["nn_softmax", "exp_negative_concatenate", "nn_softmax_1"],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_kernels_that_have_to_move_something_stay(name: str):
    text, wanted = KEPT[name]
    assert kernels(text) == wanted
    check(text)


CONTROL = {
    "branches": f"""def @main(%c: {T(1)}, %x: {T(4, 6)}) {{
        %0 = nn.softmax(%x);
        if (greater(sum(%c), 0f)) {{
          concatenate((nn.softmax(%x, axis=0), %0), axis=0)
        }} else {{
          concatenate((%0, nn.softmax(exp(%x))), axis=0)
        }} }}""",
    "a piece of a branch, and one of a call": f"""
      def @f(%x: {T(4, 6)}) -> {T(8, 6)} {{ concatenate((nn.softmax(%x), nn.softmax(%x, axis=0)), axis=0) }}
      def @main(%c: {T(1)}, %x: {T(4, 6)}) {{
        let %p = if (greater(sum(%c), 0f)) {{ nn.softmax(%x) }} else {{ nn.softmax(%x, axis=0) }};
        let %q = @f(%x);
        let %r = concatenate((%p, %q), axis=0);
        let %s = nn.softmax(%r, axis=0);
        concatenate((%s, %q), axis=0) }}""",
    "a closure keeps a piece": f"""def @main(%x: {T(4, 6)}) {{
        let %p = nn.softmax(%x);
        let %f = fn (%y: {T(4, 6)}) -> {T(4, 6)} {{ nn.softmax(add(%y, %p)) }};
        let %q = concatenate((%p, nn.softmax(%x, axis=0)), axis=0);
        let %r = nn.softmax(%q, axis=0);
        (%f(%x), nn.softmax(%r)) }}""",
    "a loop": f"""
      def @g(%n: int32, %x: {T(4, 6)}, %y: {T(8, 6)}) -> {T(8, 6)} {{
        if (less(%n, 1)) {{ %y }} else {{
          let %p = nn.softmax(%x);
          let %q = concatenate((nn.softmax(%p, axis=0), %p), axis=0);
          @g(subtract(%n, 1), nn.softmax(strided_slice(%y, begin=[2], end=[6], axes=[0])), %q) }} }}
      def @main(%x: {T(4, 6)}, %y: {T(8, 6)}) {{ @g(5, %x, %y) }}""",
    "a reference keeps a piece": f"""def @main(%x: {T(4, 6)}) {{
        let %p = nn.softmax(%x);
        let %r = ref(%p);
        let %q = concatenate((%p, nn.softmax(%x, axis=0)), axis=0);
        let %s = nn.softmax(nn.softmax(%q), axis=0);
        (ref_read(%r), nn.softmax(%s)) }}""",
}


@pytest.mark.parametrize("name", CONTROL)
def test_functions_and_branches(name: str):
    check(CONTROL[name])


def test_a_loop_stays_a_loop():
    text = f"""
      def @g(%n: int32, %x: {T(8)}) -> {T(8)} {{
        if (less(%n, 1)) {{ %x }} else {{
          let %p = nn.softmax(%x);
          @g(subtract(%n, 1), concatenate((sum(reshape(%p, newshape=[4, 2]), axis=1), max(reshape(%p, newshape=[4, 2]), axis=1)), axis=0)) }} }}
      def @main(%x: {T(8)}) {{ @g(100000, %x) }}"""
    exe = mirstack.compile(mirstack.parse(text), entry="main", cache=False)
    assert np.isfinite(np.asarray(exe(np.ones(8, "f4")))).all()


def test_the_pieces_lie_where_the_concatenation_is():
    """A piece's memory is free until it is written, and nothing is kept beside the concatenation."""
    text = f"""def @main(%x: {T(1, 16, 8, 8)}, %w: {T(16, 16, 3, 3)}, %v: {T(16, 32, 1, 1)}) {{
        %0 = nn.conv2d(%x, %w, padding=[1, 1]);
        %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
        %2 = nn.conv2d(%1, %w, padding=[1, 1]);
        %3 = nn.conv2d(nn.upsampling(%2, scale_h=2, scale_w=2), %w, padding=[1, 1]);
        nn.conv2d(concatenate((%0, %3), axis=1), %v) }}"""
    frame = frame_of(text)
    whole = 16 * 64 * 4
    assert len(frame.joined) == 2 and frame.plan.size == frame.plan.lower_bound
    first, last = sorted(frame.pieces, key=lambda place: frame.pieces[place][1])
    assert frame.offsets[last] == frame.offsets[first] + whole
    assert frame.plan.size == 3 * whole
    check(text)


def test_pieces_of_the_result_are_written_there():
    frame = frame_of(f"""def @main(%x: {T(5, 3)}) {{
        %0 = concatenate((nn.softmax(%x), nn.softmax(%x, axis=0)), axis=0);
        (%x, concatenate((%0, nn.softmax(exp(%x))), axis=0)) }}""")
    assert len(frame.kept) == 1 and sorted(frame.shifts.values()) == [0, 0, 60, 120]


def test_large_pieces_that_must_be_copied_have_a_kernel():
    text = f"""def @main(%x: {T(1, 8, 64, 64)}, %w: {T(8, 8, 3, 3)}, %v: {T(4, 16, 1, 1)}) {{
        nn.conv2d(concatenate((%x, nn.conv2d(%x, %w, padding=[1, 1])), axis=1), %v) }}"""
    assert sorted(kernels(text)) == ["copy", "nn_conv2d", "nn_conv2d_1"]


def test_what_constants_give_is_computed_once():
    """A reshape of weights that were not folded is a kernel, which runs before the program does."""
    weights = np.arange(64, dtype="f4").reshape(4, 2, 8)
    x = mirstack.relay.var("x", shape=(3, 8))
    body = mirstack.relay.nn.dense(x, mirstack.relay.reshape(mirstack.relay.const(weights), (8, 8)))
    module = prepared(mirstack.IRModule.from_expr(mirstack.relay.Function([x], body)).copy_op(), opt_level=1)
    assert called(module) == ["reshape", "nn_dense"]


@pytest.mark.parametrize(
    ("slicing", "start"),
    [
        ("begin=[2], end=[4], axes=[0]", 96),
        ("begin=[1, 1], end=[2, 3]", 64),
        ("begin=[1, 2, 1], end=[2, 3, 3]", 84),
        ("begin=[3, 0], end=[1, 3], strides=[-1, 1]", None),
        ("begin=[3, 0, 3], end=[2, 1, 1], strides=[-1, 1, -1]", None),
        ("begin=[0, 1], end=[2, 3]", None),
        ("begin=[0], end=[4], strides=[2]", None),
        ("begin=[2], end=[2]", None),
        ("begin=[-1, -1], end=[4, 3]", 144 + 32),
    ],
)
def test_which_slices_are_parts_of_memory(slicing: str, start: int | None):
    module = mirstack.parse(f"def @main(%x: {T(4, 3, 4)}) {{ strided_slice(%x, {slicing}) }}")
    for step in graph_passes(Options()):
        step.apply(Context(), module)
        break
    (op,) = [op for op in walk_ops(module) if isinstance(op, OperatorOp)]
    assert view_offsets(op) == (None if start is None else [start])
