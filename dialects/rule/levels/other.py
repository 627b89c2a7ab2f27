"""Defines the level of any dialect: ops by full names, or short ones in rules `for` it.

TIR's is in `tir.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OperandDef, OptOperandDef, ResultDef, VarConstraint, VarOperandDef
from xdsl.traits import Commutative, ConstantLike, SameOperandsAndResultType

from ....support import extensions
from ....support.diagnostics import error_at
from ....support.text import nearest, nearest_or_all
from ..functions import NoMatch, element_of


@cache
def _dialect(name: str) -> Dialect | None:
    if name == "te":
        from ...te import TE

        return TE
    from xdsl.dialects import get_all_dialects

    found = extensions.find("dialect", name)
    factory = get_all_dialects().get(name) if found is None else cast("Callable[[], Dialect]", found.value)
    return None if factory is None else factory()


class OtherLevel:
    """Implements `Level` for one dialect."""

    called: frozenset[str] = frozenset()
    """Names that are not of ops, but resolve to one."""

    def __init__(self, name: str):
        self.name = name

    @cached_property
    def classes(self) -> dict[str, type[Operation]]:
        """Returns the dialect's ops by their full names."""
        dialect = _dialect(self.name)
        return {} if dialect is None else {op.name: op for op in dialect.operations}

    def resolve(self, name: str) -> str | None:
        if f"{self.name}.{name}" in self.classes:
            return f"{self.name}.{name}"
        return name if name in self.classes else None

    def close_to(self, name: str) -> str | None:
        names = [*self.classes, *(n.removeprefix(f"{self.name}.") for n in self.classes), *self.called]
        return nearest(name, names)

    def spelled(self, op_name: str) -> str:
        return op_name.removeprefix(f"{self.name}.")

    def implied(self, name: str) -> Mapping[str, Any]:
        return {}

    def infix(self, function: str) -> str | None:
        return None

    def operator(self, op_name: str) -> str | None:
        return None

    def is_commutative(self, op_name: str) -> bool:
        return self.classes[op_name].has_trait(Commutative)

    def of_one_dtype(self, op_name: str) -> tuple[tuple[int, ...], bool]:
        definition = cast("type[IRDLOperation]", self.classes[op_name]).get_irdl_definition()
        if any(isinstance(each, VarOperandDef | OptOperandDef) for _, each in definition.operands):
            return (), False
        if any(isinstance(trait, SameOperandsAndResultType) for trait in definition.traits.traits):
            return tuple(range(len(definition.operands))), True
        names = [_variable(each) for _, each in definition.operands]
        shared = next((name for name in names if name is not None and names.count(name) > 1), None)
        results = [_variable(each) for _, each in definition.results]
        return tuple(place for place, name in enumerate(names) if shared and name == shared), results == [shared]

    def problem(self, op_name: str, arguments: int | None, attributes: Sequence[str]) -> str | None:
        definition = cast("type[IRDLOperation]", self.classes[op_name]).get_irdl_definition()
        fixed = not any(isinstance(operand, VarOperandDef) for _, operand in definition.operands)
        if arguments is not None and fixed and arguments != len(definition.operands):
            from ....support.text import counted

            names = ", ".join(name for name, _ in definition.operands)
            return f"{op_name} takes {counted(len(definition.operands), 'argument')} ({names}), not {arguments}"
        for name in attributes:
            if name not in definition.properties and name not in definition.attributes:
                known = sorted([*definition.properties, *definition.attributes])
                return f"{op_name} has no attribute '{name}'{nearest_or_all(name, known)}"
        return None

    def attribute(self, op: Operation, name: str) -> Any:
        # Not `or`: an IntegerAttr of 0 is false.
        return _value(op.properties[name] if name in op.properties else op.attributes[name])

    def attributes(self, op: Operation) -> Mapping[str, Any]:
        return {**op.attributes, **op.properties}

    def constant(self, value: SSAValue) -> Any:
        owner = value.owner
        if not isinstance(owner, Operation) or not owner.has_trait(ConstantLike):
            return None
        return _value(owner.properties["value"] if "value" in owner.properties else owner.attributes.get("value"))

    def make_constant(self, value: Any, dtype: str | None, like: Attribute) -> Operation:
        from ...tir.types import dtype_to_type

        type = element_of(like) if dtype is None else dtype_to_type(dtype)
        attr = (
            IntegerAttr(int(value), type)
            if isinstance(type, IntegerType)
            else FloatAttr(float(value), cast("Any", type))
        )
        from xdsl.dialects.arith import ConstantOp

        return ConstantOp(attr)

    def build(self, op_name: str, args: Sequence[SSAValue], attributes: Mapping[str, Any], like: SSAValue) -> Operation:
        cls = cast("type[IRDLOperation]", self.classes[op_name])
        definition = cls.get_irdl_definition()
        given = {name: _attribute(value) for name, value in attributes.items()}
        properties = {name: value for name, value in given.items() if name in definition.properties}
        rest = {name: value for name, value in given.items() if name not in definition.properties}
        try:
            # The op's own constructor knows its result's type (a comparison's is a bool).
            op = cast("Any", cls)(*args)
            op.properties.update(properties)
            op.attributes.update(rest)
        except TypeError:
            if any(operand.type != args[0].type for operand in args):
                raise error_at(like, f"the type of a new {op_name} does not follow from its arguments") from None
            op = cls.create(operands=args, result_types=[like.type], properties=properties, attributes=rest)
        return op

    def fold(self, op: Operation, args: Sequence[Any]) -> Any:
        raise NoMatch


def _variable(definition: OperandDef | ResultDef) -> str | None:
    """Returns the name that a type has in an op's definition, if it has one."""
    constraint: Any = definition.constr
    while not isinstance(constraint, VarConstraint):
        inner = getattr(constraint, "constraint", None) or getattr(constraint, "constr", None)
        if inner is None:
            return None
        constraint = inner
    return constraint.name


def _value(attribute: Attribute | None) -> Any:
    """Numbers and strings as Python's; splat vectors as their number; the rest as it is."""
    match attribute:
        case IntegerAttr():
            value = attribute.value.data
            return bool(value) if attribute.type == IntegerType(1) else value
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case DenseIntOrFPElementsAttr() if attribute.is_splat():
            return attribute.get_values()[0]
        case _:
            return attribute


def _attribute(value: Any) -> Attribute:
    from ...relay.operator import to_attribute

    return value if isinstance(value, Attribute) else to_attribute(value)
