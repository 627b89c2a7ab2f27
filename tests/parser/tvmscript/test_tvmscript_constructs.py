"""Constructs of TVMScript are functions found by name: what registers is read, and suggested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mirstack.dialects.tir.arithmetic import AddOp
from mirstack.dialects.tir.operators import Value
from mirstack.parser import parse_mir
from mirstack.parser.python.tree import Call
from mirstack.parser.tvmscript.expressions import expr
from mirstack.parser.tvmscript.reader import Reader
from mirstack.parser.tvmscript.registry import construct, reads_expression, reads_statement
from mirstack.support.diagnostics import MirError


@pytest.fixture
def add_construct() -> Iterator[Callable[[str, Callable[[Reader, Call], Value]], None]]:
    added: list[str] = []

    def add(name: str, read: Callable[[Reader, Call], Value]) -> None:
        construct.value(name)(read)
        added.append(name)

    yield add
    for name in added:
        del construct.value[name]


def function(value: str) -> str:
    return f'@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n    for i in range(8):\n        A[i] = {value}\n'


def test_a_construct_is_one_function(add_construct: Callable[[str, Any], None]) -> None:
    def twice(reader: Reader, node: Call) -> Value:
        value = reader.value(expr(reader, node.arguments[0]))
        reader.location = reader.at(node)
        return reader.emit(AddOp(value, value))

    add_construct("T.twice", twice)
    module = parse_mir(function("T.twice(A[i])"))
    (added,) = [op for op in module.walk() if isinstance(op, AddOp)]
    assert added.lhs is added.rhs


def test_names_are_suggested(add_construct: Callable[[str, Any], None]) -> None:
    with pytest.raises(MirError, match=r"T has no 'twicce'\n(.*\n)*note: an operator of TVM"):
        parse_mir(function("T.twicce(A[i])"))
    add_construct("T.twice", lambda reader, node: expr(reader, node.arguments[0]))
    with pytest.raises(MirError, match=r"did you mean 'T\.twice'"):
        parse_mir(function("T.twicce(A[i])"))


def test_a_name_is_read_once() -> None:
    with pytest.raises(AssertionError, match=r"T\.Select"):
        construct.value("T.Select")(lambda reader, node: expr(reader, node.arguments[0]))


def test_every_construct_says_what_it_reads() -> None:
    tables: list[dict[Any, Callable[..., Any]]] = [
        *(construct.value, construct.definition, construct.statement, construct.loop, construct.region),
        *(construct.scope, construct.axis, reads_expression, reads_statement),
    ]
    for table in tables:
        assert table
        for key, read in table.items():
            assert getattr(read, "func", read).__doc__, key
