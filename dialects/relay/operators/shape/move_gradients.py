"""Defines the gradients of operators that move elements: slices, padding, sorting, scatters.

The operator itself moves the numbers of the elements as it moves the elements: each moved number is the element that a
gradient is added to. The number 0 is for elements from elsewhere, such as padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...gradient import Backward, Gradient, Term, gradient
from ...operator import AttrValue


def _places(x: Term) -> Term:
    """Returns the numbers of x's elements, from 1, in its shape."""
    flat = x.ones.of("reshape", newshape=[-1]).of("cast", dtype="int64")
    return flat.of("cumsum", axis=0).of("reshape_like", x)


def _sent_back(places: Term, g: Term, x: Term) -> Term:
    """Returns the sums of the gradients that belong to each place of x."""
    room = [x.number(0).of("expand_dims", axis=0), x.zeros.of("reshape", newshape=[-1])]
    every = Term(g.emitter, g.emitter.tuple([part.value for part in room])).of("concatenate", axis=0)
    rows, shares = places.of("reshape", newshape=[1, -1]), g.of("reshape", newshape=[-1])
    sums = every.of("scatter_nd", rows, shares.of("cast_like", x), mode="add")
    return sums.of("strided_slice", begin=[1], end=[2**31 - 1]).of("reshape_like", x)


def _moved(use: Backward, sources: Sequence[int], **changed: AttrValue) -> list[Term]:
    """Returns the gradients of the arguments `sources`, whose elements are moved; the others say where to."""
    no_places = {k: use.args[k].zeros.of("cast", dtype="int64") for k in sources}
    results: list[Term] = []
    for number, arg in enumerate(use.args):
        if number in sources:
            args = [_places(arg) if k == number else no_places.get(k, other) for k, other in enumerate(use.args)]
            results.append(_sent_back(use.again(args, **changed), use.gradient, arg))
        else:
            results.append(arg.zeros)
    return results


def _moves(*sources: int, **changed: AttrValue) -> Gradient:
    return lambda use: _moved(use, sources, **changed)


gradient(
    "dyn.strided_slice", "dyn.tile", "gather", "gather_nd", "layout_transform", "nn.batch_to_space_nd",
    "nn.depth_to_space", "nn.mirror_pad", "nn.space_to_depth", "repeat", "reverse", "reverse_sequence", "slice_like",
    "sliding_window", "strided_slice", "take", "tile", "trilu", "vision.yolo_reorg",
)(_moves(0))  # fmt: skip
gradient("dyn.nn.pad")(_moves(0, 2))
gradient("matrix_set_diag")(_moves(0, 1))
gradient("nn.dilate")(_moves(0, dilation_value=0.0))
gradient("nn.fifo_buffer")(_moves(0, 1))
gradient("nn.pad")(_moves(0, 1))
gradient("nn.space_to_batch_nd")(_moves(0, pad_value=0.0))
gradient("sequence_mask")(_moves(0, mask_value=0.0))
gradient("sparse_to_dense")(_moves(1, 2))
gradient("dyn.sparse_to_dense")(_moves(1, 2))
gradient("strided_set")(_moves(0, 1))


@gradient("nn.upsampling", "nn.upsampling3d", "dyn.nn.upsampling", "dyn.nn.upsampling3d")
def _upsampling(use: Backward) -> Sequence[Term]:
    if use.attrs.method != "nearest_neighbor":
        raise use.refuse(f"the method must be nearest_neighbor, not {use.attrs.method}")
    return _moved(use, [0])


@gradient("adv_index")
def _adv_index(use: Backward) -> Sequence[Term]:
    (given,) = use.args
    data, *indices = (given.field(k) for k in range(len(given.fields)))
    places = use.again([use.tuple([_places(data), *indices])])
    return [use.tuple([_sent_back(places, use.gradient, data), *(index.zeros for index in indices)])]


@gradient("sort")
def _sort(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    order = x.of("argsort", dtype="int64", **use.op.given())
    return [_sent_back(_places(x).of("gather", order, axis=use.attrs.axis), use.gradient, x)]


@gradient("topk", "dyn.topk")
def _topk(use: Backward) -> Sequence[Term]:
    x, *count = use.args
    rest = [arg.zeros for arg in count]
    if use.attrs.ret_type == "indices":
        return [x.zeros, *rest]
    order = use.again(use.args, ret_type="indices", dtype="int64")
    g = use.gradient.field(0) if use.attrs.ret_type == "both" else use.gradient
    return [_sent_back(_places(x).of("gather", order, axis=use.attrs.axis), g, x), *rest]


@gradient("one_hot", "dyn.one_hot")
def _one_hot(use: Backward) -> Sequence[Term]:
    """Sums the gradient to the on-value where the index is, to the off-value elsewhere."""
    indices, on, off, *rest = use.args
    g = use.gradient
    hot = use.again([indices, g.number(1), g.number(0), *rest], dtype=g.dtype)
    shares = (g * hot).of("sum"), (g * (hot.ones - hot)).of("sum")
    return [
        indices.zeros,
        *(share.of("cast_like", value) for share, value in zip(shares, (on, off), strict=True)),
        *(arg.zeros for arg in rest),
    ]


def _written(use: Backward, mode: str, gathered: Term) -> Sequence[Term]:
    """Differentiates operators that add updates to elements, or write updates in their place."""
    _, indices, _ = use.args
    if mode == "add":
        return [use.gradient, indices.zeros, gathered]
    if mode != "update":
        raise use.refuse(f"the elements must be added or written, not combined by {mode}")
    return _moved(use, [0, 2])


@gradient("scatter_nd")
def _scatter_nd(use: Backward) -> Sequence[Term]:
    _, indices, updates = use.args
    return _written(use, use.attrs.mode, use.gradient.of("gather_nd", indices).of("reshape_like", updates))


@gradient("scatter_elements")
def _scatter_elements(use: Backward) -> Sequence[Term]:
    _, indices, _ = use.args
    axis: Any = use.attrs.axis
    return _written(use, use.attrs.reduction, use.gradient.of("gather", indices, axis=axis))
