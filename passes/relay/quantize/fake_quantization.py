"""The integer counterparts of operators on real numbers; the table of `fake-quantization-to-integer`.

As TVM's FTVMFakeQuantizationToInteger. A rule takes an operator of a region, its arguments as integers, and their affine types (None for a
constant of real numbers); it returns the integers of the result and their affine type:

    nn.dense(dequantize(%q, s1, z1), dequantize(%w, s2, z2))   ->   qnn.dense(%q, %w, z1, z2, s1, s2) of (scale s1 * s2, zero point 0)

The operators that need no rule of their own are listed in `fake_quantization.json`. The rules here are not rewrite rules, because their
replacement depends on affine types that flow through the region, and on the `qnn.quantize` at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import SSAValue

from ....dialects.relay.emit import Emitter
from ....dialects.relay.operator import AttrValue, OperatorOp, get_operator
from ....dialects.rule.relay_functions import highest, lowest
from ..common.operator_table import read_table
from .affine_types import (
    Affine,
    AffineType,
    close,
    constant_of,
    dtype_of,
    product_type,
    quantize,
    rank_of,
    requantize,
    scalar_of,
)


class NotQuantizable(Exception):
    """An operator cannot be done in integers here; the text says why."""


@dataclass(frozen=True)
class IntegerSite:
    """One operator to be done in integers.

    `wanted` is the type of the `qnn.quantize` at the end; None if there is none. `is_last` says that the operator is its argument.
    With `rounds_once` a rule refuses what it would round before that `qnn.quantize` does; products and their sums in int32 are not rounded.
    """

    op: OperatorOp
    args: Sequence[SSAValue]
    types: Sequence[Affine | None]
    make: Emitter
    wanted: AffineType | None
    is_last: bool
    rounds_once: bool = False

    def check_rounding(self, type: AffineType, what: str) -> None:
        """Refuses to round to the steps of a type of bytes where that is not the end."""
        if self.rounds_once and type.dtype != "int32":
            raise NotQuantizable(f"{what} would be rounded before its result is quantized")

    def type(self, index: int = 0) -> AffineType:
        """The affine type of an argument that must be a quantized tensor."""
        found = self.types[index]
        if not isinstance(found, AffineType):
            raise NotQuantizable("an argument is not quantized")
        return found

    def target(self) -> AffineType:
        """The type at the end, for operators whose own does not follow from their arguments'."""
        if self.wanted is None:
            raise NotQuantizable("how its result is quantized follows from a qnn.quantize alone")
        return self.wanted

    def again(self, *args: SSAValue) -> SSAValue:
        """The operator itself, with its attributes, on integers."""
        return self.make.call(self.op.OPERATOR.name, *args, **self.op.given())

    def attributes(self, name: str) -> dict[str, AttrValue]:
        """Returns the given attributes that the operator `name` has as well, except the dtype of the result."""
        operator = get_operator(name)
        assert operator is not None
        return {key: value for key, value in self.op.given().items() if key in operator.specs and key != "out_dtype"}


Rule: TypeAlias = "Callable[[IntegerSite], tuple[SSAValue, Affine]]"


NEARLY = 1e-3
"""By how much of a step of quantized numbers a limit may differ from one."""

KEEPS_AXES = ("nn.max_pool2d", "image.resize2d")
"""Operators of the table's `same` whose result has the axes of their argument, where those have sizes that scales go along."""


def _same(site: IntegerSite) -> tuple[SSAValue, Affine]:
    """Moves or compares elements only: the integers go the same way."""
    scales = constant_of(site.type().scale)
    if site.op.OPERATOR.name == "image.resize2d" and site.op.attrs().method != "nearest_neighbor":
        site.check_rounding(site.type(), "what is between pixels")
    if (rank_of(site.type().scale) if scales is None else scales.size > 1) and site.op.OPERATOR.name not in KEEPS_AXES:
        raise NotQuantizable("scales of channels do not follow elements that are moved")
    return site.again(*site.args), site.type()


