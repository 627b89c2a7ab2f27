"""Defines operators that move elements: transpose, concatenate, split, tile, broadcast_to, …

transpose:   data (2,3,4), axes=[0,2,1] -> (2,4,3)
concatenate: (data (2,3), data (2,5)), axis=1 -> (2,8)
stack:       (data (2,3), data (2,3)), axis=1 -> (2,2,3)
split:       data (2,6), indices_or_sections=[1,3], axis=1 -> ((2,1), (2,2), (2,3))
tile:        data (2,3), reps=[2,2] -> (4,6)
collapse_sum_like: data (2,3,4), collapse_type (3,1) -> (3,1)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from ...operator import Attrs, OpPattern, Relation, attr, define
from ...text import type_text
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, numpy_type, widened
from ..common.relations import (
    ANY,
    add_dims,
    axes_of,
    axis_of,
    broadcast_shapes,
    dtype_attr,
    is_multiple,
    known_dim,
    multiply_dims,
    same_dim,
    shape_of,
    show_argument,
    size_of,
    tensor_type,
    tuple_type,
)
from ..common.result_sizes import Requirement, ResultShapes, stretches_to
from ..common.sources import NUMPY, TVM
from ..common.te_computes import broadcast_index, constant, elementwise, in_dtype, is_one, unflatten, wide_dtype
from .create import SHAPE_AND_DTYPE, check_shape

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def _order(attrs: Attrs, rank: int) -> list[int]:
    return list(range(rank))[::-1] if attrs.axes is None else [a % rank for a in attrs.axes]


def _transpose_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    shape = shape_of(data)
    if rel.attrs.axes is not None:
        axes_of(rel, rel.attrs.axes, len(shape), "axes")
        if len(rel.attrs.axes) != len(shape):
            raise rel.fail(
                f"transpose: axes={list(rel.attrs.axes)} must name each axis of {show_argument(rel, 0)} once"
            )
    rel.set_result(tensor_type([shape[a] for a in _order(rel.attrs, len(shape))], data.element_type))


def _te_transpose(attrs: Attrs, x: Tensor) -> Tensor:
    order = _order(attrs, len(x.shape))
    place = {axis: position for position, axis in enumerate(order)}
    return te.compute(
        [x.shape[a] for a in order], lambda *i: x(*(i[place[a]] for a in range(len(order)))), name="T_transpose"
    )


define(
    "transpose", ("data",), _transpose_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: np.ascontiguousarray(x.transpose(_order(attrs, x.ndim))).reshape([x.shape[a] for a in _order(attrs, x.ndim)]),
    compute=lambda attrs, xs, out: [_te_transpose(attrs, xs[0])],
    attributes=(attr("axes", None, "ints", printed=True),),
    doc="The axes in the order `axes`; reversed when that is None.",
    source=NUMPY.format("transpose"),
)  # fmt: skip


def _same_ranks(rel: Relation) -> tuple[Sequence[TensorType[Attribute]], int]:
    """Returns the types of the tuple argument's fields, and their rank.

    Fails unless all have one rank and one dtype.
    """
    fields = rel.tensors(0)
    if not fields:
        raise rel.fail(f"{rel.operator.name}: the tuple of tensors is empty", argument=0)
    first = fields[0]
    for number, field in enumerate(fields):
        if field.get_num_dims() != first.get_num_dims() or field.element_type != first.element_type:
            raise rel.fail(
                f"{rel.operator.name}: field {number} ({type_text(field)}) must have the rank and dtype of field 0 ({type_text(first)})",
                argument=0,
            )
    return fields, first.get_num_dims()


def _joined_dims(rel: Relation, fields: Sequence[TensorType[Attribute]], skipped: int | None) -> list[int]:
    """Returns the dimensions that all fields share. Fails where they differ, except on axis `skipped`."""
    result = list(shape_of(fields[0]))
    for number, field in enumerate(fields):
        for axis, dim in enumerate(shape_of(field)):
            if axis == skipped:
                continue
            if not same_dim(result[axis], dim):
                raise rel.fail(
                    f"{rel.operator.name}: field {number} ({type_text(field)}) differs from field 0 ({type_text(fields[0])}) in"
                    f" dimension {axis}: {dim} against {result[axis]}",
                    argument=0,
                )
            result[axis] = known_dim(result[axis], dim)
    return result


def concatenate_relation(rel: Relation) -> None:
    """Types the concatenation of the fields of the first argument, a tuple, along `axis`."""
    fields, rank = _same_ranks(rel)
    axis = axis_of(rel, rel.attrs.axis, rank, what="each field")
    dims = _joined_dims(rel, fields, axis)
    dims[axis] = add_dims(*(shape_of(f)[axis] for f in fields))
    rel.set_result(tensor_type(dims, fields[0].element_type))


def _te_concatenate(attrs: Attrs, xs: Sequence[Tensor]) -> Tensor:
    axis: int = attrs.axis % len(xs[0].shape)
    starts: list[Any] = [0]
    for x in xs:
        starts.append(starts[-1] + x.shape[axis])

    def body(*i: Expr) -> Any:
        result: Any = None
        for x, start in zip(xs, starts, strict=False):
            element = x(*i[:axis], i[axis] - start, *i[axis + 1 :])
            result = element if result is None else te.if_then_else(i[axis] >= start, element, result)
        return result

    shape = [starts[-1] if a == axis else d for a, d in enumerate(xs[0].shape)]
    return te.compute(shape, body, name="T_concat")


define(
    "concatenate", ("*data",), concatenate_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, xs: np.concatenate(xs, axis=attrs.axis),
    compute=lambda attrs, xs, out: [_te_concatenate(attrs, xs)],
    attributes=(attr("axis", 0),),
    doc="The tensors of a tuple one after the other along `axis`.",
    source=NUMPY.format("concatenate"),
)  # fmt: skip


def _stack_relation(rel: Relation) -> None:
    fields, rank = _same_ranks(rel)
    axis = axis_of(rel, rel.attrs.axis, rank + 1, what="the result")
    dims = _joined_dims(rel, fields, None)
    rel.set_result(tensor_type([*dims[:axis], len(fields), *dims[axis:]], fields[0].element_type))


MOST_IN_LANES = 4
"""The most tensors of which neighbouring lanes take alternate elements: vectors of all are read, without branches."""


def _te_stack(attrs: Attrs, xs: Sequence[Tensor]) -> Tensor:
    axis: int = attrs.axis % (len(xs[0].shape) + 1)

    def body(*i: Expr) -> Any:
        rest = (*i[:axis], *i[axis + 1 :])
        result: Any = xs[0](*rest)
        choose = te.Select if axis == len(i) - 1 and len(xs) <= MOST_IN_LANES else te.if_then_else
        for number, x in enumerate(xs[1:], 1):
            result = choose(i[axis] >= number, x(*rest), result)
        return result

    return te.compute([*xs[0].shape[:axis], len(xs), *xs[0].shape[axis:]], body, name="T_stack")


define(
    "stack", ("*data",), _stack_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, xs: np.stack(xs, axis=attrs.axis),
    compute=lambda attrs, xs, out: [_te_stack(attrs, xs)],
    attributes=(attr("axis", 0),),
    doc="The tensors of a tuple along a new axis.",
    source=NUMPY.format("stack"),
)  # fmt: skip


def sections(attrs: Attrs, size: int) -> list[tuple[int, int]]:
    """Returns begin and end of each part along the axis; for an unknown size ANY as the last end."""
    parts = attrs.indices_or_sections
    if isinstance(parts, int):
        if size == ANY:
            return [(ANY, ANY)] * parts
        return [(p * size // parts, (p + 1) * size // parts) for p in range(parts)]
    edges = [0, *parts, size]
    return list(itertools.pairwise(edges))


def _split_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    shape = list(shape_of(data))
    axis = axis_of(rel, rel.attrs.axis, len(shape))
    parts: Any = rel.attrs.indices_or_sections
    size = shape[axis]
    positions = list(cast("tuple[Any, ...]", parts)) if isinstance(parts, tuple) else None
    count = cast("Any", parts) if positions is None else 1
    if not all(isinstance(p, int) for p in (count, *(positions or ()))) or count < 1:
        raise rel.fail(f"split: indices_or_sections must be a number of parts or a list of positions, not {parts!r}")
    if not is_multiple(size, count):
        raise rel.fail(
            f"split: {show_argument(rel, 0)} has {size} elements along axis {axis}, not a multiple of {count}"
        )
    edges = [0, *positions, *([] if size == ANY else [size])] if positions is not None else []
    if any(low > high for low, high in itertools.pairwise(edges)):
        raise rel.fail(f"split: the positions {positions} must ascend from 0 to {size}, the size of axis {axis}")
    fields: list[Attribute] = []
    for low, high in sections(rel.attrs, size):
        shape[axis] = ANY if ANY in (low, high) else high - low
        fields.append(tensor_type(shape, data.element_type))
    rel.set_result(tuple_type(fields))


def _te_split(attrs: Attrs, x: Tensor) -> list[Tensor]:
    axis: int = attrs.axis % len(x.shape)
    size: Any = x.shape[axis]
    parts: Any = attrs.indices_or_sections
    edges: list[Any]
    if isinstance(parts, int):
        edges = [
            p * size // parts if constant(size) is not None else te.floordiv(size * p, parts) for p in range(parts)
        ]
        edges.append(size)
    else:
        edges = [0, *parts, size]

    def part(number: int, low: Any, high: Any) -> Tensor:
        shape = [high - low if a == axis else d for a, d in enumerate(x.shape)]
        return te.compute(shape, lambda *i: x(*i[:axis], i[axis] + low, *i[axis + 1 :]), name=f"T_split_{number}")

    return [part(number, low, high) for number, (low, high) in enumerate(itertools.pairwise(edges))]


def _split_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    x, parts = xs[0], cast("int | tuple[int, ...]", attrs.indices_or_sections)
    axis: int = attrs.axis % len(x.shape)
    size: Any = x.shape[axis]
    if isinstance(parts, int):
        return ResultShapes([part.shape for part in _te_split(attrs, x)])
    message = f"the last position is {{size}}, but dimension {axis} of 'data' is {{size}}"
    needed = Requirement("within", max(parts, default=0), size, message)
    return ResultShapes([part.shape for part in _te_split(attrs, x)], [needed])


define(
    "split", ("data",), _split_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: tuple(
        np.ascontiguousarray(x[(slice(None),) * (attrs.axis % x.ndim) + (slice(low, high),)])
        for low, high in sections(attrs, x.shape[attrs.axis])
    ),
    compute=lambda attrs, xs, out: _te_split(attrs, xs[0]),
    extents=_split_extents,
    attributes=(attr("indices_or_sections", kind="any"), attr("axis", 0)),
    doc="A tuple of parts along `axis`: so many equal ones, or cut at the positions of a list.",
    source=NUMPY.format("split"),
)  # fmt: skip


def _tiled(shape: Sequence[Any], reps: Sequence[int]) -> tuple[list[Any], list[int]]:
    """Pads shape and repetitions with 1 in front to one length."""
    rank = max(len(shape), len(reps))
    return [1] * (rank - len(shape)) + list(shape), [1] * (rank - len(reps)) + list(reps)


def _tile_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    shape, reps = _tiled(shape_of(data), rel.attrs.reps)
    if any(r < 1 for r in reps):
        raise rel.fail(f"tile: reps={list(rel.attrs.reps)} must be positive")
    rel.set_result(tensor_type([multiply_dims(d, r) for d, r in zip(shape, reps, strict=True)], data.element_type))


def _te_tile(attrs: Attrs, x: Tensor) -> Tensor:
    shape, reps = _tiled(x.shape, attrs.reps)
    skipped = len(shape) - len(x.shape)
    return te.compute(
        [d * r for d, r in zip(shape, reps, strict=True)],
        lambda *i: x(
            *(e if r == 1 else _modulo(e, d) for e, d, r in zip(i[skipped:], x.shape, reps[skipped:], strict=True))
        ),
        name="T_tile",
    )


def _modulo(index: Any, dim: Any) -> Any:
    return 0 if is_one(dim) else te.floormod(index, dim)


define(
    "tile", ("data",), _tile_relation, OpPattern.BROADCAST,
    numpy=lambda attrs, x: np.tile(x, attrs.reps),
    compute=lambda attrs, xs, out: [_te_tile(attrs, xs[0])],
    attributes=(attr("reps", kind="ints"),),
    doc="The tensor repeated as a whole, reps[k] times along axis k.",
    source=NUMPY.format("tile"),
)  # fmt: skip


def _repeat_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    shape = list(shape_of(data))
    if rel.attrs.repeats < 1:
        raise rel.fail(f"repeat: repeats={rel.attrs.repeats} must be positive")
    if rel.attrs.axis is None:
        shape = [size_of(shape)]
    axis = axis_of(rel, rel.attrs.axis or 0, len(shape))
    shape[axis] = multiply_dims(shape[axis], rel.attrs.repeats)
    rel.set_result(tensor_type(shape, data.element_type))


def _te_repeat(attrs: Attrs, x: Tensor) -> Tensor:
    if attrs.axis is None:
        size: Any = 1
        for dim in x.shape:
            size = size * dim
        return te.compute(
            (size * attrs.repeats,),
            lambda *i: x(*unflatten(te.floordiv(i[0], attrs.repeats), x.shape)),
            name="T_repeat",
        )
    axis: int = attrs.axis % len(x.shape)
    shape = [d * attrs.repeats if a == axis else d for a, d in enumerate(x.shape)]
    return te.compute(
        shape, lambda *i: x(*i[:axis], te.floordiv(i[axis], attrs.repeats), *i[axis + 1 :]), name="T_repeat"
    )


define(
    "repeat", ("data",), _repeat_relation, OpPattern.BROADCAST,
    numpy=lambda attrs, x: np.repeat(x, attrs.repeats, attrs.axis),
    compute=lambda attrs, xs, out: [_te_repeat(attrs, xs[0])],
    attributes=(attr("repeats", kind="int"), attr("axis", None, "int")),
    doc="Each element `repeats` times in a row along `axis`; without an axis, of the flattened tensor.",
    source=NUMPY.format("repeat"),
)  # fmt: skip


def _reverse_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    axis_of(rel, rel.attrs.axis, data.get_num_dims())
    rel.set_result(data)


def _te_reverse(attrs: Attrs, x: Tensor) -> Tensor:
    axis: int = attrs.axis % len(x.shape)
    return te.compute(x.shape, lambda *i: x(*i[:axis], x.shape[axis] - 1 - i[axis], *i[axis + 1 :]), name="T_reverse")


define(
    "reverse", ("data",), _reverse_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: np.ascontiguousarray(np.flip(x, attrs.axis)),
    compute=lambda attrs, xs, out: [_te_reverse(attrs, xs[0])],
    attributes=(attr("axis", kind="int"),),
    doc="The elements in reverse order along `axis`.",
    source=NUMPY.format("flip"),
)  # fmt: skip


def _stretches(rel: Relation, shape: Sequence[int], target: Sequence[int], what: str) -> None:
    joined = broadcast_shapes(shape, target)
    if isinstance(joined, int) or not all(same_dim(a, b) for a, b in zip(joined, target, strict=False)):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)} does not stretch to {what}")


def _broadcast_to_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    target = check_shape(rel)
    _stretches(rel, shape_of(data), target, f"the shape {tuple(target)}")
    if len(target) < data.get_num_dims():
        raise rel.fail(f"broadcast_to: {show_argument(rel, 0)} has more dimensions than the shape {tuple(target)}")
    rel.set_result(tensor_type(target, data.element_type))


def _broadcast_to_like_relation(rel: Relation) -> None:
    data, like = rel.tensor(0), rel.tensor(1)
    what = f"the shape of {show_argument(rel, 1)}"
    if like.get_num_dims() < data.get_num_dims():
        raise rel.fail(f"broadcast_to_like: {show_argument(rel, 0)} has more dimensions than {what}")
    _stretches(rel, shape_of(data), shape_of(like), what)
    rel.set_result(like)


def te_stretch(x: Tensor, shape: Sequence[Any], name: str = "T_broadcast_to") -> Tensor:
    """Broadcasts `x` to a shape."""
    return te.compute(shape, lambda *i: broadcast_index(x, i, shape), name=name)


define(
    "broadcast_to", ("data",), _broadcast_to_relation, OpPattern.BROADCAST,
    numpy=lambda attrs, x: np.broadcast_to(x, attrs.shape).copy(),
    compute=lambda attrs, xs, out: [te_stretch(xs[0], attrs.shape)],
    extents=lambda attrs, xs, out: ResultShapes([attrs.shape], stretches_to(xs[0], attrs.shape)),
    attributes=SHAPE_AND_DTYPE,
    doc="The tensor stretched to `shape`.",
    source=NUMPY.format("broadcast_to"),
)  # fmt: skip

define(
    "broadcast_to_like", ("data", "broadcast_type"), _broadcast_to_like_relation, OpPattern.BROADCAST,
    numpy=lambda attrs, x, like: np.broadcast_to(x, like.shape).astype(like.dtype),
    compute=lambda attrs, xs, out: [in_dtype(te_stretch(xs[0], xs[1].shape), xs[1].dtype)],
    extents=lambda attrs, xs, out: ResultShapes([xs[1].shape], stretches_to(xs[0], xs[1].shape)),
    doc="The first tensor stretched to the shape of the second, and cast to its type.",
    source=TVM.format("broadcast_to_like"),
)  # fmt: skip


def _collapse(x: Array, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Sums `x` over the axes along which a tensor of `shape` would be broadcast to it.

    Half precision is summed in float32.
    """
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(extra + a for a, d in enumerate(shape) if d == 1 and x.shape[extra + a] != 1))
    if not axes:
        return x.astype(dtype)
    wide = widened(x)
    return np.sum(wide, axis=axes, dtype=wide.dtype).reshape(shape).astype(x.dtype).astype(dtype)


