"""Walks over expressions by a class of the user: `ExprVisitor` visits, `ExprMutator` rebuilds.

The methods are TVM's: `visit_call`, `visit_var`, …, each of which decides whether `visit` goes on into the node's parts. They
call each other as deep as the program is; the first `visit` therefore runs in a deep stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast

from ...support.arguments import integer
from ...support.deep_stack import in_deep_stack
from ...support.public_names import public_names
from ..ir.node import Node
from ..ir.op import Op
from .adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from .expr import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    RelayExpr,
    Tuple,
    TupleGetItem,
    Var,
    place_error,
)
from .graph import parts, post_order, rebuild

R = TypeVar("R")


class ExprFunctor(Generic[R]):
    """Calls the method of a node's kind, once for each node; its result is kept in `memo_map`."""

    def __init__(self) -> None:
        self.memo_map: dict[Node, R] = {}
        self._is_deep = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def visit(self, expr: Any) -> R:
        """The result for an expression."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        if self._is_deep:
            return self._dispatch(expr)
        self._is_deep = True
        try:
            return in_deep_stack(lambda: self._dispatch(expr))
        finally:
            self._is_deep = False

    def _dispatch(self, expr: Any) -> R:
        method = _METHODS.get(cast("type[Node]", type(expr)))
        if method is None:
            raise place_error(expr, f"{type(expr).__name__} is not a Relay expression")
        result = self.memo_map[expr] = getattr(self, method)(expr)
        return result

    def visit_function(self, fn: Function) -> R:
        """A function, local or global."""
        raise self._missing("visit_function")

    def visit_let(self, let: Let) -> R:
        """A let."""
        raise self._missing("visit_let")

    def visit_call(self, call: Call) -> R:
        """A call of whatever."""
        raise self._missing("visit_call")

    def visit_var(self, var: Var) -> R:
        """A local variable, used or bound."""
        raise self._missing("visit_var")

    def visit_type(self, typ: Any) -> Any:
        """A type that a variable or a function is annotated with; stays as it is."""
        return typ

    def visit_if(self, if_: If) -> R:
        """A branch."""
        raise self._missing("visit_if")

    def visit_tuple(self, tup: Tuple) -> R:
        """A tuple."""
        raise self._missing("visit_tuple")

    def visit_tuple_getitem(self, op: TupleGetItem) -> R:
        """A field of a tuple."""
        raise self._missing("visit_tuple_getitem")

    def visit_global_var(self, gvar: GlobalVar) -> R:
        """The name of a function."""
        raise self._missing("visit_global_var")

    def visit_op(self, op: Op) -> R:
        """An operator that is called."""
        raise self._missing("visit_op")

    def visit_constant(self, const: Constant) -> R:
        """A constant."""
        raise self._missing("visit_constant")

    def visit_ref_create(self, ref: RefCreate) -> R:
        """A new cell."""
        raise self._missing("visit_ref_create")

    def visit_ref_write(self, ref: RefWrite) -> R:
        """A write to a cell."""
        raise self._missing("visit_ref_write")

    def visit_ref_read(self, ref: RefRead) -> R:
        """A read of a cell."""
        raise self._missing("visit_ref_read")

    def visit_constructor(self, con: Constructor) -> R:
        """A constructor."""
        raise self._missing("visit_constructor")

    def visit_match(self, match: Match) -> R:
        """A match."""
        raise self._missing("visit_match")

    def _missing(self, method: str) -> Exception:
        return TypeError(f"{type(self).__name__} says nothing of such nodes: it needs a method {method}")


_METHODS: dict[type[Node], str] = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Constant: "visit_constant",
    Op: "visit_op",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Constructor: "visit_constructor",
    Match: "visit_match",
}


class ExprVisitor(ExprFunctor[None]):
    """Visits every node of an expression; override the methods of the kinds that matter."""

    def visit_tuple(self, tup: Tuple) -> None:
        self._visit_all(tup.fields)

    def visit_call(self, call: Call) -> None:
        self._visit_all((call.op, *call.args))

    def visit_var(self, var: Var) -> None:
        pass

    def visit_let(self, let: Let) -> None:
        self._visit_all((let.var, let.value, let.body))

    def visit_function(self, fn: Function) -> None:
        self._visit_all((*fn.params, fn.body))

    def visit_if(self, if_: If) -> None:
        self._visit_all(parts(if_))

    def visit_global_var(self, gvar: GlobalVar) -> None:
        pass

    def visit_constructor(self, con: Constructor) -> None:
        pass

    def visit_op(self, op: Op) -> None:
        pass

    def visit_constant(self, const: Constant) -> None:
        pass

    def visit_ref_create(self, ref: RefCreate) -> None:
        self._visit_all(parts(ref))

    def visit_ref_read(self, ref: RefRead) -> None:
        self._visit_all(parts(ref))

    def visit_ref_write(self, ref: RefWrite) -> None:
        self._visit_all(parts(ref))

    def visit_tuple_getitem(self, op: TupleGetItem) -> None:
        self._visit_all(parts(op))

    def visit_match(self, match: Match) -> None:
        self._visit_all(parts(match))

    def _visit_all(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.visit(node)


class ExprMutator(ExprFunctor[Any]):
    """Rebuilds an expression from the methods' results; a node without a changed part is kept."""

    def visit_function(self, fn: Function) -> Any:
        params = [self.visit(param) for param in fn.params]
        body = self.visit(fn.body)
        if body is fn.body and _same(params, fn.params):
            return fn
        return Function(params, body, fn.ret_type, fn.type_params, fn.attrs, fn.span)

    def visit_let(self, let: Let) -> Any:
        var, value, body = self.visit(let.var), self.visit(let.value), self.visit(let.body)
        if _same((var, value, body), (let.var, let.value, let.body)):
            return let
        return Let(var, value, body, let.span)

    def visit_call(self, call: Call) -> Any:
        op = self.visit(call.op)
        args = [self.visit(arg) for arg in call.args]
        if op is call.op and _same(args, call.args):
            return call
        return Call(op, args, call.attrs, call.written_type_args, call.span)

    def visit_var(self, var: Var) -> Any:
        return var

    def visit_global_var(self, gvar: GlobalVar) -> Any:
        return gvar

    def visit_constructor(self, con: Constructor) -> Any:
        return con

    def visit_op(self, op: Op) -> Any:
        return op

    def visit_constant(self, const: Constant) -> Any:
        return const

    def visit_if(self, if_: If) -> Any:
        return rebuild(if_, self.visit)

    def visit_tuple(self, tup: Tuple) -> Any:
        return rebuild(tup, self.visit)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        return rebuild(op, self.visit)

    def visit_ref_create(self, ref: RefCreate) -> Any:
        return rebuild(ref, self.visit)

    def visit_ref_read(self, ref: RefRead) -> Any:
        return rebuild(ref, self.visit)

    def visit_ref_write(self, ref: RefWrite) -> Any:
        return rebuild(ref, self.visit)

    def visit_match(self, match: Match) -> Any:
        data = self.visit(match.data)
        clauses = [Clause(self.visit_pattern(clause.lhs), self.visit(clause.rhs)) for clause in match.clauses]
        if data is match.data and all(
            new.lhs is old.lhs and new.rhs is old.rhs for new, old in zip(clauses, match.clauses, strict=True)
        ):
            return match
        return Match(data, clauses, match.complete, match.span)

    def visit_pattern(self, pattern: Pattern) -> Pattern:
        """A pattern of a match, whose variables are visited."""
        match pattern:
            case PatternVar():
                var = self.visit(pattern.var)
                return pattern if var is pattern.var else PatternVar(var)
            case PatternConstructor() | PatternTuple():
                inner = [self.visit_pattern(part) for part in pattern.patterns]
                if _same(inner, pattern.patterns):
                    return pattern
                if isinstance(pattern, PatternTuple):
                    return PatternTuple(inner)
                return PatternConstructor(pattern.constructor, inner)
            case _:
                return pattern


