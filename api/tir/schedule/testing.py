"""`tir.schedule.testing`: checks of schedules, as TVM's own tests use them."""

from __future__ import annotations

from typing import Any

from ....dialects.schedule import ScriptOp
from ....parser import parse_mir
from ....passes.schedule.engine.script import run_script
from ....support.public_names import public_names
from ...ir.module import IRModule
from ...ir.prim_func import PrimFunc
from ...ir.structural import assert_structural_equal
from ...relay.expr import Function
from . import Schedule, Trace

__all__ = ["assert_structural_equal_ignore_global_symbol", "verify_trace_roundtrip"]


__dir__ = public_names(__name__)


def assert_structural_equal_ignore_global_symbol(
    func1: PrimFunc | IRModule, func2: PrimFunc | IRModule, *args: Any, **kwargs: Any
) -> None:
    """Asserts that two functions, or those of two modules, are equal except for their names.

    Further arguments are those of `ir.assert_structural_equal`. Raises ValueError where they differ.
    """
    assert_structural_equal(_without_symbol(func1), _without_symbol(func2), *args, **kwargs)


def _without_symbol(program: PrimFunc | IRModule) -> PrimFunc | IRModule:
    if isinstance(program, PrimFunc):
        return program.without_attr("global_symbol")
    functions: dict[str, PrimFunc | Function] = {}
    for name, function in program.functions.items():
        functions[name.name_hint] = (
            function.without_attr("global_symbol") if isinstance(function, PrimFunc) else function
        )
    return IRModule(functions)


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | tuple[str, ...] | list[str] = ("python", "json"),
) -> Schedule:
    """Applies the trace of a schedule to a program again, and returns the new schedule.

    The trace is applied as it is written in each text format: "python" or "json". Raises ValueError where the result differs.
    """
    formats = (text_format,) if isinstance(text_format, str) else tuple(text_format)
    new = Schedule(mod, debug_mask=debug_mask)
    for each in formats:
        new = Schedule(mod, debug_mask=debug_mask)
        match each:
            case "json":
                Trace.apply_json_to_schedule(sch.trace.as_json(), new)
            case "python":
                (script,) = parse_mir(str(sch.trace)).ops
                assert isinstance(script, ScriptOp)
                run_script(script, new)
            case _:
                raise ValueError(f"text_format is 'python' or 'json', not {each!r}")
        assert_structural_equal(new.mod, sch.mod)
    return new
