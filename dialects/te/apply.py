"""Applies a TE function to tensors: what it computes becomes part of another function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ...support.diagnostics import error_at
from .. import tir
from ..tir import node as ex
from ..tir.node import Expr, ExprLike
from ..tir.types import type_to_dtype
from . import compute as composite
from . import ops
from . import tensor as te
from .lift import Lifted

Number: TypeAlias = "int | float | bool"


class NumberTensor(te.Tensor):
    """A tensor of rank 0 whose reads are the number itself, so that no loop is kept for it."""

    def __init__(self, number: Expr):
        described = te.compute((), lambda *_: number, name="constant")
        super().__init__(described.op, 0, described.dims, described.dtype)
        self.number = number

    def __call__(self, *indices: ExprLike) -> Expr:
        return self.number


class _Applied(Lifted):
    """A function whose tensors and scalars are given, by parameter."""

    def __init__(self, function: ops.FuncOp, given: Mapping[SSAValue, te.Tensor], scalars: Mapping[SSAValue, Expr]):
        self._given, self._numbers = given, dict(scalars)
        for value, tensor in given.items():
            for extent, dim in zip(composite.extents_of(value), tensor.dims, strict=True):
                if not isinstance(extent, IntegerAttr) and isinstance(extent.owner, tir.VarOp):
                    self._numbers.setdefault(extent, dim.astype(type_to_dtype(extent.type)))
        super().__init__(function)

    def _definition(self, op: Operation) -> None:
        result = op.results[0] if op.results else None
        if result is not None and result in self._given:
            self.tensors[result] = self._given[result]
        elif result is not None and result in self._numbers:
            self.scalars[result] = self._numbers[result]
        else:
            super()._definition(op)

    def _expr(self, op: Operation, parts: Sequence[Expr]) -> Expr:
        if isinstance(op, ops.ReadOp):
            return self.tensors[op.tensor](*parts)
        return super()._expr(op, parts)


class _OfElements(_Applied):
    """A function of scalars: each tensor of it is a number."""

    def _compute(self, op: composite.ComputeOp) -> None:
        if op.reduction is not None:
            raise error_at(op, "a function of scalars reduces nothing", "reduce in a function of tensors")
        for result, value in zip(op.results, op.values, strict=True):
            self.tensors[result] = NumberTensor(self.value(value))


def apply_function(
    function: ops.FuncOp, given: Mapping[SSAValue, te.Tensor], scalars: Mapping[SSAValue, Number] | None = None
) -> list[te.Tensor]:
    """Returns the tensors that a TE function computes from the tensors and numbers of its parameters."""
    applied = _Applied(function, given, _constants(scalars or {}))
    return [applied.tensors[value] for value in outputs_of(function)]


def apply_to_elements(
    function: ops.FuncOp,
    given: Mapping[SSAValue, Callable[[Sequence[Expr]], Expr]],
    scalars: Mapping[SSAValue, Number],
    dims: Sequence[int | Expr],
    name: str,
) -> list[te.Tensor]:
    """Returns tensors of a shape whose elements a function of scalars computes.

    Each parameter's element is a function of the indices.
    """
    numbers = _constants(scalars)
    found: list[te.Tensor] = []
    for place in range(len(outputs_of(function))):

        def element(*indices: Expr, place: int = place) -> Expr:
            elements = {value: NumberTensor(read(indices)) for value, read in given.items()}
            applied = _OfElements(function, elements, numbers)
            result = applied.tensors[outputs_of(function)[place]]
            assert isinstance(result, NumberTensor)
            return result.number

        names = [f"ax{axis}" for axis in range(len(dims))]
        found.append(te.compute_named(te.dims_of(dims), names, element, name, "elemwise"))
    return found


def _constants(scalars: Mapping[SSAValue, Number]) -> dict[SSAValue, Expr]:
    return {value: ex.const(number, type_to_dtype(value.type)) for value, number in scalars.items()}


def outputs_of(function: ops.FuncOp) -> list[SSAValue]:
    """Returns the tensors that a TE function computes."""
    return [value for value in function.params if not ops.is_input(value)]


def is_of_scalars(function: ops.FuncOp) -> bool:
    """Returns whether every tensor of a function is of rank 0."""
    tensors = [value for value in function.params if not isinstance(value.owner, tir.VarOp)]
    return all(not composite.extents_of(value) for value in tensors)
