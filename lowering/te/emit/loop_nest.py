"""Nests of loops of one stage, with the marks at which other stages are attached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....dialects.arith.ordered import is_one, number
from ....dialects.te.axes import OPAQUE, is_virtual
from ....dialects.te.functions import likely
from ....dialects.tir.node import Expr, IterVar, Var, fail, text_of
from ..schedule.infer_bound import storage_rank, thread_rank
from ..schedule.message_passing import Domains, Values, pass_up_index
from ..schedule.stage import AxisAttrs, StageData
from .statements import Attr, Body, Cond, Holder, Launch, Loop, Mark, Prefetch

LOOP_KINDS = {"": "serial", "tensorized": "serial"}
"""The kind of a loop by an axis's annotation, where that has another name."""

Nest = list[list[Holder]]
"""What stands around what, outermost first: one list for each loop, after one for what is around all of them."""


def loop_nest(
    stage: StageData,
    domains: Domains,
    values: Values,
    *,
    begin: int = 0,
    is_init: bool = False,
    skip: set[int] | None = None,
) -> Nest:
    """Returns the loops of a stage from `begin` on; adds the axes' values in terms of these to `values`.

    With `is_init` loops get variables of their own and no marks: the part of a reduction that runs before its loops.
    Raises MirError for threads over ranges that threads cannot run over.
    """
    nest: Nest = [[] for _ in range(len(stage.leaves) + 1)]
    for place in range(begin, len(stage.leaves)):
        axis, inside = stage.leaves[place], nest[place + 1]
        if (skip is not None and id(axis) in skip) or axis.iter_type == OPAQUE:
            values[id(axis)] = axis
            continue
        attrs = stage.known_attrs(axis) or AxisAttrs()
        thread, domain = axis if attrs.thread is None else attrs.thread, domains[axis]
        tag = thread.thread_tag
        if tag:
            if is_virtual(tag) and not (isinstance(domain.extent, type(number(0))) and int(domain.extent) > 0):
                raise fail(
                    f"loop '{axis.name}' of stage '{stage.name}' runs over {text_of(domain.extent)}, but virtual threads are of a known number",
                    "split the axis by a number, and bind the part of that many",
                )
            inside.append(Launch(thread, domain.extent))
            values[id(axis)] = _thread_value(stage, thread, domain.extent, tag)
        else:
            for key, value in attrs.pragmas:
                if not is_init and not is_one(domain.extent):
                    inside.append(Attr(f"pragma_{key}", axis, value))
            if is_one(domain.extent):
                values[id(axis)] = number(0, axis.dtype)
            else:
                variable: Var | IterVar = Var(f"{axis.name}.init", axis.dtype) if is_init else axis
                kind = LOOP_KINDS.get(attrs.annotation, attrs.annotation)
                if kind == "vectorized" and not isinstance(domain.extent, type(number(0))):
                    raise fail(
                        f"loop '{axis.name}' of stage '{stage.name}' runs over {text_of(domain.extent)}, but a vectorized loop has a known number of elements",
                        f"split it by a number first, as in xo, xi = s[{stage.name}].split({axis.name}, factor=4), and vectorize xi",
                    )
                inside.append(Loop(variable, domain.extent, kind))
                values[id(axis)] = variable
                for tensor, offset in attrs.prefetches if not is_init else ():
                    inside.append(Prefetch(tensor, axis, offset))
        if not is_init:
            inside.append(Mark(axis))
    pass_up_index(stage, domains, values, allow_missing=True)
    return nest


def _thread_value(stage: StageData, thread: IterVar, extent: Expr, tag: str) -> Expr:
    if is_one(extent):
        return number(0, thread.dtype)
    if not stage.scope or is_virtual(tag):
        return thread
    # Of memory that is each thread's own, a thread holds its part only.
    return thread if storage_rank(stage.scope) <= thread_rank(tag) or stage.scope.startswith("warp") else number(0)


def conditions(predicates: Iterable[Expr], *, expected: bool = True) -> list[Holder]:
    """Returns an `if` for each condition, which is marked as likely where it is expected to hold."""
    return [Cond(likely(p) if expected else p) for p in predicates]


def merge(nest: Sequence[Sequence[Holder]], body: Body) -> Body:
    """Puts the nest around a body."""
    flat = [holder for level in nest for holder in level]
    for holder in reversed(flat):
        holder.body += body
        body = [holder]
    return body
