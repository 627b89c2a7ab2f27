"""Defines operators whose result's shape is the value of an argument; the type has only its rank.

dyn.reshape: data (2,3), newshape (2) -> (?,?)
dyn.full:    fill_value (), shape (3) -> (?,?,?)
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute

from .....support.text import counted
from ...operator import Attrs, AttrSpec, Compute, Extents, Meaning, OpPattern, Relation, attr, define
from ..common._lazy import np
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import ANY, axis_of, dtype_attr, rank_must_be, shape_of, show_argument, tensor_type
from ..common.sources import NUMPY, TVM, TVM_IMAGE, TVM_NN
from ..conv.convolution import SPATIAL
from ..elementwise.unary import convert
from ..image.resize import check_resize, check_upsampling, resize, resize_attributes, upsampling, upsampling_attributes
from ..indexing.gather import indices_must_be_integers
from ..indexing.scatter import index_vectors_must_fit, sparse_to_dense
from ..sorting.sort import TOPK, topk, topk_type
from . import dyn_extents as extents
from . import te_dyn as computes
from .reshape import new_shape
from .strided_slice import SLICE, check_axes, numpy_slice


def length_of(rel: Relation, index: int, why: str = "which is the result's rank") -> int:
    """Returns the length of argument `index`, a vector. Fails when it is unknown."""
    type = rank_must_be(rel, index, 1)
    indices_must_be_integers(rel, index)
    count = shape_of(type)[0]
    if count == ANY:
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, index)} must have a known length, {why}",
            argument=index,
        )
    return count


def unknown(rank: int, element: Attribute) -> Attribute:
    """Returns the type of a tensor of which the rank is known."""
    return tensor_type([ANY] * rank, element)


def _register(
    name: str,
    arguments: tuple[str, ...],
    relation: Callable[[Relation], None],
    numpy: Meaning,
    compute: Compute,
    shapes: Extents,
    doc: str,
    *attributes: AttrSpec,
    source: str,
) -> None:
    define(
        name, arguments, relation, OpPattern.OPAQUE, numpy=numpy, compute=compute, extents=shapes,
        attributes=attributes, doc=doc, source=source,
    )  # fmt: skip


def _of_rank(shape: int, data: int = 0) -> Callable[[Relation], None]:
    """Returns the relation of a result whose rank is the length of argument `shape`, of `data`'s dtype."""

    def relation(rel: Relation) -> None:
        element = rel.tensor(data).element_type
        rel.set_result(unknown(length_of(rel, shape), element))

    return relation


_register(
    "dyn.reshape", ("data", "newshape"), _of_rank(1),
    lambda attrs, x, s: x.reshape(new_shape(x.shape, s.tolist(), attrs.allowzero)),
    computes.reshaped, extents.reshaped,
    "`reshape` to a shape that is computed.",
    attr("newshape", None, "ints", printed=True), attr("allowzero", False),
    source=TVM.format("reshape"),
)  # fmt: skip


def _broadcast_to_relation(rel: Relation) -> None:
    data, rank = rel.tensor(0), length_of(rel, 1)
    if data.get_num_dims() > rank:
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} has rank {data.get_num_dims()}, but the new shape has {counted(rank, 'dimension')}",
            argument=1,
        )
    rel.set_result(unknown(rank, data.element_type))


_register(
    "dyn.broadcast_to", ("data", "shape"), _broadcast_to_relation,
    lambda attrs, x, s: np.broadcast_to(x, s.tolist()).copy(),
    computes.stretched, extents.stretched,
    "`broadcast_to` a shape that is computed.",
    attr("shape", None, "ints", printed=True), attr("dtype", None, "str"),
    source=NUMPY.format("broadcast_to"),
)  # fmt: skip

_register(
    "dyn.topk", ("data", "k"), lambda rel: (rel.tensor(1), topk_type(rel, None))[1],
    lambda attrs, x, k: topk(attrs, x, int(k.reshape(-1)[0])),
    computes.largest, extents.largest,
    "`topk` of a number of elements that is computed.",
    *TOPK,
    source=TVM.format("topk"),
)  # fmt: skip


def _tile_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    rel.set_result(unknown(max(data.get_num_dims(), length_of(rel, 1)), data.element_type))


def _tiled(x: Array, reps: list[int]) -> Array:
    rank = max(x.ndim, len(reps))
    shape = [*[1] * (rank - x.ndim), *x.shape]
    times = [*[1] * (rank - len(reps)), *reps]
    for axis, (size, count) in enumerate(zip(shape, times, strict=True)):
        if size * count < 0:
            raise ValueError(f"dimension {axis} of the result would be {size * count}")
    # Of a dimension without elements any number of copies has none.
    return np.tile(x, [max(count, 0) for count in times])


_register(
    "dyn.tile", ("data", "reps"), _tile_relation,
    lambda attrs, x, reps: _tiled(x, reps.tolist()),
    computes.tiled, extents.tiled,
    "`tile` by numbers that are computed.",
    attr("reps", None, "ints", printed=True),
    source=NUMPY.format("tile"),
)  # fmt: skip


