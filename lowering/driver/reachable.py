"""Prepares a parsed module for compilation: ready schedules, weights, what its entry may call."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Operation

from ...dialects.array import ArrayBox, ArrayValueAttr
from ...support.walk import walk_ops
from .entry import functions_of


def side_weights(module: ModuleOp) -> list[ArrayBox]:
    """Returns the arrays of a module that a side file has."""
    values = (
        attr.data for op in walk_ops(module) for attr in op.properties.values() if isinstance(attr, ArrayValueAttr)
    )
    return list({id(box): box for box in values if box.origin is not None}.values())


def apply_ready_schedules(module: ModuleOp) -> None:
    """Applies the scripts of TIR functions, in place; they may name functions that the entry does not."""
    if any(op.name == "schedule.script" for op in module.ops):
        from xdsl.context import Context

        from ...passes.schedule.apply_schedule import ApplySchedule

        ApplySchedule(mark=True, ready=True).apply(Context(), module)


def only_reachable(module: ModuleOp, entry: str) -> ModuleOp:
    """Moves the functions that the entry may call, and all other ops, to one flat module."""
    functions = functions_of(module, lower=True)
    wanted = {entry}
    pending = [entry]
    while pending:
        for name in _callees(functions[pending.pop()]):
            if name in functions and name not in wanted:
                wanted.add(name)
                pending.append(name)
    result = ModuleOp([], attributes=dict(module.attributes))
    every = set(functions.values())
    if any(op.name == "schedule.rule" for op in module.ops):
        # Rules may name intrinsics.
        wanted |= {name for name, function in functions.items() if is_intrinsic(function)}
    left = functions.keys() - wanted
    kept = [op for op in module.ops if op not in every and not isinstance(op, ModuleOp) and not _schedules(op, left)]
    for op in (*kept, *(functions[name] for name in functions if name in wanted)):
        op.detach()
        result.body.block.add_op(op)
    return result


def is_intrinsic(op: Operation) -> bool:
    """Returns whether the op is a function that is half of a tensor intrinsic, for schedules."""
    attrs = op.properties.get("attrs") if op.name == "tir.prim_func" else None
    return isinstance(attrs, DictionaryAttr) and "tensor_intrin" in attrs.data


def _schedules(op: Operation, functions: Collection[str]) -> bool:
    """Returns whether the op schedules one of these functions."""
    target = op.properties.get("target") if op.name in ("te.schedule", "schedule.script") else None
    return isinstance(target, SymbolRefAttr) and target.root_reference.data in functions


def _callees(function: Operation) -> list[str]:
    """Returns the functions that a function refers to."""
    properties = (attr for op in walk_ops(function) for attr in op.properties.values())
    return [attr.root_reference.data for attr in properties if isinstance(attr, SymbolRefAttr)]
