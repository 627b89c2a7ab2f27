"""Checks types, calls and names for the verifiers of Relay's structure ops (`ir.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.symbols import lookup_symbol
from ...support.text import counted
from .infer.unify import Mismatch, Unifier
from .text import near_global, type_text
from .types import FuncType, why_no_tensor

BOOL = TensorType(i1, [])


def agree(what: str, wanted: Attribute, found: Attribute) -> None:
    """Verifies that the type `found` may be `wanted`, as far as both are known; `what` has it.

    Raises VerifyException otherwise.
    """
    if wanted == found:
        return
    unifier = Unifier()
    try:
        unifier.unify(unifier.open(wanted), unifier.open(found))
    except Mismatch as mismatch:
        raise VerifyException(
            f"{what} must be {type_text(wanted)}, not {type_text(found)}: {mismatch.detail}"
        ) from None


def verify_call(
    what: str,
    type: FuncType,
    type_args: Sequence[Attribute],
    arguments: Sequence[SSAValue],
    result: Attribute,
) -> None:
    """Verifies that arguments and result fit a function type; `what` is the callee in messages.

    Raises VerifyException otherwise.
    """
    inputs = type.inputs.data
    if len(arguments) != len(inputs):
        raise VerifyException(f"{what} takes {counted(len(inputs), 'argument')}, not {len(arguments)}")
    if type_args and len(type_args) != len(type.type_params.data):
        raise VerifyException(
            f"{what} takes {counted(len(type.type_params.data), 'type argument')}, not {len(type_args)}"
        )
    unifier = Unifier()
    type = unifier.instantiate(type, type_args)
    pairs = [
        (f"argument {i} of {what}", t, a.type) for i, (t, a) in enumerate(zip(type.inputs.data, arguments, strict=True))
    ]
    pairs.append((f"the result of {what}", type.output, result))
    for place, wanted, found in pairs:
        try:
            unifier.unify(unifier.open(wanted), unifier.open(found))
        except Mismatch as mismatch:
            wanted = unifier.close(wanted)
            raise VerifyException(
                f"{place} must be {type_text(wanted)}, not {type_text(found)}: {mismatch.detail}"
            ) from None


def verify_parameters(
    what: str, params: Sequence[SSAValue], param_names: ArrayAttr[StringAttr], type_params: ArrayAttr[StringAttr]
) -> None:
    """Verifies that a function's parameters have one unique name each and are of types that fit in memory.

    Raises VerifyException otherwise; `what` is the function in messages.
    """
    if len(params) != len(param_names.data):
        raise VerifyException(
            f"{what} has {counted(len(params), 'parameter')} and {counted(len(param_names.data), 'name')}"
        )
    for name, param in zip(param_names.data, params, strict=True):
        reason = why_no_tensor(param.type)
        if reason is not None:
            raise VerifyException(f"parameter '{name.data}' of {what}, of type {type_text(param.type)}, {reason}")
    for names, kind in ((param_names, "parameters"), (type_params, "type parameters")):
        texts = [name.data for name in names.data]
        if len(set(texts)) != len(texts):
            again = next(text for text in texts if texts.count(text) > 1)
            raise VerifyException(f"{what} has two {kind} called '{again}'")


def symbol_around(op: Operation, name: str) -> tuple[Operation | None, bool]:
    """Returns the op called `name` in the module around `op`, and whether there is a module."""
    module = _module_around(op)
    return (None, False) if module is None else (lookup_symbol(module, name), True)


def near_names(op: Operation, name: str) -> str:
    """Returns a hint at symbols of the module around `op` spelled like `name`, for an error message."""
    module = _module_around(op)
    symbols = [] if module is None else [o.properties.get("sym_name") for o in module.ops]
    return near_global(name, [symbol.data for symbol in symbols if isinstance(symbol, StringAttr)])


def _module_around(op: Operation) -> ModuleOp | None:
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    return parent
