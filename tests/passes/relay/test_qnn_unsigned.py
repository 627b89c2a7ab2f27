"""Quantized products as native code: exact, whatever the zero points, on processors with dot products of bytes and without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.api.compile import load
from mirstack.lowering.pipeline import Options, lowering_passes
from mirstack.parser import print_mir
from mirstack.passes.relay.quantize.qnn_canonicalize_ops import QnnCanonicalizeOps
from mirstack.support.target import named
from xdsl.context import Context

CPUS = (None, "haswell") if named("").arch == "x86_64" else (None,)

CONV = """qnn.conv2d(%x, meta[relay.Constant][w], {zx}, {zw}, 0.5f, 0.25f, padding=[1, 1, 1, 1], channels=20, kernel_size=[3, 3],
    out_dtype="int32", data_layout="{layout}", kernel_layout="{kernel}")"""
DENSE = 'qnn.dense(%x, meta[relay.Constant][w], {zx}, {zw}, 0.5f, 0.25f, units=50, out_dtype="int32")'
KINDS = {
    "NHWC": (CONV, (1, 6, 7, 12), (3, 3, 12, 20), "HWIO"),
    "NCHW": (CONV, (1, 12, 6, 7), (20, 12, 3, 3), "OIHW"),
    "dense": (DENSE, (9, 70), (50, 70), ""),
}


def model(folder: Path, kind: str, x: str, w: str, zx: int, zw: int) -> Path:
    """A file with one product of a parameter and a constant, requantized."""
    call, data, weight, kernel = KINDS[kind]
    limits = np.iinfo(w)
    values = np.random.default_rng(0).integers(limits.min, limits.max, weight, endpoint=True).astype(w)
    np.savez(folder / "weights.npz", w=values)
    path = folder / "product.mir"
    path.write_text(
        f"""#[version = "0.0.5"]
#[constants = "weights.npz"]
def @main(%x: Tensor[{data}, {x}]) {{
  %0 = {call.format(zx=zx, zw=zw, layout=kind, kernel=kernel)};
  qnn.requantize(%0, 0.125f, 0, 40.0f, 4, out_dtype="int8")
}}"""
    )
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("x", "w", "zx", "zw"),
    [
        ("int8", "int8", 3, 0),
        ("uint8", "int8", 7, 0),
        ("uint8", "uint8", 130, 128),
        ("int8", "uint8", -3, 130),
        ("int8", "int8", 0, -5),
    ],
)
def test_native_products_are_exact(kind: str, x: str, w: str, zx: int, zw: int, tmp_path: Path) -> None:
    path = model(tmp_path, kind, x, w, zx, zw)
    limits = np.iinfo(x)
    shape = KINDS[kind][1]
    data: np.ndarray[Any, Any] = (
        np.random.default_rng(1).integers(limits.min, limits.max, shape, endpoint=True).astype(x)
    )
    data[0, 0], data[0, 1] = limits.min, limits.max
    expected = mirstack.compile(path, "interp")(data)
    assert np.asarray(expected).std() > 10
    for cpu in CPUS:
        np.testing.assert_array_equal(mirstack.compile(path, cpu=cpu)(data), expected)


@pytest.mark.parametrize(("size", "channels", "padding"), [(7, 24, 1), (13, 20, 1), (17, 9, 0), (14, 40, 1)])
def test_pairs_of_products_that_16_bits_do_not_hold(size: int, channels: int, padding: int, tmp_path: Path) -> None:
    """Of images whose rows have few divisors."""
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([0, 255, 3], "uint8"), (1, 6, size, size))
    w = rng.choice(np.array([-128, 127], "int8"), (channels, 6, 3, 3))
    np.savez(tmp_path / "weights.npz", w=w)
    path = tmp_path / "extremes.mir"
    path.write_text(
        f"""#[version = "0.0.5"]
