"""Finds what of a graph can be computed on bytes, observes it, simulates it, and quantizes it.

    conv → bias → relu → conv   =>   dequantize(quantize(x)) → conv → bias → relu → dequantize(quantize(·)) → conv

A *layer* is a convolution or a dense layer with a constant weight. A *point* is a tensor that is stored in bytes: what a layer reads, and
what is added, concatenated, pooled or moved on the way from one layer to the next. All users of a point read the dequantized bytes.
Between points `fake-quantization-to-integer` computes in integers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType, i32
from xdsl.ir import Operation, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.types import tuple_of
from ....support.diagnostics import place_of_node, source_position
from ..algebra.fold_constant import FoldConstant
from ..common.operator_table import read_table
from ..common.rewriting import erase_unused, replace, returned
from ..functional.infer_type import ensure_types
from .calibration import Affine8
from .fake_quantization_to_integer import FakeQuantizationToInteger
from .quantize_weights import constant_weight, pack_weight, quantize_weight

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TABLE = read_table("quantize/quantized_layers.json")
UNARY, JOINS, KEEPING, MOVES = (frozenset(TABLE[key]) for key in ("unary", "joins", "keeping", "moves"))
SIGNED = 127
"""The magnitude of the largest weight in bytes."""

Point: TypeAlias = int
"""The place of a point among those of all layers."""


@dataclass(frozen=True)
class QuantizableLayer:
    """A layer: its op, the axis of its weight that its result's channels run along, and the weight."""

    op: OperatorOp
    axis: int
    weight: NDArray[Any]

    @property
    def place(self) -> str:
        """Returns where the layer is written: `file:line:column` or `model.onnx: node 'Conv_12'`.

        "" where that is not known.
        """
        node = place_of_node(self.op.location)
        if node is not None:
            return node
        position = source_position(self.op.location)
        return "" if position is None else ":".join(map(str, position))


def prepare(module: ModuleOp) -> None:
    """Prepares a graph for quantization: batch norms are folded into weights, constants become biases."""
    from ...registry import PASSES

    passes = {entry.name: entry for entry in PASSES}
    folded: Sequence[tuple[str, Mapping[str, Any]]] = (
        ("infer-type", {}), ("inline", {}), ("simplify-inference", {}), ("fold-constant", {}),
        ("eliminate-common-subexpr", {}), ("backward-fold-scale-axis", {"constants_only": True}),
        ("forward-fold-scale-axis", {"constants_only": True}), ("fold-constant", {}),
    )  # fmt: skip
    for name, options in folded:
        passes[name].load()(**options).apply(Context(), module)
    ensure_types(module)
    for op in _operators(module):
        if op.OPERATOR.name == "nn.matmul":
            _as_dense(op)
        elif op.OPERATOR.name == "add":
            _as_bias(op)


def _operators(module: ModuleOp) -> list[OperatorOp]:
    return [op for function in module.ops if isinstance(function, ir.FuncOp) for op in _own_operators(function)]


def _own_operators(function: ir.FuncOp) -> list[OperatorOp]:
    return [op for op in function.body.block.ops if isinstance(op, OperatorOp)]


def _as_dense(op: OperatorOp) -> None:
    """Writes the product with a constant matrix as a dense layer."""
    weight = constant_weight(op)
    if weight is not None:
        make, old = Emitter(op), op.args[1].owner
        replace(op, make.call("nn.dense", op.args[0], make.constant(weight, "float32")))
        assert isinstance(old, ir.ConstantOp)
        erase_unused(old)


def _as_bias(op: OperatorOp) -> None:
    """Writes the sum of a layer and one constant for each channel as `nn.bias_add`."""
    for layer, bias in (op.args, reversed(op.args)):
        if not isinstance(bias.owner, ir.ConstantOp) or not isinstance(layer.owner, OperatorOp):
            continue
        shape, axis = shape_of_rank(layer), _channels(layer.owner)
        values = bias.owner.value.array
        if axis is None or shape is None or op.result.type != layer.type or values.size != shape[axis]:
            continue
        own = values.shape + (1,) * (len(shape) - values.ndim) if values.ndim == len(shape) else values.shape
        if len(own) + axis < len(shape) or own[axis - len(shape)] != values.size:
            continue
        make, old = Emitter(op), bias.owner
        replace(op, make.call("nn.bias_add", layer, make.constant(values.reshape(-1), "float32"), axis=axis))
        erase_unused(old)
        return


