"""Defines an entry of the operator table, and the op class made from it.

An entry defines an operator in one place: arguments, attributes with TVM's names and defaults, type relation, fusion
kind, numpy meaning and TE compute. The entries are in `operators/`, by topic, and register themselves with `define`;
`get_operator` imports the topic that holds a name on demand. Gradients (`gradient.py`) and layout rules (`layouts.py`)
register themselves by operator in the same way, in modules that only the passes that ask for them import: no program is
read, typed or run with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, Protocol, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    NoneType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, result_def, traits_def, var_operand_def
from xdsl.traits import Commutative, OpTrait, Pure
from xdsl.utils.exceptions import VerifyException

from ...support.diagnostics import Diagnostic, MirError
from ...support.external_names import note_name
from ...support.text import counted, nearest_or_all
from ..assembly import FunctionalForm
from .operators import TOPICS, Registry
from .types import UNKNOWN

if TYPE_CHECKING:
    from ..te.builder import Expr, Tensor
    from .operators.common.result_sizes import ResultShapes
    from .own_operators import Callee

AttrValue: TypeAlias = "int | float | bool | str | Sequence[AttrValue] | Mapping[str, AttrValue] | None"
"""An operator attribute's value in Python: numbers, strings (dtypes and layouts too), None, lists, dictionaries."""


class OpPattern(IntEnum):
    """The ways in which an operator may fuse; TVM's OpPatternKind."""

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


Kind: TypeAlias = Literal["int", "float", "bool", "str", "ints", "floats", "any"]
"""The kind of an attribute's values; "ints" and "floats" are lists (nested ones too), "any" may hold IR (`meta[…]`)."""


@dataclass(frozen=True)
class AttrSpec:
    """One attribute: its name as TVM prints it, its default (or REQUIRED), its kind, its meaning.

    `nullable` allows None; `printed` attributes are printed even if they have their default (TVM has none for them, or
    always prints them).
    """

    name: str
    default: AttrValue | _Required
    kind: Kind
    nullable: bool = False
    printed: bool = False
    doc: str = ""

    @property
    def text(self) -> str:
        """Returns the attribute with its default: `axis=-1`, or `axis=…` where it must be given."""
        return f"{self.name}={'…' if isinstance(self.default, _Required) else _written(self.default)}"

    @property
    def is_required(self) -> bool:
        """Returns whether it has no default."""
        return isinstance(self.default, _Required)

    @property
    def otherwise(self) -> AttrValue:
        """Returns the default; None where there is none."""
        return None if isinstance(self.default, _Required) else self.default

    @property
    def values(self) -> str:
        """Returns the kind of its values in words: "a list of integers or None"."""
        return _KIND_WORDS[self.kind] + (" or None" if self.nullable else "")

    def convert(self, value: AttrValue) -> AttrValue:
        """Converts a value to the form in which this attribute stores it; another kind stays as it is.

        Lists become tuples, `2` becomes `2.0` for a float, `(2,)` for a list; "" becomes None where the default is None.
        """
        value = _frozen(value)
        if value == "" and self.default is None:
            # TVM prints an unset dtype or layout as "".
            return None
        match self.kind:
            case "float" if isinstance(value, int) and not isinstance(value, bool):
                return float(value)
            case "floats" if isinstance(value, tuple):
                return tuple(float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in value)
            case "bool" if isinstance(value, int) and value in (0, 1):
                return bool(value)
            case "ints" if isinstance(value, int) and not isinstance(value, bool):
                return (value,)
            case _:
                return value

    def accepts(self, value: AttrValue) -> bool:
        """Returns whether a converted value is of this attribute's kind."""
        if value is None:
            return self.nullable or self.kind == "any"
        return _KINDS[self.kind](value)


def attr(
    name: str,
    default: AttrValue | _Required = REQUIRED,
    kind: Kind | None = None,
    *,
    nullable: bool = False,
    printed: bool = False,
    doc: str = "",
) -> AttrSpec:
    """Returns an attribute whose kind follows from its default unless given; None makes it nullable."""
    if kind is None:
        kinds: list[Kind] = [] if isinstance(default, _Required) else [k for k in _KINDS if _KINDS[k](default)]
        kind = kinds[0] if kinds else "any"
    return AttrSpec(name, default, kind, nullable or default is None, printed, doc)


