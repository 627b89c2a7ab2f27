"""A Relay program as a flat list of operators, from which every engine's form is translated.

Calls are inlined and branches taken, whatever decides them being known here: a recursion over steps becomes its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from mirstack.dialects.array import numpy_dtype
from mirstack.dialects.relay.ir import CallGlobalOp, ConstantOp, FuncOp, IfOp, LetOp, ReturnOp, TupleGetItemOp, TupleOp
from mirstack.dialects.relay.operator import Attrs, OperatorOp
from mirstack.dialects.tir.types import type_to_dtype
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Block, SSAValue

Array: TypeAlias = "NDArray[Any]"
MOST_FOLDED = 4096
"""Elements of what is computed here rather than by the engine: counters of steps, zeros to begin with."""
MOST_NODES = 100_000


@dataclass(eq=False)
class Value:
    """A tensor of the program; `array` is there for a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    array: Array | None = None


@dataclass(eq=False)
class Node:
    """One use of an operator, by Relay's name; a tuple argument stands flat among the inputs."""

    op: str
    inputs: tuple[Value, ...]
    attrs: Attrs
    outputs: tuple[Value, ...]
    gives_tuple: bool


@dataclass(eq=False)
class Graph:
    """Nodes in order of evaluation."""

    inputs: list[Value] = field(default_factory=list[Value])
    constants: list[Value] = field(default_factory=list[Value])
    nodes: list[Node] = field(default_factory=list[Node])
    results: list[Value] = field(default_factory=list[Value])


Bound: TypeAlias = "Value | tuple[Bound, ...]"


def graph_of(module: ModuleOp, entry: str = "main") -> Graph:
    """Returns the graph of a Relay function. Raises ValueError unless its body is a list of operators."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    builder = _Builder(functions)
    function = functions[entry]
    bound: dict[SSAValue, Bound] = {}
    for name, param in zip(function.param_names, function.params, strict=True):
        value = _value(name.data, param.type)
        builder.graph.inputs.append(value)
        bound[param] = value
    builder.graph.results += _flat(builder.run(function.body.block, bound))
    return builder.graph


def _value(name: str, type: Attribute, array: Array | None = None) -> Value:
    if not isinstance(type, TensorType):
        raise ValueError(f"{name} is of type {type}, which is not a tensor")
    return Value(name, tuple(type.get_shape()), numpy_dtype(type_to_dtype(type.element_type)), array)


def _flat(bound: Bound) -> list[Value]:
    return [bound] if isinstance(bound, Value) else [leaf for item in bound for leaf in _flat(item)]


class _Builder:
    def __init__(self, functions: dict[str, FuncOp]):
        self.functions = functions
        self.graph = Graph()
        self.constants: dict[ConstantOp, Value] = {}

    def run(self, block: Block, bound: dict[SSAValue, Bound]) -> Bound:
        """Follows the block, and what it calls last, to the value that it returns."""
        op = block.first_op
        while op is not None:
            match op:
                case ReturnOp():
                    return bound[op.value]
                case ConstantOp():
                    if op not in self.constants:
                        self.constants[op] = self.constant(op.value.array)
                    bound[op.result] = self.constants[op]
                case LetOp():
                    bound[op.result] = bound[op.value]
                case TupleOp():
                    bound[op.result] = tuple(bound[item] for item in op.fields)
                case TupleGetItemOp():
                    whole = bound[op.tuple_value]
                    if isinstance(whole, Value):
                        raise ValueError("a field of what is no tuple")
                    bound[op.result] = whole[op.index.value.data]
                case IfOp():
                    condition = bound[op.condition]
                    if not isinstance(condition, Value) or condition.array is None:
                        raise ValueError("a branch depends on the inputs")
                    region = op.then_region if condition.array.item() else op.else_region
                    bound[op.result] = self.run(region.block, bound)
                case CallGlobalOp():
                    callee = self.functions[op.callee.root_reference.data]
                    given = {p: bound[a] for p, a in zip(callee.params, op.arguments, strict=True)}
                    bound[op.result] = self.run(callee.body.block, given)
                case OperatorOp():
                    bound[op.result] = self.operator(op, [bound[a] for a in op.args])
                case _:
                    raise ValueError(f"{op.name} is no operator")
            op = op.next_op
        raise ValueError("a block ends without its value")

    def constant(self, array: Array) -> Value:
        value = Value(f"c{len(self.graph.constants)}", array.shape, array.dtype, array)
        self.graph.constants.append(value)
        return value

    def operator(self, op: OperatorOp, arguments: Sequence[Bound]) -> Bound:
        inputs = tuple(leaf for argument in arguments for leaf in _flat(argument))
        small = sum(int(np.prod(value.shape)) for value in inputs) <= MOST_FOLDED
        # What is dequantized says to engines what they may compute in integers.
        if (
            small
            and not op.OPERATOR.name.startswith("qnn.")
            and isinstance(op.result.type, TensorType)
            and all(value.array is not None for value in inputs)
        ):
            arrays = [argument.array for argument in arguments if isinstance(argument, Value)]
            if len(arrays) == len(arguments):
                return self.constant(np.asarray(op.OPERATOR.numpy(op.attrs(), *arrays)))  # pyright: ignore[reportCallIssue]
        if len(self.graph.nodes) >= MOST_NODES:
            raise ValueError(f"the program has more than {MOST_NODES} operators")
        type = op.result.type
        tuples = isinstance(type, TupleType)
        types = type.types.data if isinstance(type, TupleType) else (type,)
        number = len(self.graph.nodes)
        outputs = tuple(_value(f"v{number}_{k}", each) for k, each in enumerate(types))
        self.graph.nodes.append(Node(op.OPERATOR.name, inputs, op.attrs(), outputs, tuples))
        return outputs if tuples else outputs[0]


def pairs(padding: int | Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns (top, bottom), (left, right) of a padding p."""
    given = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(given) == 1:
        given = given * 4
    elif len(given) == 2:
        given = given * 2
    top, left, bottom, right = given
    return (top, bottom), (left, right)
