"""`topi.vision`: the operators of detection on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.api.relay.op.make import Numbers as _Numbers
from mirstack.dialects.te.tensor import Tensor as _Tensor
from mirstack.topi.vision import rcnn as rcnn
from mirstack.topi.vision import ssd as ssd
from typing import Any as _Any
from typing import Literal as _Literal
from typing import overload as _overload

def all_class_non_max_suppression(
    boxes: _Tensor,
    scores: _Tensor,
    max_output_boxes_per_class: _Tensor,
    iou_threshold: _Tensor,
    score_threshold: _Tensor,
    output_format: str = "onnx",
    strict: bool = False,
) -> _Tensor: ...
def get_valid_counts(
    data: _Tensor, score_threshold: _Tensor | _Numbers, id_index: int = 0, score_index: int = 1
) -> list[_Tensor]: ...
def multibox_prior(
    data: _Tensor,
    sizes: _Numbers = (1.0,),
    ratios: _Numbers = (1.0,),
    steps: _Numbers = (-1.0, -1.0),
    offsets: _Numbers = (0.5, 0.5),
    clip: bool = False,
) -> _Tensor: ...
def multibox_transform_loc(
    cls_prob: _Tensor,
    loc_pred: _Tensor,
    anchor: _Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: _Numbers = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> list[_Tensor]: ...
@_overload
def non_max_suppression(
    data: _Tensor,
    valid_count: _Tensor,
    indices: _Tensor,
    max_output_size: _Tensor | _Numbers = -1,
    iou_threshold: _Tensor | _Numbers = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: _Literal[True] = True,
    invalid_to_bottom: bool = False,
) -> list[_Tensor]: ...
@_overload
def non_max_suppression(
    data: _Tensor,
    valid_count: _Tensor,
    indices: _Tensor,
    max_output_size: _Tensor | _Numbers = -1,
    iou_threshold: _Tensor | _Numbers = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    *,
    return_indices: _Literal[False],
    invalid_to_bottom: bool = False,
) -> _Tensor: ...
@_overload
def non_max_suppression(
    data: _Tensor,
    valid_count: _Tensor,
    indices: _Tensor,
    max_output_size: _Tensor | _Numbers = -1,
    iou_threshold: _Tensor | _Numbers = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> _Tensor | list[_Tensor]: ...
def proposal(
    cls_prob: _Tensor,
    bbox_pred: _Tensor,
    im_info: _Tensor,
    scales: _Numbers,
    ratios: _Numbers,
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> _Tensor: ...
def regular_non_max_suppression(
    boxes: _Tensor,
    scores: _Tensor,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> _Tensor: ...
def reorg(data: _Tensor, stride: int) -> _Tensor: ...
def roi_align(
    data: _Tensor,
    rois: _Tensor,
    pooled_size: _Ints,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
    aligned: bool = False,
) -> _Tensor: ...
def roi_align_nchw(
    data: _Tensor,
    rois: _Tensor,
    pooled_size: _Any,
    spatial_scale: float,
    mode: str | bytes,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> _Tensor: ...
def roi_align_nhwc(
    data: _Tensor,
    rois: _Tensor,
    pooled_size: _Any,
    spatial_scale: float,
    mode: str | bytes,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> _Tensor: ...
def roi_pool(
    data: _Tensor, rois: _Tensor, pooled_size: _Ints, spatial_scale: float, layout: str = "NCHW"
) -> _Tensor: ...
def roi_pool_nchw(data: _Tensor, rois: _Tensor, pooled_size: _Any, spatial_scale: float) -> _Tensor: ...
def yolo_reorg(data: _Tensor, stride: int) -> _Tensor: ...
