"""Tensors that lie in rows of others, as pieces of concatenations along inner axes and slices of them do."""

from __future__ import annotations

import re
from typing import Literal

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.lowering.driver.build import llvm_text
from mirstack.lowering.pipeline import Options, graph_passes
from mirstack.lowering.relay.memory.storage_views import Rows, piece_offsets, piece_rows, view_offsets, view_rows
from mirstack.lowering.te.lower_te_to_tir import LowerTEToTIR
from mirstack.passes.tir.buffers.param_strides import PARAM_STRIDES
from mirstack.support.diagnostics import MirError
from mirstack.support.walk import walk_ops
from sharing import T, called, check, frame_of, prepared
from xdsl.context import Context

IN_ROWS = {
    "a fire module of two images": (
        f"""def @main(%x: {T(2, 6, 7, 7)}, %a: {T(8, 6, 1, 1)}, %b: {T(9, 6, 3, 3)}, %c: {T(5, 17, 1, 1)}) {{
          %0 = nn.relu(nn.conv2d(%x, %a));
          %1 = nn.relu(nn.conv2d(%x, %b, padding=[1, 1]));
          nn.conv2d(concatenate((%0, %1), axis=1), %c) }}""",
        ["nn_conv2d_nn_relu", "nn_conv2d_nn_relu_1", "nn_conv2d"],
        2,
    ),
    "channels last, the result itself": (
        f"""def @main(%x: {T(1, 5, 5, 8)}, %a: {T(1, 1, 8, 16)}, %b: {T(3, 3, 8, 37)}) {{
          %0 = nn.conv2d(%x, %a, data_layout="NHWC", kernel_layout="HWIO", channels=16, kernel_size=[1, 1]);
          %1 = nn.conv2d(%x, %b, data_layout="NHWC", kernel_layout="HWIO", channels=37, kernel_size=[3, 3], padding=[1, 1]);
          concatenate((%0, %1), axis=3) }}""",
        ["nn_conv2d", "nn_conv2d_1"],
        2,
    ),
    "a dense block of two images: a concatenation within another": (
        f"""def @main(%x: {T(2, 8, 5, 5)}, %a: {T(8, 8, 3, 3)}, %b: {T(8, 16, 3, 3)}, %c: {T(9, 24, 3, 3)}) {{
          %0 = nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 1]);
          %1 = concatenate((%0, nn.conv2d(%0, %a, padding=[1, 1])), axis=1);
          %2 = concatenate((%1, nn.conv2d(%1, %b, padding=[1, 1])), axis=1);
          nn.max_pool2d(concatenate((%2, nn.conv2d(%2, %c, padding=[1, 1])), axis=1), pool_size=[2, 2]) }}""",
        ["nn_max_pool2d", "nn_conv2d", "nn_conv2d_1", "nn_conv2d_2", "nn_max_pool2d_1"],
        4,
    ),
    "columns, of half precision": (
        f"""def @main(%x: {T(5, 40, dtype="float16")}) {{
          %0 = strided_slice(nn.softmax(%x), begin=[2], end=[37], axes=[1]);
          nn.softmax(concatenate((nn.softmax(%0), nn.softmax(%x, axis=0)), axis=1)) }}""",
        ["nn_softmax", "nn_softmax_1", "nn_softmax_2", "nn_softmax_3"],
        2,
    ),
    "a stack along an inner axis, a parameter and one value twice, which are copied": (
        f"""def @main(%x: {T(12, 40)}) {{
          %0 = nn.softmax(%x);
          %1 = nn.softmax(%x, axis=0);
          nn.softmax(stack((%0, %1, nn.softmax(exp(%x)), %x, %0), axis=1)) }}""",
        ["nn_softmax", "nn_softmax_1", "exp", "nn_softmax", "copy", "copy_1", "nn_softmax_2"],
        5,
    ),
    "a piece is read elsewhere, and reshaped": (
        f"""def @main(%x: {T(3, 4, 16)}, %w: {T(7, 64)}) {{
          %0 = nn.softmax(%x);
          %1 = concatenate((%0, nn.softmax(%x, axis=1)), axis=1);
          (nn.dense(reshape(%0, newshape=[3, 64]), %w), nn.softmax(%1, axis=2)) }}""",
        None,
        2,
    ),
    "parts of a parameter": (
        f"""def @main(%x: {T(4, 6, 9, 9)}, %a: {T(4, 3, 3, 3)}) {{
          %0 = split(%x, indices_or_sections=2, axis=1);
          (nn.conv2d(%0.0, %a), nn.max_pool2d(%0.1, pool_size=[2, 2])) }}""",
        ["nn_conv2d", "nn_max_pool2d"],
        2,
    ),
}


