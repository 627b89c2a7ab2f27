"""Reads the literals of Relay text and `meta[relay.Constant][…]` as arrays with their types."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute

from ...dialects.array import ArrayValueAttr
from ...dialects.side_file import SideFile
from ...dialects.tir.types import dtype_to_type
from .metadata import Metadata
from .reader import suggest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONSTANTS_FILE = "relay.constants"
"""The module attribute that keeps the name of the side file."""

_NUMBER = re.compile(r"(-?(?:inf|nan|[0-9.]+(?:[eE][+-]?[0-9]+)?))(.*)")
_SUFFIXES = {
    "f": "float32", "bf16": "bfloat16", "i1": "bool", "u1": "bool", **{f"f{b}": f"float{b}" for b in (16, 32, 64)},
    **{f"i{b}": f"int{b}" for b in (8, 16, 32, 64)}, **{f"u{b}": f"uint{b}" for b in (8, 16, 32, 64)},
}  # fmt: skip


class ConstantError(Exception):
    """A constant that means nothing; with notes that say what to write."""

    def __init__(self, message: str, *notes: str):
        super().__init__(message)
        self.message = message
        self.notes = notes


class Constants:
    """The constants of one file. Equal literals share one attribute."""

    def __init__(self, metadata: Metadata, directory: str | None):
        self._metadata = metadata
        self._directory = directory
        self._literals: dict[str, tuple[ArrayValueAttr, Attribute]] = {}
        self._arrays: dict[str | int, tuple[ArrayValueAttr, Attribute]] = {}
        self._name: str | None = None
        self._file: SideFile | None = None
        self.is_broken = False
        """Whether the side file could not be opened, which was told."""

    @property
    def side_file(self) -> StringAttr | None:
        """The name of the side file, as an attribute."""
        return None if self._name is None else StringAttr(self._name)

    def literal(self, text: str) -> tuple[ArrayValueAttr, Attribute]:
        """The scalar that `1f`, `3`, `-2i64`, `True` write, and its type."""
        found = self._literals.get(text)
        if found is None:
            found = self._literals[text] = _scalar(*number_of(text))
        return found

    def open(self, name: str) -> None:
        """`#[constants = "name"]`."""
        if self._name is not None and self._name != name:
            raise ConstantError(
                f"the constants of this file are in '{self._name}' already", "a .mir file has one side file"
            )
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.name:
            raise ConstantError(
                f"the side file '{name}' is not beside this file",
                "name a file in the folder of the .mir file, without '..'",
            )
        if self._directory is None:
            raise ConstantError(
                f"the side file '{name}' cannot be looked up: this text is in no folder",
                "give the folder of the text (directory=…), or read the text from a file",
            )
        try:
            self._file = SideFile(Path(self._directory) / path)
        except OSError as error:
            here = _files_of(self._directory)
            raise ConstantError(
                f"the side file '{name}' cannot be read: {error.strerror}{suggest(name, here)}",
                "it is looked up in the folder of the .mir file",
            ) from None
        except ValueError as error:
            raise ConstantError(f"the side file '{name}' cannot be used: {error}") from None
        self._name = name

    def reference(self, key: str, quoted: bool) -> tuple[ArrayValueAttr, Attribute]:
        """The array of `meta[relay.Constant][key]`.

        A number means the metadata section's array of that number where there is one; a quoted key only the side file's.
        """
        index = int(key) if not quoted and key.isdecimal() and len(key) < 12 else None
        if index is not None and index < self._metadata.count("relay.Constant"):
            place: str | int = index
        else:
            place = key
        found = self._arrays.get(place)
        if found is None:
            found = self._arrays[place] = self._read(place, index)
        return found

    def _read(self, place: str | int, index: int | None) -> tuple[ArrayValueAttr, Attribute]:
        try:
            if isinstance(place, int):
                return _with_type(self._metadata.constant(place))
            if self._file is None and self._name is None:
                if index is None:
                    raise ConstantError(
                        f"there is no constant '{place}': this file names no side file",
                        'put #[constants = "weights.npz"] at its head',
                    )
                return _with_type(self._metadata.constant(index))
            if self._file is None or place not in self._file:
                names = [] if self._file is None else list(self._file.names())
                listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
                raise ConstantError(
                    f"'{self._name}' has no array '{place}'{suggest(place, names)}", f"it has {listed or 'none'}"
                )
            return _with_type(self._file.array(place), (str(self._name), place))
        except ValueError as error:
            raise ConstantError(f"the constant '{place}' cannot be read: {error}") from None


def _files_of(directory: str) -> list[str]:
    try:
        return [p.name for p in Path(directory).iterdir() if p.suffix in (".npz", ".safetensors", ".onnx")]
    except OSError:
        return []


def _with_type(array: NDArray[np.generic], origin: tuple[str, str] | None = None) -> tuple[ArrayValueAttr, Attribute]:
    element = dtype_to_type(array.dtype.name)
    return ArrayValueAttr.of(array, origin), TensorType(element, list(array.shape))


def number_of(text: str) -> tuple[Any, str]:
    """Returns the Python value and the dtype of a number token.

    A number without suffix is an int32, or a float32 if it has a point.
    """
    if text in ("True", "False"):
        return text == "True", "bool"
    match = _NUMBER.fullmatch(text)
    assert match is not None, text
    digits, suffix = match.groups()
    is_integer = digits.lstrip("-").isdecimal()
    if suffix and suffix not in _SUFFIXES:
        raise ConstantError(
            f"there are no numbers with the suffix '{suffix}'", f"a number ends in {', '.join(_SUFFIXES)} or nothing"
        )
    dtype = _SUFFIXES[suffix] if suffix else ("int32" if is_integer else "float32")
    if dtype.startswith(("int", "uint", "bool")):
        if not is_integer:
            raise ConstantError(f"{text} is not an integer", "a float is written 2.5f, an integer 2")
        low, high = _range_of(dtype)
        if len(digits) > 24 or not low <= int(digits) <= high:
            wider = "; write 5i64 for a 64-bit integer" if dtype == "int32" else ""
            raise ConstantError(f"{text} does not fit into {dtype}", f"{dtype} holds {low} to {high}{wider}")
        return int(digits), dtype
    return float(digits), dtype


def _range_of(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    bits = int(dtype.lstrip("uint"))
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _scalar(value: Any, dtype: str) -> tuple[ArrayValueAttr, Attribute]:
    return ArrayValueAttr.of_scalar(value, dtype), TensorType(dtype_to_type(dtype), [])
