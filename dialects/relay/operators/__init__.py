"""The operator table, by topic.

A topic is a module that registers its operators when it is imported. Topics stand here in the order in which they are
searched, the commonest first, so that a small program loads few of them.
"""

from __future__ import annotations

from collections.abc import Container
from importlib import import_module

TOPICS = (
    "elementwise.broadcast",
    "elementwise.unary",
    "nn.activations",
    "nn.dense",
    "elementwise.reduce",
    "conv.convolution",
    "shape.reshape",
    "shape.transform",
    "common.layout_strings",
    "shape.create",
    "shape.strided_slice",
    "indexing.gather",
    "indexing.scatter",
    "nn.pooling",
    "nn.normalization",
    "nn.pad",
    "conv.conv_transpose",
    "misc.annotation",
    "qnn.quantized",
    "qnn.quantized_unary",
    "image.resize",
    "conv.deformable",
    "sorting.sort",
    "shape.dyn",
    "vision.nms",
    "vision.rois",
    "misc.random",
    "image.grid_sample",
    "nn.losses",
    "nn.gradient_operators",
    "misc.signal",
    "indexing.sparse",
    "qnn.simulated",
    "winograd.winograd_convolution",
    "winograd.winograd_halves",
    "misc.vm",
    "nn.sparse_dense",
    "nn.bitserial",
    "conv.gemm_convolution",
)
"""Modules of this package; each registers the operators that it defines."""

_loaded = 0


def load(name: str, table: Container[str]) -> None:
    """Imports topics until `table` holds the operator `name`; all of them for an unknown name."""
    global _loaded
    while name not in table and _loaded < len(TOPICS):
        import_module(f"{__name__}.{TOPICS[_loaded]}")
        _loaded += 1


def load_all() -> None:
    """Imports every topic."""
    load("", ())
