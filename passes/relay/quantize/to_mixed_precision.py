"""`to-mixed-precision`: computes in float16 or bfloat16 where that is fast and safe.

    nn.dense(%x, %w)   ->   nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16")

As TVM's ToMixedPrecision: each operator is of a category, which `mixed_precision.json` lists. The choice is TVM's, which follows
TensorFlow's lists for automatic mixed precision: operators of many multiplications gain most, sums of many terms and functions that
grow fast lose digits or overflow. The result of a function whose calls are known may change its type; elsewhere (functions that are
values or called by name, data types, references, branches that would differ) a value gets its old type back. Each value is cast once
for all its users, which is why the rewriting is not a set of local rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.infer import infer_types
from ....dialects.relay.infer.result import infer_result
from ....dialects.relay.operator import OperatorOp, get_operator, operator_class, to_attribute
from ....dialects.relay.types import FuncType, tuple_of
from ....dialects.tir.types import FLOAT_LIMITS, type_to_dtype
from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import error_at, warn_at
from ....support.edit import erase_op, insert_op_before, set_type
from ....support.text import counted
from ....support.trace import Tracer, tracer
from ....support.walk import walk_ops
from ...changes import op_name
from ..common.operator_table import read_table
from ..common.rewriting import returned

DTYPES = ("float16", "bfloat16")


class Category(Enum):
    """When an operator runs in the narrow type.

    TVM's MIXED_PRECISION_ALWAYS, _FOLLOW, _NEVER, and a stricter never.
    """

    ALWAYS = "always: its arguments are cast to the narrow type"
    FOLLOW = "where its arguments have the narrow type, or can have it at no cost"
    NEVER = "never: its arguments are cast to float32"
    KEEP = "its arguments have the types that they had, which its relation or its meaning fixes"


CATEGORIES: Mapping[str, Category] = {
    name: Category[key.upper()] for key, names in read_table("quantize/mixed_precision.json").items() for name in names
}
"""The category of each operator that has one, by name.

Of those that keep their types, scales of quantization are of float32, random numbers have the dtype of their limits, and `reinterpret`
reads bits as another dtype of the same width.
"""


def category_of(op: OperatorOp, dtype: str) -> Category | None:
    """Returns the category of `op`; None if it has none.

    A `clip` to limits beyond `dtype` is never narrow.
    """
    if op.OPERATOR.name == "clip":
        attrs = op.attrs()
        if max(abs(attrs.a_min), abs(attrs.a_max)) > FLOAT_LIMITS[dtype]:
            return Category.NEVER
    return CATEGORIES.get(op.OPERATOR.name)


CREATED = frozenset({"zeros", "ones", "full", "dyn.zeros", "dyn.ones", "dyn.full"})
"""Operators whose attribute `dtype` is that of a tensor which they fill."""


def result_attribute(op: OperatorOp) -> str | None:
    """Returns the attribute with the dtype in which an operator sums, or fills a tensor; None for most."""
    if op.OPERATOR.name in CREATED:
        return "dtype"
    return "out_dtype" if op.OPERATOR.name.startswith("nn.") and "out_dtype" in op.OPERATOR.specs else None


@dataclass(frozen=True)
class ToMixedPrecision(ModulePass):
    """Compute in a narrow floating-point type where that is fast and safe."""

    name = "to-mixed-precision"
    tells: ClassVar[bool] = True

    mixed_precision_type: str = "float16"
    """float16 or bfloat16."""

    missing_op_mode: int = 1
    """What to do about operators without a category: 0 refuse them, 1 warn, 2 take them as those that follow, in silence."""

    keep_orig_output_dtype: bool = False
    """Whether functions' results keep the types that they had."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.mixed_precision_type not in DTYPES:
            raise error_at(
                op, f"mixed-precision-type={self.mixed_precision_type!r} must be one of {' and '.join(DTYPES)}"
            )
        if self.missing_op_mode not in (0, 1, 2):
            raise error_at(op, f"missing-op-mode={self.missing_op_mode} must be 0 (error), 1 (warning) or 2 (silence)")
        infer_types(op)
        missing = [inner for inner in walk_ops(op) if self._is_missing(inner)]
        self._report(missing)
        rewriter = _Rewriter(op, self.mixed_precision_type, self.keep_orig_output_dtype, tracer(self.name))
        in_deep_stack(rewriter.run)

    def _is_missing(self, op: Operation) -> bool:
        return isinstance(op, OperatorOp) and category_of(op, self.mixed_precision_type) is None

    def _report(self, missing: Sequence[Operation]) -> None:
        if self.missing_op_mode == 2:
            return
        counts = Counter(op.name for op in missing)
        for op in missing:
            count = counts.pop(op.name, 0)
            if not count:
                continue
            name = op.name.removeprefix("relay.")
            message = f"{name} has no category of precision ({counted(count, 'use')})"
            if self.missing_op_mode == 0:
                raise error_at(op, message, "missing-op-mode=1 or 2 takes it as one that follows its arguments")
            warn_at(op, message, "it follows its arguments; missing-op-mode=2 says nothing")


