"""`forward-fold-scale-axis`: folds scales of channels into the weights of the following layers.

nn.conv2d(multiply(%x, %s), %w)   ->   nn.conv2d(%x, multiply(%w, %s))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay.emit import Emitter
from ....dialects.relay.operator import OperatorOp
from ....support.trace import Tracer, tracer
from ..common.function_attributes import open_ops
from ..functional.infer_type import ensure_types
from . import fold_scale_axis as fold
from .fold_scale_axis import Message


@dataclass(frozen=True)
class ForwardFoldScaleAxis(ModulePass):
    """Leave multiplications of channels out and scale the weights of the following layers.

    All that uses the product must be able to fold it: nn.conv2d, nn.conv3d (plain or depthwise, plain layouts or blocks of
    channels) and nn.dense, reached through relu and leaky_relu, which need a constant without negative values, and add and
    subtract of a value for each channel, which is divided by the scale: a constant without zeros. Of several scales in a row
    the last is folded.
    """

    name = "forward-fold-scale-axis"
    tells: ClassVar[bool] = True

    constants_only: bool = False
    """Fold only constant scales into constant weights, so that nothing is scaled while the program runs."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        _Forward(tracer(self.name), self.constants_only).run(list(open_ops(op)))


@dataclass(frozen=True)
class _Scaled:
    """A value to be multiplied later, by `scale` along `axes`.

    `by` is the multiplication that was left out.
    """

    value: SSAValue
    scale: SSAValue
    axes: tuple[int, ...]
    by: OperatorOp


class _Forward:
    def __init__(self, trace: Tracer | None, constants_only: bool) -> None:
        self.trace = trace
        self.constants_only = constants_only
        self.messages: dict[SSAValue, Message | None] = {}
        """What the users of a value can fold; None where one of them cannot."""
        self.scaled: dict[SSAValue, _Scaled] = {}

    def run(self, ops: Sequence[Operation]) -> None:
        for op in reversed(ops):
            messages = self._ask(op) if isinstance(op, OperatorOp) else [None] * len(op.operands)
            for value, message in zip(op.operands, messages, strict=True):
                known = self.messages.get(value, message)
                self.messages[value] = known.joined(message) if known is not None and message is not None else None
        folded: list[OperatorOp] = []
        for op in ops:
            if not isinstance(op, OperatorOp):
                continue
            if op.OPERATOR.name == "multiply":
                if self._take(op):
                    folded.append(op)
            elif any(value in self.scaled for value in op.args):
                self._pass(op)
        for op in folded:
            fold.leave_out(op, self.scaled[op.result].value)

    def _ask(self, op: OperatorOp) -> list[Message | None]:
        """Returns the scales that each argument can take, by those that the result can take."""
        name, behind = op.OPERATOR.name, self.messages.get(op.result)
        messages: list[Message | None] = [None] * len(op.args)
        layer = fold.input_layer(op)
        if layer is not None:
            messages[0] = fold.layer_message(op, layer, self.constants_only)
        elif behind is not None and name in fold.ACTIVATIONS:
            messages[0] = behind.behind_activation()
        elif behind is not None and name in fold.SUMS:
            for index in (0, 1):
                if fold.broadcasts_along(op.args[index], op.args[1 - index], behind.axes):
                    messages[index] = behind.behind_division()
                    break
        return messages

    def _take(self, op: OperatorOp) -> bool:
        """Takes the scale of a multiplication on the way, if all that uses the product can fold it."""
        message = self.messages.get(op.result)
        if message is None:
            return False
        for index in (1, 0):
            if fold.is_scale(op, index, message):
                value = op.args[1 - index]
                scale = fold.factors(Emitter(op, [op]), op.args[index], value, message.axes)
                self.scaled[op.result] = _Scaled(value, scale, message.axes, op)
                return True
        return False

    def _pass(self, op: OperatorOp) -> None:
        """Makes an operator use unscaled arguments: its result is scaled later, or it folds the scale."""
        args = list(op.args)
        index = next(index for index, value in enumerate(args) if value in self.scaled)
        scaled = self.scaled[args[index]]
        args[index] = scaled.value
        make = Emitter(op, [scaled.by, op])
        layer = fold.input_layer(op)
        if layer is not None:
            args[1] = fold.scale_weight(make, op, scaled.scale, layer.weight_axes)
            fold.tell_folded(self.trace, scaled.by, op)
        else:
            self.scaled[op.result] = _Scaled(op.result, scaled.scale, scaled.axes, scaled.by)
            if op.OPERATOR.name in fold.SUMS:
                divisor = fold.spread(make, scaled.scale, op.args[index], scaled.axes)
                args[1 - index] = make.call("divide", args[1 - index], divisor)
        op.operands = args
