"""Defines annotations for the compiler, which compute nothing, and operators of explicit memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, AttrSpec, OpPattern, Relation, attr, define
from ...types import AdtType
from ..common._lazy import np
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import check_dims, dtype_attr, identity_of_any, rank_must_be, tensor_type, tuple_type
from ..common.sources import ARXIV, TVM, TVM_DIALECT
from ..common.te_computes import elementwise

if TYPE_CHECKING:
    from ....te.builder import Tensor


def _copies(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
    return [elementwise(lambda e: e, x, "T_identity") for x in xs]


def _annotation(name: str, doc: str, *attributes: AttrSpec, pattern: OpPattern = OpPattern.OPAQUE, source: str) -> None:
    """Registers an operator that returns its argument, of any type."""
    define(
        name, ("data",), identity_of_any, pattern,
        numpy=lambda attrs, x: x, compute=_copies, attributes=attributes, doc=doc, source=source,
    )  # fmt: skip


_COMPILER = attr("compiler", "")
# fmt: off
_annotation("annotation.stop_fusion", "Operators before and after are not fused with each other.", source=TVM.format("annotation.stop_fusion"))
_annotation("annotation.checkpoint",
    "The operators before it are recomputed in a gradient.", pattern=OpPattern.ELEMWISE, source=ARXIV.format("1604.06174"))
_annotation("annotation.cast_hint",
    "The value may be held in another dtype.", attr("dtype", None, "str", printed=True), source=ARXIV.format("1807.04188"))
_annotation("annotation.bitpack_start", "Here the part whose tensors are packed begins.", source=ARXIV.format("1807.04188"))
_annotation("annotation.bitpack_end", "Here the part whose tensors are packed ends.", source=ARXIV.format("1807.04188"))
_annotation("annotation.compiler_begin", "Here the part for an external compiler begins.", _COMPILER, source=TVM.format("annotation.compiler_begin"))
_annotation("annotation.compiler_end", "Here the part for an external compiler ends.", _COMPILER, source=TVM.format("annotation.compiler_end"))
_annotation("on_device",
    "The value is to be on a device.", attr("virtual_device", None), attr("constrain_result", False), attr("constrain_body", True), source=TVM.format("annotation.on_device"))
# fmt: on

STORAGE = AdtType.get("Storage")
"""TVM's type of a piece of memory."""


def _alloc_storage_relation(rel: Relation) -> None:
    rank_must_be(rel, 0, 0)
    rel.tensor(1)
    rank_must_be(rel, 2, 0)
    rel.set_result(STORAGE)


define(
    "memory.alloc_storage", ("size", "shape", "alignment"), _alloc_storage_relation, OpPattern.OPAQUE,
    numpy=lambda attrs, size, shape, alignment: np.zeros(int(size), np.uint8),
    attributes=(attr("dtype", None, "str"), attr("virtual_device", None)),
    doc="A piece of memory of `size` bytes.",
    stateful=True,
    source=TVM_DIALECT.format("virtual_machine"),
)  # fmt: skip


def _alloc_tensor_relation(rel: Relation) -> None:
    attrs = rel.attrs
    shape = attrs.const_shape if attrs.assert_shape is None else attrs.assert_shape
    if shape is None:
        raise rel.fail("memory.alloc_tensor: const_shape or assert_shape must give the shape")
    rel.set_result(tensor_type(check_dims(rel, shape), dtype_attr(rel, "dtype", "float32")))


def _alloc_tensor(attrs: Any, storage: Array, offset: Array, shape: Array) -> Array:
    dtype = numpy_type(attrs.dtype or "float32")
    start, count = int(offset), int(np.prod(shape, dtype=np.int64))
    return storage[start : start + count * dtype.itemsize].view(dtype).reshape(shape.tolist())


define(
    "memory.alloc_tensor", ("storage", "offset", "shape"), _alloc_tensor_relation, OpPattern.OPAQUE,
    numpy=_alloc_tensor,
    attributes=(attr("const_shape", None), attr("assert_shape", None, "ints"), attr("dtype", None, "str")),
    doc="A tensor in a piece of memory.",
    stateful=True,
    source=TVM_DIALECT.format("virtual_machine"),
)  # fmt: skip

define(
    "memory.kill", ("data",), lambda rel: rel.set_result(tuple_type(())), OpPattern.OPAQUE,
    numpy=lambda attrs, x: (),
    doc="The value is not used any more.",
    stateful=True,
    source=TVM_DIALECT.format("virtual_machine"),
)  # fmt: skip
