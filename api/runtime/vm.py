"""`runtime.vm`: the virtual machine that runs what `relay.vm.compile` returns, by TVM's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...support.arguments import check
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.public_names import public_names
from ..build import BenchmarkResult, evaluator
from ..device import Device, require_here
from ..relay.backend.vm import Executable
from ..relay.program import in_order
from .container import ADT


class VirtualMachine:
    """Calls functions of a compiled module with arrays, tuples and values of data types.

    Tuples and values of data types are returned as `container.ADT`.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(
        self,
        exe: Executable,
        device: Device | str | list[Device] | None = None,
        memory_cfg: str | Mapping[Device, str] | None = None,
    ):
        """Takes the device, the processor; `memory_cfg` is ignored: memory is kept between calls."""
        check(exe, "exe", "what relay.vm.compile returns", Executable)
        for each in device if isinstance(device, list) else [device]:
            require_here(each)
        self._exe = exe
        self._inputs: dict[str, list[Any]] = {}
        self._partial: dict[str, dict[str, Any]] = {}
        self._result: Any = None

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Takes the arguments for a later call of the function without any."""
        self._inputs[func_name] = self._ordered(func_name, args, kwargs)

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Takes one argument, `(number or name, value)` or `name=value`, for a later call.

        Raises MirValueError for a parameter that is not there.
        """
        names = self._exe.get_function_params(func_name)
        given = dict(kwargs)
        if len(args) == 2:
            given[names[args[0]] if isinstance(args[0], int) and 0 <= args[0] < len(names) else str(args[0])] = args[1]
        if len(given) != 1:
            raise MirValueError(Diagnostic(f"set_one_input takes one argument of @{func_name}, not {len(given)}"))
        unknown = next((name for name in given if name not in names), None)
        if unknown is not None:
            raise MirValueError(Diagnostic(f"@{func_name} has no parameter '{unknown}'; it has {', '.join(names)}"))
        known = self._partial.setdefault(func_name, {})
        known.update(given)
        if all(name in known for name in names):
            self._inputs[func_name] = [known[name] for name in names]

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of a call, with the arguments of `set_input` if none are given."""
        if args or kwargs or func_name not in self._inputs:
            ordered = self._ordered(func_name, args, kwargs)
        else:
            ordered = self._inputs[func_name]
        self._result = self._exe.program.call(func_name, ordered, "vm")
        return self._result

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of a call of `main`."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Calls a function, whose results `get_outputs` returns."""
        self.invoke(func_name, *args, **kwargs)

    def get_outputs(self) -> list[Any]:
        """Returns the results of the last call as a list. Raises MirValueError before the first."""
        if self._result is None:
            raise MirValueError(Diagnostic("there are no outputs yet: call a function first"))
        return list(self._result) if isinstance(self._result, ADT) else [self._result]

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """Returns the number of a parameter; -1 where there is none of that name."""
        names = self._exe.get_function_params(func_name)
        return names.index(input_name) if input_name in names else -1

    def benchmark(
        self,
        device: Device | None = None,
        *args: Any,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Returns the seconds of calls: `repeat` means of `number` calls each."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        return evaluator(
            lambda: self.invoke(func_name),
            number,
            repeat,
            min_repeat_ms or 0,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )()

    def _ordered(self, func_name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        return in_order(self._exe.mod.relay_function(func_name), args, kwargs, f"@{func_name}")

    def __repr__(self) -> str:
        return f"VirtualMachine({self._exe!r})"


__all__ = ["Executable", "VirtualMachine"]


__dir__ = public_names(__name__)
