"""New operators for passes: made in front of an op, typed, with the places of what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DYNAMIC_INDEX, LocationAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.infer.result import infer_result
from ....dialects.relay.operator import AttrValue, OperatorOp, get_operator, operator_class
from ....support.edit import insert_op_before
from ....support.locations import fuse_locations


@dataclass
class Maker:
    """Makes operators in front of one op, with the places of all that they stand for."""

    before: Operation
    sources: Sequence[Operation] = field(default=())
    _location: tuple[Sequence[Operation], LocationAttr] | None = field(default=None, init=False)

    @property
    def location(self) -> LocationAttr:
        """The places of all sources, joined once however many operators stand for them."""
        if self._location is None or self._location[0] is not self.sources:
            self._location = self.sources, fuse_locations(source.location for source in self.sources)
        return self._location[1]

    def __call__(self, name: str, *args: SSAValue, **attrs: AttrValue) -> SSAValue:
        operator = get_operator(name)
        assert operator is not None
        return self.put(operator_class(operator)(list(args), attrs))

    def like(self, op: OperatorOp, args: Sequence[SSAValue], **attrs: AttrValue) -> SSAValue:
        """An operator as `op` is, with other arguments and some other attributes."""
        return self.put(type(op)(list(args), {**op.given(), **attrs}))

    def put(self, op: OperatorOp) -> SSAValue:
        op.location = self.location
        infer_result(op)
        return self.insert(op)

    def insert(self, op: Operation) -> SSAValue:
        insert_op_before(op, self.before)
        return op.results[0]

    def tuple(self, values: Sequence[SSAValue]) -> SSAValue:
        op = ir.TupleOp(values)
        op.location = self.location
        return self.insert(op)

    def field(self, value: SSAValue, index: int) -> SSAValue:
        op = ir.TupleGetItemOp(value, index)
        op.location = self.location
        return self.insert(op)


def shape_of(value: SSAValue) -> tuple[int, ...] | None:
    """The shape of a tensor that is known whole; None else."""
    type = value.type
    if not isinstance(type, TensorType) or DYNAMIC_INDEX in type.get_shape():
        return None
    return tuple(type.get_shape())


def dtype_of(value: SSAValue) -> Attribute | None:
    """The element type of a tensor."""
    return value.type.element_type if isinstance(value.type, TensorType) else None
