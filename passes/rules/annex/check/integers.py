"""Proofs by z3 of rules on integers (TIR, arith): both sides are equal for all values of 8 to 64 bits.

Values are bit vectors, as in the machine: sums wrap; TIR's are taken as signed and as unsigned. Conditions are those of the rule; where the
left side is not defined (a division by zero, a shift past the width) nothing is asked of the right side, and where it is defined the right
side must be. Each choice of one op among several, and of the predicate of a comparison, is proven for itself.
"""

# z3 has no types.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from .....dialects import rule as ir
from .....dialects.relay.operator import from_attribute
from .....dialects.rule.functions import FUNCTIONS, LAZY, NoMatch
from .....support.diagnostics import Diagnostic
from .terms import op_names, results, roots

WIDTHS, TIMEOUT = (8, 16, 32, 64), 30_000
"""Bits for which a rule is proven, and milliseconds for each: what is wrong in few bits has a small counterexample."""

PATIENCE = 1000
"""Milliseconds for a proof after which fewer bits are tried.

The summary says that more are not decided.
"""

_MOST_CHOICES = 64


class Unsaid(Exception):
    """z3 is not told of an op or function."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


Choice: TypeAlias = "Mapping[ir.MatchOp | SSAValue, Any]"
"""Which op each match is, and which number each captured predicate."""


def prove(rule: ir.RewriteOp) -> tuple[Diagnostic | None, str]:
    """Proves a rule over integers; returns a counterexample, or None and the words for what is proven.

    Raises ImportError without z3.
    """
    import z3

    z: Any = z3
    name = rule.sym_name.data
    proven: list[int] = []
    undecided: list[int] = []
    for width in (width for width in WIDTHS if _fits(rule, width)):
        seen: set[str] = set()
        try:
            for choice, signed in product(choices_of(rule), (True, False) if rule.level.data == "tir" else (True,)):
                timeout = PATIENCE if proven else TIMEOUT
                problem, verdict = _prove_choice(rule, z, width, choice, timeout, signed)
                if problem is not None:
                    return problem, ""
                seen.add(verdict)
        except Unsaid as unsaid:
            message = f"rule @{name} cannot be proven: '{unsaid.name}' {UNSAID}"
            return Diagnostic(message, rule.location).with_note(_HINT), ""
        except (z.Z3Exception, TypeError):
            message = f"rule @{name} cannot be proven: it takes conditions for numbers, or numbers for conditions"
            return Diagnostic(message, rule.location).with_note(_HINT), ""
        if "unknown" in seen and not proven:
            seconds = TIMEOUT // 1000
            return Diagnostic(f"rule @{name} could not be proven for {width} bits in {seconds} s", rule.location), ""
        if "unknown" in seen:
            undecided.append(width)
        elif "proven" in seen:
            proven.append(width)
    if not proven:
        return Diagnostic(f"rule @{name} {NEVER}", rule.location), ""
    more = f", not decided for {_listed(undecided)}" if undecided else ""
    return None, f"proven for {_listed(proven)} bits{more}"


UNSAID = "is not integer arithmetic"
NEVER = "is not exercised: its conditions are never true"
_HINT = "rules of TIR and arith on integers are proven; apply others with care"


def _listed(widths: Sequence[int]) -> str:
    *first, last = map(str, widths)
    return f"{', '.join(first)} and {last}" if first else last


def _fits(rule: ir.RewriteOp, width: int) -> bool:
    """Returns whether a rule's numbers are values of that many bits."""
    found = (from_attribute(op.value) for op in rule.body.block.ops if isinstance(op, ir.LiteralOp))
    made = (op.value.owner for op in rule.body.block.ops if isinstance(op, ir.ConstantOp))
    numbers = [*found, *(from_attribute(op.value) for op in made if isinstance(op, ir.DataOp))]
    return all(-(1 << (width - 1)) <= n < 1 << width for n in numbers if isinstance(n, int))


