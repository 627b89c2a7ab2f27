"""Finds the dtype of a replacement's constants.

A constant without a dtype is of the replaced value's, except beside a value that has to have the same dtype: the 0 of
`greater(abs(%x), 0)` is of `abs(%x)`'s dtype, though the replaced value is a bool.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from .levels import level_of
from .ops import RUN, VALUE, BuildOp, ConstantOp, MatchOp, SelectOp


def dtype_source(constant: ConstantOp) -> SSAValue | None:
    """Returns the value of a rule whose dtype a constant without one takes; None for the replaced value."""
    result: SSAValue = constant.result
    pending: list[SSAValue] = [result]
    seen: set[SSAValue] = {result}
    for value in pending:
        for use in value.uses:
            user = use.operation
            beside, is_result = _beside(user, use.index)
            for other in beside:
                if _has_dtype(other, result):
                    return other
            if is_result and user.results[0] not in seen:
                seen.add(user.results[0])
                pending.append(user.results[0])
    return None


def _beside(user: object, index: int) -> tuple[list[SSAValue], bool]:
    """Returns the other operands that have the dtype of one, and whether the result has it."""
    if isinstance(user, SelectOp) and index > 0:
        return [user.operands[3 - index]], True
    if not isinstance(user, BuildOp) or any(arg.type == RUN for arg in user.args):
        return [], False
    if user.callee is not None:
        names = [user.callee.data]
    else:
        captured = user.op.owner if user.op is not None else None
        names = [name.data for name in captured.names.data] if isinstance(captured, MatchOp) else []
    found = {level_of(name).of_one_dtype(name) for name in names}
    if len(found) != 1:
        return [], False
    places, is_result = found.pop()
    if index not in places:
        return [], False
    return [user.args[place] for place in places if place != index and place < len(user.args)], is_result


def _has_dtype(value: SSAValue, constant: SSAValue) -> bool:
    """Returns whether a value's dtype is known before a constant's, on which it must not depend."""
    known, pending, seen = False, [value], {value}
    while pending:
        current = pending.pop()
        if current is constant:
            return False
        owner = current.owner
        operands = [each for each in getattr(owner, "operands", ()) if each.type in (VALUE, RUN)]
        if isinstance(owner, MatchOp):
            operands.clear()
        is_named = isinstance(owner, BuildOp) and any(name.data == "dtype" for name in owner.attr_names.data)
        known |= not isinstance(owner, ConstantOp) and (not operands or is_named)
        known |= isinstance(owner, ConstantOp) and owner.dtype is not None
        pending += [each for each in operands if each not in seen]
        seen.update(operands)
    return known
