"""Registers the functions that conditions and computed attributes call; Python code can add more.

A function takes Python values: numbers, strings, bool, None, tuples; dtypes as strings ("float32"), shapes as tuples with
-1 for `?`; arrays as numpy arrays; a value of the program as its `SSAValue`. Where an array is wanted, a constant value is
replaced by its array, and the rule does not apply to a value that is not constant.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, IntegerType, Signedness, TensorType, TupleType, VectorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.traits import ConstantLike

from ...support.external_names import note_name


class NoMatch(Exception):
    """Signals that a rule does not apply; not an error."""


@dataclass(frozen=True)
class RuleFunction:
    """A named function: its number of arguments (None: any) and, for the documentation, its result.

    With `wants_values`, arguments stay values of the program; otherwise they are replaced by their constants.
    """

    name: str
    call: Callable[..., Any]
    arity: int | None
    doc: str
    wants_values: bool = False


FUNCTIONS: dict[str, RuleFunction] = {}
"""Every function by its name. Infix operators have the names of Python's `operator` module."""

_F = TypeVar("_F", bound=Callable[..., Any])


def named_function(name: str | None = None, *, arity: int | None, wants_values: bool = False) -> Callable[[_F], _F]:
    """Registers a Python function to be called in rules, under its own name unless another is given.

    Raises ValueError when the name is taken.
    """

    def add(function: _F) -> _F:
        own = name or function.__name__
        if own in FUNCTIONS:
            raise ValueError(f"the function {own} is defined twice")
        doc = (function.__doc__ or "").partition("\n")[0]
        FUNCTIONS[own] = RuleFunction(own, function, arity, doc, wants_values)
        note_name(own, function.__module__)
        return function

    return add


LAZY = {"and_": 2, "or_": 2, "ifelse": 3}
"""Functions whose arguments are computed only when needed, with the number of them; rule engines implement them."""


def _define(name: str, call: Callable[..., Any], arity: int | None, doc: str) -> None:
    FUNCTIONS[name] = RuleFunction(name, call, arity, doc)


_define("add", operator.add, 2, "`a + b`; tuples are joined")
_define("sub", operator.sub, 2, "`a - b`")
_define("mul", operator.mul, 2, "`a * b`")
_define("mod", operator.mod, 2, "`a % b`, with the sign of b")
_define("eq", operator.eq, 2, "`a == b`; of arrays element by element")
_define("ne", operator.ne, 2, "`a != b`")
_define("lt", operator.lt, 2, "`a < b`")
_define("le", operator.le, 2, "`a <= b`")
_define("gt", operator.gt, 2, "`a > b`")
_define("ge", operator.ge, 2, "`a >= b`")
_define("getitem", operator.getitem, 2, "`a[i]`")
_define("contains", operator.contains, 2, "`b in a`")
_define("neg", operator.neg, 1, "`-a`")
_define("not_", operator.not_, 1, "`not a`")
_define("len", len, 1, "how many items a tuple or a string has")
_define("abs", abs, 1, "the magnitude")
_define("int", int, 1, "as an integer, toward zero")
_define("float", float, 1, "as a floating-point number")
_define("sum", sum, 1, "the sum of a tuple")
_define("prod", math.prod, 1, "the product of a tuple: of a shape, how many elements")
_define("min", min, None, "the least of the arguments, or of one tuple")
_define("max", max, None, "the greatest of the arguments, or of one tuple")


def _numpy(name: str) -> Callable[..., Any]:
    """Returns a function of numpy, which is imported at the first call."""

    def call(*args: Any) -> Any:
        import numpy as np

        return getattr(np, name)(*args)

    return call


_define("sqrt", _numpy("sqrt"), 1, "the square root")
_define("exp", _numpy("exp"), 1, "e to the power of")
_define("log", _numpy("log"), 1, "the natural logarithm")


@named_function(name="slice", arity=3)
def _slice(items: Any, start: int | None, stop: int | None) -> Any:
    """`a[i:j]`"""
    return items[start:stop]


@named_function(name="tuple", arity=None)
def _tuple(*items: Any) -> tuple[Any, ...]:
    """`(a, b)` or `[a, b]`"""
    return items


@named_function(name="identity", arity=1)
def _identity(value: Any) -> Any:
    """the value itself"""
    return value


@named_function(name="range", arity=None)
def _range(*ends: int) -> tuple[int, ...]:
    """integers from 0 or a first one to below a last one"""
    return tuple(range(*ends))


@named_function(name="reversed", arity=1)
def _reversed(items: Sequence[Any]) -> tuple[Any, ...]:
    """a tuple back to front"""
    return tuple(reversed(items))


@named_function(name="sorted", arity=1)
def _sorted(items: Sequence[Any]) -> tuple[Any, ...]:
    """a tuple in ascending order"""
    return tuple(sorted(items))


@named_function(name="truediv", arity=2)
def _truediv(a: Any, b: Any) -> Any:
    """`a / b`"""
    return a / b


@named_function(name="floordiv", arity=2)
def _floordiv(a: Any, b: Any) -> Any:
    """`a / b`, rounded down (`//` begins a comment)"""
    return a // b


@named_function(arity=2)
def divides(divisor: int, number: int) -> bool:
    """whether an integer is a multiple of another, which is not 0"""
    return divisor != 0 and number % divisor == 0


