"""Lowers `te.scan` to a serial loop.

The first steps are copied from `init`; each further step updates one row of the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from ...dialects import te, tir
from ...dialects.arith.regions import infer_regions
from ...dialects.te.compute import steps_of
from . import make

if TYPE_CHECKING:
    from .create_prim_func import Lowering


def lower_scan(lowering: Lowering, scan: te.ScanOp) -> None:
    """The loops of a scan, at the end of the function."""
    for index, init in enumerate(scan.init):
        buffer = lowering.buffers[scan.results[index]]
        lowering.buffers[scan.state[index]] = buffer
        lowering.buffers[scan.update[index]] = buffer
        _copy_init(lowering, scan, init, buffer)
    lowering.nest = None
    first, last = te.extents_of(scan.init[0])[0], te.extents_of(scan.state[0])[0]
    if isinstance(first, IntegerAttr) and isinstance(last, IntegerAttr):
        rest = lowering.constant(max(last.value.data - first.value.data, 0), first.type)
    else:
        rest = lowering.add(tir.SubOp(lowering.extent(last), lowering.extent(first)))
    loop = tir.ForOp("scan_idx", lowering.extent(first), rest)
    loop.location = scan.location
    lowering.append(loop, lowering.block)
    loop.loop_var.name_hint = "scan_idx"
    for step in steps_of(scan):
        lowering.compute(step, loop.body.block, loop)


def _copy_init(lowering: Lowering, scan: te.ScanOp, init: SSAValue, buffer: SSAValue) -> None:
    lowering.nest = None
    block: Block = lowering.block
    bindings: list[SSAValue] = []
    extents = [lowering.extent(e) for e in te.extents_of(init)]
    mins = [lowering.constant(0, e.type) for e in extents]
    for number, (low, extent) in enumerate(zip(mins, extents, strict=True)):
        loop = tir.ForOp(f"i{number}", low, extent)
        loop.location = scan.location
        lowering.append(loop, block)
        block = loop.body.block
        bindings.append(loop.loop_var)
    names = [f"v_i{number}" for number in range(len(extents))]
    name = lowering.block_names.fresh(f"{scan.scan_name.data}_init")
    made = tir.BlockOp(name, names, ["S"] * len(extents), mins, extents, bindings)
    made.location = scan.location
    lowering.append(made, block)
    axes = list(made.iter_vars)
    source = lowering.buffers[init]
    load = make.load(source, axes)
    store = make.store(load.result, buffer, axes)
    load.location = store.location = scan.location
    made.body.block.add_ops([load, store])
    infer_regions(made)
