"""Expressions of the text: Python's on numbers, tuples and strings, TE's on values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, TypeGuard

from ...dialects.te import extern as ext
from ...dialects.te import tensor as te
from ...dialects.te.schedule_interface import ScheduleBase, StageBase
from ...dialects.tir import node as ex
from ...dialects.tir.node import fail, location_scope
from ...dialects.tir.node import ir_builder as ib
from ...support.diagnostics import MirError
from ...support.text import nearest
from ..python import tree
from ..python.literals import is_string, number, string
from ..source import Source
from .names import SCHEDULING, Builtin, Namespace
from .schedules import member, stage_of
from .scope import TextFunction, names_in
from .syntax import parameter_names

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": ex.add, "-": ex.subtract, "*": ex.multiply, "/": ex.divide, "//": ex.floordiv, "%": ex.floormod,
    "<<": ex.left_shift, ">>": ex.right_shift, "&": ex.bitwise_and, "|": ex.bitwise_or, "^": ex.bitwise_xor,
    "<": ex.less, "<=": ex.less_equal, ">": ex.greater, ">=": ex.greater_equal, "==": ex.equal, "!=": ex.not_equal,
}  # fmt: skip
# Attributes that the text may ask for, by class.
_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    te.Tensor: ("shape", "dtype", "ndim", "name", "op"),
    te.TensorSlice: ("dtype",),
    te.PlaceholderOp: ("name", "num_outputs", "output", "attrs", "tag"),
    te.ComputeOp: ("name", "num_outputs", "output", "attrs", "tag", "axis", "reduce_axis", "input_tensors"),
    te.ScanOp: ("name", "num_outputs", "output", "attrs", "tag", "input_tensors", "scan_axis"),
    ext.ExternOp: ("name", "num_outputs", "output", "attrs", "tag", "input_tensors"),
    ex.Buffer: ("shape", "dtype", "name", "data", "access_ptr", "vload", "vstore"),
    ib.BufferVar: ("dtype",),
    ib.IRBuilder: ("for_range", "if_scope", "else_scope", "buffer_ptr", "emit", "get"),
    ex.IterVar: ("dtype", "astype", "equal", "var", "name"),
    ex.Var: ("dtype", "astype", "equal", "name"),
    ex.Expr: ("dtype", "astype", "equal"),
}


_WORDS = {"True": True, "False": False, "None": None}


def is_variable(node: tree.Expr) -> bool:
    """Returns whether a node is a plain name that can be assigned to."""
    return isinstance(node, tree.Token) and node.type == "NAME" and "." not in node and node not in _WORDS


def _is_starred(node: tree.Expr) -> TypeGuard[tree.Unary]:
    return isinstance(node, tree.Unary) and node.op == "*"


class Expressions:
    """Gives expressions their values."""

    def __init__(self, source: Source):
        self.source = source
        # Items whose errors are reported already.
        self.failed: Container[str] = ()

    @abstractmethod
    def call(self, node: tree.Call, scope: Mapping[str, Any]) -> Any:
        """The value of a call."""

    @abstractmethod
    def call_function(self, function: TextFunction, arguments: Sequence[Any]) -> Any:
        """The value of a call of a function of the text."""

    @abstractmethod
    def set_attributes(self, attrs: Any) -> None:
        """`te.func_attr({…})`."""

    def at(self, node: tree.Expr | tree.Stmt) -> AbstractContextManager[None]:
        """Returns a context in which ops and errors are located at a node of the text."""
        return location_scope(self.source.location(tree.place_of(node)))

    def refuse(self, where: tree.Expr, message: str, /, *notes: str) -> NoReturn:
        """Raises a MirError at `where`."""
        with self.at(where):
            raise fail(message, *notes)

    def value(self, node: tree.Expr, scope: Mapping[str, Any]) -> Any:
        """The value of an expression of the text."""
        match node:
            case tree.Token():
                return self._token(node, scope)
            case tree.Binary():
                if node.op in ("and", "or"):
                    return self._connective(node, scope)
                left, right = self.value(node.left, scope), self.value(node.right, scope)
                with self.at(node):
                    return self._binary(node.op, left, right)
            case tree.Call():
                return string(node, self.refuse) if is_string(node) else self.call(node, scope)
            case tree.Index():
                base, indices = self.value(node.base, scope), self._indices(node, scope)
                with self.at(node):
                    return self._index(base, indices)
            case tree.Member():
                base = self.value(node.base, scope)
                with self.at(node):
                    return self._attribute(base, node.name[1:])
            case tree.Unary() if node.op != "*":
                operand = self.value(node.operand, scope)
                with self.at(node):
                    return self._unary(node.op, operand)
            case tree.Sequence():
                items = self._items(node.items, scope)
                return items if node.is_list else tuple(items)
            case tree.Mapping():
                return {self._key(key, scope): self.value(value, scope) for key, value in node.pairs}
            case tree.Lambda():
                return TextFunction(self, "lambda", *parameter_names(node.parameters, self.refuse), node.body, scope)
            case tree.Conditional():
                condition = self.value(node.condition, scope)
                with self.at(node):
                    chosen = self._truth(condition)
                return self.value(node.then if chosen else node.orelse, scope)
            case _:
                with self.at(node):
                    raise fail("a slice stands in the index of a tuple only, '*' in a call or tuple")

    def _token(self, token: tree.Token, scope: Mapping[str, Any]) -> Any:
        """Evaluates a name (perhaps with members, `A.shape`), a number, a string, True, False or None."""
        if token.type == "NUMBER":
            return number(token, self.refuse)
        if token.type == "STRING":
            return string(token, self.refuse)
        name, *members = token.split(".")
        if name in _WORDS:
            value = _WORDS[name]
        else:
            try:
                value = scope[name]
            except KeyError:
                with self.at(token):
                    raise self._unknown(name, scope) from None
        for field in members:
            with self.at(token):
                value = self._attribute(value, field)
        return value

    def _connective(self, node: tree.Binary, scope: Mapping[str, Any]) -> Any:
        """`a and b`, `a or b`."""
        self.refuse_chain(node)
        left = self.value(node.left, scope)
        with self.at(node):
            chosen = self._truth(left) == (node.op == "or")
        return left if chosen else self.value(node.right, scope)

    def refuse_chain(self, node: tree.Binary) -> None:
        """Refuses `a < b < c`, which the tree has as a conjunction that shares b."""
        left, right = node.left, node.right
        if isinstance(left, tree.Binary) and isinstance(right, tree.Binary):
            shared = left.right if left.op not in ("and", "or") else getattr(left.right, "right", None)
            if shared is right.left:
                self.refuse(node, "comparisons cannot be chained here", "write te.all(a < b, b < c)")

    def _unknown(self, name: str, scope: Mapping[str, Any]) -> Exception:
        near = nearest(name, names_in(scope))
        if name in self.failed:
            return MirError(())
        if name == "output_tensor":
            return fail("'output_tensor' belongs to hybrid script", "write it as an item: @te.hybrid.script")
        return fail(f"'{name}' is not defined", *([f"did you mean '{near}'?"] if near else []))

    def _key(self, node: tree.Expr, scope: Mapping[str, Any]) -> str:
        key = self.value(node, scope)
        if not isinstance(key, str):
            with self.at(node):
                raise fail(f"the keys of a dictionary are strings here, not {ex.describe(key)}")
        return key

    def _items(self, nodes: list[tree.Expr], scope: Mapping[str, Any]) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            if _is_starred(node):
                value = self.value(node.operand, scope)
                if not isinstance(value, (tuple, list)):
                    with self.at(node):
                        raise fail(f"'*' takes a tuple or list apart, not {ex.describe(value)}")
                values += value
            else:
                values.append(self.value(node, scope))
        return values

    def _indices(self, node: tree.Index, scope: Mapping[str, Any]) -> Any:
        if len(node.items) == 1 and not _is_starred(node.items[0]):
            item = node.items[0]
            if isinstance(item, tree.Slice):
                bounds = [None if b is None else self.value(b, scope) for b in (item.start, item.stop, item.step)]
                with self.at(item):
                    if any(b is not None and not isinstance(b, int) for b in bounds):
                        raise fail("the bounds of a slice are Python numbers here")
                return slice(*bounds)
            return self.value(item, scope)
        return tuple(self._items(node.items, scope))

    def _index(self, base: Any, indices: Any) -> Any:
        if isinstance(base, (te.Tensor, te.TensorSlice, ex.Buffer, ib.BufferVar)):
            return base[indices]
        if isinstance(base, ScheduleBase):
            return stage_of(base, indices)
        if isinstance(base, dict):
            entries: dict[str, Any] = base  # pyright: ignore[reportUnknownVariableType]
            if not isinstance(indices, str) or indices not in entries:
                raise fail(f"the dictionary has no entry {indices!r}")
            return entries[indices]
        items = ex.items_of(base)
        if items is None:
            raise fail(f"{ex.describe(base)} cannot be indexed")
        if isinstance(indices, slice):
            return items[indices]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]
        if isinstance(indices, ex.Const):
            indices = int(indices)
        if not isinstance(indices, int):
            raise fail(f"the index of a tuple or list is a number, not {ex.describe(indices)}")
        if not -len(items) <= indices < len(items):
            raise fail(f"index {indices} is outside a tuple or list of {len(items)}")
        return items[indices]

    def _attribute(self, base: Any, name: str) -> Any:
        if isinstance(base, Namespace):
            found = base.members.get(name)
            if found is not None:
                return found
            if name == "func_attr":
                return Builtin("te.func_attr", self.set_attributes)
            if name in SCHEDULING:
                raise fail(
                    f"'{base.name}.{name}' is for Python, where mirstack.te has it",
                    "describe the tensors, and their schedule, and return them: return s, [A, B]",
                )
            near = nearest(name, base.members)
            raise fail(f"there is no '{base.name}.{name}'", *([f"did you mean {base.name}.{near}?"] if near else []))
        if isinstance(base, (ScheduleBase, StageBase)):
            return member(base, name)
        for kind in type(base).__mro__:
            names = _ATTRIBUTES.get(kind)
            if names is not None and name in names:
                value = getattr(base, name)
                return (
                    Builtin(name, value)
                    if callable(value) and not isinstance(value, (te.Tensor, TextFunction))
                    else value
                )
        raise fail(f"{ex.describe(base)} has no '.{name}'")

    def _binary(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return self._python(op, left, right)
        if isinstance(left, (ex.Expr, te.TensorSlice)) or isinstance(right, (ex.Expr, te.TensorSlice)):
            if op == "**":
                raise fail("'**' is Python's and takes numbers", "for expressions write te.power(x, y)")
            function = _FUNCTIONS.get(op)
            if function is not None:
                return function(left, right)
        if (
            type(left) is type(right)
            and (isinstance(left, str) or ex.items_of(left) is not None)
            and op in ("+", "==", "!=")
        ):
            return _ARITHMETIC[op](left, right)
        if op in ("==", "!=") and (left is None or right is None or type(left) is not type(right)):
            return (left is right) == (op == "==")
        wrong = right if isinstance(left, (int, float, ex.Expr, te.TensorSlice)) else left
        raise fail(f"'{op}' cannot be applied to {ex.describe(wrong)}")

    def _python(self, op: str, left: float, right: float) -> Any:
        if op in ("<<", ">>", "&", "|", "^") and not (isinstance(left, int) and isinstance(right, int)):
            raise fail(f"'{op}' is for integers")
        if op in ("**", "<<") and (abs(right) > 1024 or abs(left) > 1 << 64):
            raise fail(f"the result of '{op}' would be too large")
        try:
            result = _ARITHMETIC[op](left, right)
        except ZeroDivisionError:
            raise fail("division by zero") from None
        except (OverflowError, ValueError, KeyError):
            raise fail(f"'{op}' cannot be applied to {left} and {right}") from None
        if isinstance(result, complex) or (isinstance(result, int) and result.bit_length() > 4096):
            raise fail(f"the result of '{op}' is out of range")
        return result

    def _unary(self, op: str, operand: Any) -> Any:
        if op == "not":
            return not self._truth(operand)
        if isinstance(operand, te.TensorSlice):
            operand = operand.as_expr()
        if isinstance(operand, ex.Expr):
            return operand if op == "+" else -operand if op == "-" else ~operand
        if isinstance(operand, (int, float)):
            if op == "~":
                if isinstance(operand, float):
                    raise fail("'~' is for integers")
                return ~operand
            return -operand if op == "-" else +operand
        raise fail(f"'{op}' cannot be applied to {ex.describe(operand)}")

    def _truth(self, value: Any) -> bool:
        if isinstance(value, ex.Expr):
            return bool(value)
        if value is None or isinstance(value, (int, float, str, dict)):
            return bool(value)  # pyright: ignore[reportUnknownArgumentType]
        if (items := ex.items_of(value)) is not None:
            return bool(items)
        raise fail(f"{ex.describe(value)} has no truth value")
