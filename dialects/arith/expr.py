"""Defines the analyzer's own expressions and conditions: immutable, canonical, and apart from the IR.

An `Expr` is a linear combination of atoms with integer coefficients plus a constant. An `Atom` is a variable or what is
not linear: a floor division, a product of variables, a minimum, a comparison. Equal atoms are one object, so that
expressions compare and hash by identity of their parts. Integers are unbounded, as TVM's arithmetic analyzer takes them
(signed overflow is undefined). The constructors below simplify without any knowledge of ranges; `Analyzer.simplify` knows ranges.

Booleans are the integers 0 and 1. All orders are one atom, `operand >= 0`, both equalities are `operand == 0`, and a disjunction
is a negated conjunction, so that conditions of equal meaning have one form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable
from enum import Enum, auto
from functools import lru_cache
from math import gcd
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue


class Kind(Enum):
    """Tells atoms apart. The comments list `operands`; `payload` is None except where named."""

    VAR = auto()  # payload: an SSA value or a Symbol
    PRODUCT = auto()  # two or more factors, each a single atom
    FLOORDIV = auto()  # dividend, divisor
    FLOORMOD = auto()
    TRUNCDIV = auto()
    TRUNCMOD = auto()
    MIN = auto()  # two or more
    MAX = auto()
    GE = auto()  # operand >= 0
    EQ = auto()  # operand == 0
    AND = auto()  # two or more
    SELECT = auto()  # condition, value if true, value if false; payload: whether only the chosen side is evaluated
    CALL = auto()  # any pure function of its operands; payload: a Function, or "mul"

    # Each is one object; Enum's own hash is computed in Python, of the name.
    __hash__ = object.__hash__


class Symbol:
    """A variable that is not an SSA value: of a loop that does not exist yet, or an unknown.

    It is always within `bound`.
    """

    __slots__ = ("bound", "name")

    def __init__(self, name: str, bound: tuple[int, int] | None = None):
        self.name = name
        self.bound = bound

    def __repr__(self) -> str:
        return self.name


class Function(NamedTuple):
    """Identifies the function of a call: enough to compare functions, and to build the op again."""

    name: str
    result: Attribute
    op: type[Operation]
    operands: tuple[Attribute, ...]
    more: Hashable = ()


class Atom:
    """A variable or a non-linear term. Made by `make_atom` only; equal atoms are one object.

    The atom of an SSA value lasts as long as that, and an atom of others as long as the youngest of them, which holds it: so the
    order in which atoms were created, which is that of terms, does not depend on garbage collection.
    """

    __slots__ = ("__weakref__", "depth", "holds", "kind", "operands", "payload", "serial")

    kind: Kind
    operands: tuple[Expr, ...]
    payload: Hashable
    serial: int
    depth: int
    holds: dict[_Key, Atom]
    """The atoms of which this one is the youngest part."""

    def __init__(self, kind: Kind, operands: tuple[Expr, ...], payload: Hashable):
        self.kind = kind
        self.operands = operands
        self.payload = payload
        self.serial = next(_SERIAL)
        self.holds = {}
        self.depth = 1 + max([e.depth for e in operands], default=0)

    def __repr__(self) -> str:
        return repr(Expr(((self, 1),), 0))


Term: TypeAlias = "tuple[Atom, int]"
_Key: TypeAlias = "tuple[Kind, tuple[Expr, ...], Hashable]"

_SERIAL = itertools.count()
_ATOMS: WeakValueDictionary[_Key, Atom] = WeakValueDictionary()
"""Atoms without operands that are not SSA values: symbols, and calls without operands."""
_OF_VALUE = "mirstack_atom"
"""The attribute of an SSA value that holds its atom."""


class Expr:
    """Represents `const` plus a sum of nonzero coefficients · atoms, in order of the atoms' creation."""

    __slots__ = ("_hash", "const", "terms")

    terms: tuple[Term, ...]
    const: int

    def __init__(self, terms: tuple[Term, ...], const: int):
        self.terms = terms
        self.const = const

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expr):
            return NotImplemented
        return self is other or (self.const == other.const and self.terms == other.terms)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.terms, self.const))
            return self._hash

    @property
    def value(self) -> int | None:
        """Returns the number if this is a constant, otherwise None."""
        return None if self.terms else self.const

    @property
    def atom(self) -> Atom | None:
        """Returns the atom if this is 1 * atom, otherwise None."""
        terms = self.terms
        return terms[0][0] if len(terms) == 1 and terms[0][1] == 1 and self.const == 0 else None

    @property
    def depth(self) -> int:
        """Returns the depth to which atoms are nested."""
        depth = 0
        for atom, _ in self.terms:
            if atom.depth > depth:
                depth = atom.depth
        return depth

    def coefficient(self, atom: Atom) -> int:
        """Returns the coefficient of `atom`, 0 if it is not a term."""
        return next((c for a, c in self.terms if a is atom), 0)

    def __add__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return Expr(self.terms, self.const + other) if other else self
        if not other.terms:
            return Expr(self.terms, self.const + other.const) if other.const else self
        if not self.terms:
            return Expr(other.terms, self.const + other.const) if self.const else other
        return Expr(_combine(self.terms, other.terms, 1), self.const + other.const)

    __radd__ = __add__

    def __sub__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return Expr(self.terms, self.const - other) if other else self
        if not other.terms:
            return Expr(self.terms, self.const - other.const) if other.const else self
        return Expr(_combine(self.terms, other.terms, -1), self.const - other.const)

    def __rsub__(self, other: int) -> Expr:
        return -self + other

    def __neg__(self) -> Expr:
        return self.scaled(-1)

    def scaled(self, factor: int) -> Expr:
        """Returns this expression times a number."""
        if factor == 1:
            return self
        return Expr(tuple((a, c * factor) for a, c in self.terms) if factor else (), self.const * factor)

    def __mul__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return self.scaled(other)
        if not other.terms:
            return self.scaled(other.const)
        if not self.terms:
            return other.scaled(self.const)
        return _product(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Expr | int) -> Expr:
        return floordiv(self, as_expr(other))

    def __mod__(self, other: Expr | int) -> Expr:
        return floormod(self, as_expr(other))

    def __repr__(self) -> str:
        return format_expr(self)


