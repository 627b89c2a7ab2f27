"""Many rules cost little more than few, and rewriting takes a time linear in the size of the graph."""

from __future__ import annotations

import pytest
from mirstack.benchmarks.rules import by_rule_count, by_size
from mirstack.benchmarks.timing import growth
from mirstack.support.deep_stack import in_deep_stack


@pytest.mark.parametrize("name", ["roots of 20 kinds", "one root"])
def test_many_rules_cost_little_more_than_few(name: str):
    assert in_deep_stack(lambda: growth(lambda rules: by_rule_count(4_000, [rules])[name][0], 10, 200, below=2)) < 2


@pytest.mark.parametrize("name", ["nothing applies", "half is rewritten"])
def test_linear(name: str):
    assert in_deep_stack(lambda: growth(lambda size: by_size([size])[name][0], 1_000, 8_000, below=16)) < 16
