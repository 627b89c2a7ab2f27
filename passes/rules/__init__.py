"""The engine of rewrite rules: `program` compiles a rule, `rewriter` applies rules, `library` finds rule files."""

from .library import load_rules, shipped_rules
from .rewriter import RuleIndex, apply_rules
from .stats import RuleStats, counting, stats_table

__all__ = ["RuleIndex", "RuleStats", "apply_rules", "counting", "load_rules", "shipped_rules", "stats_table"]
