"""Traces: printed, read back, converted to scripts and data, applied again, they lead to the same program."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from mirstack import tir
from mirstack.dialects.schedule import ComputeOp, ScriptOp
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import (
    BlockRV,
    ExprRV,
    Instruction,
    InstructionKind,
    LoopRV,
    Schedule,
    ScheduleError,
    Trace,
)
from mirstack.passes.schedule.engine.script import run_script
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.moves import Player
from mirstack.fuzz.schedules.programs import MATMUL, PROGRAMS


def check_replays(before: str, schedule: Schedule) -> None:
    """Every form of the trace makes the same program of `before`."""
    expected = print_mir(schedule.module)
    for script in (schedule.trace.as_script(), schedule.trace.as_script("s", full=True)):
        holder = ModuleOp([script])
        verify(holder)
        text = print_mir(holder)
        again = parse_mir(text)
        assert print_mir(again) == text
        assert run(again, before) == expected
    printed = str(schedule.trace)
    assert printed.splitlines()[1] == "def apply_trace(sch: tir.Schedule) -> None:"
    assert run(parse_mir(printed), before) == expected
    data = json.loads(json.dumps(schedule.trace.as_json()))
    for trace in (schedule.trace, Trace.from_json(data), schedule.trace.simplified()):
        new = Schedule(parse_mir(before))
        trace.apply_to_schedule(new)
        assert print_mir(new.module) == expected
    assert str(Trace.from_json(data)) == printed


def run(module: ModuleOp, before: str) -> str:
    (script,) = module.body.block.ops
    assert isinstance(script, ScriptOp)
    schedule = Schedule(parse_mir(before))
    run_script(script, schedule)
    return print_mir(schedule.module)


@pytest.mark.parametrize("program", PROGRAMS)
def test_random_schedules(program: str) -> None:
    for seed in range(2):
        player = Player(Schedule(parse_mir(PROGRAMS[program])), random.Random(seed))
        for _ in range(7):
            try:
                player.step()
            except (ScheduleError, IndexError):
                continue
        check_replays(PROGRAMS[program], player.schedule)


def test_text() -> None:
    sch = Schedule(parse_mir(MATMUL))
    block = sch.get_block("C")
    _, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, factors=[None, 4])
    sch.reorder(j0, k, j1)
    sch.transform_layout(block, ("write", 0), lambda i, j: (i // 4, j, i % 4))
    assert (
        str(sch.trace)
        == """# from tvm import tir
