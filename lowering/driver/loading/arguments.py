"""The arguments and results of a Relay entry, which may be tuples, as flat lists of tensors and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..program import DYNAMIC, Tensor, Tree
from .executable import Param, wrong_count


def tensors_of(path: str, tree: Tree) -> Iterator[Param]:
    """Yields the tensors of a parameter, depth first; the fields of a tuple `t` are `t.0`, `t.1.0`, …"""
    if isinstance(tree, tuple):
        for index, field in enumerate(tree):
            yield from tensors_of(f"{path}.{index}", field)
    else:
        yield Param(path, tuple("?" if extent == DYNAMIC else extent for extent in tree.shape), tree.dtype)


@dataclass(frozen=True)
class Arguments:
    """The parameters of a Relay entry, some of which may be tuples."""

    function: str
    params: tuple[tuple[str, Tree], ...]

    @property
    def has_tuples(self) -> bool:
        """Returns whether a parameter is a tuple, so that `flat` does more than count."""
        return any(isinstance(tree, tuple) for _, tree in self.params)

    @property
    def tensors(self) -> list[Param]:
        """All tensors that are taken."""
        return [param for name, tree in self.params for param in tensors_of(name, tree)]

    def flat(self, args: Sequence[Any]) -> list[Any]:
        """Returns the arguments of a call as one list of tensors. Raises TypeError for a wrong number of them."""
        if len(args) != len(self.params):
            raise wrong_count(self.function, [name for name, _ in self.params], len(args))
        return [
            leaf for (name, tree), value in zip(self.params, args, strict=True) for leaf in _flat(name, tree, value)
        ]

    def nested(self, leaves: Sequence[Any]) -> list[Any]:
        """Returns the arguments as the function takes them, from those that `flat` returned."""
        rest = list(leaves)
        return [rebuild(tree, rest) for _, tree in self.params]


def _flat(path: str, tree: Tree, value: Any) -> Iterator[Any]:
    if not isinstance(tree, tuple):
        yield value
        return
    fields: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else ()
    if len(fields) != len(tree) or not isinstance(value, tuple | list):
        kind = cast("object", value).__class__.__name__
        given = f"one of {len(fields)}" if isinstance(value, tuple | list) else kind
        raise TypeError(f"'{path}' must be a tuple of {len(tree)}, not {given}")
    for index, (field, item) in enumerate(zip(tree, fields, strict=True)):
        yield from _flat(f"{path}.{index}", field, item)


def flatten_tree(tree: Tree) -> list[Tensor]:
    """Returns the tensors of a tree, depth first."""
    return [leaf for field in tree for leaf in flatten_tree(field)] if isinstance(tree, tuple) else [tree]


def rebuild(tree: Tree, leaves: list[Any]) -> Any:
    """Returns the nested tuple of a tree from its leaves, which are taken from the front of the list."""
    if isinstance(tree, tuple):
        return tuple(rebuild(field, leaves) for field in tree)
    return leaves.pop(0)
