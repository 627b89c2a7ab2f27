"""Defines Relay in rules: operators by TVM's names, tuples, constants as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ....support.diagnostics import MirError
from ....support.text import nearest
from ...array import ArrayValueAttr, numpy_dtype
from ...relay import (
    ConstantOp,
    OperatorOp,
    TupleGetItemOp,
    TupleOp,
    all_operators,
    from_attribute,
    get_operator,
    operator_class,
)
from ...relay.infer.result import infer_result
from ...relay.operator import operator_at
from ...relay.operators.common.relations import tensor_type
from ...tir.types import dtype_to_type
from ..functions import NoMatch, dtype_name, element_of

_INFIX = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "mod": "floor_mod", "neg": "negative",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
    "and_": "logical_and", "or_": "logical_or", "not_": "logical_not",
}  # fmt: skip
_COMPARISONS = frozenset(_INFIX[function] for function in ("lt", "le", "gt", "ge", "eq", "ne"))
# By name: a rule may be for operators whose topics are not imported otherwise.
_ONE_DTYPE: Mapping[str, tuple[tuple[int, ...], bool]] = {
    **dict.fromkeys(
        [
            "add", "subtract", "multiply", "divide", "trunc_divide", "floor_divide", "mod", "trunc_mod", "floor_mod",
            "power", "maximum", "minimum", "left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor",
            "logical_and", "logical_or", "logical_xor",
        ],
        ((0, 1), True),
    ),
    "where": ((1, 2), True),
    "ewise_fma": ((0, 1, 2), True),
}  # fmt: skip
"""Which operands of an operator have one dtype, and whether its result has it."""
_STRUCTURE = ("tuple", "tuple_get_item")


class RelayLevel:
    """Implements `Level`."""

    name = "relay"

    def resolve(self, name: str) -> str | None:
        return f"relay.{name}" if name in _STRUCTURE or get_operator(name) is not None else None

    def implied(self, name: str) -> Mapping[str, Any]:
        return {}

    def close_to(self, name: str) -> str | None:
        names = list(all_operators())
        same_end = [n for n in names if n.rpartition(".")[2] == name]
        return same_end[0] if same_end else nearest(name, names)

    def spelled(self, op_name: str) -> str:
        return op_name.removeprefix("relay.")

    def infix(self, function: str) -> str | None:
        name = _INFIX.get(function)
        return None if name is None else f"relay.{name}"

    def operator(self, op_name: str) -> str | None:
        return None  # As in Relay's own text.

    @cache  # noqa: B019 (there is one object of this class)
    def is_commutative(self, op_name: str) -> bool:
        operator = get_operator(op_name.removeprefix("relay."))
        return operator is not None and operator.commutative

    def of_one_dtype(self, op_name: str) -> tuple[tuple[int, ...], bool]:
        name = op_name.removeprefix("relay.")
        if name in _COMPARISONS:
            return (0, 1), False
        return _ONE_DTYPE.get(name, ((), False))

    def problem(self, op_name: str, arguments: int | None, attributes: Sequence[str]) -> str | None:
        operator = get_operator(op_name.removeprefix("relay."))
        if operator is None:
            return None
        if arguments is not None and (problem := operator.problem({}, arguments)) and "takes" in problem:
            return problem
        for name in attributes:
            if name not in operator.specs:
                return operator.problem({name: None})
        return None

    def attribute(self, op: Operation, name: str) -> Any:
        if isinstance(op, OperatorOp):
            return op.attrs()[name]
        if isinstance(op, TupleGetItemOp) and name == "index":
            return op.index.value.data
        raise KeyError(name)

    def attributes(self, op: Operation) -> Mapping[str, Any]:
        if isinstance(op, OperatorOp):
            return op.given()
        return {"index": op.index.value.data} if isinstance(op, TupleGetItemOp) else {}

    def constant(self, value: SSAValue) -> Any:
        owner = value.owner
        return owner.value.array if isinstance(owner, ConstantOp) else None

    def make_constant(self, value: Any, dtype: str | None, like: Attribute) -> Operation:
        import numpy as np

        element = dtype_to_type(dtype) if dtype is not None else element_of(like)
        array = np.asarray(value).astype(numpy_dtype(dtype_name(element)))
        return ConstantOp(ArrayValueAttr.of(array), tensor_type(array.shape, element))

    def build(self, op_name: str, args: Sequence[SSAValue], attributes: Mapping[str, Any], like: SSAValue) -> Operation:
        match op_name:
            case "relay.tuple":
                return TupleOp(args)
            case "relay.tuple_get_item":
                return TupleGetItemOp(args[0], attributes["index"])
            case _:
                owner = like.owner
                near = owner if isinstance(owner, Operation) else owner.parent_op()
                operator = operator_at(op_name.removeprefix("relay."), near)
                assert operator is not None
                given = {name: _plain(value) for name, value in attributes.items()}
                op = operator_class(operator)(args, given)
                op.location = like.owner.location if isinstance(like.owner, Operation) else op.location
                try:
                    infer_result(op)
                except MirError:
                    op.erase()  # It must not count as a use of its arguments.
                    raise
                return op

    def fold(self, op: Operation, args: Sequence[Any]) -> Any:
        import numpy as np

        if isinstance(op, TupleOp):
            return tuple(args)
        if isinstance(op, TupleGetItemOp):
            return args[0][op.index.value.data]
        if not isinstance(op, OperatorOp) or op.OPERATOR.stateful:
            raise NoMatch
        with np.errstate(all="ignore"):
            try:
                value = cast("Any", op.OPERATOR.numpy)(op.attrs(), *args)
            except (MirError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError):
                raise NoMatch from None  # An error that the running program reports.
        if isinstance(value, tuple):
            return tuple(np.asarray(part) for part in cast("tuple[Any, ...]", value))
        type = op.result.type
        array = np.asarray(value)
        return array.astype(numpy_dtype(dtype_name(element_of(type)))) if isinstance(type, TensorType) else array


def _plain(value: Any) -> Any:
    """Returns a computed attribute as an operator takes it: numpy's numbers as Python's."""
    if isinstance(value, Attribute):
        return from_attribute(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in cast("tuple[Any, ...]", value))
    return value.tolist() if hasattr(value, "tolist") else value
