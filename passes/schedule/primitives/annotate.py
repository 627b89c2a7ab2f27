"""annotate, unannotate: facts for later stages, on a loop or block."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation

from ....dialects import tir
from ....dialects.tir.attribute_values import attribute_of
from ..engine.errors import describe, refuse
from ..engine.primitive import primitive
from ..engine.state import State


@primitive
def annotate(state: State, block_or_loop: Operation, ann_key: str, ann_val: object) -> None:
    """Puts a named value on a loop or block.

    for i in range(8): …   →   for i in T.serial(8, annotations={"pragma_unroll": 1}): …
    """
    target = _annotated(block_or_loop, "annotate")
    known = dict(target.annotations.data)
    if ann_key in known:
        raise refuse(
            target, f"annotate: {describe(target)} has an annotation '{ann_key}' already", "unannotate it first"
        )
    try:
        known[ann_key] = attribute_of(ann_val)
    except TypeError as error:
        raise refuse(
            target, f"annotate: {error}", "an annotation is made of numbers, strings, lists and dictionaries"
        ) from None
    # In the order of their names, as TVM keeps them.
    target.properties["annotations"] = DictionaryAttr(dict(sorted(known.items())))


@primitive
def unannotate(state: State, block_or_loop: Operation, ann_key: str) -> None:
    """Takes an annotation away: the inverse of annotate."""
    target = _annotated(block_or_loop, "unannotate")
    known = dict(target.annotations.data)
    if ann_key not in known:
        has = ", ".join(f"'{k}'" for k in known) or "none"
        raise refuse(target, f"unannotate: {describe(target)} has no annotation '{ann_key}'", f"it has {has}")
    del known[ann_key]
    target.properties["annotations"] = DictionaryAttr(known)


def _annotated(op: Operation, name: str) -> tir.ForOp | tir.BlockOp:
    if not isinstance(op, tir.ForOp | tir.BlockOp):
        raise refuse(op, f"{name}: {describe(op)} carries no annotations", "give a loop or a block")
    return op
