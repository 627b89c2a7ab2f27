"""Types of a kernel's tensors as plain data, and the names of what is kept of kernels."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, TensorType, TupleType
from xdsl.ir import Attribute

from ....dialects.tir.types import dtype_to_type
from ..program import Tensor, Tree, of_tree_json, tree_json, tree_of

Places = list[tuple[str, int, int] | None]
"""File, line and column of each op of a kernel, in the order of the text."""

Facts = dict[str, Any]
"""Of JSON: `functions`, the declarations; `stub`, how a call is made; `messages`, each a status, a text and the number of the op that
it speaks of, -1 where it speaks of none."""


def type_json(type: Attribute) -> Any:
    """Returns the type of a tensor, or of a tuple of such, as plain data; None for any other."""
    tree = tree_of(type)
    return None if tree is None else tree_json(tree)


def type_of_json(data: Any) -> Attribute:
    """Returns the type that `type_json` converted."""
    return _type_of(of_tree_json(data))


def _type_of(tree: Tree) -> Attribute:
    if isinstance(tree, Tensor):
        return TensorType(dtype_to_type(tree.dtype), tree.shape)
    return TupleType(ArrayAttr([_type_of(field) for field in tree]))  # type: ignore[type-var]