def _topk(site: IntegerSite) -> tuple[SSAValue, Affine]:
    if site.op.attrs().ret_type != "values":
        raise NotQuantizable("indices are no quantized numbers")
    return _same(site)


def _split(site: IntegerSite) -> tuple[SSAValue, Affine]:
    sections = site.op.attrs().indices_or_sections
    count = sections if isinstance(sections, int) else len(sections) + 1
    return site.again(*site.args), (site.type(),) * count


def _product(name: str, axis: Callable[[IntegerSite], int]) -> Rule:
    """A product of matrices or a convolution: `name` sums up in int32."""

    def rule(site: IntegerSite) -> tuple[SSAValue, Affine]:
        a, b = site.type(0), site.type(1)
        arguments = (*site.args, a.zero_point, b.zero_point, a.scale, b.scale)
        result = site.make.call(name, *arguments, out_dtype="int32", **site.attributes(name))
        return result, product_type(site.make, a, b, "int32", axis(site))

    return rule


def _channel_axis(site: IntegerSite) -> int:
    attrs = site.op.attrs()
    layout: str = attrs.out_layout or attrs.data_layout
    if not layout.isupper():
        raise NotQuantizable(f"the layout {layout} splits an axis")
    return layout.index("C")


def _avg_pool2d(site: IntegerSite) -> tuple[SSAValue, Affine]:
    source, wanted = site.type(), site.target()
    site.check_rounding(source, "a mean")
    # Farther from the end, the result is quantized as the argument is.
    target = replace(wanted if site.is_last else source, dtype=source.dtype)
    parameters = (source.scale, source.zero_point, target.scale, target.zero_point)
    return site.make.call("qnn.avg_pool2d", *site.args, *parameters, **site.attributes("qnn.avg_pool2d")), target


def _mean_of_many(site: IntegerSite) -> tuple[SSAValue, Affine]:
    """Pooling of many elements: in int32, in the numbers of the end."""
    source, wanted = site.type(), site.target()
    if site.rounds_once:
        raise NotQuantizable("elements would be rounded before their mean is quantized")
    if source.same(wanted):
        wide = site.make.call("cast", site.args[0], dtype="int32")
    else:
        wide = requantize(site.make, site.args[0], source, wanted, "int32", source.axis)
    return site.again(wide), replace(wanted, dtype="int32")


def _mean(site: IntegerSite) -> tuple[SSAValue, Affine]:
    type = site.type()
    if site.rounds_once:
        raise NotQuantizable("a mean would be rounded before it is quantized")
    wide = site.again(site.make.call("cast", site.args[0], dtype="int32"))
    return site.make.call("cast", wide, dtype=type.dtype), type


def _bias_add(site: IntegerSite) -> tuple[SSAValue, Affine]:
    (x, bias), type = site.args, site.type()
    own = site.types[1]
    site.check_rounding(type, "its bias")
    if own is None:
        bias = quantize(site.make, bias, type, axis=0)
    elif isinstance(own, AffineType) and not type.same(own):
        bias = requantize(site.make, bias, own, type, type.dtype, 0)
    return site.again(x, bias), type


def _pad(site: IntegerSite) -> tuple[SSAValue, Affine]:
    (x, value), type = site.args, site.type()
    own = site.types[1]
    number = scalar_of(value)
    if number != 0:
        site.check_rounding(type, "its value")
    if own is None:
        value = quantize(site.make, value, type)
    elif isinstance(own, AffineType) and not type.same(own):
        value = requantize(site.make, value, own, type, type.dtype, own.axis)
    return site.again(x, value), type


