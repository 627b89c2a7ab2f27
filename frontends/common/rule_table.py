"""Holds the converters of a framework's operators: files of rules, and functions by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Generic, TypeVar

from ...passes.rules.engine.rewriter import RuleIndex
from ...passes.rules.engine.shipped import read_shipped

Converter = TypeVar("Converter")


class RuleTable(Generic[Converter]):
    """Finds rules and functions in the package `operators` beside a module.

    table = RuleTable(__package__, __file__, "jax.", modules=("shape",), files=("elementwise.mir",))

    `prefix` is the level's in the names of nodes: rules of `stablehlo.tanh` match `jax.stablehlo.tanh`.
    """

    def __init__(self, package: str, file: str, prefix: str, modules: Sequence[str], files: Sequence[str]):
        self._package, self._folder, self._prefix = package, Path(file).parent / "operators", prefix
        self._modules, self._files = modules, files
        self._found: dict[str, Converter] = {}

    def operator(self, *names: str) -> Callable[[Converter], Converter]:
        """Registers a function that converts these operators."""

        def register(converter: Converter) -> Converter:
            for name in names:
                self._found[name] = converter
            return converter

        return register

    @cached_property
    def converters(self) -> dict[str, Converter]:
        """All functions, by the operator's name."""
        for module in self._modules:
            import_module(f"{self._package}.operators.{module}")
        return self._found

    @cached_property
    def rule_files(self) -> tuple[RuleIndex, ...]:
        """The rules of all files."""
        return tuple(read_shipped(self._folder / name) for name in self._files)

    @cached_property
    def ruled(self) -> tuple[frozenset[str], ...]:
        """The operators that the rules of each file convert."""
        return tuple(frozenset(name.removeprefix(self._prefix) for name in rules.by_root) for rules in self.rule_files)

    def is_converted(self, name: str) -> bool:
        """Returns whether an operator is converted, by rules or by a function."""
        return any(name in names for names in self.ruled) or name in self.converters
