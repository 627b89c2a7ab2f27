"""`narrow-weights`: keeps constant weights narrow in products of few rows.

Weights that are quantized to bytes while activations are real numbers, and those stored as half precision, are widened before they
are multiplied. With few rows most time goes to reading the weights, so they are widened where they are multiplied, in registers:

    nn.dense(%x, multiply(cast(subtract(bytes, zero), dtype="float32"), scale))
        =>  multiply(nn.dense(%x, bytes - zero, out_dtype="float32"), scale)

The scale, of the whole tensor or of each of the product's columns, is applied to the sums, which differ from the original ones by the
order of roundings only: activations are not quantized, and `bytes - zero` is exact. Many rows use each weight so often that widening it
once, as `fold-constant` does, is quicker; so it is if the widened weights fit into the second-level cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ....dialects.array import ArrayValueAttr
from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter, dtype_of, shape_of
from ....dialects.relay.operator import OperatorOp
from ....dialects.tir.types import dtype_to_type
from ....support.target import named
from ....support.trace import Tracer, tracer
from ...common.described_cpu import described_cpu
from ..algebra.fold_constant import evaluate
from ..common.function_attributes import open_ops
from ..common.rewriting import erase_unused, replace
from ..functional.infer_type import ensure_types

MOST_ROWS = 8
"""Rows up to which reading weights takes longer than widening them from bytes for each use (measured on Zen 4, with AVX-512 and with AVX2); of
weights of two bytes, which save less, half as many."""
WIDENING = 32
"""Bytes of the vectors of x86 processors that widen bytes and half precision by an instruction each (AVX2 and F16C)."""
MOST_SCALES = 1 << 20
"""Elements of scales and zero points at most."""
MOST_STEPS = 8
"""Operators between stored weights and a product at most."""


@dataclass(frozen=True)
class NarrowWeights(ModulePass):
    """Keep constant weights of products with few rows as narrow as they are stored.

    `cpu` is LLVM's name of the processor ("" for this one), whose second-level cache the weights do not fit once they are widened;
    `caches` are the sizes of its data caches where they are not those that are known of it ("32K,1M,16M").
    """

    name = "narrow-weights"
    tells: ClassVar[bool] = True

    cpu: str = ""
    caches: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        products = [each for each in open_ops(op) if isinstance(each, OperatorOp) and each.OPERATOR.name in _COLUMNS]
        if not products:
            return
        ensure_types(op)
        target, trace = named(described_cpu(op.ops, self.cpu), caches=self.caches), tracer(self.name)
        if target.arch == "x86_64" and target.vector_bytes < WIDENING:
            return
        known: dict[SSAValue, Weights | None] = {}
        for product in products:
            _keep_narrow(product, target.l2, known, trace)


@dataclass(frozen=True)
class Weights:
    """Narrow numbers and their factors: an array of as many dimensions, or a scalar."""

    stored: NDArray[Any]
    scale: NDArray[np.float32]


_STEPS = ("cast", "subtract", "multiply", "transpose")
"""Operators that may be between stored weights and a product."""
_COLUMNS = {"nn.dense": 0, "nn.matmul": 1}
"""Products, and which axis of their weight the columns of the result are (that of nn.matmul if it is not transposed)."""
_INTEGERS = ("int8", "uint8", "int16")
_KEPT = (*_INTEGERS, "float16")
"""What is widened in registers."""


def _keep_narrow(product: OperatorOp, cache: int, known: dict[SSAValue, Weights | None], trace: Tracer | None) -> None:
    """Keeps the weights of one product narrow, unless they fit into `cache` bytes.

    `known` is a cache of results.
    """
    data, weight, attrs = product.args[0], product.args[1], product.attrs()
    rows, shape = shape_of(data), shape_of(weight)
    if isinstance(weight.owner, ir.ConstantOp) or rows is None or shape is None or len(rows) < 2 or len(shape) != 2:
        return
    if any(not isinstance(dtype_of(v), Float32Type) for v in (data, weight, product.result)):
        return
    transposed = product.OPERATOR.name == "nn.matmul" and attrs.transpose_a
    if transposed or prod(rows[:-1]) > MOST_ROWS or 4 * prod(shape) <= cache:
        return
    columns = 0 if product.OPERATOR.name == "nn.matmul" and attrs.transpose_b else _COLUMNS[product.OPERATOR.name]
    if weight not in known:
        # Steps of a loop that is written out share their weights.
        known[weight] = _narrowed(weights_of(weight))
    found = known[weight]
    if found is None or not _is_of_columns(found.scale, columns):
        return
    stored = found.stored
    if prod(rows[:-1]) * stored.itemsize > MOST_ROWS:
        return
    if trace is not None:
        trace(product, f"its weights stay {stored.dtype.name}: {prod(rows[:-1])} rows cost less than reading float32")
    make, widened = Emitter(product, [product]), weight.owner
    value = make.like(product, [data, _constant(make, stored)], out_dtype="float32")
    if not (found.scale == 1).all():
        value = make.call("multiply", value, _constant(make, found.scale.reshape(-1 if found.scale.size > 1 else ())))
    replace(product, value)
    if isinstance(widened, OperatorOp):
        erase_unused(widened)


def _narrowed(weights: Weights | None) -> Weights | None:
    """Weights in as few bits as hold them; None where those are not widened in registers."""
    stored = None if weights is None else narrowest(weights.stored)
    return None if weights is None or stored is None else Weights(stored, weights.scale)


def _constant(make: Emitter, array: NDArray[Any]) -> SSAValue:
    return make.insert(
        ir.ConstantOp(ArrayValueAttr.of(array), TensorType(dtype_to_type(array.dtype.name), array.shape))
    )


def _is_of_columns(scale: NDArray[Any], columns: int) -> bool:
    """Returns whether a scale is a single number, or has one for each column of a matrix."""
    return scale.size == 1 or (scale.ndim == 2 and scale.shape[1 - columns] == 1)


def weights_of(value: SSAValue) -> Weights | None:
    """A value that is computed from narrow constants as numbers times scales; None for others."""
    steps: list[tuple[OperatorOp, NDArray[Any] | None]] = []
    while isinstance(op := value.owner, OperatorOp) and len(steps) < MOST_STEPS:
        name, source, array = op.OPERATOR.name, op.args[0] if op.args else None, None
        if name in ("subtract", "multiply"):
            if name == "multiply" and shape_of(op.args[0]) != shape_of(op.result):
                source = op.args[1]
            array = _value(op.args[1] if source is op.args[0] else op.args[0])
        if source is None or name not in _STEPS or shape_of(source) is None:
            return None
        steps.append((op, array))
        value = source
    if not isinstance(value.owner, ir.ConstantOp):
        return None
    array = value.owner.value.array
    if array.dtype.name not in _KEPT or array.ndim != 2:
        return None
    found: Weights | None = Weights(array, np.ones((1, 1), np.float32))
    for op, array in reversed(steps):
        found = None if found is None else _after(found, op, array)
    return found


def _value(value: SSAValue) -> NDArray[Any] | None:
    """Evaluates a value of constants alone, of no more elements than scales have.

    None for any other value.
    """
    shape, op = shape_of(value), value.owner
    if shape is None or prod(shape) > MOST_SCALES:
        return None
    if isinstance(op, ir.ConstantOp):
        return op.value.array
    if not isinstance(op, OperatorOp) or op.OPERATOR.name not in ("expand_dims", "reshape", "cast") or not op.args:
        return None
    source = _value(op.args[0])
    result = None if source is None else evaluate(op, [source])
    return result if isinstance(result, np.ndarray) else None


def _after(weights: Weights, op: OperatorOp, array: NDArray[Any] | None) -> Weights | None:
    """Applies an operator to weights and `array`.

    None if the result is not such a product, or not exactly.
    """
    stored, scale = weights.stored, weights.scale
    match op.OPERATOR.name:
        case "transpose":
            turned = tuple(a % 2 for a in op.attrs().axes or (1, 0)) == (1, 0)
            return Weights(np.ascontiguousarray(stored.T), scale.T) if turned else weights
        case "cast":
            return weights if _holds(op, weights) else None
        case "multiply" if array is not None and array.dtype == np.float32:
            return Weights(stored, scale * array) if shape_of(op.result) == stored.shape else None
        case "subtract" if array is not None and stored.dtype.kind in "iu" and (scale == 1).all():
            zero = array.astype(np.int64)
            whole = (zero == array).all() and shape_of(op.result) == stored.shape
            shifted = stored.astype(np.int64) - zero
            return Weights(shifted, scale) if whole and narrowest(shifted) is not None else None
        case _:
            return None


def _holds(op: OperatorOp, weights: Weights) -> bool:
    """Returns whether a cast keeps the numbers: to float32, or, without a scale, to wide integers."""
    dtype = op.attrs().dtype
    exact = dtype in ("int32", "int64") and weights.stored.dtype.kind in "iu" and bool((weights.scale == 1).all())
    return exact or dtype == "float32"


def narrowest(stored: NDArray[Any]) -> NDArray[Any] | None:
    """Returns the numbers in as few bits as hold them exactly.

    None if registers cannot widen that type.
    """
    if stored.dtype.kind not in "iu":
        return stored if stored.dtype.name in _KEPT else None
    low, high = int(stored.min(initial=0)), int(stored.max(initial=0))
    for name in _INTEGERS:
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
            return stored.astype(name)
    return None