@pytest.mark.parametrize("name", IN_ROWS)
def test_kernels_write_and_read_rows(name: str):
    text, wanted, strided = IN_ROWS[name]
    module = prepared(text)
    if wanted is not None:
        assert sorted(called(module)) == sorted(wanted)
    calls = [op.properties["callee"] for op in walk_ops(module) if "callee" in op.properties]
    named = {op.properties["sym_name"].data for op in module.ops if _has_strides(op)}  # pyright: ignore[reportAttributeAccessIssue]
    assert sum(callee.root_reference.data in named for callee in calls) >= strided  # pyright: ignore[reportAttributeAccessIssue]
    check(text, 5e-3 if "float16" in text else 1e-5)


def _has_strides(op: object) -> bool:
    attrs = getattr(op, "attrs", None)
    return attrs is not None and PARAM_STRIDES in attrs.data


KEPT = {
    "most of it would be copied": (
        f"""def @main(%x: {T(2, 8, 16)}) {{
          nn.softmax(concatenate((%x, nn.softmax(strided_slice(%x, begin=[3], end=[5], axes=[1]))), axis=1)) }}""",
        "concatenate",
    ),
    "rows of three numbers": (
        f"""def @main(%x: {T(9, 3)}) {{ nn.softmax(concatenate((nn.softmax(%x), nn.softmax(%x, axis=0)), axis=1)) }}""",
        "concatenate",
    ),
    "a slice of two axes": (
        f"""def @main(%x: {T(4, 6, 40)}) {{
          nn.softmax(strided_slice(%x, begin=[0, 1, 2], end=[4, 5, 36]), axis=0) }}""",
        "strided_slice",
    ),
    "a piece is a result": (
        f"""def @main(%x: {T(4, 40)}) {{
          %0 = nn.softmax(%x);
          (%0, nn.softmax(concatenate((%0, %x), axis=1))) }}""",
        "concatenate",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_does_not_pay_or_cannot_be_is_copied(name: str):
    text, kernel = KEPT[name]
    assert kernel in called(prepared(text))
    check(text)


def test_functions_branches_and_closures():
    check(f"""def @f(%x: {T(3, 20)}) -> {T(3, 40)} {{ concatenate((nn.softmax(%x), nn.softmax(%x, axis=0)), axis=1) }}
      def @main(%c: {T(1)}, %x: {T(3, 20)}) {{
        let %p = nn.softmax(%x);
        let %g = fn (%y: {T(3, 20)}) -> {T(3, 20)} {{ nn.softmax(add(%y, %p)) }};
        let %q = concatenate((%p, nn.softmax(%x, axis=0)), axis=1);
        let %r = nn.softmax(%q, axis=0);
        let %s = if (greater(sum(%c), 0f)) {{ nn.softmax(%p) }} else {{ nn.softmax(strided_slice(%r, begin=[1], end=[21], axes=[1])) }};
        (%g(%x), concatenate((%r, @f(%s)), axis=1)) }}""")


def test_the_memory_of_the_whole_is_all_that_is_taken():
    text, _, _ = IN_ROWS["a fire module of two images"]
    frame = frame_of(text)
    assert len(frame.joined) == 2 and frame.plan.size == frame.plan.lower_bound
    assert frame.plan.size == -(-2 * 17 * 49 * 4 // 64) * 64


@pytest.mark.parametrize("cpu", ["haswell", "x86-64", "cortex-a76"])
def test_other_processors(cpu: str):
    text, _, _ = IN_ROWS["channels last, the result itself"]
    module = mirstack.parse(text)
    assert "define" in llvm_text(module, Options(cpu=cpu))


def test_two_threads():
    text = f"""def @main(%x: {T(4, 64, 30)}, %y: {T(4, 64, 30)}) {{
      nn.softmax(concatenate((nn.softmax(%x), nn.softmax(%y)), axis=2), axis=1) }}"""
    x, y = (np.random.default_rng(seed).standard_normal((4, 64, 30)).astype("f4") for seed in (0, 1))
    wanted = mirstack.compile(mirstack.parse(text), entry="main", target="interp")(x, y)
    for threads in (1, 2):
        run = mirstack.compile(mirstack.parse(text), entry="main", threads=threads, cache=False)
        np.testing.assert_allclose(np.asarray(run(x, y)), np.asarray(wanted), 1e-5)


@pytest.mark.parametrize(
    ("operator", "start", "rows"),
    [
        ("strided_slice(%x, begin=[1], end=[3], axes=[1])", 4 * 5, Rows(4, 30)),
        ("strided_slice(%x, begin=[2], end=[4], axes=[2])", 4 * 2, Rows(24, 5)),
        ("strided_slice(%x, begin=[1], end=[3], axes=[0])", 4 * 30, None),
        ("split(%x, indices_or_sections=[2, 3], axis=1).1", 0, Rows(4, 30)),
    ],
)
def test_how_slices_lie(operator: str, start: int, rows: Rows | None):
    module = mirstack.parse(f"def @main(%x: {T(4, 6, 5)}) {{ {operator} }}")
    next(iter(graph_passes(Options()))).apply(Context(), module)
    (op,) = [op for op in walk_ops(module) if isinstance(op, OperatorOp)]
    offsets = view_offsets(op)
    assert offsets is not None and offsets[0] == start and view_rows(op) == rows


def test_how_pieces_lie():
    module = mirstack.parse(f"def @main(%x: {T(2, 3, 5)}, %y: {T(2, 4, 5)}) {{ concatenate((%x, %y), axis=1) }}")
    next(iter(graph_passes(Options()))).apply(Context(), module)
    (op,) = [op for op in walk_ops(module) if isinstance(op, OperatorOp)]
    assert piece_rows(op) == 2 and piece_offsets(op) == [0, 60]


def test_strides_of_rows():
    assert Rows(6, 100).strides((2, 3, 4, 5)) == (300, 100, 5, 1)
    assert Rows(6, 100).strides((6, 20)) == (100, 1)
    assert Rows(6, 100).strides((3, 40)) is None


def lowered(text: str) -> str:
    """The message about a program whose operators are to be no kernels though nothing has prepared them."""
    module = mirstack.parse(text)
    passes = {step.name: step for step in graph_passes(Options())}
    from mirstack.lowering.pipeline import kernel_passes, program_passes

    steps = [passes["monomorphize"], *kernel_passes(Options()), *program_passes(Options())]
    with pytest.raises(MirError) as raised:
        for step in steps:
            step.apply(Context(), module)
    return str(raised.value)


KERNEL = """
@te.func
def f():
    {}a = te.placeholder((4, 3), name="a")
    b = te.compute((4, 3), lambda i, j: a[i, j] + 1.0, name="b")
    return [a, b]
"""


def test_errors():
    sliced = "strided_slice(%x, begin=[1], end=[4], axes=[1])"
    message = lowered(f"def @main(%x: {T(4, 6)}) {{ call_tir(@f, {sliced}) }}\n{KERNEL.format('')}")
    assert (
        "tensor 0 of call_tir(@f, …) lies with strides (6, 1), but the kernel is made for one that lies compact"
        in message
    )
    message = lowered(f"def @main(%x: {T(4, 6)}) {{ {sliced} }}")
    assert "relay.return takes a tensor that lies in rows of another one, which only kernels can" in message
    message = lowered(f"def @main(%x: {T(4, 6)}) {{ concatenate((%x, %x), axis=1) }}")
    assert "piece 0 of this concatenate would lie in rows of it, but no kernel can write it there" in message
    strides = 'te.func_attr({"tir.param_strides": [[6, 1, 1]]})\n    '
    message = lowered(f"def @main(%x: {T(4, 3)}) {{ call_tir(@f, %x) }}\n{KERNEL.format(strides)}")
    assert (
        "tir.param_strides: parameter 0 of 'f' has 2 dimensions, but [6, 1, 1] is not 2 strides of 1 or more" in message
    )


@pytest.mark.parametrize(
    "strides, message",
    [
        ('[[6, "1"]]', "tir.param_strides of 'f' is not a list of lists of integers"),
        ("[6, 1]", "tir.param_strides of 'f' is not a list of lists of integers"),
        ("6", "tir.param_strides of 'f' is not a list of lists of integers"),
        ("[[6, 1.5]]", "tir.param_strides of 'f' is not a list of lists of integers"),
        ("[[], [], [6, 1]]", "tir.param_strides has 3 lists of strides, but 'f' has 2 parameters"),
        (
            "[[6, 0]]",
            "tir.param_strides: parameter 0 of 'f' has 2 dimensions, but [6, 0] is not 2 strides of 1 or more",
        ),
    ],
)
def test_malformed_strides(strides: str, message: str):
    attribute = f'te.func_attr({{"tir.param_strides": {strides}}})\n    '
    with pytest.raises(MirError) as refused:
        LowerTEToTIR().apply(Context(), mirstack.parse(KERNEL.format(attribute)))
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.message == message
    assert diagnostic.location is not None


STRIDED = """@T.prim_func
def f(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4, 3), strides=(6, 1))
    B = T.match_buffer(b, (4, 3), strides=(5, 1))
    for i, j in T.grid(4, 3):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_entries_take_arrays_of_their_strides(target: Literal["cpu", "interp"]):
    entry = mirstack.compile(mirstack.parse(STRIDED), target=target)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert np.array_equal(entry.run({"a": x})["b"], x + 1)
    whole, result = np.zeros((4, 6), np.float32), np.zeros((4, 5), np.float32)
    whole[:, :3] = x
    entry(whole[:, :3], result[:, :3])
    assert np.array_equal(result, np.pad(x + 1, ((0, 0), (0, 2))))
    with pytest.raises(ValueError, match=re.escape("'a' must have strides (6, 1) in elements, not (3, 1)")):
        entry(x, result[:, :3])
