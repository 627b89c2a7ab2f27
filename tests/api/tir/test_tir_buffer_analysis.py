"""`tir.analysis` answers what functions do with variables and memory."""

from __future__ import annotations

import mirstack
import pytest
from mirstack import te, tir
from mirstack.api.script.source import from_source
from mirstack.api.tir import analysis

x, y = tir.Var("x", "int32"), tir.Var("y", "int32")


def func(text: str) -> tir.PrimFunc:
    found = from_source("@T.prim_func\n" + text)
    assert isinstance(found, tir.PrimFunc)
    return found


def test_verify_ssa() -> None:
    body = tir.Evaluate(x + y)
    assert analysis.verify_ssa(tir.PrimFunc([x, y], body))
    assert not analysis.verify_ssa(tir.PrimFunc([x, y], tir.LetStmt(x, 1, body)))
    one, two = tir.Let(x, 1, x), tir.Let(x, 2, x)
    assert analysis.verify_ssa(tir.PrimFunc([], tir.Evaluate(one + one)))
    assert not analysis.verify_ssa(tir.PrimFunc([], tir.Evaluate(one * two)))


def test_sizes() -> None:
    given = func(
        "def main(A: T.Buffer((8,), 'float32')):\n"
        "    K = T.allocate_const([1, 2, 3], 'int32', [3])\n"
        "    a = T.allocate([10], 'int8', 'global')\n"
        "    for i in range(2):\n"
        "        b = T.allocate([6], 'float32', 'global')\n"
        "        T.evaluate(b)\n"
        "    c = T.allocate([5], 'float32', 'shared')\n"
        "    T.evaluate(a)\n"
        "    T.evaluate(c)\n"
        "    T.evaluate(K)\n"
    )
    assert analysis.calculate_constant_bytes(given, 16) == 16
    assert analysis.calculate_workspace_bytes(given, 1) == 34
    assert analysis.calculate_workspace_bytes(given, 16) == 48
    sizes = {"global": 34, "shared": 20}
    assert analysis.calculate_allocated_bytes(given) == {"main": sizes}
    assert analysis.calculate_allocated_bytes(mirstack.IRModule({"f": given})) == {"f": sizes}


def test_detect_buffer_access_lca() -> None:
    given = func(
        "def main(A: T.Buffer((8, 8), 'float32'), C: T.Buffer((8, 8), 'float32'), U: T.Buffer((8,), 'float32')):\n"
        "    B = T.alloc_buffer((8, 8))\n"
        "    for i in range(8):\n"
        "        for j in range(8):\n"
        "            with T.block('B'):\n"
        "                vi, vj = T.axis.remap('SS', [i, j])\n"
        "                B[vi, vj] = A[vi, vj] * 2.0\n"
        "        for j in range(8):\n"
        "            with T.block('C'):\n"
        "                vi, vj = T.axis.remap('SS', [i, j])\n"
        "                C[vi, vj] = B[vi, vj] + 1.0\n"
    )
    found = {buffer.name: place for buffer, place in analysis.detect_buffer_access_lca(given).items()}
    assert set(found) == {"A", "B", "C"}
    loop = found["B"]
    assert isinstance(loop, tir.For) and loop.loop_var.name == "i"
    for name, block in (("A", "B"), ("C", "C")):
        place = found[name]
        assert isinstance(place, tir.Block) and place.name_hint == block


def test_anchor_block() -> None:
    given = func(
        "def main(A: T.Buffer((8, 8), 'float32'), B: T.Buffer((8,), 'float32'), C: T.Buffer((8, 8), 'float32')):\n"
        "    for i, j in T.grid(8, 8):\n"
        "        with T.block('sum'):\n"
        "            vi, vj = T.axis.remap('SR', [i, j])\n"
        "            with T.init():\n"
        "                B[vi] = 0.0\n"
        "            B[vi] = B[vi] + A[vi, vj]\n"
        "    for i, j in T.grid(8, 8):\n"
        "        with T.block('map'):\n"
        "            vi, vj = T.axis.remap('SS', [i, j])\n"
        "            C[vi, vj] = A[vi, vj]\n"
    )
    anchor = analysis.find_anchor_block(mirstack.IRModule({"main": given}))
    assert anchor is not None and anchor.name_hint == "sum"
    assert analysis.find_anchor_block(mirstack.IRModule({"main": func("def main():\n    T.evaluate(0)\n")})) is None


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("def main():\n    T.evaluate(0)\n", None),
        ("def main() -> T.int32:\n    T.ret(42)\n", None),
        ("def main(A: T.Buffer(16, 'float32')) -> T.float32:\n    T.ret(A[0])\n", None),
        ("def main(A: T.Buffer(16, 'float32')):\n    A[0] = 1.0\n", "it stores to 'A', which it did not allocate"),
        ("def main():\n    A = T.decl_buffer((16,))\n    A[0] = T.cos(1.0)\n", None),
        ("def main():\n    T.evaluate(T.call_extern('int32', 'f'))\n", "it calls T.call_extern"),
        ("def main():\n    T.evaluate(T.call_pure_extern('int32', 'f'))\n", None),
    ],
)
def test_purity(text: str, effect: str | None) -> None:
    given = func(text)
    assert analysis.is_pure_function(given) == (effect is None)
    if effect is None:
        assert analysis.assert_pure_function(given)
        return
    with pytest.raises(ValueError, match="@main is not pure: " + effect):
        analysis.assert_pure_function(given)


def test_has_if_then_else() -> None:
    store = tir.Evaluate(x)
    assert not analysis.has_if_then_else(store)
    assert analysis.has_if_then_else(tir.For(y, 0, 4, tir.ForKind.SERIAL, tir.IfThenElse(x > 3, store)))
    assert analysis.has_if_then_else(tir.Evaluate(te.if_then_else(x > 3, x, y)))
