"""Common subexpression elimination: replaces an op by an earlier one that computes the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Commutative, IsolatedFromAbove, IsTerminator, SymbolOpInterface

from ...support.edit import erase_op
from ...support.graph import dominator_tree
from ...support.locations import fuse_locations
from ...support.trace import Tracer, tracer
from ...support.verify import GRAPH_REGION_OPS
from ...support.walk import post_order
from ..changes import op_name
from .effects import Effect, Effects


@dataclass(frozen=True)
class CommonSubexpressionElimination(ModulePass):
    """Replaces an op by an equal one that dominates it, and erases unused pure ops.

    As MLIR's pass of this name: tables are scoped by the dominator tree, operands of commutative ops may be swapped, an op
    that reads memory is merged within a block as long as nothing in between may write, and an op with regions is merged when
    the regions are equal. Linear in the number of ops, their operands and nesting; xDSL's own copies the table for each
    region and asks all users of a value again for every one that is merged.
    """

    name = "cse"
    tells: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        merge_equal_ops(op, trace=tracer(self.name))


class Equality:
    """Decides which ops are merged; subclasses narrow it down to their dialect's notion of equality."""

    def may_merge(self, op: Operation) -> bool:
        """Returns whether the op may be replaced by an equal one, or replace it."""
        return True

    def operand_key(self, operand: SSAValue) -> Hashable:
        """Equal for operands that count as the same."""
        return id(operand)

    def commutes(self, op: Operation) -> bool:
        """Returns whether the op's operands may be compared in any order."""
        return len(op.operands) == 2 and _is_commutative(type(op))


def merge_equal_ops(root: Operation, equality: Equality | None = None, trace: Tracer | None = None) -> None:
    """Merges equal ops inside `root`, which is kept; `trace` receives each op with its replacement."""
    _Merger(root, equality or Equality(), trace).run(root)


# What makes two ops equal, as far as a hash table is concerned; regions are compared on top.
Key = tuple[Hashable, ...]


@dataclass
class _Candidate:
    """An op kept as the one that later equal ops are replaced by."""

    op: Operation
    merged: list[Operation] = field(default_factory=list[Operation])


@dataclass
class _Scope:
    """Records the facts that hold in a block, dropped after the blocks that it dominates."""

    keys: list[Key] = field(default_factory=list[Key])
    outer: dict[Key, _Candidate] | None = None  # The table around an isolated op, to be taken up again.


@dataclass
class _Enter:
    """Work item: a block, with its region's dominator tree."""

    block: Block
    tree: dict[Block, list[Block]]
    is_graph: bool


@dataclass
class _Resume:
    """Work item: continues at `op`, after `done`, whose regions are finished."""

    done: Operation | None
    op: Operation | None
    scope: _Scope
    is_graph: bool
    epoch: int


