"""`--trace`: what passes tell of what they do, themselves or by what changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir
from mirstack.passes.changes import comparing, telling_changes, value_name
from mirstack.passes.registry import pass_factories
from mirstack.support.diagnostics import Diagnostic, Sources, render, source_position
from mirstack.support.trace import Tracer, listening
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

PROGRAM = """\
def @helper(%y: Tensor[(4), float32], Inline=1) -> Tensor[(4), float32] {
  tanh(%y)
}
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32], %s: Tensor[(4, 1, 1), float32], %v: Tensor[(4), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1], channels=4, kernel_size=[3, 3]);
  %1 = multiply(%0, %s);
  %2 = nn.relu(%1);
  %3 = add(%2, 0f);
  %4 = exp(%v);
  %5 = exp(%v);
  let %dead = sqrt(%v);
  %6 = @helper(add(%4, %5));
  (%3, %6)
}
"""

BRANCHES = """\
def @main(%x: Tensor[(2, 8), float32], %a: Tensor[(4, 8), float32], %b: Tensor[(4, 8), float32]) {
  %0 = nn.relu(nn.dense(%x, %a));
  %1 = nn.relu(nn.dense(%x, %b));
  (%0, %1)
}
"""


def told(pipeline: str, text: str = PROGRAM) -> list[str]:
    """What the last pass of a pipeline tells: `line:column message`, and `- line:column note` of its notes."""
    module = parse_mir(text, "x.mir")
    passes = read_pipeline(pipeline, pass_factories())
    remarks: list[Diagnostic] = []
    for module_pass in passes:
        topics = [module_pass.name] if module_pass is passes[-1] else []
        with listening(topics, remarks.append), telling_changes(module_pass, module):
            module_pass.apply(Context(), module)
    lines: list[str] = []
    for remark in remarks:
        topic = f"{passes[-1].name}: "
        assert remark.severity == "remark" and remark.message.startswith(topic)
        lines.append(f"{_place(remark)} {remark.message.removeprefix(topic)}")
        lines += [f"- {_place(note)} {note.message}" for note in remark.notes]
    return lines


def _place(diagnostic: Diagnostic) -> str:
    position = source_position(diagnostic.location)
    assert position is not None
    file, line, column = position
    return f"{line}:{column}" if file == "x.mir" else Path(file).name


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        ("simplify-expr", ["8:8 fast @add_zero: add → what nn.relu gives", "- simplify_expr.mir the rule"]),
        (
            "fast-math",
            [
                "2:3 fast @fast_tanh: tanh → fast_tanh", "- fast_math.mir the rule",
                "9:8 fast @fast_exp: exp → fast_exp", "- fast_math.mir the rule",
                "10:8 fast @fast_exp: exp → fast_exp", "- fast_math.mir the rule",
            ],
        ),
        ("eliminate-common-subexpr", ["10:8 exp gives way to an equal one", "- 9:8 which is here"]),
        (
            "cse",
            [
                "10:8 exp gives way to an equal one", "- 9:8 which is here",
                "11:3 let goes: nothing uses what it gives", "11:15 sqrt goes: nothing uses what it gives",
            ],
        ),
        ("dce", ["11:15 sqrt goes: nothing needs what it gives", "11:3 let goes: nothing needs what it gives"]),
        (
            "dead-code-elimination",
            ["11:15 sqrt goes: nothing needs what it gives", "11:3 let goes: nothing needs what it gives"],
        ),
        (
            "fuse-ops",
            [
                "2:3 tanh is a kernel of its own",
                "5:8 one kernel: nn.conv2d, multiply, nn.relu, add",
                "- 6:8 with multiply here", "- 7:8 with nn.relu here", "- 8:8 with add here",
                "9:8 one kernel: exp, exp, add", "- 10:8 with exp here", "- 12:16 with add here",
                "11:15 sqrt is a kernel of its own",
            ],
        ),
        (
            "backward-fold-scale-axis",
            ["6:8 the scale goes into the weight of nn.conv2d", "- 5:8 which is here"],
        ),
        (
            "inline",
            [
                "12:8 @helper is inlined", "- 1:1 its definition",
                "1:1 @helper goes: nothing names it any more",
            ],
        ),
        (
            "to-mixed-precision",
            [
                "2:3 tanh runs in float16: its arguments have that type, or can have it at no cost",
                "5:8 nn.conv2d runs in float16: it is among those that gain most",
                "6:8 multiply runs in float16: its arguments have that type, or can have it at no cost",
                "7:8 nn.relu runs in float16: its arguments have that type, or can have it at no cost",
                "8:8 add runs in float16: its arguments have that type, or can have it at no cost",
                "9:8 exp runs in float32: it loses digits or overflows in a narrow type",
                "10:8 exp runs in float32: it loses digits or overflows in a narrow type",
                "11:15 sqrt runs in float16: its arguments have that type, or can have it at no cost",
                "12:16 add runs in float32: an argument is not of the narrow type",
            ],
        ),
        # These tell nothing themselves: what came and went is told.
        (
            'convert-layout{layouts="nn.conv2d:NHWC,default"}',
            [
                "5:8 nn.conv2d → 2 layout_transform, nn.conv2d",
                "6:8 new: expand_dims, layout_transform",
                "8:8 new: layout_transform",
                "6:8 multiply gives Tensor[(1, 8, 8, 4), float32], and gave Tensor[(1, 4, 8, 8), float32]",
                "7:8 nn.relu gives Tensor[(1, 8, 8, 4), float32], and gave Tensor[(1, 4, 8, 8), float32]",
                "8:8 add gives Tensor[(1, 8, 8, 4), float32], and gave Tensor[(1, 4, 8, 8), float32]",
            ],
        ),
        ("simplify-expr,remove-unused-functions{entry-functions=helper}", ["4:1 @main → nothing"]),
        ("eta-expand", []),
    ],
)  # fmt: skip
def test_what_passes_tell(pipeline: str, expected: list[str]) -> None:
    assert told(pipeline) == expected


def test_branches() -> None:
    assert told("combine-parallel-dense{min-num-branches=2}", BRANCHES) == [
        "2:16 2 branches become one: nn.dense, nn.relu",
        "- 3:16 with the one here",
    ]
    common = "def @main(%c: bool, %x: float32) {\n  if (%c) { exp(%x) } else {\n  exp(%x) }\n}\n"
    assert told("eliminate-common-subexpr", common) == [
        "2:13 exp is computed in every branch: it moves in front of them",
        "- 3:3 as here",
    ]
    text = "def @main(%x: Tensor[(2, 4), float32], %s: Tensor[(4), float32], %w: Tensor[(3, 4), float32]) {\n"
    assert told("forward-fold-scale-axis", f"{text}  nn.dense(multiply(%x, %s), %w)\n}}\n") == [
        "2:12 the scale goes into the weight of nn.dense",
        "- 2:3 which is here",
    ]
    assert told(
        "dead-code-elimination{inline-once=true}", "def @main(%x: float32) {\n  let %y = exp(%x);\n  log(%y)\n}"
    ) == ["2:3 %y is used once: its let goes"]


def test_rules_of_a_program() -> None:
    rules = """\
