"""Emits a call of a kernel.

The sizes come from the arguments and from the shape function; then come checks, memory for the results, and the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX, i32, i64
from xdsl.ir import Operation, SSAValue

from ....dialects.relay import ir as relay
from ....dialects.relay.text import global_text
from ...tir.signature import BufferParam, KernelSignature
from ..kernels.shape_function import Check, ShapeFunction, Variant
from .flat_values import WORD, BoxLeaf, DynamicTensorLeaf, TensorLeaf, leaves_of
from .run_time_extents import Extent, Predicate, Sizing

if TYPE_CHECKING:
    from .function_lowering import RelayFunctionLowering


@dataclass(frozen=True)
class Kernel:
    """The calling convention of a lowered kernel; `signature` is set if it takes symbolic sizes."""

    name: str
    status: bool
    """Whether it returns a status."""
    fails: bool
    """Whether that may be another than 0."""
    arguments: int
    signature: KernelSignature | None
    shape: ShapeFunction | None


@dataclass(frozen=True)
class _Tensor:
    """A tensor that a kernel takes: where its data is, and its shape."""

    data: SSAValue
    shape: Sequence[Extent]


def call_kernel(f: RelayFunctionLowering, op: relay.CallTirOp) -> None:
    """Emits the call; the op's result becomes known."""
    kernel = f.unit.kernels[op.callee.root_reference.data]
    sizing = Sizing(f)
    inputs = [tensor for value in op.arguments for tensor in _tensors(f, sizing, value)]
    leaves = leaves_of(op.result.type, op.result)
    if kernel.signature is None:
        targets = [f.place(op, k) for k in range(len(leaves))]
        _call(f, kernel, [*(t.data for t in inputs), *targets], op)
        f.values[op.result] = targets
        return
    params = [p for p in kernel.signature.params if isinstance(p, BufferParam)]
    shown = global_text(kernel.name) if kernel.shape is None else kernel.shape.operator
    symbols = _input_symbols(sizing, params, inputs, shown, op)
    computed = [] if kernel.shape is None else _computed(f, kernel.shape, inputs, symbols, op)
    variant = None if kernel.shape is None else kernel.shape.variant
    result_is_view = is_view(kernel, op)
    results: list[SSAValue] = []
    data: list[SSAValue] = []
    shapes = [tensor.shape for tensor in inputs]
    for k, (leaf, param) in enumerate(zip(leaves, params[len(inputs) :], strict=True)):
        assert not isinstance(leaf, BoxLeaf)
        shape: list[Extent] = []
        for axis, (size, declared) in enumerate(zip(param.shape, leaf.shape, strict=True)):
            if isinstance(size, str) and size not in symbols:
                symbols[size] = computed.pop(0)
                message = f"dimension {axis} of the result of {shown} would be {{size}}"
                sizing.check_extent(sizing.value(symbols[size]), message, op)
            extent = sizing.evaluate(size, symbols)
            if declared != DYNAMIC_INDEX:
                message = f"dimension {axis} of the result of {shown} is {{size}}, but must be {{size}}"
                sizing.check(Check("equal", message), extent, declared, op)
            shape.append(extent)
        shapes.append(shape)
        if result_is_view and isinstance(leaf, DynamicTensorLeaf):
            message = f"the result of {shown} would take {{size}} bytes, but its argument has {{size}}"
            taken, there = (sizing.bytes_of(each, leaf.item_bytes) for each in (shape, inputs[0].shape))
            sizing.check(Check("equal", message), taken, there, op)
            target = inputs[0].data
        else:
            target = f.place(op, k) if isinstance(leaf, TensorLeaf) else sizing.allocate(leaf, shape, (op, k))
        data.append(target)
        results.append(target if isinstance(leaf, TensorLeaf) else sizing.descriptor(leaf, target, shape))
    f.values[op.result] = results
    if result_is_view:
        return
    _bind_compact_strides(sizing, params, shapes, symbols)
    sizes = [sizing.value(symbols[name]) for name in kernel.signature.symbols]
    arguments = [*(t.data for t in inputs), *data, *sizes]
    if variant is None:
        _call(f, kernel, arguments, op)
    else:
        _choose(f, kernel, variant, sizing.value(symbols[variant.symbol]), arguments, op)


def is_view(kernel: Kernel, op: relay.CallTirOp) -> bool:
    """Returns whether a call's result is its first argument in another shape, both on the heap."""
    if kernel.shape is None or not kernel.shape.is_view or not op.arguments:
        return False
    leaves = [*leaves_of(op.arguments[0].type, op.arguments[0]), *leaves_of(op.result.type, op.result)]
    return len(leaves) == 2 and all(isinstance(leaf, DynamicTensorLeaf) for leaf in leaves)


