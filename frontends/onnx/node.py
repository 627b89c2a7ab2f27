"""Defines a node of an ONNX graph as its converter sees it: inputs, attributes, and a builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import SSAValue

from ..common.graph_builder import GraphBuilder
from ..common.refusal import Refused
from .values import EmptyOptional, OpenSequence, SequenceValue, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .importer import GraphImporter


class Misfit(Refused):
    """Tells that operators that follow a branch do not take tensors of its ranks.

    A model that came there would stop.
    """


class RanksDiffer(Exception):
    """Tells that the branches of an `If` return results of other ranks, which no one value can be.

    The importer then converts the nodes after the `If` in each branch.
    """


@dataclass(frozen=True)
class Node:
    """A node while it is converted.

    `inputs` are values, None where an optional input is left out. `opset` is the version of the node's domain that the model imports.
    """

    importer: GraphImporter
    name: str
    op_type: str
    domain: str
    opset: int
    inputs: Sequence[Value | None]
    attributes: Mapping[str, Any]
    """The attributes that are written: numbers, texts, lists of them, `numpy` arrays (tensors), `GraphProto` (graphs)."""
    outputs: Sequence[str]
    """The names of the outputs, "" for those that are left out."""
    proto: Any
    """The node as `onnx` reads it: a `NodeProto`."""

    @property
    def builder(self) -> GraphBuilder:
        """The builder, at the location of this node."""
        return self.importer.builder

    # Inputs --------------------------------------------------------------------------------------------------------

    def has(self, index: int) -> bool:
        """Returns whether input `index` is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def __getitem__(self, index: int) -> SSAValue:
        """Returns the tensor that is input `index`. Raises Refused where it is missing, or is not a tensor."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, SSAValue):
            return value
        raise Refused(f"input {index} is {'missing' if value is None else 'not a tensor'}")

    def tensor(self, index: int) -> SSAValue | None:
        """Returns the tensor that is input `index`, None where it is left out."""
        return self[index] if self.has(index) else None

    def tensors(self) -> list[SSAValue]:
        """Returns all inputs, which must be tensors."""
        return [self[index] for index in range(len(self.inputs))]

    def sequence(self, index: int) -> SequenceValue:
        """Returns the sequence that is input `index`.

        Raises Refused for anything else, and where its length is open.
        """
        value = self.any_sequence(index)
        if isinstance(value, OpenSequence):
            raise Refused("the length of the sequence must be known, not computed at run time")
        return value

    def any_sequence(self, index: int) -> SequenceValue | OpenSequence:
        """Returns the sequence of known or open length that is input `index`.

        Raises Refused for anything else.
        """
        value = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(value, SequenceValue | OpenSequence):
            raise Refused(f"input {index} is not a sequence")
        return value

    def array(self, index: int, what: str | None = None) -> NDArray[Any] | None:
        """Returns the elements of a constant input; None where it is left out.

        Raises Refused where the input is computed at run time: it then says that `what` must be a constant.
        """
        if not self.has(index):
            return None
        found = self.builder.array(self[index])
        if found is None:
            raise Refused(f"{what or f'input {index}'} must be constant, not computed at run time")
        return found

    def integers(self, index: int, what: str | None = None) -> list[int] | None:
        """Returns the elements of a constant input of integers, as `array` does."""
        found = self.array(index, what)
        return None if found is None else [int(each) for each in found.reshape(-1)]

    # Attributes ----------------------------------------------------------------------------------------------------

    def attr(self, name: str, default: Any = None) -> Any:
        """Returns an attribute; where it is not written its default in ONNX' schema, otherwise `default`."""
        if name in self.attributes:
            return self.attributes[name]
        found = self.importer.defaults(self).get(name)
        return default if found is None else found

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int] | None:
        """Returns an attribute that is a list of integers."""
        found = self.attr(name, default)
        return None if found is None else [int(each) for each in found]

    def choice(self, name: str, default: str, known: Sequence[str]) -> str:
        """Returns a text attribute. Raises Refused where it is none of `known`."""
        found = str(self.attr(name, default))
        if found not in known:
            raise Refused(f"{name} is '{found}'; it must be {', '.join(known[:-1])} or {known[-1]}")
        return found

    # What most converters need -------------------------------------------------------------------------------------

    def call(self, operator: str, *arguments: SSAValue, **attributes: Any) -> SSAValue:
        """Creates a use of a Relay operator at the location of this node."""
        return self.builder.call(operator, *arguments, **attributes)

    def rank(self, index: int) -> int:
        """Returns the rank of input `index`."""
        return self.builder.rank(self[index])

    def dtype(self, index: int) -> str:
        """Returns the dtype of input `index`."""
        return self.builder.dtype(self[index])

    def axis(self, rank: int, default: int | None = None, name: str = "axis") -> int:
        """Returns an axis attribute, counted from the first. Raises Refused for one outside of `rank`."""
        found = int(self.attr(name, default))
        if not -rank <= found < max(rank, 1):
            raise Refused(f"{name} {found} is outside of a tensor of rank {rank}")
        return found % max(rank, 1)

    def scalar(self, value: float, like: SSAValue | str) -> SSAValue:
        """Creates a constant of rank 0, of the dtype of a tensor."""
        return self.builder.constant(value, like if isinstance(like, str) else self.builder.dtype(like))

    def refuse(self, reason: str, *notes: str) -> Refused:
        """Returns the error to raise where this node cannot be imported."""
        return Refused(reason, *notes)


def only_tensors(values: Sequence[Value | None]) -> list[SSAValue]:
    """Returns values that are known to be tensors. Raises Refused otherwise."""
    for value in values:
        if value is None or isinstance(value, SequenceValue | OpenSequence | EmptyOptional):
            raise Refused("an input or an output is a sequence or an optional; it must be a tensor")
    return cast("list[SSAValue]", list(values))
