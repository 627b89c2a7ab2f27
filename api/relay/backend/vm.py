"""`relay.vm`: compiles modules for the virtual machine `runtime.vm.VirtualMachine`, by TVM's names.

exe = relay.vm.compile(mod, "llvm", params=params)
VirtualMachine(exe, mirstack.cpu()).run(x)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ....support.arguments import check
from ....support.diagnostics import Diagnostic, MirValueError
from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray, array
from ...target.target import NativeOptions, TargetLike, native_options
from ..build_module import optimize as optimize_graph
from ..executor import VMExecutor
from ..expr import Function
from ..program import RelayProgram, bind_params_by_name


class Executable:
    """A module ready to be run by a virtual machine; each function is compiled when it is first called."""

    def __init__(self, mod: IRModule, options: NativeOptions):
        self.mod = mod
        self.program = RelayProgram(mod, options)

    def get_function_params(self, func_name: str) -> list[str]:
        """Returns the names of a function's parameters. Raises MirValueError where there is no such function."""
        return [param.name_hint for param in self.mod.relay_function(func_name).params]

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return [variable.name_hint for variable in self.mod.relay_functions]

    def export_library(self, file_name: str | PathLike[str], *, cpus: Sequence[str] = ()) -> list[Path]:
        """Writes `main` to a file, which `runtime.load_module` reads if it is a .mirpkg or a .so.

        Raises MirValueError for a `main` that takes or returns other values than tensors.
        """
        found = self.program.executable("main")
        if found is None:
            raise MirValueError(
                Diagnostic(
                    "main takes or returns other values than tensors, so that it has no code of its own"
                ).with_note("export a function of tensors")
            )
        return found.export_library(file_name, cpus=cpus)

    def __repr__(self) -> str:
        return f"Executable({self.mod!r})"


class VMCompiler:
    """Compiles a module step by step: `lower`, `codegen`, `get_exec`."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._executable: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Takes arrays for parameters of `main`, which become constants."""
        self._params = dict(params)

    def get_params(self) -> dict[str, NDArray]:
        """Returns the parameters."""
        return {name: array(value) for name, value in self._params.items()}

    def lower(
        self, mod: IRModule | Function, target: TargetLike | None = None, target_host: TargetLike | None = None
    ) -> None:
        """Takes the module. Raises MirError for a target that there is no code for."""
        check(mod, "mod", "an IRModule, or a function", IRModule, Function)
        module = IRModule({"main": mod}) if isinstance(mod, Function) else IRModule.of_op(mod.copy_op(), mod)
        if self._params:
            module["main"] = bind_params_by_name(module.relay_function("main"), self._params)
        self._executable = Executable(module, native_options(target))

    def codegen(self) -> None:
        """Compiles `main`. Raises MirError for a program that cannot be compiled."""
        executable = self.get_exec()
        if "main" in executable.mod:
            executable.program.executable("main")

    def optimize(
        self,
        mod: IRModule | Function,
        target: TargetLike | None = None,
        target_host: TargetLike | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[IRModule, dict[str, NDArray]]:
        """Returns the module after the passes on graphs, as `relay.optimize`."""
        return optimize_graph(mod, target, {**self._params, **(params or {})})

    def get_exec(self) -> Executable:
        """Returns what was lowered. Raises MirValueError where nothing was."""
        if self._executable is None:
            raise MirValueError(Diagnostic("nothing is lowered yet").with_note("call lower first"))
        return self._executable


def compile(
    mod: IRModule | Function,
    target: TargetLike | None = None,
    target_host: TargetLike | None = None,
    params: Mapping[str, Any] | None = None,
) -> Executable:
    """Compiles a module for the virtual machine; `params` become constants of `main`.

    Raises MirError for a program that cannot be compiled.
    """
    compiler = VMCompiler()
    compiler.set_params(params or {})
    compiler.lower(mod, target, target_host)
    compiler.codegen()
    return compiler.get_exec()


__all__ = ["Executable", "VMCompiler", "VMExecutor", "compile"]


__dir__ = public_names(__name__)
