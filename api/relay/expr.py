"""Relay's expressions in Python, with TVM's names and arguments: nodes of a graph that do not change.

A node that is used twice is one value, computed once. `export` makes ops of a graph, `restore` a graph of ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from ...dialects.array import ArrayBox, ArrayValueAttr, numpy_dtype
from ...dialects.relay.operator import Attrs, AttrValue
from ...support.arguments import check, integer, items
from ...support.diagnostics import error_at
from ...support.public_names import public_names
from ...support.source_text import characters
from ..ir.node import Node, Span, span_of_caller
from ..nd import NDArray as DeviceArray
from ..nd import as_numpy
from .ty import (
    FuncType,
    TensorType,
    Type,
    TypeCall,
    TypeVar,
    checked_shape,
    from_attribute,
    instantiation,
    to_attribute,
)

if TYPE_CHECKING:
    from ..ir.op import Op, OpEntry

NO_ATTRS = Attrs({})


class RelayExpr(Node):
    """An expression. `+ - * /` and comparisons of expressions make calls of operators."""

    __slots__ = ("known_type", "symbolic_type")

    known_type: Attribute | None
    """The type that inference found, as the dialect has it."""
    symbolic_type: Type | None
    """The same where dimensions are expressions of the user's variables, which are `?` in the dialect's type."""

    def _place(self, span: Span | None) -> None:
        self.span = span if span is not None else span_of_caller()
        self.known_type = None
        self.symbolic_type = None

    @property
    def checked_type(self) -> Type:
        """The type that inference found. Raises ValueError before it ran (`transform.InferType`)."""
        if self.known_type is None:
            raise ValueError("the type of this expression is not known yet: run transform.InferType")
        return self.symbolic_type or from_attribute(self.known_type)

    @property
    def checked_type_(self) -> Type | None:
        """The type that inference found, or None."""
        return None if self.known_type is None else self.checked_type

    def astype(self, dtype: str) -> RelayExpr:
        """The tensor cast to another dtype."""
        return _operator("cast", [self], {"dtype": dtype})

    def __call__(self, *args: RelayExpr) -> Call:
        return Call(self, args)

    def __neg__(self) -> RelayExpr:
        return _operator("negative", [self])

    def __add__(self, other: object) -> RelayExpr:
        return _infix("add", self, other)

    def __sub__(self, other: object) -> RelayExpr:
        return _infix("subtract", self, other)

    def __mul__(self, other: object) -> RelayExpr:
        return _infix("multiply", self, other)

    def __truediv__(self, other: object) -> RelayExpr:
        return _infix("divide", self, other)

    def __lt__(self, other: object) -> RelayExpr:
        return _infix("less", self, other)

    def __gt__(self, other: object) -> RelayExpr:
        return _infix("greater", self, other)

    def __le__(self, other: object) -> RelayExpr:
        return _infix("less_equal", self, other)

    def __ge__(self, other: object) -> RelayExpr:
        return _infix("greater_equal", self, other)

    def _reflected(self, other: object) -> RelayExpr:
        return _infix("", other, self)

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = _reflected

    def astext(self, show_meta_data: bool = True) -> str:
        """The expression as Relay text, with the constants that it refers to unless `show_meta_data` is False."""
        from .export import expression_text

        return expression_text(self, header=True, metadata=show_meta_data)

    def __str__(self) -> str:
        from .export import expression_text

        return expression_text(self)

    __repr__ = __str__


Expr = RelayExpr


class Constant(RelayExpr):
    """A tensor that is known; `data` is a numpy array or an `nd.NDArray`."""

    __slots__ = ("value",)

    def __init__(self, data: object, span: Span | None = None):
        self._place(span)
        self.value = data if isinstance(data, ArrayValueAttr) else ArrayValueAttr(ArrayBox(as_numpy(data)))

    @property
    def data(self) -> DeviceArray:
        """The tensor; `.numpy()` returns the array."""
        return DeviceArray(self.value.data.array)


class Var(RelayExpr):
    """A local variable: a parameter, or one that a `Let` or a pattern binds.

    Its name is a hint: variables are distinguished by identity.
    """

    __slots__ = ("name_hint", "type_annotation")

    def __init__(self, name_hint: str, type_annotation: Type | None = None, span: Span | None = None):
        self._place(span)
        check(name_hint, "name_hint", "the name of a variable", str)
        if type_annotation is not None and not isinstance(cast("object", type_annotation), Type):
            raise TypeError(f"the type of %{name_hint} is a relay type, not {type_annotation!r}")
        self.name_hint = characters(name_hint)
        self.type_annotation = type_annotation

    @property
    def vid(self) -> int:
        """A number that tells variables apart."""
        return id(self)


class GlobalVar(RelayExpr):
    """The name of a function of the module."""

    __slots__ = ("name_hint",)

    def __init__(self, name_hint: str, type_annot: Type | None = None):
        self._place(None)
        check(name_hint, "name_hint", "the name of a function", str)
        self.name_hint = characters(name_hint)
        self.known_type = None if type_annot is None else to_attribute(type_annot)


class Call(RelayExpr):
    """`Call(op, args)`: calls an operator (`op.get("add")`), a function, a `GlobalVar` or a constructor."""

    __slots__ = ("args", "attrs", "op", "written_type_args")

    def __init__(
        self,
        op: RelayExpr | Op,
        args: Sequence[RelayExpr],
        attrs: Mapping[str, Any] | None = None,
        type_args: Sequence[Type] | None = None,
        span: Span | None = None,
    ):
        self._place(span)
        check(op, "op", "an operator, a function or a constructor", Node)
        self.op: Any = op
        self.args: tuple[Any, ...] = tuple(as_expr(arg) for arg in items(args, "args", "expressions"))
        self.written_type_args = tuple(type_args or ())
        self.attrs: Attrs | None = None
        operator: OpEntry | None = getattr(op, "operator", None)
        if operator is not None:
            self.attrs = operator.attrs(attrs, self.location) if attrs else operator.default_attrs
        elif attrs:
            self.attrs = Attrs(dict(attrs))

    @property
    def type_args(self) -> tuple[Type, ...]:
        """The types that the callee is instantiated with: those written, otherwise those that inference found.

        Of an operator they are the types of its arguments.
        """
        if self.written_type_args:
            return self.written_type_args
        if getattr(self.op, "operator", None) is not None:
            known = [arg.known_type for arg in self.args if isinstance(arg, RelayExpr)]
            return () if None in known or len(known) < len(self.args) else tuple(map(from_attribute, known))  # type: ignore[arg-type]
        result = self.checked_type_
        if isinstance(result, TypeCall) and getattr(self.op, "belong_to", None) is not None:
            return result.args
        callee = self.op.checked_type_ if isinstance(self.op, RelayExpr) else None
        return instantiation(callee, [arg.checked_type_ for arg in self.args], result)


class Tuple(RelayExpr):
    """`Tuple([a, b])`."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[RelayExpr], span: Span | None = None):
        self._place(span)
        self.fields: tuple[Any, ...] = tuple(as_expr(field) for field in items(fields, "fields", "expressions"))

    def __getitem__(self, index: int) -> RelayExpr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


