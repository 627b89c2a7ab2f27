"""The steps of `lower`, one by one, and what a schedule knows of its stages, by TVM's names."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import ir, te
from mirstack import tir as typed_tir
from mirstack.support.diagnostics import MirError

tir: Any = typed_tir


def blurred() -> tuple[Any, Any, Any, te.Schedule]:
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((16, 16), lambda i, j: B[i, j] * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def test_bounds_then_loops_then_a_function() -> None:
    A, B, C, s = blurred()
    outer, inner = s[C].split(C.op.axis[0], 8)
    s[B].compute_at(s[C], outer)
    s = s.normalize()
    bounds = te.schedule.InferBound(s)
    assert isinstance(bounds, ir.container.Map)
    assert (bounds[B.op.axis[0]].extent, bounds[inner].extent) == (8, 8)
    stmt: Any = te.schedule.ScheduleOps(s, bounds)
    assert isinstance(stmt, tir.ProducerRealize) and stmt.producer is C
    seen: list[Any] = []
    tir.stmt_functor.post_order_visit(stmt, seen.append)
    assert [node.producer for node in seen if isinstance(node, tir.ProducerStore)] == [B, C]
    assert re.search(r"for i, j in T.grid\(8, 16\):\n.*\n? *B_?\d*\[.*\] = A\[.*\] \+ T.float32\(1\)", str(stmt)), str(
        stmt
    )
    func = te.schedule.SchedulePostProcToPrimFunc([A, C], stmt)
    x, y = np.arange(256, dtype="float32").reshape(16, 16), np.zeros((16, 16), "float32")
    mirstack.build(func, target="interp")["main"](x, y)
    assert np.array_equal(y, (x + 1) * 2)
    with pytest.raises(MirError, match=r"not a result of te\.schedule\.ScheduleOps"):
        te.schedule.SchedulePostProcToPrimFunc([A, C], tir.Evaluate(0))
    with pytest.raises(MirError, match="no buffers can be bound to tensors here"):
        te.schedule.SchedulePostProcToPrimFunc([A, C], stmt, {A: tir.decl_buffer((16, 16))})


def test_what_a_stage_knows() -> None:
    _, B, C, s = blurred()
    assert (s[B].attach_type, s[B].group, s.groups) == (1, None, [])
    outer, inner = s[C].split(C.op.axis[0], 8)
    s[B].compute_at(s[C], outer)
    assert s[B].attach_type == 4 and s[B].attach_stage == s[C] and s[B].attach_ivar is outer
    (split,) = s[C].relations
    assert isinstance(split, te.schedule.Split) and split.parent is C.op.axis[0] and split.outer is outer
    s[C].vectorize(C.op.axis[1])
    s[C].pragma(outer, "auto_unroll_max_step", 4)
    s[B].storage_align(B.op.axis[0], 8, 1)
    attrs = s[C].iter_var_attrs
    assert attrs[C.op.axis[1]].iter_type == tir.IterVar.Vectorized
    assert attrs[outer].pragma_keys == ["auto_unroll_max_step"] and attrs[outer].pragma_values[0] == 4
    aligned = s[B].iter_var_attrs[B.op.axis[0]]
    assert (aligned.dim_align_factor, aligned.dim_align_offset, aligned.bind_thread) == (8, 1, None)
    assert s.stage_map[B.op] == s[B] and s[B].origin_op is B.op and s.outputs == [C.op]
    assert inner in s[C].leaf_iter_vars


def test_groups() -> None:
    A, B, C, s = blurred()
    group = s.create_group(outputs=B, inputs=A)
    assert s[B].group == group and group.num_child_stages == 1 and s.groups == [group]
    assert s[C].group is None and hash(group) == hash(s[B].group)


def test_inlined_by_their_kind() -> None:
    A = te.placeholder((4,), name="A")
    D = te.placeholder((4, 5), name="D")
    by_rows = te.compute((4, 5), lambda i, j: A[i] * D[i, j], name="by_rows")
    turned = te.compute((5, 4), lambda i, j: by_rows[j, i], name="turned")
    last = te.compute((5, 4), lambda i, j: turned[i, j] + 1.0, name="last")
    inlined: dict[str, list[int]] = {}
    for name in ("ElemWise", "Broadcast", "Injective"):
        s = te.create_schedule(last.op)
        getattr(te.schedule, f"AutoInline{name}")(s)
        inlined[name] = [s[each].attach_type for each in (by_rows, turned, last)]
    assert inlined == {"ElemWise": [1, 1, 1], "Broadcast": [2, 1, 1], "Injective": [2, 2, 1]}


def test_graph_of_operations() -> None:
    A, B, C, s = blurred()
    graph = te.schedule.CreateReadGraph([C.op])
    assert graph[C.op] == [B] and te.schedule.PostDFSOrder([C.op], graph) == [A.op, B.op, C.op]
    s[B].compute_at(s[C], C.op.axis[1])
    assert te.schedule.CreateAttachPath(s)[B.op] == [C.op.axis[1], C.op.axis[0]]


def test_tag_scope() -> None:
    with te.tag_scope(tag="fuse"):
        B = te.compute((4,), lambda i: i)
    made = te.tag_scope("conv")(lambda: te.compute((4,), lambda i: i))
    assert (B.op.tag, made().op.tag) == ("fuse", "conv")
    with te.tag_scope("a"):
        with pytest.raises(ValueError, match="a tag_scope of 'b' cannot be inside of one of 'a'"), te.tag_scope("b"):
            pass
        with pytest.raises(ValueError, match="with the tag 'c' cannot be made inside of a tag_scope of 'a'"):
            te.compute((4,), lambda i: i, tag="c")


def test_elements_of_a_body() -> None:
    A = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), "k")
    B = te.compute((4,), lambda i: te.max(A[i, k], axis=k), name="B")
    op: Any = B.op
    (whole,) = op.body
    assert isinstance(whole, tir.Reduce) and whole.axis == [k] and whole.init == [] and bool(whole.condition)
    (read,) = whole.source
    assert isinstance(read, tir.ProducerLoad) and read.producer is A and read.indices == (B.axis[0], k)
    combiner = whole.combiner
    assert str(combiner.result[0]) == "max(x, y)" or str(combiner.result[0]) == "T.max(x, y)"
    assert float(combiner.identity_element[0]) < -3e38
    extent: Any = A.shape[0]
    assert extent.value == 4 and extent.dtype == "int32"
    assert (A + 1.0).op.tag == "elemwise" and (A + A).op.tag == "broadcast"


def test_functions_of_intrinsics() -> None:
    x = te.var("x", "float32")
    calls: list[tuple[Any, str, str]] = [
        (tir.op.tvm_tuple(x, 1), "tir.tvm_tuple", "handle"),
        (tir.op.tvm_struct_get(tir.Var("a", "handle"), 0, 1, "int32"), "tir.tvm_struct_get", "int32"),
        (tir.op.vectorlow("float32x4", x), "tir.vectorlow", "float32x4"),
        (tir.op.call_packed("f", x), "tir.tvm_call_packed", "int32"),
        (tir.ret(x), "tir.ret", "float32"),
        (tir.op.isnullptr(tir.Var("a", "handle")), "tir.isnullptr", "bool"),
    ]
    for call, name, dtype in calls:
        assert (call.op.name, call.dtype) == (name, dtype)
    assert str(tir.op.add(x, 1)) == str(x + 1) and tir.op.shift_left(te.const(1), 3) == 8
    with pytest.raises(AttributeError, match="no attribute 'tvm_tupel'; did you mean 'tvm_tuple'"):
        tir.op.tvm_tupel  # noqa: B018
    with pytest.raises(MirError, match="calls a Python function from compiled code"):
        te.trace([x])


def test_texts_are_those_of_scripts() -> None:
    x, f = te.var("x"), te.var("f", "float32")
    texts = {
        "T.int64(4)": te.const(4, "int64"), "4": te.const(4), "T.bool(True)": te.const(True), 'T.float32("inf")': tir.infinity("float32"),
        "T.min(x, 2) - (x - 1)": te.min(x, 2) - (x - 1), "f / T.float32(2)": f / 2.0, "T.Div(x, 3)": tir.truncdiv(x, 3),
        "T.truncmod(x, 3)": tir.truncmod(x, 3), "not x < 1": tir.Not(x < 1), "T.Select(x < 1, x, 2)": tir.Select(x < 1, x, 2),
        'T.call_extern("int32", "g", x)': tir.call_extern("int32", "g", x), "T.bitwise_and(x, 3)": x & 3,
        'T.tvm_struct_get(x, 0, 1, "int32")': tir.op.tvm_struct_get(x, 0, 1, "int32"),
        'T.Broadcast(T.Cast("float32", x), 4)': x.astype("float32x4"),
    }  # fmt: skip
    assert {str(value): value for value in texts.values()}.keys() == texts.keys()
    assert x.astype("int").same_as(x) and f.astype("int").dtype == "int32" and (x + 1).script() == "x + 1"
    with pytest.raises(MirError, match="a value of float32x4 cannot be cast to int32x2: the number of lanes differs"):
        x.astype("float32x4").astype("int32x2")
    with pytest.raises(ValueError, match="an expression has no truth value"):
        bool(x + 1)
    with pytest.raises(ValueError, match=r"te\.any needs a value"):
        tir.any()


def test_constructor_of_reductions() -> None:
    k = tir.IterVar((0, 4), "k", tir.IterVar.CommReduce)
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    combiner = tir.CommReducer([x], [y], [x + y], [te.const(0)])
    made = tir.Reduce(combiner, [k], [k], None, 0)
    assert made.combiner is combiner and made.axis == [k] and made.value_index == 0 and bool(made.condition)
    assert tir.Reduce(None, [1], [k], te.const(True), 0).combiner is None
    assert tir.Buffer.READ | tir.Buffer.WRITE == 3 and tir.if_then_else(x < 1, x, y).op.name == "tir.if_then_else"


def test_statements_print_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    stmt = tir.Evaluate(te.var("x") + 1)
    stmt.show()
    assert capsys.readouterr().out.strip() == stmt.script() == "x = T.int32()\nT.evaluate(x + 1)"


def test_lanes_of_operands() -> None:
    x, v = te.var("x"), tir.Var("v", "int32x4")
    assert (x + v).dtype == "int32x4" and (v < 3).dtype == "boolx4" and (te.const(1, "int8x2") >> 1).dtype == "int8x2"
    assert str(v + 1) == "v + T.Broadcast(1, 4)" and (x >> te.const(1, "int32x2")).dtype == "int32x2"
    with pytest.raises(MirError, match=r"'\+' cannot combine int32x4 and int32x2: the number of lanes differs"):
        _ = v + te.const(1, "int32x2")
