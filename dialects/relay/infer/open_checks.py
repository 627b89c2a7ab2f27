"""Collects the comparisons of unknown dimensions that a type relation leaves to run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, TensorType, TupleType
from xdsl.ir import Attribute, SSAValue

from ....support.diagnostics import error_at
from ..operator import OperatorOp
from ..operators.common.open_dims import ON_NUMBERS, Comparison, Formula, OpenDim, Place, Size, calculate, note
from ..operators.common.result_sizes import fits, with_sizes
from ..types import tensor_leaves, tuple_of
from .relation import Postponed, Use
from .unify import Unifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .call_extents import CallExtents


@dataclass(frozen=True)
class OpenCheck:
    """Two sizes that must fit, and the message for those that do not, with `{size}` in the place of each."""

    needed: Comparison
    message: str


def open_checks(op: OperatorOp) -> list[OpenCheck]:
    """Returns the checks that a use of an operator needs at run time, each once, in its relation's order."""
    if not any(is_open(value.type) for value in op.args):
        return []
    log, _ = related(op, _places(op))
    names = [name for argument in range(len(op.args)) for name in _names(op, argument)]
    return [
        OpenCheck(needed, f"{op.OPERATOR.name}: {_message(names, needed)}")
        for needed in dict.fromkeys(log)
        if needed.left != needed.right
    ]


def related(
    op: OperatorOp, shapes: Callable[[SSAValue], Sequence[Sequence[Size]]]
) -> tuple[list[Comparison], Attribute]:
    """Runs the type relation of a use on dimensions that are these sizes.

    Returns the comparisons that it leaves to run time, and the result's type, of `OpenDim`s where the relation tells sizes.
    """
    types = _OpenTypes(op.args, shapes)
    op.OPERATOR.relation(_OpenUse(op, op.attrs(), types))
    return types.log, types.result or op.result.type


def _places(op: OperatorOp) -> Callable[[SSAValue], list[list[Size]]]:
    """Returns the function from an argument to its dimensions: a number, or its place among the arguments."""
    found: dict[SSAValue, list[list[Size]]] = {}
    leaf = 0
    for value in op.args:
        fields = tensor_leaves(value.type)
        sizes: list[list[Size]] = [
            [Place(leaf + k, axis) if size == DYNAMIC_INDEX else size for axis, size in enumerate(field.get_shape())]
            for k, field in enumerate(fields)
        ]
        found.setdefault(value, sizes)
        leaf += len(fields)
    return found.__getitem__


def _message(names: Sequence[str], needed: Comparison) -> str:
    left, right = _shown(names, needed.left), _shown(names, needed.right)
    match needed:
        case Comparison("equal", Formula("%", divided, by), 0):
            return f"{_shown(names, divided)} leaves {{size}} when it is divided by {_shown(names, by)}"
        case Comparison("within", int()):
            return f"{right} must be {{size}} at least, but is {{size}}"
        case Comparison("within"):
            return f"{left} is {{size}}, but must be at most {'' if isinstance(needed.right, int) else right + ', '}{{size}}"
        case Comparison("expand", int()):
            return f"{{size}} does not broadcast to {{size}}, {right}"
        case Comparison("expand", _, int()):
            return f"{left} is {{size}}, which does not broadcast to {{size}}"
        case Comparison("expand"):
            return f"{left} is {{size}}, which does not broadcast to {{size}}, {right}"
        case Comparison("stretch", _, int()):
            return f"{left} is {{size}}, but must be {{size}} or 1"
        case Comparison("stretch"):
            return f"{left} and {right} do not broadcast: they are {{size}} and {{size}}"
        case Comparison(_, _, int()):
            return f"{left} is {{size}}, but must be {{size}}"
        case _:
            return f"{left} is {{size}}, but {right} is {{size}}"


def _shown(names: Sequence[str], size: Size) -> str:
    """Returns the text of a size in a message: "dimension 0 of 'data' + 1"; numbers by their values."""
    match size:
        case Place(leaf, axis):
            return f"dimension {axis} of {names[leaf]}"
        case Formula(sign, left, right):
            shown = _shown(names, left)
            if isinstance(left, Formula) and sign not in ("+", left.sign):
                shown = f"({shown})"
            if isinstance(right, Formula):
                return f"{shown} {sign} ({_shown(names, right)})"
            if sign == "+" and isinstance(right, int) and right < 0:
                return f"{shown} - {-right}"
            return f"{shown} {sign} {_shown(names, right)}"
        case _:
            return str(size)


