"""Defines sorting, searching, running sums, einsum and triangles of matrices.

topk:   data (4,9), k=3, ret_type="both" -> ((4,3), (4,3))
einsum: (data (2,3), data (3,4)), equation="ij,jk->ik" -> (2,4)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, arange_along, is_float, numpy_type, widened
from ..common.relations import (
    ANY,
    axis_of,
    dtype_attr,
    identity,
    known_dim,
    rank_at_least,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    size_of,
    tensor_type,
    tuple_type,
)
from ..common.result_sizes import Requirement, ResultShapes
from ..common.sources import NUMPY, ONNX, TVM
from ..common.te_computes import constant, in_dtype, signed_index, wide_dtype
from ..elementwise.unary import convert
from ..indexing.te_select import argwhere_extents, te_argwhere, te_unique, unique_extents
from . import te_sort as computes

if TYPE_CHECKING:
    from ....te.builder import Tensor


def _sort_relation(dtype: bool) -> Callable[[Relation], None]:
    def relation(rel: Relation) -> None:
        data = rel.tensor(0)
        axis_of(rel, rel.attrs.axis, data.get_num_dims())
        rel.set_result(tensor_type(shape_of(data), dtype_attr(rel, "dtype", "int32") if dtype else data.element_type))

    return relation


def order(x: Array, axis: int, ascending: bool) -> Array:
    """Returns the indices that sort x along an axis; equal elements keep their order."""
    if ascending:
        # Of bfloat16, numpy does not know that NaN comes last.
        return np.argsort(widened(x), axis, kind="stable")
    # Sorted in reverse and read backwards, equal elements keep their order, too.
    flipped = np.flip(np.argsort(np.flip(widened(x), axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - flipped


define(
    "sort", ("data",), _sort_relation(False), OpPattern.OPAQUE,
    numpy=lambda attrs, x: np.take_along_axis(x, order(x, attrs.axis, attrs.is_ascend), attrs.axis),
    compute=lambda attrs, xs, out: [computes.te_sort(attrs, xs[0])],
    attributes=(attr("axis", -1), attr("is_ascend", True)),
    doc="The elements in ascending or descending order along `axis`.",
    source=NUMPY.format("sort"),
)  # fmt: skip

define(
    "argsort", ("data",), _sort_relation(True), OpPattern.OPAQUE,
    numpy=lambda attrs, x: order(x, attrs.axis, attrs.is_ascend).astype(numpy_type(attrs.dtype or "int32")),
    compute=lambda attrs, xs, out: [computes.te_argsort(attrs, xs[0])],
    attributes=(attr("axis", -1), attr("is_ascend", True), attr("dtype", None, "str")),
    doc="The indices that sort the elements along `axis`; equal elements keep their order.",
    source=NUMPY.format("argsort"),
)  # fmt: skip


def topk_type(rel: Relation, count: int | None) -> None:
    """Sets the result of taking `count` elements along `axis` (all if below 1; None: number unknown)."""
    attrs, data = rel.attrs, rel.tensor(0)
    shape = list(shape_of(data))
    axis = axis_of(rel, attrs.axis, len(shape))
    if count is None:
        shape[axis] = ANY
    elif count > 0:
        shape[axis] = count if shape[axis] == ANY else min(count, shape[axis])
    values = tensor_type(shape, data.element_type)
    indices = tensor_type(shape, dtype_attr(rel, "dtype", "int32"))
    if attrs.ret_type not in ("both", "values", "indices"):
        raise rel.fail(f"{rel.operator.name}: ret_type={attrs.ret_type!r} must be both, values or indices")
    rel.set_result({"both": tuple_type([values, indices]), "values": values, "indices": indices}[attrs.ret_type])


def topk(attrs: Attrs, x: Array, count: int) -> Any:
    """Returns the first `count` elements in order along the axis, their indices, or both."""
    places = order(x, attrs.axis, attrs.is_ascend)
    if count > 0:
        places = np.take(places, np.arange(min(count, x.shape[attrs.axis])), attrs.axis)
    values, indices = np.take_along_axis(x, places, attrs.axis), places.astype(numpy_type(attrs.dtype or "int32"))
    return {"both": (values, indices), "values": values, "indices": indices}[attrs.ret_type]


def te_topk(attrs: Attrs, x: Tensor) -> list[Tensor]:
    """Computes `topk` of the attribute's number of elements, as many as there are at most."""
    count: int = 1 if attrs.k is None else attrs.k
    axis: int = attrs.axis
    known = constant(x.shape[axis])
    if count < 1:
        return computes.te_topk(attrs, x, None)
    return computes.te_topk(attrs, x, count if known is None else min(count, known))


