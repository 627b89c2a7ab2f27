"""Defines the table of scalar operators and pure intrinsics: text, dtypes, meaning, lowering, cost.

    ScalarOp("nextafter", arity=2, operands=FLOATS, numpy="own_dtype intrinsics.nextafter", mlir_float="libm")

is all that `T.nextafter(x, y)` needs: TVMScript reads and prints it, `te.nextafter` builds it, the interpreter computes it by numpy,
native code calls C's function, bfloat16 is widened, and fuzzers draw it. Numpy's functions and MLIR's ops are named by strings,
so that the table imports no other layer.

Source: TVM 0.16, "tir/op/op.cc" and "tir/op/builtin.cc"; precedences are Python's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import NamedTuple

from xdsl.ir import Operation

from . import arithmetic as ops


class Effect(Enum):
    """The effect of an intrinsic on memory."""

    PURE = auto()
    READ = auto()
    OPAQUE = auto()


class Operands(Enum):
    """The dtypes that an operator or intrinsic is defined on."""

    ANY = auto()
    NUMBERS = auto()
    FLOATS = auto()
    INTEGERS = auto()
    BOOLS = auto()


class Result(Enum):
    """The dtype of the result: that of the operands, bool, int32, or the element of a vector operand."""

    SAME = auto()
    BOOL = auto()
    INT32 = auto()
    ELEMENT = auto()


class Precedence(IntEnum):
    """The precedence of an operator, as in Python; a text of `ATOM` needs no parentheses anywhere."""

    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    BIT_OR = 5
    BIT_XOR = 6
    BIT_AND = 7
    SHIFT = 8
    SUM = 9
    PRODUCT = 10
    UNARY = 11
    POSTFIX = 13
    ATOM = 20


ANY, NUMBERS, FLOATS, INTEGERS, BOOLS = Operands
SAME, BOOL, INT32, ELEMENT = Result


class ScalarOp(NamedTuple):
    """One operator (with `op`) or intrinsic of `tir.call`."""

    name: str
    """Its name after `tir.`."""
    op: type[ops.BinaryOp] | type[ops.NotOp] | None = None
    arity: int = 1
    operands: Operands = ANY
    result: Result = SAME
    effect: Effect = Effect.PURE

    symbol: str = ""
    """Python's operator; none for an op that is written as a function."""
    precedence: Precedence = Precedence.ATOM
    node: str = ""
    """The function of `T` that builds the op without folding: `T.FloorDiv`."""
    printed: str = ""
    """The function of `T` that TVMScript's printer calls where the symbol would fold, if not `node`."""
    matching: tuple[str, ...] = ()
    """Functions of `T` that match the dtypes of their operands and fold nothing."""
    folding: tuple[str, ...] = ()
    """Functions of `T` that match the dtypes of their operands and fold constants."""
    te: str | None = None
    """How TE calls it, if not `tir.name`; "" where TE has no function of its own for it."""

    integers: Callable[..., int] | None = None
    """The number that Python's integers fold to; dividing by 0 is left to the caller."""
    floats: Callable[..., float] | None = None
    """The number that Python's floats fold to."""
    divides: bool = False
    """Whether integers are refused or 0 where the right operand is 0."""
    folds_indices_only: bool = False
    """Whether constants fold for int32 and int64 alone."""
    unit: tuple[int | None, int | None] = (None, None)
    """The constant on the left, and on the right, with which the other operand is the result."""
    zero: tuple[int | None, int | None] = (None, None)
    """The constant on the left, and on the right, that is the result whatever the other operand is."""

    numpy: str = ""
    """The function on floats and arrays of them: `numpy.floor`; `float64 numpy.exp` is computed in float64 and rounded once,
    `own_dtype …` knows bfloat16 and float8 (others are computed in float32)."""
    numpy_integer: str = ""
    """The function on arrays of integers."""
    analyzer: str = ""
    """The constructor of the arithmetic analyzer's expression."""
    on_indices: str = ""
    """The rule that lowers it on indices."""
    mlir_float: str = ""
    """MLIR's op on floats, `libm` for C's function of that name, or "" where lowering has a rule of its own."""
    mlir_signed: str = ""
    mlir_unsigned: str = ""
    """MLIR's op on unsigned integers, if not that on signed ones."""
    mlir_bool: str = ""
    cost: float = 1.0
    """The run time, in additions."""

    @property
    def key(self) -> str:
        """Returns the op's name, or the intrinsic's."""
        return self.name if self.op is None else self.op.name

    @property
    def te_name(self) -> str:
        """Returns TE's name, without `te.` or `tir.`."""
        return (self.name if self.te is None else self.te).rpartition(".")[2]


