"""Makes the inputs of an entry for `mir-run`: from files, written, random or zero, of given sizes."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from ..dialects import array as arrays
from ..dialects.side_file import SideFile, read_npy
from ..support.memory import why_no_memory
from ..support.text import natural
from .errors import UsageError, did_you_mean

Arrays = dict[str, np.ndarray]


class Parameter(Protocol):
    """A parameter of an entry: TVM's dtype, and a shape with sizes by name, or expressions of them."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int | str, ...]: ...
    @property
    def dtype(self) -> str: ...


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """Returns the numpy type of a dtype name. Raises UsageError if no array has it, such as `handle`."""
    try:
        return arrays.numpy_dtype(name)
    except TypeError:
        raise UsageError(
            f"no array can be given for a parameter of type {name}: a buffer is A: T.Buffer(…), or T.match_buffer(a, …) of a handle"
        ) from None


def describe(array: np.ndarray) -> str:
    """Returns a type as it is written in messages: `float32[2, 3]`."""
    return f"{array.dtype}{list(array.shape)}"


def load_inputs(arguments: Iterable[str], parameters: Sequence[Parameter]) -> Arrays:
    """Loads the arrays of `--input`: `x=file.npy` for one parameter, `file.npz` for those in it.

    `n=5` and `x=[1,2.5]` are numbers as they are written.

    Raises:
        UsageError: for a file that cannot be read, a name that no parameter has, and one that is given twice.
    """
    names = [parameter.name for parameter in parameters]
    found: Arrays = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals:
            for key, array in load_npz(argument).items():
                _add(found, _known(key, names, f"{argument}: array '{key}'"), array, argument)
            continue
        if not path:
            raise UsageError(f"--input {argument}: a file is missing after '=': write {name}=FILE.npy")
        value = _written(path)
        if value is not None and name not in names and name in size_names(parameters):
            raise UsageError(f"--input {argument}: {name} is a size: write --size {name}=NUMBER")
        parameter = parameters[names.index(_known(name, names, f"--input {argument}: '{name}'"))]
        array = _load_npy(path) if value is None else _as_array(value, parameter, argument)
        _add(found, name, array, argument)
    for parameter in parameters:
        if parameter.name in found:
            found[parameter.name] = reinterpret(found[parameter.name], numpy_dtype(parameter.dtype))
    return found


Written = int | float | bool | list["Written"]
"""Numbers as `--input` writes them, in JSON."""


def _written(text: str) -> Written | None:
    """Returns the numbers that a text is, `5`, `[1, 2.5]`, `true`; None for the name of a file."""
    if not text.startswith(("[", "-", "true", "false")) and not text[0].isdecimal():
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if _are_numbers(value) and not Path(text).exists() else None


def _are_numbers(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_are_numbers, cast("list[object]", value)))
    return isinstance(value, int | float)


def _as_array(value: Written, parameter: Parameter, argument: str) -> np.ndarray:
    """Returns numbers as an array of the parameter's dtype. Raises UsageError where it holds them not."""
    dtype = numpy_dtype(parameter.dtype)
    try:
        given = np.asarray(value)
    except ValueError:
        raise UsageError(f"--input {argument}: the lists are not of equal length") from None
    converted = given.astype(dtype)
    is_exact = given.dtype.kind in "biu" if dtype.kind in "iu" else given.dtype.kind == "b" or dtype.kind != "b"
    if not is_exact or (dtype.kind in "iu" and not np.array_equal(converted, given)):
        raise UsageError(f"--input {argument}: parameter {parameter.name} is {parameter.dtype}, which does not hold it")
    return converted


def _add(found: Arrays, name: str, array: np.ndarray, argument: str) -> None:
    if name in found:
        raise UsageError(f"--input {argument}: parameter {name} is given twice")
    found[name] = array


def _known(name: str, names: list[str], what: str) -> str:
    if name not in names:
        takes = ", ".join(names) or "nothing"
        raise UsageError(f"{what} is not a parameter{did_you_mean(name, names)} (the entry takes {takes})")
    return name