def _te_collapse(x: Tensor, shape: Sequence[Any]) -> Tensor:
    """Sums `x` over the axes along which a tensor of `shape` would be broadcast to it.

    Half precision is summed in float32. An axis that is known only in the call to be summed has as many terms as `x` has
    elements there, or one.
    """
    extra = len(x.shape) - len(shape)
    extents: dict[int, Any] = dict(enumerate(x.shape[:extra]))
    open_axes: list[Any] = []
    for axis, (own, target) in enumerate(zip(x.shape[extra:], shape, strict=True), extra):
        if is_one(target) and not is_one(own):
            extents[axis] = own
        elif constant(target) is None and target is not own and not is_one(own):
            summed = te.equal(target, 1)
            extents[axis] = te.Select(summed, own, 1)
            open_axes.append(te.any(te.not_equal(target, 1), te.equal(own, 1)))
    if not extents:
        return elementwise(lambda e: e, x, "T_collapse_sum")
    wide = wide_dtype(x.dtype)
    terms = {axis: te.reduce_axis((0, extent), name=f"k{axis}") for axis, extent in extents.items()}

    def body(*i: Expr) -> Any:
        index = [
            *(terms[a] for a in range(extra)),
            *(k + terms[a] if a in terms else k for a, k in enumerate(i, extra)),
        ]
        return te.sum(x(*index).astype(wide), axis=list(terms.values()))

    sums = in_dtype(te.compute(shape, body, name="T_collapse_sum"), x.dtype)
    if len(open_axes) < len(extents):
        return sums
    # Nothing may be summed: elements arrive as they were, -0 included.
    return te.compute(shape, lambda *i: te.Select(te.all(*open_axes), x(*i), sums(*i)), name="T_collapse")


