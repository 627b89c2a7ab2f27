"""Defines the calling convention of a lowered tensor function.

The arguments of a lowered `tir.prim_func`, in order:

- a buffer parameter, or a handle that a `match_buffer` takes apart: the address of its first element;
- any other handle: an address;
- a scalar: itself, at its own width (bool as one bit);
- after all parameters, every symbolic variable (size, stride, offset) as a 64-bit integer, in the order of `symbols`.

`KernelSignature` holds this for one function as data. It is stored on the `func.func` as the attribute `mirstack.signature`
in builtin attributes, so that any printer and parser keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, NoneType, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation

from ...support.diagnostics import Diagnostic, MirError
from ...support.text import counted

SIGNATURE = "mirstack.signature"

SHAPE = "mirstack.shape"
"""The attribute of a kernel whose sizes are computed, or checked, before it is called (`lowering/relay/kernels/shape_function.py`)."""

Size: TypeAlias = "int | str | tuple[str, Size, Size]"
"""A number, the name of a symbol, or (operator, left, right) with an operator of `OPERATORS`."""

OPERATORS = ("+", "-", "*", "//", "%", "min", "max")


@dataclass(frozen=True)
class BufferParam:
    """A tensor argument.

    `strides` are in elements, None for compact row-major; `writes` says whether it is written, `forward` that the function reaches
    it through a flat view that begins with its first element.
    """

    name: str
    dtype: str
    shape: tuple[Size, ...]
    strides: tuple[Size, ...] | None = None
    elem_offset: Size = 0
    scope: str = "global"
    writes: bool = True
    forward: bool = False


def known_strides(param: BufferParam) -> tuple[int, ...]:
    """Returns the strides of a parameter, () where it is compact; symbolic ones are found at each call."""
    if not param.strides:
        return ()
    # What runs programs from the cache needs no dialects.
    from ...dialects.tir.buffer import compact_strides

    steps = tuple(step for step in param.strides if isinstance(step, int))
    shape = [size for size in param.shape if isinstance(size, int)]
    return steps if len(steps) == len(shape) == len(param.shape) and steps != compact_strides(shape) else ()


@dataclass(frozen=True)
class ScalarParam:
    """A number argument."""

    name: str
    dtype: str


@dataclass(frozen=True)
class HandleParam:
    """An address that the function does not describe."""

    name: str


Param: TypeAlias = "BufferParam | ScalarParam | HandleParam"


@dataclass(frozen=True)
class KernelSignature:
    """The parameters of a function as in the source, the symbols passed after them, the returned dtype."""

    params: tuple[Param, ...]
    symbols: tuple[str, ...] = ()
    returns: str | None = None

    def named(self, names: Sequence[str]) -> KernelSignature:
        """Returns the signature of a TE function, whose parameters have the names of its tensors."""
        return replace(self, params=tuple(replace(p, name=n) for p, n in zip(self.params, names, strict=True)))

    def bind(
        self,
        shapes: Mapping[str, Sequence[int]],
        scalars: Mapping[str, int] | None = None,
        strides: Mapping[str, Sequence[int]] | None = None,
        places: Mapping[str, str] | None = None,
    ) -> dict[str, int]:
        """Returns the value of every symbol, from the tensors' shapes and strides by parameter name.

        Strides are in elements. Raises MirError when a rank or an extent does not fit, naming the parameter and the dimension, or when
        nothing determines a symbol. `places` says where parameters are declared, `file:line:column`.
        """

        def refuse(param: BufferParam, message: str, *notes: str) -> MirError:
            from ..llvm.jit.call import diagnostic_of

            place = (places or {}).get(param.name)
            found = diagnostic_of(message if place is None else f"{place}: error: {message}")
            for note in notes:
                found = found.with_note(note)
            return MirError(found)

        known: dict[str, int] = dict(scalars or {})
        buffers = [p for p in self.params if isinstance(p, BufferParam)]
        for param in buffers:
            shape = shapes[param.name]
            if len(shape) != len(param.shape):
                raise refuse(
                    param,
                    f"'{param.name}' has {counted(len(shape), 'dimension')}, but the function takes {len(param.shape)}",
                )
            for declared, given in zip(param.shape, shape, strict=True):
                if isinstance(declared, str):
                    known.setdefault(declared, given)
            for declared, given in zip(param.strides or (), (strides or {}).get(param.name, ()), strict=False):
                if isinstance(declared, str):
                    known.setdefault(declared, given)
        # Compact tensors need no strides: what a declared stride is then follows from the shape.
        for param in buffers:
            step = 1
            for declared, given in zip(reversed(param.strides or ()), reversed(shapes[param.name]), strict=False):
                if isinstance(declared, str):
                    known.setdefault(declared, step)
                step *= given
            if isinstance(param.elem_offset, str):
                known.setdefault(param.elem_offset, 0)
        for symbol in self.symbols:
            if symbol not in known:
                message, rule = (
                    f"nothing determines '{symbol}'",
                    "a symbolic size must be one extent of a parameter on its own",
                )
                user = next((p for p in buffers if any(_names(size, symbol) for size in _sizes(p))), None)
                raise _refuse(message, rule) if user is None else refuse(user, message, rule)
        for param in buffers:
            for number, (declared, given) in enumerate(zip(param.shape, shapes[param.name], strict=True)):
                expected = evaluate(declared, known)
                if given != expected:
                    shown = f"{declared} = {expected}" if isinstance(declared, str) else expected
                    raise refuse(param, f"dimension {number} of '{param.name}' is {given}, but must be {shown}")
            steps = zip(param.strides or (), (strides or {}).get(param.name, ()), shapes[param.name], strict=False)
            for number, (declared, given, extent) in enumerate(steps):
                if param.forward and extent > 1 and given < 0 and 0 not in shapes[param.name]:
                    raise refuse(
                        param,
                        f"stride {number} of '{param.name}' is {given}, but its first element must be the first in memory",
                        "pass a copy, as numpy.ascontiguousarray makes one; of an output, copy the results back",
                    )
                expected = evaluate(declared, known)
                if extent > 1 and given != expected:
                    shown = f"{declared} = {expected}" if isinstance(declared, str) else expected
                    raise refuse(param, f"stride {number} of '{param.name}' is {given}, but must be {shown}")
        return {symbol: known[symbol] for symbol in self.symbols}

    def to_attr(self) -> DictionaryAttr:
        """As builtin attributes."""
        entries: dict[str, Attribute] = {
            "params": ArrayAttr([_param_attr(p) for p in self.params]),
            "symbols": ArrayAttr([StringAttr(s) for s in self.symbols]),
        }
        if self.returns is not None:
            entries["returns"] = StringAttr(self.returns)
        return DictionaryAttr(entries)

    @staticmethod
    def of(op: Operation) -> KernelSignature | None:
        """Returns the signature that a lowered function carries, or None."""
        attr = op.attributes.get(SIGNATURE)
        return KernelSignature.from_attr(attr) if isinstance(attr, DictionaryAttr) else None

    @staticmethod
    def from_attr(attr: DictionaryAttr) -> KernelSignature:
        """Parses an attribute made by `to_attr`; raises MirError when it is not a signature."""
        params, symbols, returns = attr.data.get("params"), attr.data.get("symbols"), attr.data.get("returns")
        if not isinstance(params, ArrayAttr) or not isinstance(symbols, ArrayAttr):
            raise _refuse(f"{SIGNATURE} needs 'params' and 'symbols'")
        return KernelSignature(
            tuple(_param_of(p) for p in params.data),
            tuple(s.data for s in symbols.data if isinstance(s, StringAttr)),
            returns.data if isinstance(returns, StringAttr) else None,
        )


def _sizes(param: BufferParam) -> tuple[Size, ...]:
    """Returns the sizes by which a parameter is described."""
    return *param.shape, *(param.strides or ()), param.elem_offset


def _names(size: Size, symbol: str) -> bool:
    """Returns whether a symbol occurs in a size."""
    return _names(size[1], symbol) or _names(size[2], symbol) if isinstance(size, tuple) else size == symbol


def evaluate(size: Size, symbols: Mapping[str, int]) -> int:
    """Returns the number that a size is, given the symbols in it; raises MirError for a division by zero."""
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return symbols[size]
    operator, left, right = size[0], evaluate(size[1], symbols), evaluate(size[2], symbols)
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "min":
            return min(left, right)
        case "max":
            return max(left, right)
        case _:
            if right == 0:
                raise _refuse("a symbolic size divides by zero")
            return left // right if operator == "//" else left % right


def _refuse(message: str, *notes: str) -> MirError:
    diagnostic = Diagnostic(message)
    for note in notes:
        diagnostic = diagnostic.with_note(note)
    return MirError(diagnostic)


@lru_cache(1 << 10)
def _number(size: int) -> Attribute:
    return IntegerAttr(size, i64)


def _size_attr(size: Size) -> Attribute:
    if isinstance(size, int):
        return _number(size)
    if isinstance(size, str):
        return StringAttr(size)
    return ArrayAttr([StringAttr(size[0]), _size_attr(size[1]), _size_attr(size[2])])


def _size_of(attr: Attribute) -> Size:
    match attr:
        case IntegerAttr():
            return attr.value.data
        case StringAttr():
            return attr.data
        case ArrayAttr() if len(attr.data) == 3 and isinstance(operator := attr.data[0], StringAttr):
            if operator.data in OPERATORS:
                return operator.data, _size_of(attr.data[1]), _size_of(attr.data[2])
        case _:
            pass
    raise _refuse(f"{SIGNATURE}: {attr} is not a size")


def _param_attr(param: Param) -> DictionaryAttr:
    entries: dict[str, Attribute] = {"name": StringAttr(param.name)}
    match param:
        case BufferParam():
            entries["dtype"] = StringAttr(param.dtype)
            entries["shape"] = ArrayAttr([_size_attr(s) for s in param.shape])
            if param.strides is not None:
                entries["strides"] = ArrayAttr([_size_attr(s) for s in param.strides])
            if param.elem_offset != 0:
                entries["elem_offset"] = _size_attr(param.elem_offset)
            if param.scope != "global":
                entries["scope"] = StringAttr(param.scope)
            if param.writes:
                entries["writes"] = UnitAttr()
            if param.forward:
                entries["forward"] = UnitAttr()
        case ScalarParam():
            entries["dtype"] = StringAttr(param.dtype)
        case HandleParam():
            pass
    return DictionaryAttr(entries)


_NOTHING = NoneType()


def _param_of(attr: Attribute) -> Param:
    data: Mapping[str, Attribute] = attr.data if isinstance(attr, DictionaryAttr) else {}
    name, dtype, shape, scope = (data.get(key, _NOTHING) for key in ("name", "dtype", "shape", "scope"))
    if not isinstance(name, StringAttr):
        raise _refuse(f"{SIGNATURE}: a parameter needs a name")
    if not isinstance(dtype, StringAttr):
        return HandleParam(name.data)
    if not isinstance(shape, ArrayAttr):
        return ScalarParam(name.data, dtype.data)
    strides = data.get("strides")
    return BufferParam(
        name.data,
        dtype.data,
        tuple(_size_of(s) for s in shape.data),
        tuple(_size_of(s) for s in strides.data) if isinstance(strides, ArrayAttr) else None,
        _size_of(data["elem_offset"]) if "elem_offset" in data else 0,
        scope.data if isinstance(scope, StringAttr) else "global",
        "writes" in data,
        "forward" in data,
    )