def load_npz(path: str, advice: str | None = None) -> Arrays:
    """Loads a .npz file's arrays by name. Raises `UsageError`, with `advice` for a file of one."""
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        raise UsageError(f"{path}: holds one array without a name: {advice or f'write NAME={path}'}")
    return loaded


def _load_npy(path: str) -> np.ndarray:
    loaded = _load(path)
    if not isinstance(loaded, np.ndarray):
        raise UsageError(f"{path}: holds several arrays by name: write --input {path}")
    return loaded


def _load(path: str) -> np.ndarray | Arrays:
    if not Path(path).exists():
        raise UsageError(f"{path}: no such file")
    try:
        with open(path, "rb") as file:
            beginning = file.read(len(_NPY))
        if beginning == _NPY:
            return read_npy(Path(path))
        if not beginning.startswith(_ZIP):
            raise ValueError("it begins as neither does")
        side = SideFile(Path(path), ".npz", raw=True)
        return {name: side.array(name) for name in side.names()}
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: is no .npy or .npz file of numbers: {' '.join(str(error).split())}") from None


_NPY, _ZIP = b"\x93NUMPY", b"PK"
"""How the two begin."""


def reinterpret(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns `array` with its type, where numpy's file formats kept only its size (as for bfloat16)."""
    return array.view(dtype) if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize else array


@dataclass(frozen=True)
class NamedParameter:
    """A parameter whose every open dimension has a name: the first of a Relay `x` that is `?` is `x.0`."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str


def named(parameters: Sequence[Parameter]) -> list[NamedParameter]:
    """Returns the parameters with names for their dimensions `?`."""
    return [
        NamedParameter(p.name, tuple(f"{p.name}.{k}" if d == "?" else d for k, d in enumerate(p.shape)), p.dtype)
        for p in parameters
    ]


def read_sizes(arguments: Iterable[str], parameters: Sequence[Parameter]) -> dict[str, int]:
    """Parses `--size n=37`. Raises `UsageError`, also for an unknown size, and one given twice."""
    sizes: dict[str, int] = {}
    known = size_names(parameters) + [p.name for p in parameters if not p.shape]
    for argument in arguments:
        name, _, value = argument.partition("=")
        number = natural(value)
        if number is None:
            raise UsageError(f"--size {argument}: write NAME=NUMBER, as in n=37; a size is 0 or more")
        if name not in known:
            has = f"they have {', '.join(known)}" if known else "all of them are numbers"
            raise UsageError(f"--size {argument}: no parameter has a size '{name}'{did_you_mean(name, known)} ({has})")
        if name in sizes:
            raise UsageError(f"--size {argument}: size {name} is given twice")
        sizes[name] = number
    return sizes


def bind_sizes(parameters: Sequence[Parameter], inputs: Arrays, sizes: dict[str, int]) -> dict[str, int]:
    """Returns `sizes` with those of the inputs' shapes. Raises `UsageError` when they disagree."""
    bound = dict(sizes)
    for parameter in parameters:
        array = inputs.get(parameter.name)
        if array is None:
            continue
        for axis, (size, given) in enumerate(zip(parameter.shape, array.shape, strict=False)):
            if isinstance(size, str) and _is_name(size) and bound.setdefault(size, given) != given:
                raise UsageError(
                    f"size {size} is {bound[size]}, but axis {axis} of input {parameter.name} is of size {given}"
                )
        # A size that is itself a parameter: its value is the size.
        if not parameter.shape and array.shape == () and array.dtype.kind in "iu" and parameter.name not in bound:
            bound[parameter.name] = int(array)
    return bound


def concrete_shape(parameter: Parameter, sizes: dict[str, int]) -> tuple[int, ...]:
    """Returns the parameter's shape with sizes filled in. Raises `UsageError` for an unknown size."""
    return tuple(size if isinstance(size, int) else _evaluate(size, parameter, sizes) for size in parameter.shape)


def _evaluate(text: str, parameter: Parameter, sizes: dict[str, int]) -> int:
    if text in sizes:
        return sizes[text]
    if _is_name(text):
        raise _unknown_size(text, parameter)

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                if name not in sizes:
                    raise _unknown_size(name, parameter)
                return sizes[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return value(left) + value(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return value(left) - value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return value(left) * value(right)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right) if value(right):
                return value(left) // value(right)
            case _:
                raise UsageError(
                    f"size {text} of parameter {parameter.name} cannot be computed here: give an --input for it"
                )

    return value(_expression(text))


def _unknown_size(name: str, parameter: Parameter) -> UsageError:
    return UsageError(f"size {name} of parameter {parameter.name} is not known: give --size {name}=NUMBER")


def _is_name(size: str) -> bool:
    """Tells whether a size is a name, also one that `named` made, rather than an expression of names."""
    return size.isidentifier() or size.rpartition(".")[2].isdecimal()


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return ast.Tuple([])  # What `named` made is none of the forms that have a value.


def size_names(parameters: Sequence[Parameter]) -> list[str]:
    """Returns the names that the shapes of the parameters are made of, in order of appearance."""
    sizes = [size for parameter in parameters for size in parameter.shape if isinstance(size, str)]
    names = [
        name
        for size in sizes
        for name in (
            [size]
            if _is_name(size)
            else [node.id for node in ast.walk(_expression(size)) if isinstance(node, ast.Name)]
        )
    ]
    return list(dict.fromkeys(names))


def _allocatable_shape(parameter: Parameter, sizes: dict[str, int], itemsize: int) -> tuple[int, ...]:
    """Returns `concrete_shape`; raises `UsageError` where an array of it takes more memory than is free."""
    shape = concrete_shape(parameter, sizes)
    reason = why_no_memory(prod(shape) * itemsize)
    if reason is not None:
        raise UsageError(f"parameter {parameter.name}, {parameter.dtype}[{', '.join(map(str, shape))}], {reason}")
    return shape


def draw(parameters: Sequence[Parameter], sizes: dict[str, int], seed: int) -> Arrays:
    """Draws every parameter from one generator, in order: bool even, integers 0 to 9, floats normal."""
    generator = np.random.default_rng(seed)
    drawn: Arrays = {}
    for parameter in parameters:
        dtype = numpy_dtype(parameter.dtype)
        if not parameter.shape and parameter.name in sizes:
            drawn[parameter.name] = np.asarray(sizes[parameter.name], dtype)
            continue
        # Random numbers are drawn as 8 bytes each.
        shape = _allocatable_shape(parameter, sizes, max(dtype.itemsize, 8))
        if dtype.kind == "b":
            values = generator.integers(0, 2, shape)
        elif dtype.kind in "iu":
            values = generator.integers(0, 10, shape)
        else:
            values = generator.standard_normal(shape)
        drawn[parameter.name] = np.asarray(values).astype(dtype)
    return drawn


def zeros(parameters: Sequence[Parameter], sizes: dict[str, int]) -> Arrays:
    """Returns zeros for every parameter, except that a parameter that is a size has its value."""
    return {
        parameter.name: np.asarray(sizes[parameter.name], numpy_dtype(parameter.dtype))
        if not parameter.shape and parameter.name in sizes
        else np.zeros(
            _allocatable_shape(parameter, sizes, numpy_dtype(parameter.dtype).itemsize), numpy_dtype(parameter.dtype)
        )
        for parameter in parameters
    }


def check(parameters: Sequence[Parameter], inputs: Arrays, sizes: dict[str, int]) -> None:
    """Raises `UsageError` when an input has not its parameter's type and shape."""
    for parameter in parameters:
        array = inputs.get(parameter.name)
        if array is None:
            continue
        shape = ("?" if isinstance(size, str) and "." in size else str(size) for size in parameter.shape)
        wanted = f"{parameter.dtype}[{', '.join(shape)}]"
        if array.dtype != numpy_dtype(parameter.dtype):
            raise UsageError(
                f"input {parameter.name} is {describe(array)}, but its parameter is {wanted}: "
                f"save it with .astype('{parameter.dtype}')"
            )
        if len(array.shape) != len(parameter.shape) or array.shape != concrete_shape(parameter, sizes):
            raise UsageError(f"input {parameter.name} is {describe(array)}, but its parameter is {wanted}")