_REASONS = {
    (Category.ALWAYS, True): "it is among those that gain most",
    (Category.NEVER, False): "it loses digits or overflows in a narrow type",
    (Category.FOLLOW, True): "its arguments have that type, or can have it at no cost",
    (Category.FOLLOW, False): "an argument is not of the narrow type",
}
"""Why an operator of a category runs in the narrow type or does not."""


class _Rewriter:
    def __init__(self, module: ModuleOp, dtype: str, keep_results: bool, trace: Tracer | None):
        self.trace = trace
        self.module, self.dtype, self.keep_results = module, dtype, keep_results
        self.casts: dict[tuple[SSAValue, str], SSAValue] = {}
        self.types: dict[SSAValue, Attribute] = {}
        """The types before, of values that have another one now."""
        self.named: set[str] = set()
        for op in walk_ops(module):
            match op:
                case ir.CallGlobalOp():
                    self.named.add(op.callee.root_reference.data)
                case ir.GlobalRefOp():
                    self.named.add(op.symbol.root_reference.data)
                case _:
                    pass

    def run(self) -> None:
        for function in self.module.ops:
            if isinstance(function, ir.FuncOp):
                self.function(function, self.keep_results or function.sym_name.data in self.named)

    def function(self, function: ir.FuncOp | ir.FnOp, keep: bool) -> None:
        self.block(function.body.block)
        if keep:
            self.keep(function.body.block)
        function.properties["ret_type"] = returned(function.body.block).type

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            self.visit(op)

    def visit(self, op: Operation) -> None:
        match op:
            case OperatorOp():
                self.operator(op)
            case ir.TupleOp():
                self.retype(op, tuple_of([field.type for field in op.fields]))  # type: ignore[arg-type]
            case ir.TupleGetItemOp():
                type = op.tuple_value.type
                assert isinstance(type, TupleType)
                self.retype(op, type.types.data[op.index.value.data])
            case ir.LetOp():
                self.retype(op, op.value.type)
            case ir.FnOp():
                self.local_function(op)
            case ir.CallOp() if isinstance(op.callee.owner, ir.FnOp):
                self.restore_operands(op)
                self.retype(op, op.callee.owner.ret_type)
            case ir.IfOp() | ir.MatchOp():
                self.restore_operands(op)
                self.branches(op)
            case ir.ReturnOp():
                pass
            case _:
                self.restore_operands(op)

    def retype(self, op: Operation, type: Attribute) -> None:
        result = op.results[0]
        if result.type != type:
            self.types.setdefault(result, result.type)
            set_type(result, type)

    # Operators -----------------------------------------------------------------------------------------------------

    def operator(self, op: OperatorOp) -> None:
        if op.OPERATOR.name == "cast":
            return  # It takes any dtype and has its own; casts before it would grow in number with each run.
        own = category = category_of(op, self.dtype) or Category.FOLLOW
        if category is Category.FOLLOW:
            category = Category.ALWAYS if all(map(self.can_follow, op.args)) else Category.NEVER
        narrow = category is Category.ALWAYS
        wanted = self.dtype if narrow else "float32"
        arguments = list(op.args)
        if category is Category.KEEP:
            self.restore_operands(op)
        else:
            op.operands = [self.cast_all(value, wanted, op) for value in arguments]
        for value in arguments:
            if isinstance(value.owner, ir.TupleOp) and value.first_use is None:
                erase_op(value.owner)
        if self.trace is not None and own is not Category.KEEP:
            self.trace(op, f"{op_name(op)} runs in {wanted}: {_REASONS[own, narrow]}")
        before = op.result.type
        name = result_attribute(op) if narrow and _float_dtype(before) else None
        if name is not None:
            op.attributes[name] = to_attribute(self.dtype)
        infer_result(op)
        if op.result.type != before:
            self.types.setdefault(op.result, before)

    def can_follow(self, value: SSAValue) -> bool:
        """Returns whether an argument has the narrow type, or is a variable or a constant, which can be cast."""
        owner = value.owner
        return isinstance(owner, Block | ir.LetOp | ir.ConstantOp) or self.is_narrow(value.type)

    def is_narrow(self, type: Attribute) -> bool:
        if isinstance(type, TupleType):
            return all(map(self.is_narrow, type.types.data))
        dtype = _float_dtype(type)
        return dtype is None or dtype == self.dtype

    def cast_all(self, value: SSAValue, dtype: str, user: Operation) -> SSAValue:
        """`value` with every floating-point tensor in it of `dtype`."""
        if isinstance(value.type, TupleType):
            return self.fields(value, [dtype] * len(value.type.types.data), user)
        return value if _float_dtype(value.type) in (None, dtype) else self.cast(value, dtype, user)

    def fields(self, value: SSAValue, wanted: Sequence[str | Attribute], user: Operation) -> SSAValue:
        """A tuple whose fields are cast, each to a dtype or back to a type; the same one where none has to be."""
        assert isinstance(value.type, TupleType)
        changes = [self.needs_cast(type, goal) for type, goal in zip(value.type.types.data, wanted, strict=True)]
        if not any(changes):
            return value
        fields: list[SSAValue] = []
        for index, (goal, changed) in enumerate(zip(wanted, changes, strict=True)):
            made = value.owner if isinstance(value.owner, ir.TupleOp) else None
            field = made.operands[index] if made else self.insert(ir.TupleGetItemOp(value, index), user)
            if changed:
                field = self.cast_all(field, goal, user) if isinstance(goal, str) else self.restore(field, goal, user)
            fields.append(field)
        return self.insert(ir.TupleOp(fields), user)

    def needs_cast(self, type: Attribute, goal: str | Attribute) -> bool:
        if not isinstance(goal, str):
            return type != goal
        if isinstance(type, TupleType):
            return any(self.needs_cast(field, goal) for field in type.types.data)
        return _float_dtype(type) not in (None, goal)

    def insert(self, op: Operation, user: Operation) -> SSAValue:
        op.location = user.location
        insert_op_before(op, user)
        return op.results[0]

    def cast(self, value: SSAValue, dtype: str, user: Operation) -> SSAValue:
        """`value` in another dtype, for its first user and for all that come later."""
        found = self.casts.get((value, dtype))
        if found is not None:
            return found
        operator = get_operator("cast")
        assert operator is not None
        op = operator_class(operator)([value], {"dtype": dtype})
        infer_result(op)
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        place = None if home is None else home.find_ancestor_op_in_block(user)
        assert place is not None
        result = self.casts[value, dtype] = self.insert(op, place)
        # The way back costs nothing.
        self.casts[result, _float_dtype(value.type) or dtype] = value
        return result

    # Structure -----------------------------------------------------------------------------------------------------

    def restore(self, value: SSAValue, type: Attribute, user: Operation) -> SSAValue:
        """`value` in the type that it had."""
        if value.type == type:
            return value
        if isinstance(type, TupleType):
            return self.fields(value, type.types.data, user)
        dtype = _float_dtype(type)
        assert dtype is not None  # Nothing but tensors, and tuples of them, change their types.
        return self.cast(value, dtype, user)

    def restore_operands(self, op: Operation) -> None:
        operands = list(op.operands)
        if any(value in self.types for value in operands):
            op.operands = [self.restore(value, self.types.get(value, value.type), op) for value in operands]

    def keep(self, block: Block) -> None:
        """Lets a block end with a value of the type that it had."""
        end = block.last_op
        assert end is not None
        self.restore_operands(end)

    def local_function(self, op: ir.FnOp) -> None:
        only_called = op.self_name is None and all(
            isinstance(use.operation, ir.CallOp) and use.index == 0 for use in op.result.uses
        )
        self.function(op, keep=not only_called)
        type = FuncType.get([p.type for p in op.params], op.ret_type, [p.data for p in op.type_params.data])
        set_type(op.result, type)

    def branches(self, op: ir.IfOp | ir.MatchOp) -> None:
        blocks = [region.block for region in op.regions]
        for block in blocks:
            self.block(block)
        if len({returned(block).type for block in blocks}) > 1:
            for block in blocks:
                self.keep(block)
        if blocks:
            self.retype(op, returned(blocks[0]).type)


def _float_dtype(type: Attribute) -> str | None:
    """The dtype of a floating-point tensor; None for everything else."""
    if isinstance(type, TensorType) and isinstance(type.element_type, AnyFloat):
        return type_to_dtype(type.element_type)
    return None
