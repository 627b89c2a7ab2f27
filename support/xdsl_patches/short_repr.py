"""Shows ops, blocks, regions and uses in Python by their names and places, not by addresses.

mirstack.parse("net.mir")         →  ModuleOp(builtin.module of 2 ops)
sch.get(sch.get_block("B"))       →  BlockOp(tir.block at net.mir:5:14)
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, Region, Use

from ..diagnostics import location_of, source_position
from ..text import counted
from . import Patch


def _operation(self: Operation) -> str:
    symbol = self.properties.get("sym_name")
    name = f"{self.name} @{symbol.data}" if isinstance(symbol, StringAttr) else self.name
    position = source_position(location_of(self))
    if position is not None:
        name += f" at {position[0]}:{position[1]}:{position[2]}"
    elif self.parent is None and self.regions:
        name += f" of {counted(sum(1 for region in self.regions for block in region.blocks for _ in block.ops), 'op')}"
    return f"{type(self).__name__}({name})"


def _block(self: Block) -> str:
    return f"Block({counted(len(self.args), 'argument')}, {counted(sum(1 for _ in self.ops), 'op')})"


def _region(self: Region) -> str:
    return f"Region({counted(sum(1 for _ in self.blocks), 'block')})"


def _use(self: Use) -> str:
    return f"Use(operand {self.index} of {self.operation!r})"


def show_names() -> None:
    """Makes `repr` of IR a short text without addresses, which differ from run to run."""
    Operation.__repr__ = _operation
    Block.__repr__ = _block
    Region.__repr__ = _region
    Use.__repr__ = _use


PATCH = Patch(
    reason="an op is shown with the addresses of all that it is linked to, which tell a person nothing",
    gain="a line of 40 characters instead of 400; no time",
    apply=show_names,
)
