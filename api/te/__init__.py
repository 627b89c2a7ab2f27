"""`mirstack.te`: tensor expressions and their schedules, under TVM's names.

Tensors are described by `dialects.te.builder`, which documents its conventions; schedules are in `schedule`, their engine in
`lowering.te.schedule`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...dialects.te import builder as _builder
from ...dialects.te.autodiff import gradient as gradient
from ...dialects.te.axes import thread_axis as _thread_axis
from ...dialects.te.builder import *  # noqa: F403
from ...dialects.te.tag_scope import tag_scope as tag_scope
from ...dialects.te.tensor_intrin import TensorIntrin as TensorIntrin
from ...dialects.te.tensor_intrin import decl_tensor_intrin as decl_tensor_intrin
from ...support.xdsl_patches import apply as _apply
from ..no_attribute import no_attribute as _no_attribute
from . import hybrid as hybrid
from . import tensor as tensor
from .prim_func import create_prim_func as create_prim_func
from .schedule import Schedule as Schedule
from .schedule import Stage as Stage
from .schedule import create_schedule as create_schedule
from .schedule import located as _located
from .tensor import ComputeOp as ComputeOp
from .tensor import ExternOp as ExternOp
from .tensor import HybridOp as HybridOp
from .tensor import PlaceholderOp as PlaceholderOp
from .tensor import ScanOp as ScanOp
from .tensor import TensorSlice as TensorSlice

_apply()

_OF_TIR = ("add", "logaddexp", "multiply", "subtract", "trace")

if TYPE_CHECKING:
    from ...dialects.te.axes import thread_axis as thread_axis
    from ...dialects.te.builder import compute as compute
    from ...dialects.te.builder import extern as extern
    from ...dialects.te.builder import placeholder as placeholder
    from ...dialects.te.builder import reduce_axis as reduce_axis
    from ...dialects.te.builder import scan as scan
    from ...dialects.tir.node import Expr

    def __getattr__(name: str) -> Callable[..., Expr]: ...
else:

    def __getattr__(name: str) -> Callable[..., Expr]:
        if name in _OF_TIR:
            from ..tir import op

            return getattr(op, name)
        raise _no_attribute("te", name, globals())

    compute, extern, placeholder = map(_located, (_builder.compute, _builder.extern, _builder.placeholder))
    reduce_axis, scan, thread_axis = map(_located, (_builder.reduce_axis, _builder.scan, _thread_axis))

__all__ = list(_builder.NAMES)  # pyright: ignore[reportUnsupportedDunderAll]
__all__ += ["Schedule", "Stage", "TensorIntrin", "create_prim_func", "create_schedule", "decl_tensor_intrin", "hybrid"]
__all__ += ["ComputeOp", "ExternOp", "HybridOp", "PlaceholderOp", "ScanOp", "TensorSlice", "tag_scope", "thread_axis"]


def __dir__() -> list[str]:
    return sorted({*__all__, *_OF_TIR, "tensor"})
