"""Defines `Executable`, the result of `mirstack.compile`: an entry of any level, callable with arrays."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ....dialects.array_box import laid_out, numpy_dtype, storage_of
from ....support.arguments import integer
from ....support.text import counted, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..profile_facts import ProfileFacts
    from .arguments import Arguments
    from .profile import Profile

    Exporter: TypeAlias = "Callable[[Path, tuple[str, ...], Path | None], list[Path]]"

Array: TypeAlias = "NDArray[Any]"
Kind = Literal["relay", "te", "tir", "func"]


@dataclass(frozen=True)
class Param:
    """A parameter of an entry.

    `shape` holds numbers, and names or expressions of names for symbolic sizes; a scalar has shape (). `dtype` is TVM's
    name. `is_output` says that the entry writes it (never for Relay, whose results are returned). `strides` are there,
    in elements, for a buffer whose declared strides are numbers and not those of compact memory.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    is_output: bool = False
    is_scalar: bool = False
    strides: tuple[int, ...] = ()
    open_strides: tuple[int | None, ...] = ()
    """In elements, for a buffer some of whose declared strides are symbolic: those that are numbers, None for any stride."""


class Executable(ABC):
    """An entry ready to run.

    Call it with its parameters in order, or by name. A Relay entry returns its result: an array, or a tuple (nested as the type
    says). A TE or TIR entry takes every buffer and writes its outputs into those it is given; it returns None, or the
    scalar that a TIR function returns. So does a `func.func`, which may return several scalars, as a tuple.

    Calls may come from several Python threads at once. Arrays are numpy arrays or anything with DLPack, contiguous (or of
    the strides that the parameter declares), of exactly its dtype and shape; what does not fit raises TypeError or ValueError naming the parameter.
    """

    name: str
    kind: Kind
    params: Sequence[Param]
    """What is taken: the tensors, those of a tuple `t` as `t.0`, `t.1`, …"""
    returns: tuple[str, ...] = ()
    """The dtypes of the scalars that an entry other than Relay's returns."""
    result_names: tuple[str, ...] = ()
    """The names of a Relay entry's results, tuples flattened depth first, where the entry names them."""
    num_results: int = 0
    """The number of tensors that a Relay entry returns, tuples flattened."""
    _arguments: Arguments | None = None
    """How tensors make up the arguments of a call, where some are tuples."""
    _threads: int | None = None
    """How many threads run its parallel loops; None for none."""
    _profile_facts: ProfileFacts | None = None
    """What is known of the kernels, if they record when they run."""
    _why_no_profile = "does not record when its kernels run; compile it with profile=True"

    exporter: Exporter | None = None
    """Compiles the program again for files, where it was compiled here."""

    def __repr__(self) -> str:
        params = ", ".join(f"{param.name}: {param.dtype}{list(param.shape)}".replace("'", "") for param in self.params)
        return f"Executable({self.name}({params}))"

    def _repr_html_(self) -> str:
        from ....support.notebook import table_html

        rows = [(param.name, param.dtype, shape_text(param.shape)) for param in self.params]
        return table_html(f"{self.name} ({self.kind})", ("parameter", "dtype", "shape"), rows)

    @abstractmethod
    def __call__(self, *args: Any, **named: Any) -> Any: ...

    def export(
        self,
        path: str | PathLike[str],
        *,
        cpus: Sequence[str] = (),
        weights: str | PathLike[str] | None = None,
    ) -> list[Path]:
        """Compiles the program to a file, by its ending; returns the files that were written.

        .mirpkg is a package (`Executable.load`), .so a shared library with a header for C, .o an object file with a header, .ll and .s LLVM
        IR and assembly, .wasm a module of WebAssembly with JavaScript, .html a page with it. `cpus` are LLVM's names of the processors to compile for, this one by default;
        packages and shared libraries hold code for each of them, and choose where they run. `weights` is a file for a library's weights.
        Its source must be what it was when the program was compiled. Raises MirError for what cannot be compiled or written.
        """
        from ....support.diagnostics import Diagnostic, MirError

        if self.exporter is None:
            raise MirError(
                Diagnostic(f"{self.name} cannot be exported: it was not compiled here").with_note(
                    "export what mirstack.compile returns for the target cpu; a package can be copied"
                )
            )
        return self.exporter(Path(path), tuple(cpus), None if weights is None else Path(weights))

    def export_library(self, path: str | PathLike[str], *, cpus: Sequence[str] = ()) -> list[Path]:
        """Exports the program; a shared library (.so) ends in a package, so that `load` reads it, too.

        It then holds code and weights twice. Raises MirError as `export` does.
        """
        written = self.export(path, cpus=cpus)
        if Path(path).suffix == ".so":
            package = import_module("...artifacts.package", __name__)
            package.append_package(Path(path), partial(self.export, cpus=cpus))
        return written

    @staticmethod
    def load(path: str | PathLike[str], *, threads: int | None = None) -> Executable:
        """Returns the program of a package, or of a library of `export_library`.

        It has the best of the code that runs here; nothing is compiled. `threads` bounds those of parallel loops. A package holds machine
        code: load what you trust (docs/security.md). Raises MirError for
        a file that is not a whole package, and where none of its code runs on this machine.
        """
        # By name: what reads packages makes executables of them, and so imports this module.
        package = import_module("...artifacts.package", __name__)
        return cast("Executable", package.load_package(Path(path), threads))

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns the arguments of a call `f(a, b, d=…, c=…)` in the order of the parameters.

        Raises TypeError for a name that is unknown, given twice, or missing.
        """
        names = [p.name for p in self.params] if self._arguments is None else [n for n, _ in self._arguments.params]
        for name in named:
            if name not in names:
                known = f"{did_you_mean(name, names)}; it has {', '.join(names) or 'none'}"
                raise TypeError(f"{self.name} has no parameter '{name}'{known}")
        rest = names[len(args) :]
        if twice := [name for name in named if name not in rest]:
            raise TypeError(f"{self.name} is given '{twice[0]}' twice, in its place and by its name")
        if missing := [name for name in rest if name not in named]:
            raise TypeError(f"{self.name} needs a value for {', '.join(missing)}")
        return (*args, *(named[name] for name in rest))

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Runs on arrays by parameter name, and returns the results by name.

        A Relay entry needs every parameter; its results are `result_names`, otherwise `out0`, `out1`, …, tuples flattened depth first. A TE or TIR
        entry's absent buffers are zeros; the result holds those that it writes, and the scalars that it
        returns as `out0`, … Buffers with strides are laid out so. Raises ValueError for a missing or an unknown name, and
        where a symbolic size is not determined.
        """
        values, arguments = self._by_name(inputs)
        result = self(*arguments)
        if self.kind == "relay":
            flat = flatten(result)
            names = self.result_names or tuple(f"out{k}" for k in range(len(flat)))
            return dict(zip(names, flat, strict=True))
        import numpy as np

        outputs = {param.name: values[param.name] for param in self.params if param.is_output}
        scalars = zip(self.returns, flatten(result) if self.returns else (), strict=True)
        outputs |= {f"out{k}": np.asarray(scalar, numpy_dtype(dtype)) for k, (dtype, scalar) in enumerate(scalars)}
        return outputs

    def _by_name(self, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        """Returns the tensors of a call by name, and its arguments in order; see `run`."""
        names = [param.name for param in self.params]
        inputs = {name: storage_of(value) for name, value in inputs.items()}
        for name in inputs:
            if name not in names:
                raise ValueError(f"{self.name} has no parameter '{name}'; it has {', '.join(names) or 'none'}")
        missing = [name for name in names if name not in inputs]
        if self.kind == "relay":
            if missing:
                raise ValueError(f"{self.name} needs a value for {', '.join(missing)}")
            tensors = [inputs[name] for name in names]
            return inputs, tensors if self._arguments is None else self._arguments.nested(tensors)
        values = {**self._zeros(missing, inputs), **inputs}
        for param in self.params:
            if param.strides:
                array = as_array(values[param.name], param)
                check_array(array, replace(param, strides=()))
                values[param.name] = laid_out(array, param.strides)
        return values, [values[name] for name in names]

    def profile(self, *args: Any, calls: int = 10, **named: Any) -> Profile:
        """Reports the time of each kernel over so many calls, after two uncounted ones (docs/see-inside.md).

        The arguments are those of a call. Raises ValueError unless the entry was compiled with `profile=True`.
        """
        from .profile import profile_calls

        calls = integer(calls, "calls", 1)
        if self._profile_facts is None:
            raise ValueError(f"{self.name} {self._why_no_profile}")
        if named:
            args = self._in_order(args, named)
        return profile_calls(self.name, lambda: self(*args), self._profile_facts, calls, self._threads)

    def profile_run(self, inputs: Mapping[str, Any], *, calls: int = 10) -> Profile:
        """As `profile`, on arrays by parameter name as `run` takes them."""
        return self.profile(*self._by_name(inputs)[1], calls=calls)

    def _zeros(self, missing: Sequence[str], inputs: Mapping[str, Any]) -> dict[str, Array]:
        import numpy as np

        sizes: dict[str, int] = {}
        for param in self.params:
            if param.name in inputs:
                given = np.shape(inputs[param.name])
                sizes |= {
                    s: n for s, n in zip(param.shape, given, strict=False) if isinstance(s, str) and s.isidentifier()
                }
                if param.is_scalar:
                    sizes[param.name] = int(inputs[param.name])
        arrays: dict[str, Array] = {}
        for param in self.params:
            if param.name in missing:
                shape = [sizes.get(s) if isinstance(s, str) else s for s in param.shape]
                if None in shape:
                    raise ValueError(f"the size of '{param.name}' is not known: give it, or an array that has it")
                arrays[param.name] = np.zeros([s for s in shape if s is not None], numpy_dtype(param.dtype))
        return arrays


def wrong_count(name: str, params: Sequence[str], given: int) -> TypeError:
    """Returns the error for a call of `name` with another number of arguments than it has parameters."""
    return TypeError(f"{name} takes {counted(len(params), 'argument')} ({', '.join(params)}), not {given}")


def flatten(value: Any) -> list[Any]:
    """Returns the arrays of a nested tuple, depth first."""
    if not isinstance(value, tuple):
        return [value]
    return [leaf for item in cast("tuple[Any, ...]", value) for leaf in flatten(item)]


def as_array(value: Any, param: Param) -> Array:
    """Returns `value` as a numpy array without copying its data.

    An array stays as it is; of an `nd.array` it is the memory, other tensors come through DLPack. A number is converted as by
    `as_scalar`. Raises TypeError for other values (a nested list, say), ValueError for another device's memory.
    """
    import numpy as np

    value = storage_of(value)
    if isinstance(value, np.ndarray):
        # A matrix or a masked array counts as the array that it is.
        return value if type(value) is np.ndarray else value.view(np.ndarray)
    if isinstance(value, np.generic | int | float) and tuple(param.shape) == ():
        return np.asarray(as_scalar(value, param), numpy_dtype(param.dtype))
    if isinstance(value, np.generic):
        return np.asarray(value, numpy_dtype(param.dtype))
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(cast("Any", value))
        except (BufferError, RuntimeError) as exception:
            raise ValueError(f"'{param.name}' cannot be read through DLPack: {exception}") from None
        except TypeError:  # a class, of which only the objects are tensors
            pass
    raise TypeError(
        f"'{param.name}' must be a numpy array or a DLPack tensor, not {type(value).__name__}: "
        f"np.asarray(…, {param.dtype!r}) makes one of lists and numbers"
    )


def as_scalar(value: Any, param: Param) -> int | float:
    """Returns `value` as a Python number of the parameter's dtype: 3 of int32, 3 or 3.0 of float32.

    Raises TypeError for what is not a number, and for a float where an integer is wanted; ValueError for a number that the dtype
    does not hold. Floats may be rounded.
    """
    import numpy as np

    item = value.item() if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0 else value
    if not isinstance(item, int | float):
        raise TypeError(f"'{param.name}' must be a number, not {type(value).__name__}")
    if param.dtype.startswith(("float", "bfloat")):
        if not _holds_float(item, param.dtype):
            raise ValueError(f"'{param.name}' is {_short(item)}, which {param.dtype} cannot hold")
        return float(item)
    if not isinstance(item, int):
        raise TypeError(f"'{param.name}' must be of dtype {param.dtype}, not a float")
    least, greatest = (0, 1) if param.dtype == "bool" else _integers(param.dtype)
    if not least <= item <= greatest:
        raise ValueError(f"'{param.name}' is {_short(item)}, which {param.dtype} cannot hold")
    return bool(item) if param.dtype == "bool" else item


def _short(number: float) -> str:
    """Returns a number as text; of a long integer, which Python does not print, only its length."""
    if isinstance(number, int) and number.bit_length() > 256:
        return f"an integer of {number.bit_length()} bits"
    return repr(number)


def _integers(dtype: str) -> tuple[int, int]:
    """Returns the least and the greatest integer of a dtype."""
    import numpy as np

    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _holds_float(number: float, dtype: str) -> bool:
    """Returns whether a float dtype holds a number (infinity and NaN, too) without rounding to infinity."""
    import numpy as np

    try:
        number = float(number)
    except OverflowError:
        return False
    # Which float16 holds: there is nothing to convert for the numbers that are passed mostly.
    if abs(number) < 6e4 or dtype == "float64" or not math.isfinite(number):
        return True
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.asarray(number).astype(numpy_dtype(dtype))))


