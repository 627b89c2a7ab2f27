"""The pass apply-schedule: scripts in order, refusals at their lines, the module untouched by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mirstack.api.compile import compile
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule.apply_schedule import ApplySchedule
from mirstack.support.diagnostics import MirError, Sources
from mirstack.support.verify import verify
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

CHAIN = """@T.prim_func
def main(A: T.Buffer((16, 30), "float32"), C: T.Buffer((16, 30), "float32")):
    B = T.alloc_buffer((16, 30))
    for i, j in T.grid(16, 30):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 30):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def with_script(*lines: str, target: str = "(main)", program: str = CHAIN) -> str:
    return f"{program}\n@T.schedule{target}\ndef s(sch):\n" + "".join(f"    {line}\n" for line in lines)


def applied(text: str, **options: Any) -> ModuleOp:
    module = parse_mir(text, "a.mir")
    ApplySchedule(**options).apply(Context(), module)
    verify(module)
    return module


def refused(text: str) -> str:
    sources = Sources()
    sources.add("a.mir", text)
    module = parse_mir(text, "a.mir")
    before = print_mir(module)
    with sources.reading(), pytest.raises(MirError) as error:
        ApplySchedule().apply(Context(), module)
    assert print_mir(module) == before
    return str(error.value)


def test_lists_items_splats_and_nested_calls() -> None:
    text = print_mir(
        applied(
            with_script(
                'loops = sch.get_loops(sch.get_block("B"))',
                "sch.reorder(*loops[::-1])",
                "first, *rest = sch.split(sch.fuse(*sch.get_loops('C')), [None, 2, 4])",
                "sch.parallel(first)",
                "sch.vectorize(rest[-1])",
                "outer = rest[0]",
                'sch.annotate(outer, "key", {"a": [1, True], "b": "x"})',
            )
        )
    )
    assert "for j, i in T.grid(30, 16):" in text
    assert "for i_j_fused_0 in T.parallel(60):" in text
    assert 'for i_j_fused_1 in T.serial(2, annotations={"key": {"a": [1, T.bool(True)], "b": "x"}}):' in text
    assert "for i_j_fused_2 in T.vectorized(4):" in text
    assert "schedule" not in text


def test_lambdas() -> None:
    steps = (
        'sch.transform_layout("B", ("write", 0), index_map=lambda i, j: [j // 6, IndexMap.AXIS_SEPARATOR, i, j % 6])'
    )
    text = print_mir(applied(with_script(steps)))
    assert "B[vj // 6, vi, vj % 6]" in text


def test_refusals_are_told_at_the_script() -> None:
    text = refused(with_script('i, j = sch.get_loops("C")', "sch.parallel(j)", 'sch.compute_at("C", j)'))
    assert "a.mir:17:5: error: compute_at: loop 'j' is around block 'C' already" in text
    assert '    sch.compute_at("C", j)\n    ^' in text
    # The program as it was then: with what the calls before did.
    assert "    for i in range(16):\n        for j in T.parallel(30):\n            ^" in text
    assert "a.mir:8:5: note: loop 'j' comes from here" in text


def test_a_caret_under_axis_and_buffer() -> None:
    program = CHAIN.replace(
        'vi, vj = T.axis.remap("SS", [i, j])\n            C',
        "vi = T.axis.spatial(16, i)\n            vj = T.axis.opaque(30, j)\n            C",
    )
    text = refused(with_script('i, j = sch.get_loops("C")', "sch.reorder(j, i)", program=program))
    assert "axis 'vj' of block 'C' is neither spatial nor a reduction axis" in text
    assert "            vj = T.axis.opaque(30, j)\n            ^" in text
    assert "note: axis 'vj' comes from here" in text
    text = refused(with_script('sch.set_scope("C", 0, "local")'))
    header = 'def main(A: T.Buffer((16, 30), "float32"), C: T.Buffer((16, 30), "float32")):'
    assert f"{header}\n{' ' * header.index('C:')}^" in text
    assert "note: buffer 'C' comes from here" in text
    text = refused(with_script('sch.transform_layout("B", ("write", 0), lambda i, j: [i // 2, j])'))
    assert "    B = T.alloc_buffer((16, 30))\n    ^" in text


def test_what_is_no_part_of_a_schedule() -> None:
    from mirstack.dialects.schedule import ScriptOp
    from mirstack.passes.schedule import Schedule
    from mirstack.passes.schedule.engine.script import run_script
    from xdsl.dialects.test import TestOp
    from xdsl.ir import Block, Region

    with pytest.raises(MirError, match=r"'test\.op' is not part of a schedule"):
        run_script(ScriptOp("s", Region(Block([TestOp()]))), Schedule(parse_mir(CHAIN)))


def test_a_caret_under_the_loop() -> None:
    text = refused(with_script('i, j = sch.get_loops("C")', "sch.split(j, [7, 2])"))
    assert "the factors [7, 2] make 14 iterations, but loop 'j' has 30" in text
    assert "note: in the program as it is here:" in text
    assert "    for i, j in T.grid(16, 30):\n           ^" in text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['i, j, k = sch.get_loops("C")'], "get_loops gives 2 loops here, but 3 names take them"),
        (['i, = sch.get_loops("C")'], "get_loops gives 2 loops here, but 1 name takes them"),
        (['a, b, c, *d = sch.get_loops("C")'], "get_loops gives 2 loops here, but 4 names take them"),
        (['l = sch.get_loops("C")', "sch.unroll(l[2])"], "the list has 2 items here, so there is no item 2"),
        (['sch.compute_inline("D")'], "function 'main' has no block 'D'"),
        (['i, j = sch.get_loops("C")', "sch.fuse(i, j)", "sch.unroll(i)"], "the handle 'i' stands for nothing any more: it was fused"),
        (['l = sch.get_loops("C")', "sch.fuse(*l)", "sch.unroll(l[1])"], "the handle 'l[1]' stands for nothing any more"),
        (
            ['sch.transform_layout("B", ("write", 0), lambda i, j: [T.exp(T.float32(1)), j])'],
            "a lambda of a schedule computes indices from its parameters, and this is not integer arithmetic on them",
        ),
    ],
)  # fmt: skip
def test_refused(lines: list[str], message: str) -> None:
    assert message in refused(with_script(*lines))