def _topk_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    axis: int = attrs.axis
    size = xs[0].shape[axis]
    count = 1 if attrs.k is None else max(attrs.k, 0)
    message = f"k is {{size}}, but dimension {attrs.axis % xs[0].ndim} of 'data' is {{size}}"
    # For a known size the type relation has checked that there are no more.
    needed = [Requirement("within", count, size, message)] if constant(size) is None else []
    return ResultShapes([t.shape for t in te_topk(attrs, xs[0])], needed)


TOPK = (
    attr("k", None, "int", printed=True), attr("axis", -1), attr("ret_type", "both"), attr("is_ascend", False),
    attr("dtype", None, "str"),
)  # fmt: skip

define(
    "topk", ("data",), lambda rel: topk_type(rel, 1 if rel.attrs.k is None else rel.attrs.k), OpPattern.OPAQUE,
    numpy=lambda attrs, x: topk(attrs, x, 1 if attrs.k is None else attrs.k),
    compute=lambda attrs, xs, out: te_topk(attrs, xs[0]),
    extents=_topk_extents,
    attributes=TOPK,
    doc="The `k` largest (or smallest) elements along `axis` in order, with their indices; all for k below 1.",
    source=TVM.format("topk"),
)  # fmt: skip


def _scan_relation(rel: Relation) -> None:
    data, attrs = rel.tensor(0), rel.attrs
    shape = shape_of(data)
    if attrs.axis is None:
        shape = (size_of(shape),)
    else:
        axis_of(rel, attrs.axis, len(shape))
    rel.set_result(tensor_type(shape, dtype_attr(rel, "dtype", data.element_type)))


def _register_scan(name: str, is_sum: bool, doc: str, *, source: str) -> None:
    def meaning(attrs: Attrs, x: Array) -> Array:
        dtype = attrs.dtype or x.dtype.name
        x, axis = (x.reshape(-1), 0) if attrs.axis is None else (x, attrs.axis)
        result = (np.cumsum if is_sum else np.cumprod)(convert(x, dtype), axis, numpy_type(dtype))
        if attrs.exclusive:
            shifted = np.roll(result, 1, axis)
            first = arange_along(x.shape[axis], axis, x.ndim) == 0
            result = np.where(first, np.asarray(0 if is_sum else 1, dtype), shifted)
        return result

    define(
        name, ("data",), _scan_relation, OpPattern.OPAQUE,
        numpy=meaning,
        compute=lambda attrs, xs, out: [computes.te_running(attrs, xs[0], is_sum)],
        attributes=(attr("axis", None, "int"), attr("dtype", None, "str"), attr("exclusive", False)),
        doc=doc, source=source,
    )  # fmt: skip


# fmt: off
_register_scan("cumsum", True,
    "The running sum along `axis` (None: of the flattened tensor), with or without the element itself.", source=NUMPY.format("cumsum"))
_register_scan("cumprod", False,
    "The running product along `axis` (None: of the flattened tensor), with or without the element itself.", source=NUMPY.format("cumprod"))
# fmt: on


def _argwhere_relation(rel: Relation) -> None:
    rel.set_result(tensor_type([ANY, rel.tensor(0).get_num_dims()], "int32"))


