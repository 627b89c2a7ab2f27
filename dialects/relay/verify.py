"""Checks types, calls, names and patterns for the verifiers of Relay's structure ops (`ir.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.symbols import lookup_symbol
from ...support.text import counted
from .infer.unify import Mismatch, Unifier
from .patterns import ConstructorPattern, TuplePattern
from .text import near_global, tuple_text, type_text
from .types import FuncType, why_no_tensor

BOOL = TensorType(i1, [])


def agree(what: str, wanted: Attribute, found: Attribute) -> None:
    """Verifies that the type `found` of `what` may be `wanted`, as far as both are known.

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


# Matches: the usefulness of the wildcard in Maranget, "Warnings for pattern matching", JFP 2007 ------------------------


Row: TypeAlias = "tuple[Attribute, ...]"
Constructors: TypeAlias = "Callable[[str], Mapping[str, Sequence[Attribute]] | None]"

_MAX_STEPS = 20_000


def missing_case(patterns: Sequence[Attribute], constructors: Constructors) -> str | None:
    """Returns the text of a case that no pattern matches, such as `Cons(_, Nil)`; None if all are matched.

    `constructors` returns a data type's constructors with their fields by its name (None when that cannot be known: then
    the patterns of that type count as complete). Raises VerifyException when the patterns are too many to decide.
    """
    witness = _Search(constructors).witness([(pattern,) for pattern in patterns], 1)
    return None if witness is None else witness[0]


class _Search:
    def __init__(self, constructors: Constructors):
        self._constructors = constructors
        self._steps = 0

    def witness(self, rows: Sequence[Row], width: int) -> list[str] | None:
        """Texts of `width` values that no row matches, or None."""
        self._steps += 1 + len(rows)
        if self._steps > _MAX_STEPS:
            raise VerifyException(
                "the patterns of this match are too intricate to see that none is left out; write match?"
            )
        if width == 0:
            return None if rows else []
        heads = [row[0] for row in rows]
        made = next((head for head in heads if isinstance(head, ConstructorPattern)), None)
        fields = next((head for head in heads if isinstance(head, TuplePattern)), None)
        if fields is not None:
            count = len(fields.fields.data)
            found = self.witness(_specialize(rows, None, count), count + width - 1)
            return None if found is None else [tuple_text(found[:count]), *found[count:]]
        if made is None:
            found = self.witness([row[1:] for row in rows], width - 1)
            return None if found is None else ["_", *found]
        return self._witness_of_data(rows, width, made.type_name.data)

    def _witness_of_data(self, rows: Sequence[Row], width: int, type_name: str) -> list[str] | None:
        constructors = self._constructors(type_name)
        if constructors is None:
            return None
        present = {row[0].constructor.data for row in rows if isinstance(row[0], ConstructorPattern)}
        default = [row[1:] for row in rows if not isinstance(row[0], ConstructorPattern)]
        for name, fields in constructors.items():
            if name not in present:
                # Only rows that match any value match it, for every such constructor: one search serves all.
                found = self.witness(default, width - 1)
                if found is not None:
                    return [_applied(name, ["_"] * len(fields)), *found]
                break
        matching = _by_constructor(rows, present)
        for name, fields in constructors.items():
            if name in present:
                count = len(fields)
                found = self.witness(_specialize(matching[name], name, count), count + width - 1)
                if found is not None:
                    return [_applied(name, found[:count]), *found[count:]]
        return None


def _applied(name: str, fields: Sequence[str]) -> str:
    return f"{name}({', '.join(fields)})" if fields else name


def _by_constructor(rows: Sequence[Row], names: Iterable[str]) -> dict[str, list[Row]]:
    """Returns for each constructor the rows that may match its values, in their order.

    These are the rows whose pattern names the constructor, and those with a wildcard or a variable.
    """
    found: dict[str, list[Row]] = {name: [] for name in names}
    for row in rows:
        head = row[0]
        for places in (found[head.constructor.data],) if isinstance(head, ConstructorPattern) else found.values():
            places.append(row)
    return found


def _specialize(rows: Sequence[Row], constructor: str | None, count: int) -> list[Row]:
    """Returns the rows that match values of a constructor (None: tuples), the head replaced by its fields."""
    result: list[Row] = []
    for head, *rest in rows:
        match head:
            case ConstructorPattern():
                if head.constructor.data == constructor and len(head.fields.data) == count:
                    result.append((*head.fields.data, *rest))
            case TuplePattern():
                if constructor is None and len(head.fields.data) == count:
                    result.append((*head.fields.data, *rest))
            case _:
                # A wildcard or a variable matches any fields.
                result.append((*[head] * count, *rest))
    return result
