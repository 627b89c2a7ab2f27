"""Rows that are not read in order: repeated, turned around, padded by what is beside them, resized. Values on several processors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.arith import Analyzer, symbol
from mirstack.dialects.arith.expr import as_expr, floordiv, floormod, maximum, minimum
from mirstack.dialects.relay.operator import get_operator
from mirstack.passes.tir.vectors.lane_permutation import LaneWindow, window_of

Use = tuple[str, tuple[int, ...], str, dict[str, Any]]


def resized(shape: tuple[int, ...], size: tuple[int, int], method: str, mode: str, layout: str = "NCHW") -> Use:
    attrs = {"size": size, "layout": layout, "method": method, "coordinate_transformation_mode": mode}
    return "image.resize2d", shape, "float32", attrs


USES: list[Use] = [
    ("repeat", (3, 40), "float32", {"repeats": 2, "axis": 1}),
    ("repeat", (3, 65), "float32", {"repeats": 3, "axis": 1}),
    ("repeat", (5, 33), "uint8", {"repeats": 2, "axis": 1}),
    ("repeat", (3, 130), "float16", {"repeats": 5, "axis": 1}),
    ("reverse", (2, 31, 3), "float32", {"axis": 2}),
    ("reverse", (2, 133), "int64", {"axis": 1}),
    ("reverse", (3, 37, 3), "float32", {"axis": 1}),
    ("reverse", (2, 50, 4), "uint8", {"axis": 1}),
    ("reverse", (40, 1, 5), "float16", {"axis": 0}),
    ("tile", (2, 100), "float32", {"reps": (1, 3)}),
    ("tile", (2, 37), "float64", {"reps": (2, 4)}),
    ("tile", (20, 7), "float32", {"reps": (1, 5)}),
    ("nn.mirror_pad", (2, 9, 130), "float32", {"mode": "REFLECT", "pad_width": ((0, 0), (2, 1), (3, 5))}),
    ("nn.mirror_pad", (2, 3, 58), "uint8", {"mode": "SYMMETRIC", "pad_width": ((0, 0), (3, 0), (1, 58))}),
    ("nn.mirror_pad", (4, 300), "float16", {"mode": "REFLECT", "pad_width": ((0, 0), (0, 2))}),
    ("nn.mirror_pad", (2, 3), "float32", {"mode": "REFLECT", "pad_width": ((0, 0), (5, 6))}),
    ("nn.mirror_pad", (1, 3), "float32", {"mode": "SYMMETRIC", "pad_width": ((0, 2), (7, 4))}),
    ("nn.mirror_pad", (1, 3), "float32", {"mode": "REFLECT", "pad_width": ((1, 2), (0, 0))}),
    ("strided_slice", (2, 200), "float32", {"begin": (0, 199), "end": (2, 9), "strides": (1, -2)}),
    resized((1, 2, 5, 112), (10, 224), "nearest_neighbor", "asymmetric"),
    resized((1, 2, 5, 75), (7, 100), "nearest_neighbor", "half_pixel"),
    resized((1, 2, 2, 17), (3, 257), "linear", "align_corners"),
    resized((1, 2, 5, 56), (10, 112), "linear", "half_pixel"),
    resized((1, 1, 4, 100), (3, 77), "linear", "half_pixel"),
    resized((1, 6, 20, 3), (12, 40), "linear", "half_pixel", "NHWC"),
    resized((1, 1, 2, 41), (2, 82), "cubic", "half_pixel"),
]


def attribute(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
def test_values(cpu: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    parameters: list[str] = []
    body: list[str] = []
    arrays: list[np.ndarray] = []
    for number, (name, shape, dtype, attrs) in enumerate(USES):
        values = rng.standard_normal(shape) if "float" in dtype else rng.integers(0, 200, shape)
        arrays.append(values.astype(dtype))
        if "float" in dtype:
            arrays[-1].reshape(-1)[:: 17 + number] = np.nan
        parameters.append(f"%x{number}: Tensor[({', '.join(map(str, shape))}), {dtype}]")
        body.append(f"{name}(%x{number}, {', '.join(f'{k}={attribute(v)}' for k, v in attrs.items())})")
    path = tmp_path / "rows.mir"
    path.write_text(f'#[version = "0.0.5"]\ndef @main({", ".join(parameters)}) {{\n  ({", ".join(body)})\n}}\n')
    results = mirstack.compile(path, threads=1, cpu=cpu or None)(*arrays)
    for (name, _, _, attrs), array, result in zip(USES, arrays, results, strict=True):
        operator: Any = get_operator(name)
        wanted = operator.numpy(operator.attrs(attrs), array)
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-4, atol=1e-4, err_msg=f"{name} {attrs}")


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
@pytest.mark.parametrize(
    ("dtype", "widths", "threads"),
    [
        ("float32", (64, 128), 1),
        ("float32", (3, 100, 28, 77, 1), 2),
        ("float64", (33, 34), 1),
        ("float16", (16, 16, 24), 1),
        ("int8", (16, 20, 16), 2),
        ("uint8", (128, 256), 1),
        ("int64", (8,) * 12, 1),
        ("float32", (5,) * 20, 1),
        ("bool", (40, 60), 1),
    ],
)
def test_side_by_side(cpu: str, dtype: str, widths: tuple[int, ...], threads: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [(rng.standard_normal((37, width)) * 50).astype(dtype) for width in widths]
    parameters = ", ".join(f"%x{k}: Tensor[(37, {width}), {dtype}]" for k, width in enumerate(widths))
    body = f"concatenate(({', '.join(f'%x{k}' for k in range(len(widths)))}), axis=-1)"
    module = mirstack.parse(f'#[version = "0.0.5"]\ndef @main({parameters}) {{ {body} }}\n')
    result = mirstack.compile(module, threads=threads, cpu=cpu or None)(*arrays)
    np.testing.assert_array_equal(np.asarray(result), np.concatenate(arrays, -1))


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
@pytest.mark.parametrize(("dtype", "row"), [("int8", 56), ("float16", 23), ("float32", 100)])
def test_padded_rows(cpu: str, dtype: str, row: int) -> None:
    rng = np.random.default_rng(0)
    array = (rng.standard_normal((3, 9, row)) * 50).astype(dtype)
    body = f'nn.pad(%x, cast(3f, dtype="{dtype}"), pad_width=[[0, 0], [2, 1], [3, 5]])'
    module = mirstack.parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(3, 9, {row}), {dtype}]) {{ {body} }}\n')
    result = mirstack.compile(module, threads=1, cpu=cpu or None)(array)
    np.testing.assert_array_equal(np.asarray(result), np.pad(array, ((0, 0), (2, 1), (3, 5)), constant_values=3))


def test_windows() -> None:
    outer, lane, row = symbol("outer"), symbol("lane"), symbol("row")
    analyzer = Analyzer()
    analyzer.bind(outer, 0, 8)
    atom = lane.atom
    assert atom is not None

    def window(e: Any, low: Any, lanes: int = 8) -> LaneWindow | None:
        return window_of(e, atom, as_expr(low), lanes, analyzer)

    assert window(row * 100 + floordiv(lane, as_expr(2)), outer * 8) == LaneWindow(
        row * 100 + outer * 4, 4, (0, 0, 1, 1, 2, 2, 3, 3)
    )
    # Numbers alone: reflected at both ends.
    reflected = maximum(lane - 2, 2 - lane)
    assert window(minimum(reflected, 6 - reflected) + row, 0) == LaneWindow(row, 4, (2, 1, 0, 1, 2, 3, 2, 1))
    # No window: where the distances depend on more than the lane, and where they are too large.
    assert window(floordiv(lane + row, as_expr(2)), outer * 8) is None
    assert window(floormod(lane * 31, as_expr(97)), 0) is None


def test_loads_of_a_window() -> None:
    assert LaneWindow(as_expr(5), 4, (3, 2, 1, 0)).loads == ((0,), 4, (3, 2, 1, 0))
    # Five elements: two vectors of four, which overlap.
    assert LaneWindow(as_expr(5), 5, (0, 2, 4, 4)).loads == ((0, 1), 4, (0, 2, 7, 7))
    assert LaneWindow(as_expr(5), 1, (0, 0)).loads == ((0,), 1, (0, 0))
