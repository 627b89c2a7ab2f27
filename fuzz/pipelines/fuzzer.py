"""Pipelines of passes on programs of every level: what a program computes stays after each pass."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, ModuleOp

from ...dialects.tir.types import element_of
from ...driver.pipeline import read_pipeline
from ...parser import parse_mir, print_mir
from ...passes.registry import PASSES, pass_factories
from ...support.diagnostics import MirError
from ...support.verify import find_errors
from ...support.walk import walk_ops
from ..case import Case, Verdict, reason
from ..reduce import ON_RELAY, DropItems
from ..relay.fuzzer import draw_program
from ..relay.pipelines import PIPELINES, ROUNDINGS
from ..relay.rounding import Rounding, difference
from ..te.programs import TensorProgramWriter as TeWriter
from ..tir.fuzzer import compared, draw_function
from ..ways import check_printed, interpret

ANY = ("cse", "dce", "mark-open-bounds")
NOT_DRAWN = {
    "apply-rules": "takes a file of rules",
    "convert-rules-to-pdl": "makes patterns of rules",
    "apply-schedule": "carries out scripts, which `schedules` draws",
    "fuse-tir": "works on what lower-relay-to-te leaves",
    "lower-relay-to-te": "makes kernels of what is on its way to code, as `relay` does",
    "lift-transform-params": "works on kernels of Relay programs on their way to code",
    "lower-relay-to-llvm": "ends where nothing is interpreted",
    "call-operator-functions": "works on operators that the program defines, which none of those drawn does",
    "mangle-symbols": "ends where nothing is interpreted",
    "lower-tir-to-scf": "ends where nothing is interpreted",
    "lower-std-to-llvm": "ends where nothing is interpreted",
}
"""Passes that no pipeline is made of, each with the reason."""

ON_TIR_PASSES = (
    tuple(
        entry.name
        for entry in PASSES
        if entry.module.startswith(("passes.tir.", "passes.autoschedule.")) and entry.name not in NOT_DRAWN
    )
    + ANY
)
ON_RELAY_PASSES = tuple(p.text for p in PIPELINES if "," not in p.name)
ADDS_RESULTS = ("first-order-gradient",)
NARROWS = "force-narrow-index-to-int32"
"""The user promises that what it narrows fits."""
KEEPS_DIGITS = "bf16-compute-legalize"
"""Numbers of bfloat16 are not rounded after it, so integers and conditions that depend on them may be others."""
EXCHANGE = "read the same element of"
"""Data races are reported where they are certain, which is so of more programs after their loops are unrolled."""
OPTIONS = {
    "simplify": ("", "", "{transitively-prove-inequalities=true}", "{convert-boolean-to-and-of-ors=true}"),
    "unroll-loop": ("", "{auto-max-step=12 auto-max-extent=2}"),
    "loop-partition": ("", "{partition-const-loop=true}"),
    "narrow-data-type": ("{target-bits=16}", "{target-bits=32}"),
    "common-subexpr-elim-tir": ("", "{identify-equiv-terms=true}"),
    "remove-no-op": ("", "{use-dataflow-analysis=true}"),
}


class PassesFuzzer:
    """Draws a program and up to six passes; interprets it before and after each."""

    shrinkers = (DropItems("pipeline"), *ON_RELAY)

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"passes/{seed}/{number}")
        draws: frozenset[str]
        if number % 3 == 0:
            module, inputs, _ = draw_program(seed, (number // 3) * 7, rng)
            text = print_mir(module)
            pipeline = [rng.choice(ON_RELAY_PASSES) for _ in range(rng.randint(1, 5))]
        elif number % 3 == 1:
            # Passes take int32 and int64 as unbounded (docs/semantics.md).
            text, inputs = draw_function(rng, wraps=False)
            pipeline = self._on_tir(rng)
        else:
            writer = TeWriter(rng)
            text, inputs = print_mir(ModuleOp([writer.function()])), writer.inputs
            pipeline = ["lower-te-to-tir", *self._on_tir(rng)]
        draws = frozenset(step.partition("{")[0] for step in pipeline)
        if NARROWS in draws:
            inputs = {name: _in_32_bits(array) for name, array in inputs.items()}
        return Case("passes", text, inputs, {"pipeline": pipeline, "entry": "main"}, draws)

    @staticmethod
    def _on_tir(rng: random.Random) -> list[str]:
        names = [rng.choice(ON_TIR_PASSES) for _ in range(rng.randint(1, 6))]
        return [name + rng.choice(OPTIONS.get(name, ("",))) for name in names]

    def check(self, case: Case) -> Verdict:
        """Runs the passes one after the other."""
        verdict = Verdict()
        try:
            module = parse_mir(case.text)
            before = interpret(module, case.options["entry"], case.inputs)
        except MirError as error:
            verdict.refused = reason(error, "interpreter")
            return verdict
        factories = pass_factories()
        for step in case.options["pipeline"]:
            name = step.partition("{")[0]
            original = module.clone()
            try:
                for module_pass in read_pipeline(step, factories):
                    module_pass.apply(Context(), module)
            except MirError as error:
                verdict.refused = reason(error, name)
                return verdict
            except Exception as error:
                verdict.fail_by(error, f"in pass '{step}'")
                return verdict
            errors = find_errors(module)
            if errors:
                verdict.fail("invalid", name, f"after pass '{step}' the program is not valid: {errors[0].message}")
                return verdict
            try:
                after = interpret(module, case.options["entry"], case.inputs)
            except MirError as error:
                message = error.diagnostics[0].message
                if EXCHANGE in message:
                    verdict.refused = reason(error, "interpreter")
                else:
                    verdict.fail("refused", name, f"after pass '{step}' the interpreter refuses: {message}")
                return verdict
            verdict.compared += 1
            wrong = changed(name, original, case, before, after)
            if wrong is not None:
                verdict.fail("results", name, f"pass '{step}' changes the results: {wrong}")
                return verdict
            before = after
            try:
                if not check_printed(verdict, module, f"after pass '{step}' what is printed", name):
                    return verdict
            except MirError as error:
                # Checks inside of expressions have no text.
                verdict.refused = reason(error, "text")
                return verdict
        return verdict


def _in_32_bits(array: np.ndarray) -> np.ndarray:
    return np.clip(array, -(2**31), 2**31 - 1) if array.dtype == np.int64 else array


def _tests_bfloat16(module: ModuleOp) -> bool:
    """Tells whether integers or booleans are computed from bfloat16 numbers."""
    bf16 = BFloat16Type()
    return any(
        any(element_of(operand.type) == bf16 for operand in op.operands)
        and any(not isinstance(element_of(result.type), AnyFloat) for result in op.results)
        for op in walk_ops(module)
    )


def changed(
    name: str, original: ModuleOp, case: Case, before: dict[str, np.ndarray], after: dict[str, np.ndarray]
) -> str | None:
    """Describes how a pass changed results by more than the roundings that it may change."""
    from ...dialects.relay import FuncOp

    if name in ADDS_RESULTS:
        after = dict(list(after.items())[: len(before)])
    if not any(isinstance(op, FuncOp) for op in original.ops):
        # What is in all arrays: a function whose loops are empty does not say any more that it writes one.
        if name == KEEPS_DIGITS and _tests_bfloat16(original):
            return None
        old, new = ({**case.inputs, **results} for results in (before, after))
        return compared(original, case.options["entry"], case.inputs, old, new)
    rounding: Rounding | None = ROUNDINGS.get(name)
    main: Any = next(op for op in original.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    inputs = [case.inputs[parameter.data] for parameter in main.param_names.data]
    with np.errstate(all="ignore"):
        return difference(original, inputs, list(before.values()), list(after.values()), rounding)


FUZZER = PassesFuzzer()