def _filled_relation(rel: Relation) -> None:
    rel.set_result(unknown(length_of(rel, 0), dtype_attr(rel, "dtype", "float32")))


for _name, _value in (("zeros", 0), ("ones", 1)):
    _register(
        f"dyn.{_name}", ("shape",), _filled_relation,
        lambda attrs, s, value=_value: np.full(s.tolist(), value, numpy_type(attrs.dtype or "float32")),
        lambda attrs, xs, out, value=_value: computes.filled(value, attrs, out), extents.of_argument(0),
        f"`{_name}` of a shape that is computed.",
        attr("shape", None, "ints", printed=True), attr("dtype", None, "str"),
        source=NUMPY.format(_name),
    )  # fmt: skip


def _full_relation(rel: Relation) -> None:
    value = rank_must_be(rel, 0, 0)
    rel.set_result(unknown(length_of(rel, 1), dtype_attr(rel, "dtype", value.element_type)))


_register(
    "dyn.full", ("fill_value", "shape"), _full_relation,
    lambda attrs, v, s: np.full(s.tolist(), convert(v, attrs.dtype or v.dtype.name)),
    computes.full, extents.of_argument(1),
    "`full` of a shape that is computed.",
    attr("shape", None, "ints", printed=True), attr("dtype", None, "str"),
    source=NUMPY.format("full"),
)  # fmt: skip


def _one_hot_relation(rel: Relation) -> None:
    indices = rel.tensor(0)
    indices_must_be_integers(rel, 0)
    shape = list(shape_of(indices))
    axis = len(shape) if rel.attrs.axis == -1 else axis_of(rel, rel.attrs.axis, len(shape) + 1, what="the result")
    shape.insert(axis, ANY)
    rel.set_result(tensor_type(shape, dtype_attr(rel, "dtype", rel.tensor(1).element_type)))


def _one_hot(attrs: Attrs, indices: Array, on: Array, off: Array, depth: Array) -> Array:
    axis = indices.ndim if attrs.axis == -1 else attrs.axis
    places = np.arange(int(depth.reshape(-1)[0])).reshape([-1 if a == axis else 1 for a in range(indices.ndim + 1)])
    return convert(np.where(np.expand_dims(indices, axis) == places, on, off), attrs.dtype or on.dtype.name)


_register(
    "dyn.one_hot", ("indices", "on_value", "off_value", "depth"), _one_hot_relation, _one_hot,
    computes.one_hot, extents.one_hot,
    "`one_hot` of a depth that is computed.",
    attr("depth", 1, printed=True), attr("axis", -1), attr("dtype", None, "str"),
    source=TVM.format("one_hot"),
)  # fmt: skip


def _squeeze_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    rank = data.get_num_dims() - length_of(rel, 1)
    if rank < 0:
        raise rel.fail(
            f"dyn.squeeze: {show_argument(rel, 0)} has fewer axes than {show_argument(rel, 1)} names", argument=1
        )
    rel.set_result(unknown(rank, data.element_type))


_register(
    "dyn.squeeze", ("data", "axis"), _squeeze_relation,
    lambda attrs, x, axis: np.squeeze(x, tuple(axis.tolist())),
    computes.reshaped, extents.squeezed,
    "`squeeze` of axes that are computed.",
    attr("axis", None, "ints", printed=True),
    source=NUMPY.format("squeeze"),
)  # fmt: skip


def _expand_dims_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    rel.tensor(1)
    rel.set_result(unknown(data.get_num_dims() + rel.attrs.num_newaxis, data.element_type))


def _expand_dims(attrs: Attrs, x: Array, axis: Array) -> Array:
    place = int(axis.reshape(-1)[0]) % (x.ndim + 1)
    return x.reshape(*x.shape[:place], *[1] * attrs.num_newaxis, *x.shape[place:])


_register(
    "dyn.expand_dims", ("data", "axis"), _expand_dims_relation, _expand_dims,
    computes.reshaped, extents.expanded,
    "`expand_dims` at an axis that is computed.",
    attr("num_newaxis", 1), attr("axis", None, "int"),
    source=NUMPY.format("expand_dims"),
)  # fmt: skip


def _slice_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    check_axes(rel, data.get_num_dims())
    count = data.get_num_dims() if rel.attrs.axes is None else len(rel.attrs.axes)
    for index in (1, 2, 3):
        if length_of(rel, index, "which says how many axes are sliced") > count and index < 3:
            raise rel.fail(
                f"{rel.operator.name}: {show_argument(rel, index)} has more entries than the {count} axes sliced",
                argument=index,
            )
    rel.set_result(unknown(data.get_num_dims(), data.element_type))


