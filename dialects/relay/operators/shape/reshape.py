"""Defines operators that keep the elements in row-major order and change the shape.

reshape:     data (2,3,4), newshape=[-1,4] -> (6,4)
squeeze:     data (2,1,3), axis=[1] -> (2,3)
expand_dims: data (2,3), axis=1, num_newaxis=2 -> (2,1,1,3)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.relations import ANY, axes_of, axis_of, same_dim, shape_of, show_argument, size_of, tensor_type
from ..common.result_sizes import ResultShapes, same_elements
from ..common.sources import NUMPY, TVM
from ..common.te_computes import flat_index, is_one, unflatten

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


class NewShapeError(Exception):
    """Tells why a new shape does not fit; becomes the error of whoever asked."""


def _product(dims: Sequence[Any]) -> Any:
    result: Any = 1
    for dim in dims:
        if _any(dim) or _any(result):
            result = ANY
        else:
            result = dim if is_one(result) else result if is_one(dim) else result * dim
    return result


def _any(dim: Any) -> bool:
    return isinstance(dim, int) and dim == ANY


def _quotient(total: Any, part: Any) -> Any:
    if _any(total) or _any(part):
        return ANY
    if isinstance(total, int) and isinstance(part, int):
        if part == 0 or total % part:
            raise NewShapeError(f"{total} elements cannot be split into parts of {part}")
        return total // part
    return total if is_one(part) else te.floordiv(total, part)


def new_shape(old: Sequence[Any], newshape: Sequence[int], allow_zero: bool = False) -> list[Any]:
    """Returns the shape that `newshape` asks of a tensor of shape `old` (`?` as ANY, or TE expressions).

    Positive numbers are dimensions; 0 takes the old dimension at its place (or is 0 with `allow_zero`), -1 what is left
    over, -2 all old dimensions that follow, -3 the product of two old ones, and -4 splits one old dimension into the two
    numbers that follow, one of which may be -1 (TVM's relay.reshape).
    """
    result: list[Any] = []
    inferred: int | None = None
    given: list[Any] = []  # what -1 is divided by, and
    taken: list[int] = []  # the old dimensions that it does not have to account for
    source, position = 0, 0

    def take() -> Any:
        nonlocal source
        if source >= len(old):
            raise NewShapeError(f"newshape={list(newshape)} refers to more dimensions than the {len(old)} there are")
        taken.append(source)
        source += 1
        return old[source - 1]

    while position < len(newshape):
        value = newshape[position]
        position += 1
        if value > 0 or (value == 0 and allow_zero):
            result.append(value)
            given.append(value)
            source += 1
        elif value == 0:
            result.append(take())
        elif value == -1:
            if inferred is not None:
                raise NewShapeError(f"newshape={list(newshape)} has two -1; one dimension can be inferred")
            inferred = len(result)
            result.append(ANY)
            source += 1
        elif value == -2:
            result += [take() for _ in range(len(old) - source)]
        elif value == -3:
            result.append(_product([take(), take()]))
        elif value == -4:
            parts = list(newshape[position : position + 2])
            position += 2
            if len(parts) != 2 or parts.count(-1) == 2 or any(p < -1 or p == 0 for p in parts):
                raise NewShapeError(
                    f"newshape={list(newshape)}: -4 is followed by two dimensions, one of them may be -1"
                )
            whole = take()
            if -1 in parts:
                parts[parts.index(-1)] = _quotient(whole, parts[1 - parts.index(-1)])
            elif isinstance(whole, int) and not _any(whole) and whole != parts[0] * parts[1]:
                raise NewShapeError(f"a dimension of {whole} cannot be split into {parts[0]} times {parts[1]}")
            result += parts
        else:
            raise NewShapeError(f"newshape={list(newshape)}: {value} has no meaning")
    if inferred is not None:
        left = [dim for number, dim in enumerate(old) if number not in taken]
        result[inferred] = _quotient(_product(left), _product(given))
    return result


def reverse_new_shape(old: Sequence[Any], newshape: Sequence[int], allow_zero: bool = False) -> list[Any]:
    """Returns `new_shape` with the special values counted from the right."""
    values = list(newshape)
    # -4 a b stays before its two numbers when the list is turned around.
    turned: list[int] = []
    position = 0
    while position < len(values):
        group = values[position : position + 3] if values[position] == -4 else values[position : position + 1]
        turned = ([-4, *reversed(group[1:])] if group[0] == -4 else group) + turned
        position += len(group)
    return new_shape(list(reversed(old)), turned, allow_zero)[::-1]


Resolve = Callable[[Sequence[Any], Sequence[int], bool], "list[Any]"]


def _reshape_relation(resolve: Resolve) -> Callable[[Relation], None]:
    def relation(rel: Relation) -> None:
        data = rel.tensor(0)
        old = shape_of(data)
        try:
            new = resolve(old, rel.attrs.newshape, rel.attrs.allowzero)
        except NewShapeError as reason:
            raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)}: {reason}") from None
        if not same_dim(size_of(old), size_of(new)):
            raise rel.fail(
                f"{rel.operator.name}: {show_argument(rel, 0)} has {size_of(old)} elements, the new shape {tuple(new)} has"
                f" {size_of(new)}"
            )
        rel.set_result(tensor_type(new, data.element_type))

    return relation


def te_reshape(x: Tensor, shape: Sequence[Any], name: str = "T_reshape") -> Tensor:
    """Returns the elements of `x` in row-major order, in another shape."""
    return te.compute(shape, lambda *i: x(*_place(i, shape, x.shape)), name=name)


def _place(indices: Sequence[Expr], shape: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """Returns the index, in a tensor of shape `old`, of an element of the reshaped one.

    Dimensions that are only regrouped are not divided.
    """
    result: list[Any] = []
    at = 0
    for wide, narrow in _regrouped(shape, old):
        own = [(i, dim) for i, dim in zip(indices[at : at + len(wide)], wide, strict=True) if not is_one(dim)]
        at += len(wide)
        result += unflatten(flat_index([i for i, _ in own], [dim for _, dim in own]), narrow)
    return result


def _regrouped(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[Sequence[Any], Sequence[Any]]]:
    """Splits two shapes into shortest runs of equally many elements; one run if sizes are unknown."""
    if any(not isinstance(dim, int) or dim == 0 for dim in (*a, *b)):
        return [(a, b)]
    groups: list[tuple[Sequence[Any], Sequence[Any]]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        first_i, first_j = i, j
        left, right = a[i], b[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * a[i], i + 1
            else:
                right, j = right * b[j], j + 1
        groups.append((a[first_i:i], b[first_j:j]))
    if i < len(a) or j < len(b):
        groups.append((a[i:], b[j:]))
    return groups


def _fitting(x: Tensor, shape: Sequence[Any]) -> ResultShapes:
    return ResultShapes([shape], [same_elements(x, shape)])


def _register_reshape(name: str, resolve: Resolve, doc: str, *, source: str) -> None:
    define(
        name, ("data",), _reshape_relation(resolve), OpPattern.INJECTIVE,
        numpy=lambda attrs, x: x.reshape(resolve(x.shape, attrs.newshape, attrs.allowzero)),
        compute=lambda attrs, xs, out: [te_reshape(xs[0], resolve(xs[0].shape, attrs.newshape, attrs.allowzero))],
        extents=lambda attrs, xs, out: _fitting(xs[0], resolve(xs[0].shape, attrs.newshape, attrs.allowzero)),
        attributes=(attr("newshape", kind="ints"), attr("allowzero", False)),
        doc=doc, source=source,
    )  # fmt: skip


# fmt: off
_register_reshape("reshape", new_shape,
    "The elements in another shape; 0, -1, -2, -3 and -4 in `newshape` take, infer, copy, merge and split dimensions.", source=TVM.format("reshape"))
_register_reshape("contrib_reverse_reshape", reverse_new_shape,
    "`reshape`, with the special values counted from the right.", source=TVM.format("reverse_reshape"))
# fmt: on


def _like_shape(attrs: Attrs, data: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    lhs = range(*slice(attrs.lhs_begin, attrs.lhs_end).indices(len(data)))
    rhs = range(*slice(attrs.rhs_begin, attrs.rhs_end).indices(len(like)))
    return [*data[: lhs.start], *like[rhs.start : rhs.stop], *data[max(lhs.stop, lhs.start) :]]


def _reshape_like_relation(rel: Relation) -> None:
    data, like = rel.tensor(0), rel.tensor(1)
    new = _like_shape(rel.attrs, shape_of(data), shape_of(like))
    if not same_dim(size_of(shape_of(data)), size_of(new)):
        raise rel.fail(
            f"reshape_like: {show_argument(rel, 0)} has {size_of(shape_of(data))} elements, the new shape {tuple(new)} has"
            f" {size_of(new)}",
            argument=1,
        )
    rel.set_result(tensor_type(new, data.element_type))


define(
    "reshape_like", ("data", "shape_like"), _reshape_like_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x, like: x.reshape(_like_shape(attrs, x.shape, like.shape)),
    compute=lambda attrs, xs, out: [te_reshape(xs[0], _like_shape(attrs, xs[0].shape, xs[1].shape))],
    extents=lambda attrs, xs, out: _fitting(xs[0], _like_shape(attrs, xs[0].shape, xs[1].shape)),
    attributes=(
        attr("lhs_begin", 0), attr("lhs_end", None, "int"), attr("rhs_begin", 0), attr("rhs_end", None, "int"),
    ),
    doc="The dimensions lhs_begin:lhs_end replaced by the other tensor's rhs_begin:rhs_end.",
    source=TVM.format("reshape_like"),
)  # fmt: skip


def _squeezed(shape: Sequence[Any], axes: Sequence[int] | None) -> list[int]:
    """Returns the axes that stay."""
    if axes is None:
        return [a for a, d in enumerate(shape) if not is_one(d)]
    gone = {a % len(shape) for a in axes}
    return [a for a in range(len(shape)) if a not in gone]


def _squeeze_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    shape = shape_of(data)
    if rel.attrs.axis is not None:
        for axis in axes_of(rel, rel.attrs.axis, len(shape)):
            if not same_dim(shape[axis], 1):
                raise rel.fail(f"squeeze: {show_argument(rel, 0)} has {shape[axis]} elements along axis {axis}, not 1")
    elif ANY in shape:
        raise rel.fail(
            f"squeeze: a dimension of {show_argument(rel, 0)} is known only at run time, but says how many axes are left",
            "name the axes to drop: axis=[0]",
            argument=0,
        )
    rel.set_result(tensor_type([shape[a] for a in _squeezed(shape, rel.attrs.axis)], data.element_type))


def _te_squeeze(attrs: Attrs, x: Tensor) -> Tensor:
    kept = _squeezed(x.shape, attrs.axis)

    def body(*i: Any) -> Any:
        at = dict(zip(kept, i, strict=True))
        return x(*(at.get(a, 0) for a in range(len(x.shape))))

    return te.compute([x.shape[a] for a in kept], body, name="T_squeeze")


define(
    "squeeze", ("data",), _squeeze_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: np.squeeze(x, None if attrs.axis is None else attrs.axis),
    compute=lambda attrs, xs, out: [_te_squeeze(attrs, xs[0])],
    attributes=(attr("axis", None, "ints"),),
    doc="Without the axes of size 1 (those named, otherwise all).",
    source=NUMPY.format("squeeze"),
)  # fmt: skip


def _expanded(shape: Sequence[Any], axis: int, count: int) -> list[Any]:
    place = axis % (len(shape) + 1)
    return [*shape[:place], *[1] * count, *shape[place:]]


def _expand_dims_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    shape = shape_of(data)
    axis_of(rel, rel.attrs.axis, len(shape) + 1, what="the result of one new axis")
    if rel.attrs.num_newaxis < 0:
        raise rel.fail("expand_dims: num_newaxis must not be negative")
    rel.set_result(tensor_type(_expanded(shape, rel.attrs.axis, rel.attrs.num_newaxis), data.element_type))


def _te_expand_dims(attrs: Attrs, x: Tensor) -> Tensor:
    place = attrs.axis % (len(x.shape) + 1)
    return te.compute(
        _expanded(x.shape, attrs.axis, attrs.num_newaxis),
        lambda *i: x(*i[:place], *i[place + attrs.num_newaxis :]),
        name="T_expand_dims",
    )


define(
    "expand_dims", ("data",), _expand_dims_relation, OpPattern.BROADCAST,
    numpy=lambda attrs, x: x.reshape(_expanded(x.shape, attrs.axis, attrs.num_newaxis)),
    compute=lambda attrs, xs, out: [_te_expand_dims(attrs, xs[0])],
    attributes=(attr("axis", kind="int"), attr("num_newaxis", 1)),
    doc="With `num_newaxis` axes of size 1 inserted before `axis`.",
    source=NUMPY.format("expand_dims"),
)  # fmt: skip
