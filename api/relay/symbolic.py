"""Types with symbolic dimensions: what inference finds of `(n, 3)` is written in `n`.

    %x: (n, 4, 8)                     the parameter's type, n a te.var
    nn.relu(%x)                       (n, 4, 8)
    concatenate((%x, %x), axis=0)     (n + n, 4, 8)

In the IR such a dimension is a `?`. The symbols of `size_symbols.py` that are those of parameters become the user's expressions again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from ...dialects.relay.infer.size_symbols import Shapes, SizeSymbols
from ...dialects.relay.operators.common.open_dims import ON_NUMBERS, Place, Size, calculate
from . import ty
from .expr import Function, Let, RelayExpr, Var
from .graph import post_order


def set_symbolic_types(
    op: Operation, params: Sequence[Var], values: Sequence[SSAValue], nodes: Mapping[SSAValue, RelayExpr]
) -> None:
    """Sets the symbolic types of the nodes of a function; `values` are its parameters in the IR."""
    places: dict[object, Place] = {}
    expressions: dict[Place, object] = {}
    given: dict[SSAValue, Shapes] = {}
    for param, value in zip(params, values, strict=True):
        if param.type_annotation is None or not ty.is_symbolic(param.type_annotation):
            continue
        shapes: list[tuple[Size, ...]] = []
        for tensor in _tensors(param.type_annotation):
            shape: list[Size] = []
            for dim in tensor.shape:
                if isinstance(dim, int):
                    shape.append(dim)
                    continue
                key = object() if isinstance(dim, ty.Any) else ty.dimension_key(dim)
                place = places.setdefault(key, Place(-1 - len(places), 0))
                expressions[place] = dim
                shape.append(place)
            shapes.append(tuple(shape))
        given[value] = tuple(shapes)
    symbols = SizeSymbols(op, given)
    for value, node in nodes.items():
        type = node.checked_type_
        if type is not None and any(DYNAMIC_INDEX in tensor.numbers for tensor in _tensors(type)):
            shapes_of_value = iter(symbols.shapes(value))
            node.symbolic_type = _with_shapes(type, shapes_of_value, expressions)


def set_function_type(function: Function) -> None:
    """Sets the symbolic type of a function, that of its parameters and of its body; of lets, too."""
    for node in post_order(function.body):
        if isinstance(node, Let):
            node.symbolic_type = node.body.symbolic_type
    inputs = [param.symbolic_type or param.checked_type_ for param in function.params]
    result = function.body.symbolic_type
    if result is not None and None not in inputs:
        found = ty.FuncType(cast("list[ty.Type]", inputs), result, function.type_params)
        function.symbolic_type, function.ret_type = found, result


def _tensors(type: ty.Type) -> list[ty.TensorType]:
    match type:
        case ty.TensorType():
            return [type]
        case ty.TupleType():
            return [tensor for field in type.fields for tensor in _tensors(field)]
        case _:
            return []


def _with_shapes(type: ty.Type, shapes: Iterator[tuple[Size, ...]], known: Mapping[Place, object]) -> ty.Type:
    match type:
        case ty.TensorType():
            dims = [size if isinstance(size, int) else _expression(size, known) for size in next(shapes)]
            return ty.TensorType(dims, type.dtype)
        case ty.TupleType():
            return ty.TupleType([_with_shapes(field, shapes, known) for field in type.fields])
        case _:
            return type


def _expression(size: Size, known: Mapping[Place, object]) -> object:
    """A size in the user's variables; `?` where it is not known."""

    def of(place: Place) -> Any:
        return known[place]

    try:
        return calculate(size, of, cast("Any", ON_NUMBERS))
    except (KeyError, TypeError):
        return ty.Any()


__all__ = ["set_function_type", "set_symbolic_types"]
