"""Counts the operations and accesses of a TIR function, as TVM's `estimate_tir_flops`.

    for i, k in T.grid(16, n):
        C[i] = C[i] + A[i, k] * B[k]      →      32 * n operations on float32

An operation is an operator or an intrinsic that a stored value is computed by (a fused multiply-add is two). Index arithmetic and
conditions do not count, nor does the init of a reduction. Both sides of a branch count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import tir
from ...dialects.tir.intrinsics import intrinsic_effect
from ...dialects.tir.scalar_ops import Effect
from ...dialects.tir.types import element_of, lanes_of, type_to_dtype
from ...support.walk import walk_ops
from ..schedule.analysis.structure import const_int

Terms: TypeAlias = "dict[tuple[SSAValue, ...], int]"
"""A sum of products: a number for each product of extents that are not numbers, () for the constant."""


@dataclass
class Accesses:
    """The loads and stores of a parameter's elements, each instance of an access counted."""

    loads: Terms = field(default_factory=dict[tuple[SSAValue, ...], int])
    stores: Terms = field(default_factory=dict[tuple[SSAValue, ...], int])


@dataclass
class Work:
    """The operations of a function by their dtype, and the accesses of its parameters in order."""

    operations: dict[str, Terms] = field(default_factory=dict[str, Terms])
    accesses: list[Accesses] = field(default_factory=list[Accesses])


def estimate_flops(function: tir.PrimFuncOp) -> Work | None:
    """Returns the work of a function; None where data decides it, as in a `while` loop, or an opaque call."""
    work = Work(accesses=[Accesses() for _ in function.params])
    buffers: dict[SSAValue, Accesses] = dict(zip(function.params, work.accesses, strict=True))
    counted: set[Operation] = set()
    for op in walk_ops(function):
        match op:
            case tir.WhileOp():
                return None
            case tir.CallOp() if op.callee is not None or intrinsic_effect(op.intrinsic.data) is Effect.OPAQUE:
                return None
            case tir.MatchBufferOp(source=SSAValue() as source) if source in buffers:
                buffers[op.result] = buffers[source]
            case tir.LoadOp() if op.buffer in buffers:
                _add(buffers[op.buffer].loads, op, lanes_of(op.result.type))
            case tir.StoreOp() if not _in_init(op):
                if op.buffer in buffers:
                    _add(buffers[op.buffer].stores, op, lanes_of(op.value.type))
                for each in _computed_by(op.value, counted):
                    dtype, number = _operation(each)
                    if number:
                        _add(work.operations.setdefault(dtype, {}), each, number)
            case _:
                pass
    return work


def _add(terms: Terms, op: Operation, number: int) -> None:
    """Counts `number` for each time that an op runs."""
    extents: list[SSAValue] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, tir.ForOp):
            known = const_int(parent.extent)
            if known is None:
                extents.append(parent.extent)
            else:
                number *= known
        parent = parent.parent_op()
    key = tuple(extents)
    terms[key] = terms.get(key, 0) + number


def _in_init(op: Operation) -> bool:
    """Returns whether an op belongs to the init of a reduction."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tir.InitOp):
        parent = parent.parent_op()
    return parent is not None


def _computed_by(value: SSAValue, seen: set[Operation]) -> Iterator[Operation]:
    """Yields the ops that a value is computed by, each once; indices of loads and conditions are left out."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op in seen:
            continue
        seen.add(op)
        yield op
        match op:
            case tir.LoadOp():
                pass
            case tir.SelectOp():
                pending += [op.true_value, op.false_value]
            case tir.IfThenElseOp():
                for region in op.regions:
                    last = region.block.last_op
                    pending += () if last is None else last.operands
            case _:
                pending += op.operands


def _operation(op: Operation) -> tuple[str, int]:
    """Returns the dtype that an op computes in, and how many operations it is."""
    match op:
        case tir.AndOp() | tir.OrOp():
            return "bool", 0
        case tir.BinaryOp():
            return _dtype(op.lhs.type), lanes_of(op.lhs.type)
        case tir.CallOp() if op.result is not None:
            return _dtype(op.result.type), lanes_of(op.result.type) * (2 if op.intrinsic.data == "fma" else 1)
        case _:
            return "", 0


def _dtype(type: Attribute) -> str:
    return type_to_dtype(element_of(type))