def _bind_compact_strides(
    sizing: Sizing, params: Sequence[BufferParam], shapes: Sequence[Sequence[Extent]], symbols: dict[str, Extent]
) -> None:
    """Binds symbolic strides and offsets to those of compact tensors, as all of Relay's are.

    `strides=("s0", "s1")` of a shape (n, 12): s1 = 1, s0 = 12.
    """
    for param, shape in zip(params, shapes, strict=True):
        step: Extent = 1
        for stride, extent in zip(reversed(param.strides or ()), reversed(shape), strict=False):
            if isinstance(stride, str):
                symbols.setdefault(stride, step)
            step = sizing.evaluate(("*", "step", "extent"), {"step": step, "extent": extent})
        if isinstance(param.elem_offset, str):
            symbols.setdefault(param.elem_offset, 0)


def _choose(
    f: RelayFunctionLowering,
    kernel: Kernel,
    variant: Variant,
    size: SSAValue,
    arguments: Sequence[SSAValue],
    op: relay.CallTirOp,
) -> None:
    """Calls the kernel, or its variant for large sizes."""
    emit = f.emit
    large, small, done = emit.new_block(), emit.new_block(), emit.new_block()
    emit.branch_if(emit.compare(size, emit.int(variant.least), Predicate("uge")), large, small)
    for start, chosen in ((large, f.unit.kernels[variant.name]), (small, kernel)):
        emit.block = start
        _call(f, chosen, arguments, op)
        emit.branch(done)
    emit.block = done


def _tensors(f: RelayFunctionLowering, sizing: Sizing, value: SSAValue) -> list[_Tensor]:
    tensors: list[_Tensor] = []
    for leaf, pointer in zip(leaves_of(value.type, value), f.values[value], strict=True):
        assert isinstance(leaf, TensorLeaf | DynamicTensorLeaf)
        tensors.append(_Tensor(sizing.data(leaf, pointer), sizing.shape(leaf, pointer)))
    return tensors


def _input_symbols(
    sizing: Sizing, params: Sequence[BufferParam], inputs: Sequence[_Tensor], callee: str, op: relay.CallTirOp
) -> dict[str, Extent]:
    """Returns the sizes in the inputs' shapes by name; sizes of the same name are compared."""
    symbols: dict[str, Extent] = {}
    for param, tensor in zip(params, inputs, strict=False):
        for size, extent in zip(param.shape, tensor.shape, strict=True):
            if isinstance(size, str):
                symbols.setdefault(size, extent)
    for param, tensor in zip(params, inputs, strict=False):
        for axis, (size, extent) in enumerate(zip(param.shape, tensor.shape, strict=True)):
            if not isinstance(size, str) or symbols[size] is not extent:
                # The handle of a buffer of symbolic shape is named after it.
                name = param.name.removeprefix("var_")
                message = f"{callee}: dimension {axis} of '{name}' is {{size}}, but must be {{size}}"
                sizing.check(Check("equal", message), extent, sizing.evaluate(size, symbols), op)
    return symbols


def _computed(
    f: RelayFunctionLowering,
    shape: ShapeFunction,
    inputs: Sequence[_Tensor],
    symbols: Mapping[str, Extent],
    op: relay.CallTirOp,
) -> list[Extent]:
    """Computes the numbers before a call and checks them; returns the sizes of the results."""
    sizing = Sizing(f)
    if shape.name is None:
        numbers = [sizing.number(each, symbols) for each in shape.numbers]
    else:
        numbers = _called(f, sizing, shape.name, inputs, symbols, op)
    count = len(numbers) - 2 * len(shape.checks)
    sides = iter(numbers[count:])
    for check in shape.checks:
        sizing.check(check, next(sides), next(sides), op)
    return numbers[:count]


def _called(
    f: RelayFunctionLowering,
    sizing: Sizing,
    name: str,
    inputs: Sequence[_Tensor],
    symbols: Mapping[str, Extent],
    op: relay.CallTirOp,
) -> list[Extent]:
    """Calls a shape function; returns its numbers."""
    kernel = f.unit.kernels[name]
    signature = kernel.signature
    symbolic = () if signature is None else signature.symbols
    count = kernel.arguments - len(inputs) - len(symbolic)
    table = f.emit.slot(count)
    addresses = [f.emit.offset(table, WORD * k) for k in range(count)]
    sizes = [sizing.value(symbols[name]) for name in symbolic]
    _call(f, kernel, [*(t.data for t in inputs), *addresses, *sizes], op)
    return [f.emit.load(address, i64) for address in addresses]


def _call(f: RelayFunctionLowering, kernel: Kernel, arguments: Sequence[SSAValue], op: relay.CallTirOp) -> None:
    def emit_call() -> Operation:
        return f.emit.call(kernel.name, arguments, i32 if kernel.status else None)

    if f.hooks is None:
        call = emit_call()
    else:
        symbols = () if kernel.signature is None else kernel.signature.symbols
        sizes = list(zip(symbols, arguments[len(arguments) - len(symbols) :], strict=True))
        call = f.hooks.around(f.emit, kernel.name, op, sizes, emit_call)
    if kernel.fails:
        f.check(call.results[0])