def _written(value: AttrValue) -> str:
    match value:
        case str():
            return f'"{value}"'
        case tuple() | list():
            return f"[{', '.join(map(_written, value))}]"
        case _:
            return str(value)


def _frozen(value: AttrValue) -> AttrValue:
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[AttrValue]", value)
        return tuple([_frozen(item) if isinstance(item, (list, tuple)) else item for item in items])
    return value


def _all_are(type_: type) -> Callable[[object], bool]:
    def test(value: object) -> bool:
        if isinstance(value, tuple):
            return all(map(test, cast("tuple[object, ...]", value)))
        return isinstance(value, type_) and not isinstance(value, bool)

    return test


# The order matters to `attr`: True is an int, too.
_KINDS: dict[Kind, Callable[[object], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float),
    "str": lambda value: isinstance(value, str),
    "ints": lambda value: isinstance(value, tuple) and _all_are(int)(cast(object, value)),
    "floats": lambda value: isinstance(value, tuple) and _all_are(float)(cast(object, value)),
    "any": lambda value: True,
}

_KIND_WORDS: dict[Kind, str] = {
    "bool": "True or False",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "ints": "a list of integers",
    "floats": "a list of numbers",
    "any": "any value",
}


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

    def __repr__(self) -> str:
        return f"Attrs({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"


class Relation(Protocol):
    """One use of an operator as a type relation reads and types it.

    A relation reads the argument types that it needs, sets those that follow from others (a weight's shape from the
    attributes), and sets the result. It may run again when more types are known; it must not keep state.
    """

    operator: Operator
    attrs: Attrs

    @property
    def count(self) -> int:
        """The number of arguments."""
        ...

    def type_of(self, index: int) -> Attribute | None:
        """Returns argument `index`'s type, or None while it is unknown."""
        ...

    def tensor(self, index: int) -> TensorType[Attribute]:
        """Returns the tensor type of argument `index`.

        Postpones the relation while the type is unknown; raises an error when it is not a tensor.
        """
        ...

    def tensors(self, index: int) -> Sequence[TensorType[Attribute]]:
        """Returns the tensor types of a tuple argument (concatenate); postpones or fails as `tensor`."""
        ...

    def set_argument(self, index: int, type: Attribute) -> None:
        """Sets the type of argument `index`; compares a type that is known already, dimension by dimension."""
        ...

    def set_result(self, type: Attribute) -> None:
        """Sets the result's type."""
        ...

    def fail(self, message: str, *notes: str, argument: int | None = None) -> Exception:
        """Returns the error to raise when the arguments do not fit; `argument` puts the caret at one of them."""
        ...


Compute: TypeAlias = "Callable[[Attrs, Sequence[Tensor], Attribute], Sequence[Tensor]]"
"""(attributes, input tensors, result type) to output tensors, in TE. Tuple arguments are passed flattened."""


Extents: TypeAlias = "Callable[[Attrs, Sequence[Tensor], Attribute], ResultShapes]"
"""(attributes, input tensors, result type) to the results' shapes, in TE; they may depend on the inputs' elements."""


Meaning: TypeAlias = """(
    Callable[[Attrs], Any]
    | Callable[[Attrs, Any], Any]
    | Callable[[Attrs, Any, Any], Any]
    | Callable[[Attrs, Any, Any, Any], Any]
    | Callable[[Attrs, Any, Any, Any, Any], Any]
    | Callable[[Attrs, Any, Any, Any, Any, Any], Any]
    | Callable[[Attrs, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Attrs, Any, Any, Any, Any, Any, Any, Any, Any], Any]
)"""
"""(attributes, arrays…) to an array or a tuple of arrays; by number of arguments, so that lambdas are typed."""