def _collapse_to_relation(rel: Relation) -> None:
    data, target = rel.tensor(0), check_shape(rel)
    rel.tensor(1)
    _collapses(rel, shape_of(data), target)
    rel.set_result(tensor_type(target, dtype_attr(rel, "dtype", data.element_type)))


def _collapses(rel: Relation, shape: Sequence[int], target: Sequence[int]) -> None:
    joined = broadcast_shapes(target, shape)
    if isinstance(joined, int) or len(joined) != len(shape) or not all(map(same_dim, joined, shape)):
        raise rel.fail(
            f"{rel.operator.name}: a tensor of shape {tuple(target)} does not stretch to {show_argument(rel, 0)}"
        )


def _collapse_like_relation(rel: Relation) -> None:
    data, like = rel.tensor(0), rel.tensor(1)
    _collapses(rel, shape_of(data), shape_of(like))
    rel.set_result(like)


define(
    "collapse_sum_to", ("data", "shape"), _collapse_to_relation, OpPattern.COMM_REDUCE,
    numpy=lambda attrs, x, shape: _collapse(x, attrs.shape, numpy_type(attrs.dtype) if attrs.dtype else x.dtype),
    compute=lambda attrs, xs, out: [in_dtype(_te_collapse(xs[0], attrs.shape), attrs.dtype or xs[0].dtype)],
    attributes=SHAPE_AND_DTYPE,
    doc="The tensor summed down to the attribute `shape`, which the second argument repeats; the reverse of stretching it.",
    source=TVM.format("collapse_sum_to"),
)  # fmt: skip

define(
    "collapse_sum_like", ("data", "collapse_type"), _collapse_like_relation, OpPattern.COMM_REDUCE,
    numpy=lambda attrs, x, like: _collapse(x, like.shape, like.dtype),
    compute=lambda attrs, xs, out: [in_dtype(_te_collapse(xs[0], xs[1].shape), xs[1].dtype)],
    extents=lambda attrs, xs, out: ResultShapes([xs[1].shape], stretches_to(xs[1], xs[0].shape, "collapse_type")),
    doc="The tensor summed down to the shape of the second, the reverse of stretching it from there, and cast to its type.",
    source=TVM.format("collapse_sum_like"),
)  # fmt: skip
