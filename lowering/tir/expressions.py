"""TIR's scalar and vector expressions as arith ops."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, llvm, math, scf, vector
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    f32,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from ...dialects import math_ext, tir, vector_ext
from ...dialects.interned import i64_array, vector_type
from ...dialects.tir.arithmetic import BinaryOp
from ...dialects.tir.scalar_ops import ARITHMETIC, BINARY_ROWS, COMPARISONS, OPERATORS
from ...dialects.tir.types import element_of, is_unsigned, is_vector, lanes_of
from ...passes.tir.blocks.convert_blocks_to_opaque import REASSOCIATE
from ...support.diagnostics import error_at
from ...support.walk import walk_ops
from .emitter import ANY_ZERO, CONTRACT, FASTMATH_NONE, INDEX, NO_FLAGS, REASSOCIABLE
from .function import FunctionLowering, is_index_dtype, lowers
from .values import ADDRESS, Form, Index, Plain, Pointer, Ramp, convert_type

IndexRule = Callable[[FunctionLowering, Index, Index], Index]

INDEX_RULES: dict[type[Operation], IndexRule] = {
    op: getattr(FunctionLowering, OPERATORS[op].on_indices) for op in ARITHMETIC
}
MLIR_OPS: dict[str, type[Operation]] = {
    op.name: op for dialect in (arith.Arith, math.Math, math_ext.MathExt) for op in dialect.operations
}
"""The ops that rows of the table name."""


def _column(names: dict[type[BinaryOp], str]) -> dict[type[Operation], type[Operation]]:
    return {op: MLIR_OPS[name] for op, name in names.items() if name}


# What each op is on floats, on signed and on unsigned integers (bool included).
FLOAT_OPS = _column({op: row.mlir_float for op, row in BINARY_ROWS.items()})
SIGNED_OPS = _column({op: row.mlir_signed for op, row in BINARY_ROWS.items()})
UNSIGNED_OPS = _column({op: row.mlir_unsigned or row.mlir_signed for op, row in BINARY_ROWS.items()})
# A sum of bools is whether any is true, as in numpy.
BOOL_OPS = _column({op: row.mlir_bool for op, row in BINARY_ROWS.items()})
WRAPPING = (arith.AddiOp, arith.SubiOp, arith.MuliOp)


def is_float(type_: Attribute) -> bool:
    """Returns whether a value of the type is a float or a vector of floats."""
    return not isinstance(element_of(type_), IntegerType)


@lowers(tir.ConstOp)
def lower_const(f: FunctionLowering, op: tir.ConstOp) -> None:
    """Lowers a number; a string is read by the call that takes it."""
    value, type_ = op.properties["value"], op.result.type
    if isinstance(value, IntegerAttr):
        number = value.value.data
        if is_index_dtype(type_):
            f.bind(op.result, Index.of(number))
        elif isinstance(type_, tir.HandleType):
            if number:
                raise error_at(op, "a handle constant other than the null pointer cannot be compiled")
            f.bind(op.result, Pointer(f.emit(llvm.ZeroOp, (), ADDRESS), None))
        else:
            f.bind(op.result, Plain(f.constant(number, convert_type(type_, op.result))))
    elif isinstance(value, FloatAttr):
        f.bind(op.result, Plain(f.constant(value.value.data, convert_type(type_, op.result))))


@lowers(tir.LetOp)
def lower_let(f: FunctionLowering, op: tir.LetOp) -> None:
    """Binds the name to the value's form."""
    f.bind(op.result, f.form(op.value))


@lowers(tir.VarOp)
def lower_var(f: FunctionLowering, op: tir.VarOp) -> None:
    """Does nothing: a symbolic size is bound by the signature, others are only nodes of attributes."""


def _is_loose(form: Form) -> bool:
    """Returns whether an integer may take either form at no cost."""
    return isinstance(form, Index) and isinstance(form.value, int)


