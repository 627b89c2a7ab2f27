"""Rules of integer arithmetic (TIR, arith) proven by z3: for all values of 32 bits both sides are equal.

Values are bit vectors, as in the machine: sums wrap. Conditions are those of the rule; where the left side is not defined (a
division by zero, a shift past the width) nothing is asked of the right side, and where it is defined the right side must be.
"""

# z3 has no types.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.ir import SSAValue

from ....dialects import rule as ir
from ....dialects.relay.operator import from_attribute
from ....support.diagnostics import Diagnostic
from .terms import op_names, results, roots

WIDTHS, TIMEOUT = (8, 32), 5000
"""Bits for which a rule is proven, and milliseconds for each: what is wrong in few bits has a small counterexample."""


class _Unsaid(Exception):
    """z3 is not told of an op or function."""

    def __init__(self, where: Any, name: str):
        super().__init__(name)
        self.where, self.name = where, name


def prove(rule: ir.RewriteOp) -> Diagnostic | None:
    """What is wrong with a rule over integers, with a counterexample; None where it is proven.

    Raises ImportError without z3.
    """
    import z3

    z: Any = z3
    name = rule.sym_name.data
    for width in WIDTHS:
        try:
            sides = _Sides(rule, z, width)
            claims = [(sides.term(a), sides.term(b)) for a, b in zip(roots(rule), results(rule), strict=True)]
            conditions = [sides.condition(op.condition) for op in rule.body.block.ops if isinstance(op, ir.WhereOp)]
        except _Unsaid as unsaid:
            diagnostic = Diagnostic(
                f"rule @{name} cannot be proven: '{unsaid.name}' is not integer arithmetic", rule.location
            )
            return diagnostic.with_note("rules of TIR and arith on integers are proven; apply others with care")
        if any(a.sort() != b.sort() for a, b in claims):
            return Diagnostic(f"rule @{name} would change the type of a value", rule.location)
        solver = z.Solver()
        solver.set("timeout", TIMEOUT)
        solver.add(*conditions, *sides.defined[False])
        if solver.check() == z.unsat:
            message = f"rule @{name} is not exercised: its conditions are never true"
            return Diagnostic(message, rule.location)
        solver.add(z.Not(z.And(*(a == b for a, b in claims), *sides.defined[True])))
        verdict = solver.check()
        if verdict == z.sat:
            model = solver.model()
            values = ", ".join(
                f"%{key} = {model.eval(value, True).as_signed_long()}" for key, value in sides.named().items()
            )
            return Diagnostic(f"rule @{name} changes the meaning in {width} bits: {values or 'always'}", rule.location)
        if verdict != z.unsat:
            message = f"rule @{name} could not be proven for {width} bits in {TIMEOUT // 1000} s"
            return Diagnostic(message, rule.location)
    return None


