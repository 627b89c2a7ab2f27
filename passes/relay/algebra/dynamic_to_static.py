"""`dynamic-to-static`: operators whose shape is an argument, where that argument is known, as operators of a known shape.

As TVM's DynamicToStatic. What is known: constants, `shape_of` and `ndarray_size` of tensors of known type, and whatever
operators make of them, as long as it is small. `arange` of known ends becomes a constant. A tensor in memory that was just taken is
zeros, as no operator writes to one: where it is known to lie in its memory, it needs none of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ....dialects.array import numpy_dtype
from ....dialects.relay.infer import infer_types
from ....dialects.relay.ir import ConstantOp, FuncOp, LetOp, TupleGetItemOp, TupleOp
from ....dialects.relay.operator import (
    Attrs,
    AttrValue,
    Operator,
    OperatorOp,
    all_operators,
    get_operator,
    operator_class,
)
from ....dialects.relay.operators.common.relations import tensor_type, tuple_type
from ....dialects.tir.types import type_to_dtype
from ....support.diagnostics import error_at
from ....support.edit import erase_op, insert_op_before
from ....support.walk import walk_ops
from ..common.rewriting import erase_unused
from ..functional.infer_type import ensure_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Known = Array | tuple[Array, ...]

MOST_ELEMENTS = 4096
"""Larger tensors are not evaluated: shapes are small."""

MOST_COUNTED = 1 << 20
"""An `arange` of more elements stays an operator."""


def _list(value: Array) -> AttrValue:
    return cast(AttrValue, value.tolist())


def _integers(value: Array) -> AttrValue:
    """Sizes, which programs compute in floating point, too (a shape times a scale)."""
    return [int(v) for v in value.reshape(-1)]


def _first(value: Array) -> AttrValue:
    return int(value.reshape(-1)[0])


def _factor(value: Array) -> AttrValue:
    return float(value.reshape(-1)[0])


@dataclass(frozen=True)
class Static:
    """What a dynamic operator becomes: the operator's name, the arguments that stay, those that become attributes."""

    name: str
    kept: tuple[int, ...]
    attributes: tuple[tuple[int, str, Callable[[Array], AttrValue]], ...]


RULES = {
    "dyn.reshape": Static("reshape", (0,), ((1, "newshape", _list),)),
    "dyn.broadcast_to": Static("broadcast_to", (0,), ((1, "shape", _list),)),
    "dyn.topk": Static("topk", (0,), ((1, "k", _first),)),
    "dyn.tile": Static("tile", (0,), ((1, "reps", _list),)),
    "dyn.zeros": Static("zeros", (), ((0, "shape", _list),)),
    "dyn.ones": Static("ones", (), ((0, "shape", _list),)),
    "dyn.full": Static("full", (0,), ((1, "shape", _list),)),
    "dyn.one_hot": Static("one_hot", (0, 1, 2), ((3, "depth", _first),)),
    "dyn.squeeze": Static("squeeze", (0,), ((1, "axis", _list),)),
    "dyn.expand_dims": Static("expand_dims", (0,), ((1, "axis", _first),)),
    "dyn.strided_slice": Static("strided_slice", (0,), ((1, "begin", _list), (2, "end", _list), (3, "strides", _list))),
    "dyn.nn.pad": Static("nn.pad", (0, 2), ((1, "pad_width", _list),)),
    "dyn.image.resize2d": Static("image.resize2d", (0,), ((1, "size", _integers), (2, "roi", _list))),
    "dyn.nn.upsampling": Static("nn.upsampling", (0,), ((1, "scale_h", _factor), (2, "scale_w", _factor))),
    "dyn.nn.upsampling3d": Static(
        "nn.upsampling3d", (0,), ((1, "scale_d", _factor), (2, "scale_h", _factor), (3, "scale_w", _factor))
    ),
    "dyn.sparse_to_dense": Static("sparse_to_dense", (0, 1, 2), ((3, "output_shape", _list),)),
}
"""By the name of the dynamic operator."""


MEMORY = ("memory.alloc_tensor", "memory.kill")
"""Operators of explicit memory that become others."""


@dataclass(frozen=True)
class DynamicToStatic(ModulePass):
    """Give operators of computed shape their shape where it is known."""

    name = "dynamic-to-static"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [function for function in op.ops if isinstance(function, FuncOp)]
        if not any(_is_dynamic(inner) for function in functions for inner in walk_ops(function)):
            return
        ensure_types(op)
        work = _Work()
        for function in functions:
            for inner in list(walk_ops(function)):
                work.visit(inner)
        if work.changed:
            # Calls, branches and functions' results have other types now, too.
            infer_types(op, fresh=True)


def _is_dynamic(op: Operation) -> bool:
    return isinstance(op, OperatorOp) and (op.OPERATOR.name in RULES or op.OPERATOR.name in ("arange", *MEMORY))


