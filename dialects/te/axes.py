"""Defines the axes that a schedule creates: loops without a range of their own, and threads."""

from __future__ import annotations

from ..tir.node import IntImm, IterVar, Range, convert, describe, distance, fail, items_of
from .schedule_ops import THREAD_TAGS

SPATIAL, REDUCE, THREAD = IterVar.DataPar, IterVar.CommReduce, IterVar.ThreadIndex
ORDERED, OPAQUE = IterVar.Ordered, IterVar.DimInfo
"""Kinds of an axis: of an element, of a reduction, a thread, the steps of a scan, and not schedulable."""


def axis(name: str, domain: Range | None, kind: int, dtype: str = "int32", thread_tag: str = "") -> IterVar:
    """Creates an axis; without a domain a schedule creates it, and bounds are inferred later."""
    made = IterVar(domain, name, kind, thread_tag)
    if domain is None:
        made.dtype = dtype
        made.min = made.extent = IntImm(dtype, 0)
    return made


def is_virtual(tag: str) -> bool:
    """Returns whether a thread is one loop that runs beside others, each of its own: `vthread`, `cthread`."""
    return tag.startswith(("vthread", "cthread"))


def thread_axis(dom: object = None, tag: object = "", name: object = "", span: object = None) -> IterVar:
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
            domain = Range(convert(dom))
        elif len(pair) == 2:
            low, high = convert(pair[0]), convert(pair[1])
            domain = Range.from_min_extent(low, distance(low, high))
        else:
            raise fail("the range of a thread_axis is a number of threads or a pair: te.thread_axis((0, 32), …)")
    return axis(str(name) or tag, domain, THREAD, thread_tag=tag)