def check_array(array: Array, param: Param, *, writable: bool = False) -> None:
    """Checks an array against a parameter.

    Raises TypeError for a wrong dtype, ValueError for a wrong shape, for data that is not row-major contiguous (or does
    not have the parameter's strides), and for an output that is read-only.
    """
    dtype = numpy_dtype(param.dtype)
    if array.dtype != dtype:
        swapped = array.dtype.newbyteorder() == dtype
        hint = f", which is of the other byte order: pass .astype({param.dtype!r}) of it" if swapped else ""
        raise TypeError(f"'{param.name}' must be of dtype {param.dtype}, not {array.dtype}{hint}")
    if array.ndim != len(param.shape) or any(
        isinstance(extent, int) and given != extent for given, extent in zip(array.shape, param.shape, strict=True)
    ):
        raise ValueError(f"'{param.name}' must have shape {shape_text(param.shape)}, not {shape_text(array.shape)}")
    if param.strides:
        steps = tuple(step // array.itemsize for step in array.strides)
        if any(n > 1 and step != given for n, step, given in zip(array.shape, param.strides, steps, strict=True)):
            raise ValueError(f"'{param.name}' must have strides {param.strides} in elements, not {steps}")
    elif param.open_strides:
        steps = [step // array.itemsize for step in array.strides]
        if any(step % array.itemsize for step in array.strides):
            raise ValueError(f"'{param.name}' has strides of {array.strides} bytes, which are no whole elements")
        for axis, (size, stride, given) in enumerate(zip(array.shape, param.open_strides, steps, strict=True)):
            if size > 1 and stride is not None and stride != given:
                raise ValueError(f"'{param.name}' must have stride {stride} along axis {axis}, not {given}")
    elif not array.flags.c_contiguous:
        advice = "pass numpy.ascontiguousarray of it"
        if writable:
            advice = (
                "it is written, so pass a contiguous array and copy the results back (of a copy they would be lost)"
            )
        raise ValueError(f"'{param.name}' must be contiguous in row-major order; {advice}")
    if writable and not array.flags.writeable:
        raise ValueError(f"'{param.name}' is written, but the array is read-only")


def shape_text(shape: Sequence[int | str]) -> str:
    """Returns a shape as TVM prints it: `(1, n)`."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
