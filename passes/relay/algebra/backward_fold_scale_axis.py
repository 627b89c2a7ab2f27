"""`backward-fold-scale-axis`: scales of channels into the weights of the layers in front of them."""

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
from ....support.edit import insert_op_before
from ....support.trace import Tracer, tracer
from ..common.function_attributes import open_ops
from ..common.rewriting import place_leaves
from ..functional.infer_type import ensure_types
from . import fold_scale_axis as fold
from .fold_scale_axis import Message


@dataclass(frozen=True)
class BackwardFoldScaleAxis(ModulePass):
    """Leave multiplications of channels out and scale the weights of the layers in front of them.

    The layers are nn.conv2d, nn.conv3d (plain or depthwise, plain layouts or blocks of channels) and nn.dense. Between them and
    the multiplication may stand relu and leaky_relu, which need a constant without negative values, nn.bias_add, add and
    subtract of a value for each channel, which is scaled too, and of two layers, of which both are. Each of these must have one
    user. Of several scales in a row the first is folded.
    """

    name = "backward-fold-scale-axis"
    tells: ClassVar[bool] = True

    constants_only: bool = False
    """Fold only constant scales into constant weights, so that nothing is scaled while the program runs."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        _Backward(tracer(self.name), self.constants_only).run(list(open_ops(op)))


class _Backward:
    def __init__(self, trace: Tracer | None, constants_only: bool) -> None:
        self.trace = trace
        self.constants_only = constants_only
        self.messages: dict[SSAValue, Message] = {}
        """What scale of a value can be folded into what computes it."""

    def run(self, ops: Sequence[Operation]) -> None:
        operators = [op for op in ops if isinstance(op, OperatorOp)]
        for op in operators:
            user = op.result.get_user_of_unique_use()
            if user is not None and user.parent is op.parent:
                message = self._offer(op)
                if message is not None:
                    self.messages[op.result] = message
        for op in operators:
            if op.OPERATOR.name == "multiply":
                self._fold(op)

    def _offer(self, op: OperatorOp) -> Message | None:
        """Returns the scales that can be folded into `op`, by those that can be folded into its arguments."""
        name = op.OPERATOR.name
        layer = fold.output_layer(op)
        if layer is not None:
            return fold.layer_message(op, layer, self.constants_only)
        if name in fold.ACTIVATIONS:
            message = self.messages.get(op.args[0])
            return None if message is None else message.behind_activation()
        if name == "nn.bias_add":
            message = self.messages.get(op.args[0])
            return message if message is not None and message.axes == (op.attrs().axis,) else None
        if name in fold.SUMS:
            a, b = (self.messages.get(value) for value in op.args)
            if a is not None and b is not None and self._carries_both(op):
                return a.joined(b)
            for message, value, other in ((a, *op.args), (b, *reversed(op.args))):
                if message is not None and fold.broadcasts_along(value, other, message.axes):
                    return message
        return None

    def _carries_both(self, op: OperatorOp) -> bool:
        """Returns whether a scale of a sum can be folded into both of its arguments.

        They must be tensors of one shape, or one must broadcast along the channels that both have.
        """
        a, b = (self.messages.get(value) for value in op.args)
        if a is None or b is None or a.axes != b.axes:
            return False
        x, y = op.args
        if len(fold.dims_of(x) or ()) != len(fold.dims_of(y) or ()):
            return False
        if fold.dims_of(x) == fold.dims_of(y):
            return True
        return fold.broadcasts_along(x, y, a.axes) or fold.broadcasts_along(y, x, a.axes)

    def _carriers(self, op: OperatorOp) -> list[int]:
        """The arguments into which a scale of the result goes on."""
        if fold.output_layer(op) is not None:
            return []
        if op.OPERATOR.name not in fold.SUMS:
            return [0]
        if self._carries_both(op):
            return [0, 1]
        message = self.messages.get(op.args[0])
        return [0] if message is not None and fold.broadcasts_along(op.args[0], op.args[1], message.axes) else [1]

    def _fold(self, multiply: OperatorOp) -> None:
        index = 0 if multiply.args[0] in self.messages else 1
        root = multiply.args[index]
        message = self.messages.get(root)
        if message is None or not fold.is_scale(multiply, 1 - index, message):
            return
        scale = fold.factors(Emitter(multiply, [multiply]), multiply.args[1 - index], root, message.axes)
        tree, pending = list[tuple[OperatorOp, list[int]]](), [root]
        while pending:
            op = pending.pop().owner
            assert isinstance(op, OperatorOp)
            carriers = self._carriers(op)
            tree.append((op, carriers))
            pending += [op.args[carrier] for carrier in carriers]
        for op, carriers in reversed(tree):
            # The scale may be computed later in the block: each of its ops has one user, and can as well be computed right before `op`.
            op.detach()
            insert_op_before(op, multiply)
            self._scale(op, carriers, scale, message.axes, multiply)
            place_leaves(op)
        for op, _ in tree:
            del self.messages[op.result]
        fold.leave_out(multiply, root)

    def _scale(
        self, op: OperatorOp, carriers: list[int], scale: SSAValue, axes: Sequence[int], multiply: OperatorOp
    ) -> None:
        """Multiplies what an operator adds to the scaled, or a layer's weight."""
        make = Emitter(op, [op, multiply])
        args = list(op.args)
        layer = fold.output_layer(op)
        if layer is not None:
            args[1] = fold.scale_weight(make, op, scale, layer.weight_axes)
            fold.tell_folded(self.trace, multiply, op)
        elif op.OPERATOR.name == "nn.bias_add":
            args[1] = make.call("multiply", args[1], fold.own(make, scale))
        elif op.OPERATOR.name in fold.SUMS and len(carriers) == 1:
            (carrier,) = carriers
            other = 1 - carrier
            args[other] = make.call("multiply", args[other], fold.spread(make, scale, args[carrier], axes))
        else:
            return
        op.operands = args
