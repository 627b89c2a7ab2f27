"""Schedules of TIR functions: what is accepted computes the same, what is refused changes nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ...dialects.schedule import ScriptOp
from ...dialects.tir import PrimFuncOp
from ...parser import parse_mir, print_mir
from ...passes.schedule import Schedule, ScheduleError
from ...support.diagnostics import MirError
from ...support.verify import find_errors
from ..case import Case, Verdict, reason
from ..reduce import ON_TIR
from ..tir.fuzzer import compared
from ..ways import check_natively, check_printed, draw_ways, interpret
from .calls import Caller
from .moves import ALL_MOVES, Player
from .programs import PROGRAMS, odd_blocks, random_blocks

NATIVELY = 0.3
"""The share of schedules whose code is run, too."""


class Counting(Schedule):
    """Counts what is applied and what is refused; a refusal must leave the module as it was."""

    def __init__(self, module: ModuleOp, seed: int):
        super().__init__(module, seed=seed)
        self.accepted, self.refused = Counter[str](), Counter[str]()
        self.watched = False

    def apply(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Applies a primitive."""
        before = print_mir(self.module) if self.watched else ""
        try:
            result = super().apply(name, args, kwargs)
        except ScheduleError:
            self.refused[name] += 1
            if self.watched and print_mir(self.module) != before:
                raise AssertionError(f"'{name}' is refused and changes the program") from None
            raise
        self.accepted[name] += 1
        return result


class SchedulesFuzzer:
    """Draws a function and primitives, which become a script after it."""

    shrinkers = ON_TIR

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"schedules/{seed}/{number}")
        kind = rng.random()
        text = PROGRAMS[rng.choice(sorted(PROGRAMS))]
        if kind < 0.45:
            text = random_blocks(rng, symbolic=kind < 0.2)
        elif kind < 0.8:
            text = odd_blocks(rng)
        original = parse_mir(text)
        schedule = Counting(original.clone(), rng.randrange(1, 1 << 30))
        schedule.watched = rng.random() < 0.15
        player = Player(schedule, rng, ALL_MOVES) if rng.random() < 0.5 else Caller(schedule, rng)
        for _ in range(rng.randint(3, 12)):
            try:
                player.step()
            except (ScheduleError, IndexError):
                continue  # or a block without loops was drawn
        original.body.block.add_op(schedule.trace.as_script("s", "main"))
        ways = draw_ways(rng, 1) if rng.random() < NATIVELY else []
        options = {"ways": ways, "entry": "main", "refused": schedule.refused.total()}
        draws = frozenset(schedule.accepted) | frozenset(f"refused {name}" for name in schedule.refused)
        return Case("schedules", print_mir(original), inputs_of(original, rng), options, draws)

    def check(self, case: Case) -> Verdict:
        """Runs the function without and with the schedule."""
        verdict = Verdict()
        try:
            module = parse_mir(case.text)
        except MirError as error:
            verdict.refused = reason(error, "parser")
            return verdict
        plain = module.clone()
        scripts = [op for op in plain.ops if isinstance(op, ScriptOp)]
        for script in scripts:
            script.detach()
        steps = sum(len(script.body.block.ops) for script in scripts)
        wanted = interpret(plain, case.options["entry"], case.inputs)
        try:
            self._apply(module)
        except MirError as error:
            verdict.fail("replay", "", f"the script of what was accepted is refused: {error.diagnostics[0].message}")
            return verdict
        verdict.counts.update({"steps": steps, "steps refused": case.options.get("refused", 0)})
        errors = find_errors(module)
        if errors:
            verdict.fail("invalid", errors[0].message[:40], f"the scheduled program is not valid: {errors[0].message}")
            return verdict
        check_printed(verdict, module, "the scheduled program")
        try:
            got = interpret(module, case.options["entry"], case.inputs)
        except MirError as error:
            verdict.fail(
                "refused",
                reason(error, ""),
                f"the scheduled program is refused by the interpreter: {error.diagnostics[0].message}",
            )
            return verdict
        verdict.compared += 1
        wrong = compared(plain, case.options["entry"], case.inputs, wanted, got)
        if wrong is not None:
            verdict.fail("results", "interpreter", f"the schedule changes the results: {wrong}")
            return verdict
        check_natively(
            verdict, module, case, lambda got, way: compared(plain, case.options["entry"], case.inputs, wanted, got)
        )
        return verdict

    @staticmethod
    def _apply(module: ModuleOp) -> None:
        from ...lowering.driver.reachable import apply_ready_schedules

        apply_ready_schedules(module)


def inputs_of(module: ModuleOp, rng: random.Random) -> dict[str, np.ndarray]:
    """Returns small whole numbers for the function's parameters: their sums are exact. n and m may be 0."""
    from ...api.compile import compile

    draw = np.random.default_rng(rng.randrange(1 << 30))
    function = next(op for op in module.ops if isinstance(op, PrimFuncOp))
    alone = ModuleOp([function.clone()])
    params = compile(alone, "interp").params
    sizes = {p.name: rng.choice((0, 1, 2, 3, 5, 8)) for p in params if p.name in ("n", "m")}
    inputs: dict[str, np.ndarray] = {}
    for p in params:
        given = [sizes[dim] if isinstance(dim, str) else dim for dim in p.shape]
        made = draw.integers(0, 5, given) if p.name not in sizes else sizes[p.name]
        inputs[p.name] = np.asarray(made).astype(p.dtype)
    return inputs


FUZZER = SchedulesFuzzer()
