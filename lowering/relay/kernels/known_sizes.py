"""Writes `mirstack.sizes`: relations of a kernel's sizes that the checks before its call establish."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from ....dialects import tir
from ....dialects.te.builder import Const, Expr, Var
from ....dialects.te.expr import Apply
from ....dialects.tir.size_relations import OPERATIONS, RULES


def sizes_attr(
    relations: Iterable[tuple[str, Expr, Expr]], values: Mapping[Expr, Expr], known: Container[Expr]
) -> ArrayAttr[Attribute]:
    """Returns relations (rule, left, right) of sizes in `known`, and sizes' definitions, as the attribute."""
    found: list[Attribute] = []
    for rule, left, right in _derived(relations, values):
        if rule in RULES:
            a, b = _size_attr(left, known), _size_attr(right, known)
            if a is not None and b is not None:
                found.append(ArrayAttr([StringAttr(rule), a, b]))
    return ArrayAttr(found)


def _derived(
    relations: Iterable[tuple[str, Expr, Expr]], values: Mapping[Expr, Expr]
) -> Iterator[tuple[str, Expr, Expr]]:
    """The relations, with those of sizes that broadcast turned to the size that they broadcast to."""
    broadcast: dict[frozenset[Expr], Expr] = {}
    for size, value in values.items():
        yield "equal", size, value
        # Of two sizes that broadcast it is the one that is not 1: Select(a == 1, b, a).
        if isinstance(value, Apply) and value.op is tir.SelectOp:
            broadcast[frozenset(value.args[1:])] = size
    for rule, left, right in relations:
        if rule != "stretch":
            yield rule, left, right
            continue
        target = broadcast.get(frozenset((left, right)))
        for one, other in ((left, right), (right, left)):
            if target is not None:
                yield "expand", one, target
            elif isinstance(other, Const) and other.value != 1:
                yield "expand", one, other


def _size_attr(size: Expr, known: Container[Expr]) -> Attribute | None:
    match size:
        case Const():
            return IntegerAttr(int(size), i64) if isinstance(size.value, int) else None
        case Var():
            return StringAttr(size.name) if size in known else None
        case Apply() if size.op is tir.CastOp and size.dtype in ("int32", "int64"):
            # Sizes fit an int32.
            return _size_attr(size.args[0], known)
        case Apply() if size.op.name in OPERATIONS:
            parts = [_size_attr(part, known) for part in size.args]
            whole = [part for part in parts if part is not None]
            return ArrayAttr([StringAttr(size.op.name), *whole]) if len(whole) == len(parts) else None
        case _:
            return None