#[constants = "weights.npz"]
def @main(%x: Tensor[(1, 6, {size}, {size}), uint8]) {{
  qnn.conv2d(%x, meta[relay.Constant][w], 3, 0, 1f, 1f, channels={channels}, kernel_size=[3, 3], padding=[{padding}, {padding}, {padding}, {padding}], out_dtype="int32")
}}"""
    )
    centered = np.pad(x.astype("int64") - 3, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    windows = np.lib.stride_tricks.sliding_window_view(centered, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwyx,ocyx->nohw", windows, w.astype("int64"))
    for cpu in (*CPUS, *(["x86-64"] if len(CPUS) > 1 else [])):
        for threads in (1, 2):
            np.testing.assert_array_equal(mirstack.compile(path, cpu=cpu, threads=threads)(x), expected)


@pytest.mark.parametrize(("x", "w"), [("int8", "int8"), ("int8", "uint8"), ("uint8", "uint8")])
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_unsigned_and_signed_bytes(kind: str, x: str, w: str, tmp_path: Path) -> None:
    module = load(model(tmp_path, kind, x, w, 1, 2))
    QnnCanonicalizeOps(unsigned=True).apply(Context(), module)
    text = print_mir(module)
    assert 'dtype="uint8"' in text or x == "uint8"
    assert 'dtype="int8") /* ty=Tensor[' in text and "qnn." not in text


def test_what_is_no_constant_stays() -> None:
    text = (
        "def @main(%x: Tensor[(4, 8), int8], %w: Tensor[(6, 8), int8]) { qnn.dense(%x, %w, 1, 0, 0.5f, 0.5f, units=6) }"
    )
    module = mirstack.parse(text)
    QnnCanonicalizeOps(unsigned=True).apply(Context(), module)
    assert 'dtype="uint8"' not in print_mir(module)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_packed_once(kind: str, tmp_path: Path) -> None:
    module = load(model(tmp_path, kind, "uint8", "int8", 7, 0))
    for step in lowering_passes(Options(cpu="znver4", threads=1)):
        step.apply(Context(), module)
        if step.name == "lift-transform-params":
            break
    text = print_mir(module)
    kernel = text[text.index("_transform_params(") :]
    assert re.search(r"call_tir\(@\w+_transform_params, meta\[relay.Constant\]\[\w+\]", text)
    assert "T.vector_dot(" in kernel


PLAIN = {
    "dense": ("nn.dense(%x, {w}, units=50, {rest})", (9, 70), (50, 70)),
    "conv": (
        "nn.conv2d(%x, {w}, channels=20, kernel_size=[3, 3], padding=[1, 2], {rest})",
        (2, 12, 6, 7),
        (20, 12, 3, 3),
    ),
    "groups": ("nn.conv2d(%x, {w}, channels=20, kernel_size=[3, 3], groups=4, {rest})", (1, 12, 6, 7), (20, 3, 3, 3)),
    "nhwc": (
        'nn.conv2d(%x, {w}, channels=20, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO", {rest})',
        (1, 6, 7, 12),
        (3, 3, 12, 20),
    ),
    "depthwise": (
        "nn.conv2d(%x, {w}, channels=12, kernel_size=[3, 3], groups=12, {rest})",
        (1, 12, 6, 7),
        (12, 1, 3, 3),
    ),
}


def plain(folder: Path, kind: str) -> tuple[Path, tuple[int, ...]]:
    """A file with one product of signed bytes that is not quantized, and the shape of its data."""
    call, data, weight = PLAIN[kind]
    values = np.random.default_rng(0).integers(-128, 127, weight, endpoint=True).astype("int8")
    np.savez(folder / "weights.npz", w=values)
    path = folder / "plain.mir"
    body = call.format(w="meta[relay.Constant][w]", rest='out_dtype="int32"')
    path.write_text(
        f'#[version = "0.0.5"]\n#[constants = "weights.npz"]\ndef @main(%x: Tensor[{data}, int8]) {{\n  {body}\n}}\n'
    )
    return path, data


@pytest.mark.parametrize("kind", PLAIN)
def test_plain_products_of_signed_bytes(kind: str, tmp_path: Path) -> None:
    """Data moved by 128 is multiplied, and what that adds is a constant; each channel by itself stays as it is."""
    path, shape = plain(tmp_path, kind)
    data = np.random.default_rng(1).integers(-128, 127, shape, endpoint=True).astype("int8")
    data.flat[:40], data.flat[40:50] = -128, 127
    expected = mirstack.compile(path, "interp")(data)
    for cpu in CPUS:
        np.testing.assert_array_equal(mirstack.compile(path, cpu=cpu)(data), expected)
    module = load(path)
    QnnCanonicalizeOps(unsigned=True).apply(Context(), module)
    assert ('dtype="uint8"' in print_mir(module)) is (kind != "depthwise")
