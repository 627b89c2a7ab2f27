"""Relay functions that a rule matches, made from its pattern.

The pattern's ops are made in order. Each gets attributes and types for its new arguments at random until its type relation
holds, which may fill in the arguments' types by itself; so a choice that does not fit costs one try of one op, not of the
whole program.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from .....dialects import rule as ir
from .....dialects.array import ArrayValueAttr, numpy_dtype
from .....dialects.relay import ConstantOp, FuncOp, ReturnOp, TupleGetItemOp, TupleOp, get_operator, operator_class
from .....dialects.relay.infer.relation import Postponed, Use
from .....dialects.relay.infer.unify import Unifier
from .....dialects.relay.operator import REQUIRED, AttrSpec, AttrValue, OperatorOp, from_attribute
from .....dialects.relay.operators.common.relations import tensor_type
from .....dialects.relay.types import UNKNOWN
from .....dialects.rule.functions import FUNCTIONS, dtype_name
from .....dialects.tir.types import dtype_to_type
from .....support.diagnostics import MirError
from .....support.edit import set_type
from .inputs import draw

DTYPES = ("float32", "int32", "float16", "float32", "int8", "float64", "bfloat16", "uint8", "float32", "int64", "bool")
_LAYOUTS = {
    1: ("NCW", "NWC", "OIW"), 2: ("NCHW", "NHWC", "OIHW", "HWIO", "NCHW2c"),
    3: ("NCDHW", "NDHWC", "OIDHW", "NCHW2c"),
}  # fmt: skip


class Choices:
    """The random choices of one instance. `hints` are literals of the rule, which are likely to matter."""

    def __init__(self, seed: int, hints: Sequence[Any]):
        self.random = random.Random(seed)
        self.hints = hints
        dtypes = [hint for hint in hints if isinstance(hint, str) and hint in DTYPES]
        # By rotation, so that few programs cover all dtypes.
        self.dtype = self.random.choice(dtypes) if dtypes and self.chance(0.6) else DTYPES[seed % len(DTYPES)]
        self.alike = self.chance(0.3)
        """Whether all that may is of one type."""
        rank = self.random.choice((0, 1, 2, 2, 3, 4, 4, 5))
        self.shape = tuple(self.random.choice((1, 2, 3, 4, 4, 6)) for _ in range(rank))
        self.rank = rank
        """Of the argument whose op gets attributes next."""

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self.random.random() < probability

    def type(self) -> TensorType[Attribute] | None:
        """A tensor type that goes well with the others; None to let an operator's type relation say."""
        kind = self.random.random()
        if self.alike:
            return tensor_type(self.shape, dtype_to_type(self.dtype))
        if kind < 0.3:
            return None
        shape = self.shape
        if kind < 0.6:
            pass
        elif kind < 0.8:
            shape = tuple(1 if self.chance(0.4) else dim for dim in shape)[self.random.randint(0, len(shape)) :]
        elif kind < 0.9:
            shape = ()
        else:
            shape = tuple(self.random.choice((1, 2, 3, 4)) for _ in range(self.random.randint(1, 4)))
        dtype = self.dtype if self.chance(0.9) else self.random.choice(DTYPES)
        return tensor_type(shape, dtype_to_type(dtype))

    def attribute(self, spec: AttrSpec, captured: bool) -> Any:
        """A value of an attribute, often its default; one that the rule looks at varies more."""
        if spec.default is not REQUIRED and self.chance(0.35 if captured else 0.85):
            return spec.default
        if spec.nullable and self.chance(0.2):
            return None
        value = self._attribute(spec)
        return value

    def _attribute(self, spec: AttrSpec) -> Any:
        hints = [hint for hint in self.hints if spec.accepts(spec.convert(hint)) and hint is not None]
        if hints and self.chance(0.4):
            return self.random.choice(hints)
        name, rank = spec.name, max(self.rank, 1)
        choose = self.random.choice
        match spec.kind:
            case "bool":
                return self.chance(0.5)
            case "int":
                return choose((0, 1, -1, 1, 2, 3, self.random.randint(-rank, rank - 1)))
            case "float":
                return choose((0.0, 1.0, 0.5, 1e-5, 2.0, -128.0, 127.0, 255.0, -1e30, 1e30))
            case "str":
                return self._text(spec)
            case "floats":
                return tuple(choose((0.0, 1.0, 0.5)) for _ in range(rank))
            case "ints":
                return self._integers(name, rank)
            case _:
                return choose((0, 1, 2, self._integers(name, rank)))

    def _text(self, spec: AttrSpec) -> str:
        if "dtype" in spec.name:
            return self.dtype if self.chance(0.6) else self.random.choice(DTYPES)
        if "layout" in spec.name:
            return self.random.choice(_LAYOUTS.get(self.rank - 2, _LAYOUTS[2]))
        return spec.default if isinstance(spec.default, str) else ""

    def _integers(self, name: str, rank: int) -> tuple[Any, ...]:
        choose = self.random.choice
        if name == "axes":
            order = list(range(rank))
            self.random.shuffle(order)
            return tuple(axis - rank if self.chance(0.2) else axis for axis in order)
        if name in ("newshape", "shape"):
            size = math.prod(self.shape)
            forms = [self.shape, (-1,), (size,), (1, *self.shape), self.shape[::-1], (*self.shape[:-1], 1, -1)]
            # Of a reshape 0 keeps a dimension of the argument, whatever that is.
            return choose([*forms, (0, -1), (0, 0, -1)] if name == "newshape" else forms)
        if name in ("pad_width", "paddings", "crops"):
            return tuple((0, 0) if self.chance(0.5) else (choose((0, 1)), choose((0, 1, 2))) for _ in range(rank))
        if name == "axis":
            axes = self.random.sample(range(rank), self.random.randint(1, rank))
            return tuple(axis - rank if self.chance(0.3) else axis for axis in axes)
        if name == "padding":
            count = choose((1, max(rank - 2, 1), 2 * max(rank - 2, 1)))
            return tuple(choose((0, 0, 1, 2)) for _ in range(count))
        if name in ("kernel_size", "pool_size", "strides", "dilation", "block_shape"):
            return tuple(choose((1, 1, 2, 3)) for _ in range(max(rank - 2, 1)))
        return tuple(choose((0, 1, 1, 2, -1)) for _ in range(choose((1, 2, rank))))


