"""Constants fold as TVM's operators fold them: in the table, in TVMScript's construction and in TE."""

import math
from collections.abc import Callable

import pytest
from mirstack import te
from mirstack.dialects import tir
from mirstack.dialects.arith.const_fold import NumberType, fold, fold_cast
from mirstack.dialects.tir import BINARY_OPS, BinaryOp, dtype_to_type
from mirstack.dialects.tir import node as ex
from mirstack.dialects.tir.node import Expr, bits_of, is_float
from mirstack.dialects.tir.node import immediate as number_of
from mirstack.dialects.tir.operators import Const, ExprBuilder, as_const
from mirstack.dialects.tir.scalar_ops import INTRINSICS
from mirstack.parser import parse_mir
from mirstack.support.walk import walk_ops

OPS: dict[str, type[BinaryOp]] = {op.name.removeprefix("tir."): op for op in BINARY_OPS}
TE: dict[str, Callable[..., Expr]] = {
    "add": ex.add, "sub": ex.subtract, "mul": ex.multiply, "floordiv": ex.floordiv, "floormod": ex.floormod,
    "mod": ex.truncmod, "min": ex.minimum, "max": ex.maximum, "lt": ex.less, "le": ex.less_equal, "eq": ex.equal,
    "ne": ex.not_equal, "gt": ex.greater, "ge": ex.greater_equal, "and": ex.logical_and, "or": ex.logical_or,
    "bitwise_and": ex.bitwise_and, "bitwise_or": ex.bitwise_or, "bitwise_xor": ex.bitwise_xor,
    "shift_left": ex.left_shift, "shift_right": ex.right_shift,
}  # fmt: skip
SYMBOLS = {row.name: row.symbol for row in INTRINSICS.values()}
STAYS = None
INT32_MAX, INT32_MIN = 2147483647, -2147483648
INT64_MAX, INT64_MIN = (1 << 63) - 1, -(1 << 63)

# Operator, dtype, operands, and TVM's answer: a number, or STAYS where the node is made.
ROWS = [
    # Constants on which TVMScript and TE disagreed, int8 // of which TVMScript was wrong about.
    ("add", "int32", INT32_MAX, 1, INT32_MIN),
    ("floordiv", "int8", 7, 2, 3),
    ("add", "float16", 1.0, 2.0, STAYS),
    ("sub", "uint8", 3, 5, 254),
    ("add", "float32", 1e38, 3e38, math.inf),
    # Integers wrap around at the width of their dtype.
    ("mul", "int32", 65536, 65536, 0),
    ("sub", "int32", INT32_MIN, 1, INT32_MAX),
    ("add", "int64", INT64_MAX, 1, INT64_MIN),
    ("add", "int8", 127, 1, -128),
    ("mul", "int16", 300, 300, 24464),
    ("add", "uint8", 250, 10, 4),
    ("mul", "uint32", 1 << 31, 2, 0),
    ("add", "uint64", (1 << 64) - 1, 2, 1),
    ("add", "bool", 1, 1, 0),
    # Division and remainder; % and truncmod fold for int32 and int64 alone.
    ("div", "int32", -7, 2, -3),
    ("mod", "int32", -7, 2, -1),
    ("mod", "int32", 7, -2, 1),
    ("floordiv", "int32", -7, 2, -4),
    ("floormod", "int32", -7, 2, 1),
    ("floormod", "int32", 7, -2, -1),
    ("floordiv", "int32", INT32_MIN, -1, INT32_MIN),
    ("div", "int8", -7, 2, -3),
    ("floordiv", "uint8", 200, 7, 28),
    ("floormod", "int8", 7, 2, STAYS),
    ("mod", "uint8", 7, 2, STAYS),
    ("floormod", "int64", 7, 2, 1),
    # Floats fold at their precision, and only as float32 and float64.
    ("add", "float32", 0.10000000149011612, 0.20000000298023224, 0.30000001192092896),
    ("mul", "float32", 1e30, 1e30, math.inf),
    ("add", "float64", 0.1, 0.2, 0.1 + 0.2),
    ("div", "float64", 1.0, 3.0, 1 / 3),
    ("div", "float32", 1.0, 0.0, STAYS),
    ("mul", "bfloat16", 2.0, 3.0, STAYS),
    ("min", "float16", 1.0, 2.0, 1.0),
    ("max", "int8", -3, 5, 5),
    ("min", "uint8", 200, 100, 100),
    # Comparisons and connectives.
    ("lt", "int8", -1, 1, 1),
    ("lt", "uint8", 255, 1, 0),
    ("ge", "float16", 1.0, 2.0, 0),
    ("eq", "float32", math.nan, math.nan, 0),
    ("ne", "float64", math.nan, math.nan, 1),
    ("and", "bool", 1, 0, 0),
    ("or", "bool", 0, 1, 1),
    # Bits fold for int32 and int64 alone.
    ("bitwise_and", "int32", 12, 10, 8),
    ("bitwise_or", "int64", 12, 10, 14),
    ("bitwise_xor", "int32", 12, 10, 6),
    ("bitwise_and", "int8", 12, 10, STAYS),
    ("shift_left", "int32", 1, 31, INT32_MIN),
    ("shift_right", "int32", -8, 1, -4),
    ("shift_left", "uint8", 1, 3, STAYS),
    ("shift_left", "int32", 2, 30, INT32_MIN),
]  # fmt: skip
names = [f"{dtype} {x} {op} {y}" for op, dtype, x, y, _ in ROWS]


