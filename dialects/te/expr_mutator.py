"""Expressions as trees: the same with parts changed, or variables replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from .. import tir
from ..tir import node as ex
from ..tir.node import Apply, Call, Choice, Expr, call
from . import tensor as te

Op: TypeAlias = type[tir.BinaryOp | tir.NotOp | tir.SelectOp | tir.CastOp]


def map_children(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Returns the expression with its parts mapped, itself if none changed."""
    match e:
        case Apply():
            args = tuple(map(change, e.args))
            if all(a is b for a, b in zip(args, e.args, strict=True)):
                return e
            return ex.cast(e.dtype, args[0]) if e.op is tir.CastOp else ex.BUILD[e.op](*args)
        case Choice():
            parts = change(e.args[0]), change(e.then_value), change(e.else_value)
            if parts[0] is e.args[0] and parts[1] is e.then_value and parts[2] is e.else_value:
                return e
            return ex.if_then_else(*parts)
        case Call():
            operands = tuple(change(o) if isinstance(o, Expr) else o for o in e.operands)
            if all(a is b for a, b in zip(operands, e.operands, strict=True)):
                return e
            return call(e.intrinsic, operands, e.dtype)
        case te.Read():
            args = tuple(map(change, e.args))
            same = all(a is b for a, b in zip(args, e.args, strict=True))
            return e if same else te.Read(e.tensor, args)
        case ex.BufferLoad():
            args = tuple(map(change, e.args))
            same = all(a is b for a, b in zip(args, e.args, strict=True))
            return e if same else ex.BufferLoad(e.buffer, args)
        case _:
            return e


def substitute(e: Expr, values: Mapping[int, Expr], memo: dict[int, Expr] | None = None) -> Expr:
    """Returns the expression with variables replaced; `values` is by the `id` of a variable.

    Shared parts stay shared.
    """
    if not values:
        return e
    memo = {} if memo is None else memo

    def change(node: Expr) -> Expr:
        found = memo.get(id(node))
        if found is None:
            replaced = values.get(id(node))
            found = memo[id(node)] = map_children(node, change) if replaced is None else replaced
        return found

    return change(e)


def both(conditions: Iterable[Expr]) -> Expr:
    """Returns all conditions as one."""
    result: Expr = ex.const(True)
    for condition in conditions:
        result = ex.logical_and(result, condition)
    return result
