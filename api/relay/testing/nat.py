"""Natural numbers as values of a data type, `S(S(Z))`: what tests of recursion count with."""

from __future__ import annotations

from typing import Any

from ....support.arguments import check, integer
from ....support.diagnostics import Diagnostic, MirTypeError
from ....support.public_names import public_names
from ...ir.module import IRModule
from ..adt import Constructor
from ..expr import Call, RelayExpr
from ..prelude import Prelude
from ..values import ConstructorValue


def add_nat_definitions(prelude: Prelude) -> None:
    """Adds the natural numbers to a prelude and its module: `p.nat`, `p.z`, `p.s`, `p.nat_add` …"""
    check(prelude, "prelude", "a relay.prelude.Prelude", Prelude)
    mod: Any = prelude.mod
    mod.import_from_std("nat.rly")
    nat, z, s = mod.get_type("nat")
    double, add = mod.get_global_var("nat_double"), mod.get_global_var("nat_add")
    prelude.__dict__.update(nat=nat, z=z, s=s, nat_double=double, nat_add=add, double=double, add=add)


def _constructors(prelude: Prelude | IRModule) -> tuple[Constructor, Constructor]:
    mod: Any = prelude.mod if isinstance(prelude, Prelude) else prelude
    _, z, s = mod.get_type("nat")
    return z, s


def make_nat_value(prelude: Prelude, n: int) -> ConstructorValue:
    """The number as a value, which `create_executor` takes."""
    z, s = _constructors(prelude)
    value = ConstructorValue(z.tag, [], z)
    for _ in range(integer(n, "n", 0)):
        value = ConstructorValue(s.tag, [value], s)
    return value


def make_nat_expr(prelude: Prelude, n: int) -> Call:
    """The number as an expression, `S(S(Z()))`."""
    z, s = _constructors(prelude)
    found = z()
    for _ in range(integer(n, "n", 0)):
        found = s(found)
    return found


def count(prelude: Prelude, n: RelayExpr | ConstructorValue) -> int:
    """The number that a value or an expression means. Raises MirTypeError for what is none."""
    found, current = 0, n
    while True:
        if isinstance(current, ConstructorValue):
            constructor, fields = current.constructor, current.fields
        elif isinstance(current, Call) and isinstance(current.op, Constructor):
            constructor, fields = current.op, current.args
        else:
            raise MirTypeError(Diagnostic(f"a natural number is made of S and Z, not of {current!r}"))
        if constructor.name_hint not in ("S", "Z"):
            raise MirTypeError(Diagnostic(f"a natural number is made of S and Z, not of {current!r}"))
        if constructor.name_hint == "Z":
            return found
        found, current = found + 1, fields[0]


__all__ = ["add_nat_definitions", "count", "make_nat_expr", "make_nat_value"]


__dir__ = public_names(__name__)
