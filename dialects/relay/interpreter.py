"""Interprets a Relay module: runs its functions over numpy, op by op.

Calls, branches and matches are on an explicit stack, so that neither long programs nor deep recursion of the program
use Python's. A call in tail position takes its caller's place: a loop by tail recursion runs in constant space, any other
recursion may be `MAX_DEPTH` calls deep.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...support.diagnostics import MirError, error_at
from ...support.memory import why_no_memory
from ...support.text import counted
from .. import numeric
from ..array import numpy_dtype
from ..tir.types import type_to_dtype
from . import ir
from .infer.open_checks import open_sizes
from .operator import Attrs, OperatorOp
from .patterns import ConstructorPattern, TuplePattern, VarPattern, WildcardPattern
from .text import type_text
from .types import tuple_of

MAX_DEPTH = 200_000
"""How deep calls that are not in tail position may nest."""

Array: TypeAlias = "NDArray[Any]"
Value: TypeAlias = "Array | tuple[Value, ...] | Closure | GlobalFunction | ConstructorFunction | AdtValue | Cell"
"""The value of an SSA value: a tensor as an array (a scalar as one of rank 0), a tuple as a tuple."""


class Activation:
    """The values of one activation of a function; a closure's activations see those around it."""

    __slots__ = ("outer", "values")

    def __init__(self, outer: Activation | None, values: dict[SSAValue, Value]):
        self.outer = outer
        self.values = values

    def __getitem__(self, name: SSAValue) -> Value:
        scope: Activation | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise error_at(name, "this value is used before it is computed")


@dataclass(frozen=True, eq=False)
class Closure:
    """A local function and the values around it."""

    fn: ir.FnOp
    scope: Activation

    def __repr__(self) -> str:
        return f"fn({', '.join('%' + n.data for n in self.fn.param_names.data)})"


@dataclass(frozen=True, eq=False)
class GlobalFunction:
    """A function of the module as a value."""

    func: ir.FuncOp

    def __repr__(self) -> str:
        return f"@{self.func.sym_name.data}"


@dataclass(frozen=True, eq=False)
class ConstructorFunction:
    """A constructor as a value."""

    type_name: str
    constructor: str

    def __repr__(self) -> str:
        return self.constructor


@dataclass(frozen=True, eq=False)
class AdtValue:
    """A value of an algebraic data type."""

    type_name: str
    constructor: str
    fields: tuple[Value, ...]

    def __repr__(self) -> str:
        # Not the fields: a list may be thousands deep.
        return f"{self.constructor}({'…' if self.fields else ''})"


@dataclass(eq=False)
class Cell:
    """The value that a reference points to."""

    value: Value


class _Frame:
    """The position in a function body, a branch or a clause.

    The value of the block is stored as `target` in the scope of the frame below.
    """

    __slots__ = ("op", "scope", "target")

    def __init__(self, block: Block, scope: Activation, target: SSAValue | None):
        self.op: Operation | None = block.first_op
        self.scope = scope
        self.target = target


class _Use:
    """The properties of an operator's use that are looked up once."""

    __slots__ = ("attrs", "bytes", "dtype", "empty", "meaning", "open", "shape", "type")

    def __init__(self, op: OperatorOp):
        problem = op.OPERATOR.problem(op.given(), len(op.args))
        if problem is not None:
            raise error_at(op, problem)
        self.meaning = op.OPERATOR.numpy
        self.attrs: Attrs = op.attrs()
        self.type = type = op.result.type
        self.dtype = numpy_dtype(type_to_dtype(type.element_type)) if isinstance(type, TensorType) else None
        self.shape = type.get_shape() if isinstance(type, TensorType) else None
        self.bytes = 0
        if self.dtype is not None and self.shape is not None and DYNAMIC_INDEX not in self.shape:
            self.bytes = prod(self.shape) * self.dtype.itemsize
        self.empty = empty_of(op.result.type)
        self.open = open_sizes(op)

    def has_type(self, value: Value) -> bool:
        """Returns whether a value is of the result's type."""
        if isinstance(value, np.ndarray) and value.shape == self.shape and value.dtype == self.dtype:
            return True
        return fits(value, self.type)


