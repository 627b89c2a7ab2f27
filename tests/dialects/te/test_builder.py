"""The Python builder: names, dtype rules, folding, what is refused."""

# Arguments are wrong on purpose.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import operator

import pytest
from mirstack.dialects import te as ops
from mirstack.dialects import tir
from mirstack.dialects.te import builder as te
from mirstack.support.diagnostics import MirError, file_loc
from mirstack.support.verify import verify
from mirstack.support.walk import walk_ops
from xdsl.ir import Operation


def names_of(func: Operation) -> list[str]:
    return [op.name for op in walk_ops(func)]


def test_matmul_is_emitted_in_order_of_need() -> None:
    n = te.var("n")
    A, B = te.placeholder((n, 8), name="A"), te.placeholder((8, 4), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((n, 4), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    func = te.func("f", [A, B, C])
    verify(func)
    tops = [op.name for op in func.body.block.ops]
    assert tops == [
        "tir.var", "te.placeholder", "te.placeholder", "tir.const", "tir.const", "te.reduce_axis", "te.compute", "te.return",
    ]  # fmt: skip
    assert func.param_names() == ["A", "B", "C"]
    assert (C.dtype, C.ndim, C.op.name, C.op.reduce_axis) == ("float32", 2, "C", (k,))
    assert [t.name for t in C.op.input_tensors] == ["A", "B"]


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("float32", "int32", "float32"),
        ("int8", "int32", "int32"),
        ("float16", "float32", "float32"),
        ("uint8", "int8", "uint8"),
        ("int32", "uint8", "int32"),
        ("int64", "int32", "int64"),
        ("bool", "int32", "int32"),
    ],
)
def test_dtypes_are_matched_as_in_tvm(a: str, b: str, result: str) -> None:
    A, B = te.placeholder((4,), a), te.placeholder((4,), b)
    assert (A[0] + B[0]).dtype == result
    assert (B[0] + A[0]).dtype == result
    assert (A[0] < B[0]).dtype == "bool"


def test_python_numbers() -> None:
    half = te.placeholder((4,), "float16")[0]
    small = te.placeholder((4,), "int8")[0]
    assert (half + 2).dtype == "float16"
    assert (half + 2.0).dtype == "float32"
    assert (small * 3).dtype == "int8"
    assert te.if_then_else(small > 0, small, 0).dtype == "int32"
    assert te.const(1 << 40).dtype == "int64"
    assert (te.placeholder((te.const(4, "int64"),)).shape[0]).dtype == "int64"


def test_constants_fold() -> None:
    n = te.var("n")
    assert n + 0 is n
    assert n * 1 is n
    assert int(n * 0) == 0
    assert int(te.const(7) // 2) == 3
    assert int(te.truncmod(te.const(-7), 2)) == -1
    assert float(te.const(1.0) / 4) == 0.25
    assert bool(te.const(3) > 2)
    assert te.likely(te.const(True)).dtype == "bool"
    assert int(te.cast("int32", te.const(True))) == 1
    assert float(te.round(te.const(2.5))) == 3.0
    assert float(te.nearbyint(te.const(2.5))) == 2.0
    assert int(te.const(2147483647) + 1) == -2147483648


def test_equality_works_in_python_containers() -> None:
    n, m = te.var("n"), te.var("m")
    assert n == n
    assert not n == m  # noqa: SIM201
    assert n in [m, n]
    with pytest.raises(MirError, match="no truth value"):
        bool(n < m)


def test_axis_names() -> None:
    A = te.placeholder((2, 3, 4), name="A")
    assert [a.name for a in te.compute(A.shape, lambda *i: A(*i)).op.axis] == ["i0", "i1", "i2"]
    assert [a.name for a in te.compute(A.shape, lambda n, *i: A(n, *i)).op.axis] == ["n", "i0", "i1"]
    with pytest.raises(MirError, match="has 2 arguments, but the shape has 3 dimensions"):
        te.compute(A.shape, lambda i, j: A[i, j, 0])


def test_slices_of_tensors() -> None:
    A = te.placeholder((2, 3), name="A")
    assert A[0][1].dtype == "float32"
    assert te.exp(A[0][1]).dtype == "float32"
    with pytest.raises(MirError, match="has 2 dimensions, but is read with 3 indices"):
        A[0, 1, 2]


def test_equal_expressions_are_one_value() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: (A[i] * 2.0 + 1.0) * (A[i] * 2.0 + 1.0), name="B")
    assert names_of(te.func("f", [A, B])).count("te.read") == 1
    # The sides of a choice do not see each other, and what they read stays guarded.
    C = te.compute((8,), lambda i: te.if_then_else(i > 0, A[i - 1], A[i - 1] * 2.0) + A[i - 1], name="C")
    func = te.func("g", [A, C])
    verify(func)
    reads = [op for op in func.walk() if op.name == "te.read"]
    assert len(reads) == 3
    assert sum(isinstance(op.parent_op(), tir.IfThenElseOp) for op in reads) == 2


