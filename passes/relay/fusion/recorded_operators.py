"""Operators that a pass makes, and constants among them, kept in a list: what it makes a function of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.array import ArrayValueAttr, numpy_dtype
from ....dialects.relay.ir import ConstantOp
from ....dialects.relay.operator import AttrValue
from ....dialects.tir.types import type_to_dtype
from ..common.new_operators import Maker, dtype_of


@dataclass
class Recorder(Maker):
    """Makes operators and keeps them in a list."""

    half: Attribute | None = None
    """A dtype of half precision that is computed in float32: what comes in it is brought to that outside; None where there is none."""
    made: list[Operation] = field(default_factory=list[Operation])
    casts: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def outside(self, name: str, *args: SSAValue, **attrs: AttrValue) -> SSAValue:
        """An operator that is not kept in the list."""
        return Maker(self.before, self.sources)(name, *args, **attrs)

    def brought(self, value: SSAValue) -> SSAValue:
        """A value from outside, in float32 where it is computed in that."""
        if self.half is None or dtype_of(value) != self.half:
            return value
        if value not in self.casts:
            self.casts[value] = self.outside("cast", value, dtype="float32")
        return self.casts[value]

    def insert(self, op: Operation) -> SSAValue:
        self.made.append(op)
        return super().insert(op)

    def scalar(self, value: float, like: SSAValue) -> SSAValue:
        """A constant of the element type of another tensor, or of float32 where that is computed in it."""
        element = dtype_of(like)
        assert element is not None
        return self.constant(value, f32 if element == self.half else element)

    def constant(self, value: float, element: Attribute) -> SSAValue:
        """A constant of an element type."""
        array = np.asarray(value, numpy_dtype(type_to_dtype(element)))
        constant = ConstantOp(ArrayValueAttr.of(array), TensorType(element, ()))
        constant.location = self.location
        return self.insert(constant)
