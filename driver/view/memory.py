"""The tensors that functions keep in their frames, as they were planned for the code that runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from ...dialects import relay
from ...lowering.relay.memory.frame import Frame


@dataclass(frozen=True)
class Tensor:
    """A tensor in a frame: who writes it, its bytes, the first and last step at which it is needed."""

    label: str
    op: Operation
    offset: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class FrameView:
    """A function's frame: its bytes, and the most that is needed at one time."""

    name: str
    size: int
    bound: int
    tensors: list[Tensor]


def frames_of(frames: Mapping[str, Frame]) -> Iterator[FrameView]:
    """Yields the frames that hold a tensor."""
    for name, frame in frames.items():
        if not frame.is_empty and frame.kept:
            tensors = [
                Tensor(
                    _label(kept.op), kept.op, kept.offset, kept.lifetime.size, kept.lifetime.start, kept.lifetime.end
                )
                for kept in frame.kept
            ]
            yield FrameView(name, frame.plan.size, frame.plan.lower_bound, tensors)


def _label(op: Operation) -> str:
    """Returns what writes a tensor, as a person calls it."""
    if isinstance(op, relay.CallTirOp | relay.CallGlobalOp):
        return (op.callee).root_reference.data
    return op.name.removeprefix("relay.")
