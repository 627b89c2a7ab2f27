"""Weights that are constants are packed once, when the program is loaded."""

from __future__ import annotations

from collections.abc import Callable

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from numpy.typing import NDArray

Floats = NDArray[np.float32]
RNG = np.random.default_rng(7)


def floats(*shape: int) -> Floats:
    return RNG.standard_normal(shape).astype(np.float32)


def dense(x: relay.Expr, w: relay.Expr) -> relay.Expr:
    return relay.nn.dense(x, w)


def transposed(x: relay.Expr, w: relay.Expr) -> relay.Expr:
    return relay.nn.matmul(x, relay.transpose(w))


def conv(layout: str, kernel: str, **attrs: object) -> Callable[[relay.Expr, relay.Expr], relay.Expr]:
    return lambda x, w: relay.nn.conv2d(x, w, padding=(1, 1), data_layout=layout, kernel_layout=kernel, **attrs)


CASES: dict[str, tuple[Callable[[relay.Expr, relay.Expr], relay.Expr], tuple[int, ...], tuple[int, ...]]] = {
    "dense": (dense, (48, 65), (130, 65)),
    "transposed weights": (transposed, (48, 65), (130, 65)),
    "odd dense": (dense, (37, 129), (131, 129)),
    "batch_matmul": (relay.nn.batch_matmul, (3, 40, 64), (3, 96, 64)),
    "constant left side": (lambda x, w: relay.nn.batch_matmul(w, x), (3, 40, 64), (3, 96, 64)),
    "NCHW": (conv("NCHW", "OIHW"), (1, 16, 14, 14), (40, 16, 3, 3)),
    "NHWC": (conv("NHWC", "HWIO"), (1, 14, 14, 16), (3, 3, 16, 40)),
    # So large that a copy in between would be on the heap, and might be missing.
    "groups": (conv("NCHW", "OIHW", groups=4), (1, 128, 7, 7), (128, 32, 3, 3)),
}


def compiled(
    build: Callable[[relay.Expr, relay.Expr], relay.Expr], x: Floats, w: Floats, *, constant: bool
) -> RelayExecutable:
    var, weight = relay.var("x", shape=x.shape, dtype="float32"), relay.var("w", shape=w.shape, dtype="float32")
    function = (
        relay.Function([var], relay.nn.relu(build(var, relay.const(w))))
        if constant
        else relay.Function([var, weight], relay.nn.relu(build(var, weight)))
    )
    executable = mirstack.compile(mirstack.IRModule.from_expr(function), threads=1)
    assert isinstance(executable, RelayExecutable)
    return executable


@pytest.mark.parametrize("name", CASES)
def test_constant_weights_mean_the_same(name: str) -> None:
    build, x_shape, w_shape = CASES[name]
    x, w = floats(*x_shape), floats(*w_shape)
    wanted = compiled(build, x, w, constant=False)(x, w)
    executable = compiled(build, x, w, constant=True)
    assert executable.prepared_bytes >= w.nbytes
    for _ in range(2):
        np.testing.assert_allclose(executable(x), wanted, rtol=1e-4, atol=1e-4)


def test_constants_that_only_packing_reads_are_given_up() -> None:
    executable = compiled(dense, floats(48, 65), floats(130, 65), constant=True)
    assert executable.constant_bytes == 0


def test_layers_share_a_kernel_and_equal_weights_are_packed_once() -> None:
    x, a, b = floats(16, 64), floats(64, 64), floats(64, 64)
    var = relay.var("x", shape=x.shape, dtype="float32")
    layers = relay.nn.dense(relay.nn.dense(relay.nn.dense(var, relay.const(a)), relay.const(b)), relay.const(a.copy()))
    names: list[str] = []

    def observe(step: object, module: object) -> None:
        if getattr(step, "name", "") == "lift-transform-params":
            names.extend(op.sym_name.data for op in module.ops if op.name == "tir.prim_func")  # type: ignore[attr-defined]

    executable = mirstack.compile(
        mirstack.IRModule.from_expr(relay.Function([var], layers)), threads=1, observers=(observe,)
    )
    assert sorted(names) == ["fused_nn_dense", "fused_nn_dense_transform_params"]
    assert isinstance(executable, RelayExecutable)
    assert executable.prepared_bytes == a.nbytes + b.nbytes
    np.testing.assert_allclose(executable(x), x @ a.T @ b.T @ a.T, rtol=1e-3, atol=1e-3)


KERNELS = """
# from tvm.script import tir as T

@T.prim_func
def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)

@T.prim_func
def both(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.float32(1)
            C[vi] = A[vi] * A[vi]
"""

GIVEN = 'full(2f, shape=[4], dtype="float32")'
"""What `fold-constant` makes a constant of."""

PROGRAMS = {
    "chain": f"%0 = call_tir(@twice, {GIVEN}); %1 = call_tir(@twice, %0); add(%x, %1)",
    "returned": f"call_tir(@twice, {GIVEN})",
    "tuple": f"%0 = call_tir(@both, {GIVEN}); (%0, add(%0.1, %x), call_tir(@twice, %0.0))",
    "branch": f"if (less(sum(%x), 0f)) {{ call_tir(@twice, {GIVEN}) }} else {{ %x }}",
    "closure": f"""let %w = call_tir(@twice, {GIVEN});
        let %f = fn (%a: Tensor[(4), float32]) -> Tensor[(4), float32] {{ add(%a, %w) }};
        %f(%f(%x))""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_on_constants_are_made_once(name: str) -> None:
    text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {{ {PROGRAMS[name]} }}\n{KERNELS}'
    module = mirstack.parse(text)
    interpreted = mirstack.compile(module, target="interp")
    executable = mirstack.compile(module)
    assert isinstance(executable, RelayExecutable)
    assert executable.prepared_bytes >= 16
    for x in (floats(4), -np.ones(4, np.float32)):
        for got, wanted in zip(flat(executable(x)), flat(interpreted(x)), strict=True):
            np.testing.assert_array_equal(got, wanted)


def flat(value: object) -> list[Floats]:
    """The tensors of a result."""
    return [x for field in value for x in flat(field)] if isinstance(value, tuple) else [np.asarray(value)]


def test_what_calls_other_functions_runs_at_each_call() -> None:
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) {{ add(%x, call_tir(@root, {GIVEN})) }}
# from tvm.script import tir as T

@T.prim_func
def root(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = T.call_extern("float32", "cbrtf", A[i])
"""
    executable = mirstack.compile(mirstack.parse(text))
    assert isinstance(executable, RelayExecutable)
    assert executable.prepared_bytes == 0
    np.testing.assert_allclose(executable(np.zeros(4, np.float32)), np.cbrt(np.full(4, 2, np.float32)), rtol=1e-6)


def test_a_stage_that_another_one_only_declares_to_read() -> None:
    """Of no scores above the threshold, what was sorted before is in a block's T.reads and nowhere else."""
    boxes, scores = (
        np.tile(np.array([0, 0, 1, 1], np.float32), (1, 5, 1)),
        np.linspace(0, 1, 5, dtype=np.float32).reshape(1, 1, 5),
    )
    limits = (relay.const(2, "int64"), relay.const(0.0, "float32"), relay.const(0.2, "float32"))
    call = relay.vision.all_class_non_max_suppression(relay.const(boxes), relay.const(scores), *limits)
    module = mirstack.IRModule.from_expr(relay.Function([], call))
    wanted = mirstack.compile(module, "interp")()
    for level in (0, 1):
        for got, expected in zip(mirstack.compile(module, opt_level=level)(), wanted, strict=True):
            np.testing.assert_array_equal(got, expected)
