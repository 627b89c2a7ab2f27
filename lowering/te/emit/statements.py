"""Defines the statements of a scheduled program before its tensors are buffers, as trees."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr

from ....dialects.te import extern as ext
from ....dialects.te import tensor as te
from ....dialects.tir.node import Buffer, Expr, IterVar, Range, Var, current_location

Body = list["Stmt"]


@dataclass(eq=False)
class Stmt:
    """A statement, located where the program was when it was made."""

    location: LocationAttr = field(default_factory=current_location, kw_only=True)


@dataclass(eq=False)
class Holder(Stmt):
    """A statement around others, which are its `body`."""

    body: Body = field(default_factory=list[Stmt], kw_only=True)


@dataclass(eq=False)
class Loop(Holder):
    """`for var in range(extent)`; `kind` as of `tir.for`."""

    var: Var | IterVar
    extent: Expr
    kind: str


@dataclass(eq=False)
class Mark(Holder):
    """The inside of the loop over `axis`: where stages are attached."""

    axis: IterVar


@dataclass(eq=False)
class Launch(Holder):
    """A thread's extent, for what is inside; a virtual thread too."""

    thread: IterVar
    extent: Expr


@dataclass(eq=False)
class Attr(Holder):
    """An attribute of what is inside: `node` is an axis, a tensor, a reduction or None."""

    key: str
    node: object
    value: Expr


@dataclass(eq=False)
class Realize(Holder):
    """Memory of `tensor` for the region `ranges`, while what is inside runs.

    `aligned` says how strides are rounded up, by dimension.
    """

    tensor: te.Tensor
    ranges: list[Range]
    scope: str
    aligned: dict[int, tuple[int, int]] = field(default_factory=dict[int, "tuple[int, int]"])


@dataclass(eq=False)
class Provide(Stmt):
    """`tensor[indices] = value`."""

    tensor: te.Tensor
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(eq=False)
class Let(Holder):
    """`var = value` for what is inside."""

    var: Var
    value: Expr


@dataclass(eq=False)
class Cond(Holder):
    """`if condition` around its body."""

    condition: Expr


@dataclass(eq=False)
class Temporary(Holder):
    """A buffer of its own, for what is inside."""

    buffer: Buffer
    scope: str


@dataclass(eq=False)
class Statements(Stmt):
    """The body of an extern on tensors; `regions` are those that a tensor intrinsic works on."""

    statements: list[ext.Stmt]
    buffers: list[tuple[Buffer, te.Tensor]]
    regions: dict[int, list[Range]] = field(default_factory=dict[int, "list[Range]"])


@dataclass(eq=False)
class AllReduce(Stmt):
    """A value of each of `threads` combined into `results`, by a reduction's combiner."""

    reduction: te.Reduction
    sources: tuple[Expr, ...]
    condition: Expr
    results: list[Buffer]
    threads: list[IterVar]


@dataclass(eq=False)
class Prefetch(Holder):
    """A hint to load what `body` reads of `tensor`, `offset` iterations of the loop over `axis` ahead."""

    tensor: te.Tensor
    axis: IterVar
    offset: Expr


def walk(body: Body) -> Generator[Stmt]:
    """Yields all statements of a program, outer ones first."""
    pending: list[Stmt] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, Holder):
            pending += reversed(node.body)


def launches(body: Body, around: dict[str, int]) -> Generator[Launch]:
    """Yields the launches that are not inside of one of the same thread."""
    for node in body:
        tag = node.thread.thread_tag if isinstance(node, Launch) else ""
        if isinstance(node, Launch) and not around.get(tag):
            yield node
        if isinstance(node, Holder):
            around[tag] = around.get(tag, 0) + 1
            yield from launches(node.body, around)
            around[tag] -= 1