def _along_axis(site: IntegerSite, values: SSAValue, type: AffineType) -> SSAValue:
    """A scalar, or a vector along the type's axis, ready to be broadcast with the argument."""
    if not isinstance(type.scale.type, TensorType) or type.scale.type.get_num_dims() == 0:
        return values
    (size,) = type.scale.type.get_shape()
    if size == 1:
        return values
    if size == DYNAMIC_INDEX:
        raise NotQuantizable("how many scales there are is not known")
    shape = [1] * rank_of(site.args[0])
    shape[type.axis] = -1
    return site.make.call("reshape", site.make.call("broadcast_to", values, shape=[size]), newshape=shape)


def _relu(site: IntegerSite) -> tuple[SSAValue, Affine]:
    type = site.type()
    zero = constant_of(type.zero_point)
    if zero is not None and zero.ndim == 0 and rank_of(type.scale) == 0:
        bound = site.make.constant(zero, type.dtype)
    else:
        bound = site.make.call("cast", _along_axis(site, type.zero_point, type), dtype=type.dtype)
    return site.make.call("maximum", site.args[0], bound), type


def _clip(site: IntegerSite) -> tuple[SSAValue, Affine]:
    import numpy as np

    type, make = site.type(), site.make
    limits = (float(site.op.attrs().a_min), float(site.op.attrs().a_max))
    scale, zero = scalar_of(type.scale), scalar_of(type.zero_point)
    if scale is not None and zero is not None:
        # Limits that the dtype does not hold change nothing.
        low, high = lowest(type.dtype), highest(type.dtype)
        steps = [min(max(limit / scale + zero, low), high) for limit in limits]
        if any(abs(step - round(step)) > NEARLY for step in steps):
            site.check_rounding(type, "a limit")
        # A scale of float32 is not 6 / 255: a limit that is nearly a step is that step.
        a_min, a_max = (round(step) if abs(step - round(step)) <= NEARLY else int(step) for step in steps)
        return make.call("clip", site.args[0], a_min=float(a_min), a_max=float(a_max)), type
    site.check_rounding(type, "a limit")
    bounds: list[SSAValue] = []
    for limit in limits:
        value = _along_axis(site, make.constant(np.float32(limit), "float32"), type)
        bounds.append(quantize(make, value, type, axis=type.axis))
    return make.call("minimum", make.call("maximum", site.args[0], bounds[0]), bounds[1]), type


def _concatenate(site: IntegerSite) -> tuple[SSAValue, Affine]:
    types, wanted = site.types[0], site.target()
    if not isinstance(types, tuple):
        raise NotQuantizable("an argument is not quantized")
    scales = site.make.tuple([type.scale for type in types])
    zero_points = site.make.tuple([type.zero_point for type in types])
    result = site.make.call(
        "qnn.concatenate", site.args[0], scales, zero_points, wanted.scale, wanted.zero_point, **site.op.given()
    )
    return result, replace(wanted, dtype=dtype_of(result))


def _unary(name: str) -> Rule:
    """A function of each number: `name` on the integers."""

    def rule(site: IntegerSite) -> tuple[SSAValue, Affine]:
        source, wanted = site.type(), site.target()
        parameters = (source.scale, source.zero_point, wanted.scale, wanted.zero_point)
        result = site.make.call(name, site.args[0], *parameters, **site.attributes(name))
        return result, replace(wanted, dtype=dtype_of(result))

    return rule


def _functions(names: Iterable[str]) -> dict[str, Rule]:
    """Returns the rules of functions of each number: `qnn.exp` for `exp`, `qnn.softmax` for `nn.softmax`."""
    return {name: _unary(f"qnn.{name.removeprefix('nn.')}") for name in names}


def _operands(site: IntegerSite) -> tuple[SSAValue, SSAValue, AffineType, AffineType, AffineType]:
    """Returns both sides of a binary operator and the types of both and of the result.

    A constant of real numbers is quantized as the other side is.
    """
    args, types = list(site.args), list(site.types)
    if types[0] is None and types[1] is None:
        raise NotQuantizable("neither argument is quantized")
    for index, type in enumerate(types):
        other = types[1 - index]
        if type is None and isinstance(other, AffineType):
            site.check_rounding(other, "a constant")
            args[index], types[index] = quantize(site.make, args[index], other), other
    left, right = types
    if not isinstance(left, AffineType) or not isinstance(right, AffineType):
        raise NotQuantizable("an argument is not quantized")
    wanted = site.target()
    if site.rounds_once and right.dtype == "int32":
        return args[0], args[1], left, right, right
    if left.dtype != wanted.dtype:
        site.check_rounding(left, "its result")
        return args[0], args[1], left, right, left
    return args[0], args[1], left, right, wanted