def choices_of(rule: ir.RewriteOp) -> list[Choice]:
    """Every choice of ops and predicates. Raises Unsaid where there are too many."""
    matches = [op for op in rule.body.block.ops if isinstance(op, ir.MatchOp)]
    captured = {
        attr
        for op in matches
        for name, attr in zip(op.attr_names.data, op.attrs, strict=True)
        if name.data == "predicate" and isinstance(attr.owner, ir.AttrOp)
    }
    options = [[(op, name) for name in op_names(op)] for op in matches]
    predicates = [[(attr, number) for number in range(len(_PREDICATES))] for attr in captured]
    if math.prod(map(len, [*options, *predicates])) > _MOST_CHOICES:
        raise Unsaid(f"more than {_MOST_CHOICES} choices")
    return [dict(each) for each in product(*options, *predicates)]


def _prove_choice(
    rule: ir.RewriteOp, z: Any, width: int, choice: Choice, timeout: int, signed: bool = True
) -> tuple[Diagnostic | None, str]:
    """Proves one choice of ops; returns a counterexample, or "proven", "unknown" or "never" (applies)."""
    name = rule.sym_name.data
    sides = _Sides(rule, z, width, choice, signed)
    claims = [(sides.term(a), sides.term(b)) for a, b in zip(roots(rule), results(rule), strict=True)]
    conditions = [sides.condition(op.condition) for op in rule.body.block.ops if isinstance(op, ir.WhereOp)]
    if any(a.sort() != b.sort() for a, b in claims):
        return Diagnostic(f"rule @{name} would change the type of a value", rule.location), ""
    solver = z.SolverFor("QF_BV")
    solver.set("timeout", timeout)
    solver.add(*conditions, *sides.defined[False])
    if solver.check() == z.unsat:
        return None, "never"
    solver.add(z.Not(z.And(*(a == b for a, b in claims), *sides.defined[True])))
    verdict = solver.check()
    if verdict == z.sat:
        model = solver.model()
        values = ", ".join(
            f"%{key} = {_shown(z, model.eval(term, True), signed)}" for key, term in sides.named().items()
        )
        several = [each for op, each in choice.items() if isinstance(op, ir.MatchOp) and len(op.names.data) > 1]
        by = f" with {', '.join(map(str, several))}" if several else ""
        bits = f"{width} bits" if signed else f"{width} bits without a sign"
        message = f"rule @{name} changes the meaning in {bits}{by}: {values or 'always'}"
        return Diagnostic(message, rule.location), ""
    return None, "proven" if verdict == z.unsat else "unknown"


def _shown(z: Any, value: Any, signed: bool) -> str:
    return str(value if z.is_bool(value) else value.as_signed_long() if signed else value.as_long())


def name_of(op: ir.MatchOp | ir.BuildOp, choice: Choice) -> str:
    """Returns the op that a pattern or a replacement is."""
    captured = op.op.owner if isinstance(op, ir.BuildOp) and op.op is not None else op
    return choice[captured] if isinstance(captured, ir.MatchOp) else op_names(op)[0]


def intrinsic_of(op: ir.MatchOp | ir.BuildOp, name: str) -> str:
    """The name of an op, with that of the intrinsic for a call of TIR: `tir.call:bitwise_and`."""
    attributes = {key.data: attr.owner for key, attr in zip(op.attr_names.data, op.attrs, strict=True)}
    called = attributes.get("intrinsic")
    return f"{name}:{from_attribute(called.value)}" if name == "tir.call" and isinstance(called, ir.DataOp) else name


_OF_BOOLS = ("tir.and", "tir.or", "tir.not")
_TO_BOOL = ("tir.eq", "tir.ne", "tir.lt", "tir.le", "tir.gt", "tir.ge", "arith.cmpi")
_TESTS = ("tir.call:isnan", "tir.call:isinf", "tir.call:isfinite")
_BOOL = "bool"


