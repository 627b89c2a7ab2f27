"""Loads and stores elements: indices are checked; elements are accessed by slices if possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....support.diagnostics import MirError, error_at
from ....support.text import counted
from ..buffer import buffer_name, compact_strides
from .frame import Frame
from .values import Array, Storage, Value, View, as_array


class Access:
    """One load or store op: where it reaches, from the values of its indices.

    Remembers how it took apart the last index arrays, which are the same objects while inner loops run.
    """

    def __init__(self, op: Operation, buffer: SSAValue, vector: bool):
        self.op = op
        self.buffer = buffer
        self.vector = vector
        self.taken: dict[int, tuple[Array, tuple[int, slice] | int | None]] = {}

    # Indices -----------------------------------------------------------------------------------------------------

    def parts(self, f: Frame, view: View, indices: Sequence[Value]) -> list[Value]:
        """Returns the positions in the dimensions of `view.array`, checked."""
        checked = [
            self.checked(f, index, extent, number, view.shape)
            for number, (index, extent) in enumerate(zip(indices, view.shape, strict=True))
        ]
        last = len(checked) - 1
        if view.flat:
            position: Any = self.beside_lanes(f, view.offset)
            for number, (index, stride) in enumerate(zip(checked, view.strides, strict=True)):
                position = position + (index if number == last else self.beside_lanes(f, index)) * stride
            return [self.within(f, position, view.array.shape[-1], 0, view)]
        if view.base is None:
            return checked
        moved = [*view.prefix]
        for number, (index, base) in enumerate(zip(checked, view.base, strict=True)):
            moved.append(index + (self.beside_lanes(f, base) if number == last else base))
        return [
            self.within(f, position, view.array.shape[view.lanes + number], number, view)
            for number, position in enumerate(moved)
        ]

    def beside_lanes(self, f: Frame, value: Value) -> Value:
        """Adds a dimension of lanes to a value that is combined with a vector index."""
        if self.vector and isinstance(value, np.ndarray) and value.ndim == f.rank and f.rank:
            return value[..., None]
        return value

    def checked(self, f: Frame, index: Value, extent: int, number: int, shape: tuple[int, ...]) -> Value:
        """Returns the index, when it is in [0, extent) in all iterations that run; others are clipped."""
        if not isinstance(index, np.ndarray):
            if 0 <= index < extent:
                return index
            raise self.outside(index, extent, number, shape)
        if index.size == 0 or (index.min() >= 0 and index.max() < extent):
            return index
        bad = (index < 0) | (index >= extent)
        if f.mask is not None:
            running = f.mask[..., None] if index.ndim > f.rank else f.mask
            bad = bad & running
        if bad.any():
            raise self.outside(int(np.broadcast_to(index, bad.shape)[bad][0]), extent, number, shape)
        return np.clip(index, 0, max(extent - 1, 0))

    def within(self, f: Frame, position: Value, extent: int, number: int, view: View) -> Value:
        """Returns the position in a view's memory."""
        try:
            return self.checked(f, position, extent, number, view.array.shape[view.lanes :])
        except MirError:
            name = buffer_name(self.buffer)
            raise error_at(
                self.op,
                f"'{name}' reaches outside the memory that it lies in, which has {counted(extent, 'element')} in dimension {number}",
            ) from None

    def outside(self, index: int, extent: int, number: int, shape: tuple[int, ...]) -> MirError:
        name = buffer_name(self.buffer)
        where = "" if len(shape) == 1 else f" of dimension {number}"
        return error_at(
            self.op,
            f"index {index}{where} of buffer '{name}' is outside [0, {extent})",
            f"'{name}' has shape ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})",
        )

    def slice_of(self, index: Array, rank: int, key: int) -> tuple[int, slice] | int | None:
        """Returns (axis, slice) of an index that runs evenly along one axis, or a number for a constant index."""
        taken = self.taken.get(key)
        if taken is not None and taken[0] is index:
            return taken[1]
        result = _slice_of(index, rank)
        self.taken[key] = (index, result)
        return result

    def basic(self, f: Frame, view: View, parts: Sequence[Value]) -> Array | None:
        """Returns the elements as a view of the memory, one dimension per axis, or None if not by slices."""
        if self.vector:
            return None
        keys: list[int | slice] = []
        axes: list[int] = []
        for axis in range(view.lanes):
            if view.array.shape[axis] > 1:
                axes.append(axis)
                keys.append(slice(None))
            else:
                keys.append(0)
        for number, part in enumerate(parts):
            if not isinstance(part, np.ndarray):
                keys.append(int(part))
                continue
            piece = self.slice_of(part, f.rank, number)
            if piece is None:
                return None
            if isinstance(piece, int):
                keys.append(piece)
            elif piece[0] in axes:
                return None
            else:
                axes.append(piece[0])
                keys.append(piece[1])
        elements = view.array[tuple(keys)]
        if not axes:
            return elements
        if axes != sorted(axes):
            order = sorted(range(len(axes)), key=axes.__getitem__)
            elements = elements.transpose(*order, *range(len(axes), elements.ndim))
        shape = [1] * f.rank
        for axis, size in zip(sorted(axes), elements.shape, strict=False):
            shape[axis] = size
        spread = tuple(slice(None) if axis in axes else None for axis in range(f.rank))
        return elements[spread]

    def fancy(self, f: Frame, view: View, parts: Sequence[Value]) -> tuple[Value, ...]:
        """Returns the key that gathers the elements one by one."""
        lanes: list[Value] = [f.positions[axis] if view.array.shape[axis] > 1 else 0 for axis in range(view.lanes)]
        key: list[Value] = [*lanes, *parts]
        if self.vector:
            key = [
                k[..., None]
                if isinstance(k, np.ndarray) and k.ndim == f.rank and f.rank and not self.is_lanes(n, key)
                else k
                for n, k in enumerate(key)
            ]
        return tuple(key)

    def is_lanes(self, number: int, key: Sequence[Value]) -> bool:
        # Only the last index of an access may be a vector; it has the lane dimension already.
        return number == len(key) - 1

    # Access ------------------------------------------------------------------------------------------------------

    def read(self, f: Frame, view: View, indices: Sequence[Value]) -> Any:
        """Returns the elements: a scalar, or an array (maybe a view of the memory)."""
        parts = self.parts(f, view, indices)
        elements = self.basic(f, view, parts)
        return view.array[self.fancy(f, view, parts)] if elements is None else elements

    def of_lanes(self, f: Frame, indices: Sequence[Value], lanes: Array) -> Sequence[Value]:
        """Replaces the indices of lanes that a vector's predicate excludes, which may be out of bounds, by 0."""
        if not self.vector:
            return indices
        # Only the last index is a vector, and differs between lanes.
        running = lanes.any(-1)
        outer = [
            np.where(running, i, 0) if isinstance(i, np.ndarray) and f.rank and i.ndim == f.rank else i
            for i in indices[:-1]
        ]
        return [*outer, np.where(lanes, indices[-1], 0)]

    def write(self, f: Frame, view: View, indices: Sequence[Value], value: Value, lanes: Value | None = None) -> None:
        """Stores `value` in all iterations that run; `lanes` is a vector's predicate."""
        if lanes is not None:
            if not lanes.any():
                return
            indices = self.of_lanes(f, indices, lanes)
        parts = self.parts(f, view, indices)
        mask = f.mask
        vector = self.vector or view.vector > 1
        if vector and mask is not None:
            mask = mask[..., None]
        if lanes is not None:
            mask = lanes if mask is None else mask & lanes
        target = self.basic(f, view, parts)
        # Without dimensions, an element: numpy returned a copy.
        if target is not None and np.ndim(target):
            if mask is None:
                target[...] = value
                return
            if not vector and all(m in (1, t) for m, t in zip(mask.shape, target.shape, strict=True)):
                np.copyto(target, as_array(value, target.dtype), where=mask)
                return
        key = self.fancy(f, view, parts)
        if mask is None:
            one = isinstance(value, np.ndarray) and not vector and not any(isinstance(k, np.ndarray) for k in key)
            view.array[key] = value.reshape(()) if one else value
            return
        extra = (slice(None),) if view.vector > 1 else ()
        if extra:
            mask = mask[..., 0]
        value = as_array(value, view.array.dtype)
        shapes = [k.shape for k in key if isinstance(k, np.ndarray)]
        shape = np.broadcast_shapes(mask.shape, *shapes, value.shape[:-1] if extra else value.shape)
        running = np.broadcast_to(mask, shape)
        if not shapes and not extra:
            # One element for all that run: the last of them decides.
            if running.any():
                view.array[key] = np.broadcast_to(value, shape)[running][-1]
            return
        chosen = tuple(np.broadcast_to(k, shape)[running] if isinstance(k, np.ndarray) else k for k in key)
        whole = (*shape, value.shape[-1]) if extra and value.ndim else shape
        view.array[chosen] = np.broadcast_to(value, whole)[running]


