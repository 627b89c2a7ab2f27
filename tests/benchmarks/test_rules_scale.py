"""Many rules cost little more than few, and rewriting takes a time linear in the size of the graph."""

from __future__ import annotations

from mirstack.benchmarks.rules import by_rule_count, by_size
from mirstack.support.deep import in_deep_stack

SLACK = 2.0
"""How much a ratio of times may exceed what is expected: the machine does other things, too."""


def test_many_rules_cost_little_more_than_few():
    for name, (few, many) in in_deep_stack(lambda: by_rule_count(4_000)).items():
        assert many < few * SLACK, name


def test_linear():
    for name, (small, large) in in_deep_stack(lambda: by_size((2_000, 8_000))).items():
        assert large < small * 4 * SLACK, name
