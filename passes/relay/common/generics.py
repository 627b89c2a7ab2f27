"""Type parameters of functions whose bodies move elsewhere: their values there, and the substitution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.infer.unify import Mismatch, Unifier
from ....dialects.relay.types import AdtType, FuncType, RefType, TypeVarType, substitute
from ....support.diagnostics import error_at
from ....support.edit import set_type
from ....support.walk import walk_ops


def type_arguments(
    function: FuncType, arguments: Sequence[Attribute], result: Attribute, where: Operation
) -> dict[str, Attribute]:
    """Returns the type arguments of a generic function that is used with these types.

    Raises MirError if they do not fit.
    """
    names = [p.data for p in function.type_params.data]
    if not names:
        return {}
    unifier = Unifier()
    # The parameters ride along as further inputs, so that what they become can be read off.
    variables = [TypeVarType.get(name) for name in names]
    opened = unifier.instantiate(FuncType.get([*function.inputs.data, *variables], function.output, names))
    inputs = opened.inputs.data
    try:
        for wanted, found in zip([*inputs[: len(arguments)], opened.output], [*arguments, result], strict=True):
            unifier.unify(unifier.open(wanted), unifier.open(found))
    except Mismatch as mismatch:
        raise error_at(where, f"the call does not fit the function's type: {mismatch.detail}") from None
    return dict(zip(names, map(unifier.close, inputs[len(arguments) :]), strict=True))


def substitute_types(ops: Iterable[Operation], types: Mapping[str, Attribute]) -> None:
    """Replaces type parameters in the types of all values of the ops and of what is inside them."""
    if not types:
        return
    for op in (inner for outer in ops for inner in walk_ops(outer)):
        for value in (*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)):
            _substitute_in(value, types)
        if isinstance(op, ir.FnOp):
            op.properties["ret_type"] = substitute(op.ret_type, types)
        elif isinstance(op, ir.CallOp | ir.CallGlobalOp) and op.type_args.data:
            op.properties["type_args"] = ArrayAttr([substitute(t, types) for t in op.type_args.data])


def _substitute_in(value: SSAValue, types: Mapping[str, Attribute]) -> None:
    if not isinstance(value.type, TensorType):
        set_type(value, substitute(value.type, types))


def type_variables(types: Iterable[Attribute]) -> list[str]:
    """The type parameters that occur in types without being bound there, in order of first occurrence."""
    found: dict[str, None] = {}
    pending: list[tuple[Attribute, frozenset[str]]] = [(type, frozenset()) for type in reversed(list(types))]
    while pending:
        type, bound = pending.pop()
        match type:
            case TypeVarType():
                if type.var_name.data not in bound:
                    found[type.var_name.data] = None
            case TupleType():
                pending += [(t, bound) for t in reversed(type.types.data)]
            case FuncType():
                inner = bound | {p.data for p in type.type_params.data}
                pending += [(t, inner) for t in (type.output, *reversed(type.inputs.data))]
            case AdtType():
                pending += [(t, bound) for t in reversed(type.arguments.data)]
            case RefType():
                pending.append((type.value_type, bound))
            case _:
                pass
    return list(found)