@dataclass(frozen=True)
class Large:
    """Another compute, which pays where a size that is known only at run time is `least` or more.

    `size` returns that size from the input tensors, None where the compute does not serve them.
    """

    least: int
    size: Callable[[Sequence[Tensor]], int | Expr | None]
    compute: Compute


@dataclass(frozen=True)
class Operator:
    """One entry of the operator table.

    `arguments` names the operands; a name that starts with `*` is a tuple of tensors. `numpy` is the meaning: (attributes,
    arrays…) to an array or a tuple of arrays, a tuple argument being passed as a tuple of arrays. `compute` is None for the
    few operators that are not tensor expressions. `extents` (TVM's FShapeFunc) computes the shapes of results that depend on
    elements of the inputs, and requirements on sizes known only at run time; without it the shapes are those of `compute`'s
    tensors. `large` is another compute for large sizes of run time. `stateful` operators are neither merged nor dropped nor
    reordered; the arguments of `commutative` ones may be exchanged. `source` is the address of the defining document. `functions` are
    TIR functions, the one that fits of which is called instead of a compute; `gradient_rule` is the gradient as a rule. The compute of one
    that `is_own`, which a file or an extension defines, may read outside of its inputs; it converts the operator `onnx` of ONNX, "domain.Type".
    """

    name: str
    arguments: tuple[str, ...]
    relation: Callable[[Relation], None]
    pattern: OpPattern
    numpy: Meaning
    compute: Compute | None = None
    extents: Extents | None = None
    large: Large | None = None
    attributes: tuple[AttrSpec, ...] = ()
    doc: str = ""
    source: str = ""
    stateful: bool = False
    commutative: bool = False
    functions: Sequence[Callee] = ()
    gradient_rule: Operation | None = None
    is_own: bool = False
    onnx: str = ""

    @cached_property
    def specs(self) -> Mapping[str, AttrSpec]:
        """The attributes by name."""
        return {spec.name: spec for spec in self.attributes}

    @property
    def signature(self) -> str:
        """Returns the form of a use: `nn.dense(data, weight, units=None, out_dtype=None)`."""
        return f"{self.name}({', '.join((*self.arguments, *(spec.text for spec in self.attributes)))})"

    def attrs(self, given: Mapping[str, AttrValue]) -> Attrs:
        """Completes given attributes by defaults; a missing required one stays out (`problem` reports it)."""
        values = {spec.name: spec.default for spec in self.attributes if not isinstance(spec.default, _Required)}
        specs = self.specs
        for name, value in given.items():
            values[name] = specs[name].convert(value) if name in specs else value
        return Attrs(values)

    def canonical(self, given: Mapping[str, AttrValue]) -> dict[str, AttrValue]:
        """Converts given attributes to their kinds; drops those that repeat a default that is not printed."""
        result: dict[str, AttrValue] = {}
        for name, value in given.items():
            spec = self.specs.get(name)
            if spec is not None:
                value = spec.convert(value)
            if spec is None or spec.printed or type(value) is not type(spec.default) or value != spec.default:
                result[name] = value
        return result

    def problem(self, given: Mapping[str, AttrValue], arguments: int | None = None) -> str | None:
        """Returns the error in a use's number of arguments and attributes alone, or None.

        The type relation and the meanings are defined only for uses without such an error.
        """
        if arguments is not None and arguments != len(self.arguments):
            names = f" ({', '.join(self.arguments)})" if self.arguments else ""
            is_tuple = len(self.arguments) == 1 and self.arguments[0].startswith("*")
            several = f": a tuple, as in {self.name}((%a, %b))" if is_tuple else ""
            return f"{self.name} takes {counted(len(self.arguments), 'argument')}{names}, not {arguments}{several}"
        for name, value in given.items():
            spec = self.specs.get(name)
            if spec is None:
                return f"{self.name} has no attribute '{name}'{nearest_or_all(name, sorted(self.specs))}"
            if not spec.accepts(spec.convert(value)):
                return f"{self.name}: the attribute '{name}' must be {spec.values}, not {value!r}"
        for spec in self.attributes:
            if isinstance(spec.default, _Required) and spec.name not in given:
                return f"{self.name} needs the attribute '{spec.name}', {_KIND_WORDS[spec.kind]}"
        return None


