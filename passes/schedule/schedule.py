"""`Schedule`: interactive rewriting of a module's prim_funcs, as TVM's `tir.Schedule`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...dialects import tir
from .errors import ScheduleError, refuse
from .handles import BlockRV, Handle, LoopRV
from .primitive import Instruction, find, names
from .state import State


class Schedule:
    """Edits the prim_funcs of `mod` in place by primitives, which are its methods (`sch.split(loop, [None, 4])`).

    Every primitive that was applied is kept in `trace`, with its arguments. A primitive that is refused raises
    ScheduleError and leaves the module as it was. `help(name)` shows what a primitive does.
    """

    def __init__(self, mod: ModuleOp | tir.PrimFuncOp):
        if isinstance(mod, tir.PrimFuncOp):
            parent = mod.parent_op()
            mod = parent if isinstance(parent, ModuleOp) else ModuleOp([mod])
        self.mod = mod
        self.state = State(mod)
        self.trace: list[Instruction] = []

    def work_on(self, func_name: str) -> None:
        """Names of blocks refer to this function from now on."""
        self.state.function(func_name)
        self.state.focus = func_name

    def get(self, handle: Handle) -> Operation:
        """The op that a handle stands for now."""
        return self.state.op(handle)

    @staticmethod
    def help(name: str) -> str:
        """What a primitive does, with the program before and after."""
        known = find(name)
        if known is None:
            raise refuse(None, f"there is no schedule primitive '{name}'", f"there are {', '.join(names())}")
        return f"{name}{known.signature}\n\n{known.doc}"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        known = find(name)
        if known is None:
            raise AttributeError(f"there is no schedule primitive '{name}'; there are {', '.join(names())}")

        def apply(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = known.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise refuse(None, f"{name}: {error}", f"it is called as {name}{known.signature}") from None
            results = known.apply(
                self.state,
                *(self._op(name, a) for a in bound.args),
                **{key: self._op(name, a) for key, a in bound.kwargs.items()},
            )
            given: Any = self._handle(results)
            listed: tuple[Any, ...] = () if given is None else (given,)
            if isinstance(given, list):
                listed = tuple(cast("list[Any]", given))
            self.trace.append(Instruction(name, dict(bound.arguments), listed))
            return given  # pyright: ignore[reportUnknownVariableType]

        return apply

    def _op(self, name: str, argument: Any) -> Any:
        """Handles, alone and in lists, as what they stand for."""
        if isinstance(argument, Handle):
            return self.state.op(argument)
        if isinstance(argument, list | tuple):
            return [self._op(name, a) for a in cast("list[Any]", argument)]
        return argument

    def _handle(self, result: Any) -> Any:
        if isinstance(result, Operation):
            return self.state.handle(result)
        if isinstance(result, list):
            return [self._handle(r) for r in cast("list[Any]", result)]
        return result


__all__ = ["BlockRV", "LoopRV", "Schedule", "ScheduleError"]