_TRIES = 40
"""How often an op's attributes and arguments are chosen before the whole program is started again."""


@dataclass(frozen=True)
class Instance:
    """A program that has the form of a rule's pattern, and the ops of it that are the roots."""

    module: ModuleOp
    roots: tuple[Operation, ...]


def instances(rule: ir.RewriteOp, count: int, seed: int = 0) -> Iterator[Instance | None]:
    """`count` attempts at programs of the form of a rule's pattern; None where one failed.

    The rule's conditions may or may not hold.
    """
    hints = list(_hints(rule))
    for number in range(count):
        yield _Maker(rule, Choices(seed + number, hints)).make()


def _hints(rule: ir.RewriteOp) -> Iterator[Any]:
    for op in rule.body.block.ops:
        if isinstance(op, ir.DataOp):
            value = from_attribute(op.value)
            yield value
            if isinstance(value, tuple):
                yield from cast("tuple[Any, ...]", value)


class _Misfit(Exception):
    pass


class _Types:
    """Types of arguments, of which some are open; implements `relation.Types`."""

    def __init__(self) -> None:
        self.unifier = Unifier()
        self.result: Attribute | None = None
        self.opened: dict[SSAValue, Attribute] = {}

    def type_of(self, value: SSAValue) -> Attribute:
        if isinstance(value.type, TensorType):
            return value.type
        if value not in self.opened:
            self.opened[value] = self.unifier.open(value.type)
        return self.opened[value]

    def set_result(self, op: OperatorOp, type: Attribute) -> None:
        self.result = self.unifier.close(type)


