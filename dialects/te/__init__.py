"""The `te` dialect: TVM's tensor expressions. Types are in `types`, ops in `ops` and `compute`; `builder` makes them from Python."""

from xdsl.ir import Dialect

from .compute import ComputeOp, ExternOp, ScanOp, extents_of
from .ops import (
    CommReducerOp,
    FuncOp,
    PlaceholderOp,
    ReadOp,
    ReduceAxisOp,
    ReduceOp,
    ReturnOp,
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
