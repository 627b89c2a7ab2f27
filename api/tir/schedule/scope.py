"""References of statements, and dependences of blocks: `ScheduleState`, `BlockScope`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from ....dialects.tir.node.functor import parts_of
from ....dialects.tir.node.stmt import Block, For, Stmt
from ....support.public_names import public_names
from ...ir.module import IRModule
from ...ir.prim_func import PrimFunc

__all__ = ["BlockDependenceInfo", "BlockScope", "DepKind", "Dependency", "ScheduleState", "StmtSRef"]


@dataclass(frozen=True, eq=False)
class StmtSRef:
    """A block or loop in a program, and the block or loop around it."""

    stmt: Block | For
    parent: StmtSRef | None

    def same_as(self, other: object) -> bool:
        """Returns whether both refer to the same statement."""
        return self == other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StmtSRef) and self.stmt is other.stmt

    def __hash__(self) -> int:
        return id(self.stmt)

    def __repr__(self) -> str:
        name = self.stmt.name_hint if isinstance(self.stmt, Block) else self.stmt.loop_var.name
        return f"StmtSRef({type(self.stmt).__name__} {name})"


class DepKind(IntEnum):
    """Lists how a block depends on an earlier one: it reads what that wrote, or overwrites what it used."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


@dataclass(frozen=True)
class Dependency:
    """The block `dst` must run after `src`."""

    src: StmtSRef
    dst: StmtSRef
    kind: DepKind


class BlockScope:
    """The dependences among the blocks directly in a block."""

    def __init__(self, blocks: list[StmtSRef]):
        self.deps = list(_dependences(blocks))

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """Returns the dependences of later blocks on this one."""
        return [each for each in self.deps if each.src == block]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """Returns the dependences of this block on earlier ones."""
        return [each for each in self.deps if each.dst == block]

    def __repr__(self) -> str:
        return f"BlockScope({len(self.deps)} dependences)"


def _dependences(blocks: list[StmtSRef]) -> Iterator[Dependency]:
    readers: dict[int, list[StmtSRef]] = {}
    writers: dict[int, list[StmtSRef]] = {}
    for later in blocks:
        block = later.stmt
        assert isinstance(block, Block)
        reads, writes = ({id(region.buffer): None for region in regions} for regions in (block.reads, block.writes))
        for kind, touched, earlier in ((0, reads, writers), (1, writes, writers), (2, writes, readers)):
            for buffer in touched:
                for source in earlier.get(buffer, []):
                    yield Dependency(source, later, DepKind(kind))
        for buffer in reads:
            readers.setdefault(buffer, []).append(later)
        for buffer in writes:
            writers.setdefault(buffer, []).append(later)


class ScheduleState:
    """The blocks and loops of a module's functions, by reference, and the dependences of the blocks."""

    def __init__(self, mod: IRModule | PrimFunc, *, debug_mask: str | int = "none", enable_check: bool = True):
        self.mod = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod
        self.debug_mask, self.enable_check = debug_mask, enable_check
        self._refs: dict[int, StmtSRef] = {}
        self._children: dict[int, list[StmtSRef]] = {}
        for function in self.mod.functions.values():
            if isinstance(function, PrimFunc):
                self._add(function.body)

    def _add(self, body: Stmt) -> None:
        pending: list[tuple[Stmt, StmtSRef | None, StmtSRef | None]] = [(body, None, None)]
        while pending:
            node, parent, scope = pending.pop()
            if isinstance(node, Block | For):
                parent = self._refs[id(node)] = StmtSRef(node, parent)
                if isinstance(node, Block):
                    if scope is not None:
                        self._children.setdefault(id(scope.stmt), []).append(parent)
                    scope = parent
            pending += [(part, parent, scope) for part in reversed(parts_of(node)) if isinstance(part, Stmt)]

    def get_sref(self, stmt: Block | For) -> StmtSRef | None:
        """Returns the reference of a block or loop of the module; None for another statement."""
        return self._refs.get(id(stmt))

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """Returns the dependences among the blocks directly in a block."""
        return BlockScope(self._children.get(id(block_sref.stmt), []))

    def __repr__(self) -> str:
        return f"ScheduleState({', '.join(name.name_hint for name in self.mod.functions)})"


class BlockDependenceInfo(ScheduleState):
    """The dependences of the blocks of a module, without a schedule."""

    def __init__(self, mod: IRModule | PrimFunc):
        super().__init__(mod)


__dir__ = public_names(__name__)
