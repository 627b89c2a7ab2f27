"""Words of the script language outside of scripts: `T.int32(1)` is a number, `T.Buffer(8)` a buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects.tir.node.buffer import Buffer, decl_buffer
from ...dialects.tir.node.expr import Expr, PointerType, PrimType, SizeVar, Var, const, convert, fail, items_of
from ...dialects.tir.node.operators import cast
from ...dialects.tir.types import FLOAT_LIMITS, dtype_to_type
from ...support.diagnostics import MirError

DTYPES = (
    "bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint32", "uint64", "uint8",
)  # fmt: skip
"""Those of single values, which `dir` shows; vectors (`float32x4`) and other widths are words as well."""

_FLOATS = ("inf", "-inf", "nan")


class Word:
    """A word such as `T.grid`, whose calls the parser reads from the source.

    A call of one that has a value in Python returns that.
    """

    __slots__ = ("_value", "text")

    def __init__(self, text: str, value: Callable[..., Any] | None = None):
        self.text = text
        self._value = value

    @property
    def value(self) -> Callable[..., Any] | None:
        """Returns the function that calls in Python call; None for a word of scripts alone."""
        return self._value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self if self._value is None else self._value(*args, **kwargs)

    def __getitem__(self, item: Any) -> Any:
        if self.text == "T.Buffer":
            return buffer(*(items_of(item) or (item,)))
        return self

    def __getattr__(self, name: str) -> Word:
        if name.startswith("__"):
            raise AttributeError(name)
        return Word(f"{self.text}.{name}")

    def __repr__(self) -> str:
        return self.text


def word(name: str) -> Any:
    """Returns the word `T.name`: a dtype, a function or class of `tir`, or one that only scripts know."""
    from .. import tir

    if name == "Buffer":
        return Word("T.Buffer", buffer)
    if name == "handle":
        return Word("T.handle", handle)
    if name == "cast":
        return Word("T.cast", converted)
    if _is_dtype(name):
        return Word(f"T.{name}", lambda *args, **kwargs: typed(name, *args, **kwargs))
    try:
        found: Any = getattr(tir, name)
    except AttributeError:
        return Word(f"T.{name}")
    return Word(f"T.{name}", found) if callable(found) else Word(f"T.{name}")


def _is_dtype(name: str) -> bool:
    try:
        dtype_to_type(name)
    except MirError:
        return False
    return True


def typed(dtype: str, expr: Any = None, *, is_size_var: bool = False) -> Expr:
    """Returns `T.int32(3)`, a number of that dtype; of an expression a without argument a variable.

    Raises MirError for a value that is none of these.
    """
    if expr is None:
        return SizeVar("v", dtype) if is_size_var else Var("v", dtype)
    if isinstance(expr, str):
        if expr not in _FLOATS or dtype not in FLOAT_LIMITS:
            raise fail(f"T.{dtype} takes a number, not '{expr}'", "floats are also 'inf', '-inf' and 'nan'")
        return const(float(expr), dtype)
    return const(expr, dtype) if isinstance(expr, bool | int | float) else cast(dtype, convert(expr))


def converted(value: Any, dtype: str) -> Expr:
    """Returns `T.cast(x, "int8")`."""
    return cast(dtype, convert(value))


def handle(dtype: str | Word | None = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Var:
    """Returns a variable for an address, `T.handle()`, or that of elements, `T.handle("int8", "shared")`."""
    if dtype is None:
        return Var("v", "handle")
    pointee = dtype.text.removeprefix("T.") if isinstance(dtype, Word) else dtype
    return Var("v", PointerType(PrimType(pointee), storage_scope))


def buffer(
    shape: Any,
    dtype: str = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> Buffer:
    """Returns a buffer, `T.Buffer((8, n), "float32")`. Raises MirError for what is not a shape or a dtype."""
    items = items_of(shape)
    dims = (shape,) if items is None else items
    return decl_buffer(
        dims,
        dtype,
        "buffer",
        data,
        strides,
        elem_offset,
        scope,
        align or -1,
        offset_factor,
        buffer_type,
        axis_separators,
    )


__all__ = ["DTYPES", "Word", "buffer", "handle", "typed", "word"]