class OperatorOp(FunctionalForm):
    """A use of an operator: `relay.nn.dense`. `operator_class` creates the subclasses from table entries.

    Attributes that differ from their defaults are stored in `attributes` under TVM's names.
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
        """Returns the attributes as Python values, defaults filled in."""
        return self.OPERATOR.attrs(self.given())

    def given(self) -> dict[str, AttrValue]:
        """Returns the attributes that are written, as Python values."""
        return {name: from_attribute(value) for name, value in self.attributes.items()}

    def verify_(self) -> None:
        problem = self.OPERATOR.problem(self.given(), len(self.args))
        if problem is not None:
            raise VerifyException(problem)
        from .infer.result import check_relation

        check_relation(self)


def to_attribute(value: AttrValue) -> Attribute:
    """Converts an operator attribute to xDSL: integers i64, floats f64, bool i1, lists, dictionaries."""
    from xdsl.dialects.builtin import f64, i1

    match value:
        case None:
            return NoneType()  # MLIR's text has no other none
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return _i64(value)
        case float():
            return FloatAttr(value, f64)
        case str():
            return _text(value) if len(value) <= _SHORT else StringAttr(value)
        case tuple() if len(value) <= _SHORT and {*map(type, value)} == _INTEGERS:
            return _i64s(value)
        case list() | tuple():
            return ArrayAttr([to_attribute(item) for item in cast("Sequence[AttrValue]", value)])
        case Mapping():
            return DictionaryAttr({name: to_attribute(item) for name, item in value.items()})
        case _:
            return ArrayAttr([to_attribute(item) for item in value])


@lru_cache(1 << 12)
def _i64(value: int) -> IntegerAttr:
    return IntegerAttr(value, 64)


_SHORT = 16
_INTEGERS: set[type] = {int}


@lru_cache(1 << 12)
def _text(value: str) -> StringAttr:
    return StringAttr(value)


@lru_cache(1 << 12)
def _i64s(values: tuple[int, ...]) -> ArrayAttr[IntegerAttr]:
    """Returns one object for equal shapes: the memo of inferred types goes by identity."""
    return ArrayAttr([_i64(value) for value in values])


def from_attribute(attribute: Attribute) -> AttrValue:
    """Converts an xDSL attribute to a value (lists to tuples); other attributes (nested IR) stay."""
    read = _READERS.get(type(attribute))
    return cast("AttrValue", attribute) if read is None else read(attribute)


def _from_integer(attribute: IntegerAttr) -> int:
    value, type_ = attribute.value.data, attribute.type
    return bool(value) if type(type_) is IntegerType and type_.width.data == 1 else value


# By class: `isinstance` of attributes is a call in Python each.
_READERS: dict[type, Callable[[Any], AttrValue]] = {
    NoneType: lambda attribute: None,
    IntegerAttr: _from_integer,
    FloatAttr: lambda attribute: attribute.value.data,
    StringAttr: lambda attribute: attribute.data,
    ArrayAttr: lambda attribute: tuple([from_attribute(item) for item in attribute.data]),
    DictionaryAttr: lambda attribute: {name: from_attribute(item) for name, item in attribute.data.items()},
}


_OPERATORS: Registry[Operator] = Registry("operator", TOPICS)
_CLASSES: dict[str, type[OperatorOp]] = {}
_P = ParamSpec("_P")


def _add(operator: Operator, definer: FrameType) -> Operator:
    _OPERATORS.add(operator.name, operator)
    note_name(operator.name, definer.f_globals.get("__name__", ""))
    return operator


def register(operator: Operator) -> Operator:
    """Adds an entry to the table; a name may be registered once."""
    return _add(operator, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def _defining(entry: Callable[_P, Operator]) -> Callable[_P, Operator]:
    def define(*args: _P.args, **kwargs: _P.kwargs) -> Operator:
        return _add(entry(*args, **kwargs), sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    return define


define = _defining(Operator)
"""Adds an entry of these fields: `define("exp", ("data",), identity, OpPattern.ELEMWISE, numpy=…)`."""

_SCOPE: ContextVar[Mapping[str, Operator]] = ContextVar("the operators that a file defines")
_NONE: Mapping[str, Operator] = {}


@contextmanager
def operators_in_scope(operators: Mapping[str, Operator]) -> Generator[None]:
    """While inside, the table has the entries of a file, too."""
    token = _SCOPE.set({**_SCOPE.get(_NONE), **operators})
    try:
        yield
    finally:
        _SCOPE.reset(token)


def get_operator(name: str) -> Operator | None:
    """Returns the entry named as in Relay text ("nn.dense"), or None."""
    return _SCOPE.get(_NONE).get(name) or _OPERATORS.find(name)


def all_operators() -> Mapping[str, Operator]:
    """Returns the whole table by name, every topic imported."""
    own = _SCOPE.get(_NONE)
    return {**_OPERATORS.all(), **own} if own else _OPERATORS.all()


class Definition(Protocol):
    """The op of an operator that a file defines."""

    sym_name: StringAttr

    def entry(self) -> Operator:
        """Returns the operator."""
        ...


def definitions_in(module: Operation) -> Iterator[Definition]:
    """Yields the operators that a module defines."""
    if module.name == "builtin.module":
        for block in module.regions[0].blocks:
            yield from (cast("Definition", op) for op in block.ops if op.name == _DEFINITION)


_DEFINITION = "rule.operator"


def operator_at(name: str, op: Operation | None) -> Operator | None:
    """Returns the entry of a name, which the module around an op may define."""
    found = get_operator(name)
    while found is None and op is not None:
        around = op.parent_op()
        items = (
            (cast("Definition", op),) if op.name == _DEFINITION else () if around is None else definitions_in(around)
        )
        found = next((item.entry() for item in items if item.sym_name.data == name), None)
        op = around
    return found


def find_outside(name: str) -> Operator | None:
    """Returns the entry of a name that is not one of mirstack's, importing nothing."""
    return _OPERATORS.known(name)


