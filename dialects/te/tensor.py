"""Defines tensors by their computes: `placeholder`, `compute`, `reduce_axis`, reducers and `scan`.

These are cheap Python objects; `emit.func` emits the ops of those that a function needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from types import FunctionType
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from ...support.diagnostics import MirError
from ...support.source_text import characters
from ...support.text import counted, with_article
from ..tir import node as ex
from ..tir.node import (
    Const,
    Element,
    Elementwise,
    Expr,
    ExprLike,
    IntImm,
    IterVar,
    Range,
    SizeVar,
    Var,
    convert,
    current_location,
    describe,
    fail,
    items_of,
)
from ..tir.node.emit_expr import type_of
from ..tir.node.shape import Dims, ShapeLike, checked_dtype, dims_of, extents_of
from .axes import OPAQUE, ORDERED, REDUCE, SPATIAL
from .axes import axis as axis_of
from .ops import FOLDS, neutral
from .tag_scope import scoped_tag

AttrValue: TypeAlias = "int | float | bool | str | Sequence[AttrValue] | Mapping[str, AttrValue] | None"
"""An attribute of a compute, scan or extern."""


class Operation:
    """Computes one or several tensors, named `name`; subclasses have TVM's fields (`axis`, `body`…)."""

    def __init__(self, name: str, tag: str = "", attrs: Mapping[str, AttrValue] | None = None):
        self.name = characters(name)
        self.tag = tag
        self.attrs: dict[str, AttrValue] = dict(attrs or {})
        self.location = current_location()
        self.outputs: tuple[Tensor, ...] = ()
        self.axis: tuple[IterVar, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Returns the axes that are reduced over: none, but of a compute that is a reduction."""
        return ()

    def set_outputs(self, outputs: Sequence[tuple[Dims, str]]) -> tuple[Tensor, ...]:
        """Creates the tensors, of these shapes and dtypes, and returns them."""
        self.outputs = tuple(Tensor(self, i, dims, dtype) for i, (dims, dtype) in enumerate(outputs))
        return self.outputs

    @property
    def num_outputs(self) -> int:
        """Returns the number of tensors that this computes."""
        return len(self.outputs)

    def output(self, index: int) -> Tensor:
        """Returns tensor number `index` of those computed."""
        return self.outputs[index]

    @property
    def input_tensors(self) -> list[Tensor]:
        """Returns the tensors read, each once, in order of first use."""
        return []


class Tensor(Elementwise):
    """A tensor: `A[i, j]` and `A(i, j)` read an element; it has `shape`, `dtype`, `ndim`, `name`, `op`.

    `A + B`, `2 * A`, `-A` are tensors computed element by element, of shapes that broadcast as numpy's do, named as TOPI names
    them (`T_add`, `T_multiply`).
    """

    __slots__ = ("dims", "dtype", "hint", "op", "value_index")

    def __init__(self, op: Operation, value_index: int, dims: Dims, dtype: str):
        self.op = op
        self.value_index = value_index
        self.dims = dims
        self.dtype = dtype
        # The program's name of the tensor; `name` is the one that counts.
        self.hint: str | None = None

    @property
    def shape(self) -> tuple[int | Expr, ...]:
        """Returns the extents: Python numbers where they are known int32, otherwise expressions."""
        return extents_of(self.dims)

    @property
    def ndim(self) -> int:
        """Returns the number of dimensions."""
        return len(self.dims)

    @property
    def name(self) -> str:
        """Returns the operation's name, with `.v0`, `.v1`… for several tensors."""
        return self.op.name if self.op.num_outputs == 1 else f"{self.op.name}.v{self.value_index}"

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """Returns the axes of the operation."""
        return self.op.axis

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one tensor."""
        return self is other

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Any:
        indices = indices if isinstance(indices, tuple) else (indices,)
        return self(*indices) if len(indices) >= len(self.dims) else TensorSlice(self, indices)

    def __call__(self, *indices: ExprLike) -> Expr:
        if len(indices) != len(self.dims):
            raise fail(
                f"tensor '{self.name}' has {counted(len(self.dims), 'dimension')}, but is read with {counted(len(indices), 'index')}"
            )
        return Read(self, indices)

    def __add__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_add", ex.add, self, other)

    def __radd__(self, other: ExprLike) -> Tensor:
        return broadcast("T_add", ex.add, other, self)

    def __sub__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_subtract", ex.subtract, self, other)

    def __rsub__(self, other: ExprLike) -> Tensor:
        return broadcast("T_subtract", ex.subtract, other, self)

    def __mul__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_multiply", ex.multiply, self, other)

    def __rmul__(self, other: ExprLike) -> Tensor:
        return broadcast("T_multiply", ex.multiply, other, self)

    def __truediv__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_divide", ex.divide, self, other)

    def __rtruediv__(self, other: ExprLike) -> Tensor:
        return broadcast("T_divide", ex.divide, other, self)

    def __floordiv__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_floor_divide", ex.floordiv, self, other)

    def __rfloordiv__(self, other: ExprLike) -> Tensor:
        return broadcast("T_floor_divide", ex.floordiv, other, self)

    def __mod__(self, other: Tensor | ExprLike) -> Tensor:
        return broadcast("T_floor_mod", ex.floormod, self, other)

    def __rmod__(self, other: ExprLike) -> Tensor:
        return broadcast("T_floor_mod", ex.floormod, other, self)

    def __neg__(self) -> Tensor:
        return broadcast("T_multiply", ex.multiply, self, -1)

    def astype(self, dtype: str) -> Tensor:
        """Returns the tensor with its elements converted to `dtype`."""
        names = [f"ax{number}" for number in range(self.ndim)]
        return compute_named(self.dims, names, lambda *i: self(*i).astype(dtype), "T_cast", "elemwise")

    def __len__(self) -> int:
        raise fail(f"tensor '{self.name}' has no len(); its extents are {self.name}.shape")

    def __iter__(self) -> Any:
        raise fail(f"tensor '{self.name}' cannot be iterated over; index it")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Tensor(shape=[{', '.join(map(str, self.shape))}], name={self.name}, dtype={self.dtype})"


class TensorSlice:
    """A tensor with its first indices given: `A[i][j]` is `A[i, j]`."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[ExprLike, ...]):
        self.tensor = tensor
        self.indices = indices

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Any:
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]

    def as_expr(self) -> Expr:
        """Returns the element, when indices suffice."""
        return self.tensor(*self.indices)

    @property
    def dtype(self) -> str:
        """Returns the tensor's dtype."""
        return self.tensor.dtype

    def __repr__(self) -> str:
        return f"{self.tensor.name}[{', '.join(map(str, self.indices))}]"


