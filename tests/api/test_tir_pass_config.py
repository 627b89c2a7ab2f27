"""Settings of a pass context that are options of TIR's passes, as in TVM."""

from __future__ import annotations

from typing import Any

import mirstack
import pytest
from mirstack import te, tir
from mirstack.api.ir.module import IRModule
from mirstack.api.ir.named_passes import pass_constructor
from mirstack.api.ir.transform import PassContext
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError

LOOP = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), x: T.int32, y: T.int32):
    for i in range(2):
        A[i] = 1
    if T.likely(x < 3):
        A[2] = x + y
        A[3] = y + x
"""


def run(name: str, config: dict[str, object], **options: object) -> str:
    constructor = pass_constructor(name)
    assert constructor is not None
    with PassContext(config=config):
        return print_mir(constructor(**options)(IRModule.of_op(parse_mir(LOOP))).op)


def test_options_come_from_the_context() -> None:
    assert "for i" in run("UnrollLoop", {})
    assert "for i" not in run("UnrollLoop", {"tir.UnrollLoop": {"auto_max_step": 2}})
    assert "for i" in run("UnrollLoop", {"tir.UnrollLoop": {"auto_max_step": 2}}, auto_max_step=0)
    assert "cse_var" in run("CommonSubexprElimTIR", {"tir.enable_equiv_terms_in_cse_tir": True})
    disabled: dict[str, object] = {"tir.enable_equiv_terms_in_cse_tir": True, "tir.disable_cse_tir": True}
    assert "cse_var" not in run("CommonSubexprElimTIR", disabled)


@pytest.mark.parametrize("name", ["HoistIfThenElse", "LoopPartition", "RemoveNoOp", "Simplify", "UnrollLoop"])
def test_wrong_options(name: str) -> None:
    with pytest.raises(MirError, match=f"tir.{name} holds options by name, as in .*, not 3"):
        run(name, {f"tir.{name}": 3})
    with pytest.raises(MirError, match=f"the pass {name} has no option 'depth'"):
        run(name, {f"tir.{name}": {"depth": 3}})


def vectorized() -> tuple[list[Any], te.Schedule]:
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    schedule = te.create_schedule(B.op)
    schedule[B].vectorize(B.op.axis[0])
    return [A, B], schedule


def test_lower_follows_settings() -> None:
    args, schedule = vectorized()
    assert "T.Broadcast" in str(mirstack.lower(schedule, args))
    with PassContext(config={"tir.disable_vectorize": True, "tir.noalias": False, "tir.disable_storage_rewrite": True}):
        text = str(mirstack.lower(schedule, args))
    assert "for i in range(16)" in text and "noalias" not in text
    order: list[str] = []

    def noted(phase: int) -> tuple[int, Any]:
        def note(func: tir.PrimFunc, mod: IRModule, ctx: PassContext) -> tir.PrimFunc:
            order.append(f"{phase}{' vector' if 'Broadcast' in str(func) else ''}")
            return func.with_attr("seen", phase)

        return phase, tir.transform.prim_func_pass(note, opt_level=0)

    with PassContext(config={"tir.add_lower_pass": [noted(2), noted(0), noted(1), noted(3)]}):
        lowered = mirstack.lower(schedule, args)
    assert order == ["0", "1", "2 vector", "3 vector"] and lowered["main"].attrs["seen"] == 3
    message = r"tir\.add_lower_pass holds pairs of a phase and a pass, not the number 1"
    with pytest.raises(MirError, match=message), PassContext(config={"tir.add_lower_pass": [1]}):
        mirstack.lower(schedule, args)


def test_settings_without_meaning() -> None:
    assert "no effect here" in PassContext.list_configs()["relay.FuseOps.link_params"]["doc"]
    PassContext(config={"relay.FuseOps.link_params": True, "relay.backend.use_auto_scheduler": False})
    with pytest.raises(
        MirError, match=r"the setting 'relay\.backend\.use_auto_scheduler' has no meaning here\n.*no tuning"
    ):
        PassContext(config={"relay.backend.use_auto_scheduler": True})
    with pytest.raises(MirError, match=r"no setting 'tir\.disable_vectorise'; did you mean 'tir\.disable_vectorize'"):
        PassContext(config={"tir.disable_vectorise": True})
    with pytest.raises(MirError, match="compact-buffer-allocation does not grow allocations"):
        run("CompactBufferAllocation", {}, is_strict=False)


SEVERAL = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    T.evaluate(T.assume(A[0] == 1))
    assert A[1] == 2, "wrong"
    for i in T.parallel(8):
        A[i] = 3
"""


def test_passes_of_functions() -> None:
    module = IRModule.of_op(parse_mir(SEVERAL))
    passes: Any = tir.transform
    done = passes.Sequential([passes.RemoveAssume(), passes.SkipAssert(), passes.ConvertForLoopsToSerial()])(module)
    text = str(done)
    assert "assume" not in text and "assert" not in text and "for i in range(8)" in text
    assert "assert" in str(module)
    assert passes.RemoveStoreUndef()(module) is module
    bound = passes.BindTarget(mirstack.target.Target("llvm"))(module)["main"]
    assert "llvm" in bound.attrs["target"]
    assert passes.AnnotateEntryFunc()(module)["main"].attrs["tir.is_entry_func"] == 1
    assert passes.Filter(lambda func: "target" in func.attrs)(module).functions == {}
    assert passes.Apply(lambda func: func.with_attr("x", 1))(module)["main"].attrs["x"] == 1
    assert "for i" in str(passes.StorageFlatten(64)(module))
    with pytest.raises(TypeError, match=r"must return a tir\.PrimFunc, not 3"):
        passes.Apply(lambda func: 3)(module)