class _Maker:
    def __init__(self, rule: ir.RewriteOp, choices: Choices):
        self.rule, self.choices = rule, choices
        self.block = Block()
        self.values: dict[SSAValue, SSAValue] = {}
        self.runs: dict[SSAValue, list[SSAValue]] = {}
        self.attrs: dict[SSAValue, AttrValue] = {}
        self.constants: dict[SSAValue, float | None] = {}
        """Leaves that become constants: of one number, or (None) of random ones."""

    def make(self) -> Instance | None:
        constant = _wanted_constant(self.rule)
        for op in self.rule.body.block.ops:
            match op:
                case ir.AnyOp():
                    runs = op.result.type == ir.RUN
                    leaves = [self.leaf() for _ in range(self.choices.random.randint(0, 3) if runs else 1)]
                    if runs:
                        self.runs[op.result] = leaves
                    else:
                        self.values[op.result] = leaves[0]
                        if self.choices.chance(0.9 if op.result in constant else 0.1):
                            self.constants[leaves[0]] = None
                case ir.LiteralOp():
                    leaf = self.values[op.result] = self.leaf()
                    self.constants[leaf] = cast("float", from_attribute(op.value))
                case ir.MatchOp():
                    made = self.match(op)
                    if made is None:
                        return None
                    self.values[op.result] = made
                case _:
                    pass
        return self.finish()

    def leaf(self) -> SSAValue:
        return self.block.insert_arg(UNKNOWN, len(self.block.args))

    def match(self, op: ir.MatchOp) -> SSAValue | None:
        operands: list[SSAValue] = []
        for arg in op.args:
            operands += self.runs[arg] if arg.type == ir.RUN else [self.values[arg]]
        new = [value for value in operands if value.type == UNKNOWN]
        names = [name.data for name in op.names.data]
        for _ in range(_TRIES):
            name = self.choices.random.choice(names)
            before = dict(self.attrs)
            try:
                made = self.try_op(name, op, operands, new)
            except (_Misfit, MirError):
                made = None
            if made is not None:
                self.block.add_op(made)
                return made.results[0]
            self.attrs = before
            for value in new:
                _set_type(value, UNKNOWN)
        return None

    def try_op(
        self, name: str, op: ir.MatchOp, operands: Sequence[SSAValue], new: Sequence[SSAValue]
    ) -> Operation | None:
        for value in new:
            if value.type == UNKNOWN:
                _set_type(value, self.choices.type() or UNKNOWN)
        if name == "relay.tuple":
            for value in new:
                if value.type == UNKNOWN:
                    _set_type(value, TensorType(*_element_and_shape(self.choices)))
            return TupleOp(operands)
        if name == "relay.tuple_get_item":
            return TupleGetItemOp(operands[0], cast("int", from_attribute(cast("Any", op.attrs[0].owner).value)))
        operator = get_operator(name.removeprefix("relay."))
        if operator is None:
            raise _Misfit
        first = operands[0].type if operands else UNKNOWN
        self.choices.rank = first.get_num_dims() if isinstance(first, TensorType) else len(self.choices.shape)
        given: dict[str, AttrValue] = {}
        named = dict(zip((name.data for name in op.attr_names.data), op.attrs, strict=True))
        for spec in operator.attributes:
            pattern = named.get(spec.name)
            if pattern is not None and isinstance(pattern.owner, ir.DataOp):
                given[spec.name] = from_attribute(pattern.owner.value)
            elif pattern is not None:
                if pattern not in self.attrs:
                    self.attrs[pattern] = self.choices.attribute(spec, captured=True)
                given[spec.name] = self.attrs[pattern]
            else:
                given[spec.name] = self.choices.attribute(spec, captured=False)
        made = operator_class(operator)(operands, given)
        return made if _typed(made) else None

    def finish(self) -> Instance | None:
        replace = cast("ir.ReplaceOp", self.rule.body.block.last_op)
        roots = [self.values[root] for root in replace.roots]
        for leaf in list(self.block.args):
            if leaf in self.constants and leaf.type != UNKNOWN:
                if not isinstance(leaf.type, TensorType) or min(leaf.type.get_shape(), default=0) < 0:
                    return None
                number, kind = self.constants[leaf], kind_of_input(leaf)
                made = self.constant(cast("TensorType[Any]", leaf.type), number, kind)
                Rewriter.insert_op(made, _start(self.block))
                leaf.replace_all_uses_with(made.result)
                self.block.erase_arg(leaf)
            elif not leaf.uses:
                self.block.erase_arg(leaf)
        if any(not _is_closed(arg.type) for arg in self.block.args):
            return None
        result = roots[0]
        if len(roots) > 1:
            together = TupleOp(roots)
            self.block.add_op(together)
            result = together.results[0]
        self.block.add_op(ReturnOp(result))
        types = [arg.type for arg in self.block.args]
        function = FuncOp(
            "main", [f"p{k}" for k in range(len(types))], types, ret_type=result.type, body=Region(self.block)
        )
        return Instance(ModuleOp([function]), tuple(cast("Operation", root.owner) for root in roots))

    def constant(self, type: TensorType[Any], number: float | None, fixed: str | None) -> ConstantOp:
        generator = np.random.default_rng(self.choices.random.randrange(1 << 30))
        dtype = numpy_dtype(dtype_name(type.element_type))
        shape = type.get_shape()
        if number is None:
            whole = self.choices.random.choice((0, 1, -1, 2, None, None, None))
            kind = "numbers" if self.rule.is_fast or self.choices.chance(0.8) else "special values"
            array = draw(type, fixed or kind, generator) if whole is None or fixed else np.full(shape, whole)
        else:
            # Of the two zeros a pattern's 0 matches either.
            array = np.full(shape, -0.0 if number == 0 and self.choices.chance(0.4) else number)
        return ConstantOp(ArrayValueAttr.of(np.asarray(array).astype(dtype)), type)


