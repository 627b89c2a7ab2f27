"""Records the operators and constants that a pass creates: the body of a function to outline."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.relay.emit import Emitter, dtype_of
from ....dialects.relay.operator import AttrValue
from ....dialects.tir.types import type_to_dtype


class Recorder(Emitter):
    """Creates ops before an op and keeps them in the list `made`.

    `half` is a dtype of half precision that is computed in float32: values of it are cast outside of the list.
    """

    def __init__(self, before: Operation, sources: Sequence[Operation], half: Attribute | None):
        super().__init__(before, sources)
        self.half = half
        self.made: list[Operation] = []
        self.casts: dict[SSAValue, SSAValue] = {}
        self._outside = Emitter(before, sources)

    def outside(self, name: str, *args: SSAValue, **attrs: AttrValue) -> SSAValue:
        """Creates an operator that is not kept in the list."""
        return self._outside.call(name, *args, **attrs)

    def brought(self, value: SSAValue) -> SSAValue:
        """Returns a value from outside, cast to float32 where it is of the dtype `half`."""
        if self.half is None or dtype_of(value) != self.half:
            return value
        if value not in self.casts:
            self.casts[value] = self.outside("cast", value, dtype="float32")
        return self.casts[value]

    def insert(self, op: Operation) -> SSAValue:
        self.made.append(op)
        return super().insert(op)

    def scalar(self, value: float, like: SSAValue) -> SSAValue:
        """Creates a constant of the element type of another tensor, or of float32 where that is `half`."""
        element = dtype_of(like)
        assert element is not None
        return self.constant(value, "float32" if element == self.half else type_to_dtype(element))
