"""The `te` dialect: TVM's tensor expressions. Types are in `types`, ops in `ops`; `builder` makes them from Python."""

from xdsl.ir import Dialect

from .ops import (
    CommReducerOp,
    ComputeOp,
    ExternOp,
    FuncOp,
    PlaceholderOp,
    ReadOp,
    ReduceAxisOp,
    ReduceOp,
    ReturnOp,
    ScanOp,
    extents_of,
    is_input,
    tensor_name,
)
from .types import TensorType

TE = Dialect(
    "te",
    [FuncOp, ReturnOp, PlaceholderOp, ReduceAxisOp, ReadOp, CommReducerOp, ReduceOp, ComputeOp, ScanOp, ExternOp],
    [TensorType],
)

__all__ = [
    "TE",
    "CommReducerOp",
    "ComputeOp",
    "ExternOp",
    "FuncOp",
    "PlaceholderOp",
    "ReadOp",
    "ReduceAxisOp",
    "ReduceOp",
    "ReturnOp",
    "ScanOp",
    "TensorType",
    "extents_of",
    "is_input",
    "tensor_name",
]
