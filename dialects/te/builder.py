"""Builds ops of the `te` dialect from Python, under TVM's names.

    from mirstack.dialects.te import builder as te

    A = te.placeholder((n, k), name="A")                          # float32; shape: ints, te.var, expressions of them
    B = te.placeholder((k, m), "float32", "B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute(C.shape, lambda *i: te.max(C(*i), 0.0), name="D", tag="elemwise", attrs={"key": 1})
    func = te.func("mm_relu", [A, B, D])                          # a te.func op; the producers of the arguments are added

Nothing of this needs a context or an insertion point: tensors and expressions are plain Python objects until `te.func`
emits those that its arguments need. `te.func(name, args)` takes placeholders, scalars (te.var) and outputs, in order.

Tensors: `A[i, j]`, `A(i, j)`, `A.shape` (ints where known int32, otherwise expressions), `A.dtype`, `A.ndim`, `A.name`, `A.op`
(`op.name`, `op.axis`, `op.reduce_axis`, `op.input_tensors`, `op.output(i)`, `op.tag`, `op.attrs`). A lambda that returns a
tuple defines several tensors. A reduction must be the whole value of its compute: put what follows in the next compute.

Dtypes follow TVM exactly. A Python int takes the other operand's dtype; a Python float is float32, so that float16 + 1.0
is float32: write `te.const(1.0, A.dtype)` where a computation is for any dtype. float32 + int32 is float32, int8 + int32
is int32. `/` of two integers is refused: write //, te.truncdiv. Indices are int32, or int64 where the shape is.

Names: var size_var placeholder compute reduce_axis sum prod min max all any comm_reducer scan extern const cast
if_then_else Select likely min_value max_value infinity logical_and logical_or logical_not floordiv floormod truncdiv
truncmod indexdiv indexmod ceildiv div abs fabs isnan isinf isfinite ldexp popcount clz q_multiply_shift
q_multiply_shift_per_axis bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift reinterpret call_extern
call_pure_extern call_packed call_intrin, the mathematics of `tir.scalar_ops` (exp, floor, power, nextafter, …), and on an
expression the Python operators, `.astype(dtype)`, `.equal(x)`, `.dtype`.

`te.max(x, y)` combines two values, `te.max(x, axis=k)` reduces (`where=` condition, `init=` first value); `te.all(c, d)` and
`te.any(c, d)` connect conditions, with `axis=` they reduce. Mistakes raise MirError at `te.location_scope(location)`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..tir.node import (
    FUNCTIONS,
    Const,
    Expr,
    IterVar,
    Var,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    const,
    convert,
    current_location,
    equal,
    floordiv,
    floormod,
    greater,
    greater_equal,
    if_then_else,
    left_shift,
    less,
    less_equal,
    location_scope,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    right_shift,
    truncdiv,
    truncmod,
)
from ..tir.node import divide as divide
from ..tir.node import floordiv as indexdiv
from ..tir.node import floormod as indexmod
from ..tir.node import ir_builder as ir_builder
from ..tir.node import maximum as maximum
from ..tir.node import minimum as minimum
from ..tir.node import select as Select
from ..tir.node import truncdiv as div
from ..tir.node.buffer import Buffer
from ..tir.node.ir_builder import IRBuilder
from .emit import func
from .extern import extern
from .functions import (
    OF_TABLE,
    abs,
    call_extern,
    call_intrin,
    call_packed,
    call_pure_extern,
    ceildiv,
    clz,
    fabs,
    infinity,
    isfinite,
    isinf,
    isnan,
    ldexp,
    likely,
    max_value,
    min_value,
    popcount,
    q_multiply_shift,
    q_multiply_shift_per_axis,
    reinterpret,
)
from .reducers import AxisReducer, comm_reducer
from .reducers import te_all as all
from .reducers import te_any as any
from .reducers import te_max as max
from .reducers import te_min as min
from .reducers import te_prod as prod
from .reducers import te_sum as sum
from .tensor import Operation, Tensor, compute, placeholder, reduce_axis, scan, size_var, var

__all__ = [
    "AxisReducer",
    "Buffer",
    "Const",
    "Expr",
    "IRBuilder",
    "IterVar",
    "Operation",
    "Select",
    "Tensor",
    "Var",
    "abs",
    "all",
    "any",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "call_extern",
    "call_intrin",
    "call_packed",
    "call_pure_extern",
    "cast",
    "ceildiv",
    "clz",
    "comm_reducer",
    "compute",
    "const",
    "convert",
    "current_location",
    "div",
    "divide",
    "equal",
    "extern",
    "fabs",
    "floordiv",
    "floormod",
    "func",
    "greater",
    "greater_equal",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "ir_builder",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "likely",
    "location_scope",
    "logical_and",
    "logical_not",
    "logical_or",
    "max",
    "max_value",
    "maximum",
    "min",
    "min_value",
    "minimum",
    "not_equal",
    "placeholder",
    "popcount",
    "prod",
    "q_multiply_shift",
    "q_multiply_shift_per_axis",
    "reduce_axis",
    "reinterpret",
    "right_shift",
    "scan",
    "size_var",
    "sum",
    "truncdiv",
    "truncmod",
    "var",
]  # fmt: skip

NAMES: tuple[str, ...] = (*__all__, *OF_TABLE)
globals().update(OF_TABLE, __all__=list(NAMES))
FUNCTIONS.update(NAMES)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Expr]: ...
