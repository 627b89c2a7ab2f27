"""Lowers calls of intrinsics, each by a rule of its name or as one op of `math`.

Not rules on TIR: what an intrinsic becomes has no text there, as the rounding flags of an op, a shift whose count is known to be in range
(`q_multiply_shift`), or float32 arithmetic for float16; and an index keeps its range, which a new op of TIR would not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StridedLayoutAttr,
    StringAttr,
    VectorType,
    f32,
    i16,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import math_ext, tir, vector_ext
from ...dialects.tir.intrinsics import HORIZONTAL, check_call
from ...dialects.tir.scalar_ops import INTRINSICS, NUMBERS
from ...dialects.tir.types import element_of, is_unsigned, lanes_of, limit, type_to_dtype, with_lanes
from ...support.diagnostics import MirError, error_at
from ...support.text import counted
from ..externs import refused
from .emitter import ANY_ZERO, FASTMATH_NONE, NO_FLAGS, REASSOCIABLE
from .expressions import MLIR_OPS, bind_choice, convert, is_float, may_wrap
from .function import FunctionLowering, is_index_dtype
from .values import DYNAMIC, Index, Plain, Pointer, Ramp, convert_type

# Intrinsics that are one op of MLIR, on floats and on integers.
MATH_OPS = {row.name: MLIR_OPS[row.mlir_float] for row in INTRINSICS.values() if row.mlir_float in MLIR_OPS}
INTEGER_OPS = {row.name: MLIR_OPS[row.mlir_signed] for row in INTRINSICS.values() if row.mlir_signed}
# Float intrinsics that libm has and `math` has not; called lane by lane, in float32 or float64.
LIBM = frozenset(row.name for row in INTRINSICS.values() if row.mlir_float == "libm")
# These are exact in any width: no detour through float32.
EXACT = frozenset(row.name for row in INTRINSICS.values() if row.operands is NUMBERS and row.arity == 1)

_GPU = (
    "tvm_storage_sync", "tvm_thread", "tvm_warp", "ptx_", "mma_", "tvm_mma", "tvm_load_matrix", "tvm_fill", "cuda", "simdgroup",
)  # fmt: skip
"""Beginnings of the names of intrinsics that need a GPU."""

Rule = Callable[[FunctionLowering, tir.CallOp], None]


def lower_call(f: FunctionLowering, op: tir.CallOp) -> None:
    """One call; raises MirError for an intrinsic that compiled code for a CPU cannot have."""
    name = op.intrinsic.data
    if op.callee is not None:
        _call_function(f, op)
        return
    check_call(name, op.arguments, None if op.result is None else op.result.type, op)
    rule = RULES.get(name)
    if rule is not None:
        rule(f, op)
    elif name in INTEGER_OPS and op.result is not None:
        values = f.plains(op.arguments)
        computed = f.emit(INTEGER_OPS[name], values, values[0].type)
        f.bind(op.result, Plain(convert(f, computed, op.arguments[0].type, op.result.type)))
    elif name in MATH_OPS and op.result is not None and is_float(op.result.type):
        kind = MATH_OPS[name]
        # Those of the house have no fast-math flags.
        flags = None if kind.name.startswith("math_ext.") else FASTMATH_NONE
        value = _in_wide_float(f, op, name in EXACT, lambda args, type_: f.emit(kind, args, type_, flags))
        f.bind(op.result, Plain(value))
    elif name in MATH_OPS and op.result is not None:
        _integer_math(f, op)
    elif name in LIBM and op.result is not None:
        value = _in_wide_float(f, op, False, lambda args, type_: _call_libm(f, op, name, args, type_))
        f.bind(op.result, Plain(value))
    else:
        raise error_at(
            op,
            f"the intrinsic 'T.{name}' cannot be compiled for a CPU",
            "synchronization, warp and tensor-core intrinsics need a GPU target"
            if name.startswith(_GPU)
            else "no lowering knows it",
        )


def _in_wide_float(
    f: FunctionLowering,
    op: tir.CallOp,
    exact: bool,
    compute: Callable[[Sequence[SSAValue], Attribute], SSAValue],
) -> SSAValue:
    """Computes in float32 what has no code of its own in float16 and bfloat16, and rounds once."""
    args = f.plains(op.arguments)
    type_ = args[0].type
    if exact or not isinstance(element_of(type_), Float16Type | BFloat16Type):
        return compute(args, type_)
    wide = with_lanes(f32, lanes_of(type_))
    result = compute([f.emit(arith.ExtFOp, (a,), wide) for a in args], wide)
    return f.emit(arith.TruncFOp, (result,), type_)


def _nextafter(f: FunctionLowering, op: tir.CallOp) -> None:
    """The next number of the dtype towards another: of float16 and bfloat16, whose bits are counted, too."""
    assert op.result is not None
    x, y = f.plains(op.arguments)
    type_ = x.type
    if not isinstance(element_of(type_), Float16Type | BFloat16Type):
        f.bind(op.result, Plain(_call_libm(f, op, "nextafter", (x, y), type_)))
        return
    lanes = lanes_of(type_)
    wide, counted = with_lanes(f32, lanes), with_lanes(i16, lanes)
    here, there = (f.emit(arith.ExtFOp, (each,), wide) for each in (x, y))
    bits, other = (f.emit(arith.BitcastOp, (each,), counted) for each in (x, y))
    # Sign and magnitude: up from a negative number is down in the count.
    negative = f.compare("slt", bits, f.constant(0, counted))
    away = f.compare("ne", f.compare_floats("olt", here, there), negative)
    step = f.select(away, f.constant(1, counted), f.constant(-1, counted))
    moved = f.emit(arith.AddiOp, (bits, step), counted, NO_FLAGS)
    sign = f.emit(arith.AndIOp, (other, f.constant(-(1 << 15), counted)), counted)
    least = f.emit(arith.OrIOp, (sign, f.constant(1, counted)), counted)
    moved = f.select(f.compare_floats("oeq", here, f.constant(0.0, wide)), least, moved)
    found = f.select(f.compare_floats("oeq", here, there), other, moved)
    nan = f.emit(arith.TruncFOp, (f.emit(arith.AddfOp, (here, there), wide, FASTMATH_NONE),), type_)
    result = f.emit(arith.BitcastOp, (found,), type_)
    f.bind(op.result, Plain(f.select(f.compare_floats("uno", here, there), nan, result)))


def _exp10(f: FunctionLowering, op: tir.CallOp) -> None:
    """10 to a power, exact where `pow` is: C's exp10 of 3 is more than 1000."""
    assert op.result is not None

    def power(args: Sequence[SSAValue], type_: Attribute) -> SSAValue:
        return f.emit(math.PowFOp, (f.constant(10.0, type_), *args), type_, FASTMATH_NONE)

    f.bind(op.result, Plain(_in_wide_float(f, op, False, power)))


