"""Defines scalar expressions in Python, as TVM's `PrimExpr`: trees of immutable nodes.

    A[i] * 2 + te.const(1, "int8")     Add(Mul(…), Cast("int32", …))

Python's operators match dtypes and fold constants (`operators`); a class's constructor does neither. A tree is cheap; it becomes
tir ops when the function that it belongs to is emitted. An expression keeps the location that `location_scope` names when it is
created, and so do its ops.

Source: TVM 0.16, "tir/expr.h".
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeGuard

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Operation

from ....support.diagnostics import MirError, MirValueError, diagnostic_at, error_at
from ....support.source_text import characters
from ... import tir
from ..types import FLOAT_LIMITS

if TYPE_CHECKING:
    import numpy as np

    from ...te.tensor import TensorSlice

ExprLike: TypeAlias = "Expr | TensorSlice | int | float"
"""An expression or a Python number (int is int32, float is float32, bool is bool, as in TVM)."""

_location: LocationAttr = UNKNOWN_LOC

INT_LIMITS = {"bool": (0, 1)} | {
    f"{prefix}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) if prefix == "int" else (0, (1 << bits) - 1)
    for prefix in ("int", "uint")
    for bits in (1, 2, 4, 8, 16, 32, 64)
}
"""Least and greatest value of each integer dtype."""


BUILD: dict[type[Operation] | str, Callable[..., Any]] = {}
"""The function that builds the expression of each op, or intrinsic, constants folded; `operators` adds them."""

PRINT: list[Callable[[Expr], str]] = []
"""The function that prints an expression; `text` adds it."""

NODES: dict[type[Operation], type[Apply]] = {}
"""The class of expressions of each op."""


class Located(Protocol):
    """Holds a location, as a `Span` does."""

    @property
    def location(self) -> LocationAttr: ...


@contextmanager
def location_scope(location: LocationAttr) -> Generator[None]:
    """Locates the expressions created within the `with` at `location`."""
    global _location
    before, _location = _location, location
    try:
        yield
    finally:
        _location = before


def current_location() -> LocationAttr:
    """Returns the location of expressions that are created now."""
    return _location


def fail(message: str, *notes: str) -> MirError:
    """Returns the error to raise at the current location."""
    return error_at(_location, message, *notes)


class Elementwise:
    """Base of values whose arithmetic is element by element (tensors): scalars' operators defer to theirs."""

    __slots__ = ()


