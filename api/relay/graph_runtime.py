"""A compiled graph with its inputs and outputs, which `lib["default"](device)` makes.

Inputs are set by name or number, `run` computes, outputs are read by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...dialects.array import numpy_dtype
from ...lowering.driver.loading.executable import Executable, shape_text
from ...support.arguments import check, integer
from ...support.diagnostics import Diagnostic, MirTypeError, MirValueError
from ...support.text import did_you_mean
from ..build import BenchmarkResult, evaluator
from ..device import Device, require_here
from ..nd import NDArray
from ..runtime.params import load_param_dict
from .executor import of_dtype

Array = np.ndarray[Any, np.dtype[Any]]


class GraphRuntime:
    """A program, the arrays that it is called with, and its last results. Inputs are zeros at first.

    Inputs whose shape is open are set before the first run. `constants` are parameters that are part of the code.
    """

    def __init__(self, executable: Executable, constants: Mapping[str, NDArray], device: Device | str | None = None):
        if executable.kind != "relay":
            raise MirTypeError(Diagnostic(f"{executable.name} is not a function of Relay, which a graph is made of"))
        self.executable = executable
        self.device = require_here(device)
        self._constants = constants
        self._params = {param.name: param for param in executable.params}
        self._inputs: dict[str, Array] = {
            param.name: np.zeros([size for size in param.shape if isinstance(size, int)], numpy_dtype(param.dtype))
            for param in executable.params
            if not any(isinstance(size, str) for size in param.shape)
        }
        self._outputs: list[Array] | None = None
        self._wanted: dict[int, NDArray] = {}

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Copies an array to an input, and those of `params` by name, converted to the inputs' dtypes.

        Raises MirValueError for an input that is not there, or that is part of the code with another value.
        """
        given = {**({} if key is None else {self._name(key): value}), **params}
        for name, array in given.items():
            self._set(name, array)

    def _set(self, name: str, value: Any) -> None:
        param = self._params.get(name)
        if param is None:
            constant = self._constants.get(name)
            if constant is None:
                raise self._no_input(name)
            if not np.array_equal(constant.storage, of_dtype(value, constant.dtype)):
                raise MirValueError(
                    Diagnostic(f"'{name}' is part of the compiled code, with another value").with_note(
                        "build without params= to set it between runs"
                    )
                )
            return
        array = np.array(of_dtype(value, param.dtype), order="C")
        if len(array.shape) != len(param.shape) or any(
            isinstance(size, int) and size != given for size, given in zip(param.shape, array.shape, strict=False)
        ):
            raise MirValueError(
                Diagnostic(f"'{name}' has shape {shape_text(param.shape)}, not {shape_text(array.shape)}")
            )
        self._inputs[name] = array

    def set_input_zero_copy(self, key: str | int, value: NDArray) -> None:
        """Makes an array the input itself, so that a run reads what it holds then."""
        check(value, "value", "an nd.array", NDArray)
        name = self._name(key)
        self._set(name, value)
        self._inputs[name] = value.storage

    def set_output_zero_copy(self, key: int, value: NDArray) -> None:
        """Makes an array hold an output after each run."""
        check(value, "value", "an nd.array", NDArray)
        self._wanted[integer(key, "key", 0)] = value

    def run(self, **input_dict: Any) -> None:
        """Computes the outputs of the inputs, of which some may be given."""
        if input_dict:
            self.set_input(**input_dict)
        if missing := [name for name in self._params if name not in self._inputs]:
            raise MirValueError(Diagnostic(f"the input '{missing[0]}', whose shape is open, is not set"))
        self._outputs = list(self.executable.run(self._inputs).values())
        for index, array in self._wanted.items():
            array.copyfrom(self._output(index))

    def _output(self, index: int) -> Array:
        if self._outputs is None:
            raise MirValueError(Diagnostic("there are no outputs yet: call run first"))
        if not 0 <= index < len(self._outputs):
            raise MirValueError(Diagnostic(f"there is no output {index}; there are {len(self._outputs)}, from 0 on"))
        return self._outputs[index]

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """Returns an output of the last run, or copies it to `out`."""
        found = self._output(integer(index, "index", 0))
        return NDArray(found) if out is None else out.copyfrom(found)

    def get_input(self, index: str | int, out: NDArray | None = None) -> NDArray:
        """Returns the array of an input, or copies it to `out`."""
        name = self._name(index)
        if name in self._constants:
            return self._constants[name]
        if name not in self._params:
            raise self._no_input(name)
        if name not in self._inputs:
            raise MirValueError(Diagnostic(f"the input '{name}', whose shape is open, is not set"))
        return NDArray(self._inputs[name]) if out is None else out.copyfrom(self._inputs[name])

    def get_num_outputs(self) -> int:
        """Returns the number of outputs."""
        return self.executable.num_results

    def get_num_inputs(self) -> int:
        """Returns the number of inputs."""
        return len(self._params)

    def get_input_index(self, name: str) -> int:
        """Returns the number of an input; -1 where there is none of that name."""
        return list(self._params).index(name) if name in self._params else -1

    def get_input_info(self) -> tuple[dict[str, tuple[int | str, ...]], dict[str, str]]:
        """Returns the shapes and the dtypes of the inputs by name."""
        shapes = {name: param.shape for name, param in self._params.items()}
        return shapes, {name: param.dtype for name, param in self._params.items()}

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Sets the inputs that `runtime.save_param_dict` wrote."""
        for name, array in load_param_dict(params_bytes).items():
            self._set(name, array)

    def share_params(self, other: GraphRuntime, params_bytes: bytes | bytearray) -> None:
        """Makes inputs of these names the arrays of another runtime."""
        for name in load_param_dict(params_bytes):
            if name in self._params:
                self.set_input_zero_copy(name, other.get_input(name))

    def time_evaluator(
        self,
        func_name: str = "run",
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
    ) -> Callable[..., BenchmarkResult]:
        """Returns a function that times `run`, or another method, as `Module.time_evaluator`."""
        return evaluator(self[func_name], number, repeat, min_repeat_ms)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Returns a method by its name. Raises MirValueError for one that it does not have."""
        if name not in _METHODS:
            raise MirValueError(
                Diagnostic(f"a graph's runtime has no function '{name}'{did_you_mean(name, _METHODS)}").with_note(
                    f"it has {', '.join(_METHODS)}"
                )
            )
        return getattr(self, name)

    get_function = __getitem__

    def _name(self, key: str | int) -> str:
        if isinstance(key, str):
            return key
        index = integer(key, "key", 0)
        if index >= len(self._params):
            raise MirValueError(Diagnostic(f"there is no input {index}; there are {len(self._params)}, from 0 on"))
        return list(self._params)[index]

    def _no_input(self, name: str) -> MirValueError:
        known = [*self._params, *self._constants]
        return MirValueError(
            Diagnostic(f"there is no input '{name}'{did_you_mean(name, known)}").with_note(
                f"the inputs are {', '.join(self._params) or 'none'}"
            )
        )

    def __repr__(self) -> str:
        return f"GraphRuntime({self.executable!r})"


_METHODS = (
    "get_input", "get_input_index", "get_input_info", "get_num_inputs", "get_num_outputs", "get_output", "load_params", "run", "set_input",
    "set_input_zero_copy", "set_output_zero_copy", "share_params",
)  # fmt: skip


def factory_of(executable: Executable, constants: Mapping[str, NDArray] | None = None) -> Callable[..., GraphRuntime]:
    """Returns a function of a device that makes a runtime of the program."""

    def default(device: Device | str | None = None, *more: Device | str) -> GraphRuntime:
        for other in more:
            require_here(other)
        return GraphRuntime(executable, constants or {}, device)

    return default


__all__ = ["GraphRuntime", "factory_of"]