@lowers(*INDEX_RULES)
def lower_arithmetic(f: FunctionLowering, op: tir.BinaryOp) -> None:
    """Lowers arithmetic: on `index` where an operand is an index, otherwise on the dtype."""
    a, b = f.form(op.lhs), f.form(op.rhs)
    type_ = op.result.type
    kind = type(op)
    if isinstance(a, Ramp) and isinstance(b, Ramp) and (ramp := _ramp_arithmetic(f, kind, a, b)) is not None:
        f.bind(op.result, ramp)
        return
    if is_index_dtype(type_) and (isinstance(a, Index) or isinstance(b, Index)):
        both = isinstance(a, Index) and isinstance(b, Index)
        if (both or not (_is_loose(a) or _is_loose(b))) and not may_wrap(f, op, kind, a, b):
            f.bind(op.result, INDEX_RULES[kind](f, f.index(op.lhs), f.index(op.rhs)))
            return
    lhs, rhs = f.plain(op.lhs), f.plain(op.rhs)
    f.bind(op.result, Plain(arithmetic(f, op, kind, lhs, rhs, type_)))


def may_wrap(f: FunctionLowering, op: tir.BinaryOp | tir.CallOp, kind: type[Operation], a: Form, b: Form) -> bool:
    """Returns whether `kind` of `a` and `b` is on stored numbers, and may exceed and wrap its dtype."""
    assert op.result is not None
    return not _may_not_overflow(
        kind, op.result.type if kind in INDEX_RULES else op.operands[0].type, a, b
    ) and _is_data(f, op)


def _may_not_overflow(kind: type[Operation], type_: Attribute, a: Form, b: Form) -> bool:
    """Returns whether operands and result of index arithmetic are known to fit the dtype."""
    ends: list[tuple[int, int]] = []
    for form in (a, b):
        if not isinstance(form, Index) or form.low is None or form.high is None:
            return False
        ends.append((form.low, form.high))
    found = [end for pair in ends for end in pair]
    (low, high), (least, most) = ends
    if kind is tir.AddOp:
        found += [low + least, high + most]
    elif kind is tir.SubOp:
        found += [low - most, high - least]
    elif kind is tir.MulOp:
        found += [x * y for x in (low, high) for y in (least, most)]
    assert isinstance(type_, IntegerType)
    limit = 1 << (type_.width.data - 1)
    return -limit <= min(found) and max(found) < limit


def _is_data(f: FunctionLowering, op: tir.BinaryOp | tir.CallOp) -> bool:
    """Returns whether an integer, perhaps after more arithmetic, is stored: it then wraps around."""
    if f.data is None:
        f.data = _stored_values(op)
    return op.result in f.data


def _stored_values(op: Operation) -> set[SSAValue]:
    """Returns the values that a function stores, and those that they are computed from."""
    root = op
    while (parent := root.parent_op()) is not None and not isinstance(root, tir.PrimFuncOp):
        root = parent
    pending = [each.value for each in walk_ops(root) if isinstance(each, tir.StoreOp)]
    found: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        match value.owner:
            case tir.IfThenElseOp() as choice:
                ends = [block.last_op for region in choice.regions for block in region.blocks]
                pending += [each for end in ends if end is not None for each in end.operands]
            case Block() | tir.LoadOp():
                # A loop's variable; a number of memory, of which the places are indices.
                pass
            case computed:
                pending += computed.operands
    return found


def _ramp_arithmetic(f: FunctionLowering, kind: type[Operation], a: Ramp, b: Ramp) -> Ramp | None:
    if kind is tir.AddOp:
        return Ramp(f.index_add(a.base, b.base), f.index_add(a.stride, b.stride), a.lanes)
    if kind is tir.SubOp:
        return Ramp(f.index_sub(a.base, b.base), f.index_sub(a.stride, b.stride), a.lanes)
    if kind is tir.MulOp:
        if a.stride.value == 0:
            a, b = b, a
        if b.stride.value == 0:
            return Ramp(f.index_mul(a.base, b.base), f.index_mul(a.stride, b.base), a.lanes)
    return None


