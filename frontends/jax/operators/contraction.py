"""Products of tensors: `dot_general` and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.ir import SSAValue

from ...common.open_sizes import product
from ...common.refusal import Refused
from ...common.transposes import transposed_operand
from ..node import HloNode
from ..registry import operator
from ..stablehlo import ConvAttr
from .shape import padded


@operator("dot_general")
def dot_general(node: HloNode) -> SSAValue:
    """Multiplies tensors over pairs of axes, for each place of pairs of batch axes."""
    fields = node.fields("dot_dimension_numbers")
    x, y = (_operand(node, each) for each in node.operands)
    batch = [fields.axes(f"{side}_batching_dimensions") for side in ("lhs", "rhs")]
    pairs = [fields.axes(f"{side}_contracting_dimensions") for side in ("lhs", "rhs")]
    own = [node.builder.extents(each) for each in (x, y)]
    free = [[axis for axis in range(len(own[k])) if axis not in batch[k] + pairs[k]] for k in range(2)]
    if not batch[0] and len(pairs[0]) == 1 and len(own[1]) == 2:
        return _by_matrix(node, x, y, [*free[0], pairs[0][0]], pairs[1][0])
    (x, x_last), (y, y_last) = (_as_matrices(node, each, batch[k], pairs[k], free[k]) for k, each in enumerate((x, y)))
    found = node.call("nn.batch_matmul", x, y, transpose_a=not x_last, transpose_b=y_last, **_out_dtype(node, x))
    sizes = [own[0][axis] for axis in batch[0]] + [own[k][axis] for k in range(2) for axis in free[k]]
    return node.reshaped(found, sizes)


def _operand(node: HloNode, value: SSAValue) -> SSAValue:
    """Returns an operand in the dtype of a product; bytes that are added up in int32 as they are."""
    own, dtype = node.builder.dtype(value), node.dtype()
    return value if dtype == "int32" and own in ("int8", "uint8") else node.cast(value, dtype)


def _out_dtype(node: HloNode, value: SSAValue) -> dict[str, Any]:
    """Returns the attribute `out_dtype` of a product of operands of another dtype than the result's."""
    return {} if node.builder.dtype(value) == node.dtype() else {"out_dtype": node.dtype()}


def _by_matrix(node: HloNode, x: SSAValue, y: SSAValue, order: Sequence[int], axis: int) -> SSAValue:
    """Multiplies rows by a matrix along one of its axes."""
    x = node.transposed(x, order)
    plain = transposed_operand(y)
    if plain is not None:
        y, axis = plain, 1 - axis
    rank = node.builder.rank(x)
    if rank == 2 and axis == 0 and node.builder.array(y) is None:
        return node.call("nn.matmul", x, y, **_out_dtype(node, x))
    weight = y if axis == 1 else node.call("transpose", y, axes=[1, 0])
    rows = x if rank > 1 else node.call("expand_dims", x, axis=0)
    found = node.call("nn.dense", rows, weight, **_out_dtype(node, x))
    return found if rank > 1 else node.call("squeeze", found, axis=[0])


def _as_matrices(
    node: HloNode, value: SSAValue, batch: Sequence[int], pairs: Sequence[int], free: Sequence[int]
) -> tuple[SSAValue, bool]:
    """Returns a batch of matrices, and whether its last axis is the one that is summed."""
    sizes = node.builder.extents(value)
    order = [*batch, *pairs, *free]
    is_last = order != sorted(order)
    groups = (batch, free, pairs) if is_last else (batch, pairs, free)
    value = node.transposed(value, [axis for axes in groups for axis in axes])
    return node.reshaped(value, [product(*(sizes[axis] for axis in axes)) for axes in groups]), is_last


@dataclass(frozen=True)
class _Convolution:
    """A convolution: layouts of data, kernel and result, and numbers by spatial axis."""

    layouts: Sequence[str]
    strides: Sequence[int]
    dilation: Sequence[int]
    spread: Sequence[int]
    """How far elements of the data are apart, with zeros between them."""
    padding: Sequence[tuple[int, int]]
    groups: int

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.strides)


@operator("convolution")
def convolution(node: HloNode) -> SSAValue:
    """Convolves, with any axes, strides, dilations, padding and groups."""
    x, weight = (_operand(node, each) for each in node.operands)
    conv = _convolution(node, node.builder.rank(x) - 2)
    data, kernel = _standard(conv.rank)
    for axis, is_reversed in enumerate(node.ints("window_reversal")):
        if is_reversed:
            weight = node.call("reverse", weight, axis=conv.layouts[1].index(data[2 + axis]))
    found = _by_transposed_convolution(node, x, weight, conv)
    if found is not None:
        return found
    x = _spread(node, x, conv)
    if _is_known(conv.layouts, conv.rank):
        data, kernel = conv.layouts[:2]
    else:
        # What the operator has no name for is transposed to its own layout.
        x = node.transposed(x, [conv.layouts[0].index(each) for each in data])
        weight = node.transposed(weight, [conv.layouts[1].index(each) for each in kernel])
    sizes = dict(zip(kernel, node.static(weight, "the kernel"), strict=True))
    found = node.call(
        f"nn.conv{conv.rank}d", x, weight, strides=conv.strides, dilation=conv.dilation, groups=conv.groups,
        padding=[max(0, pair[side]) for side in range(2) for pair in conv.padding], channels=sizes["O"],
        kernel_size=[sizes[each] for each in _spatial(conv.rank)], data_layout=data, kernel_layout=kernel, **_out_dtype(node, x),
    )  # fmt: skip
    return node.transposed(found, [data.index(each) for each in conv.layouts[2]])