define(
    "argwhere", ("condition",), _argwhere_relation, OpPattern.OPAQUE,
    numpy=lambda attrs, x: np.argwhere(x).astype(np.int32),
    compute=lambda attrs, xs, out: [te_argwhere(xs[0], out)],
    extents=lambda attrs, xs, out: argwhere_extents(xs[0]),
    doc="The index vectors of the elements that are true, in row-major order.",
    source=NUMPY.format("argwhere"),
)  # fmt: skip


def _searchsorted_relation(rel: Relation) -> None:
    a, b = shape_of(rel.tensor(0)), shape_of(rel.tensor(1))
    if len(a) > 1 and (len(a) != len(b) or not all(map(same_dim, a[:-1], b[:-1]))):
        raise rel.fail(
            f"searchsorted: {show_argument(rel, 0)} and {show_argument(rel, 1)} must have the same dimensions but the last",
            argument=1,
        )
    rel.set_result(tensor_type(b, dtype_attr(rel, "dtype", "int32")))


def _searchsorted(attrs: Attrs, rows: Array, values: Array) -> Array:
    # By ever smaller powers of two: the result in an unsorted row depends on the elements that are compared.
    size = rows.shape[-1]
    found = np.zeros(values.shape, np.int64)
    for step in reversed(range(size.bit_length())):
        reach = found + (1 << step)
        at = np.minimum(reach, size) - 1
        element = rows[at] if rows.ndim == 1 else np.take_along_axis(rows, at, -1)
        passed = ~_comes_first(values, element) if attrs.right else _comes_first(element, values)
        found = np.where((reach <= size) & passed, reach, found)
    return found.astype(numpy_type(attrs.dtype or "int32"))


def _comes_first(a: Array, b: Array) -> Array:
    """Returns whether a precedes b in ascending order, in which NaN is last."""
    return np.asarray((a < b) | ((b != b) & (a == a)))


define(
    "searchsorted", ("sorted_sequence", "values"), _searchsorted_relation, OpPattern.OPAQUE,
    numpy=_searchsorted,
    compute=lambda attrs, xs, out: [computes.te_searchsorted(attrs, *xs)],
    attributes=(attr("right", False), attr("dtype", None, "str")),
    doc="Where each value would be inserted into its sorted row: before equal elements, or with `right` after them.",
    source=NUMPY.format("searchsorted"),
)  # fmt: skip


def _unique_relation(rel: Relation) -> None:
    data = rank_must_be(rel, 0, 1)
    some = tensor_type([ANY], "int32")
    size = tensor_type(shape_of(data), "int32")
    counted = [some] if rel.attrs.return_counts else []
    rel.set_result(tuple_type([tensor_type([ANY], data.element_type), some, size, tensor_type([1], "int32"), *counted]))


def _unique(attrs: Attrs, x: Array) -> tuple[Array, ...]:
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    if not attrs.sorted:
        by_place = np.argsort(first, kind="stable")
        place_of = np.argsort(by_place, kind="stable")
        values, first, counts, inverse = values[by_place], first[by_place], counts[by_place], place_of[inverse]
    number = np.array([len(values)])
    parts = (first, inverse.reshape(-1), number, *([counts] if attrs.return_counts else []))
    return values, *(p.astype(np.int32) for p in parts)


define(
    "unique", ("data",), _unique_relation, OpPattern.OPAQUE,
    numpy=_unique,
    compute=lambda attrs, xs, out: te_unique(attrs, xs[0], out),
    extents=lambda attrs, xs, out: unique_extents(attrs, xs[0]),
    attributes=(attr("sorted", True), attr("return_counts", False)),
    doc="The distinct elements, where each is first, which of them each element is, how many there are, and how often each is.",
    source=NUMPY.format("unique"),
)  # fmt: skip


def _permutation(rel: Relation) -> None:
    rank_must_be(rel, 0, 1)
    identity(rel)