class Read(Element):
    """An element of a tensor; `args` are the indices."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor, indices: Sequence[object]):
        args: list[Expr] = []
        for number, (index, dim) in enumerate(zip(indices, tensor.dims, strict=True)):
            if isinstance(index, slice):
                raise fail(f"tensor '{tensor.name}' is read by element; a slice is not an index")
            index = convert(index, dim.dtype)
            if ex.is_float(index.dtype) or index.dtype in ("handle", "bool"):
                raise fail(
                    f"index {number} of '{tensor.name}' has dtype {index.dtype}; an index is an integer",
                    'write .astype("int32") where it is meant',
                )
            args.append(index)
        super().__init__(tensor.dtype, tuple(args))
        self.tensor = tensor

    @property
    def array_name(self) -> str:
        return self.tensor.name

    @property
    def producer(self) -> Tensor:
        """Returns the tensor, by TVM's name."""
        return self.tensor

    @property
    def indices(self) -> tuple[Expr, ...]:
        """Returns the indices."""
        return self.args


class Reduction:
    """A reduction of one or several values over axes; each value is a `Reduce` of it."""

    __slots__ = ("axes", "condition", "init", "reducer", "sources")

    def __init__(
        self,
        reducer: str | ReducerInstance,
        sources: tuple[Expr, ...],
        axes: tuple[IterVar, ...],
        condition: Expr | None,
        init: tuple[Expr, ...],
    ):
        self.reducer = reducer
        self.sources = sources
        self.axes = axes
        self.condition = condition
        self.init = init


