"""Lists the modules of the operator table, of gradients and of layout rules.

Each module registers its operators (or the gradients or layout rules of operators) when it is imported. Topics are listed
in the order in which they are searched, the most common first, so that a small program imports few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")

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
    "nn.matmul_nbits",
    "conv.gemm_convolution",
)
"""Modules of this package; each registers the operators that it defines (`operator.define`)."""

GRADIENTS = ("common.gradients", "nn.layer_gradients", "shape.move_gradients")
"""Modules of this package; each registers the gradients that it defines (`gradient.gradient`)."""

LAYOUT_RULES = ("common.layout_rules",)
"""Modules of this package; each registers the layout rules that it defines (`layouts.layout_rule`)."""


NAMESPACES = ("annotation", "dyn", "image", "memory", "nn", "qnn", "random", "vision", "vm")
"""The first words of operators' names that have a dot."""


class Registry(Generic[T]):
    """Entries by the name of an operator, which `modules` of this package add when they are imported."""

    def __init__(self, what: str, modules: tuple[str, ...]):
        self.what = what
        self._modules = modules
        self._imported = 0
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> None:
        """Adds an entry. Raises ValueError where the operator has one."""
        if name in self._entries:
            raise ValueError(f"{self.what} {name} is defined twice")
        self._entries[name] = entry

    def of_operators(self, *names: str) -> Callable[[T], T]:
        """Returns a decorator that adds a function for each of the operators."""

        def add(entry: T) -> T:
            for name in names:
                self.add(name, entry)
            return entry

        return add

    def find(self, name: str) -> T | None:
        """Returns the entry of an operator, importing modules in order until one has it; None if none has."""
        while name not in self._entries and self._imported < len(self._modules):
            import_module(f"{__name__}.{self._modules[self._imported]}")
            self._imported += 1
        return self._entries.get(name)

    def known(self, name: str) -> T | None:
        """Returns the entry of an operator if it is there already, importing nothing."""
        return self._entries.get(name)

    def present(self) -> list[T]:
        """Returns the entries that are there already, importing nothing."""
        return list(self._entries.values())

    def all(self) -> Mapping[str, T]:
        """Returns all entries, every module imported."""
        self.find("")
        return self._entries
