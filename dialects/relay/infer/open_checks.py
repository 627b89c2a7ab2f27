"""What a type relation left open about one use of an operator: comparisons of dimensions that are known at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute, SSAValue

from ....support.diagnostics import error_at
from ...tir.types import type_to_dtype
from ..operator import OperatorOp
from ..operators.computes import constant
from ..operators.open_dims import Comparison, OpenDim, note
from ..operators.sizes import Requirement, fits, with_sizes
from ..types import tensor_leaves, tuple_of
from .relation import Postponed, Use
from .unify import Unifier

if TYPE_CHECKING:
    from ...te.builder import Expr


@dataclass(frozen=True)
class Place:
    """Dimension `axis` of tensor `leaf` of the operator's arguments, tuples flattened."""

    leaf: int
    axis: int


@dataclass(frozen=True)
class OpenCheck:
    """Two dimensions, numbers or places, that must be equal; with `stretches` one of them may be 1.

    `message` is for those that differ, with `{size}` for each of the two sizes.
    """

    left: Place
    right: Place | int
    stretches: bool
    message: str


def open_checks(op: OperatorOp) -> list[OpenCheck]:
    """The checks that a use of an operator needs at run time, each once, in the order in which its relation makes them."""
    if not any(is_open(value.type) for value in op.args):
        return []
    log: list[Comparison] = []
    op.OPERATOR.relation(_OpenUse(op, op.attrs(), _OpenTypes(op.args, log)))
    first: list[int] = []
    count = 0
    for value in op.args:
        first.append(count)
        count += len(value.type.types.data) if isinstance(value.type, TupleType) else 1
    found: dict[tuple[Place, Place | int, bool], OpenCheck] = {}
    for comparison in log:
        left, right = (
            Place(first[dim.argument] + dim.field, dim.axis) if isinstance(dim, OpenDim) else dim
            for dim in (comparison.left, comparison.right)
        )
        if left == right or not isinstance(left, Place):
            continue
        key = left, right, comparison.stretches
        found.setdefault(key, OpenCheck(*key, _message(op, comparison)))
    return list(found.values())


def _message(op: OperatorOp, comparison: Comparison) -> str:
    left = _name(op, comparison.left)
    if not isinstance(comparison.right, OpenDim):
        needed = "{size} or 1" if comparison.stretches else "{size}"
        return f"{op.OPERATOR.name}: {left} is {{size}}, but must be {needed}"
    right = _name(op, comparison.right)
    if comparison.stretches:
        return f"{op.OPERATOR.name}: {left} and {right} do not broadcast: they are {{size}} and {{size}}"
    return f"{op.OPERATOR.name}: {left} is {{size}}, but {right} is {{size}}"


def _name(op: OperatorOp, dim: int) -> str:
    assert isinstance(dim, OpenDim)
    name = op.OPERATOR.arguments[dim.argument].lstrip("*")
    field = f"field {dim.field} of " if isinstance(op.args[dim.argument].type, TupleType) else ""
    return f"dimension {dim.axis} of {field}'{name}'"


def open_sizes(op: OperatorOp) -> OpenSizes | None:
    """Returns what must hold of the sizes of a use in each call; None where all are known."""
    return OpenSizes(op) if any(is_open(value.type) for value in op.args) else None


class OpenSizes:
    """What must hold of the open dimensions of a use in each call: the interpreter refuses what compiled code does, in its words."""

    def __init__(self, op: OperatorOp):
        self._op = op
        self._checks = open_checks(op)
        self._requirements: Sequence[Requirement] = ()
        self._dims: list[list[Expr]] = []
        if op.OPERATOR.extents is not None:
            from ...te import builder as te

            tensors: list[te.Tensor] = []
            for type in (leaf for value in op.args for leaf in tensor_leaves(value.type)):
                extents = type.get_shape()
                dims = [te.size_var() if extent == DYNAMIC_INDEX else te.const(extent, "int32") for extent in extents]
                self._dims.append(dims)
                tensors.append(te.placeholder(dims, type_to_dtype(type.element_type)))
            self._requirements = op.OPERATOR.extents(op.attrs(), tensors, op.result.type).requirements

    def check(self, types: Sequence[Attribute]) -> None:
        """Checks the sizes of one call.

        Args:
            types: the types of the arguments as they are, without `?`.

        Raises:
            MirError: where native code refuses these sizes, in its words; else where the type relation does.
        """
        op = self._op
        shapes = [leaf.get_shape() for type in types for leaf in tensor_leaves(type)]

        def size_of(side: Place | int) -> int:
            return shapes[side.leaf][side.axis] if isinstance(side, Place) else side

        for check in self._checks:
            sizes = size_of(check.left), size_of(check.right)
            if not fits("stretch" if check.stretches else "equal", *sizes):
                raise error_at(op, with_sizes(check.message, sizes))
        if self._requirements:
            self._check_requirements(shapes)
        try:
            op.OPERATOR.relation(Use(op, op.attrs(), _Given(op.args, types)))
        except Postponed:
            return

    def _check_requirements(self, shapes: Sequence[Sequence[int]]) -> None:
        """Checks what `extents` requires; what follows from the elements of the arguments alone is left to the operator's meaning."""
        from ...te import builder as te
        from ...te.schedule.trees import substitute

        values: dict[int, Expr] = {}
        for dims, shape in zip(self._dims, shapes, strict=True):
            values |= {id(dim): te.const(size, "int32") for dim, size in zip(dims, shape, strict=True)}
        for needed in self._requirements:
            left, right = (constant(substitute(te.convert(side), values)) for side in (needed.left, needed.right))
            if left is not None and right is not None and not fits(needed.rule, left, right):
                raise error_at(self._op, f"{self._op.OPERATOR.name}: {with_sizes(needed.message, (left, right))}")


def is_open(type: Attribute) -> bool:
    """Whether a tensor of this type, or a field of this tuple, has a size that is known only at run time."""
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
        self._types = dict(zip(values, types, strict=True))

    def type_of(self, value: SSAValue) -> Attribute:
        return self._types[value]

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        """The result's type is known."""


class _OpenTypes:
    """The argument types, each `?` marked by its place."""

    def __init__(self, values: Sequence[SSAValue], log: list[Comparison]):
        self.unifier = Unifier()
        self._types: dict[SSAValue, Attribute] = {}
        for argument, value in enumerate(values):
            if value in self._types:
                continue
            type = value.type
            if isinstance(type, TupleType):
                self._types[value] = tuple_of([_marked(t, argument, k, log) for k, t in enumerate(type.types.data)])
            else:
                self._types[value] = _marked(type, argument, 0, log)

    def type_of(self, value: SSAValue) -> Attribute:
        return self._types[value]

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        """The result's type is known."""


def _marked(type: Attribute, argument: int, field: int, log: list[Comparison]) -> Attribute:
    if not isinstance(type, TensorType):
        return type
    shape = [OpenDim(argument, field, a, log) if d == DYNAMIC_INDEX else d for a, d in enumerate(type.get_shape())]
    return TensorType(type.element_type, shape)


class _OpenUse(Use):
    """A use of which also the argument types that the relation asks for are compared."""

    __slots__ = ()

    def set_argument(self, index: int, type: Attribute) -> None:
        own = self._types.type_of(self.op.args[index])
        if isinstance(own, TensorType) and isinstance(type, TensorType):
            for left, right in zip(own.get_shape(), type.get_shape(), strict=False):
                if left is not right:
                    note(left, right)
        super().set_argument(index, type)
