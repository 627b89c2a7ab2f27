"""The table of primitives: each is a function of its arguments whose docstring shows before and after.

A primitive checks everything before it changes anything: when it refuses, the module is as it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

Apply = TypeVar("Apply", bound=Callable[..., Any])


@dataclass(frozen=True)
class Primitive:
    """One schedule primitive: `apply(state, *arguments)` with ops for handles."""

    name: str
    apply: Callable[..., Any]

    @property
    def only_looks(self) -> bool:
        """Returns whether the primitive only returns handles and leaves the program as it is."""
        return _FILES[self.name] == "query"

    @cached_property
    def signature(self) -> inspect.Signature:
        """Returns the parameters without the state."""
        full = inspect.signature(self.apply)
        return full.replace(parameters=list(full.parameters.values())[1:])

    @cached_property
    def doc(self) -> str:
        """Returns the description, with the program before and after."""
        return inspect.getdoc(self.apply) or ""


_TABLE: dict[str, Primitive] = {}


def primitive(function: Apply) -> Apply:
    """Registers a function, under its own name, as a primitive."""
    _TABLE[function.__name__] = Primitive(function.__name__, function)
    return function


# The primitives of each file, which is imported when one of them is first used.
_BY_FILE = {
    "query": "work_on enter_postproc get_block get_loops get_child_blocks get_producers get_consumers get_output_blocks",
    "split": "split",
    "reorder": "fuse reorder",
    "for_kind": "parallel vectorize unroll bind",
    "annotate": "annotate unannotate",
    "set_scope": "set_scope",
    "cache_read_write": "cache_read cache_write",
    "compute_inline": "compute_inline reverse_compute_inline",
    "compute_at": "compute_at reverse_compute_at",
    "decompose_reduction": "decompose_reduction",
    "transform_layout": "transform_layout",
    "blockize": "blockize",
    "rfactor": "rfactor",
    "cache_index": "cache_index",
    "cache_inplace": "cache_inplace",
    "tensorize": "tensorize",
    "reindex": "reindex reindex_cache_read reindex_cache_write",
    "pad_einsum": "pad_einsum",
    "merge": "merge",
    "transform_block_layout": "transform_block_layout",
    "loop_partition": "loop_partition",
    "add_unit_loop": "add_unit_loop",
    "reorder_block_iter_var": "reorder_block_iter_var",
    "storage_align": "storage_align",
    "set_axis_separator": "set_axis_separator",
    "unsafe_set_dtype": "unsafe_set_dtype",
    "rolling_buffer": "rolling_buffer",
    "decompose_padding": "decompose_padding",
    "omit_padding": "omit_padding",
    "read_write_at": "read_at write_at",
    "sampling": "sample_categorical sample_perfect_tile sample_partitioned_tile sample_compute_location",
}
_FILES = {name: file for file, names in _BY_FILE.items() for name in names.split()}


def names() -> list[str]:
    """Returns the names of all primitives."""
    return list(_FILES)


def load_all() -> None:
    """Imports all primitives."""
    for name in _FILES:
        find(name)


def find(name: str) -> Primitive | None:
    """Returns the primitive of that name, or None."""
    known = _TABLE.get(name)
    if known is None and name in _FILES:
        import_module(f"..primitives.{_FILES[name]}", __package__)
        known = _TABLE[name]
    return known
