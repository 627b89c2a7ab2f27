"""The engine of rewrite rules: `program` compiles a rule, `rewriter` applies rules, `library` finds rule files."""

from .library import load_rules, shipped_rules
from .rewriter import RuleIndex
from .stats import RuleStats, counting, stats_table

__all__ = ["RuleIndex", "RuleStats", "counting", "load_rules", "shipped_rules", "stats_table"]