class Kinds:
    """The values of a rule that share a dtype, and those that are bool.

    Values that are compared, chosen or computed with one another share one.
    """

    def __init__(self, rule: ir.RewriteOp, choice: Choice):
        self._parent: dict[Any, Any] = {}
        for op in rule.body.block.ops:
            match op:
                case ir.MatchOp() | ir.BuildOp():
                    self._use(intrinsic_of(op, name_of(op, choice)), list(op.args), op.result)
                case ir.LiteralOp() if isinstance(from_attribute(op.value), bool):
                    self._join(op.result, _BOOL)
                case ir.ConstantOp() if isinstance(op.value.owner, ir.DataOp):
                    if isinstance(from_attribute(op.value.owner.value), bool):
                        self._join(op.result, _BOOL)
                case ir.FoldOp():
                    self._join(op.result, op.value)
                case ir.SelectOp():
                    self._join(op.result, op.on_true)
                    self._join(op.result, op.on_false)
                case _:
                    pass

    def of(self, value: Any) -> Any:
        """Returns the representative of all values of the same dtype."""
        while value in self._parent:
            value = self._parent[value]
        return value

    def is_bool(self, value: SSAValue) -> bool:
        """Returns whether a value can only be bool."""
        return self.of(value) == _BOOL

    def _join(self, a: Any, b: Any) -> None:
        a, b = self.of(a), self.of(b)
        if a != b:
            self._parent.update({b: a} if a == _BOOL else {a: b})

    def _use(self, name: str, args: list[SSAValue], result: SSAValue) -> None:
        if name in _OF_BOOLS:
            same, bools = [], [*args, result]
        elif name in _TO_BOOL or name in _TESTS:
            same, bools = args, [result]
        elif name in ("tir.select", "arith.select"):
            same, bools = [*args[1:], result], args[:1]
        else:
            same, bools = [] if name == "tir.cast" else [*args, result], []
        for value in bools:
            self._join(value, _BOOL)
        for value in same[1:]:
            self._join(same[0], value)


