"""Interprets TE over numpy: each tensor is computed from arrays of its axes' indices, without loops.

A value of a body is an array with one dimension for each axis of the compute (of size 1 along axes that it does not vary
with). Where `if_then_else` chooses, each side is evaluated for the elements that chose it: the others are masked, so that
they may read out of bounds. Large computes are done in parts of at most `MOST_POINTS` points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import error_at
from ...support.text import counted
from .. import tir
from ..tir.interpreter.intrinsics import extern_function, float_call, integer_call, reinterpret
from ..tir.interpreter.scalar import binary_function, caster
from ..tir.interpreter.values import dtype_of
from ..tir.scalar_ops import BINARY_ROWS
from ..tir.types import type_to_dtype
from .compute import ComputeOp, ExternOp, ScanOp, extents_of, steps_of
from .ops import (
    FOLDS,
    CommReducerOp,
    FuncOp,
    PlaceholderOp,
    ReadOp,
    ReduceAxisOp,
    ReduceOp,
    is_input,
    needed_ops,
    neutral,
    tensor_name,
)
from .types import TensorType

Array: TypeAlias = NDArray[Any]

MOST_POINTS = 1 << 21
"""How many points of axes are evaluated at once."""

_SHALLOW = 60
"""The levels of if_then_else that the stack holds."""

_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "all": np.logical_and, "any": np.logical_or,
}  # fmt: skip


def interpret_te_func(function: FuncOp, args: Mapping[str, Any]) -> dict[str, Array]:
    """Computes the outputs of a TE function, by name.

    `args` maps each input's name (`function.param_names()`) to an array of its shape and dtype, or to a number for a
    scalar. An output's name may be given too: its array is not read, its shape helps to bind symbolic sizes. Raises MirError
    for arguments that do not fit, a read out of bounds, or an extern that only machine code can run.
    """
    return in_deep_stack(lambda: _Run(function).run(args))


class _Run:
    """One run of a function: arrays of tensors, numbers of scalars."""

    def __init__(self, function: FuncOp):
        self.function = function
        self.arrays: dict[SSAValue, Array] = {}
        self.scalars: dict[SSAValue, Any] = {}

    def run(self, args: Mapping[str, Any]) -> dict[str, Array]:
        names = self.function.param_names()
        params = list(zip(names, self.function.params, strict=True))
        self._bind(params, args)
        needed = needed_ops(self.function)
        body = [op for op in self.function.body.block.ops if op in needed]
        inside = {step for op in body if isinstance(op, ScanOp) for step in steps_of(op)}
        with np.errstate(all="ignore"):
            for op in body:
                match op:
                    case ComputeOp() if op not in inside:
                        self._compute(op)
                    case ScanOp():
                        self._scan(op)
                    case ExternOp():
                        self._extern(op)
                    case _:
                        pass
        return {name: self.arrays[value] for name, value in params if not is_input(value)}

    # Arguments --------------------------------------------------------------------------------------------------------

    def _bind(self, params: list[tuple[str, SSAValue]], args: Mapping[str, Any]) -> None:
        known = {name for name, _ in params}
        for name in args:
            if name not in known:
                raise error_at(self.function, f"function '{self.function.sym_name.data}' has no parameter '{name}'")
        for name, value in params:
            if name not in args:
                if is_input(value):
                    raise error_at(value, f"no value is given for parameter '{name}'")
                continue
            if not isinstance(value.type, TensorType):
                self.scalars[value] = np.asarray(args[name]).astype(dtype_of(value.type, self.function))
                continue
            self._bind_sizes(name, value, args[name])
        for name, value in params:
            if isinstance(value.owner, PlaceholderOp):
                array = np.asarray(args[name])
                if array.shape != self._shape(value):
                    raise error_at(value, f"parameter '{name}' has shape {self._shape(value)}, not {array.shape}")
                if array.dtype != self._dtype(value):
                    raise error_at(value, f"parameter '{name}' holds {self._dtype(value).name}, not {array.dtype.name}")
                self.arrays[value] = array

    def _bind_sizes(self, name: str, value: SSAValue, array: Any) -> None:
        """Binds symbolic sizes that are a whole extent."""
        shape = np.shape(array)
        extents = extents_of(value)
        if len(shape) != len(extents):
            raise error_at(value, f"parameter '{name}' has {counted(len(extents), 'dimension')}, not {len(shape)}")
        for extent, size in zip(extents, shape, strict=True):
            if not isinstance(extent, SSAValue) or not isinstance(extent.owner, tir.VarOp):
                continue
            bound = self.scalars.setdefault(extent, np.asarray(size, dtype_of(extent.type, extent.owner)))
            if bound != size:
                raise error_at(
                    value, f"size '{extent.owner.var_name.data}' is {bound}, but parameter '{name}' has {size}"
                )

    def _shape(self, value: SSAValue) -> tuple[int, ...]:
        return tuple(e.value.data if isinstance(e, IntegerAttr) else int(self.scalar(e)) for e in extents_of(value))

    def _dtype(self, value: SSAValue) -> np.dtype[Any]:
        assert isinstance(value.type, TensorType) and isinstance(value.owner, Operation)
        return dtype_of(value.type.dtype, value.owner)

    def scalar(self, value: SSAValue) -> Any:
        """Returns a value of the function's own block."""
        if isinstance(value.owner, tir.VarOp) and value not in self.scalars:
            raise error_at(
                value,
                f"no argument says what the symbolic size '{value.owner.var_name.data}' is",
                "it is an extent of no parameter that is given",
            )
        found = self.scalars.get(value)
        return _Points(self, [], {}).value(value) if found is None else found

    # Operations -------------------------------------------------------------------------------------------------------

    def _compute(self, op: ComputeOp) -> None:
        shape = self._shape(op.results[0])
        for result in op.results:
            self.arrays[result] = np.zeros(shape, self._dtype(result))
        self._fill(op, [(0, extent) for extent in shape])

    def _fill(self, op: ComputeOp, ranges: list[tuple[int, int]]) -> None:
        """Computes the elements of `op`'s tensors in a box of its axes."""
        if any(low >= high for low, high in ranges):
            return
        reduction = op.reduction
        contracted = None if reduction is None else _Contraction.of(op, reduction)
        if contracted is not None and (result := contracted.run(self, ranges)) is not None:
            self.arrays[op.results[0]][tuple(slice(*r) for r in ranges)] = result
            return
        reduced = [] if reduction is None else [self._range(axis) for axis in reduction.axes]
        inner = _size(reduced)
        if _size(ranges) * max(inner, 1) > MOST_POINTS and _size(ranges) > 1:
            # Halved along its longest axis until a part is small enough.
            axis = max(range(len(ranges)), key=lambda k: ranges[k][1] - ranges[k][0])
            low, high = ranges[axis]
            middle = (low + high) // 2
            for part in ((low, middle), (middle, high)):
                self._fill(op, [*ranges[:axis], part, *ranges[axis + 1 :]])
            return
        if reduction is None:
            points = _Points(self, list(zip(op.axes, ranges, strict=True)), {})
            values = [points.value(v) for v in op.values]
        else:
            values = self._reduce(op, reduction, ranges, reduced)
        box = tuple(slice(*r) for r in ranges)
        for result, value in zip(op.results, values, strict=True):
            self.arrays[result][box] = value

    def _range(self, axis: SSAValue) -> tuple[int, int]:
        assert isinstance(axis.owner, ReduceAxisOp)
        low = int(self.scalar(axis.owner.min))
        return low, low + int(self.scalar(axis.owner.extent))

    def _reduce(
        self, op: ComputeOp, reduction: ReduceOp, ranges: list[tuple[int, int]], reduced: list[tuple[int, int]]
    ) -> list[Array]:
        """Returns a reduction's values in a box of spatial axes, over a box of its own axes, part by part."""
        shape = [high - low for low, high in ranges]
        if reduction.init:
            outer = _Points(self, list(zip(op.axes, ranges, strict=True)), {})
            total = [np.broadcast_to(outer.value(v), shape) for v in reduction.init]
        else:
            total = [np.broadcast_to(v, shape) for v in self._identity(reduction)]
        pending = [reduced]
        while pending:
            part = pending.pop()
            if any(low >= high for low, high in part):
                continue
            if _size(ranges) * _size(part) > MOST_POINTS and _size(part) > 1:
                # The outermost axis that can be halved: parts stay in order.
                axis = next(k for k, (low, high) in enumerate(part) if high - low > 1)
                low, high = part[axis]
                middle = (low + high) // 2
                pending += [[*part[:axis], half, *part[axis + 1 :]] for half in ((middle, high), (low, middle))]
                continue
            sources = self._sources(op, reduction, ranges, part)
            total = self._fold(reduction, total, sources, len(ranges))
        return [np.asarray(t) for t in total]

    def _sources(
        self, op: ComputeOp, reduction: ReduceOp, ranges: list[tuple[int, int]], part: list[tuple[int, int]]
    ) -> list[Array]:
        """Returns the reduced operands: arrays over the spatial axes and one for the points reduced over."""
        points = _Points(self, [*zip(op.axes, ranges, strict=True), *zip(reduction.axes, part, strict=True)], {})
        shape = points.shape
        outer, count = shape[: len(ranges)], _size(part)
        if reduction.condition is None:
            values = points.values(reduction.sources)
        else:
            chosen = np.broadcast_to(points.value(reduction.condition), shape)
            neutral = self._identity(reduction)
            with_mask = _Points(self, points.axes, points.known, chosen)
            values = [np.where(chosen, with_mask.value(s), n) for s, n in zip(reduction.sources, neutral, strict=True)]
        return [np.broadcast_to(v, shape).reshape(*outer, count) for v in values]

    def _fold(self, reduction: ReduceOp, total: list[Array], sources: list[Array], rank: int) -> list[Array]:
        if reduction.reducer is not None:
            # Neighbours are combined until one is left: their order stays, which is all that associativity needs.
            while sources[0].shape[rank] > 1:
                even = [s[..., 0 : s.shape[rank] // 2 * 2 : 2] for s in sources]
                odd = [s[..., 1::2] for s in sources]
                rest = [s[..., s.shape[rank] // 2 * 2 :] for s in sources]
                combined = self._combine(reduction, even, odd)
                sources = [
                    np.concatenate([np.broadcast_to(c, e.shape), r], axis=-1)
                    for c, e, r in zip(combined, even, rest, strict=True)
                ]
            return self._combine(reduction, total, [s[..., 0] for s in sources])
        kind, source = reduction.kind.data, sources[0]
        combine = binary_function(FOLDS[kind](reduction.sources[0], reduction.sources[0]))
        partial = _UFUNCS[kind].reduce(source, axis=rank, dtype=None if source.dtype == bool else source.dtype)
        return [np.asarray(combine(np.asarray(total[0]), np.asarray(partial)), source.dtype)]

    def _combine(self, reduction: ReduceOp, left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        assert reduction.reducer is not None and isinstance(reduction.reducer.owner, CommReducerOp)
        block = reduction.reducer.owner.combiner.block
        points = _Points(self, [], dict(zip(block.args, [*left, *right], strict=True)))
        return points.values(_yielded_by(block))

    def _identity(self, reduction: ReduceOp) -> list[Array]:
        if reduction.reducer is not None:
            assert isinstance(reduction.reducer.owner, CommReducerOp)
            return _Points(self, [], {}).values(_yielded_by(reduction.reducer.owner.identity.block))
        type = reduction.sources[0].type
        return [np.asarray(neutral(reduction.kind.data, type), dtype_of(type, reduction))]

    def _scan(self, op: ScanOp) -> None:
        for init, update, state, result in zip(op.init, op.update, op.state, op.results, strict=True):
            array = np.zeros(self._shape(state), self._dtype(state))
            first = self.arrays[init]
            if len(first) > len(array):
                raise error_at(
                    op,
                    f"scan '{op.scan_name.data}' begins with {counted(len(first), 'step')}, but has only {len(array)}",
                )
            array[: len(first)] = first
            self.arrays[state] = self.arrays[update] = self.arrays[result] = array
        steps = steps_of(op)
        for step in steps:
            for result in step.results:
                if result not in self.arrays:
                    self.arrays[result] = np.zeros(self._shape(result), self._dtype(result))
        for now in range(len(self.arrays[op.init[0]]), len(self.arrays[op.state[0]])):
            for step in steps:
                self._fill(step, [(now, now + 1), *((0, extent) for extent in self._shape(step.results[0])[1:])])

    def _extern(self, op: ExternOp) -> None:
        buffers: dict[SSAValue, Array] = {}
        for result in op.results:
            self.arrays[result] = np.zeros(self._shape(result), self._dtype(result))
        for arg, tensor in zip(op.body.block.args, (*op.inputs, *op.results), strict=True):
            buffers[arg] = self.arrays[tensor]
        self._statements(op.body.block, buffers, {})

    def _statements(self, block: Block, buffers: dict[SSAValue, Array], variables: dict[SSAValue, Array]) -> None:
        """Runs statements in order. Loaded values are loaded again by each statement."""
        for op in block.ops:
            points = _Points(self, [], dict(variables), buffers=buffers)
            match op:
                case tir.StoreOp():
                    indices = points.indices(op, buffers[op.buffer].shape, op.indices, tir.buffer_name(op.buffer))
                    buffers[op.buffer][indices] = points.value(op.value)
                case tir.ForOp():
                    low, extent = int(points.value(op.min)), int(points.value(op.extent))
                    dtype = dtype_of(op.loop_var.type, op)
                    for now in range(low, low + extent):
                        self._statements(op.body.block, buffers, {**variables, op.loop_var: np.asarray(now, dtype)})
                case tir.IfOp():
                    if points.value(op.condition):
                        self._statements(op.then_region.block, buffers, variables)
                    elif op.else_region.blocks:
                        self._statements(op.else_region.block, buffers, variables)
                case tir.EvaluateOp():
                    points.value(op.value)
                case tir.DeclBufferOp():
                    shape = [e if isinstance(e, int) else int(points.value(e)) for e in op.extents()]
                    buffers[op.result] = np.zeros(shape, dtype_of(op.result.type.dtype, op))
                case _ if op.results:
                    pass  # An expression: evaluated by the statement that uses it.
                case _:
                    raise error_at(op, f"'{op.name}' cannot be interpreted in the body of a te.extern")


class _Contraction:
    """A sum over products of two tensors' elements at plain axes, as in a matmul, for `numpy.einsum`."""

    def __init__(self, tensors: list[tuple[SSAValue, list[int]]], spatial: int, reduction: ReduceOp):
        self.tensors, self.spatial, self.reduction = tensors, spatial, reduction

    @staticmethod
    def of(op: ComputeOp, reduction: ReduceOp) -> _Contraction | None:
        """Returns the contraction of a compute, or None if it is not one."""
        if reduction.kind.data != "sum" or reduction.condition is not None or reduction.init:
            return None
        product, type = reduction.sources[0].owner, reduction.sources[0].type
        if not isinstance(product, tir.MulOp) or type_to_dtype(type) not in ("float32", "float64"):
            return None
        numbers = {axis: number for number, axis in enumerate((*op.axes, *reduction.axes))}
        tensors: list[tuple[SSAValue, list[int]]] = []
        for factor in (product.lhs.owner, product.rhs.owner):
            if not isinstance(factor, ReadOp) or any(i not in numbers for i in factor.indices):
                return None
            axes = [numbers[i] for i in factor.indices]
            if len(set(axes)) != len(axes):
                return None
            tensors.append((factor.tensor, axes))
        left, right = (set(axes) for _, axes in tensors)
        # einsum multiplies a factor that a sum leaves alone once, with the sum, which an infinity tells.
        apart = any(numbers[axis] not in left & right for axis in reduction.axes)
        return None if apart or len(left | right) < len(numbers) else _Contraction(tensors, len(op.axes), reduction)

    def run(self, run: _Run, ranges: list[tuple[int, int]]) -> Array | None:
        """Returns the elements in a box, or None if a range exceeds a tensor, reported element by element."""
        bounds = [*ranges, *(run._range(axis) for axis in self.reduction.axes)]  # pyright: ignore[reportPrivateUsage]
        operands: list[Any] = []
        for tensor, axes in self.tensors:
            array = run.arrays[tensor]
            if any(bounds[a][0] < 0 or bounds[a][1] > extent for a, extent in zip(axes, array.shape, strict=True)):
                return None
            operands += [array[tuple(slice(*bounds[a]) for a in axes)], axes]
        return np.einsum(*operands, list(range(self.spatial)), optimize=True)


def _size(ranges: Sequence[tuple[int, int]]) -> int:
    size = 1
    for low, high in ranges:
        size *= high - low
    return size


class _Points:
    """Evaluates expressions at all points of a box of axes at once."""

    def __init__(
        self,
        run: _Run,
        axes: list[tuple[SSAValue, tuple[int, int]]],
        known: dict[SSAValue, Array],
        mask: Array | None = None,
        depth: int = 0,
        buffers: Mapping[SSAValue, Array] | None = None,
    ):
        self.run, self.axes, self.known, self.mask, self.depth = run, axes, known, mask, depth
        self.buffers = buffers or {}
        self.shape = tuple(high - low for _, (low, high) in axes)
        self.added: list[SSAValue] = []
        for number, (axis, (low, high)) in enumerate(axes):
            if axis not in known:
                shape = [1] * len(axes)
                shape[number] = high - low
                dtype = np.int32 if axis.type == IntegerType(32) else np.int64
                known[axis] = np.arange(low, high, dtype=dtype).reshape(shape)

    def values(self, roots: Sequence[SSAValue]) -> list[Array]:
        """Returns the values of several expressions."""
        return [self.value(root) for root in roots]

    def value(self, root: SSAValue) -> Array:
        """Returns the value of an expression."""
        known, pending = self.known, [root]
        while pending:
            value = pending[-1]
            if value in known:
                pending.pop()
                continue
            op = value.owner
            assert isinstance(op, Operation)
            if value in self.run.scalars or isinstance(op, tir.VarOp):
                found = np.asarray(self.run.scalar(value))
            else:
                operands = op.indices if isinstance(op, ReadOp | tir.LoadOp) else op.operands
                missing = [v for v in operands if v not in known and v not in self.buffers and not _is_text(v)]
                if missing:
                    pending += reversed(missing)
                    continue
                found = np.asarray(self._evaluate(op), dtype_of(value.type, op))
            pending.pop()
            known[value] = found
            self.added.append(value)
        return known[root]

    def _evaluate(self, op: Operation) -> Any:
        known = self.known
        match op:
            case tir.ConstOp():
                assert isinstance(op.value, IntegerAttr | FloatAttr)
                return _number(op.value.value.data, op.result.type, op)
            case tir.BinaryOp():
                a, b = known[op.lhs], known[op.rhs]
                if BINARY_ROWS[type(op)].divides and b.dtype.kind in "iu" and not b.ndim and not a.ndim:
                    a, b = a[None], b[None]
                    return binary_function(op)(a, b)[0]
                return binary_function(op)(a, b)
            case tir.NotOp():
                return np.logical_not(known[op.value])
            case tir.CastOp():
                return _cast(op, known[op.value])
            case tir.SelectOp():
                return np.where(known[op.condition], known[op.true_value], known[op.false_value])
            case tir.IfThenElseOp():
                return self._choose(op)
            case ReadOp():
                array = self.run.arrays[op.tensor]
                return array[self.indices(op, array.shape, op.indices, tensor_name(op.tensor))]
            case tir.LoadOp():
                array = self.buffers[op.buffer]
                return array[self.indices(op, array.shape, op.indices, tir.buffer_name(op.buffer))]
            case tir.CallOp():
                return self._call(op)
            case _:
                raise error_at(op, f"'{op.name}' cannot be interpreted in a tensor expression")

    def indices(
        self, op: Operation, shape: tuple[int, ...], values: Sequence[SSAValue], name: str
    ) -> tuple[Array, ...]:
        """Checks indices; those of masked elements are replaced by some within bounds."""
        result: list[Array] = []
        for dim, (value, extent) in enumerate(zip(values, shape, strict=True)):
            index = self.value(value)
            outside = (index < 0) | (index >= extent)
            if outside.any():
                wrong = outside if self.mask is None else outside & self.mask
                if wrong.any():
                    at = np.broadcast_to(index, wrong.shape)[wrong].flat[0]
                    raise error_at(op, f"index {at} is outside dimension {dim} of '{name}', which has {extent}")
                index = np.clip(index, 0, max(extent - 1, 0))
            result.append(index)
        if any(extent == 0 for extent in shape):
            # All elements are masked, or the box is empty: there is nothing to take.
            raise error_at(op, f"'{name}' has no elements to read")
        return tuple(result)

    def _choose(self, op: tir.IfThenElseOp) -> Array:
        condition = self.known[op.condition]
        active = condition if self.mask is None else condition & self.mask
        others = ~condition if self.mask is None else ~condition & self.mask
        dtype = dtype_of(op.result.type, op)
        sides: list[Array] = []
        for mask, region in ((active, op.then_region), (others, op.else_region)):
            if not mask.any():
                sides.append(np.zeros((), dtype))
                continue
            full = bool(mask.all())
            inner = _Points(self.run, self.axes, self.known, None if full else mask, self.depth + 1, self.buffers)
            last = _yielded_by(region.block)[0]
            side = (
                in_deep_stack(lambda i=inner, v=last: i.value(v)) if inner.depth % _SHALLOW == 0 else inner.value(last)
            )
            sides.append(side)
            for value in inner.added:
                # Values computed for some elements are not valid for others.
                del self.known[value]
        return np.where(condition, *sides)

    def _call(self, op: tir.CallOp) -> Any:
        name, result = op.intrinsic.data, op.result
        arguments = list(op.arguments)
        if result is None:
            raise error_at(op, f"T.{name} has no value to interpret")
        if name in ("call_extern", "call_pure_extern"):
            first = arguments[0].owner if arguments else None
            called = first.value.data if isinstance(first, tir.ConstOp) and isinstance(first.value, StringAttr) else ""
            function = extern_function(called)
            if function is None or any(v in self.buffers for v in arguments):
                raise error_at(op, f"the interpreter has no function '{called}' to call")
            return function(*self.values(arguments[1:]))
        if name in ("call_packed", "tvm_call_packed"):
            raise error_at(
                op, "the interpreter cannot call packed functions", "they belong to a program that registers them"
            )
        values = self.values(arguments)
        if name == "likely":
            return values[0]
        if name == "reinterpret":
            return reinterpret(arguments[0].type, result.type, op)(values[0])
        function = None
        if arguments:
            function = integer_call(name, result.type, arguments[0].type, op) or float_call(name, arguments[0].type, op)
        if function is None:
            raise error_at(op, f"the interpreter does not know T.{name}")
        if all(v.ndim == 0 for v in values):
            # The functions take arrays of elements, or Python numbers.
            return np.asarray(function(*(v[None] for v in values)))[0]
        return function(*values)


def _cast(op: tir.CastOp, value: Array) -> Any:
    result = caster(op.value.type, op.result.type, op)(value if value.ndim else value[None])
    return result if value.ndim else np.asarray(result)[0]


def _number(value: float, type: Attribute, op: Operation) -> Array:
    dtype = dtype_of(type, op)
    if dtype.kind in "iu" and isinstance(value, int):
        # Unsigned constants may be held as the signed number of the same bits.
        return np.asarray(value & ((1 << dtype.itemsize * 8) - 1), f"uint{dtype.itemsize * 8}").view(dtype)
    return np.asarray(value, dtype)


def _yielded_by(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.values if isinstance(last, tir.YieldOp) else ()


def _is_text(value: SSAValue) -> bool:
    return isinstance(value.owner, tir.ConstOp) and isinstance(value.owner.value, StringAttr)