def number_type(dtype: str) -> NumberType:
    return NumberType(is_float(dtype), bits_of(dtype), dtype.startswith("int"))


@pytest.mark.parametrize(("op", "dtype", "x", "y", "answer"), ROWS, ids=names)
def test_two_constants(op: str, dtype: str, x: float, y: float, answer: float | None) -> None:
    name = f"tir.{op}" if op in OPS else op
    assert fold(name, x, y, number_type(dtype)) == answer
    if op in OPS:
        type = dtype_to_type(dtype)
        made = ExprBuilder().binary(OPS[op], Const(x, type), Const(y, type))
        assert (made.value if isinstance(made, Const) else STAYS) == answer
    else:
        read = parse_mir(f"@T.prim_func\ndef f():\n    T.evaluate(T.{dtype}({x}) {SYMBOLS[op]} T.{dtype}({y}))\n")
        (value,) = (each.value for each in walk_ops(read) if isinstance(each, tir.EvaluateOp))
        number = as_const(value)
        assert (STAYS if number is None else number.value) == answer
    build = ex.divide if op == "div" and is_float(dtype) else ex.truncdiv if op == "div" else TE[op]
    built = build(number_of(x, dtype), number_of(y, dtype))
    assert (built.value if isinstance(built, ex.Const) else STAYS) == answer


# An operator, its dtype, the constant to the left or right of a variable, and what is made: the variable, a number, or STAYS.
IDENTITIES = [
    ("add", "int32", 0, None, "x"),
    ("add", "int8", None, 0, "x"),
    ("sub", "int32", None, 0, "x"),
    ("sub", "int32", 0, None, STAYS),
    ("mul", "uint8", 1, None, "x"),
    ("mul", "int32", None, 0, 0),
    ("floordiv", "int8", None, 1, "x"),
    ("floordiv", "int32", 0, None, 0),
    ("floormod", "int32", None, 1, 0),
    ("floormod", "int8", None, 1, STAYS),
    ("mod", "int64", 0, None, 0),
    ("shift_left", "int32", None, 0, "x"),
    ("shift_right", "int8", None, 0, STAYS),
    ("and", "bool", 1, None, "x"),
    ("and", "bool", None, 0, 0),
    ("or", "bool", 1, None, 1),
    # Of floats only what holds for -0, infinities and NaN.
    ("add", "float32", -0.0, None, "x"),
    ("add", "float32", 0.0, None, STAYS),
    ("sub", "float16", None, 0.0, "x"),
    ("mul", "float32", None, 1.0, "x"),
    ("mul", "float32", None, 0.0, STAYS),
]


