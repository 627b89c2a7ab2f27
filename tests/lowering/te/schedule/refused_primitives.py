"""What primitives of a TE schedule are refused for, and the messages: `REFUSED`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mirstack import te
from te_schedules import chain, reduction


def of(build: Callable[[], None], message: str, *notes: str) -> Any:
    return pytest.param(build, message, notes, id=message[:60])


def split_both() -> None:
    s, _, _, C = chain()
    s[C].split(C.op.axis[0], factor=4, nparts=2)


def split_neither() -> None:
    s, _, _, C = chain()
    s[C].split(C.op.axis[0])


def split_by_zero() -> None:
    s, _, _, C = chain()
    s[C].split(C.op.axis[0], factor=0)


def split_by_float() -> None:
    s, _, _, C = chain()
    s[C].split(C.op.axis[0], factor=2.5)


def split_foreign() -> None:
    s, _, B, C = chain()
    s[B].split(C.op.axis[0], factor=4)


def split_twice() -> None:
    s, _, _, C = chain()
    s[C].split(C.op.axis[0], factor=4)
    s[C].split(C.op.axis[0], factor=4)


def split_fused() -> None:
    s, _, _, C = chain()
    s[C].fuse(*C.op.axis)
    s[C].split(C.op.axis[0], factor=4)


def fuse_apart() -> None:
    s, _, _, C = chain()
    io, _ = s[C].split(C.op.axis[0], factor=4)
    s[C].fuse(io, C.op.axis[1])


def fuse_backwards() -> None:
    s, _, _, C = chain()
    s[C].fuse(C.op.axis[1], C.op.axis[0])


def reorder_twice() -> None:
    s, _, _, C = chain()
    s[C].reorder(C.op.axis[0], C.op.axis[0])


def tile_twice() -> None:
    s, _, _, C = chain()
    s[C].tile(C.op.axis[0], C.op.axis[0], 4, 4)


def bind_to_axis() -> None:
    s, _, _, C = chain()
    s[C].bind(C.op.axis[0], C.op.axis[1])


def bind_twice() -> None:
    s, _, _, C = chain()
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.y"))


def bind_two_axes() -> None:
    s, _, _, C = chain()
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))


def parallel_reduction() -> None:
    s, _, B = reduction()
    s[B].parallel(B.op.reduce_axis[0])


def vectorize_reduction() -> None:
    s, _, B = reduction()
    s[B].vectorize(B.op.reduce_axis[0])


def scan() -> tuple[te.Schedule, te.Tensor, te.Tensor, te.Tensor]:
    X = te.placeholder((8, 4), name="X")
    state = te.placeholder((8, 4), name="state")
    init = te.compute((1, 4), lambda _, i: X[0, i], name="init")
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    result = te.scan(init, update, state, inputs=[X], name="scan")
    return te.create_schedule(result.op), result, update, init


def bind_steps() -> None:
    s, result, _, _ = scan()
    s[result].bind(s[result].leaf_iter_vars[0], te.thread_axis("threadIdx.x"))


def place_update() -> None:
    s, _, update, _ = scan()
    s[update].compute_root()
    s[update].compute_inline()


def env_threads_of_compute() -> None:
    s, _, _, C = chain()
    s[C].env_threads(te.thread_axis((0, 4), "threadIdx.x"))


def vectorize_steps() -> None:
    s, result, _, _ = scan()
    s[result].vectorize(s[result].leaf_iter_vars[0])


def parallelize_steps() -> None:
    s, result, _, _ = scan()
    outer, _ = s[result].split(s[result].leaf_iter_vars[0], factor=2)
    s[result].parallel(outer)


def inline_first_states() -> None:
    s, _, _, init = scan()
    s[init].compute_inline()


def inline_update_of_a_group() -> None:
    s, _, update, _ = scan()
    s.create_group(update, inputs=s[update].op.input_tensors)
    s[update].compute_inline()


def reorder_steps() -> None:
    s, result, _, _ = scan()
    outer, inner = s[result].split(s[result].leaf_iter_vars[0], factor=2)
    s[result].reorder(inner, outer)


def tile_steps() -> None:
    s, result, _, _ = scan()
    outer, inner = s[result].split(s[result].leaf_iter_vars[0], factor=2)
    s[result].tile(outer, inner, 2, 2)


def env_threads_twice() -> None:
    s, result, _, _ = scan()
    s[result].env_threads([te.thread_axis((0, 4), "threadIdx.x")])
    s[result].env_threads([te.thread_axis((0, 4), "threadIdx.y")])


def env_threads_without_number() -> None:
    s, result, _, _ = scan()
    s[result].env_threads([te.thread_axis("threadIdx.x")])


def schedule_input() -> None:
    s, A, _, _ = chain()
    s[A].set_scope("local")


def pragma_value() -> None:
    s, _, _, C = chain()
    s[C].pragma(C.op.axis[0], "unroll", te.placeholder((4,)))  # type: ignore[arg-type]


def align_foreign() -> None:
    s, _, B, C = chain()
    s[B].storage_align(C.op.axis[0], 8, 0)


def align_by_nothing() -> None:
    s, _, B, _ = chain()
    s[B].storage_align(B.op.axis[0], 0, 0)


def tensorize_with_number() -> None:
    s, _, _, C = chain()
    s[C].tensorize(C.op.axis[1], 4)


def scope_of_output() -> None:
    s, _, _, C = chain()
    s[C].set_scope("shared")


def output_inside() -> None:
    s, _, B, C = chain()
    s[C].compute_at(s[B], B.op.axis[0])


def inside_itself() -> None:
    s, _, B, _ = chain()
    s[B].compute_at(s[B], B.op.axis[0])


def within_each_other() -> None:
    A = te.placeholder((32,), name="A")
    B = te.compute((32,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((32,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((32,), lambda i: C[i] - 1.0, name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].compute_at(s[B], B.op.axis[0])


def group_within_itself() -> None:
    A = te.placeholder((4, 8), name="A")
    state = te.placeholder((4, 8), name="state")
    init = te.compute((1, 8), lambda _, j: A[0, j], name="init")
    update = te.compute((4, 8), lambda t, j: state[t - 1, j], name="update")
    scan = te.scan(init, update, state, inputs=[A], name="scan")
    s = te.create_schedule(scan.op)
    group = s.create_group(outputs=update, inputs=update, include_inputs=True)
    group.compute_at(s[update], update.op.axis[1])


def at_split_axis() -> None:
    s, _, B, C = chain()
    s[C].split(C.op.axis[0], factor=4)
    s[B].compute_at(s[C], C.op.axis[0])


def from_group() -> None:
    A = te.placeholder((32,), name="A")
    B = te.compute((32,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((32,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((32,), lambda i: C[i] - 1.0, name="D")
    s = te.create_schedule(D.op)
    s.create_group(outputs=C, inputs=A)
    s[B].compute_at(s[D], D.op.axis[0])


def empty_group() -> None:
    s, A, _, _ = chain()
    s.create_group(outputs=[], inputs=[A])


def cut_group() -> None:
    A = te.placeholder((32,), name="A")
    B = te.compute((32,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((32,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((32,), lambda i: C[i] - 1.0, name="D")
    s = te.create_schedule(D.op)
    s.create_group(outputs=C, inputs=A)
    s.create_group(outputs=D, inputs=B)


def inline_output() -> None:
    s, _, _, C = chain()
    s[C].compute_inline()


def inline_reduction() -> None:
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    te.create_schedule(C.op)[B].compute_inline()


def double_output() -> None:
    s, _, _, C = chain()
    s[C].double_buffer()


def predicate_number() -> None:
    s, _, _, C = chain()
    s[C].set_store_predicate(C.op.axis[0] + 1)


def read_of_nobody() -> None:
    s, A, _, _ = chain()
    s.cache_read(A, "local", [])


def read_by_other() -> None:
    s, A, _, C = chain()
    s.cache_read(A, "local", [C])


def read_outside() -> None:
    s, A, _, _ = chain()
    other = te.compute((64, 48), lambda i, j: A[i, j], name="other")
    s.cache_read(A, "local", [other])


def write_input() -> None:
    s, A, _, _ = chain()
    s.cache_write(A, "local")


def write_half() -> None:
    A = te.placeholder((4,), name="A")
    B0, _ = te.compute((4,), lambda i: (A[i], A[i] + 1.0), name="B")
    te.create_schedule(B0.op).cache_write(B0, "local")


def foreign_tensor() -> None:
    s, _, _, _ = chain()
    _, A, _ = reduction()
    s.cache_read(A, "local", [A])


def foreign_stage() -> None:
    s, _, _, _ = chain()
    _ = s[reduction()[1]]


def rfactor_elements() -> None:
    s, _, B = reduction()
    s.rfactor(B, B.op.axis[0])


def rfactor_no_reduction() -> None:
    s, _, _, C = chain()
    s.rfactor(C, C.op.axis[0])


def rfactor_place() -> None:
    s, _, B = reduction()
    s.rfactor(B, B.op.reduce_axis[0], 5)


def rfactor_fused() -> None:
    s, _, B = reduction()
    s.rfactor(B, s[B].fuse(B.op.axis[0], B.op.reduce_axis[0]))


def rfactor_with_init() -> None:
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k, init=1.0), name="B")
    te.create_schedule(B.op).rfactor(B, k)


def rfactor_from_one() -> None:
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((1, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    te.create_schedule(B.op).rfactor(B, k)


def no_output() -> None:
    te.create_schedule([])


REFUSED = [
    of(split_both, "splitting axis 'i' takes both of factor and nparts", "factor= is the length of the inner loop"),
    of(split_neither, "splitting axis 'i' takes neither of factor and nparts"),
    of(split_by_zero, "the factor of a split is 0, but must be at least 1"),
    of(split_by_float, "the factor of a split is an integer, not the number 2.5"),
    of(split_foreign, "cannot split axis 'i': it is not a loop of stage 'B'", "the loops of 'B' are i, j"),
    of(split_twice, "cannot split axis 'i' of stage 'C': it was split", "'i.outer' or 'i.inner'"),
    of(split_fused, "cannot split axis 'i' of stage 'C': it was fused", "take the fused loop 'i.j.fused'"),
    of(fuse_apart, "cannot fuse axes 'i.outer' and 'j' of stage 'C': 'i.inner' stands between them", "s[C].reorder"),
    of(fuse_backwards, "cannot fuse axes 'j' and 'i' of stage 'C': they are not in this order"),
    of(reorder_twice, "axis 'i' of stage 'C' is given to reorder twice"),
    of(tile_twice, "axis 'i' of stage 'C' is given to tile twice"),
    of(bind_to_axis, "axis 'i' of stage 'C' is bound to 'j', which is not a thread", "te.thread_axis"),
    of(bind_twice, "axis 'i' of stage 'C' is bound to thread 'threadIdx.x' already"),
    of(
        bind_two_axes,
        "thread 'threadIdx.x' cannot run axis 'j' of stage 'C': axis 'i' is bound to it already",
        "fuse the axes, or bind this one to another thread",
    ),
    of(
        vectorize_steps,
        "cannot vectorize axis 'scan.idx' of stage 'scan': it is the steps of a scan, each of which reads the one before",
        "take an axis of elements, of the stages that update the scan; or unroll",
    ),
    of(parallelize_steps, "cannot parallelize axis 'scan.idx.outer' of stage 'scan': it is the steps of a scan"),
    of(
        inline_first_states,
        "cannot inline stage 'init': scan 'scan' begins with it, whose memory it fills",
        "inline what it is computed from",
    ),
    of(bind_steps, "cannot bind axis 'scan.idx' of stage 'scan': it is the steps of a scan"),
    of(inline_update_of_a_group, "the updates of a scan are computed in its steps"),
    of(
        reorder_steps,
        "cannot reorder stage 'scan': 'scan.idx.inner' would come before 'scan.idx.outer', but the steps of a scan each read the one before",
        "loops of a scan's steps keep their order among each other",
    ),
    of(tile_steps, "cannot reorder stage 'scan': 'scan.idx.inner.outer' would come before 'scan.idx.outer.inner'"),
    of(parallel_reduction, "cannot parallelize axis 'k' of stage 'B': it is a reduction axis", "rfactor"),
    of(vectorize_reduction, "cannot vectorize axis 'k' of stage 'B': it is a reduction axis"),
    of(place_update, "the updates of a scan are computed in its steps"),
    of(env_threads_of_compute, "stage 'C' is not a scan, and env_threads is for scans"),
    of(env_threads_twice, "the threads around scan 'scan' are set already"),
    of(
        env_threads_without_number,
        "'threadIdx.x' cannot be a thread around scan 'scan'",
        "give threads with their number",
    ),
    of(schedule_input, "cannot set the storage scope of input 'A': it is not computed", "s.cache_read makes a stage"),
    of(align_foreign, "cannot align axis 'i': it is not a dimension of tensor 'B'"),
    of(align_by_nothing, "the factor of storage_align is 0, but must be at least 1"),
    of(tensorize_with_number, "axis 'j' of stage 'C' is tensorized with the number 4", "te.decl_tensor_intrin"),
    of(scope_of_output, "cannot put output 'C' into shared memory: it is given by the caller", "s.cache_write"),
    of(output_inside, "cannot compute output 'C' inside of stage 'B'"),
    of(inside_itself, "cannot compute stage 'B' inside of itself"),
    of(within_each_other, "cannot compute stage 'C' inside of 'B', which is computed inside of it"),
    of(group_within_itself, "cannot compute stage 'a group' inside of 'update', which is computed inside of it"),
    of(at_split_axis, "cannot compute 'B' at axis 'i' of stage 'C': it was split"),
    of(from_group, "cannot compute stage 'B' at 'D': it is in a group that 'D' is not in", "place the group"),
    of(empty_group, "a group needs a stage"),
    of(cut_group, "the new group would cut a group in two"),
    of(inline_output, "cannot inline output 'C': nothing reads it"),
    of(inline_reduction, "cannot inline stage 'B': it is a reduction", "s[B].compute_at"),
    of(double_output, "cannot double-buffer output 'C': its memory is the caller's"),
    of(predicate_number, "a store predicate is a condition, not an expression of dtype int32"),
    of(read_of_nobody, "cache_read of 'A' names no reader"),
    of(read_by_other, "stage 'C' does not read 'A'"),
    of(read_outside, "'other' is not part of this schedule"),
    of(write_input, "cannot cache what 'A' writes: it is not a te.compute"),
    of(write_half, "cache_write takes all 2 tensors of 'B' together, and no others"),
    of(foreign_tensor, "tensor 'A' is not part of this schedule"),
    of(foreign_stage, "tensor 'A' is not part of this schedule"),
    of(
        rfactor_elements, "cannot rfactor axis 'i' of stage 'B': it is not a reduction axis", "its reduction axes are k"
    ),
    of(rfactor_no_reduction, "cannot rfactor stage 'C': it is not a reduction"),
    of(rfactor_place, "factor_axis is 5, but the parts of 'B' have 2 dimensions"),
    of(
        rfactor_fused,
        "cannot rfactor axis 'i.k.fused' of stage 'B': it was made of 'i' too, which is not a reduction axis",
    ),
    of(rfactor_with_init, "cannot rfactor stage 'B': its reduction begins with a given value"),
    of(rfactor_from_one, "cannot rfactor axis 'k' of stage 'B': it does not begin at 0"),
    of(no_output, "a schedule is made for at least one operation"),
]
