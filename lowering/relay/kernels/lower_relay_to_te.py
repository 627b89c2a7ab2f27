"""Implements `lower-relay-to-te`: Primitive functions become TE functions, their calls `call_tir`.

    %0 = fn (%p0, %p1, Primitive=1) { nn.dense(%p0, %p1) }
    %1 = %0(%x, %w)                                           →    %1 = call_tir(@fused_nn_dense, (%x, %w))

An operator outside of any Primitive function becomes a kernel of its own. Functions that compute the same
become one kernel: they are compared by structure, constants by value. Calls with constant arguments, as weights are, have a kernel of
their own, which says so (`tir.constant_params`), and so have calls on tensors in rows (`row_layouts.py`). Concatenations, reshapes and
slices that only move tensors may stay operators of the function, which are then places in memory, without code (`share_storage.py`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir as relay
from ....dialects.relay.infer.size_symbols import SizeSymbols
from ....dialects.relay.operator import OperatorOp
from ....passes.relay.fusion.fuse_ops import call_tir_instead, is_kernel, outline
from ....passes.tir.buffers.param_strides import Strides
from ....support.edit import erase_op, insert_op_before
from ....support.garbage import no_collection
from ....support.text import take_name
from ....support.walk import walk_ops
from ..functions.flat_values import leaves_of
from ..memory.frame import Sources
from ..memory.row_layouts import Layouts
from ..memory.share_storage import share_storage
from .constant_arguments import Constants, constant_places, mark_constant_params

CallStrides = dict[relay.CallOp, tuple[Strides, Strides]]
"""Of calls of kernels: the strides of their arguments, and of their results."""
EqualSizes = dict[Operation, tuple[int, ...]]
"""Of calls and operators: a number for each dimension `?` of their arguments, the same one for equal sizes."""

MOST_NAMED = 6
"""A kernel's name lists at most this many operators."""


@dataclass(frozen=True)
class LowerRelayToTE(ModulePass):
    """Lower Primitive functions and lone operators to TE functions that call_tir calls."""

    name = "lower-relay-to-te"

    in_place: bool = True
    """Whether Primitive functions that only move tensors become places in memory rather than kernels."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with no_collection():
            _lower(op, _Kernels(op), self.in_place)
            mark_constant_params(op)


def call_kernels(module: ModuleOp, *, in_place: bool) -> None:
    """Replaces Primitive functions by calls of kernels that are not made: what they compute is lost."""
    _lower(module, _Names(module), in_place)


def _lower(module: ModuleOp, kernels: _Names, in_place: bool) -> None:
    for function in list(module.ops):
        if isinstance(function, relay.FuncOp):
            kept = share_storage(function) if in_place else set[Operation]()
            _lower_body(function.body.block, kernels, kept, _strides(function, kept), _equal_sizes(function))


def _equal_sizes(function: relay.FuncOp) -> EqualSizes:
    """Returns a number for each dimension `?` of the arguments of calls and operators."""
    sizes = SizeSymbols(function)
    found: EqualSizes = {}
    for op in walk_ops(function):
        if isinstance(op, OperatorOp | relay.CallOp):
            values = op.arguments if isinstance(op, relay.CallOp) else op.operands
            numbers = sizes.alike(dict.fromkeys(values) if isinstance(op, OperatorOp) else values)
            if numbers:
                found[op] = numbers
    return found


def _strides(function: relay.FuncOp, kept: set[Operation]) -> CallStrides:
    """Returns the strides of kernels' arguments and results, by call, without calls on compact tensors."""
    layouts = Layouts(kept, Sources())
    found: CallStrides = {}
    for op in walk_ops(function) if layouts else ():
        if isinstance(op, relay.CallOp) and isinstance(kernel := op.callee.owner, relay.FnOp) and is_kernel(kernel):
            inputs = tuple(steps for value in op.arguments for steps in layouts.strides(value))
            results = layouts.strides(op.result)
            if any(inputs) or any(results):
                found[op] = inputs, results
    return found


class _Names:
    """Names for the kernels of one module."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.names = {name.data for op in module.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}
        self.numbers: dict[str, int] = {}

    def kernel(self, function: relay.FnOp, calls: list[relay.CallOp], strides: Strides, alike: tuple[int, ...]) -> str:
        """Returns the name of a Primitive function's kernel for calls of these strides and equal sizes."""
        return self._fresh_name(function)

    def _fresh_name(self, function: relay.FnOp) -> str:
        operators = [op.OPERATOR.name.replace(".", "_") for op in function.body.block.ops if isinstance(op, OperatorOp)]
        shown = operators[:MOST_NAMED]
        base = "_".join(["fused", *shown, *(["etc"] if len(operators) > MOST_NAMED else [])])
        return take_name(base, self.names, self.numbers)