ZERO = Expr((), 0)
ONE = Expr((), 1)
FALSE, TRUE = ZERO, ONE

# Beyond these sizes an expression becomes an opaque variable, so that no adversarial program makes analysis slow.
MAX_TERMS = 64
MAX_DEPTH = 40


def _combine(left: tuple[Term, ...], right: tuple[Term, ...], factor: int) -> tuple[Term, ...]:
    """Returns the terms of left + factor * right."""
    if not right:
        return left
    if not left:
        return right if factor == 1 else tuple((a, c * factor) for a, c in right)
    total = dict(left)
    for atom, coefficient in right:
        merged = total.get(atom, 0) + factor * coefficient
        if merged:
            total[atom] = merged
        else:
            del total[atom]
    return tuple(sorted(total.items(), key=_serial))


def _serial(term: Term) -> int:
    return term[0].serial


def order_of(expr: Expr) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Returns a total order of expressions, for operands whose order does not matter."""
    return tuple(a.serial for a, _ in expr.terms), tuple(c for _, c in expr.terms), expr.const


def as_expr(value: Expr | int) -> Expr:
    """Returns an expression, or a number as one."""
    return number(value) if isinstance(value, int) else value


@lru_cache(1 << 12, typed=True)
def number(value: int) -> Expr:
    """Returns a number as an expression; frequent ones are cached."""
    return Expr((), value)


def make_atom(kind: Kind, operands: tuple[Expr, ...], payload: Hashable = None) -> Expr:
    """Returns the one atom of this kind and these parts, as an expression; nothing is simplified."""
    key = (kind, operands, payload)
    youngest: Atom | None = None
    for operand in operands:
        # Terms are in order of their making.
        if operand.terms and (youngest is None or operand.terms[-1][0].serial > youngest.serial):
            youngest = operand.terms[-1][0]
    table = _ATOMS if youngest is None else youngest.holds
    atom = table.get(key)
    if atom is None:
        atom = table[key] = Atom(kind, operands, payload)
    return Expr(((atom, 1),), 0)


def var(of: SSAValue | Symbol) -> Expr:
    """Returns the variable as an expression."""
    if type(of) is Symbol:
        return make_atom(Kind.VAR, (), of)
    known = vars(of)
    e: Expr | None = known.get(_OF_VALUE)
    if e is None:
        e = known[_OF_VALUE] = Expr(((Atom(Kind.VAR, (), of), 1),), 0)
    return e


def known_var(of: SSAValue) -> Expr | None:
    """Returns the variable as an expression, if it was created before."""
    return of.__dict__.get(_OF_VALUE)


def symbol(name: str, bound: tuple[int, int] | None = None) -> Expr:
    """Returns a fresh variable, always within a bound."""
    return var(Symbol(name, bound))


def call(function: Hashable, operands: Iterable[Expr]) -> Expr:
    """Returns a call of a pure function; equal for equal functions of equal operands."""
    return make_atom(Kind.CALL, tuple(operands), function)


def factors_of(atom: Atom) -> tuple[Atom, ...]:
    """Returns the atoms whose product this atom is."""
    return tuple(e.terms[0][0] for e in atom.operands) if atom.kind is Kind.PRODUCT else (atom,)


def product_of(factors: Iterable[Atom]) -> Expr:
    """Returns the product of atoms: 1 for none."""
    ordered = sorted(factors, key=lambda atom: atom.serial)
    if not ordered:
        return ONE
    if len(ordered) == 1:
        return Expr(((ordered[0], 1),), 0)
    return make_atom(Kind.PRODUCT, tuple(Expr(((a, 1),), 0) for a in ordered))


def _product(left: Expr, right: Expr) -> Expr:
    if len(left.terms) * len(right.terms) > MAX_TERMS:
        return call("mul", sorted((left, right), key=order_of))
    total = left.scaled(right.const) + Expr(right.terms, 0).scaled(left.const)
    for a, c in left.terms:
        for b, d in right.terms:
            total += product_of((*factors_of(a), *factors_of(b))).scaled(c * d)
    return total


def quotient_by_monomial(dividend: Expr, divisor: Expr) -> tuple[Expr, Expr] | None:
    """Returns (q, r) with dividend = q * divisor + r, or None if the divisor is not one term.

    No term of r is a multiple of the divisor.
    """
    if len(divisor.terms) != 1 or divisor.const:
        return None
    atom, coefficient = divisor.terms[0]
    needed = factors_of(atom)
    quotient, rest = ZERO, as_expr(dividend.const)
    for a, c in dividend.terms:
        remaining = list(factors_of(a))
        try:
            for factor in needed:
                remaining.remove(factor)
        except ValueError:
            remaining = None
        if remaining is None or c % coefficient:
            rest += Expr(((a, c),), 0)
        else:
            quotient += product_of(remaining).scaled(c // coefficient)
    return quotient, rest


def exact_quotient(dividend: Expr, divisor: Expr) -> Expr | None:
    """Returns q with dividend = q * divisor, by long division, or None if there is none.

    3*n*m + 6*n divided by m + 2 is 3*n.
    """
    if not divisor.terms:
        return None
    lead = Expr((max(divisor.terms, key=lambda term: len(factors_of(term[0]))),), 0)
    quotient, rest = ZERO, dividend
    for _ in range(MAX_TERMS):
        if rest == ZERO:
            return quotient
        split = quotient_by_monomial(rest, lead)
        if split is None or split[0] == ZERO:
            return None
        step = Expr(split[0].terms[:1], 0) if split[0].terms else split[0]
        quotient, rest = quotient + step, rest - _product(step, divisor)
    return None


def floordiv(a: Expr, b: Expr) -> Expr:
    """Returns a // b, rounded toward minus infinity."""
    if b.terms:
        if a == b:
            return ONE
        if a == ZERO:
            return ZERO
        split = quotient_by_monomial(a, b)
        if split is not None and split[0] != ZERO:
            return split[0] + floordiv(split[1], b)
        return make_atom(Kind.FLOORDIV, (a, b))
    c = b.const
    if c < 0:
        a, c = -a, -c
    if c == 0:  # docs/semantics.md
        return ZERO
    if c == 1:
        return a
    quotient, rest = split_by(a, c)
    if not rest.terms:
        return quotient + rest.const // c
    common = gcd(c, *(k for _, k in rest.terms))
    if common > 1:  # (g*x + k) // (g*c) = (x + k//g) // c
        rest = Expr(tuple((atom, k // common) for atom, k in rest.terms), rest.const // common)
        return quotient + floordiv(rest, as_expr(c // common))
    atom, coefficient = rest.terms[0]
    if len(rest.terms) == 1 and coefficient == 1 and atom.kind is Kind.FLOORDIV:
        inner, divisor = atom.operands  # (x//d + k) // c = (x + k*d) // (d*c)
        if not divisor.terms and divisor.const > 0:
            return quotient + floordiv(inner + rest.const * divisor.const, as_expr(divisor.const * c))
    return quotient + make_atom(Kind.FLOORDIV, (rest, as_expr(c)))


def split_by(a: Expr, c: int) -> tuple[Expr, Expr]:
    """Returns (q, r) with a = c * q + r.

    q has every term that c divides; the constant of r is in [0, c).
    """
    quotient: list[Term] = []
    rest: list[Term] = []
    for term in a.terms:
        (rest if term[1] % c else quotient).append(term)
    return (Expr(tuple((atom, k // c) for atom, k in quotient), a.const // c), Expr(tuple(rest), a.const % c))


def floormod(a: Expr, b: Expr) -> Expr:
    """Returns a % b with the sign of b: a - b * (a // b)."""
    if b.terms:
        if a in (b, ZERO):
            return ZERO
        split = quotient_by_monomial(a, b)
        rest = a if split is None else split[1]
        return ZERO if rest == ZERO else make_atom(Kind.FLOORMOD, (rest, b))
    c = b.const
    if c == 0:
        return ZERO
    if c < 0:
        return -floormod(-a, as_expr(-c))
    reduced = Expr(tuple(t for t in a.terms if t[1] % c), a.const % c)
    if not reduced.terms:
        return as_expr(reduced.const)
    common = gcd(c, *(k for _, k in reduced.terms))
    if common > 1:  # (g*x + k) % (g*c) = g * ((x + k//g) % c) + k%g
        inner = Expr(tuple((atom, k // common) for atom, k in reduced.terms), reduced.const // common)
        return floormod(inner, as_expr(c // common)).scaled(common) + reduced.const % common
    # (k*(x % d) + y) % c = (k*x + y) % c where c divides d
    opened = ZERO
    for atom, k in reduced.terms:
        if atom.kind is Kind.FLOORMOD and not atom.operands[1].terms and atom.operands[1].const % c == 0:
            opened += (atom.operands[0] - Expr(((atom, 1),), 0)).scaled(k)
    if opened != ZERO:
        return floormod(reduced + opened, b)
    return make_atom(Kind.FLOORMOD, (reduced, b))


def truncdiv(a: Expr, b: Expr) -> Expr:
    """Returns a / b rounded toward zero."""
    if b == ONE:
        return a
    if b == ZERO:
        return ZERO
    if not a.terms and not b.terms:
        quotient = abs(a.const) // abs(b.const)
        return as_expr(quotient if (a.const < 0) == (b.const < 0) else -quotient)
    return make_atom(Kind.TRUNCDIV, (a, b))


def truncmod(a: Expr, b: Expr) -> Expr:
    """Returns the remainder of `truncdiv`, with the sign of a."""
    if b == ZERO:
        return ZERO
    if not a.terms and not b.terms:
        return a - truncdiv(a, b) * b
    return make_atom(Kind.TRUNCMOD, (a, b))


def minimum(*values: Expr) -> Expr:
    """Returns the least of the values."""
    return _extremum(Kind.MIN, values, lambda a, b: a <= b)


def maximum(*values: Expr) -> Expr:
    """Returns the greatest of the values."""
    return _extremum(Kind.MAX, values, lambda a, b: a >= b)


def _extremum(kind: Kind, values: Iterable[Expr], wins: Callable[[int, int], bool]) -> Expr:
    best: dict[tuple[Term, ...], int] = {}
    for value in values:
        atom = value.atom
        for each in atom.operands if atom is not None and atom.kind is kind else (value,):
            held = best.get(each.terms)
            if held is None or wins(each.const, held):
                best[each.terms] = each.const
    if len(best) == 1:
        return Expr(*next(iter(best.items())))
    return make_atom(kind, tuple(sorted((Expr(*item) for item in best.items()), key=order_of)))


def free_vars(*exprs: Expr) -> dict[Atom, None]:
    """Returns the variables in the expressions, in order of appearance."""
    found: dict[Atom, None] = {}
    seen: set[Atom] = set()
    pending = list(reversed(exprs))
    while pending:
        for atom, _ in pending.pop().terms:
            if atom.kind is Kind.VAR:
                found[atom] = None
            elif atom not in seen:
                seen.add(atom)
                pending += reversed(atom.operands)
    return found


def ge(a: Expr, b: Expr) -> Expr:
    """Returns a >= b, as 0 or 1."""
    e = a - b
    if not e.terms:
        return as_expr(int(e.const >= 0))
    common = gcd(*(k for _, k in e.terms))
    if common > 1:
        e = Expr(tuple((atom, k // common) for atom, k in e.terms), e.const // common)
    return make_atom(Kind.GE, (e,))


def le(a: Expr, b: Expr) -> Expr:
    """Returns a <= b."""
    return ge(b, a)


def lt(a: Expr, b: Expr) -> Expr:
    """Returns a < b."""
    return ge(b, a + 1)


def gt(a: Expr, b: Expr) -> Expr:
    """Returns a > b."""
    return ge(a, b + 1)


def eq(a: Expr, b: Expr) -> Expr:
    """Returns a == b, as 0 or 1."""
    e = a - b
    if not e.terms:
        return as_expr(int(e.const == 0))
    common = gcd(*(k for _, k in e.terms))
    if e.const % common:
        return FALSE
    if e.terms[0][1] < 0:
        common = -common
    if common != 1:
        e = Expr(tuple((atom, k // common) for atom, k in e.terms), e.const // common)
    return make_atom(Kind.EQ, (e,))


def ne(a: Expr, b: Expr) -> Expr:
    """Returns a != b."""
    return logical_not(eq(a, b))


def logical_not(a: Expr) -> Expr:
    """Returns the negation of a bool; the negation of an order is an order."""
    atom = a.atom
    if atom is not None and atom.kind is Kind.GE:
        return ge(-atom.operands[0] - 1, ZERO)
    return ONE - a


def logical_and(*values: Expr) -> Expr:
    """Returns the conjunction of the bools."""
    parts: dict[Expr, None] = {}
    for value in values:
        for each in conjuncts(value):
            if each == FALSE:
                return FALSE
            if each != TRUE:
                parts[each] = None
    if any(logical_not(each) in parts for each in parts):
        return FALSE
    if not parts:
        return TRUE
    if len(parts) == 1:
        return next(iter(parts))
    return make_atom(Kind.AND, tuple(sorted(parts, key=order_of)))


def logical_or(*values: Expr) -> Expr:
    """Returns the disjunction of the bools: a negated conjunction of negations."""
    return logical_not(logical_and(*(logical_not(v) for v in values)))


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """Returns the conditions whose conjunction this is."""
    atom = condition.atom
    return atom.operands if atom is not None and atom.kind is Kind.AND else (condition,)


def select(condition: Expr, if_true: Expr, if_false: Expr, lazy: bool = False) -> Expr:
    """Returns one of two values; `lazy` when the other must not be evaluated."""
    if not condition.terms:
        return if_true if condition.const else if_false
    if if_true == if_false:
        return if_true
    return make_atom(Kind.SELECT, (condition, if_true, if_false), lazy)


def rebuild(atom: Atom, operands: tuple[Expr, ...]) -> Expr:
    """Returns the atom with other operands, simplified by the constructors."""
    match atom.kind:
        case Kind.VAR:
            return Expr(((atom, 1),), 0)
        case Kind.PRODUCT:
            total = ONE
            for operand in operands:
                total = total * operand
            return total
        case Kind.SELECT:
            return select(operands[0], operands[1], operands[2], bool(atom.payload))
        case Kind.CALL:
            return call(atom.payload, operands)
        case Kind.GE:
            return ge(operands[0], ZERO)
        case Kind.EQ:
            return eq(operands[0], ZERO)
        case _:
            return _BUILDERS[atom.kind](*operands)


_BUILDERS: dict[Kind, Callable[..., Expr]] = {
    Kind.FLOORDIV: floordiv,
    Kind.FLOORMOD: floormod,
    Kind.TRUNCDIV: truncdiv,
    Kind.TRUNCMOD: truncmod,
    Kind.MIN: minimum,
    Kind.MAX: maximum,
    Kind.AND: logical_and,
}


def substitute(expr: Expr, values: dict[Atom, Expr], memo: dict[Atom, Expr] | None = None) -> Expr:
    """Replaces atoms (variables, say) in `expr` by expressions."""
    if memo is None:
        memo = dict(values)
    total = as_expr(expr.const)
    for atom, coefficient in expr.terms:
        replaced = memo.get(atom)
        if replaced is None:
            operands = tuple(substitute(e, values, memo) for e in atom.operands)
            same = all(a is b for a, b in zip(operands, atom.operands, strict=True))
            replaced = Expr(((atom, 1),), 0) if same else rebuild(atom, operands)
            memo[atom] = replaced
        total += replaced.scaled(coefficient)
    return expr if total == expr else total


_INFIX = {Kind.FLOORDIV: " // ", Kind.FLOORMOD: " % ", Kind.PRODUCT: " * ", Kind.AND: " and "}
_NAMED = {Kind.TRUNCDIV: "T.Div", Kind.TRUNCMOD: "T.truncmod", Kind.MIN: "T.min", Kind.MAX: "T.max"}


def value_name(value: SSAValue) -> str:
    """Returns the name of a scalar value in the program's text, otherwise its hint.

    Loops, axes, parameters and variables have names.
    """
    if isinstance(value, BlockArgument):
        owner = value.block.parent_op()
        if owner is not None:
            for field in ("iter_names", "param_names"):
                names = owner.properties.get(field)
                if isinstance(names, ArrayAttr) and value.index < len(names.data):
                    name = names.data[value.index]
                    return name.data if isinstance(name, StringAttr) else "?"
            name = owner.properties.get("var_name")
            if isinstance(name, StringAttr):
                return name.data
    elif isinstance(value, OpResult):
        name = value.op.properties.get("var_name")
        if isinstance(name, StringAttr):
            return name.data
        if value.op.name == "tir.load":
            from ..tir.buffer import buffer_name

            return f"{buffer_name(value.op.operands[0])}[…]"
    return value.name_hint or "_"


def format_expr(expr: Expr) -> str:
    """Returns the expression, larger coefficients first, the constant last."""
    if expr.const == 1 and len(expr.terms) == 1 and expr.terms[0][1] == -1 and _is_logic(expr.terms[0][0]):
        return _negation_text(expr.terms[0][0])
    parts: list[str] = []
    for atom, coefficient in sorted(expr.terms, key=lambda t: (t[1] < 0, -abs(t[1]))):
        text = _atom_text(atom)
        if abs(coefficient) != 1:
            text = f"{_wrapped(text) if atom.kind is not Kind.PRODUCT else text} * {abs(coefficient)}"
        if not parts:
            parts.append(f"-{_wrapped(text)}" if coefficient < 0 else text)
        else:
            parts.append(f" {'-' if coefficient < 0 else '+'} {_wrapped(text) if _is_logic(atom) else text}")
    if expr.const or not parts:
        sign = "-" if expr.const < 0 else "+"
        parts.append(f" {sign} {abs(expr.const)}" if parts else str(expr.const))
    return "".join(parts)


def _is_logic(atom: Atom) -> bool:
    return atom.kind in (Kind.AND, Kind.GE, Kind.EQ)


def _negation_text(atom: Atom) -> str:
    if atom.kind is Kind.EQ:
        return _comparison(atom.operands[0], "!=")
    if atom.kind is Kind.AND:
        return " or ".join(_operand(logical_not(e)) for e in atom.operands)
    return f"not ({_atom_text(atom)})"


def _wrapped(text: str) -> str:
    """Returns the text in parentheses unless it is one name or call."""
    return text if text.replace(".", "").replace("_", "").isalnum() or text.startswith("T.") else f"({text})"


def _operand(expr: Expr) -> str:
    return _wrapped(format_expr(expr))


def _atom_text(atom: Atom) -> str:
    kind, operands = atom.kind, atom.operands
    if kind is Kind.VAR:
        of = atom.payload
        if isinstance(of, SSAValue):
            return value_name(of)
        return of.name if isinstance(of, Symbol) else str(of)
    if kind in _INFIX:
        return _INFIX[kind].join(map(_operand, operands))
    if kind is Kind.GE or kind is Kind.EQ:
        return _comparison(operands[0], "==" if kind is Kind.EQ else "")
    if kind is Kind.SELECT:
        return f"T.{'if_then_else' if atom.payload else 'Select'}({', '.join(map(format_expr, operands))})"
    name = _NAMED.get(kind)
    if name is None:
        function: object = atom.payload
        name = str(function.name) if isinstance(function, Function) else str(function)
    return f"{name}({', '.join(map(format_expr, operands))})"


def _comparison(expr: Expr, equality: str) -> str:
    """Writes `expr` >= 0 as `negated negative terms <= positive terms`; with `equality`, `==` or `!=`."""
    left = Expr(tuple(t for t in expr.terms if t[1] > 0), 0)
    right = Expr(tuple((a, -c) for a, c in expr.terms if c < 0), 0)
    if equality:
        return f"{format_expr(left)} {equality} {format_expr(right - expr.const)}"
    if not left.terms:
        return f"{format_expr(right)} < {expr.const + 1}"
    if right.terms and expr.const == -1:
        return f"{format_expr(right)} < {format_expr(left)}"
    return f"{format_expr(right - expr.const)} <= {format_expr(left)}"
