"""Finds the arguments of kernels that are constants, at each of their calls.

A value is constant when it is a `relay.constant`, or comes from constants by tuples, names and calls of kernels alone (which may still be
Primitive functions): it is the same each time the program runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import te, tir
from ....dialects.relay import ir as relay
from ....passes.relay.fusion.fuse_ops import is_kernel
from ....passes.tir.buffers.constant_params import set_constant_params
from ....support.walk import walk_ops
from ..functions.flat_values import TensorLeaf, leaves_of
from .shape_function import names_function


class Constants:
    """Tells constant values from others; each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, bool] = {}

    def __call__(self, value: SSAValue) -> bool:
        """Returns whether the value is constant."""
        pending = [value]
        while pending:
            current = pending[-1]
            owner = current.owner
            if current in self._known:
                pending.pop()
            elif isinstance(owner, relay.ConstantOp):
                self._known[current] = True
            elif (operands := _inputs(owner)) is None:
                self._known[current] = False
            elif missing := [operand for operand in operands if operand not in self._known]:
                pending += missing
            else:
                self._known[current] = bool(operands) and all(self._known[v] for v in operands)
        return self._known[value]


def _inputs(owner: Operation | Block) -> Sequence[SSAValue] | None:
    """Returns the values from which kernels alone compute a value; None where other ops do."""
    match owner:
        case relay.LetOp() | relay.TupleOp() | relay.TupleGetItemOp() | relay.CallTirOp():
            return owner.operands
        case relay.CallOp():
            callee = owner.callee.owner
            return owner.arguments if isinstance(callee, relay.FnOp) and is_kernel(callee) else None
        case _:
            return None


def constant_places(arguments: Iterable[SSAValue], constants: Constants) -> frozenset[int]:
    """Returns the positions, among a kernel's tensors, of a call's constants of known shape."""
    places: set[int] = set()
    start = 0
    for argument in arguments:
        leaves = leaves_of(argument.type, argument)
        if isinstance(argument.type, TensorType) and isinstance(leaves[0], TensorLeaf) and constants(argument):
            places.add(start)
        start += len(leaves)
    return frozenset(places)


def kernel_calls(module: ModuleOp) -> dict[str, list[relay.CallTirOp]]:
    """Returns the calls of each kernel, by its name."""
    calls: dict[str, list[relay.CallTirOp]] = {}
    for op in _relay_ops(module):
        if isinstance(op, relay.CallTirOp):
            calls.setdefault(op.callee.root_reference.data, []).append(op)
    return calls


def _relay_ops(module: ModuleOp) -> Iterator[Operation]:
    return (op for function in module.ops if isinstance(function, relay.FuncOp) for op in walk_ops(function))


def mark_constant_params(module: ModuleOp) -> None:
    """Marks the parameters of kernels that are constants at all their calls (`tir.constant_params`).

    Kernels with a shape function or a variant stay as they are: these take the same arguments.
    """
    calls = kernel_calls(module)
    constants = Constants()
    for function in module.ops:
        if not isinstance(function, te.FuncOp | tir.PrimFuncOp) or function.sym_name.data not in calls:
            continue
        if names_function(function):
            continue
        places = frozenset[int].intersection(
            *(constant_places(call.arguments, constants) for call in calls[function.sym_name.data])
        )
        if places:
            set_constant_params(function, places)