rewrite @twice { add(%x, %x) => multiply(%x, 2) where %x.dtype == "float32" }
rewrite @dense_add { %r = add(nn.dense(%x, %w), %b) => %r }
rewrite @log_exp { log(exp(%x)) => %x }
"""
    program = "def @main(%x: Tensor[(8, 8), float32]) {\n  add(nn.dense(add(%x, %x), log(exp(%x))), %x)\n}\n"
    assert told("apply-rules{set=twice}", rules + program) == ["5:16 @twice: add → multiply", "- 1:1 the rule"]
    assert told("apply-rules{set=log_exp}", rules + program) == ["5:29 @log_exp: log, exp → %x", "- 3:1 the rule"]
    assert told("merge-composite{set=dense_add}", rules + program) == [
        "5:7 @dense_add: nn.dense, add → one function",
        "- 2:1 the pattern",
    ]
    assert "5:16 add → multiply" in told("apply-rules{set=twice mode=saturate}", rules + program)


def test_other_attributes_and_nothing() -> None:
    module = parse_mir("def @main(%x: Tensor[(2, 4), float32]) {\n  exp(%x)\n}\n", "x.mir")
    remarks: list[Diagnostic] = []
    with comparing(Tracer("it", (remarks.append,)), module):
        (function,) = module.ops
        assert isinstance(module, ModuleOp)
        exp = next(iter(function.regions[0].block.ops))
        exp.attributes["note"] = exp.properties.get("x", next(iter(function.properties.values())))
    assert [remark.message for remark in remarks] == ["it: exp has another note"]
    assert render(remarks[0], Sources()) == "x.mir:2:3: remark: it: exp has another note"
    assert value_name(function.regions[0].block.args[0]) == "%x"
    assert value_name(exp.results[0]) == "what exp gives"
    with listening(["cse"], remarks.append), telling_changes(read_pipeline("dce", pass_factories())[0], module):
        pass
    assert len(remarks) == 1


def test_many_in_one_place_are_counted() -> None:
    """Quantized softmax is done in many steps, all of which stand in one place of the source."""
    text = "def @main(%x: Tensor[(2, 8), int8]) {\n  qnn.softmax(%x, 0.5f, 3, 0.0078125f, -128, axis=-1)\n}\n"
    (remark,) = told("qnn-canonicalize-ops", text)
    assert re.fullmatch(r"2:3 qnn\.softmax → (\d+ )?\w+(, (\d+ )?\w+){7}, \d+ more", remark)
