"""TIR as nodes: functions made of them compute, read back as they were, and are visited, rewritten and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack import ir, te, tir
from mirstack.api.tir import stmt_functor
from mirstack.api.tir.export import export_function
from mirstack.api.tir.restore import restore_function
from mirstack.dialects.tir.stmt import PrimFuncOp
from mirstack.dialects.tir.structural_key import structural_key
from mirstack.parser import parse_mir

ROOT = Path(__file__).parents[3]


def refused(message: str, make: Callable[[], object]) -> None:
    """Checks that something is refused with a message."""
    with pytest.raises(mirstack.MirError) as caught:
        make()
    assert message in str(caught.value)


def add_one(extent: int = 8, name: str = "i") -> tir.PrimFunc:
    """Returns B[i] = A[i] + 1."""
    a, b = tir.decl_buffer((extent,), "float32", "A"), tir.decl_buffer((extent,), "float32", "B")
    i = tir.Var(name, "int32")
    body = tir.For(i, 0, extent, tir.ForKind.SERIAL, tir.BufferStore(b, a[i] + 1.0, [i]))
    return tir.PrimFunc([a, b], body, attrs={"global_symbol": "add_one"})


def test_a_function_of_nodes_computes() -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    mirstack.build(add_one())(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_the_parts_of_a_function() -> None:
    func = add_one()
    a, _ = (func.buffer_map[param] for param in func.params)
    assert (a.name, a.shape, a.dtype, a.scope()) == ("A", (8,), "float32", "global")
    assert isinstance(func.body, tir.For) and isinstance(func.body.body, tir.BufferStore)
    value = func.body.body.value
    assert isinstance(value, tir.Add) and isinstance(value.a, tir.BufferLoad) and value.a.buffer is a
    assert func.body.loop_var.name == "i" and func.body.extent == 8 and func.body.kind == tir.ForKind.SERIAL
    assert func.ret_type == tir.PrimType("void")
    module = mirstack.IRModule.from_expr(func)
    assert module["add_one"].body is func.body and list(module.functions) == [module.get_global_var("add_one")]
    assert str(func.body).splitlines()[-2:] == ["for i in range(8):", "    B[i] = A[i] + T.float32(1)"]


def test_the_parts_of_a_function_of_text() -> None:
    func = mirstack.script.from_source(
        """
