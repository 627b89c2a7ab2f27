"""default-schedule{print=true}: what the rules do, as text that does it again."""

from __future__ import annotations

from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.dialects import tir
from mirstack.dialects.schedule import ScriptOp
from mirstack.driver.modules import read_module
from mirstack.examples.models.registry import build
from mirstack.lowering.pipeline import Options, lowering_passes
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from mirstack.passes.schedule.apply_schedule import ApplySchedule
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

CPUS = {"mlp": "neoverse-n1", "resnet18": "haswell", "lstm": "haswell"}
"""znver4 for the others."""
MODELS: dict[str, dict[str, float]] = {
    "mlp": {"batch": 3, "image": 14},
    "lenet": {"batch": 5},
    "resnet18": {"image": 32, "width": 1 / 8, "classes": 10},
    "mobilenet": {"image": 32, "width": 1 / 8, "classes": 10},
    "lstm": {"batch": 2, "sequence": 5, "inputs": 12, "hidden": 20},
    "bert": {"sequence": 16, "hidden": 48, "heads": 4, "layers": 1},
}

DENSE = """
@T.prim_func
def dense(A: T.Buffer((37, 64), "float32"), B: T.Buffer((50, 64), "float32"), D: T.Buffer((37, 50), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    C = T.alloc_buffer((37, 50))
    for i, j, k in T.grid(37, 50, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
    for i, j in T.grid(37, 50):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
"""


def kernels(path: Path) -> ModuleOp:
    """The prim_funcs of a model as default-schedule gets them."""
    module = read_module(str(path), None)
    for step in lowering_passes(Options()):
        if step.name == "default-schedule":
            break
        step.apply(Context(), module)
    functions = [op for op in module.body.block.ops if isinstance(op, tir.PrimFuncOp)]
    for function in functions:
        function.detach()
    return ModuleOp(functions)


def printed(module: ModuleOp, cpu: str) -> str:
    """The functions with their schedules behind them, as text."""
    module = module.clone()
    DefaultSchedule(cpu=cpu, threads=4, print=True).apply(Context(), module)
    return print_mir(module)


def scheduled(module: ModuleOp, cpu: str) -> str:
    """The functions after their schedules."""
    module = module.clone()
    DefaultSchedule(cpu=cpu, threads=4).apply(Context(), module)
    return print_mir(module)


def applied(text: str) -> str:
    """The functions of a text after the schedules in it."""
    module = parse_mir(text)
    ApplySchedule().apply(Context(), module)
    return print_mir(module)


@pytest.mark.parametrize("name", MODELS)
def test_a_printed_schedule_does_what_the_rules_did(name: str, tmp_path: Path) -> None:
    cpu = CPUS.get(name, "znver4")
    module = kernels(build(name, 0, **MODELS[name]).write(tmp_path, name))
    text = printed(module, cpu)
    assert "@T.schedule" in text and print_mir(parse_mir(text)) == text
    assert applied(text) == scheduled(module, cpu)


def test_functions_stay_as_they_are() -> None:
    module = parse_mir(DENSE)
    text = printed(module, "znver4")
    again = parse_mir(text)
    for script in [op for op in again.body.block.ops if isinstance(op, ScriptOp)]:
        script.detach()
    assert print_mir(again) == print_mir(module)


def test_an_edited_schedule_computes_the_same() -> None:
    text = printed(parse_mir(DENSE), "znver4")
    i = next(line for line in text.splitlines() if "sch.split(i, " in line)
    edited = text.replace(i, i[: i.index("factors=")] + "factors=[None, 2])")
    assert edited != text
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((37, 64), (50, 64)))
    for each in (text, edited):
        d = np.zeros((37, 50), "float32")
        mirstack.compile(mirstack.parse(each))(a, b, d)
        np.testing.assert_allclose(d, np.maximum(a @ b.T, 0), rtol=1e-4, atol=1e-4)


def test_names_that_are_taken() -> None:
    again = DENSE.replace("def dense(", "def dense_schedule(")
    module = parse_mir(DENSE + again)
    text = printed(module, "znver4")
    assert "def dense_schedule_1(sch)" in text and "def dense_schedule_schedule(sch)" in text
    assert applied(text) == scheduled(module, "znver4")


def test_functions_with_a_schedule_get_no_other() -> None:
    text = DENSE + '\n@T.schedule(dense)\ndef by_hand(sch):\n    sch.parallel(sch.get_loops("C")[0])\n'
    assert printed(parse_mir(text), "znver4").count("@T.schedule") == 1


def test_blocks_of_one_name_are_found_by_their_place() -> None:
    module = parse_mir(DENSE.replace('T.block("D")', 'T.block("C")'))
    text = printed(module, "znver4")
    assert "get_child_blocks" in text
    assert applied(text) == scheduled(module, "znver4")
