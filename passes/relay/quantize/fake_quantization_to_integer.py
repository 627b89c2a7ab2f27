"""`fake-quantization-to-integer`: computes quantized regions of real operators in integers.

    qnn.quantize(nn.relu(qnn.dequantize(%q, s, z)), s, z)   ->   maximum(%q, z)

As TVM's FakeQuantizationToInteger: the region that ends with a `qnn.quantize` begins where its numbers were dequantized. If all
its operators have a rule (`fake_quantization`), it is rebuilt on the integers; otherwise it stays. With `use_qat`, remaining
operators of dequantized arguments are done in integers one by one, and their results dequantized.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.operator import OperatorOp, get_operator, is_operator
from ....support.diagnostics import Diagnostic, MirError, error_at
from ....support.edit import erase_op
from ....support.walk import walk_ops
from ..common.rewriting import replace
from ..functional.infer_type import ensure_types
from .affine_types import Affine, AffineType, dtype_of, give_each_user_its_own
from .fake_quantization import ALONE, OPTIONAL_RULES, RULES, SAME, IntegerSite, NotQuantizable, Rule, requantized


@dataclass(frozen=True)
class FakeQuantizationToInteger(ModulePass):
    """Do in integers what is computed on real numbers between dequantization and quantization."""

    name = "fake-quantization-to-integer"

    hard_fail: bool = False
    """Whether a region that cannot be done in integers is an error."""

    use_qat: bool = False
    """Whether operators outside of such regions are done in integers one by one."""

    optional_qnn_ops: tuple[str, ...] = ()
    """Operators with a rule that is used only on demand: nn.softmax."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for name in self.optional_qnn_ops:
            if get_operator(name) is None:
                raise error_at(op, f"optional-qnn-ops: there is no operator {name}")
        ensure_types(op)
        rules = {**RULES, **{n: rule for n, rule in OPTIONAL_RULES.items() if n in self.optional_qnn_ops}}
        rewriter = _Rewriter(rules, self.hard_fail)
        rewriter.regions(op)
        if self.use_qat:
            for inner in [inner for inner in walk_ops(op) if isinstance(inner, OperatorOp)]:
                if inner.OPERATOR.name in ALONE and inner.parent is not None:
                    rewriter.alone(inner)
        give_each_user_its_own(rewriter.constants)


def to_integers_rounded_once(op: ModuleOp) -> None:
    """Does quantized regions in integers, except those whose integers would be rounded more than once.

    ONNX defines what is between DequantizeLinear and QuantizeLinear on real numbers: only QuantizeLinear rounds. onnxruntime's kernels for
    bytes (QLinearAdd, QLinearGlobalAveragePool) do so, too; a result that is rounded twice differs from theirs by one. Sums of int32, a
    product and its bias, are added as they are.
    """
    ensure_types(op)
    rewriter = _Rewriter(RULES, False, rounds_once=True)
    rewriter.regions(op)
    give_each_user_its_own(rewriter.constants)


_EXACT = frozenset((*SAME, "topk", "split", "nn.pad", "nn.relu", "clip"))
"""Operators that choose or move numbers: of rounded ones they make no others."""