def _call_libm(f: FunctionLowering, op: tir.CallOp, name: str, args: Sequence[SSAValue], type_: Attribute) -> SSAValue:
    from xdsl.dialects import vector

    element = element_of(type_)
    symbol = name if isinstance(element, Float64Type) else f"{name}f"
    f.globals.declare(op, symbol, [element] * len(args), element)
    if not isinstance(type_, VectorType):
        return f.append(func.CallOp(symbol, args, [element])).results[0]
    total = f.constant(0, type_)
    for lane in range(lanes_of(type_)):
        parts = [f.append(vector.ExtractOp(a, [lane], element)).results[0] for a in args]
        total = f.append(
            vector.InsertOp(f.append(func.CallOp(symbol, parts, [element])).results[0], total, [lane])
        ).results[0]
    return total


def _integer_math(f: FunctionLowering, op: tir.CallOp) -> None:
    """abs, the roundings, and powers of integers."""
    assert op.result is not None
    name, type_ = op.intrinsic.data, op.result.type
    rule = INTRINSICS[name].numpy_integer
    if rule == "identity" or (rule == "absolute" and is_unsigned(type_)):
        f.bind(op.result, f.form(op.arguments[0]))
    elif rule == "absolute":
        value = f.plain(op.arguments[0])
        negated = f.emit(arith.SubiOp, (f.constant(0, value.type), value), value.type, NO_FLAGS)
        f.bind(op.result, Plain(f.emit(arith.MaxSIOp, (value, negated), value.type)))
    else:
        base, exponent = f.plains(op.arguments)
        kind = math_ext.IPowUIOp if is_unsigned(type_) else math.IPowIOp
        f.bind(op.result, Plain(f.emit(kind, (base, exponent), base.type)))


# Rules by name