class Reduce(Expr):
    """Value `value_index` of a reduction."""

    __slots__ = ("reduction", "value_index")

    def __init__(
        self,
        combiner: ex.CommReducer | None,
        src: Sequence[ExprLike],
        rdom: Sequence[IterVar],
        condition: ExprLike | None,
        value_index: int,
        init: Sequence[ExprLike] = (),
        span: ex.Located | None = None,
    ):
        sources = tuple(map(convert, src))
        parts = (
            ((), (), (), ())
            if combiner is None
            else (combiner.lhs, combiner.rhs, combiner.result, combiner.identity_element)
        )
        reducer = ReducerInstance(
            "reduce", (*parts[0], *parts[1]), tuple(parts[2]), tuple(parts[3]), current_location(), combiner
        )
        where = None if condition is None else convert(condition)
        reduction = Reduction(reducer, sources, tuple(rdom), where, tuple(map(convert, init)))
        super().__init__(sources[value_index].dtype, span=span)
        self.reduction = reduction
        self.value_index = value_index

    @staticmethod
    def of(reduction: Reduction, value_index: int) -> Reduce:
        """Returns a value of a reduction."""
        made = object.__new__(Reduce)
        Expr.__init__(made, reduction.sources[value_index].dtype)
        made.reduction = reduction
        made.value_index = value_index
        return made

    @property
    def source(self) -> list[Expr]:
        """Returns the values that are reduced."""
        return list(self.reduction.sources)

    @property
    def init(self) -> list[Expr]:
        """Returns the first values, none where the reducer's identity is the first."""
        return list(self.reduction.init)

    @property
    def axis(self) -> list[IterVar]:
        """Returns the axes that are reduced over."""
        return list(self.reduction.axes)

    @property
    def condition(self) -> Expr:
        """Returns which elements are reduced: True for all."""
        return ex.const(True) if self.reduction.condition is None else self.reduction.condition

    @property
    def combiner(self) -> ex.CommReducer | None:
        """Returns the function that combines two values, with the values that reductions begin with."""
        reducer = self.reduction.reducer
        if isinstance(reducer, ReducerInstance):
            if reducer.combiner is not None or not reducer.parameters:
                return reducer.combiner
            half = len(reducer.parameters) // 2
            return ex.CommReducer(
                reducer.parameters[:half], reducer.parameters[half:], reducer.results, reducer.identities
            )
        first = ex.const(neutral(reducer, type_of(self.dtype)), self.dtype)
        x, y = Var("x", self.dtype), Var("y", self.dtype)
        return ex.CommReducer([x], [y], [ex.BUILD[FOLDS[reducer]](x, y)], [first])


@dataclass(eq=False)
class ReducerInstance:
    """A custom reducer at given dtypes: parameters (left ones, then right ones), results and identities."""

    name: str
    parameters: tuple[Var, ...]
    results: tuple[Expr, ...]
    identities: tuple[Expr, ...]
    location: Any
    combiner: ex.CommReducer | None = None


class PlaceholderOp(Operation):
    """An input."""


class ComputeOp(Operation):
    """A tensor by elements: `axis` are the spatial axes, `body` one value for each output, of these axes."""

    def __init__(
        self,
        name: str,
        axis: tuple[IterVar, ...],
        body: tuple[Expr, ...],
        tag: str,
        attrs: Mapping[str, AttrValue] | None,
    ):
        super().__init__(name, tag, attrs)
        self.axis = axis
        self.body = body
        self._input_tensors: tuple[Tensor, ...] | None = None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Returns the axes of the reduction, if the compute is one."""
        return self.body[0].reduction.axes if isinstance(self.body[0], Reduce) else ()

    @property
    def input_tensors(self) -> list[Tensor]:
        if self._input_tensors is None:
            # Expressions are immutable.
            self._input_tensors = tuple(reads_of(self.body))
        return list(self._input_tensors)

    @property
    def attached_tensors(self) -> list[Tensor]:
        """Returns the tensors among the attributes: `layout_free_placeholders`."""
        value = self.attrs.get("layout_free_placeholders")
        return [t for t in value if isinstance(t, Tensor)] if isinstance(value, (list, tuple)) else []


class ScanOp(Operation):
    """A recurrence along the first dimension: the states begin with `init` and go on with `update`."""

    def __init__(
        self,
        name: str,
        init: tuple[Tensor, ...],
        update: tuple[Tensor, ...],
        state: tuple[Tensor, ...],
        inputs: tuple[Tensor, ...],
        tag: str,
        attrs: Mapping[str, AttrValue] | None,
    ):
        super().__init__(name, tag, attrs)
        self.init = init
        self.update = update
        self.state = state
        self.inputs = inputs

    @property
    def scan_axis(self) -> IterVar:
        """Returns the axis of the steps computed by `update`."""
        return self.schedule_axes[0]

    @cached_property
    def schedule_axes(self) -> list[IterVar]:
        """Returns the axis of steps, and an axis for each further dimension of the states."""
        steps = self.init[0].dims[0]
        found: list[IterVar] = [
            axis_of(
                f"{self.name}.idx", Range.from_min_extent(steps, ex.subtract(self.state[0].dims[0], steps)), ORDERED
            )
        ]
        for state in self.state:
            for k, dim in enumerate(state.dims[1:], 1):
                found.append(axis_of(f"{state.name}.i{k}", Range.from_min_extent(ex.const(0, dim.dtype), dim), OPAQUE))
        return found

    @property
    def input_tensors(self) -> list[Tensor]:
        return [*self.inputs, *self.init, *self.state, *self.update]


def children_of(node: Expr) -> list[Expr]:
    """Returns the parts of an expression, branches and a reduction's included."""
    parts: list[Expr] = list(node.args)
    if isinstance(node, ex.Choice):
        parts += (node.then_value, node.else_value)
    elif isinstance(node, Reduce):
        reduction = node.reduction
        parts += (*reduction.sources, *reduction.init)
        if reduction.condition is not None:
            parts.append(reduction.condition)
    return parts


