"""What operators of sparse tensors, windows and signals say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

ERRORS = [
    ("sparse_fill_empty_rows", {}, "3,2:int64 4:int64 2:int64 :int64", "sparse_fill_empty_rows: 'sparse_values' (Tensor[(4), int64]) must have a value for each row of 'sparse_indices' (Tensor[(3, 2), int64])"),
    ("sparse_fill_empty_rows", {}, "3,2:int64 3:int64 3:int64 :int64", "sparse_fill_empty_rows: 'dense_shape' (Tensor[(3), int64]) must have a number for each of the 2 axes of 'sparse_indices' (Tensor[(3, 2), int64])"),
    ("sparse_fill_empty_rows", {}, "3,2:int64 3:int64 2:int64 2:int64", "sparse_fill_empty_rows: 'default_value' (Tensor[(2), int64]) must be one number"),
    ("adv_index", {}, "(2,3)", "adv_index: 0 tensors of indices for a tensor of rank 2"),
    ("adv_index", {}, "(2,3 2)", "adv_index: the indices must be of an integer dtype"),
    ("adv_index", {}, "(2,3 2:int32 3:int32)", "adv_index: the indices do not broadcast along dimension 0"),
    ("sliding_window", {"axis": 0, "window_shape": (2,), "strides": (1,)}, "3,3", "sliding_window: window_shape=[2] and strides=[1] must have 2 positive numbers, for the axes of 'data' (Tensor[(3, 3), float32]) from 0 on"),
    ("sliding_window", {"axis": 1, "window_shape": (4,), "strides": (1,)}, "3,3", "sliding_window: the window of 4 is longer than axis 1 of 'data' (Tensor[(3, 3), float32])"),
    ("fixed_point_multiply_per_axis", {"axes": (0,)}, "3,3 3:int32 3:int32 3:int32", "fixed_point_multiply_per_axis: 'data' (Tensor[(3, 3), float32]) must be of int32"),
    ("sparse_to_dense", {"output_shape": (1, 1)}, "1,3:int32 1 S", "sparse_to_dense: 'sparse_indices' (Tensor[(1, 3), int32]) has 3 indices for each value, but the result has 2 axes"),
    ("sparse_to_dense", {"output_shape": ()}, "3:int32 3 S", "has 1 index for each value, but the result has 0 axes"),
    ("dyn.sparse_to_dense", {}, "1,3:int32 1 S 2:int64", "dyn.sparse_to_dense: 'sparse_indices' (Tensor[(1, 3), int32]) has 3 indices for each value, but the result has 2 axes"),
    ("matrix_set_diag", {"k1": 1, "k2": 1}, "1,3,3 1,1", "matrix_set_diag: the longest diagonal of 'input' (Tensor[(1, 3, 3), float32]) has 2 elements, but 'diagonal' (Tensor[(1, 1), float32]) has room for 1"),
    ("matrix_set_diag", {"k1": -1, "k2": 1}, "3,3 3,2", "the longest diagonal of 'input' (Tensor[(3, 3), float32]) has 3 elements, but 'diagonal' (Tensor[(3, 2), float32]) has room for 2"),
    ("dft", {}, "3:int32 3:int32", "dft: 're_data' (Tensor[(3), int32]) must be of a floating-point dtype"),
    ("dft", {}, "3 4", "dft: 're_data' (Tensor[(3), float32]) and 'im_data' (Tensor[(4), float32]) must have the same shape"),
    ("stft", {"n_fft": 2, "hop_length": 1, "win_length": 3}, "4 3", "stft: n_fft=2, hop_length=1 and win_length=3 must be positive, win_length not above n_fft"),
    ("stft", {"n_fft": 3, "hop_length": 1, "win_length": 3}, "4 2", "stft: 'window' (Tensor[(2), float32]) has fewer elements than win_length=3"),
    ("stft", {"n_fft": 5, "hop_length": 1, "win_length": 3}, "4 3", "stft: 'data' (Tensor[(4), float32]) is shorter than a window of n_fft=5"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_sparse(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
