"""Defines the axes that a schedule creates: loops without a range of their own, and threads."""

from __future__ import annotations

from dataclasses import dataclass

from .expr import Const, Expr, IterVar, convert, describe, distance, fail, items_of
from .schedule_ops import THREAD_TAGS

SPATIAL, REDUCE, THREAD, ORDERED, OPAQUE = "S", "R", "thread", "ordered", "opaque"
"""Kinds of an axis: of an element, of a reduction, a thread, the steps of a scan, and not schedulable."""


@dataclass(frozen=True, eq=False)
class Range:
    """The integers from `min` over `extent` values."""

    min: Expr
    extent: Expr


class Axis(IterVar):
    """An axis that a schedule created: without a domain (`has_domain`) until bounds are inferred.

    `thread_tag` names the thread that it is, "" for none.
    """

    __slots__ = ("has_domain", "thread_tag")

    def __init__(self, name: str, domain: Range | None, kind: str, dtype: str = "int32", thread_tag: str = ""):
        super().__init__(
            name,
            Const(0, dtype) if domain is None else domain.min,
            Const(0, dtype) if domain is None else domain.extent,
            kind,
        )
        self.has_domain = domain is not None
        self.thread_tag = thread_tag


def tag_of(axis: IterVar) -> str:
    """Returns the thread that the axis is, "" for none."""
    return axis.thread_tag if isinstance(axis, Axis) else ""


def is_virtual(tag: str) -> bool:
    """Returns whether a thread is one loop that runs beside others, each of its own: `vthread`, `cthread`."""
    return tag.startswith(("vthread", "cthread"))


def domain_of(axis: IterVar) -> Range:
    """Returns the original domain of an operation's axis."""
    return Range(axis.min, axis.extent)


def thread_axis(dom: object = None, tag: object = "", name: object = "", span: object = None) -> Axis:
    """Creates a thread: `thread_axis("threadIdx.x")`, with extent `thread_axis((0, 32), "threadIdx.x")`.

    `span` exists for TVM's signature and is ignored. Raises MirError for an unknown tag.
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if not isinstance(tag, str) or tag not in THREAD_TAGS:
        raise fail(
            f"{describe(tag)} is not a thread" if not isinstance(tag, str) else f"there is no thread '{tag}'",
            "threads are blockIdx.x, .y, .z, threadIdx.x, .y, .z and vthread",
        )
    domain: Range | None = None
    if dom is not None:
        pair = items_of(dom)
        if pair is None:
            domain = Range(Const(0, "int32"), convert(dom))
        elif len(pair) == 2:
            low, high = convert(pair[0]), convert(pair[1])
            domain = Range(low, distance(low, high))
        else:
            raise fail("the range of a thread_axis is a number of threads or a pair: te.thread_axis((0, 32), …)")
    return Axis(str(name) or tag, domain, THREAD, thread_tag=tag)
