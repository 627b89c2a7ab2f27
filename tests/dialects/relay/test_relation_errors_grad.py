"""What losses, gradients and their kin say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

ERRORS = [
    ("nn.cross_entropy", {}, "2,3 2,4", "nn.cross_entropy: 'x' (Tensor[(2, 3), float32]) and 'y' (Tensor[(2, 4), float32]) must have the same shape"),
    ("nn.nll_loss", {"ignore_index": -1}, "2,3 2 3", "nn.nll_loss: 'targets' (Tensor[(2), float32]) must be of an integer dtype"),
    ("nn.nll_loss", {"ignore_index": -1}, "2,3 3:int32 3", "nn.nll_loss: 'targets' (Tensor[(3), int32]) must have the shape of 'predictions' (Tensor[(2, 3), float32]) without its classes, axis 1"),
    ("nn.nll_loss", {"ignore_index": -1, "reduction": "x"}, "2,3 2:int32 3", "nn.nll_loss: reduction='x' must be mean, sum or none"),
    ("nn.dilate", {"strides": (2,)}, "2,3", "nn.dilate: strides=[2] must have a positive number for each axis of 'x' (Tensor[(2, 3), float32])"),
    ("nn.fifo_buffer", {"axis": 0}, "4,3 2,3", "nn.fifo_buffer: 'data' (Tensor[(4, 3), float32]) must have the shape of 'buffer' (Tensor[(2, 3), float32]) except for axis 0, along which it must not be longer"),
    ("nn.max_pool2d_grad", {"pool_size": (2, 2)}, "1,2,3,3 1,2,3,3", "nn.max_pool2d_grad: 'out_grad' (Tensor[(1, 2, 3, 3), float32]) must have the pooling's result's sizes (1, 2, 2, 2) along NCHW"),
    ("nn.conv2d_backward_weight", {"kernel_size": (1, 1), "kernel_layout": "NCHW"}, "2,2,3,3 1,2,3,3", "nn.conv2d_backward_weight: 'grad' (Tensor[(2, 2, 3, 3), float32]) and 'data' (Tensor[(1, 2, 3, 3), float32]) must be of as many images"),
    ("nn.conv2d_backward_weight", {}, "1,2,3,3 1,2,3,3", "nn.conv2d_backward_weight: kernel_size must be given, as two positive numbers"),
    ("nn.conv2d_backward_weight", {"kernel_size": (1, 1), "groups": 3, "kernel_layout": "NCHW"}, "1,3,3,3 1,2,3,3", "nn.conv2d_backward_weight: groups=3 must divide the channels of 'grad' (Tensor[(1, 3, 3, 3), float32]) and 'data' (Tensor[(1, 2, 3, 3), float32])"),
    ("nn.conv2d_backward_weight", {"kernel_size": (2, 2), "kernel_layout": "NCHW"}, "1,3,3,3 1,2,3,3", "nn.conv2d_backward_weight: 'grad' (Tensor[(1, 3, 3, 3), float32]) has 3 elements along H, the convolution's result has 2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_gradients(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
