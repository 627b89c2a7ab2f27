"""Rules as terms: generality of patterns, overlap with what rules make, and weights of ops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xdsl.ir import SSAValue

from .....dialects import rule as ir
from .....dialects.relay.operator import from_attribute
from .....dialects.rule.levels import level_of
from ...engine.values import same_attr


def patterns(rule: ir.RewriteOp) -> list[ir.MatchOp]:
    """The ops of a rule's pattern, outermost last."""
    return [op for op in rule.body.block.ops if isinstance(op, ir.MatchOp)]


def roots(rule: ir.RewriteOp) -> list[SSAValue]:
    """The values that a rule replaces."""
    last = rule.body.block.last_op
    assert isinstance(last, ir.ReplaceOp)
    return list(last.roots)


def results(rule: ir.RewriteOp) -> list[SSAValue]:
    """Returns the values that replace the roots."""
    last = rule.body.block.last_op
    assert isinstance(last, ir.ReplaceOp)
    return list(last.values)


def op_names(op: ir.MatchOp | ir.BuildOp) -> tuple[str, ...]:
    """Returns the names of the ops that a pattern or a replacement can be."""
    if isinstance(op, ir.MatchOp):
        return tuple(name.data for name in op.names.data)
    if op.callee is not None:
        return (op.callee.data,)
    assert op.op is not None
    captured = op.op.owner
    return op_names(captured) if isinstance(captured, ir.MatchOp) else ()


def subsumes(general: SSAValue, special: SSAValue, bound: dict[SSAValue, Any]) -> bool:
    """Returns whether every value of the form `special` is of the form `general`.

    `bound` maps the captures. Returns False if it cannot tell.
    """
    if general in bound:
        return bound[general] == special
    bound[general] = special
    match general.owner, special.owner:
        case ir.AnyOp(), other:
            return (general.type == ir.RUN) == (special.type == ir.RUN) and isinstance(
                other, ir.AnyOp | ir.LiteralOp | ir.MatchOp
            )
        case ir.LiteralOp() as a, ir.LiteralOp() as b:
            return same_attr(from_attribute(a.value), from_attribute(b.value))
        case ir.MatchOp() as a, ir.MatchOp() as b:
            return _subsumes_op(a, b, bound)
        case _:
            return False


def _subsumes_op(a: ir.MatchOp, b: ir.MatchOp, bound: dict[SSAValue, Any]) -> bool:
    if not set(op_names(b)) <= set(op_names(a)) or len(a.args) != len(b.args):
        return False
    theirs = dict(zip((name.data for name in b.attr_names.data), b.attrs, strict=True))
    for name, attr in zip((name.data for name in a.attr_names.data), a.attrs, strict=True):
        other = theirs.get(name)
        if isinstance(attr.owner, ir.DataOp):
            if other is None or not isinstance(other.owner, ir.DataOp) or other.owner.value != attr.owner.value:
                return False
        elif attr in bound:
            if bound[attr] != other:
                return False
        else:
            # Whatever it is there: named by the other rule, or not.
            bound[attr] = other if other is not None else (b, name)
    orders = [list(b.args)]
    if len(a.args) == 2 and all(level_of(name).is_commutative(name) for name in op_names(a)):
        orders.append(list(b.args)[::-1])
    for order in orders:
        trial = dict(bound)
        if all(subsumes(x, y, trial) for x, y in zip(a.args, order, strict=True)):
            bound.update(trial)
            return True
    return False


def may_be(made: SSAValue, pattern: SSAValue) -> bool:
    """Returns whether what a rule makes can match a pattern, whatever its captures and conditions are."""
    if isinstance(pattern.owner, ir.AnyOp) or pattern.type == ir.RUN or made.type == ir.RUN:
        return True
    match made.owner:
        case ir.AnyOp():
            return True
        case ir.SelectOp() as op:
            return may_be(op.on_true, pattern) or may_be(op.on_false, pattern)
        case ir.ConstantOp() | ir.FoldOp() | ir.LiteralOp():
            return isinstance(pattern.owner, ir.LiteralOp) and not _other_number(made, pattern)
        case (ir.BuildOp() | ir.MatchOp()) as op if isinstance(pattern.owner, ir.MatchOp):
            return _op_may_be(op, pattern.owner)
        case _:
            return False


def _other_number(made: SSAValue, pattern: SSAValue) -> bool:
    if isinstance(made.owner, ir.LiteralOp) and isinstance(pattern.owner, ir.LiteralOp):
        return from_attribute(made.owner.value) != from_attribute(pattern.owner.value)
    if isinstance(made.owner, ir.ConstantOp) and isinstance(pattern.owner, ir.LiteralOp):
        value = made.owner.value.owner
        return isinstance(value, ir.DataOp) and from_attribute(value.value) != from_attribute(pattern.owner.value)
    return False


def _op_may_be(made: ir.BuildOp | ir.MatchOp, pattern: ir.MatchOp) -> bool:
    if not set(op_names(made)) & set(op_names(pattern)):
        return False
    given: Mapping[str, SSAValue] = dict(zip((n.data for n in made.attr_names.data), made.attrs, strict=True))
    for name, attr in zip((n.data for n in pattern.attr_names.data), pattern.attrs, strict=True):
        other = given.get(name)
        literals = isinstance(attr.owner, ir.DataOp) and other is not None and isinstance(other.owner, ir.DataOp)
        if literals and attr.owner.value != other.owner.value:  # pyright: ignore
            return False
    if any(arg.type == ir.RUN for arg in [*made.args, *pattern.args]):
        return True
    if len(made.args) != len(pattern.args):
        return False
    orders = [list(made.args)]
    if len(pattern.args) == 2 and all(level_of(name).is_commutative(name) for name in op_names(pattern)):
        orders.append(list(made.args)[::-1])
    return any(all(may_be(x, y) for x, y in zip(order, pattern.args, strict=True)) for order in orders)


def made_by(rule: ir.RewriteOp) -> Iterator[SSAValue]:
    """The new ops of a rule that stay in the program: those of a fold do not."""
    pending, seen = results(rule), set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        match value.owner:
            case ir.BuildOp() as op:
                yield value
                pending += op.args
            case ir.SelectOp() as op:
                pending += [op.on_true, op.on_false]
            case _:
                pass


def conditions(rule: ir.RewriteOp) -> Iterator[SSAValue]:
    """Iterates over a rule's conditions, all of which must hold."""
    pending = [op.condition for op in rule.body.block.ops if isinstance(op, ir.WhereOp)][::-1]
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.ComputeOp) and value.owner.function.data == "and_":
            pending += reversed(value.owner.args)
        else:
            yield value


def condition_key(value: SSAValue, bound: Mapping[SSAValue, Any]) -> Any:
    """A condition as something to compare: equal for conditions that say the same of the same captures."""
    match value.owner:
        case ir.ComputeOp() as op:
            return (op.function.data, *(condition_key(arg, bound) for arg in op.args))
        case ir.DataOp() as op:
            return ("", op.value)
        case _:
            return ("%", bound.get(value, value))
