"""`apply-rules`: rewrite by the rules of a file, or of the module itself."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.rule import RewriteOp, RulesetOp
from ...support.diagnostics import error_at
from ...support.trace import tracer
from ..changes import comparing
from .library import load_rules, select_rules
from .rewriter import RuleIndex, apply_rules


@dataclass(frozen=True)
class ApplyRules(ModulePass):
    """Rewrite by the rules of `file` (of the module itself where none is given), of the set or rule `set` alone if named.

    `mode` is `fixpoint` (until nothing matches), `once` (what a rule made is left as it is) or `saturate` (every form is
    kept, and the cheapest one taken).
    """

    name = "apply-rules"
    tells: ClassVar[bool] = True
    file: str | None = None
    set: str | None = None
    mode: str = "fixpoint"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Raises MirError for what is wrong in the rules, and as `apply_rules` does."""
        if self.mode not in ("fixpoint", "once", "saturate"):
            raise error_at(None, f"apply-rules: there is no mode '{self.mode}'", "it is fixpoint, once or saturate")
        trace = tracer(self.name)
        rules = RuleIndex.of(select_rules(op if self.file is None else load_rules(self.file), self.set))
        if any("relay" in name for name in rules.by_root):
            from ..relay.infer_type import ensure_types

            ensure_types(op)
        if self.mode == "saturate":
            from ...dialects.relay import FuncOp
            from .saturate import saturate

            with nullcontext() if trace is None else comparing(trace, op):
                for item in list(op.ops):
                    if isinstance(item, FuncOp):
                        saturate(item, [each.rule for each in rules.rules])
            return
        for item in list(op.ops):
            if not isinstance(item, RewriteOp | RulesetOp):
                apply_rules(item, rules, once=self.mode == "once", trace=trace)
