"""Defines operators that TVM's virtual machine compiler inserts: shapes of run time, reshaped views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import ANY, dtype_attr, rank_must_be, same_dim, shape_of, show_argument, size_of, tensor_type
from ..common.result_sizes import ResultShapes, number, result_shape
from ..common.sources import TVM_DIALECT
from ..common.te_computes import compute_of
from ..shape.reshape import te_reshape

if TYPE_CHECKING:
    from ....te.builder import Tensor


def _shape_relation(rel: Relation) -> None:
    rel.set_result(tensor_type([rel.tensor(0).get_num_dims()], dtype_attr(rel, "dtype", "int32")))


define(
    "vm.shape_of", ("tensor",), _shape_relation, OpPattern.OPAQUE,
    numpy=lambda attrs, x: np.array(x.shape, numpy_type(attrs.dtype or "int32")),
    compute=lambda attrs, xs, out: compute_of("shape_of")(attrs, xs, out),
    attributes=(attr("dtype", None, "str"),),
    doc="The dimensions of a tensor, as a tensor.",
    source=TVM_DIALECT.format("virtual_machine"),
)  # fmt: skip


def _reshape_relation(rel: Relation) -> None:
    data, shape = rel.tensor(0), rank_must_be(rel, 1, 1)
    wanted: tuple[int, ...] = tuple(ANY if dim < 0 else dim for dim in rel.attrs.newshape)
    if not same_dim(shape_of(shape)[0], len(wanted)):
        raise rel.fail(
            f"vm.reshape_tensor: {show_argument(rel, 1)} must have a number for each of the {len(wanted)} dimensions of newshape",
            argument=1,
        )
    if not same_dim(size_of(shape_of(data)), size_of(wanted)):
        raise rel.fail(
            f"vm.reshape_tensor: {show_argument(rel, 0)} has {size_of(shape_of(data))} elements,"
            f" newshape={list(wanted)} has {size_of(wanted)}",
            argument=0,
        )
    rel.set_result(tensor_type(wanted, data.element_type))


def _reshape(attrs: Attrs, x: Array, shape: Array) -> Array:
    return x.reshape([int(dim) for dim in shape])


def _te_reshape(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
    return [te_reshape(xs[0], result_shape(out))]


def _extents(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> ResultShapes:
    return ResultShapes([[dim if dim >= 0 else number(xs[1], axis) for axis, dim in enumerate(attrs.newshape)]])


define(
    "vm.reshape_tensor", ("data", "shape"), _reshape_relation, OpPattern.OPAQUE,
    numpy=_reshape,
    compute=_te_reshape, extents=_extents,
    attributes=(attr("newshape", kind="ints"),),
    doc="The elements of a tensor in their order, in another shape.",
    source=TVM_DIALECT.format("virtual_machine"),
)  # fmt: skip
