"""Defines TE computes of scatter operators: as statements, or per element from what is written to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .....support.diagnostics import error_at
from ...operator import Attrs
from ..common._lazy import te
from ..common.result_sizes import Requirement, ResultShapes, numbers
from ..common.te_computes import Dim, constant, is_one, signed_index
from ..sorting.te_sort import is_large, loops

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, Tensor


def known_length(x: Tensor, axis: int) -> int:
    """Returns the dimension that is the number of indexed axes. Raises MirError where it is unknown."""
    length = constant(x.shape[axis])
    if length is None:
        raise error_at(
            te.current_location(),
            f"dimension {axis} of '{x.name}' is known only at run time, but says how many axes are indexed",
            "give that dimension a number",
        )
    return length


def _combined(mode: str, old: Expr, new: Expr) -> Expr:
    match mode:
        case "update":
            return new
        case "mul":
            return old * new
        case "min":
            return te.min(old, new)
        case "max":
            return te.max(old, new)
        case _:
            return te.any(old, new) if old.dtype == "bool" else old + new


def _from_end(index: Expr, size: Dim) -> Expr:
    """Returns an index of which negative ones count from the end, as int32 or int64."""
    index = signed_index(index)
    return te.Select(index < 0, index + size, index)


def _inside(indices: Sequence[Expr], shape: Sequence[Dim]) -> Expr:
    """Returns whether an index is inside of the tensor: no write may leave its memory."""
    result: Expr = te.const(1, "bool")
    for index, size in zip(indices, shape, strict=True):
        result = te.all(result, index >= 0, index < size)
    return result


def _scattered(
    x: Tensor, others: Sequence[Tensor], mode: str, over: Sequence[Dim], place: Any, *, apart: bool = False
) -> Tensor:
    """Returns `x` with the writes (element, value) that `place(vector, buffers)` returns for `over`.

    With `apart`, the written element has the first index of the vector, so that threads may divide these.
    """

    apart = apart and is_large(x.shape) and constant(x.shape[0]) == constant(over[0])

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        data, result = ins[0], outs[0]
        ib = te.ir_builder.create()

        def write(own: list[Expr]) -> None:
            """Writes the result where its first indices are these."""
            with loops(ib, x.shape[len(own) :]) as rest:
                at = (*own, *rest)
                ib.emit(result.vstore(at, data[at]))
                if mode == "mean":
                    ib.emit(outs[1].vstore(at, 1))
            with loops(ib, over[len(own) :], "j") as rest:
                element, value = place([*own, *rest], ins[1:])
                with ib.if_scope(_inside(element, x.shape)):
                    ib.emit(result.vstore(tuple(element), _combined(mode, result[tuple(element)], value)))
                    if mode == "mean":
                        ib.emit(outs[1].vstore(tuple(element), outs[1][tuple(element)] + 1))

        if apart:
            with loops(ib, x.shape[:1], "row", "parallel") as row:
                write(row)
        else:
            write([])
        return ib.get()

    if mode != "mean":
        return te.extern(x.shape, [x, *others], statements, name="scatter", dtype=x.dtype)
    total, count = te.extern([x.shape] * 2, [x, *others], statements, name="scatter", dtype=[x.dtype, "int32"])

    def mean(*i: Expr) -> Expr:
        return (total(*i).astype("float64") / count(*i).astype("float64")).astype(x.dtype)

    return te.compute(x.shape, mean, name="T_scatter_mean")


def te_scatter_elements(attrs: Attrs, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Computes `scatter_elements`."""
    axis: int = attrs.axis % len(x.shape)

    def place(at: Sequence[Expr], ins: Sequence[Buffer]) -> tuple[list[Expr], Expr]:
        index = _from_end(ins[0][tuple(at)], x.shape[axis])
        return [*at[:axis], index, *at[axis + 1 :]], ins[1][tuple(at)]

    return _scattered(x, [indices, updates], attrs.reduction, indices.shape, place, apart=axis > 0)


