"""Products of tensors: `dot_general` and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import SSAValue

from ...common.open_sizes import Extent, product
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
    b = node.builder
    own = [b.extents(each) for each in (x, y)]
    free = [
        [axis for axis in range(len(own[side])) if axis not in batch[side] + pairs[side]] for side in range(2)
    ]  # fmt: skip
    sizes: list[Extent] = [*(own[0][axis] for axis in batch[0])]
    sizes += [own[side][axis] for side in range(2) for axis in free[side]]
    if not batch[0] and len(pairs[0]) == 1 and len(own[1]) == 2:
        return _by_matrix(node, x, y, [*free[0], pairs[0][0]], pairs[1][0])
    matrices: list[SSAValue] = []
    flags: list[bool] = []
    for side, value in enumerate((x, y)):
        value, is_last = _as_matrices(node, value, batch[side], pairs[side], free[side])
        matrices.append(value)
        flags.append(is_last)
    found = node.call(
        "nn.batch_matmul",
        *matrices,
        transpose_a=not flags[0],
        transpose_b=flags[1],
        **_out_dtype(node, matrices[0]),
    )
    return node.reshaped(found, sizes)


def _operand(node: HloNode, value: SSAValue) -> SSAValue:
    """Returns an operand in the dtype of a product; bytes that are added up in int32 as they are."""
    own, dtype = node.builder.dtype(value), node.dtype()
    return value if dtype == "int32" and own in ("int8", "uint8") else node.cast(value, dtype)


def _out_dtype(node: HloNode, value: SSAValue) -> dict[str, Any]:
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


@operator("convolution")
def convolution(node: HloNode) -> SSAValue:
    """Convolves, with any axes, strides, dilations, padding and groups."""
    numbers = node.attribute("dimension_numbers")
    assert isinstance(numbers, ConvAttr)
    x, weight = (_operand(node, each) for each in node.operands)
    rank = node.builder.rank(x) - 2
    if not 1 <= rank <= 3:
        raise Refused(f"convolutions over {rank} axes cannot be computed here")
    if node.int("batch_group_count", 1) != 1:
        raise Refused("convolutions in groups of the batch cannot be computed here")
    strides, dilation, spread = (
        node.ints(name, [1] * rank) for name in ("window_strides", "rhs_dilation", "lhs_dilation")
    )
    flat = node.ints("padding", [0] * (2 * rank))
    padding = list(zip(flat[::2], flat[1::2], strict=True))
    groups = node.int("feature_group_count", 1)
    layouts = [_layout(each.data, rank) for each in (numbers.data, numbers.kernel, numbers.result)]
    for axis, is_reversed in enumerate(node.ints("window_reversal")):
        if is_reversed:
            weight = node.call("reverse", weight, axis=numbers.kernel.data.index(str(axis)))
    if spread != [1] * rank:
        found = _transposed(node, x, weight, layouts, strides, dilation, spread, padding, groups)
        if found is not None:
            return found
        zero = node.constant(0, node.builder.dtype(x))
        between = [0] * (rank + 2)
        for axis, step in enumerate(spread):
            between[numbers.data.data.index(str(axis))] = step - 1
        none = [0] * (rank + 2)
        x = padded(node, x, zero, none, none, between)
    if any(each < 0 for pair in padding for each in pair):
        low, high = [0] * (rank + 2), [0] * (rank + 2)
        for axis, pair in enumerate(padding):
            at = numbers.data.data.index(str(axis))
            low[at], high[at] = (min(0, each) for each in pair)
        x = padded(node, x, node.constant(0, node.builder.dtype(x)), low, high, [0] * (rank + 2))
    before, after = ([max(0, pair[side]) for pair in padding] for side in range(2))
    # What the operator has no name for is transposed to its own layout.
    standard = _standard(rank)
    if not _is_known(layouts, rank):
        x = node.transposed(x, [layouts[0].index(each) for each in standard[0]])
        weight = node.transposed(weight, [layouts[1].index(each) for each in standard[1]])
        given = standard
    else:
        given = layouts[0], layouts[1]
    kernel = node.static(weight, "the kernel")
    found = node.call(
        f"nn.conv{rank}d", x, weight, strides=strides, padding=[*before, *after], dilation=dilation, groups=groups,
        channels=kernel[given[1].index("O")], kernel_size=[kernel[given[1].index(each)] for each in standard[0][2:]],
        data_layout=given[0], kernel_layout=given[1], **_out_dtype(node, x),
    )  # fmt: skip
    return node.transposed(found, [given[0].index(each) for each in layouts[2]])


def _standard(rank: int) -> tuple[str, str]:
    letters = "DHW"[3 - rank :]
    return f"NC{letters}", f"OI{letters}"


def _layout(axes: str, rank: int) -> str:
    """Returns a layout in Relay's letters: "NHWC" for "b01f", "HWIO" for "01io"."""
    letters = dict(zip("bfio012", "NCIO" + "DHW"[3 - rank :], strict=False))
    return "".join(letters[each] for each in axes)


def _is_known(layouts: Sequence[str], rank: int) -> bool:
    """Returns whether Relay's convolution takes the layouts as they are."""
    data, kernel = _standard(rank)
    letters = data[2:]
    return layouts[0] == layouts[2] and (layouts[0], layouts[1]) in (
        (data, kernel),
        (f"N{letters}C", f"{letters}IO"),
        (f"N{letters}C", f"O{letters}I"),
    )


def _transposed(
    node: HloNode, x: SSAValue, weight: SSAValue, layouts: Sequence[str], strides: Sequence[int], dilation: Sequence[int],
    spread: Sequence[int], padding: Sequence[tuple[int, int]], groups: int,
) -> SSAValue | None:  # fmt: skip
    """Converts a convolution of spread data to a transposed convolution; returns None where it is not one."""
    rank = len(spread)
    data, kernel = _standard(rank)
    sizes = node.static(weight, "the kernel")
    window = [sizes[layouts[1].index(each)] for each in data[2:]]
    more = [max(0, high - (size - 1)) for size, (_, high) in zip(window, padding, strict=True)]
    before = [size - 1 - low for size, (low, _) in zip(window, padding, strict=True)]
    after = [size - 1 - high + extra for size, (_, high), extra in zip(window, padding, more, strict=True)]
    fits = all(extra < step for extra, step in zip(more, spread, strict=True))
    if prod(strides) != 1 or prod(dilation) != 1 or groups != 1 or not fits or min([*before, *after]) < 0:
        return None
    x = node.transposed(x, [layouts[0].index(each) for each in data])
    weight = node.transposed(weight, [layouts[1].index(each) for each in f"IO{kernel[2:]}"])
    for axis in range(rank):
        weight = node.call("reverse", weight, axis=2 + axis)
    found = node.call(
        f"nn.conv{rank}d_transpose", x, weight, strides=list(spread), padding=[*before, *after], output_padding=more,
        channels=sizes[layouts[1].index("O")], kernel_size=window, **_out_dtype(node, x),
    )  # fmt: skip
    return node.transposed(found, [data.index(each) for each in layouts[2]])