class _Sides:
    """Both sides of a rule as terms of z3."""

    def __init__(self, rule: ir.RewriteOp, z: Any, width: int, choice: Choice, signed: bool):
        self.z, self.width, self.choice, self.signed = z, width, choice, signed
        self.kinds = Kinds(rule, choice)
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
                name = f"v{len(self.terms)}"
                return z.Bool(name) if self.kinds.is_bool(value) else z.BitVec(name, self.width)
            case ir.LiteralOp() as op:
                return self.number(from_attribute(op.value))
            case ir.ConstantOp() as op:
                try:
                    return self.number(self.known(op.value))
                except Unsaid:
                    pass
                return z.Extract(self.width - 1, 0, self.attribute(op.value))
            case ir.FoldOp() as op:
                return self.term(op.value)
            case ir.SelectOp() as op:
                return z.If(self.condition(op.condition), self.term(op.on_true), self.term(op.on_false))
            case (ir.MatchOp() | ir.BuildOp()) as op:
                name = intrinsic_of(op, name_of(op, self.choice))
                if any(arg.type != ir.VALUE for arg in op.args):
                    raise Unsaid(name)
                return self.operation(op, name, [self.term(arg) for arg in op.args])
            case _:
                raise Unsaid("%…...")

    def number(self, value: Any) -> Any:
        if isinstance(value, bool):
            return self.z.BoolVal(value)
        if not isinstance(value, int):
            raise Unsaid(str(value))
        return self.z.BitVecVal(value, self.width)

    def operation(self, op: ir.MatchOp | ir.BuildOp, name: str, args: list[Any]) -> Any:
        attributes = {key.data: attr for key, attr in zip(op.attr_names.data, op.attrs, strict=True)}
        if name in ("arith.constant", "tir.const") and set(attributes) == {"value"}:
            return self.number(self.known(attributes["value"]))
        make = (None if self.signed else _UNSIGNED.get(name)) or _OPS.get(name)
        if name.startswith("tir.call:"):
            attributes.pop("intrinsic")
        if name == "arith.cmpi" and set(attributes) == {"predicate"}:
            number = self.known(attributes["predicate"])
            if not isinstance(number, int) or not 0 <= number < len(_PREDICATES):
                raise Unsaid(f"predicate={number}")
            make = _PREDICATES[number]
        elif attributes:
            raise Unsaid(f"{next(iter(attributes))}=")
        if make is None:
            raise Unsaid(name)
        need = self.defined[isinstance(op, ir.BuildOp)]
        if "div" in name or "mod" in name or "rem" in name:
            need.append(args[1] != 0)
            if self.signed and not name.endswith("ui"):
                # The least integer divided by -1 does not fit.
                least = self.z.BitVecVal(1 << (self.width - 1), self.width)
                need.append(self.z.Not(self.z.And(args[0] == least, args[1] == -1)))
        if ".sh" in name or ":sh" in name:
            need.append(self.z.ULT(args[1], self.width))
        return make(self.z, *args)

    # What is known without looking at values: attributes, dtypes and what is computed of them.

    def known(self, value: SSAValue) -> Any:
        """Raises Unsaid for what depends on values."""
        op = value.owner
        match op:
            case ir.DataOp():
                return from_attribute(op.value)
            case ir.AttrOp() if value in self.choice:
                return self.choice[value]
            case ir.ComputeOp() if op.function.data in ("dtype", "rank"):
                if op.function.data == "rank":
                    return 0
                bools = self.kinds.is_bool(op.args[0])
                return "bool" if bools else f"{'' if self.signed else 'u'}int{self.width}"
            case ir.ComputeOp() if op.function.data == "is_float":
                return False
            case ir.ComputeOp() if op.function.data in ("is_integer", "is_unsigned"):
                return not self.kinds.is_bool(op.args[0]) and (op.function.data == "is_integer" or not self.signed)
            case ir.ComputeOp() if op.function.data in LAZY:
                first, *rest = map(self.known, op.args)
                if op.function.data == "ifelse":
                    return rest[0] if first else rest[1]
                return (first and rest[0]) if op.function.data == "and_" else (first or rest[0])
            case ir.ComputeOp() if not FUNCTIONS[op.function.data].wants_values:
                try:
                    return FUNCTIONS[op.function.data].call(*map(self.known, op.args))
                except (TypeError, ValueError, ArithmeticError, LookupError, NoMatch):
                    raise Unsaid(op.function.data) from None
            case _:
                raise Unsaid("an attribute")

    # Conditions: integers there are exact, so they get bits enough for the products of products.

    def condition(self, value: SSAValue) -> Any:
        """A condition as a bool."""
        op = value.owner
        try:
            return self.z.BoolVal(bool(self.known(value)))
        except Unsaid:
            pass
        if isinstance(op, ir.ComputeOp):
            name = op.function.data
            if name in ("and_", "or_"):
                return (self.z.And if name == "and_" else self.z.Or)(*map(self.condition, op.args))
            if name == "not_":
                return self.z.Not(self.condition(op.args[0]))
            if name in ("is_constant", "one_use"):
                # Whether it holds is open, but the same for the same value.
                return self.z.Bool(f"{name} {self.term(op.args[0])}")
            if name in _COMPARE:
                return _COMPARE[name](*map(self.attribute, op.args))
            if name == "divides":
                divisor, number = map(
                    self.term if all(a.type == ir.VALUE for a in op.args) else self.attribute, op.args
                )
                return self.z.And(divisor != 0, (self.z.SRem if self.signed else self.z.URem)(number, divisor) == 0)
            raise Unsaid(name)
        raise Unsaid("a condition")

    def attribute(self, value: SSAValue) -> Any:
        op, wide = value.owner, 4 * self.width
        try:
            number = self.known(value)
        except Unsaid:
            if isinstance(op, ir.DataOp | ir.AttrOp):
                raise
        else:
            if not isinstance(number, int):
                raise Unsaid(str(number))
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
                "min": lambda a, b: self.z.If(a < b, a, b),
                "max": lambda a, b: self.z.If(a > b, a, b),
                "abs": lambda a: self.z.If(a < 0, -a, a),
            }
            if name not in make:
                raise Unsaid(name)
            return make[name](*args)
        if value.type == ir.VALUE:
            return (self.z.SignExt if self.signed else self.z.ZeroExt)(wide - self.width, self.term(value))
        raise Unsaid("an attribute")