@pytest.mark.parametrize(("op", "dtype", "left", "right", "answer"), IDENTITIES)
def test_one_constant(op: str, dtype: str, left: float | None, right: float | None, answer: float | str | None) -> None:
    variable = te.var("x", dtype)
    a, b = (variable if v is None else number_of(v, dtype) for v in (left, right))
    made = TE[op](a, b)
    assert ("x" if made is variable else made.value if isinstance(made, ex.Const) else STAYS) == answer
    if op in OPS:
        builder, type = ExprBuilder(), dtype_to_type(dtype)
        value = builder.value(Const(1, type))
        # A value that is not a constant: it is made by an op that nothing folds.
        value = builder.node(OPS["min"], value, value)
        a, b = (value if v is None else Const(v, type) for v in (left, right))
        result = builder.binary(OPS[op], a, b)
        assert ("x" if result is value else result.value if isinstance(result, Const) else STAYS) == answer


def test_the_smaller_of_one_value_and_itself_is_that() -> None:
    builder = ExprBuilder()
    value = builder.node(OPS["add"], builder.value(Const(1)), builder.value(Const(2)))
    assert builder.binary(OPS["min"], value, value) is value
    # TE's text shares what is equal, and is read as what it was printed from.
    x = te.var("x", "float32")
    assert not isinstance(te.min(x, x), te.Var)


def test_shifts_beyond_the_width_stay() -> None:
    # TE refuses them; native code and the interpreter shift everything out.
    assert fold("shift_left", 1, 32, number_type("int32")) is STAYS
    assert fold("shift_right", None, -1, number_type("int64")) is STAYS


def test_division_by_the_constant_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        fold("tir.floormod", None, 0, number_type("int8"))


# The value, the dtype that it is converted to, and the constant.
CASTS = [
    (300, "int8", 44),
    (-1, "uint8", 255),
    (2, "bool", 1),
    (2.75, "int32", 2),
    (-2.75, "int32", -2),
    (0.5, "bool", 1),
    (300.7, "int8", 127),
    (-1.5, "uint8", 0),
    (math.inf, "int32", STAYS),
    (3, "float16", 3.0),
]


@pytest.mark.parametrize(("value", "dtype", "answer"), CASTS)
def test_casts_of_constants(value: float, dtype: str, answer: float | None) -> None:
    assert fold_cast(value, number_type(dtype)) == answer
    source = "int32" if isinstance(value, int) else "float32"
    made = te.cast(dtype, number_of(value, source))
    assert (made.value if isinstance(made, ex.Const) else STAYS) == answer
    cast = ExprBuilder().cast(Const(value, dtype_to_type(source)), dtype_to_type(dtype))
    assert (cast.value if isinstance(cast, Const) else STAYS) == answer


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("int8", "int32", "int32"),
        ("int64", "int32", "int64"),
        ("float16", "int64", "float16"),
        ("bool", "float32", "float32"),
        ("int8", "uint8", "uint8"),
        ("uint8", "int8", "uint8"),
        ("uint8", "int16", "int16"),
        ("bool", "int8", "int8"),
        ("float32", "float64", "float64"),
        ("bfloat16", "float16", "bfloat16"),
        ("float16", "bfloat16", "float16"),
    ],
)
def test_operands_are_cast_to_one_dtype(left: str, right: str, common: str) -> None:
    a, b = ex.match_types(te.var("a", left), te.var("b", right), "+")
    assert (a.dtype, b.dtype) == (common, common)
    types = ExprBuilder().common_types(dtype_to_type(left), dtype_to_type(right))
    assert types == (dtype_to_type(common), dtype_to_type(common))
