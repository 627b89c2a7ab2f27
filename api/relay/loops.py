"""Loops as functions that call themselves, by the names of `tvm.relay.loops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...support.arguments import items
from ...support.public_names import public_names
from .expr import Call, Function, If, Let, RelayExpr, Tuple, Var, const, var
from .op import find


def while_loop(
    cond: Callable[..., RelayExpr], loop_vars: Sequence[Var], loop_bodies: Callable[..., Sequence[RelayExpr]]
) -> Let:
    """Returns a function from first values to a tuple of last ones; it calls itself while `cond` is true.

        while_loop(lambda i: i < n, [i], lambda i: [i + one])(zero)

    `loop_vars` have the names and types of the values, `loop_bodies` returns the next ones.
    """
    given = items(loop_vars, "loop_vars", "variables, relay.Var", Var)
    values = [Var(each.name_hint, each.type_annotation) for each in given]
    loop = Var("while_loop")
    again = Call(loop, [*loop_bodies(*values)])
    return Let(loop, Function(values, If(cond(*values), again, Tuple(values))), loop)


def foreach(iter: RelayExpr, init: Sequence[Var], body: Callable[..., Sequence[RelayExpr]]) -> Let:
    """Returns a function from an index and first values to a tuple of the last; it visits rows of `iter`.

        foreach(rows, [total], lambda row, total: [total + row])(zero, zeros)

    The index counts from the first argument up to the number of rows.
    """
    take: Any = find("take")
    shape_of: Any = find("shape_of")
    count = take(shape_of(iter), const(0, "int32"), axis=0)

    def step(index: RelayExpr, *values: RelayExpr) -> list[RelayExpr]:
        return [index + const(1, "int32"), *body(take(iter, index, axis=0), *values)]

    def is_row(index: RelayExpr, *_: RelayExpr) -> RelayExpr:
        return index < count

    return while_loop(is_row, [var("i", shape=(), dtype="int32"), *init], step)


__all__ = ["foreach", "while_loop"]


__dir__ = public_names(__name__)
