"""Defines the statements of a scheduled program before its tensors are buffers, as trees."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr

from ....dialects.te import extern as ext
from ....dialects.te import tensor as te
from ....dialects.te.axes import Range, tag_of
from ....dialects.te.expr import Expr, IterVar, Var, current_location

Body = list["Stmt"]


@dataclass(eq=False)
class Loop:
    """`for var in range(extent)`; `kind` as of `tir.for`."""

    var: Var | IterVar
    extent: Expr
    kind: str
    body: Body
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Mark:
    """The inside of the loop over `axis`: where stages are attached."""

    axis: IterVar
    body: Body
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Launch:
    """A thread's extent, for what is inside; a virtual thread too."""

    thread: IterVar
    extent: Expr
    body: Body
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Attr:
    """An attribute of what is inside: `node` is an axis, a tensor, a reduction or None."""

    key: str
    node: object
    value: Expr
    body: Body
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Realize:
    """Memory of `tensor` for the region `ranges`, while what is inside runs.

    `aligned` says how strides are rounded up, by dimension.
    """

    tensor: te.Tensor
    ranges: list[Range]
    scope: str
    body: Body
    aligned: dict[int, tuple[int, int]] = field(default_factory=dict[int, "tuple[int, int]"])
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Provide:
    """`tensor[indices] = value`."""

    tensor: te.Tensor
    indices: tuple[Expr, ...]
    value: Expr
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Let:
    """`var = value` for what is inside."""

    var: Var
    value: Expr
    body: Body
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Cond:
    """`if condition: then … else: orelse`."""

    condition: Expr
    then: Body
    orelse: Body = field(default_factory=list["Stmt"])
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Temporary:
    """A buffer of its own, for what is inside."""

    buffer: ext.Buffer
    scope: str
    body: Body
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Statements:
    """The body of an extern on tensors; `regions` are those that a tensor intrinsic works on."""

    statements: list[ext.Stmt]
    buffers: list[tuple[ext.Buffer, te.Tensor]]
    regions: dict[int, list[Range]] = field(default_factory=dict[int, "list[Range]"])
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class AllReduce:
    """A value of each of `threads` combined into `results`, by a reduction's combiner."""

    reduction: te.Reduction
    sources: tuple[Expr, ...]
    condition: Expr
    results: list[ext.Buffer]
    threads: list[IterVar]
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class Prefetch:
    """A hint to load what `body` reads of `tensor`, `offset` iterations of the loop over `axis` ahead."""

    tensor: te.Tensor
    axis: IterVar
    offset: Expr
    body: Body
    location: LocationAttr = field(default_factory=current_location)


@dataclass(eq=False)
class BufferStore:
    """`buffer[indices] = value`, of a `Temporary`."""

    buffer: ext.Buffer
    indices: tuple[Expr, ...]
    value: Expr
    location: LocationAttr = field(default_factory=current_location)


Stmt = (
    Loop | Mark | Launch | Attr | Realize | Provide | Let | Cond | Temporary | Statements | AllReduce | Prefetch | BufferStore
)  # fmt: skip
Holder = Loop | Mark | Launch | Attr | Let | Prefetch
"""A statement that a nest is made of: what is inside goes to its `body`."""


def walk(body: Body) -> Generator[Stmt]:
    """All statements of a program."""
    pending: list[Stmt] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        for part in (getattr(node, "orelse", None), getattr(node, "then", None), getattr(node, "body", None)):
            pending += reversed(part or [])


def launches(body: Body, around: dict[str, int]) -> Generator[Launch]:
    """The launches that are not inside of one of the same thread."""
    for node in body:
        if isinstance(node, Launch):
            tag = tag_of(node.thread)
            if not around.get(tag):
                yield node
            around[tag] = around.get(tag, 0) + 1
            yield from launches(node.body, around)
            around[tag] -= 1
            continue
        for part in (getattr(node, "body", None), getattr(node, "then", None), getattr(node, "orelse", None)):
            yield from launches(part or [], around)