def parts_of(values: Sequence[Expr]) -> Iterator[Expr]:
    """Iterates over expressions and their subexpressions, each shared part once, outer ones first."""
    seen: set[int] = set()
    pending: list[Expr] = list(reversed(values))
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending += reversed(children_of(node))


def reads_of(values: Sequence[Expr]) -> list[Tensor]:
    """Returns the tensors that expressions read, each once, in order of first use."""
    found = {id(node.tensor): node.tensor for node in parts_of(values) if isinstance(node, Read)}
    return list(found.values())


def _check_name(name: object, of: str) -> None:
    """Raises MirError unless the name of a variable, a tensor or an axis is a text."""
    if not isinstance(name, str):
        raise fail(f"the name of {with_article(of)} is a string, not {describe(name)}")


def var(name: str = "tindex", dtype: str = "int32") -> Var:
    """Creates a symbolic size, or a scalar argument."""
    _check_name(name, "variable")
    return Var(name, checked_dtype(dtype, f"variable '{name}'"))


def size_var(name: str = "size", dtype: str = "int32") -> Var:
    """Creates a symbolic size that is not negative."""
    _check_name(name, "variable")
    if ex.is_float(checked_dtype(dtype, f"variable '{name}'")):
        raise fail(f"size '{name}' has dtype {dtype}; a size is an integer")
    return SizeVar(name, dtype)