define(
    "invert_permutation", ("data",), _permutation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: np.argsort(x, kind="stable").astype(x.dtype),
    compute=lambda attrs, xs, out: [computes.te_invert_permutation(xs[0])],
    doc="The permutation that undoes a permutation.",
    source=TVM.format("invert_permutation"),
)  # fmt: skip


def _meshgrid_relation(rel: Relation) -> None:
    fields = rel.tensors(0)
    if rel.attrs.indexing not in ("ij", "xy"):
        raise rel.fail(f"meshgrid: indexing={rel.attrs.indexing!r} must be ij or xy")
    if any(f.get_num_dims() > 1 for f in fields):
        raise rel.fail("meshgrid: the tensors must be scalars or vectors", argument=0)
    shape = [shape_of(f)[0] if f.get_num_dims() else 1 for f in fields]
    if rel.attrs.indexing == "xy" and len(shape) > 1:
        shape[:2] = shape[1], shape[0]
    rel.set_result(tuple_type([tensor_type(shape, f.element_type) for f in fields]))


def _te_meshgrid(attrs: Attrs, xs: Sequence[Tensor]) -> list[Tensor]:
    shape = [x.shape[0] if x.shape else 1 for x in xs]
    places = list(range(len(xs)))
    if attrs.indexing == "xy" and len(xs) > 1:
        shape[:2], places[:2] = [shape[1], shape[0]], [1, 0]

    def grid(x: Tensor, place: int) -> Tensor:
        return te.compute(shape, lambda *i: x(i[place]) if x.shape else x(), name="T_meshgrid")

    return [grid(x, place) for x, place in zip(xs, places, strict=True)]


define(
    "meshgrid", ("*data",), _meshgrid_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, xs: tuple(g.copy() for g in np.meshgrid(*xs, indexing=attrs.indexing)),
    compute=lambda attrs, xs, out: _te_meshgrid(attrs, xs),
    attributes=(attr("indexing", "ij"),),
    doc="The grids of coordinates that vectors span.",
    source=NUMPY.format("meshgrid"),
)  # fmt: skip


