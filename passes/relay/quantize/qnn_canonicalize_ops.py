"""`qnn-canonicalize-ops`: lowers quantized operators to plain ones on integers.

    qnn.dense(%x, %w, zx, zw, …)   ->   nn.dense(%x, %w, out_dtype="int32") - zw * sum(%x) - zx * sum(%w) + k * zx * zw

As TVM's CanonicalizeOps of QNN. Operators that are functions of the real numbers are rewritten by the rules of
`qnn_canonicalize_ops.mir`; the others have a lowering in `LOWERINGS`, which is not a rule because the replacement depends on the
values of scales and zero points (a multiplication in fixed point takes its factor and shift from a ratio of scales; operations
with 0, or between equal scales, are left out), on the layout of a product, or, for `qnn.quantize`, because a rule would have to hold
for scales of 0, too. One that needs scales that are not constant, or tensors in blocks, stays as it is. The resulting integers are
those of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.operators.qnn.te_qnn import means_count_padding
from ....dialects.rule.relay_functions import highest, lowest
from ....support.edit import erase_op
from ....support.walk import walk_ops
from ..common.rewriting import replace
from ..functional.infer_type import ensure_types
from .affine_types import dtype_of, give_each_user_its_own, rank_of, scalar_of
from .qnn_products import (
    lower_batch_matmul,
    lower_conv2d,
    lower_conv2d_transpose,
    lower_dense,
    lower_plain_conv2d,
    lower_plain_dense,
)
from .qnn_requantize import (
    Parameters,
    Rounding,
    UpperHalves,
    along_axis,
    can_requantize,
    exact_float,
    is_scalar,
    lower_requantize,
    same_scalar,
    saturated,
)

Lowering: TypeAlias = "Callable[[OperatorOp, Emitter], SSAValue | None]"
"""Makes plain operators in the place of one; None where that cannot be done."""

_DEFAULT = Rounding()


def _quantize(op: OperatorOp, make: Emitter) -> SSAValue | None:
    """Rounded halves away from zero, and saturated."""
    x, attrs = op.args[0], op.attrs()
    rank, real, dtype = rank_of(x), dtype_of(x), dtype_of(op.result)
    if not real.startswith("float"):
        return None
    scale, zero = (along_axis(make, value, attrs.axis, rank) for value in op.args[1:])
    if real != "float32":
        scale = make.call("cast", scale, dtype=real)
    rounded = make.call("round", make.call("divide", x, scale))
    wide = exact_float(real, dtype)
    if wide != real:
        rounded = make.call("cast", rounded, dtype=wide)
    shifted = make.call("add", rounded, make.call("cast", zero, dtype=wide))
    limits = {"a_min": float(lowest(dtype)), "a_max": float(highest(dtype))}
    return make.call("cast", make.call("clip", shifted, **limits), dtype=dtype)


def _requantize(op: OperatorOp, make: Emitter) -> SSAValue | None:
    attrs = op.attrs()
    source = Parameters(op.args[1], op.args[2], attrs.axis)
    target = Parameters(op.args[3], op.args[4])
    if not can_requantize(source, target):
        return None
    how = Rounding.of(attrs.rounding, attrs.compute_dtype)
    return lower_requantize(make, op.args[0], source, target, dtype_of(op.result), how)


def _sides(op: OperatorOp) -> tuple[Parameters, Parameters, Parameters]:
    """The parameters of both sides and of the result of a binary operator."""
    attrs = op.attrs()
    left = Parameters(op.args[2], op.args[3], attrs.lhs_axis)
    return left, Parameters(op.args[4], op.args[5], attrs.rhs_axis), Parameters(op.args[6], op.args[7])


def _in_common(make: Emitter, x: SSAValue, source: Parameters, target: Parameters) -> SSAValue:
    """`x` in the numbers of the result, as int32."""
    if same_scalar(source.scale, target.scale) and same_scalar(source.zero_point, target.zero_point):
        return make.call("cast", x, dtype="int32")
    return lower_requantize(make, x, source, target, "int32", _DEFAULT)


def _sum(name: str, undo: str) -> Lowering:
    """The sum or the difference: one zero point too many, or too few, is put right by `undo`."""

    def lower(op: OperatorOp, make: Emitter) -> SSAValue | None:
        left, right, target = _sides(op)
        if not can_requantize(left, target) or not can_requantize(right, target):
            return None
        sides = (_in_common(make, op.args[0], left, target), _in_common(make, op.args[1], right, target))
        result = make.call(name, *sides)
        if not is_scalar(target.zero_point, 0):
            result = make.call(undo, result, target.zero_point)
        return saturated(make, result, dtype_of(op.result))

    return lower


def _multiply(op: OperatorOp, make: Emitter) -> SSAValue | None:
    import numpy as np

    left, right, target = _sides(op)
    scales = (scalar_of(left.scale), scalar_of(right.scale))
    if None in scales or not can_requantize(left, target):
        return None
    sides: list[SSAValue] = []
    for value, source in ((op.args[0], left), (op.args[1], right)):
        wide = make.call("cast", value, dtype="int32")
        if not is_scalar(source.zero_point, 0):
            wide = make.call("subtract", wide, along_axis(make, source.zero_point, source.axis, rank_of(value)))
        sides.append(wide)
    scale = make.constant(np.float32(scales[0] or 0) * np.float32(scales[1] or 0), "float32")
    source = Parameters(scale, make.constant(0, "int32"))
    return lower_requantize(make, make.call("multiply", *sides), source, target, dtype_of(op.result), _DEFAULT)


def _concatenate(op: OperatorOp, make: Emitter) -> SSAValue | None:
    joined, scales, zero_points = (value.owner for value in op.args[:3])
    if (
        not isinstance(joined, ir.TupleOp)
        or not isinstance(scales, ir.TupleOp)
        or not isinstance(zero_points, ir.TupleOp)
    ):
        return None
    target = Parameters(op.args[3], op.args[4])
    sources = [Parameters(scale, zero) for scale, zero in zip(scales.fields, zero_points.fields, strict=True)]
    if not all(can_requantize(source, target) for source in sources):
        return None
    parts: list[SSAValue] = []
    for value, source in zip(joined.fields, sources, strict=True):
        if same_scalar(source.scale, target.scale) and same_scalar(source.zero_point, target.zero_point):
            parts.append(value)
        else:
            parts.append(lower_requantize(make, value, source, target, dtype_of(value), _DEFAULT))
    return make.call("concatenate", make.tuple(parts), **op.given())


def _avg_pool2d(op: OperatorOp, make: Emitter) -> SSAValue | None:
    source, target = Parameters(op.args[1], op.args[2]), Parameters(op.args[3], op.args[4])
    if not can_requantize(source, target):
        return None
    padded = means_count_padding(op.attrs())
    centered = Parameters(target.scale, make.constant(0, "int32")) if padded else target
    wide = lower_requantize(make, op.args[0], source, centered, "int32", _DEFAULT)
    mean = make.call("nn.avg_pool2d", wide, **op.given())
    if padded:
        mean = make.call("add", mean, make.call("cast", target.zero_point, dtype="int32"))
    return saturated(make, mean, dtype_of(op.result))


def _leaky_relu(op: OperatorOp, make: Emitter) -> SSAValue | None:
    import numpy as np

    from ....dialects.relay.operators.qnn.quantized import multiplier_and_shift

    source, target = Parameters(op.args[1], op.args[2]), Parameters(op.args[3], op.args[4])
    if not can_requantize(source, target):
        return None
    moved = lower_requantize(make, op.args[0], source, target, "int32", _DEFAULT)

    def times(value: SSAValue, factor: float) -> SSAValue:
        multiplier, shift = multiplier_and_shift(np.asarray(factor))
        return make.call("fixed_point_multiply", value, multiplier=int(multiplier.item()), shift=int(shift.item()))

    alpha: float = op.attrs().alpha
    small = make.call("add", times(moved, alpha), times(target.zero_point, 1 - alpha))
    negative = make.call("less", make.call("cast", op.args[0], dtype="int32"), source.zero_point)
    return saturated(make, make.call("where", negative, small, moved), dtype_of(op.result))


def _softmax(op: OperatorOp, make: Emitter) -> SSAValue | None:
    """Lowers softmax in integers: powers of two, with the fraction of the exponent taken as linear.

    As https://arxiv.org/abs/2207.01405.
    """
    import numpy as np

    target, scale, axis = Parameters(op.args[3], op.args[4]), scalar_of(op.args[1]), op.attrs().axis
    share_of = Parameters(make.constant(1 / 128, "float32"), make.constant(0, "int32"))
    if scale is None or not can_requantize(share_of, target):
        return None
    one = make.constant(max(int(np.floor(np.float32(1) / np.float32(scale) + np.float32(0.5))), 1), "int32")

    def shifted(value: SSAValue, bits: int) -> SSAValue:
        return make.call("right_shift", value, make.constant(bits, "int32"))

    centered = make.call("subtract", make.call("cast", op.args[0], dtype="int32"), op.args[2])
    centered = make.call("subtract", centered, make.call("max", centered, axis=[axis], keepdims=True))
    # The exponent to the base 2: times log2(e), about 1 + 1/2 - 1/16.
    power = make.call("subtract", make.call("add", centered, shifted(centered, 1)), shifted(centered, 4))
    whole = make.call("clip", make.call("floor_divide", make.call("negative", power), one), a_min=0.0, a_max=20.0)
    rest = make.call("add", shifted(make.call("add", power, make.call("multiply", whole, one)), 1), one)
    most = make.call("max", whole, axis=[axis], keepdims=True)
    parts = make.call("left_shift", rest, make.call("subtract", most, whole))
    total = make.call("sum", parts, axis=[axis], keepdims=True)
    total = make.call("maximum", total, make.constant(1, "int32"))
    unit = make.call("floor_divide", make.constant(1 << 30, "int32"), total)
    share = shifted(make.call("multiply", unit, parts), 23)
    return lower_requantize(make, share, share_of, target, dtype_of(op.result), _DEFAULT)


LOWERINGS: Mapping[str, Lowering] = {
    "qnn.quantize": _quantize,
    "qnn.requantize": _requantize,
    "qnn.add": _sum("add", "subtract"),
    "qnn.subtract": _sum("subtract", "add"),
    "qnn.mul": _multiply,
    "qnn.concatenate": _concatenate,
    "qnn.dense": lower_dense,
    "qnn.batch_matmul": lower_batch_matmul,
    "qnn.conv2d": lower_conv2d,
    "qnn.conv2d_transpose": lower_conv2d_transpose,
    "qnn.avg_pool2d": _avg_pool2d,
    "qnn.leaky_relu": _leaky_relu,
    "qnn.softmax": _softmax,
}
"""The lowering of each quantized operator that has one."""

UNSIGNED: Mapping[str, Lowering] = {
    "qnn.dense": lambda op, make: lower_dense(op, make, unsigned=True),
    "qnn.conv2d": lambda op, make: lower_conv2d(op, make, unsigned=True),
    "nn.dense": lower_plain_dense,
    "nn.conv2d": lower_plain_conv2d,
}
"""The lowerings for processors whose dot products take unsigned by signed bytes."""

RULES = "relay/quantize/qnn_canonicalize_ops.mir"
"""The rules for the others, which are applied first."""


def lower_quantized(
    module: ModuleOp, lowerings: Mapping[str, Lowering], emitter: Callable[[OperatorOp], Emitter] = Emitter
) -> None:
    ensure_types(module)
    constants: dict[ir.ConstantOp, None] = {}
    for op in [inner for inner in walk_ops(module) if isinstance(inner, OperatorOp)]:
        lowering = lowerings.get(op.OPERATOR.name)
        if lowering is None:
            continue
        mark = op.prev_op
        value = lowering(op, emitter(op))
        made = op.prev_op
        while made is not None and made is not mark:
            if isinstance(made, ir.ConstantOp):
                constants[made] = None
            for operand in made.operands:
                if isinstance(operand.owner, ir.ConstantOp):
                    constants[operand.owner] = None
            made = made.prev_op
        if value is None:
            continue
        operands = list(op.operands)
        replace(op, value)
        for operand in operands:
            if isinstance(operand.owner, ir.ConstantOp):
                constants[operand.owner] = None
            elif isinstance(operand.owner, ir.TupleOp) and operand.first_use is None:
                for field in operand.owner.fields:
                    if isinstance(field.owner, ir.ConstantOp):
                        constants[field.owner] = None
                erase_op(operand.owner)
    give_each_user_its_own(constants)


@dataclass(frozen=True)
class QnnCanonicalizeOps(ModulePass):
    """Lower quantized operators to plain ones.

    With `unsigned`, products with constant weights are of unsigned data and signed weights, as VNNI multiplies them. With
    `upper_halves`, requantizing shifts bytes to the left first, so that of its products the upper halves are enough. With
    `strict_math`, rules marked `fast` are left out.
    """

    name = "qnn-canonicalize-ops"

    unsigned: bool = False

    upper_halves: bool = False

    strict_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ...rules.engine.rewriter import apply_rules
        from ...rules.engine.shipped import shipped_rules

        ensure_types(op)
        rules = shipped_rules(RULES, self.strict_math)
        for function in op.ops:
            if isinstance(function, ir.FuncOp):
                apply_rules(function, rules)
        lowerings = {**LOWERINGS, **UNSIGNED} if self.unsigned else LOWERINGS
        lower_quantized(op, lowerings, UpperHalves if self.upper_halves else Emitter)