def placeholder(shape: ShapeLike, dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """Creates an input tensor."""
    _check_name(name, "tensor")
    return PlaceholderOp(name).set_outputs([(dims_of(shape), checked_dtype(dtype, f"tensor '{name}'"))])[0]


def reduce_axis(dom: Sequence[ExprLike], name: str = "rv") -> IterVar:
    """Returns an axis to reduce over, from dom[0] up to but not including dom[1]."""
    _check_name(name, "reduce_axis")
    if not isinstance(dom, (tuple, list)) or len(dom) != 2:
        raise fail("a reduce_axis takes its range as a pair: te.reduce_axis((0, n))")
    low, high = ex.match_types(convert(dom[0]), convert(dom[1]), "reduce_axis")
    if low.dtype not in ("int32", "int64"):
        raise fail(f"the range of reduce_axis '{name}' has dtype {low.dtype}; a range is of int32 or int64")
    extent = ex.distance(low, high)
    if isinstance(extent, Const) and extent.value < 0:
        raise fail(f"reduce_axis '{name}' ends at {dom[1]}, before it begins at {dom[0]}")
    return axis_of(name, Range.from_min_extent(low, extent), REDUCE)


def argument_names(fcompute: Callable[..., object], ndim: int, varargs_names: Sequence[str] | None = None) -> list[str]:
    """Returns the names of a function's axes: its parameters', and i0, i1… for `*i`.

    Raises MirError where it does not take `ndim` arguments.
    """
    if not callable(fcompute):
        raise fail(f"a compute takes a function of its axes, lambda i, j: …, not {describe(fcompute)}")
    names, takes_more = _parameters(fcompute)
    if takes_more:
        rest = ndim - len(names)
        if varargs_names is not None:
            if len(varargs_names) != rest:
                raise fail(f"varargs_names has {counted(len(varargs_names), 'name')} for {counted(rest, 'axis')}")
            names += varargs_names
        else:
            names += [f"i{i}" for i in range(rest)]
    elif not names:
        return [f"i{i}" for i in range(ndim)] if ndim else []
    if len(names) != ndim:
        raise fail(
            f"the function of a compute has {counted(len(names), 'argument')}, but the shape has {counted(ndim, 'dimension')}"
        )
    return names


def _parameters(fcompute: Callable[..., object]) -> tuple[list[str], bool]:
    """Returns the names of a function's parameters, and whether it has variadic ones."""
    if type(fcompute) is FunctionType and not fcompute.__dict__ and not fcompute.__defaults__:
        # Every operator of a program comes here, mostly with a lambda: `inspect` takes fifty times as long.
        code = fcompute.__code__
        if not code.co_flags & inspect.CO_VARKEYWORDS and code.co_kwonlyargcount == len(fcompute.__kwdefaults__ or ()):
            return list(code.co_varnames[: code.co_argcount]), bool(code.co_flags & inspect.CO_VARARGS)
    spec = inspect.getfullargspec(fcompute)
    if spec.varkw is not None or spec.defaults or set(spec.kwonlyargs) - set(spec.kwonlydefaults or ()):
        raise fail("the function of a compute takes plain arguments only, one for each axis")
    return [a for a in spec.args if not (a == "self" and inspect.ismethod(fcompute))], spec.varargs is not None


# One type for each number of axes, the most first: so checkers know those of a lambda.
_V = TypeVar("_V", covariant=True)
Elements: TypeAlias = (
    Callable[[IterVar, IterVar, IterVar, IterVar, IterVar, IterVar], _V]
    | Callable[[IterVar, IterVar, IterVar, IterVar, IterVar], _V]
    | Callable[[IterVar, IterVar, IterVar, IterVar], _V]
    | Callable[[IterVar, IterVar, IterVar], _V]
    | Callable[[IterVar, IterVar], _V]
    | Callable[[IterVar], _V]
    | Callable[[], _V]
)
"""What computes an element from the axes."""


class ElementsOfAll(Protocol[_V]):
    """Computes an element from all axes, `lambda *i: …`."""

    def __call__(self, *i: IterVar) -> _V: ...


@overload
def compute(
    shape: ShapeLike,
    fcompute: ElementsOfAll[ExprLike],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor: ...
@overload
def compute(
    shape: ShapeLike,
    fcompute: Elements[ExprLike],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor: ...
@overload
def compute(
    shape: ShapeLike,
    fcompute: Elements[Sequence[ExprLike]],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any: ...
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """Creates a tensor whose element (i, j, …) is `fcompute(i, j, …)`, or a tuple of tensors for tuples.

    The value is an expression of the axes, or one reduction (then nothing else may be done to its result).
    """
    _check_name(name, "tensor")
    dims = dims_of(shape)
    tag = scoped_tag(tag)
    names = argument_names(fcompute, len(dims), varargs_names)
    return compute_named(dims, names, fcompute, name, tag, attrs)


def compute_named(
    dims: Dims,
    axis_names: Sequence[str],
    fcompute: Callable[..., Any],
    name: str,
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
) -> Any:
    """Creates a compute, with the axes' names given."""
    axis = tuple(axis_of(axis_name, Range(dim), SPATIAL) for axis_name, dim in zip(axis_names, dims, strict=True))
    value = fcompute(*axis)
    parts = items_of(value)
    body = (convert(value),) if parts is None else tuple(map(convert, parts))
    if not body:
        raise fail(f"compute '{name}' gives no value")
    reduced = [v for v in body if isinstance(v, Reduce)]
    if reduced and (
        len(reduced) != len(body)
        or len({id(v.reduction) for v in reduced}) != 1
        or [v.value_index for v in reduced] != list(range(len(body)))
        or len(body) != len(reduced[0].reduction.sources)
    ):
        raise fail(
            f"compute '{name}' gives several values, but they are not the results of one reduction",
            "make them one te.comm_reducer of several values, or several computes",
        )
    inside = [part for v in body for part in (children_of(v) if isinstance(v, Reduce) else (v,))]
    if any(isinstance(part, Reduce) for part in parts_of(inside)):
        raise fail(
            f"a reduction must be the whole value of compute '{name}'",
            "give what follows it, and what it reduces in turn, a compute of its own",
        )
    outputs = ComputeOp(name, axis, body, tag, attrs).set_outputs([(dims, v.dtype) for v in body])
    return outputs[0] if len(outputs) == 1 else outputs


def broadcast(name: str, scalar: Callable[[Any, Any], Expr], lhs: object, rhs: object) -> Tensor:
    """Returns the compute `name` of two operands, one or both tensors: shapes (4, 1), (3,) → (4, 3).

    Dtypes are matched as those of scalars. Raises MirError for shapes that do not broadcast.
    """
    dims = _common(_shape(lhs), _shape(rhs), name)
    names = [f"ax{number}" for number in range(len(dims))]
    tag = "broadcast" if isinstance(lhs, Tensor) and isinstance(rhs, Tensor) else "elemwise"
    return compute_named(dims, names, lambda *i: scalar(_element(lhs, i, dims), _element(rhs, i, dims)), name, tag)


def _element(value: object, indices: tuple[Expr, ...], dims: Dims) -> Expr | object:
    """Returns the operand's element for an element of the result: of the last axes, 0 along extents of 1."""
    if not isinstance(value, Tensor):
        return value
    own = indices[len(dims) - value.ndim :]
    shared = dims[len(dims) - value.ndim :]
    return value(
        *(
            IntImm(index.dtype, 0) if _is_one(dim) and not _is_one(whole) else index
            for index, dim, whole in zip(own, value.dims, shared, strict=True)
        )
    )


def _is_one(dim: Expr) -> bool:
    return isinstance(dim, Const) and dim.value == 1


def _shape(value: object) -> Dims:
    return value.dims if isinstance(value, Tensor) else ()


def _common(lhs: Dims, rhs: Dims, name: str) -> Dims:
    """Returns the broadcast shape. An open extent is taken to equal a known one; two must be one variable."""
    dims: list[Expr] = []
    for a, b in zip_longest(reversed(lhs), reversed(rhs), fillvalue=IntImm("int32", 1)):
        if _is_one(a):
            dims.append(b)
        elif _is_one(b) or a is b:
            dims.append(a)
        elif isinstance(a, Const) and isinstance(b, Const) and a.value != b.value:
            raise _unequal(name, lhs, rhs, a, b)
        elif isinstance(a, Const) or isinstance(b, Const):
            dims.append(a if isinstance(a, Const) else b)
        else:
            raise _unequal(name, lhs, rhs, a, b)
    return tuple(reversed(dims))


def _unequal(name: str, lhs: Dims, rhs: Dims, a: Expr, b: Expr) -> MirError:
    shapes = " and ".join(f"({', '.join(map(str, dims))})" for dims in (lhs, rhs))
    return fail(
        f"{name}: tensors of shapes {shapes} do not broadcast: {a} against {b}",
        "dimensions are aligned from the last; they must be equal, or one of them 1",
    )


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
) -> Any:
    """Creates a recurrence along the first dimension; returns the state(s), of the placeholders' shapes.

    Args:
        init: the first steps, of shape (k, …).
        update: the further steps: a compute of the state's shape whose element at (t, …) reads states before t.
        state_placeholder: represents the state in `update`.
        inputs: other tensors that the computes read, for documentation.
    """
    groups: list[tuple[Tensor, ...]] = []
    for what, given in (
        ("init", init),
        ("update", update),
        ("state_placeholder", state_placeholder),
        ("inputs", inputs or ()),
    ):
        tensors = items_of(given) or ((given,) if isinstance(given, Tensor) else ())
        for tensor in tensors or (() if what == "inputs" else (given,)):
            if not isinstance(tensor, Tensor):
                raise fail(f"te.scan takes tensors as {what}, not {describe(tensor)}")
        groups.append(tensors)
    inits, updates, states, read = groups
    if not len(inits) == len(updates) == len(states) or not states:
        raise fail(
            f"te.scan has {len(inits)} init, {len(updates)} update and {len(states)} state tensors; they go together"
        )
    for state in states:
        if not isinstance(state.op, PlaceholderOp):
            raise fail(f"the state '{state.name}' of te.scan must be a te.placeholder")
        if not state.dims:
            raise fail(f"the state '{state.name}' of te.scan needs a first dimension to step along")
    op = ScanOp(name, inits, updates, states, read, scoped_tag(tag), attrs)
    outputs = op.set_outputs([(s.dims, s.dtype) for s in states])
    return outputs[0] if len(outputs) == 1 else outputs
