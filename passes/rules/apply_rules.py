"""`apply-rules`: rewrite by the rules of a file, or of the module itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.rule import RewriteOp, RulesetOp
from ...support.diagnostics import error_at
from ...support.trace import tracer
from ...support.walk import walk_ops
from .engine.library import load_rules, select_rules, with_loaded
from .engine.rewriter import RuleIndex, apply_rules

if TYPE_CHECKING:
    from .annex.egraph.dump_egraph import EGraphDump
    from .annex.egraph.saturate import SaturationLimits

MODES = ("fixpoint", "once", "saturate")


@dataclass(frozen=True)
class ApplyRules(ModulePass):
    """Rewrite by the rules of `file`, or of the module itself if none is given, or of `set` alone.

    `mode` is `fixpoint` (until nothing matches), `once` (what a rule made is left as it is) or `saturate` (every form is
    kept, and the cheapest one taken). `saturate` adds `max_ops` ops to a block at most, in `max_rounds` rounds, and writes its
    e-graphs as MLIR to the file `dump_egraph`. With `strict_math`, rules marked `fast` rewrite nothing that computes with floats.
    """

    name = "apply-rules"
    file: str | None = None
    set: str | None = None
    mode: str = "fixpoint"
    max_ops: int = 10_000
    max_rounds: int = 30
    dump_egraph: str | None = None
    strict_math: bool = False

    @property
    def tells(self) -> bool:
        """Returns whether each rewrite is traced; a saturated program is compared with the original instead."""
        return self.mode != "saturate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Raises MirError for what is wrong in the rules, and as `apply_rules` and `saturate` do."""
        check_mode(self.mode)
        if min(self.max_ops, self.max_rounds) < 1:
            raise error_at(None, "apply-rules: max-ops and max-rounds are 1 or more")
        if self.dump_egraph is not None and self.mode != "saturate":
            raise error_at(None, f"apply-rules: mode={self.mode} has no e-graph to dump", "add mode=saturate")
        rules = select_rules(with_loaded(op) if self.file is None else load_rules(self.file), self.set)
        if any(name.startswith("relay.") for name in RuleIndex.of(rules).by_root):
            from ..relay.functional.infer_type import ensure_types

            ensure_types(op)
        if self.mode == "saturate":
            self._saturate(op, rules)
        else:
            rewrite_all(op, rules, self.mode, self.strict_math)

    def _saturate(self, op: ModuleOp, rules: Sequence[RewriteOp]) -> None:
        from .annex.egraph.dump_egraph import EGraphDump
        from .annex.egraph.saturate import SaturationLimits

        dump = None if self.dump_egraph is None else EGraphDump()
        saturate_all(op, rules, SaturationLimits(self.max_ops, self.max_rounds), dump, self.strict_math)
        if dump is not None and self.dump_egraph is not None:
            try:
                Path(self.dump_egraph).write_text(dump.text(), encoding="utf-8")
            except OSError as error:
                message = f"the e-graph cannot be written to {self.dump_egraph}: {error.strerror}"
                raise error_at(None, message) from error


def check_mode(mode: str) -> None:
    """Raises MirError for a mode that there is not."""
    if mode not in MODES:
        raise error_at(None, f"apply-rules: there is no mode '{mode}'", f"it is {', '.join(MODES[:-1])} or {MODES[-1]}")


def rewrite_all(op: ModuleOp, rules: Sequence[RewriteOp], mode: str = "fixpoint", strict_math: bool = False) -> None:
    """Applies verified rules to a typed module, in place.

    Raises MirError as `apply_rules` and `saturate` do.
    """
    if mode == "saturate":
        saturate_all(op, rules, strict_math=strict_math)
        return
    index = RuleIndex.of(rules, strict_math)
    for item in _programs(op):
        apply_rules(item, index, once=mode == "once", trace=tracer(ApplyRules.name))


def saturate_all(
    op: ModuleOp,
    rules: Sequence[RewriteOp],
    limits: SaturationLimits | None = None,
    dump: EGraphDump | None = None,
    strict_math: bool = False,
) -> None:
    """Rewrites a typed module to the cheapest form that verified rules lead to, in place.

    Which form costs least is not decided exactly, as one op may serve several others; so where rules come to an end by
    themselves, their result in the written order is compared, and taken if it costs less. Raises MirError as `saturate` does.
    """
    from .annex.check.terminate import check_termination
    from .annex.egraph.cost import total_cost
    from .annex.egraph.saturate import saturate

    index = None if check_termination(rules) else RuleIndex.of(rules, strict_math)
    for item in _programs(op):
        other = None if index is None else item.clone()
        saturate(item, rules, limits, None if dump is None else dump.add, strict_math)
        if other is not None and index is not None and apply_rules(other, index):
            if total_cost(walk_ops(other)) < total_cost(walk_ops(item)):
                Rewriter.replace_op(item, other, [])
                continue
            other.erase()


def _programs(op: ModuleOp) -> list[Operation]:
    """Returns the items of a module besides rules."""
    return [item for item in op.ops if not isinstance(item, RewriteOp | RulesetOp)]