def own_operators() -> list[Operator]:
    """Returns the operators that extensions define."""
    return [operator for operator in _OPERATORS.present() if operator.is_own]


def own_namespaces() -> set[str]:
    """Returns the namespaces of operators that extensions define: of `my.nn.gelu` both `my` and `my.nn`."""
    words = (operator.name.split(".") for operator in own_operators())
    return {".".join(parts[:count]) for parts in words for count in range(1, len(parts))}


def kinds_of_attributes() -> tuple[Kind, ...]:
    """Returns the kinds of attributes' values."""
    return tuple(_KINDS)


def define_outside(operator: Operator) -> Operator:
    """Adds an entry that an extension defines. Raises MirError where the name is taken."""
    if _OPERATORS.known(operator.name) is not None:
        raise MirError(Diagnostic(f"operator {operator.name}: an extension that is loaded has defined it"))
    _OPERATORS.add(operator.name, operator)
    return operator


def operator_class(operator: Operator) -> type[OperatorOp]:
    """Returns the op class `relay.NAME` of an entry, made when first asked for."""
    found = _CLASSES.get(operator.name)
    if found is None or found.OPERATOR is not operator:
        # Files may define operators of one name, each its own.
        namespace = {
            "name": f"relay.{operator.name}",
            "OPERATOR": operator,
            "__doc__": operator.doc,
            "__module__": __name__,
            "__annotations__": {"OPERATOR": ClassVar[Operator]},
            "traits": traits_def(*_traits(operator)),
        }
        base = type(f"{operator.name.replace('.', '_')}Op", (OperatorOp,), namespace)
        found = _CLASSES[operator.name] = irdl_op_definition(base)
    return found


def _traits(operator: Operator) -> Iterator[OpTrait]:
    if not operator.stateful:
        yield Pure()
    if operator.commutative:
        yield Commutative()


def is_operator(op: Operation, name: str) -> bool:
    """Returns whether `op` is a use of the operator called `name` in Relay text."""
    return op.name == f"relay.{name}"