def kind_of_input(value: SSAValue) -> str | None:
    """Returns the kind as which a scale, a zero point or a shape is drawn; None for any other value.

    Scales are positive, and zero points and sizes small numbers: operators have no meaning, or no memory, for others.
    """
    for use in value.uses:
        op = use.operation
        if not isinstance(op, OperatorOp):
            continue
        name = op.OPERATOR.arguments[min(use.index, len(op.OPERATOR.arguments) - 1)]
        if op.OPERATOR.name.startswith("qnn.") and ("scale" in name or "zero" in name):
            return "positive numbers" if "scale" in name else "numbers"
        static = get_operator(op.OPERATOR.name.removeprefix("dyn."))
        if static is not None and name in static.specs:
            return "numbers"
    return None


def _typed(op: OperatorOp) -> bool:
    """Gives an op and its open arguments the types that its relation finds; whether it found them all."""
    if op.OPERATOR.problem(op.given(), len(op.args)) is not None:
        return False
    types = _Types()
    try:
        op.OPERATOR.relation(Use(op, op.attrs(), types))
    except (Postponed, MirError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        return False
    found = {value: types.unifier.close(types.type_of(value)) for value in op.args}
    if types.result is None or not all(map(_is_closed, found.values())) or not _is_closed(types.result, or_open=True):
        return False
    for value, type in found.items():
        _set_type(value, type)
    _set_type(op.result, types.result)
    return True


def _is_closed(type: Attribute, or_open: bool = False) -> bool:
    """Returns whether a type is known; with `or_open`, up to sizes that the program finds when it runs."""
    pending: list[Attribute] = [type]
    while pending:
        each = pending.pop()
        if isinstance(each, TensorType):
            # Unknown, or made of a random attribute.
            if any(size < 0 and not (or_open and size == DYNAMIC_INDEX) for size in each.get_shape()):
                return False
        elif hasattr(each, "types"):
            pending += cast("Any", each).types.data
        else:
            return False
    return True


def _set_type(value: SSAValue, type: Attribute) -> None:
    set_type(value, type)


def _element_and_shape(choices: Choices) -> tuple[Attribute, Sequence[int]]:
    from .....dialects.tir.types import dtype_to_type

    return dtype_to_type(choices.dtype), choices.shape


def _start(block: Block) -> Any:
    from xdsl.rewriter import InsertPoint

    return InsertPoint.at_start(block)


def _wanted_constant(rule: ir.RewriteOp) -> Mapping[SSAValue, None]:
    """Captures that have to be constants: those that are folded, or whose elements a function reads."""
    found: dict[SSAValue, None] = {}
    for op in rule.body.block.ops:
        if isinstance(op, ir.FoldOp):
            pending = [op.value]
            while pending:
                value = pending.pop()
                if isinstance(value.owner, ir.BuildOp):
                    pending += value.owner.args
                else:
                    found[value] = None
        elif isinstance(op, ir.ComputeOp):
            function = FUNCTIONS.get(op.function.data)
            reads = op.function.data == "is_constant" or (function is not None and not function.wants_values)
            if reads:
                found |= dict.fromkeys(arg for arg in op.args if arg.type == ir.VALUE)
    return found
