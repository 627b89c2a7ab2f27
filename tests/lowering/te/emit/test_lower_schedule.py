"""What scheduled TE programs compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mirstack as tvm
import numpy as np
import pytest
from mirstack import te

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


def test_rfactor_of_a_part_beside_a_fused_one():
    """The rest of k is fused with q, which is then one of the axes that the parts are made of."""
    A = te.placeholder((6, 12, 5), name="A")
    k, q = te.reduce_axis((0, 12), name="k"), te.reduce_axis((0, 5), name="q")
    B = te.compute((6,), lambda i: te.sum(A[i, k, q], axis=[k, q]), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=4)
    s[B].fuse(ki, q)
    s.rfactor(B, ko)
    a, b = floats(6, 12, 5), np.empty(6, "float32")
    run(s, [A, B], a, b)
    np.testing.assert_allclose(b, a.sum((1, 2)), rtol=1e-4, atol=1e-4)


def test_comparisons_with_the_least_number():
    """The least integer does not move to the other side: one less is not an int32."""
    A = te.placeholder((4,), "int32", "A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: te.Select(B[i] > te.min_value("int32"), B[i], te.const(9)), name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    a, c = np.array([6, -7, 0, 100], np.int32), np.empty(4, "int32")
    run(s, [A, C], a, c)
    assert c.tolist() == [7, -6, 1, 101]


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


def test_strides_of_buffers_that_are_bound():
    A = te.placeholder((4, 24), name="A")
    B = te.compute((4, 24), lambda i, j: A[i, j] + 1.0, name="B")
    a = te.placeholder((4, 8), name="a")
    b = te.compute((4, 8), lambda i, j: a[i, j] + 1.0, name="b")
    layout = tvm.tir.decl_buffer(a.shape, a.dtype, strides=[te.var("s"), 1])

    def statements(ins, outs):
        assert not outs[0].strides
        return te.call_extern("int32", "add8", ins[0].access_ptr("r"), ins[0].strides[0], ins[0].strides[1])

    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[1], 8)
    s[B].reorder(outer, B.op.axis[0], inner)
    s[B].tensorize(B.op.axis[0], te.decl_tensor_intrin(b.op, statements, binds={a: layout}))
    text = tvm.lower(s, [A, B], simple_mode=True).script()
    assert "j_outer * 8, 32, 1), 24, 1)" in text


def test_what_a_loop_says_of_its_extent_ends_with_it():
    """Behind `for t in range(i - 1)` nothing is known of i; the check that i is not below 1 stays."""
    A = te.placeholder((4, 1), name="A")
    state = te.placeholder((4, 1), name="state")
    first = te.compute((1, 1), lambda _, j: A[0, j], name="first")
    update = te.compute((4, 1), lambda t, j: state[t - 1, j] + A[t, j], name="update")
    scan = te.scan(first, update, state, inputs=[A], name="scan")
    B = te.compute((4, 1), lambda i, j: scan[i, j] * 2.0, name="B")
    before = te.const(0.0, "float32")
    C = te.compute((4, 1), lambda i, j: B[i, j] + te.if_then_else(i >= 1, B[i - 1, j], before), name="C")
    s = te.create_schedule(C.op)
    s[scan].compute_at(s[B], B.op.axis[1])
    a, c = floats(4, 1), np.full((4, 1), np.nan, "float32")
    run(s, (A, C), a, c)
    sums = 2 * np.cumsum(a, 0)
    np.testing.assert_allclose(c, sums + np.concatenate([np.zeros((1, 1)), sums[:-1]]), rtol=1e-5)


THREADS_IN_A_LOOP = """
@te.func
def main():
    A = te.placeholder((4, 5), name="A")
    S0 = te.compute((4, 5), lambda i, j: A[i, 4 - j] * 2.0, name="S0")
    k = te.reduce_axis((0, 5), name="k")
    S1 = te.compute((4,), lambda i: te.sum(S0[i, k], axis=k), name="S1")
    S2 = te.compute((4,), lambda i: S1[i], name="S2")
    return [A, S2]


@te.schedule(main)
def s(s):
    ko, ki = s[S1].split(k, factor=5)
    s[S1].reorder(ko, s[S1].op.axis[0], ki)
    s[S1].compute_at(s[S2], s[S2].op.axis[0])
    s[S0].compute_at(s[S1], s[S1].op.axis[0])
    s[S0].split(s[S0].op.axis[0], factor=3)
    s[S0].bind(s[S0].op.axis[1], te.thread_axis("threadIdx.x"))