def test_several_outputs_and_custom_reducers() -> None:
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    argmin = te.comm_reducer(
        lambda x, y: (te.Select(x[1] <= y[1], x[0], y[0]), te.min(x[1], y[1])),
        lambda t0, t1: (te.const(0, t0), te.max_value(t1)),
        name="argmin",
    )
    index, value = te.compute((4,), lambda i: argmin((k, A[i, k]), axis=k), name="M")
    func = te.func("f", [A, index, value])
    verify(func)
    assert func.param_names() == ["A", "M_v0", "M_v1"]
    assert (index.name, index.dtype, value.dtype) == ("M.v0", "int32", "float32")
    assert te.max(index[0], 3).dtype == "int32"


def test_locations() -> None:
    with te.location_scope(file_loc("f.py", 3, 5)):
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    func = te.func("f", [A, B])
    compute = next(op for op in func.walk() if isinstance(op, ops.ComputeOp))
    assert compute.location == file_loc("f.py", 3, 5)
    assert all(op.location == compute.location for op in compute.walk())


def test_deep_expressions() -> None:
    A = te.placeholder((4,), name="A")

    def chain(i: te.Expr) -> te.Expr:
        x = A[i]
        for step in range(5000):
            x = x * 2.0 + float(step)
        return x

    def nested(i: te.Expr) -> te.Expr:
        x = A[i]
        for step in range(400):
            x = te.if_then_else(i > step, x, float(step))
        return x

    func = te.func("f", [A, te.compute((4,), chain, name="B"), te.compute((4,), nested, name="C")])
    assert names_of(func).count("tir.mul") == 5000
    assert names_of(func).count("tir.if_then_else") == 400


