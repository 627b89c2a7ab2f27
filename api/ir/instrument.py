"""Instruments, which watch passes.

    with transform.PassContext(instruments=[PassTimingInstrument()]): …

Those that mirstack provides are also options of `mir-opt`; a class of one's own derives from `PassInstrument`, or is
decorated with `pass_instrument`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...passes.check_each import CheckEach as _CheckEach
from ...passes.instruments import Instrument, Timing, VerifyEach, print_module
from ...passes.pass_info import PassInfo
from ...passes.print_ir import DumpIR, PrintAfterAll, PrintAfterChange, PrintBeforeAll
from ...support.public_names import public_names

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from .module import IRModule

__all__ = [
    "CheckEach", "DumpIR", "PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "PrintAfterAll",
    "PrintAfterChange", "PrintBeforeAll", "VerifyEach", "pass_instrument",
]  # fmt: skip


class PassInstrument:
    """Is told of each pass of a context; the modules are `IRModule`s."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def enter_pass_ctx(self) -> None:
        """The context is entered."""

    def exit_pass_ctx(self) -> None:
        """The context is left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Returns whether the pass is to run; not asked of passes that the context requires."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass is about to run on `mod`."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass has given `mod`."""


C = TypeVar("C", bound=type[Any])


def pass_instrument(pi_cls: C | None = None) -> C | Callable[[C], C]:
    """Decorates a class that has some of the methods of `PassInstrument`; with or without `()`."""

    def decorate(cls: C) -> C:
        if issubclass(cls, PassInstrument):
            return cls
        return type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__, "__module__": cls.__module__})  # type: ignore[return-value]

    return decorate if pi_cls is None else decorate(pi_cls)


class PassTimingInstrument(Timing):
    """Measures seconds, ops and bytes of text after each pass.

    `render()` returns the table of the context that ended last.
    """

    def __init__(self) -> None:
        super().__init__(print_module)

    def enter_pass_ctx(self) -> None:
        self.stages.clear()
        self.measured = 0.0

    def render(self) -> str:
        """The table, a line a pass."""
        return self.report()


class PassPrintingInstrument(Instrument):
    """Prints the module before and after the passes of those names (TVM's), to standard output."""

    def __init__(self, print_before_pass_names: list[str], print_after_pass_names: list[str]):
        self.before = frozenset(print_before_pass_names)
        self.after = frozenset(print_after_pass_names)

    def run_before_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        if info.name in self.before:
            print(f"// ----- IR before {info} -----\n{print_module(mod)}", end="")

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        if info.name in self.after:
            print(f"// ----- IR after {info} -----\n{print_module(mod)}", end="")


class CheckEach(_CheckEach):
    """Interprets the module before and after each pass on inputs drawn from `seed`.

    Raises MirError naming the first pass that changes a result, and for a module that cannot be interpreted unless
    `allow_unchecked`.
    """

    def __init__(self, seed: int = 0, allow_unchecked: bool = False):
        from ...lowering.driver.loading.interpreted_executable import run_module

        super().__init__(run_module, seed, allow_unchecked)


__dir__ = public_names(__name__)
