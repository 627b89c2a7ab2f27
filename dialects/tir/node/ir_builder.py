"""Builds statements in order: `with ib.for_range(0, n) as i: p[i] = …`, as TVM's `tir.ir_builder`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ....support.text import counted
from . import stmt as st
from .buffer import Broadcast, Buffer, Ramp, element_dtype
from .expr import (
    BUILD,
    Expr,
    ExprLike,
    IntImm,
    IterVar,
    PointerType,
    PrimType,
    Var,
    convert,
    fail,
    items_of,
    lanes_of,
    with_lanes,
)
from .shape import checked_dtype, dims_of

LOOP_KINDS = {
    "serial": st.ForKind.SERIAL,
    "parallel": st.ForKind.PARALLEL,
    "vectorize": st.ForKind.VECTORIZED,
    "vectorized": st.ForKind.VECTORIZED,
    "unroll": st.ForKind.UNROLLED,
    "unrolled": st.ForKind.UNROLLED,
}
"""How loops are called, and their kind."""


class BufferVar:
    """A buffer in an `IRBuilder`: `p[i]` reads, `p[i] = x` adds a store.

    One index counts the elements of a buffer of any rank in row-major order; a `content_type` of several lanes counts vectors.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer, content_type: str | None = None):
        self._builder = builder
        self._buffer = buffer
        self.dtype = content_type or buffer.dtype

    def __repr__(self) -> str:
        return f"BufferVar({self._buffer})"

    def asobject(self) -> Var:
        """Returns the variable that holds the address."""
        return self._buffer.data

    @property
    def buffer(self) -> Buffer:
        """Returns the buffer."""
        return self._buffer

    def as_expr(self) -> Expr:
        """Returns the variable that holds the address, where a value is expected."""
        return self._buffer.data

    def _indices(self, index: Any) -> tuple[Expr, ...]:
        dims = self._buffer.dims
        several = items_of(index)
        indices = [convert(part) for part in (several or (index,))]
        if len(dims) > 1 and len(indices) == 1:
            rest, parts = indices[0], list[Expr]()
            for dim in reversed(dims[1:]):
                parts.append(BUILD["%"](rest, dim))
                rest = BUILD["//"](rest, dim)
            indices = [rest, *reversed(parts)]
        lanes = lanes_of(self.dtype)
        if lanes > 1 and lanes_of(self._buffer.dtype) == 1:
            last = indices[-1]
            indices[-1] = Ramp(BUILD["*"](last, lanes), IntImm(last.dtype, 1), lanes)
        return tuple(indices[: len(dims)]) if dims else ()

    def __getitem__(self, index: Any) -> Expr:
        return self._buffer[self._indices(index)]

    def __setitem__(self, index: Any, value: ExprLike) -> None:
        indices = self._indices(index)
        lanes = lanes_of(indices[-1].dtype) if indices else 1
        if lanes > 1 and not (isinstance(value, Expr) and lanes_of(value.dtype) > 1):
            value = Broadcast(convert(value, element_dtype(self._buffer.dtype)), lanes)
        self._builder.emit(st.store(self._buffer, indices, value))