class _Rewriter:
    def __init__(self, rules: Mapping[str, Rule], hard_fail: bool, rounds_once: bool = False):
        self.rules, self.hard_fail, self.rounds_once = rules, hard_fail, rounds_once
        self.obstacles: dict[SSAValue, Operation | None] = {}
        """For each value of a region that cannot be done in integers, what is in the way (None: no operator)."""
        self.possible: set[SSAValue] = set()
        self.constants: dict[ir.ConstantOp, None] = {}
        """Constants that several new operators may use."""

    def regions(self, op: ModuleOp) -> None:
        """Does what is quantized in integers, wherever that is possible."""
        for quantize in [inner for inner in walk_ops(op) if is_operator(inner, "qnn.quantize")]:
            assert isinstance(quantize, OperatorOp)
            self.region(quantize)

    def region(self, quantize: OperatorOp) -> None:
        """Does what a `qnn.quantize` quantizes in integers, if that is possible."""
        value = quantize.args[0]
        if not self.is_possible(value):
            obstacle = self.obstacles[value]
            if self.hard_fail and obstacle is not None:
                name = obstacle.name.removeprefix("relay.")
                raise self.refusal(quantize, obstacle, f"{name} has no rule to be done in integers")
            return
        ops = self.between(value)
        if not ops:
            return
        attrs = quantize.attrs()
        wanted = AffineType(quantize.args[1], quantize.args[2], attrs.out_dtype or "int8", attrs.axis)
        self.rewrite(quantize, ops, wanted)

    def alone(self, op: OperatorOp) -> None:
        """Does one operator of dequantized arguments in integers."""
        if not self.is_possible(op.result) or not any(_is_dequantized(a) for a in op.args):
            return
        ops = [inner for inner in self.between(op.result) if inner is not op]
        if all(is_operator(inner, "qnn.dequantize") for inner in ops if isinstance(inner, OperatorOp)):
            self.rewrite(op, ops, None)

    def is_possible(self, value: SSAValue) -> bool:
        """Returns whether a value can be computed in integers from where its inputs were dequantized; cached."""
        pending = [value]
        while pending:
            here = pending[-1]
            if here in self.possible or here in self.obstacles:
                pending.pop()
                continue
            op = here.owner
            arguments = None if isinstance(op, Block) else self.arguments(op)
            if isinstance(op, Block) or arguments is None:
                self.obstacles[here] = op if isinstance(op, OperatorOp) else None
                pending.pop()
                continue
            waiting = [a for a in arguments if a not in self.possible and a not in self.obstacles]
            if waiting:
                pending += waiting
                continue
            pending.pop()
            bad = next((a for a in arguments if a in self.obstacles), None)
            if bad is None:
                self.possible.add(here)
            else:
                self.obstacles[here] = self.obstacles[bad]
        return value in self.possible

    def arguments(self, op: Operation) -> list[SSAValue] | None:
        """Returns the arguments of an op of a region; None for an op that a region may not hold."""
        if isinstance(op, ir.ConstantOp) or is_operator(op, "qnn.dequantize"):
            return []
        if isinstance(op, ir.TupleOp | ir.TupleGetItemOp):
            return list(op.operands)
        if not isinstance(op, OperatorOp) or op.OPERATOR.name not in self.rules:
            return None
        return list(op.args)

    def between(self, value: SSAValue) -> list[Operation]:
        """Returns the ops of the region that ends with `value`, operands first, without constants."""
        order: dict[Operation, None] = {}
        pending: list[tuple[Operation, bool]] = [(_owner(value), False)]
        while pending:
            op, ready = pending.pop()
            if ready:
                order[op] = None
                continue
            if op in order or isinstance(op, ir.ConstantOp):
                continue
            pending.append((op, True))
            pending += [(_owner(a), False) for a in reversed(self.arguments(op) or [])]
        return list(order)

    def rewrite(self, end: OperatorOp, ops: list[Operation], wanted: AffineType | None) -> None:
        """Rebuilds the region in integers in front of `end`.

        `end` is its `qnn.quantize`, or the only operator (`wanted` is None).
        """
        make = Emitter(end)
        mark = end.prev_op
        integers: dict[SSAValue, SSAValue] = {}
        types: dict[SSAValue, Affine] = {}
        rounded: set[SSAValue] = set()
        op: Operation = end
        try:
            for op in ops:
                self.one(op, integers, types, make, wanted, end)
                if self.rounds_once:
                    _note_rounding(op, types, rounded)
            op = end
            make.location = end.location
            if wanted is None:
                rule = self.rules[end.OPERATOR.name]
                value, type = rule(self.site(end, integers, types, make, None, False))
                if not isinstance(type, AffineType):
                    raise NotQuantizable("a tuple cannot be dequantized as a whole")
                value = make.call("qnn.dequantize", value, type.scale, type.zero_point, axis=type.axis)
            else:
                site = self.site(end, integers, types, make, wanted, True)
                value = requantized(site, site.args[0], site.type())
        except NotQuantizable as problem:
            self.discard(end, mark)
            if self.hard_fail and wanted is not None:
                raise self.refusal(
                    end, op, f"{op.name.removeprefix('relay.')} cannot be done in integers: {problem}"
                ) from None
            return
        except MirError as error:
            # A type relation of quantized operators does not hold.
            self.discard(end, mark)
            if self.hard_fail and wanted is not None:
                raise MirError([*error.diagnostics, *_region_note(end)]) from None
            return
        if wanted is None:
            # It is a real number still, and where numbers come from now.
            self.possible.add(value)
        made = end.prev_op
        while made is not None and made is not mark:
            if isinstance(made, ir.ConstantOp):
                self.constants[made] = None
            for operand in made.operands:
                if isinstance(operand.owner, ir.ConstantOp):
                    self.constants[operand.owner] = None
            made = made.prev_op
        replace(end, value)
        for dead in reversed(ops):
            if dead.results[0].first_use is None:
                erase_op(dead)

    def one(
        self,
        op: Operation,
        integers: dict[SSAValue, SSAValue],
        types: dict[SSAValue, Affine],
        make: Emitter,
        wanted: AffineType | None,
        end: OperatorOp,
    ) -> None:
        """Makes one op of the region on integers."""
        make.location = op.location
        result = op.results[0]
        match op:
            case ir.TupleOp():
                fields = [types.get(field) for field in op.fields]
                known = tuple(field for field in fields if isinstance(field, AffineType))
                if len(known) < len(fields):
                    raise NotQuantizable("a field is not quantized")
                integers[result] = make.tuple([integers[field] for field in op.fields])
                types[result] = known
            case ir.TupleGetItemOp():
                of = types.get(op.tuple_value)
                if not isinstance(of, tuple):
                    raise NotQuantizable("an argument is not quantized")
                integers[result] = make.field(integers[op.tuple_value], op.index.value.data)
                types[result] = of[op.index.value.data]
            case OperatorOp() if op.OPERATOR.name == "qnn.dequantize":
                integers[result] = op.args[0]
                types[result] = AffineType(op.args[1], op.args[2], dtype_of(op.args[0]), op.attrs().axis)
            case OperatorOp():
                is_last = result is end.args[0]
                site = self.site(op, integers, types, make, wanted, is_last)
                integers[result], types[result] = self.rules[op.OPERATOR.name](site)
            case _:
                raise NotQuantizable("it is not an operator")

    def site(
        self,
        op: OperatorOp,
        integers: Mapping[SSAValue, SSAValue],
        types: Mapping[SSAValue, Affine],
        make: Emitter,
        wanted: AffineType | None,
        is_last: bool,
    ) -> IntegerSite:
        args = [integers.get(value, value) for value in op.args]
        return IntegerSite(op, args, [types.get(value) for value in op.args], make, wanted, is_last, self.rounds_once)

    def discard(self, end: Operation, mark: Operation | None) -> None:
        """Takes away what was made in front of `end` since `mark` was there."""
        while (last := end.prev_op) is not mark and last is not None:
            erase_op(last)

    def refusal(self, quantize: Operation, op: Operation, message: str) -> MirError:
        return MirError([Diagnostic(message, op.location), *_region_note(quantize)])


def _region_note(quantize: Operation) -> list[Diagnostic]:
    return [Diagnostic("hard-fail: this must be quantized in integers", quantize.location, severity="note")]


def _is_dequantized(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_operator(value.owner, "qnn.dequantize")


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _note_rounding(op: Operation, types: Mapping[SSAValue, Affine], rounded: set[SSAValue]) -> None:
    """Notes that an operator's result is rounded to bytes.

    Raises NotQuantizable for one that computes other numbers from such.
    """
    name = op.OPERATOR.name if isinstance(op, OperatorOp) else ""
    from_rounded = any(operand in rounded for operand in op.operands)
    if isinstance(op, ir.TupleOp | ir.TupleGetItemOp) or name in _EXACT:
        if from_rounded:
            rounded.add(op.results[0])
        return
    if from_rounded:
        raise NotQuantizable("its argument would be rounded before the result is quantized")
    type = types.get(op.results[0])
    if name != "qnn.dequantize" and isinstance(type, AffineType) and type.dtype != "int32":
        rounded.add(op.results[0])