def arithmetic(
    f: FunctionLowering, where: Operation, kind: type[Operation], lhs: SSAValue, rhs: SSAValue, type_: Attribute
) -> SSAValue:
    """Emits one arithmetic op of TIR on converted values; `type_` is TIR's type."""
    converted = lhs.type
    if is_float(type_):
        if kind in (tir.MinOp, tir.MaxOp):
            # NaN where one is; of 0 and -0 either, but under strict-math the second.
            if f.globals.strict_math:
                chosen = f.select(f.compare_floats("olt" if kind is tir.MinOp else "ogt", lhs, rhs), lhs, rhs)
                return f.select(f.compare_floats("uno", lhs, lhs), lhs, chosen)
            return f.emit(FLOAT_OPS[kind], (lhs, rhs), converted, ANY_ZERO)
        if kind in FLOAT_OPS and kind is not tir.ModOp:
            # A product of half precision is rounded before it is added to a sum, also where a processor could do both at once: of a
            # long sum the results would be apart in their first digits.
            wide = isinstance(element_of(type_), Float32Type | Float64Type)
            flags = CONTRACT if wide and kind is not tir.DivOp and not f.globals.strict_math else FASTMATH_NONE
            if _may_reassociate(where, converted):
                flags = REASSOCIABLE
            return f.emit(FLOAT_OPS[kind], (lhs, rhs), converted, flags)
        if kind is tir.FloorDivOp:
            quotient = f.emit(arith.DivfOp, (lhs, rhs), converted, FASTMATH_NONE)
            return f.emit(math.FloorOp, (quotient,), converted, FASTMATH_NONE)
        rest = f.emit(math_ext.RemFOp, (lhs, rhs), converted)
        return rest if kind is tir.ModOp else _toward_divisor(f, rest, rhs)
    if element_of(type_) == i1 and kind in BOOL_OPS:
        target = BOOL_OPS[kind]
    elif is_unsigned(type_):
        target = UNSIGNED_OPS[kind]
    elif kind is tir.FloorModOp:
        quotient = f.emit(arith.FloorDivSIOp, (lhs, rhs), converted)
        back = f.emit(arith.MuliOp, (quotient, rhs), converted, NO_FLAGS)
        return f.zero_over_zero(rhs, f.emit(arith.SubiOp, (lhs, back), converted, NO_FLAGS))
    else:
        target = SIGNED_OPS[kind]
    return f.emit(target, (lhs, rhs), converted, NO_FLAGS if target in WRAPPING else None)


def _toward_divisor(f: FunctionLowering, rest: SSAValue, divisor: SSAValue) -> SSAValue:
    """Returns the remainder of floats that has the divisor's sign, from the one that has the dividend's."""
    signed = f.emit(math.CopySignOp, (rest, divisor), rest.type, FASTMATH_NONE)
    moved = f.emit(arith.AddfOp, (rest, divisor), rest.type, FASTMATH_NONE)
    return f.select(f.compare_floats("une", signed, rest), moved, signed)


def _may_reassociate(op: Operation, type_: Attribute) -> bool:
    """Returns whether the op sums a reduction in any order; sums in half precision would drift."""
    return REASSOCIATE in op.attributes and isinstance(type_, Float32Type | Float64Type)


@lowers(*COMPARISONS)
def lower_compare(f: FunctionLowering, op: tir.CompareOp) -> None:
    """Comparison; of indices whose ranges decide it, a constant."""
    f.bind(op.result, Plain(_compare(f, op)))


