"""`mirstack.build` and `mirstack.nd`: functions by name, arrays in place, targets."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.api.script import from_source
from mirstack.api.target import Target
from mirstack.support.diagnostics import MirError

TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def add_one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] + 1.0
    @T.prim_func
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * 2.0
"""


@pytest.mark.parametrize("target", ["llvm", "interp", "llvm -mcpu=haswell", None])
def test_functions_by_name(target: str | None) -> None:
    module = mirstack.build(from_source(TEXT), target=target)
    a, b = mirstack.nd.array(np.arange(4, dtype="float32")), mirstack.nd.empty((4,))
    module["add_one"](a, b)
    assert b.numpy().tolist() == [1, 2, 3, 4]
    module["double"](a, b)
    assert b.numpy().tolist() == [0, 2, 4, 6]
    assert "double" in module and repr(module["double"]) == "PackedFunc(double(A, B))"


def test_which_function_a_call_calls() -> None:
    module = mirstack.build(from_source(TEXT))
    with pytest.raises(MirError, match="the module has several functions and no main\nnote: it has add_one, double"):
        module()
    with pytest.raises(MirError, match="the module has no function 'triple'\nnote: it has add_one, double"):
        module["triple"]


def test_nothing_to_build() -> None:
    with pytest.raises(MirError, match="the module has no function to build"):
        mirstack.build(mirstack.IRModule())


def test_targets_that_code_is_made_for() -> None:
    module = from_source(TEXT)
    with pytest.raises(MirError, match="'much' does not say how large caches are"):
        mirstack.build(module, target="llvm -caches=much")
    with pytest.raises(
        ValueError, match="there is no code for the target 'cuda'\nnote: programs are compiled for llvm"
    ):
        mirstack.build(module, target="cuda")
    with pytest.raises(
        ValueError, match="'-mtriple=riscv64-linux-gnu' is another machine, whose code does not run here"
    ):
        mirstack.build(module, target="llvm -mtriple=riscv64-linux-gnu")
    a, b = mirstack.nd.array(np.arange(4, dtype="float32")), mirstack.nd.empty((4,))
    for target in (Target("llvm -mcpu=haswell -num-cores=1 -caches=16K,64K"), {"kind": "c"}, "cpu"):
        mirstack.build(module, target=target)["add_one"](a, b)
        assert b.numpy().tolist() == [1, 2, 3, 4]
    with Target("interp"):
        assert "Interpreted" in type(mirstack.build(module)["double"].executable).__name__


def test_time_evaluator() -> None:
    module = mirstack.build(from_source(TEXT))
    a, b = mirstack.nd.array(np.zeros(4, "float32")), mirstack.nd.empty((4,))
    result = module.time_evaluator("add_one", mirstack.cpu(), number=2, repeat=3)(a, b)
    assert len(result.results) == 3 and result.min <= result.median <= result.max
    assert result.min <= result.mean <= result.max


def test_what_a_module_tells() -> None:
    text = (
        "@T.prim_func\ndef scale(A: T.Buffer((64,), 'float32')):\n    for i in range(64):\n        A[i] = A[i] * 2.0\n"
    )
    module = mirstack.build(from_source(text))
    data = mirstack.nd.array(np.ones(64, "float32"))
    assert module.entry_name == "scale" and module.implements_function("scale") and module.type_key == "llvm"
    timed = module.time_evaluator(module.entry_name, mirstack.cpu(), number=1, repeat=3, cooldown_interval_ms=1)
    assert len(timed(data).results) == 3 and not module.imported_modules
    module.get_function("scale")(data)
    assert data[0] == 2**5
    assert "define" in module.get_source() and "fmul" in module.get_source("ll") and ".text" in module.get_source("asm")
    with pytest.raises(ValueError, match="there is no code in the format 'ptx'\nnote: there are ll and asm"):
        module.get_source("ptx")
    with pytest.raises(MirError, match="the module has several functions and no main"):
        mirstack.build(from_source(TEXT)).entry_name  # noqa: B018
    with pytest.raises(ValueError, match="repeats_to_cooldown is an integer from 1 on, not 0"):
        module.time_evaluator("scale", repeats_to_cooldown=0)


def test_arrays() -> None:
    array = mirstack.nd.array([[1.0, 2.0], [3.0, 4.0]])
    assert str(array) == "[[1. 2.]\n [3. 4.]]" and array.shape == (2, 2) and len(array) == 2
    assert [mirstack.nd.array(x).shape for x in (np.float32(5), np.array(5.0), 5.0)] == [(), (), ()]
    assert mirstack.nd.array(np.zeros((2, 3)).T).storage.flags.c_contiguous
    assert array.dtype == "float64" and repr(array.device) == "cpu(0)"
    array[0] = [5.0, 6.0]
    assert array[0].tolist() == [5, 6]
    other = mirstack.nd.empty((2, 2), "float64").copyfrom(array)
    assert np.array_equal(other.asnumpy(), array.numpy())
    assert np.array_equal(array.copyto(mirstack.cpu()).numpy(), array.numpy())
    with pytest.raises(ValueError, match=r"an array of shape \(2, 2\) cannot hold one of shape \(3,\)"):
        array.copyfrom([1, 2, 3])
    with pytest.raises(TypeError, match="a tensor is of numbers"):
        mirstack.nd.array(["a"])


def test_schedules_of_te() -> None:
    from mirstack.api import te

    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].parallel(outer)
    s[b].vectorize(inner)
    module = mirstack.build(s, [a, b], "llvm", name="double")
    data, out = np.arange(7, dtype="float32"), np.zeros(7, "float32")
    module["double"](data, out)
    assert out.tolist() == (data * 2).tolist()


def test_passes_by_name() -> None:
    from mirstack.api import tir

    module = from_source(
        "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    for i in range(4):\n        A[i] = i + 0 * i\n"
    )
    assert isinstance(module, tir.PrimFunc)
    simple = tir.transform.Simplify()(mirstack.IRModule({"f": module}))
    assert "A[i] = i\n" in simple.script() + "\n"
    assert "UnrollLoop" in dir(tir.transform) and "FuseOps" not in dir(tir.transform)
    with pytest.raises(AttributeError, match=r"module 'mirstack\.tir\.transform' has no pass 'FuseOps'"):
        tir.transform.FuseOps  # noqa: B018
