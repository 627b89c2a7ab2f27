"""What of a schedule cannot be lowered, and what a tensor intrinsic cannot stand for: the errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mirstack as tvm
import pytest
from mirstack import te
from mirstack.support.diagnostics import MirError


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
    A, B, C, s = plain()
    tx = te.thread_axis("threadIdx.x")
    s[C].bind(C.op.axis[0], tx)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].bind(B.op.axis[1], tx)
    return s, [A, C]


def nested_threads() -> Any:
    A, B, C, s = plain()
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
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


def no_threads() -> Any:
    A = te.placeholder((1, 1), name="A")
    k, q = te.reduce_axis((0, 1), name="k"), te.reduce_axis((0, 0), name="q")
    B = te.compute((1, 1), lambda i, j: te.max(A[k, j], axis=[k, q]), name="B")
    s = te.create_schedule(B.op)
    s.rfactor(B, q)
    s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    return s, [A, B]


def started_by_none() -> Any:
    A = te.placeholder((2, te.var("n")), name="A")
    k = te.reduce_axis((0, A.shape[1]), name="k")
    B = te.compute((2,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].reorder(k, B.op.axis[0])
    s[B].fuse(k, B.op.axis[0])
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


def reader_in_its_producer() -> Any:
    """compute_at of a stage in a loop of what it reads."""
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i, j] * 3.0, name="B")
    C = te.compute((4, 5), lambda i, j: B[i, j] + A[i, j], name="C")
    D = te.compute((4, 5), lambda i, j: C[i, j] + B[i, j], name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[B], B.op.axis[0])
    s[B].compute_at(s[D], D.op.axis[0])
    return s, [A, D]


def read_outside_of_threads(scope: str, tag: str, *, elsewhere: bool = False) -> Any:
    """A stage in memory of each thread, read where there are no threads, or others of the same name."""

    def made() -> Any:
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
        s = te.create_schedule(C.op)
        s[B].set_scope(scope)
        s[B].bind(B.op.axis[0], te.thread_axis(tag))
        if elsewhere:
            s[C].bind(s[C].split(C.op.axis[0], nparts=2)[1], te.thread_axis(tag))
        return s, [A, C]

    return made


def scan_of_sums() -> tuple[te.Schedule, te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    A = te.placeholder((8, 4), name="A")
    S = te.compute((8, 4), lambda i, j: A[i, j] * 2.0, name="S")
    state = te.placeholder((8, 4), name="state")
    init = te.compute((1, 4), lambda _, j: S[0, j], name="init")
    update = te.compute((8, 4), lambda t, j: state[t - 1, j] + S[t, j], name="update")
    result = te.scan(init, update, state, inputs=[S], name="scan")
    return te.create_schedule(result.op), A, S, init, result


def first_states_in_the_steps() -> Any:
    s, A, _, init, result = scan_of_sums()
    s[init].compute_at(s[result], s[result].leaf_iter_vars[0])
    return s, [A, result]


def one_of_two_readers() -> Any:
    """Both readers are in loop i, one of them in the loop that the stage is computed at."""
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i, j] * 3.0, name="B")
    C = te.compute((4, 5), lambda i, j: B[i, j] + A[i, j], name="C")
    D = te.compute((4, 5), lambda i, j: C[i, j] + B[i, j], name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[B].compute_at(s[C], C.op.axis[1])
    return s, [A, D]


CANNOT = [
    (first_states_in_the_steps, "stage 'init' is computed in the steps of scan 'scan', which begins with it"),
    (one_of_two_readers, "stage 'B' is computed at loop 'j' of stage 'C', which its reader 'D' is not inside of"),
    (
        read_outside_of_threads("local", "threadIdx.x"),
        "stage 'B' is in memory of scope 'local', of which each thread of 'threadIdx.x' has its own, and 'C' reads it outside of these threads",
    ),
    (
        read_outside_of_threads("shared", "blockIdx.x"),
        "stage 'B' is in memory of scope 'shared', of which each thread of 'blockIdx.x' has its own, and 'C' reads it outside of these threads",
    ),
    (
        read_outside_of_threads("shared", "blockIdx.x", elsewhere=True),
        "stage 'B' is in memory of scope 'shared', of which each thread of 'blockIdx.x' has its own, and 'C' reads it outside of these threads",
    ),
    (
        reader_in_its_producer,
        "stage 'C' is computed in loop 'i' of stage 'B', which comes before it: it makes what 'C' reads",
    ),
    (fused_away, "stage 'B' is computed at axis 'i' of stage 'C', which is not a loop of it"),
    (output_in_a_group, "output 'C' is computed inside of another stage"),
    (foreign_prefetch, "tensor 'P' is prefetched, but neither computed before nor a parameter"),
    (inside_an_intrinsic, "stage 'B' is computed at a loop that was not made"),
    (tensorized_across_threads, "stage 'B' has a tensorized axis and reduces across threads"),
    (vectorized_size, "loop 'i' of stage 'B' runs over n, but a vectorized loop has a known number of elements"),
    (reader_outside, "stage 'B' is computed at loop 'i' of stage 'D', which its reader 'C' is not inside of"),
    (unequal_threads, "thread 'threadIdx.x' has 16 threads, but stage 'B' binds it to a loop over 8"),
    (nested_threads, "thread 'threadIdx.x' is launched with two numbers of threads in one place"),
    (symbolic_vthread, "loop 'i' of stage 'B' runs over n, but virtual threads are of a known number"),
    (thread_from_one, "loop 'k' of stage 'B' begins at 1, but a thread begins at 0"),
    (unbound_size, "no parameter binds the symbolic size 'n'"),
    (missing_input, "tensor 'A' is read, but neither computed before nor a parameter"),
    (loops_and_threads, "stage 'B' reduces across threads and in loops"),
    (threads_outside, "axis 'i' of stage 'B' stands inside of a reduction axis that is bound to a thread"),
    (no_threads, "stage 'B.repl' reduces across 0 threads: axis 'q.v' has no elements"),
    (
        started_by_none,
        "loop 'k.i.fused' of stage 'B' runs over elements and over the reduction axis 'k', which has n elements",
    ),
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