def _compare(f: FunctionLowering, op: tir.CompareOp) -> SSAValue:
    name = BINARY_ROWS[type(op)].name
    type_ = op.lhs.type
    a, b = f.form(op.lhs), f.form(op.rhs)
    if isinstance(type_, tir.HandleType):
        raise error_at(op, "handles cannot be compared in compiled code")
    if is_float(type_):
        ordered = {"eq": "oeq", "ne": "une"}.get(name, f"o{name}")
        return f.compare_floats(ordered, f.plain(op.lhs), f.plain(op.rhs))
    if name not in ("eq", "ne"):
        name = ("u" if is_unsigned(type_) else "s") + name
    if is_index_dtype(type_) and (isinstance(a, Index) or isinstance(b, Index)):
        both = isinstance(a, Index) and isinstance(b, Index)
        if (both or not (_is_loose(a) or _is_loose(b))) and not may_wrap(f, op, type(op), a, b):
            left, right = f.index(op.lhs), f.index(op.rhs)
            decided = _decide(name, left, right)
            if decided is not None:
                return f.constant(int(decided), i1)
            return f.compare(name, f.ssa(left), f.ssa(right))
    return f.compare(name, f.plain(op.lhs), f.plain(op.rhs))


def _decide(name: str, a: Index, b: Index) -> bool | None:
    """Returns the result of a signed comparison that the ranges decide, or None."""
    if name in ("sgt", "sge"):
        a, b, name = b, a, "slt" if name == "sgt" else "sle"
    below = a.high is not None and b.low is not None and a.high < b.low
    at_most = a.high is not None and b.low is not None and a.high <= b.low
    above = a.low is not None and b.high is not None and a.low > b.high
    at_least = a.low is not None and b.high is not None and a.low >= b.high
    match name:
        case "slt":
            return True if below else False if at_least else None
        case "sle":
            return True if at_most else False if above else None
        case "eq":
            same = at_most and at_least
            return True if same else False if below or above else None
        case _:
            same = at_most and at_least
            return False if same else True if below or above else None


@lowers(tir.AndOp, tir.OrOp)
def lower_connective(f: FunctionLowering, op: tir.BinaryOp) -> None:
    """Both sides are evaluated."""
    lhs, rhs = f.plain(op.lhs), f.plain(op.rhs)
    f.bind(op.result, Plain(f.emit(BOOL_OPS[type(op)], (lhs, rhs), lhs.type)))


@lowers(tir.NotOp)
def lower_not(f: FunctionLowering, op: tir.NotOp) -> None:
    """Exclusive or with true."""
    value = f.plain(op.value)
    f.bind(op.result, Plain(f.emit(arith.XOrIOp, (value, f.constant(1, value.type)), value.type)))


@lowers(tir.SelectOp)
def lower_select(f: FunctionLowering, op: tir.SelectOp) -> None:
    """Both values are evaluated."""
    bind_choice(f, op.result, f.plain(op.condition), op.true_value, op.false_value)


def bind_choice(
    f: FunctionLowering, result: SSAValue, condition: SSAValue, true_value: SSAValue, false_value: SSAValue
) -> None:
    """`result` is one of two values that are both there; of indices, the range that covers both is kept."""
    a, b = f.form(true_value), f.form(false_value)
    if isinstance(a, Index) and isinstance(b, Index):
        low = None if a.low is None or b.low is None else min(a.low, b.low)
        high = None if a.high is None or b.high is None else max(a.high, b.high)
        f.bind(result, Index(f.select(condition, f.ssa(a), f.ssa(b)), low, high))
        return
    f.bind(result, Plain(f.select(condition, f.plain(true_value), f.plain(false_value))))


# How many ops a side of T.if_then_else may have to be computed whether chosen or not.
SPECULATED_OPS = 12


