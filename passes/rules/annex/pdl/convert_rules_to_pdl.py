"""`convert-rules-to-pdl`: rules as patterns of MLIR's PDL dialect, which xDSL and MLIR apply.

PDL takes an op as it is written and wants a type for each op that it makes. So a rule becomes one pattern for each choice of
`[a, b]`, for each order of a commutative op's operands and, where it has literals, for each scalar type that they can have.
Types follow from the ops' definitions: operands and results of one type variable share a `pdl.type`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import product

from xdsl.context import Context
from xdsl.dialects import pdl
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface

from .....dialects import rule as ir
from .....dialects.rule.levels import level_of
from .....support.diagnostics import MirError, warn_at
from .....support.edit import erase_op
from ...engine.library import load_rules, select_rules
from .pdl_pattern import MatchChoice, PatternWriter, refuse

_MOST_CHOICES = 256
_MOST_BENEFIT = 2**15 - 1


@dataclass(frozen=True)
class ConvertRulesToPDL(ModulePass):
    """Convert rules to `pdl.pattern`s of the module.

    The rules are those of `file`, or of the module if none is given, or of `set` alone if named.
    Patterns come in the order in which rules are tried. The first pattern of a rule has its name, others a number after it.
    """

    name = "convert-rules-to-pdl"
    file: str | None = None
    set: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Raises MirError, at the rule, for what PDL cannot say."""
        rules = select_rules(op if self.file is None else load_rules(self.file), self.set)
        rules.sort(key=lambda rule: -rule.benefit.value.data)
        others = [item for item in op.ops if not isinstance(item, ir.RewriteOp | ir.RulesetOp)]
        traits = [(item, item.get_trait(SymbolOpInterface)) for item in others]
        symbols = [trait.get_sym_attr_name(item) for item, trait in traits if trait is not None]
        taken = {symbol.data for symbol in symbols if symbol is not None}
        errors: list[MirError] = []
        made: list[pdl.PatternOp] = []
        for rule in rules:
            try:
                patterns = patterns_of(rule, taken)
                _tell_needs(rule, patterns)
                made += patterns
            except MirError as error:
                errors.append(error)
        if errors:
            raise MirError([diagnostic for error in errors for diagnostic in error.diagnostics])
        for item in list(op.ops):
            if isinstance(item, ir.RewriteOp | ir.RulesetOp):
                erase_op(item)
        op.body.block.add_ops(made)


def _tell_needs(rule: ir.RewriteOp, patterns: Sequence[pdl.PatternOp]) -> None:
    """Warns of what patterns need of those who apply them."""
    found = (
        op.constraint_name.data for p in patterns for op in p.walk() if isinstance(op, pdl.ApplyNativeConstraintOp)
    )
    names = ", ".join(f"'{name}'" for name in dict.fromkeys(found))
    if names:
        warn_at(
            rule,
            f"the pattern of rule @{rule.sym_name.data} asks for native constraints: {names}",
            "whoever applies it has to provide them; xDSL's apply-pdl has none",
        )


def patterns_of(rule: ir.RewriteOp, taken: set[str]) -> list[pdl.PatternOp]:
    """The patterns of a verified rule, under names that are not in `taken`, to which they are added.

    Raises MirError, at the rule, for what PDL cannot say.
    """
    benefit, name = rule.benefit.value.data, rule.sym_name.data
    if not 0 <= benefit <= _MOST_BENEFIT:
        raise refuse(rule, "its benefit is not from 0 to 32767", "give it a benefit in that range")
    patterns: list[pdl.PatternOp] = []
    seen: set[str] = set()
    tried = 0
    for choice in _choices(rule):
        for matcher, rewrite in PatternWriter(rule, choice).write():
            tried += 1
            if tried > _MOST_CHOICES:
                raise refuse(
                    rule,
                    f"there are more than {_MOST_CHOICES} choices of its ops, of their operands' order and of types",
                    "split the rule, or apply it with apply-rules",
                )
            key = _text(matcher)
            # What an earlier pattern matches never gets to this one.
            if key in seen:
                continue
            seen.add(key)
            number = 0
            own = name
            while own in taken:
                number += 1
                own = f"{name}_{number}"
            taken.add(own)
            pattern = pdl.PatternOp(benefit, own, Region(Block([*matcher, rewrite])))
            pattern.location = rule.location
            patterns.append(pattern)
    if not patterns:
        raise refuse(rule, "there is no scalar type that its literals can have", "apply it with apply-rules")
    return patterns


def _choices(rule: ir.RewriteOp) -> Iterator[MatchChoice]:
    """Every choice of op names and of operand orders, the rule's own order first."""
    matches = [op for op in rule.body.block.ops if isinstance(op, ir.MatchOp)]
    for names in product(*(op.names.data for op in matches)):
        chosen = {op: name.data for op, name in zip(matches, names, strict=True)}
        either = [op for op, name in chosen.items() if _can_swap(op, name)]
        for swaps in product((False, True), repeat=len(either)):
            yield MatchChoice(chosen, frozenset(op for op, swap in zip(either, swaps, strict=True) if swap))


def _can_swap(op: ir.MatchOp, name: str) -> bool:
    args: list[SSAValue] = list(op.args)
    # As `program` has it: every op of the choice has to be commutative.
    return (
        len(args) == 2
        and args[0] is not args[1]
        and all(arg.type == ir.VALUE for arg in args)
        and level_of(name).is_commutative(name)
        and all(level_of(other.data).is_commutative(other.data) for other in op.names.data)
    )


def _text(ops: list[Operation]) -> str:
    """Returns the text of a matcher, its values numbered in order: equal for matchers that match the same."""
    stream = StringIO()
    printer = Printer(stream)
    for op in ops:
        printer.print_op(op)
        stream.write(";")
    return stream.getvalue()