def _names(op: OperatorOp, argument: int) -> list[str]:
    """Returns the names of the tensors of an argument in messages."""
    name = f"'{op.OPERATOR.arguments[argument].lstrip('*')}'"
    type = op.args[argument].type
    return [f"field {k} of {name}" for k in range(len(type.types.data))] if isinstance(type, TupleType) else [name]


def open_sizes(op: OperatorOp) -> OpenSizes | None:
    """Returns the checks of a use in each call; None where all its sizes are known."""
    if any(is_open(value.type) for value in op.args):
        return OpenSizes(op)
    if op.OPERATOR.extents is None or all(0 in leaf.get_shape() for leaf in tensor_leaves(op.result.type)):
        return None
    # Where the result's sizes are known, too, only elements can be wrong: steps, rows, new sizes, which are integers.
    elements = is_open(op.result.type) or any(
        isinstance(leaf.element_type, IntegerType) for value in op.args for leaf in tensor_leaves(value.type)
    )
    return OpenSizes(op) if elements else None


class OpenSizes:
    """The checks of a use's open dimensions in each call; the interpreter raises compiled code's errors."""

    def __init__(self, op: OperatorOp):
        self._op = op
        self._checks = open_checks(op)
        self._extents: CallExtents | None = None
        if op.OPERATOR.extents is not None:
            from .call_extents import CallExtents

            self._extents = CallExtents(op)

    def check(self, types: Sequence[Attribute], arrays: Sequence[NDArray[Any]]) -> Attribute | None:
        """Checks the sizes of one call and returns the result's type; None where it follows from elements.

        Args:
            types: the types of the arguments as they are, without `?`.
            arrays: the tensors of the arguments, those of tuples one by one.

        Raises:
            MirError: where native code refuses these sizes, in its words; else where the type relation does.
        """
        op = self._op
        shapes = [leaf.get_shape() for type in types for leaf in tensor_leaves(type)]

        for check in self._checks:
            needed = check.needed
            left, right = (
                calculate(side, lambda place: shapes[place.leaf][place.axis], ON_NUMBERS)
                for side in (needed.left, needed.right)
            )
            if not fits(needed.rule, left, right):
                raise error_at(op, with_sizes(check.message, (left, right)))
        if self._extents is not None:
            self._extents.check(arrays)
        given = _Given(op.args, types)
        try:
            op.OPERATOR.relation(Use(op, op.attrs(), given))
        except Postponed:
            return None
        return given.result


def is_open(type: Attribute) -> bool:
    """Returns whether a tensor of this type, or a field of this tuple, has a size known only at run time."""
    match type:
        case TensorType():
            return DYNAMIC_INDEX in type.get_shape()
        case TupleType():
            return any(map(is_open, type.types.data))
        case _:
            return False


class _Given:
    """Types of the arguments that are not those in the program; implements `relation.Types`."""

    def __init__(self, values: Sequence[SSAValue], types: Sequence[Attribute]):
        self.unifier = Unifier()
        self.result: Attribute | None = None
        self._types = dict(zip(values, types, strict=True))

    def type_of(self, value: SSAValue) -> Attribute:
        return self._types[value]

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        """Keeps the result's type."""
        self.result = type


class _OpenTypes:
    """The argument types, each `?` marked by its size, and the result's type; implements `relation.Types`."""

    def __init__(self, values: Sequence[SSAValue], shapes: Callable[[SSAValue], Sequence[Sequence[Size]]]):
        self.unifier = Unifier()
        self.log: list[Comparison] = []
        self.result: Attribute | None = None
        self._types: dict[SSAValue, Attribute] = {}
        for value in values:
            type = value.type
            fields = type.types.data if isinstance(type, TupleType) else [type]
            if value not in self._types:
                sizes = shapes(value)
                marked = [_marked(field, sizes[k], self.log) for k, field in enumerate(fields)]
                self._types[value] = tuple_of(marked) if isinstance(type, TupleType) else marked[0]

    def type_of(self, value: SSAValue) -> Attribute:
        return self._types[value]

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        """Keeps the result's type."""
        self.result = type


def _marked(type: Attribute, sizes: Sequence[Size], log: list[Comparison]) -> Attribute:
    if not isinstance(type, TensorType) or DYNAMIC_INDEX not in type.get_shape():
        return type
    return TensorType(type.element_type, [size if isinstance(size, int) else OpenDim(size, log) for size in sizes])


class _OpenUse(Use):
    """A use that also compares the argument types that the relation sets."""

    __slots__ = ()

    def set_argument(self, index: int, type: Attribute) -> None:
        own = self._types.type_of(self.op.args[index])
        if isinstance(own, TensorType) and isinstance(type, TensorType):
            for left, right in zip(own.get_shape(), type.get_shape(), strict=False):
                if left is not right:
                    note(left, right)
        super().set_argument(index, type)
