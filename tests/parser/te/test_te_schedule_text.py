"""Schedules and hybrid scripts in text: what is read is printed again, in both forms; what is wrong is refused at its place."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack import IRModule, build, te
from mirstack.lowering.te.lower_te_to_tir import LowerTEToTIR
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from xdsl.context import Context

PROGRAM = """@te.func
def f():
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
"""

ALL = (
    PROGRAM
    + """    s = te.create_schedule(C.op)
    tx = te.thread_axis((0, 4), "vthread", name="tx")
    xo, xi = s[C].split(s[C].op.axis[0], nparts=n // 4 + 1)
    s[C].bind(xi, te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], xo)
    ko, ki = s[B].split(s[B].op.reduce_axis[0], factor=4)
    BF = s.rfactor(B, ki, 1)
    AL = s.cache_read(A, "shared", [BF])
    fused = s[BF].fuse(s[BF].op.axis[0], s[BF].op.axis[1])
    s[BF].reorder(s[BF].op.reduce_axis[0], fused)
    s[AL].pragma(s[AL].op.axis[0], "unroll", 1)
    s[AL].storage_align(s[AL].op.axis[0], 8, 1)
    s[AL].double_buffer()
    s[C].set_store_predicate(xo > 0)
    s[C].prefetch(A, xo, 1)
    g = s.create_group([AL], [A], include_inputs=True)
    g.compute_root()
    return s, [A, C]
"""
)


def test_text_is_a_fixed_point_in_both_forms():
    once = print_mir(parse_mir(ALL))
    assert print_mir(parse_mir(once)) == once
    assert "s[B].compute_at(s[C], xo)" in once
    assert "nparts=n // 4 + 1" in once
    assert "s[C].set_store_predicate(0 < xo)" in once or "s[C].set_store_predicate(xo > 0)" in once


def test_a_schedule_apart_runs():
    text = (
        PROGRAM
        + "    return [A, C]\n\n@te.schedule(f)\ndef fast(s):\n    xo, xi = s[C].split(C.op.axis[0], factor=4)\n    s[B].compute_at(s[C], xo)\n    s[C].parallel(xo)\n"
    )
    once = print_mir(parse_mir(text))
    assert print_mir(parse_mir(once)) == once
    module = IRModule.of_op(parse_mir(once))
    a, c = np.arange(80, dtype="float32").reshape(10, 8), np.empty(10, "float32")
    build(module)["f"](a, c)
    np.testing.assert_allclose(c, a.sum(1) * 2)


def test_a_function_is_scheduled_once():
    item = "\n@te.schedule(f)\ndef {}(s):\n    s[C].unroll(C.op.axis[0])\n"
    text = PROGRAM + "    return [A, C]\n" + item.format("g") + item.format("h")
    with pytest.raises(MirError, match="TE function 'f' is scheduled twice"):
        LowerTEToTIR().apply(Context(), parse_mir(text))


def test_cache_write_of_several_and_pass():
    text = """@te.func
def f():
    A = te.placeholder((4,), name="A")
    B0, B1 = te.compute((4,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="B")
    s = te.create_schedule(B0.op)
    L0, L1 = s.cache_write([B0, B1], "local")
    return s, [A, B0, B1]

@te.schedule(g)
def nothing(s):
    pass

@te.func
def g():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i], name="B")
    return [A, B]
"""
    once = print_mir(parse_mir(text))
    assert "L0, L1 = s.cache_write([B0, B1]" in once
    assert "def nothing(s):\n    pass" in once
    assert print_mir(parse_mir(once)) == once


def scheduled(*lines: str) -> str:
    return PROGRAM + "    s = te.create_schedule(C.op)\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (scheduled("s[C].splt(C.op.axis[0], 4)", "return s, [A, C]"), "a stage has no '.splt'\n.*\n.*\nnote: did you mean .split\\?"),
        (scheduled("s[C].cache_read(A, 'local', [B])", "return s, [A, C]"), "a stage has no '.cache_read'"),
        (scheduled("s.split(C.op.axis[0], 4)", "return s, [A, C]"), "a schedule has no '.split'"),
        (scheduled("s[C].tensorize(C.op.axis[0], 4)", "return s, [A, C]"), "a stage has no '.tensorize' in text"),
        (scheduled("s['C'].compute_root()", "return s, [A, C]"), "a stage is found by its tensor, s\\[B\\], not by the string"),
        (scheduled("s[C].split('i', 4)", "return s, [A, C]"), "'parent' of split is an axis"),
        (scheduled("s[C].split()", "return s, [A, C]"), "split: missing a required argument"),
        (scheduled("s[C].split(C.op.axis[0], factor=0)", "return s, [A, C]"), "the factor of a split is 0"),
        (scheduled("s[C].vectorize(B.op.axis[0])", "return s, [A, C]"), "cannot vectorize axis 'i': it is not a loop of stage 'C'"),
        (scheduled("return s"), "the function returns its schedule alone"),
        (PROGRAM + "    return [A, C]\n\n@te.schedule\ndef t(s):\n    pass\n", "@te.schedule names the function that it schedules"),
        (PROGRAM + "    return [A, C]\n\n@te.schedule(f)\ndef t(s, r):\n    pass\n", "schedule 't' has 2 parameters"),
        (PROGRAM + "    return [A, C]\n\n@te.schedule(f)\ndef t(s):\n    return 4\n", "schedule 't' returns something"),
        (PROGRAM + "    return [A, C]\n\n@te.schedule(h)\ndef t(s):\n    pass\n", "there is no TE function 'h' to schedule"),
        (PROGRAM + "    D = te.allocate((4,))\n    return [A, C]\n", "te.allocate stands in the function of a te.extern"),
        (PROGRAM + "    def body(ins, outs):\n        t = te.allocate((4,), 'float32', 4)\n    D = te.extern((4,), [A], body)\n    return [A, D]\n", "the storage scope of te.allocate is a string, not the number 4"),
    ],
)  # fmt: skip
def test_refused(text: str, message: str):
    with pytest.raises(MirError, match=f"(?s){message}") as refusal:
        parse_mir(text)
    assert ":1:1" not in str(refusal.value)


HYBRID = """@te.hybrid.script
def f(a):
    {}

