"""Schedules by kind of operator, and comparisons, as TVM's tests of TOPI take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...build import build
from ...target import Target
from ...te.schedule import Schedule
from ...testing import assert_allclose
from .. import generic, nn

__all__ = [
    "assert_allclose", "compare_numpy_tvm", "dispatch", "get_broadcast_schedule", "get_conv2d_nchw_implement",
    "get_elemwise_schedule", "get_injective_schedule", "get_reduce_schedule",
]  # fmt: skip


def dispatch(target: Any, dispatch_map: Mapping[str, Any]) -> Any:
    """Returns the entry for a target: that of one of its keys or its kind, otherwise `generic`."""
    of = target if isinstance(target, Target) else Target(target)
    for key in (*of.keys, of.kind.name):
        if key in dispatch_map:
            return dispatch_map[key]
    return dispatch_map["generic"]


def _schedule_of(target: Any) -> Callable[..., Schedule]:
    return dispatch(target, {"generic": generic.default_schedule})


get_broadcast_schedule = get_elemwise_schedule = get_injective_schedule = get_reduce_schedule = _schedule_of


def get_conv2d_nchw_implement(target: Any) -> tuple[Callable[..., Any], Callable[..., Schedule]]:
    """Returns the compute and the schedule of convolutions in NCHW."""
    return dispatch(target, {"generic": (nn.conv2d_nchw, generic.schedule_conv2d_nchw)})


def compare_numpy_tvm(
    inputs: Sequence[np.ndarray[Any, Any]],
    output: np.ndarray[Any, Any],
    target: Any,
    device: Any,
    compute: Callable[..., Any],
    schedule: Callable[..., Any],
) -> None:
    """Raises AssertionError unless a compute on arrays results in `output`."""
    from ...te import placeholder

    tensors = [placeholder(each.shape, each.dtype.name, f"i{number}") for number, each in enumerate(inputs)]
    made = compute(*tensors)
    found = np.empty_like(output)
    build(schedule([made]), [*tensors, made], target)(*inputs, found)
    assert_allclose(found, output, rtol=1e-4, atol=1e-5)
