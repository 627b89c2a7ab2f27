"""Writes a model as a `.mir` text and a `.safetensors` file of weights.

The text is what TVM's printer writes for a graph: one numbered value a line, the last expression bare. Weights are drawn
in the order in which they are asked for, so that one seed determines one model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from mirstack.dialects.side_file import write_safetensors
from numpy.typing import NDArray

Array = NDArray[Any]
Attribute = bool | int | float | str | Sequence[int]

__all__ = ["Array", "Attribute", "Function", "Model", "attribute_text", "tensor", "write_safetensors"]


class Model:
    """A module in the making: its functions' text, and its weights by name."""

    def __init__(self, seed: int = 0):
        self.weights: dict[str, Array] = {}
        self.functions: list[Function] = []
        self.rng = np.random.default_rng(seed)

    def function(self, name: str, params: Mapping[str, str], result: str) -> Function:
        """Begins a function `@name`; `params` maps each parameter's name, without the `%`, to its type."""
        self.functions.append(Function(self, name, params, result))
        return self.functions[-1]

    def constant(self, name: str, array: Array) -> str:
        """Adds an array under `name`, which must be new; returns the text that refers to it."""
        if name in self.weights:
            raise ValueError(f"there are two weights called {name}")
        self.weights[name] = array
        return f"meta[relay.Constant][{name}]"

    def he(self, name: str, shape: Sequence[int], fan_in: int, gain: float = 2.0) -> str:
        """Normal weights of variance `gain` / `fan_in` (He et al., "Delving deep into rectifiers", 2015)."""
        array = self.rng.standard_normal(shape, dtype=np.float32)
        array *= np.float32(sqrt(gain / fan_in))
        return self.constant(name, array)

    def normal(self, name: str, size: int, spread: float = 0.1) -> str:
        """Returns a vector of mean 0: biases, and the means that a batch norm has seen."""
        return self.constant(name, self.rng.standard_normal(size, dtype=np.float32) * np.float32(spread))

    def uniform(self, name: str, size: int, low: float, high: float) -> str:
        """Returns a vector between `low` and `high`: scales and variances."""
        return self.constant(name, (self.rng.random(size, dtype=np.float32) * (high - low) + low).astype(np.float32))

    def text(self, weights_file: str) -> str:
        """Returns the module's text; its constants are looked for in `weights_file`, beside it."""
        head = f'#[version = "0.0.5"]\n#[constants = "{weights_file}"]\n'
        return head + "".join(f"\n{function.text()}" for function in self.functions)

    def write(self, folder: Path, name: str) -> Path:
        """Writes `name.mir` and `name.safetensors` into the folder, created if missing; returns the former."""
        folder.mkdir(parents=True, exist_ok=True)
        write_safetensors(folder / f"{name}.safetensors", self.weights)
        path = folder / f"{name}.mir"
        path.write_text(self.text(f"{name}.safetensors"), encoding="utf-8")
        return path


class Function:
    """One function's text, written a line an operator. Values are their names: `%x`, `%3`, `%3.0`."""

    def __init__(self, model: Model, name: str, params: Mapping[str, str], result: str):
        self.model = model
        self._head = f"def @{name}({', '.join(f'%{p}: {t}' for p, t in params.items())}) -> {result} {{"
        self._lines: list[str] = []
        self._indent = "  "
        self._values = 0

    def op(self, name: str, *args: str, **attrs: Attribute) -> str:
        """Adds `name(args…, attr=value…)` as a new value."""
        shown = [*args, *(f"{key}={attribute_text(value)}" for key, value in attrs.items())]
        return self.let(f"{name}({', '.join(shown)})")

    def let(self, expression: str) -> str:
        """Adds any expression as a new value."""
        self._lines.append(f"{self._indent}%{self._values} = {expression};")
        self._values += 1
        return f"%{self._values - 1}"

    def result(self, value: str) -> None:
        """Ends the function, or a branch, with `value`, written in place when it was just made."""
        named = f"{self._indent}{value} = "
        if self._lines and self._lines[-1].startswith(named) and self._lines[-1].endswith(";"):
            self._lines[-1] = self._indent + self._lines[-1].removeprefix(named).removesuffix(";")
        else:
            self._lines.append(self._indent + value)

    def branch(self, condition: str, then: Callable[[], str], otherwise: Callable[[], str]) -> None:
        """Ends the function with an `if`; each callable writes its side and returns that side's result."""
        self._lines.append(f"{self._indent}if ({condition}) {{")
        for side, end in ((then, "} else {"), (otherwise, "}")):
            self._indent += "  "
            self.result(side())
            self._indent = self._indent[2:]
            self._lines.append(self._indent + end)

    def text(self) -> str:
        """Returns the function as Relay text."""
        return "\n".join([self._head, *self._lines, "}\n"])


def tensor(*shape: int, dtype: str = "float32") -> str:
    """Returns the type of a tensor, as Relay writes it."""
    return f"Tensor[({', '.join(map(str, shape))}), {dtype}]"


def number(value: float) -> str:
    """Returns a float32 literal."""
    return f"{value:.9g}f"


def attribute_text(value: Attribute) -> str:
    """Returns an operator's attribute, as Relay writes it."""
    match value:
        case bool():
            return str(value)
        case int():
            return str(value)
        case float():
            return number(value)
        case str():
            return f'"{value}"'
        case _:
            return f"[{', '.join(map(str, value))}]"
