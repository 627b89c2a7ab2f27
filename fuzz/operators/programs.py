"""Builds a Relay module of operator uses, so that one compilation runs many.

Each use is a function of its own, and one entry calls all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...api.compile import compile
from ...dialects.relay import ir
from ...dialects.relay.infer import infer_types
from ...dialects.relay.operator import Operator, operator_class
from ...dialects.relay.operators.common.relations import tensor_type
from .relation import type_of
from .sampling import OperatorCase, flat


@dataclass(frozen=True)
class Drawn:
    """One use of an operator, as it was drawn."""

    case: OperatorCase
    attrs: dict[str, Any]
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        types = ", ".join(f"{a.dtype.name}{list(a.shape)}" for a in flat(self.arguments))
        return f"of {types} with {self.attrs}"


def interpret(operator: Operator, use: Drawn) -> Any:
    """Interprets a use: the meaning of the operator."""
    arguments = (tuple(a) if isinstance(a, (list, tuple)) else np.asarray(a) for a in use.arguments)
    with np.errstate(all="ignore"):
        return operator.numpy(operator.attrs(use.attrs), *arguments)


def compiled(operator: Operator, uses: Sequence[Drawn], opt_level: int) -> list[Any]:
    """Compiles all uses as one module; returns the results of each."""
    module = module_of(operator, uses)
    arrays = [array for use in uses for array in flat(use.arguments)]
    return list(compile(module, "cpu", entry="main", opt_level=opt_level, threads=1)(*arrays))


def module_of(
    operator: Operator, uses: Sequence[Drawn], is_open: Callable[[np.ndarray], bool] | None = None
) -> ModuleOp:
    """Returns a module whose entry `main` returns the tuple of the results of all uses.

    Dimensions of the tensors for which `is_open` holds are `?`, except those of size 0.
    """
    functions: list[Operation] = []
    main = Block()
    results: list[Operation] = []
    for number, use in enumerate(uses):
        block = Block()
        for array in flat(use.arguments):
            type = type_of(array)
            if is_open is not None and is_open(array):
                type = tensor_type([DYNAMIC_INDEX if size else 0 for size in array.shape], array.dtype.name)
            block.insert_arg(type, len(block.args))
        call_with = [main.insert_arg(arg.type, len(main.args)) for arg in block.args]
        _fill(block, operator, use)
        names = [f"x{n}" for n in range(len(block.args))]
        functions.append(ir.FuncOp(f"use{number}", names, [], body=Region(block)))
        results.append(ir.CallGlobalOp(f"use{number}", call_with))
    main.add_ops([*results, fields := ir.TupleOp(results), ir.ReturnOp(fields)])
    names = [f"x{n}" for n in range(len(main.args))]
    module = ModuleOp([*functions, ir.FuncOp("main", names, [], body=Region(main))])
    infer_types(module)
    return module


def _fill(block: Block, operator: Operator, use: Drawn) -> None:
    given = iter(block.args)
    operands: list[SSAValue | Operation] = []
    for argument in use.arguments:
        if isinstance(argument, (tuple, list)):
            block.add_op(fields := ir.TupleOp([next(given) for _ in argument]))
            operands.append(fields)
        else:
            operands.append(next(given))
    block.add_op(op := operator_class(operator)(operands, use.attrs))
    block.add_op(ir.ReturnOp(op))
