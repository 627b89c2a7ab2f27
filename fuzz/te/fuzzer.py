"""TE programs under schedules, against the interpreter of the program without one."""

from __future__ import annotations

import random
from collections import Counter

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.te import FuncOp
from ...dialects.te.lift import Lifted
from ...dialects.te.schedule_ops import ScheduleOp
from ...lowering.te.schedule.frontend import create_schedule
from ...parser import parse_mir, print_mir
from ...passes.registry import pass_factories
from ...support.diagnostics import MirError
from ...support.verify import find_errors
from ..case import Case, Verdict, reason
from ..reduce import ON_TIR
from ..tir.fuzzer import compared
from ..ways import check_natively, check_printed, draw_ways, interpret
from .moves import move
from .programs import TensorProgramWriter

NATIVELY = 0.4


class TeFuzzer:
    """Draws a function and a schedule, which is written after it."""

    shrinkers = ON_TIR

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"te/{seed}/{number}")
        writer = TensorProgramWriter(rng)
        text = print_mir(ModuleOp([writer.function()]))
        module = parse_mir(text)
        accepted, refused = Counter[str](), Counter[str]()
        function = next(op for op in module.ops if isinstance(op, FuncOp))
        lifted = Lifted(function)
        schedule = create_schedule(lifted.outputs())
        for _ in range(rng.randint(0, 10)):
            try:
                name = move(schedule, rng)
            except (MirError, IndexError):
                refused["refused"] += 1
                continue
            accepted[name] += 1
        module.body.block.add_op(schedule.as_op(lifted.operations, "s", "main"))
        ways = draw_ways(rng, 1) if rng.random() < NATIVELY else []
        options = {"ways": ways, "entry": "main", "refused": refused.total()}
        return Case("te", print_mir(module), writer.inputs, options, frozenset(accepted) | frozenset(writer.drawn))

    def check(self, case: Case) -> Verdict:
        """Runs the function without the schedule, then lowered by it."""
        verdict = Verdict()
        try:
            module = parse_mir(case.text)
        except MirError as error:
            verdict.refused = reason(error, "parser")
            return verdict
        if print_mir(module) != case.text:
            check_printed(verdict, module)
        plain = module.clone()
        steps = 0
        for op in plain.ops:
            if isinstance(op, ScheduleOp):
                steps += len(op.body.block.ops)
                op.detach()
        verdict.counts.update({"steps": steps, "steps refused": case.options.get("refused", 0)})
        try:
            wanted = interpret(plain, "main", case.inputs)
        except MirError as error:
            verdict.refused = reason(error, "interpreter")
            return verdict
        lowered = module.clone()
        try:
            pass_factories()["lower-te-to-tir"]()().apply(Context(), lowered)
        except MirError as error:
            verdict.refused = reason(error, "lowering")
            return verdict
        errors = find_errors(lowered)
        if errors:
            verdict.fail("invalid", errors[0].message[:40], f"the lowered program is not valid: {errors[0].message}")
            return verdict
        try:
            got = interpret(lowered, "main", case.inputs)
        except MirError as error:
            # What is combined across threads is computed first, also where no thread takes it.
            if "the interpreter does not run" in error.diagnostics[0].message or "tvm_thread_allreduce" in print_mir(
                lowered
            ):
                verdict.refused = reason(error, "interpreter")
                return verdict
            verdict.fail(
                "refused",
                reason(error, ""),
                f"the lowered program is refused by the interpreter: {error.diagnostics[0].message}",
            )
            return verdict
        verdict.compared += 1
        wrong = compared(plain, "main", case.inputs, wanted, got)
        if wrong is not None:
            verdict.fail("results", "interpreter", f"the schedule changes the results: {wrong}")
            return verdict
        check_natively(verdict, module, case, lambda got, way: compared(plain, "main", case.inputs, wanted, got))
        return verdict


FUZZER = TeFuzzer()
