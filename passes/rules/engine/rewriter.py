"""Rules applied to a program: found through an index by root op, driven to a fixed point or once.

The driver is our own rather than xDSL's greedy walker because it looks only at ops with which some rule begins, tells
rules apart in its counts, and reports what goes wrong at the rule and at the op, which the walker wraps in an error of its
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import ConstantLike

from ....dialects.rule import RewriteOp
from ....dialects.rule.functions import NoMatch
from ....support.diagnostics import Diagnostic, MirError
from ....support.edit import erase_op, insert_op_before
from ....support.effects import is_side_effect_free
from ....support.locations import fuse_locations
from ....support.operands import operands_of
from ....support.trace import Tracer
from ....support.walk import walk_ops
from ...changes import op_names, tell_rewrite, value_name
from .head import CONSTANT, Candidate
from .program import Match, Program
from .stats import RuleStats, current_stats
from .values import refines


@dataclass(frozen=True)
class RuleIndex:
    """Rules by the name of the op with which they begin, in the order in which they are tried.

    Of many rules with the same root, those come into question whose operands can be the ops that they are; this is
    worked out once for each set of operands that occurs. Only what comes into question is compiled.
    """

    rules: tuple[Candidate, ...]
    by_root: dict[str, tuple[Candidate, ...]] = field(init=False)
    depth: int = field(init=False)
    known: dict[tuple[Any, ...], tuple[Program, ...]] = field(init=False)

    @staticmethod
    def of(rules: Iterable[RewriteOp], strict_math: bool = False) -> RuleIndex:
        """Indexes verified rules. With `strict_math`, those marked `fast` rewrite no floats."""
        return RuleIndex(tuple(Candidate.of(rule, strict_math) for rule in rules))

    def __post_init__(self) -> None:
        found: dict[str, list[Candidate]] = {}
        for rule in self.rules:
            for name in rule.head.root_names:
                found.setdefault(name, []).append(rule)
        # Sorting is stable: of equal benefit, the rule that was written first.
        ordered = {name: tuple(sorted(some, key=lambda rule: -rule.head.benefit)) for name, some in found.items()}
        object.__setattr__(self, "by_root", ordered)
        object.__setattr__(self, "depth", max((rule.head.depth for rule in self.rules), default=0))
        object.__setattr__(self, "known", {})

    def candidates(self, op: Operation) -> tuple[Program, ...]:
        """The rules that may match at an op, by its name and the ops that its operands are, in order."""
        operands = [value.op.name if type(value) is OpResult else "" for value in operands_of(op)]
        key = (op.name, *operands) if len(operands) <= _MOST_IN_ORDER else (op.name, frozenset(operands))
        found = self.known.get(key)
        return self._select(op, key) if found is None else found

    def _select(self, op: Operation, key: tuple[Any, ...]) -> tuple[Program, ...]:
        operands: set[str] = set()
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation):
                operands.add(owner.name)
                if owner.has_trait(ConstantLike):
                    operands.add(CONSTANT)
        found = self.known[key] = tuple(
            rule.program
            for rule in self.by_root.get(op.name, ())
            if not any(names.isdisjoint(operands) for names in rule.head.operand_names)
        )
        return found


_MOST_IN_ORDER = 3
"""Of ops of more operands, the order does not count: they may have any number."""


def apply_rules(root: Operation, rules: RuleIndex, *, once: bool = False, trace: Tracer | None = None) -> bool:
    """Rewrites everything inside `root`, in place; returns whether anything changed.

    Every value must be typed. With `once`, what a rule made is not rewritten again. Linear in the size of the program
    plus the number of rewrites. Inside of `stats.counting`, tries, hits and times are counted; `trace` is called for each hit.

    Raises:
        MirError: where a replacement does not fit or has another type than what it replaces, a condition cannot be
            computed, or the rules go on for ever.
    """
    driver = RuleDriver(root, rules, once, current_stats(), trace)
    driver.run()
    return driver.changed


def apply_at(op: Operation, program: Program) -> bool:
    """Applies one rule once, with its first root at `op`; returns whether it applied.

    Raises MirError as `apply_rules` does.
    """
    driver = RuleDriver(op, RuleIndex((Candidate.of(program.rule),)), True, current_stats())
    driver.longest = 1
    return driver.attempt(program, op)


class RuleDriver:
    """Applies the rules of an index inside `root`, in place."""

    def __init__(
        self,
        root: Operation | None,
        rules: RuleIndex,
        once: bool,
        stats: dict[str, RuleStats] | None,
        trace: Tracer | None = None,
    ):
        self.root, self.rules, self.once, self.stats, self.trace = root, rules, once, stats, trace
        self.changed = self.refined = False
        if stats is not None:
            for rule in rules.rules:
                stats.setdefault(rule.head.name, RuleStats())
        # A stack without repeats: the op on top is next.
        self.pending: dict[Operation, None] = {}
        # How many rewrites in a row led to an op, and by which rules: a chain that grows longer than the program loops.
        self.lineage: dict[Operation, tuple[int, Program, Operation | None]] = {}
        self.longest = 0 if root is not None else 1000

    def run(self) -> None:
        """Applies rules until none matches, or once."""
        assert self.root is not None
        while True:
            candidates = [op for op in walk_ops(self.root) if op.name in self.rules.by_root]
            if not self.longest:
                self.longest = 1000 + 2 * len(candidates)
            self.pending = dict.fromkeys(reversed(candidates))
            changed = False
            while self.pending:
                op, _ = self.pending.popitem()
                changed = self.visit(op) or changed
            self.changed |= changed
            if self.refined:
                infer_users(self.root)
                self.refined = False
            if not changed or self.once:
                return

    def visit(self, op: Operation) -> bool:
        """Applies the first rule that matches at an op."""
        for program in self.rules.candidates(op):
            if self.stats is None:
                if self.attempt(program, op):
                    return True
                continue
            started = perf_counter()
            hit = self.attempt(program, op)
            stats = self.stats.setdefault(program.name, RuleStats())
            stats.tries += 1
            stats.hits += hit
            stats.seconds += perf_counter() - started
            if hit:
                return True
        return False

    def attempt(self, program: Program, op: Operation) -> bool:
        """Applies one rule at an op; whether it applied."""
        match = program.match(op)
        return match is not None and self.rewrite(program, match)

    def rewrite(self, program: Program, match: Match) -> bool:
        """Replaces what a rule matched; whether it could."""
        roots = match.roots
        made: list[Operation] = []
        try:
            for make in program.makers:
                op = make(match.slots, roots[0].results[0])
                if op is not None:
                    made.append(op)
        except (NoMatch, KeyError):
            _discard(made)
            return False
        except MirError:
            _discard(made)
            raise
        values: list[SSAValue] = [match.slots[slot] for slot in program.results]
        if all(value is root.results[0] for value, root in zip(values, roots, strict=True)):
            _discard(made)
            return False
        self.check_types(program, roots, values)
        anchor = roots[0] if len(roots) == 1 else _make_room(roots, match)
        if anchor is None:
            _discard(made)
            return False
        if self.trace is not None:
            new = op_names(made) or ", ".join(map(value_name, values))
            note = "the rule", program.rule.location
            mark = "fast " if program.rule.is_fast else ""
            tell_rewrite(self.trace, f"{mark}@{program.name}: ", [*roots, *match.matched], new, note)
        self.put(program, match, made, anchor)
        for root, value in zip(roots, values, strict=True):
            old = root.results[0]
            if value.name_hint is None:
                value.name_hint = old.name_hint
            self.push_users(old)
            old.replace_all_uses_with(value)
        self.erase_unused([*roots, *match.matched, *made])
        return True

    def check_types(self, program: Program, roots: Sequence[Operation], values: Sequence[SSAValue]) -> None:
        """Raises MirError where a value would get another type; on Relay, a `?` may become a size."""
        for root, value in zip(roots, values, strict=True):
            if value.type != root.results[0].type:
                if program.rule.level.data == "relay" and refines(value.type, root.results[0].type):
                    self.refined = True
                    continue
                from ....dialects.rule.functions import type_text

                message = (
                    f"rule @{program.name} would change the type of a value from {type_text(root.results[0].type)}"
                    f" to {type_text(value.type)}"
                )
                diagnostic = Diagnostic(message, program.rule.location).with_note("this value", root.location)
                raise MirError(
                    diagnostic.with_note("name the left side, and add a condition such as: where %r.type == %x.type")
                )

    def put(self, program: Program, match: Match, made: Sequence[Operation], anchor: Operation) -> None:
        """Inserts the new ops, each with the locations of all ops that it replaces."""
        sources = [*match.roots, *match.matched]
        location = fuse_locations([op.location for op in sources if not op.has_trait(ConstantLike)])
        generation, parent = 1, None
        for op in sources:
            before = self.lineage.get(op)
            if before is not None and before[0] >= generation:
                generation, parent = before[0] + 1, op
        for op in made:
            if op.parent is None:
                op.location = location
                insert_op_before(op, anchor)
            if self.once:
                continue  # Nothing is rewritten again, so that no chain can be endless.
            self.lineage[op] = (generation, program, parent)
            if op.name in self.rules.by_root:
                self.push(op)
        if generation > self.longest:
            raise self.endless(program, match.roots[0], made)

    def endless(self, program: Program, root: Operation, made: Sequence[Operation]) -> MirError:
        """The error of rules that go on for ever."""
        names: dict[str, None] = {}
        op: Operation | None = made[0] if made else None
        while op is not None and op in self.lineage and len(names) < 8:
            _, by, op = self.lineage[op]
            names[f"@{by.name}"] = None
        message = f"the rules do not come to an end: {' → '.join(reversed(names)) or '@' + program.name} …"
        diagnostic = Diagnostic(message, program.rule.location).with_note(
            "what is rewritten again and again", root.location
        )
        return MirError(diagnostic.with_note("let each rule make the program smaller, or apply them with mode=once"))

    def push(self, op: Operation) -> None:
        """Schedules an op to be visited next."""
        self.pending.pop(op, None)
        self.pending[op] = None

    def push_users(self, value: SSAValue) -> None:
        """Schedules the users of a changed value, as far down as the deepest pattern reaches."""
        if self.once:
            return
        level = [value]
        for _ in range(max(self.rules.depth - 1, 1)):
            below: list[SSAValue] = []
            for each in level:
                for use in each.uses:
                    user = use.operation
                    if user.name in self.rules.by_root:
                        self.push(user)
                    below += user.results
            level = below

    def erase_unused(self, ops: Iterable[Operation]) -> None:
        """Erases what the rewrite left without a use, as far as it has no effects."""
        candidates = dict.fromkeys(ops)
        pending = list(candidates)
        while pending:
            op = pending.pop()
            if op.parent is None or any([result.first_use for result in op.results]) or not is_side_effect_free(op):
                continue
            operands = operands_of(op)
            self.pending.pop(op, None)
            self.lineage.pop(op, None)
            erase_op(op)
            for operand in operands:
                owner = operand.owner
                if isinstance(owner, Operation) and (owner in candidates or owner.has_trait(ConstantLike)):
                    pending.append(owner)
                elif not self.once and operand.has_one_use():
                    # A condition on the number of its uses may hold now.
                    user = next(iter(operand.uses)).operation
                    if user.name in self.rules.by_root:
                        self.push(user)


def infer_users(root: Operation) -> None:
    """Infers the types of a Relay module again, after `?` in types of replaced values became sizes."""
    from ....dialects.relay.infer import infer_types

    module = root if isinstance(root, ModuleOp) else root.parent_op()
    assert isinstance(module, ModuleOp)
    infer_types(module, fresh=True)


def _discard(made: Sequence[Operation]) -> None:
    for op in reversed(made):
        op.erase()


def _make_room(roots: Sequence[Operation], match: Match) -> Operation | None:
    """Moves the ops that the replacement of several roots needs to before the first root; returns it.

    None if one of them depends on a root, or may not be moved.
    """
    block = roots[0].parent
    if block is None or any(root.parent is not block for root in roots):
        return None
    first = _first_of(roots)
    between: set[Operation] = set()
    waiting = {root for root in roots if root is not first}
    op = first.next_op
    while waiting and op is not None:
        between.add(op)
        waiting.discard(op)
        op = op.next_op
    needed: list[Operation] = []
    seen: set[Operation] = set(match.roots)
    pending = [
        operand for op in (*match.roots, *match.matched) if op in between or op is first for operand in op.operands
    ]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner not in between:
            if owner is first:
                return None
            continue
        if owner in match.roots or not is_side_effect_free(owner):
            return None
        if owner not in seen:
            seen.add(owner)
            needed.append(owner)
            pending += owner.operands
    order = {op: place for place, op in enumerate(_from(first, between))}
    for op in sorted(needed, key=order.__getitem__):
        op.detach()
        insert_op_before(op, first)
    return first


def _first_of(roots: Sequence[Operation]) -> Operation:
    """Returns the root that is first in its block.

    Walks both ways at once, so that near roots are found soon.
    """
    first = roots[0]
    for other in roots[1:]:
        forward, backward = first.next_op, first.prev_op
        while forward is not None or backward is not None:
            if forward is other:
                break
            if backward is other:
                first = other
                break
            forward = forward.next_op if forward is not None else None
            backward = backward.prev_op if backward is not None else None
    return first


def _from(first: Operation, between: set[Operation]) -> Iterable[Operation]:
    op = first.next_op
    while op is not None and op in between:
        yield op
        op = op.next_op
