"""The operator table, by topic.

A topic is a module that registers its operators when it is imported. Topics stand here in the order in which they are
searched, the commonest first, so that a small program loads few of them.
"""

from __future__ import annotations

from collections.abc import Container
from importlib import import_module

TOPICS = (
    "broadcast", "elemwise", "nn_basic", "nn_dense", "reduce", "nn_conv", "reshape", "transform", "layout", "create",
    "slices", "indexing", "scatter", "nn_pool", "nn_norm", "nn_pad", "nn_conv_transpose", "annotation", "qnn", "qnn_unary", "image", "nn_deformable", "algorithm", "dyn",
    "vision", "vision_rois", "random", "image_grid", "nn_loss", "nn_grad", "signal", "sparse", "qnn_simulated", "nn_winograd", "nn_winograd_parts", "vm", "nn_sparse", "nn_bitserial", "nn_gemm",
)  # fmt: skip
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
