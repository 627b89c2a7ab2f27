"""What products with sparse matrices say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

ERRORS = [
    ("nn.sparse_dense", {}, "2,3 4 5:int32 3:int32", "nn.sparse_dense: 'sparse_indices' (Tensor[(5), int32]) must have a column for each of 'sparse_data' (Tensor[(4), float32])"),
    ("nn.sparse_dense", {}, "2,3 4 4:int32 0:int32", "nn.sparse_dense: 'sparse_indptr' (Tensor[(0), int32]) must say where each row begins and the last ends"),
    ("nn.sparse_add", {}, "2,3 4 4:int32 4:int32", "nn.sparse_add: 'dense_data' (Tensor[(2, 3), float32]) must have the 3 rows of the sparse matrix"),
    ("nn.sparse_conv2d", {"kernel_size": (3, 3)}, "1,2,2,4 1,2,2 1:int32 2:int32", "nn.sparse_conv2d: kernel_size=[3, 3] must be [1, 1]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_compressed_rows(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