def shape_of_rank(value: SSAValue) -> tuple[int, ...] | None:
    """Returns a tensor's dimensions, an unknown one as it is stored; None for other values."""
    return tuple(value.type.get_shape()) if isinstance(value.type, TensorType) else None


def _channels(op: OperatorOp) -> int | None:
    """Returns the axis of a layer's result along which its channels run; None for other operators."""
    match op.OPERATOR.name:
        case "nn.conv2d":
            layout: str = op.attrs().out_layout or op.attrs().data_layout
            return layout.index("C") if layout.isupper() else None
        case "nn.dense":
            shape = shape_of_rank(op.result)
            return None if shape is None else len(shape) - 1
        case _:
            return None


def _layer(op: OperatorOp) -> QuantizableLayer | None:
    """Returns an operator as a layer that has an integer counterpart; None for any other."""
    attrs, name = op.attrs(), op.OPERATOR.name
    if name == "nn.dense":
        weight, shape = constant_weight(op), shape_of_rank(op.args[0])
        return None if weight is None or shape is None or len(shape) != 2 else QuantizableLayer(op, 0, weight)
    if name != "nn.conv2d" or attrs.out_dtype not in (None, "", "float32"):
        return None
    constant, layout = op.args[1].owner, attrs.kernel_layout
    fits = layout == "OIHW" or (layout == "HWIO" and attrs.groups == 1)
    if not fits or not attrs.data_layout.isupper() or not isinstance(constant, ir.ConstantOp):
        return None
    if constant.value.data.dtype != "float32" or constant.value.data.shape[0] == 0:
        return None
    return QuantizableLayer(op, layout.index("O"), constant.value.array)


class Graph:
    """The layers and points of an entry's graph; equal ones in each copy of its module."""

    def __init__(self, module: ModuleOp, entry: str, bits: int = 0, group: int = 0):
        """Finds the layers that bytes are for; with `bits` those whose weights alone are stored in so many."""
        self.module, self.entry, self.bits, self.group = module, entry, bits, group
        functions = [op for op in module.ops if isinstance(op, ir.FuncOp)]
        self.function = next(op for op in functions if op.sym_name.data == entry)
        self.layers = [layer for op in _own_operators(self.function) if (layer := self._layer(op)) is not None]
        self.points = [] if bits else _points(self.layers)
        self._number = {value: number for number, value in enumerate(self.points)}

    def _layer(self, op: OperatorOp) -> QuantizableLayer | None:
        if not self.bits:
            return _layer(op)
        weight = constant_weight(op)
        return None if weight is None else QuantizableLayer(op, 0, weight)

    def copy(self) -> Graph:
        """Returns the graph of a copy of the module."""
        return Graph(self.module.clone(), self.entry, self.bits, self.group)

    def points_of(self, layers: Collection[int]) -> list[Point]:
        """Returns the points for some of the layers, in order."""
        if self.bits:
            return []
        chosen = _points([self.layers[k] for k in sorted(layers)])
        return sorted(self._number[value] for value in chosen)

    def kept_ranges(self) -> dict[Point, Point]:
        """Returns the points whose range is that of another: pooled by maximum, or moved only."""
        found: dict[Point, Point] = {}
        for number, value in enumerate(self.points):
            op = value.owner
            if isinstance(op, OperatorOp) and op.OPERATOR.name in KEEPING and op.args[0] in self._number:
                found[number] = self._number[op.args[0]]
        return found

    def observed(self) -> ModuleOp:
        """Returns a module whose entry returns the points, too: a tuple of its result and theirs."""
        copy = self.copy()
        end = copy.function.body.block.last_op
        assert end is not None
        values = [returned(copy.function.body.block), *copy.points]
        end.operands[0] = Emitter(end).insert(ir.TupleOp(values, tuple_of([value.type for value in values])))
        copy.function.ret_type = end.operands[0].type
        return copy.module

    def simulated(self, affine: Sequence[Affine8]) -> ModuleOp:
        """Returns a module whose entry quantizes what its last parameter says.

        That is a vector of a number for each point and then for each layer's weight: not 0 where it is quantized.
        """
        copy = self.copy()
        block = copy.function.body.block
        count = len(copy.points) + len(copy.layers)
        switches = block.insert_arg(TensorType(i32, [count]), len(block.args))
        names = [*copy.function.param_names.data, StringAttr("quantized")]
        copy.function.param_names = ArrayAttr(names)
        for number, value in enumerate(copy.points):
            _simulate(value, switches, number, affine[number])
        for number, layer in enumerate(copy.layers):
            _choose_weight(layer, switches, len(copy.points) + number, copy.weight_again(layer))
        return copy.module

    def weight_again(self, layer: QuantizableLayer) -> NDArray[Any]:
        """Returns the weight that a layer's quantized weight represents."""
        import numpy as np

        from ....dialects.relay.operators.nn.matmul_nbits import dequantize_nbits

        if not self.bits:
            stored, scales = quantized_channels(layer.weight, layer.axis)
            return (stored * _along(scales, layer.axis, layer.weight.ndim)).astype(np.float32)
        packed, scales, zero = pack_weight(layer.weight, self.bits, self.group)
        real = dequantize_nbits(packed, scales, np.array(zero, np.uint8), self.bits, layer.weight.shape[1])
        return real if layer.op.OPERATOR.name == "nn.dense" or layer.op.attrs().transpose_b else real.T

    def quantized(self, affine: Sequence[Affine8], layers: Collection[int]) -> ModuleOp:
        """Returns a module in which these layers are quantized."""
        copy = self.copy()
        if self.bits:
            for number in layers:
                quantize_weight(copy.layers[number].op, self.bits, self.group)
            return copy.module
        parameters: dict[SSAValue, Affine8] = {copy.points[k]: affine[k] for k in copy.points_of(layers)}
        for number in sorted(layers):
            layer = copy.layers[number]
            _quantize_layer(layer, parameters[layer.op.args[0]])
        for value, own in parameters.items():
            _store_in_bytes(value, own)
        for op in _own_operators(copy.function):
            _store_constant(op)
        ensure_types(copy.module)
        FakeQuantizationToInteger(use_qat=True).apply(Context(), copy.module)
        FoldConstant().apply(Context(), copy.module)
        for op in list(copy.function.body.block.ops):
            if isinstance(op, ir.ConstantOp):
                erase_unused(op)
        return copy.module


