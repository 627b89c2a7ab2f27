"""Rewrite rules: `engine` applies them, `annex` checks them, saturates e-graphs and exports PDL."""

from .engine.library import load_rules
from .engine.rewriter import RuleIndex
from .engine.shipped import shipped_rules
from .engine.stats import RuleStats, counting, stats_table

__all__ = ["RuleIndex", "RuleStats", "counting", "load_rules", "shipped_rules", "stats_table"]