@lowers(tir.IfThenElseOp)
def lower_if_then_else(f: FunctionLowering, op: tir.IfThenElseOp) -> None:
    """Lowers a choice to a select when both sides are cheap and touch no memory, otherwise to a branch.

    A choice lane by lane becomes a select whose sides load under masks.
    """
    condition = f.plain(op.condition)
    blocks = (op.then_region.block, op.else_region.block)
    if isinstance(condition.type, VectorType):
        _lower_masked_choice(f, op, condition)
        return
    owner = condition.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        chosen = blocks[0] if owner.value.value.data else blocks[1]
        f.bind(op.result, f.form(_lower_side(f, chosen)))
        return
    if all(_is_cheap(block) for block in blocks):
        bind_choice(f, op.result, condition, _lower_side(f, blocks[0]), _lower_side(f, blocks[1]))
        return
    as_index = is_index_dtype(op.result.type)
    type_ = INDEX if as_index else convert_type(op.result.type, op.result)
    regions: list[Region] = []
    for source in blocks:
        block = Block()
        with f.inside(block):
            value = _lower_side(f, source)
            f.append(scf.YieldOp(f.ssa(f.index(value)) if as_index else f.plain(value)))
        regions.append(Region(block))
    result = f.append(scf.IfOp(condition, [type_], regions[0], regions[1])).results[0]
    f.bind(op.result, Index(result) if as_index else Plain(result))


def _lower_side(f: FunctionLowering, block: Block) -> SSAValue:
    """Lowers a region of T.if_then_else where ops go now; the TIR value that it yields."""
    last = block.last_op
    assert isinstance(last, tir.YieldOp)
    f.lower_ops(op for op in block.ops if op is not last)
    return last.values[0]


def _is_cheap(block: Block) -> bool:
    return all(
        not op.regions and not isinstance(op, tir.LoadOp | tir.CallOp) and count < SPECULATED_OPS
        for count, op in enumerate(block.ops)
    )


def _lower_masked_choice(f: FunctionLowering, op: tir.IfThenElseOp, condition: SSAValue) -> None:
    outer = f.mask
    sides: list[SSAValue] = []
    for block, negate in ((op.then_region.block, False), (op.else_region.block, True)):
        mask = condition
        if negate:
            mask = f.emit(arith.XOrIOp, (mask, f.constant(1, mask.type)), mask.type)
        f.mask = mask if outer is None else f.emit(arith.AndIOp, (outer, mask), mask.type)
        sides.append(f.plain(_lower_side(f, block)))
        f.mask = outer
    f.bind(op.result, Plain(f.select(condition, sides[0], sides[1])))


# Conversions


@lowers(tir.CastOp)
def lower_cast(f: FunctionLowering, op: tir.CastOp) -> None:
    """Conversion by value."""
    form = f.form(op.value)
    source, target = op.value.type, op.result.type
    if isinstance(form, Pointer) or isinstance(target, tir.HandleType):
        f.bind(op.result, form)
    elif isinstance(form, Index) and is_index_dtype(target) and is_index_dtype(source):
        # Index arithmetic does not overflow, so that narrowing keeps the value.
        f.bind(op.result, form)
    elif isinstance(form, Ramp) and is_index_dtype(element_of(target)) and is_index_dtype(element_of(source)):
        f.bind(op.result, form)
    else:
        f.bind(op.result, Plain(convert(f, f.plain(op.value), source, target)))


