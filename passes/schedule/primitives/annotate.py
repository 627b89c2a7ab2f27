"""annotate, unannotate: facts for later stages, on a loop or block."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr, f32
from xdsl.ir import Attribute, Operation

from ....dialects import tir
from ....dialects.tir.types import I1, I32
from ..errors import describe, refuse
from ..primitive import primitive
from ..state import State


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
    known[ann_key] = attribute_of(ann_val, target)
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


def attribute_of(value: object, where: Operation) -> Attribute:  # pyright: ignore[reportReturnType]
    """A Python value as the attribute that the text's literal becomes."""
    match value:  # pyright: ignore[reportMatchNotExhaustive]
        case Attribute():
            return value
        case bool():
            return IntegerAttr(int(value), I1)
        case int():
            return IntegerAttr(value, I32)
        case float():
            return FloatAttr(value, f32)
        case str():
            return StringAttr(value)
        case list() | tuple():
            return ArrayAttr([attribute_of(v, where) for v in cast("list[object]", value)])
        case dict():
            return DictionaryAttr(
                {str(k): attribute_of(v, where) for k, v in cast("dict[object, object]", value).items()}
            )
        case _:
            raise refuse(
                where, f"annotate: {value!r} is no value for an annotation", "use numbers, strings, lists and dicts"
            )
