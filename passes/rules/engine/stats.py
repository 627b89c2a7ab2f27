"""Statistics of rules, for `mir-opt --rule-stats`: tries, hits and times."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class RuleStats:
    """Statistics of one rule: how often it was tried and applied, and the time both took, in seconds."""

    tries: int = 0
    hits: int = 0
    seconds: float = 0.0


_COUNTING: ContextVar[dict[str, RuleStats] | None] = ContextVar("rule_stats", default=None)


@contextmanager
def counting() -> Generator[dict[str, RuleStats]]:
    """Counts all applications of rules inside into the dictionary that this yields, by the rules' names."""
    stats: dict[str, RuleStats] = {}
    token = _COUNTING.set(stats)
    try:
        yield stats
    finally:
        _COUNTING.reset(token)


def current_stats() -> dict[str, RuleStats] | None:
    """Returns the dictionary to count into, or None if nobody asks."""
    return _COUNTING.get()


def stats_table(stats: Mapping[str, RuleStats]) -> str:
    """A table of rules, the slowest first."""
    width = max([len("rule"), *(len(name) + 1 for name in stats)])
    lines = [f"{'rule':<{width}} {'tries':>9} {'hits':>9} {'seconds':>9}"]
    lines += [
        f"{'@' + name:<{width}} {each.tries:>9} {each.hits:>9} {each.seconds:>9.4f}"
        for name, each in sorted(stats.items(), key=lambda item: -item[1].seconds)
    ]
    if len(stats) > 1:
        all_stats = list(stats.values())
        tries, hits, seconds = (sum(getattr(s, field) for s in all_stats) for field in ("tries", "hits", "seconds"))
        lines.append(f"{'total':<{width}} {tries:>9} {hits:>9} {seconds:>9.4f}")
    return "\n".join(lines)
