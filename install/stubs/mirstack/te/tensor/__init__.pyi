"""`te.tensor`: tensors, slices of them, and the operations that compute them.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.te.tensor import BaseComputeOp as BaseComputeOp
from mirstack.api.te.tensor import HybridOp as HybridOp
from mirstack.dialects.te.extern import ExternOp as ExternOp
from mirstack.dialects.te.tensor import ComputeOp as ComputeOp
from mirstack.dialects.te.tensor import Operation as Operation
from mirstack.dialects.te.tensor import PlaceholderOp as PlaceholderOp
from mirstack.dialects.te.tensor import ScanOp as ScanOp
from mirstack.dialects.te.tensor import Tensor as Tensor
from mirstack.dialects.te.tensor import TensorSlice as TensorSlice
