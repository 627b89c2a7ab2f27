"""The shapes of blocks that rules remember are those that are found anew: through primitives drawn at random, and through the rules."""

from __future__ import annotations

import random
import sys
from contextvars import Context
from pathlib import Path

import pytest
from mirstack.dialects import tir
from mirstack.driver.modules import read_module
from mirstack.examples.models.registry import build
from mirstack.fuzz.schedules.moves import Player
from mirstack.fuzz.schedules.programs import PROGRAMS
from mirstack.lowering.pipeline import Options, lowering_passes
from mirstack.parser import parse_mir
from mirstack.passes.autoschedule.block_shape import Shape, remembering_shapes, shape_of
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.support.walk import walk_ops
from xdsl.context import Context as PassContext

RULES = "mirstack.passes.autoschedule."


def found_anew(block: tir.BlockOp) -> Shape | None:
    """The shape of a block where nothing is remembered."""
    return Context().run(shape_of, block)


@pytest.mark.parametrize("program", PROGRAMS)
def test_primitives_at_random(program: str) -> None:
    for seed in range(4):
        module = parse_mir(PROGRAMS[program])
        schedule = Schedule(module)
        player = Player(schedule, random.Random(seed))
        with remembering_shapes(schedule):
            for _ in range(8):
                for block in [op for op in walk_ops(module) if isinstance(op, tir.BlockOp)]:
                    assert shape_of(block) == found_anew(block)
                try:
                    player.step()
                except (ScheduleError, IndexError):
                    continue


@pytest.mark.parametrize("model", ["resnet18", "bert", "lstm"])
def test_rules(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, dict[str, float]] = {
        "resnet18": {"image": 32, "width": 1 / 8, "classes": 10},
        "bert": {"sequence": 16, "hidden": 48, "heads": 4, "layers": 1},
        "lstm": {"batch": 2, "sequence": 5, "inputs": 12, "hidden": 20},
    }
    asked = 0

    def checked(block: tir.BlockOp) -> Shape | None:
        nonlocal asked
        asked += 1
        known = shape_of(block)
        assert known == found_anew(block)
        return known

    build(model, 0, **sizes[model]).write(tmp_path, model)
    module = read_module(str(tmp_path / f"{model}.mir"), None)
    for step in lowering_passes(Options()):
        if step.name == DefaultSchedule.name:
            break
        step.apply(PassContext(), module)
    for name in [n for n in sys.modules if n.startswith(RULES) and hasattr(sys.modules[n], "shape_of")]:
        if not name.endswith(".block_shape"):
            monkeypatch.setattr(sys.modules[name], "shape_of", checked)
    DefaultSchedule(cpu="haswell", threads=4).apply(PassContext(), module)
    assert asked > 20
