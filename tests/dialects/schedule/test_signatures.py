"""The table of signatures: it reads, the primitives agree with it, calls are checked against it."""

from __future__ import annotations

import inspect

import pytest
from mirstack.dialects.schedule import SignatureError, nearest_primitive, signature, signatures
from mirstack.dialects.schedule.kinds import fits, parse_kind, spoken
from mirstack.passes.schedule.engine.primitive import find, names


@pytest.mark.parametrize("name", names())
def test_primitive_agrees_with_its_signature(name: str) -> None:
    known = signature(name)
    primitive = find(name)
    assert known is not None and primitive is not None
    theirs = list(primitive.signature.parameters.values())
    assert [p.name for p in theirs] == [p.name for p in known.parameters]
    assert [p.kind is inspect.Parameter.VAR_POSITIONAL for p in theirs] == [p.variadic for p in known.parameters]
    for mine, other in zip(theirs, known.parameters, strict=True):
        if mine.default is not inspect.Parameter.empty:
            assert mine.default == other.default and type(mine.default) is type(other.default)
        else:
            assert str(other) in (other.name, f"*{other.name}"), f"'{other.name}' has a default in the table only"


def test_table_reads() -> None:
    assert len(signatures()) > 45
    assert str(signatures()["split"]) == "split(loop, factors, preserve_unit_iters=True, disable_predication=False)"
    assert signatures()["split"].result_count({"factors": [None, 4]}) == 2
    assert signatures()["sample_perfect_tile"].result_count({"n": 3}) == 3
    assert signatures()["get_loops"].result_count({}) is None
    assert signatures()["fuse"].result_count({}) == 1


def problem(name: str, *positional: object, **keywords: object) -> str:
    with pytest.raises(SignatureError) as error:
        known = signatures()[name]
        known.check(known.bind(positional, keywords))
    return f"{error.value.message} | {error.value.note}"


class Handle:
    def __init__(self, kind: str) -> None:
        self.schedule_kind = kind


LOOP, BLOCK = Handle("loop"), Handle("block")


def test_calls_that_do_not_fit() -> None:
    assert "split has no parameter 'factor'; did you mean 'factors'?" in problem("split", LOOP, factor=[1])
    assert "it is called as sch.split(loop, factors" in problem("split", LOOP, factor=[1])
    assert "split needs the argument 'factors', a list of numbers or sampled values or None" in problem("split", LOOP)
    assert "split is given the argument 'loop' twice" in problem("split", LOOP, loop=LOOP, factors=[])
    assert "parallel takes 1 argument at most, but 2 are given" in problem("parallel", LOOP, LOOP)
    assert "parallel: 'loop' must be a loop, not a block" in problem("parallel", BLOCK)
    assert "reorder: 'ordered_loops' must be a loop, not 3" in problem("reorder", LOOP, 3)
    assert "'thread_axis' must be a string, not 4" in problem("bind", LOOP, 4)
    assert "'buffer' must be a pair (a string, an integer) or a string" in problem("reindex", BLOCK, (1, "read"))
    assert "fuse has no parameter 'loops'" in problem("fuse", loops=[LOOP])


def test_kinds() -> None:
    assert fits(parse_kind("list[expr | none]"), [None, 4, Handle("expr")])
    assert fits(parse_kind("list[loop]"), Handle("list[loop]"))
    assert not fits(parse_kind("list[loop]"), Handle("list[block]"))
    assert not fits(parse_kind("int"), True)
    assert fits(parse_kind("float"), 3)
    assert fits(parse_kind("lambda"), lambda i: i)
    assert fits(parse_kind("list[any]"), [{"a": 1}, "x"])
    assert spoken(parse_kind("list[block | str] | none")) == "a list of blocks or strings or None"
    with pytest.raises(ValueError, match="is not a kind of argument"):
        parse_kind("")


def test_nearest() -> None:
    assert nearest_primitive("vectorise") == "vectorize"
    assert nearest_primitive("zzz") is None


def test_values_that_are_no_arguments() -> None:
    from mirstack.dialects.schedule.arguments import Encoder

    with pytest.raises(SignatureError, match="inf is not an argument of a schedule primitive"):
        Encoder().encode(float("inf"))
    with pytest.raises(SignatureError, match="18446744073709551616 is not an argument of a schedule primitive"):
        Encoder().encode(1 << 64)
    with pytest.raises(SignatureError, match="is not an argument of a schedule primitive"):
        Encoder().encode({1, 2})  # type: ignore[arg-type]