def empty_of(type: Attribute | None) -> Value | None:
    """Returns the value of a type without elements, `Tensor[(2, 0), float32]`; None for any other type.

    No element is left to compute, and not all of numpy's functions take arrays without elements.
    """
    match type:
        case TensorType():
            shape = type.get_shape()
            if 0 in shape and DYNAMIC_INDEX not in shape:
                return np.empty(shape, numpy_dtype(type_to_dtype(type.element_type)))
        case TupleType():
            fields = [empty_of(field) for field in type.types.data]
            known = [field for field in fields if field is not None]
            if known and len(known) == len(fields):
                return tuple(known)
        case _:
            pass
    return None


def _arrays_in(values: Sequence[Value]) -> Iterator[Array]:
    """Iterates over the tensors of values, those of tuples one by one."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from _arrays_in(value)


def _type_at_run_time(type: Attribute, value: Value) -> Attribute:
    """Returns the type of an operator's argument with the value's sizes instead of `?`."""
    if isinstance(type, TensorType) and isinstance(value, np.ndarray):
        return TensorType(type.element_type, value.shape)
    if isinstance(type, TupleType) and isinstance(value, tuple):
        return tuple_of([_type_at_run_time(field, part) for field, part in zip(type.types.data, value, strict=True)])
    return type


def interpret(module: ModuleOp, entry: str, args: Sequence[Value]) -> Value:
    """Returns the value of the call `@entry(args…)`.

    Args:
        module: a verified module; types need not have been inferred.
        entry: a Relay function of it.
        args: one value for each parameter: arrays, tuples of them, or values of data types.

    Raises:
        MirError: where the function is missing, the arguments do not have the parameters' types, an operator fails on
            its data, no clause of a match fits, or calls nest deeper than `MAX_DEPTH`.
    """
    return Interpreter(module).call(entry, args)


def flatten(value: Value) -> list[Array]:
    """Returns the arrays in a value, tuples flattened depth first.

    Raises MirError for a value that holds anything else.
    """
    result: list[Array] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending += reversed(item)
        elif isinstance(item, np.ndarray):
            result.append(item)
        else:
            raise error_at(None, f"the result holds {item!r}, which is not a tensor")
    return result


class Interpreter:
    """Runs the functions of one module; caches what is looked up once per op."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.symbols: dict[str, Operation] = {}
        for op in module.body.block.ops:
            name = op.get_attr_or_prop("sym_name")
            if isinstance(name, StringAttr):
                self.symbols[name.data] = op
        self._uses: dict[OperatorOp, _Use] = {}
        self._stack: list[_Frame] = []

    def call(self, entry: str, args: Sequence[Value]) -> Value:
        """Returns the value of a call, as `interpret`."""
        func = self.symbols.get(entry)
        if not isinstance(func, ir.FuncOp):
            names = ", ".join(f"@{n}" for n, op in self.symbols.items() if isinstance(op, ir.FuncOp))
            raise error_at(None, f"the module has no Relay function '@{entry}'; it has {names or 'none'}")
        _check_arguments(func, args)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            self._stack = [_Frame(func.body.block, Activation(None, dict(zip(func.params, args, strict=True))), None)]
            return self._run()

    def _run(self) -> Value:
        stack = self._stack
        while True:
            frame = stack[-1]
            op = frame.op
            if op is None:
                raise error_at(None, "a block ends without relay.return")
            frame.op = op.next_op
            if isinstance(op, ir.ReturnOp):
                value = frame.scope[op.value]
                stack.pop()
                if not stack:
                    return value
                if frame.target is not None:
                    stack[-1].scope.values[frame.target] = value
            elif isinstance(op, OperatorOp):
                frame.scope.values[op.result] = self._operator(op, frame.scope)
            elif (simple := _SIMPLE.get(type(op))) is not None:
                frame.scope.values[op.results[0]] = simple(self, op, frame.scope)
            elif (control := _CONTROL.get(type(op))) is not None:
                control(self, op, frame)
            else:
                raise error_at(op, f"Relay's interpreter has no meaning for '{op.name}'")

    def _operator(self, op: OperatorOp, scope: Activation) -> Value:
        use = self._uses.get(op)
        if use is None:
            use = self._uses[op] = _Use(op)
        arguments = [scope[a] for a in op.args]
        if (reason := why_no_memory(use.bytes)) is not None:
            raise error_at(op, f"{op.OPERATOR.name}: the result {type_text(op.result.type)} {reason}")
        empty = use.empty
        if use.open is not None:
            types = [_type_at_run_time(a.type, value) for a, value in zip(op.args, arguments, strict=True)]
            empty = empty_of(use.open.check(types, [*_arrays_in(arguments)]))
        if empty is not None:
            return empty
        try:
            result = use.meaning(use.attrs, *arguments)
        except MirError:
            raise
        except Exception as error:
            # Any error of numpy, about shapes or values of the data, is the program's error.
            shapes = ", ".join(map(_describe, arguments))
            raise error_at(op, f"{op.OPERATOR.name} fails on ({shapes}): {error}") from error
        value = _as_value(result)
        if not use.has_type(value) and isinstance(value, np.ndarray) and value.dtype == np.int8:
            # numpy computes int8 from its narrow integers in many functions.
            names = [a.dtype.name for a in arguments if isinstance(a, np.ndarray)]
            four = next((name for name in names if name in numeric.NARROW), "int8")
            kept = value.astype(numpy_dtype(four))
            value = kept if use.has_type(kept) else value
        if not use.has_type(value):
            raise error_at(
                op, f"{op.OPERATOR.name} gives {_describe(value)}, but its type is {type_text(op.result.type)}"
            )
        return value

    def _enter(self, block: Block, scope: Activation, frame: _Frame, op: Operation) -> None:
        """Continues in `block`, whose value becomes that of `op`."""
        target: SSAValue | None = op.results[0]
        if _is_last(op):
            # Nothing is left to do in this frame but to return the value: the new one returns it instead.
            self._stack.pop()
            target = frame.target
        elif len(self._stack) >= MAX_DEPTH:
            raise error_at(
                op,
                f"calls nest deeper than {MAX_DEPTH}",
                "a recursion whose result is returned as it is (a tail call) may go on without limit",
            )
        self._stack.append(_Frame(block, scope, target))

    def _apply(self, callee: Value, args: Sequence[Value], frame: _Frame, op: Operation) -> None:
        """Calls a function value; the result becomes that of `op`."""
        match callee:
            case GlobalFunction():
                params, block, scope = callee.func.params, callee.func.body.block, Activation(None, {})
            case Closure():
                params, block, scope = callee.fn.params, callee.fn.body.block, Activation(callee.scope, {})
                if callee.fn.self_name is not None:
                    scope.values[block.args[0]] = callee
            case ConstructorFunction():
                value = AdtValue(callee.type_name, callee.constructor, tuple(args))
                frame.scope.values[op.results[0]] = value
                return
            case _:
                raise error_at(op, f"{_describe(callee)} is called, but is not a function")
        if len(params) != len(args):
            raise error_at(op, f"{callee!r} takes {counted(len(params), 'argument')}, not {len(args)}")
        scope.values.update(zip(params, args, strict=True))
        self._enter(block, scope, frame, op)

    def _call(self, op: Operation, frame: _Frame) -> None:
        assert isinstance(op, ir.CallOp)
        self._apply(frame.scope[op.callee], [frame.scope[a] for a in op.arguments], frame, op)

    def _call_global(self, op: Operation, frame: _Frame) -> None:
        assert isinstance(op, ir.CallGlobalOp)
        callee = self._global(op, op.callee.root_reference.data)
        self._apply(callee, [frame.scope[a] for a in op.arguments], frame, op)

    def _if(self, op: Operation, frame: _Frame) -> None:
        assert isinstance(op, ir.IfOp)
        condition = frame.scope[op.condition]
        if not isinstance(condition, np.ndarray) or condition.size != 1:
            raise error_at(op, f"the condition of an if must be a scalar, not {_describe(condition)}")
        region = op.then_region if condition.item() else op.else_region
        self._enter(region.block, frame.scope, frame, op)

    def _match(self, op: Operation, frame: _Frame) -> None:
        assert isinstance(op, ir.MatchOp)
        value = frame.scope[op.value]
        for pattern, clause in zip(op.patterns.data, op.clauses, strict=True):
            bound = match_pattern(pattern, value)
            if bound is not None:
                # The clause's variables live in the function's scope: its ops run once for each activation.
                frame.scope.values.update(zip(clause.block.args, bound, strict=True))
                self._enter(clause.block, frame.scope, frame, op)
                return
        raise error_at(op, f"no clause of the match fits {_describe(value)}")

    def _global(self, op: Operation, name: str) -> GlobalFunction:
        func = self.symbols.get(name)
        if not isinstance(func, ir.FuncOp):
            raise error_at(op, f"the module has no Relay function '@{name}'")
        return GlobalFunction(func)

    def _global_ref(self, op: Operation, scope: Activation) -> Value:
        assert isinstance(op, ir.GlobalRefOp)
        return self._global(op, op.symbol.root_reference.data)

    def _tuple_get_item(self, op: Operation, scope: Activation) -> Value:
        assert isinstance(op, ir.TupleGetItemOp)
        value, index = scope[op.tuple_value], op.index.value.data
        if not isinstance(value, tuple) or not 0 <= index < len(value):
            raise error_at(op, f"{_describe(value)} has no field {index}")
        return value[index]

    def _ref_read(self, op: Operation, scope: Activation) -> Value:
        assert isinstance(op, ir.RefReadOp)
        return self._cell(op, scope[op.ref]).value

    def _ref_write(self, op: Operation, scope: Activation) -> Value:
        assert isinstance(op, ir.RefWriteOp)
        self._cell(op, scope[op.ref]).value = scope[op.value]
        return ()

    def _cell(self, op: Operation, value: Value) -> Cell:
        if not isinstance(value, Cell):
            raise error_at(op, f"{_describe(value)} is not a reference")
        return value

    def _call_tir(self, op: Operation, scope: Activation) -> Value:
        assert isinstance(op, ir.CallTirOp)
        from .call_tir import call_tir

        name = op.callee.root_reference.data
        callee = self.symbols.get(name)
        if callee is None:
            raise error_at(op, f"the module has no function '{name}'")
        return call_tir(op, callee, [scope[a] for a in op.arguments], self.module)


