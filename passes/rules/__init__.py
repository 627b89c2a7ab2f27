"""The engine of rewrite rules: `program` compiles a rule, `rewriter` applies rules, `library` finds rule files."""

from .library import load_rules, shipped_rules
from .rewriter import RuleIndex, RuleStats, apply_rules

__all__ = ["RuleIndex", "RuleStats", "apply_rules", "load_rules", "shipped_rules"]
