"""The `schedule` dialect: programs of schedule primitives, as TVM's `tir.Schedule` has them.

Which primitives there are, with their parameters and results, is the table in `signatures`; `ops` makes an op of each.
"""

from xdsl.ir import Dialect

from .arguments import Argument, Lambda, Ref, Splat
from .ops import (
    ItemOp,
    PrimitiveOp,
    ScriptOp,
    SliceOp,
    YieldOp,
    primitive_class,
    result_name,
    result_types,
)
from .signatures import Parameter, Signature, SignatureError, nearest_primitive, signature, signatures
from .types import BLOCK, EXPR, LOOP, BlockType, ExprType, LambdaAttr, ListType, LoopType, OperandAttr, SplatAttr


def schedule_dialect() -> Dialect:
    """The dialect with an op for every primitive; the text format does not need it, MLIR's form does."""
    return Dialect(
        "schedule",
        [ScriptOp, ItemOp, SliceOp, YieldOp, *map(primitive_class, signatures())],
        [BlockType, LoopType, ExprType, ListType, OperandAttr, SplatAttr, LambdaAttr],
    )


__all__ = [
    "BLOCK",
    "EXPR",
    "LOOP",
    "Argument",
    "BlockType",
    "ExprType",
    "ItemOp",
    "Lambda",
    "LambdaAttr",
    "ListType",
    "LoopType",
    "OperandAttr",
    "Parameter",
    "PrimitiveOp",
    "Ref",
    "ScriptOp",
    "Signature",
    "SignatureError",
    "SliceOp",
    "Splat",
    "SplatAttr",
    "YieldOp",
    "nearest_primitive",
    "primitive_class",
    "result_name",
    "result_types",
    "schedule_dialect",
    "signature",
    "signatures",
]
