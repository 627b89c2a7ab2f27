"""`mirstack.build`: compiles the functions of a module to native code, which is called by name.

A function of TIR or TE writes its outputs into arrays that the caller passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from ..dialects.array import storage_of
from ..lowering.driver.entry import functions_of
from ..lowering.driver.loading.executable import Executable
from ..support.arguments import integer
from ..support.diagnostics import Diagnostic, MirError, MirValueError
from ..support.short_tracebacks import short_traceback
from .compile import compile
from .device import Device
from .ir.module import IRModule
from .ir.prim_func import PrimFunc
from .nd import NDArray
from .target.target import Target, TargetLike, native_options


class Module:
    """Compiled functions by name.

    `module["f"](…)` calls one on arrays (`nd.array`, numpy), `module(…)` the only one, or `main`.
    """

    def __init__(self, functions: dict[str, PackedFunc], entry: str | None):
        self._functions = functions
        self._entry = entry

    def __repr__(self) -> str:
        return f"Module({', '.join(self._functions)})"

    @property
    def entry_func(self) -> PackedFunc:
        """The function that a call of the module calls. Raises MirError when several could be meant."""
        if self._entry is None:
            raise MirError(Diagnostic("the module has several functions and no main").with_note(self._known()))
        return self._functions[self._entry]

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.entry_func(*args, **named)

    def __getitem__(self, name: str) -> PackedFunc:
        """The function of that name. Raises MirError where there is none."""
        found = self._functions.get(name)
        if found is None:
            raise MirError(Diagnostic(f"the module has no function '{name}'").with_note(self._known()))
        return found

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """Returns the function of that name. Raises MirError where there is none."""
        return self[name]

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Returns whether there is a function of that name."""
        return name in self

    @property
    def entry_name(self) -> str:
        """The name of `entry_func`. Raises MirError when several could be meant."""
        return next(name for name, function in self._functions.items() if function is self.entry_func)

    @property
    def type_key(self) -> str:
        """The kind of the code."""
        return "llvm"

    @property
    def imported_modules(self) -> list[Module]:
        """The modules of other devices: none."""
        return []

    def get_source(self, fmt: str = "") -> str:
        """Returns the code of the main function as text: "ll" LLVM's, "asm" or "s" assembly.

        Raises MirError for another format, and for a module that was not compiled here.
        """
        ending = {"": "ll", "ll": "ll", "asm": "s", "s": "s"}.get(fmt)
        if ending is None:
            raise MirValueError(Diagnostic(f"there is no code in the format '{fmt}'").with_note("there are ll and asm"))
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            path = Path(folder, f"code.{ending}")
            self.export_library(path)
            return path.read_text(encoding="utf-8")

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def export_library(self, file_name: str | PathLike[str], *, cpus: Sequence[str] = ()) -> list[Path]:
        """Writes the module's main function to a file, as `Executable.export_library` does."""
        return self.entry_func.executable.export_library(file_name, cpus=cpus)

    def save(self, file_name: str | PathLike[str], fmt: str = "") -> None:
        """Writes the module's main function to a file, by `fmt` or the file's ending.

        "o", "ll" and "s" are an object file, LLVM IR and assembly; others are those of `export_library`.
        """
        path = Path(file_name)
        self.export_library(path.with_suffix(f".{fmt}") if fmt else path)

    def _known(self) -> str:
        return f"it has {', '.join(self._functions)}"

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> Callable[..., BenchmarkResult]:
        """Returns a function that times `func_name`: the mean seconds of `number` calls, `repeat` times.

        `number` grows until the calls take `min_repeat_ms`. Between repetitions there is a pause of `cooldown_interval_ms`, after each
        `repeats_to_cooldown` of them.
        """
        return evaluator(self[func_name], number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown)


class PackedFunc:
    """A compiled function.

    A Relay function returns arrays, a function of TIR or TE writes its outputs into the arrays that it is called with.
    """

    def __init__(self, executable: Executable):
        self.executable = executable

    def __call__(self, *args: Any, **named: Any) -> Any:
        by_name = {name: storage_of(value) for name, value in named.items()}
        result = self.executable(*map(storage_of, args), **by_name)
        return _as_arrays(result) if self.executable.kind == "relay" else result

    def __repr__(self) -> str:
        params = ", ".join(param.name for param in self.executable.params)
        return f"PackedFunc({self.executable.name}({params}))"


