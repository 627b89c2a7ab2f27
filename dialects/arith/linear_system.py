"""Solves systems of integer equations and inequalities that are linear in some of their variables.

`diagonalize` is Smith's normal form without its divisibility: rows and columns are combined, by whole numbers that can be
undone, until each equation has one unknown. `eliminate` is Fourier's and Motzkin's method: each pair of a lower and an upper
bound of a variable becomes an inequality without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd, lcm

from . import expr as x
from .analyzer import Analyzer, linear_in
from .expr import Atom, Expr

Matrix = list[list[int]]


def coefficients(e: Expr, variables: Sequence[Atom]) -> tuple[list[int], Expr] | None:
    """Returns the factor of each variable, and the rest; None where e is not linear in them."""
    found: list[int] = []
    for atom in variables:
        factor = 0
        if atom in x.free_vars(e):
            parts = linear_in(e, atom)
            if parts is None or parts[0].value is None:
                return None
            factor, e = parts[0].value, parts[1]
        found.append(factor)
    return found, e


@dataclass
class Diagonal:
    """Holds a system `matrix @ new == values` with one unknown in each row, and `old = to_old @ new`."""

    matrix: Matrix
    values: list[Expr]
    to_old: Matrix
    to_new: Matrix
    rank: int


def diagonalize(matrix: Matrix, values: Sequence[Expr], columns: int) -> Diagonal:
    """Returns the system of equations `matrix @ unknowns == values` with one unknown in each."""
    identity = [[int(i == j) for j in range(columns)] for i in range(columns)]
    system = Diagonal([list(row) for row in matrix], list(values), identity, [list(row) for row in identity], 0)
    rows = system.matrix
    for index in range(min(len(rows), columns)):
        place = next(((r, c) for c in range(index, columns) for r in range(index, len(rows)) if rows[r][c]), None)
        if place is None:
            break
        row, column = place
        rows[index], rows[row] = rows[row], rows[index]
        system.values[index], system.values[row] = system.values[row], system.values[index]
        if column != index:
            _combine_columns(system, index, column, 0, 1, 1, 0)
        while True:
            for other in range(index + 1, len(rows)):
                if rows[other][index]:
                    _clear_row(system, index, other)
            pending = [other for other in range(index + 1, columns) if rows[index][other]]
            for other in pending:
                a, b = rows[index][index], rows[index][other]
                divisor, s, t = _bezout(a, b)
                _combine_columns(system, index, other, s, t, b // divisor, -a // divisor)
            if not any(rows[other][index] for other in range(index + 1, len(rows))):
                break
        system.rank = index + 1
    return system


def _clear_row(system: Diagonal, index: int, other: int) -> None:
    rows, values = system.matrix, system.values
    a, b = rows[index][index], rows[other][index]
    divisor, s, t = _bezout(a, b)
    c, d = b // divisor, -a // divisor
    first, second = rows[index], rows[other]
    rows[index] = [s * p + t * q for p, q in zip(first, second, strict=True)]
    rows[other] = [c * p + d * q for p, q in zip(first, second, strict=True)]
    one, two = values[index], values[other]
    values[index] = one.scaled(s) + two.scaled(t)
    values[other] = one.scaled(c) + two.scaled(d)


def _combine_columns(system: Diagonal, i: int, j: int, s: int, t: int, c: int, d: int) -> None:
    """Replaces columns i, j by `s * i + t * j` and `c * i + d * j`, where `s * d - t * c` is 1 or -1."""
    for row in (*system.matrix, *system.to_old):
        row[i], row[j] = s * row[i] + t * row[j], c * row[i] + d * row[j]
    sign = s * d - t * c
    first, second = system.to_new[i], system.to_new[j]
    system.to_new[i] = [sign * (d * p - c * q) for p, q in zip(first, second, strict=True)]
    system.to_new[j] = [sign * (s * q - t * p) for p, q in zip(first, second, strict=True)]


def _bezout(a: int, b: int) -> tuple[int, int, int]:
    """Returns (g, s, t), `g = s * a + t * b`, with g the greatest common divisor, or its negative."""
    if b % a == 0:
        return a, 1, 0
    (r0, s0, t0), (r1, s1, t1) = (a, 1, 0), (b, 0, 1)
    while r1:
        q = r0 // r1
        (r0, s0, t0), (r1, s1, t1) = (r1, s1, t1), (r0 - q * r1, s0 - q * s1, t0 - q * t1)
    return r0, s0, t0


@dataclass
class Bounds:
    """The values of `coef * variable`: at least all of `lower`, at most all of `upper`, those of `equal`."""

    coef: int
    lower: list[Expr] = field(default_factory=list[Expr])
    equal: list[Expr] = field(default_factory=list[Expr])
    upper: list[Expr] = field(default_factory=list[Expr])


@dataclass
class Elimination:
    """The bounds of each variable by those that come after it, and what is left, each at most 0."""

    bounds: dict[Atom, Bounds]
    rest: list[Expr]
    is_empty: bool = False


def eliminate(analyzer: Analyzer, inequalities: Sequence[Expr], variables: Sequence[Atom]) -> Elimination:
    """Eliminates variables from inequalities `e <= 0`, in their order."""
    result = Elimination({}, [])
    pending = _distinct(analyzer, inequalities, result)
    for atom in variables:
        upper: list[tuple[int, Expr]] = []
        lower: list[tuple[int, Expr]] = []
        others: list[Expr] = []
        for e in pending:
            if atom not in x.free_vars(e):
                others.append(e)
                continue
            parts = linear_in(e, atom)
            factor = None if parts is None else parts[0].value
            if parts is None or factor is None:
                result.rest.append(e)
            elif factor > 0:
                upper.append((factor, parts[1]))
            else:
                lower.append((-factor, parts[1]))
        for p, above in upper:
            for q, below in lower:
                common = gcd(p, q)
                others.append(above.scaled(q // common) + below.scaled(p // common))
        factor = lcm(*(each for each, _ in (*upper, *lower)))
        most = _tightest(analyzer, [rest.scaled(-(factor // each)) for each, rest in upper], -1)
        least = _tightest(analyzer, [rest.scaled(factor // each) for each, rest in lower], 1)
        equal = [e for e in least if e in most]
        result.bounds[atom] = Bounds(
            factor, [e for e in least if e not in equal], equal, [e for e in most if e not in equal]
        )
        pending = _distinct(analyzer, others, result)
    result.rest += pending
    return result


def _distinct(analyzer: Analyzer, inequalities: Sequence[Expr], result: Elimination) -> list[Expr]:
    """Returns the inequalities simplified, without those that are known to be true."""
    kept: list[Expr] = []
    for each in inequalities:
        e = _reduced(analyzer.simplify(each))
        if e.value is not None and e.value > 0:
            result.is_empty = True
        if e not in kept and not (e.value is not None and e.value <= 0):
            kept.append(e)
    return kept


def _reduced(e: Expr) -> Expr:
    """Returns `e <= 0` without the common divisor of its factors: `2 * y - 9` becomes `y - 4`."""
    divisor = gcd(*(factor for _, factor in e.terms))
    if divisor < 2:
        return e
    return Expr(tuple((atom, factor // divisor) for atom, factor in e.terms), -(-e.const // divisor))


def _tightest(analyzer: Analyzer, ends: Sequence[Expr], sign: int) -> list[Expr]:
    """Returns the ends that no other end implies: the greatest lower or the least upper ones."""
    kept: list[Expr] = []
    for end in ends:
        end = analyzer.simplify(end)
        if any(analyzer.can_prove_ge0((other - end).scaled(sign)) for other in kept):
            continue
        kept = [other for other in kept if not analyzer.can_prove_ge0((end - other).scaled(sign))]
        kept.append(end)
    return kept
