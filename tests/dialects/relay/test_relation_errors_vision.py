"""What operators of vision, of grids and of random numbers say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

ERRORS = [
    ("vision.get_valid_counts", {}, "1,3,6 2", "vision.get_valid_counts: 'score_threshold' (Tensor[(2), float32]) must be one number"),
    ("vision.get_valid_counts", {"score_index": 6}, "1,3,6 1", "vision.get_valid_counts: score_index=6 lies beyond the 6 numbers of a box"),
    ("vision.non_max_suppression", {"coord_start": 3}, "1,3,6 1:int32 1,3:int32 1:int32 1", "vision.non_max_suppression: coord_start=3 lies beyond the 6 numbers of a box"),
    ("vision.all_class_non_max_suppression", {}, "1,3,5 1,2,3 1:int64 1 1", "vision.all_class_non_max_suppression: 'boxes' (Tensor[(1, 3, 5), float32]) must have boxes of 4 numbers"),
    ("vision.all_class_non_max_suppression", {}, "1,3,4 1,2,4 1:int64 1 1", "'boxes' (Tensor[(1, 3, 4), float32]) and 'scores' (Tensor[(1, 2, 4), float32]) differ in the number of boxes"),
    ("vision.all_class_non_max_suppression", {"output_format": "x"}, "1,3,4 1,2,3 1:int64 1 1", "vision.all_class_non_max_suppression: output_format='x' must be onnx or tensorflow"),
    ("vision.regular_non_max_suppression", {"max_detections_per_class": 1, "max_detections": 1, "num_classes": 3, "iou_threshold": 0.5, "score_threshold": 0.5}, "1,3,4 1,3,2", "vision.regular_non_max_suppression: num_classes=3 must be between 1 and the 2 labels of 'scores' (Tensor[(1, 3, 2), float32])"),
    ("vision.multibox_prior", {"sizes": ()}, "1,3,4,4", "vision.multibox_prior: sizes and ratios must have a number each"),
    ("vision.multibox_prior", {"steps": (1.0,)}, "1,3,4,4", "vision.multibox_prior: steps=[1.0] must be two numbers, of y and of x"),
    ("vision.multibox_transform_loc", {}, "1,3,4 1,15 1,4,4", "vision.multibox_transform_loc: 'cls_prob' (Tensor[(1, 3, 4), float32]), 'loc_pred' (Tensor[(1, 15), float32]) and 'anchor' (Tensor[(1, 4, 4), float32]) must be of the same anchors, with 4 numbers each"),
    ("vision.multibox_transform_loc", {"variances": (0.1,)}, "1,3,4 1,16 1,4,4", "vision.multibox_transform_loc: variances=[0.1] must be four numbers"),
    ("vision.roi_pool", {"pooled_size": (2, 2), "spatial_scale": 1.0, "layout": "NHWC"}, "1,3,4,4 2,5", "vision.roi_pool: layout='NHWC' must be NCHW"),
    ("vision.roi_align", {"pooled_size": (2, 2), "spatial_scale": 1.0}, "1,3,4,4 2,4", "vision.roi_align: 'rois' (Tensor[(2, 4), float32]) must have rows (batch, left, top, right, bottom)"),
    ("vision.roi_align", {"pooled_size": (2,), "spatial_scale": 1.0}, "1,3,4,4 2,5", "vision.roi_align: pooled_size=[2] must be two positive numbers"),
    ("vision.roi_align", {"pooled_size": (2, 2), "spatial_scale": 1.0, "mode": "x"}, "1,3,4,4 2,5", "vision.roi_align: mode='x' must be avg, max or max_pixel"),
    ("vision.proposal", {"scales": (8.0,), "ratios": (1.0,)}, "1,4,2,2 1,4,2,2 1,3", "vision.proposal: for 1 anchors 'cls_prob' (Tensor[(1, 4, 2, 2), float32]) must have 2 channels and 'bbox_pred' (Tensor[(1, 4, 2, 2), float32]) 4"),
    ("vision.proposal", {"scales": (8.0,), "ratios": (1.0,)}, "1,2,2,2 1,4,2,2 1,2", "vision.proposal: 'im_info' (Tensor[(1, 2), float32]) must have rows (height, width, scale)"),
    ("vision.proposal", {"scales": (8.0,), "ratios": (1.0,)}, "2,2,2,2 1,4,2,2 2,3", "vision.proposal: 'cls_prob' (Tensor[(2, 2, 2, 2), float32]) and 'bbox_pred' (Tensor[(1, 4, 2, 2), float32]) must have as many images"),
    ("vision.proposal", {"scales": (8.0,), "ratios": (1.0,)}, "1,2,2,2 1,4,2,3 1,3", "vision.proposal: 'cls_prob' (Tensor[(1, 2, 2, 2), float32]) and 'bbox_pred' (Tensor[(1, 4, 2, 3), float32]) must have as many cells in a row"),
    ("vision.proposal", {"scales": (8.0,), "ratios": (1.0,)}, "1,2,2,2 1,4,2,2 2,3", "vision.proposal: 'im_info' (Tensor[(2, 3), float32]) must have a row for each image of 'cls_prob' (Tensor[(1, 2, 2, 2), float32])"),
    ("vision.multibox_transform_loc", {}, "1,2,3 2,12 1,3,4", "vision.multibox_transform_loc: 'loc_pred' (Tensor[(2, 12), float32]) must have a row for each image of 'cls_prob' (Tensor[(1, 2, 3), float32])"),
    ("vision.proposal", {"scales": (8.0,), "ratios": (1.0,), "rpn_post_nms_top_n": 0}, "1,2,2,2 1,4,2,2 1,3", "vision.proposal: rpn_post_nms_top_n=0 must be positive"),
    ("vision.yolo_reorg", {"stride": 2}, "1,4,3,4", "vision.yolo_reorg: stride=2 must divide the height and width of 'data' (Tensor[(1, 4, 3, 4), float32]), its square the channels"),
    ("random.uniform", {"out_shape": (2,), "out_dtype": "float16"}, "10:uint64 :float16 :float16", "random.uniform: out_dtype='float16' must be float32 or float64"),
    ("random.multinomial", {"num_samples": 0}, "10:uint64 3", "random.multinomial: num_samples=0 must be positive"),
    ("random.threefry_split", {}, "9:uint64", "argument key is Tensor[(9), uint64], not Tensor[(10), uint64]"),
    ("image.affine_grid", {"target_shape": (2, 2)}, "1,3,3", "image.affine_grid: 'data' (Tensor[(1, 3, 3), float32]) must have matrices of 2 rows and 3 columns"),
    ("image.affine_grid", {"target_shape": (2, 1)}, "1,2,3", "image.affine_grid: target_shape=[2, 1] must be two numbers above 1"),
    ("image.grid_sample", {"layout": "NHWC"}, "1,2,3,3 1,2,3,3", "image.grid_sample: layout='NHWC' must be NCHW for 'data' (Tensor[(1, 2, 3, 3), float32])"),
    ("image.grid_sample", {"layout": "NCDHW", "method": "bicubic"}, "1,2,3,3,3 1,3,3,3,3", "image.grid_sample: method='bicubic' must be one of bilinear, nearest"),
    ("image.grid_sample", {}, "1,2,3,3 1,3,3,3", "image.grid_sample: 'grid' (Tensor[(1, 3, 3, 3), float32]) must be (batch, 2, places…) for 'data' (Tensor[(1, 2, 3, 3), float32])"),
    ("nn.correlation", {"layout": "NHWC"}, "1,2,3,3 1,2,3,3", "nn.correlation: layout='NHWC' must be NCHW"),
    ("nn.correlation", {"kernel_size": 2}, "1,2,3,3 1,2,3,3", "nn.correlation: kernel_size=2 must be odd and positive"),
    ("nn.correlation", {"stride1": 0}, "1,2,3,3 1,2,3,3", "nn.correlation: stride1=0 and stride2=1 must be positive, max_displacement=1 not negative, padding=[0, 0] 1, 2 or 4 numbers"),
    ("nn.correlation", {}, "1,2,3,3 1,2,3,4", "nn.correlation: 'data1' (Tensor[(1, 2, 3, 3), float32]) and 'data2' (Tensor[(1, 2, 3, 4), float32]) must have the same shape"),
    ("nn.correlation", {"max_displacement": 2}, "1,2,3,3 1,2,3,3", "nn.correlation: the window is larger than 'data1' (Tensor[(1, 2, 3, 3), float32]) with its padding"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_vision(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
