"""The golden cases of TIR passes: what TVM made of a program, as text, and how what is made here compares.

A case is a folder's `.in.py`, `.out.py` and json (see the corpus's README). The json names TVM's test, not the options that it
set: those stand here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from mirstack.dialects.tir import EvaluateOp, ForOp, LaunchThreadOp, PrimFuncOp, StoreOp
from mirstack.dialects.tir.operators import as_const
from mirstack.dialects.tir.structural_key import structural_key
from mirstack.driver.check_each import first_difference, interpret
from mirstack.driver.errors import UsageError
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.diagnostics import MirError
from mirstack.support.walk import walk_ops
from reference import Case
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

# The options that TVM's tests set, by pass or by case.
OPTIONS: dict[str, str] = {
    "LoopPartition": "partition-const-loop=true",
    "LoopPartition/003": "partition-const-loop=true no-unroll-loop-with-extent-one=true",
    "LoopPartition/006": "",
    "LoopPartition/007": "",
    "LoopPartition/009": "",
    "HoistIfThenElse/018": "support-block-scope-hosting=true",
    "HoistIfThenElse/019": "support-block-scope-hosting=true",
    "UnrollLoop/001": "auto-max-step=16",
    "UnrollLoop/002": "auto-max-step=8",
    "UnrollLoop/004": "auto-max-step=1",
    "RemoveNoOp/004": "use-dataflow-analysis=true max-simplification-steps=0",
    "RemoveNoOp/005": "use-dataflow-analysis=true max-simplification-steps=0",
    "CommonSubexprElimTIR": "identify-equiv-terms=false",
    "NarrowDataType": "target-bits=32",
    "NarrowDataType/012": "target-bits=16",
}
# Cases whose buffer has one element, of which they access four.
OUT_OF_BOUNDS = ("VectorizeLoop/013", "VectorizeLoop/015")
# Cases of TVM's ForceNarrowIndexToInt32, which goes by the other's name.
FORCED = ("NarrowDataType/001", "NarrowDataType/005")

_MISSING = re.compile(r"'([\w.]+)' is not defined")


@dataclass(frozen=True)
class TirPassCase(Case):
    """One case of a pass."""

    @property
    def id(self) -> str:
        """`Simplify/009`."""
        return f"{self.folder}/{self.name}"

    @property
    def folder(self) -> str:
        """The name of the pass in the corpus."""
        return self.json_path.parent.name

    @property
    def is_refused(self) -> bool:
        """Whether TVM refuses the program."""
        return "error" in self.info

    @property
    def pipeline(self) -> str:
        """What `mir-opt -p` is given."""
        if self.id in FORCED:
            return "force-narrow-index-to-int32"
        options = OPTIONS.get(self.id, OPTIONS.get(self.folder, ""))
        return pass_name(self.folder) + (f"{{{options}}}" if options else "")

    @cached_property
    def before(self) -> str:
        """The program before, with what it leaves undeclared as parameters."""
        return declared(self.json_path.with_suffix(".in.py").read_text())[0]

    @cached_property
    def after(self) -> str:
        """What TVM made of it."""
        names = declared(self.json_path.with_suffix(".in.py").read_text())[1]
        return declared(self.json_path.with_suffix(".out.py").read_text(), names)[0]

    def run(self) -> ModuleOp:
        """The program after the pass, as it is here."""
        module = parse_mir(self.before)
        for module_pass in read_pipeline(self.pipeline, pass_factories()):
            module_pass.apply(Context(), module)
        return module

    def difference(self, module: ModuleOp) -> str | None:
        """None where the program is TVM's, names of variables aside."""
        ours, theirs = alpha(module), alpha(parse_mir(self.after))
        return None if ours == theirs else f"{print_mir(module)}\n--- TVM\n{print_mir(parse_mir(self.after))}"

    def meaning_difference(self, module: ModuleOp) -> str | None:
        """Runs the program before and after, on the same random inputs: None where all results are equal.

        Raises `CannotRun` where a program cannot be run at all.
        """
        if self.id in OUT_OF_BOUNDS:
            raise CannotRun("the program reaches outside of its buffer")
        return results_difference(parse_mir(self.before), module)


def alpha(module: ModuleOp) -> str:
    """The text of a module's functions with their variables numbered."""
    return "\n".join(map(structural_key, prim_funcs(module).values()))