class TupleGetItem(RelayExpr):
    """`TupleGetItem(t, 0)`: a field of a tuple."""

    __slots__ = ("index", "tuple_value")

    def __init__(self, tuple_value: RelayExpr, index: int, span: Span | None = None):
        self._place(span)
        self.tuple_value = as_expr(tuple_value)
        self.index = integer(index, "index", 0)


class Let(RelayExpr):
    """`Let(x, value, body)`: the body, in which `x` is the value."""

    __slots__ = ("body", "value", "var")

    def __init__(self, variable: Var, value: RelayExpr, body: RelayExpr, span: Span | None = None):
        self._place(span)
        check(variable, "variable", "a relay.Var", Var)
        self.var = variable
        self.value = as_expr(value)
        self.body = as_expr(body)


class If(RelayExpr):
    """`If(cond, true_branch, false_branch)`: only one of the branches is computed."""

    __slots__ = ("cond", "false_branch", "true_branch")

    def __init__(self, cond: RelayExpr, true_branch: RelayExpr, false_branch: RelayExpr, span: Span | None = None):
        self._place(span)
        self.cond = as_expr(cond)
        self.true_branch = as_expr(true_branch)
        self.false_branch = as_expr(false_branch)


class RefCreate(RelayExpr):
    """A new cell that holds the value."""

    __slots__ = ("value",)

    def __init__(self, value: RelayExpr, span: Span | None = None):
        self._place(span)
        self.value = as_expr(value)


class RefRead(RelayExpr):
    """Reads a cell."""

    __slots__ = ("ref",)

    def __init__(self, ref: RelayExpr, span: Span | None = None):
        self._place(span)
        self.ref = as_expr(ref)


class RefWrite(RelayExpr):
    """Writes a value to a cell; its own value is the empty tuple."""

    __slots__ = ("ref", "value")

    def __init__(self, ref: RelayExpr, value: RelayExpr, span: Span | None = None):
        self._place(span)
        self.ref = as_expr(ref)
        self.value = as_expr(value)