_SIMPLE: dict[type[Operation], Callable[[Interpreter, Any, Activation], Value]] = {
    ir.ConstantOp: lambda self, op, scope: op.value.array,
    ir.LetOp: lambda self, op, scope: scope[op.value],
    ir.TupleOp: lambda self, op, scope: tuple(scope[f] for f in op.fields),
    ir.TupleGetItemOp: Interpreter._tuple_get_item,  # pyright: ignore[reportPrivateUsage]
    ir.FnOp: lambda self, op, scope: Closure(op, scope),
    ir.GlobalRefOp: Interpreter._global_ref,  # pyright: ignore[reportPrivateUsage]
    ir.ConstructOp: lambda self, op, scope: AdtValue(
        op.type_name.data, op.constructor.data, tuple(scope[a] for a in op.arguments)
    ),
    ir.ConstructorRefOp: lambda self, op, scope: ConstructorFunction(op.type_name.data, op.constructor.data),
    ir.RefOp: lambda self, op, scope: Cell(scope[op.value]),
    ir.RefReadOp: Interpreter._ref_read,  # pyright: ignore[reportPrivateUsage]
    ir.RefWriteOp: Interpreter._ref_write,  # pyright: ignore[reportPrivateUsage]
    ir.CallTirOp: Interpreter._call_tir,  # pyright: ignore[reportPrivateUsage]
}
"""Ops whose value is computed at once."""

