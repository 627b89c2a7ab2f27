"""Registers the functions that convert ATen operators, by name without overload."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from ...passes.rules.engine.rewriter import RuleIndex
from ...passes.rules.engine.shipped import read_shipped

Converter: TypeAlias = "Callable[..., Any]"
"""Takes the node, then the operator's arguments in the order of its schema: `def permute(node, x, dims)`.

It returns a tensor, or a list of results; None for one that cannot be asked for.
"""

MODULES = (
    "attention", "creation", "elementwise", "gradients", "indexing", "matrices", "normalization", "padding", "pooling", "reduction",
    "resampling", "shape", "sorting",
)  # fmt: skip
"""Modules of `operators/`; importing one registers its converters."""

FILES = ("elementwise.mir", "plain.mir")
"""The files of rules, in `operators/`. Operands of operators in the first are converted to one dtype before rules see them."""

_CONVERTERS: dict[str, Converter] = {}


def operator(*names: str) -> Callable[[Converter], Converter]:
    """Registers a function that converts these operators.

    @operator("permute")
    def permute(node: FxNode, x: SSAValue, dims: Sequence[int]) -> SSAValue: ...
    """

    def register(converter: Converter) -> Converter:
        for name in names:
            _CONVERTERS[name] = converter
        return converter

    return register


@cache
def converters() -> dict[str, Converter]:
    """Returns all converters by the operator's name, `permute`."""
    for module in MODULES:
        import_module(f"{__package__}.operators.{module}")
    return _CONVERTERS


@cache
def rule_files() -> tuple[RuleIndex, ...]:
    """Returns the rules of all files."""
    folder = Path(__file__).parent / "operators"
    return tuple(read_shipped(folder / name) for name in FILES)


@cache
def ruled(file: int | None = None) -> frozenset[str]:
    """Returns the operators that rules convert, those of one file or all."""
    files = rule_files() if file is None else rule_files()[file : file + 1]
    return frozenset(name.removeprefix("torch.aten.") for rules in files for name in rules.by_root)


def is_converted(name: str) -> bool:
    """Returns whether an operator is converted, by rules or by a function."""
    return name in ruled() or name in converters()