def _slice_of(index: Array, rank: int) -> tuple[int, slice] | int | None:
    if index.ndim != rank:
        return None
    axis = -1
    for number, size in enumerate(index.shape):
        if size > 1:
            if axis >= 0:
                return None
            axis = number
    line = index.reshape(-1)
    start = int(line[0])
    if axis < 0:
        return start
    step = int(line[1]) - start
    count = line.size
    if int(line[-1]) != start + step * (count - 1) or (count > 2 and not ((line[1:] - line[:-1]) == step).all()):
        return None
    if step == 0:
        return start
    stop = start + step * count
    return axis, slice(start, stop if stop >= 0 else None, step)


def new_storage(f: Frame, elements: int, dtype: np.dtype[Any], where: Operation, vector: int = 1) -> Storage:
    """Creates zeroed memory, for each running iteration its own."""
    lanes = f.rank if f.count > 1 else 0
    shape = (*(f.sizes if lanes else ()), elements * vector)
    try:
        return Storage(np.zeros(shape, dtype), lanes)
    except (MemoryError, ValueError):
        raise error_at(where, f"there is no memory for {counted(elements, 'element')} of {dtype.name}") from None


def view_of(
    storage: Storage,
    dtype: np.dtype[Any],
    shape: Sequence[int],
    strides: Sequence[int] | None,
    offset: Value,
    vector: int,
    where: Operation,
) -> View:
    """Returns a buffer of `shape` in a storage, from element `offset` on."""
    array = storage.array
    if array.dtype != dtype:
        # Bytes after the last whole element belong to none.
        size = array.shape[-1] * array.dtype.itemsize
        array = array[..., : (size - size % dtype.itemsize) // array.dtype.itemsize].view(dtype)
    compact = compact_strides(shape)
    steps = tuple(compact if strides is None else strides)
    count = 1
    for extent in shape:
        count *= extent
    whole = not isinstance(offset, np.ndarray) and steps == compact and vector == 1
    if whole and offset >= 0 and offset + count <= array.shape[-1]:
        part = array[..., offset : offset + count].reshape((*array.shape[:-1], *shape))
        return View(part, tuple(shape), storage, offset, steps, storage.lanes)
    if vector > 1:
        if isinstance(offset, np.ndarray) or steps != compact:
            raise error_at(where, "the interpreter has no strided buffers of vectors")
        part = array[..., offset * vector : (offset + count) * vector]
        return View(
            part.reshape((*array.shape[:-1], *shape, vector)),
            tuple(shape),
            storage,
            offset,
            steps,
            storage.lanes,
            vector=vector,
        )
    return View(array, tuple(shape), storage, offset, steps, storage.lanes, flat=True)
