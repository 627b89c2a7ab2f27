"""Implements `static-memory-plan`: reports how the tensors of each function share memory.

The module is not changed. The plan is the one that native code uses (`frame.py`), made on a copy of the module that the pipeline's
passes have brought as far as kernels: for each function, the tensors that it keeps in its frame, their bytes, those of the frame they
share, and the lower bound, the most bytes that are needed at any one time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects.relay import ir as relay
from ....dialects.relay.text import global_text
from ....passes.relay.fusion.fuse_ops import FuseOps
from ....support.diagnostics import error_at, source_position
from ....support.text import counted
from ....support.walk import walk_ops
from ..functions.tail_calls import framed
from ..kernels.lower_relay_to_te import call_kernels
from .alignment import align
from .frame import Frame, plan_frame


@dataclass(frozen=True)
class StaticMemoryPlan(ModulePass):
    """Report on standard error how each Relay function's tensors share memory: bytes, reuse, lower bound."""

    name = "static-memory-plan"

    tensors: bool = False
    """Also list each tensor: its offset and bytes, from when to when it is needed, where it is computed."""

    opt_level: int = 3
    """The optimization level of the native code, 0 to 3."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.opt_level not in range(4):
            raise error_at(op, f"static-memory-plan: opt-level={self.opt_level} must be 0, 1, 2 or 3")
        for line in memory_report(op, tensors=self.tensors, opt_level=self.opt_level):
            print(f"// {line}", file=sys.stderr)


def memory_report(module: ModuleOp, *, tensors: bool = False, opt_level: int = 3) -> Iterator[str]:
    """Yields the report's lines, by function: sizes in bytes, offsets from the start of its frame."""
    from ...pipeline import Options, lowering_passes

    copy = module.clone()
    for step in lowering_passes(Options(opt_level=opt_level)):
        step.apply(Context(), copy)
        if step.name == FuseOps.name:
            break
    call_kernels(copy, in_place=opt_level > 0)
    has_refs = any(isinstance(op, relay.RefOp) for op in walk_ops(copy))
    for function in copy.ops:
        if not isinstance(function, relay.FuncOp):
            continue
        name = global_text(function.sym_name.data)
        for inner in walk_ops(function):
            if isinstance(inner, relay.FuncOp):
                yield from _describe(name, framed(inner.sym_name.data, inner, refs=has_refs)[0], tensors)
            elif isinstance(inner, relay.FnOp):
                frame = plan_frame(inner.body.block, refs=has_refs)
                yield from _describe(f"the local function at {_place(inner)} in {name}", frame, tensors)


def _describe(name: str, frame: Frame, tensors: bool) -> Iterator[str]:
    total = sum(align(tensor.lifetime.size) for tensor in frame.kept)
    size = 0 if frame.is_empty else frame.plan.size
    saved = f", {100 * max(total - size, 0) // total} % saved by reuse" if total else ""
    joined = f"; {len(frame.joined)} within concatenations" if frame.joined else ""
    yield (
        f"{name}: {counted(len(frame.kept), 'tensor')} of {counted(total, 'byte')} in {counted(size, 'byte')}{saved};"
        f" lower bound {frame.plan.lower_bound}; {len(frame.outputs)} written to the result directly{joined}"
    )
    if tensors:
        for tensor in sorted(frame.kept, key=lambda each: (each.lifetime.start, each.offset)):
            yield (
                f"  bytes {tensor.offset} to {tensor.offset + tensor.lifetime.size}, steps {tensor.lifetime.start} to"
                f" {tensor.lifetime.end}: computed at {_place(tensor.op)}"
            )


def _place(op: Operation) -> str:
    position = source_position(op.location)
    return "an unknown place" if position is None else ":".join(map(str, position))
