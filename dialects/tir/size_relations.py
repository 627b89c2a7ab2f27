"""Reads and writes relations of a kernel's symbolic sizes, the attribute `mirstack.sizes`.

Each relation is `[rule, left, right]`: the two are equal ("equal"), the first is not above the second ("within"), or it is 1
or equal to the second ("expand"). A size
is an integer, the name of a symbolic variable of the function, or `[op, operand, …]` with the name of a tir op of
`OPERATIONS`. The callers of the function ensure the relations; `check-open-bounds` relies on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from ..arith import Expr
from ..arith import expr as x
from ..arith.expr import select
from ..arith.from_ssa import CONSTRUCTORS

SIZES = "mirstack.sizes"

RULES = ("equal", "within", "expand")

OPERATIONS: dict[str, Callable[..., Expr]] = {op.name: build for op, build in CONSTRUCTORS.items()} | {
    "tir.select": select
}


def relations(attr: Attribute | None, variables: Mapping[str, Expr]) -> Iterable[tuple[str, Expr, Expr]]:
    """Iterates over relations (rule, left, right); skips malformed ones and those of unknown variables."""
    for item in attr.data if isinstance(attr, ArrayAttr) else ():
        parts = item.data if isinstance(item, ArrayAttr) else ()
        if len(parts) == 3 and isinstance(parts[0], StringAttr) and parts[0].data in RULES:
            left, right = (_size(part, variables) for part in parts[1:])
            if left is not None and right is not None:
                yield parts[0].data, left, right


def _size(attr: Attribute, variables: Mapping[str, Expr]) -> Expr | None:
    match attr:
        case IntegerAttr():
            return x.as_expr(attr.value.data)
        case StringAttr():
            return variables.get(attr.data)
        case ArrayAttr() if attr.data and isinstance(name := attr.data[0], StringAttr) and name.data in OPERATIONS:
            operands = [_size(operand, variables) for operand in attr.data[1:]]
            known = [operand for operand in operands if operand is not None]
            if len(known) != len(operands) or len(known) != _ARITY.get(name.data, 2):
                return None
            return OPERATIONS[name.data](*known)
        case _:
            return None


_ARITY = {"tir.not": 1, "tir.select": 3}
