"""Heads of rules: what an index must know of a rule before the rule is compiled, or even read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import SSAValue

from ....dialects import rule as ir
from .program import Program, compile_rule

CONSTANT = "<constant>"
"""Stands for every op that is a constant."""


@dataclass(frozen=True)
class Head:
    """The places where a rule may apply.

    `root_names` are the ops at which a match may begin; `depth` is the pattern's height.
    """

    name: str
    benefit: int
    root_names: tuple[str, ...]
    operand_names: tuple[frozenset[str], ...]
    """For each operand of the first root that must be an op, which ops it may be; CONSTANT for any constant."""
    depth: int


def head_of(rule: ir.RewriteOp) -> Head:
    """The head of a verified rule."""
    last = rule.body.block.last_op
    assert isinstance(last, ir.ReplaceOp)
    first = last.roots[0].owner
    assert isinstance(first, ir.MatchOp)
    return Head(
        rule.sym_name.data,
        rule.benefit.value.data,
        tuple(name.data for name in first.names.data),
        tuple(_operand_names(arg) for arg in first.args if not isinstance(arg.owner, ir.AnyOp)),
        max(_depth(root) for root in last.roots),
    )


class Candidate:
    """A rule that is made and compiled when an op is met at which it may apply."""

    def __init__(self, head: Head, load: Callable[[], ir.RewriteOp], strict_math: bool = False):
        self.head, self._load, self._strict_math = head, load, strict_math

    @cached_property
    def rule(self) -> ir.RewriteOp:
        """The rule itself. Raises what the loading of it raises."""
        return self._load()

    @cached_property
    def program(self) -> Program:
        """The compiled rule. Raises what the loading of it raises."""
        return compile_rule(self.rule, strict_math=self._strict_math)

    @staticmethod
    def of(rule: ir.RewriteOp, strict_math: bool = False) -> Candidate:
        """A verified rule that is there already."""
        return Candidate(head_of(rule), lambda: rule, strict_math)


def _operand_names(value: SSAValue) -> frozenset[str]:
    if isinstance(value.owner, ir.LiteralOp):
        return frozenset([CONSTANT])
    assert isinstance(value.owner, ir.MatchOp)
    return frozenset(name.data for name in value.owner.names.data)


def _depth(value: SSAValue) -> int:
    owner = value.owner
    return 1 + max((_depth(arg) for arg in owner.args), default=0) if isinstance(owner, ir.MatchOp) else 0