@dataclass
class _Work:
    """What is known while ops are visited, each after those that it uses."""

    known: dict[SSAValue, Known] = field(default_factory=dict[SSAValue, "Known"])
    changed: bool = False

    def visit(self, op: Operation) -> None:
        """Makes the op static if it can be, and notes its value if it is known."""
        match op:
            case ConstantOp():
                if op.value.array.size <= MOST_ELEMENTS:
                    self.known[op.result] = op.value.array
            case LetOp():
                if is_open(op.result.type):
                    Rewriter.replace_value_with_new_type(op.result, op.value.type)
                if op.value in self.known:
                    self.known[op.result] = self.known[op.value]
            case TupleOp():
                if is_open(op.result.type):
                    Rewriter.replace_value_with_new_type(op.result, tuple_type(f.type for f in op.fields))
                fields = tuple(value for f in op.fields if (value := self._array(f)) is not None)
                if len(fields) == len(op.fields):
                    self.known[op.result] = fields
            case TupleGetItemOp():
                self._tuple_get_item(op)
            case OperatorOp():
                self._operator(op)
            case _:
                pass

    def _array(self, value: SSAValue) -> Array | None:
        """The value of a tensor, where it is known."""
        known = self.known.get(value)
        return None if isinstance(known, tuple) else known

    def _tuple_get_item(self, op: TupleGetItemOp) -> None:
        type, index = op.tuple_value.type, op.index.value.data
        if is_open(op.result.type) and isinstance(type, TupleType):
            Rewriter.replace_value_with_new_type(op.result, type.types.data[index])
        known = self.known.get(op.tuple_value)
        if isinstance(known, tuple):
            self.known[op.result] = known[index]

    def _operator(self, op: OperatorOp) -> None:
        name = op.OPERATOR.name
        if name == "arange":
            self._arange(op)
            return
        if name == "memory.alloc_tensor" and self._is_within(op):
            type = cast("TensorType[Attribute]", op.result.type)
            given = {"shape": list(type.get_shape()), "dtype": type_to_dtype(type.element_type)}
            self._replace(op, operator_class(all_operators()["zeros"])([], given, type))
            _erase_memory(op)
            return
        if name == "memory.kill":
            self._replace(op, TupleOp([]))
            _erase_memory(op)
            return
        rule = RULES.get(name)
        static = None if rule is None else self._made_static(op, rule)
        if static is not None:
            op = static
        elif is_open(op.result.type):
            Rewriter.replace_value_with_new_type(op.result, _result_type(op, op.OPERATOR, op.attrs(), op.args))
        self._evaluate(op)

    def _made_static(self, op: OperatorOp, rule: Static) -> OperatorOp | None:
        """The operator that replaces `op`; None where what it depends on is not known."""
        operator = get_operator(rule.name)
        assert operator is not None
        given = {name: value for name, value in op.given().items() if name in operator.specs}
        for index, name, convert in rule.attributes:
            value = self._array(op.args[index])
            if value is None:
                return None
            given[name] = convert(value)
        if rule.name == "strided_slice":
            given = _all_strides(given)
        arguments = [op.args[index] for index in rule.kept]
        type = _result_type(op, operator, operator.attrs(given), arguments)
        static = operator_class(operator)(arguments, given, type)
        self._replace(op, static)
        return static

    def _is_within(self, op: OperatorOp) -> bool:
        """Whether a tensor is known to lie in the memory that it is said to be in."""
        storage, offset, shape = op.args[0], self._array(op.args[1]), self._array(op.args[2])
        while isinstance(storage.owner, LetOp):
            storage = storage.owner.value
        taken = storage.owner
        if not isinstance(taken, OperatorOp) or taken.OPERATOR.name != "memory.alloc_storage":
            return False
        size, type = self._array(taken.args[0]), op.result.type
        if size is None or offset is None or shape is None or not isinstance(type, TensorType) or is_open(type):
            return False
        length = numpy_dtype(type_to_dtype(type.element_type)).itemsize * prod(type.get_shape())
        return shape.tolist() == list(type.get_shape()) and 0 <= int(offset) <= int(size) - length

    def _replace(self, op: OperatorOp, by: OperatorOp | ConstantOp | TupleOp) -> None:
        by.location = op.location
        by.result.name_hint = op.result.name_hint
        insert_op_before(by, op)
        op.result.replace_all_uses_with(by.result)
        erase_unused(op)
        self.changed = True

    def _evaluate(self, op: OperatorOp) -> None:
        """Notes the op's value where it follows from what is known."""
        if is_open(op.result.type) or _size(op.result.type) > MOST_ELEMENTS:
            return
        operator = op.OPERATOR
        if operator.name in ("shape_of", "ndarray_size"):
            source = op.args[0].type
            if not isinstance(source, TensorType) or is_open(source):
                return
            import numpy as np

            # Only the shape counts: no memory is taken for the elements.
            self.known[op.result] = operator.numpy(op.attrs(), np.broadcast_to(np.zeros(()), source.get_shape()))  # pyright: ignore[reportCallIssue]
        elif not operator.stateful and all(arg in self.known for arg in op.args):
            value = _evaluated(operator, op.attrs(), [self.known[arg] for arg in op.args])
            if value is not None:
                self.known[op.result] = value

    def _arange(self, op: OperatorOp) -> None:
        values = [value for arg in op.args if (value := self._array(arg)) is not None]
        if len(values) != len(op.args):
            return
        start, stop, step = (value.item() for value in values)
        if not step or not 0 <= ceil((stop - start) / step) <= MOST_COUNTED:
            return
        value = _evaluated(op.OPERATOR, op.attrs(), values)
        if value is None or isinstance(value, tuple):
            return
        from ....dialects.array import ArrayValueAttr

        element = cast("TensorType[Attribute]", op.result.type).element_type
        constant = ConstantOp(ArrayValueAttr.of(value), tensor_type(value.shape, element))
        self._replace(op, constant)
        if value.size <= MOST_ELEMENTS:
            self.known[constant.result] = value


