"""The `schedule` dialect: programs of schedule primitives, as TVM's `tir.Schedule` has them.

Which primitives there are, with their parameters and results, is the table in `signature_table`; `ops` makes an op of each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Dialect

    from .arguments import Argument, Lambda, Ref, Splat
    from .ops import (
        ARITHMETIC,
        ComputeOp,
        ItemOp,
        PrimitiveOp,
        RuleOp,
        ScriptOp,
        SliceOp,
        YieldOp,
        primitive_class,
        result_name,
        result_types,
    )
    from .signature_table import Parameter, Signature, SignatureError, nearest_primitive, signature, signatures
    from .types import BLOCK, EXPR, LOOP, BlockType, ExprType, LambdaAttr, ListType, LoopType, OperandAttr, SplatAttr

# TE's schedules take their signatures from here, and need no op of this dialect: what a module has is imported when it is asked for.
_MODULES = {
    "arguments": ("Argument", "Lambda", "Ref", "Splat"),
    "types": (
        *("BLOCK", "EXPR", "LOOP", "BlockType", "ExprType", "LambdaAttr", "ListType", "LoopType", "OperandAttr"),
        "SplatAttr",
    ),
    "signature_table": ("Parameter", "Signature", "SignatureError", "nearest_primitive", "signature", "signatures"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module = next((m for m, names in _MODULES.items() if name in names), "ops")
    found: object = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = found
    return found


def schedule_dialect() -> Dialect:
    """Returns the dialect with an op for every primitive; only MLIR's form needs it, not the text format."""
    from xdsl.ir import Dialect

    from .ops import ComputeOp, ItemOp, RuleOp, ScriptOp, SliceOp, YieldOp, primitive_class
    from .signature_table import signatures
    from .types import BlockType, ExprType, LambdaAttr, ListType, LoopType, OperandAttr, SplatAttr

    return Dialect(
        "schedule",
        [ScriptOp, RuleOp, ItemOp, SliceOp, ComputeOp, YieldOp, *map(primitive_class, signatures())],
        [BlockType, LoopType, ExprType, ListType, OperandAttr, SplatAttr, LambdaAttr],
    )


__all__ = [
    "ARITHMETIC",
    "BLOCK",
    "EXPR",
    "LOOP",
    "Argument",
    "BlockType",
    "ComputeOp",
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
    "RuleOp",
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
