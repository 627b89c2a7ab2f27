"""Lowers `math` to `llvm`: to instructions where LLVM has them, otherwise to calls of functions.

A function that `libm/float32` has becomes one private function per number of lanes, `mirstack.exp.v16f32`, that LLVM
inlines (`libm/table_lookup` has some for processors that look up tables in registers); f16 and bf16 go by way of f32. In f64 the C
library's functions are called, lane by lane, except for those of `libm/float64`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import llvm, math
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    FloatData,
    IntegerType,
    StringAttr,
    UnitAttr,
    f32,
    f64,
    i1,
    i16,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects import llvm_ext, math_ext
from ....support.target import Target, named
from ..libm.float32 import BINARY, INF, UNARY, WITHOUT_FMA
from ..libm.float64 import WIDE
from ..libm.fma_functions import NARROW, WIDE_NEAR, near
from ..libm.fma_functions import WIDE as WIDE_WITH_FMA
from ..libm.lane_expr import Float, usually
from ..libm.table_lookup import tabled
from ..text.ir_text import mangled_type
from .arith_to_llvm import divide, fastmath_of, in_f32, integer_to_float, resize_float
from .builder import WRAPS, Builder
from .converter import Converter, HandlerTable
from .types import element_of, lanes, with_element

TABLE = HandlerTable()

INSTRUCTIONS: dict[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.CeilOp: "ceil",
    math.CopySignOp: "copysign",
    math.FloorOp: "floor",
    math.FmaOp: "fma",
    math.RoundEvenOp: "roundeven",
    math.RoundOp: "round",
    math.SqrtOp: "sqrt",
    math.TruncOp: "trunc",
}

C_NAMES = {"powf": "pow"}
"""C's name of an f64 function where MLIR has another."""


@TABLE.on(*INSTRUCTIONS)
def convert_instruction(c: Converter, op: Operation) -> None:
    """Lowers functions that processors have."""
    flags = fastmath_of(op.properties.get("fastmath"))
    name = INSTRUCTIONS[type(op)]
    operands = c.operands(op)
    type_ = operands[0].type
    element = element_of(type_)
    if name == "fabs" and isinstance(element, Float16Type | BFloat16Type):
        c.bind(op.results[0], _without_sign(c, operands[0]))
    elif name in EXACT_IN_F32 and isinstance(element, Float16Type):
        # Of f16, LLVM takes vectors to pieces for these.
        wide = with_element(type_, f32)
        (value,) = (resize_float(c, operand, wide) for operand in operands)
        result = c.compute(name, [value], wide, flags)
        # Rounded to whole numbers the value keeps its sign: to say so keeps LLVM from making a function of f16 of it again.
        result = c.compute("copysign", [result, value], wide) if name != "sqrt" else result
        c.bind(op.results[0], resize_float(c, result, type_))
    else:
        c.bind(op.results[0], in_f32(c, operands, lambda values: c.compute(name, values, values[0].type, flags)))


EXACT_IN_F32 = frozenset(["ceil", "floor", "roundeven", "round", "sqrt", "trunc"])
"""Functions of f16 that may be computed in f32 and rounded again: whole numbers are not rounded, and a root of f16 that is rounded to
the more than twice as many bits of f32 is as far from the middle of two f16 as it was."""


def _without_sign(c: Converter, value: SSAValue) -> SSAValue:
    """Returns the magnitude of a float of 16 bits."""
    bits = with_element(value.type, i16)
    rest = c.emit(llvm.AndOp, (c.emit(llvm.BitcastOp, (value,), bits), c.constant((1 << 15) - 1, bits)), bits)
    return c.emit(llvm.BitcastOp, (rest,), value.type)


LIBRARY: tuple[type[Operation], ...] = (
    *(math.AcosOp, math.AcoshOp, math.AsinOp, math.AsinhOp, math.Atan2Op, math.AtanOp, math.AtanhOp, math.CbrtOp),
    *(math.CosOp, math.CoshOp, math.ErfOp, math.Exp2Op, math.ExpM1Op, math.ExpOp, math.Log10Op, math.Log1pOp),
    *(math.Log2Op, math.LogOp, math.PowFOp, math.RsqrtOp, math.SinOp, math.SinhOp, math.TanOp, math.TanhOp),
    math_ext.SigmoidOp,
)


