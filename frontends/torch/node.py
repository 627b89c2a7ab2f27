"""Defines a node of an FX graph as its converter sees it: the builder, types of arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import SSAValue

from ..common.graph_builder import GraphBuilder
from ..common.open_sizes import Extent
from ..common.refusal import Refused
from .complex_tensor import PART_DTYPES
from .tensors import dtype_name

if TYPE_CHECKING:
    from .importer import FxImporter

END = 2**63 - 1
"""The end of a slice that goes on to the last element."""


class FxNode:
    """A node while it is converted: an overload of an operator, and the types of its results."""

    def __init__(self, importer: FxImporter, fx: Any, name: str, overload: str):
        self.importer, self.fx, self.name, self.overload = importer, fx, name, overload

    @property
    def builder(self) -> GraphBuilder:
        """The builder, at the location of this node."""
        return self.importer.builder

    def call(self, operator: str, *arguments: SSAValue, **attributes: Any) -> SSAValue:
        """Creates a use of a Relay operator at the location of this node."""
        return self.builder.call(operator, *arguments, **attributes)

    def refuse(self, reason: str) -> Refused:
        """Returns the error to raise where this node cannot be imported."""
        return Refused(reason)

    def draws(self) -> Refused:
        """Returns the error to raise for dropout while training."""
        return Refused("dropout while training draws random numbers; call eval() before")

    # Results -------------------------------------------------------------------------------------------------------

    def result(self, index: int = 0) -> Any:
        """Returns the value of a result as torch has inferred it: a tensor without data, or a symbolic number."""
        value = self.fx.meta["val"]
        return value[index] if isinstance(value, list | tuple) else value

    def dtype(self, index: int = 0) -> str:
        """Returns the dtype of a result."""
        return self.named(self.result(index).dtype)

    def is_complex(self) -> bool:
        """Returns whether the result is a complex tensor."""
        return str(self.result().dtype) in PART_DTYPES

    def named(self, dtype: Any) -> str:
        """Returns a torch dtype's name, of a complex one that of its parts.

        Results of dtypes that Relay does not have are refused before.
        """
        name = PART_DTYPES.get(str(dtype)) or dtype_name(dtype)
        assert name is not None
        return name

    def uses(self, index: int) -> bool:
        """Returns whether result `index` of several is used."""
        return any(user.args[1] == index for user in self.fx.users)

    def extents(self, index: int = 0) -> tuple[Extent, ...]:
        """Returns the dimensions of a result."""
        return self.importer.extents_of(self.result(index))

    def extent_of(self, size: Any) -> Extent:
        """Returns a size of torch's, or of a node that computes one."""
        value = getattr(size, "meta", {}).get("val", size)
        return self.importer.extent(value)

    # Tensors -------------------------------------------------------------------------------------------------------

    def rank(self, value: SSAValue) -> int:
        """Returns the rank of a tensor."""
        return self.builder.rank(value)

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        """Converts a tensor to a dtype as torch does: to bool by comparison with 0."""
        own = self.builder.dtype(value)
        if own == dtype:
            return value
        if dtype == "bool":
            return self.call("not_equal", value, self.builder.constant(0, own))
        return self.call("cast", value, dtype=dtype)

    def tensor(self, value: Any, dtype: str) -> SSAValue:
        """Returns a tensor or a number as a tensor of a dtype."""
        if isinstance(value, SSAValue):
            return self.cast(value, dtype)
        return self.builder.constant(value, dtype)

    def wide(self, value: SSAValue) -> SSAValue:
        """Returns a tensor of 16-bit floats in float32, in which torch computes sums and functions of them."""
        return self.cast(value, "float32") if self.builder.dtype(value) in ("float16", "bfloat16") else value

    def sizes(self, values: Sequence[Any]) -> list[int] | SSAValue:
        """Returns sizes as numbers, or as a tensor where some are computed."""
        if all(isinstance(each, int) for each in values):
            return [int(each) for each in values]
        return self.size_tensor(values)

    def size_tensor(self, values: Sequence[Any]) -> SSAValue:
        """Returns sizes, numbers and computed ones, as a tensor of int64."""
        parts = [self.call("reshape", self.tensor(each, "int64"), newshape=[1]) for each in values]
        return self.call("concatenate", self.builder.tuple(parts), axis=0)

    def static(self, value: SSAValue, what: str = "the tensor") -> tuple[int, ...]:
        """Returns the shape of a tensor. Raises Refused where it has open dimensions."""
        shape = self.builder.static_shape(value)
        if shape is None:
            raise Refused(f"{what} has dimensions that are known only at run time")
        return shape

    def number(self, value: Any, what: str) -> int:
        """Returns a size that is a number. Raises Refused for one that is computed."""
        if isinstance(value, SSAValue):
            found = self.builder.elements(value)
            if found is None or not isinstance(found[0], int):
                raise Refused(f"{what} is known only at run time")
            return found[0]
        return int(value)

    def axes(self, dims: Sequence[int] | int | None, rank: int) -> list[int]:
        """Returns axes counted from the first; of none or an empty list all."""
        if isinstance(dims, int):
            dims = [dims]
        return sorted(each % max(rank, 1) for each in dims) if dims and rank else list(range(rank))

    def size_of(self, value: SSAValue, axis: int) -> Any:
        """Returns a dimension: a number, or a tensor of rank 0 where it is open.

        A negative axis is counted from the last.
        """
        found = self.builder.extents(value)[axis]
        return found if isinstance(found, int) else self.builder.size(value, axis)

    def transposed(self, value: SSAValue, first: int, second: int) -> SSAValue:
        """Exchanges two axes."""
        axes = list(range(self.rank(value)))
        axes[first], axes[second] = axes[second], axes[first]
        return value if axes == sorted(axes) else self.call("transpose", value, axes=axes)

    def reshaped(self, value: SSAValue, index: int = 0) -> SSAValue:
        """Reshapes a tensor to the shape of a result."""
        extents = self.extents(index)
        if self.builder.extents(value) == extents:
            return value
        static = self.builder.reshape_attributes(value, extents)
        assert static is not None, "the caller has asked, or the shape is fixed"
        return self.call("reshape", value, newshape=static[0], allowzero=static[1])


def pair(values: Any, count: int = 2) -> list[int]:
    """Returns numbers for each axis: `3` or `[3]` is `[3, 3]`."""
    found = [values] if isinstance(values, int) else [int(each) for each in cast("Sequence[int]", values)]
    return found * count if len(found) == 1 else found
