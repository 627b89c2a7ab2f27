"""Defines the values of names in ONNX graphs: tensors, sequences, empty optionals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue


@dataclass(frozen=True)
class SequenceValue:
    """A sequence whose length is known while the model is imported; ONNX's `seq(tensor)`."""

    items: tuple[SSAValue, ...]
    dtype: str | None = None
    """Of the elements of an empty sequence."""


@dataclass(frozen=True)
class OpenSequence:
    """A sequence whose length is known at run time only: tensors of one shape, rows along axis 0."""

    rows: SSAValue
    appended: tuple[SSAValue, ...] = ()
    """Tensors that follow the rows."""


@dataclass(frozen=True)
class EmptyOptional:
    """An optional without a value; one that has a value is this value."""


Value: TypeAlias = "SSAValue | SequenceValue | OpenSequence | EmptyOptional"