@te.func
def g():
    A = te.placeholder((4,), name="A")
    B = f(A)
    return [A, B]
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return a", "hybrid script 'f' does not return its output tensors"),
        ("b = output_tensor((4,), a.dtype)\n    c = output_tensor((4,), a.dtype)\n    return b", "hybrid script 'f' makes 2 output tensors, but returns 1"),
        ("b = output_tensor((4,), 'f8')\n    return b", "an output tensor cannot have dtype 'f8'"),
        ("b = output_tensor((4,), a.dtype)\n    t = allocate((4,), 'float32', 4)\n    return b", "the storage scope of allocate is a string, not the number 4"),
        ("b = output_tensor((4,), a.dtype)\n    x = a[0]\n    x = a\n    return b", "'x' is a variable of dtype float32; it cannot be a Buffer"),
        ("b = output_tensor((4,), a.dtype)\n    for i in const_range(a[0]):\n        b[i] = a[i]\n    return b", "const_range takes Python numbers: its iterations are written out"),
        ("b = output_tensor((4,), a.dtype)\n    for i in const_range(5000):\n        b[i] = a[i]\n    return b", "const_range writes out 5000 iterations; 4096 is the most"),
        ("b = output_tensor((4,), a.dtype)\n    for i, j in const_range(4):\n        b[i] = a[i]\n    return b", "a loop has one variable"),
        ("b = output_tensor((4,), a.dtype)\n    for i in bind('threadIdx.x', 4):\n        b[i] = a[i]\n    return b", "a loop of hybrid script is bound to no thread"),
        ("b = output_tensor((4,), a.dtype)\n    if a[0] > 0.0:\n        x = a[1]\n    b[0] = x\n    return b", "'x' is not defined"),
    ],
)  # fmt: skip
def test_hybrid_refused(body: str, message: str):
    with pytest.raises(MirError, match=message):
        parse_mir(HYBRID.format(body))


def test_hybrid_calls():
    ok = HYBRID.format(
        "b = output_tensor((4,), a.dtype)\n    for i in const_range(4):\n        b[i] = a[3 - i] if i < 2 else 0.0\n    return b"
    )
    assert "te.extern((4,), [A]" in print_mir(parse_mir(ok))
    with pytest.raises(MirError, match="hybrid script 'f' takes 1 argument, but is called with 2"):
        parse_mir(ok.replace("f(A)", "f(A, A)"))
    with pytest.raises(MirError, match="'a' of hybrid script 'f' is None"):
        parse_mir(ok.replace("f(A)", "f(None)"))


def test_a_script_may_be_called_as_a_primitive_is():
    text = """@te.hybrid.script
def split(a):
    b = output_tensor((4,), a.dtype)
    for i in range(4):
        b[i] = a[i]
    return b


@te.func
def f():
    A = te.placeholder((4,), name="A")
    B = split(A)
    C = te.compute((4,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=2)
    return s, [A, C]
"""
    assert "xo, xi = s[C].split(s[C].op.axis[0], factor=2)" in print_mir(parse_mir(text))


def test_a_group_of_tensors_of_before_a_rewrite():
    """The text names tensors as they were at first; what stands in between now is in the group all the same."""
    inputs = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: inputs[i, j] + 1.0, name="B")
    C = te.compute((4, 8), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((4, 8), lambda i, j: C[i, j] + 3.0, name="D")
    members: list[list[str]] = []
    for current in (False, True):
        s = te.create_schedule(D.op)
        local = s.cache_read(B, "local", [C])
        group = s.create_group(s[C].op.output(0) if current else C, local, include_inputs=True)
        group.compute_at(s[D], s[D].op.axis[0])
        members.append([stage.name for stage in s.data.stages if stage.group is group.data])
    assert members == [["B.local", "C"]] * 2
