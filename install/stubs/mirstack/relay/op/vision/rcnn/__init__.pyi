"""The operators `vision.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.expr import TupleWrapper as _TupleWrapper
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.api.relay.op.make import Numbers as _Numbers
from typing import Literal as _Literal
from typing import overload as _overload

def all_class_non_max_suppression(
    boxes: _RelayExpr,
    scores: _RelayExpr,
    max_output_boxes_per_class: _RelayExpr,
    iou_threshold: _RelayExpr,
    score_threshold: _RelayExpr,
    output_format: str = "onnx",
    strict: bool = False,
) -> _Call: ...
def get_valid_counts(
    data: _RelayExpr, score_threshold: _RelayExpr | _Numbers, id_index: int = 0, score_index: int = 1
) -> _TupleWrapper: ...
def multibox_prior(
    data: _RelayExpr,
    sizes: _Numbers = (1.0,),
    ratios: _Numbers = (1.0,),
    steps: _Numbers = (-1.0, -1.0),
    offsets: _Numbers = (0.5, 0.5),
    clip: bool = False,
) -> _Call: ...
def multibox_transform_loc(
    cls_prob: _RelayExpr,
    loc_pred: _RelayExpr,
    anchor: _RelayExpr,
    clip: bool = True,
    threshold: float = 0.01,
    variances: _Numbers = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> _TupleWrapper: ...
@_overload
def non_max_suppression(
    data: _RelayExpr,
    valid_count: _RelayExpr,
    indices: _RelayExpr,
    max_output_size: _RelayExpr | _Numbers = -1,
    iou_threshold: _RelayExpr | _Numbers = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: _Literal[True] = True,
    invalid_to_bottom: bool = False,
) -> _TupleWrapper: ...
@_overload
def non_max_suppression(
    data: _RelayExpr,
    valid_count: _RelayExpr,
    indices: _RelayExpr,
    max_output_size: _RelayExpr | _Numbers = -1,
    iou_threshold: _RelayExpr | _Numbers = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    *,
    return_indices: _Literal[False],
    invalid_to_bottom: bool = False,
) -> _Call: ...
@_overload
def non_max_suppression(
    data: _RelayExpr,
    valid_count: _RelayExpr,
    indices: _RelayExpr,
    max_output_size: _RelayExpr | _Numbers = -1,
    iou_threshold: _RelayExpr | _Numbers = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> _Call | _TupleWrapper: ...
def proposal(
    cls_prob: _RelayExpr,
    bbox_pred: _RelayExpr,
    im_info: _RelayExpr,
    scales: _Numbers,
    ratios: _Numbers,
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> _Call: ...
def regular_non_max_suppression(
    boxes: _RelayExpr,
    scores: _RelayExpr,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> _Call: ...
def roi_align(
    data: _RelayExpr,
    rois: _RelayExpr,
    pooled_size: _Ints,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
    aligned: bool = False,
) -> _Call: ...
def roi_pool(
    data: _RelayExpr, rois: _RelayExpr, pooled_size: _Ints, spatial_scale: float, layout: str = "NCHW"
) -> _Call: ...
def yolo_reorg(data: _RelayExpr, stride: int) -> _Call: ...
