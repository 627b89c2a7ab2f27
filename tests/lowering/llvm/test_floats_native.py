"""Float arith and math in native code against numpy: every dtype, scalars and vectors, limits included."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled_ir import compile_ir
from mirstack.lowering.llvm.text.translation import translate

FLOATS = ("f16", "bf16", "f32", "f64")
SIZE = 1024

OPS: dict[str, Callable[..., Any]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.negf": lambda a: -a,
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": lambda a: np.where(np.abs(a) < 2**52, np.copysign(np.floor(np.abs(a) + 0.5), a), a),
    "math.sqrt": np.sqrt,
    "math.copysign": np.copysign,
}
COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    "oeq": lambda a, b: a == b,
    "olt": lambda a, b: a < b,
    "oge": lambda a, b: a >= b,
    "one": lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b)),
    "une": lambda a, b: a != b,
    "ult": lambda a, b: ~(a >= b),
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
}
LIMITS = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-40, 6e-8, 65504.0, 3e38]


def is_binary(name: str) -> bool:
    binary = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf", "copysign")
    return name.split(".")[1] in binary


def samples(dtype: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    with np.errstate(all="ignore"):
        limits = np.array(LIMITS).astype(dtype)
        a = np.concatenate([np.repeat(limits, 16), (rng.standard_normal(SIZE - 256) * 8).astype(dtype)])
        b = np.concatenate([np.tile(limits, 16), (rng.standard_normal(SIZE - 256) * 8).astype(dtype)])
    return a, b


def same(got: Any, want: Any) -> Any:
    got, want = got.astype(np.float64), want.astype(np.float64)
    nan = np.isnan(got) & np.isnan(want)
    return nan | ((got == want) & ((np.signbit(got) == np.signbit(want)) | (got != 0)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_ops_agree_with_numpy(
    dtype: str, build: Callable[[str], Any], elementwise: Callable[..., str], numpy_types: dict[str, Any]
) -> None:
    text = ""
    for lanes in (0, 8):
        t = f"vector<{lanes}x{dtype}>" if lanes else dtype
        for op in OPS:
            operands = "%a, %b" if is_binary(op) else "%a"
            body = [f"%r = {op} {operands} : {t}"]
            text += elementwise(f"{op}_{lanes}", body, [dtype] * 2 if is_binary(op) else [dtype], dtype, lanes)
        for predicate in COMPARES:
            line = (
                f'%r = vector_ext.cmpf "{predicate}" %a, %b : {t} -> vector<{lanes}xi1>'
                if lanes
                else f"%r = arith.cmpf {predicate}, %a, %b : {t}"
            )
            text += elementwise(f"{predicate}_{lanes}", [line], [dtype] * 2, "i1", lanes)
    code = build(text)
    a, b = samples(numpy_types[dtype])
    for lanes in (0, 8):
        for op, meaning in OPS.items():
            out = np.zeros(SIZE, a.dtype)
            code.call(f"{op}_{lanes}", *([a, b] if is_binary(op) else [a]), out, SIZE)
            want = meaning(a, b) if is_binary(op) else meaning(a)
            want = want.astype(a.dtype)
            good = same(out, want)
            if op.split(".")[1] in ("maxnumf", "minnumf", "maximumf", "minimumf"):
                good |= (a == 0) & (b == 0)  # numpy may give either zero
            assert good.all(), (op, lanes, a[~good][:4], b[~good][:4], out[~good][:4], want[~good][:4])
        for predicate, compare in COMPARES.items():
            truth = np.zeros(SIZE, np.bool_)
            code.call(f"{predicate}_{lanes}", a, b, truth, SIZE)
            np.testing.assert_array_equal(truth, compare(a, b), f"{predicate} {lanes}")


# Elementary functions

UNARY: dict[str, Callable[[Any], Any]] = {
    **{"exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10},
    **{"log1p": np.log1p, "tanh": np.tanh, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x)},
    **{"sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan},
    **{"sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh},
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}
MAX_ULP = 2.0


def floats_of_all_sizes(count: int) -> Any:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, count // 4, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = [
        *LIMITS,
        88.7,
        88.8,
        89.0,
        -87.4,
        -103.9,
        -104.1,
        127.9,
        128.0,
        -126.0,
        -149.0,
        -150.1,
        1 + 2**-23,
        1 - 2**-24,
    ]
    edges += [3.1415927, 1.5707964, 1e10, 3.4e38, 0.6, 0.9, 4.0, 10.0, 1e-4, 1e-3]
    parts = [
        np.array([*edges, *(-x for x in edges)], np.float32),
        bits,
        rng.uniform(-100, 100, count // 4).astype(np.float32),
        rng.uniform(-2, 2, count // 4).astype(np.float32),
        (1 + rng.uniform(-1e-3, 1e-3, count // 8)).astype(np.float32),
    ]
    x = np.concatenate(parts)
    return x[: x.size // 16 * 16].copy()


def errors_in_ulp(got: Any, exact: Any) -> Any:
    """Errors in units of the last place; infinite where one is NaN or infinite and the other is not the same."""
    want = exact.astype(np.float32)
    finite = np.isfinite(want) & np.isfinite(got)
    same_limit = (np.isnan(want) & np.isnan(got)) | (want == got)
    ulp = np.spacing(np.abs(np.where(finite, want, 1))).astype(np.float64)
    error = np.abs(np.where(finite, got, 0).astype(np.float64) - np.where(finite, exact, 0)) / ulp
    return np.where(finite, error, np.where(same_limit, 0.0, np.inf))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_f32_functions_are_within_two_ulp(build: Callable[[str], Any], elementwise: Callable[..., str]) -> None:
    text = ""
    for name in UNARY:
        text += elementwise(f"{name}_s", [f"%r = math.{name} %a : f32"], ["f32"], "f32")
        text += elementwise(f"{name}_v", [f"%r = math.{name} %a : vector<16xf32>"], ["f32"], "f32", 16)
    code = build(text)
    x = floats_of_all_sizes(20000)
    for name, meaning in UNARY.items():
        exact = meaning(x.astype(np.float64))
        for suffix in "sv":
            out = np.zeros_like(x)
            code.call(f"{name}_{suffix}", x, out, x.size)
            error = errors_in_ulp(out, exact)
            worst = int(error.argmax())
            assert error[worst] <= MAX_ULP, (name, suffix, x[worst], out[worst], exact[worst], error[worst])
            zeros = x == 0
            assert (np.signbit(out[zeros]) == np.signbit(exact[zeros].astype(np.float32))).all() or np.isnan(
                exact[zeros]
            ).all(), f"{name} of -0"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_f32_pow_and_atan2_are_within_two_ulp(build: Callable[[str], Any], elementwise: Callable[..., str]) -> None:
    text = ""
    for name in ("powf", "atan2"):
        text += elementwise(f"{name}_s", [f"%r = math.{name} %a, %b : f32"], ["f32"] * 2, "f32")
        text += elementwise(f"{name}_v", [f"%r = math.{name} %a, %b : vector<16xf32>"], ["f32"] * 2, "f32", 16)
    code = build(text)
    limits = np.array([*LIMITS, 2.0, -2.0, 3.0, -3.0, 0.1, -7.0, 1e20, 16777217.0], np.float32)
    rng = np.random.default_rng(4)
    a = np.concatenate([np.repeat(limits, limits.size), rng.uniform(-5, 5, 4096), np.exp(rng.uniform(-30, 30, 4096))])
    b = np.concatenate([np.tile(limits, limits.size), rng.integers(-9, 9, 4096), rng.uniform(-4, 4, 4096)])
    size = a.size // 16 * 16
    x, y = a[:size].astype(np.float32), b[:size].astype(np.float32)
    for name, meaning in (("powf", np.power), ("atan2", np.arctan2)):
        exact = meaning(x.astype(np.float64), y.astype(np.float64))
        for suffix in "sv":
            out = np.zeros_like(x)
            code.call(f"{name}_{suffix}", x, y, out, size)
            error = errors_in_ulp(out, exact)
            worst = int(error.argmax())
            assert error[worst] <= MAX_ULP, (name, suffix, x[worst], y[worst], out[worst], exact[worst])
            zero = exact.astype(np.float32) == 0
            assert (np.signbit(out[zero]) == np.signbit(exact[zero])).all(), name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_functions_of_other_floats(
    dtype: str, build: Callable[[str], Any], elementwise: Callable[..., str], numpy_types: dict[str, Any]
) -> None:
    names = ["exp", "log", "tanh", "erf", "sin", "rsqrt", "expm1"]
    text = ""
    for name in names:
        text += elementwise(f"{name}_s", [f"%r = math.{name} %a : {dtype}"], [dtype], dtype)
        text += elementwise(f"{name}_v", [f"%r = math.{name} %a : vector<4x{dtype}>"], [dtype], dtype, 4)
    code = build(text)
    x = np.random.default_rng(5).uniform(-6, 6, 512).astype(numpy_types[dtype])
    for name in names:
        exact = UNARY[name](x.astype(np.float64))
        tolerance = {"f16": 2**-10, "bf16": 2**-7, "f64": 1e-14}[dtype]
        for suffix in "sv":
            out = np.zeros_like(x)
            code.call(f"{name}_{suffix}", x, out, x.size)
            np.testing.assert_allclose(
                out.astype(np.float64), exact, rtol=tolerance, atol=1e-7 if dtype == "f16" else 0, err_msg=name
            )


def test_integer_math(build: Callable[[str], Any], elementwise: Callable[..., str]) -> None:
    names = {"absi": 1, "ctlz": 1, "cttz": 1, "ctpop": 1, "ipowi": 2}
    text = ""
    for name, count in names.items():
        for lanes in (0, 4):
            t = f"vector<{lanes}xi32>" if lanes else "i32"
            operands = ", ".join(["%a", "%b"][:count])
            text += elementwise(
                f"{name}_{lanes}", [f"%r = math.{name} {operands} : {t}"], ["i32"] * count, "i32", lanes
            )
    text += elementwise("fpowi_0", ["%r = math.fpowi %a, %b : f32, i32"], ["f32", "i32"], "f32")
    code = build(text)
    x = np.array([0, 1, -1, 2, -2, 3, 7, -(2**31)], np.int32)
    y = np.array([0, 5, -3, 31, -1, 3, 2, 1], np.int32)
    bits = [f"{int(v) % 2**32:032b}" for v in x]
    want = {
        "absi": np.abs(x),
        "ctlz": [len(b) - len(b.lstrip("0")) for b in bits],
        "cttz": [len(b) - len(b.rstrip("0")) for b in bits],
        "ctpop": [b.count("1") for b in bits],
        "ipowi": [1, 1, -1, -(2**31), 0, 27, 49, -(2**31)],
    }
    for name, count in names.items():
        for lanes in (0, 4):
            out = np.zeros(8, np.int32)
            code.call(f"{name}_{lanes}", *[x, y][:count], out, 8)
            np.testing.assert_array_equal(out, want[name], f"{name} {lanes}")
    out = np.zeros(8, np.float32)
    base = x.astype(np.float32) / 2
    code.call("fpowi_0", base, np.array([0, 5, -3, 3, -1, 3, 2, 1], np.int32), out, 8)
    np.testing.assert_allclose(out, [1, 0.5**5, -8, 1, -1, 1.5**3, 3.5**2, -(2.0**30)], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_simple_powers_are_exact(build: Callable[[str], Any], elementwise: Callable[..., str]) -> None:
    powers = {"one": 1.0, "two": 2.0, "inverse": -1.0, "root": 0.5}
    text = ""
    for name, power in powers.items():
        for lanes in (0, 8):
            t = f"vector<{lanes}xf32>" if lanes else "f32"
            value = f"dense<{power}>" if lanes else str(power)
            body = [f"%p = arith.constant {value} : {t}", f"%r = math.powf %a, %p : {t}"]
            text += elementwise(f"{name}_{lanes}", body, ["f32"], "f32", lanes)
    code = build(text)
    assert "pow" not in "".join(line for line in code.ir.splitlines() if " call " in line)
    x = floats_of_all_sizes(400)
    for name, power in powers.items():
        want = np.power(x.astype(np.float64), np.full(x.size, power)).astype(np.float32)  # C's pow
        for lanes in (0, 8):
            out = np.zeros_like(x)
            code.call(f"{name}_{lanes}", x, out, x.size)
            good = same(out, want)
            assert good.all(), (name, x[~good][:3], out[~good][:3], want[~good][:3])


def test_fma_rounds_once(build: Callable[[str], Any], elementwise: Callable[..., str]) -> None:
    code = build(
        elementwise("s", ["%r = math.fma %a, %b, %c : f32"], ["f32"] * 3, "f32")
        + elementwise("v", ["%r = vector.fma %a, %b, %c : vector<8xf32>"], ["f32"] * 3, "f32", 8)
    )
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(64).astype(np.float32) for _ in range(2))
    c = -(a * b)
    exact = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)
    for name in "sv":
        out = np.zeros(64, np.float32)
        code.call(name, a, b, c, out, 64)
        np.testing.assert_array_equal(out, exact)


def test_bfloat16_is_rounded_after_each_op(build: Callable[[str], Any], elementwise: Callable[..., str]) -> None:
    body = ["%s = arith.addf %a, %b : bf16", "%r = arith.addf %s, %b : bf16"]
    code = build(elementwise("f", body, ["bf16"] * 2, "bf16"))
    x = np.full(4, 256, ml_dtypes.bfloat16)
    y = np.ones(4, ml_dtypes.bfloat16)
    out = np.zeros(4, ml_dtypes.bfloat16)
    code.call("f", x, y, out, 4)
    assert (out == 256).all(), "256 + 1 rounds to 256 in bfloat16, twice"


@pytest.mark.parametrize("lanes", [0, 8])
def test_bfloat16_goes_from_block_to_block(lower: Callable[[str], Any], lanes: int) -> None:
    """Processors without bfloat16, unoptimized: a loop carries a value, and a branch gives it."""
    type_ = f"vector<{lanes}xbf16>" if lanes else "bf16"
    zero = f"dense<0.0> : {type_}" if lanes else f"0.0 : {type_}"
    load = f"vector.load %x[%i] : memref<64xbf16>, {type_}" if lanes else "memref.load %x[%i] : memref<64xbf16>"
    store = (
        f"vector.store %t, %y[%i] : memref<64xbf16>, {type_}" if lanes else "memref.store %t, %y[%i] : memref<64xbf16>"
    )
    text = f"""
