"""Visits and rewrites expression and statement nodes, as TVM's `tir.stmt_functor`.

    post_order_visit(stmt, print)
    substitute(i * 2 + j, {i: j})     j * 2 + j

Nodes do not change: a rewrite returns new ones where a part has changed, and the same where none has. Nothing is folded.

Source: TVM 0.16, "tir/stmt_functor.h".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ....support.arguments import check
from ....support.deep_stack import in_deep_stack
from . import stmt as st
from .buffer import Buffer, BufferField, BufferLoad, BufferRegion, Let, MatchBufferRegion
from .expr import Apply, Call, Choice, Expr, IterVar, Range, Var, apply

Node: TypeAlias = "st.Stmt | Expr"

N = TypeVar("N", bound="st.Stmt | Expr")


def expr_parts(e: Expr) -> tuple[Expr, ...]:
    """Returns the expressions that an expression is made of."""
    match e:
        case Choice():
            return (*e.args, e.then_value, e.else_value)
        case BufferLoad() if e.predicate is not None:
            return (*e.args, e.predicate)
        case _:
            return e.args


def expr_with(e: Expr, parts: Sequence[Expr]) -> Expr:
    """Returns the expression made of other parts, itself if they are the same."""
    if all(a is b for a, b in zip(parts, expr_parts(e), strict=True)):
        return e
    match e:
        case Apply():
            return apply(e.op, tuple(parts), e.dtype)
        case Choice():
            return Choice(*parts)
        case Call():
            pending = iter(parts)
            operands = [next(pending) if isinstance(o, Expr) else o for o in e.operands]
            made = Call(e.dtype, f"tir.{e.intrinsic}", operands)
            made.callee = e.callee
            return made
        case Let():
            return Let(e.var, *parts)
        case BufferLoad():
            count = len(e.args)
            return BufferLoad(e.buffer, tuple(parts[:count]), parts[count] if len(parts) > count else None)
        case _:
            made = object.__new__(type(e))
            for kind in type(e).__mro__:
                for slot in getattr(kind, "__slots__", ()):
                    if slot != "__weakref__" and hasattr(e, slot):
                        setattr(made, slot, getattr(e, slot))
            made.args = tuple(parts)
            return made


def _checked(node: N) -> N:
    """Returns a node. Raises TypeError for another value."""
    check(node, "what is visited", "a statement or an expression", st.Stmt, Expr)
    return node


def expressions_of(e: Expr) -> Iterator[Expr]:
    """Iterates over an expression and its parts, outer ones first, each once."""
    seen: set[int] = set()
    pending = [e]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending += reversed(expr_parts(node))


def parts_of(node: Node) -> list[Node]:
    """Returns the expressions and statements that a node is made of, in the order of their evaluation."""
    if isinstance(node, Expr):
        return list(expr_parts(node))
    parts: list[Node] = []
    for name in node.FIELDS:
        if not (isinstance(node, st.For | st.LetStmt | st.Allocate | st.AllocateConst) and name in _DEFINED):
            parts += _nodes_in(getattr(node, name))
    return parts


_DEFINED = ("loop_var", "var", "buffer_var", "thread_binding")
"""Fields that hold what a statement defines, which is not visited."""


def _nodes_in(value: object) -> list[Node]:
    match value:
        case IterVar():
            return list(value.domain)
        case Expr() | st.Stmt():
            return [value]
        case Range():
            return [value.min, value.extent]
        case BufferRegion():
            return [part for r in value.region for part in r]
        case MatchBufferRegion():
            return _nodes_in(value.source)
        case list():
            items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
            return [node for item in items for node in _nodes_in(item)]
        case _:
            return []


def post_order_visit(stmt: Node, fvisit: Callable[[Any], Any]) -> None:
    """Calls a function on each node, once, after its parts."""
    seen: set[int] = set()
    pending: list[tuple[Node, bool]] = [(_checked(stmt), False)]
    while pending:
        node, opened = pending.pop()
        if opened:
            fvisit(node)
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            pending += [(part, False) for part in reversed(parts_of(node))]


def pre_order_visit(stmt: Node, fvisit: Callable[[Any], Any]) -> None:
    """Calls a function on each node before its parts, which are left out where it returns False."""
    seen: set[int] = set()
    pending: list[Node] = [_checked(stmt)]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if fvisit(node) is not False:
            pending += reversed(parts_of(node))


class Mutator:
    """Rewrites nodes; subclasses replace some by `visit_expr`, `visit_stmt`, and buffers by `buffer`."""

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._kept: list[object] = []

    def visit(self, node: N) -> N:
        """Returns the node rewritten; a shared part is rewritten once."""
        found = self._memo.get(id(node))
        if found is None:
            found: Any = self.visit_expr(node) if isinstance(node, Expr) else self.visit_stmt(node)
            self._memo[id(node)] = found
            self._kept.append(node)
        return found

    def visit_expr(self, e: Expr) -> Expr:
        """Returns an expression with its parts rewritten."""
        if isinstance(e, BufferField):
            owner = self.buffer(e.buffer)
            if owner is e.buffer:
                return e
            return owner.data if e.field == "data" else BufferField(owner, e.field, e.dtype, e.dim)
        made = expr_with(e, [self.visit(part) for part in expr_parts(e)])
        if isinstance(made, BufferLoad) and (buffer := self.buffer(made.buffer)) is not made.buffer:
            return BufferLoad(buffer, made.args, made.predicate)
        if isinstance(made, Call) and any(isinstance(o, Buffer) for o in made.operands):
            operands = [self.buffer(o) if isinstance(o, Buffer) else o for o in made.operands]
            if any(a is not b for a, b in zip(operands, made.operands, strict=True)):
                return Call(made.dtype, f"tir.{made.intrinsic}", operands)
        return made

    def visit_stmt(self, stmt: st.Stmt) -> Any:
        """Returns a statement with its parts rewritten."""
        values = [getattr(stmt, name) for name in stmt.FIELDS]
        changed = [self._field(value) for value in values]
        if all(a is b for a, b in zip(values, changed, strict=True)):
            return stmt
        return type(stmt)(*changed, span=stmt)

    def buffer(self, buffer: Buffer) -> Buffer:
        """Returns what a buffer is replaced by: itself here."""
        return buffer

    def variable(self, variable: Var) -> Any:
        """Returns what a variable is replaced by where it is defined: itself here."""
        return variable

    def _field(self, value: Any) -> Any:
        match value:
            case IterVar():
                domain = Range.from_min_extent(self.visit(value.min), self.visit(value.extent))
                same = domain.min is value.min and domain.extent is value.extent
                return value if same or value.dom is None else self.axis(value, domain)
            case Expr() | st.Stmt():
                return self.visit(value)
            case Range():
                low, extent = self.visit(value.min), self.visit(value.extent)
                same = low is value.min and extent is value.extent
                return value if same else Range.from_min_extent(low, extent)
            case Buffer():
                return self.buffer(value)
            case BufferRegion():
                buffer, region = self.buffer(value.buffer), self._field(value.region)
                same = buffer is value.buffer and region is value.region
                return value if same else BufferRegion(buffer, region)
            case MatchBufferRegion():
                buffer, source = self.buffer(value.buffer), self._field(value.source)
                same = buffer is value.buffer and source is value.source
                return value if same else MatchBufferRegion(buffer, source)
            case list():
                items: list[Any] = [self._field(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
                return value if all(a is b for a, b in zip(items, value, strict=True)) else items  # pyright: ignore
            case _:
                return value

    def axis(self, axis: IterVar, domain: Range) -> IterVar:
        """Returns an axis over another range, and from now on in place of the old one."""
        made = IterVar(domain, axis.name, axis.iter_type, axis.thread_tag)
        self._memo[id(axis)] = made
        self._kept.append(axis)
        return made


class _Transform(Mutator):
    """Calls functions before and after the parts of nodes of some kinds."""

    def __init__(
        self,
        preorder: Callable[[Any], Any] | None,
        postorder: Callable[[Any], Any] | None,
        kinds: tuple[str, ...] | None,
    ):
        super().__init__()
        self._before, self._after, self._kinds = preorder, postorder, kinds

    def _is_wanted(self, node: object) -> bool:
        return self._kinds is None or kind_of(node) in self._kinds

    def visit_expr(self, e: Expr) -> Expr:
        return self._around(e, super().visit_expr)

    def visit_stmt(self, stmt: st.Stmt) -> Any:
        return self._around(stmt, super().visit_stmt)

    def _around(self, node: Any, mutate: Callable[[Any], Any]) -> Any:
        if not self._is_wanted(node):
            return mutate(node)
        if self._before is not None and (replaced := self._before(node)) is not None:
            return replaced
        made = mutate(node)
        replaced = None if self._after is None else self._after(made)
        return made if replaced is None else replaced


def kind_of(node: object) -> str:
    """Returns the name of a node's kind, as `ir_transform` takes it: `tir.For`."""
    if isinstance(node, Choice):
        return "tir.Call"
    return f"tir.{type(node).__name__}"