def _as_arrays(result: Any) -> Any:
    return tuple(map(_as_arrays, cast("tuple[Any, ...]", result))) if isinstance(result, tuple) else NDArray(result)


def evaluator(
    function: Callable[..., object],
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    cooldown_interval_ms: int = 0,
    repeats_to_cooldown: int = 1,
) -> Callable[..., BenchmarkResult]:
    """Returns a function that times another: see `Module.time_evaluator`."""
    number, repeat = integer(number, "number", 1), integer(repeat, "repeat", 1)
    repeats_to_cooldown = integer(repeats_to_cooldown, "repeats_to_cooldown", 1)

    def evaluate(*args: Any) -> BenchmarkResult:
        function(*args)
        results: list[float] = []
        calls = number
        while len(results) < repeat:
            start = time.perf_counter()
            for _ in range(calls):
                function(*args)
            taken = time.perf_counter() - start
            if taken * 1e3 < min_repeat_ms:
                calls *= 2
                continue
            results.append(taken / calls)
            if cooldown_interval_ms and len(results) < repeat and len(results) % repeats_to_cooldown == 0:
                time.sleep(cooldown_interval_ms / 1e3)
        return BenchmarkResult(results)

    return evaluate


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call, one for each repetition."""

    results: Sequence[float]

    @property
    def mean(self) -> float:
        """The average."""
        return sum(self.results) / len(self.results)

    @property
    def median(self) -> float:
        """The middle one, of two the upper."""
        return sorted(self.results)[len(self.results) // 2]

    @property
    def std(self) -> float:
        """The standard deviation."""
        return (sum((each - self.mean) ** 2 for each in self.results) / len(self.results)) ** 0.5

    @property
    def min(self) -> float:
        """The least."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The greatest."""
        return max(self.results)


@short_traceback
def build(
    inputs: IRModule | PrimFunc | Any,
    args: Sequence[Any] | str | Target | None = None,
    target: TargetLike | None = None,
    target_host: TargetLike | None = None,
    name: str = "default_function",
    *,
    threads: int | None = None,
    opt_level: int = 3,
    allow_extern: Iterable[str] = (),
    strict_math: bool = False,
) -> Module:
    """Compiles every function of an IRModule, or a PrimFunc, or a TE schedule.

    A schedule needs its `args` (placeholders, scalars and outputs, in order); its function is called `name`. Of other inputs
    `target` may be the second argument; by default it is the current one (`with Target(…)`), otherwise this processor, and of its
    options -mcpu, -num-cores and -caches count. `target_host` is ignored: the host is the target. `strict_math` is as for `compile`.
    `allow_extern` names C functions that the code may call besides C's mathematics (docs/security.md). Private functions can only
    be called by the others. Raises MirError for a module that cannot be compiled.
    """
    if isinstance(args, str | Target):
        target, args = args, None
    chosen = native_options(target)
    if isinstance(inputs, PrimFunc):
        # As in TVM, a function without a symbol gets one when it is built.
        named = inputs if "global_symbol" in inputs.attrs else inputs.with_attr("global_symbol", name)
        inputs = IRModule({named.name: named})
    elif not isinstance(inputs, IRModule):
        from .lower import lower

        inputs = lower(inputs, args, name=name)
    functions = {
        symbol: PackedFunc(
            compile(
                inputs,
                chosen.target,
                entry=symbol,
                threads=chosen.threads if threads is None else threads,
                opt_level=opt_level,
                cpu=chosen.cpu,
                caches=chosen.caches,
                allow_extern=allow_extern,
                strict_math=strict_math,
            )
        )
        for symbol, op in functions_of(inputs.op).items()
        if "sym_visibility" not in op.properties
    }
    if not functions:
        raise MirError(Diagnostic("the module has no function to build"))
    only = next(iter(functions)) if len(functions) == 1 else None
    return Module(functions, "main" if "main" in functions else only)


__all__ = ["BenchmarkResult", "Module", "PackedFunc", "build", "evaluator"]