def _identity(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    f.bind(op.result, f.form(op.arguments[0]))


def _shift_left(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    a, b = f.form(op.arguments[0]), f.form(op.arguments[1])
    if isinstance(a, Index) and isinstance(b, Index) and isinstance(b.value, int) and 0 <= b.value < 32:
        factor = Index.of(1 << b.value)
        if not may_wrap(f, op, tir.MulOp, a, factor):
            f.bind(op.result, f.index_mul(a, factor))
            return
    f.bind(op.result, Plain(_shift(f, op, arith.ShLIOp)))


def _shift_right(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    a, b = f.form(op.arguments[0]), f.form(op.arguments[1])
    if isinstance(a, Index) and isinstance(b, Index) and isinstance(b.value, int) and 0 <= b.value < 32:
        f.bind(op.result, f.index_floordiv(a, Index.of(1 << b.value)))
        return
    unsigned = is_unsigned(op.result.type)
    f.bind(op.result, Plain(_shift(f, op, arith.ShRUIOp if unsigned else arith.ShRSIOp)))


def _shift(f: FunctionLowering, op: tir.CallOp, kind: type[Operation]) -> SSAValue:
    """Returns a shift by any count.

    By the width or more, or by a negative count, the result is 0, or the sign of an arithmetic shift.
    """
    lhs, rhs = f.plains(op.arguments)
    type_, flags = lhs.type, NO_FLAGS if kind is arith.ShLIOp else None
    element = element_of(type_)
    assert isinstance(element, IntegerType)
    width = element.width.data
    if _is_within(op.arguments[1], width):
        return f.emit(kind, (lhs, rhs), type_, flags)
    if kind is arith.ShRSIOp:
        return f.emit(kind, (lhs, f.emit(arith.MinUIOp, (rhs, f.constant(width - 1, type_)), type_)), type_)
    # A count of one bit is less than a width of 2.
    inside = (
        f.compare("ult", rhs, f.constant(width, type_)) if width > 1 else f.compare("eq", rhs, f.constant(0, type_))
    )
    return f.select(inside, f.emit(kind, (lhs, rhs), type_, flags), f.constant(0, type_))


def _is_within(count: SSAValue, width: int) -> bool:
    """Returns whether a count of bits is a constant that is below the width."""
    owner = count.owner
    if isinstance(owner, tir.BroadcastOp):
        return _is_within(owner.value, width)
    if not isinstance(owner, tir.ConstOp):
        return False
    return isinstance(owner.value, IntegerAttr) and 0 <= owner.value.value.data < width


def _bitwise_not(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    value = f.plain(op.arguments[0])
    f.bind(op.result, Plain(f.emit(arith.XOrIOp, (value, f.constant(-1, value.type)), value.type)))


def _is_nan(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    value = f.plain(op.arguments[0])
    f.bind(op.result, Plain(f.compare_floats("uno", value, value)))


def _copysign(f: FunctionLowering, op: tir.CallOp) -> None:
    """Copies a sign; that of a NaN counts as 0, because which NaN an op computes depends on the processor."""
    assert op.result is not None
    value, sign = f.plains(op.arguments)
    sign = f.select(f.compare_floats("uno", sign, sign), f.constant(0.0, sign.type), sign)
    f.bind(op.result, Plain(f.emit(math.CopySignOp, (value, sign), value.type, FASTMATH_NONE)))


def _against_infinity(predicate: str) -> Rule:
    def rule(f: FunctionLowering, op: tir.CallOp) -> None:
        assert op.result is not None
        value = f.plain(op.arguments[0])
        size = f.emit(math.AbsFOp, (value,), value.type, FASTMATH_NONE)
        f.bind(op.result, Plain(f.compare_floats(predicate, size, f.constant(float("inf"), value.type))))

    return rule


def _horizontal(kind: str) -> Rule:
    """Returns the rule that combines all lanes of a vector, in any order."""

    def rule(f: FunctionLowering, op: tir.CallOp) -> None:
        from xdsl.dialects import vector

        assert op.result is not None
        value = f.plain(op.arguments[0])
        element = op.result.type
        if is_float(element):
            name = {"min": "minimumf", "max": "maximumf"}.get(kind, kind)
        else:
            name = f"{kind}{'ui' if is_unsigned(element) else 'si'}" if kind in ("min", "max") else kind
        properties: dict[str, Attribute] = {"kind": vector.CombiningKindAttr(vector.CombiningKindFlag(name))}
        reorders = is_float(element) and not f.globals.strict_math
        properties |= (REASSOCIABLE if kind in ("add", "mul") else ANY_ZERO) if reorders else FASTMATH_NONE
        result = convert_type(element, op.result)
        f.bind(op.result, Plain(f.emit(vector.ReductionOp, (value,), result, properties)))

    return rule


def _ldexp(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    value, power = f.plains(op.arguments)
    if isinstance(element_of(power.type), IntegerType):
        power = convert(f, power, op.arguments[1].type, op.result.type)
    scale = f.emit(math.Exp2Op, (power,), value.type, FASTMATH_NONE)
    f.bind(op.result, Plain(f.emit(arith.MulfOp, (value, scale), value.type, FASTMATH_NONE)))


def _reinterpret(f: FunctionLowering, op: tir.CallOp) -> None:
    from xdsl.dialects import vector

    assert op.result is not None
    value = f.plain(op.arguments[0])
    type_ = convert_type(op.result.type, op.result)
    if type_ == value.type:
        f.bind(op.result, Plain(value))
    elif isinstance(type_, VectorType):
        f.bind(op.result, Plain(f.emit(vector.BitcastOp, (value,), type_)))
    else:
        f.bind(op.result, Plain(f.emit(arith.BitcastOp, (value,), type_)))


def _vector_dot(f: FunctionLowering, op: tir.CallOp) -> None:
    """T.vector_dot(sums, a, b)."""
    assert op.result is not None
    types = [value.type for value in op.arguments]
    counts = [lanes_of(type_) for type_ in types]
    if counts[0] < 2 or counts[1] != counts[2] or counts[1] % counts[0]:
        raise error_at(
            op,
            f"T.vector_dot takes sums and two vectors with a group of lanes for each, not {', '.join(map(type_to_dtype, types))}",
            "such as T.vector_dot(int32x16, uint8x64, int8x64)",
        )
    if len({is_float(type_) for type_ in types}) != 1:
        raise error_at(op, "T.vector_dot takes integers, or floats", "cast one side")
    sums, a, b = f.plains(op.arguments)
    dot = vector_ext.DotOp(sums, a, b, (is_unsigned(types[1]), is_unsigned(types[2])))
    f.bind(op.result, Plain(f.append(dot).result))


def _ceildiv(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    if is_index_dtype(op.result.type):
        a, b = f.index(op.arguments[0]), f.index(op.arguments[1])
        f.bind(op.result, f.index_floordiv(f.index_add(a, f.index_add(b, Index.of(-1))), b))
        return
    lhs, rhs = f.plains(op.arguments)
    kind = arith.CeilDivUIOp if is_unsigned(op.result.type) else arith.CeilDivSIOp
    f.bind(op.result, Plain(f.emit(kind, (lhs, rhs), lhs.type)))


def _q_multiply_shift(f: FunctionLowering, op: tir.CallOp) -> None:
    """Returns (x << max(s, 0)) * y >> q + max(-s, 0), rounded half up, in 64 bits."""
    assert op.result is not None
    x, y, q, s = _widened(f, op, op.arguments)
    wide = x.type
    zero = f.constant(0, wide)
    left = f.emit(arith.MaxSIOp, (s, zero), wide)
    right = f.emit(arith.MaxSIOp, (f.emit(arith.SubiOp, (zero, s), wide, NO_FLAGS), zero), wide)
    total = f.emit(arith.AddiOp, (q, right), wide, NO_FLAGS)
    shifted = f.emit(arith.ShLIOp, (x, left), wide, NO_FLAGS)
    product = f.emit(arith.MuliOp, (shifted, y), wide, NO_FLAGS)
    f.bind(op.result, Plain(convert(f, _rounded_half_up(f, product, total), wide, op.result.type)))


def _q_multiply_shift_per_axis(f: FunctionLowering, op: tir.CallOp) -> None:
    """Returns (x << left) * y >> q + right, rounded half up, in 64 bits; flags say which shifts apply."""
    assert op.result is not None
    x, y, left, right, q = _widened(f, op, op.arguments[:5])
    wide = x.type
    zero = f.constant(0, wide)
    flags = (
        f.select(flag, shift, zero) for flag, shift in zip(f.plains(op.arguments[5:]), (left, right), strict=False)
    )
    left, right = (*flags, *(left, right)[len(op.arguments) - 5 :])
    total = f.emit(arith.AddiOp, (q, right), wide, NO_FLAGS)
    product = f.emit(arith.MuliOp, (f.emit(arith.ShLIOp, (x, left), wide, NO_FLAGS), y), wide, NO_FLAGS)
    f.bind(op.result, Plain(convert(f, _rounded_half_up(f, product, total), wide, op.result.type)))


def _widened(f: FunctionLowering, op: tir.CallOp, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Integers as i64, each in as many lanes as the op's result has."""
    assert op.result is not None
    lanes = lanes_of(op.result.type)
    values = [convert(f, f.plain(each), each.type, with_lanes(i64, lanes_of(each.type))) for each in arguments]
    return [value if lanes_of(value.type) == lanes else f.broadcast(value, lanes) for value in values]


def _rounded_half_up(f: FunctionLowering, product: SSAValue, bits: SSAValue) -> SSAValue:
    """(product + (1 << bits - 1)) >> bits; of no bits the product."""
    wide = product.type
    one = f.constant(1, wide)
    half = f.emit(arith.ShRUIOp, (f.emit(arith.ShLIOp, (one, bits), wide, NO_FLAGS), one), wide)
    return f.emit(arith.ShRSIOp, (f.emit(arith.AddiOp, (product, half), wide, NO_FLAGS), bits), wide)


def _limit(which: str) -> Rule:
    def rule(f: FunctionLowering, op: tir.CallOp) -> None:
        assert op.result is not None
        type_ = op.result.type
        number, element = limit(which, type_), convert_type(type_, op.result)
        f.bind(op.result, Index.of(int(number)) if is_index_dtype(type_) else Plain(f.constant(number, element)))

    return rule


def _if_then_else(f: FunctionLowering, op: tir.CallOp) -> None:
    assert op.result is not None
    bind_choice(f, op.result, f.plain(op.arguments[0]), op.arguments[1], op.arguments[2])


def early_return(op: tir.CallOp) -> MirError:
    """Returns the error for a return that is not the last statement of a function."""
    return error_at(
        op, "T.ret inside a branch or loop cannot be compiled", "return as the last statement of the function"
    )


def _ret(f: FunctionLowering, op: tir.CallOp) -> None:
    """The function's result, where it is the last thing that the function does."""
    parent = op.parent_op()
    following = op.next_op
    while isinstance(following, tir.EvaluateOp) and following.value is op.result:
        following = following.next_op
    if not isinstance(parent, tir.PrimFuncOp) or following is not None:
        raise early_return(op)
    f.returned = f.plain(op.arguments[0])
    if op.result is not None:
        f.bind(op.result, f.form(op.arguments[0]))


def _nothing(f: FunctionLowering, op: tir.CallOp) -> None:
    """A hint or a marker; where its value is asked for, that is 0."""
    if op.result is not None and isinstance(op.result.type, IntegerType):
        type_ = op.result.type
        zero = Index.of(0) if is_index_dtype(type_) else Plain(f.constant(0, convert_type(type_, op.result)))
        f.bind(op.result, zero)


# Addresses of elements, and calls of functions


def _at_offset(f: FunctionLowering, pointer: Pointer, element: Attribute, offset: Index) -> Pointer:
    """Returns the address `offset` elements further on."""
    base = f.view(pointer, element)
    if offset.value == 0:
        return Pointer(base, element)
    type_ = MemRefType(element, [DYNAMIC], StridedLayoutAttr([1], None))
    moved = memref.ReinterpretCastOp.from_dynamic(
        base, [f.ssa(offset)], [f.ssa(Index.of(1))], [f.ssa(Index.of(1))], type_
    )
    return Pointer(f.cast(f.append(moved).result, LLVMPointerType()), None)


def _address_of(f: FunctionLowering, op: tir.CallOp) -> None:
    """The address of an element, from the load that names it."""
    assert op.result is not None
    load = op.arguments[0].owner
    if not isinstance(load, tir.LoadOp):
        raise error_at(op, "T.address_of takes an element of a buffer, like T.address_of(A[0])")
    buffer = f.buffer(load.buffer)
    indices = [f.form(i) for i in load.indices]
    starts = [i.base if isinstance(i, Ramp) else f.index(v) for i, v in zip(indices, load.indices, strict=True)]
    offset = f.index_mul(f.linear(buffer, starts), Index.of(buffer.lanes))
    f.bind(op.result, _at_offset(f, Pointer(buffer.base, buffer.element), buffer.element, offset))


def _access_ptr(f: FunctionLowering, op: tir.CallOp) -> None:
    """tvm_access_ptr(_type_annotation, data, offset, extent, rw_mask)."""
    assert op.result is not None
    annotation, data, offset = op.arguments[:3]
    pointer = f.form(data)
    owner = annotation.owner
    kind = annotation.type if not isinstance(owner, tir.CallOp) or owner.result is None else owner.result.type
    if not isinstance(pointer, Pointer):
        raise error_at(op, "T.tvm_access_ptr takes a buffer's data")
    element = convert_type(element_of(kind), op.result) if not isinstance(kind, tir.HandleType) else pointer.element
    if element is None:
        raise error_at(op, "the element type of this T.tvm_access_ptr is not known")
    f.bind(op.result, _at_offset(f, pointer, element, f.index(offset)))


def _type_annotation(f: FunctionLowering, op: tir.CallOp) -> None:
    """Only its type is read."""


def _call_extern(f: FunctionLowering, op: tir.CallOp) -> None:
    """A C function that the process provides: numbers by value, handles as addresses."""
    if not op.arguments or not isinstance(owner := op.arguments[0].owner, tir.ConstOp):
        raise error_at(op, "T.call_extern needs the function's name as a string")
    if not isinstance(owner.value, StringAttr):
        raise error_at(op, "T.call_extern needs the function's name as a string")
    name = owner.value.data
    if not name.isidentifier():
        raise refused(op, name)
    args = [f.plain(a) for a in op.arguments[1:]]
    result = None if op.result is None else convert_type(op.result.type, op.result)
    f.globals.declare(op, name, [a.type for a in args], result)
    call = f.append(func.CallOp(name, args, [] if result is None else [result]))
    if op.result is not None:
        value = call.results[0]
        f.bind(op.result, Pointer(value, None) if isinstance(value.type, LLVMPointerType) else Plain(value))


def _call_function(f: FunctionLowering, op: tir.CallOp) -> None:
    """Calls a function of the module: buffers are passed as addresses, symbolic sizes after them."""
    assert op.callee is not None
    name = op.callee.root_reference.data
    callee = f.globals.functions.get(name)
    if callee is None:
        raise error_at(op, f"function '{name}' is not defined in this module")
    if callee.symbols:
        raise error_at(
            op,
            f"function '{name}' has symbolic sizes and cannot be called from compiled code",
            "inline it, or give it static shapes",
        )
    if len(callee.inputs) != len(op.arguments):
        raise error_at(
            op, f"function '{name}' takes {counted(len(callee.inputs), 'argument')}, not {len(op.arguments)}"
        )
    args: list[SSAValue] = []
    for argument, type_ in zip(op.arguments, callee.inputs, strict=True):
        if isinstance(argument.type, tir.BufferType):
            args.append(f.cast(f.buffer(argument).base, type_))
            continue
        form = f.form(argument)
        args.append(f.cast(form.base, type_) if isinstance(form, Pointer) else f.plain(argument))
    call = f.append(func.CallOp(name, args, [] if callee.output is None else [callee.output]))
    if op.result is not None:
        if callee.output is None:
            raise error_at(op, f"function '{name}' returns nothing, but its value is used")
        f.bind(op.result, Plain(call.results[0]))


RULES: dict[str, Rule] = {
    "likely": _identity,
    "tvm_thread_invariant": _identity,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "bitwise_not": _bitwise_not,
    "exp10": _exp10,
    "nextafter": _nextafter,
    "isnan": _is_nan,
    "copysign": _copysign,
    "isinf": _against_infinity("oeq"),
    "isfinite": _against_infinity("olt"),
    "ldexp": _ldexp,
    **{name: _horizontal(name.removeprefix("vector_reduce_")) for name in HORIZONTAL},
    "reinterpret": _reinterpret,
    "vector_dot": _vector_dot,
    "ceildiv": _ceildiv,
    "q_multiply_shift": _q_multiply_shift,
    "q_multiply_shift_per_axis": _q_multiply_shift_per_axis,
    "min_value": _limit("min_value"),
    "max_value": _limit("max_value"),
    "infinity": _limit("infinity"),
    "if_then_else": _if_then_else,
    "ret": _ret,
    "assume": _nothing,
    "undef": _nothing,
    "start_profile_intrinsic": _nothing,
    "end_profile_intrinsic": _nothing,
    "address_of": _address_of,
    "tvm_access_ptr": _access_ptr,
    "type_annotation": _type_annotation,
    "call_extern": _call_extern,
    "call_pure_extern": _call_extern,
}
"""Intrinsics by name, where not one `math` op."""
