"""Stores the tensors of a scheduled program in one-dimensional buffers (TVM, "storage_flatten").

    B[i, j]  with B of shape (4, 8)    →    B_1[i * 8 + j]

A parameter with symbolic extents may have any strides; an intermediate tensor is stored compactly in memory of its own, except
where `storage_align` asks for strides that are rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ....dialects.arith.ordered import Arith, constant, is_zero, number
from ....dialects.te import tensor as te
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, Var
from .statements import Realize

DEFAULT_ALIGNMENT = 64
"""The alignment of memory in bytes that needs not be written."""


class Stride(Expr):
    """`A.strides[dim]` of a parameter."""

    __slots__ = ("dim", "memory")

    def __init__(self, memory: Memory, dim: int, dtype: str):
        super().__init__(dtype)
        self.memory = memory
        self.dim = dim


@dataclass(eq=False)
class Memory:
    """The memory of one tensor.

    `lows` is the index of its first element, `strides` are those of its dimensions (empty: compact).
    """

    name: str
    dtype: str
    shape: list[Expr]
    flat: ex.Buffer
    lows: list[Expr] = field(default_factory=list["Expr"])
    strides: list[Expr] = field(default_factory=list["Expr"])
    scope: str = "global"
    buffer: SSAValue | None = None
    """The parameter's buffer."""
    pointer: SSAValue | None = None
    """The result of its allocation."""
    is_auto: bool = False
    """Returns whether strides come with the parameter."""
    alignment: int = DEFAULT_ALIGNMENT
    declared: SSAValue | None = None
    """The flat buffer."""

    def index(self, indices: tuple[Expr, ...]) -> Expr:
        """Returns the place of an element in the flat buffer."""
        places = [
            index if is_zero(low) else ex.subtract(index, low)
            for index, low in zip(indices, self.lows or [number(0)] * len(indices), strict=True)
        ]
        if not places:
            return number(0)
        if self.strides:
            total = ex.multiply(places[0], self.strides[0])
            for place, stride in zip(places[1:], self.strides[1:], strict=True):
                total = ex.add(total, ex.multiply(place, stride))
            return total
        total = places[0]
        for place, extent in zip(places[1:], self.shape[1:], strict=True):
            total = ex.add(ex.multiply(total, extent), place)
        return total

    def stride(self, dim: int) -> Expr:
        """Returns the distance of neighbours along a dimension, in elements of the flat buffer."""
        return self.strides[dim] if self.strides else product(self.shape[dim + 1 :])

    @property
    def is_flat(self) -> bool:
        """Returns whether the parameter's buffer is as flat as it has to be."""
        return len(self.shape) == 1 and not self.strides


def product(extents: list[Expr]) -> Expr:
    """Returns the product of extents, the number of elements."""
    total: Expr = number(1) if not extents else extents[0]
    for extent in extents[1:]:
        total = ex.multiply(total, extent)
    return total


def parameter_memory(tensor: te.Tensor, name: str, *, compact: bool) -> Memory:
    """Returns the memory of a parameter.

    Unless `compact`, one with an extent that is a variable takes any strides.
    """
    shape = list(tensor.dims)
    memory = Memory(name, tensor.dtype, shape, ex.Buffer(name, (number(1),), tensor.dtype))
    if not compact and any(isinstance(d, Var) for d in shape):
        memory.is_auto = True
        memory.strides = [Stride(memory, i, "int32" if d.dtype == "int32" else d.dtype) for i, d in enumerate(shape)]
        total = ex.multiply(memory.strides[0], shape[0])
    else:
        total = product(shape)
    memory.flat = ex.Buffer(name, (total,), tensor.dtype)
    return memory


def realized_memory(node: Realize, arith: Arith) -> Memory:
    """Returns the memory that a stage's results are kept in."""
    tensor = node.tensor
    shape = [arith.simplify(r.extent) for r in node.ranges]
    strides = _aligned_strides(shape, node.aligned, arith) if node.aligned else []
    total = ex.multiply(strides[0], shape[0]) if strides else product(shape)
    size = arith.simplify(total)
    name = tensor.op.name
    memory = Memory(name, tensor.dtype, shape, ex.Buffer(name, (size,), tensor.dtype), scope=node.scope)
    memory.lows = [r.min for r in node.ranges]
    memory.strides = strides
    count = constant(size)
    if count is not None and count > 0:
        bytes_used = count * max(ex.bits_of(tensor.dtype), 8) // 8
        while memory.alignment > bytes_used:
            memory.alignment //= 2
    return memory


def _aligned_strides(shape: list[Expr], aligned: dict[int, tuple[int, int]], arith: Arith) -> list[Expr]:
    """Strides from the last dimension on; that of an aligned dimension is the next `factor * k + offset`."""
    strides: list[Expr] = []
    stride: Expr = number(1)
    for dim in reversed(range(len(shape))):
        if dim in aligned and strides:
            factor, offset = aligned[dim]
            past = ex.floormod(ex.subtract(factor + offset, ex.floormod(stride, factor)), factor)
            stride = ex.add(stride, past)
        stride = arith.simplify(stride)
        strides.append(stride)
        stride = ex.multiply(stride, shape[dim])
    return strides[::-1]
