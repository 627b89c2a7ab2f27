"""What an operator is: one entry of the operator table, and the op class made from it.

An entry says everything about an operator in one place: arguments, attributes with TVM's names and defaults, type
relation, fusion kind, numpy meaning and TE compute. The entries stand in `operators/`, by topic, and register
themselves with `register`; `get_operator` imports the topic that holds a name on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .types import UNKNOWN

if TYPE_CHECKING:
    from ..te.builder import Tensor

AttrValue: TypeAlias = "int | float | bool | str | None | Sequence[AttrValue] | Mapping[str, AttrValue]"
"""An operator attribute's value in Python: numbers, strings (dtypes and layouts too), None, lists, dictionaries."""


class OpPattern(IntEnum):
    """How an operator may fuse; TVM's OpPatternKind."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True)
class AttrSpec:
    """One attribute: its name as TVM prints it, its default (or REQUIRED), and what it means."""

    name: str
    default: AttrValue | _Required
    doc: str = ""


class Attrs(Mapping[str, Any]):
    """The attributes of one use of an operator, defaults filled in; `attrs.units` or `attrs["units"]`."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, AttrValue]):
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Relation(Protocol):
    """What a type relation sees of one use of an operator, and how it says what it finds.

    A relation reads the argument types that it needs, sets those that follow from others (a weight's shape from the
    attributes), and sets the result. It may be called again when more is known; it must not keep state.
    """

    operator: Operator
    attrs: Attrs

    @property
    def count(self) -> int:
        """How many arguments were given."""
        ...

    def type_of(self, index: int) -> Attribute | None:
        """Argument `index`'s type, or None while it is unknown."""
        ...

    def tensor(self, index: int) -> TensorType[Attribute]:
        """Argument `index`'s tensor type. Postpones the relation while unknown; an error when it is no tensor."""
        ...

    def tensors(self, index: int) -> Sequence[TensorType[Attribute]]:
        """The tensor types of a tuple argument (concatenate, stack). Postpones or fails as `tensor` does."""
        ...

    def set_argument(self, index: int, type: Attribute) -> None:
        """Argument `index` must have this type: gives it to an untyped one, else compares, dimension by dimension."""
        ...

    def set_result(self, type: Attribute) -> None:
        """The result has this type."""
        ...

    def fail(self, message: str, *notes: str, argument: int | None = None) -> Exception:
        """The error to raise when the arguments do not fit; `argument` puts the caret at one of them."""
        ...


Compute: TypeAlias = "Callable[[Attrs, Sequence[Tensor], Attribute], Sequence[Tensor]]"
"""(attributes, input tensors, result type) to output tensors, in TE. Tuple arguments are passed flattened."""


@dataclass(frozen=True)
class Operator:
    """One operator of Relay, whole.

    `arguments` names the operands; a name that starts with `*` is a tuple of tensors. `numpy` gives the meaning:
    (attributes, arrays…) to an array or a tuple of arrays, a tuple argument being passed as a tuple of arrays.
    `compute` is None for the few operators that are no tensor expressions. `stateful` operators are neither merged nor
    dropped nor reordered. `source` points to the definition's documentation.
    """

    name: str
    arguments: tuple[str, ...]
    relation: Callable[[Relation], None]
    pattern: OpPattern
    numpy: Callable[..., Any]
    compute: Compute | None = None
    attributes: tuple[AttrSpec, ...] = ()
    doc: str = ""
    source: str = ""
    stateful: bool = False

    def attrs(self, given: Mapping[str, AttrValue]) -> Attrs:
        """Given attributes completed by defaults; a missing required one is left out (the verifier reports it)."""
        values = {spec.name: spec.default for spec in self.attributes if not isinstance(spec.default, _Required)}
        return Attrs({**values, **given})

    def canonical(self, given: Mapping[str, AttrValue]) -> dict[str, AttrValue]:
        """Given attributes without those that repeat the default."""
        defaults = {spec.name: spec.default for spec in self.attributes}
        return {name: value for name, value in given.items() if not _same(value, defaults.get(name, REQUIRED))}


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b