func.func @sums(%x: memref<64xbf16>, %y: memref<64xbf16>) {{
  %zero = arith.constant 0 : index
  %step = arith.constant {lanes or 1} : index
  %middle = arith.constant 32 : index
  %end = arith.constant 64 : index
  %none = arith.constant {zero}
  %all = scf.for %i = %zero to %end step %step iter_args(%s = %none) -> ({type_}) {{
    %v = {load}
    %first = arith.cmpi slt, %i, %middle : index
    %w = scf.if %first -> ({type_}) {{
      scf.yield %v : {type_}
    }} else {{
      scf.yield %s : {type_}
    }}
    %t = arith.addf %s, %w : {type_}
    {store}
    scf.yield %t : {type_}
  }}
  func.return
}}
"""
    code = compile_ir(translate(lower(text)), opt_level=0, cpu="x86-64")
    x = np.arange(64).astype(ml_dtypes.bfloat16)
    y = np.zeros(64, ml_dtypes.bfloat16)
    ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(code.address("sums"))(
        x.ctypes.data, y.ctypes.data
    )
    total: Any = np.zeros(lanes or 1, ml_dtypes.bfloat16)
    for start in range(0, 64, lanes or 1):
        total = total + (x[start : start + (lanes or 1)] if start < 32 else total)
        np.testing.assert_array_equal(y[start : start + (lanes or 1)], total)
