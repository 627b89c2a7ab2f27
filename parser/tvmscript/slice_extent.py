"""Measures the extent of a slice `start:stop` from the syntax of its bounds."""

from __future__ import annotations

import re

from ..python.tree import Binary, Call, Expr, Index, Keyword, Lambda, Mapping, Member, Sequence, Slice, Token, Unary

_INTEGER = re.compile(r"T\.u?int\d+$")


def literal_int(node: object) -> int | None:
    """The value of an integer literal: `8`, `-8`, `T.int64(8)`; None for anything else."""
    if type(node) is Token:
        if node.type == "NUMBER":
            try:
                return int(node, 0)
            except ValueError:
                return None
        return None
    if isinstance(node, Unary) and node.op == "-":
        value = literal_int(node.operand)
        return None if value is None else -value
    if isinstance(node, Call) and len(node.arguments) == 1 and not node.keywords and _integer_type(node.function):
        return literal_int(node.arguments[0])
    return None


def _integer_type(function: Expr) -> bool:
    return isinstance(function, Token) and _INTEGER.match(function) is not None


def difference(start: Expr, stop: Expr) -> int | Expr | None:
    """Returns `stop - start` as a number, or as the expression e if stop is `start + e`; otherwise None."""
    low, high = literal_int(start), literal_int(stop)
    if low is not None:
        if high is not None:
            return high - low
        if low == 0:
            return stop
    if isinstance(stop, Binary) and stop.op == "+" and same(stop.left, start):
        extent = literal_int(stop.right)
        return stop.right if extent is None else extent
    a, b = linear(start), linear(stop)
    if a is None or b is None:
        return None
    constant = b.pop(_ONE, 0) - a.pop(_ONE, 0)
    return constant if _nonzero(a) == _nonzero(b) else None


def same(a: Expr, b: Expr) -> bool:
    """Returns whether two trees are the same text, spacing and the dtypes of literals aside."""
    pending: list[tuple[object, object]] = [(a, b)]
    while pending:
        x, y = pending.pop()
        if x is y:
            continue
        number = literal_int(x)
        if number is not None and number == literal_int(y):
            continue
        if type(x) is not type(y):
            return False
        if isinstance(x, Token) or x is None:
            if x != y:
                return False
            continue
        left, right = children(x), children(y)
        if len(left) != len(right):
            return False
        pending += zip(left, right, strict=True)
    return True


def children(node: object) -> list[object]:
    """The parts of a node, names and operators included."""
    match node:
        case Binary():
            return [node.op, node.left, node.right]
        case Unary():
            return [node.op, node.operand]
        case Call():
            return [node.function, *node.arguments, *node.keywords]
        case Keyword():
            return [node.name, node.value]
        case Index():
            return [node.base, *node.items]
        case Member():
            return [node.base, node.name]
        case Slice():
            return [node.start, node.stop, node.step]
        case Sequence():
            return list(node.items)
        case Mapping():
            return [part for pair in node.pairs for part in pair]
        case Lambda():
            return [*node.parameters, node.body]
        case _:
            return []


_ONE = ""
_LIMIT = 64
"""An index with more terms than this is not taken apart."""


def linear(node: Expr) -> dict[str, int] | None:
    """Splits a sum of products with constants into coefficients by the text of the other factor.

    `2 * i + j + 3` → `{"i": 2, "j": 1, "": 3}`; `""` is the constant part.
    """
    terms: dict[str, int] = {}
    pending: list[tuple[Expr, int]] = [(node, 1)]
    steps = 0
    while pending:
        part, factor = pending.pop()
        steps += 1
        if steps > _LIMIT:
            return None
        number = literal_int(part)
        if number is not None:
            terms[_ONE] = terms.get(_ONE, 0) + factor * number
        elif isinstance(part, Binary) and part.op in ("+", "-"):
            pending += [(part.left, factor), (part.right, factor if part.op == "+" else -factor)]
        elif isinstance(part, Binary) and part.op == "*" and (scale := literal_int(part.right)) is not None:
            pending.append((part.left, factor * scale))
        elif isinstance(part, Binary) and part.op == "*" and (scale := literal_int(part.left)) is not None:
            pending.append((part.right, factor * scale))
        elif isinstance(part, Unary) and part.op == "-":
            pending.append((part.operand, -factor))
        else:
            key = _text(part)
            if key is None:
                return None
            terms[key] = terms.get(key, 0) + factor
    return terms


def _text(node: Expr) -> str | None:
    """A key that is the same for the same trees; None for a large one."""
    words: list[str] = []
    pending: list[object] = [node]
    while pending:
        part = pending.pop()
        if len(words) > _LIMIT:
            return None
        number = literal_int(part)
        if number is not None:
            words.append(str(number))
        elif isinstance(part, str):
            words.append(part)
        else:
            words.append(type(part).__name__)
            pending += children(part)
    return " ".join(words)


def _nonzero(terms: dict[str, int]) -> dict[str, int]:
    return {key: factor for key, factor in terms.items() if factor}