def _binary(name: str) -> Rule:
    def rule(site: IntegerSite) -> tuple[SSAValue, Affine]:
        a, b, left, right, out = _operands(site)
        is_bias = (
            site.op.OPERATOR.name == "add" and left.dtype == "int32" and left.same(right) and left.same_numbers(out)
        )
        zero = constant_of(out.zero_point)
        if is_bias and zero is not None and not zero.any():
            # Behind a product, with a scale for each channel perhaps: sums in int32 are added as they are.
            return site.make.call("add", a, b), left
        if rank_of(out.scale) or rank_of(out.zero_point):
            raise NotQuantizable("the scale and the zero point of its result must be scalars")
        if name != "qnn.mul":
            site.check_rounding(out, "each term")
        parameters = (left.scale, left.zero_point, right.scale, right.zero_point, out.scale, out.zero_point)
        return site.make.call(name, a, b, *parameters, lhs_axis=left.axis, rhs_axis=right.axis), out

    return rule


def _compare(site: IntegerSite) -> tuple[SSAValue, Affine]:
    """The larger or smaller of two numbers: of the integers, once both are in the same numbers."""
    a, b, left, right, out = _operands(site)
    sides: list[SSAValue] = []
    for value, type in ((a, left), (b, right)):
        same = type.axis == out.axis and type.same(out)
        sides.append(value if same else requantize(site.make, value, type, out, out.dtype, type.axis))
    return site.again(*sides), out


_TABLE = read_table("quantize/fake_quantization.json")

SAME = frozenset(_TABLE["same"])
"""Operators whose integers go the way of the real numbers."""

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(SAME, _same),
    **_functions(_TABLE["functions"]),
    "topk": _topk,
    "split": _split,
    "nn.conv2d": _product("qnn.conv2d", _channel_axis),
    "nn.conv2d_transpose": _product("qnn.conv2d_transpose", _channel_axis),
    "nn.dense": _product("qnn.dense", lambda site: 1),
    "nn.batch_matmul": _product("qnn.batch_matmul", lambda site: site.type().axis),
    "nn.bias_add": _bias_add,
    "nn.pad": _pad,
    "nn.relu": _relu,
    "nn.avg_pool2d": _avg_pool2d,
    "nn.global_avg_pool2d": _mean_of_many,
    "nn.adaptive_avg_pool1d": _mean_of_many,
    "mean": _mean,
    "clip": _clip,
    "concatenate": _concatenate,
    "add": _binary("qnn.add"),
    "subtract": _binary("qnn.subtract"),
    "multiply": _binary("qnn.mul"),
    "minimum": _compare,
    "maximum": _compare,
}
"""The rule of each operator that has one, by name."""

OPTIONAL_RULES: Mapping[str, Rule] = _functions(_TABLE["optional_functions"])
"""Rules of operators that lose much in integers, used only if the pass's options name them."""

ALONE = frozenset(_TABLE["alone"])
"""Operators that `use-qat` does in integers one by one, without a `qnn.quantize` after them."""


def requantized(site: IntegerSite, value: SSAValue, type: AffineType) -> SSAValue:
    """Returns the replacement of the `qnn.quantize` at the end: integers `value` of `type`, requantized."""
    wanted = site.target()
    if close(type.scale, wanted.scale) and close(type.zero_point, wanted.zero_point) and type.dtype == wanted.dtype:
        return value
    return requantize(site.make, value, type, wanted, wanted.dtype, type.axis)