class Function(RelayExpr):
    """`Function([x, y], body)`: a function, named in a module, or a closure inside an expression."""

    __slots__ = ("attrs", "body", "params", "ret_type", "type_params")

    def __init__(
        self,
        params: Sequence[Var],
        body: RelayExpr,
        ret_type: Type | None = None,
        type_params: Sequence[TypeVar] | None = None,
        attrs: Mapping[str, Any] | None = None,
        span: Span | None = None,
    ):
        self._place(span)
        self.params = tuple(items(params, "params", "variables, relay.Var", Var))
        self.body = as_expr(body)
        self.ret_type = ret_type
        self.type_params = tuple(type_params or ())
        self.attrs = Attrs(dict(attrs)) if attrs else NO_ATTRS

    def __call__(self, *args: RelayExpr) -> Call:
        return Call(self, args)

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: object = None) -> Function:
        """A copy with one more attribute, or those of a dictionary."""
        given = {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else attr_key_or_dict
        return self._with_attrs({**self.attrs, **given})

    def without_attr(self, attr_key: str) -> Function:
        """A copy without an attribute."""
        return self._with_attrs({name: value for name, value in self.attrs.items() if name != attr_key})

    def _with_attrs(self, attrs: Mapping[str, Any]) -> Function:
        copy = Function(self.params, self.body, self.ret_type, self.type_params, attrs, self.span)
        copy.known_type, copy.symbolic_type = self.known_type, self.symbolic_type
        return copy


class TupleWrapper:
    """The call of an operator with several results; indexing, unpacking and `len` access them."""

    def __init__(self, tuple_value: RelayExpr, size: int):
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Tuple:
        """The fields as a tuple expression."""
        return Tuple([self[index] for index in range(self.size)])

    def astext(self) -> str:
        """The text of the call."""
        return self.tuple_value.astext()

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"there are {self.size} results, and none of index {index}")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[index] for index in range(self.size))

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value}, {self.size})"


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Sequence[object] | None = None,
    dtype: str = "float32",
    span: Span | None = None,
) -> Var:
    """Creates a variable of a type, or of a tensor type of this shape and dtype; otherwise it is inferred."""
    if type_annotation is not None and shape is not None:
        raise ValueError(f"%{name_hint}: give its type or its shape, not both")
    if shape is not None:
        type_annotation = TensorType(checked_shape(shape, "relay.var"), dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation, span)


def const(value: object, dtype: str | None = None, span: Span | None = None) -> Constant:
    """A constant of a number, a list, a numpy array or an `nd.NDArray`.

    Without a dtype int64 becomes int32 and float64 becomes float32, of numpy's arrays as well as of Python's numbers, as in
    TVM; every other dtype, and an NDArray's, stays. Raises ValueError for integers that the dtype does not hold.
    """
    array = as_numpy(value)
    if dtype is None and not isinstance(value, DeviceArray):
        dtype = {"int64": "int32", "float64": "float32"}.get(array.dtype.name)
    if dtype is not None:
        given = array
        array = given.astype(numpy_dtype(dtype))
        if given.dtype.kind in "iu" and array.dtype.kind in "iu" and not np.array_equal(given, array):
            raise ValueError(f"{value!r} does not fit {dtype}; give const a wider dtype")
    return Constant(cast("NDArray[np.generic]", array), span)


def bind(expr: RelayExpr, binds: Mapping[Any, RelayExpr]) -> RelayExpr:
    """Substitutes free variables (given as `Var` or by name); a function loses those parameters."""
    from .graph import substitute

    if isinstance(expr, Function):
        named = {p.name_hint: p for p in expr.params}
        values: dict[Any, RelayExpr] = {
            named.get(key, key) if isinstance(key, str) else key: value for key, value in binds.items()
        }
        params = [p for p in expr.params if p not in values]
        return Function(params, substitute(expr.body, values), expr.ret_type, expr.type_params, expr.attrs, expr.span)
    return substitute(expr, binds)


def as_expr(value: object) -> Any:
    """The value as an expression. Raises TypeError for what is none."""
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if not isinstance(value, Node):
        hint = "; write relay.const(…)" if isinstance(value, (int, float, np.ndarray)) else ""
        raise TypeError(f"a Relay expression is wanted, not {value!r}{hint}")
    return value


def _operator(name: str, args: Sequence[RelayExpr], attrs: Mapping[str, AttrValue] | None = None) -> Call:
    from ..ir.op import Op

    return Call(Op.get(name), args, attrs)


def _infix(name: str, left: object, right: object) -> RelayExpr:
    if not isinstance(left, RelayExpr) or not isinstance(right, RelayExpr):
        number = left if not isinstance(left, RelayExpr) else right
        raise TypeError(f"make {number!r} an expression by relay.const first")
    return _operator(name, [left, right])


def place_error(node: Node, message: str, *notes: str) -> Exception:
    """The error to raise about a node."""
    return error_at(node.location, message, *notes)


__all__ = [
    "Call", "Constant", "Expr", "FuncType", "Function", "GlobalVar", "If", "Let", "RefCreate", "RefRead", "RefWrite",
    "RelayExpr", "Tuple", "TupleGetItem", "TupleWrapper", "Var", "as_expr", "bind", "const", "var",
]  # fmt: skip


__dir__ = public_names(__name__)