class CannotRun(Exception):
    """A program that has no meaning of its own: threads of a GPU, memory that nothing wrote."""


def results_difference(before: ModuleOp, after: ModuleOp) -> str | None:
    """Where the results of two modules, on the same inputs, differ: None where they do not."""
    if max(_work(before), _work(after)) > MOST_WORK:
        raise CannotRun("the program is too large to be interpreted in a test")
    for seed in (0, 1):
        try:
            expected = interpret(before, seed)
        except (MirError, UsageError) as error:
            raise CannotRun(str(error)) from None
        if not expected:
            return None
        difference = first_difference(expected, interpret(after, seed))
        if difference is not None:
            return difference
    return None


# Programs of more turns of loops than this are not run.
MOST_WORK = 200_000


def _work(module: ModuleOp) -> int:
    """About how often the bodies of loops run, a loop of unknown extent taken as 8 turns."""
    total = 0
    turns: dict[Operation | None, int] = {}
    for op in walk_ops(module):
        around = turns.get(op.parent_op(), 1)
        extent = as_const(op.extent) if isinstance(op, ForOp | LaunchThreadOp) else None
        turns[op] = around if not isinstance(op, ForOp) else around * (8 if extent is None else int(extent.value))
        if isinstance(op, LaunchThreadOp):
            turns[op.parent_op()] = around * (8 if extent is None else int(extent.value))
        total += around if isinstance(op, StoreOp | EvaluateOp) else 0
    return total


def declared(text: str, names: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """`text`, with what is not declared (for TVM printed a part of a program) as parameters of its function, and those.

    `names` are the parameters to add in any case, as those of the program before.
    """
    found = dict(names or {})
    for name, kind in found.items():
        text = _declare(text, name, kind)
    for _ in range(20):
        try:
            parse_mir(text)
            break
        except MirError as error:
            missing = _MISSING.search(str(error))
            if missing is None or missing[1] in found:
                break
        name = missing[1]
        if f"\n{name} = T.allocate(" in re.sub(r"\n +", "\n", text):
            # TVM's text shows the memory in a loop, and used after it.
            text = _allocated_first(text, name)
            continue
        found[name] = _kind(text, name)
        text = _declare(text, name, found[name])
    return text, found


def _allocated_first(text: str, name: str) -> str:
    """The allocation at the start of the function."""
    line = re.search(rf"\n +({re.escape(name)} = T.allocate\(.*\))", text)
    start = re.search(r"def main\(.*\n( +)", text)
    assert line is not None and start is not None
    text = text.replace(line[0], "", 1)
    return f"{text[: start.end()]}{line[1]}\n{start[1]}{text[start.end() :]}"


def _kind(text: str, name: str) -> str:
    access = re.search(rf"(?<![\w.]){re.escape(name)}\[([^\[\]]*)\]", text)
    if access is not None:
        return f'T.Buffer(({"1024," * (access[1].count(",") + 1)}), "float32")'
    return 'T.handle("float32")' if f"data={name}" in text else "T.int32"


def _declare(text: str, name: str, kind: str) -> str:
    plain = name.replace(".", "_")
    text = text.replace(name, plain)
    # A declaration within what uses it: T.grid(4, n, m) around m = T.int32().
    text = re.sub(rf"\n *{re.escape(plain)} = T.int32\(\)(?=\n)", "", text)
    return re.sub(r"def main\(", f"def main({plain}: {kind}, ", text, count=1).replace(", )", ")")


def pass_name(folder: str) -> str:
    """`HoistIfThenElse` as `hoist-if-then-else`."""
    words = re.findall(r"[A-Z]+[0-9]*(?![a-z])|[A-Z][a-z0-9]*", folder)
    return "-".join(words).lower()


def load_cases(root: Path) -> list[TirPassCase]:
    """Every case, in order."""
    found = [TirPassCase(path, ".in.py") for path in root.glob("*/*.json")]
    return sorted(found, key=lambda case: (case.folder, case.name))


def prim_funcs(module: ModuleOp) -> Mapping[str, PrimFuncOp]:
    """The functions of a module by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, PrimFuncOp)}


__all__ = ["CannotRun", "TirPassCase", "alpha", "load_cases", "np", "pass_name", "prim_funcs", "results_difference"]
