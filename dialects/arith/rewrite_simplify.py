"""Simplifies expression nodes by the rules of `rewrite_rules`, from the inside out.

    (x + y) - (x + z)       y - z
    min(x * 3, 9)           min(x, 3) * 3

A result keeps the order of its terms: nothing is brought into the analyzer's canonical form.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ..tir import node as ex
from ..tir.node import Expr, IntImm
from ..tir.node.functor import expr_parts, expr_with
from .expression_numbers import ExpressionNumbers
from .node_analyzer import NodeAnalyzer
from .rewrite_rules import RULES

MAX_STEPS = 256
"""A simplification ends after so many rewrites."""

_KINDS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "floormod",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "neg",
}  # fmt: skip

_CLASSES: dict[str, type[Expr]] = {
    "add": ex.Add, "sub": ex.Sub, "mul": ex.Mul, "floordiv": ex.FloorDiv, "floormod": ex.FloorMod, "truncdiv": ex.Div, "truncmod": ex.Mod,
    "min": ex.Min, "max": ex.Max, "lt": ex.LT, "le": ex.LE, "gt": ex.GT, "ge": ex.GE, "eq": ex.EQ, "ne": ex.NE, "and": ex.And, "or": ex.Or,
    "not": ex.Not, "select": ex.Select,
}  # fmt: skip

_BUILD: dict[str, Callable[..., Expr]] = {
    "add": ex.add, "sub": ex.subtract, "mul": ex.multiply, "floordiv": ex.floordiv, "floormod": ex.floormod, "truncdiv": ex.truncdiv,
    "truncmod": ex.truncmod, "min": ex.minimum, "max": ex.maximum, "lt": ex.less, "le": ex.less_equal, "gt": ex.greater,
    "ge": ex.greater_equal, "eq": ex.equal, "ne": ex.not_equal, "and": ex.logical_and, "or": ex.logical_or, "not": ex.logical_not,
    "select": ex.select,
}  # fmt: skip

_SYMMETRIC = frozenset({"add", "mul", "min", "max", "eq", "ne", "and", "or"})
_NUMBERS = frozenset("abc")


@dataclass(frozen=True)
class RuleTerm:
    """A part of a rule: a name, a number, or the kind of an operation and its operands."""

    kind: str
    operands: tuple[RuleTerm, ...] = ()
    value: int = 0


@dataclass(frozen=True)
class RewriteRule:
    """Replaces what matches `pattern` by `result` where `condition` is true."""

    pattern: RuleTerm
    result: RuleTerm
    condition: RuleTerm | None
    is_final: bool
    """Whether the order of operands counts, and only the parts of the result are simplified again."""


@cache
def rules() -> dict[type[Expr], list[RewriteRule]]:
    """Returns the rules by the kind of node that they replace, in order."""
    found: dict[type[Expr], list[RewriteRule]] = {}
    for line in RULES.strip().splitlines():
        if not line:
            continue
        rewrite, _, condition = line.partition(" where ")
        arrow = " => " if " => " in rewrite else " -> "
        pattern, _, result = rewrite.partition(arrow)
        rule = RewriteRule(_term(pattern), _term(result), _term(condition) if condition else None, arrow == " => ")
        found.setdefault(_CLASSES[rule.pattern.kind], []).append(rule)
    return found


def _term(text: str) -> RuleTerm:
    return _of_syntax(ast.parse(text, mode="eval").body)


def _of_syntax(node: ast.expr) -> RuleTerm:
    match node:
        case ast.Name():
            return RuleTerm(node.id)
        case ast.Constant(value=bool(value)):
            return RuleTerm("bool", (), int(value))
        case ast.Constant(value=int(value)):
            return RuleTerm("number", (), value)
        case ast.BinOp():
            return RuleTerm(_KINDS[type(node.op)], (_of_syntax(node.left), _of_syntax(node.right)))
        case ast.BoolOp():
            first, *rest = map(_of_syntax, node.values)
            for each in rest:
                first = RuleTerm(_KINDS[type(node.op)], (first, each))
            return first
        case ast.UnaryOp():
            operand = _of_syntax(node.operand)
            is_negative = isinstance(node.op, ast.USub) and operand.kind == "number"
            return (
                RuleTerm("number", (), -operand.value) if is_negative else RuleTerm(_KINDS[type(node.op)], (operand,))
            )
        case ast.Compare():
            return RuleTerm(_KINDS[type(node.ops[0])], (_of_syntax(node.left), _of_syntax(node.comparators[0])))
        case ast.Call(func=ast.Name(id=name)):
            return RuleTerm(name, tuple(map(_of_syntax, node.args)))
        case _:
            raise AssertionError(ast.dump(node))


Found = dict[str, Expr]


class RewriteSimplifier:
    """Simplifies expressions under what an analyzer knows."""

    def __init__(self, analyzer: NodeAnalyzer):
        self.analyzer = analyzer
        self.numbers = ExpressionNumbers()
        self.steps = 0

    def simplify(self, e: Expr) -> Expr:
        """Returns an expression to which no rule applies, of indices and conditions."""
        pending = [self.simplify(part) for part in expr_parts(e)]
        changed = expr_with(e, pending)
        if changed is not e and type(e) in _OPERATIONS:
            changed = _BUILD[_OPERATIONS[type(e)]](*pending)
        if (
            isinstance(changed, _COMMUTATIVE)
            and isinstance(changed.args[0], IntImm)
            and not isinstance(changed.args[1], IntImm)
        ):
            self.steps += 1
            changed = expr_with(changed, changed.args[::-1])
        return self._rewritten(changed)

    def _rewritten(self, e: Expr) -> Expr:
        for rule in rules().get(type(e), ()):
            if self.steps >= MAX_STEPS:
                return e
            for found in self._match(rule.pattern, e, {}, rule.is_final):
                if rule.condition is None or self._holds(rule.condition, found):
                    made = self._build(rule.result, found, e)
                    if self.numbers.of(made) != self.numbers.of(e):
                        self.steps += 1
                        return self._with_simple_parts(made) if rule.is_final else self.simplify(made)
        return e

    def _with_simple_parts(self, e: Expr) -> Expr:
        return expr_with(e, [self.simplify(part) for part in expr_parts(e)])

    # Patterns --------------------------------------------------------------------------------------------------------

    def _match(self, term: RuleTerm, e: Expr, found: Found, ordered: bool) -> Iterator[Found]:
        if term.kind in ("number", "bool"):
            if isinstance(e, IntImm) and e.value == term.value and (e.dtype == "bool") == (term.kind == "bool"):
                yield found
        elif not term.operands:
            known = found.get(term.kind)
            if known is not None:
                if self.numbers.of(known) == self.numbers.of(e):
                    yield found
            elif term.kind not in _NUMBERS or isinstance(e, IntImm):
                yield {**found, term.kind: e}
        elif type(e) is _CLASSES[term.kind] and (term.kind in _OF_CONDITIONS or _is_index(e)):
            yield from self._operands(term.operands, e.args, found, ordered)
            if term.kind in _SYMMETRIC and not ordered:
                yield from self._operands(term.operands, e.args[::-1], found, ordered)

    def _operands(
        self, terms: tuple[RuleTerm, ...], parts: tuple[Expr, ...], found: Found, ordered: bool
    ) -> Iterator[Found]:
        if not terms:
            yield found
            return
        for each in self._match(terms[0], parts[0], found, ordered):
            yield from self._operands(terms[1:], parts[1:], each, ordered)

    # Results and conditions ------------------------------------------------------------------------------------------

    def _build(self, term: RuleTerm, found: Found, e: Expr) -> Expr:
        if term.kind == "bool":
            return IntImm("bool", term.value)
        if term.kind == "number":
            dtype = next((each.dtype for each in found.values() if each.dtype != "bool"), "int32")
            return IntImm(dtype, term.value)
        if not term.operands:
            return found[term.kind]
        return _BUILD[term.kind](*[self._build(operand, found, e) for operand in term.operands])

    def _holds(self, term: RuleTerm, found: Found) -> bool:
        match term.kind:
            case "and":
                return all(self._holds(each, found) for each in term.operands)
            case "or":
                return any(self._holds(each, found) for each in term.operands)
            case "not":
                return not self._holds(term.operands[0], found)
            case "prove":
                return self.analyzer.prove(self._build(term.operands[0], found, found["x"]))
            case "number":
                return isinstance(found[term.operands[0].kind], IntImm)
            case "known":
                name, value = term.operands
                e = self.analyzer.simplify(self._build(value, found, found["x"]))
                known = found.setdefault(name.kind, e)
                return isinstance(e, IntImm) and isinstance(known, IntImm) and known.value == e.value
            case _:
                return bool(self._number(term, found))

    def _number(self, term: RuleTerm, found: Found) -> int:
        if term.kind == "number":
            return term.value
        if not term.operands:
            value = found[term.kind]
            assert isinstance(value, IntImm)
            return int(value.value)
        return _COMPUTE[term.kind](*[self._number(each, found) for each in term.operands])


_OPERATIONS = {cls: name for name, cls in _CLASSES.items()}
_COMMUTATIVE = (ex.Add, ex.Mul, ex.Min, ex.Max)
_OF_CONDITIONS = frozenset({"and", "or", "not", "select"})


def _is_index(e: Expr) -> bool:
    return e.args[0].dtype in ("int32", "int64")


_COMPUTE: dict[str, Callable[..., int]] = {
    "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "floordiv": int.__floordiv__, "floormod": int.__mod__,
    "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__, "eq": int.__eq__, "ne": int.__ne__, "min": min, "max": max,
}  # fmt: skip
