"""What operators say of arguments without elements that they would have to take elements of, and of sizes that leave memory."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

ERRORS = [
    ("image.resize2d", {"size": (2, 2)}, "1,2,0,3", "image.resize2d: 'data' (Tensor[(1, 2, 0, 3), float32]) has no elements to take"),
    ("image.crop_and_resize", {"crop_size": (2, 2)}, "1,2,3,0 1,4 1:int32", "image.crop_and_resize: 'data' (Tensor[(1, 2, 3, 0), float32]) has no elements to take"),
    ("image.grid_sample", {}, "1,2,0,3 1,2,3,3", "image.grid_sample: 'data' (Tensor[(1, 2, 0, 3), float32]) has no elements to take"),
    ("random.multinomial", {}, "10:uint64 2,0", "random.multinomial: 'probs' (Tensor[(2, 0), float32]) has no number to draw"),
    ("vision.roi_align", {"pooled_size": (2, 2), "spatial_scale": 1.0}, "1,3,0,4 2,5", "vision.roi_align: the images of 'data' (Tensor[(1, 3, 0, 4), float32]) have no pixels"),
    ("vision.roi_pool", {"pooled_size": (2, 2), "spatial_scale": 1.0}, "0,3,4,4 2,5", "vision.roi_pool: 'data' (Tensor[(0, 3, 4, 4), float32]) has no elements to take"),
    ("vision.proposal", {"scales": (8.0,), "ratios": (1.0,)}, "1,2,0,2 1,4,0,2 1,3", "vision.proposal: 'cls_prob' (Tensor[(1, 2, 0, 2), float32]) has no cells"),
    ("vision.multibox_transform_loc", {}, "1,0,4 1,16 1,4,4", "vision.multibox_transform_loc: 'cls_prob' (Tensor[(1, 0, 4), float32]) has no class to choose"),
    ("vision.multibox_transform_loc", {"keep_background": False}, "1,1,4 1,16 1,4,4", "vision.multibox_transform_loc: 'cls_prob' (Tensor[(1, 1, 4), float32]) has no class to choose"),
    ("vision.multibox_transform_loc", {}, "1,2,4 1,16 0,4,4", "vision.multibox_transform_loc: 'anchor' (Tensor[(0, 4, 4), float32]) must be of one image, as all have its anchors"),
    ("vision.non_max_suppression", {}, "2,3,6 1:int32 2,3:int32 1:int32 1", "vision.non_max_suppression: 'valid_count' (Tensor[(1), int32]) must have a number for each image of 'data' (Tensor[(2, 3, 6), float32])"),
    ("vision.non_max_suppression", {}, "2,3,6 2:int32 2,0:int32 1:int32 1", "vision.non_max_suppression: 'indices' (Tensor[(2, 0), int32]) must have a number for each box of 'data' (Tensor[(2, 3, 6), float32])"),
    ("vision.regular_non_max_suppression", {"max_detections_per_class": 1, "max_detections": 1, "num_classes": 2, "iou_threshold": 0.5, "score_threshold": 0.5}, "1,0,4 1,0,2", "vision.regular_non_max_suppression: 'boxes' (Tensor[(1, 0, 4), float32]) has no boxes"),
    ("nn.conv2d", {}, "1,2,3,3 4,2,0,1", "nn.conv2d: 'weight' (Tensor[(4, 2, 0, 1), float32]) has a window of no elements"),
    ("nn.conv1d_transpose", {}, "1,2,3 2,4,0", "nn.conv1d_transpose: 'weight' (Tensor[(2, 4, 0), float32]) has a window of no elements"),
    ("image.dilation2d", {}, "1,2,3,3 2,1,0", "image.dilation2d: 'weight' (Tensor[(2, 1, 0), float32]) has a window of no elements"),
    ("nn.deformable_conv2d", {}, "1,2,3,3 1,0,4,4 2,2,0,1", "nn.deformable_conv2d: 'weight' (Tensor[(2, 2, 0, 1), float32]) has a window of no elements"),
    ("qnn.dense", {}, "2,4:int8 3,4:int8 :int32 0:int32 S S", "qnn.dense: 'kernel_zero_point' (Tensor[(0), int32]) has no elements"),
    ("sparse_to_dense", {"output_shape": (3, 4)}, "0,2:int32 2 S", "sparse_to_dense: 'sparse_values' (Tensor[(2), float32]) must be one value, or one for each index of 'sparse_indices' (Tensor[(0, 2), int32])"),
    ("dyn.sparse_to_dense", {}, "2,1:int32 3 S 1:int64", "dyn.sparse_to_dense: 'sparse_values' (Tensor[(3), float32]) must be one value, or one for each index of 'sparse_indices' (Tensor[(2, 1), int32])"),
    ("dyn.strided_slice", {}, "3,4 3:int64 2:int64 1:int64", "dyn.strided_slice: 'begin' (Tensor[(3), int64]) has more entries than the 2 axes sliced"),
    ("dyn.strided_slice", {"axes": (2,)}, "3,4 1:int64 1:int64 1:int64", "dyn.strided_slice: axes=2 is out of range: the tensor has rank 2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_empty(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
