"""Why two neighbours were not fused, for `--explain fuse-ops`: the rules of fusion in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation

from ....dialects.relay import ir
from ....dialects.relay.operator import OperatorOp, OpPattern
from ....dialects.relay.text import global_text
from ....support.trace import Tracer


class Rule(Enum):
    """Reasons why an operator is kept apart from the users of its value."""

    LEVEL = "fuse-opt-level=0 gives every operator a kernel of its own"
    OPAQUE = "what is opaque is not fused"
    ESCAPES = "its value is also needed outside of kernels, where it is returned, captured, or passed to a function"
    NO_MEETING = "its uses lead to several results, so that it would be computed twice"
    TUPLE = "a tuple is made inside of a kernel only where an operator of the same kernel takes it"
    AFTER_OUT_ELEMWISE = "out-elemwise-fusable operators take in only elemwise and broadcast ones on their own shape"
    AFTER_BROADCAST = "elemwise and broadcast operators go into injective ones, with another kind at the end at most"
    AFTER_INJECTIVE = "injective operators go into injective ones only"
    AFTER_REDUCTION = "nothing follows a comm-reduce operator in its kernel"
    DEPTH = "the kernel would hold more operators than max-depth"


@dataclass(frozen=True)
class Refusal:
    """The rule that kept an operator from being fused, and the op on the path that broke it, if any."""

    rule: Rule
    at: Operation | None = None


def name_of(op: Operation) -> str:
    """An op as a person calls it."""
    match op:
        case OperatorOp():
            return op.OPERATOR.name
        case ir.TupleOp():
            return "the tuple"
        case ir.TupleGetItemOp():
            return f"field {op.index.value.data} of the tuple"
        case ir.CallGlobalOp():
            return f"the call of {global_text(op.callee.root_reference.data)}"
        case _:
            return op.name.replace("relay.", "the ").replace("_", " ")


def tell(trace: Tracer, producer: Operation, user: Operation, refusal: Refusal, kind: OpPattern) -> None:
    """Tells that `producer` was not fused with `user`, which uses its value."""
    rule, at = refusal.rule, refusal.at
    reason = rule.value
    if rule is Rule.OPAQUE and at is not None:
        reason = f"{name_of(at)} is opaque{_why_opaque(at)}"
    notes: list[tuple[str, Operation]] = [(f"{name_of(user)} uses it here", user)]
    if rule is Rule.TUPLE and at is not None and at is not user:
        reason = f"its uses meet in {name_of(at)}, and {reason}"
        notes.append((f"{name_of(at)} is here", at))
    elif at is not None and at is not user and at is not producer:
        why = _why_opaque(at) if kind is OpPattern.OPAQUE else ""
        notes.append((f"on the way to where its uses meet, {name_of(at)} is {_kind(kind)}{why}", at))
    elif at is user and rule not in (Rule.OPAQUE, Rule.TUPLE):
        reason += f"; {name_of(user)} is {_kind(kind)}"
    trace(producer, f"{name_of(producer)} is not fused with {name_of(user)}: {reason}", *notes)


def _kind(kind: OpPattern) -> str:
    return kind.name.lower().replace("_", "-")


def _why_opaque(op: Operation) -> str:
    if not isinstance(op, OperatorOp):
        return ""
    if op.OPERATOR.stateful:
        return ": it has an effect"
    types = [op.result.type, *(operand.type for operand in op.operands)]
    if op.OPERATOR.pattern is not OpPattern.OPAQUE and any(
        isinstance(type, TensorType) and DYNAMIC_INDEX in type.get_shape() for type in types
    ):
        return ": its sizes are known only when the program runs"
    return ""
