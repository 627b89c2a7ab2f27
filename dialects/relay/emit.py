"""Making operators in Python, typed as they are made: what passes and gradients are written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...support.diagnostics import error_at
from . import ir
from .infer.result import infer_result
from .operator import AttrValue, get_operator, operator_class

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Emitter:
    """Puts ops before a place, at the location of what they stand for.

    The types of operands must be known; each op gets the type that follows.
    """

    def __init__(self, before: Operation, location: LocationAttr | None = None):
        self._point = InsertPoint.before(before)
        self.location = before.location if location is None else location

    def insert(self, op: Operation) -> SSAValue:
        """Puts an op in place; gives its result."""
        op.location = self.location
        Rewriter.insert_op(op, self._point)
        return op.results[0]

    def call(self, name: str, *arguments: SSAValue, **attributes: AttrValue) -> SSAValue:
        """A use of the operator called `name`. Raises MirError where the arguments do not fit."""
        operator = get_operator(name)
        if operator is None:
            raise error_at(self.location, f"there is no operator {name}")
        op = operator_class(operator)(arguments, attributes)
        op.location = self.location
        infer_result(op)
        return self.insert(op)

    def constant(self, value: ArrayLike, dtype: str) -> SSAValue:
        """A constant tensor of the dtype."""
        import numpy as np

        from ..array import ArrayValueAttr, numpy_dtype
        from ..tir.types import dtype_to_type

        array = np.asarray(value).astype(numpy_dtype(dtype))
        return self.insert(ir.ConstantOp(ArrayValueAttr.of(array), TensorType(dtype_to_type(dtype), array.shape)))

    def tuple(self, fields: Sequence[SSAValue]) -> SSAValue:
        """A tuple."""
        return self.insert(ir.TupleOp(fields))

    def field(self, value: SSAValue, index: int) -> SSAValue:
        """A field of a tuple."""
        return self.insert(ir.TupleGetItemOp(value, index))

    def let(self, name: str, value: SSAValue) -> SSAValue:
        """The value under a name."""
        return self.insert(ir.LetOp(name, value))