def te_scatter_nd(attrs: Attrs, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Computes `scatter_nd`."""
    depth = known_length(indices, 0)
    rank = len(indices.shape) - 1

    def place(at: Sequence[Expr], ins: Sequence[Buffer]) -> tuple[list[Expr], Expr]:
        vector = [_from_end(ins[0][(n, *at[:rank])], x.shape[n]) for n in range(depth)]
        return [*vector, *at[rank:]], ins[1][tuple(at)]

    return _scattered(x, [indices, updates], attrs.mode, updates.shape, place)


def te_sparse_to_dense(shape: Sequence[Dim], indices: Tensor, values: Tensor, default: Tensor) -> Tensor:
    """Computes `sparse_to_dense` of a scalar index, a vector of indices, or rows of index vectors."""
    rank = len(indices.shape)
    depth = known_length(indices, 1) if rank == 2 else 1
    filled = te.compute(shape, lambda *i: default().astype(values.dtype), name="T_full")
    over = [*indices.shape[: min(rank, 1)], *shape[depth:]]

    def place(at: Sequence[Expr], ins: Sequence[Buffer]) -> tuple[list[Expr], Expr]:
        row, rest = list(at[: min(rank, 1)]), at[min(rank, 1) :]
        vector = [_from_end(ins[0][(*row, *([n] if rank == 2 else []))], shape[n]) for n in range(depth)]
        if len(values.shape) == 0:
            return [*vector, *rest], ins[1][()]
        # A vector of values is along the last axis of the written element.
        return [*vector, *rest], ins[1][0 if is_one(values.shape[0]) or not at else at[-1]]

    return _scattered(filled, [indices, values], "update", over, place)


Sliced = tuple["Expr", "Expr", "Expr"]
"""The first index of a slice, its step, and how many elements it takes, int64."""


def te_slice_of(begin: Expr | None, end: Expr | None, step: Expr, size: Dim) -> Sliced:
    """Returns a slice by numbers of run time, clamped to `size` elements as in Python."""
    zero, one = te.const(0, "int64"), te.const(1, "int64")
    extent = te.const(size, "int64") if isinstance(size, int) else size.astype("int64")
    # A slice of step 0 is refused; it must not divide.
    step = te.Select(step == zero, one, step)
    forward = step > zero
    low = te.Select(forward, zero, zero - one)
    high = te.Select(forward, extent, extent - one)

    def clamped(place: Expr) -> Expr:
        return te.max(te.min(te.Select(place < zero, place + extent, place), high), low)

    first = te.Select(forward, low, high) if begin is None else clamped(begin)
    last = te.Select(forward, high, low) if end is None else clamped(end)
    span = te.Select(forward, last - first + step - one, last - first + step + one)
    return first, step, te.max(te.truncdiv(span, step), zero)


def _number(x: Tensor, place: int) -> Expr | None:
    """Returns an element of a vector as int64; None where it is shorter."""
    return x(place).astype("int64") if place < known_length(x, 0) else None


UNLIKE_SLICE = "dimension {} of 'v' is {{size}}, which does not broadcast to {{size}}, what the slice takes"


def _set_slice(x: Tensor, begin: Tensor, end: Tensor, strides: Tensor, axis: int) -> Sliced:
    step = _number(strides, axis)
    step = te.const(1, "int64") if step is None else step
    return te_slice_of(_number(begin, axis), _number(end, axis), step, x.shape[axis])


def strided_set_extents(x: Tensor, values: Tensor, begin: Tensor, end: Tensor, strides: Tensor) -> ResultShapes:
    """Computes the sizes of `strided_set`: the values broadcast to the slice."""
    needed = [
        Requirement("expand", size, _set_slice(x, begin, end, strides, axis)[2], UNLIKE_SLICE.format(axis))
        for axis, size in enumerate(values.shape)
    ]
    return ResultShapes([x.shape], [*te_nonzero(strides), *needed])


def te_strided_set(x: Tensor, values: Tensor, begin: Tensor, end: Tensor, strides: Tensor) -> Tensor:
    """Computes `strided_set`: each element from `values` where the slice takes it."""

    def body(*i: Expr) -> Expr:
        taken: list[Expr] = []
        at: list[Any] = []
        for axis, index in enumerate(i):
            first, step, count = _set_slice(x, begin, end, strides, axis)
            distance = index.astype("int64") - first
            steps = te.truncdiv(distance, step)
            taken += [steps >= 0, steps < count, te.truncmod(distance, step) == 0]
            # Behind the first element in the direction of the step.
            taken.append(te.any(distance == 0, (distance > 0).equal(step > 0)))
            at.append(0 if is_one(values.shape[axis]) else steps.astype("int32"))
        return te.if_then_else(te.all(*taken), values(*at), x(*i))

    return te.compute(x.shape, body, name="T_strided_set") if x.shape else values


Bounds = tuple["Expr | None", "Expr | None", "Expr"]
"""First index, end (None: from and to the ends of the axis) and step of a slice."""


def te_bounds(rank: int, bounds: Sequence[Tensor], axes: Sequence[int] | None, sizes: bool) -> dict[int, Bounds]:
    """Returns the slice of each sliced axis, of begin:end:strides known at run time.

    Strides that are missing are 1; with `sizes` the ends are numbers of elements, negative ones all that are left, and strides
    do not count.
    """
    begin, end, strides = bounds
    result: dict[int, Bounds] = {}
    for place, axis in enumerate(range(known_length(begin, 0)) if axes is None else [a % rank for a in axes]):
        low, high = _number(begin, place), _number(end, place)
        step = None if sizes else _number(strides, place)
        if sizes and high is not None:
            high = te.Select(high < 0, te.const(1 << 62, "int64"), high if low is None else low + high)
        result[axis] = low, high, te.const(1, "int64") if step is None else step
    return result


def te_nonzero(strides: Tensor) -> list[Requirement]:
    """Requires that no stride is 0."""
    return [
        Requirement("within", 1, te.Select(te.equal(step, 0), 0, 1), f"stride {place} must not be 0")
        for place, step in enumerate(numbers(strides))
    ]


def te_strided_slice(
    x: Tensor, shape: Sequence[Dim], bounds: Sequence[Tensor], axes: Sequence[int] | None, sizes: bool
) -> Tensor:
    """Returns the slice begin:end:strides (`bounds`) of run time; with `sizes`, ends are sizes."""
    slices = te_bounds(len(x.shape), bounds, axes, sizes)

    def place(axis: int, index: Expr) -> Expr:
        if axis not in slices:
            return index
        first, step, _ = te_slice_of(*slices[axis], x.shape[axis])
        at = first + index.astype("int64") * step
        return at if (constant(x.shape[axis]) or 0) >= 1 << 31 else at.astype("int32")

    return te.compute(shape, lambda *i: x(*(place(a, index) for a, index in enumerate(i))), name="T_strided_slice")


def te_set_diag(attrs: Attrs, x: Tensor, diagonal: Tensor) -> Tensor:
    """Computes `matrix_set_diag`."""
    rows, columns = x.shape[-2:]
    single = attrs.k1 == attrs.k2

    def body(*i: Expr) -> Expr:
        row, column = i[-2:]
        k = column - row
        upper = k >= 0
        length = te.min(columns - te.max(k, 0), rows + te.min(k, 0))
        unused = diagonal.shape[-1] - length
        right, left = te.const(1, "bool"), te.const(0, "bool")
        aligned = te.Select(
            upper,
            right if attrs.super_diag_right_align else left,
            right if attrs.sub_diag_right_align else left,
        )
        place = te.min(row, column) + te.Select(aligned, unused, 0)
        value = diagonal(*i[:-2], *([] if single else [attrs.k2 - k]), place)
        return te.if_then_else(te.all(k >= attrs.k1, k <= attrs.k2), value, x(*i))

    return te.compute(x.shape, body, name="T_matrix_set_diag")