@TABLE.on(*LIBRARY)
def convert_library(c: Converter, op: Operation) -> None:
    """Lowers functions that are computed by formulas."""
    c.bind(op.results[0], elementary(c, op.name.partition(".")[2], c.operands(op)))


def elementary(c: Converter, name: str, operands: Sequence[SSAValue]) -> SSAValue:
    """Returns the elementary function `name`, as `math` calls it, of floats of any width."""
    type_ = operands[0].type
    element = element_of(type_)
    if c.strict_math:
        return _of_double(c, name, operands)
    if name == "powf" and isinstance(element, Float32Type | Float64Type):
        power = _simple_power(Float(c, operands[0]), operands[1])
        if power is not None:
            return power.value
    if isinstance(element, Float64Type):
        return _in_f64(c, name, operands)
    if not isinstance(element, Float32Type):
        wide = with_element(type_, f32)
        result = elementary(c, name, [resize_float(c, operand, wide) for operand in operands])
        return resize_float(c, result, type_)
    target = named(c.cpu)
    symbol = c.use_library(f"mirstack.{name}.{mangled_type(type_)}", lambda: library_function(name, type_, target))
    result = c.call(symbol, operands, type_)
    assert result is not None
    return result


def _of_double(c: Converter, name: str, operands: Sequence[SSAValue]) -> SSAValue:
    """Calls C's function in f64 and rounds to f32, then to 16 bits: on every processor as interpreted."""
    type_ = operands[0].type
    element = element_of(type_)
    if not isinstance(element, Float64Type):
        wide = with_element(type_, f64 if isinstance(element, Float32Type) else f32)
        return resize_float(c, _of_double(c, name, [resize_float(c, each, wide) for each in operands]), type_)
    if name in ("rsqrt", "sigmoid"):
        x = Float(c, operands[0])
        divisor = x.sqrt() if name == "rsqrt" else Float(c, _of_double(c, "exp", [(-x).value])) + 1.0
        return (1.0 / divisor).value
    symbol = _of_c(c, name, len(operands))
    if lanes(type_):
        return _by_lanes(c, symbol, operands)
    result = c.call(symbol, operands, f64)
    assert result is not None
    return result


def _simple_power(x: Float, exponent: SSAValue) -> Float | None:
    """x to a constant power that takes an instruction or two, None for other powers."""
    owner = exponent.owner
    match owner.value if isinstance(owner, llvm.ConstantOp) else None:
        case FloatAttr(value=FloatData(data=number)):
            pass
        case DenseIntOrFPElementsAttr() as dense if dense.is_splat():
            number = dense.get_values()[0]
        case _:
            return None
    if number == 1.0:
        return x
    if number == 2.0:
        return x * x
    if number == -1.0:
        return 1.0 / x
    if number == 0.5:
        # Unlike sqrt, pow returns 0 for -0 and infinity for -infinity.
        return x.equals(-INF).choose(INF, (x + 0.0).sqrt())
    return None


def library_function(name: str, type_: Attribute, target: Target) -> llvm.FuncOp:
    """Builds the f32 function `name` for scalars or vectors by the formula that suits the processor."""
    symbol = f"mirstack.{name}.{mangled_type(type_)}"
    builder = Builder()
    unary = {**NARROW, **tabled(target, type_)}.get(name) if target.has_fma else WITHOUT_FMA.get(name)

    def body(arguments: Sequence[SSAValue]) -> SSAValue:
        values = [Float(builder, argument) for argument in arguments]
        return ((unary or UNARY[name])(values[0]) if len(values) == 1 else BINARY[name](values[0], values[1])).value

    return inline_function(builder, symbol, [type_] * (2 if name in BINARY else 1), type_, body)


def inline_function(
    builder: Builder,
    symbol: str,
    inputs: Sequence[Attribute],
    output: Attribute,
    body: Callable[[Sequence[SSAValue]], SSAValue],
) -> llvm.FuncOp:
    """Returns a private function that is inlined wherever it is called."""
    entry = Block(arg_types=inputs)
    region = Region(entry)
    builder.start_function(entry)
    builder.append(llvm.ReturnOp(body(entry.args)))
    return llvm.FuncOp(
        symbol,
        llvm.LLVMFunctionType(inputs, output),
        llvm.LinkageAttr("internal"),
        body=region,
        other_props={
            "no_unwind": UnitAttr(),
            "passthrough": ArrayAttr([StringAttr("alwaysinline"), StringAttr("memory(none)")]),
        },
    )


