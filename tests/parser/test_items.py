"""Splitting a file into its items."""

from __future__ import annotations

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.parser import parse_mir
from mirstack.parser.items import Item, split_items
from mirstack.support.diagnostics import MirError, source_position

MIXED = """\
# a comment of Python, an import, then Relay's version
from tvm.script import tir as T
#[version = "0.0.5"]
#[constants = "weights.npz"]
def @main(%x: Tensor[(1, 64), float32] /* { not code */) -> Tensor[(1, 10), float32] {
  // a brace { in a comment
  %0 = nn.dense(%x, meta[relay.Constant][0], units=32);
  foo("}")
} def @other() { () }
/* a block comment /* nested */ def @no() { */

type List[A] {
  Cons(A, List[A]),
  Nil,
}
extern type Storage
@T.prim_func(private=True)
# a comment between
def row(A: T.Buffer((1, 10), "float32")):
    s = ")"   # an unbalanced ( in a comment
    A[0,
0] = T.float32(1)

# belongs to no item

@I.ir_module
class Module:
    @T.prim_func
    def f():
        pass
@te.func
def scale():
    return [A]
@te.schedule(scale)
def scale_tiled(s):
    pass
@T.schedule(f)
def tiled(sch):
    pass
rewrite @fuse { add(%m, %z) => f(%m) }
ruleset @all { @fuse }
#[metadata]
{
  "root": 1, "text": "} \\" {"
}
"""


def split(text: str, first_line: int = 1) -> list[Item]:
    errors: list[MirError] = []
    items = split_items(text, "m.mir", first_line, errors.append)
    if errors:
        raise errors[0]
    return items


def test_items_of_every_format() -> None:
    items = split(MIXED)
    assert [(item.format, item.kind, item.line) for item in items] == [
        ("relay", "#[version]", 3),
        ("relay", "#[constants]", 4),
        ("relay", "def", 5),
        ("relay", "def", 9),
        ("relay", "type", 12),
        ("relay", "extern", 16),
        ("tvmscript", "T.prim_func", 17),
        ("tvmscript", "I.ir_module", 26),
        ("te", "te.func", 31),
        ("te", "te.schedule", 34),
        ("schedule", "T.schedule", 37),
        ("rules", "rewrite", 40),
        ("rules", "ruleset", 41),
        ("relay", "#[metadata]", 42),
    ]
    assert items[2].text.endswith('foo("}")\n}')
    # An item that begins inside a line keeps its column.
    assert items[3].text == "  def @other() { () }"
    assert "pass" in items[7].text and items[-1].text.endswith("}")


def test_every_character_is_in_an_item_or_between_items() -> None:
    items = split(MIXED)
    lines = MIXED.split("\n")
    for item in items:
        first = item.text.split("\n")[0]
        assert lines[item.line - 1].startswith(first.lstrip()) or lines[item.line - 1].endswith(first.lstrip())


def test_relay_expressions_take_the_rest() -> None:
    items = split(
        '#[version = "0.0.5"]\nfree_var %x: Tensor[(2), float32];\n%0 = add(%x, %x);\n@f(%0)\n@T.prim_func\ndef f():\n    pass\n'
    )
    assert [(i.kind, i.line) for i in items] == [("#[version]", 1), ("expr", 2), ("T.prim_func", 5)]
    assert items[1].text.startswith("free_var") and "@f(%0)" in items[1].text


def test_other_spellings_of_decorators() -> None:
    for name in ("tvm.script.ir_module", "script.ir_module", "I.ir_module", "tvm.ir.ir_module"):
        assert split(f"@{name}\nclass M:\n    pass\n")[0].kind == "I.ir_module"
    assert split("@tvm.script.tir.prim_func\ndef f():\n    pass\n")[0].kind == "T.prim_func"
    assert split("@hybrid.script\ndef f():\n    pass\n")[0].format == "te"


def test_lines_are_counted_from_the_first() -> None:
    assert split("\n\n@T.prim_func\ndef f():\n    pass\n", first_line=10)[0].line == 12


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("def f():\n    pass\n", 1, "this 'def' has no decorator"),
        ("\nclass M:\n    pass\n", 2, "this 'class' has no decorator"),
        ("@jit\ndef f():\n    pass\n", 1, "unknown decorator '@jit'"),
        ("  @T.prim_func\n  def f():\n    pass\n", 1, "a decorator begins its line"),
        ("/* never closed\n", 1, "this comment is never closed"),
        ('#[version = "0.0.5"\n', 1, "'#[version' is never closed"),
        ("#[metadata]\nnothing\n", 1, "#[metadata] is followed by a JSON object"),
        ("@T.schedule(f)\ndef g(sch):\n    pass\n", 1, "'T.schedule' items cannot be read"),
    ],
)
def test_errors(text: str, line: int, message: str) -> None:
    from mirstack.parser.items import FORMATS

    if "schedule" in FORMATS and "T.schedule" in text:
        pytest.skip("schedules are read")
    with pytest.raises(MirError) as caught:
        parse_mir(text, "m.mir")
    first = caught.value.diagnostics[0]
    assert message in first.message
    assert source_position(first.location) == ("m.mir", line, 3 if text.startswith("  @") else 1)


def test_errors_of_several_items_are_all_reported_in_order() -> None:
    text = """\
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    A[0] = missing
    A[1, 2] = T.float32(0)
    for i in nothing(8):
        A[i] = also_missing

@unknown
def g():
    pass

@T.prim_func
def h(A: T.Buffer((8,), "float32")):
    if A[0] < 1
        pass

@T.prim_func
def f():
    pass
"""
    with pytest.raises(MirError) as caught:
        parse_mir(text, "m.mir")
    places = [source_position(d.location) for d in caught.value.diagnostics]
    assert [p[1] for p in places if p is not None] == [3, 4, 5, 6, 8, 14, 18]
    assert str(caught.value).startswith(
        "m.mir:3:12: error: 'missing' is not defined\n    A[0] = missing\n           ^\nnote: a symbolic size is declared with missing = T.int32()"
    )


def test_splitting_is_linear() -> None:
    def seconds(count: int) -> float:
        text = (
            "def @f(%x: Tensor[(1), float32]) {\n  add(%x, %x)\n}\n@T.prim_func\ndef f():\n    T.evaluate(0)\n" * count
        )
        return cpu_seconds(lambda: split(text))

    assert len(split("def @f() { 1 }\n" * 100)) == 100
    assert growth(seconds, 500, 4_000, below=20) < 20


def test_a_name_that_nothing_has() -> None:
    text = "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    for i in range(4):\n        A[i] = A[j]\n"
    with pytest.raises(MirError, match=r"integers in scope: i; a symbolic size is declared with j = T.int32\(\)"):
        parse_mir(text, "m.mir")


def test_a_buffer_is_no_statement() -> None:
    text = "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    A\n    A[0] = T.float32(1)\n"
    with pytest.raises(
        MirError, match=r"m.mir:3:5: error: 'A' is a buffer, not a number\n    A\n    \^\nnote: index it, as in A\[i\]"
    ):
        parse_mir(text, "m.mir")
