"""Operators that a pass makes, and constants among them, kept in a list: what it makes a function of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.array import ArrayValueAttr, numpy_dtype
from ...dialects.relay.ir import ConstantOp
from ...dialects.tir.types import type_to_dtype
from .building import Maker, dtype_of


@dataclass
class Recorder(Maker):
    """Makes operators and keeps them in a list."""

    made: list[Operation] = field(default_factory=list[Operation])

    def insert(self, op: Operation) -> SSAValue:
        self.made.append(op)
        return super().insert(op)

    def scalar(self, value: float, like: SSAValue) -> SSAValue:
        """A constant of the element type of another tensor."""
        element = dtype_of(like)
        assert element is not None
        return self.constant(value, element)

    def constant(self, value: float, element: Attribute) -> SSAValue:
        """A constant of an element type."""
        array = np.asarray(value, numpy_dtype(type_to_dtype(element)))
        constant = ConstantOp(ArrayValueAttr.of(array), TensorType(element, ()))
        constant.location = self.location
        return self.insert(constant)
