"""A pass that is nothing but a file of rules: `fast-math` is `passes/relay/algebra/fast_math.mir`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.rule import RewriteOp, RulesetOp
from ...support.trace import tracer
from .engine.rewriter import apply_rules
from .engine.shipped import shipped_rules


@dataclass(frozen=True)
class RulePass(ModulePass):
    """Rewrites Relay by the rules of `file` until none applies.

    With `strict_math`, rules marked `fast` rewrite integers alone.
    """

    name = "rule-pass"
    tells: ClassVar[bool] = True
    file: ClassVar[str]
    strict_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Raises MirError where the program's types cannot be inferred."""
        from ..relay.functional.infer_type import ensure_types

        ensure_types(op)
        index = shipped_rules(self.file, self.strict_math)
        for item in list(op.ops):
            if not isinstance(item, RewriteOp | RulesetOp):
                apply_rules(item, index, trace=tracer(self.name))


@dataclass(frozen=True)
class ScalarRulePass(ModulePass):
    """Rewrites the scalars of TIR by the rules of `file`, in one walk over each function.

    Conditions may ask what is known at each place.
    """

    name = "scalar-rule-pass"
    file: ClassVar[str]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from ..tir.rewriting import prim_funcs
        from ..tir.scalars.simplify import RuleWalk

        for func in prim_funcs(op):
            RuleWalk(self.file).run(func)


def rule_pass(name: str, file: str) -> type[ModulePass]:
    """The pass called `name` that applies the rules of a file, counted from `passes/`."""
    class_name = "".join(map(str.title, name.split("-")))
    namespace = {"name": name, "file": file, "__doc__": f"Rewrites by the rules of passes/{file}."}
    base = ScalarRulePass if file.startswith("tir/") else RulePass
    made: Any = type(class_name, (base,), namespace)
    return dataclass(frozen=True)(made)