def _in_f64(c: Converter, name: str, operands: Sequence[SSAValue]) -> SSAValue:
    """Calls the C library for one lane after the other, for functions without a formula."""
    type_ = operands[0].type
    if name == "rsqrt":
        root = c.compute("sqrt", operands, type_)
        return c.emit(llvm.FDivOp, (c.constant(1.0, type_), root), type_, {"fastmathFlags": fastmath_of(None)})
    if name == "sigmoid":
        x = Float(c, operands[0])
        power = Float(c, _in_f64(c, "exp", [(-abs(x)).value]))
        return ((x < 0.0).choose(power, 1.0) / (power + 1.0)).value
    if not lanes(type_):
        result = c.call(_of_c(c, name, len(operands)), operands, f64)
        assert result is not None
        return result
    formula = _wide_formula(c, name)
    if formula is None:
        symbol = _of_c(c, name, len(operands))
        return _by_lanes(c, symbol, operands)
    symbol = c.use_library(f"mirstack.{name}.{mangled_type(type_)}", lambda: _wide_function(name, formula, type_))
    result = c.call(symbol, operands, type_)
    assert result is not None
    return result


def _of_c(c: Converter, name: str, count: int) -> str:
    """Declares C's function of `count` numbers; returns its name."""
    return c.declare(C_NAMES.get(name, name), [f64] * count, f64)


def _wide_formula(c: Converter, name: str) -> Callable[[Float], Float] | None:
    """Returns the formula of an f64 function for vectors; None where there is none for this processor."""
    formula = WIDE.get(name)
    if formula is not None or not named(c.cpu).has_fma:
        return formula
    close = WIDE_NEAR.get(name)
    if close is None:
        return WIDE_WITH_FMA.get(name)
    symbol = _of_c(c, name, 1)

    def anywhere(x: Float) -> Float:
        return usually(near(x), lambda: close(x), lambda: Float(x.b, _by_lanes(x.b, symbol, [x.value])))

    return anywhere


def _by_lanes(b: Builder, symbol: str, operands: Sequence[SSAValue]) -> SSAValue:
    """Calls C's function of f64, or of f32, lane by lane."""
    type_ = operands[0].type
    element = element_of(type_)
    vector = b.poison(type_)
    for lane in range(lanes(type_)):
        index = b.i64(lane)
        scalars = [b.emit(llvm_ext.ExtractElementOp, (operand, index), element) for operand in operands]
        result = b.call(symbol, scalars, element)
        assert result is not None
        vector = b.emit(llvm.InsertElementOp, (vector, result, index), type_)
    return vector


def _wide_function(name: str, formula: Callable[[Float], Float], type_: Attribute) -> llvm.FuncOp:
    """Returns the f64 function `name` for vectors of `type_`."""
    builder = Builder()

    def body(arguments: Sequence[SSAValue]) -> SSAValue:
        return formula(Float(builder, arguments[0])).value

    return inline_function(builder, f"mirstack.{name}.{mangled_type(type_)}", [type_], type_, body)


# The remainder


@TABLE.on(math_ext.RemFOp)
def convert_remf(c: Converter, op: math_ext.RemFOp) -> None:
    """Lowers C's fmod, which is exact: f16 and bf16 in f32, vectors by a formula where all lanes allow."""
    lhs, rhs = c.operands(op)
    type_ = lhs.type
    if not isinstance(element_of(type_), Float32Type | Float64Type):
        wide = with_element(type_, f32)
        result = _remainder(c, resize_float(c, lhs, wide), resize_float(c, rhs, wide))
        c.bind(op.result, resize_float(c, result, type_))
        return
    c.bind(op.result, _remainder(c, lhs, rhs))


