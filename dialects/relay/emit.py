"""Creates operators in Python, each typed when it is created: for passes and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX, LocationAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...support.diagnostics import MirError, error_at
from ...support.edit import insert_op_before
from ...support.locations import fuse_locations
from . import ir
from .infer.result import infer_result
from .operator import AttrValue, OperatorOp, operator_at, operator_class

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Emitter:
    """Creates ops before the op `before`, at the location of the ops that they replace.

    `make.call("add", a, b)` creates `relay.add`. The types of operands must be known; each result gets the type that
    follows from them.
    """

    location: LocationAttr
    """The location of the ops to create."""

    def __init__(self, before: Operation, sources: Sequence[Operation] = ()):
        self.before = before
        self.locate(sources or (before,))

    def locate(self, sources: Sequence[Operation]) -> None:
        """Sets the location of the ops to create: those of `sources`, fused."""
        self.location = (
            sources[0].location if len(sources) == 1 else fuse_locations(source.location for source in sources)
        )

    def insert(self, op: Operation) -> SSAValue:
        """Inserts an op at this location and returns its result."""
        op.location = self.location
        insert_op_before(op, self.before)
        return op.results[0]

    def call(self, name: str, *arguments: SSAValue, **attributes: AttrValue) -> SSAValue:
        """Creates a use of the operator `name`. Raises MirError where the arguments do not fit."""
        operator = operator_at(name, self.before)
        if operator is None:
            raise error_at(self.location, f"there is no operator {name}")
        return self.add(operator_class(operator)(arguments, attributes))

    def like(self, op: OperatorOp, arguments: Sequence[SSAValue], **attributes: AttrValue) -> SSAValue:
        """Creates a use of the operator of `op`, of other arguments and with `attributes` in place of its own."""
        return self.add(type(op)(arguments, {**op.given(), **attributes}))

    def add(self, op: OperatorOp) -> SSAValue:
        """Types and inserts a new operator. Raises MirError where the arguments do not fit."""
        self.infer(op)
        return self.insert(op)

    def infer(self, op: OperatorOp) -> None:
        """Types a new operator, at this location. Raises MirError where the arguments do not fit."""
        op.location = self.location
        try:
            infer_result(op)
        except MirError:
            # Its operands must not be used by an op that is nowhere.
            op.drop_all_references()
            raise

    def constant(self, value: ArrayLike, dtype: str) -> SSAValue:
        """Creates a constant tensor of the dtype."""
        import numpy as np

        from ..array import ArrayValueAttr, numpy_dtype
        from ..tir.types import dtype_to_type

        array = np.asarray(value).astype(numpy_dtype(dtype))
        return self.insert(ir.ConstantOp(ArrayValueAttr.of(array), TensorType(dtype_to_type(dtype), array.shape)))

    def tuple(self, fields: Sequence[SSAValue]) -> SSAValue:
        """Creates a tuple."""
        return self.insert(ir.TupleOp(fields))

    def field(self, value: SSAValue, index: int) -> SSAValue:
        """Creates the access to a field of a tuple."""
        return self.insert(ir.TupleGetItemOp(value, index))

    def let(self, name: str, value: SSAValue) -> SSAValue:
        """Creates `let %name = value`."""
        return self.insert(ir.LetOp(name, value))


def shape_of(value: SSAValue) -> tuple[int, ...] | None:
    """Returns the shape of a tensor; None where a dimension is unknown, and for other values."""
    type = value.type
    if not isinstance(type, TensorType) or DYNAMIC_INDEX in type.get_shape():
        return None
    return tuple(type.get_shape())


def dtype_of(value: SSAValue) -> Attribute | None:
    """Returns the element type of a tensor; None for other values."""
    return value.type.element_type if isinstance(value.type, TensorType) else None