def _points(layers: Iterable[QuantizableLayer]) -> list[SSAValue]:
    """Returns what layers read, and what is joined or moved on the way to them, each once."""
    found: dict[SSAValue, None] = {}
    pending = [layer.op.args[0] for layer in layers][::-1]
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found[value] = None
        op = value.owner
        while isinstance(op, OperatorOp) and op.OPERATOR.name in UNARY:
            op = op.args[0].owner
        if not isinstance(op, OperatorOp):
            continue
        if op.OPERATOR.name in JOINS:
            fields = op.args[0].owner
            args = fields.operands if isinstance(fields, ir.TupleOp) else op.args
            pending += [arg for arg in args if _is_real(arg)]
        elif op.OPERATOR.name in MOVES or op.OPERATOR.name in KEEPING:
            pending += [arg for arg in op.args[:1] if _is_real(arg)]
    return list(found)


def _is_real(value: SSAValue) -> bool:
    """Returns whether a value is a tensor of float32 that is computed."""
    from xdsl.dialects.builtin import Float32Type

    is_tensor = isinstance(value.type, TensorType) and isinstance(value.type.element_type, Float32Type)
    return is_tensor and not isinstance(value.owner, ir.ConstantOp)


def _before_users(value: SSAValue) -> Operation:
    """Returns the op before which users of a value can be made."""
    owner = value.owner
    after = owner.next_op if isinstance(owner, Operation) else owner.first_op
    assert after is not None
    return after


def _replace_uses(value: SSAValue, new: SSAValue, made: Collection[Operation]) -> None:
    """Makes all users of a value, except the ops that were made of it, use another one."""
    for use in list(value.uses):
        if use.operation not in made:
            use.operation.operands[use.index] = new


def _make_after(value: SSAValue) -> Emitter:
    make = Emitter(_before_users(value))
    if isinstance(value.owner, Operation):
        make.location = value.owner.location
    return make


def _switch(make: Emitter, switches: SSAValue, number: int) -> SSAValue:
    return make.call("take", switches, make.constant(number, "int32"), axis=0)


UNSIGNED_CODE = 2
"""The number of uint8 in `qnn.simulated_quantize`."""


def _simulate(value: SSAValue, switches: SSAValue, number: int, affine: Affine8) -> None:
    """Quantizes and dequantizes a point where its switch is on: 0, or the number of the dtype."""
    make = _make_after(value)
    before = make.before.prev_op
    code = _switch(make, switches, number)
    scale, zero = make.constant(affine.scale, "float32"), make.constant(affine.zero_point, "int32")
    stored = make.call("qnn.simulated_quantize", value, code, scale, zero)
    again = make.call("qnn.simulated_dequantize", stored, code, scale, zero)
    _replace_uses(value, again, _since(before, make.before))