def floordiv(a: int, b: int) -> int:
    """Returns a / b rounded down."""
    return a // b


def truncdiv(a: int, b: int) -> int:
    """Returns a / b rounded toward zero."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def truncmod(a: int, b: int) -> int:
    """Returns the remainder of `truncdiv`, which has the sign of `a`."""
    return a - b * truncdiv(a, b)


# Of a NaN and a number, and of two zeros, the second: as native code compares.
def _smaller(a: float, b: float) -> float:
    return a if a < b else b


def _larger(a: float, b: float) -> float:
    return a if a > b else b


def _floor_quotient(a: float, b: float) -> float:
    return float(math.floor(a / b))


def _half_even(value: float) -> float:
    return float(round(value))


def _half_away(value: float) -> float:
    return math.copysign(math.floor(math.fabs(value) + 0.5), value)


def _compare(op: type[ops.CompareOp], symbol: str, node: str, function: Callable[[float, float], bool]) -> ScalarOp:
    name = op.name.removeprefix("tir.")
    return ScalarOp(
        name, op, 2, ANY, BOOL, symbol=symbol, precedence=Precedence.COMPARISON, node=node, integers=function,
        floats=function, numpy=f"operator.{name}", numpy_integer=f"operator.{name}", analyzer=name,
    )  # fmt: skip


def _math(name: str, numpy: str, *, te: str | None = None, mlir: str | None = None, cost: float = 32.0) -> ScalarOp:
    """Returns the row of a function of one float."""
    mlir = f"math.{name}" if mlir is None else mlir
    return ScalarOp(name, operands=FLOATS, te=te, numpy=numpy, mlir_float=mlir, cost=cost)


def _rounding(name: str, numpy: str, floats: Callable[[float], float], mlir: str, te: str | None = None) -> ScalarOp:
    """Returns the row of a rounding of floats, which leaves integers unchanged."""
    return ScalarOp(
        name, operands=NUMBERS, te=te, floats=floats, numpy=numpy, numpy_integer="identity", mlir_float=mlir
    )  # fmt: skip


def _bits(name: str, symbol: str, precedence: Precedence, function: Callable[[int, int], int], mlir: str) -> ScalarOp:
    is_shift = precedence is Precedence.SHIFT
    return ScalarOp(
        name, None, 2, INTEGERS, symbol=symbol, precedence=precedence, integers=function, folds_indices_only=True,
        unit=(None, 0) if is_shift else (None, None), numpy_integer=name, mlir_signed=mlir,
    )  # fmt: skip


P = Precedence
ROWS = (
    ScalarOp(
        "add", ops.AddOp, 2, NUMBERS, symbol="+", precedence=P.SUM, node="Add", integers=operator.add, floats=operator.add,
        unit=(0, 0), numpy="operator.add", numpy_integer="operator.add", analyzer="Expr.__add__", on_indices="index_add",
        mlir_float="arith.addf", mlir_signed="arith.addi", mlir_bool="arith.ori",
    ),
    ScalarOp(
        "sub", ops.SubOp, 2, NUMBERS, symbol="-", precedence=P.SUM, node="Sub", integers=operator.sub, floats=operator.sub,
        unit=(None, 0), numpy="operator.sub", numpy_integer="operator.sub", analyzer="Expr.__sub__", on_indices="index_sub",
        mlir_float="arith.subf", mlir_signed="arith.subi", mlir_bool="arith.xori",
    ),
    ScalarOp(
        "mul", ops.MulOp, 2, NUMBERS, symbol="*", precedence=P.PRODUCT, node="Mul", integers=operator.mul, floats=operator.mul,
        unit=(1, 1), zero=(0, 0), numpy="operator.mul", numpy_integer="operator.mul", analyzer="Expr.__mul__",
        on_indices="index_mul", mlir_float="arith.mulf", mlir_signed="arith.muli", mlir_bool="arith.andi", cost=2.0,
    ),
    ScalarOp(
        "div", ops.DivOp, 2, NUMBERS, symbol="/", precedence=P.PRODUCT, node="Div", matching=("truncdiv", "div"),
        integers=truncdiv, divides=True, floats=float.__truediv__, unit=(None, 1), zero=(0, None), numpy="operator.truediv",
        numpy_integer="scalar.truncated_quotient", analyzer="truncdiv", on_indices="index_truncdiv",
        mlir_float="arith.divf", mlir_signed="arith.divsi", mlir_unsigned="arith.divui", cost=16.0,
    ),
    ScalarOp(
        "mod", ops.ModOp, 2, NUMBERS, node="Mod", printed="truncmod", matching=("truncmod",), integers=truncmod,
        divides=True, folds_indices_only=True, zero=(0, None), numpy="numeric.trunc_mod", numpy_integer="numpy.fmod",
        analyzer="truncmod", on_indices="index_truncmod", mlir_float="math_ext.remf", mlir_signed="arith.remsi",
        mlir_unsigned="arith.remui", cost=16.0,
    ),
    ScalarOp(
        "floordiv", ops.FloorDivOp, 2, NUMBERS, symbol="//", precedence=P.PRODUCT, node="FloorDiv",
        folding=("floordiv", "indexdiv"), integers=floordiv, divides=True, floats=_floor_quotient, unit=(None, 1), zero=(0, None),
        numpy="scalar.floored_quotient", numpy_integer="numpy.floor_divide", analyzer="floordiv", on_indices="index_floordiv",
        mlir_signed="arith.floordivsi", mlir_unsigned="arith.divui", cost=16.0,
    ),
    ScalarOp(
        "floormod", ops.FloorModOp, 2, NUMBERS, symbol="%", precedence=P.PRODUCT, node="FloorMod",
        folding=("floormod", "indexmod"), integers=operator.mod, divides=True, folds_indices_only=True, zero=(0, None),
        numpy="numeric.floor_mod", numpy_integer="numpy.remainder", analyzer="floormod", on_indices="index_floormod",
        mlir_unsigned="arith.remui", cost=16.0,
    ),
    ScalarOp(
        "min", ops.MinOp, 2, NUMBERS, node="Min", printed="min", matching=("min",), integers=min, floats=_smaller,
        numpy="numeric.smaller", numpy_integer="numpy.minimum", analyzer="minimum", on_indices="index_min",
        mlir_float="arith.minimumf", mlir_signed="arith.minsi", mlir_unsigned="arith.minui", mlir_bool="arith.andi",
    ),
    ScalarOp(
        "max", ops.MaxOp, 2, NUMBERS, node="Max", printed="max", matching=("max",), integers=max, floats=_larger,
        numpy="numeric.larger", numpy_integer="numpy.maximum", analyzer="maximum", on_indices="index_max",
        mlir_float="arith.maximumf", mlir_signed="arith.maxsi", mlir_unsigned="arith.maxui", mlir_bool="arith.ori",
    ),
    _compare(ops.EqOp, "==", "EQ", operator.eq),
    _compare(ops.NeOp, "!=", "NE", operator.ne),
    _compare(ops.LtOp, "<", "LT", operator.lt),
    _compare(ops.LeOp, "<=", "LE", operator.le),
    _compare(ops.GtOp, ">", "GT", operator.gt),
    _compare(ops.GeOp, ">=", "GE", operator.ge),
    ScalarOp(
        "and", ops.AndOp, 2, BOOLS, symbol="and", precedence=P.AND, node="And", integers=int.__and__, unit=(1, 1), zero=(0, 0),
        numpy_integer="numpy.logical_and", analyzer="logical_and", mlir_bool="arith.andi",
    ),
    ScalarOp(
        "or", ops.OrOp, 2, BOOLS, symbol="or", precedence=P.OR, node="Or", integers=int.__or__, unit=(0, 0), zero=(1, 1),
        numpy_integer="numpy.logical_or", analyzer="logical_or", mlir_bool="arith.ori",
    ),
    ScalarOp(
        "not", ops.NotOp, 1, BOOLS, symbol="not", precedence=P.NOT, node="Not", numpy_integer="numpy.logical_not",
        analyzer="logical_not", mlir_bool="arith.xori",
    ),
    _math("exp", "float64 numpy.exp", te="te.exp"),
    _math("exp2", "float64 numpy.exp2"),
    _math("exp10", "float64 intrinsics.exp10", mlir=""),
    _math("log", "float64 numpy.log", te="te.log"),
    _math("log2", "float64 numpy.log2"),
    _math("log10", "float64 numpy.log10"),
    _math("log1p", "float64 numpy.log1p"),
    _math("sqrt", "numpy.sqrt", te="te.sqrt", cost=16.0),
    _math("rsqrt", "float64 intrinsics.reciprocal_root", te="te.rsqrt", cost=16.0),
    _math("sin", "float64 numpy.sin", te="te.sin"),
    _math("cos", "float64 numpy.cos", te="te.cos"),
    _math("tan", "float64 numpy.tan", te="te.tan"),
    _math("asin", "float64 numpy.arcsin"),
    _math("acos", "float64 numpy.arccos"),
    _math("atan", "float64 numpy.arctan"),
    _math("sinh", "float64 numpy.sinh"),
    _math("cosh", "float64 numpy.cosh"),
    _math("tanh", "float64 numpy.tanh", te="te.tanh"),
    _math("asinh", "float64 numpy.arcsinh"),
    _math("acosh", "float64 numpy.arccosh"),
    _math("atanh", "float64 numpy.arctanh"),
    _math("erf", "elementwise math.erf", te="te.erf"),
    _math("sigmoid", "float64 intrinsics.sigmoid", te="te.sigmoid", mlir="math_ext.sigmoid"),
    _rounding("floor", "numpy.floor", math.floor, "math.floor", te="te.floor"),
    _rounding("ceil", "numpy.ceil", math.ceil, "math.ceil"),
    _rounding("trunc", "numpy.trunc", math.trunc, "math.trunc"),
    # C's: `round` takes halves away from zero, `nearbyint` to the even number.
    _rounding("round", "intrinsics.half_away_from_zero", _half_away, "math.round"),
    _rounding("nearbyint", "numpy.rint", _half_even, "math.roundeven"),
    ScalarOp("fabs", operands=NUMBERS, te="tir.abs", numpy="numpy.abs", numpy_integer="absolute", mlir_float="math.absf"),
    ScalarOp("abs", operands=NUMBERS, te="", numpy="numpy.abs", numpy_integer="absolute", mlir_float="math.absf"),
    ScalarOp(
        "pow", None, 2, NUMBERS, te="tir.power", numpy="float64 elementary.float64_power", numpy_integer="power",
        mlir_float="math.powf", cost=32.0,
    ),
    ScalarOp(
        "power", None, 2, NUMBERS, te="", numpy="float64 elementary.float64_power", numpy_integer="power",
        mlir_float="math.powf", cost=32.0,
    ),
    ScalarOp("atan2", None, 2, FLOATS, numpy="float64 numpy.arctan2", mlir_float="math.atan2", cost=32.0),
    ScalarOp("fmod", None, 2, FLOATS, numpy="numeric.trunc_mod", mlir_float="math_ext.remf", cost=16.0),
    ScalarOp("hypot", None, 2, FLOATS, numpy="float64 numpy.hypot", mlir_float="libm", cost=32.0),
    ScalarOp("copysign", None, 2, FLOATS, numpy="intrinsics.copysign"),
    ScalarOp("nextafter", None, 2, FLOATS, numpy="own_dtype intrinsics.nextafter", mlir_float="libm"),
    ScalarOp("ldexp", None, 2, FLOATS, te="", numpy="intrinsics.scaled"),
    ScalarOp("fma", None, 3, te="", numpy="intrinsics.fma", mlir_float="math.fma", cost=2.0),
    ScalarOp("isnan", result=BOOL, te="te.isnan", numpy="numpy.isnan"),
    ScalarOp("isinf", result=BOOL, te="", numpy="numpy.isinf"),
    ScalarOp("isfinite", result=BOOL, te="", numpy="numpy.isfinite"),
    _bits("bitwise_and", "&", P.BIT_AND, int.__and__, "arith.andi"),
    _bits("bitwise_or", "|", P.BIT_OR, int.__or__, "arith.ori"),
    _bits("bitwise_xor", "^", P.BIT_XOR, int.__xor__, "arith.xori"),
    _bits("shift_left", "<<", P.SHIFT, int.__lshift__, ""),
    _bits("shift_right", ">>", P.SHIFT, int.__rshift__, ""),
    ScalarOp("bitwise_not", operands=INTEGERS, symbol="~", precedence=P.UNARY, numpy_integer="bitwise_not"),
    ScalarOp("popcount", operands=INTEGERS, numpy_integer="popcount", mlir_signed="math.ctpop"),
    ScalarOp("clz", operands=INTEGERS, result=INT32, numpy_integer="leading_zeros", mlir_signed="math.ctlz"),
    ScalarOp("q_multiply_shift", None, 4, result=INT32, numpy_integer="multiply_shift"),
    ScalarOp("q_multiply_shift_per_axis", None, 7, result=INT32, numpy_integer="multiply_shift_per_axis"),
    ScalarOp("ceildiv", None, 2, result=INT32, te="", numpy_integer="ceil_quotient", cost=16.0),
    ScalarOp("likely"),
    ScalarOp("vector_dot", None, 3, te=""),
    # All lanes of a vector combined, in any order; not in TVMScript, but the last step of reductions in lanes.
    *(ScalarOp(f"vector_reduce_{kind}", result=ELEMENT, te="") for kind in ("add", "mul", "min", "max")),
)  # fmt: skip

SCALAR_OPS = {row.key: row for row in ROWS}
"""The rows by the name of the op, or of the intrinsic."""
OPERATORS: dict[type[Operation], ScalarOp] = {row.op: row for row in ROWS if row.op is not None}
"""The rows of ops, by their class."""
INTRINSICS = {row.name: row for row in ROWS if row.op is None}
"""The rows of intrinsics, by their name."""
BINARY_ROWS: dict[type[ops.BinaryOp], ScalarOp] = {
    op: row for op, row in OPERATORS.items() if issubclass(op, ops.BinaryOp)
}
"""The rows of binary ops, by their class."""
ARITHMETIC: tuple[type[ops.BinaryOp], ...] = tuple(op for op, row in BINARY_ROWS.items() if row.on_indices)
"""The ops of integers to integers in index arithmetic."""
COMPARISONS: tuple[type[ops.BinaryOp], ...] = tuple(op for op in BINARY_ROWS if issubclass(op, ops.CompareOp))
"""The ops that compare numbers."""