class _Kernels(_Names):
    """The kernels of one module, by structure."""

    def __init__(self, module: ModuleOp):
        super().__init__(module)
        self.by_structure: dict[Hashable, str] = {}
        self.constants = Constants()

    def kernel(self, function: relay.FnOp, calls: list[relay.CallOp], strides: Strides, alike: tuple[int, ...]) -> str:
        constant = frozenset[int].intersection(*(constant_places(call.arguments, self.constants) for call in calls))
        key = (structure(function), constant, strides, alike)
        name = self.by_structure.get(key)
        if name is None:
            name = self.by_structure[key] = self._fresh_name(function)
            from .te_kernel import te_kernel

            made = te_kernel(function, name, strides, alike)
            if any(isinstance(op, OperatorOp) and op.OPERATOR.is_own for op in function.body.block.ops):
                # What others wrote may read outside.
                from ...te.mark_open_bounds import mark

                for kernel in made:
                    mark(kernel)
            self.module.body.block.add_ops(made)
        return name


def _lower_body(body: Block, kernels: _Names, kept: set[Operation], strides: CallStrides, sizes: EqualSizes) -> None:
    pending = [body]
    while pending:
        for op in list(pending.pop().ops):
            match op:
                case OperatorOp() if op in kept:
                    pass
                case OperatorOp():
                    numbers = sizes.get(op, ())
                    call = outline([op])
                    outlined = call.callee.owner
                    assert isinstance(outlined, relay.FnOp)
                    _lower_kernel(outlined, kernels, {}, {call: numbers})
                case relay.FnOp() if is_kernel(op):
                    _lower_kernel(op, kernels, strides, sizes)
                case _:
                    pending += [block for region in op.regions for block in region.blocks]


def _lower_kernel(function: relay.FnOp, kernels: _Names, strides: CallStrides, sizes: EqualSizes) -> None:
    """Replaces a Primitive function by a TE function for all calls of the same strides and equal sizes."""
    calls = _calls(function)
    _lift_tensors(function, calls)
    alike: dict[tuple[Strides, tuple[int, ...]], list[relay.CallOp]] = {}
    for call in calls:
        inputs, results = strides.get(call, ((), ()))
        # Constants that were lifted come last, and are compact.
        count = sum(len(leaves_of(value.type, value)) for value in call.arguments) if inputs or results else 0
        steps = (*inputs, *[()] * (count - len(inputs)), *results)
        alike.setdefault((steps, sizes.get(call, ())), []).append(call)
    for (steps, numbers), chosen in alike.items():
        name = kernels.kernel(function, chosen, steps, numbers)
        for call in chosen:
            call_tir_instead(call, name)
    erase_op(function)


def _calls(function: relay.FnOp) -> list[relay.CallOp]:
    """Returns the calls of a kernel, after replacing the names that `let` binds to it."""
    calls: list[relay.CallOp] = []
    pending = [use.operation for use in function.result.uses]
    while pending:
        op = pending.pop()
        if isinstance(op, relay.LetOp):
            pending += [use.operation for use in op.result.uses]
            op.result.replace_all_uses_with(function.result)
            erase_op(op)
        else:
            assert isinstance(op, relay.CallOp)
            calls.append(op)
    return calls


def _lift_tensors(function: relay.FnOp, calls: list[relay.CallOp]) -> None:
    """Turns constant tensors of a Primitive function into parameters: a kernel has no memory of its own.

    Scalars stay, as numbers in the kernel's expressions.
    """
    block = function.body.block
    constants = [op for op in block.ops if isinstance(op, relay.ConstantOp) and op.value.array.ndim > 0]
    for constant in constants:
        constant.detach()
        param = block.insert_arg(constant.result.type, len(block.args))
        constant.result.replace_all_uses_with(param)
        insert_op_before(constant, function)
    if constants:
        names = [f"p{number}" for number in range(len(block.args))]
        function.param_names = ArrayAttr([StringAttr(name) for name in names])
        for call in calls:
            call.operands = [*call.operands, *(constant.result for constant in constants)]


def structure(function: relay.FnOp) -> Hashable:
    """Returns a key equal for functions that compute the same: types, and ops with numbered operands."""
    block = function.body.block
    numbers: dict[SSAValue, int] = {value: number for number, value in enumerate(block.args)}
    ops: list[Hashable] = []
    for op in block.ops:
        attributes = tuple(sorted((*op.attributes.items(), *op.properties.items()), key=lambda item: item[0]))
        ops.append((op.name, tuple(numbers[v] for v in op.operands), attributes, tuple(r.type for r in op.results)))
        for result in op.results:
            numbers[result] = len(numbers)
    return (tuple(value.type for value in block.args), tuple(ops))
