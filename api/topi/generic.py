"""`topi.generic`: schedules for every operator; injective producers are computed inline.

How fast a program runs is decided by `te.create_prim_func` and `default-schedule`, which schedule by the shape and the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dialects.te.tensor import Tensor
from ...dialects.tir.node import items_of
from ...support.text import did_you_mean
from ..te.schedule import AutoInlineInjective, Schedule, create_schedule

_OF_TENSORS = (
    "adaptive_pool", "argsort", "argwhere", "batch_matmul", "batch_norm", "binarize_pack", "binary_dense",
    "bitserial_conv2d_nchw", "bitserial_conv2d_nhwc", "bitserial_dense", "broadcast", "concatenate", "conv1d_ncw", "conv1d_nwc",
    "conv1d_transpose_ncw", "conv2d_NCHWc", "conv2d_NCHWc_int8", "conv2d_hwcn", "conv2d_nchw", "conv2d_nhwc",
    "conv2d_nhwc_pack", "conv2d_transpose_nchw", "conv2d_winograd_nchw", "conv2d_winograd_nhwc",
    "conv2d_winograd_without_weight_transform", "conv3d_ncdhw", "conv3d_ndhwc", "conv3d_transpose_ncdhw", "correlation_nchw",
    "cumprod", "cumsum", "deformable_conv2d_nchw", "deformable_conv2d_nhwc", "dense", "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "dft", "einsum", "elemwise", "extern", "fifo_buffer", "gather",
    "get_valid_counts", "group_conv1d_ncw", "group_conv2d_nchw", "group_conv2d_nhwc", "group_conv2d_transpose_nchw", "group_norm",
    "index_put", "injective", "instance_norm", "invert_permutation", "l2_normalize", "layer_norm", "log_softmax", "lrn", "lstm",
    "matmul", "multibox_detection", "multibox_prior", "multibox_transform_loc", "nms", "pool", "pool_grad", "proposal",
    "reduce", "reorg", "reverse_sequence", "rms_norm", "roi_align", "roi_pool", "scan", "scatter", "scatter_elements",
    "scatter_nd", "searchsorted", "sliding_window", "softmax", "sort", "sparse_conv2d", "sparse_dense", "sparse_fill_empty_rows",
    "sparse_reshape", "sparse_to_dense", "sparse_transpose", "stft", "topk", "trilu", "unique", "upsampling",
)  # fmt: skip
"""What `schedule_…` is there for."""

NAMES = tuple(f"schedule_{name}" for name in _OF_TENSORS)


def default_schedule(outs: Tensor | Sequence[Tensor], auto_inline: bool = True) -> Schedule:
    """Returns the schedule of tensors, injective producers computed inline if asked."""
    several: list[Tensor] = [outs] if isinstance(outs, Tensor) else list(outs)
    schedule = create_schedule([tensor.op for tensor in several])
    if auto_inline:
        AutoInlineInjective(schedule)
    return schedule


def schedule_injective_from_existing(sch: Schedule, out: Tensor) -> Schedule:
    """Schedules one injective stage of a schedule: its loops are fused to one."""
    if out.op.axis:
        sch[out].fuse(*sch[out].op.axis)
    return sch


def _tensors(args: tuple[Any, ...]) -> Any:
    """Returns the first argument that is a tensor or a list."""
    kinds = [each for each in args if isinstance(each, Tensor) or items_of(each) is not None]
    return kinds[0] if kinds else None


def _scheduler(name: str) -> Callable[..., Schedule]:
    def schedule(*args: Any) -> Schedule:
        outs = _tensors(args)
        if outs is None:
            raise TypeError(f"topi.generic.{name} takes the tensors to compute")
        return default_schedule(outs)

    schedule.__name__ = name
    schedule.__doc__ = "Returns the schedule of the given tensors; injective producers are computed inline."
    return schedule


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'mirstack.topi.generic' has no attribute '{name}'{did_you_mean(name, NAMES)}")
    found = globals()[name] = _scheduler(name)
    return found


def __dir__() -> list[str]:
    return sorted({"default_schedule", "schedule_injective_from_existing", *NAMES})
