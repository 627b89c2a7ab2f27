"""Creates the parameters of an imported graph from its inputs.

A tensor is one parameter, a sequence of known length several, an optional without a value none:

    x: tensor(float)[batch, 3]                         →  %x: Tensor[(?, 3), float32]
    s: seq(tensor(float)), shapes {"s": [(2,), (3,)]}  →  %s.0: Tensor[(2), float32], %s.1: Tensor[(3), float32]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue

from ...support.diagnostics import Diagnostic, MirError, node_loc
from ..common.graph_builder import GraphBuilder
from .protos import element_dtype
from .values import EmptyOptional, SequenceValue, Value

Shape: TypeAlias = "Sequence[int | str | None]"
"""A dimension is a number, a name (equal names are equal sizes), or None for any size."""

Shapes: TypeAlias = "Mapping[str, Shape | Sequence[Shape] | None]"
"""Shapes of inputs by name: of a sequence those of its elements, of an optional without a value None."""


def create_input(builder: GraphBuilder, file: str, info: Any, shapes: Shapes) -> Value:
    """Creates the parameters of an input, a `ValueInfoProto`.

    Raises MirError where its type cannot be a parameter, or the shape does not fit it.
    """
    name, type = info.name, info.type
    if type.WhichOneof("value") == "optional_type":
        if name in shapes and shapes[name] is None:
            return EmptyOptional()
        type = type.optional_type.elem_type
    given = shapes.get(name)
    if type.WhichOneof("value") == "tensor_type":
        return _tensor(builder, file, name, type.tensor_type, cast("Shape | None", given))
    if (
        type.WhichOneof("value") == "sequence_type"
        and type.sequence_type.elem_type.WhichOneof("value") == "tensor_type"
    ):
        tensor = type.sequence_type.elem_type.tensor_type
        if given is None:
            raise _error(
                file, f"the length of input '{name}', a sequence, is not known",
                f"give the shapes of its elements: from_onnx(model, shapes={{'{name}': [(2, 3), (4, 3)]}})",
            )  # fmt: skip
        items = [
            _tensor(builder, file, f"{name}.{place}", tensor, shape)
            for place, shape in enumerate(cast("Sequence[Shape]", given))
        ]
        return SequenceValue(tuple(items), element_dtype(tensor.elem_type))
    raise _error(file, f"input '{name}' is neither a tensor nor a sequence of tensors")


def _tensor(builder: GraphBuilder, file: str, name: str, tensor: Any, shape: Shape | None) -> SSAValue:
    dtype = element_dtype(tensor.elem_type)
    if dtype is None:
        raise _error(file, f"input '{name}' has elements of a type that tensors here cannot have")
    has_shape = tensor.HasField("shape")
    own: list[int | str | None] = [size_of(each) for each in tensor.shape.dim]
    if shape is None:
        if not has_shape:
            raise _error(
                file, f"input '{name}' has no shape",
                f"give one: --shape {name}=1,3,224,224, or from_onnx(model, shapes={{'{name}': (1, 3, 224, 224)}})",
            )  # fmt: skip
        return builder.parameter(name, dtype, own)
    if has_shape and len(shape) != len(own):
        raise _error(file, f"input '{name}' has {len(own)} dimensions, and the given shape {len(shape)}")
    for axis, (wanted, size) in enumerate(zip(shape, own, strict=False)):
        if isinstance(wanted, int) and isinstance(size, int) and wanted != size:
            raise _error(file, f"dimension {axis} of input '{name}' is {size} in the model, not {wanted}")
    sizes = [size if wanted is None else wanted for wanted, size in zip(shape, own or shape, strict=True)]
    return builder.parameter(name, dtype, sizes)


def size_of(dimension: Any) -> int | str | None:
    """Returns a dimension: a number, a name, or None.

    Some exporters write -1 or "?" for a size that they do not know.
    """
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else None
    return dimension.dim_param if dimension.dim_param not in ("", "?") else None


def _error(file: str, message: str, *notes: str) -> MirError:
    diagnostic = Diagnostic(message, node_loc(file, ""))
    for note in notes:
        diagnostic = diagnostic.with_note(note)
    return MirError(diagnostic)