def _subscripts(equation: str, ranks: Sequence[int]) -> tuple[list[str], str] | None:
    """Returns the letters of each operand and of the result; None for an invalid equation.

    An ellipsis is replaced by capital letters.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    spread = "".join(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text)
    if len(operands) != len(ranks) or any(c not in ",.->" and not c.isalpha() for c in text):
        return None
    result: list[str] = []
    widest = 0
    for operand, rank in zip(operands, ranks, strict=True):
        count = rank - len(operand.replace("...", ""))
        if operand.count("...") > 1 or (count != 0 and "..." not in operand) or not 0 <= count <= len(spread):
            return None
        widest = max(widest, count if "..." in operand else 0)
        result.append((operand, count))  # type: ignore[arg-type]
    filled = [o.replace("...", spread[widest - n : widest]) for o, n in result]  # type: ignore[misc]
    if not arrow:
        letters = "".join(filled)
        right = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in spread[:widest]))
    return filled, right.replace("...", spread[:widest])


def _einsum_relation(rel: Relation) -> None:
    fields = rel.tensors(0)
    parsed = _subscripts(rel.attrs.equation, [f.get_num_dims() for f in fields])
    if parsed is None or set(parsed[1]) - set("".join(parsed[0])):
        raise rel.fail(
            f"einsum: {rel.attrs.equation!r} is not an equation for {len(fields)} tensors of these ranks", argument=0
        )
    sizes: dict[str, int] = {}
    for letters, field in zip(parsed[0], fields, strict=True):
        for letter, dim in zip(letters, shape_of(field), strict=True):
            before = sizes.get(letter, 1)
            if before != 1 and dim != 1 and not same_dim(before, dim):
                raise rel.fail(f"einsum: {rel.attrs.equation!r}: the index {letter} is {before} and {dim}", argument=0)
            sizes[letter] = dim if before == 1 else before if dim == 1 else known_dim(before, dim)
    rel.set_result(tensor_type([sizes[c] for c in parsed[1]], fields[0].element_type))


def _einsum(attrs: Attrs, xs: Sequence[Array]) -> Array:
    # Half precision is summed in float32; numpy has no einsum of bfloat16.
    narrow = is_float(xs[0]) and xs[0].dtype.itemsize < 4
    wide = [x.astype(np.float32) for x in xs] if narrow else list(xs)
    operands, result = _subscripts(attrs.equation, [x.ndim for x in wide]) or ([], "")
    sizes = {
        c: n for letters, x in zip(operands, wide, strict=True) for c, n in zip(letters, x.shape, strict=True) if n != 1
    }
    summed = [c for c in sizes if c not in result]
    if len(wide) > 1:
        # numpy multiplies a factor outside of a sum once, by the sum, which an infinity reveals.
        for n, x in enumerate(wide):
            missing = [c for c in summed if c not in operands[n]]
            operands[n] += "".join(missing)
            x = x.reshape((*x.shape, *[1] * len(missing)))
            shape = [sizes[c] if c in summed else size for c, size in zip(operands[n], x.shape, strict=True)]
            wide[n] = x if x.shape == tuple(shape) else np.array(np.broadcast_to(x, shape))
    return np.einsum(f"{','.join(operands)}->{result}", *wide, dtype=wide[0].dtype).astype(xs[0].dtype)


def _te_einsum(attrs: Attrs, xs: Sequence[Tensor]) -> Tensor:
    operands, result = _subscripts(attrs.equation, [len(x.shape) for x in xs]) or ([], "")
    sizes: dict[str, Any] = {}
    for letters, x in zip(operands, xs, strict=True):
        for letter, dim in zip(letters, x.shape, strict=True):
            if letter not in sizes or sizes[letter] == 1:
                sizes[letter] = dim
    summed = [c for c in sizes if c not in result]
    extents = {c: te.reduce_axis((0, sizes[c]), name=f"k_{c}") for c in summed}
    dtype = xs[0].dtype
    wide = wide_dtype(dtype)

    def body(*i: Any) -> Any:
        at = {**dict(zip(result, i, strict=True)), **extents}
        value: Any = None
        for letters, x in zip(operands, xs, strict=True):
            element = x(*(0 if d == 1 and sizes[c] is not d else at[c] for c, d in zip(letters, x.shape, strict=True)))
            element = element.astype(wide)
            value = element if value is None else value * element
        return te.sum(value, axis=list(extents.values())) if extents else value

    total = te.compute([sizes[c] for c in result], body, name="T_einsum")
    return in_dtype(total, dtype)


define(
    "einsum", ("*data",), _einsum_relation, OpPattern.INJECTIVE,
    numpy=_einsum,
    compute=lambda attrs, xs, out: [_te_einsum(attrs, xs)],
    attributes=(attr("equation", kind="str"),),
    doc="Products of elements summed over the indices that the equation's right side leaves out (numpy's einsum).",
    source=NUMPY.format("einsum"),
)  # fmt: skip


def _trilu_relation(rel: Relation) -> None:
    data = rank_at_least(rel, 0, 2)
    rank_must_be(rel, 1, 0)
    rel.set_result(data)


def _te_trilu(attrs: Attrs, x: Tensor, k: Tensor) -> Tensor:
    def body(*i: Any) -> Any:
        distance = i[-1] - i[-2]
        bound = signed_index(k())
        kept = distance >= bound if attrs.upper else distance <= bound
        return te.Select(kept, x(*i), te.const(0, x.dtype))

    return te.compute(x.shape, body, name="T_trilu")


define(
    "trilu", ("data", "k"), _trilu_relation, OpPattern.ELEMWISE,
    numpy=lambda attrs, x, k: (np.triu if attrs.upper else np.tril)(x, int(k)),
    compute=lambda attrs, xs, out: [_te_trilu(attrs, *xs)],
    attributes=(attr("upper", True),),
    doc="Matrices with zeros below (or above) the diagonal `k`.",
    source=ONNX.format("Trilu"),
)  # fmt: skip