"""


def test_threads_end_before_what_reads_their_elements() -> None:
    """Also where loops of one iteration, of which no loop is made, are around the threads."""
    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    for target in ("cpu", "interp"):
        sums = np.zeros(4, np.float32)
        tvm.compile(tvm.parse(THREADS_IN_A_LOOP), target)(a, sums)
        np.testing.assert_array_equal(sums, a.sum(1) * 2)


def test_a_stage_computed_where_two_places_of_symbolic_bounds_are_read():
    # What is read lies between min(k, i) and max(k, i), of which neither is a number.
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), name="k")
    D = te.compute((n,), lambda i: A[i] + 1.0, name="D")
    B = te.compute((n,), lambda i: te.sum(D[k] * D[i], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[D].compute_at(s[B], B.op.reduce_axis[0])
    for size in (1, 2, 7):
        a, b = floats(size), np.full(size, np.nan, "float32")
        run(s, [A, B], a, b)
        np.testing.assert_allclose(b, (a + 1) * (a + 1).sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inlined", ["D", "S", "DS"])
def test_a_reader_that_changes_twice_is_still_read(inlined: str):
    # Inlined D changes S and T.global; as S changed, T.global changes again, and T reads the last of it.
    A = te.placeholder((8,), name="A")
    D = te.compute((8,), lambda i: A[i] * 2, name="D")
    S = te.compute((8,), lambda i: D[i] + 3, name="S")
    T = te.compute((8,), lambda i: S[i] + D[i], name="T")
    s = te.create_schedule(T.op)
    for stage in (D, S):
        if stage.name in inlined:
            s[stage].compute_inline()
    cache = s.cache_write(T, "global")
    s[cache].compute_at(s[T], T.op.axis[0])
    a, t = floats(8), np.full(8, np.nan, "float32")
    run(s, [A, T], a, t)
    np.testing.assert_allclose(t, a * 4 + 3, rtol=1e-6)


def test_readers_of_a_cache_that_read_each_other():
    A = te.placeholder((8,), name="A")
    S = te.compute((8,), lambda i: A[i] + 3, name="S")
    T = te.compute((8,), lambda i: S[i] + A[i], name="T")
    U = te.compute((8,), lambda i: S[i] * T[i] + A[i], name="U")
    s = te.create_schedule(U.op)
    s.cache_read(A, "local", [S, T, U])
    s.cache_read(S, "global", [T, U])
    a, u = floats(8), np.full(8, np.nan, "float32")
    run(s, [A, U], a, u)
    np.testing.assert_allclose(u, (a + 3) * (2 * a + 3) + a, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_parameters_of_symbolic_size_take_strides(target: str):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    main = tvm.build(tvm.lower(te.create_schedule(B.op), [A, B]), target=target)["main"]
    x = floats(3, 4)
    inputs = [np.asfortranarray(x), np.broadcast_to(x[0], (3, 4)), np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]]
    for given in inputs:
        out = np.zeros((3, 4), "float32")
        main(given, out)
        np.testing.assert_array_equal(out, given + 1)
    one_row = np.lib.stride_tricks.as_strided(np.zeros(4, "float32"), (3, 4), (0, 4))
    for out in (np.zeros((3, 4), "float32", order="F"), np.zeros((6, 8), "float32")[::2, ::2], one_row):
        same = np.broadcast_to(x[0], (3, 4))
        main(same, out)
        np.testing.assert_array_equal(out, same + 1)
    # The flat view of a parameter begins with its first element.
    for place, arrays in (("0 of 'A' is -4", (x[::-1], x.copy())), ("1 of 'B' is -1", (x, x.copy()[:, ::-1]))):
        with pytest.raises(tvm.MirError, match=rf"\.py:\d+:\d+: error: stride {place}, but its first element must be"):
            main(*arrays)
    main(x[:1, :][::-1], out := np.zeros((1, 4), "float32"))
    np.testing.assert_array_equal(out, x[:1] + 1)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_vectors_of_which_no_lane_reads(target: str):
    n = te.var("n")
    A = te.placeholder((n, 10), name="A", dtype="int32")
    P = te.compute(
        (n + 2, 12),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < n + 1, j >= 1, j < 11), A[i - 1, j - 1], -5),
        name="P",
    )
    s = te.create_schedule(P.op)
    s[P].vectorize(s[P].split(P.op.axis[1], 4)[1])
    main = tvm.build(tvm.lower(s, [A, P]), target=target)["main"]
    for size in (0, 3):
        a = np.arange(size * 10, dtype="int32").reshape(size, 10)
        main(a, p := np.zeros((size + 2, 12), "int32"))
        np.testing.assert_array_equal(p, np.pad(a, 1, constant_values=-5))


def test_threads_that_each_compute_a_whole_scan():
    """All threads of env_threads store the same: what one of them reads, it has stored itself."""
    A = te.placeholder((9, 3), name="A")
    state = te.placeholder((9, 3), name="state")
    init = te.compute((1, 3), lambda _, j: A[0, j], name="init")
    update = te.compute((9, 3), lambda t, j: state[t - 1, j] + A[t, j], name="update")
    scan = te.scan(init, update, state, inputs=[A], name="scan")
    B = te.compute((9, 3), lambda i, j: scan[i, j] + 3.0, name="B")
    s = te.create_schedule(B.op)
    s[scan].split(scan.op.scan_axis, nparts=5)
    s[scan].env_threads([te.thread_axis((0, 4), "threadIdx.x")])
    a, b = floats(9, 3), np.zeros((9, 3), "float32")
    run(s, [A, B], a, b)
    np.testing.assert_allclose(b, np.cumsum(a, 0) + 3, rtol=1e-5)


def test_threads_that_each_compute_a_whole_scan_of_two_numbers():
    """Each element is stored by a statement of its own."""
    A = te.placeholder((2, 1), name="A")
    state = te.placeholder((2, 1), name="state")
    init = te.compute((1, 1), lambda _, j: A[0, j], name="init")
    update = te.compute((2, 1), lambda t, j: state[t - 1, j] + A[t, j], name="update")
    scan = te.scan(init, update, state, inputs=[A], name="scan")
    B = te.compute((2, 1), lambda i, j: scan[i, j] + 3.0, name="B")
    s = te.create_schedule(B.op)
    s[scan].env_threads([te.thread_axis((0, 5), "threadIdx.x")])
    a, b = floats(2, 1), np.zeros((2, 1), "float32")
    run(s, [A, B], a, b)
    np.testing.assert_allclose(b, np.cumsum(a, 0) + 3, rtol=1e-5)
