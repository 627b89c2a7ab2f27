"""`te.tensor`: tensors, slices of them, and the operations that compute them."""

from ...dialects.te.extern import ExternOp
from ...dialects.te.tensor import ComputeOp, Operation, PlaceholderOp, ScanOp, Tensor, TensorSlice
from ...support.public_names import public_names

HybridOp = ExternOp
"""Hybrid scripts compute tensors by statements, as externs do."""

BaseComputeOp = ComputeOp

__all__ = [
    "BaseComputeOp", "ComputeOp", "ExternOp", "HybridOp", "Operation", "PlaceholderOp", "ScanOp", "Tensor", "TensorSlice",
]  # fmt: skip

__dir__ = public_names(__name__)
