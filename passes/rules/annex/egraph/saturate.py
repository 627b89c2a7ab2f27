"""Equality saturation: applies rules to an e-graph, which keeps every form, and takes the cheapest.

Each block has an e-graph of its own (`egraph`), which includes the surrounding values, too, as leaves of no cost.
Rules are those of the other modes, compiled to look through all that is equal (`program`); `extract` takes the cheapest
form, which is never costlier than the program was.

xDSL has e-graphs as IR (its dialect `equivalence`) and passes for them, and `dump_egraph` writes ours in that form, so that they
can be read, and extracted by `eqsat-add-costs` and `eqsat-extract`. Its matcher (`apply-eqsat-pdl-interp` of 0.74) does not carry
our rules: it runs PDL, which cannot say runs of operands, attributes that are computed or taken over, or constants that are
(see `convert_rules_to_pdl`); of what PDL can say it has no way to run types that differ by pattern (`pdl_interp.switch_type`),
which literals need; it works on functions of one block, ends only by a number of rounds, and its costs go by an op's name. The
rules that it can run have the same results, which the tests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import ConstantLike

from .....dialects.rule import RewriteOp
from .....dialects.rule.functions import NoMatch
from .....support.diagnostics import Diagnostic, MirError, error_at, warn_at
from .....support.locations import fuse_locations
from .....support.walk import walk_ops
from ...engine.head import head_of
from ...engine.program import Match, Program, compile_rule
from .cost import is_free
from .egraph import EGraph
from .extract import Need, carry_out, cost_of_kept, plan


@dataclass(frozen=True)
class SaturationLimits:
    """Limits on the ops added to the e-graph of a block, and on the rounds of applying all rules."""

    ops: int = 10_000
    rounds: int = 30


Show: TypeAlias = Callable[[Block, EGraph, Sequence[Need]], None]
"""Gets to see the e-graph of each block at the end of its search, and what of it the block needs."""


class _Matches:
    """Takes down all matches of a rule at an op."""

    def __init__(self, most: int):
        self.found: list[Match] = []
        self.left = most

    def collect(self, match: Match) -> bool:
        """Keeps a match and refuses it, so that the next is looked for, as long as there is room."""
        self.found.append(Match(match.roots, match.matched, list(match.slots)))
        self.left -= 1
        return self.left <= 0


def saturate(
    root: Operation,
    rules: Iterable[RewriteOp],
    limits: SaturationLimits | None = None,
    show: Show | None = None,
    strict_math: bool = False,
) -> None:
    """Rewrites everything inside of a typed function to the cheapest form that rules lead to.

    Ops with effects, with regions, calls and lets stay where they are. A warning tells where a limit ended the search.

    Raises:
        MirError: for a rule with several roots, one that changes a type, or one whose conditions cannot be computed.
    """
    chosen = list(rules)
    for rule in chosen:
        last = rule.body.block.last_op
        if last is not None and len(last.operands) != 2:
            raise error_at(
                rule,
                f"rule @{rule.sym_name.data} has several roots, which mode=saturate has no place for",
                "write a rule for each root, or leave it out",
            )
    blocks = [block for op in walk_ops(root) for region in op.regions for block in region.blocks]
    # Inner blocks first: what only they needed is no longer needed when their surroundings are visited.
    used = [op for op in walk_ops(root) if is_free(op) and op.results[0].uses]
    for block in reversed(blocks):
        _Search(block, chosen, limits or SaturationLimits(), strict_math).run(show)
    for op in reversed(used):
        if op.parent is not None and not op.results[0].uses:
            Rewriter.erase_op(op)


class _Search:
    def __init__(self, block: Block, rules: Sequence[RewriteOp], limits: SaturationLimits, strict_math: bool = False):
        self.block, self.limits = block, limits
        self.graph = EGraph()
        self.matches = _Matches(4 * limits.ops)
        self.by_root: dict[str, list[Program]] = {}
        self.depth = max((head_of(rule).depth for rule in rules), default=0)
        for rule in sorted(rules, key=lambda rule: -rule.benefit.value.data):
            program = compile_rule(rule, self.matches.collect, self.graph, strict_math)
            for name in program.root_names:
                self.by_root.setdefault(name, []).append(program)
        self.made: list[Operation] = []
        self.applied: set[Any] = set()
        self.most = limits.ops

    def run(self, show: Show | None) -> None:
        """Searches, and rewrites the block."""
        free = [op for op in self.block.ops if is_free(op)]
        if not any(op.name in self.by_root for op in free):
            return
        needs = _needs(self.block, free)
        self.see_outside(free)
        for op in free:
            self.graph.add_given(op)
        self.graph.rebuild()
        self.most = self.graph.count + self.limits.ops
        try:
            self.search()
            if show is not None:
                show(self.block, self.graph, needs)
            self.rewrite(free, needs)
        finally:
            for op in self.made:
                op.drop_all_references()

    def rewrite(self, free: Sequence[Operation], needs: Sequence[Need]) -> None:
        """Puts the cheapest form in the place of the block's ops, where it is cheaper."""
        kept = set(free)
        best = plan(self.graph, needs, kept)
        if best.cost >= cost_of_kept(needs, kept):
            return
        carry_out(self.graph, best, needs)
        for op in self.made:
            op.drop_all_references()
        for op in reversed(free):
            if not op.results[0].uses:
                Rewriter.erase_op(op)

    def see_outside(self, free: Sequence[Operation]) -> None:
        """Adds the ops around the block that patterns can reach: their values cost nothing in all their forms."""
        level = [operand for op in free for operand in op.operands]
        seen: set[Operation] = set()
        for _ in range(self.depth):
            below: list[SSAValue] = []
            for value in level:
                owner = value.owner
                if isinstance(owner, Operation) and owner.parent is not self.block and owner not in seen:
                    seen.add(owner)
                    if is_free(owner):
                        self.graph.add_leaf(value)
                        self.graph.add_given(owner)
                        below += owner.operands
            level = below

    def search(self) -> None:
        """Applies all rules until nothing is new, or a limit is reached."""
        for _ in range(self.limits.rounds):
            if not self.round():
                return
            if self.graph.count >= self.most or self.matches.left <= 0:
                why = f"it goes on for {self.limits.ops} new ops at most (max-ops)"
                break
        else:
            why = f"it goes on for {self.limits.rounds} rounds at most (max-rounds)"
        warn_at(
            self.block.parent_op(),
            f"saturation stopped at {self.graph.count} ops: the cheapest form found so far is taken",
            why,
        )

    def round(self) -> bool:
        """Applies every rule at every op; whether the e-graph grew or classes met."""
        self.matches.left = 4 * self.limits.ops
        found: list[tuple[Program, Match]] = []
        for ops in list(self.graph.nodes.values()):
            for op in ops:
                for program in self.by_root.get(op.name, ()):
                    self.matches.found = []
                    program.match(op)
                    found += [(program, match) for match in self.matches.found]
        changed = False
        for program, match in found:
            if self.graph.count >= self.most:
                break
            key = self.key(program, match)
            if key not in self.applied:
                self.applied.add(key)
                changed = self.apply(program, match) or changed
        self.graph.rebuild()
        return changed

    def key(self, program: Program, match: Match) -> Any:
        """Returns a key that is the same for matches with the same effect."""
        values = tuple(id(self.graph.find(slot)) for slot in match.slots if isinstance(slot, SSAValue))
        return id(program), tuple(map(id, match.roots)), tuple(map(id, match.matched)), values, _lengths(match.slots)

    def apply(self, program: Program, match: Match) -> bool:
        """Adds what a rule makes of a match, and makes it equal to the root; whether that was new."""
        root = match.roots[0].results[0]
        before = self.graph.count
        sources = [*match.roots, *match.matched]
        location = fuse_locations(op.location for op in sources if not op.has_trait(ConstantLike))
        try:
            for make, slot in zip(program.makers, program.made, strict=True):
                op = make(match.slots, root)
                if op is not None:
                    op.location = location
                    self.made.append(op)
                    match.slots[slot] = self.graph.add(op)
        except (NoMatch, KeyError):
            return self.graph.count > before
        value: SSAValue = match.slots[program.results[0]]
        if value.type != root.type:
            from .....dialects.rule.functions import type_text

            raise MirError(
                Diagnostic(
                    f"rule @{program.name} would change the type of a value from {type_text(root.type)} to {type_text(value.type)}",
                    program.rule.location,
                ).with_note("this value", match.roots[0].location)
            )
        return self.graph.union(root, value) or self.graph.count > before


def _needs(block: Block, free: Sequence[Operation]) -> list[Need]:
    """The ops of a block that stay, with what they take of the others."""
    kept = set(free)
    needs: dict[Operation, dict[SSAValue, None]] = {op: {} for op in block.ops if op not in kept}
    for op in free:
        for use in op.results[0].uses:
            user = block.find_ancestor_op_in_block(use.operation)
            if user is not None and user in needs:
                needs[user][op.results[0]] = None
    return [Need(op, tuple(values)) for op, values in needs.items()]


def _lengths(slots: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """Runs among captures, by the values in them."""
    runs = (cast("tuple[Any, ...]", slot) for slot in slots if isinstance(slot, tuple))
    return tuple(tuple(id(each) for each in run) for run in runs)