def test_targets() -> None:
    assert "schedule 's' is of 'mian', but there is no such function; did you mean 'main'?" in refused(
        with_script("pass", target="(mian)")
    )
    te = "@te.func\ndef main():\n    A = te.placeholder((4,), name='A')\n    return [A]\n"
    assert "schedule 's' is of 'main', which is not a prim_func" in refused(with_script("pass", program=te))
    two = CHAIN.replace("main", "first") + CHAIN.replace("main", "second")
    text = print_mir(
        applied(
            with_script(
                'sch.compute_inline(sch.get_block("B", func_name="second"))',
                'sch.work_on("first")',
                'sch.parallel(sch.get_loops("B")[0])',
                target="",
                program=two,
            )
        )
    )
    assert "for i in T.parallel(16):" in text.partition("def second")[0]
    assert "C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)" in text.partition("def second")[2]


def test_what_is_scheduled_is_left_alone() -> None:
    script = with_script('i, j = sch.get_loops("C")', "sch.reorder(j, i)")
    assert "tir.is_scheduled" not in print_mir(applied(script))
    marked = print_mir(applied(script, mark=True))
    assert 'T.func_attr({"tir.is_scheduled": T.bool(True)})' in marked
    from mirstack.passes.autoschedule.default_schedule import DefaultSchedule

    module = parse_mir(marked)
    DefaultSchedule().apply(Context(), module)
    assert print_mir(module) == marked


def test_ready_leaves_later_levels() -> None:
    te = "@te.func\ndef main():\n    A = te.placeholder((4,), name='A')\n    return [A]\n"
    assert "@T.schedule(main)" in print_mir(applied(with_script("pass", program=te), ready=True))


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_compiled_with_its_schedule(target: str) -> None:
    script = with_script(
        'i, j = sch.get_loops("C")', "sch.vectorize(sch.split(j, [None, 8])[-1])", 'sch.compute_inline("B")'
    )
    executable = compile(parse_mir(script), target)  # type: ignore[arg-type]
    a = np.random.default_rng(0).standard_normal((16, 30)).astype("float32")
    c = np.zeros_like(a)
    executable(a, c)
    np.testing.assert_allclose(c, a * 2 + 1, rtol=1e-6)
    with pytest.raises(MirError, match="there is no such function"):
        compile(parse_mir(with_script("pass", target="(f)")))


def test_te_functions_are_scheduled_when_they_are_tir() -> None:
    te = "@te.func\ndef main():\n    A = te.placeholder((64,), name='A')\n    B = te.compute((64,), lambda i: A[i] * 2.0, name='B')\n    return [A, B]\n"
    executable = compile(parse_mir(with_script('i, = sch.get_loops("B")', "sch.vectorize(i)", program=te)))
    a = np.arange(64, dtype="float32")
    b = np.zeros_like(a)
    executable(a, b)
    np.testing.assert_allclose(b, a * 2)


def test_what_is_drawn_follows_from_the_seed() -> None:
    script = with_script('i, j = sch.get_loops("C")', "sch.split(j, sch.sample_perfect_tile(j, n=3))")
    texts = [print_mir(applied(script, seed=seed)) for seed in (0, 0, 1, 2, 3)]
    assert texts[0] == texts[1] and len(set(texts)) > 1
    decided = with_script(
        'i, j = sch.get_loops("C")', "sch.split(j, sch.sample_perfect_tile(j, n=2, decision=[3, 10]))"
    )
    assert "for i, j_0, j_1 in T.grid(16, 3, 10):" in print_mir(applied(decided))


STENCIL = """
@T.prim_func
def main(A: T.Buffer((12,), "int32"), D: T.Buffer((8,), "int32")):
    C = T.alloc_buffer((10,), "int32")
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = A[vi] + A[vi + 2]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi] * 3 - C[vi + 2]

@T.schedule(main)
def schedule(sch):
    sch.reverse_compute_at("D", sch.get_loops("C")[0])
"""


def test_what_a_later_iteration_reads_is_there() -> None:
    # The block of D comes into the loop of C, of which it reads three iterations.
    a = np.arange(12, dtype="int32") ** 2
    c = a[:10] + a[2:]
    d = np.zeros(8, "int32")
    compile(parse_mir(STENCIL))(a, d)
    np.testing.assert_array_equal(d, c[:8] * 3 - c[2:])


def test_schedules_of_functions_that_are_not_compiled() -> None:
    te = "@te.func\ndef NAME():\n    A = te.placeholder((64,), name='A')\n    B = te.compute((64,), lambda i: A[i] * 2.0, name='B')\n    return [A, B]\n"
    script = with_script(
        'i, = sch.get_loops("B")', "sch.vectorize(i)", target="(other)", program=te.replace("NAME", "other")
    )
    executable = compile(parse_mir(te.replace("NAME", "main") + script))
    a, b = np.arange(64, dtype="float32"), np.zeros(64, dtype="float32")
    executable(a, b)
    np.testing.assert_allclose(b, a * 2)