def apply_trace(sch: tir.Schedule) -> None:
  b0 = sch.get_block(name="C", func_name="main")
  l1, l2, l3 = sch.get_loops(block=b0)
  l4, l5 = sch.split(loop=l2, factors=[None, 4], preserve_unit_iters=True, disable_predication=False)
  sch.reorder(l4, l3, l5)
  sch.transform_layout(block=b0, buffer=("write", 0), index_map=lambda i, j: (i // 4, j, i % 4,), pad_value=None, assume_injective_transform=False)"""
    )
    assert (
        print_mir(ModuleOp([sch.trace.as_script("tiled", "main")]))
        == """@T.schedule(main)
def tiled(sch):
    block_C = sch.get_block("C")
    i, j, k = sch.get_loops(block_C)
    j_0, j_1 = sch.split(j, factors=[None, 4])
    sch.reorder(j_0, k, j_1)
    sch.transform_layout(block_C, buffer=("write", 0), index_map=lambda i, j: [i // 4, j, i % 4])
"""
    )


def test_what_only_looked_is_left_out() -> None:
    sch = Schedule(parse_mir(MATMUL))
    sch.get_producers(sch.get_block("D"))
    i, *_ = sch.get_loops(sch.get_block("C"))
    sch.parallel(i)
    sch.enter_postproc()
    sch.annotate(i, "key", 1)
    names = [inst.name for inst in sch.trace.simplified()]
    assert names == ["get_block", "get_loops", "parallel", "enter_postproc", "annotate"]
    assert [inst.name for inst in sch.trace.simplified(remove_postproc=True)] == names[:3]
    new = Schedule(parse_mir(MATMUL))
    sch.trace.apply_to_schedule(new, remove_postproc=True)
    assert "annotations" not in print_mir(new.module)
    last = sch.trace.pop()
    assert last is not None and last.name == "annotate" and len(sch.trace) == 6
    assert Trace().pop() is None


def test_a_copy_goes_its_own_way() -> None:
    sch = Schedule(parse_mir(MATMUL))
    block = sch.get_block("C")
    i, j, _ = sch.get_loops(block)
    sch.split(j, [None, 4])
    copy = sch.copy()
    copy.parallel(i)
    assert "T.parallel" in print_mir(copy.module) and "T.parallel" not in print_mir(sch.module)
    assert len(copy.trace) == len(sch.trace) + 1
    assert copy.resolve(block) is not sch.resolve(block)
    with pytest.raises(ScheduleError, match="loop 'j' was split"):
        copy.parallel(j)
    sch.parallel(i)
    assert print_mir(copy.module) == print_mir(sch.module)


def test_seeds() -> None:
    draws = [Schedule(parse_mir(MATMUL), seed=5).fork_seed() for _ in range(2)]
    assert draws[0] == draws[1]
    sch = Schedule(parse_mir(MATMUL), seed=5)
    assert [sch.fork_seed(), sch.fork_seed()][0] == draws[0]


def test_handles_and_numbers() -> None:
    import numpy as np

    sch = Schedule(parse_mir(MATMUL))
    (_, j, _) = sch.get_loops("C")
    outer, inner = sch.split(j, [None, np.int64(4)])  # type: ignore[list-item]
    four = ExprRV(4)
    assert sch.resolve(four) == 4 and sch.resolve(7) == 7 and int(four) == 4
    assert [loop.schedule_kind for loop in (outer, inner)] == ["loop", "loop"]
    assert isinstance(inner, LoopRV)
    sch.split(inner, [four, 1])
    with pytest.raises(ScheduleError, match=r"the trace does not say where the handle v\d+ comes from"):
        str(sch.trace)


def test_numbers_that_do_not_fit() -> None:
    from xdsl.dialects.builtin import UnitAttr

    sch = Schedule(parse_mir(MATMUL))
    block = sch.get_block("C")
    i = sch.get_loops(block)[0]
    for wrong, message in (
        (
            lambda: sch.split(i, [None, 1 << 40]),
            "split: the iterations of loop 'i' would be 1099511627776, more than 2147483647\nnote: it is counted in int32",
        ),
        (lambda: sch.split(i, [1 << 20, 1 << 20]), "would be 1099511627776, more than 2147483647"),
        (lambda: sch.split(i, [None, 1 << 64]), "'factors' must be a list of numbers or sampled values or None, not"),
        (lambda: sch.annotate(block, "x", 1 << 64), "18446744073709551616 is not a number that fits into int64"),
        (lambda: sch.annotate(block, "x", [float("inf")]), "'ann_val' must be a finite value, not [inf]"),
    ):
        with pytest.raises(ScheduleError) as error:
            wrong()
        assert message in str(error.value)
    sch.annotate(block, "x", 1 << 40)
    assert '{"x": T.int64(1099511627776)}' in print_mir(sch.module)
    check_replays(MATMUL, sch)
    sch.annotate(i, "x", UnitAttr())
    with pytest.raises(
        ScheduleError, match=r"annotate has no text: UnitAttr\(\) is not an argument of a schedule primitive"
    ):
        str(sch.trace)


def test_what_is_not_there() -> None:
    sch = Schedule(parse_mir(MATMUL))
    with pytest.raises(ScheduleError, match="the module has no prim_func 'f'"):
        sch.work_on("f")
    i, j, _ = sch.get_loops("C")
    sch.fuse(i, j)
    with pytest.raises(ScheduleError, match=r"the handle l\d+ stands for nothing any more: it was fused into loop"):
        sch.parallel(i)
    with pytest.raises(ScheduleError, match=r"the handle l\d+ stands for nothing any more: it was made by another"):
        Schedule(parse_mir(MATMUL)).parallel(i)


def test_a_trace_of_another_program() -> None:
    sch = Schedule(parse_mir(MATMUL))
    sch.get_loops("C")
    with pytest.raises(ScheduleError, match="get_loops gives 2 results here, but the trace has 3 of them"):
        program = MATMUL.replace('T.block("D")', 'T.block("E")').replace('T.block("C")', 'T.block("F")')
        program = program.replace('T.block("E")', 'T.block("C")')
        sch.trace.apply_to_schedule(Schedule(parse_mir(program)))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (["GetBlock"], "entry 0 of the data is not an instruction of a trace"),
        (
            ["NoPrimitive", [], [], []],
            "there is no kind of instruction 'NoPrimitive'\nnote: there are AddUnitLoop, Annot",
        ),
        (["Unroll", ["l3"], [], []], "entry 0 of the data is not an instruction of a trace"),
        (3, "entry 0 of the data is not an instruction of a trace"),
        (["Unroll", [], [], []], r"Unroll has too few inputs: 'loop' is missing\nnote: it is sch.unroll\(loop\)"),
        (["GetBlock", [], [], ["b0"]], "GetBlock has too few attributes: 'name' is missing"),
        (["GetBlock", [], ["B", "main", 3], ["b0"]], "GetBlock has 0 inputs and 1 attributes too many"),
        (["EnterPostproc", [], [], ["b0"]], "EnterPostproc has no outputs, but 1 are given"),
    ],
)
def test_data_that_is_no_trace(entry: Any, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Trace.from_json([[entry], []])


def test_data_of_another_form() -> None:
    with pytest.raises(ScheduleError, match=r"the data is not a trace\nnote: a trace is \[\[\[kind, inputs"):
        Trace.from_json([3])
    with pytest.raises(ScheduleError, match="the data has a decision of an instruction that it does not have"):
        Trace.from_json([[["EnterPostproc", [], [], []]], [[1, 3]]])


ELEMENTWISE = """
@T.prim_func
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32")):
    for i, j in T.grid(128, 128):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def test_text_and_data_are_those_of_tvm() -> None:
    sch = Schedule(parse_mir(ELEMENTWISE))
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    outer, inner = sch.sample_perfect_tile(i, n=2, decision=[32, 4])
    sch.split(i, factors=[outer, inner])
    sch.split(j, factors=[None, 8])
    sch.annotate(block, "key", "text")
    copy = sch.cache_read(block, 0, "local")
    sch.transform_layout(block, ("write", 0), lambda i, j: (j, i))
    sch.enter_postproc()
    sch.get_loops(copy)
    assert sch.trace.as_python() == [
        'b0 = sch.get_block(name="B", func_name="main")',
        "l1, l2 = sch.get_loops(block=b0)",
        "v3, v4 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=16, decision=[32, 4])",
        "l5, l6 = sch.split(loop=l1, factors=[v3, v4], preserve_unit_iters=True, disable_predication=False)",
        "l7, l8 = sch.split(loop=l2, factors=[None, 8], preserve_unit_iters=True, disable_predication=False)",
        'sch.annotate(block_or_loop=b0, ann_key="key", ann_val="text")',
        'b9 = sch.cache_read(block=b0, read_buffer_index=0, storage_scope="local")',
        'sch.transform_layout(block=b0, buffer=("write", 0), index_map=lambda i, j: (j, i,), pad_value=None, assume_injective_transform=False)',
        "sch.enter_postproc()",
        "l10, l11 = sch.get_loops(block=b9)",
    ]
    assert len(sch.trace.as_python(remove_postproc=True)) == 8
    data = sch.trace.as_json(remove_postproc=True)
    assert data == [
        [
            ["GetBlock", [], ["B", "main"], ["b0"]],
            ["GetLoops", ["b0"], [], ["l1", "l2"]],
            ["SamplePerfectTile", ["l1"], [2, 16], ["v3", "v4"]],
            ["Split", ["l1", "v3", "v4"], [True, False], ["l5", "l6"]],
            ["Split", ["l2", None, 8], [True, False], ["l7", "l8"]],
            ["Annotate", ["b0", '"text"'], ["key"], []],
            ["CacheRead", ["b0", []], [0, "local"], ["b9"]],
            ["TransformLayout", ["b0"], [0, 1, "lambda i, j: [j, i]", None, False], []],
        ],
        [[2, [32, 4]]],
    ]
    again = Schedule(parse_mir(ELEMENTWISE))
    Trace.apply_json_to_schedule(json.loads(json.dumps(data)), again)
    assert print_mir(again.module) == print_mir(sch.module)
    assert again.trace.as_python() == sch.trace.as_python(remove_postproc=True)


def test_immediates_are_numbers_of_instructions() -> None:
    three, one = tir.IntImm("int32", 3), tir.FloatImm("float32", 1.0)
    trace = Trace([Instruction(InstructionKind.get("SampleCategorical"), [], [[three], [one]], [ExprRV(0)])])
    data = trace.as_json()
    assert data == [[["SampleCategorical", [], [[3], [1]], ["v0"]]], []]
    sch = Schedule(parse_mir(ELEMENTWISE))
    Trace.apply_json_to_schedule(data, sch)
    assert sch.trace.as_python() == ["v0 = sch.sample_categorical(candidates=[3], probs=[1.0], decision=0)"]


def test_arithmetic_of_drawn_numbers() -> None:
    sch = Schedule(parse_mir(ELEMENTWISE))
    i, j = sch.get_loops(sch.get_block("B"))
    outer, inner = sch.sample_perfect_tile(i, 2, decision=[32, 4])
    size = (inner + 1) * 2 - inner // (3 - outer % 2) + 0
    assert sch.resolve(size) == (4 + 1) * 2 - 4 // (3 - 32 % 2) and int(outer * inner) == 128
    sch.split(i, [None, inner * 2])
    sch.split(j, [None, size - inner])
    lines = sch.trace.as_python()
    assert "factors=[None, v4 * 2]" in lines[3]
    assert "factors=[None, (v4 + 1) * 2 - v4 // (3 - v3 % 2) + 0 - v4]" in lines[4]
    check_replays(ELEMENTWISE, sch)
    assert sch.trace.as_json()[0][3] == ["Split", ["l1", None, "(v4 * 2)"], [True, False], ["l5", "l6"]]
    again = Schedule(parse_mir(ELEMENTWISE))
    sch.trace.with_decision(sch.trace.insts[2], [16, 8]).apply_to_schedule(again)
    assert "for i_0, i_1, j_0, j_1 in T.grid(8, 16, 16, 8):" in print_mir(again.module)
    with pytest.raises(MirError, match=r"a drawn number is divided by zero: v\d+ // 0"):
        _ = outer // 0
    with pytest.raises(ScheduleError, match="entry 1 of the data is not an instruction of a trace"):
        Trace.from_json([[["SampleCategorical", [], [[1], [1.0]], ["v0"]], ["Unroll", ["(v0 ** 2)"], [], []]], []])


def test_arithmetic_in_a_script() -> None:
    text = """@T.schedule(main)
def tiled(sch):
    i, j = sch.get_loops("B")
    a, b = sch.sample_perfect_tile(i, 2, decision=[32, 4])
    sch.split(j, [None, a // (b - 2)])
"""
    module = parse_mir(text)
    verify(module)
    assert print_mir(module) == text
    (script,) = module.body.block.ops
    assert isinstance(script, ScriptOp)
    sch = Schedule(parse_mir(ELEMENTWISE))
    run_script(script, sch)
    assert "for i, j_0, j_1 in T.grid(128, 8, 16):" in print_mir(sch.module)
    (script,) = parse_mir(text.replace("b - 2", "b - 4")).body.block.ops
    assert isinstance(script, ScriptOp)
    with pytest.raises(MirError, match=r"<input>:5:27: error: a drawn number is divided by zero: 'a' // \('b' - 4\)"):
        run_script(script, Schedule(parse_mir(ELEMENTWISE)))
    for wrong in ("i * 2", "a ** 2", "2 * 3", "a * 2.0"):
        with pytest.raises(MirError, match="a schedule computes only with what it draws"):
            parse_mir(text.replace("a // (b - 2)", wrong))


def test_arithmetic_that_is_none() -> None:
    with pytest.raises(VerifyException, match=r"'\*\*' is not arithmetic; there are \+ - \* // %"):
        ComputeOp("**", 1, 2).verify()
    with pytest.raises(VerifyException, match="arithmetic has two sides, each an operand or an integer"):
        ComputeOp("+", 1, "x").verify()


def test_instructions_by_their_parts() -> None:
    block, (i, j), tiles = BlockRV(), (LoopRV(), LoopRV()), (ExprRV(1), ExprRV(1))
    insts = [
        Instruction(InstructionKind.get("GetBlock"), [], ["B", "main"], [block]),
        Instruction(kind=InstructionKind.get("GetLoops"), inputs=[block], attrs=[], outputs=[i, j]),
        Instruction(InstructionKind.get("SamplePerfectTile"), [i], [2, 16], list(tiles)),
        Instruction(InstructionKind.get("Split"), [i, *tiles], [True, False], [LoopRV(), LoopRV()]),
    ]
    trace = Trace(insts, {insts[2]: [64, 2]})
    assert trace.insts == insts and trace.get_decision(insts[2]) == [64, 2] and trace.get_decision(insts[0]) is None
    assert insts[3].kind.name == "Split" and insts[3].inputs == [i, *tiles] and insts[3].attrs == [True, False]
    assert insts[0].outputs == [block] and repr(insts[0]) == "Instruction(GetBlock)"
    assert InstructionKind.get("GetBlock").is_pure and not InstructionKind.get("Split").is_pure
    trace.append(Instruction("Unroll", [j], [], []))
    first = Schedule(parse_mir(ELEMENTWISE))
    trace.apply_to_schedule(first)
    assert "for i_0, i_1 in T.grid(64, 2):" in print_mir(first.module) and "T.unroll(128)" in print_mir(first.module)
    other = Schedule(parse_mir(ELEMENTWISE))
    trace.with_decision(insts[2], [16, 8], remove_postproc=True).apply_to_schedule(other)
    assert "for i_0, i_1 in T.grid(16, 8):" in print_mir(other.module)
    drawn = Schedule(parse_mir(ELEMENTWISE))
    seen: list[Any] = []

    def provide(inst: Instruction, inputs: list[Any], attrs: list[Any], decision: Any) -> list[int]:
        seen.append((inst.kind.name, [drawn.resolve(value).var_name.data for value in inputs], attrs))
        return [decision[0] // 2, 4]

    trace.apply_to_schedule(drawn, decision_provider=provide)
    assert seen == [("SamplePerfectTile", ["i"], [2, 16])]
    assert "for i_0, i_1 in T.grid(32, 4):" in print_mir(drawn.module)
    last = trace.pop()
    assert last is not None and last.same_as(last) and last.kind.name == "Unroll" and len(trace.insts) == 4
    assert insts[3].same_as(trace.insts[-1])


def test_help_and_listing() -> None:
    import inspect
    import pydoc

    sch = Schedule(parse_mir(MATMUL))
    assert {"split", "reorder", "get_block", "trace", "mod"} <= set(dir(sch))
    text = pydoc.plain(pydoc.render_doc(sch.split))
    assert "split(loop: 'loop', factors: 'list[expr | none]'" in text and "→" in text
    assert list(inspect.signature(sch.reorder).parameters) == ["ordered_loops"]


def test_types_of_methods_are_those_of_the_table() -> None:
    import ast

    from mirstack.passes.schedule.engine import stubs

    root = Path(stubs.__file__).parents[3]
    for text, option, folder in (
        (stubs.stub_text(), "", "passes/schedule/engine"),
        (stubs.te_stub_text(), " te", "lowering/te/schedule"),
    ):
        assert ast.dump(ast.parse((root / folder / "methods.pyi").read_text())) == ast.dump(ast.parse(text)), (
            f"write it again: python -m mirstack.passes.schedule.engine.stubs{option} > {folder}/methods.pyi"
        )


def test_sizes_that_no_loop_or_dimension_has() -> None:
    large = 1 << 40
    sch = Schedule(parse_mir(MATMUL))
    wide = Schedule(parse_mir(MATMUL.replace("24", "65536").replace("20", "65536")))
    before = print_mir(sch.module), print_mir(wide.module)
    for wrong, message in (
        (
            lambda: sch.pad_einsum("C", [large, 1, 1]),
            "pad_einsum: the extent of axis 'vi' would be 1099511627776, more",
        ),
        (
            lambda: sch.transform_layout("C", ("write", 0), lambda i, j: [i * large, j]),
            "transform_layout: the extent of new dimension 0 would be 25288767438849, more than 2147483647",
        ),
        (lambda: sch.storage_align("C", 0, 0, large, 1), "storage_align: the factor would be 1099511627776, more than"),
        (
            lambda: sch.reindex_cache_read("D", 0, "local", lambda i, j: [i * large, j]),
            "reindex_cache_read: the extent of new dimension 0 would be 25288767438849, more than",
        ),
        (
            lambda: wide.fuse(*wide.get_loops("D")),
            "fuse: the iterations of the fused loop would be 4294967296, more than 2147483647\nnote: it is counted in int32",
        ),
        (
            lambda: wide.transform_block_layout("D", lambda i, j: [i * 65536 + j]),
            "transform_block_layout: the extent of new axis 0 would be 4294967296, more than 2147483647",
        ),
    ):
        with pytest.raises(ScheduleError) as error:
            wrong()
        assert message in str(error.value)
    assert before == (print_mir(sch.module), print_mir(wide.module))