def _remainder(c: Converter, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    type_ = lhs.type
    element = element_of(type_)
    symbol = c.declare("fmod" if isinstance(element, Float64Type) else "fmodf", [element] * 2, element)
    if not lanes(type_):
        result = c.call(symbol, (lhs, rhs), type_)
    elif not named(c.cpu).has_fma:
        return _by_lanes(c, symbol, (lhs, rhs))
    else:
        function = f"mirstack.remf.{mangled_type(type_)}"
        result = c.call(
            c.use_library(function, lambda: _remainder_function(function, symbol, type_)), (lhs, rhs), type_
        )
    assert result is not None
    return result


def _remainder_function(name: str, symbol: str, type_: Attribute) -> llvm.FuncOp:
    """Builds the remainder of vectors: a - q * b by one fused operation; hard lanes are C's.

    q is the truncated quotient. Where the remainder is less than b, q is right, or one too large: a and b, if a is not less, are
    multiples of b's last place, and so is a - q * b, which is then exactly a float, and so is the sum with b where it is below 0.
    A remainder that is not less than b is not rounded to less. A quotient, b or a that is infinite, 0 or NaN never leads to less
    than b.
    """
    builder = Builder()

    def body(arguments: Sequence[SSAValue]) -> SSAValue:
        dividend, divisor = (Float(builder, argument) for argument in arguments)
        a, b = abs(dividend), abs(divisor)
        whole = (a / b).unary("trunc")
        rest = Float(builder, builder.compute("fma", ((-whole).value, b.value, a.value), type_))

        def near() -> Float:
            return (rest + (rest < 0.0).choose(b, 0.0)).with_sign_of(dividend)

        def anywhere() -> Float:
            return Float(builder, _by_lanes(builder, symbol, arguments))

        return usually(abs(rest) < b, near, anywhere).value

    return inline_function(builder, name, [type_, type_], type_, body)


# Integers


@TABLE.on(math.AbsIOp)
def convert_absi(c: Converter, op: math.AbsIOp) -> None:
    """Lowers the magnitude; that of the least number is itself."""
    (value,) = c.operands(op)
    c.bind(op.result, c.compute("abs", (value, c.constant(0, i1)), value.type))


@TABLE.on(math.CountLeadingZerosOp, math.CountTrailingZerosOp)
def convert_count_zeros(c: Converter, op: Operation) -> None:
    """Lowers zero bits before the first, or after the last, that is set; of 0, the width."""
    (value,) = c.operands(op)
    name = op.name.removeprefix("math.")
    c.bind(op.results[0], c.compute(name, (value, c.constant(0, i1)), value.type))


@TABLE.on(math.CtPopOp)
def convert_popcount(c: Converter, op: math.CtPopOp) -> None:
    """Lowers a count of the bits that are set."""
    (value,) = c.operands(op)
    c.bind(op.result, c.compute("ctpop", (value,), value.type))


@TABLE.on(math.FPowIOp)
def convert_fpowi(c: Converter, op: math.FPowIOp) -> None:
    """Lowers a float to a whole power."""
    base, exponent = c.operands(op)
    c.bind(op.result, elementary(c, "powf", (base, integer_to_float(c, exponent, base.type, True))))


@TABLE.on(math.IPowIOp, math_ext.IPowUIOp)
def convert_integer_power(c: Converter, op: math.IPowIOp | math_ext.IPowUIOp) -> None:
    """Lowers an integer to an integer's power; a negative power of anything but 1 and -1 is 0."""
    base, exponent = c.operands(op)
    type_, signed = base.type, isinstance(op, math.IPowIOp)
    symbol = f"mirstack.{'ipowi' if signed else 'ipowui'}.{mangled_type(type_)}"
    result = c.call(c.use_library(symbol, lambda: integer_power(type_, symbol, signed)), (base, exponent), type_)
    assert result is not None
    c.bind(op.result, result)


def integer_power(type_: Attribute, symbol: str, signed: bool) -> llvm.FuncOp:
    """Builds an integer power by squaring, one step per bit of the exponent."""
    element = element_of(type_)
    assert isinstance(element, IntegerType)
    b = Builder()

    def body(arguments: Sequence[SSAValue]) -> SSAValue:
        base, exponent = arguments
        zero, one = b.constant(0, type_), b.constant(1, type_)
        total, square = one, base
        for bit in range(element.width.data):
            is_set = b.icmp("ne", b.emit(llvm.AndOp, (exponent, b.constant(1 << bit, type_)), type_), zero)
            total = b.select(is_set, b.emit(llvm.MulOp, (total, square), type_, WRAPS), total)
            square = b.emit(llvm.MulOp, (square, square), type_, WRAPS)
        if not signed:
            return total
        # 1 / base for a negative exponent: ±1 to an even or odd power, as computed above, and 0 for all else.
        reciprocal = divide(b, llvm.SDivOp, one, base, None)
        is_unit = b.icmp("ne", reciprocal, zero)
        negative = b.icmp("slt", exponent, zero)
        return b.select(negative, b.select(is_unit, total, zero), total)

    return inline_function(b, symbol, [type_, type_], type_, body)
