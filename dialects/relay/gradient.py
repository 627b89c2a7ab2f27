"""Defines the values that gradients of operators are written with, and the registry of gradients.

`a * b` and `a.of("exp")` on terms create operators; `@gradient("exp")` registers a function from the use of an operator
(`Backward`) to the gradients of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import SupportsIndex, TypeAlias, cast, overload

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute, SSAValue

from ...support.diagnostics import MirError, error_at
from ..tir.types import type_to_dtype
from .emit import Emitter
from .operator import Attrs, AttrValue, Operator, OperatorOp
from .operators import GRADIENTS, Registry


class UnknownSize(Exception):
    """A gradient asked for a size that is `?`."""


class Sizes(tuple[int, ...]):
    """The sizes of a tensor, such as (2, ?, 3). Reading an unknown size raises UnknownSize."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sizes: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | Sizes:
        if isinstance(index, slice):
            return Sizes(super().__getitem__(index))
        size = super().__getitem__(index)
        if size == DYNAMIC_INDEX:
            raise UnknownSize
        return size

    def __iter__(self) -> Iterator[int]:
        return (self[place] for place in range(len(self)))

    @property
    def are_known(self) -> bool:
        """Returns whether no size is `?`."""
        return DYNAMIC_INDEX not in self


class Term:
    """A value that a gradient is computed from. `a * b` and `a.of("exp")` create operators."""

    def __init__(self, emitter: Emitter, value: SSAValue):
        self.emitter = emitter
        self.value = value

    def of(self, name: str, *others: Term | float, **attributes: AttrValue) -> Term:
        """Creates the operator `name` of this term and others; numbers are of this term's dtype."""
        values = [other.value if isinstance(other, Term) else self.number(other).value for other in others]
        return Term(self.emitter, self.emitter.call(name, self.value, *values, **attributes))

    def number(self, value: float) -> Term:
        """Creates a scalar of this term's dtype."""
        return Term(self.emitter, self.emitter.constant(value, self.dtype))

    def field(self, index: int) -> Term:
        """Creates the access to a field of a tuple."""
        return Term(self.emitter, self.emitter.field(self.value, index))

    @property
    def type(self) -> TensorType[Attribute]:
        """The type of a tensor."""
        assert isinstance(self.value.type, TensorType)
        return self.value.type

    @property
    def fields(self) -> Sequence[TensorType[Attribute]]:
        """The types of a tuple's tensors."""
        assert isinstance(self.value.type, TupleType)
        return [cast("TensorType[Attribute]", field) for field in self.value.type.types.data]

    @property
    def shape(self) -> Sizes:
        return Sizes(self.type.get_shape())

    @property
    def dtype(self) -> str:
        return type_to_dtype(self.type.element_type)

    @property
    def zeros(self) -> Term:
        return self.of("zeros_like")

    @property
    def ones(self) -> Term:
        return self.of("ones_like")

    def __add__(self, other: Term) -> Term:
        return self.of("add", other)

    def __sub__(self, other: Term) -> Term:
        return self.of("subtract", other)

    def __mul__(self, other: Term | float) -> Term:
        return self.of("multiply", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.of("divide", other)

    def __neg__(self) -> Term:
        return self.of("negative")

    def summed(self, axes: Sequence[int], keepdims: bool = True) -> Term:
        """Returns the sum along axes; this itself along none."""
        return self.of("sum", axis=list(axes), keepdims=keepdims) if axes else self

    def over_count(self, x: Term, axes: Sequence[int], less: int = 0, times: float = 1.0) -> Term:
        """Returns `times` this over the number of elements of x along `axes`, minus `less`.

        The result broadcasts with x. A number of 0 counts as 1.
        """
        sizes = Sizes([x.type.get_shape()[axis] for axis in axes])
        if sizes.are_known:
            return self * (times / ((prod(sizes) - less) or 1))
        count = x.ones.summed(axes)
        whole = self if times == 1 else self * times
        return whole / (count - count.ones * less if less else count)

    def averaged(self, axes: Sequence[int]) -> Term:
        """Returns the mean along axes, which stay, of size 1."""
        return self.of("mean", axis=list(axes), keepdims=True)


class Backward:
    """A use of an operator in the backward pass: its arguments, its result, and the result's gradient."""

    def __init__(self, op: OperatorOp, emitter: Emitter, args: Sequence[SSAValue], gradient: SSAValue):
        self.op = op
        self.attrs: Attrs = op.attrs()
        self.args = [Term(emitter, arg) for arg in args]
        self.result = Term(emitter, op.result)
        self.gradient = Term(emitter, gradient)

    def tuple(self, fields: Sequence[Term]) -> Term:
        """Creates a tuple of terms."""
        emitter = self.gradient.emitter
        return Term(emitter, emitter.tuple([field.value for field in fields]))

    def again(self, args: Sequence[Term], **attributes: AttrValue) -> Term:
        """Creates the operator again with other arguments, and with `attributes` in place of some of its own."""
        emitter = self.gradient.emitter
        given = {**self.op.given(), **attributes}
        return Term(emitter, emitter.call(self.op.OPERATOR.name, *(arg.value for arg in args), **given))

    def refuse(self, message: str, *notes: str) -> MirError:
        """Returns the error to raise where this use has no gradient."""
        return error_at(self.op, f"{self.op.OPERATOR.name} has no gradient here: {message}", *notes)


Gradient: TypeAlias = Callable[[Backward], Sequence[Term]]
"""The gradients of an operator's arguments, in order: how the final result changes with each."""

_GRADIENTS: Registry[Gradient] = Registry("the gradient of", GRADIENTS)
gradient = _GRADIENTS.of_operators
"""Registers a function as the gradient of operators, each of which may have one: `@gradient("exp")`."""
all_gradients = _GRADIENTS.all


def gradient_of(operator: Operator) -> Gradient | None:
    """Returns the gradient of an operator; None for operators that have none."""
    return _GRADIENTS.find(operator.name)
