"""Applies gradients that are written as rules: `gradient multiply(%gradient, sigmoid(%x))`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from xdsl.ir import Operation, SSAValue

from ....dialects.relay.gradient import Backward, Gradient, Term, gradient_of
from ....dialects.relay.ir import TupleOp
from ....dialects.relay.operator import Operator, OperatorOp
from ....dialects.rule import RewriteOp
from ....dialects.rule.functions import NoMatch
from ....passes.rules.engine.program import Program, compile_rule
from ....support.diagnostics import Diagnostic, MirError, error_at


def gradient_of_operator(operator: Operator) -> Gradient | None:
    """Returns the gradient of an operator: its rule, or the registered function; None for neither."""
    rule = operator.gradient_rule
    if rule is None:
        return gradient_of(operator)
    assert isinstance(rule, RewriteOp)
    return lambda use: _apply(_program(rule), use)


@lru_cache(64)
def _program(rule: RewriteOp) -> Program:
    return compile_rule(rule)


def _apply(program: Program, use: Backward) -> Sequence[Term]:
    """Returns the gradients of a use's arguments, whose ops are made before the emitter's place."""
    emitter = use.gradient.emitter
    pair = TupleOp([use.op.result, use.gradient.value])
    try:
        match = program.match(pair)
        if match is None:
            raise use.refuse("its rule does not match")
        for make in program.makers:
            op = cast("Operation | None", make(match.slots, use.op.result))
            if isinstance(op, OperatorOp):
                emitter.add(op)
            elif op is not None:
                emitter.insert(op)
        made = cast("SSAValue", match.slots[program.results[0]])
    except (NoMatch, KeyError) as error:
        raise use.refuse("what its rule computes is not known") from error
    except MirError as error:
        raise MirError(
            Diagnostic(error.diagnostics[0].message, use.op.location).with_note(
                "the gradient is written here", program.rule.location
            )
        ) from None
    finally:
        pair.erase()
    owner = made.owner
    assert isinstance(owner, TupleOp)
    terms = [Term(emitter, value) for value in owner.fields]
    for term, arg in zip(terms, use.op.args, strict=True):
        if term.value.type != arg.type:
            raise error_at(use.op, f"{use.op.OPERATOR.name}: its gradient has another type than its argument")
    owner.detach()
    owner.erase()
    return terms