_CONTROL: dict[type[Operation], Callable[[Interpreter, Operation, _Frame], None]] = {
    ir.CallOp: Interpreter._call,  # pyright: ignore[reportPrivateUsage]
    ir.CallGlobalOp: Interpreter._call_global,  # pyright: ignore[reportPrivateUsage]
    ir.IfOp: Interpreter._if,  # pyright: ignore[reportPrivateUsage]
    ir.MatchOp: Interpreter._match,  # pyright: ignore[reportPrivateUsage]
}
"""Ops that go on in another block."""


def _is_last(op: Operation) -> bool:
    """Returns whether the block returns the op's value as it is, possibly under a name of `let`."""
    value, following = op.results[0], op.next_op
    while isinstance(following, ir.LetOp) and following.value is value:
        value, following = following.result, following.next_op
    return isinstance(following, ir.ReturnOp) and following.value is value


def match_pattern(pattern: Attribute, value: Value) -> list[Value] | None:
    """Returns the values of the pattern's variables, left to right; None when the value does not match."""
    bound: list[Value] = []
    pending: list[tuple[Attribute, Value]] = [(pattern, value)]
    while pending:
        part, item = pending.pop()
        match part:
            case WildcardPattern():
                continue
            case VarPattern():
                bound.append(item)
                continue
            case ConstructorPattern():
                if not isinstance(item, AdtValue) or item.constructor != part.constructor.data:
                    return None
                fields = item.fields
            case TuplePattern():
                if not isinstance(item, tuple):
                    return None
                fields = item
            case _:
                return None
        if len(fields) != len(part.fields.data):
            return None
        pending += reversed(list(zip(part.fields.data, fields, strict=True)))
    return bound


