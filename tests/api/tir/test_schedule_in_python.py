"""`mirstack.tir.Schedule`: TVM's interface, the given module untouched, refusals with the program."""

from __future__ import annotations

import subprocess
import sys

import mirstack
import numpy as np
import pytest
from mirstack import tir
from mirstack.api.tir import IndexMap, PrimFunc, Schedule, ScheduleError, Trace
from mirstack.api.tir.schedule import BlockRV, LoopRV
from mirstack.parser import parse_mir

TEXT = """
@T.prim_func
def mm(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    Y = T.alloc_buffer((16, 16))
    for i, j, k in T.grid(16, 16, 16):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


def module() -> mirstack.IRModule:
    return mirstack.IRModule.of_op(mirstack.parse(TEXT))


def test_a_session() -> None:
    mod = module()
    before = mod.script()
    sch = tir.Schedule(mod)
    block = sch.get_block("Y", func_name="mm")
    i, j, k = sch.get_loops(block)
    assert isinstance(block, BlockRV) and isinstance(i, LoopRV)
    early = sch.mod
    j0, j1 = sch.split(j, factors=[None, 4])
    assert sch.mod is sch.mod and sch.mod is not early
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at("C", j0)
    assert mod.script() == before == early.script()
    assert "for k, j_1 in T.grid(16, 4):" in sch.mod.script()
    a, b = np.random.default_rng(0).standard_normal((2, 16, 16)).astype("float32")
    c = mirstack.nd.empty((16, 16), "float32")
    mirstack.build(sch.mod, target="llvm")["mm"](mirstack.nd.array(a), mirstack.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), np.maximum(a @ b, 0), rtol=1e-5)


def test_what_is_scheduled() -> None:
    op = parse_mir(TEXT)
    (function,) = op.body.block.ops
    for given in (op, function, PrimFunc(function), mirstack.IRModule.of_op(op)):  # type: ignore[arg-type]
        sch = Schedule(given)  # type: ignore[arg-type]
        sch.parallel(sch.get_loops("C")[0])
        assert "T.parallel" in sch.mod.script()
    assert "def main(" in Schedule(PrimFunc(function)).mod.script()  # type: ignore[arg-type]
    assert "T.parallel" not in mirstack.IRModule.of_op(op).script()
    with pytest.raises(TypeError, match=r"tir\.Schedule takes an IRModule or a PrimFunc, not str"):
        Schedule(TEXT)  # type: ignore[arg-type]


def refusal(**options: str) -> str:
    sch = Schedule(module(), **options)  # type: ignore[arg-type]
    _, _, k = sch.get_loops("Y")
    with pytest.raises(ScheduleError) as error:
        sch.parallel(k)
    assert sch.mod.script() == module().script()
    return str(error.value)


def test_refusals_show_the_program() -> None:
    text = refusal()
    assert "parallel: loop 'k' drives axis 'vk' of block 'Y', which is not a spatial axis" in text
    assert "rfactor loop 'k' to make its iterations independent" in text and "('i', 'j')" in text
    assert "    for i, j, k in T.grid(16, 16, 16):\n              ^" in text
    assert "in the program as it is here" not in refusal(error_render_level="fast")
    with pytest.raises(ValueError, match="error_render_level is one of detail, fast, none, not 'x'"):
        Schedule(module(), error_render_level="x")
    with pytest.raises(ValueError, match="debug_mask is 'none', 'all' or a number, not 'some'"):
        Schedule(module(), debug_mask="some")
    with pytest.raises(ValueError, match="enable_check=False is not to be had"):
        Schedule(module(), enable_check=False)


def test_debug_mask_and_copies() -> None:
    sch = Schedule(module(), debug_mask="all", seed=1)
    i = sch.get_loops("C")[0]
    copy = sch.copy()
    copy.parallel(i)
    assert "T.parallel" in copy.mod.script() and "T.parallel" not in sch.mod.script()
    assert isinstance(copy, Schedule) and copy.fork_seed() == sch.fork_seed()
    assert sch.state.module is sch.module


def test_traces(capsys: pytest.CaptureFixture[str]) -> None:
    sch = Schedule(module())
    sch.work_on("mm")
    block = sch.get_block("Y")
    sch.transform_layout(block, ("write", 0), lambda i, j: [i // 4, IndexMap.AXIS_SEPARATOR, j, i % 4])
    sch.enter_postproc()
    sch.parallel(sch.get_loops(block)[0])
    assert "lambda i, j: (i // 4, IndexMap.AXIS_SEPARATOR, j, i % 4,)" in str(sch.trace)
    new = Schedule(module())
    Trace(sch.trace.insts).apply_to_schedule(new)
    assert new.mod.script() == sch.mod.script()
    sch.show()
    sch.trace.show()
    shown = capsys.readouterr().out
    assert "T.parallel" in shown and shown.count("def apply_trace(sch: tir.Schedule) -> None:") == 2


def test_variadic_maps() -> None:
    sch = Schedule(module())
    sch.transform_layout("Y", "Y", lambda *indices: indices[::-1])
    assert "lambda i0, i1: (i1, i0,)" in str(sch.trace)


def test_names_are_imported_when_asked_for() -> None:
    from importlib import import_module

    assert import_module("mirstack.tir.schedule").Schedule is tir.Schedule
    code = "import sys, mirstack; mirstack.tir.IntImm; print([m for m in sys.modules if 'passes.schedule' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError):
        tir.no_such_name  # noqa: B018