def _convolution(node: HloNode, rank: int) -> _Convolution:
    """Reads the attributes of a convolution over `rank` axes. Raises Refused for others than Relay's."""
    numbers = node.attribute("dimension_numbers")
    assert isinstance(numbers, ConvAttr)
    if not 1 <= rank <= 3:
        raise Refused(f"convolutions over {rank} axes cannot be computed here")
    if node.int("batch_group_count", 1) != 1:
        raise Refused("convolutions in groups of the batch cannot be computed here")
    ones, flat = [1] * rank, node.ints("padding", [0] * (2 * rank))
    return _Convolution(
        layouts=[_layout(each.data, rank) for each in (numbers.data, numbers.kernel, numbers.result)],
        strides=node.ints("window_strides", ones),
        dilation=node.ints("rhs_dilation", ones),
        spread=node.ints("lhs_dilation", ones),
        padding=list(zip(flat[::2], flat[1::2], strict=True)),
        groups=node.int("feature_group_count", 1),
    )


def _spread(node: HloNode, x: SSAValue, conv: _Convolution) -> SSAValue:
    """Puts zeros between the elements of the data, and cuts off what negative padding does."""
    between = [step - 1 for step in conv.spread]
    low, high = ([min(0, pair[side]) for pair in conv.padding] for side in range(2))
    if not any([*between, *low, *high]):
        return x
    zero = node.constant(0, node.builder.dtype(x))
    return padded(node, x, zero, *(_by_axis(conv.layouts[0], each) for each in (low, high, between)))


def _by_axis(layout: str, values: Sequence[int]) -> list[int]:
    """Returns values of spatial axes by the axes of a layout, 0 for the others."""
    by_letter = dict(zip(_spatial(len(values)), values, strict=True))
    return [by_letter.get(letter, 0) for letter in layout]


def _spatial(rank: int) -> str:
    return "DHW"[3 - rank :]


def _standard(rank: int) -> tuple[str, str]:
    """Returns Relay's own layouts of data and kernel."""
    return f"NC{_spatial(rank)}", f"OI{_spatial(rank)}"


def _layout(axes: str, rank: int) -> str:
    """Returns a layout in Relay's letters: "NHWC" for "b01f", "HWIO" for "01io"."""
    letters = dict(zip("bfio012", f"NCIO{_spatial(rank)}", strict=False))
    return "".join(letters[each] for each in axes)


def _is_known(layouts: Sequence[str], rank: int) -> bool:
    """Returns whether Relay's convolution takes the layouts as they are."""
    letters = _spatial(rank)
    return layouts[0] == layouts[2] and (layouts[0], layouts[1]) in (
        _standard(rank),
        (f"N{letters}C", f"{letters}IO"),
        (f"N{letters}C", f"O{letters}I"),
    )


def _by_transposed_convolution(node: HloNode, x: SSAValue, weight: SSAValue, conv: _Convolution) -> SSAValue | None:
    """Converts a convolution of spread data to a transposed convolution; returns None where it is not one."""
    if set(conv.spread) == {1}:
        return None
    data, kernel = _standard(conv.rank)
    sizes = dict(zip(conv.layouts[1], node.static(weight, "the kernel"), strict=True))
    window = [sizes[each] for each in data[2:]]
    more = [max(0, high - (size - 1)) for size, (_, high) in zip(window, conv.padding, strict=True)]
    before = [size - 1 - low for size, (low, _) in zip(window, conv.padding, strict=True)]
    after = [size - 1 - high + extra for size, (_, high), extra in zip(window, conv.padding, more, strict=True)]
    fits = all(extra < step for extra, step in zip(more, conv.spread, strict=True))
    is_plain = prod(conv.strides) == prod(conv.dilation) == conv.groups == 1
    if not is_plain or not fits or min([*before, *after]) < 0:
        return None
    x = node.transposed(x, [conv.layouts[0].index(each) for each in data])
    weight = node.transposed(weight, [conv.layouts[1].index(each) for each in f"IO{kernel[2:]}"])
    for axis in range(conv.rank):
        weight = node.call("reverse", weight, axis=2 + axis)
    found = node.call(
        f"nn.conv{conv.rank}d_transpose", x, weight, strides=conv.spread, padding=[*before, *after], output_padding=more,
        channels=sizes["O"], kernel_size=window, **_out_dtype(node, x),
    )  # fmt: skip
    return node.transposed(found, [data.index(each) for each in conv.layouts[2]])