def _since(before: Operation | None, end: Operation) -> set[Operation]:
    found: set[Operation] = set()
    op = end.prev_op
    while op is not None and op is not before:
        found.add(op)
        op = op.prev_op
    return found


def _choose_weight(layer: QuantizableLayer, switches: SSAValue, number: int, again: NDArray[Any]) -> None:
    """Makes a layer read its weight, or the one that its quantized weight represents."""
    make = Emitter(layer.op)
    on = make.call("not_equal", _switch(make, switches, number), make.constant(0, "int32"))
    layer.op.operands[1] = make.call("where", on, make.constant(again, "float32"), layer.op.args[1])


def quantized_channels(weight: NDArray[Any], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Returns a weight in signed bytes, with a scale for each channel."""
    import numpy as np

    others = tuple(a for a in range(weight.ndim) if a != axis)
    largest = np.abs(weight).max(axis=others)
    scales = np.where(largest == 0, 1.0, largest / SIGNED).astype(np.float32)
    stored = np.clip(np.rint(weight / _along(scales, axis, weight.ndim)), -SIGNED, SIGNED)
    return stored.astype(np.int8), scales


def _along(vector: NDArray[Any], axis: int, rank: int) -> NDArray[Any]:
    return vector.reshape([-1 if a == axis else 1 for a in range(rank)])


def _quantize_layer(layer: QuantizableLayer, data: Affine8) -> None:
    """Stores a layer's weight in bytes, and its bias in the numbers of its sums."""
    import numpy as np

    op, make = layer.op, Emitter(layer.op)
    stored, scales = quantized_channels(layer.weight, layer.axis)
    old = op.args[1].owner
    zero = make.constant(0, "int32")
    parts = make.constant(stored, "int8"), make.constant(scales, "float32"), zero
    op.operands[1] = make.call("qnn.dequantize", *parts, axis=layer.axis)
    assert isinstance(old, ir.ConstantOp)
    erase_unused(old)
    for use in list(op.result.uses):
        user = use.operation
        bias = user.operands[1].owner if isinstance(user, OperatorOp) and user.OPERATOR.name == "nn.bias_add" else None
        if use.index == 0 and isinstance(bias, ir.ConstantOp):
            make = Emitter(user)
            product = (scales * np.float32(data.scale)).astype(np.float32)
            limits = np.iinfo(np.int32)
            sums = np.clip(
                np.rint(bias.value.array.astype(np.float64) / product.astype(np.float64)), limits.min, limits.max
            )
            parts = make.constant(sums, "int32"), make.constant(product, "float32"), make.constant(0, "int32")
            user.operands[1] = make.call("qnn.dequantize", *parts, axis=0)
            erase_unused(bias)


def _store_in_bytes(value: SSAValue, affine: Affine8) -> None:
    """Makes all users of a point read what its bytes represent."""
    make = _make_after(value)
    before = make.before.prev_op
    scale, zero = make.constant(affine.scale, "float32"), make.constant(affine.zero_point, "int32")
    stored = make.call("qnn.quantize", value, scale, zero, out_dtype="uint8")
    again = make.call("qnn.dequantize", stored, scale, zero)
    _replace_uses(value, again, _since(before, make.before))


def _store_constant(op: OperatorOp) -> None:
    """Stores a constant that is added to a dequantized tensor in bytes, by its own range."""
    if op.OPERATOR.name not in JOINS or len(op.args) != 2:
        return
    for place, value in enumerate(op.args):
        other, constant = op.args[1 - place].owner, value.owner
        is_stored = isinstance(other, OperatorOp) and other.OPERATOR.name == "qnn.dequantize"
        if is_stored and isinstance(constant, ir.ConstantOp) and constant.value.data.dtype == "float32":
            values = constant.value.array
            affine, make = Affine8.of_range(float(values.min(initial=0)), float(values.max(initial=0))), Emitter(op)
            scale, zero = make.constant(affine.scale, "float32"), make.constant(affine.zero_point, "int32")
            stored = make.call("qnn.quantize", value, scale, zero, out_dtype="uint8")
            op.operands[place] = make.call("qnn.dequantize", stored, scale, zero)


__all__ = ["Graph", "Point", "QuantizableLayer", "prepare", "quantized_channels"]
