"""What the commands say of their own options, and of texts that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mirstack
import pytest
from mirstack import relay, te
from mirstack.support.diagnostics import MirError

if TYPE_CHECKING:
    from conftest import Ran

PROGRAM = "def @main(%x: Tensor[(4), float32]) { add(%x, 1f) }\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.mir"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("text", ["-1", "nan", "x"])
def test_tolerances_are_numbers_from_0_on(mir_run: Callable[..., Ran], program: Path, text: str) -> None:
    ran = mir_run(program, "--random", 1, "--rtol", text)
    assert ran.code == 2
    assert f"argument --rtol: '{text}' is not a tolerance: a number from 0 on, such as 1e-4" in ran.err


def test_names_of_included_sets_are_there(mir_opt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "r.mir"
    path.write_text("ruleset @s { include @zzz }\n")
    ran = mir_opt(path, "--check-rules")
    assert ran.code == 1 and "r.mir:1:1: error: there is no rule or ruleset @zzz\n" in ran.err


def test_a_lowering_that_was_left_out_is_named(mir_opt: Callable[..., Ran], program: Path) -> None:
    program.write_text("def @main(%x: Tensor[(2, 4), float32]) { nn.dense(%x, %x) }\n")
    ran = mir_opt(program, "-p", "lower-te-to-tir,fuse-ops,lower-relay-to-llvm")
    assert ran.code == 1 and "relay.nn.dense cannot be lowered to native code" in ran.err
    assert "note: operators are lowered by lower-relay-to-te, which comes before lower-relay-to-llvm" in ran.err


def test_an_unknown_processor_is_named(mir_opt: Callable[..., Ran], program: Path) -> None:
    ran = mir_opt(program, "--mcpu", "pentium9", "-t", "llvm")
    assert ran.code == 1 and "error: nothing is known of a processor 'pentium9'\n" in ran.err
    assert """or describe it: target "pentium9" { cpu = "haswell", … }""" in ran.err


def test_a_comment_in_a_rule_is_told_of(mir_opt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "r.mir"
    path.write_text("rewrite @a for tir { (%x * %y) // %y => %x }\n")
    ran = mir_opt(path)
    assert ran.code == 1 and "r.mir:1:44: error: the rule ends too early" in ran.err
    assert (
        "note: '//' begins a comment, which ends with the line; a floor division is written floordiv(%x, %y)" in ran.err
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-p", "fuse-ops,,dce"), "mir-opt: error: -p: a pass's name is missing here\nfuse-ops,,dce\n         ^\n"),
        (
            ("--trace", "foo"),
            "mir-opt: error: --trace: there is no pass 'foo' (none runs: give some by -p, or -t llvm; --list-passes names all)\n",
        ),
        (("--allow-extern", "f,a b"), "argument --allow-extern: 'a b' is not the name of a C function"),
        (("--check-rules",), "p.mir:1:1: error: there are no rules to apply"),
    ],
)
def test_options(mir_opt: Callable[..., Ran], program: Path, options: tuple[str, ...], message: str) -> None:
    ran = mir_opt(program, *options)
    assert ran.code != 0 and message in ran.err


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(MirError, match=r"p.mir:2:3: error: not UTF-8 text: byte 0xff"):
        mirstack.parse(b"// \xc3\xa4\n//\xff", "p.mir")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "make",
    [
        lambda: relay.var("\ud800", shape=(2,)),
        lambda: relay.Var("\ud800"),
        lambda: relay.GlobalVar("\ud800"),
        lambda: relay.TypeVar("\ud800"),
        lambda: relay.GlobalTypeVar("\ud800"),
        lambda: mirstack.IRModule({"\ud800": relay.Function([], relay.const(1))}),
        lambda: te.create_prim_func([te.placeholder((2,))]).with_attr("global_symbol", "\ud800"),
        lambda: te.var("\ud800"),
        lambda: te.size_var("\ud800"),
        lambda: te.placeholder((2,), name="\ud800"),
        lambda: te.compute((2,), lambda i: i, name="\ud800"),
    ],
)
def test_names_that_no_file_can_hold(make: Callable[[], object]) -> None:
    with pytest.raises(MirError, match=r"U\+D800 is not a character by itself"):
        make()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, -1), r"relay.var: shape\[1\] is -1: a dimension is not negative\nnote: relay.Any\(\) is one"),
        ("ab", r"relay.var: shape is a tuple of dimensions, not 'ab'\nnote: write shape=\(2, 3\)"),
        (3, r"relay.var: shape is a tuple of dimensions, not 3"),
        ((1.5,), r"relay.var: shape\[0\] is 1.5: a dimension is an integer or relay.Any\(\)"),
        ((2**62,), r"relay.var: shape\[0\] is 4611686018427387904: the dimension is too large"),
    ],
)
def test_shapes_that_are_none(shape: Any, message: str) -> None:
    with pytest.raises(MirError, match=message):
        relay.var("x", shape=shape)
    with pytest.raises(MirError, match=message.replace("relay.var", "relay.TensorType")):
        relay.TensorType(shape)


def test_arguments_that_are_no_text() -> None:
    with pytest.raises(TypeError, match=r"parse takes the text of a program as a str, not NoneType"):
        mirstack.parse(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"dtype is a string such as 'float32', not 3"):
        relay.var("x", shape=(2,), dtype=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


OTHER_FORMAT = [
    ("p.mir", "builtin.module {\n}\n", "this looks like .mlir text: -f mlir reads it as such"),
    ("p.mir", "// A comment.\n%0 = arith.constant 1 : i32\n", "this looks like .mlir text: -f mlir reads it as such"),
    ("p.mlir", PROGRAM, "this looks like .mir text: -f mir reads it as such"),
    ("p.mlir", "@T.prim_func\ndef f():\n    pass\n", "this looks like .mir text: -f mir reads it as such"),
]


@pytest.mark.parametrize(("name", "text", "note"), OTHER_FORMAT)
def test_text_of_the_other_format(mir_opt: Callable[..., Ran], tmp_path: Path, name: str, text: str, note: str) -> None:
    (tmp_path / name).write_text(text)
    ran = mir_opt(tmp_path / name)
    assert ran.code == 1 and f"\nnote: {note}\n" in ran.err


def test_text_that_is_wrong_in_its_own_format(mir_opt: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "p.mir").write_text("def @main( {\n")
    assert "looks like" not in mir_opt(tmp_path / "p.mir").err