def ir_transform(
    stmt: N,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Sequence[str] | None = None,
) -> N:
    """Returns a node rewritten: a function's result replaces a node, None keeps it.

    `preorder` is called before the parts, which it then replaces as well; `postorder` after. `only_enable` are the kinds of nodes
    that are asked for, such as `tir.For`.
    """
    kinds = None if only_enable is None else tuple(only_enable)
    return in_deep_stack(lambda: _Transform(preorder, postorder, kinds).visit(_checked(stmt)))


class Substitute(Mutator):
    """Replaces variables, by their `id`, and the buffers whose shape or memory depends on them."""

    def __init__(self, values: Mapping[int, Expr]):
        super().__init__()
        self._values = values
        self._buffers: dict[int, Buffer] = {}

    def visit_expr(self, e: Expr) -> Expr:
        found = self._values.get(id(e)) if isinstance(e, Var) else None
        return super().visit_expr(e) if found is None else found

    def buffer(self, buffer: Buffer) -> Buffer:
        found = self._buffers.get(id(buffer))
        if found is None:
            found = self._buffers[id(buffer)] = self._replaced(buffer)
            self._kept.append(buffer)
        return found

    def _replaced(self, buffer: Buffer) -> Buffer:
        dims = tuple(map(self.visit, buffer.dims))
        strides = tuple(map(self.visit, buffer.strides))
        offset = self.visit(buffer.elem_offset)
        data = self._values.get(id(buffer.data), buffer.data)
        before = (*buffer.dims, *buffer.strides, buffer.elem_offset, buffer.data)
        if all(a is b for a, b in zip((*dims, *strides, offset, data), before, strict=True)):
            return buffer
        moved = data if isinstance(data, Var) and data is not buffer.data else None
        return buffer.like(dims=dims, strides=strides, elem_offset=offset, data=moved)


def substitute(node: N, vmap: Mapping[Var, Any]) -> N:
    """Returns a node with variables replaced by values."""
    from .expr import convert

    values = {id(variable): convert(value) for variable, value in vmap.items()}
    return in_deep_stack(lambda: Substitute(values).visit(_checked(node)))