class _Sides:
    """Both sides of a rule as terms of z3."""

    def __init__(self, rule: ir.RewriteOp, z: Any, width: int):
        self.z, self.width = z, width
        self.terms: dict[SSAValue, Any] = {}
        self.defined: dict[bool, list[Any]] = {False: [], True: []}
        """What must hold for the ops of the left side (False) and of the right one (True) to be defined."""

    def named(self) -> Mapping[str, Any]:
        """The captures."""
        return {
            op.capture.data if op.capture else "_": term
            for value, term in self.terms.items()
            if isinstance(op := value.owner, ir.AnyOp)
        }

    def term(self, value: SSAValue) -> Any:
        """A value as a bit vector, or a bool."""
        if value not in self.terms:
            self.terms[value] = self._term(value)
        return self.terms[value]

    def _term(self, value: SSAValue) -> Any:
        z = self.z
        match value.owner:
            case ir.AnyOp() if value.type == ir.VALUE:
                return z.BitVec(f"v{len(self.terms)}", self.width)
            case ir.LiteralOp() as op:
                return self.number(op, from_attribute(op.value))
            case ir.ConstantOp() as op:
                return z.Extract(self.width - 1, 0, self.attribute(op.value))
            case ir.FoldOp() as op:
                return self.term(op.value)
            case ir.SelectOp() as op:
                return z.If(self.condition(op.condition), self.term(op.on_true), self.term(op.on_false))
            case (ir.MatchOp() | ir.BuildOp()) as op:
                names = op_names(op)
                if len(names) != 1 or op.attr_names.data or (op.args and any(a.type != ir.VALUE for a in op.args)):
                    raise _Unsaid(op, names[0] if names else "$op")
                return self.operation(op, names[0], [self.term(arg) for arg in op.args])
            case owner:
                raise _Unsaid(owner, "%…...")

    def number(self, op: Any, value: Any) -> Any:
        if not isinstance(value, int):
            raise _Unsaid(op, str(value))
        return self.z.BitVecVal(value, self.width)

    def operation(self, op: ir.MatchOp | ir.BuildOp, name: str, args: list[Any]) -> Any:
        make = _OPS.get(name)
        if make is None:
            raise _Unsaid(op, name)
        need = self.defined[isinstance(op, ir.BuildOp)]
        if "div" in name or "mod" in name or "rem" in name:
            need.append(args[1] != 0)
            if not name.endswith("ui"):
                # The least integer divided by -1 does not fit.
                least = self.z.BitVecVal(1 << (self.width - 1), self.width)
                need.append(self.z.Not(self.z.And(args[0] == least, args[1] == -1)))
        if ".sh" in name:
            need.append(self.z.ULT(args[1], self.width))
        return make(self.z, *args)

    # Conditions: integers there are exact, so they get bits enough for the products of products.

    def condition(self, value: SSAValue) -> Any:
        """A condition as a bool."""
        op = value.owner
        if isinstance(op, ir.ComputeOp):
            name = op.function.data
            if name in ("and_", "or_"):
                return (self.z.And if name == "and_" else self.z.Or)(*map(self.condition, op.args))
            if name == "not_":
                return self.z.Not(self.condition(op.args[0]))
            if name in ("is_constant", "one_use"):
                return self.z.BoolVal(True)
            if name in _COMPARE:
                return _COMPARE[name](*map(self.attribute, op.args))
            raise _Unsaid(op, name)
        if isinstance(op, ir.DataOp):
            return self.z.BoolVal(bool(from_attribute(op.value)))
        raise _Unsaid(op, "a condition")

    def attribute(self, value: SSAValue) -> Any:
        op, wide = value.owner, 4 * self.width
        if isinstance(op, ir.DataOp):
            number = from_attribute(op.value)
            if not isinstance(number, int):
                raise _Unsaid(op, str(number))
            return self.z.BitVecVal(number, wide)
        if isinstance(op, ir.ComputeOp):
            name = op.function.data
            if name == "identity":
                return self.attribute(op.args[0])
            args = [self.attribute(arg) for arg in op.args]
            if name in ("mod", "floordiv"):
                floor_div, floor_mod = _floor(self.z, *args)
                return floor_mod if name == "mod" else floor_div
            make = {
                "add": lambda a, b: a + b,
                "sub": lambda a, b: a - b,
                "mul": lambda a, b: a * b,
                "neg": lambda a: -a,
            }
            if name not in make:
                raise _Unsaid(op, name)
            return make[name](*args)
        if value.type == ir.VALUE:
            return self.z.SignExt(wide - self.width, self.term(value))
        raise _Unsaid(op, "an attribute")


def _floor(z: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient rounded down, and the remainder that has the divisor's sign."""
    quotient, remainder = a / b, z.SRem(a, b)
    inexact = z.And(remainder != 0, (remainder < 0) != (b < 0))
    return z.If(inexact, quotient - 1, quotient), z.If(inexact, remainder + b, remainder)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip

_OPS: dict[str, Callable[..., Any]] = {
    **{f"tir.{name}": lambda z, a, b, f=f: f(a, b) for name, f in _COMPARE.items()},
    "tir.add": lambda z, a, b: a + b,
    "tir.sub": lambda z, a, b: a - b,
    "tir.mul": lambda z, a, b: a * b,
    "tir.floordiv": lambda z, a, b: _floor(z, a, b)[0],
    "tir.floormod": lambda z, a, b: _floor(z, a, b)[1],
    "tir.truncmod": lambda z, a, b: z.SRem(a, b),
    "tir.div": lambda z, a, b: a / b,
    "tir.min": lambda z, a, b: z.If(a < b, a, b),
    "tir.max": lambda z, a, b: z.If(a > b, a, b),
    "tir.and": lambda z, a, b: z.And(a, b),
    "tir.or": lambda z, a, b: z.Or(a, b),
    "tir.not": lambda z, a: z.Not(a),
    "tir.select": lambda z, c, a, b: z.If(c, a, b),
    "arith.addi": lambda z, a, b: a + b,
    "arith.subi": lambda z, a, b: a - b,
    "arith.muli": lambda z, a, b: a * b,
    "arith.divsi": lambda z, a, b: a / b,
    "arith.divui": lambda z, a, b: z.UDiv(a, b),
    "arith.remsi": lambda z, a, b: z.SRem(a, b),
    "arith.remui": lambda z, a, b: z.URem(a, b),
    "arith.floordivsi": lambda z, a, b: _floor(z, a, b)[0],
    "arith.andi": lambda z, a, b: a & b,
    "arith.ori": lambda z, a, b: a | b,
    "arith.xori": lambda z, a, b: a ^ b,
    "arith.shli": lambda z, a, b: a << b,
    "arith.shrsi": lambda z, a, b: a >> b,
    "arith.shrui": lambda z, a, b: z.LShR(a, b),
    "arith.minsi": lambda z, a, b: z.If(a < b, a, b),
    "arith.maxsi": lambda z, a, b: z.If(a > b, a, b),
    "arith.minui": lambda z, a, b: z.If(z.ULT(a, b), a, b),
    "arith.maxui": lambda z, a, b: z.If(z.UGT(a, b), a, b),
    "arith.select": lambda z, c, a, b: z.If(c, a, b),
}