def convert(f: FunctionLowering, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """Converts a lowered value from TIR type `source` to TIR type `target`.

    Floats are rounded toward zero to integers, clamped to the integer's range, NaN to 0.
    """
    old, new = element_of(value.type), element_of(convert_type(target, value))
    if old == new:
        return value
    type_ = VectorType(new, value.type.shape) if isa(value.type, VectorType[Attribute]) else new
    if isinstance(old, IntegerType) and isinstance(new, IntegerType):
        if new.width.data == 1:
            return f.compare("ne", value, f.constant(0, value.type))
        if new.width.data < old.width.data:
            return _cast(f, "trunci", value, type_)
        return _cast(f, "extui" if is_unsigned(source) else "extsi", value, type_)
    if isinstance(old, IntegerType):
        return _cast(f, "uitofp" if is_unsigned(source) else "sitofp", value, type_)
    if isinstance(new, IntegerType):
        if new.width.data == 1:
            return f.compare_floats("une", value, f.constant(0, value.type))
        return _cast(f, "fptoui" if is_unsigned(target) else "fptosi", value, type_)
    widths = _width(old), _width(new)
    if widths[0] == widths[1]:  # float16 and bfloat16: through float32
        wide = VectorType(f32, value.type.shape) if isa(value.type, VectorType[Attribute]) else f32
        return f.emit(arith.TruncFOp, (f.emit(arith.ExtFOp, (value,), wide),), type_)
    return f.emit(arith.ExtFOp if widths[0] < widths[1] else arith.TruncFOp, (value,), type_)


_CASTS: dict[str, type[Operation]] = {
    "trunci": arith.TruncIOp, "extui": arith.ExtUIOp, "extsi": arith.ExtSIOp, "uitofp": arith.UIToFPOp,
    "sitofp": arith.SIToFPOp, "fptoui": arith.FPToUIOp, "fptosi": arith.FPToSIOp,
}  # fmt: skip


def _cast(f: FunctionLowering, kind: str, value: SSAValue, type_: Attribute) -> SSAValue:
    if is_vector(type_):
        return f.append(vector_ext.CastOp(kind, value, type_)).result
    return f.emit(_CASTS[kind], (value,), type_)


def _width(type_: Attribute) -> int:
    return getattr(type_, "bitwidth", 0)


# Vectors


@lowers(tir.RampOp)
def lower_ramp(f: FunctionLowering, op: tir.RampOp) -> None:
    """Kept as base and stride, so that an access sees whether it is contiguous."""
    lanes = lanes_of(op.result.type)
    if is_unsigned(op.base.type):
        type_ = convert_type(op.result.type, op.result)
        base, stride = (f.broadcast(v, lanes) for v in f.plains([op.base, op.stride]))
        steps = f.emit(arith.MuliOp, (stride, f.iota(lanes, 1, element_of(type_))), type_, NO_FLAGS)
        f.bind(op.result, Plain(f.emit(arith.AddiOp, (base, steps), type_, NO_FLAGS)))
    else:
        f.bind(op.result, Ramp(f.index(op.base), f.index(op.stride), lanes))


@lowers(tir.BroadcastOp)
def lower_broadcast(f: FunctionLowering, op: tir.BroadcastOp) -> None:
    """Of an index, a ramp that does not rise."""
    form, lanes = f.form(op.value), lanes_of(op.result.type)
    if isinstance(form, Index):
        f.bind(op.result, Ramp(form, Index.of(0), lanes))
    else:
        f.bind(op.result, Plain(f.broadcast(f.plain(op.value), lanes)))


@lowers(tir.ShuffleOp)
def lower_shuffle(f: FunctionLowering, op: tir.ShuffleOp) -> None:
    """One element taken out, or lanes picked from one or two vectors; several scalars are put together."""
    picked = [i.data for i in op.indices.data]
    values = f.plains(op.vectors)
    lanes = [lanes_of(v.type) for v in op.vectors]
    if len(values) <= 2 and all(n > 1 for n in lanes) and len(picked) > 1 and len(set(lanes)) == 1:
        type_ = vector_type(element_of(values[0].type), len(picked))
        mask = i64_array(*picked)
        f.bind(op.result, Plain(f.emit(vector.ShuffleOp, (values[0], values[-1]), type_, {"mask": mask})))
        return
    element = element_of(values[0].type)

    def take(position: int) -> SSAValue:
        for value, count in zip(values, lanes, strict=True):
            if position < count:
                if count == 1:
                    return value
                return f.append(vector.ExtractOp(value, [position], element)).results[0]
            position -= count
        raise error_at(op, f"T.Shuffle picks element {position} beyond its vectors")

    if len(picked) == 1:
        f.bind(op.result, Plain(take(picked[0])))
        return
    total = f.constant(0, vector_type(element, len(picked)))
    for lane, position in enumerate(picked):
        total = f.append(vector.InsertOp(take(position), total, [lane])).results[0]
    f.bind(op.result, Plain(total))