@named_function(name="all", arity=1)
def _all(items: Any) -> bool:
    """whether every element of an array or tuple is true"""
    import numpy as np

    return bool(np.all(items))


@named_function(name="any", arity=1)
def _any(items: Any) -> bool:
    """whether some element of an array or tuple is true"""
    import numpy as np

    return bool(np.any(items))


NOT_FULL = "axes are None, which is back to front; full_axes(axes, rank) makes numbers of them"


@named_function(arity=2)
def compose(first: Sequence[int] | None, second: Sequence[int] | None) -> tuple[int, ...]:
    """the axes of one transpose equal to two in a row"""
    if first is None or second is None:
        raise TypeError(NOT_FULL)
    return tuple(first[axis] for axis in second)


@named_function(arity=1)
def inverse(axes: Sequence[int] | None) -> tuple[int, ...]:
    """the axes of the transpose that undoes one"""
    if axes is None:
        raise TypeError(NOT_FULL)
    return tuple(sorted(range(len(axes)), key=lambda place: axes[place]))


@named_function(arity=2, wants_values=True)
def same_type(a: SSAValue, b: SSAValue) -> bool:
    """whether two values have the same type: dtype and shape"""
    return a.type == b.type


@named_function(arity=1, wants_values=True)
def one_use(value: SSAValue) -> bool:
    """whether a value has one use, so that nothing else needs it when that is rewritten"""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


@named_function(arity=1, wants_values=True)
def is_constant(value: SSAValue) -> bool:
    """whether a value is a constant of the program"""
    owner = value.owner
    return not isinstance(owner, Block) and owner.has_trait(ConstantLike)


@named_function(arity=1, wants_values=True)
def shape(value: SSAValue) -> tuple[int, ...]:
    """the shape of a tensor, -1 for `?`; `%x.shape`"""
    return tuple(-1 if extent == DYNAMIC_INDEX else extent for extent in _shaped(value).get_shape())


@named_function(arity=1, wants_values=True)
def rank(value: SSAValue) -> int:
    """how many dimensions a tensor has; `%x.rank`"""
    return len(_shaped(value).get_shape())


@named_function(arity=1, wants_values=True)
def size(value: SSAValue) -> int:
    """how many elements a tensor has, where its shape is known; `%x.size`"""
    extents = _shaped(value).get_shape()
    if DYNAMIC_INDEX in extents:
        raise NoMatch
    return math.prod(extents)


@named_function(arity=1, wants_values=True)
def dtype(value: SSAValue) -> str:
    """the element type of a tensor, or a scalar's type, as a string; `%x.dtype`"""
    return dtype_name(element_of(value.type))


@named_function(arity=1, wants_values=True)
def is_float(value: SSAValue) -> bool:
    """whether a value's elements are floating-point numbers"""
    return isinstance(element_of(value.type), AnyFloat)


@named_function(arity=1, wants_values=True)
def is_integer(value: SSAValue) -> bool:
    """whether a value's elements are integers, with or without a sign; bool is not among them"""
    element = element_of(value.type)
    return isinstance(element, IntegerType) and element.width.data > 1


@named_function(arity=1, wants_values=True)
def is_unsigned(value: SSAValue) -> bool:
    """whether a value's elements are unsigned integers (bool is not among them)"""
    element = element_of(value.type)
    return isinstance(element, IntegerType) and element.signedness.data is Signedness.UNSIGNED


@named_function(name="type", arity=1, wants_values=True)
def _type(value: SSAValue) -> Attribute:
    """the whole type of a value, to be compared; `%x.type`"""
    return value.type


@named_function(name="reshape", arity=2)
def _reshape(x: Any, shape: Sequence[int]) -> Any:
    """a constant's elements in another shape"""
    import numpy as np

    return np.reshape(x, tuple(shape))


@named_function(arity=1)
def elements(x: Any) -> tuple[Any, ...]:
    """a constant's elements as a tuple of numbers, row by row"""
    return tuple(x.reshape(-1).tolist())


@named_function(name="transpose", arity=2)
def _transpose(x: Any, axes: Sequence[int]) -> Any:
    """a constant with its axes in another order"""
    import numpy as np

    return np.transpose(x, tuple(axes))


def element_of(type: Attribute) -> Attribute:
    """Returns a tensor's or vector's element type; any other type itself."""
    return type.element_type if isinstance(type, TensorType | VectorType) else type


def has_floats(type: Attribute) -> bool:
    """Returns True if a type, or that of a field of a tuple, has floating-point elements."""
    if isinstance(type, TupleType):
        return any(has_floats(each) for each in type.types.data)
    return isinstance(element_of(type), AnyFloat)


@cache
def dtype_name(type: Attribute) -> str:
    """Returns a scalar type as TVM names it (float32, uint8, bool), otherwise as MLIR writes it."""
    from ..tir.types import type_to_dtype

    try:
        return type_to_dtype(type)
    except (ValueError, KeyError, TypeError):
        return str(type)


def _shaped(value: SSAValue) -> TensorType[Any] | VectorType[Any]:
    if not isinstance(value.type, TensorType | VectorType):
        raise NoMatch
    return value.type


def type_text(type: Attribute) -> str:
    """Returns a type as Relay writes it, or as MLIR does where Relay has no such type, for messages."""
    from ..relay.text import type_text as relay_text

    try:
        return relay_text(type)
    except (TypeError, KeyError, ValueError):
        return str(type)
