"""`call_tir` over numpy: runs the TIR or TE function that it names, on new arrays for the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ...support.diagnostics import error_at
from ..array import laid_out, numpy_dtype
from ..te.ops import FuncOp as TeFuncOp
from ..te.ops import is_input
from ..tir.buffer import MatchBufferOp
from ..tir.stmt import PrimFuncOp
from ..tir.types import dtype_to_type, type_to_dtype
from .infer.tir_calls import function_type
from .ir import CallTirOp
from .text import global_text, type_text

Array = NDArray[Any]


def call_tir(op: CallTirOp, callee: Operation, args: Sequence[Any], module: ModuleOp) -> Array | tuple[Array, ...]:
    """Returns the outputs of `callee` on the tensors `args`: one array, or a tuple of them.

    Raises MirError where the arguments do not fit, where an output's size does not follow from them, and for whatever
    fails inside the function.
    """
    name = global_text(op.callee.root_reference.data)
    for number, arg in enumerate(args):
        if not isinstance(arg, np.ndarray):
            raise error_at(op, f"argument {number} of call_tir({name}, …) is not a tensor")
    return run_function(op, name, callee, args, module)


def run_function(
    op: Operation, name: str, callee: Operation, args: Sequence[Array], module: ModuleOp
) -> Array | tuple[Array, ...]:
    """Returns the outputs of a function on arrays, for the use `op`. Raises MirError as `call_tir`."""
    types = [TensorType(dtype_to_type(a.dtype.name), list(a.shape)) for a in args]
    result = function_type(op, name, callee, types)
    wanted = list(result.types.data) if isinstance(result, TupleType) else [result]
    if isinstance(callee, PrimFuncOp):
        outputs = _run_tir(callee, args, [_empty(op, name, t) for t in wanted], module)
    else:
        assert isinstance(callee, TeFuncOp)  # function_type refuses any other op.
        outputs = _run_te(callee, args)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _empty(op: Operation, name: str, type: Attribute) -> Array:
    if not isinstance(type, TensorType) or DYNAMIC_INDEX in type.get_shape():
        raise error_at(op, f"the output {type_text(type)} of {name} has a size that does not follow from the arguments")
    return np.zeros(type.get_shape(), numpy_dtype(type_to_dtype(type.element_type)))


def _run_tir(func: PrimFuncOp, args: Sequence[Array], outputs: list[Array], module: ModuleOp) -> list[Array]:
    from ..tir.interpreter import interpret_prim_func

    arrays = [_laid(a, param) for a, param in zip((*args, *outputs), func.params, strict=True)]
    interpret_prim_func(func, dict(zip((n.data for n in func.param_names.data), arrays, strict=True)), module)
    return [np.asarray(array, order="C") for array in arrays[len(args) :]]


def _laid(array: Array, param: SSAValue) -> Array:
    """Returns a copy of an array, with the strides that the parameter's buffer has."""
    matches = [use.operation for use in param.uses if isinstance(use.operation, MatchBufferOp)]
    strides = matches[0].stride_values() if matches else None
    steps = [step for step in strides or () if isinstance(step, int)]
    if strides is None or len(steps) < len(strides):
        return np.array(array, order="C")
    return laid_out(array, steps)


def _run_te(func: TeFuncOp, args: Sequence[Array]) -> list[Array]:
    from ..te.interpreter import interpret_te_func

    inputs = [n for n, value in zip(func.param_names(), func.params, strict=True) if is_input(value)]
    return list(interpret_te_func(func, dict(zip(inputs, args, strict=True))).values())
