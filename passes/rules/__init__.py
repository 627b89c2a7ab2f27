"""The engine of rewrite rules: `program` compiles a rule, `rewriter` applies rules, `library` and `shipped` read files of them."""

from .library import load_rules
from .rewriter import RuleIndex
from .shipped import shipped_rules
from .stats import RuleStats, counting, stats_table

__all__ = ["RuleIndex", "RuleStats", "counting", "load_rules", "shipped_rules", "stats_table"]