class OperatorOp(IRDLOperation):
    """A use of an operator: `relay.nn.dense`. Subclasses are made from table entries by `operator_class`.

    Attributes that differ from their defaults stand in `attributes` under TVM's names.
    """

    args = var_operand_def()
    result = result_def()

    OPERATOR: ClassVar[Operator]

    def __init__(
        self,
        args: Sequence[SSAValue | Operation],
        attrs: Mapping[str, AttrValue] | None = None,
        type: Attribute = UNKNOWN,
    ):
        given = self.OPERATOR.canonical(attrs) if attrs else {}
        super().__init__(
            operands=[list(args)],
            attributes={name: to_attribute(value) for name, value in given.items()},
            result_types=[type],
        )

    def attrs(self) -> Attrs:
        """The attributes as Python values, defaults filled in."""
        return self.OPERATOR.attrs({name: from_attribute(value) for name, value in self.attributes.items()})

    def verify_(self) -> None:
        operator = self.OPERATOR
        if len(self.args) != len(operator.arguments):
            raise VerifyException(
                f"{operator.name} takes {len(operator.arguments)} arguments ({', '.join(operator.arguments)}), not {len(self.args)}"
            )
        known = {spec.name for spec in operator.attributes}
        for name in self.attributes:
            if name not in known:
                raise VerifyException(
                    f"{operator.name} has no attribute '{name}'; it has {', '.join(sorted(known)) or 'none'}"
                )
        for spec in operator.attributes:
            if isinstance(spec.default, _Required) and spec.name not in self.attributes:
                raise VerifyException(f"{operator.name} needs the attribute '{spec.name}'")


def to_attribute(value: AttrValue) -> Attribute:
    """An operator attribute as an xDSL attribute: integers i64, floats f64, bool i1, strings, None, lists, dictionaries."""
    from xdsl.dialects.builtin import f64, i1, i64

    match value:
        case None:
            return NoneAttr()
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case Mapping():
            return DictionaryAttr({name: to_attribute(item) for name, item in value.items()})
        case _:
            return ArrayAttr([to_attribute(item) for item in value])


def from_attribute(attribute: Attribute) -> AttrValue:
    """The inverse of `to_attribute`; lists come back as tuples. Other attributes (nested IR) come back as they are."""
    match attribute:
        case NoneAttr():
            return None
        case IntegerAttr():
            value = attribute.value.data
            return (
                bool(value)
                if getattr(attribute.type, "width", None) is not None and attribute.type.width.data == 1
                else value
            )
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return tuple(from_attribute(item) for item in attribute.data)
        case DictionaryAttr():
            return {name: from_attribute(item) for name, item in attribute.data.items()}
        case _:
            return attribute  # type: ignore[return-value]


_OPERATORS: dict[str, Operator] = {}
_CLASSES: dict[str, type[OperatorOp]] = {}


def register(operator: Operator) -> Operator:
    """Adds an entry to the table; a name may be registered once."""
    if operator.name in _OPERATORS:
        raise ValueError(f"operator {operator.name} is defined twice")
    _OPERATORS[operator.name] = operator
    return operator


def get_operator(name: str) -> Operator | None:
    """The entry named as in Relay text ("nn.dense"), or None."""
    from .operators import load

    load(name)
    return _OPERATORS.get(name)


def all_operators() -> Mapping[str, Operator]:
    """The whole table, every topic loaded, by name."""
    from .operators import load_all

    load_all()
    return _OPERATORS


def operator_class(operator: Operator) -> type[OperatorOp]:
    """The op class `relay.NAME` of an entry, made when first asked for."""
    found = _CLASSES.get(operator.name)
    if found is None:
        namespace = {
            "name": f"relay.{operator.name}",
            "OPERATOR": operator,
            "__doc__": operator.doc,
            "__module__": __name__,
            "__annotations__": {"OPERATOR": ClassVar[Operator]},
            "traits": traits_def() if operator.stateful else traits_def(Pure()),
        }
        base = type(f"{operator.name.replace('.', '_')}Op", (OperatorOp,), namespace)
        found = _CLASSES[operator.name] = irdl_op_definition(base)
    return found


def is_operator(op: Operation, name: str) -> bool:
    """Whether `op` is a use of the operator called `name` in Relay text."""
    return op.name == f"relay.{name}"
