"""One function lowers for object files, for `mir-opt -t llvm` and for `-t asm`: the same passes, kernels apart or not."""

from __future__ import annotations

import mirstack
from mirstack.lowering.driver.build import build, llvm_text, lower_module
from mirstack.lowering.pipeline import Options, lowering_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

RELAY = "def @main(%x: Tensor[(4, 8), float32]) { nn.softmax(nn.relu(%x)) }"
TIR = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(1)
"""
OPTIONS = Options(threads=1)


class Names:
    """The names of the passes that ran, and of the modules how many there were."""

    def __init__(self) -> None:
        self.passes: list[str] = []
        self.modules: set[int] = set()
        self.kept: list[ModuleOp] = []

    def __call__(self, step: ModulePass, module: ModuleOp) -> None:
        self.passes.append(step.name)
        self.modules.add(id(module))
        self.kept.append(module)


def test_kernels_apart_run_the_passes_of_a_whole_module() -> None:
    whole, apart = Names(), Names()
    lower_module(mirstack.parse(RELAY), OPTIONS, (whole,))
    build(mirstack.parse(RELAY), OPTIONS, (apart,))
    assert whole.passes == [step.name for step in lowering_passes(OPTIONS)]
    # Names are mangled when kernels are taken apart, for all of them at once.
    once = list(dict.fromkeys(apart.passes))
    assert once == [name for name in dict.fromkeys(whole.passes) if name != "mangle-symbols"]
    assert len(whole.modules) == 1 and len(apart.modules) > 2


def test_a_module_without_relay_is_lowered_as_it_is() -> None:
    texts, objects = Names(), Names()
    assert "define" in llvm_text(mirstack.parse(TIR), OPTIONS, (texts,))
    build(mirstack.parse(TIR), OPTIONS, (objects,))
    assert texts.passes == objects.passes and len(objects.modules) == 1
