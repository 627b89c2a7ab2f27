"""Draws primitives of TE schedules: `move` draws one of the table, with arguments that often fit."""

from __future__ import annotations

import random
from typing import Any

from ...dialects.schedule.signature_table import te_signatures
from ...dialects.te.axes import thread_axis
from ...dialects.te.tensor import PlaceholderOp
from ...lowering.te.schedule.frontend import Schedule, Stage

OFTEN = (
    "split",
    "split",
    "fuse",
    "reorder",
    "tile",
    "compute_at",
    "compute_at",
    "compute_inline",
    "cache_read",
    "cache_write",
    "rfactor",
)


def computed(schedule: Schedule) -> list[Stage]:
    """Returns the stages of what is computed."""
    return [stage for stage in schedule.stages if not isinstance(stage.op, PlaceholderOp)]


def move(schedule: Schedule, rng: random.Random) -> str:
    """Applies a primitive; returns its name. Raises MirError if refused, IndexError without a target."""
    name = rng.choice(OFTEN) if rng.random() < 0.5 else rng.choice(sorted(te_signatures()))
    stage = rng.choice(computed(schedule))
    axes = list(stage.leaf_iter_vars)
    axis = rng.choice(axes)
    size = rng.randint(1, 5)
    match name:
        case "split":
            stage.split(axis, **{rng.choice(("factor", "nparts")): size})
        case "fuse":
            start = axes.index(axis)
            stage.fuse(*axes[start : start + rng.randint(1, 3)])
        case "reorder":
            stage.reorder(*rng.sample(axes, len(axes)))
        case "tile":
            stage.tile(axis, rng.choice(axes), size, rng.randint(1, 5))
        case "bind":
            stage.bind(axis, thread_axis(rng.choice(("threadIdx.x", "blockIdx.x", "vthread"))))
        case "env_threads":
            stage.env_threads(thread_axis((0, size), "threadIdx.x"))
        case "set_scope":
            stage.set_scope(rng.choice(("local", "shared", "global")))
        case "set_store_predicate":
            stage.set_store_predicate(axis.var >= 0)
        case "compute_at":
            other = rng.choice(computed(schedule))
            stage.compute_at(other, rng.choice(list(other.leaf_iter_vars)))
        case "compute_inline":
            stage.compute_inline()
        case "compute_root":
            stage.compute_root()
        case "vectorize" | "unroll" | "parallel":
            getattr(stage, name)(axis)
        case "pragma":
            stage.pragma(axis, rng.choice(("auto_unroll_max_step", "unroll_explicit")), rng.choice((0, 8)))
        case "prefetch":
            stage.prefetch(rng.choice(stage.op.input_tensors), axis, 1)
        case "storage_align":
            stage.storage_align(stage.op.axis[0], size, rng.randint(0, 2))
        case "double_buffer":
            stage.double_buffer()
        case "create_group":
            outputs, inputs = _tensor(schedule, rng), _tensor(schedule, rng)
            group = schedule.create_group(outputs, inputs, include_inputs=rng.random() < 0.5)
            if rng.random() < 0.5:
                other = rng.choice(computed(schedule))
                group.compute_at(other, rng.choice(list(other.leaf_iter_vars)))
        case "cache_read":
            tensor = _tensor(schedule, rng, placeholders=True)
            readers = [s.op.output(0) for s in computed(schedule) if any(t is tensor for t in s.op.input_tensors)]
            schedule.cache_read(tensor, rng.choice(("local", "shared", "global")), readers or [stage.op.output(0)])
        case "cache_write":
            outputs: Any = [stage.op.output(n) for n in range(len(stage.op.outputs))]
            schedule.cache_write(outputs if len(outputs) > 1 else outputs[0], rng.choice(("local", "global")))
        case "rfactor":
            schedule.rfactor(stage.op.output(0), axis, rng.choice((0, 0, -1, 1)))
        case _:
            raise AssertionError(f"the primitive '{name}' is not drawn")
    return name


def _tensor(schedule: Schedule, rng: random.Random, placeholders: bool = False) -> Any:
    stages = schedule.stages if placeholders else computed(schedule)
    return rng.choice(stages).op.output(0)