class _Merger:
    def __init__(self, root: Operation, equality: Equality, trace: Tracer | None):
        self.effects = Effects(root)
        self.equality = equality
        self.trace = trace
        self.known: dict[Key, _Candidate] = {}
        self.replacement: dict[SSAValue, SSAValue] = {}
        self.erased: list[Operation] = []
        self.candidates: list[_Candidate] = []
        self.region_keys = _region_keys(root, self.effects)
        self.epochs = 0  # Counts stretches of a block in which no memory changes.

    def run(self, root: Operation) -> None:
        work: list[_Enter | _Resume | _Scope] = []
        self._push_regions(root, work)
        while work:
            item = work.pop()
            match item:
                case _Scope():
                    for key in item.keys:
                        self.known.pop(key, None)
                    if item.outer is not None:
                        self.known = item.outer
                case _Enter():
                    scope = _Scope()
                    work.append(scope)
                    work += [
                        _Enter(child, item.tree, item.is_graph) for child in reversed(item.tree.get(item.block, []))
                    ]
                    self.epochs += 1
                    work.append(_Resume(None, item.block.first_op, scope, item.is_graph, self.epochs))
                case _Resume():
                    self._run_block(item, work)
        self._finish()

    def _run_block(self, item: _Resume, work: list[_Enter | _Resume | _Scope]) -> None:
        done, op, epoch = item.done, item.op, item.epoch
        while True:
            if done is not None:
                if self.effects[done] & Effect.CHANGE:
                    self.epochs += 1
                    epoch = self.epochs
                if not item.is_graph:
                    self._merge(done, epoch, item.scope)
            if op is None:
                return
            self._take_replacements(op)
            done, op = op, op.next_op
            if done.regions:
                work.append(_Resume(done, op, item.scope, item.is_graph, epoch))
                self._push_regions(done, work)
                return

    def _push_regions(self, op: Operation, work: list[_Enter | _Resume | _Scope]) -> None:
        if op.has_trait(IsolatedFromAbove, value_if_unregistered=True):
            work.append(_Scope(outer=self.known))
            self.known = {}
        # What an unregistered op's regions mean is unknown, so nothing is merged across their ops.
        is_graph = op.name in GRAPH_REGION_OPS or isinstance(op, UnregisteredOp)
        for region in reversed(op.regions):
            if region.first_block is not None:
                work.append(_Enter(region.first_block, dominator_tree(region.first_block), is_graph))

    def _take_replacements(self, op: Operation) -> None:
        # All operands at once: setting them one by one costs the square of their number.
        if any(operand in self.replacement for operand in op.operands):
            op.operands = [self.replacement.get(operand, operand) for operand in op.operands]

    def _merge(self, op: Operation, epoch: int, scope: _Scope) -> None:
        effect = self.effects[op]
        if effect & Effect.CHANGE or _is_kept(type(op)) or not self.equality.may_merge(op):
            return
        if effect & Effect.ALLOCATE_RESULT or any(region.first_block is not region.last_block for region in op.regions):
            if _is_unused(op):
                self.erased.append(op)
            return
        key = self._key(op, epoch if effect & Effect.READ else 0)
        known = self.known.get(key)
        if known is None:
            self.known[key] = candidate = _Candidate(op)
            self.candidates.append(candidate)
            scope.keys.append(key)
        elif all(a.is_structurally_equivalent(b) for a, b in zip(op.regions, known.op.regions, strict=True)):
            for old, new in zip(op.results, known.op.results, strict=True):
                self.replacement[old] = new
                if new.name_hint is None:
                    new.name_hint = old.name_hint
            known.merged.append(op)
            if self.trace is not None:
                self.trace(op, f"{op_name(op)} gives way to an equal one", ("which is here", known.op))
            self.erased.append(op)

    def _key(self, op: Operation, epoch: int) -> Key:
        operands: Hashable = tuple(map(self.equality.operand_key, op.operands))
        if self.equality.commutes(op):
            operands = frozenset(map(self.equality.operand_key, op.operands))
        regions = self.region_keys[op] if op.regions else 0
        return (shallow_key(op), operands, epoch, regions)

    def _finish(self) -> None:
        for candidate in self.candidates:
            if candidate.merged:
                candidate.op.location = fuse_locations(o.location for o in (candidate.op, *candidate.merged))
        # Users before what they use: erasing an op then finds no uses left, save in unreachable blocks.
        for op in reversed(self.erased):
            for result in op.results:
                if result.first_use is not None:
                    result.replace_all_uses_with(self.replacement[result])
            _erase(op)
        # What was unused where it was met may have been put in the place of what comes later: ask only now.
        for candidate in reversed(self.candidates):
            if _is_unused(candidate.op):
                if self.trace is not None and candidate.op.parent is not None:
                    self.trace(candidate.op, f"{op_name(candidate.op)} goes: nothing uses what it gives")
                _erase(candidate.op)


def _is_unused(op: Operation) -> bool:
    return all(result.first_use is None for result in op.results)


def _erase(op: Operation) -> None:
    if op.parent is not None:  # Else it was inside an op erased before.
        erase_op(op)


@cache
def _is_kept(op_class: type[Operation]) -> bool:
    return op_class.has_trait(IsTerminator) or op_class.has_trait(SymbolOpInterface, value_if_unregistered=False)


@cache
def _is_commutative(op_class: type[Operation]) -> bool:
    return op_class.has_trait(Commutative, value_if_unregistered=False)


def shallow_key(op: Operation) -> Hashable:
    """Returns the identity of an op without its operands and regions."""
    name = op.op_name.data if isinstance(op, UnregisteredOp) else type(op)
    attributes = tuple(sorted(op.attributes.items(), key=_first)) if op.attributes else ()
    properties = tuple(sorted(op.properties.items(), key=_first)) if op.properties else ()
    return (name, attributes, properties, op.result_types)


def _first(item: tuple[str, object]) -> str:
    return item[0]


def _region_keys(root: Operation, effects: Effects) -> dict[Operation, int]:
    """Returns a hash of the contents of each op with regions that may be merged.

    Equal regions have equal hashes. Without them, many ops that differ only in their regions would be compared with each other region by region. Values from
    outside the block of their user count as equal here; the full comparison tells them apart.
    """
    keys: dict[Operation, int] = defaultdict(int)
    for op in post_order(root):
        if not op.regions or effects[op] & Effect.CHANGE:
            continue
        parts: list[Hashable] = []
        for region in op.regions:
            parts.append(_region_key(region, keys))
        keys[op] = hash(tuple(parts))
    return keys


def _region_key(region: Region, keys: dict[Operation, int]) -> int:
    parts: list[Hashable] = []
    for block in region.blocks:
        number: dict[SSAValue, int] = {value: i for i, value in enumerate(block.args)}
        parts.append(tuple(arg.type for arg in block.args))
        for op in block.ops:
            operands = tuple(number.get(operand, -1) for operand in op.operands)
            parts.append((shallow_key(op), operands, keys[op] if op.regions else 0))
            for result in op.results:
                number[result] = len(number)
    return hash(tuple(parts))