class IRBuilder:
    """Builds statements in order; `get` returns them as one."""

    def __init__(self) -> None:
        # The statements of each open scope; what wraps the rest of a scope is a function.
        self._scopes: list[list[st.Stmt | Callable[[st.Stmt], st.Stmt]]] = [[]]

    def __repr__(self) -> str:
        return f"IRBuilder({counted(len(self._scopes[0]), 'statement')})"

    def _wrap(self, make: Callable[[st.Stmt], st.Stmt]) -> None:
        """Makes one statement of the rest of the scope."""
        self._scopes[-1].append(make)

    def emit(self, stmt: Any) -> None:
        """Adds a statement, several, a call, or a function that makes a statement of the rest of the scope."""
        match stmt:
            case Expr():
                self._scopes[-1].append(st.Evaluate(stmt))
            case st.Stmt():
                self._scopes[-1].append(stmt)
            case list() | tuple():
                for part in stmt:  # pyright: ignore[reportUnknownVariableType]
                    self.emit(part)
            case _ if callable(stmt):
                self._wrap(stmt)  # pyright: ignore[reportArgumentType]
            case _:
                raise fail(f"a statement or call is emitted, not {type(stmt).__name__}")

    def _end(self) -> st.Stmt:
        """Ends the innermost scope, and returns its statements as one."""
        rest: list[st.Stmt] = []
        for item in reversed(self._scopes.pop()):
            if isinstance(item, st.Stmt):
                rest.insert(0, item)
            else:
                rest = [item(st.sequence(rest))]
        return st.sequence(rest)

    def get(self) -> st.Stmt:
        """Returns the statements as one."""
        if len(self._scopes) != 1:
            raise fail("the builder's statements are complete outside of its scopes only")
        made = self._end()
        self._scopes = [[made]]
        return made

    @contextmanager
    def _inside(self, make: Callable[[st.Stmt], st.Stmt]) -> Generator[None]:
        """Adds what `make` makes of the statements within the `with`."""
        self._scopes.append([])
        depth = len(self._scopes)
        try:
            yield
        except BaseException:
            del self._scopes[depth - 1 :]
            raise
        body = self._end()
        self._scopes[-1].append(make(body))

    def scope_attr(self, node: Any, attr_key: str, value: ExprLike | str) -> None:
        """Gives an attribute to the rest of the scope."""
        node = node.asobject() if isinstance(node, BufferVar) else node
        self._wrap(lambda rest: st.AttrStmt(node, attr_key, value, rest))

    @contextmanager
    def for_range(
        self, begin: ExprLike, end: ExprLike, name: str = "i", dtype: str | None = None, kind: str = "serial"
    ) -> Generator[Var]:
        """Yields the variable of a loop from begin up to but not including end."""
        if kind not in LOOP_KINDS:
            raise fail(f"a loop is {', '.join(LOOP_KINDS)}, not '{kind}'")
        low, high = convert(begin, dtype), convert(end, dtype)
        if low.dtype != high.dtype:
            wide = dtype or max(low.dtype, high.dtype, key=lambda each: (lanes_of(each), each))
            low, high = low.astype(wide), high.astype(wide)
        variable = Var(name, low.dtype)
        extent = high if isinstance(low, IntImm) and low.value == 0 else BUILD["distance"](low, high)
        with self._inside(lambda body: st.For(variable, low, extent, LOOP_KINDS[kind], body)):
            yield variable

    @contextmanager
    def while_loop(self, condition: ExprLike) -> Generator[None]:
        """Statements that run again while the condition holds."""
        with self._inside(lambda body: st.While(condition, body)):
            yield

    @contextmanager
    def if_scope(self, cond: ExprLike) -> Generator[None]:
        """Statements that run where the condition holds."""
        test = convert(cond)
        if test.dtype != "bool":
            raise fail(f"the condition of if_scope must be bool, not {test.dtype}")
        with self._inside(lambda body: st.IfThenElse(test, body)):
            yield

    @contextmanager
    def else_scope(self) -> Generator[None]:
        """Opens the other branch of the if_scope just before."""
        last = self._scopes[-1][-1] if self._scopes[-1] else None
        if not isinstance(last, st.IfThenElse) or last.else_case is not None:
            raise fail("else_scope follows an if_scope")
        self._scopes[-1].pop()
        with self._inside(lambda body: st.IfThenElse(last.condition, last.then_case, body)):
            yield

    @contextmanager
    def new_scope(self) -> Generator[None]:
        """Statements whose attributes and memory end with them."""
        with self._inside(lambda body: body):
            yield

    def let(self, var_name: str, value: ExprLike) -> Var:
        """Names a value for the rest of the scope."""
        held = convert(value)
        variable = Var(var_name, held.dtype)
        self._wrap(lambda rest: st.LetStmt(variable, held, rest))
        return variable

    def allocate(
        self, dtype: str, shape: Any, name: str = "buf", axis_separators: Sequence[int] | None = None, scope: str = ""
    ) -> BufferVar:
        """Allocates memory until the enclosing scope ends."""
        element = checked_dtype(element_dtype(dtype), f"'{name}'")
        dims = dims_of(shape)
        data = Var(name, PointerType(PrimType(element), scope))
        buffer = Buffer(
            name, dims, with_lanes(element, lanes_of(dtype)), data=data, scope=scope or "global",
            axis_separators=tuple(axis_separators or ()),
        )  # fmt: skip
        self._wrap(lambda rest: st.Allocate(data, dtype, dims, True, st.DeclBuffer(buffer, rest)))
        return BufferVar(self, buffer)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """Returns an address that is a parameter of the function."""
        element = element_dtype(content_type)
        data = Var(name, PointerType(PrimType(element), scope))
        buffer = Buffer(name, (IntImm("int32", 1),), element, data=data, scope=scope or "global")
        return BufferVar(self, buffer, content_type)

    def buffer_ptr(self, buf: Buffer, shape: Any = None) -> BufferVar:
        """Returns a buffer for reading and writing by index."""
        return BufferVar(self, buf)

    def likely(self, expr: Expr) -> Expr:
        """Returns a condition with the hint that it is mostly true."""
        from .expr import call

        return call("likely", (expr,), expr.dtype)


def create() -> IRBuilder:
    """Returns a builder without statements."""
    return IRBuilder()


__all__ = ["LOOP_KINDS", "BufferVar", "IRBuilder", "IterVar", "create"]
