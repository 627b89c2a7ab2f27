"""Interprets TIR functions over numpy.

A function is compiled to closures once (`compiler`; ops in `scalar`, `intrinsics`, `calls`, `buffers`, `statements`). Loops
whose iterations are independent (`plan`) run as axes of arrays, in the dtype and the order of roundings that the loops
would have. Every access is checked against the buffer's shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import error_at
from ..buffer import MatchBufferOp
from ..stmt import PrimFuncOp
from ..types import BufferType, HandleType, type_to_dtype
from . import buffers, calls, statements
from .calls import run_function
from .compiler import Functions
from .values import Value, scalar_of

__all__ = ["interpret_prim_func", "run_function"]

# The modules that register how ops run when they are imported.
HANDLERS_FROM = (buffers, calls, statements)

# Functions nested deeper than this run on a stack of their own.
_SHALLOW = 60


def interpret_prim_func(func: PrimFuncOp, args: Mapping[str, Any], module: ModuleOp | None = None) -> Any:
    """Runs `func` on numpy arrays, which it changes in place; returns its result (None without one).

    `args` maps the name of each parameter (or, for a handle, of the buffer that it is matched as) to an array of the
    buffer's shape and dtype, or to a number. bfloat16 and float8 are those of ml_dtypes. Raises MirError for arguments that
    do not fit, an access out of bounds, a failed assertion, or ops that the interpreter does not support.
    """
    values = [_argument(func, number, args) for number in range(len(func.params))]
    functions = Functions(module)
    if _depth(func) > _SHALLOW:
        return in_deep_stack(lambda: run_function(functions, func, values))
    return run_function(functions, func, values)


def _argument(func: PrimFuncOp, number: int, args: Mapping[str, Any]) -> Value:
    """Returns the value for one parameter, checked."""
    param, name = func.params[number], func.param_names.data[number].data
    key = name
    if name not in args and isinstance(param.type, HandleType):
        key = next(
            (
                use.operation.var_name.data
                for use in param.uses
                if isinstance(use.operation, MatchBufferOp) and use.operation.var_name.data in args
            ),
            name,
        )
    if key not in args:
        raise error_at(func, f"no value is given for parameter '{name}' of function '{func.sym_name.data}'")
    value = args[key]
    if isinstance(param.type, BufferType):
        return value
    if isinstance(param.type, HandleType):
        if not isinstance(value, np.ndarray):
            raise error_at(func, f"parameter '{name}' takes an array, not {type(value).__name__}")
        return value
    if isinstance(value, np.ndarray) and value.ndim:
        raise error_at(func, f"parameter '{name}' takes one {type_to_dtype(param.type)}, not an array")
    return scalar_of(value.item() if isinstance(value, np.ndarray | np.generic) else value, param.type, func)


def _depth(func: PrimFuncOp) -> int:
    """Returns the depth to which regions are nested."""
    deepest = 0
    pending: list[tuple[Operation, int]] = [(func, 0)]
    while pending:
        op, depth = pending.pop()
        deepest = max(deepest, depth)
        for region in op.regions:
            for block in region.blocks:
                pending += [(inner, depth + 1) for inner in block.ops if inner.regions]
    return deepest
