"""What is offered where the cursor `|` is."""

from __future__ import annotations

import pytest
from mirstack.editor.analysis import Analyzer
from mirstack.editor.complete import Completion, completions, described

RELAY = "def @main(%x: Tensor[(4), float32], %yes: int32) {\n  let %z = nn.relu(%x);\n  LINE\n}\n\ndef @other() { 1 }\n"
SCHEDULE = """\
@T.prim_func
def square(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * A[vi, vj]

@T.prim_func
def unrelated(X: T.Buffer((4,), "float32")):
    for k in range(4):
        with T.block("second"):
            vk = T.axis.spatial(4, k)
            X[vk] = T.float32(0)

@T.schedule(square)
def fast(sch):
    b = sch.get_block("first")
    i, j = sch.get_loops(b)
    LINE
"""


def offered(text: str, line: str) -> list[Completion]:
    text = text.replace("LINE", line)
    offset = text.index("|")
    text = text.replace("|", "", 1)
    return completions(Analyzer().analyse(text), offset)


def labels(text: str, line: str) -> list[str]:
    return [each.label for each in offered(text, line)]


def test_operators_of_a_namespace() -> None:
    found = labels(RELAY, "nn.|")
    assert {"nn.relu", "nn.dense", "nn.conv2d"} <= set(found)
    assert all(label.startswith("nn.") for label in found)
    assert labels(RELAY, "nn.de|") == found


def test_operators_have_signatures_and_descriptions() -> None:
    (dense,) = [each for each in offered(RELAY, "%0 = nn.|") if each.label == "nn.dense"]
    assert dense.detail == "nn.dense(data, weight, units=None, out_dtype=None)"
    assert dense.about is not None and described(dense.about).startswith(f"```mir\n{dense.detail}\n```")


def test_attributes_of_the_operator_around_that_are_not_given() -> None:
    found = labels(RELAY, "sum(%x, |)")
    assert found[:3] == ["axis=", "keepdims=", "exclude="]
    assert labels(RELAY, "sum(%x, keepdims=True, |)")[:2] == ["axis=", "exclude="]
    assert "axis=" not in labels(RELAY, "sum(nn.relu(|), axis=[0])")
    assert "axis=" in labels(RELAY, "sum(%x, ax|")


def test_names_that_are_visible() -> None:
    assert sorted(labels(RELAY, "add(%x, %|)")) == ["%x", "%yes", "%z"]
    assert labels(RELAY.replace("nn.relu(%x);", "nn.relu(%|);").replace("LINE", "%z"), "")[-2:] == ["%x", "%yes"]
    (z,) = [each for each in offered(RELAY, "%|z") if each.label == "%z"]
    assert z.detail == "Tensor[(4), float32]"


def test_names_of_an_inner_block_end_with_it() -> None:
    found = labels(RELAY, "if (True) { let %inner = 1; %inner } else { %|x }")
    assert "%inner" not in found and "%z" in found


def test_functions_of_the_file() -> None:
    assert labels(RELAY, "@|") == ["@main", "@other"]


def test_what_is_typed_is_replaced_as_a_whole() -> None:
    text = RELAY.replace("LINE", "nn.re")
    offset = text.index("nn.re\n") + len("nn.re")
    (relu,) = [each for each in completions(Analyzer().analyse(text), offset) if each.label == "nn.relu"]
    assert text[relu.start : offset] == "nn.re" and relu.insert == "nn.relu"


def test_nothing_is_offered_in_comments() -> None:
    assert labels(RELAY, "// nn.|") == []
    assert labels(SCHEDULE, "# sch.|") == []


def test_primitives() -> None:
    found = offered(SCHEDULE, "sch.|")
    split = next(each for each in found if each.label == "split")
    assert split.detail.startswith("split(loop, factors,") and len(found) > 40
    assert split.about is not None and "→" in described(split.about)
    assert {each.label for each in offered(SCHEDULE, "b2 = sch.get_|")} == {each.label for each in found}


@pytest.mark.parametrize("line", ['sch.get_block("|', 'sch.get_block("|")', 'sch.compute_inline("fi|")'])
def test_blocks_of_the_function_that_is_scheduled(line: str) -> None:
    assert labels(SCHEDULE, line) == ["first"]


def test_loops_of_the_function_that_is_scheduled() -> None:
    found = labels(SCHEDULE, "|")
    assert 'i, j = sch.get_loops(sch.get_block("first"))' in found
    assert {"i", "j", "b", "sch"} <= set(found) and "k" not in found


def test_buffers_and_functions_in_strings() -> None:
    found = offered(SCHEDULE, 'sch.cache_read(b, "|"')
    assert [(each.label, each.detail) for each in found] == [
        ("A", 'T.Buffer((4, 8), "float32")'),
        ("B", 'T.Buffer((4, 8), "float32")'),
    ]
    assert labels(SCHEDULE, 'sch.get_block("first", func_name="|') == ["square", "unrelated"]
    assert labels(SCHEDULE, 'sch.annotate(b, ann_key="|') == []


def test_parameters_of_the_primitive_around() -> None:
    found = labels(SCHEDULE, "sch.split(j, |")
    assert found[:4] == ["loop=", "factors=", "preserve_unit_iters=", "disable_predication="]
    assert "factors=" not in labels(SCHEDULE, "sch.split(j, factors=[2, 4], |)")


def test_constructs_of_tvmscript() -> None:
    text = '@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    B = T.alloc|\n'
    assert "T.alloc_buffer" in labels(text, "") and "T.exp" in labels(text, "")
    assert set(labels(text.replace("T.alloc|", "T.axis.|"), "")) >= {"T.axis.spatial", "T.axis.remap"}


def test_primitives_of_te() -> None:
    text = '@te.func\ndef f():\n    A = te.placeholder((4,), name="A")\n    B = te.compute((4,), lambda i: A[i], name="B")\n    s = te.create_schedule(B.op)\n    LINE\n    return s, [A, B]\n'
    stage = labels(text, "s[B].|")
    assert {"split", "compute_at", "vectorize"} <= set(stage) and "rfactor" not in stage
    schedule = labels(text, "s.|")
    assert {"rfactor", "cache_write"} <= set(schedule) and "vectorize" not in schedule


def test_an_empty_text_offers_nothing() -> None:
    assert completions(Analyzer().analyse(""), 0) == []