def _erase_memory(op: Operation) -> None:
    """Erases an op of explicit memory whose result nothing uses, and the memory that only it used."""
    while not op.results[0].first_use and (isinstance(op, LetOp) or _is_memory(op)):
        operands = [value.owner for value in op.operands if isinstance(value.owner, Operation)]
        erase_op(op)
        for owner in operands:
            erase_unused(owner)
        if not operands or operands[0].parent is None:
            return
        op = operands[0]


def _is_memory(op: Operation) -> bool:
    return isinstance(op, OperatorOp) and op.OPERATOR.name.startswith("memory.")


def _all_strides(given: dict[str, AttrValue]) -> dict[str, AttrValue]:
    """A missing stride is 1; a single one given would count for every axis."""
    strides = cast("Sequence[int]", given["strides"])
    sliced = cast("Sequence[int]", given.get("axes") or given["begin"])
    return {**given, "strides": [*strides, *[1] * (len(sliced) - len(strides))]}


def _evaluated(operator: Operator, attrs: Attrs, values: Sequence[Known]) -> Known | None:
    """The operator's meaning; None where it has none for these values, which is told when the program runs."""
    import numpy as np

    with np.errstate(all="ignore"):
        try:
            value = cast("Callable[..., Any]", operator.numpy)(attrs, *values)
            if isinstance(value, tuple):
                return tuple(np.asarray(part, order="C") for part in cast("tuple[Array, ...]", value))
            return np.asarray(value, order="C")  # Row by row, as in the interpreter: sums follow the order in memory.
        except (ValueError, IndexError, ArithmeticError, TypeError):
            return None


def _size(type: Attribute) -> int:
    """How many elements the tensors of a type have; more than are evaluated for what is no tensor."""
    parts = type.types.data if isinstance(type, TupleType) else [type]
    return sum(prod(part.get_shape()) if isinstance(part, TensorType) else MOST_ELEMENTS + 1 for part in parts)


def is_open(type: Attribute) -> bool:
    """Whether a tensor of the type has a dimension that is not known."""
    match type:
        case TensorType():
            return DYNAMIC_INDEX in type.get_shape()
        case TupleType():
            return any(isinstance(t, TensorType) and DYNAMIC_INDEX in t.get_shape() for t in type.types.data)
        case _:
            return False


def _result_type(op: OperatorOp, operator: Operator, attrs: Attrs, arguments: Sequence[SSAValue]) -> Attribute:
    """What the operator's relation says of arguments whose types are known. Raises MirError at `op` where they do not fit."""
    use = _Use(op, operator, attrs, [argument.type for argument in arguments])
    operator.relation(use)
    return use.result


class _Use:
    """A use of an operator on arguments of known types; implements `operator.Relation`."""

    def __init__(self, op: OperatorOp, operator: Operator, attrs: Attrs, types: Sequence[Attribute]):
        self.op, self.operator, self.attrs, self.types = op, operator, attrs, types
        self.result: Attribute = op.result.type

    @property
    def count(self) -> int:
        return len(self.types)

    def type_of(self, index: int) -> Attribute | None:
        return self.types[index]

    def tensor(self, index: int) -> TensorType[Attribute]:
        type = self.types[index]
        if not isinstance(type, TensorType):
            raise self.fail(f"{self.operator.name}: argument {index} must be a tensor")
        return type

    def tensors(self, index: int) -> Sequence[TensorType[Attribute]]:
        type = self.types[index]
        if not isinstance(type, TupleType):
            raise self.fail(f"{self.operator.name}: argument {index} must be a tuple of tensors")
        return [cast("TensorType[Attribute]", part) for part in type.types.data]

    def set_argument(self, index: int, type: Attribute) -> None:
        # Compared when the types of the whole module are found anew.
        pass

    def set_result(self, type: Attribute) -> None:
        self.result = type

    def fail(self, message: str, *notes: str, argument: int | None = None) -> Exception:
        return error_at(self.op, message, *notes)