def _floor(z: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient rounded down, and the remainder that has the divisor's sign."""
    quotient, remainder = a / b, z.SRem(a, b)
    inexact = z.And(remainder != 0, (remainder < 0) != (b < 0))
    return z.If(inexact, quotient - 1, quotient), z.If(inexact, remainder + b, remainder)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip

_PREDICATES: tuple[Callable[..., Any], ...] = (
    lambda z, a, b: a == b, lambda z, a, b: a != b, lambda z, a, b: a < b, lambda z, a, b: a <= b, lambda z, a, b: a > b,
    lambda z, a, b: a >= b, lambda z, a, b: z.ULT(a, b), lambda z, a, b: z.ULE(a, b), lambda z, a, b: z.UGT(a, b),
    lambda z, a, b: z.UGE(a, b),
)  # fmt: skip
"""The comparisons of arith.cmpi by their number."""


def _logic(of_bits: Callable[[Any, Any], Any], of_bools: str) -> Callable[..., Any]:
    return lambda z, a, b: getattr(z, of_bools)(a, b) if z.is_bool(a) else of_bits(a, b)


_OPS: dict[str, Callable[..., Any]] = {
    **{f"tir.{name}": lambda z, a, b, f=f: f(a, b) for name, f in _COMPARE.items()},
    "tir.add": lambda z, a, b: a + b,
    "tir.sub": lambda z, a, b: a - b,
    "tir.mul": lambda z, a, b: a * b,
    "tir.floordiv": lambda z, a, b: _floor(z, a, b)[0],
    "tir.floormod": lambda z, a, b: _floor(z, a, b)[1],
    "tir.mod": lambda z, a, b: z.SRem(a, b),
    "tir.div": lambda z, a, b: a / b,
    "tir.min": lambda z, a, b: z.If(a < b, a, b),
    "tir.max": lambda z, a, b: z.If(a > b, a, b),
    "tir.and": lambda z, a, b: z.And(a, b),
    "tir.or": lambda z, a, b: z.Or(a, b),
    "tir.not": lambda z, a: z.Not(a),
    "tir.select": lambda z, c, a, b: z.If(c, a, b),
    "tir.call:likely": lambda z, a: a,
    "tir.call:abs": lambda z, a: z.If(a < 0, -a, a),
    "tir.call:bitwise_and": lambda z, a, b: a & b,
    "tir.call:bitwise_or": lambda z, a, b: a | b,
    "tir.call:bitwise_xor": lambda z, a, b: a ^ b,
    "tir.call:bitwise_not": lambda z, a: ~a,
    "tir.call:shift_left": lambda z, a, b: a << b,
    "tir.call:shift_right": lambda z, a, b: a >> b,
    **{f"tir.call:{name}": lambda z, a: a for name in ("floor", "ceil", "trunc", "round", "nearbyint")},
    "arith.addi": lambda z, a, b: a + b,
    "arith.subi": lambda z, a, b: a - b,
    "arith.muli": lambda z, a, b: a * b,
    "arith.divsi": lambda z, a, b: a / b,
    "arith.divui": lambda z, a, b: z.UDiv(a, b),
    "arith.remsi": lambda z, a, b: z.SRem(a, b),
    "arith.remui": lambda z, a, b: z.URem(a, b),
    "arith.floordivsi": lambda z, a, b: _floor(z, a, b)[0],
    "arith.andi": _logic(lambda a, b: a & b, "And"),
    "arith.ori": _logic(lambda a, b: a | b, "Or"),
    "arith.xori": _logic(lambda a, b: a ^ b, "Xor"),
    "arith.shli": lambda z, a, b: a << b,
    "arith.shrsi": lambda z, a, b: a >> b,
    "arith.shrui": lambda z, a, b: z.LShR(a, b),
    "arith.minsi": lambda z, a, b: z.If(a < b, a, b),
    "arith.maxsi": lambda z, a, b: z.If(a > b, a, b),
    "arith.minui": lambda z, a, b: z.If(z.ULT(a, b), a, b),
    "arith.maxui": lambda z, a, b: z.If(z.UGT(a, b), a, b),
    "arith.select": lambda z, c, a, b: z.If(c, a, b),
}

_UNSIGNED: dict[str, Callable[..., Any]] = {
    "tir.lt": lambda z, a, b: z.ULT(a, b),
    "tir.le": lambda z, a, b: z.ULE(a, b),
    "tir.gt": lambda z, a, b: z.UGT(a, b),
    "tir.ge": lambda z, a, b: z.UGE(a, b),
    "tir.floordiv": lambda z, a, b: z.UDiv(a, b),
    "tir.floormod": lambda z, a, b: z.URem(a, b),
    "tir.div": lambda z, a, b: z.UDiv(a, b),
    "tir.mod": lambda z, a, b: z.URem(a, b),
    "tir.min": lambda z, a, b: z.If(z.ULT(a, b), a, b),
    "tir.max": lambda z, a, b: z.If(z.UGT(a, b), a, b),
    "tir.call:abs": lambda z, a: a,
    "tir.call:shift_right": lambda z, a, b: z.LShR(a, b),
}
"""What is something else on integers without a sign."""
