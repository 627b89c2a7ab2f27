"""What scheduled TE programs compute, and what cannot be lowered."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import mirstack as tvm
import numpy as np
import pytest
from mirstack import te
from mirstack.support.diagnostics import MirError

RNG = np.random.default_rng(0)


def run(s: te.Schedule, args: Sequence[Any], *arrays: np.ndarray) -> None:
    """Runs a schedule, by the interpreter and natively, in simple mode and not; results are those of the last run."""
    for simple in (True, False):
        module = tvm.lower(s, args, simple_mode=simple)
        for target in ("interp", "llvm"):
            tvm.build(module, target=target)["main"](*arrays)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def matmul(n: int, m: int, k: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A = te.placeholder((n, k), name="A")
    B = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return A, B, C


def check_matmul(s: te.Schedule, tensors: tuple[te.Tensor, te.Tensor, te.Tensor]) -> None:
    shapes = [tuple(int(d) for d in t.shape) for t in tensors]  # type: ignore[arg-type]
    a, b, c = floats(*shapes[0]), floats(*shapes[1]), np.full(shapes[2], np.nan, "float32")
    run(s, tensors, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_blocked_matmul_with_packing_and_a_cache():
    A, B, _ = matmul(24, 40, 36)
    r = te.reduce_axis((0, 36), name="k")
    packed = te.compute((5, 36, 8), lambda jo, k, ji: B[k, jo * 8 + ji], name="packed")
    C = te.compute((24, 40), lambda i, j: te.sum(A[i, r] * packed[j // 8, r, j % 8], axis=r), name="C")
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    io, jo, _, _ = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
    s[CC].compute_at(s[C], jo)
    ic, jc = s[CC].op.axis
    (k,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(k, factor=4)
    s[CC].reorder(ko, ic, ki, jc)
    s[CC].unroll(ki)
    s[CC].vectorize(jc)
    s[C].parallel(io)
    s[packed].parallel(packed.op.axis[0])
    check_matmul(s, (A, B, C))


def test_splits_that_do_not_divide():
    tensors = matmul(7, 11, 13)
    C = tensors[2]
    s = te.create_schedule(C.op)
    s[C].tile(C.op.axis[0], C.op.axis[1], 4, 3)
    s[C].split(C.op.reduce_axis[0], nparts=5)
    check_matmul(s, tensors)


def test_reduction_loop_outside():
    tensors = matmul(6, 5, 8)
    C = tensors[2]
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=3)
    s[C].reorder(ko, C.op.axis[1], ki, C.op.axis[0])
    check_matmul(s, tensors)


def test_spatial_and_reduction_axes_fused():
    tensors = matmul(6, 5, 8)
    C = tensors[2]
    s = te.create_schedule(C.op)
    fused = s[C].fuse(C.op.axis[1], C.op.reduce_axis[0])
    s[C].split(fused, factor=7)
    check_matmul(s, tensors)


@pytest.mark.parametrize("place", [0, -1])
def test_rfactor_into_parallel_parts(place: int):
    A = te.placeholder((6, 50), name="A")
    k = te.reduce_axis((0, 50), name="k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, _ = s[B].split(k, factor=16)
    parts = s.rfactor(B, ko, place)
    s[parts].parallel(s[parts].op.axis[0])
    a, b = floats(6, 50), np.empty(6, "float32")
    run(s, [A, B], a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-4, atol=1e-4)


def test_rfactor_of_a_whole_axis_and_of_a_tuple():
    idx = te.placeholder((4, 9), "int32", "idx")
    val = te.placeholder((4, 9), "float32", "val")
    argmax = te.comm_reducer(
        lambda x, y: (te.Select(x[1] >= y[1], x[0], y[0]), te.Select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    k = te.reduce_axis((0, 9), name="k")
    T0, T1 = te.compute((4,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(T0.op)
    assert len(s.rfactor(T0, k)) == 2
    i = np.tile(np.arange(9, dtype="int32"), (4, 1))
    v, out, best = floats(4, 9), np.empty(4, "int32"), np.empty(4, "float32")
    run(s, [idx, val, T0, T1], i, v, out, best)
    np.testing.assert_array_equal(out, v.argmax(1))
    np.testing.assert_array_equal(best, v.max(1))


def test_a_reducer_whose_second_value_reads_the_first():
    A = te.placeholder((3, 6), "int32", "A")
    # The second value is made of the first as it was before this step.
    pairs = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1] + x[0] * y[0]), lambda t, u: (te.const(0, t), te.const(0, u))
    )
    k = te.reduce_axis((0, 6), name="k")
    S, P = te.compute((3,), lambda i: pairs((A[i, k], te.const(0, "int32")), axis=k), name="S")
    s = te.create_schedule(S.op)
    a = RNG.integers(0, 9, (3, 6)).astype("int32")
    total, products = np.empty(3, "int32"), np.empty(3, "int32")
    run(s, [A, S, P], a, total, products)
    np.testing.assert_array_equal(total, a.sum(1))
    np.testing.assert_array_equal(products, [sum(r[i] * r[j] for i in range(6) for j in range(i)) for r in a])


def test_groups_inlining_and_caches():
    A = te.placeholder((40,), name="A")
    B = te.compute((40,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((40,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((38,), lambda i: C[i] - C[i + 2], name="D")
    E = te.compute((38,), lambda i: D[i] * D[i], name="E")
    s = te.create_schedule(E.op)
    s[D].compute_inline()
    g = s.create_group(outputs=C, inputs=A)
    xo, _ = s[E].split(E.op.axis[0], factor=8)
    g.compute_at(s[E], xo)
    local = s.cache_read(A, "local", [B])
    s[local].compute_at(s[B], s[B].op.axis[0])
    a, e = floats(40), np.empty(38, "float32")
    run(s, [A, E], a, e)
    c = (a + 1) * 2
    np.testing.assert_allclose(e, (c[:-2] - c[2:]) ** 2, rtol=1e-4, atol=1e-5)


def test_double_buffer():
    A = te.placeholder((40,), name="A")
    B = te.compute((40,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((40,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    xo, _ = s[C].split(C.op.axis[0], factor=8)
    s[B].compute_at(s[C], xo)
    s[B].double_buffer()
    a, c = floats(40), np.empty(40, "float32")
    run(s, [A, C], a, c)
    np.testing.assert_allclose(c, (a + 1) * 2, rtol=1e-6)


def test_storage_align_pads_rows():
    A = te.placeholder((6, 5), name="A")
    B = te.compute((6, 5), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((6, 5), lambda i, j: B[5 - i, j] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[B].storage_align(B.op.axis[0], 8, 3)
    text = tvm.lower(s, [A, C], simple_mode=True).script()
    assert "T.allocate([66]" in text
    a, c = floats(6, 5), np.empty((6, 5), "float32")
    run(s, [A, C], a, c)
    np.testing.assert_allclose(c, a[::-1] * 2 + 1, rtol=1e-6)


def test_scan():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((2, n), lambda t, i: X[t, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] - state[t - 2, i] + X[t, i], name="update")
    result = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(result.op)
    s[update].split(update.op.axis[1], factor=4)
    x, y = floats(9, 7), np.empty((9, 7), "float32")
    run(s, [X, result], x, y)
    want = x.copy()
    for t in range(2, 9):
        want[t] = want[t - 1] - want[t - 2] + x[t]
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


def test_parameters_with_strides():
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[j, i] + te.cast("float32", n), name="B")
    s = te.create_schedule(B.op)
    xo, _ = s[B].split(B.op.axis[0], factor=4)
    s[B].parallel(xo)
    a, b = floats(6, 6), np.empty((6, 6), "float32")
    run(s, [n, A, B], 6, a, b)  # type: ignore[arg-type]
    np.testing.assert_allclose(b, a.T + 6, rtol=1e-6)


def test_tensorize_whole_and_in_steps():
    def intrinsic(m: int, k: int) -> te.TensorIntrin:
        a = te.placeholder((k,), name="a")
        b = te.placeholder((k, m), name="b")
        r = te.reduce_axis((0, k), name="r")
        c = te.compute((m,), lambda j: te.sum(a[r] * b[r, j], axis=r), name="c")

        def body(ins: Sequence[te.Buffer], outs: Sequence[te.Buffer]) -> Any:
            def stage(begins: bool, adds: bool) -> Any:
                ib = te.ir_builder.create()
                x, y, z = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
                with ib.for_range(0, m, name="j") as j:
                    if begins:
                        z[j] = 0.0
                    if adds:
                        with ib.for_range(0, k, name="r") as step:
                            z[j] = z[j] + x[step] * y[step, j]
                return ib.get()

            return stage(True, True), stage(True, False), stage(False, True)

        return te.decl_tensor_intrin(c.op, body, name="row")

    for steps in (12, 4):
        tensors = matmul(6, 16, 12)
        C = tensors[2]
        s = te.create_schedule(C.op)
        jo, ji = s[C].split(C.op.axis[1], factor=8)
        ko, ki = s[C].split(C.op.reduce_axis[0], factor=steps)
        s[C].reorder(C.op.axis[0], jo, ko, ji, ki)
        s[C].tensorize(ji, intrinsic(8, steps))
        check_matmul(s, tensors)


def test_tensorize_through_a_pointer():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j], name="B")
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i], name="b")
    s = te.create_schedule(B.op)
    s[B].tensorize(
        B.op.axis[1],
        te.decl_tensor_intrin(
            b.op, lambda ins, outs: te.call_extern("int32", "copy8", ins[0].access_ptr("r"), outs[0].access_ptr("w"))
        ),
    )
    text = tvm.lower(s, [A, B], simple_mode=True).script()
    assert 'T.tvm_access_ptr(T.type_annotation("float32"), A.data, ' in text


def plain(n: int = 16) -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Schedule]:
    A = te.placeholder((n, 8), name="A")
    B = te.compute((n, 8), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((n, 8), lambda i, j: B[i, j] + 1.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def vectorized_size() -> Any:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    return s, [A, B]


def reader_outside() -> Any:
    A, B, C, _ = plain()
    D = te.compute((16, 8), lambda i, j: B[i, j] + C[i, j], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[D], D.op.axis[0])
    return s, [A, D]


def unequal_threads() -> Any:
    A, _, C, s = plain()
    tx = te.thread_axis("threadIdx.x")
    s[C].bind(C.op.axis[0], tx)
    s[C].bind(C.op.axis[1], tx)
    return s, [A, C]


def nested_threads() -> Any:
    A, _, C, s = plain()
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    return s, [A, C]


def symbolic_vthread() -> Any:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("vthread"))
    return s, [A, B]


def thread_from_one() -> Any:
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((1, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def unbound_size() -> Any:
    n = te.var("n")
    A = te.placeholder((n + 1,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    C = te.compute((4,), lambda i: B[i], name="C")
    return te.create_schedule(C.op), [A, C]


def missing_input() -> Any:
    _, _, C, s = plain()
    return s, [C]


def loops_and_threads() -> Any:
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(k, factor=16)
    s[B].bind(ki, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def threads_outside() -> Any:
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].reorder(k, B.op.axis[0])
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def threads_with_init() -> Any:
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k, init=1.0), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def fused_away() -> Any:
    A, B, C, s = plain()
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].fuse(*C.op.axis)
    return s, [A, C]


def output_in_a_group() -> Any:
    A, B, C, _ = plain()
    D = te.compute((16, 8), lambda i, j: C[i, j] + 1.0, name="D")
    s = te.create_schedule([C.op, D.op])
    g = s.create_group(outputs=C, inputs=B)
    g.compute_at(s[D], D.op.axis[0])
    return s, [A, C, D]


def foreign_prefetch() -> Any:
    A, _, C, s = plain()
    s[C].prefetch(te.placeholder((4,), name="P"), C.op.axis[0], 1)
    return s, [A, C]


def row_of_sums() -> te.TensorIntrin:
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
    return te.decl_tensor_intrin(b.op, lambda ins, outs: outs[0].vstore((0,), ins[0].vload((0,))), name="row")


def inside_an_intrinsic() -> Any:
    A, B, C, s = plain()
    jo, ji = s[C].split(C.op.axis[1], factor=8)
    s[B].compute_at(s[C], ji)
    s[C].tensorize(jo, row_of_sums())
    return s, [A, C]


def tensorized_across_threads() -> Any:
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].tensorize(B.op.axis[0], row_of_sums())
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    return s, [A, B]


CANNOT = [
    (fused_away, "stage 'B' is computed at axis 'i' of stage 'C', which is no loop of it"),
    (output_in_a_group, "output 'C' is computed inside of another stage"),
    (foreign_prefetch, "tensor 'P' is prefetched, but neither computed before nor a parameter"),
    (inside_an_intrinsic, "stage 'B' is computed at a loop that was not made"),
    (tensorized_across_threads, "stage 'B' has a tensorized axis and reduces across threads"),
    (vectorized_size, "loop 'i' of stage 'B' runs over n, but a vectorized loop has a known number of elements"),
    (reader_outside, "stage 'B' is computed at loop 'i' of stage 'D', which its reader 'C' is not inside of"),
    (unequal_threads, "thread 'threadIdx.x' has 16 threads, but stage 'C' binds it to a loop over 8"),
    (nested_threads, "thread 'threadIdx.x' is launched with two numbers of threads in one place"),
    (symbolic_vthread, "loop 'i' of stage 'B' runs over n, but virtual threads are of a known number"),
    (thread_from_one, "loop 'k' of stage 'B' begins at 1, but a thread begins at 0"),
    (unbound_size, "no parameter binds the symbolic size 'n'"),
    (missing_input, "tensor 'A' is read, but neither computed before nor a parameter"),
    (loops_and_threads, "stage 'B' reduces across threads and in loops"),
    (threads_outside, "axis 'i' of stage 'B' stands inside of a reduction axis that is bound to a thread"),
    (threads_with_init, "stage 'B' reduces across threads from a given first value"),
]


@pytest.mark.parametrize(("build", "message"), CANNOT, ids=[b.__name__ for b, _ in CANNOT])
def test_cannot_be_lowered(build: Callable[[], Any], message: str):
    s, args = build()
    with pytest.raises(MirError, match=re.escape(message)):
        tvm.lower(s, args)


def test_wrong_intrinsics():
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] * 3.0, name="b")
    row = te.decl_tensor_intrin(b.op, lambda ins, outs: outs[0].vstore((0,), ins[0].vload((0,))), name="row")
    in_, mid, out, s = plain()
    s[mid].tensorize(mid.op.axis[1], row)
    with pytest.raises(
        MirError, match=r"stage 'B' does not compute what intrinsic 'row' does: 2.0 stands where it has 3.0"
    ):
        tvm.lower(s, [in_, out])
    in_, mid, out, s = plain()
    s[mid].tensorize(mid.op.axis[0], row)
    with pytest.raises(
        MirError, match="what stage 'B' tensorizes is a region of \\(16, 8\\), but intrinsic 'row' takes \\(8\\)"
    ):
        tvm.lower(s, [in_, out])
    in_, mid, out, s = plain()
    _, ji = s[mid].split(mid.op.axis[1], factor=3)
    s[mid].tensorize(ji, row)
    with pytest.raises(
        MirError,
        match=r"stage 'B' cannot be tensorized at axis 'j.inner': elements past the end are in its part \(j.inner \+ j.outer \* 3 < 8\)",
    ):
        tvm.lower(s, [in_, out])
    in_, mid, out, s = plain()
    s[mid].tensorize(mid.op.axis[0], row)
    s[mid].tensorize(mid.op.axis[1], row)
    with pytest.raises(MirError, match="stage 'B' is tensorized at several axes"):
        tvm.lower(s, [in_, out])
    with pytest.raises(MirError, match=r"a tensor intrinsic is made of a te.compute, not of a PlaceholderOp"):
        te.decl_tensor_intrin(a.op, lambda ins, outs: [])
    with pytest.raises(MirError, match="tensor intrinsic 'row' takes scalar parameters"):
        te.decl_tensor_intrin(b.op, lambda ins, outs: [], name="row", scalar_params=["x"])
    with pytest.raises(MirError, match="the function of intrinsic 'row' gives 4 values"):
        te.decl_tensor_intrin(b.op, lambda ins, outs: ([], [], [], []), name="row")
    n = te.var("n")
    p = te.placeholder((n,), name="p")
    q = te.compute((n,), lambda i: p[i], name="q")
    with pytest.raises(MirError, match="tensor 'p' of intrinsic 'tensor_intrin' has a symbolic extent"):
        te.decl_tensor_intrin(q.op, lambda ins, outs: [])
    c = te.compute((8,), lambda i: b[i], name="c")
    with pytest.raises(MirError, match="tensor 'b' of intrinsic 'tensor_intrin' is computed"):
        te.decl_tensor_intrin(c.op, lambda ins, outs: [])


def test_intrinsics_of_reductions():
    a = te.placeholder((8,), name="a")
    r = te.reduce_axis((0, 8), name="r")
    b = te.compute((), lambda: te.max(a[r], axis=r), name="b")
    whole = te.decl_tensor_intrin(b.op, lambda ins, outs: outs[0].vstore((), ins[0].vload((0,))), name="most")
    steps = te.decl_tensor_intrin(b.op, lambda ins, outs: (None, [], []), name="most")

    def scheduled(intrin: te.TensorIntrin, reducer: Any, factor: int) -> tuple[te.Schedule, list[te.Tensor]]:
        A = te.placeholder((4, 16), name="A")
        k = te.reduce_axis((0, 16), name="k")
        B = te.compute((4,), lambda i: reducer(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        _, ki = s[B].split(k, factor=factor)
        s[B].tensorize(ki, intrin)
        return s, [A, B]

    for intrin, reducer, message in (
        (whole, te.max, "intrinsic 'most' cannot add to a result, but reduction loops are around it in stage 'B'"),
        (whole, te.min, "stage 'B' does not compute what intrinsic 'most' does: they reduce by different operations"),
    ):
        with pytest.raises(MirError, match=message):
            tvm.lower(*scheduled(intrin, reducer, 8))
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].tensorize(k, steps)
    with pytest.raises(
        MirError, match="intrinsic 'most' has no statements for a whole computation, which stage 'B' tensorizes"
    ):
        tvm.lower(s, [A, B])


def test_lower_takes():
    A, _, C, s = plain()
    with pytest.raises(TypeError, match="lower takes a schedule"):
        tvm.lower(4)
    with pytest.raises(TypeError, match="the parameters of a lowered function are tensors"):
        tvm.lower(s, [4])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="lower takes no buffers to bind"):
        tvm.lower(s, [A, C], binds={A: 4})
    module = tvm.lower(s, [A, C], name="twice")
    assert "def twice(" in tvm.lower(module).script()
    assert "def main(" in tvm.lower(te.create_prim_func([A, C])).script()