class Expr:
    """A scalar value: `dtype` is TVM's name of its type; `args` are the expressions it is computed from."""

    __slots__ = ("args", "dtype", "location")

    def __init__(self, dtype: str, args: tuple[Expr, ...] = (), span: Located | None = None):
        self.dtype = dtype
        self.args = args
        self.location = _location if span is None else span.location

    def __add__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else BUILD[tir.AddOp](self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return BUILD[tir.AddOp](other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else BUILD[tir.SubOp](self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return BUILD[tir.SubOp](other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else BUILD[tir.MulOp](self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return BUILD[tir.MulOp](other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else BUILD["/"](self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return BUILD["/"](other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else BUILD[tir.FloorDivOp](self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return BUILD[tir.FloorDivOp](other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else BUILD[tir.FloorModOp](self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return BUILD[tir.FloorModOp](other, self)

    def __neg__(self) -> Expr:
        return BUILD[tir.MulOp](self, const(-1, self.dtype))

    def __lt__(self, other: ExprLike) -> Expr:
        return BUILD[tir.LtOp](self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return BUILD[tir.LeOp](self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return BUILD[tir.GtOp](self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return BUILD[tir.GeOp](self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return BUILD[tir.EqOp](self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return BUILD[tir.NeOp](self, other)  # type: ignore[arg-type]

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return PRINT[0](self)

    def __lshift__(self, other: ExprLike) -> Expr:
        return BUILD["shift_left"](self, other)

    def __rlshift__(self, other: ExprLike) -> Expr:
        return BUILD["shift_left"](other, self)

    def __rshift__(self, other: ExprLike) -> Expr:
        return BUILD["shift_right"](self, other)

    def __rrshift__(self, other: ExprLike) -> Expr:
        return BUILD["shift_right"](other, self)

    def __and__(self, other: ExprLike) -> Expr:
        return BUILD["bitwise_and"](self, other)

    def __rand__(self, other: ExprLike) -> Expr:
        return BUILD["bitwise_and"](other, self)

    def __or__(self, other: ExprLike) -> Expr:
        return BUILD["bitwise_or"](self, other)

    def __ror__(self, other: ExprLike) -> Expr:
        return BUILD["bitwise_or"](other, self)

    def __xor__(self, other: ExprLike) -> Expr:
        return BUILD["bitwise_xor"](self, other)

    def __rxor__(self, other: ExprLike) -> Expr:
        return BUILD["bitwise_xor"](other, self)

    def __invert__(self) -> Expr:
        return BUILD["bitwise_not"](self)

    def __bool__(self) -> bool:
        raise MirValueError(
            diagnostic_at(
                _location,
                "an expression has no truth value while the program is described",
                "for `and`, `or`, `not`, `if` write te.all(a, b), te.any(a, b), te.logical_not(a), te.if_then_else(c, a, b)",
            )
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Applies operators of numpy's numbers and arrays; refuses its functions, as `numpy.exp`."""
        import numpy as np

        given: list[Any] = []
        for value in inputs:
            if isinstance(value, Expr):
                held = np.empty((), object)
                held[()] = value
                value = held
            given.append(value)
        try:
            return getattr(ufunc, method)(*given, **keywords)
        except TypeError:
            name = ufunc.__name__
            raise fail(f"numpy.{name} takes numbers, not an expression", f"write {_te_function(name)}") from None

    def __float__(self) -> float:
        raise fail(
            "an expression is not a Python number while the program is described",
            "for math.exp(a) write te.exp(a), for float(a) te.Cast('float32', a)",
        )

    def script(self) -> str:
        """Returns the text of the expression, in TVMScript."""
        return repr(self)

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one object."""
        return self is other

    def equal(self, other: ExprLike) -> Expr:
        """Returns `self == other`."""
        return BUILD[tir.EqOp](self, other)

    def astype(self, dtype: str) -> Expr:
        """Returns this value converted to `dtype`."""
        return BUILD[tir.CastOp](dtype, self)


FUNCTIONS: set[str] = set()
"""The names of TE's functions, which `builder` adds: a refused function of numpy is mapped to that of the same name."""


def _te_function(name: str) -> str:
    """Returns TE's counterpart of a function of numpy, as a note writes it."""
    return f"te.{name}(…)" if name in FUNCTIONS else "it with the functions of te (te.exp, te.if_then_else, …)"


class Const(Expr):
    """An immediate number: an IntImm or a FloatImm."""

    __slots__ = ("value",)

    value: int | float

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        if isinstance(self.value, float):
            raise fail(f"the {self.dtype} constant {self.value} is not an integer")
        return self.value

    def __float__(self) -> float:
        return float(self.value)


class IntImm(Const):
    """An integer or bool of a dtype: `IntImm("int32", 3)`; it equals numbers by its value."""

    __slots__ = ()

    def __init__(self, dtype: str, value: int, span: Located | None = None):
        super().__init__(dtype, span=span)
        self.value = value

    def __eq__(self, other: object) -> Any:
        return self.value == other if isinstance(other, int) else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self.value != other if isinstance(other, int) else super().__ne__(other)

    # As nodes are, by identity: 1 and True are different keys.
    __hash__ = Expr.__hash__


class FloatImm(Const):
    """A float of a dtype: `FloatImm("float32", 0.5)`."""

    __slots__ = ()

    def __init__(self, dtype: str, value: float, span: Located | None = None):
        super().__init__(dtype, span=span)
        self.value = value


class StringImm(Expr):
    """A string among a call's arguments or an attribute's values."""

    __slots__ = ("value",)

    def __init__(self, value: str, span: Located | None = None):
        super().__init__("handle", span=span)
        self.value = characters(value)

    def __eq__(self, other: object) -> Any:
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other: object) -> Any:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f'"{self.value}"'


@dataclass(frozen=True)
class PrimType:
    """The type of a scalar: `PrimType("float32")`; "void" for nothing."""

    dtype: str


@dataclass(frozen=True)
class PointerType:
    """The type of an address: of elements, in a memory scope."""

    element_type: PrimType
    storage_scope: str = ""


class Var(Expr):
    """A variable: a symbolic size or scalar argument, `te.var("n")`, a loop's, or an address."""

    __slots__ = ("hint", "name", "type_annotation")

    is_size: ClassVar[bool] = False
    """Whether it is known not to be negative."""

    def __init__(self, name: str, dtype: str | PrimType | PointerType = "int32", span: Located | None = None):
        kind = PrimType(dtype) if isinstance(dtype, str) else dtype
        super().__init__(kind.dtype if isinstance(kind, PrimType) else "handle", span=span)
        self.name = characters(name)
        self.hint: str | None = None
        self.type_annotation = kind

    @property
    def name_hint(self) -> str:
        """Returns the name."""
        return self.name

    def __repr__(self) -> str:
        return self.name


class SizeVar(Var):
    """A symbolic size that is not negative, `te.size_var("n")`."""

    __slots__ = ()

    is_size = True


class Range:
    """The integers from `min` over `extent` values: `Range(2, 5)` is 2, 3, 4; `Range(5)` begins at 0."""

    __slots__ = ("extent", "min")

    min: Expr
    extent: Expr

    def __init__(self, begin: ExprLike, end: ExprLike | None = None, span: Located | None = None):
        if end is None:
            self.extent = convert(begin)
            self.min = IntImm(self.extent.dtype, 0)
        else:
            self.min = convert(begin)
            self.extent = BUILD[tir.SubOp](end, begin)

    @staticmethod
    def from_min_extent(min_value: ExprLike, extent: ExprLike, span: Located | None = None) -> Range:
        """Returns the range of a minimum and an extent."""
        made = object.__new__(Range)
        made.min, made.extent = convert(min_value), convert(extent)
        return made

    def __iter__(self) -> Iterator[Expr]:
        return iter((self.min, self.extent))

    def __getitem__(self, index: int) -> Expr:
        return (self.min, self.extent)[index]

    def __repr__(self) -> str:
        return f"Range({self.min}, {self.min + self.extent})"


class IterVar(Var):
    """An axis over a range; as an expression it is its variable.

    `iter_type` is its kind: DataPar for a spatial axis, CommReduce for a reduction's, ThreadIndex for the thread `thread_tag`. An
    axis that a schedule created has no range, `dom` None, until bounds are inferred; its `min` and `extent` are 0 then.
    """

    __slots__ = ("dom", "extent", "iter_type", "min", "thread_tag")

    (
        DataPar,
        ThreadIndex,
        CommReduce,
        Ordered,
        DimInfo,
        Unrolled,
        Vectorized,
        Parallelized,
        Tensorized,
        VirtualThread,
    ) = range(10)

    def __init__(
        self,
        dom: Range | Sequence[ExprLike] | None,
        var: Var | str,
        iter_type: int,
        thread_tag: str = "",
        span: Located | None = None,
    ):
        if dom is not None and not isinstance(dom, Range):
            low, high = dom
            dom = Range(low, high)
        dtype = dom.extent.dtype if dom is not None else "int32" if isinstance(var, str) else var.dtype
        super().__init__(var if isinstance(var, str) else var.name, dtype, span)
        self.dom = dom
        self.min, self.extent = (IntImm(dtype, 0), IntImm(dtype, 0)) if dom is None else (dom.min, dom.extent)
        self.iter_type = iter_type
        self.thread_tag = thread_tag

    @property
    def domain(self) -> Range:
        """Returns the range from `min` over `extent` values."""
        return Range.from_min_extent(self.min, self.extent)

    @property
    def var(self) -> IterVar:
        """Returns the axis as a value."""
        return self


class Apply(Expr):
    """A tir op on values: arithmetic, comparison, connective, select, cast. Each op has a class."""

    __slots__ = ()

    op: ClassVar[type[tir.BinaryOp | tir.NotOp | tir.SelectOp | tir.CastOp]]

    def __init_subclass__(cls) -> None:
        if "op" in cls.__dict__:
            NODES[cls.op] = cls


def apply(op: type[Operation], args: tuple[Expr, ...], dtype: str) -> Apply:
    """Returns the expression of an op on values whose dtypes are right."""
    node = object.__new__(NODES[op])
    Expr.__init__(node, dtype, args)
    return node


class Call(Expr):
    """A call of an intrinsic: `Call("float32", "tir.exp", [x])`; `args` are those that are expressions.

    Arguments may be buffers in the body of an extern. A call of a function of the module has its name as `callee`.
    """

    __slots__ = ("callee", "intrinsic", "operands")

    def __init__(self, dtype: str, op: object, args: Sequence[object], span: Located | None = None):
        callee = getattr(op, "name_hint", None)
        name = "call" if callee is not None else op if isinstance(op, str) else getattr(op, "name", None)
        if not isinstance(name, str):
            raise fail(f"a call is of an operator, its name or a function, not {describe(op)}")
        self._set(name.removeprefix("tir."), tuple(map(argument, args)), dtype, span)
        self.callee = callee

    def _set(self, intrinsic: str, operands: tuple[object, ...], dtype: str, span: Located | None = None) -> None:
        Expr.__init__(self, dtype, tuple([o for o in operands if isinstance(o, Expr)]), span)
        self.intrinsic = intrinsic
        self.operands = operands
        self.callee = None

    @property
    def op(self) -> Intrinsic:
        """Returns the operator that is called."""
        return Intrinsic.get(f"tir.{_PACKED.get(self.intrinsic, self.intrinsic)}")


_PACKED = {
    name: f"tvm_{name}" for name in ("call_cpacked", "call_cpacked_lowered", "call_packed", "call_packed_lowered", "call_trace_packed")
}  # fmt: skip
"""The operators whose words in scripts lack `tvm_`."""


def call(intrinsic: str, operands: tuple[object, ...], dtype: str) -> Call:
    """Returns the call that TVMScript writes `T.intrinsic(operands)`, of expressions and buffers."""
    node = object.__new__(Call)
    node._set(intrinsic, operands, dtype)  # pyright: ignore[reportPrivateUsage]
    return node


def argument(value: object) -> object:
    """Returns an argument of a call: a string as StringImm, a buffer as it is, others as expressions."""
    if isinstance(value, str):
        return StringImm(value)
    return value if getattr(value, "is_buffer", False) else convert(value)


class Intrinsic:
    """An intrinsic that is called, by its name: `tir.exp`; there is one object of each name."""

    __slots__ = ("name",)

    _all: ClassVar[dict[str, Intrinsic]] = {}

    def __init__(self, name: str):
        self.name = name

    @classmethod
    def get(cls, name: str) -> Intrinsic:
        """Returns the intrinsic of that name."""
        found = cls._all.get(name)
        if found is None:
            found = cls._all[name] = cls(name)
        return found

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one intrinsic."""
        return self is other

    def __repr__(self) -> str:
        return f"Op({self.name})"


class Element(Expr):
    """An element of a tensor or of a buffer; `args` are the indices."""

    __slots__ = ()

    @property
    def array_name(self) -> str:
        """Returns the name of the tensor or buffer, for messages."""
        raise NotImplementedError


class Choice(Expr):
    """A choice that evaluates one side only; `args` is the condition, the sides are emitted in own scopes."""

    __slots__ = ("else_value", "then_value")

    def __init__(self, condition: Expr, then_value: Expr, else_value: Expr):
        super().__init__(then_value.dtype, (condition,))
        self.then_value = then_value
        self.else_value = else_value

    @property
    def op(self) -> Intrinsic:
        """Returns the operator that is called, by TVM's name."""
        return Intrinsic.get("tir.if_then_else")


class CommReducer:
    """A commutative reducer: `result` combines `lhs` and `rhs`, beginning at `identity_element`."""

    __slots__ = ("identity_element", "lhs", "result", "rhs")

    def __init__(
        self,
        lhs: Sequence[Var],
        rhs: Sequence[Var],
        result: Sequence[Expr],
        identity_element: Sequence[Expr],
        span: Located | None = None,
    ):
        self.lhs = list(lhs)
        self.rhs = list(rhs)
        self.result = list(result)
        self.identity_element = list(identity_element)

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one object."""
        return self is other

    def __repr__(self) -> str:
        return f"CommReducer({self.result}, {self.identity_element})"


def is_float(dtype: str) -> bool:
    """Returns True if `dtype`, TVM's name, is a floating-point type."""
    return "float" in dtype


def lanes_of(dtype: str) -> int:
    """Returns the number of lanes: 4 of `float32x4`."""
    _, found, lanes = dtype.rpartition("x")
    return int(lanes) if found and lanes.isdigit() else 1


def with_lanes(dtype: str, lanes: int) -> str:
    """Returns the dtype of vectors of an element's dtype."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def bits_of(dtype: str) -> int:
    """Returns the width of a number of this dtype."""
    if dtype == "bool":
        return 1
    if "_" in dtype:
        return 4 if dtype.startswith("float4_") else 8
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz_"))


def const(value: object, dtype: str | None = None) -> Expr:
    """Returns the number as a constant.

    Without `dtype` one of numpy's keeps its own, an int is int32 (int64 where it does not fit), a float is float32 (float64 where
    it does not fit). Raises MirError for an unknown dtype and for a number that does not fit.
    """
    if is_numpy_scalar(value):
        dtype, value = dtype or value.dtype.name, value.item()
    if not isinstance(value, (int, float)):
        raise fail(f"a constant is a number, not {describe(value)}")
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(1 << 31) <= value < 1 << 31 else "int64"
        else:
            dtype = "float32" if _fits_float32(value) else "float64"
    if (lanes := lanes_of(dtype)) > 1 and "xvscale" not in dtype:
        return BUILD["broadcast"](const(value, dtype.rpartition("x")[0]), lanes)
    limits = INT_LIMITS.get(dtype)
    if limits is not None:
        if isinstance(value, float) and not math.isfinite(value):
            raise fail(f"{value} cannot be a constant of dtype {dtype}")
        if dtype != "bool" and value != int(value):
            raise fail(f"{value} cannot be a constant of dtype {dtype}", "write a whole number, or cut it by int(…)")
        value = int(value != 0 if dtype == "bool" else value)
        if not limits[0] <= value <= limits[1]:
            raise fail(f"{value} does not fit dtype {dtype}, which holds {limits[0]} to {limits[1]}")
        return IntImm(dtype, value)
    greatest = FLOAT_LIMITS.get(dtype)
    if greatest is None:
        raise fail(f"a constant cannot have dtype '{dtype}'", "dtypes are written like float32, int64, uint8 or bool")
    value = float(value)
    if dtype == "float32" and math.isfinite(value) and _fits_float32(value):
        return FloatImm(dtype, struct.unpack("<f", struct.pack("<f", value))[0])
    if math.isfinite(value) and abs(value) > greatest:
        raise fail(f"{value} does not fit dtype {dtype}, whose greatest value is {greatest}")
    return FloatImm(dtype, value)


def _fits_float32(value: float) -> bool:
    """Returns True if a finite value rounds to a finite float32, as 3.4028235e+38 does."""
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True


def is_numpy_scalar(value: object) -> TypeGuard[np.generic]:
    """Returns True for numpy's numbers, without importing numpy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def convert(value: object, dtype: str | None = None) -> Expr:
    """Returns an expression from a Python value; a Python int has dtype `dtype` if set."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return IntImm("bool", int(value))
    if isinstance(value, int):
        return const(value, dtype)
    if isinstance(value, float):
        return const(value)
    if is_numpy_scalar(value) and not hasattr(value, "__index__"):
        return const(value)
    as_expr = getattr(value, "as_expr", None)
    if as_expr is not None:
        return as_expr()
    if hasattr(value, "__index__"):
        return const(operator.index(value), dtype)  # type: ignore[arg-type]
    if isinstance(value, (tuple, list)):
        raise fail("a scalar expression is expected here, not a tuple or list")
    raise fail(f"a scalar expression is expected here, not {describe(value)}")


def items_of(value: object) -> tuple[Any, ...] | None:
    """Returns the items of a tuple or list; None for anything else."""
    if isinstance(value, (tuple, list)):
        items: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return items
    return None


def describe(value: object) -> str:
    """Describes a Python value in a user's words, for messages."""
    if isinstance(value, str):
        return f"the string {value!r}"
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float)):
        return f"the number {value}"
    if isinstance(value, Expr):
        return f"an expression of dtype {value.dtype}"
    kind = type(value).__name__
    return _KINDS.get(kind, f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}")


_KINDS = {
    "Tensor": "a whole tensor (index it, as in A[i, j])",
    "function": "a function",
    "Function": "a function",
    "Builtin": "a function",
    "Namespace": "a module",
    "list": "a list",
    "dict": "a dictionary",
    "AxisReducer": "a reducer",
    "Range": "a range",
    "IRBuilder": "an ir_builder",
}


_OF_COMPARISONS = {"EqualOp": "EQ", "NotEqualOp": "NE"}
"""What `a == b` and `a != b` are in TVM, by the classes that they have here."""


if not TYPE_CHECKING:
    # As in TVM, this module has the classes of all expressions; those of other modules need it first.
    def __getattr__(name: str) -> Any:
        from importlib import import_module

        package = import_module(__package__)
        wanted = _OF_COMPARISONS.get(name, name)
        if name.startswith("_") or wanted not in vars(package):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return vars(package)[wanted]