def _as_value(result: Any) -> Value:
    """Converts an operator's result to row-major arrays: the order of numpy's sums follows the strides."""
    if isinstance(result, (tuple, list)):
        return tuple(np.asarray(r, order="C") for r in cast("Sequence[Any]", result))
    return np.asarray(result, order="C")


def _describe(value: Value) -> str:
    """Formats a value for an error message: its kind and shape, not its elements."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_describe, value))})"
    return repr(value)


def fits(value: Value, type: Attribute) -> bool:
    """Returns whether a value is of a type: dtypes and known dimensions of tensors, fields of tuples."""
    match type:
        case TensorType():
            if not isinstance(value, np.ndarray) or value.dtype != numpy_dtype(type_to_dtype(type.element_type)):
                return False
            shape = type.get_shape()
            return len(shape) == value.ndim and all(
                d in (DYNAMIC_INDEX, n) for d, n in zip(shape, value.shape, strict=True)
            )
        case TupleType():
            fields = type.types.data
            return isinstance(value, tuple) and len(value) == len(fields) and all(map(fits, value, fields))
        case _:
            return True


def _check_arguments(func: ir.FuncOp, args: Sequence[Value]) -> None:
    name = func.sym_name.data
    if len(args) != len(func.params):
        raise error_at(func, f"@{name} takes {counted(len(func.params), 'argument')}, not {len(args)}")
    for param, label, value in zip(func.params, func.param_names.data, args, strict=True):
        if not fits(value, param.type):
            raise error_at(
                func,
                f"the argument for %{label.data} of @{name} is {_describe(value)}, which is not of type {type_text(param.type)}",
            )
