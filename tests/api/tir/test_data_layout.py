"""Layouts by TVM's names: their axes, and maps of indices and shapes between two of them."""

from __future__ import annotations

import pytest
from mirstack import te, tir
from mirstack.support.diagnostics import MirError


def test_axes() -> None:
    layout = tir.layout("NCHW16c", "int64")
    assert (len(layout), layout[0], layout[-1], layout.axes[1].dtype) == (5, "N", "c", "int64")
    assert (layout.index_of("c"), layout.index_of("O"), layout.factor_of("C"), layout.factor_of("N")) == (4, -1, 16, -1)
    assert "W" in layout and "O" not in layout and repr(layout) == "Layout(NCHW16c)"


def test_maps() -> None:
    assert all(tir.bijective_layout(*pair) is None for pair in (("NCHW", "ABCD"), ("__undef__", "NCHW"), ("", "")))
    both = tir.bijective_layout("NCHW", "NHWC16c")
    assert both is not None and repr(both) == "BijectiveLayout(NCHW, NHWC16c)"
    assert both.forward_shape((1, 30, 7, 6)) == [1, 7, 6, 2, 16] and both.backward_shape((1, 7, 6, 2, 16)) == [
        1,
        32,
        7,
        6,
    ]
    assert both.forward_index([0, 18, 6, 5]) == [0, 6, 5, 1, 2] and both.backward_index([0, 6, 5, 1, 2]) == [
        0,
        18,
        6,
        5,
    ]
    c = te.var("c")
    assert list(map(str, both.forward_index([0, c, 1, 2]))) == ["0", "1", "2", "c // 16", "c % 16"]
    with pytest.raises(MirError, match="layout 'NCHW' has 4 axes, but 3 values are given"):
        both.forward_index([1, 2, 3])


def test_what_is_no_layout() -> None:
    with pytest.raises(MirError, match="'N-W' is not a layout"):
        tir.layout("N-W")
    with pytest.raises(MirError, match="'c' of the layout 'NHW4c' is not an axis"):
        tir.layout("NHW4c")
