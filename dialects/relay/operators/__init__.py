"""Lists the modules of the operator table, of gradients and of layout rules.

Each module registers its operators (or the gradients or layout rules of operators) when it is imported. Topics are listed
in the order in which they are searched, the most common first, so that a small program imports few of them.
"""

from __future__ import annotations

from collections import Counter
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
"""Modules of this package; each registers the operators that it defines (`operator.register`)."""

GRADIENTS = ("common.gradients", "nn.layer_gradients", "shape.move_gradients")
"""Modules of this package; each registers the gradients that it defines (`gradient.gradient`)."""

LAYOUT_RULES = ("common.layout_rules",)
"""Modules of this package; each registers the layout rules that it defines (`layouts.layout_rule`)."""

_imported: Counter[tuple[str, ...]] = Counter()


def load(name: str, table: Container[str], modules: tuple[str, ...] = TOPICS) -> None:
    """Imports `modules` in order until `table` holds the operator `name`; all of them for an unknown name."""
    while name not in table and _imported[modules] < len(modules):
        import_module(f"{__name__}.{modules[_imported[modules]]}")
        _imported[modules] += 1


def load_all(modules: tuple[str, ...] = TOPICS) -> None:
    """Imports all of `modules`."""
    load("", (), modules)