A = te.placeholder((4,), name="A")
K = te.reduce_axis((0, 4), name="k")
L = te.reduce_axis((0, 4), "l")
REFUSED = {
    "integer division by '/' is ambiguous": lambda: te.var("n") / 2,
    "division by zero": lambda: te.var("n") // 0,
    "'&' is for integers and bool, not float32": lambda: A[0] & 1,
    "'~' is for integers and bool, not float32": lambda: ~A[0],
    "floormod is for integers, not float32": lambda: A[0] % 2,
    "index 0 of 'A' has dtype float32; an index is an integer": lambda: A[A[0]],
    "a scalar expression is expected here, not a whole tensor": lambda: te.exp(A),
    "a scalar expression is expected here, not the string 'x'": lambda: te.exp("x"),
    "the condition of if_then_else must be bool, not float32": lambda: te.if_then_else(A[0], 1, 2),
    "an operand of 'and' must be bool, not float32": lambda: te.all(A[0], A[0] > 1),
    "300 does not fit dtype int8, which holds -128 to 127": lambda: te.const(300, "int8"),
    "1e\\+39 does not fit dtype float32": lambda: te.const(1e39, "float32"),
    "a constant cannot have dtype 'float99'": lambda: te.const(1, "float99"),
    "a constant is a number, not the string": lambda: te.const("1"),
    "no value can be cast to dtype 'x'": lambda: A[0].astype("x"),
    "reinterpret keeps the width: float32 has 32 bits, int8 has 8": lambda: te.reinterpret("int8", A[0]),
    "popcount is for integers, not float32": lambda: te.popcount(A[0]),
    "extent 0 of a shape is -1; an extent is not negative": lambda: te.placeholder((-1,)),
    "extent 1 of a shape has dtype float32": lambda: te.placeholder((1, 2.5)),
    "a shape is a tuple of extents, not the string '4'": lambda: te.placeholder("4"),
    "tensor 'A' cannot have dtype 'f32'": lambda: te.placeholder((4,), "f32", "A"),
    "size 'n' has dtype float32; a size is an integer": lambda: te.size_var("n", "float32"),
    "a reduce_axis takes its range as a pair": lambda: te.reduce_axis(4),
    "te.sum needs axes to reduce over, or two values to combine": lambda: te.sum(A[K]),
    "is not an axis to reduce over": lambda: te.sum(A[K], axis=[3]),
    "the number 2 is not an axis to reduce over": lambda: te.sum(A[K], axis=2),
    "the string 'k' is not an axis to reduce over": lambda: te.max(A[K], axis="k"),
    "te.sum is given 'axis' twice, in its place and by its name": lambda: te.sum(A[K], K, axis=K),
    "te.sum over axes takes axis, where, init, and nothing else": lambda: te.sum(A[K], K, None, None, 3),
    "te.max combines values, and takes no 'where'": lambda: te.max(1, 2, where=te.const(True)),
    "te.sum is given an axis twice": lambda: te.sum(A[K], axis=[K, K]),
    "te.sum is given no axis to reduce over": lambda: te.sum(A[K], axis=[]),
    "te.sum reduces one value, not 2": lambda: te.sum((A[K], A[K]), axis=K),
    "te.all reduces bool, not float32": lambda: te.all(A[K], axis=K),
    "the 'where' of a reduction must be bool, not float32": lambda: te.sum(A[K], axis=K, where=A[K]),
    "reduces 1 value, but has 2 initial values": lambda: te.sum(A[K], axis=K, init=(0.0, 1.0)),
    "a reduction cannot be reduced again": lambda: te.sum(te.sum(A[K], axis=K), axis=K),
    "reducer 'r' on \\(float32\\) combines of \\(int32\\)": lambda: te.comm_reducer(
        lambda x, y: te.const(1), lambda t: te.const(0, t), name="r"
    )(A[K], axis=K),
    "they are not the results of one reduction": lambda: te.compute((4,), lambda i: (te.sum(A[K], axis=K), A[i])),
    "a reduction must be the whole value of compute 'sums'": lambda: te.compute((4,), lambda i: te.sum(A[K], axis=K) + 1.0, name="sums"),
    "a reduction must be the whole value of compute 'nested'": lambda: te.compute((4,), lambda i: te.sum(te.max(A[K], axis=K) + A[L], axis=L), name="nested"),
    "the state 'compute' of te.scan must be a te.placeholder": lambda: te.scan(A, A, te.compute((4,), lambda i: A[i])),
    "te.scan has 1 init, 2 update and 1 state tensors": lambda: te.scan(A, [A, A], A),
    "te.scan takes tensors as init, not the number 3": lambda: te.scan(3, A, A),
    "the dtype of te.extern cannot be told from its inputs": lambda: te.extern((4,), [], lambda i, o: []),
    "the function of te.extern gives a call or statements, not the number 3": lambda: te.extern((4,), [A], lambda i, o: 3),
    "returns tensors and te.var scalars, not the number 3": lambda: te.func("f", [A, 3]),
    "a reduction must be the whole value of compute 'compute'": lambda: te.func(
        "f", [A, te.compute((4,), lambda i: te.sum(A[K], axis=K) + 1)]
    ),
    "axis 'k' is used here, but not reduced over": lambda: te.func("f", [A, te.compute((4,), lambda i: A[K])]),
    "tensor 'A' has no len\\(\\); its extents are A.shape": lambda: len(A),
    "tensor 'A' cannot be iterated over; index it": lambda: iter(A),
    "tensor 'A' is read by element; a slice is not an index": lambda: A[0:2],
    "the range of reduce_axis 'r' has dtype float32; a range is of int32 or int64": lambda: te.reduce_axis((0, 2.5), "r"),
    "the function of a compute takes plain arguments only, one for each axis": lambda: te.compute((4,), lambda i=0: A[i]),
    "the float32 constant 2.5 is not an integer": lambda: operator.index(te.const(2.5)),
    "1.5 cannot be a constant of dtype int8": lambda: te.const(1.5, "int8"),
    "a shift of int32 by 40 is undefined": lambda: te.var("n") << 40,
    "a set cannot be an attribute": lambda: te.func("f", [A], {"key": {1}}),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    with pytest.raises(MirError, match=message):
        REFUSED[message]()
