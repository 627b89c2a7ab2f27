"""Defines the `te` dialect, TVM's tensor expressions.

Types are in `types`, ops in `ops` and `compute`; `builder` creates them from Python.
"""

from xdsl.ir import Dialect

from .compute import ComputeOp, ExternOp, ScanOp, extents_of
from .ops import CommReducerOp, FuncOp, PlaceholderOp, ReadOp, ReduceAxisOp, ReduceOp, ReturnOp, is_input, tensor_name
from .schedule_ops import (
    AxisRefOp,
    AxisValueOp,
    ScheduleHandleType,
    ScheduleOp,
    StepOp,
    TensorRefOp,
    ThreadAxisOp,
    VarRefOp,
    step_ops,
)
from .types import TensorType

TE = Dialect(
    "te",
    [
        FuncOp, ReturnOp, PlaceholderOp, ReduceAxisOp, ReadOp, CommReducerOp, ReduceOp, ComputeOp, ScanOp, ExternOp,
        ScheduleOp, TensorRefOp, VarRefOp, AxisRefOp, ThreadAxisOp, AxisValueOp, *step_ops().values(),
    ],
    [TensorType, ScheduleHandleType],
)  # fmt: skip

__all__ = [
    "TE", "AxisRefOp", "AxisValueOp", "CommReducerOp", "ComputeOp", "ExternOp", "FuncOp", "PlaceholderOp", "ReadOp",
    "ReduceAxisOp", "ReduceOp", "ReturnOp", "ScanOp", "ScheduleHandleType", "ScheduleOp", "StepOp", "TensorRefOp",
    "TensorType", "ThreadAxisOp", "VarRefOp", "extents_of", "is_input", "tensor_name",
]  # fmt: skip