def _strided_slice(attrs: Attrs, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    # Strides that are missing are 1, be there one for the first axis only.
    steps = [*strides.tolist(), *[1] * x.ndim]
    given = {"begin": begin.tolist(), "end": end.tolist(), "strides": steps}
    return np.asarray(x[numpy_slice(Attrs({**attrs, **given}), x.shape)], order="C")


_register(
    "dyn.strided_slice", ("data", "begin", "end", "strides"), _slice_relation, _strided_slice,
    computes.strided_slice, extents.sliced,
    "`strided_slice` by numbers that are computed.",
    *(attr(s.name, None, "ints") if s.name in ("begin", "end") else s for s in SLICE),
    source=TVM.format("strided_slice"),
)  # fmt: skip


def _pad_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    widths = rank_must_be(rel, 1, 2)
    rel.set_argument(1, tensor_type([data.get_num_dims(), 2], widths.element_type))
    rank_must_be(rel, 2, 0)
    if rel.attrs.pad_mode not in ("constant", "edge", "reflect"):
        raise rel.fail(f"dyn.nn.pad: pad_mode={rel.attrs.pad_mode!r} must be one of constant, edge, reflect")
    rel.set_result(unknown(data.get_num_dims(), data.element_type))


def _pad(attrs: Attrs, x: Array, widths: Array, value: Array) -> Array:
    if attrs.pad_mode == "constant":
        return np.pad(x, widths.tolist(), constant_values=value.astype(x.dtype).item())
    return np.pad(x, widths.tolist(), mode=attrs.pad_mode)


_register(
    "dyn.nn.pad", ("data", "pad_width", "pad_value"), _pad_relation, _pad,
    computes.padded, extents.padded,
    "`nn.pad` by widths that are computed.",
    attr("pad_mode", "constant"),
    source=TVM_NN.format("pad"),
)  # fmt: skip


def _resize_relation(rel: Relation) -> None:
    of = checked_layout(rel, "layout", "NCHW")
    check_resize(rel)
    rel.set_argument(1, tensor_type([2], rank_must_be(rel, 1, 1).element_type))
    rel.tensor(2)
    sizes = logical_sizes(rel, 0, of) | {"H": ANY, "W": ANY}
    rel.set_result(laid_out(rel, sizes, of, dtype_attr(rel, "out_dtype", rel.tensor(0).element_type)))


def _resize2d(attrs: Attrs, x: Array, size: Array, roi: Array) -> Array:
    of = layout(attrs.layout)
    result = resize(of.to_logical(x, "NCHW"), [int(s) for s in size], attrs, roi.tolist())
    return of.from_logical(convert(result, attrs.out_dtype or x.dtype.name), "NCHW")


_register(
    "dyn.image.resize2d", ("data", "size", "roi"), _resize_relation, _resize2d,
    computes.resized, extents.resized,
    "`image.resize2d` to a size that is computed.",
    attr("size", None, "ints", printed=True), *resize_attributes(2),
    source=TVM_IMAGE.format("resize2d"),
)  # fmt: skip


def _upsampling_relation(rank: int) -> Callable[[Relation], None]:
    axes = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        of = checked_layout(rel, "layout", "NC" + axes)
        check_upsampling(rel)
        for scale in range(1, 1 + rank):
            rank_must_be(rel, scale, 0)
        sizes = logical_sizes(rel, 0, of) | dict.fromkeys(axes, ANY)
        rel.set_result(laid_out(rel, sizes, of, rel.tensor(0).element_type))

    return relation


def _upsampling(attrs: Attrs, x: Array, *scales: Array) -> Array:
    for axis, scale in zip(SPATIAL[len(scales)], scales, strict=True):
        if not scale > 0:
            raise ValueError(f"scale_{axis.lower()} must be positive")
    return upsampling(attrs, x, [float(scale.item()) for scale in scales])


def _register_upsampling(name: str, rank: int, *, source: str) -> None:
    _register(
        name, ("data", *(f"scale_{axis.lower()}" for axis in SPATIAL[rank])), _upsampling_relation(rank),
        _upsampling,
        computes.upsampled(rank), extents.upsampled(SPATIAL[rank]),
        f"`{name.removeprefix('dyn.')}` by factors that are computed.",
        *upsampling_attributes(rank), source=source,
    )  # fmt: skip


_register_upsampling("dyn.nn.upsampling", 2, source=TVM_NN.format("upsampling"))
_register_upsampling("dyn.nn.upsampling3d", 3, source=TVM_NN.format("upsampling3d"))


def _sparse_relation(rel: Relation) -> None:
    indices_must_be_integers(rel, 0)
    rank_must_be(rel, 2, 0)
    rank = length_of(rel, 3)
    index_vectors_must_fit(rel, rank)
    rel.set_result(unknown(rank, rel.tensor(1).element_type))


def _sparse_to_dense(attrs: Attrs, indices: Array, values: Array, default: Array, shape: Array) -> Array:
    return sparse_to_dense(shape.tolist(), indices, values, default)


_register(
    "dyn.sparse_to_dense", ("sparse_indices", "sparse_values", "default_value", "output_shape"), _sparse_relation,
    _sparse_to_dense,
    computes.sparse_to_dense, extents.scattered,
    "`sparse_to_dense` of a shape that is computed.",
    source=TVM.format("sparse_to_dense"),
)  # fmt: skip
