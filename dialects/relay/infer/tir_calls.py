"""The type of a destination-passing call: the buffers that the callee, a TE or TIR function, writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ....support.diagnostics import Diagnostic, MirError, error_at
from ....support.text import counted
from ...tir.types import BufferType
from ..ir import CallTirOp
from ..text import global_text, type_text


@dataclass(frozen=True)
class _Parameter:
    """A tensor parameter of the callee: its name, element type, and extents (numbers, or SSA values)."""

    name: str
    value: SSAValue
    element: Attribute
    shape: Sequence[int | SSAValue | None]
    is_output: bool


def call_tir_type(op: CallTirOp, callee: Operation, arguments: Sequence[TensorType[Attribute]]) -> Attribute:
    """Returns the type of `call_tir(callee, arguments)`. Raises MirError when the arguments do not fit."""
    return function_type(op, global_text(op.callee.root_reference.data), callee, arguments)


def function_type(op: Operation, name: str, callee: Operation, arguments: Sequence[TensorType[Attribute]]) -> Attribute:
    """Returns the type of what a TIR or TE function writes: the outputs' tensor type, a tuple of several.

    `op` is the use, for errors. Extents that the callee leaves open are found from the arguments. Raises MirError when the arguments
    do not fit.
    """
    parameters = tir_parameters(op, name, callee)
    if parameters[0].is_output or not any(p.is_output for p in parameters):
        # Only the number of arguments separates inputs from outputs: a TIR function.
        inputs, outputs = parameters[: len(arguments)], parameters[len(arguments) :]
    else:
        inputs = [p for p in parameters if not p.is_output]
        outputs = [p for p in parameters if p.is_output]
    if len(inputs) != len(arguments) or not outputs:
        names = ", ".join(p.name for p in parameters)
        raise error_at(
            op,
            f"{name} has {counted(len(parameters), 'parameter')} ({names}), so it cannot take {counted(len(arguments), 'argument')}",
            "inputs come first; one parameter or more must be left for the outputs",
        )
    extents: dict[SSAValue, int] = {}
    for parameter, argument in zip(inputs, arguments, strict=True):
        _check(op, name, parameter, argument, extents)
    results = [TensorType(p.element, [_size(dim, extents) for dim in p.shape]) for p in outputs]
    return results[0] if len(results) == 1 else TupleType(ArrayAttr(results))


def _size(dim: int | SSAValue | None, extents: dict[SSAValue, int]) -> int:
    if isinstance(dim, int):
        return dim
    return DYNAMIC_INDEX if dim is None else extents.get(dim, DYNAMIC_INDEX)


def _check(
    op: Operation,
    name: str,
    parameter: _Parameter,
    argument: TensorType[Attribute],
    extents: dict[SSAValue, int],
) -> None:
    shape = argument.get_shape()
    fits = len(shape) == len(parameter.shape) and argument.element_type == parameter.element
    if fits:
        for dim, size in zip(parameter.shape, shape, strict=True):
            if isinstance(dim, SSAValue):
                dim = extents.setdefault(dim, size)
            fits &= dim is None or dim == size or DYNAMIC_INDEX in (dim, size)
    if not fits:
        wanted = TensorType(parameter.element, [_size(dim, extents) for dim in parameter.shape])
        message = f"argument '{parameter.name}' of {name} must be {type_text(wanted)}, not {type_text(argument)}"
        raise MirError(
            Diagnostic(message, op.location).with_note("the parameter is declared here", parameter.value.owner.location)
            if isinstance(parameter.value.owner, Operation)
            else Diagnostic(message, op.location)
        )


def tir_parameters(op: Operation, name: str, callee: Operation) -> list[_Parameter]:
    """Returns the tensor parameters of a TIR or TE function. Raises MirError for others."""
    match callee.name:
        case "tir.prim_func":
            return _tir_parameters(op, name, callee)
        case "te.func":
            return _te_parameters(callee)
        case _:
            raise error_at(
                op,
                f"call_tir calls a TIR or TE function, but {name} is a '{callee.name}'",
                f"write {name}(…) to call a Relay function",
            )


def _tir_parameters(op: Operation, name: str, callee: Operation) -> list[_Parameter]:
    from ...tir.buffer import MatchBufferOp
    from ...tir.stmt import PrimFuncOp

    assert isinstance(callee, PrimFuncOp)
    result: list[_Parameter] = []
    for param, label in zip(callee.params, callee.param_names.data, strict=True):
        buffer = param
        matched = next((u.operation for u in param.uses if isinstance(u.operation, MatchBufferOp)), None)
        if matched is not None:
            buffer = matched.results[0]
        type = buffer.type
        if not isinstance(type, BufferType):
            raise error_at(
                op,
                f"{name} takes the scalar '{label.data}', which call_tir cannot give",
                "call_tir passes tensors; sizes are found from their shapes by T.match_buffer",
            )
        dims: list[int | SSAValue | None] = []
        sizes = iter(matched.shape if matched is not None else ())
        for dim in type.shape.data:
            dims.append(dim.value.data if isinstance(dim, IntegerAttr) else next(sizes, None))
        result.append(_Parameter(label.data, buffer, type.dtype, dims, False))
    if not result:
        raise error_at(op, f"{name} has no parameters, so there is no output to call it for")
    return result


def _te_parameters(callee: Operation) -> list[_Parameter]:
    from ...te.compute import extents_of
    from ...te.ops import FuncOp, PlaceholderOp
    from ...te.types import TensorType as TeTensorType

    assert isinstance(callee, FuncOp)
    result: list[_Parameter] = []
    for value, label in zip(callee.params, callee.param_names(), strict=True):
        if not isinstance(value.type, TeTensorType):
            continue  # A size: found from the shapes of the tensors.
        dims = [d.value.data if isinstance(d, IntegerAttr) else d for d in extents_of(value)]
        is_output = not isinstance(value.owner, PlaceholderOp)
        result.append(_Parameter(label, value, value.type.dtype, dims, is_output))
    return result