_DATAFLOW = (Call, Tuple, TupleGetItem)


def _dataflow(functor: ExprFunctor[Any], expr: Any) -> Iterator[Any]:
    """Yields the calls, tuples and fields in an expression that have no result yet, each after its parts."""
    return (node for node in post_order(expr, _DATAFLOW) if node not in functor.memo_map)


class MixedModeVisitor(ExprVisitor):
    """An `ExprVisitor` that visits the parts of calls, tuples and fields before these, without recursion."""

    def __init__(self, visit_limit: int = 1):
        super().__init__()
        integer(visit_limit, "visit_limit", 1)

    def visit(self, expr: Any) -> None:
        if isinstance(expr, _DATAFLOW):
            for node in _dataflow(self, expr):
                super().visit(node)
        else:
            super().visit(expr)


class MixedModeMutator(ExprMutator):
    """An `ExprMutator` that rebuilds calls, tuples and fields without recursion, and rewrites each.

    `rewrite_call(call, post)` returns what replaces a call; `post` is the call made of its new parts.
    """

    def visit(self, expr: Any) -> Any:
        if isinstance(expr, _DATAFLOW):
            for node in _dataflow(self, expr):
                super().visit(node)
        return super().visit(expr)

    def rewrite_call(self, call: Call, post: Call) -> Any:
        """Returns the replacement of a call."""
        return post

    def rewrite_tuple(self, tup: Tuple, post: Tuple) -> Any:
        """Returns the replacement of a tuple."""
        return post

    def rewrite_tuple_getitem(self, op: TupleGetItem, post: TupleGetItem) -> Any:
        """Returns the replacement of a field of a tuple."""
        return post

    def visit_call(self, call: Call) -> Any:
        return self.rewrite_call(call, super().visit_call(call))

    def visit_tuple(self, tup: Tuple) -> Any:
        return self.rewrite_tuple(tup, super().visit_tuple(tup))

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        return self.rewrite_tuple_getitem(op, super().visit_tuple_getitem(op))


def _same(new: Any, old: Any) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def post_order_visit(expr: RelayExpr, fvisit: Callable[[Node], object]) -> None:
    """Calls `fvisit` on every node once, each after what it is made of."""
    from .analysis import post_order_visit as visit

    visit(expr, fvisit)


__dir__ = public_names(__name__)