@T.prim_func
def f(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 4), "float32")
    for i in T.parallel(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            T.reads()
            T.writes(A[vi, 0:4])
            for k in range(4):
                A[vi, k] = T.float32(2)
"""
    )
    assert isinstance(func, tir.PrimFunc)
    root = func.body
    assert isinstance(root, tir.BlockRealize) and root.block.name_hint == "root"
    loop = root.block.body
    assert isinstance(loop, tir.For) and loop.kind == tir.ForKind.PARALLEL and loop.extent is func.params[1]
    inner = loop.body
    assert isinstance(inner, tir.BlockRealize) and inner.iter_values[0] is loop.loop_var
    block = inner.block
    assert [axis.iter_type for axis in block.iter_vars] == [tir.IterVar.DataPar]
    assert [r.extent for r in block.writes[0].region] == [1, 4]
    buffer = func.buffer_map[func.params[0]]
    assert block.writes[0].buffer is buffer and buffer.dims[0] is func.params[1]


def test_functions_of_tests_read_back_are_the_same() -> None:
    check_round_trips(sorted((ROOT / "filecheck").rglob("*.mir")))


def test_functions_of_the_corpus_read_back_are_the_same(corpus: Path) -> None:
    check_round_trips(sorted((corpus / "tir").glob("*.py"))[::4])


def check_round_trips(files: Sequence[Path]) -> None:
    """Compares functions with what their nodes make; some differ in where the text names strides or declares variables."""
    same = 0
    different: list[str] = []
    for file in files:
        try:
            module = parse_mir(file.read_text(encoding="utf-8"), file.name)
        except mirstack.MirError:
            continue
        for op in module.walk():
            if isinstance(op, PrimFuncOp):
                parts = restore_function(op)
                made = export_function(
                    op.sym_name.data, parts.params, parts.buffer_map, parts.body, ret_type=op.ret_type, attrs=op.attrs
                )
                made.verify()
                if structural_key(made) == structural_key(op):
                    same += 1
                else:
                    different.append(f"{file.name} {op.sym_name.data}")
    assert same > 100 and len(different) <= same // 10, different


def test_visits() -> None:
    func = add_one()
    kinds: list[str] = []
    stmt_functor.post_order_visit(func.body, lambda node: kinds.append(type(node).__name__))
    assert kinds == ["IntImm", "IntImm", "Var", "BufferLoad", "FloatImm", "Add", "BufferStore", "For"]
    seen: list[str] = []
    stmt_functor.pre_order_visit(func.body, lambda node: seen.append(type(node).__name__) or type(node) is tir.For)
    assert seen == ["For", "IntImm", "IntImm", "BufferStore"]


def test_ir_transform_replaces_nodes() -> None:
    func = add_one()

    def doubled(node: tir.FloatImm) -> tir.FloatImm:
        return tir.FloatImm(node.dtype, node.value * 2)

    made = func.with_body(stmt_functor.ir_transform(func.body, None, doubled, ["tir.FloatImm"]))
    y = np.zeros(8, np.float32)
    mirstack.build(made)(np.zeros(8, np.float32), y)
    np.testing.assert_array_equal(y, np.full(8, 2, np.float32))
    same = stmt_functor.ir_transform(func.body, lambda node: None, None, ["tir.For"])
    assert same is func.body


def test_substitute_folds_nothing() -> None:
    i, j = te.var("i"), te.var("j")
    made = stmt_functor.substitute(i * 2 + j, {i: 3})
    assert isinstance(made, tir.Add) and isinstance(made.a, tir.Mul) and made.a.a == 3 and made.b is j
    assert stmt_functor.substitute(j + 1, {i: 3}) is not None


def test_specialize() -> None:
    func = mirstack.script.from_source(
        """
@T.prim_func
def f(a: T.handle, b: T.handle, n: T.int32, x: T.float32):
    A = T.match_buffer(a, (n, n), "float32")
    B = T.match_buffer(b, (n, n), "float32")
    for i, j in T.grid(n, n):
        B[i, j] = A[i, j] * x
"""
    )
    assert isinstance(func, tir.PrimFunc)
    a, _, n, x = func.params
    small = func.specialize({a: tir.decl_buffer((2, 2), "float32"), x: 3.0})
    assert [buffer.shape for buffer in small.buffer_map.values()] == [(2, 2), (2, 2)]
    given, out = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)
    mirstack.build(small)(given, out, 2)
    np.testing.assert_array_equal(out, np.full((2, 2), 3, np.float32))
    assert len(func.specialize({n: 4}).params) == 3
    refused("'m' is not a parameter of 'f'", lambda: func.specialize({te.var("m"): 1}))
    refused("parameter 'a' is the address of a buffer: bind it to a buffer", lambda: func.specialize({a: 3}))
    refused(
        "buffer 'A' is of 2 dimensions and dtype float32, but bound to one of 1 and float32",
        lambda: func.specialize({a: tir.decl_buffer((2,), "float32")}),
    )
    refused(
        "parameter 'n' is int32, but bound to a value of dtype int64",
        lambda: func.specialize({n: te.var("m", "int64")}),
    )
    refused(
        "size 'n' of buffer 'A' is bound to 2 and to 3",
        lambda: func.specialize({a: tir.decl_buffer((2, 3), "float32")}),
    )
    fixed = add_one()
    refused(
        "buffer 'A' has an extent of 8, but is bound to one of 9",
        lambda: fixed.specialize({fixed.params[0]: tir.decl_buffer((9,), "float32")}),
    )


def test_structural_equality() -> None:
    first, second = add_one(), add_one(name="j")
    ir.assert_structural_equal(first.body, second.body, map_free_vars=True)
    assert not ir.structural_equal(first.body, second.body)
    assert ir.structural_equal(first, second)
    assert not ir.structural_equal(first.body, add_one(4).body, map_free_vars=True)
    x, y = te.var("x"), te.var("y")
    assert ir.structural_equal(x + 1, x + 1) and not ir.structural_equal(x + 1, y + 1)
    assert ir.structural_equal(x + 1, y + 1, map_free_vars=True)
    assert ir.structural_hash(x * 2) == ir.structural_hash(x * 2) != ir.structural_hash(x * 3)
    assert ir.structural_equal(tir.FloatImm("float32", 0.1 + 0.2), tir.FloatImm("float32", 0.3))


def test_the_builder_of_statements() -> None:
    ib = tir.ir_builder.create()
    a, b = tir.decl_buffer((8,), "float32", "A"), tir.decl_buffer((8,), "float32", "B")
    source, result = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, 8, "i") as i:
        held = ib.allocate("float32", (1,), "held")
        held[0] = source[i] * 2.0
        with ib.if_scope(i % 2 == 0):
            result[i] = held[0]
        with ib.else_scope():
            result[i] = -held[0]
    func = tir.PrimFunc([a, b], ib.get())
    pointer = ib.pointer("float32", "p")
    assert tir.PrimFunc([pointer], pointer.buffer.vstore([0], 1.0)).params == [pointer.asobject()]
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    mirstack.build(func)(x, y)
    np.testing.assert_array_equal(y, x * 2 * np.where(np.arange(8) % 2 == 0, 1, -1))


def test_what_the_builder_refuses() -> None:
    ib = tir.ir_builder.create()
    refused("a statement or call is emitted, not int", lambda: ib.emit(3))
    with ib.for_range(0, 8):
        refused("the builder's statements are complete outside of its scopes only", ib.get)
    buffer = tir.decl_buffer((8,), "float32", "A")
    refused(
        "content_lanes of access_ptr is the number of elements accessed at once, 1 or more",
        lambda: buffer.access_ptr("r", content_lanes=0),
    )
    nothing = tir.Call("void", "tir.tvm_storage_sync", ["shared"])
    refused(
        "T.tvm_storage_sync returns nothing, so that its value cannot be used",
        lambda: tir.PrimFunc([], tir.Evaluate(tir.Add(tir.Cast("int32", nothing), 1))),
    )
    refused(
        "'+' cannot combine int32 and handle",
        lambda: te.const(0, "int32") + buffer.data,
    )


def test_vectors_and_lets() -> None:
    a, b = tir.decl_buffer((8,), "float32", "A"), tir.decl_buffer((8,), "float32", "B")
    x = tir.Var("x", "float32")
    body = tir.LetStmt(x, a[0], tir.SeqStmt([b.vstore([4], a.vload([0], "float32x4")), tir.BufferStore(b, x, [0])]))
    given, out = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    mirstack.build(tir.PrimFunc([a, b], body))(given, out)
    np.testing.assert_array_equal(out, [1, 0, 0, 0, 1, 2, 3, 4])


def test_constructors_neither_match_nor_fold() -> None:
    x = te.var("x")
    assert isinstance(tir.Add(1, 2), tir.Add) and isinstance(x + 0, tir.Var)
    y = te.var("y", "int64")
    refused("the operands of tir.Add have different dtypes: int32 and int64", lambda: tir.Add(x, y))
    refused("the condition of Select must be bool, not int32", lambda: tir.Select(x, 1, 2))
    refused("the values of tir.Select have different dtypes: int32 and float32", lambda: tir.Select(x > 0, x, 2.0))
    refused("base and stride of tir.Ramp have different dtypes: int32 and int64", lambda: tir.Ramp(x, y, 4))
    refused("a call is of an operator, its name or a function, not the number 3", lambda: tir.Call("int32", 3, []))
    call = tir.Call("float32", "tir.exp", [te.var("f", "float32")])
    assert call.op.name == "tir.exp" and call.op.same_as(tir.Call("float16", "exp", [1.0]).op) and len(call.args) == 1


def test_what_expressions_show() -> None:
    x = te.var("x")
    shown = {
        "x + 1": x + 1,
        "T.Ramp(x, 1, 4)": tir.Ramp(x, 1, 4),
        "T.Broadcast(x + 1, 2)": tir.Broadcast(x + 1, 2),
        "T.Shuffle([T.Ramp(x, 1, 4)], [3, 0])": tir.Shuffle([tir.Ramp(x, 1, 4)], [3, 0]),
        "T.Let(x * 2, where={x: 3})": tir.Let(x, 3, x * 2),
    }
    for text, node in shown.items():
        assert str(node) == text
    buffer = tir.decl_buffer((8,), "float32", "A")
    marked = tir.AttrStmt(buffer.data, "key", 1, tir.BufferStore(buffer, 1.0, [0]))
    assert str(marked) == 'A = T.Buffer((8,))\nT.attr(A.data, "key", 1)\nA[0] = T.float32(1)'


def test_parts_of_a_wrong_kind() -> None:
    a, i = tir.decl_buffer((8,), "float32", "A"), te.var("i")
    store = tir.BufferStore(a, 1.0, [i])
    block = tir.Block([tir.IterVar((0, 8), "v", tir.IterVar.ThreadIndex)], [], [], "b", store)
    refused("block 'b' has 1 axis, but 2 values for them", lambda: tir.BlockRealize([1, 2], True, block))
    refused(
        "axis 'v' of block 'b' is of kind ThreadIndex", lambda: tir.PrimFunc([a], tir.BlockRealize([0], True, block))
    )
    refused("buffer 'A' has 1 dimension, but is accessed with 2 indices", lambda: a[0:4, 0:2])
    refused("tir.Shuffle takes one vector or more", lambda: tir.Shuffle([], [0]))
    wrong: dict[str, Callable[[], object]] = {
        "body is a statement, not None": lambda: tir.For(i, 0, 8, 0, None),  # type: ignore[arg-type]
        "loop_var is a variable, not 3": lambda: tir.For(3, 0, 8, 0, store),  # type: ignore[arg-type]
        "a part of seq is a statement, not 1": lambda: tir.SeqStmt([1]),  # type: ignore[list-item]
        "what a block reads or writes is a BufferRegion": lambda: tir.Block([], [a], [], "b", store),  # type: ignore[list-item]
        "message is a text, not 3": lambda: tir.AssertStmt(True, 3, store),  # type: ignore[arg-type]
        "what is visited is a statement or an expression, not None": lambda: stmt_functor.post_order_visit(None, print),  # type: ignore[arg-type]
    }
    for message, make in wrong.items():
        with pytest.raises(TypeError) as caught:
            make()
        assert message in str(caught.value)


def test_immediates() -> None:
    assert tir.IntImm("int32", 3) == 3 and tir.IntImm("int32", 3) != 4 and int(tir.IntImm("int64", 5)) == 5
    assert isinstance(te.const(1), tir.IntImm) and isinstance(te.const(1.5), tir.FloatImm)
    assert tir.StringImm("a") == "a" and tir.StringImm("a") != "b" and repr(tir.StringImm("a")) == '"a"'
    made = tir.Range(2, 6)
    assert (made.min, made.extent) == (2, 4) and tir.Range(3).extent == 3
    assert tir.Range.from_min_extent(1, 2).extent == 2


SCALED = """
@T.prim_func
def scaled(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)
"""


def test_the_nodes_of_handles() -> None:
    sch = tir.Schedule(parse_mir(SCALED))
    block, root = sch.get_block("C"), sch.get_block("root")
    i, j = sch.get_loops(block)
    node = sch.get(block)
    assert isinstance(node, tir.Block) and node.name_hint == "C" and sch.get(block) is node
    assert [axis.var.name for axis in node.iter_vars] == ["vi", "vj"]
    assert str(node.reads[0]) == "A[vi:vi + 1, vj:vj + 1]"
    assert isinstance(sch.get(root), tir.Block) and sch.get(root).name_hint == "root"
    assert sch.get(i).extent.value == 16 and sch.get(j).kind == tir.ForKind.SERIAL
    sch.vectorize(j)
    assert sch.get(j).kind == tir.ForKind.VECTORIZED
    assert sch.get(i).body is sch.get(j), "one tree of nodes"
    tile = sch.sample_perfect_tile(i, n=2, decision=[4, 4])
    assert [sch.get(each) for each in tile] == [4, 4]
